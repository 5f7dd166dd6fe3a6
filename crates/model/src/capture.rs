//! The capture: the raw bytes the witnesses got.
//!
//! A capture is a set of named artifacts (`log.txt`, `props.json`, …) and a manifest that says what they are. It has
//! one layout, whether it lies in a directory that somebody filled by hand (an *evidence directory*), in one packed
//! file, or only in memory. `docs/evidence-directory.md` lists the names.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Schema name of the manifest.
pub const SCHEMA: &str = "ascertain.capture/1";

/// What stands in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// What a capture is of, and how each of its artifacts was got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Version of the tool that made it.
    pub tool: String,
    /// What was captured, as the user named it (`pid:1234`), safe to show.
    pub target: String,
    /// Host name, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The start that is captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// When the capture began, RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
    /// The same in milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_ms: Option<u64>,
    /// Every artifact that was wanted, whether it was got or not.
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    /// Things the collector saw that no artifact tells (another process owns the port).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
}

/// Exactly one start of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Kernel boot id.
    pub boot: String,
    /// PID.
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`: clock ticks after boot.
    pub ticks: u64,
    /// Milliseconds since the epoch at which the process started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
}

/// One wanted artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Artifact {
    /// Name in the capture.
    pub name: String,
    /// Where it came from: a path, a URL, `/proc/PID/…`. Safe to show.
    pub source: String,
    /// Length in bytes, as stored (after redaction). `None`: it was not got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// SHA-256 of the stored bytes, hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Milliseconds after the beginning of the capture at which it was complete.
    #[serde(default)]
    pub at_ms: u64,
    /// When a file was last written or put in its place (the later of the two), milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_ms: Option<u64>,
    /// The whole was not taken: which part was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
    /// Why it was not got, and what would let us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<ArtifactGap>,
}

/// Why an artifact was not got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArtifactGap {
    /// `not_permitted`, `not_present`, `timed_out`, `too_large`, `refused`, `malformed`, `not_asked`.
    pub reason: String,
    /// One line.
    pub text: String,
    /// A command or change that would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Something the collector saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Remark {
    /// A stable name: `identity`, `executable_replaced`.
    pub kind: String,
    /// One line.
    pub text: String,
}

/// Raw bytes and what they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Capture {
    /// What it is of.
    pub manifest: Manifest,
    /// The bytes, by artifact name.
    pub artifacts: BTreeMap<String, Vec<u8>>,
}

impl Capture {
    /// The bytes of one artifact.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.artifacts.get(name).map(Vec::as_slice)
    }

    /// The first of several names that is there, with its bytes.
    pub fn first<'a>(&'a self, names: &[&'a str]) -> Option<(&'a str, &'a [u8])> {
        names.iter().find_map(|name| self.bytes(name).map(|bytes| (*name, bytes)))
    }

    /// What the manifest says about one artifact.
    pub fn entry(&self, name: &str) -> Option<&Artifact> {
        self.manifest.artifacts.iter().find(|artifact| artifact.name == name)
    }

    /// The gap that stands in for one artifact.
    pub fn gap(&self, name: &str) -> Option<&ArtifactGap> {
        self.entry(name).and_then(|artifact| artifact.gap.as_ref())
    }
}
