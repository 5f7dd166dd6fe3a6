//! `ascertain capture`.

use super::{Ended, LookArgs, Progress};
use crate::failure::Failure;
use crate::target::{Found, Written, locate};
use crate::{Look, observe};
use ascertain_capture::pack;
use ascertain_engines::text::safe;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

/// Keep everything the witnesses see in one file.
#[derive(Debug, Args)]
#[command(after_help = "\
The file is a compressed tar of an evidence directory: API keys, tokens and passwords are taken out
before anything is written. `ascertain verify FILE` gives the same report as verifying live did.")]
pub struct CaptureTo {
    /// What to capture; an evidence directory is packed.
    pub target: Option<String>,
    /// The file to write.
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: PathBuf,
    /// How to look.
    #[command(flatten)]
    pub look: LookArgs,
}

pub(super) fn run(args: &CaptureTo, out: &mut dyn Write) -> Result<u8, Ended> {
    let written = Written::parse(args.target.as_deref())?;
    let capture = match locate(&written)? {
        Found::Stored(capture) => *capture,
        Found::Live(located) => {
            let look = Look { options: args.look.options()?, exercise: args.look.exercise };
            let mut progress = Progress::new();
            observe(&located, &look, &mut |text| progress.say(text))
        }
    };
    pack::write(&capture, &args.output)
        .map_err(|error| Failure::new(error).hint("name a file in a directory you may write to: -o FILE"))?;
    let got = capture.artifacts.len();
    let lacking = capture.manifest.artifacts.iter().filter(|artifact| artifact.gap.is_some()).count();
    writeln!(
        out,
        "{}: {got} artifacts of {}",
        safe(&args.output.display().to_string()),
        safe(&capture.manifest.target)
    )?;
    if lacking > 0 {
        writeln!(out, "{lacking} more were wanted and not there; ascertain verify says why")?;
    }
    Ok(0)
}
