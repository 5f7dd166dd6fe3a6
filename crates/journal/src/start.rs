//! The log of exactly one start of a unit.

use crate::entries::Entries;
use crate::entry::Entry;
use crate::exported::Exported;
use crate::filter::{Direction, Filter, Match};
use crate::gap::{Gap, Gaps};
use crate::id::Id128;
use crate::journal::Journal;
use crate::search::{Found, Query};
use crate::which::{Manager, Which};

/// sd-messages.h: SD_MESSAGE_UNIT_STARTING, "Starting …".
pub(crate) const STARTING: &str = "7d4958e842da4a758f6c1cdc7b36dcc5";
/// sd-messages.h: SD_MESSAGE_UNIT_STARTED, "Started …"; for `Type=simple` the only one (systemd 252).
pub(crate) const STARTED: &str = "39f53479d3a045ac8e11786248231fbf";

/// The log of one start of a unit: the lines of its own processes and the manager's about it.
///
/// Lines of other starts and lines that only pretend (a process can send `INVOCATION_ID=` itself, but not be PID 1) are
/// not among them. For a user's unit the manager is a process named `systemd` of that user, which the user could forge.
#[derive(Clone)]
pub struct Start<'j> {
    pub(crate) source: Source<'j>,
    pub(crate) which: Which,
}

/// Where the entries of a start come from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'j> {
    Files(&'j Journal),
    Exported(&'j Exported),
}

impl Source<'_> {
    pub(crate) fn entries(self, filter: &Filter) -> Entries {
        match self {
            Source::Files(journal) => journal.entries(filter),
            Source::Exported(exported) => exported.entries(filter),
        }
    }
}

/// The beginning of a start's log.
#[derive(Debug)]
pub struct Head {
    /// Entries from the first on, up to the one that was looked for.
    pub entries: Vec<Entry>,
    /// Whether the last entry is the one that was looked for; else the log or the limit ended first.
    pub found: bool,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

impl Journal {
    /// The log of one start of a unit. `unit` is its full name (`x.service`); nothing is read yet.
    pub fn start(&self, unit: &str, manager: Manager, invocation: Id128) -> Start<'_> {
        Start { source: Source::Files(self), which: Which { unit: unit.to_owned(), manager, invocation } }
    }
}

impl Exported {
    /// The log of one start of a unit, as far as it was asked for: see [`Exported::condition`].
    pub fn start(&self, unit: &str, manager: Manager, invocation: Id128) -> Start<'_> {
        Start { source: Source::Exported(self), which: Which { unit: unit.to_owned(), manager, invocation } }
    }
}

impl Start<'_> {
    /// The condition for its entries.
    pub fn condition(&self) -> Match {
        self.which.lines()
    }

    /// All its entries, oldest first.
    pub fn entries(&self) -> Entries {
        self.source.entries(&self.condition().into())
    }

    /// Entries from the first one up to and including the first that `wanted` says yes to, e.g. the line that says
    /// "ready"; at most `limit`. Reads nothing behind it.
    pub fn head_until(&self, limit: usize, mut wanted: impl FnMut(&Entry) -> bool) -> Head {
        let mut all = self.entries();
        let mut entries = Vec::new();
        let mut found = false;
        while entries.len() < limit
            && !found
            && let Some(entry) = all.next()
        {
            found = wanted(&entry);
            entries.push(entry);
        }
        Head { entries, found, gaps: all.into_gaps() }
    }

    /// The newest `count` entries, oldest of them first, read from the end.
    pub fn newest(&self, count: usize) -> (Vec<Entry>, Vec<Gap>) {
        self.backward(self.condition(), count)
    }

    /// The first and the newest `count` warnings and errors (`PRIORITY` 0 to 4) in order, found by intersecting two
    /// lists of the index and not by reading the lines between.
    pub fn warnings(&self, count: usize) -> (Vec<Entry>, Vec<Gap>) {
        let condition = self.condition().and(Match::warnings());
        let mut forward = self.source.entries(&condition.clone().into());
        let mut entries: Vec<_> = forward.by_ref().take(count).collect();
        let mut gaps = Gaps::default();
        gaps.extend(forward.into_gaps());
        if entries.len() == count
            && let Some(last) = entries.last().map(Entry::cursor)
        {
            let (newest, met) = self.backward(condition, count);
            gaps.extend(met);
            entries.extend(newest.into_iter().skip_while(|entry| entry.cursor().order(&last).is_le()));
        }
        (entries, gaps.into_vec())
    }

    fn backward(&self, condition: Match, count: usize) -> (Vec<Entry>, Vec<Gap>) {
        let mut all = self.source.entries(&Filter { direction: Direction::Backward, ..condition.into() });
        let mut entries: Vec<_> = all.by_ref().take(count).collect();
        entries.reverse();
        (entries, all.into_gaps())
    }

    /// Searches all its messages; see [`Journal::search`].
    pub fn search(&self, query: &Query<'_>) -> Found {
        match self.source {
            Source::Files(journal) => journal.search(&self.condition().into(), query),
            Source::Exported(exported) => exported.search(&self.condition().into(), query),
        }
    }
}
