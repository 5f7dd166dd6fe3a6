//! One log entry; its fields are read when they are asked for.

use crate::cursor::Cursor;
use crate::field::Field;
use crate::file::{EntryHead, JournalFile};
use crate::gap::Gap;
use crate::id::Id128;
use crate::text::{Span, Text};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// One log entry.
///
/// Holds the places of its fields, not their content: reading a field may meet damage, hence the [`Gap`] in results.
#[derive(Clone)]
pub struct Entry {
    cursor: Cursor,
    offset: u64,
    content: Content,
}

#[derive(Clone)]
enum Content {
    /// In a journal file: the places of its values.
    Stored { file: Arc<JournalFile>, items: Box<[u64]> },
    /// In a text in the export format.
    Exported { text: Arc<Text>, fields: Box<[Span]> },
}

impl Entry {
    pub(crate) fn stored(file: &Arc<JournalFile>, head: &EntryHead, items: &[u64]) -> Self {
        let content = Content::Stored { file: Arc::clone(file), items: items.into() };
        Self { cursor: place(file, head), offset: head.offset, content }
    }

    pub(crate) fn exported(text: &Arc<Text>, offset: u64, cursor: Cursor, fields: Vec<Span>) -> Self {
        Self { cursor, offset, content: Content::Exported { text: Arc::clone(text), fields: fields.into() } }
    }

    /// Microseconds since 1970 when journald received it.
    pub fn realtime(&self) -> u64 {
        self.cursor.realtime
    }

    /// Microseconds since boot when journald received it.
    pub fn monotonic(&self) -> u64 {
        self.cursor.monotonic
    }

    /// The boot in which it was received.
    pub fn boot_id(&self) -> Id128 {
        self.cursor.boot_id
    }

    /// Sequence number among the files with the same [`FileInfo::seqnum_id`](crate::FileInfo::seqnum_id).
    pub fn seqnum(&self) -> u64 {
        self.cursor.seqnum
    }

    /// Its place, to go on from later.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// The file it was read from, or the name of the text.
    pub fn path(&self) -> &Path {
        match &self.content {
            Content::Stored { file, .. } => file.path(),
            Content::Exported { text, .. } => &text.source,
        }
    }

    /// Where it lies in its file or text, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// All fields in the order in which they are stored. Reads one field a step; one that cannot be read is a gap and
    /// the next step goes on.
    pub fn fields(&self) -> impl Iterator<Item = Result<Field, Gap>> + '_ {
        let count = match &self.content {
            Content::Stored { items, .. } => items.len(),
            Content::Exported { fields, .. } => fields.len(),
        };
        (0..count).map(|index| match &self.content {
            Content::Stored { file, items } => stored_field(file, items[index]),
            Content::Exported { text, fields } => text.field(&fields[index]),
        })
    }

    /// Values of the field `name`, mostly none or one. Fails when one of the entry's values cannot be read and `name`
    /// was not among the others: it may have been that one.
    pub fn all(&self, name: &str) -> Result<Vec<Vec<u8>>, Gap> {
        match &self.content {
            Content::Stored { file, items } => stored_values(file, items, name),
            Content::Exported { text, fields } => {
                let wanted = fields.iter().filter(|span| text.name(span) == name.as_bytes());
                wanted.map(|span| Ok(text.value(span)?.to_vec())).collect()
            }
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

    /// Whether an entry of a text has exactly this `NAME=value`. Those of files are found by the index instead.
    pub(crate) fn has(&self, payload: &[u8]) -> bool {
        match &self.content {
            Content::Stored { .. } => false,
            Content::Exported { text, fields } => fields.iter().any(|span| {
                let value = payload.strip_prefix(text.name(span)).and_then(|rest| rest.strip_prefix(b"="));
                value.is_some_and(|value| text.value(span).is_ok_and(|there| there == value))
            }),
        }
    }
}

fn stored_field(file: &JournalFile, item: u64) -> Result<Field, Gap> {
    let mut buffers = file.buffers();
    let payload = file
        .data(&mut buffers, item)
        .and_then(|data| file.payload(&mut buffers, &data).map(<[u8]>::to_vec))
        .map_err(|fault| fault.at(file.path()))?;
    let name = payload.iter().position(|byte| *byte == b'=').unwrap_or(payload.len());
    Ok(Field { payload, name })
}

fn stored_values(file: &JournalFile, items: &[u64], name: &str) -> Result<Vec<Vec<u8>>, Gap> {
    let prefix = [name.as_bytes(), b"="].concat();
    let mut buffers = file.buffers();
    let mut values = Vec::new();
    let mut failed = None;
    for item in items {
        let found = file
            .data(&mut buffers, *item)
            .and_then(|data| Ok(file.payload_if(&mut buffers, &data, &prefix)?.map(<[u8]>::to_vec)));
        match found {
            Ok(Some(mut payload)) => values.push(payload.split_off(prefix.len())),
            Ok(None) => {}
            Err(fault) => failed = failed.or(Some(fault)),
        }
    }
    match failed {
        Some(fault) if values.is_empty() => Err(fault.at(file.path())),
        _ => Ok(values),
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
            .field("offset", &self.offset)
            .field("cursor", &self.cursor().to_string())
            .finish()
    }
}
