//! A journal file that anyone may have damaged or forged.

use super::zeros;
use ascertain_journal::{
    Completeness, Direction, Entry, FileInfo, Filter, Gap, Id128, Journal, Limits, Manager, Match, Query, State,
};
use std::collections::BTreeSet;
use std::fs;
use tempfile::TempDir;

pub(super) const WORDS: &[&[u8]] = &[];

const UNIT: &str = "a.service";
/// An entry's own header: no two entries can lie closer.
const ENTRY_HEADER: u64 = 64;
/// Different starts that are looked at.
const MOST_STARTS: usize = 4;

thread_local! {
    static FOLDER: TempDir = TempDir::new().expect("a folder for the journal file");
}

/// Reads these bytes, packed or not, as a journal file in every way there is.
///
/// What is found lies in the file, forwards is backwards, the index leads to what reading everything finds, and a start
/// that is called complete is: each loss is told.
pub fn journal(bytes: &[u8]) {
    let unpacked = zeros::unpack(bytes);
    let bytes = unpacked.as_deref().unwrap_or(bytes);
    FOLDER.with(|folder| {
        let path = folder.path().join("system.journal");
        fs::write(&path, bytes).expect("the journal file is written");
        read(folder, bytes.len() as u64);
    });
}

fn read(folder: &TempDir, length: u64) {
    let limits = Limits { value_bytes: 1 << 20, files: 4, kept_bytes: 1 << 10, hits: 100, threads: 1 };
    let (mut journal, gaps) = Journal::open_with([folder.path()], limits.clone());
    check_gaps(&gaps, length);
    assert_eq!(journal.files().count() + gaps.iter().filter(|gap| gap.offset.is_none()).count(), {
        // A truncated file is opened and a gap.
        1 + journal.files().filter(|file| file.is_truncated()).count()
    });
    let all = All::read(&journal, length);
    backwards(&journal, &all, length);
    windows(&journal, &all);
    index(&journal, &all, length);
    search(&journal, &all, &limits, length);
    starts(&journal, &all, length);
    let again = journal.refresh();
    assert_eq!(gaps, again, "opened twice");
}

/// What reading every entry finds.
struct All {
    entries: Vec<Entry>,
    /// `NAME=value` of each.
    fields: Vec<BTreeSet<Vec<u8>>>,
    /// Nothing was lost on the way, as far as that was told.
    whole: bool,
}

impl All {
    fn read(journal: &Journal, length: u64) -> All {
        let mut forward = journal.entries(&Filter::default());
        let mut all = All { entries: Vec::new(), fields: Vec::new(), whole: true };
        for entry in forward.by_ref() {
            assert!(entry.offset().is_multiple_of(8) && entry.offset() + ENTRY_HEADER <= length, "{entry:?}");
            let last = all.entries.last().map_or(0, Entry::offset);
            assert!(entry.offset() > last, "{entry:?} after {last}");
            assert_eq!(entry.cursor().to_string().parse(), Ok(entry.cursor()));
            let (read, whole) = fields(&entry, length);
            all.whole &= whole;
            all.fields.push(read);
            all.entries.push(entry);
        }
        let gaps = forward.into_gaps();
        check_gaps(&gaps, length);
        // What is being written may end anywhere, and a header that says that there is nothing is believed.
        let may_lack = |file: &FileInfo| file.is_truncated() || file.state == State::Online || file.entries == 0;
        all.whole &= gaps.is_empty() && !journal.files().any(may_lack);
        all
    }

    /// Places of the entries that have one of these fields.
    fn with(&self, accept: impl Fn(&BTreeSet<Vec<u8>>) -> bool) -> Vec<u64> {
        let both = self.entries.iter().zip(&self.fields);
        both.filter(|(_, fields)| accept(fields)).map(|(entry, _)| entry.offset()).collect()
    }
}

fn fields(entry: &Entry, length: u64) -> (BTreeSet<Vec<u8>>, bool) {
    let mut read = BTreeSet::new();
    let mut messages = Vec::new();
    let mut whole = true;
    for field in entry.fields() {
        match field {
            Ok(field) => {
                let mut payload = field.name().to_vec();
                payload.push(b'=');
                payload.extend(field.value());
                if field.name() == b"MESSAGE" {
                    messages.push(field.value().to_vec());
                }
                read.insert(payload);
            }
            Err(gap) => {
                check_gaps(&[gap], length);
                whole = false;
            }
        }
    }
    match entry.all("MESSAGE") {
        // A value without `=` is no field of any name.
        Ok(all) => assert!(!whole || all.iter().all(|value| messages.contains(value)), "{entry:?}"),
        Err(gap) => assert!(!whole, "{gap}"),
    }
    (read, whole)
}

fn backwards(journal: &Journal, all: &All, length: u64) {
    let filter = Filter { direction: Direction::Backward, ..Filter::default() };
    let mut entries = journal.entries(&filter);
    let mut places: Vec<u64> = entries.by_ref().map(|entry| entry.offset()).collect();
    let gaps = entries.into_gaps();
    check_gaps(&gaps, length);
    assert!(places.is_sorted_by(|one, two| one > two), "backwards: {places:?}");
    places.reverse();
    if all.whole && gaps.is_empty() {
        assert_eq!(places, all.with(|_| true), "forwards is not backwards, and nothing is told");
    }
}

fn windows(journal: &Journal, all: &All) {
    let Some(middle) = all.entries.get(all.entries.len() / 2) else { return };
    let (at, cursor) = (middle.realtime(), middle.cursor());
    for entry in journal.entries(&Filter { since: Some(at), ..Filter::default() }) {
        assert!(entry.realtime() >= at);
    }
    for entry in journal.entries(&Filter { until: Some(at), ..Filter::default() }) {
        assert!(entry.realtime() <= at);
    }
    for direction in [Direction::Forward, Direction::Backward] {
        let filter = Filter { after: Some(cursor), direction, ..Filter::default() };
        if let Some(entry) = journal.entries(&filter).next() {
            let order = entry.cursor().order(&cursor);
            assert!(if direction == Direction::Forward { order.is_gt() } else { order.is_lt() }, "{entry:?}");
        }
    }
}

/// What the index says is what is there.
fn index(journal: &Journal, all: &All, length: u64) {
    let (boots, gaps) = journal.boots();
    check_gaps(&gaps, length);
    let (units, met) = journal.units();
    check_gaps(&met, length);
    check_gaps(&journal.user_units().1, length);
    let fields = boots
        .iter()
        .map(|boot| ("_BOOT_ID", boot.id.to_string()))
        .chain(units.iter().map(|unit| ("_SYSTEMD_UNIT", unit.name.clone())));
    for (name, value) in fields.take(8) {
        let condition = Match::field(name, &value);
        let Match::Field(payload) = &condition else { return };
        let mut entries = journal.entries(&condition.clone().into());
        let found: Vec<u64> = entries.by_ref().map(|entry| entry.offset()).collect();
        if all.whole && entries.into_gaps().is_empty() {
            let there = all.with(|fields| fields.contains(payload));
            assert!(found.iter().all(|place| there.contains(place)), "{name}={value}: {found:?} of {there:?}");
        }
    }
}

fn search(journal: &Journal, all: &All, limits: &Limits, length: u64) {
    let query = Query::words(["LINE", "loaded"]).expect("short words");
    let found = journal.search(&Filter::default(), &query);
    check_gaps(&found.gaps, length);
    assert!(found.hits.len() <= limits.hits);
    for hit in &found.hits {
        if let Ok(message) = hit.message() {
            let lower = message.to_ascii_lowercase();
            let has = |word: &[u8]| lower.windows(word.len()).any(|part| part == word);
            assert!(has(b"line") || has(b"loaded"), "{:?}", hit.entry);
        }
    }
    if all.whole && found.gaps.is_empty() {
        assert_eq!(found.examined, all.entries.len() as u64, "searched");
    }
}

fn starts(journal: &Journal, all: &All, length: u64) {
    let (invocations, gaps) = journal.invocations(UNIT);
    check_gaps(&gaps, length);
    let mut ids: Vec<Id128> = invocations.iter().map(|invocation| invocation.id).collect();
    ids.truncate(MOST_STARTS - 1);
    ids.push("11111111111111111111111111111111".parse().expect("an id"));
    for (number, id) in ids.into_iter().enumerate() {
        let manager = if number == 0 { Manager::User(0) } else { Manager::System };
        for manager in [Manager::System, manager] {
            let start = journal.start(UNIT, manager, id);
            let mut entries = start.entries();
            let begun = entries.next();
            let found: Vec<u64> =
                begun.iter().map(Entry::offset).chain(entries.by_ref().map(|entry| entry.offset())).collect();
            let gaps = entries.into_gaps();
            check_gaps(&gaps, length);
            let (newest, _) = start.newest(3);
            assert!(newest.len() <= 3 && newest.is_sorted_by_key(Entry::offset));
            let (warnings, _) = start.warnings(3);
            assert!(warnings.len() <= 6);
            let head = start.head_until(2, |entry| entry.message().is_ok_and(|text| text.starts_with(b"line")));
            assert!(head.entries.len() <= 2);
            let completeness = start.completeness(begun.map(|entry| entry.realtime()));
            for flaw in &completeness.flaws {
                assert!(flaw.to_string().len() < 1 << 12);
            }
            if gaps.is_empty() && completeness.is_complete() {
                complete(all, &found, id, &completeness);
            }
        }
    }
}

/// What is called complete holds all lines of the start's own processes that reading everything finds.
fn complete(all: &All, found: &[u64], id: Id128, completeness: &Completeness) {
    let own = format!("_SYSTEMD_INVOCATION_ID={id}").into_bytes();
    let (first, _) = completeness.span.expect("a complete start has lines");
    // Another start's line of which a part was damaged so that it looks like one of this start is no line that was lost:
    // it is of another unit or boot, or the copy of a line that is there.
    let unit = format!("_SYSTEMD_UNIT={UNIT}").into_bytes();
    let boot = format!("_BOOT_ID={}", first.boot_id).into_bytes();
    let known: Vec<u64> =
        all.entries.iter().filter(|entry| found.contains(&entry.offset())).map(Entry::seqnum).collect();
    let both = all.entries.iter().zip(&all.fields);
    let there: Vec<u64> = both
        .filter(|(entry, fields)| {
            let is_copy = known.contains(&entry.seqnum()) && !found.contains(&entry.offset());
            let is_of_start = [&own, &unit, &boot].into_iter().all(|field| fields.contains(field));
            is_of_start && entry.boot_id() == first.boot_id && !is_copy
        })
        .map(|(entry, _)| entry.offset())
        .collect();
    // Where the hash table and the chain of the field are both cut, nothing leads to the value any more, and that looks
    // like a file without a line of this start.
    if !there.iter().any(|place| found.contains(place)) {
        return;
    }
    for place in there {
        assert!(found.contains(&place), "{place} is a line of {id}, which is called complete: {completeness:?}");
    }
    assert!(completeness.span.is_some_and(|(first, last)| first.seqnum_id == last.seqnum_id));
}

fn check_gaps(gaps: &[Gap], length: u64) {
    // Equal reasons are counted together, so that a ruined file costs few lines.
    assert!(gaps.len() < 1 << 10, "{} gaps of {length} bytes", gaps.len());
    for gap in gaps {
        assert!(gap.to_string().len() < 1 << 12);
    }
}
