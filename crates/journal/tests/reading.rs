//! Journals of every layout, read back: entries, order, filters, index, search.

mod support;

use ascertain_journal::{Compression, Cursor, Direction, Entry, Filter, Journal, Limits, Match, Query, Reason};
use std::fs;
use support::{ARCHIVED, Layout, OFFLINE, PLAIN, Random, Record, Writer, records};
use tempfile::TempDir;

fn layouts() -> Vec<Layout> {
    let compressions = [None, Some(Compression::Xz), Some(Compression::Lz4), Some(Compression::Zstd)];
    let flags = [(false, false), (false, true), (true, false), (true, true)];
    compressions
        .into_iter()
        .flat_map(|compression| flags.map(|(compact, keyed)| Layout { compact, keyed, compression }))
        .collect()
}

fn write(directory: &TempDir, name: &str, layout: Layout, records: &[Record]) {
    let mut writer = Writer::new(layout, name.len() as u64 * 77 + u64::from(name.as_bytes()[0]));
    writer.append_all(records);
    fs::write(directory.path().join(name), writer.finish(OFFLINE)).expect("written");
}

fn open(directory: &TempDir) -> Journal {
    let (journal, gaps) = Journal::open([directory.path()]);
    assert_eq!(gaps, []);
    journal
}

fn fields(entry: &Entry) -> Vec<(String, Vec<u8>)> {
    let mut fields: Vec<_> = entry
        .fields()
        .map(|field| field.expect("a readable field"))
        .map(|field| (String::from_utf8_lossy(field.name()).into_owned(), field.value().to_vec()))
        .collect();
    fields.sort();
    fields
}

#[test]
fn every_layout_gives_back_what_was_written() {
    let written = records(5, 400, 1_700_000_000_000_000);
    for layout in layouts() {
        let directory = TempDir::new().expect("a directory");
        write(&directory, "system.journal", layout, &written);
        let journal = open(&directory);
        let mut entries = journal.entries(&Filter::default());
        for record in &written {
            let entry = entries.next().expect("an entry");
            assert_eq!((entry.realtime(), entry.monotonic()), (record.realtime, record.monotonic));
            assert_eq!(entry.boot_id().to_string(), record.boot);
            let mut expected = record.fields.clone();
            expected.sort();
            expected.dedup();
            assert_eq!(fields(&entry), expected);
            let message = record.fields.iter().find(|(name, _)| name == "MESSAGE");
            let messages = entry.all("MESSAGE").expect("readable");
            assert_eq!(messages.is_empty(), message.is_none());
        }
        assert!(entries.next().is_none());
        assert_eq!(entries.gaps(), []);
    }
}

fn holds(condition: &Match, record: &Record) -> bool {
    match condition {
        Match::Every => true,
        Match::Field(payload) => {
            record.fields.iter().any(|(name, value)| [name.as_bytes(), b"=", value.as_slice()].concat() == *payload)
        }
        Match::All(all) => all.iter().all(|part| holds(part, record)),
        Match::Any(any) => any.iter().any(|part| holds(part, record)),
    }
}

fn condition(random: &mut Random, depth: u32) -> Match {
    let parts = |random: &mut Random| {
        let count = random.below(4);
        (0..count).map(|_| condition(random, depth - 1)).collect::<Vec<_>>()
    };
    match random.below(if depth == 0 { 5 } else { 9 }) {
        0 => Match::field("_SYSTEMD_UNIT", ["a.service", "b.service", "none.service"][random.below(3) as usize]),
        1 => Match::field("PRIORITY", random.below(8).to_string()),
        2 => Match::field("_PID", random.below(60).to_string()),
        3 => Match::field("MESSAGE", "same again"),
        4 => {
            if random.below(4) == 0 {
                Match::Every
            } else {
                Match::field("EMPTY", "")
            }
        }
        5 | 6 => Match::All(parts(random)),
        _ => Match::Any(parts(random)),
    }
}

#[test]
fn filters_find_by_index_what_a_scan_finds() {
    let mut random = Random(99);
    let start = 1_700_000_000_000_000;
    for layout in [PLAIN, Layout { compact: false, keyed: false, compression: Some(Compression::Zstd) }] {
        let directory = TempDir::new().expect("a directory");
        // Two files of one source whose entries alternate, and one of times all its own.
        let all = records(3, 900, start);
        for (name, part) in [("system.journal", 0), ("user-1000.journal", 1)] {
            let mut writer = Writer::new(layout, part + 1);
            for (i, record) in all.iter().enumerate().filter(|(i, _)| *i as u64 % 2 == part) {
                writer.seqnum = i as u64;
                writer.append(record);
            }
            fs::write(directory.path().join(name), writer.finish(OFFLINE)).expect("written");
        }
        let journal = open(&directory);
        for _ in 0..400 {
            let matches = condition(&mut random, 3);
            let (since, until) = (start + random.below(900_000), start + random.below(900_000));
            let mut filter = Filter { matches, ..Filter::default() };
            if random.below(2) == 0 {
                filter.since = Some(since);
            }
            if random.below(2) == 0 {
                filter.until = Some(until);
            }
            if random.below(4) == 0 {
                filter.boot = Some(all[450].boot.parse().expect("an id"));
            }
            let mut expected: Vec<_> = all
                .iter()
                .filter(|record| holds(&filter.matches, record))
                .filter(|record| record.realtime >= filter.since.unwrap_or(0))
                .filter(|record| record.realtime <= filter.until.unwrap_or(u64::MAX))
                .filter(|record| filter.boot.is_none_or(|boot| boot.to_string() == record.boot))
                .map(|record| record.realtime)
                .collect();
            let forward: Vec<_> = journal.entries(&filter).collect();
            assert_eq!(forward.iter().map(Entry::realtime).collect::<Vec<_>>(), expected, "{filter:?}");
            filter.direction = Direction::Backward;
            let backward: Vec<_> = journal.entries(&filter).map(|entry| entry.realtime()).collect();
            expected.reverse();
            assert_eq!(backward, expected, "{filter:?}");
            if !forward.is_empty() {
                let at = random.below(forward.len() as u64) as usize;
                let cursor: Cursor = forward[at].cursor().to_string().parse().expect("a cursor");
                filter.after = Some(cursor);
                assert_eq!(journal.entries(&filter).count(), at);
                filter.direction = Direction::Forward;
                assert_eq!(journal.entries(&filter).count(), forward.len() - at - 1);
            }
        }
    }
}

#[test]
fn an_entry_that_is_in_two_files_comes_once() {
    let directory = TempDir::new().expect("a directory");
    let written = records(8, 50, 1_700_000_000_000_000);
    write(&directory, "system.journal", PLAIN, &written);
    fs::copy(directory.path().join("system.journal"), directory.path().join("copy.journal")).expect("copied");
    let journal = open(&directory);
    assert_eq!(journal.entries(&Filter::default()).count(), 50);
    let backward = Filter { direction: Direction::Backward, ..Filter::default() };
    assert_eq!(journal.entries(&backward).count(), 50);
    let found = journal.search(&Filter::default(), &Query::by(|_| true));
    assert_eq!(found.hits.len(), journal.search(&Filter::default(), &Query::words([""]).expect("short")).hits.len());
    let messages = written.iter().flat_map(|record| &record.fields).filter(|(name, _)| name == "MESSAGE").count();
    assert_eq!(found.hits.len(), messages);
}

#[test]
fn what_journald_copied_from_the_volatile_to_the_persistent_journal_comes_once() {
    let directory = TempDir::new().expect("a directory");
    let written = records(8, 90, 1_700_000_000_000_000);
    let mut volatile = Writer::new(PLAIN, 1);
    volatile.append_all(&written[..30]);
    // The persistent journal has numbers of its own.
    let mut persistent = Writer::new(PLAIN, 2);
    persistent.seqnum_id = [9; 16];
    persistent.seqnum = 4000;
    persistent.append_all(&written);
    for (name, bytes) in [("run.journal", volatile.finish(OFFLINE)), ("var.journal", persistent.finish(OFFLINE))] {
        fs::write(directory.path().join(name), bytes).expect("written");
    }
    let journal = open(&directory);
    let times = |filter: &Filter| journal.entries(filter).map(|entry| entry.realtime()).collect::<Vec<_>>();
    let mut all: Vec<_> = written.iter().map(|record| record.realtime).collect();
    assert_eq!(times(&Filter::default()), all);
    assert_eq!(journal.search(&Filter::default(), &Query::by(|_| true)).examined, 120, "each file is searched");
    let messages = written.iter().flat_map(|record| &record.fields).filter(|(name, _)| name == "MESSAGE").count();
    assert_eq!(journal.search(&Filter::default(), &Query::by(|_| true)).hits.len(), messages);
    all.reverse();
    assert_eq!(times(&Filter { direction: Direction::Backward, ..Filter::default() }), all);
}

#[test]
fn files_are_found_where_journald_puts_them() {
    let directory = TempDir::new().expect("a directory");
    let machine = directory.path().join("3d1219c7c4c5404aaa1f6d2a48adfda4");
    let namespace = directory.path().join("3d1219c7c4c5404aaa1f6d2a48adfda4.llm");
    let other = directory.path().join("other");
    for (i, (folder, name)) in [
        (&machine, "system.journal"),
        (&machine, "system@0005f0a5b1c2d3e4-0123456789abcdef.journal~"),
        (&namespace, "system.journal"),
        (&other, "system.journal"),
        (&machine, "notes.txt"),
    ]
    .into_iter()
    .enumerate()
    {
        fs::create_dir_all(folder).expect("made");
        let mut writer = Writer::new(PLAIN, 50 + i as u64);
        writer.seqnum = i as u64 * 100;
        writer.append_all(&records(i as u64 + 1, 10, 1_700_000_000_000_000 + i as u64));
        fs::write(folder.join(name), writer.finish(ARCHIVED)).expect("written");
    }
    let journal = open(&directory);
    assert_eq!(journal.files().count(), 3);
    assert_eq!(journal.entries(&Filter::default()).count(), 30);
    let (_, gaps) = Journal::open([directory.path().join("nowhere")]);
    assert_eq!(gaps[0].reason, Reason::NotFound);
}

#[test]
fn the_index_says_what_the_entries_say() {
    let directory = TempDir::new().expect("a directory");
    let written = records(21, 600, 1_700_000_000_000_000);
    for layout in [PLAIN, Layout { compact: false, ..PLAIN }] {
        write(&directory, "system.journal", layout, &written);
        let journal = open(&directory);
        let (boots, gaps) = journal.boots();
        assert_eq!(gaps, []);
        assert_eq!(boots.iter().map(|boot| boot.entries).collect::<Vec<_>>(), [200, 200, 200]);
        assert_eq!((boots[0].first, boots[2].last), (written[0].realtime, written[599].realtime));
        let (units, _) = journal.units();
        assert_eq!(
            units.iter().map(|unit| unit.name.as_str()).collect::<Vec<_>>(),
            ["a.service", "b.service", "c@x.service"]
        );
        assert_eq!(units.iter().map(|unit| unit.entries).sum::<u64>(), 600);
        let (invocations, _) = journal.invocations("b.service");
        let of_b = |record: &&Record| holds(&Match::field("_SYSTEMD_UNIT", "b.service"), record);
        let own = invocations.iter().filter(|invocation| invocation.own > 0).collect::<Vec<_>>();
        assert_eq!(own.len(), 2);
        assert_eq!(
            own.iter().map(|invocation| invocation.own).sum::<u64>() as usize,
            written.iter().filter(of_b).count()
        );
        assert_eq!(own[1].last, written.iter().rfind(of_b).expect("one").realtime);
    }
}

#[test]
fn a_search_finds_what_a_scan_finds_with_any_number_of_threads_and_little_memory() {
    let directory = TempDir::new().expect("a directory");
    let start = 1_700_000_000_000_000;
    for (i, name) in ["a.journal", "b.journal"].into_iter().enumerate() {
        write(
            &directory,
            name,
            Layout { compression: Some(Compression::Zstd), ..PLAIN },
            &records(i as u64 + 40, 700, start),
        );
    }
    let filter: Filter = Match::unit("a.service").into();
    let words = ["LINES", "Word WORD"];
    let wanted = |message: &[u8]| {
        let lower = message.to_ascii_lowercase();
        words.iter().any(|word| lower.windows(word.len()).any(|part| part == word.to_ascii_lowercase().as_bytes()))
    };
    let (journal, _) = Journal::open([directory.path()]);
    let expected: Vec<_> = journal
        .entries(&filter)
        .filter(|entry| entry.all("MESSAGE").expect("readable").iter().any(|message| wanted(message)))
        .map(|entry| entry.cursor())
        .collect();
    assert!(expected.len() > 50);
    let pattern = |message: &[u8]| {
        let lower = message.to_ascii_lowercase();
        lower.windows(8).any(|part| part.starts_with(b"lines 1") && part[7].is_ascii_digit())
    };
    for (threads, kept_bytes) in [(1, u64::MAX), (2, 1000), (5, 0)] {
        let limits = Limits { threads, kept_bytes, ..Limits::default() };
        let (journal, _) = Journal::open_with([directory.path()], limits);
        let found = journal.search(&filter, &Query::words(words).expect("short"));
        assert_eq!(found.gaps, []);
        assert_eq!(found.hits.iter().map(|hit| hit.entry.cursor()).collect::<Vec<_>>(), expected);
        assert!(found.hits.iter().all(|hit| wanted(&hit.message().expect("readable"))));
        assert_eq!(found.examined as usize, journal.entries(&filter).count());
        let query = Query::words(["lines"]).expect("short").confirmed_by(|message| pattern(message));
        let both = journal.search(&filter, &query).hits.len();
        assert_eq!(both, journal.search(&filter, &Query::by(|message| pattern(message))).hits.len());
        assert!(both > 0 && both < expected.len());
    }
    let (journal, _) = Journal::open_with([directory.path()], Limits { hits: 10, ..Limits::default() });
    let found = journal.search(&filter, &Query::words(words).expect("short"));
    assert_eq!((found.hits.len(), found.not_listed as usize), (10, expected.len() - 10));
}

#[test]
fn a_value_over_the_limit_is_a_gap_and_the_rest_is_read() {
    for compression in [None, Some(Compression::Xz), Some(Compression::Lz4), Some(Compression::Zstd)] {
        let directory = TempDir::new().expect("a directory");
        let boot = "0123456789abcdef0123456789abcdef";
        let large = "x".repeat(100_000);
        let record = Record::new(1_700_000_000_000_000, 5, boot, &[("MESSAGE", "small"), ("BLOB", &large)]);
        write(&directory, "system.journal", Layout { compression, ..PLAIN }, &[record]);
        let limits = Limits { value_bytes: 10_000, ..Limits::default() };
        let (journal, _) = Journal::open_with([directory.path()], limits);
        let entry = journal.entries(&Filter::default()).next().expect("an entry");
        assert_eq!(entry.message().expect("readable"), b"small");
        let gap = entry.get("BLOB").expect_err("too large");
        assert!(matches!(gap.reason, Reason::TooLarge { limit: 10_000, .. }), "{compression:?}: {gap}");
    }
}
