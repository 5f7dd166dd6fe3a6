//! systemd's formats, read the way systemd reads them: unit files and their drop-ins, command lines, environment files,
//! specifiers, the output of `systemctl show`, and the wrappers that stand between a unit and the process meant.
//!
//! This crate is given texts and returns structures. It opens nothing, runs nothing and asks no clock, so it can be
//! fuzzed whole and gives the same answer for the same capture for ever. What it cannot know is said: a value is
//! either [`Text::Known`], exactly what systemd would use, or [`Text::Opaque`] with the reason.
//!
//! The rules come from systemd's manual pages and sources and were checked by running systemd 252 as PID 1; where 247
//! or 257 were seen to differ, [`Version`] decides.
#![forbid(unsafe_code)]

pub mod collected;
pub mod compare;
pub mod file;
pub mod held;
pub mod issue;
pub mod layers;
pub mod show;
pub mod specifiers;
pub mod unit;
pub mod words;
pub mod wrapper;

use std::fmt;
use std::sync::Arc;

/// A release of systemd: its first number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32);

impl Default for Version {
    fn default() -> Version {
        Version(252)
    }
}

/// Which bytes of which file, and which lines a person would look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file's path, or what stands for it (`systemctl show`).
    pub file: Arc<str>,
    /// First line, from 1.
    pub first: usize,
    /// Last line: the same, or later where lines are continued.
    pub last: usize,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// A place in a file of which no bytes are known.
    pub fn whole(file: &str) -> Span {
        Span { file: Arc::from(file), first: 0, last: 0, start: 0, end: 0 }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == 0 { f.write_str(&self.file) } else { write!(f, "{}:{}", self.file, self.first) }
    }
}

/// A value that is exactly known, or not known at all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Text {
    /// Exactly what systemd uses.
    Known(String),
    /// Not known.
    Opaque {
        /// What was written.
        written: String,
        /// Why it could not be resolved.
        why: String,
    },
}

impl Text {
    /// The value, where it is known.
    pub fn known(&self) -> Option<&str> {
        match self {
            Text::Known(text) => Some(text),
            Text::Opaque { .. } => None,
        }
    }

    /// The value, or what was written in its place: for people, never for judging.
    pub fn shown(&self) -> &str {
        match self {
            Text::Known(text) => text,
            Text::Opaque { written, .. } => written,
        }
    }

    fn opaque(written: impl Into<String>, why: impl Into<String>) -> Text {
        Text::Opaque { written: written.into(), why: why.into() }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text::Known(text.to_string())
    }
}

/// What is the matter with something that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An assignment before any section: systemd ignores it.
    NoSection,
    /// A section that services do not have: ignored with all that is in it.
    UnknownSection,
    /// A known key in a section it does not belong to: ignored.
    WrongSection,
    /// A section header that does not end with `]`: systemd stops reading the file here.
    BadHeader,
    /// A line without `=`: ignored.
    NotAnAssignment,
    /// A line that begins with `=`: ignored.
    NoKey,
    /// A backslash followed by blanks at the end of a line, which does not continue it.
    BlankAfterBackslash,
    /// A file that ends in a continuation.
    EndsInContinuation,
    /// Bytes that are not UTF-8: systemd ignores the line, or the whole file.
    NotUtf8,
    /// A NUL byte: it ends the line.
    Nul,
    /// Longer than systemd reads: it gives up on the file.
    TooLong,
    /// An escape sequence that does not exist; kept as written or the value dropped.
    UnknownEscape,
    /// A quote that is not closed: the value is dropped.
    UnbalancedQuote,
    /// Not a path or a name that systemd would run or read.
    BadPath,
    /// A command without a program.
    EmptyCommand,
    /// A specifier this release does not know; systemd keeps it as it stands.
    UnknownSpecifier,
    /// A specifier whose value was not collected.
    UnavailableSpecifier,
    /// Not an assignment of an environment variable: dropped.
    InvalidAssignment,
    /// An environment file that must be there and is not.
    FileMissing,
    /// An environment file that was not collected or could not be read.
    FileUnread,
    /// A variable in a command line that the environment does not have: it becomes nothing.
    UnsetVariable,
    /// A command line that stops the unit from loading.
    Fatal,
    /// The unit, or a drop-in, is masked.
    Masked,
    /// No such unit.
    NotFound,
    /// A unit name that is none.
    BadName,
    /// A chain of symbolic links that ends nowhere.
    BadLink,
    /// Several commands where the type of service allows one.
    SeveralCommands,
    /// A service without a command.
    NoCommand,
    /// A line that the reader of `systemctl show` does not understand.
    Unreadable,
}

/// Something worth knowing about what was read. Never an error: the rest is read all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What kind.
    pub kind: Kind,
    /// Where.
    pub span: Span,
    /// One line a person understands.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.span, self.text)
    }
}

/// What was read, and what is the matter with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read<T> {
    /// What was read.
    pub value: T,
    /// What is the matter with it.
    pub problems: Vec<Problem>,
}
