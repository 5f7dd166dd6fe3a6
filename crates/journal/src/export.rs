//! The export format of `journalctl --output=export`, cut into entries and fields.
//!
//! Format: <https://systemd.io/JOURNAL_EXPORT_FORMATS>. A field is a line `NAME=value`, or a line `NAME`, the size of the
//! value as 64 bits, the value and a line feed; an empty line ends an entry. Nothing is guessed: behind what does not fit
//! nothing is read, since a message may hold text that looks like entries.

use crate::cursor::Cursor;
use crate::entry::Entry;
use crate::gap::{Fault, Gap, Part, Reason};
use crate::text::{Span, Text};
use std::ops::Range;
use std::sync::Arc;

/// Longest name of a field that journald takes.
const LONGEST_NAME: usize = 64;
/// Fields of one entry beyond which it is taken for damage; journald's own limit is 1024.
const MOST_FIELDS: usize = 1 << 16;
/// Names that begin so are no fields: journalctl puts the entry's place and times there, and journald takes no field of
/// such a name from anyone.
const ADDRESS: &[u8] = b"__";

/// Reads the entries of a text one after the other.
pub(crate) struct Reader {
    text: Arc<Text>,
    at: usize,
}

impl Reader {
    pub(crate) fn new(text: Text) -> Self {
        Self { text: Arc::new(text), at: 0 }
    }

    fn fault(&self, offset: usize, reason: Reason) -> Gap {
        Fault { offset: offset as u64, reason }.at(&self.text.source)
    }

    /// The line at `from` without its end, and where the next one begins.
    fn line(&self, from: usize) -> Result<(Range<usize>, usize), Gap> {
        let rest = self.text.bytes.get(from..).unwrap_or_default();
        match rest.iter().position(|byte| *byte == b'\n') {
            Some(length) => Ok((from..from + length, from + length + 1)),
            None => Err(self.fault(from, Reason::CutOff)),
        }
    }

    /// The field that begins with this line, and where the next one begins.
    fn field(&self, line: Range<usize>, next: usize) -> Result<(Span, usize), Gap> {
        let bytes = &self.text.bytes;
        let equals = bytes[line.clone()].iter().position(|byte| *byte == b'=');
        let name = line.start..equals.map_or(line.end, |equals| line.start + equals);
        if !is_name(&bytes[name.clone()]) {
            return Err(self.fault(line.start, Reason::NotExported("a line that is no field")));
        }
        if equals.is_some() {
            let value = name.end + 1..line.end;
            return Ok((Span { name, value }, next));
        }
        let cut_off = || self.fault(line.start, Reason::CutOff);
        let size = bytes.get(next..).and_then(|rest| rest.first_chunk::<8>()).ok_or_else(cut_off)?;
        let size = usize::try_from(u64::from_le_bytes(*size)).map_err(|_| cut_off())?;
        let start = next + 8;
        let end = start.checked_add(size).ok_or_else(cut_off)?;
        match bytes.get(end) {
            Some(b'\n') => Ok((Span { name, value: start..end }, end + 1)),
            Some(_) => Err(self.fault(line.start, Reason::NotExported("a value that does not end where it should"))),
            None => Err(cut_off()),
        }
    }

    /// The entry at the present place. `None`: the text is at its end.
    fn entry(&mut self) -> Result<Option<Result<Entry, Gap>>, Gap> {
        while self.text.bytes.get(self.at) == Some(&b'\n') {
            self.at += 1;
        }
        if self.at >= self.text.bytes.len() {
            return Ok(None);
        }
        let begin = self.at;
        let mut cursors = Vec::new();
        let mut fields = Vec::new();
        let mut at = begin;
        loop {
            let (line, next) = self.line(at)?;
            if line.is_empty() {
                self.at = next;
                break;
            }
            let (span, next) = self.field(line, next)?;
            at = next;
            let name = self.text.name(&span);
            if name == b"__CURSOR" {
                let value = std::str::from_utf8(self.text.value(&span)?).ok();
                cursors.push(value.and_then(|text| text.parse::<Cursor>().ok()));
            } else if !name.starts_with(ADDRESS) && fields.len() <= MOST_FIELDS {
                fields.push(span);
            }
        }
        Ok(Some(match cursors[..] {
            [Some(cursor)] if fields.len() <= MOST_FIELDS => {
                Ok(Entry::exported(&self.text, begin as u64, cursor, fields))
            }
            _ => Err(self.fault(begin, Reason::Damaged(Part::Entry))),
        }))
    }
}

impl Iterator for Reader {
    type Item = Result<Entry, Gap>;

    fn next(&mut self) -> Option<Self::Item> {
        self.entry().unwrap_or_else(|gap| {
            self.at = self.text.bytes.len();
            Some(Err(gap))
        })
    }
}

/// Whether journald could have stored a field of this name.
fn is_name(name: &[u8]) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && !name[0].is_ascii_digit()
        && name.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
}
