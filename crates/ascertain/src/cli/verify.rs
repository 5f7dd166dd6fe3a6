//! `ascertain verify`.

use super::{Ended, Format, LookArgs};
use crate::failure::Failure;
use crate::remote;
use crate::render::{Paint, json, text};
use crate::target::{Found, Located, Remote, Written};
use crate::{Look, verify};
use ascertain_capture::collect;
use ascertain_capture::file::{self, Root};
use ascertain_engines::text::safe;
use clap::Args;
use std::io::Write;

/// Verify a server: a verdict with evidence for every setting that was asked for.
#[derive(Debug, Args)]
#[command(after_help = "\
A target is a systemd unit (llama, llama.service, llama@b; of one's own manager too), a PID (pid:1234),
a container (container:NAME),
a URL (http://host:port, or :port for short: the local process that listens there), the name of a
running server (its alias, its model, its executable), a capture file, or an evidence directory.
Without one, the only server on this host. ssh://[user@]host[:port]/TARGET is any of the live ones on
another host. What belongs to a unit is judged with it: what is written
on disk, what the manager has loaded, and what the process was given.

Without --exercise nothing but GET requests is sent. With it, a dozen small requests at most, one
at a time.

Other hosts are reached with your own ssh, its configuration, agent, jump hosts and master connection;
nothing is ever asked for, so `ssh -o BatchMode=yes HOST true` must work. ASCERTAIN_SSH names another
command, with options, to use instead of ssh: ASCERTAIN_SSH='ssh -F FILE'. With --push this program is
copied there once, into ${XDG_CACHE_HOME:-~/.cache}/ascertain, and looks there as it does here; later
runs use the copy. Without one, plain commands do it, with more gaps. Nothing else is written there.")]
pub struct Verify {
    /// What to verify.
    pub target: Option<String>,
    /// How to write the report.
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    pub format: Format,
    /// Also fail (exit code 3) when something is not proven.
    #[arg(long)]
    pub strict: bool,
    /// Show the evidence under each verdict.
    #[arg(short, long)]
    pub verbose: bool,
    /// Print what would be read and asked, and touch nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// How to look.
    #[command(flatten)]
    pub look: LookArgs,
}

impl Verify {
    /// The only server on this host.
    pub(super) fn only() -> Verify {
        Verify {
            target: None,
            format: Format::Text,
            strict: false,
            verbose: false,
            dry_run: false,
            look: LookArgs { log: None, api_key_env: None, exercise: false, timeout: 5, push: false, sudo: false },
        }
    }
}

pub(super) fn run(args: &Verify, paint: Paint, out: &mut dyn Write) -> Result<u8, Ended> {
    let written = Written::parse(args.target.as_deref())?;
    let capture = match &written {
        Written::Remote(remote) if args.dry_run => return dry_run_there(args, remote, out),
        Written::Remote(remote) => args.look.observe_remote(remote)?,
        here => match args.look.locate(here)? {
            Found::Stored(_) if args.look.exercise || args.dry_run => {
                return Err(Failure::new("a stored capture can only be judged: there is no server to ask").into());
            }
            Found::Stored(mut capture) => {
                if let Some(log) = &args.look.log {
                    add_log(&mut capture, log)?;
                }
                *capture
            }
            Found::Live(located) if args.dry_run => return dry_run(&located, &args.look.look()?, out),
            Found::Live(located) => args.look.observe(&located)?,
        },
    };
    let report = verify(&capture, args.strict)?;
    match args.format {
        Format::Json => json::write(&report, out)?,
        Format::Text => text::write(&report, paint, args.verbose, out)?,
    }
    Ok(report.exit_code)
}

fn add_log(capture: &mut ascertain_model::Capture, path: &std::path::Path) -> Result<(), Failure> {
    let content = file::read_ends(path, &Root::ours(), &crate::target::log_beginnings())
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    let mut redactor = crate::target::redactor_for(capture);
    redactor.learn_artifact("log.txt", &content.bytes);
    collect::add(capture, &redactor, "log.txt", &path.display().to_string(), &content.bytes);
    Ok(())
}

fn dry_run_there(args: &Verify, remote: &Remote, out: &mut dyn Write) -> Result<u8, Ended> {
    for line in remote::plan(remote, &args.look.remote_look()?, args.look.allowed())? {
        writeln!(out, "{}", safe(&line))?;
    }
    Ok(0)
}

fn dry_run(located: &Located, look: &Look, out: &mut dyn Write) -> Result<u8, Ended> {
    let mut options = look.options.clone();
    options.pid = located.facts.as_ref().map(|facts| facts.pid);
    options.address.clone_from(&located.address);
    options.target.clone_from(&located.name);
    options.unit.clone_from(&located.unit);
    for line in collect::describe(&crate::wants(located), located.facts.as_ref(), &options) {
        writeln!(out, "{}", safe(&line))?;
    }
    if look.exercise {
        writeln!(out, "POST a few small requests for tokens, one at a time (--exercise)")?;
    }
    Ok(0)
}
