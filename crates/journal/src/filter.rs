//! Which entries are asked for, and how one file finds them by its index.

use crate::cursor::Cursor;
use crate::file::Data;
use crate::gap::{Fault, Part};
use crate::id::Id128;
use crate::list::{List, Reading};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// `systemd-coredump`'s message about a crash (sd-messages.h: SD_MESSAGE_COREDUMP).
const COREDUMP: &str = "fc2e22bc6ee647b6b90729ab34a250b1";
/// Values of a field that are looked through when the hash table does not lead to the asked one.
const SECOND_LOOK: usize = 4096;

/// A condition on the fields of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// Holds for every entry.
    Every,
    /// The entry has exactly this `NAME=value`.
    Field(Vec<u8>),
    /// All hold. Of none: every entry.
    All(Vec<Match>),
    /// At least one holds. Of none: no entry.
    Any(Vec<Match>),
}

impl Match {
    /// The entry has the field `name` with exactly this value.
    pub fn field(name: &str, value: impl AsRef<[u8]>) -> Self {
        Match::Field([name.as_bytes(), b"=", value.as_ref()].concat())
    }

    /// The entry has the field `name` with one of these values.
    pub fn one_of<V: AsRef<[u8]>>(name: &str, values: impl IntoIterator<Item = V>) -> Self {
        Match::Any(values.into_iter().map(|value| Match::field(name, value)).collect())
    }

    /// Both this and `other` hold.
    pub fn and(self, other: Match) -> Self {
        Match::All(vec![self, other])
    }

    /// What `journalctl -u UNIT` shows (systemd 252): the unit's own lines, the manager's about it, crashes of it, and
    /// what authorised daemons say about it (journald's "Suppressed" among them). `unit` is a full name
    /// (`x.service`); it is compared literally.
    pub fn unit(unit: &str) -> Self {
        Match::Any(vec![
            Match::field("_SYSTEMD_UNIT", unit),
            Match::field("_PID", "1").and(Match::field("UNIT", unit)),
            Match::field("_UID", "0").and(Match::field("OBJECT_SYSTEMD_UNIT", unit)),
            Match::All(vec![
                Match::field("_UID", "0"),
                Match::field("MESSAGE_ID", COREDUMP),
                Match::field("COREDUMP_UNIT", unit),
            ]),
        ])
    }

    /// What `journalctl --user-unit UNIT` shows (systemd 252) for the user with this id.
    pub fn user_unit(unit: &str, uid: u32) -> Self {
        let uid = Match::field("_UID", uid.to_string());
        Match::Any(vec![
            uid.clone().and(Match::field("_SYSTEMD_USER_UNIT", unit)),
            uid.clone().and(Match::field("USER_UNIT", unit)),
            uid.and(Match::field("COREDUMP_USER_UNIT", unit)),
            Match::field("_UID", "0").and(Match::field("OBJECT_SYSTEMD_USER_UNIT", unit)),
        ])
    }

    /// The condition as arguments of `journalctl`, one for each `NAME=value` and a `+` between alternatives; `None` if it
    /// cannot be said so: journalctl takes several values of one field for alternatives.
    pub fn arguments(&self) -> Option<Vec<OsString>> {
        let mut arguments = Vec::new();
        for alternative in self.alternatives()? {
            let mut names: Vec<&[u8]> = Vec::new();
            if !arguments.is_empty() {
                arguments.push("+".into());
            }
            for payload in alternative {
                let name = &payload[..payload.iter().position(|byte| *byte == b'=')?];
                if names.contains(&name) {
                    return None;
                }
                names.push(name);
                arguments.push(OsString::from_vec(payload.to_vec()));
            }
        }
        Some(arguments)
    }

    /// The condition as alternatives of fields that hold together; `None` if one of them holds for every entry, or if
    /// they are too many.
    fn alternatives(&self) -> Option<Vec<Vec<&[u8]>>> {
        const MOST: usize = 256;
        match self {
            Match::Every => None,
            Match::Field(payload) => Some(vec![vec![payload]]),
            Match::Any(any) => {
                let parts = any.iter().map(Match::alternatives).collect::<Option<Vec<_>>>()?;
                let all: Vec<_> = parts.into_iter().flatten().collect();
                (1..=MOST).contains(&all.len()).then_some(all)
            }
            Match::All(all) => {
                let mut product: Vec<Vec<&[u8]>> = vec![Vec::new()];
                for part in all.iter().filter(|part| **part != Match::Every) {
                    let more = part.alternatives()?;
                    product = product
                        .iter()
                        .flat_map(|so_far| more.iter().map(|more| [so_far.as_slice(), more.as_slice()].concat()))
                        .take(MOST + 1)
                        .collect();
                }
                (product.len() <= MOST && product.iter().all(|fields| !fields.is_empty())).then_some(product)
            }
        }
    }

    /// Whether it holds for an entry of which `has` knows the fields.
    pub(crate) fn holds_for(&self, has: &impl Fn(&[u8]) -> bool) -> bool {
        match self {
            Match::Every => true,
            Match::Field(payload) => has(payload),
            Match::All(all) => all.iter().all(|part| part.holds_for(has)),
            Match::Any(any) => any.iter().any(|part| part.holds_for(has)),
        }
    }

    /// Warnings and worse: `PRIORITY` 0 to 4.
    pub fn warnings() -> Self {
        Match::one_of("PRIORITY", ["0", "1", "2", "3", "4"])
    }
}

/// In which order entries come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// From the oldest on.
    #[default]
    Forward,
    /// From the newest back.
    Backward,
}

/// Which entries, and in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Condition on the fields.
    pub matches: Match,
    /// Only entries of this boot.
    pub boot: Option<Id128>,
    /// Only entries from this time on: microseconds since 1970, inclusive. Found by bisection; where the clock was set
    /// back within one file, entries of the repeated time may be missed, as with `journalctl --since`.
    pub since: Option<u64>,
    /// Only entries up to this time: microseconds since 1970, inclusive.
    pub until: Option<u64>,
    /// The order.
    pub direction: Direction,
    /// Only entries after this one in the chosen order.
    pub after: Option<Cursor>,
}

impl From<Match> for Filter {
    fn from(matches: Match) -> Self {
        Self { matches, boot: None, since: None, until: None, direction: Direction::Forward, after: None }
    }
}

impl Default for Filter {
    /// Every entry, oldest first.
    fn default() -> Self {
        Match::Every.into()
    }
}

impl Filter {
    /// The condition with the boot, which is a field of every entry too.
    pub(crate) fn conditions(&self) -> Match {
        match self.boot {
            Some(boot) => Match::field("_BOOT_ID", boot.to_string()).and(self.matches.clone()),
            None => self.matches.clone(),
        }
    }
}

/// A condition resolved in one file: lists of entries that are walked together.
pub(crate) enum Walk {
    Every(Box<List>),
    /// The list of a value, and the place of the value.
    Value(Box<List>, u64),
    All(Vec<Walk>),
    Any(Vec<Branch>),
}

/// A side of a disjunction with the entry at which it stands.
pub(crate) struct Branch {
    walk: Walk,
    at: Option<Option<u64>>,
}

impl Walk {
    /// Resolves a condition. `None`: no entry of this file fulfils it.
    pub(crate) fn new(on: &mut Reading<'_>, matches: &Match) -> Option<Self> {
        match matches {
            Match::Every => Some(Walk::Every(Box::new(List::of_file(on)))),
            Match::Field(payload) => {
                let data = find(on, payload)?;
                Some(Walk::Value(Box::new(List::of_data(on, &data)), data.offset))
            }
            Match::All(all) => {
                let parts = all.iter().filter(|part| **part != Match::Every);
                let mut walks = parts.map(|part| Walk::new(on, part)).collect::<Option<Vec<_>>>()?;
                if walks.is_empty() {
                    return Walk::new(on, &Match::Every);
                }
                // The shortest list leads, so that the long ones are only asked about few places.
                walks.sort_by_key(Walk::length);
                Some(if walks.len() == 1 { walks.remove(0) } else { Walk::All(walks) })
            }
            Match::Any(any) => {
                let mut walks: Vec<_> = any.iter().filter_map(|part| Walk::new(on, part)).collect();
                match walks.len() {
                    0 => None,
                    1 => Some(walks.remove(0)),
                    _ => Some(Walk::Any(walks.into_iter().map(|walk| Branch { walk, at: None }).collect())),
                }
            }
        }
    }

    /// At most so many entries.
    fn length(&self) -> u64 {
        match self {
            Walk::Every(list) | Walk::Value(list, _) => list.len(),
            Walk::All(parts) => parts.iter().map(Walk::length).min().unwrap_or(0),
            Walk::Any(branches) => branches.iter().fold(0, |sum: u64, branch| sum.saturating_add(branch.walk.length())),
        }
    }

    /// First entry at `offset` or later. Offsets asked for must not decrease.
    pub(crate) fn at_or_after(&mut self, on: &mut Reading<'_>, offset: u64) -> Option<u64> {
        match self {
            Walk::Every(list) | Walk::Value(list, _) => list.at_or_after(on, offset),
            Walk::All(parts) => {
                let (first, rest) = parts.split_first_mut()?;
                let mut wanted = offset;
                'again: loop {
                    wanted = first.at_or_after(on, wanted)?;
                    for part in rest.iter_mut() {
                        let found = part.at_or_after(on, wanted)?;
                        if found != wanted {
                            wanted = found;
                            continue 'again;
                        }
                    }
                    return Some(wanted);
                }
            }
            Walk::Any(branches) => branches
                .iter_mut()
                .filter_map(|branch| {
                    if !matches!(branch.at, Some(None)) && !matches!(branch.at, Some(Some(at)) if at >= offset) {
                        branch.at = Some(branch.walk.at_or_after(on, offset));
                    }
                    branch.at.flatten()
                })
                .min(),
        }
    }

    /// Last entry at `offset` or earlier. Offsets asked for must not increase.
    pub(crate) fn at_or_before(&mut self, on: &mut Reading<'_>, offset: u64) -> Option<u64> {
        match self {
            Walk::Every(list) | Walk::Value(list, _) => list.at_or_before(on, offset),
            Walk::All(parts) => {
                let (first, rest) = parts.split_first_mut()?;
                let mut wanted = offset;
                'again: loop {
                    wanted = first.at_or_before(on, wanted)?;
                    for part in rest.iter_mut() {
                        let found = part.at_or_before(on, wanted)?;
                        if found != wanted {
                            wanted = found;
                            continue 'again;
                        }
                    }
                    return Some(wanted);
                }
            }
            Walk::Any(branches) => branches
                .iter_mut()
                .filter_map(|branch| {
                    if !matches!(branch.at, Some(None)) && !matches!(branch.at, Some(Some(at)) if at <= offset) {
                        branch.at = Some(branch.walk.at_or_before(on, offset));
                    }
                    branch.at.flatten()
                })
                .max(),
        }
    }

    /// Whether an entry with these values fulfils the condition: the list that led to it may be damaged.
    pub(crate) fn holds(&self, items: &[u64]) -> bool {
        match self {
            Walk::Every(_) => true,
            Walk::Value(_, data) => items.contains(data),
            Walk::All(parts) => parts.iter().all(|part| part.holds(items)),
            Walk::Any(branches) => branches.iter().any(|branch| branch.walk.holds(items)),
        }
    }

    /// Visits all slots of all lists, to meet damage of the lists themselves.
    pub(crate) fn check(&mut self, on: &mut Reading<'_>) {
        match self {
            Walk::Every(list) | Walk::Value(list, _) => list.check(on),
            Walk::All(parts) => parts.iter_mut().for_each(|part| part.check(on)),
            Walk::Any(branches) => branches.iter_mut().for_each(|branch| branch.walk.check(on)),
        }
    }
}

/// The value by the hash table or, when that is damaged, by the chain of its field's values.
///
/// For invocations the chain is asked whenever the table says no: a zeroed slot of the table looks like "no such value",
/// and a whole file without a line of this start must not go unnoticed.
pub(crate) fn find(on: &mut Reading<'_>, payload: &[u8]) -> Option<Data> {
    let equals = payload.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (&payload[..equals], &payload[equals + 1..]);
    if on.file.lacks(payload) {
        return None;
    }
    // Damage is told each time it is met.
    let mut sound = true;
    match on.file.find_data(on.buffers, payload) {
        Ok(Some(data)) => return Some(data),
        Ok(None) if !name.ends_with(b"INVOCATION_ID") => return None,
        Ok(None) => {}
        Err(fault) => {
            sound = false;
            on.fault(fault);
        }
    }
    let mut found = None;
    let mut left = SECOND_LOOK;
    let walked = on.file.values(on.buffers, name, |_, data, seen| {
        if seen == value {
            found = Some(*data);
        }
        left -= 1;
        found.is_none() && left > 0
    });
    if let Some(data) = found {
        on.fault(Fault::damaged(Part::HashChain, data.offset));
    } else if let Err(fault) = walked {
        if !on.file.is_open_ended() {
            on.fault(fault);
        }
    } else if sound && left > 0 {
        on.file.note_lack(payload);
    }
    found
}
