//! `ascertain capture`.

use super::{Ended, LookArgs};
use crate::failure::Failure;
use crate::target::Written;
use ascertain_capture::pack;
use ascertain_engines::text::safe;
use clap::Args;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Keep everything the witnesses see in one file.
#[derive(Debug, Args)]
#[command(after_help = "\
The file is a compressed tar of an evidence directory: API keys, tokens and passwords are taken out
before anything is written. `ascertain verify FILE` gives the same report as verifying live did.")]
pub struct CaptureTo {
    /// What to capture; an evidence directory is packed.
    pub target: Option<String>,
    /// The file to write; `-` for the standard output.
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: PathBuf,
    /// Replace the file if it is there already.
    #[arg(long)]
    pub force: bool,
    /// How to look.
    #[command(flatten)]
    pub look: LookArgs,
}

pub(super) fn run(args: &CaptureTo, out: &mut dyn Write) -> Result<u8, Ended> {
    let to_stdout = args.output.as_os_str() == "-";
    if !to_stdout {
        may_write(&args.output, args.force)?;
    } else if std::io::stdout().is_terminal() {
        return Err(Failure::new("a capture is no text for a terminal").hint("name a file: -o FILE").into());
    }
    let written = Written::parse(args.target.as_deref())?;
    let capture = args.look.capture(&written)?;
    if to_stdout {
        let bytes = pack::encode(&capture, &args.output).map_err(Failure::new)?;
        out.write_all(&bytes)?;
        return Ok(0);
    }
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
        writeln!(out, "{lacking} more were looked for and not there; the capture says why for each of them")?;
    }
    Ok(0)
}

/// A capture takes the place of a file, so only of one that is meant.
fn may_write(path: &Path, force: bool) -> Result<(), Failure> {
    let Ok(there) = path.symlink_metadata() else { return Ok(()) };
    let shown = path.display();
    if !there.is_file() {
        Err(Failure::new(format!("{shown} is there and is no regular file"))
            .hint("name a file that is not there yet, or - for the standard output"))
    } else if !force {
        Err(Failure::new(format!("{shown} is there already")).hint("--force replaces it"))
    } else {
        Ok(())
    }
}
