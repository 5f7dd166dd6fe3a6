//! One log entry; its fields are read when they are asked for.

use crate::cursor::Cursor;
use crate::file::{EntryHead, JournalFile};
use crate::gap::Gap;
use crate::id::Id128;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// One log entry.
///
/// Holds the places of its fields, not their content: reading a field may meet damage, hence the [`Gap`] in results.
#[derive(Clone)]
pub struct Entry {
    pub(crate) file: Arc<JournalFile>,
    pub(crate) head: EntryHead,
    pub(crate) items: Box<[u64]>,
}

/// One field of an entry: a name and a value of any bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    payload: Vec<u8>,
    name: usize,
}

impl Field {
    /// Its name, e.g. `_SYSTEMD_UNIT`. Names that start with `_` were set by journald and cannot be forged by the
    /// sender.
    pub fn name(&self) -> &[u8] {
        &self.payload[..self.name]
    }

    /// Its value.
    pub fn value(&self) -> &[u8] {
        self.payload.get(self.name + 1..).unwrap_or_default()
    }
}

impl Entry {
    /// Microseconds since 1970 when journald received it.
    pub fn realtime(&self) -> u64 {
        self.head.realtime
    }

    /// Microseconds since boot when journald received it.
    pub fn monotonic(&self) -> u64 {
        self.head.monotonic
    }

    /// The boot in which it was received.
    pub fn boot_id(&self) -> Id128 {
        self.head.boot_id
    }

    /// Sequence number among the files with the same [`FileInfo::seqnum_id`](crate::FileInfo::seqnum_id).
    pub fn seqnum(&self) -> u64 {
        self.head.seqnum
    }

    /// Its place, to go on from later.
    pub fn cursor(&self) -> Cursor {
        place(&self.file, &self.head)
    }

    /// The file it was read from.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Where it lies in its file, in bytes.
    pub fn offset(&self) -> u64 {
        self.head.offset
    }

    /// All fields in the order in which they are stored. Reads one field a step; one that cannot be read is a gap and
    /// the next step goes on.
    pub fn fields(&self) -> impl Iterator<Item = Result<Field, Gap>> + '_ {
        self.items.iter().map(|item| {
            let mut buffers = self.file.buffers();
            let payload = self
                .file
                .data(&mut buffers, *item)
                .and_then(|data| self.file.payload(&mut buffers, &data).map(<[u8]>::to_vec))
                .map_err(|fault| fault.at(self.file.path()))?;
            let name = payload.iter().position(|byte| *byte == b'=').unwrap_or(payload.len());
            Ok(Field { payload, name })
        })
    }

    /// Values of the field `name`, mostly none or one. Fails when one of the entry's values cannot be read and `name`
    /// was not among the others: it may have been that one.
    pub fn all(&self, name: &str) -> Result<Vec<Vec<u8>>, Gap> {
        let prefix = [name.as_bytes(), b"="].concat();
        let mut buffers = self.file.buffers();
        let mut values = Vec::new();
        let mut failed = None;
        for item in &self.items {
            let found = self
                .file
                .data(&mut buffers, *item)
                .and_then(|data| Ok(self.file.payload_if(&mut buffers, &data, &prefix)?.map(<[u8]>::to_vec)));
            match found {
                Ok(Some(mut payload)) => values.push(payload.split_off(prefix.len())),
                Ok(None) => {}
                Err(fault) => failed = failed.or(Some(fault)),
            }
        }
        match failed {
            Some(fault) if values.is_empty() => Err(fault.at(self.file.path())),
            _ => Ok(values),
        }
    }

    /// Value of the field `name`: the first if there are several, `None` if there is none.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>, Gap> {
        Ok(self.all(name)?.into_iter().next())
    }

    /// Its text: the field `MESSAGE`, empty if it has none. Any bytes, several lines, terminal escapes included.
    pub fn message(&self) -> Result<Vec<u8>, Gap> {
        Ok(self.get("MESSAGE")?.unwrap_or_default())
    }
}

pub(crate) fn place(file: &JournalFile, head: &EntryHead) -> Cursor {
    Cursor {
        seqnum_id: file.info.seqnum_id,
        seqnum: head.seqnum,
        boot_id: head.boot_id,
        monotonic: head.monotonic,
        realtime: head.realtime,
        xor_hash: head.xor_hash,
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("path", &self.path())
            .field("offset", &self.head.offset)
            .field("cursor", &self.cursor().to_string())
            .finish()
    }
}
