//! `ascertain list`.

use super::{Ended, Format};
use crate::target::running;
use clap::Args;
use serde_json::json;
use std::io::Write;

/// List the engines that run on this host.
#[derive(Debug, Args)]
pub struct List {
    /// How to write it.
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    pub format: Format,
}

pub(super) fn run(args: &List, out: &mut dyn Write) -> Result<u8, Ended> {
    let all = running();
    match args.format {
        Format::Json => {
            let rows: Vec<_> = all
                .iter()
                .map(|one| {
                    json!({
                        "pid": one.facts.pid,
                        "engine": one.engine.name(),
                        "ports": one.ports(),
                        "names": one.names(),
                        "unit": one.unit(),
                    })
                })
                .collect();
            crate::render::json::write(&rows, out)?;
        }
        Format::Text if all.is_empty() => {
            writeln!(out, "No inference server was found running on this host.")?;
            writeln!(out, "As another user or in a container: run as root.")?;
        }
        Format::Text => {
            for one in &all {
                writeln!(out, "{}", one.line())?;
            }
        }
    }
    Ok(0)
}
