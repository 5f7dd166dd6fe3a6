//! Reads systemd journal files: read-only, without libsystemd and without running `journalctl`.
//!
//! A crate of its own because a parser of binary files that anyone may have damaged or forged must not be able to reach
//! anything else: it opens files for reading and does nothing more. Nothing in a file is trusted; what cannot be read is
//! a [`Gap`] with file, place and reason, and everything else is read all the same.
//!
//! - [`Journal`] finds and opens the files; [`Journal::boots`], [`Journal::units`] and [`Journal::invocations`] say what
//!   is in them.
//! - [`Journal::entries`] gives the entries of a [`Filter`] from several files in time order, by the index.
//! - [`Journal::start`] is the log of exactly one start of a unit, with a judgement whether it is complete.
//! - [`Exported`] reads the output of `journalctl --output=export` instead, where the files may not be read.
//! - [`Journal::search`] finds words in the messages of a unit's whole history.

#![forbid(unsafe_code)]

mod completeness;
mod cursor;
mod decompress;
mod ending;
mod entries;
mod entry;
mod export;
mod exported;
mod field;
mod file;
mod filter;
mod gap;
mod hash;
mod id;
mod index;
mod journal;
mod limits;
mod list;
mod search;
mod start;
mod text;
mod which;
mod window;

pub use completeness::{Caveat, Completeness, Evidence, Flaw, StartLine};
pub use cursor::{Cursor, NotACursor};
pub use ending::Ending;
pub use entries::Entries;
pub use entry::Entry;
pub use exported::Exported;
pub use field::Field;
pub use file::{FileInfo, State};
pub use filter::{Direction, Filter, Match};
pub use gap::{Compression, Gap, Part, Reason};
pub use id::{Id128, NotAnId};
pub use index::{Boot, Invocation, Unit};
pub use journal::Journal;
pub use limits::Limits;
pub use search::{Found, Hit, Query, TooMuch};
pub use start::{Head, Start};
pub use which::Manager;
