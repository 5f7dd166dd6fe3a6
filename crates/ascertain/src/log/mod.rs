//! The log of exactly one start, from the journal, from a capture or from the file a process writes to.
//!
//! Here it is found and made fit to be shown; [`render::log`](crate::render::log) draws it.

pub mod files;
pub mod grep;
pub mod journal;
pub mod lines;
pub mod starts;

use ascertain_capture::Redactor;
use ascertain_engines::Engine;
use grep::Pattern;
use lines::Source;
use serde::Serialize;

/// Which lines are asked for.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Only those it matches.
    pub pattern: Option<Pattern>,
    /// Only so many, the newest.
    pub newest: Option<usize>,
}

/// Which start a log is of.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Heading {
    /// What the log was taken from, in words.
    pub source: String,
    /// The unit, where it is one.
    pub unit: Option<String>,
    /// The `INVOCATION_ID` of the start.
    pub invocation: Option<String>,
    /// 0 is the newest start of the unit, -1 the one before.
    pub number: Option<i64>,
    /// Starts of the unit that the journal knows.
    pub starts: Option<usize>,
    /// The engine that wrote it.
    pub engine: Option<&'static str>,
}

/// One line of a log as it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Raw {
    /// Microseconds since 1970.
    pub time: Option<u64>,
    /// Its place in the journal.
    pub cursor: Option<String>,
    /// Who wrote it.
    pub identifier: Option<String>,
    /// The process that wrote it.
    pub pid: Option<u32>,
    /// 0 (emergency) to 7 (debug).
    pub priority: Option<u8>,
    /// Whether a process of the start wrote it, not the manager.
    pub own: bool,
    /// What it says: any bytes.
    pub message: Vec<u8>,
}

/// The log of one start, ready to be read once.
pub struct Slice {
    /// Which start.
    pub heading: Heading,
    /// The engine that wrote it, if it is one that ascertain knows.
    pub engine: Option<&'static dyn Engine>,
    /// What takes the secrets out.
    pub redactor: Redactor,
    /// The lines.
    pub source: Source,
    /// Why it is not the whole log of this start, or not known to be.
    pub flaws: Vec<String>,
}
