//! Unit files, without losing a byte.
//!
//! * A line that begins with `#` or `;` is a comment, also between the lines of a continued value, and does not end the
//!   continuation. An empty line ends it.
//! * A line is continued when it ends in an odd number of backslashes; the last becomes a blank. A blank after the
//!   backslash undoes that, and what follows is a line of its own.
//! * Lines end in `\n`, `\r\n`, `\r` or NUL.
//! * What stands before the first section header is ignored: a drop-in without `[Service]` does nothing.
//! * A header without `]`, a line that is not UTF-8 (outside of comments) and a line that is too long end the reading of
//!   that file; in a drop-in what was read before counts.

use crate::{Kind, Problem, Read, Span};
use std::ops::Range;
use std::sync::Arc;

/// The longest line systemd reads (1 MiB, `LONG_LINE_MAX`).
pub const LONGEST_LINE: usize = 1024 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// What one line of the file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Nothing, or blanks.
    Blank,
    /// A comment.
    Comment,
    /// The header of a section.
    Header(String),
    /// A line, or one of the lines, of this assignment.
    Assignment(usize),
    /// Something that systemd ignores.
    Ignored,
    /// After the place where systemd stopped reading.
    Unread,
}

/// One line with its terminator. The lines of a file, one after the other, are the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its bytes, terminator included.
    pub range: Range<usize>,
    /// What it is.
    pub what: What,
}

/// A part of a value that is one run of bytes in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    value: usize,
    file: usize,
    length: usize,
    /// Lines after the first.
    line: usize,
}

/// `KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The section it is in; `None` before the first header, where systemd ignores it.
    pub section: Option<String>,
    /// The key.
    pub key: String,
    /// The value, continuations joined, blanks around it removed.
    pub value: String,
    /// From the key to the end of the value.
    pub span: Span,
    /// The bytes of the value.
    pub value_range: Range<usize>,
    pieces: Vec<Piece>,
}

impl Assignment {
    /// An empty value takes back what came before.
    pub fn is_reset(&self) -> bool {
        self.value.is_empty()
    }

    /// On which line of the assignment this byte of the value stands, from 0. Comments between its lines count.
    pub fn line_of(&self, offset: usize) -> usize {
        let next = self.pieces.partition_point(|piece| piece.value <= offset);
        next.checked_sub(1).and_then(|index| self.pieces.get(index)).map_or(0, |piece| piece.line)
    }

    /// Where these bytes of the value are in the file.
    pub fn locate(&self, range: Range<usize>) -> Range<usize> {
        let at = |offset: usize| {
            let next = self.pieces.partition_point(|piece| piece.value <= offset);
            match next.checked_sub(1).and_then(|index| self.pieces.get(index)) {
                Some(piece) => piece.file + (offset - piece.value).min(piece.length),
                None => self.value_range.start,
            }
        };
        if range.is_empty() {
            let start = at(range.start);
            return start..start;
        }
        at(range.start)..at(range.end - 1) + 1
    }
}

/// One unit file or drop-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path.
    pub path: Arc<str>,
    /// Its lines.
    pub lines: Vec<Line>,
    /// What it assigns, in order.
    pub assignments: Vec<Assignment>,
    /// Systemd gave up before the end of the file; what was read before counts in a drop-in, nothing does in the unit
    /// file itself.
    pub broken: bool,
    bytes: Vec<u8>,
}

impl File {
    /// The text, byte for byte as it was given.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The text with these bytes replaced: everything else, comments and formatting, stays. `None` where the range is
    /// not within the file.
    pub fn replaced(&self, range: Range<usize>, by: &str) -> Option<Vec<u8>> {
        let (head, tail) = (self.bytes.get(..range.start)?, self.bytes.get(range.end..)?);
        (range.start <= range.end).then(|| [head, by.as_bytes(), tail].concat())
    }

    /// A span of this file.
    pub fn span(&self, range: Range<usize>) -> Span {
        let line = |at: usize| {
            let next = self.lines.partition_point(|line| line.range.start <= at);
            next.max(1)
        };
        Span {
            file: Arc::clone(&self.path),
            first: line(range.start),
            last: line(range.end.saturating_sub(1).max(range.start)),
            start: range.start,
            end: range.end,
        }
    }
}

fn blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The end of the content and the end of the terminator of the line that begins at `from`.
fn line_end(bytes: &[u8], from: usize) -> (usize, usize) {
    let Some(length) = bytes[from..].iter().position(|byte| matches!(byte, b'\n' | b'\r' | 0)) else {
        return (bytes.len(), bytes.len());
    };
    let content = from + length;
    let mut end = content;
    let mut seen: Vec<u8> = Vec::with_capacity(3);
    // Each kind of terminator counts once, in any order; NUL always ends the run.
    while let Some(byte @ (b'\n' | b'\r' | 0)) = bytes.get(end) {
        if seen.contains(byte) || seen.last() == Some(&0) {
            break;
        }
        seen.push(*byte);
        end += 1;
    }
    (content, end)
}

struct Pending {
    text: Vec<u8>,
    pieces: Vec<Piece>,
    first_line: usize,
}

struct Reader {
    path: Arc<str>,
    lines: Vec<Line>,
    assignments: Vec<Assignment>,
    problems: Vec<Problem>,
    section: Option<String>,
    ended: bool,
}

/// Reads a unit file or drop-in.
pub fn parse(path: &str, bytes: &[u8]) -> Read<File> {
    let mut reader = Reader {
        path: Arc::from(path),
        lines: Vec::new(),
        assignments: Vec::new(),
        problems: Vec::new(),
        section: None,
        ended: false,
    };
    let mut at = 0;
    let mut pending: Option<Pending> = None;
    let mut bom_seen = false;
    while at < bytes.len() {
        let (content_end, end) = line_end(bytes, at);
        let index = reader.lines.len();
        let mut start = at;
        at = end;
        reader.lines.push(Line { range: start..end, what: What::Blank });
        if reader.ended {
            reader.lines[index].what = What::Unread;
            continue;
        }
        if bytes[content_end..end].contains(&0) {
            reader.problem(Kind::Nul, index, content_end..end, "a NUL byte ends the line here".into());
        }
        let content = &bytes[start..content_end];
        let carried = pending.as_ref().map_or(0, |pending| pending.text.len());
        if content.len() >= LONGEST_LINE || content.len() + carried > LONGEST_LINE {
            reader.problem(
                Kind::TooLong,
                index,
                start..content_end,
                "the line is longer than systemd reads: it gives up on the file here".into(),
            );
            reader.end(index);
            pending = None;
            continue;
        }
        match content.iter().find(|byte| !blank(**byte)) {
            None if pending.is_none() => continue,
            // An empty line ends what was continued.
            None => {}
            Some(b'#' | b';') => {
                reader.lines[index].what = What::Comment;
                continue;
            }
            Some(_) => {}
        }
        if !bom_seen && content.starts_with(BOM) {
            bom_seen = true;
            start += BOM.len();
        }
        let content = &bytes[start..content_end];
        let mut logical = pending.take().unwrap_or(Pending { text: Vec::new(), pieces: Vec::new(), first_line: index });
        logical.pieces.push(Piece {
            value: logical.text.len(),
            file: start,
            length: content.len(),
            line: index.saturating_sub(logical.first_line),
        });
        logical.text.extend_from_slice(content);
        // What was carried over ends in a blank, so only the new line can escape its own end.
        let mut escaped = false;
        for byte in content {
            escaped = !escaped && *byte == b'\\';
        }
        if escaped {
            if let Some(last) = logical.text.last_mut() {
                *last = b' ';
            }
            pending = Some(logical);
            continue;
        }
        reader.logical(logical, index);
    }
    if let Some(logical) = pending {
        let last = reader.lines.len().saturating_sub(1);
        let range = reader.lines[last].range.clone();
        reader.problem(
            Kind::EndsInContinuation,
            last,
            range,
            "the file ends in a continued line: what is appended later becomes part of it".into(),
        );
        reader.logical(logical, last);
    }
    let file = File {
        path: reader.path,
        lines: reader.lines,
        assignments: reader.assignments,
        broken: reader.ended,
        bytes: bytes.to_vec(),
    };
    Read { value: file, problems: reader.problems }
}

impl Reader {
    fn problem(&mut self, kind: Kind, first: usize, range: Range<usize>, text: String) {
        let last = self.lines.partition_point(|line| line.range.start < range.end.max(1)).max(first + 1);
        let span = Span { file: Arc::clone(&self.path), first: first + 1, last, start: range.start, end: range.end };
        self.problems.push(Problem { kind, span, text });
    }

    fn end(&mut self, index: usize) {
        self.lines[index].what = What::Unread;
        self.ended = true;
    }

    /// Marks the lines of a logical line, except the comments and empty lines within it.
    fn mark(&mut self, logical: &Pending, last: usize, what: &What) {
        for piece in &logical.pieces {
            let next = self.lines.partition_point(|line| line.range.start <= piece.file);
            if let Some(line) = self.lines[..=last].get_mut(next.saturating_sub(1)) {
                line.what = what.clone();
            }
        }
    }

    fn logical(&mut self, logical: Pending, last: usize) {
        let text = &logical.text;
        let Some(from) = text.iter().position(|byte| !blank(*byte)) else { return };
        let to = text.iter().rposition(|byte| !blank(*byte)).map_or(from, |at| at + 1);
        let locate = |range: Range<usize>| {
            let probe = Assignment {
                section: None,
                key: String::new(),
                value: String::new(),
                span: Span::whole(""),
                value_range: 0..0,
                pieces: logical.pieces.clone(),
            };
            probe.locate(range)
        };
        let range = locate(from..to);
        let first = logical.first_line;
        let Ok(line) = std::str::from_utf8(&text[from..to]) else {
            self.mark(&logical, last, &What::Unread);
            self.problem(Kind::NotUtf8, first, range, "not UTF-8: systemd stops reading the file here".into());
            self.ended = true;
            return;
        };
        if line.starts_with('[') {
            match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                Some(name) if !name.contains(|c: char| c.is_control() || matches!(c, '"' | '\'' | '\\')) => {
                    self.section = Some(name.to_string());
                    self.mark(&logical, last, &What::Header(name.to_string()));
                }
                _ => {
                    self.problem(
                        Kind::BadHeader,
                        first,
                        range,
                        format!("{}: not a section header, systemd stops reading the file here", shorten(line)),
                    );
                    self.mark(&logical, last, &What::Unread);
                    self.ended = true;
                }
            }
            return;
        }
        let trap = trailing(&logical);
        let Some(equals) = line.find('=') else {
            self.mark(&logical, last, &What::Ignored);
            self.problem(
                Kind::NotAnAssignment,
                first,
                range,
                format!("{}: no '=', systemd ignores the line", shorten(line)),
            );
            return;
        };
        let key = line[..equals].trim_end_matches(|c: char| c.is_ascii() && blank(c as u8));
        if key.is_empty() {
            self.mark(&logical, last, &What::Ignored);
            self.problem(Kind::NoKey, first, range, "no key before '=', systemd ignores the line".into());
            return;
        }
        let raw = &line[equals + 1..];
        let value = raw.trim_start_matches(|c: char| c.is_ascii() && blank(c as u8));
        let value_from = from + equals + 1 + (raw.len() - value.len());
        let value_range = if value.is_empty() {
            let end = locate(from..from + equals + 1).end;
            end..end
        } else {
            locate(value_from..to)
        };
        let pieces = logical
            .pieces
            .iter()
            .filter(|piece| piece.value + piece.length > value_from)
            .map(|piece| {
                let skip = value_from.saturating_sub(piece.value);
                Piece {
                    value: (piece.value + skip) - value_from,
                    file: piece.file + skip,
                    length: piece.length - skip,
                    line: piece.line,
                }
            })
            .collect();
        self.mark(&logical, last, &What::Assignment(self.assignments.len()));
        if self.section.is_none() {
            self.problem(
                Kind::NoSection,
                first,
                range.clone(),
                format!("{key}= stands before any section header: systemd ignores it"),
            );
        }
        if trap {
            self.problem(
                Kind::BlankAfterBackslash,
                first,
                range.clone(),
                "a blank after the backslash: the line is not continued, and what follows is a line of its own".into(),
            );
        }
        let last_line = self.lines.partition_point(|line| line.range.start < range.end).max(first + 1);
        self.assignments.push(Assignment {
            section: self.section.clone(),
            key: key.to_string(),
            value: value.to_string(),
            span: Span {
                file: Arc::clone(&self.path),
                first: first + 1,
                last: last_line,
                start: range.start,
                end: range.end,
            },
            value_range,
            pieces,
        });
    }
}

/// Whether the last line of it ends in a backslash and blanks.
fn trailing(logical: &Pending) -> bool {
    let text = &logical.text;
    let kept = text.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(0, |at| at + 1);
    let backslashes = text[..kept].iter().rev().take_while(|byte| **byte == b'\\').count();
    kept < text.len() && backslashes % 2 == 1
}

pub(crate) fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(60).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(60).is_some() {
        short.push('…');
    }
    short
}
