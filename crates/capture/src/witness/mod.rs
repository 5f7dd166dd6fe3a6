//! The witnesses, one file each. A witness collects bytes; it does not interpret them.
//!
//! To add one: write its file, and name it in [`WITNESSES`]. A test looks for files that are not in the list.

mod checkpoint;
pub(crate) mod endpoints;
mod files;
pub(crate) mod journal;
pub(crate) mod log;
pub(crate) mod process;
pub(crate) mod unit;

use crate::file::{self, Root};
use crate::seal;
use crate::systemd::Unit;
use ascertain_model::capture::{Artifact, ArtifactGap};
use ascertain_model::wants::{Address, ProcessFacts, Wants};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Every witness there is.
pub const WITNESSES: &[Witness] =
    &[unit::WITNESS, process::WITNESS, log::WITNESS, files::WITNESS, endpoints::WITNESS, checkpoint::WITNESS];

/// A source that can testify.
#[derive(Debug, Clone, Copy)]
pub struct Witness {
    /// Its name, which is that of its file.
    pub name: &'static str,
    /// The artifacts it is expected to bring. Those it does not bring in time become gaps.
    pub artifacts: fn(&Context) -> Vec<String>,
    /// What it would touch, one line each, without touching it.
    pub plan: fn(&Context) -> Vec<String>,
    /// Collects. Hands over each artifact, or its gap, as soon as it has it.
    pub testify: fn(&Context, &mut dyn FnMut(Found)),
}

/// What all witnesses are told.
pub struct Context {
    /// What to read.
    pub wants: Wants,
    /// The process, where there is one.
    pub facts: Option<ProcessFacts>,
    /// A log file that the user named.
    pub log: Option<PathBuf>,
    /// The key to send to endpoints.
    pub api_key: Option<String>,
    /// Where the server answers, or why that is not known.
    pub address: Result<Address, ArtifactGap>,
    /// Where to connect to instead: our end of a forward to that address.
    pub through: Option<Address>,
    /// The file tree the process sees.
    pub root: Root,
    /// How long a witness may take.
    pub timeout: Duration,
    /// When the capture began.
    pub began: Instant,
    /// The unit it belongs to.
    pub unit: Option<Arc<Unit>>,
}

impl Context {
    /// PID of the process, where there is one.
    pub fn pid(&self) -> Option<u32> {
        self.facts.as_ref().map(|facts| facts.pid)
    }

    /// When a witness that is still working should give up.
    pub fn deadline(&self) -> Instant {
        self.began + self.timeout
    }

    /// A path as the process means it: relative ones start in its working directory.
    pub fn absolute(&self, path: &str) -> PathBuf {
        let cwd = self.facts.as_ref().and_then(|facts| facts.cwd.as_deref()).unwrap_or("/");
        Path::new(cwd).join(path)
    }
}

/// One artifact: its bytes as they were found, not redacted yet, or its gap.
pub struct Found {
    /// What the manifest will say.
    pub entry: Artifact,
    /// The bytes.
    pub bytes: Option<Vec<u8>>,
}

impl Found {
    /// An artifact.
    pub fn bytes(name: &str, source: impl Into<String>, bytes: Vec<u8>) -> Self {
        Found { entry: seal::entry(name, &source.into()), bytes: Some(bytes) }
    }

    /// A gap.
    pub fn gap(name: &str, source: impl Into<String>, gap: ArtifactGap) -> Self {
        let mut entry = seal::entry(name, &source.into());
        entry.gap = Some(gap);
        Found { entry, bytes: None }
    }

    /// What came of reading a file.
    pub(crate) fn file(name: &str, source: String, read: std::io::Result<file::Content>) -> Self {
        match read {
            Ok(content) => {
                let mut found = Found::bytes(name, source, content.bytes);
                found.entry.changed_ms = content.changed_ms;
                found.entry.partial = content.partial;
                found
            }
            Err(error) => {
                let gap = file::gap(&error, &source);
                Found::gap(name, source, gap)
            }
        }
    }
}

/// A gap, with a remedy where there is one.
pub(crate) fn gap(reason: &str, text: impl Into<String>, remedy: Option<&str>) -> ArtifactGap {
    ArtifactGap { reason: reason.to_owned(), text: text.into(), remedy: remedy.map(str::to_owned) }
}

/// The gap of everything that only a process can tell.
fn no_process() -> ArtifactGap {
    gap("not_present", "no local process is known for this target", Some("name the process: `pid:PID`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_witness_is_forgotten() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/witness");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".rs").map(str::to_owned))
            // The journal is a part of the log.
            .filter(|name| name != "mod" && name != "journal")
            .collect();
        let mut names: Vec<String> = WITNESSES.iter().map(|witness| witness.name.to_owned()).collect();
        files.sort();
        names.sort();
        assert_eq!(files, names, "each file in src/witness must be named in WITNESSES");
    }
}
