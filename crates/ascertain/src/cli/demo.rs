//! `ascertain demo`.

use super::{Ended, Progress};
use crate::demo;
use crate::render::{Paint, text};
use crate::{Look, observe, verify};
use ascertain_capture::Options;
use clap::Args;
use std::io::Write;

/// See it work: a recorded server that only seems to speculate, and one that does.
#[derive(Debug, Args)]
#[command(after_help = "\
--live starts the server it finds on PATH (or the one that an environment variable names, see the
error it prints when there is none) with a tiny model that is made on the spot, verifies it with
real requests, and stops it again.")]
pub struct Demo {
    /// Start a real server and verify it.
    #[arg(long)]
    pub live: bool,
    /// Show the evidence under each verdict.
    #[arg(short, long)]
    pub verbose: bool,
}

pub(super) fn run(args: &Demo, paint: Paint, out: &mut dyn Write) -> Result<u8, Ended> {
    if args.live { live(args, paint, out) } else { recorded(args, paint, out) }
}

fn recorded(args: &Demo, paint: Paint, out: &mut dyn Write) -> Result<u8, Ended> {
    for (index, recording) in demo::recordings().into_iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let report = verify(&recording.capture, false)?;
        for line in recording.story.lines() {
            writeln!(out, "{}", paint.dim(&format!("# {line}")))?;
        }
        writeln!(out, "$ {}", report.target.argv.join(" "))?;
        writeln!(out, "$ ascertain verify\n")?;
        text::write(&report, paint, args.verbose, out)?;
        writeln!(out, "\n{}", paint.dim(&format!("# exit code {}", report.exit_code)))?;
    }
    writeln!(out)?;
    writeln!(out, "Both are recordings of real servers. The same live:")?;
    for (executable, variable) in demo::servers() {
        writeln!(out, "  ascertain demo --live        with a {executable} on PATH or in {variable}")?;
    }
    writeln!(out, "  ascertain verify             with a server of yours running on this host")?;
    Ok(0)
}

fn live(args: &Demo, paint: Paint, out: &mut dyn Write) -> Result<u8, Ended> {
    let mut progress = Progress::new();
    progress.say("starting a server with a tiny model");
    let server = demo::start()?;
    writeln!(out, "$ {}", server.argv.join(" "))?;
    writeln!(out, "$ ascertain verify --exercise pid:{}\n", server.pid())?;
    out.flush()?;
    let located = server.located()?;
    let look = Look { options: Options::default(), exercise: true };
    let capture = observe(&located, &look, &mut |text| progress.say(text));
    drop(progress);
    drop(server);
    let report = verify(&capture, false)?;
    text::write(&report, paint, args.verbose, out)?;
    writeln!(out, "\n{}", paint.dim(&format!("# exit code {}; the server was stopped", report.exit_code)))?;
    Ok(report.exit_code)
}
