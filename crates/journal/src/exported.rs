//! Entries that `journalctl` printed, for where the files themselves may not be read.

use crate::entries::{Entries, toward};
use crate::entry::Entry;
use crate::export::Reader;
use crate::filter::{Direction, Filter, Match};
use crate::gap::{Gap, Gaps, Reason};
use crate::id::Id128;
use crate::limits::Limits;
use crate::search::{Found, Hit, Query};
use crate::text::Text;
use crate::which::{Manager, Which};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// What `journalctl --output=export` printed, as entries.
///
/// They answer like those of a [`Journal`](crate::Journal), but never for the whole of a log: journalctl is silent about
/// what it could not read, so [`Start::completeness`](crate::Start::completeness) always has a flaw ([`Flaw::Exported`](crate::Flaw::Exported)).
#[derive(Default)]
pub struct Exported {
    entries: Vec<Entry>,
    gaps: Gaps,
    limits: Limits,
}

impl Exported {
    /// The entries to ask journalctl for in order to judge one start: its own lines, the manager's about it, and what
    /// journald says about messages it dropped. See [`Match::arguments`].
    pub fn condition(unit: &str, manager: Manager, invocation: Id128) -> Match {
        let which = Which { unit: unit.to_owned(), manager, invocation };
        Match::Any(vec![which.own_lines(), which.manager_lines(), which.suppressions()])
    }

    /// Reads the output of one call. `source` is what the text is called in gaps, such as the command.
    pub fn read(source: impl Into<PathBuf>, text: Vec<u8>) -> Self {
        Self::read_with(source, text, Limits::default())
    }

    /// [`Exported::read`] with other limits.
    pub fn read_with(source: impl Into<PathBuf>, text: Vec<u8>, limits: Limits) -> Self {
        let text = Text { source: source.into(), bytes: text, longest: limits.value_bytes };
        let mut exported = Self { entries: Vec::new(), gaps: Gaps::default(), limits };
        for entry in Reader::new(text) {
            match entry {
                Ok(entry) => exported.entries.push(entry),
                Err(gap) => exported.gaps.add(gap),
            }
        }
        exported
    }

    /// Adds the entries of another call, those that both have once, and its gaps.
    pub fn add(&mut self, other: Exported) {
        self.gaps.extend(other.gaps.into_vec());
        let mut ours = std::mem::take(&mut self.entries).into_iter().peekable();
        let mut theirs = other.entries.into_iter().peekable();
        loop {
            let order = match (ours.peek(), theirs.peek()) {
                (Some(our), Some(their)) => our.cursor().order(&their.cursor()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            let next = if order == Ordering::Greater { theirs.next() } else { ours.next() };
            if order == Ordering::Equal {
                theirs.next();
            }
            self.entries.extend(next);
        }
    }

    /// Notes that the output of a call was not taken to its end.
    pub fn cut_off(&mut self, source: impl AsRef<Path>) {
        self.gaps.add(Gap::whole(source.as_ref(), Reason::CutOff));
    }

    /// What could not be read.
    pub fn gaps(&self) -> &[Gap] {
        self.gaps.as_slice()
    }

    /// The entries that a filter lets through.
    pub fn entries(&self, filter: &Filter) -> Entries {
        let admitted = self.entries.iter().filter(|entry| admits(filter, entry)).cloned();
        let mut entries: Vec<_> = admitted.collect();
        if filter.direction == Direction::Backward {
            entries.reverse();
        }
        Entries::listed(entries, self.gaps.clone())
    }

    /// Searches the messages of the entries that a filter lets through, as [`Journal::search`](crate::Journal::search)
    /// does.
    pub fn search(&self, filter: &Filter, query: &Query<'_>) -> Found {
        let filter = Filter { direction: Direction::Forward, after: None, ..filter.clone() };
        let mut found = Found::default();
        let mut gaps = self.gaps.clone();
        let mut lower = Vec::new();
        for entry in self.entries.iter().filter(|entry| admits(&filter, entry)) {
            found.examined += 1;
            match entry.all("MESSAGE") {
                Ok(messages) => {
                    for message in messages.into_iter().filter(|message| query.accepts(message, &mut lower)) {
                        if found.hits.len() < self.limits.hits {
                            found.hits.push(Hit::new(entry.clone(), message));
                        } else {
                            found.not_listed += 1;
                        }
                    }
                }
                Err(gap) => gaps.add(gap),
            }
        }
        found.gaps = gaps.into_vec();
        found
    }
}

fn admits(filter: &Filter, entry: &Entry) -> bool {
    filter.boot.is_none_or(|boot| boot == entry.boot_id())
        && filter.since.is_none_or(|since| entry.realtime() >= since)
        && filter.until.is_none_or(|until| entry.realtime() <= until)
        && filter.after.is_none_or(|after| toward(filter.direction, entry.cursor().order(&after)) == Ordering::Greater)
        && filter.matches.holds_for(&|payload| entry.has(payload))
}
