//! An evidence directory: artifacts as plain files, filled by hand or by a script.
//!
//! Every file whose name is asked for is taken; one that is absent is a witness that did not speak. What is in it is
//! redacted as if it had been collected live. If there is a `manifest.json`, the directory is an unpacked capture and
//! is checked against it instead.

use crate::file::{self, Root};
use crate::redact::{Redactor, SecretNames};
use crate::witness::unit;
use crate::{pack, seal};
use ascertain_model::capture::{ArtifactGap, Capture, Manifest, SCHEMA, Start};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// No file in an evidence directory may be longer.
const MAX_FILE: u64 = 256 << 20;

/// Why an evidence directory cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system refused.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A JSON file is broken.
    #[error(
        "{path}:{line}:{column}: not JSON: {why}; mend the file or remove it (an absent file is a witness that did not speak)"
    )]
    Json {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What was expected.
        why: String,
    },
    /// Nothing in it has a name that was looked for.
    #[error("{path} holds no evidence: looked for {}", looked_for.join(", "))]
    Nothing {
        /// The directory.
        path: PathBuf,
        /// The names.
        looked_for: Vec<String>,
    },
    /// It is too much.
    #[error("{path} is too large: at most {limit} bytes are read")]
    TooLarge {
        /// The file or directory.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// It is an unpacked or packed capture, and broken.
    #[error(transparent)]
    Pack(#[from] pack::Error),
}

/// In which of its forms a stored capture lay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// An evidence directory.
    Directory,
    /// A capture file.
    File,
}

/// Reads a capture file or an evidence directory.
pub fn read_any(path: &Path, names: &[&str], secrets: &SecretNames) -> Result<(Stored, Capture), Error> {
    let metadata = std::fs::metadata(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    if metadata.is_dir() {
        Ok((Stored::Directory, read(path, names, secrets)?))
    } else {
        Ok((Stored::File, pack::read(path)?))
    }
}

/// Reads an evidence directory: every regular file directly in it that has one of the names. A `*` in a name stands
/// for any text (`metrics_*.txt`). Secrets are learned from all files first, then taken out of all.
pub fn read(dir: &Path, names: &[&str], secrets: &SecretNames) -> Result<Capture, Error> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    };
    let mut found: Vec<(String, PathBuf, bool)> = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed(dir))? {
        let entry = entry.map_err(failed(dir))?;
        let regular = entry.file_type().map_err(failed(&entry.path()))?.is_file();
        if let Ok(name) = entry.file_name().into_string() {
            found.push((name, entry.path(), regular));
        }
    }
    found.sort();
    if found.iter().any(|(name, _, regular)| name == pack::MANIFEST && *regular) {
        return unpacked(dir);
    }
    found.retain(|(name, ..)| {
        seal::is_name(name) && name != "expected.toml" && names.iter().any(|pattern| matches(pattern, name))
    });
    let mut raw: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut entries = Vec::new();
    let mut total = 0;
    for (name, path, regular) in found {
        let mut entry = seal::entry(&name, &name);
        if regular {
            let content = load(&path, &mut total)?;
            if name.ends_with(".json") {
                check_json(&path, &content)?;
            }
            raw.insert(name, content);
        } else {
            // A link could lead anywhere, also out of the evidence that was handed in.
            entry.gap = Some(ArtifactGap {
                reason: "malformed".into(),
                text: format!("{name} is not a regular file"),
                remedy: Some("put a copy in its place".into()),
            });
        }
        entries.push(entry);
    }
    if raw.is_empty() {
        let looked_for = names.iter().map(|name| (*name).to_owned()).collect();
        return Err(Error::Nothing { path: dir.to_owned(), looked_for });
    }
    let mut redactor = Redactor::new(secrets.clone());
    for (name, bytes) in &raw {
        redactor.learn_artifact(name, bytes);
    }
    let start = raw.get("proc_status.txt").and_then(|status| pid_of(status)).map(|pid| Start {
        boot: String::new(),
        pid,
        ticks: 0,
        since_ms: None,
    });
    let target = raw.get("meta.json").and_then(|meta| name_in(meta)).unwrap_or_else(|| name_of(dir));
    let manifest = Manifest {
        schema: SCHEMA.to_owned(),
        tool: concat!("ascertain ", env!("CARGO_PKG_VERSION")).to_owned(),
        target: redactor.text(&target),
        host: None,
        start,
        taken: None,
        taken_ms: None,
        artifacts: entries,
        remarks: Vec::new(),
    };
    let artifacts = raw
        .into_iter()
        .map(|(name, bytes)| {
            let bytes = match name.as_str() {
                unit::FILES | unit::MANAGER => redactor.values(&name, &bytes),
                _ => redactor.bytes(&name, &bytes),
            };
            (name, bytes)
        })
        .collect();
    let mut capture = Capture { manifest, artifacts };
    seal::seal(&mut capture);
    Ok(capture)
}

/// A directory with a manifest: what `tar xzf` makes of a capture file.
fn unpacked(dir: &Path) -> Result<Capture, Error> {
    let path = dir.join(pack::MANIFEST);
    let mut total = 0;
    let manifest = pack::parse_manifest(&load(&path, &mut total)?, dir)?;
    let mut artifacts = BTreeMap::new();
    for entry in manifest.artifacts.iter().filter(|entry| entry.bytes.is_some()) {
        if !seal::is_name(&entry.name) {
            let why = "cannot be the name of an artifact";
            return Err(pack::Error::Unexpected { path: dir.to_owned(), name: entry.name.clone(), why }.into());
        }
        let path = dir.join(&entry.name);
        let there = std::fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file());
        if there {
            artifacts.insert(entry.name.clone(), load(&path, &mut total)?);
        }
    }
    pack::check(&manifest, &artifacts, dir)?;
    Ok(Capture { manifest, artifacts })
}

fn load(path: &Path, total: &mut u64) -> Result<Vec<u8>, Error> {
    let content =
        file::read_head(path, &Root::ours(), MAX_FILE).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    if content.partial.is_some() {
        return Err(Error::TooLarge { path: path.to_owned(), limit: MAX_FILE });
    }
    *total += content.bytes.len() as u64;
    if *total > pack::MAX_UNPACKED {
        return Err(Error::TooLarge { path: path.to_owned(), limit: pack::MAX_UNPACKED });
    }
    Ok(content.bytes)
}

fn check_json(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    // The parser passes over text that is not UTF-8 where it need not look at it.
    if let Err(error) = std::str::from_utf8(bytes) {
        let before = &bytes[..error.valid_up_to()];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let column = 1 + before.len() - line_start;
        return Err(Error::Json { path: path.to_owned(), line, column, why: "invalid UTF-8".to_owned() });
    }
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).map(|_| ()).map_err(|error| {
        let text = error.to_string();
        // The position has its own place in the message.
        let why = text.rsplit_once(" at line ").map_or(text.as_str(), |(why, _)| why).to_owned();
        Error::Json { path: path.to_owned(), line: error.line().max(1), column: error.column().max(1), why }
    })
}

/// Whether a name fits a pattern in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(pieces.next().unwrap_or("")) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn pid_of(status: &[u8]) -> Option<u32> {
    let status = std::str::from_utf8(status).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
}

fn name_in(meta: &[u8]) -> Option<String> {
    let meta: serde_json::Value = serde_json::from_slice(meta).ok()?;
    meta.get("name")?.as_str().map(str::to_owned)
}

fn name_of(dir: &Path) -> String {
    let name = dir.canonicalize().ok().and_then(|dir| dir.file_name().map(|name| name.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| dir.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, fits) in [
            ("log.txt", "log.txt", true),
            ("log.txt", "log.txt2", false),
            ("metrics_*.txt", "metrics_before.txt", true),
            ("metrics_*.txt", "metrics_.json", false),
            ("*.json", "props.json", true),
            ("*", "x", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
