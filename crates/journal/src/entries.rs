//! Entries of several files as one stream in time order.

use crate::cursor::Cursor;
use crate::entry::{Entry, place};
use crate::file::{EntryHead, JournalFile};
use crate::filter::{Direction, Filter, Walk};
use crate::gap::{Fault, Gap, Gaps, Part};
use crate::id::Id128;
use crate::list::{List, Reading};
use std::cmp::Ordering;
use std::sync::Arc;

/// The entries that a filter lets through, in its order. An entry that is in two files (a copy, a flushed volatile
/// journal) comes once.
///
/// What cannot be read is left out and noted: [`Entries::gaps`] says what was met so far.
pub struct Entries {
    /// Those of an exported text, which are sorted and filtered already.
    listed: std::vec::IntoIter<Entry>,
    streams: Vec<Stream>,
    direction: Direction,
    gaps: Gaps,
}

/// The entries of one file.
struct Stream {
    file: Arc<JournalFile>,
    walk: Walk,
    bounds: Bounds,
    /// Where to look next; `None` when there is nothing more.
    next: Option<u64>,
    head: Option<(EntryHead, Cursor)>,
    items: Vec<u64>,
}

/// What every entry must keep to besides the condition on its fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) boot: Option<Id128>,
    pub(crate) since: u64,
    pub(crate) until: u64,
    /// Part of the file, in bytes, in which its entries lie.
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Bounds {
    /// Finds where in a file the entries of a filter lie. `None`: nowhere.
    pub(crate) fn new(on: &mut Reading<'_>, filter: &Filter) -> Option<Self> {
        let mut bounds = Self {
            boot: filter.boot,
            since: filter.since.unwrap_or(0),
            until: filter.until.unwrap_or(u64::MAX),
            first: 0,
            last: u64::MAX,
        };
        if filter.since.is_none() && filter.until.is_none() && filter.after.is_none() {
            return Some(bounds);
        }
        let mut all = List::of_file(on);
        let mut items = Vec::new();
        let mut head = |on: &mut Reading<'_>, offset| on.file.entry(on.buffers, offset, &mut items).ok();
        // Only the place is looked for here: damage is told when the entries themselves are read.
        if filter.since.is_some() {
            let index = all.partition(on, |on, at| Some(head(on, at)?.realtime >= bounds.since));
            bounds.first = all.get(on, index).unwrap_or(if index < all.len() { 0 } else { u64::MAX });
        }
        if filter.until.is_some() {
            let index = all.partition(on, |on, at| Some(head(on, at)?.realtime > bounds.until));
            bounds.last = match index.checked_sub(1) {
                Some(index) => all.get(on, index).unwrap_or(u64::MAX),
                None => return None,
            };
        }
        if let Some(cursor) = &filter.after {
            let same_source = cursor.seqnum_id == on.file.info.seqnum_id;
            let ahead = |head: &EntryHead| match (same_source, filter.direction) {
                (true, Direction::Forward) => head.seqnum > cursor.seqnum,
                (true, Direction::Backward) => head.seqnum >= cursor.seqnum,
                // Equal times are sorted out entry by entry.
                (false, Direction::Forward) => head.realtime >= cursor.realtime,
                (false, Direction::Backward) => head.realtime > cursor.realtime,
            };
            let index = all.partition(on, |on, at| head(on, at).map(|head| ahead(&head)));
            match filter.direction {
                Direction::Forward => bounds.first = bounds.first.max(all.get(on, index).unwrap_or(u64::MAX)),
                Direction::Backward => {
                    bounds.last =
                        bounds.last.min(index.checked_sub(1).and_then(|index| all.get(on, index)).unwrap_or(0));
                }
            }
        }
        (bounds.first <= bounds.last && bounds.last > 0).then_some(bounds)
    }

    pub(crate) fn hold(&self, head: &EntryHead) -> bool {
        head.realtime >= self.since && head.realtime <= self.until && self.boot.is_none_or(|boot| boot == head.boot_id)
    }
}

impl Entries {
    pub(crate) fn new(files: &[Arc<JournalFile>], filter: &Filter) -> Self {
        let mut gaps = Gaps::default();
        let conditions = filter.conditions();
        let mut streams: Vec<_> = files
            .iter()
            .filter_map(|file| {
                let mut buffers = file.buffers();
                let mut on = Reading { file, buffers: &mut buffers, gaps: &mut gaps };
                let walk = Walk::new(&mut on, &conditions)?;
                let bounds = Bounds::new(&mut on, filter)?;
                let start = match filter.direction {
                    Direction::Forward => bounds.first,
                    Direction::Backward => bounds.last,
                };
                let (file, items) = (Arc::clone(file), Vec::new());
                Some(Stream { file, walk, bounds, next: Some(start), head: None, items })
            })
            .collect();
        for stream in &mut streams {
            stream.advance(filter.direction, &mut gaps);
            while let (Some((_, at)), Some(cursor)) = (&stream.head, &filter.after)
                && toward(filter.direction, at.order(cursor)) != Ordering::Greater
            {
                stream.advance(filter.direction, &mut gaps);
            }
        }
        streams.retain(|stream| stream.head.is_some());
        Self { listed: Vec::new().into_iter(), streams, direction: filter.direction, gaps }
    }

    pub(crate) fn listed(entries: Vec<Entry>, gaps: Gaps) -> Self {
        Self { listed: entries.into_iter(), streams: Vec::new(), direction: Direction::Forward, gaps }
    }

    /// What could not be read so far.
    pub fn gaps(&self) -> &[Gap] {
        self.gaps.as_slice()
    }

    /// What could not be read.
    pub fn into_gaps(self) -> Vec<Gap> {
        self.gaps.into_vec()
    }
}

/// The order seen in a direction.
pub(crate) fn toward(direction: Direction, order: Ordering) -> Ordering {
    match direction {
        Direction::Forward => order,
        Direction::Backward => order.reverse(),
    }
}

impl Iterator for Entries {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if let Some(entry) = self.listed.next() {
            return Some(entry);
        }
        let direction = self.direction;
        let mut best = 0;
        let mut best_at = self.streams.first()?.head.as_ref()?.1;
        for (i, stream) in self.streams.iter().enumerate().skip(1) {
            if let Some((_, at)) = &stream.head
                && toward(direction, at.order(&best_at)) == Ordering::Less
            {
                (best, best_at) = (i, *at);
            }
        }
        let stream = &self.streams[best];
        let head = stream.head.as_ref()?.0;
        let entry = Entry::stored(&stream.file, &head, &stream.items);
        let mut ended = false;
        for stream in &mut self.streams {
            if stream.head.as_ref().is_some_and(|(_, at)| at.same_entry(&best_at)) {
                stream.advance(direction, &mut self.gaps);
                ended |= stream.head.is_none();
            }
        }
        if ended {
            self.streams.retain(|stream| stream.head.is_some());
        }
        Some(entry)
    }
}

impl Stream {
    fn advance(&mut self, direction: Direction, gaps: &mut Gaps) {
        self.head = None;
        let file = Arc::clone(&self.file);
        let mut buffers = file.buffers();
        let mut on = Reading { file: &file, buffers: &mut buffers, gaps };
        while let Some(next) = self.next {
            let found = match direction {
                Direction::Forward => self.walk.at_or_after(&mut on, next).filter(|at| *at <= self.bounds.last),
                Direction::Backward => self.walk.at_or_before(&mut on, next).filter(|at| *at >= self.bounds.first),
            };
            let Some(at) = found else {
                self.next = None;
                return;
            };
            self.next = match direction {
                Direction::Forward => at.checked_add(1),
                Direction::Backward => at.checked_sub(1),
            };
            if let Some(head) = read(&mut on, &self.walk, &self.bounds, at, &mut self.items) {
                self.head = Some((head, place(&file, &head)));
                return;
            }
        }
    }
}

/// Reads an entry that the index led to. `None`: it is damaged, does not fulfil the condition (both gaps) or is out of
/// bounds.
pub(crate) fn read(
    on: &mut Reading<'_>,
    walk: &Walk,
    bounds: &Bounds,
    at: u64,
    items: &mut Vec<u64>,
) -> Option<EntryHead> {
    match on.file.entry(on.buffers, at, items) {
        Ok(_) if !walk.holds(items) => {
            on.fault(Fault::damaged(Part::Index, at));
            None
        }
        Ok(head) => bounds.hold(&head).then_some(head),
        Err(fault) => {
            // Being written just now: its place is taken, its content not there yet.
            if !on.file.is_beyond(at) {
                on.fault(fault);
            }
            None
        }
    }
}
