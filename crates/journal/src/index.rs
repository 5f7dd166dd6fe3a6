//! What a journal is about: its boots, units and invocations, read from the index and not from the entries.

use crate::file::{Data, EntryHead};
use crate::filter::find;
use crate::gap::{Gap, Gaps, Reason};
use crate::id::Id128;
use crate::journal::Journal;
use crate::list::{List, Reading};
use std::collections::BTreeMap;
use std::str;

/// Different values of one field in one file beyond which the rest is left out, with a gap.
const MOST_VALUES: usize = 1 << 20;
/// Unreadable entries that are passed over to find the last readable one of a list.
const PASSED_OVER: u64 = 64;

/// One boot of which there are entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// Its id.
    pub id: Id128,
    /// Oldest entry: microseconds since 1970.
    pub first: u64,
    /// Newest entry: microseconds since 1970.
    pub last: u64,
    /// Entries of the boot in all files; one that is in two files counts twice.
    pub entries: u64,
}

/// One unit of which there are lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Full name, e.g. `nginx.service`.
    pub name: String,
    /// Oldest line: microseconds since 1970.
    pub first: u64,
    /// Newest line: microseconds since 1970.
    pub last: u64,
    /// Lines of its own (`_SYSTEMD_UNIT=`).
    pub entries: u64,
}

/// One start of a unit of which there are lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Its `INVOCATION_ID`.
    pub id: Id128,
    /// The boot it belongs to.
    pub boot_id: Id128,
    /// Oldest line: microseconds since 1970.
    pub first: u64,
    /// Newest line: microseconds since 1970.
    pub last: u64,
    /// Lines of its own (`_SYSTEMD_INVOCATION_ID=`).
    pub own: u64,
    /// Lines of the manager about it (`INVOCATION_ID=`).
    pub manager: u64,
}

impl Journal {
    /// All boots, oldest first. Cost: a few reads a boot and file.
    pub fn boots(&self) -> (Vec<Boot>, Vec<Gap>) {
        let mut gaps = Gaps::default();
        let mut boots = BTreeMap::<Id128, Boot>::new();
        self.each_value(b"_BOOT_ID", &mut gaps, |on, value, data| {
            let Some(id) = id(value) else { return };
            let Some((first, last)) = ends(on, data) else { return };
            let boot = boots.entry(id).or_insert(Boot { id, first: u64::MAX, last: 0, entries: 0 });
            boot.first = boot.first.min(first.realtime);
            boot.last = boot.last.max(last.realtime);
            boot.entries = boot.entries.saturating_add(data.entries);
        });
        let mut boots: Vec<_> = boots.into_values().collect();
        boots.sort_by_key(|boot| (boot.first, boot.id));
        (boots, gaps.into_vec())
    }

    /// All system units that wrote lines, by name. Cost: a few reads a unit and file.
    pub fn units(&self) -> (Vec<Unit>, Vec<Gap>) {
        self.units_by(b"_SYSTEMD_UNIT")
    }

    /// All units of user managers that wrote lines, by name, of all users together.
    pub fn user_units(&self) -> (Vec<Unit>, Vec<Gap>) {
        self.units_by(b"_SYSTEMD_USER_UNIT")
    }

    fn units_by(&self, field: &[u8]) -> (Vec<Unit>, Vec<Gap>) {
        let mut gaps = Gaps::default();
        let mut units = BTreeMap::<String, Unit>::new();
        self.each_value(field, &mut gaps, |on, value, data| {
            let name = String::from_utf8_lossy(value).into_owned();
            let Some((first, last)) = ends(on, data) else { return };
            let unit = units.entry(name.clone()).or_insert(Unit { name, first: u64::MAX, last: 0, entries: 0 });
            unit.first = unit.first.min(first.realtime);
            unit.last = unit.last.max(last.realtime);
            unit.entries = unit.entries.saturating_add(data.entries);
        });
        (units.into_values().collect(), gaps.into_vec())
    }

    /// All starts of a unit (full name, of the system or of a user manager), oldest first: those of its own lines and
    /// those that only the manager speaks of. Cost: a few reads for each invocation of any unit and file.
    pub fn invocations(&self, unit: &str) -> (Vec<Invocation>, Vec<Gap>) {
        let mut gaps = Gaps::default();
        let mut found = BTreeMap::<Id128, Invocation>::new();
        for (field, by, own) in [
            ("_SYSTEMD_INVOCATION_ID", "_SYSTEMD_UNIT", true),
            ("_SYSTEMD_INVOCATION_ID", "_SYSTEMD_USER_UNIT", true),
            ("INVOCATION_ID", "UNIT", false),
            ("USER_INVOCATION_ID", "USER_UNIT", false),
        ] {
            let wanted = [by, "=", unit].concat();
            for file in &self.files {
                let mut buffers = file.buffers();
                let mut on = Reading { file, buffers: &mut buffers, gaps: &mut gaps };
                let Some(unit) = find(&mut on, wanted.as_bytes()) else { continue };
                for (value, data) in collect(&mut on, field.as_bytes()) {
                    let mut items = Vec::new();
                    let first = match on.file.entry(on.buffers, data.first_entry, &mut items) {
                        Ok(_) => items.contains(&unit.offset),
                        Err(_) => first_readable(&mut on, &data, &mut items).is_some() && items.contains(&unit.offset),
                    };
                    if let (true, Some(id), Some((first, last))) = (first, id(&value), ends(&mut on, &data)) {
                        let new =
                            Invocation { id, boot_id: first.boot_id, first: u64::MAX, last: 0, own: 0, manager: 0 };
                        let known = found.entry(id).or_insert(new);
                        known.first = known.first.min(first.realtime);
                        known.last = known.last.max(last.realtime);
                        let lines = if own { &mut known.own } else { &mut known.manager };
                        *lines = lines.saturating_add(data.entries);
                    }
                }
            }
        }
        let mut found: Vec<_> = found.into_values().collect();
        found.sort_by_key(|invocation| (invocation.first, invocation.id));
        (found, gaps.into_vec())
    }

    fn each_value(&self, field: &[u8], gaps: &mut Gaps, mut see: impl FnMut(&mut Reading<'_>, &[u8], &Data)) {
        for file in &self.files {
            let mut buffers = file.buffers();
            let mut on = Reading { file, buffers: &mut buffers, gaps };
            for (value, data) in collect(&mut on, field) {
                see(&mut on, &value, &data);
            }
        }
    }
}

fn id(value: &[u8]) -> Option<Id128> {
    str::from_utf8(value).ok()?.parse().ok()
}

/// All values of a field in one file. Values longer than an id or a unit's name can be are left out.
fn collect(on: &mut Reading<'_>, field: &[u8]) -> Vec<(Vec<u8>, Data)> {
    const LONGEST: usize = 512;
    let mut values = Vec::new();
    let walked = on.file.values(on.buffers, field, |_, data, value| {
        if value.len() <= LONGEST {
            values.push((value.to_owned(), *data));
        }
        values.len() < MOST_VALUES
    });
    if let Err(fault) = walked {
        // The newest values come first: what a file being written links to after we looked hides none of the older.
        on.fault(fault);
    } else if values.len() == MOST_VALUES {
        on.gaps
            .add(Gap::whole(on.file.path(), Reason::TooLarge { bytes: MOST_VALUES as u64, limit: MOST_VALUES as u64 }));
    }
    values
}

/// First and last readable entry with a value.
fn ends(on: &mut Reading<'_>, data: &Data) -> Option<(EntryHead, EntryHead)> {
    let mut items = Vec::new();
    let first = match on.file.entry(on.buffers, data.first_entry, &mut items) {
        Ok(head) => head,
        Err(_) => first_readable(on, data, &mut items)?,
    };
    if data.entries <= 1 {
        return Some((first, first));
    }
    let by_tail = match data.tail_array {
        (0, _) | (_, 0) => None,
        (array, filled) => on.file.array(on.buffers, array).ok().and_then(|(slots, capacity, _)| {
            let mut slot = Vec::new();
            on.file.slots(on.buffers, slots, filled.min(capacity).checked_sub(1)?, 1, &mut slot).ok()?;
            on.file.entry(on.buffers, *slot.first()?, &mut items).ok()
        }),
    };
    let last = by_tail.or_else(|| {
        let mut list = List::of_data(on, data);
        let indices = (0..list.len()).rev().take(PASSED_OVER as usize);
        indices.into_iter().find_map(|index| {
            let at = list.get(on, index)?;
            on.file.entry(on.buffers, at, &mut items).ok()
        })
    });
    Some((first, last.unwrap_or(first)))
}

fn first_readable(on: &mut Reading<'_>, data: &Data, items: &mut Vec<u64>) -> Option<EntryHead> {
    let mut list = List::of_data(on, data);
    (0..list.len().min(PASSED_OVER)).find_map(|index| {
        let at = list.get(on, index)?;
        on.file.entry(on.buffers, at, items).ok()
    })
}
