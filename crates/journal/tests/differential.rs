//! The same answers as the real `journalctl`, over journals that the real writers and ours wrote.

mod support;

use ascertain_journal::{Compression, Direction, Entry, Filter, Journal, Match};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Exported, Layout, OFFLINE, Writer, has_systemd_tools, journal_remote, journalctl, records};
use tempfile::TempDir;

fn export(entry: &Entry) -> Exported {
    let mut fields = vec![
        (b"__CURSOR".to_vec(), entry.cursor().to_string().into_bytes()),
        (b"__REALTIME_TIMESTAMP".to_vec(), entry.realtime().to_string().into_bytes()),
        (b"__MONOTONIC_TIMESTAMP".to_vec(), entry.monotonic().to_string().into_bytes()),
        (b"_BOOT_ID".to_vec(), entry.boot_id().to_string().into_bytes()),
    ];
    let stored = entry.fields().map(|field| field.expect("readable"));
    fields.extend(stored.map(|f| (f.name().to_vec(), f.value().to_vec())).filter(|(name, _)| name != b"_BOOT_ID"));
    fields
}

fn compare(directory: &Path, name: &str, arguments: &[&str], filter: &Filter) -> usize {
    let (journal, gaps) = Journal::open([directory]);
    assert_eq!(gaps, []);
    let mut entries = journal.entries(filter);
    let ours: Vec<_> = entries.by_ref().map(|entry| export(&entry)).collect();
    assert_eq!(entries.gaps(), []);
    let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let theirs = journalctl(directory, &arguments);
    assert_eq!(ours.len(), theirs.len(), "{name} {arguments:?}");
    for (i, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "{name} {arguments:?}, entry {i}");
    }
    ours.len()
}

fn compare_in_many_ways(directory: &Path, name: &str) {
    let every = Filter::default();
    assert_eq!(compare(directory, name, &[], &every), 3000);
    compare(directory, name, &["-r"], &Filter { direction: Direction::Backward, ..every.clone() });
    assert!(compare(directory, name, &["-u", "a.service"], &Match::unit("a.service").into()) > 900);
    let b = Match::field("_SYSTEMD_UNIT", "b.service");
    let two = b.clone().and(Match::one_of("PRIORITY", ["3", "4"]));
    assert!(compare(directory, name, &["_SYSTEMD_UNIT=b.service", "PRIORITY=4", "PRIORITY=3"], &two.into()) > 100);
    let since = Filter { since: Some(1_795_000_001_000_000), until: Some(1_795_000_002_000_000), ..b.into() };
    let times = ["--since", "@1795000001", "--until", "@1795000002"];
    compare(directory, name, &[&times[..], &["_SYSTEMD_UNIT=b.service"]].concat(), &since);
    let (journal, _) = Journal::open([directory]);
    let middle = journal.entries(&every).nth(1234).expect("so many").cursor();
    let boot = middle.boot_id;
    compare(directory, name, &["-b", &boot.to_string()], &Filter { boot: Some(boot), ..every.clone() });
    let cursor = format!("--after-cursor={middle}");
    assert_eq!(compare(directory, name, &[&cursor], &Filter { after: Some(middle), ..every.clone() }), 3000 - 1235);
    let backward = Filter { after: Some(middle), direction: Direction::Backward, ..every };
    assert_eq!(compare(directory, name, &[&cursor, "-r"], &backward), 1234);
}

#[test]
fn journals_of_systemd_journal_remote_in_every_format_it_writes() {
    if !has_systemd_tools() {
        return;
    }
    let (compact, keyed) = (("SYSTEMD_JOURNAL_COMPACT", "0"), ("SYSTEMD_JOURNAL_KEYED_HASH", "0"));
    for (name, options, environment) in [
        ("default", &[][..], &[][..]),
        ("not compact", &[], &[compact]),
        ("not keyed", &[], &[keyed]),
        ("oldest", &[], &[compact, keyed]),
        ("not compressed", &["--compress=no"], &[]),
    ] {
        let directory = TempDir::new().expect("a directory");
        for file in 1..=3_u64 {
            let path = directory.path().join(format!("file{file}.journal"));
            journal_remote(&records(file, 1000, 1_795_000_000_000_000 + file * 500_000), &path, options, environment);
        }
        compare_in_many_ways(directory.path(), name);
    }
}

#[test]
fn journals_of_our_own_writer_in_formats_of_older_systemds() {
    if !has_systemd_tools() {
        return;
    }
    for compression in [None, Some(Compression::Xz), Some(Compression::Lz4), Some(Compression::Zstd)] {
        for (compact, keyed) in [(false, false), (false, true), (true, true)] {
            let directory = TempDir::new().expect("a directory");
            for file in 1..=3_u64 {
                let mut writer = Writer::new(Layout { compact, keyed, compression }, file);
                // One source of sequence numbers, in turns.
                for (i, record) in records(77, 3000, 1_795_000_000_000_000).iter().enumerate() {
                    if (i as u64 / 100) % 3 == file - 1 {
                        writer.seqnum = i as u64;
                        writer.append(record);
                    }
                }
                fs::write(directory.path().join(format!("file{file}.journal")), writer.finish(OFFLINE))
                    .expect("written");
            }
            compare_in_many_ways(directory.path(), &format!("{compression:?} {compact} {keyed}"));
        }
    }
}

#[test]
fn a_file_that_grows_while_it_is_read() {
    if !has_systemd_tools() {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("remote.journal");
    let all = records(123, 12_000, 1_795_000_000_000_000);
    let mut child = Command::new(support::JOURNAL_REMOTE)
        .arg("-o")
        .arg(&path)
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("systemd-journal-remote starts");
    let mut input = child.stdin.take().expect("its input");
    let writing = std::thread::spawn({
        let all = all.clone();
        move || {
            for part in all.chunks(100) {
                let mut export = Vec::new();
                part.iter().for_each(|record| record.export(&mut export));
                input.write_all(&export).expect("is taken");
                std::thread::sleep(Duration::from_millis(3));
            }
        }
    });
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (mut journal, mut gaps) = Journal::open([directory.path()]);
    let mut seen = Vec::new();
    let mut last = None;
    let mut rounds = 0;
    let begun = Instant::now();
    while seen.len() < all.len() && begun.elapsed() < Duration::from_secs(60) {
        // Some rounds go on with the files as they were opened, some look anew.
        if rounds % 3 != 0 {
            gaps.extend(journal.refresh());
        }
        rounds += 1;
        let mut entries = journal.entries(&Filter { after: last, ..Filter::default() });
        for entry in entries.by_ref() {
            seen.push(entry.realtime());
            last = Some(entry.cursor());
            gaps.extend(entry.fields().filter_map(Result::err));
        }
        gaps.extend(entries.into_gaps());
        let unit = journal.search(&Match::unit("a.service").into(), &ascertain_journal::Query::by(|_| true));
        gaps.extend(unit.gaps);
        gaps.extend(journal.units().1);
    }
    writing.join().expect("written");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(gaps, [], "after {rounds} rounds");
    assert_eq!(seen, all.iter().map(|record| record.realtime).collect::<Vec<_>>());
    assert!(rounds > 5, "{rounds}");
}
