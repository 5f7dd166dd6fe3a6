//! The capture as one file: a gzip-compressed tar with `manifest.json` first and the artifacts, sorted, after it.
//!
//! The same capture always gives the same bytes. What is read back is checked against the manifest byte for byte;
//! nothing is ever unpacked to disk, and a file made to harm runs into limits.

use crate::seal;
use ascertain_model::capture::{Capture, Manifest, SCHEMA};
use flate2::Compression;
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// Name of the manifest in the archive.
pub const MANIFEST: &str = "manifest.json";

/// No capture unpacks to more bytes.
pub const MAX_UNPACKED: u64 = 1 << 30;

/// No capture holds more artifacts.
pub const MAX_ARTIFACTS: usize = 4096;

const MAX_MANIFEST: u64 = 16 << 20;

/// Why a capture file cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system refused.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// `open`, `write`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is something else.
    #[error("{path} is not a capture: expected a gzip-compressed tar made by `ascertain capture`")]
    NotGzip {
        /// The file.
        path: PathBuf,
    },
    /// The end is missing.
    #[error("{path} is truncated: its end is missing; copy it again")]
    Truncated {
        /// The file.
        path: PathBuf,
    },
    /// The compressed data or the archive is damaged.
    #[error("{path} is damaged: {why}; copy it again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It is an archive of something else.
    #[error("{path} is not a capture: expected {MANIFEST} as the first file in it, found {found}")]
    NoManifest {
        /// The file.
        path: PathBuf,
        /// What is first.
        found: String,
    },
    /// The manifest is not JSON, or not of the shape.
    #[error("{MANIFEST} in {path} cannot be read: {why}")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It was made by a newer release, or is something else.
    #[error(
        "{path} has the schema {found:?}, this release reads {SCHEMA:?}: use the release that made it or a newer one"
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// What the manifest names.
        found: String,
    },
    /// The bytes are not those the manifest speaks of.
    #[error("{name} in {path} was changed: expected {expected}, found {found}")]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// The artifact.
        name: String,
        /// What the manifest says.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The manifest speaks of an artifact that is not there.
    #[error("{name} is missing in {path}: expected {expected}")]
    Missing {
        /// The file.
        path: PathBuf,
        /// The artifact.
        name: String,
        /// What the manifest says.
        expected: String,
    },
    /// There is more in it than the manifest says, or under a name that no artifact has.
    #[error("{path} holds {name:?}, which {why}")]
    Unexpected {
        /// The file.
        path: PathBuf,
        /// What it is called.
        name: String,
        /// Why it does not belong there.
        why: &'static str,
    },
    /// It would unpack to more than is allowed.
    #[error("{path} unpacks to more than {limit}: it was not made by `ascertain capture`")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit, with its unit.
        limit: String,
    },
}

/// Writes a capture so that the file is there whole or not at all, readable by its owner only. The capture must be
/// [sealed](seal::seal).
pub fn write(capture: &Capture, path: &Path) -> Result<(), Error> {
    let failed = |what| move |source| Error::Io { what, path: path.to_owned(), source };
    let archive = encode(capture, path)?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".ascertain-")
        .suffix(".partial")
        .tempfile_in(directory)
        .map_err(failed("create a file beside"))?;
    file.write_all(&archive).map_err(failed("write"))?;
    file.as_file().sync_all().map_err(failed("write"))?;
    file.persist(path).map_err(|error| failed("replace")(error.error))?;
    // The new name must survive a crash too. Not every file system can do that; the file itself is safe.
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
    Ok(())
}

/// The bytes of a capture file; `path` is only named in errors. The capture must be [sealed](seal::seal).
pub fn encode(capture: &Capture, path: &Path) -> Result<Vec<u8>, Error> {
    let failed = |source| Error::Io { what: "pack", path: path.to_owned(), source };
    check(&capture.manifest, &capture.artifacts, path)?;
    let manifest = serde_json::to_vec_pretty(&capture.manifest).map_err(|error| failed(error.into()))?;
    let gzip = flate2::GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::new(6));
    let mut archive = tar::Builder::new(gzip);
    let members = capture.artifacts.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    for (name, bytes) in std::iter::once((MANIFEST, manifest.as_slice())).chain(members) {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(0);
        archive.append_data(&mut header, name, bytes).map_err(failed)?;
    }
    archive.into_inner().and_then(flate2::write::GzEncoder::finish).map_err(failed)
}

/// Reads a capture and checks every byte of it.
pub fn read(path: &Path) -> Result<Capture, Error> {
    let opened = crate::file::open(path, &crate::file::Root::ours());
    let (file, _) = opened.map_err(|source| Error::Io { what: "open", path: path.to_owned(), source })?;
    decode(BufReader::new(file), path)
}

/// Reads a capture from anything; `path` is only named in errors.
pub fn decode(mut file: impl Read, path: &Path) -> Result<Capture, Error> {
    let mut magic = [0; 2];
    let mut have = 0;
    while have < 2 {
        match file.read(&mut magic[have..]) {
            Ok(0) => break,
            Ok(more) => have += more,
            Err(source) => return Err(Error::Io { what: "read", path: path.to_owned(), source }),
        }
    }
    if have < 2 || magic != [0x1f, 0x8b] {
        return Err(Error::NotGzip { path: path.to_owned() });
    }
    let broken = |error: io::Error| broken(error, path);
    let whole = io::Cursor::new(magic).chain(file);
    let mut archive = tar::Archive::new(GzDecoder::new(whole).take(MAX_UNPACKED + (64 << 20)));
    let mut manifest: Option<Manifest> = None;
    let mut artifacts = BTreeMap::new();
    let mut total = 0u64;
    // Raw: no header may stand for anything but the file that follows it.
    for member in archive.entries().map_err(broken)?.raw(true) {
        let mut member = member.map_err(broken)?;
        let name = String::from_utf8_lossy(&member.path_bytes()).into_owned();
        let size = member.header().entry_size().map_err(broken)?;
        let unexpected = |why| Error::Unexpected { path: path.to_owned(), name: name.clone(), why };
        if member.header().entry_type() != tar::EntryType::Regular {
            return Err(unexpected("is not a plain file"));
        }
        let Some(manifest) = &manifest else {
            if name != MANIFEST {
                return Err(Error::NoManifest { path: path.to_owned(), found: name });
            }
            if size > MAX_MANIFEST {
                return Err(Error::TooLarge {
                    path: path.to_owned(),
                    limit: format!("{MAX_MANIFEST} bytes of manifest"),
                });
            }
            let mut bytes = Vec::new();
            member.read_to_end(&mut bytes).map_err(broken)?;
            manifest = Some(parse_manifest(&bytes, path)?);
            continue;
        };
        if !seal::is_name(&name) {
            return Err(unexpected("cannot be the name of an artifact"));
        }
        let Some(entry) = manifest.artifacts.iter().find(|entry| entry.name == name && entry.bytes.is_some()) else {
            return Err(unexpected("its manifest does not know"));
        };
        if entry.bytes != Some(size) {
            let expected = format!("{} bytes", entry.bytes.unwrap_or_default());
            return Err(Error::Mismatch { path: path.to_owned(), name, expected, found: format!("{size} bytes") });
        }
        total = total.saturating_add(size);
        if total > MAX_UNPACKED {
            return Err(Error::TooLarge { path: path.to_owned(), limit: format!("{MAX_UNPACKED} bytes") });
        }
        if artifacts.len() >= MAX_ARTIFACTS {
            return Err(Error::TooLarge { path: path.to_owned(), limit: format!("{MAX_ARTIFACTS} artifacts") });
        }
        // Grows with what is really there, not with what the header says.
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).map_err(broken)?;
        if artifacts.insert(name.clone(), bytes).is_some() {
            return Err(unexpected("is in it twice"));
        }
    }
    // The checksum of the compressed stream stands behind the end of the archive.
    let mut rest = archive.into_inner();
    io::copy(&mut rest, &mut io::sink()).map_err(broken)?;
    let manifest = manifest.ok_or_else(|| Error::NoManifest { path: path.to_owned(), found: "nothing".into() })?;
    check(&manifest, &artifacts, path)?;
    Ok(Capture { manifest, artifacts })
}

pub(crate) fn parse_manifest(bytes: &[u8], path: &Path) -> Result<Manifest, Error> {
    let value: serde_json::Value = serde_json::from_slice(bytes)
        .map_err(|error| Error::Manifest { path: path.to_owned(), why: error.to_string() })?;
    let found = value.get("schema").and_then(serde_json::Value::as_str).unwrap_or("none");
    if found != SCHEMA {
        return Err(Error::Schema { path: path.to_owned(), found: found.to_owned() });
    }
    serde_json::from_value(value).map_err(|error| Error::Manifest { path: path.to_owned(), why: error.to_string() })
}

/// Whether manifest and bytes speak of the same things.
pub(crate) fn check(manifest: &Manifest, artifacts: &BTreeMap<String, Vec<u8>>, path: &Path) -> Result<(), Error> {
    let path = || path.to_owned();
    if manifest.schema != SCHEMA {
        return Err(Error::Schema { path: path(), found: manifest.schema.clone() });
    }
    if artifacts.len() > MAX_ARTIFACTS || manifest.artifacts.len() > 2 * MAX_ARTIFACTS {
        return Err(Error::TooLarge { path: path(), limit: format!("{MAX_ARTIFACTS} artifacts") });
    }
    let mut known = std::collections::BTreeSet::new();
    for entry in &manifest.artifacts {
        let name = entry.name.clone();
        let unexpected = |why| Error::Unexpected { path: path(), name: entry.name.clone(), why };
        if !known.insert(entry.name.as_str()) {
            return Err(unexpected("stands twice in its manifest"));
        }
        let Some(length) = entry.bytes else { continue };
        if !seal::is_name(&name) || name == MANIFEST {
            return Err(unexpected("cannot be the name of an artifact"));
        }
        let hash = entry.sha256.clone().unwrap_or_default();
        let Some(bytes) = artifacts.get(&name) else {
            return Err(Error::Missing { path: path(), name, expected: format!("{length} bytes") });
        };
        if bytes.len() as u64 != length {
            let (expected, found) = (format!("{length} bytes"), format!("{} bytes", bytes.len()));
            return Err(Error::Mismatch { path: path(), name, expected, found });
        }
        let found = seal::sha256(bytes);
        if found != hash {
            let (expected, found) = (format!("sha256 {hash}"), format!("sha256 {found}"));
            return Err(Error::Mismatch { path: path(), name, expected, found });
        }
    }
    for name in artifacts.keys() {
        if manifest.artifacts.iter().all(|entry| entry.name != *name || entry.bytes.is_none()) {
            let why = "its manifest does not know";
            return Err(Error::Unexpected { path: path(), name: name.clone(), why });
        }
    }
    Ok(())
}

fn broken(error: io::Error, path: &Path) -> Error {
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::Truncated { path },
        _ if error.to_string().contains("unexpected EOF") => Error::Truncated { path },
        _ => Error::Damaged { path, why: error.to_string() },
    }
}
