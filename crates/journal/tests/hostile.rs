//! Broken and forged journals: never a panic, never a hang, every loss told.

mod support;

use ascertain_journal::{Compression, Direction, Filter, Gap, Journal, Limits, Manager, Match, Part, Query, Reason};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use support::{ARCHIVED, Layout, OFFLINE, ONLINE, PLAIN, Random, Record, Writer, records};
use tempfile::TempDir;

/// Reads everything in every way and returns what could not be read and how many entries and fields could.
fn read_all(directory: &Path, invocation: &str) -> (Vec<Gap>, usize, usize) {
    let limits = Limits { value_bytes: 1 << 20, threads: 2, ..Limits::default() };
    let (journal, mut gaps) = Journal::open_with([directory], limits);
    let (mut entries, mut fields) = (0, 0);
    let mut all = journal.entries(&Filter::default());
    for entry in all.by_ref() {
        entries += 1;
        for field in entry.fields() {
            match field {
                Ok(_) => fields += 1,
                Err(gap) => gaps.push(gap),
            }
        }
    }
    gaps.extend(all.into_gaps());
    let backward = Filter { direction: Direction::Backward, since: Some(1), ..Match::unit("a.service").into() };
    let mut all = journal.entries(&backward);
    all.by_ref().for_each(drop);
    gaps.extend(all.into_gaps());
    gaps.extend(journal.boots().1);
    gaps.extend(journal.units().1);
    gaps.extend(journal.invocations("a.service").1);
    gaps.extend(journal.search(&Match::unit("b.service").into(), &Query::words(["line"]).expect("short")).gaps);
    let start = journal.start("a.service", Manager::System, invocation.parse().expect("an id"));
    gaps.extend(start.warnings(5).1);
    start.completeness(Some(1));
    (gaps, entries, fields)
}

fn small(layout: Layout) -> (Vec<u8>, String) {
    let written = records(11, 120, 1_700_000_000_000_000);
    let mut writer = Writer::new(layout, 4);
    writer.append_all(&written);
    let invocation = written[0].fields.iter().find(|(name, _)| name == "_SYSTEMD_INVOCATION_ID").expect("has one");
    (writer.finish(OFFLINE), String::from_utf8(invocation.1.clone()).expect("text"))
}

/// `ASCERTAIN_FUZZ_ROUNDS` makes it longer.
#[test]
fn random_damage_neither_panics_nor_hangs() {
    let rounds = std::env::var("ASCERTAIN_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(2000);
    let mut random = Random(0x5eed);
    let compressions = [None, Some(Compression::Xz), Some(Compression::Lz4), Some(Compression::Zstd)];
    let journals: Vec<_> = compressions
        .into_iter()
        .flat_map(|compression| {
            [(true, true), (false, false)].map(|(compact, keyed)| Layout { compact, keyed, compression })
        })
        .map(small)
        .collect();
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("system.journal");
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let (whole, invocation) = &journals[random.below(journals.len() as u64) as usize];
        let mut bytes = whole.clone();
        for _ in 0..random.below(12) + 1 {
            // Mostly where it hurts: the header, the hash tables' used slots and the objects' own headers.
            let at = match random.below(4) {
                0 => random.below(264),
                1 => random.below(bytes.len() as u64) / 8 * 8,
                _ => random.below(bytes.len() as u64),
            } as usize;
            match random.below(5) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = random.next() as u8,
                2 => {
                    let end = bytes.len().min(at + random.below(64) as usize);
                    bytes[at..end].fill([0, 0xff][random.below(2) as usize]);
                }
                3 => {
                    // Another offset of the same file: plausible, and good for loops.
                    let from = random.below(bytes.len() as u64 - 8) as usize / 8 * 8;
                    let copy: [u8; 8] = bytes[from..from + 8].try_into().expect("eight");
                    let to = at.min(bytes.len() - 8) / 8 * 8;
                    bytes[to..to + 8].copy_from_slice(&copy);
                }
                _ => {
                    let to = at.min(bytes.len() - 8) / 8 * 8;
                    bytes[to..to + 8].copy_from_slice(&(random.below(whole.len() as u64) / 8 * 8).to_le_bytes());
                }
            }
        }
        if random.below(6) == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        if random.below(4) == 0 && bytes.len() > 16 {
            bytes[16] = ONLINE;
        }
        fs::write(&path, &bytes).expect("written");
        let begun = Instant::now();
        read_all(directory.path(), invocation);
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(10), "round {round}: {took:?}");
        slowest = slowest.max(took);
    }
    eprintln!("{rounds} rounds, the slowest {slowest:?}");
}

#[test]
fn damage_of_one_place_is_told_or_harmless() {
    // Whatever eight bytes of an object are overwritten: all entries and fields come, or there is a gap.
    let (whole, invocation) = small(PLAIN);
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("system.journal");
    fs::write(&path, &whole).expect("written");
    let (gaps, entries, fields) = read_all(directory.path(), &invocation);
    assert_eq!(gaps, []);
    let mut random = Random(3);
    let first_object = 264 + 16 + 1021 * 16 + 16 + 67 * 16;
    for _ in 0..600 {
        let mut bytes = whole.clone();
        let at = (first_object + random.below(whole.len() as u64 - first_object - 8)) as usize / 8 * 8;
        bytes[at..at + 8].fill(0xff);
        fs::write(&path, &bytes).expect("written");
        let (gaps, some_entries, some_fields) = read_all(directory.path(), &invocation);
        assert!(!gaps.is_empty() || (some_entries, some_fields) == (entries, fields), "silent loss at {at}");
    }
}

#[test]
fn the_damages_that_journalctl_keeps_silent_about_are_told() {
    let written = records(2, 2000, 1_700_000_000_000_000);
    let mut writer = Writer::new(PLAIN, 9);
    writer.append_all(&written);
    let whole = writer.finish(ARCHIVED);
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("system.journal");
    let check = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        fs::write(&path, &bytes).expect("written");
        let (journal, mut gaps) = Journal::open([directory.path()]);
        let mut entries = journal.entries(&Filter::default());
        let mut count = 0;
        for entry in entries.by_ref() {
            count += 1;
            gaps.extend(entry.fields().filter_map(Result::err));
        }
        gaps.extend(entries.into_gaps());
        (count, gaps.into_iter().map(|gap| gap.reason).collect::<Vec<_>>())
    };
    let (count, gaps) = check(&|_| {});
    assert_eq!((count, gaps), (2000, vec![]));
    let (count, gaps) = check(&|bytes| bytes.truncate(bytes.len() / 2));
    assert!(count > 700, "what is intact is read: {count}");
    assert!(matches!(gaps[..], [Reason::Truncated { .. }, ..]), "{gaps:?}");
    let (count, gaps) = check(&|bytes| bytes.truncate(bytes.len() - 1));
    assert!(count >= 1999);
    assert!(matches!(gaps[..], [Reason::Truncated { .. }, ..]), "{gaps:?}");
    let (count, gaps) = check(&|bytes| {
        let middle = bytes.len() / 2 / 4096 * 4096;
        bytes[middle..middle + 4096].fill(0);
    });
    assert!(count > 1900 && !gaps.is_empty(), "{count} {gaps:?}");
    let (count, gaps) = check(&|bytes| bytes[..8].fill(0));
    assert_eq!((count, gaps), (0, vec![Reason::NotAJournal]));
    let (count, gaps) = check(&|bytes| bytes[16] = ONLINE);
    assert_eq!((count, gaps), (2000, vec![]));
    let (_, gaps) = check(&|bytes| {
        // One bit of a message.
        let at = bytes.windows(13).rposition(|part| part == b"MESSAGE=line ").expect("a message");
        bytes[at + 14] ^= 4;
    });
    assert_eq!(gaps, [Reason::Damaged(Part::Data)]);
    let (count, gaps) = check(&|bytes| bytes[12] |= 0x80);
    assert_eq!((count, gaps), (0, vec![Reason::UnknownFeatures(0x80)]));
}

/// The place of the list of all entries in the header, and their number.
const ALL_ENTRIES: usize = 176;
const ENTRY_COUNT: usize = 152;

/// All entries in one direction, and whether something was told.
fn walked(bytes: &[u8], direction: Direction) -> (usize, bool) {
    let directory = TempDir::new().expect("a directory");
    fs::write(directory.path().join("system.journal"), bytes).expect("written");
    let (journal, gaps) = Journal::open([directory.path()]);
    assert_eq!(gaps, []);
    let mut entries = journal.entries(&Filter { direction, ..Filter::default() });
    (entries.by_ref().count(), !entries.gaps().is_empty())
}

#[test]
fn entries_that_a_list_hides_are_told() {
    let (whole, _) = small(Layout { compact: false, keyed: true, compression: None });
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().expect("eight bytes"));
    let slots = number(ALL_ENTRIES) as usize + 24;
    for direction in [Direction::Forward, Direction::Backward] {
        assert_eq!(walked(&whole, direction), (120, false));
        // A number that is too small.
        let mut fewer = whole.clone();
        fewer[ENTRY_COUNT..ENTRY_COUNT + 8].copy_from_slice(&100_u64.to_le_bytes());
        assert_eq!(walked(&fewer, direction), (100, true));
        // A list that ends too early, also where a writer may be about to write.
        let mut cut = whole.clone();
        let first = number(ALL_ENTRIES) as usize;
        cut[first + 16..first + 24].fill(0);
        for state in [OFFLINE, ONLINE] {
            cut[16] = state;
            assert_eq!(walked(&cut, direction), (4, true), "state {state}");
        }
        // Two slots that changed places, one that is there twice.
        for (from, to, both) in [(0, 1, true), (1, 2, true), (0, 1, false), (2, 1, false)] {
            let (from, to) = (slots + from * 8, slots + to * 8);
            let mut changed = whole.clone();
            changed.copy_within(from..from + 8, to);
            if both {
                changed[from..from + 8].copy_from_slice(&whole[to..to + 8]);
            }
            let (count, told) = walked(&changed, direction);
            assert!(count < 120 && told, "{direction:?}: {count} of 120");
        }
    }
}

#[test]
fn lists_within_each_other_do_not_make_a_small_file_a_large_one() {
    // Thousands of lists, one every 24 bytes, each of which holds all that follow: some hundred million slots.
    let mut writer = Writer::new(Layout { compact: false, keyed: true, compression: None }, 4);
    writer.append_all(&records(11, 3, 1_700_000_000_000_000));
    let mut bytes = writer.finish(OFFLINE);
    let (first, lists) = (bytes.len(), 4096);
    let end = first + (lists + 1) * 24;
    for list in 0..lists {
        let at = first + list * 24;
        bytes.extend([6, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend((((end - at) / 8 * 8) as u64).to_le_bytes());
        bytes.extend(((at + 24) as u64).to_le_bytes());
    }
    bytes.resize(end, 0);
    bytes[ALL_ENTRIES..ALL_ENTRIES + 8].copy_from_slice(&(first as u64).to_le_bytes());
    bytes[ENTRY_COUNT..ENTRY_COUNT + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    let arena = (bytes.len() - 264) as u64;
    bytes[96..104].copy_from_slice(&arena.to_le_bytes());
    let begun = Instant::now();
    assert_eq!(walked(&bytes, Direction::Forward), (0, true));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn one_bad_file_does_not_cost_the_directory() {
    let directory = TempDir::new().expect("a directory");
    let (whole, _) = small(PLAIN);
    fs::write(directory.path().join("good.journal"), &whole).expect("written");
    fs::write(directory.path().join("cut.journal"), &whole[..whole.len() - 9]).expect("written");
    fs::write(directory.path().join("empty.journal"), []).expect("written");
    fs::write(directory.path().join("short.journal"), &whole[..100]).expect("written");
    fs::create_dir(directory.path().join("folder.journal")).expect("made");
    let (journal, gaps) = Journal::open([directory.path()]);
    assert_eq!(gaps.len(), 4, "{gaps:?}");
    assert_eq!(journal.entries(&Filter::default()).count(), 120);
}

#[test]
fn a_file_truncated_under_us_is_a_gap() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("system.journal");
    let mut writer = Writer::new(PLAIN, 9);
    writer.append_all(&records(2, 3000, 1_700_000_000_000_000));
    let whole = writer.finish(OFFLINE);
    fs::write(&path, &whole).expect("written");
    let (journal, _) = Journal::open([directory.path()]);
    let mut entries = journal.entries(&Filter::default());
    assert_eq!(entries.by_ref().take(100).count(), 100);
    fs::File::options().write(true).open(&path).expect("opened").set_len(whole.len() as u64 / 2).expect("cut");
    let rest = entries.by_ref().count();
    assert!(rest < 2900);
    assert!(entries.gaps().iter().any(|gap| matches!(gap.reason, Reason::Truncated { .. })), "{:?}", entries.gaps());
}

#[test]
fn small_values_that_would_fill_the_memory_do_not() {
    // LZ4 and XZ values that claim a terabyte, a Zstandard frame that does.
    let boot = "0123456789abcdef0123456789abcdef";
    for (flag, bomb) in [
        (2_u8, [(1_u64 << 40).to_le_bytes().to_vec(), vec![0x1f; 64]].concat()),
        (4, [vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0], (1_u64 << 40).to_le_bytes().to_vec(), vec![0; 60]].concat()),
        (1, [b"\xfd7zXZ\0\0\0\xff\x12\xd9\x41\x02\0\x21\x01\x28\0\0\0".to_vec(), vec![0xff; 60]].concat()),
    ] {
        let mut writer = Writer::new(PLAIN, 1);
        let text = "x".repeat(bomb.len() - 5);
        let record = Record::new(1_700_000_000_000_000, 5, boot, &[("BLOB", &text), ("MESSAGE", "small")]);
        let blob = writer.data("BLOB", text.as_bytes()) as usize;
        writer.append(&record);
        let mut bytes = writer.finish(OFFLINE);
        bytes[blob + 1] = flag;
        bytes[blob + 72..blob + 72 + bomb.len()].copy_from_slice(&bomb);
        bytes[12] |= 0b1011;
        let directory = TempDir::new().expect("a directory");
        fs::write(directory.path().join("system.journal"), &bytes).expect("written");
        let (journal, _) = Journal::open([directory.path()]);
        let entry = journal.entries(&Filter::default()).next().expect("an entry");
        let gap = entry.get("BLOB").expect_err("not readable");
        assert!(matches!(gap.reason, Reason::TooLarge { .. } | Reason::NotDecompressed(_)), "{gap}");
        assert_eq!(entry.message().expect("readable"), b"small");
    }
}
