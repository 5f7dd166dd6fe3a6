//! `ascertain explain`.

use super::{Ended, Format, LookArgs};
use crate::failure::Failure;
use crate::render::{Paint, explain, json};
use crate::target::Written;
use crate::verify;
use clap::Args;
use std::io::Write;

/// Show all evidence about one setting, rung by rung.
#[derive(Debug, Args)]
pub struct Explain {
    /// What to look at, as for verify.
    pub target: String,
    /// The setting: its canonical name or one of its flags.
    #[arg(allow_hyphen_values = true)]
    pub setting: String,
    /// How to write it.
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    pub format: Format,
    /// How to look.
    #[command(flatten)]
    pub look: LookArgs,
}

pub(super) fn run(args: &Explain, paint: Paint, out: &mut dyn Write) -> Result<u8, Ended> {
    let written = Written::parse(Some(&args.target))?;
    let capture = args.look.capture(&written)?;
    let report = verify(&capture, false)?;
    let asked = args.setting.trim_start_matches('-').replace('-', "_");
    let claim = report.claims.iter().find(|claim| {
        claim.setting == args.setting
            || claim.setting == asked
            || claim.origin.iter().any(|origin| origin.place.split(' ').next_back() == Some(args.setting.as_str()))
    });
    let Some(claim) = claim else {
        let names: Vec<&str> = report.claims.iter().map(|claim| claim.setting.as_str()).collect();
        let mut failure = Failure::new(format!("nobody asked for {:?}", args.setting));
        if let Some(near) = ascertain_engines::nearest::nearest(&asked, names.iter().copied(), 1).first() {
            failure = failure.hint(format!("did you mean {near}?"));
        }
        return Err(failure.hint(format!("asked for: {}", names.join(", "))).into());
    };
    match args.format {
        Format::Json => json::write(claim, out)?,
        Format::Text => explain::write(&report, claim, paint, out)?,
    }
    Ok(0)
}
