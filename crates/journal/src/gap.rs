//! What could not be read, and why: data for the caller, never a failed read of everything else.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Something in one place of the journal that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The file or directory, or the name of the text.
    pub path: PathBuf,
    /// Byte offset in the file; `None` when the file as a whole is meant.
    pub offset: Option<u64>,
    /// How often the same reason was met in this file; `offset` is the first place.
    pub times: u64,
    /// Why.
    pub reason: Reason,
}

/// Why a file, an entry or a field could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The process may not open it.
    #[error("not permitted")]
    NotPermitted,
    /// There is nothing by this name.
    #[error("not there")]
    NotFound,
    /// The operating system refused for another reason.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// The first eight bytes are not those of a journal file.
    #[error("is not a journal file (no LPKSHHRH at its start)")]
    NotAJournal,
    /// The header sets incompatible flags that no known systemd (up to 257) writes.
    #[error("uses unknown format features (incompatible flags {0:#x})")]
    UnknownFeatures(u32),
    /// The header contradicts itself.
    #[error("has a damaged header ({0})")]
    DamagedHeader(&'static str),
    /// The file is shorter than its header says. What is there was read.
    #[error("is truncated: its header speaks of {promised} bytes, {present} are there")]
    Truncated {
        /// Bytes that the header says are in use.
        promised: u64,
        /// Bytes that are there.
        present: u64,
    },
    /// An object is not what the place that refers to it says, or is not linked as the format demands.
    #[error("holds a damaged {0}")]
    Damaged(Part),
    /// A compressed value does not decompress.
    #[error("holds a value that is not valid {0}")]
    NotDecompressed(Compression),
    /// A value is larger than the limit of [`Limits`](crate::Limits).
    #[error("holds a value of {bytes} bytes, over the limit of {limit}")]
    TooLarge {
        /// Size of the value, in bytes, as far as known.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A text is not in the export format from here on. Nothing behind it is read: where one entry ends and the next
    /// begins is not known any more, and a message could pass for an entry.
    #[error("is not in journalctl's export format ({0})")]
    NotExported(&'static str),
    /// A text ends in the middle of an entry, or was not taken to its end.
    #[error("was cut off")]
    CutOff,
    /// More files than the limit of [`Limits`](crate::Limits); the remaining ones were not opened.
    #[error("holds more journal files than the limit of {0}")]
    TooManyFiles(usize),
}

/// The kinds of objects in a journal file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// One log entry: time stamps and references to its fields.
    Entry,
    /// One `FIELD=value`, shared by all entries that have it.
    Data,
    /// The name of a field.
    Field,
    /// A list of entries: of the whole file, or of those with one value. All after the damage is lost to this index.
    EntryArray,
    /// A chain of the hash tables that lead from a value to its entries.
    HashChain,
    /// An entry that a value's list refers to does not have the value.
    Index,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Entry => "entry",
            Part::Data => "value",
            Part::Field => "field name",
            Part::EntryArray => "list of entries",
            Part::HashChain => "hash chain",
            Part::Index => "index (an entry listed under a value that it does not have)",
        })
    }
}

/// How a value is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// An `.xz` stream, systemd up to 246 when built so.
    Xz,
    /// An LZ4 block behind its size as 64 bits, systemd 215 to 246 as a default.
    Lz4,
    /// A Zstandard frame, the default since systemd 246.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Xz => "XZ",
            Compression::Lz4 => "LZ4",
            Compression::Zstd => "ZSTD",
        })
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path.display(), self.reason)?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        if self.times > 1 {
            write!(f, " and in {} more places", self.times - 1)?;
        }
        Ok(())
    }
}

impl std::error::Error for Gap {}

/// A reason and its place inside one file: what the readers of objects return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) offset: u64,
    pub(crate) reason: Reason,
}

impl Fault {
    pub(crate) fn damaged(part: Part, offset: u64) -> Self {
        Self { offset, reason: Reason::Damaged(part) }
    }

    pub(crate) fn at(self, path: &Path) -> Gap {
        Gap { path: path.to_owned(), offset: Some(self.offset), times: 1, reason: self.reason }
    }
}

impl Gap {
    pub(crate) fn whole(path: &Path, reason: Reason) -> Self {
        Self { path: path.to_owned(), offset: None, times: 1, reason }
    }

    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        Self::whole(path, Reason::from(error))
    }
}

impl From<&io::Error> for Reason {
    fn from(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Reason::NotPermitted,
            io::ErrorKind::NotFound => Reason::NotFound,
            _ => Reason::Unreadable(error.to_string()),
        }
    }
}

/// Gaps met on the way, equal reasons of one file counted together so that a ruined file costs one line.
#[derive(Debug, Default, Clone)]
pub(crate) struct Gaps(Vec<Gap>);

impl Gaps {
    pub(crate) fn add(&mut self, gap: Gap) {
        let same = |known: &&mut Gap| known.path == gap.path && known.reason == gap.reason;
        match self.0.iter_mut().find(same) {
            Some(known) => {
                if known.offset != gap.offset {
                    known.times = known.times.saturating_add(gap.times);
                    known.offset = known.offset.min(gap.offset);
                }
            }
            None => self.0.push(gap),
        }
    }

    pub(crate) fn extend(&mut self, gaps: impl IntoIterator<Item = Gap>) {
        gaps.into_iter().for_each(|gap| self.add(gap));
    }

    pub(crate) fn as_slice(&self) -> &[Gap] {
        &self.0
    }

    pub(crate) fn into_vec(self) -> Vec<Gap> {
        self.0
    }
}
