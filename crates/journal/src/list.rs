//! Lists of entries: all of a file, or those with one value, in the order in which they were written.

use crate::file::{Buffers, Data, JournalFile, MOST_ARRAYS};
use crate::gap::{Fault, Gaps, Part};

/// Slots read at a time.
const BLOCK: u64 = 512;

#[derive(Debug, Clone, Copy)]
struct Array {
    slots: u64,
    length: u64,
    /// Position in the whole list of its first slot.
    base: u64,
}

/// One list of entries, read from the front ([`List::at_or_after`]) or from the back ([`List::at_or_before`]).
///
/// The asked offsets must go one way only. A slot that cannot be right is left out with a gap; while a file is being
/// written, slots at its end that are not filled yet are no gap.
pub(crate) struct List {
    /// The first entry stands in the value itself.
    inline: Option<u64>,
    arrays: Vec<Array>,
    length: u64,
    block: Vec<u64>,
    block_base: u64,
    /// Next slot to look at from the front, and first slot no longer looked at from the back.
    front: u64,
    back: u64,
    /// Index and slot that were passed last from the front, and from the back: slots beyond must be larger, or smaller.
    passed_front: Option<(u64, u64)>,
    passed_back: Option<(u64, u64)>,
}

/// What moving along a list needs.
pub(crate) struct Reading<'a> {
    pub(crate) file: &'a JournalFile,
    pub(crate) buffers: &'a mut Buffers,
    pub(crate) gaps: &'a mut Gaps,
}

impl Reading<'_> {
    pub(crate) fn fault(&mut self, fault: Fault) {
        self.gaps.add(fault.at(self.file.path()));
    }

    /// Whether the slot at `index` of an array of `capacity` slots is there and not empty.
    fn is_filled(&mut self, slots: u64, index: u64, capacity: u64) -> bool {
        let mut slot = Vec::new();
        let read = index < capacity && self.file.slots(self.buffers, slots, index, 1, &mut slot).is_ok();
        read && slot.first().is_some_and(|slot| *slot != 0)
    }
}

impl List {
    /// All entries of the file.
    pub(crate) fn of_file(on: &mut Reading<'_>) -> Self {
        let (array, length) = on.file.all_entries();
        Self::open(on, None, array, length)
    }

    /// The entries that have a value.
    pub(crate) fn of_data(on: &mut Reading<'_>, data: &Data) -> Self {
        Self::open(on, Some(data.first_entry), data.array, data.entries)
    }

    fn open(on: &mut Reading<'_>, inline: Option<u64>, first: u64, length: u64) -> Self {
        let list = Self::open_once(on, inline, first, length);
        // A writer fills a slot before it counts it, so while it writes one may be counted that we do not see, or more
        // where what we have of the file is older than the count.
        let lacks = |list: &Self| length - list.length > 1;
        if !on.file.is_open_ended() || on.file.info.is_truncated() || !lacks(&list) {
            return list;
        }
        on.buffers.forget();
        let list = Self::open_once(on, inline, first, length);
        if lacks(&list) {
            // What is lost must not look like what is still to come.
            on.fault(Fault::damaged(Part::EntryArray, first));
        }
        list
    }

    fn open_once(on: &mut Reading<'_>, inline: Option<u64>, first: u64, length: u64) -> Self {
        let mut arrays = Vec::new();
        let mut base = u64::from(inline.is_some());
        let mut offset = first;
        if base >= length && first != 0 && !on.file.is_open_ended() {
            on.fault(Fault::damaged(Part::EntryArray, first));
        }
        while base < length {
            if offset == 0 || arrays.len() == MOST_ARRAYS {
                if !on.file.is_open_ended() {
                    on.fault(Fault::damaged(Part::EntryArray, arrays.last().map_or(first, |a: &Array| a.slots)));
                }
                break;
            }
            if on.file.is_beyond(offset) {
                break;
            }
            match on.file.array(on.buffers, offset) {
                Ok((slots, capacity, next)) => {
                    let filled = capacity.min(length - base);
                    arrays.push(Array { slots, length: filled, base });
                    base += filled;
                    // Objects lie one behind the other. Arrays within each other would make a small file a list
                    // without end.
                    let end = slots.saturating_add(capacity.saturating_mul(on.file.slot()));
                    if next != 0 && next < end {
                        on.fault(Fault::damaged(Part::EntryArray, offset));
                        break;
                    }
                    // A writer that is done has counted every slot it filled: one more is an entry that a wrong
                    // count would hide.
                    if base == length
                        && !on.file.is_open_ended()
                        && (next != 0 || on.is_filled(slots, filled, capacity))
                    {
                        on.fault(Fault::damaged(Part::EntryArray, offset));
                    }
                    offset = next;
                }
                Err(fault) => {
                    on.fault(fault);
                    break;
                }
            }
        }
        let length = base.min(length);
        let mut list = Self {
            inline,
            arrays,
            length,
            block: Vec::new(),
            block_base: 0,
            front: 0,
            back: 0,
            passed_front: None,
            passed_back: None,
        };
        if on.file.is_open_ended() {
            while list.length > 0 {
                let last = list.slot(on, list.length - 1);
                if last != 0 && !on.file.is_beyond(last) {
                    break;
                }
                list.length -= 1;
            }
        }
        list.back = list.length;
        list
    }

    /// Entries in the list, damaged ones included.
    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    /// The raw slot at `index`; 0 if it cannot be read.
    fn slot(&mut self, on: &mut Reading<'_>, index: u64) -> u64 {
        if let Some(slot) = index.checked_sub(self.block_base).and_then(|i| self.block.get(i as usize)) {
            return *slot;
        }
        if index == 0
            && let Some(first) = self.inline
        {
            return first;
        }
        let array = match self.arrays.partition_point(|array| array.base <= index).checked_sub(1) {
            Some(i) => self.arrays[i],
            None => return 0,
        };
        let within = index - array.base;
        let from = within / BLOCK * BLOCK;
        let count = BLOCK.min(array.length.saturating_sub(from));
        self.block.clear();
        self.block_base = array.base + from;
        if let Err(fault) = on.file.slots(on.buffers, array.slots, from, count, &mut self.block) {
            on.fault(fault);
        }
        self.block.get((within - from) as usize).copied().unwrap_or(0)
    }

    /// First entry at `offset` or later in the file.
    pub(crate) fn at_or_after(&mut self, on: &mut Reading<'_>, offset: u64) -> Option<u64> {
        // Gallop, then bisect. A damaged slot on the way, or one out of order, makes that untrustworthy: then go one by
        // one.
        let mut step = 1;
        let mut low = self.front;
        let mut below = if low < self.length { self.slot(on, low) } else { 0 };
        let mut above = u64::MAX;
        let mut trusted = on.file.is_place(below) && self.passed_front.is_none_or(|(_, passed)| below >= passed);
        while trusted && low + step < self.length {
            let slot = self.slot(on, low + step);
            trusted = on.file.is_place(slot) && slot > below;
            if !trusted || slot >= offset {
                above = slot;
                break;
            }
            (low, below) = (low + step, slot);
            step *= 2;
        }
        let mut high = (low + step).min(self.length);
        while trusted && high - low > 1 {
            let middle = low + (high - low) / 2;
            let slot = self.slot(on, middle);
            trusted = on.file.is_place(slot) && slot > below && slot < above;
            if slot < offset { (low, below) = (middle, slot) } else { (high, above) = (middle, slot) }
        }
        if trusted {
            self.front = low;
            self.passed_front = Some((low, below));
        }
        while self.front < self.length {
            let index = self.front;
            let slot = self.slot(on, index);
            let in_order = self.passed_front.is_none_or(|(at, passed)| at == index || slot > passed);
            if !in_order || !on.file.is_place(slot) {
                on.fault(Fault::damaged(Part::EntryArray, slot));
            } else {
                self.passed_front = Some((index, slot));
                if slot >= offset {
                    return Some(slot);
                }
            }
            self.front = index + 1;
        }
        None
    }

    /// Last entry at `offset` or earlier in the file.
    pub(crate) fn at_or_before(&mut self, on: &mut Reading<'_>, offset: u64) -> Option<u64> {
        let mut step = 1;
        let mut high = self.back;
        let mut above = if high > 0 { self.slot(on, high - 1) } else { 0 };
        let mut below = 0;
        let mut trusted = on.file.is_place(above) && self.passed_back.is_none_or(|(_, passed)| above <= passed);
        // The slot at `high - 1` may be the one that is asked for; all from `high` on are past the offset.
        while trusted && step < high {
            let slot = self.slot(on, high - 1 - step);
            trusted = on.file.is_place(slot) && slot < above;
            if !trusted || slot <= offset {
                below = slot;
                break;
            }
            (high, above) = (high - step, slot);
            step *= 2;
        }
        let mut low = high.saturating_sub(step);
        while trusted && low + 1 < high {
            let middle = low + (high - 1 - low) / 2;
            let slot = self.slot(on, middle);
            trusted = on.file.is_place(slot) && slot > below && slot < above;
            if slot <= offset { (low, below) = (middle + 1, slot) } else { (high, above) = (middle + 1, slot) }
        }
        if trusted {
            self.back = high;
            self.passed_back = Some((high.saturating_sub(1), above));
        }
        while self.back > 0 {
            let index = self.back - 1;
            let slot = self.slot(on, index);
            let in_order = self.passed_back.is_none_or(|(at, passed)| at == index || slot < passed);
            if !in_order || !on.file.is_place(slot) {
                on.fault(Fault::damaged(Part::EntryArray, slot));
            } else {
                self.passed_back = Some((index, slot));
                if slot <= offset {
                    return Some(slot);
                }
            }
            self.back = index;
        }
        None
    }

    /// Visits every slot once without reading the entries, so that damage of the list itself is met.
    pub(crate) fn check(&mut self, on: &mut Reading<'_>) {
        let mut last = 0;
        for index in 0..self.length {
            let slot = self.slot(on, index);
            if !on.file.is_place(slot) || slot <= last {
                on.fault(Fault::damaged(Part::EntryArray, slot));
            } else {
                last = slot;
            }
        }
    }

    /// Index of the first slot for whose entry `is_after` holds, entries being sorted by it; entries that cannot be
    /// read count as their next readable neighbour.
    pub(crate) fn partition(
        &mut self,
        on: &mut Reading<'_>,
        mut is_after: impl FnMut(&mut Reading<'_>, u64) -> Option<bool>,
    ) -> u64 {
        let (mut low, mut high) = (0, self.length);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut probe = middle;
            let answer = loop {
                if probe == high {
                    break true;
                }
                let slot = self.slot(on, probe);
                if let Some(answer) = is_after(on, slot) {
                    break answer;
                }
                probe += 1;
            };
            if answer { high = middle } else { low = probe + 1 }
        }
        low
    }

    /// The entry at an index, if the slot can be right.
    pub(crate) fn get(&mut self, on: &mut Reading<'_>, index: u64) -> Option<u64> {
        if index >= self.length {
            return None;
        }
        let slot = self.slot(on, index);
        on.file.is_place(slot).then_some(slot)
    }
}
