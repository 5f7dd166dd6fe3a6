//! Names, lengths and hashes: what ties a manifest to the bytes it speaks of.

use ascertain_model::capture::{Artifact, Capture};
use sha2::{Digest, Sha256};

/// SHA-256 in hex.
pub fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Whether a name can be the name of an artifact: letters, digits, `.`, `_` and `-`, at most 100, no leading dot.
pub fn is_name(name: &str) -> bool {
    (1..=100).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// Brings the manifest in line with the bytes: recomputes lengths and hashes, adds an entry for an artifact that has
/// none, takes length and hash from an entry that has no bytes, and sorts the entries by name.
pub fn seal(capture: &mut Capture) {
    for entry in &mut capture.manifest.artifacts {
        let bytes = capture.artifacts.get(&entry.name);
        entry.bytes = bytes.map(|bytes| bytes.len() as u64);
        entry.sha256 = bytes.map(|bytes| sha256(bytes));
    }
    for (name, bytes) in &capture.artifacts {
        if !capture.manifest.artifacts.iter().any(|entry| entry.name == *name) {
            capture.manifest.artifacts.push(Artifact {
                bytes: Some(bytes.len() as u64),
                sha256: Some(sha256(bytes)),
                ..entry(name, "")
            });
        }
    }
    capture.manifest.artifacts.sort_by(|one, other| one.name.cmp(&other.name));
}

/// An entry with a name and a source and nothing else.
pub(crate) fn entry(name: &str, source: &str) -> Artifact {
    Artifact {
        name: name.to_owned(),
        source: source.to_owned(),
        bytes: None,
        sha256: None,
        at_ms: 0,
        changed_ms: None,
        partial: None,
        gap: None,
    }
}
