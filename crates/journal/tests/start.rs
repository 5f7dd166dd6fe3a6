//! The log of one start, and the judgement whether it is complete.

mod support;

use ascertain_journal::{Caveat, Completeness, Evidence, Flaw, Id128, Journal, Manager, Query, Reason, StartLine};
use std::fs;
use support::host::{EARLIER, Host, ID, UNIT};
use support::{OFFLINE, ONLINE, PLAIN, Writer};
use tempfile::TempDir;

fn id() -> Id128 {
    ID.parse().expect("an id")
}

fn judge(directory: &TempDir, started: Option<u64>) -> Completeness {
    let (journal, _) = Journal::open([directory.path()]);
    journal.start(UNIT, Manager::System, id()).completeness(started)
}

fn messages(entries: &[ascertain_journal::Entry]) -> Vec<String> {
    entries.iter().map(|entry| String::from_utf8(entry.message().expect("readable")).expect("text")).collect()
}

#[test]
fn a_start_is_its_own_lines_and_the_managers_and_nothing_else() {
    let directory = Host::new().write(&[100, 300], OFFLINE);
    let (journal, _) = Journal::open([directory.path()]);
    let start = journal.start(UNIT, Manager::System, id());
    let all = messages(&start.entries().collect::<Vec<_>>());
    assert_eq!(all.len(), 207);
    assert_eq!(all[0], "Starting llm.service...");
    assert!(all.iter().all(|message| message.starts_with("asked") || message.starts_with("Start")));
    let head = start.head_until(100, |entry| entry.message().is_ok_and(|message| message.ends_with(b"ready")));
    assert!(head.found);
    assert_eq!(messages(&head.entries), all[..5]);
    let head = start.head_until(3, |_| false);
    assert!(!head.found);
    assert_eq!(messages(&head.entries), all[..3]);
    assert_eq!(messages(&start.newest(2).0), ["asked: an error", "asked: last"]);
    assert_eq!(messages(&start.warnings(10).0), ["asked: a warning", "asked: an error"]);
    assert_eq!(messages(&start.warnings(1).0), ["asked: a warning", "asked: an error"]);
    let found = start.search(&Query::words(["READY"]).expect("short"));
    assert_eq!((found.hits.len(), found.examined), (1, 207));
    let (invocations, gaps) = journal.invocations(UNIT);
    assert_eq!(gaps, []);
    assert_eq!(invocations.iter().map(|i| i.id.to_string()).collect::<Vec<_>>(), [EARLIER, ID]);
    assert_eq!((invocations[1].own, invocations[0].own), (205, 205));
}

#[test]
fn a_whole_log_is_complete_with_its_evidence() {
    let host = Host::new();
    for cuts in [&[][..], &[50, 211, 300]] {
        let judged = judge(&host.write(cuts, OFFLINE), None);
        assert_eq!(judged.flaws, []);
        assert!(judged.is_complete());
        let has = |wanted: fn(&Evidence) -> bool| judged.evidence.iter().any(wanted);
        assert!(has(|e| matches!(e, Evidence::FirstLine { line: StartLine::Starting, .. })));
        assert!(has(|e| matches!(e, Evidence::ReachesBefore { .. })));
        assert!(has(|e| matches!(e, Evidence::Unbroken { .. })));
        assert!(has(|e| matches!(e, Evidence::NoneSuppressed)));
        assert!(has(|e| matches!(e, Evidence::IndexSound { .. })));
        assert!(judged.caveats.iter().all(|caveat| matches!(caveat, Caveat::SilentSince(_))));
    }
    let judged = judge(&host.write(&[100], ONLINE), None);
    assert!(judged.is_complete());
    assert!(judged.caveats.iter().any(|caveat| matches!(caveat, Caveat::StillWritten(_))));
}

#[test]
fn a_missing_beginning_is_seen() {
    let host = Host::new();
    // The files up to the start's own first lines were vacuumed.
    let directory = host.write(&[100, 220], OFFLINE);
    for i in [0, 1] {
        fs::remove_file(directory.path().join(format!("system@{i}.journal"))).expect("removed");
    }
    let started = host.records[211].realtime;
    let judged = judge(&directory, Some(started));
    assert!(judged.flaws.contains(&Flaw::NoFirstLine));
    assert!(judged.flaws.iter().any(|flaw| matches!(flaw, Flaw::BeginsTooLate { .. })), "{judged:#?}");
    assert!(!judge(&directory, None).is_complete());
    fs::remove_file(directory.path().join("system.journal")).expect("removed");
    assert_eq!(judge(&directory, None).flaws, [Flaw::NoFirstLine, Flaw::NoLine]);
}

#[test]
fn a_missing_file_in_between_is_seen() {
    let directory = Host::new().write(&[100, 230, 300], OFFLINE);
    fs::remove_file(directory.path().join("system@2.journal")).expect("removed");
    let judged = judge(&directory, None);
    assert!(matches!(judged.flaws[..], [Flaw::SequenceHole { first: 231, last: 300, .. }]), "{judged:#?}");
}

#[test]
fn suppressed_messages_count_for_the_start_that_lost_them() {
    for (of, complete) in [(EARLIER, true), (ID, false)] {
        let mut host = Host::new();
        host.suppressed(of);
        let judged = judge(&host.write(&[], OFFLINE), None);
        assert_eq!(judged.is_complete(), complete);
        assert_eq!(judged.flaws.iter().any(|f| matches!(f, Flaw::Suppressed { messages: Some(4711), .. })), !complete);
    }
}

#[test]
fn a_file_that_was_not_closed_and_one_that_is_cut_are_seen() {
    let host = Host::new();
    let directory = host.write(&[300], OFFLINE);
    let mut bytes = fs::read(directory.path().join("system@0.journal")).expect("read");
    bytes[16] = ONLINE;
    fs::write(directory.path().join("system@0.journal"), &bytes).expect("written");
    assert!(matches!(judge(&directory, None).flaws[..], [Flaw::NotClosed(_)]));

    let directory = host.write(&[300], OFFLINE);
    let path = directory.path().join("system.journal");
    let bytes = fs::read(&path).expect("read");
    fs::write(&path, &bytes[..bytes.len() - 3000]).expect("written");
    let judged = judge(&directory, None);
    assert!(
        judged
            .flaws
            .iter()
            .any(|flaw| { matches!(flaw, Flaw::Unreadable(gap) if matches!(gap.reason, Reason::Truncated { .. })) })
    );
    let (_, last) = judged.span.expect("what is there is read");
    assert!(last.seqnum > 390, "{last}");

    // Damage of a file that ended before this start does not matter.
    let directory = host.write(&[100], OFFLINE);
    let path = directory.path().join("system@0.journal");
    let bytes = fs::read(&path).expect("read");
    fs::write(&path, &bytes[..bytes.len() - 3000]).expect("written");
    assert!(judge(&directory, None).is_complete());
    // Of one whose header is gone nobody knows.
    fs::write(&path, vec![0; 5000]).expect("written");
    assert!(!judge(&directory, None).is_complete());
}

#[test]
fn damage_of_the_index_does_not_hide_a_start() {
    // The slot of the hash table is zeroed: to journalctl the file has no such line.
    let host = Host::new();
    let directory = host.write(&[], OFFLINE);
    let path = directory.path().join("system.journal");
    let mut bytes = fs::read(&path).expect("read");
    let table = u64::from_le_bytes(bytes[104..112].try_into().expect("eight")) as usize;
    let size = u64::from_le_bytes(bytes[112..120].try_into().expect("eight")) as usize;
    bytes[table..table + size].fill(0);
    fs::write(&path, &bytes).expect("written");
    let (journal, _) = Journal::open([directory.path()]);
    let start = journal.start(UNIT, Manager::System, id());
    let entries = start.entries();
    assert!(!entries.gaps().is_empty());
    assert_eq!(entries.count(), 205, "its own lines, by way of the field's values");
    assert!(!start.completeness(None).is_complete());
}

#[test]
fn how_a_start_ended_is_what_the_manager_says() {
    let fields = [("_PID", "1"), ("_UID", "0"), ("UNIT", UNIT), ("INVOCATION_ID", ID)];
    let exit = [("MESSAGE_ID", "98e322203f7a4ed290d09fe03c09fe15"), ("EXIT_CODE", "killed"), ("EXIT_STATUS", "9")];
    let failed = [("MESSAGE_ID", "d9b373ed55a64feb8242e02dbe79a49c"), ("UNIT_RESULT", "oom-kill")];
    let ending = |said: &[&[(&str, &str)]]| {
        let mut host = Host::new();
        said.iter().for_each(|more| host.add(&[&fields[..], more].concat()));
        // The end of another start is none of this one.
        host.manager(EARLIER, "d9b373ed55a64feb8242e02dbe79a49c", "llm.service: Failed with result 'exit-code'.");
        let directory = host.write(&[], OFFLINE);
        let (journal, _) = Journal::open([directory.path()]);
        let (mut endings, gaps) = journal.endings(UNIT, Manager::System);
        assert_eq!(gaps, []);
        let earlier = endings.remove(&EARLIER.parse().expect("an id")).expect("it ended");
        assert_eq!((earlier.failure.as_deref(), earlier.process), (Some("failed"), None));
        endings.remove(&id()).map(|ending| (ending.failure, ending.process))
    };
    let stopped = [("MESSAGE_ID", "9d1aaa27d60140bd96365438aad20286")];
    let success = [("MESSAGE_ID", "7ad2d189f7e94e70a38c781354912448")];
    let process = Some(("killed".to_owned(), "9".to_owned()));
    assert_eq!(ending(&[]), None);
    assert_eq!(ending(&[&exit]), None, "a process that ended is not the end");
    assert_eq!(ending(&[&exit, &failed]), Some((Some("oom-kill".to_owned()), process.clone())));
    assert_eq!(ending(&[&exit, &failed, &stopped]), Some((Some("oom-kill".to_owned()), process)));
    assert_eq!(ending(&[&success, &stopped]), Some((None, None)));
}

#[test]
fn a_hole_is_seen_in_each_of_the_journals_that_hold_a_start() {
    let host = Host::new();
    let write = |directory: &TempDir, name: &str, source: u8, range: std::ops::Range<usize>| {
        let mut writer = Writer::new(PLAIN, u64::from(source) + range.start as u64 * 10);
        writer.seqnum_id = [source; 16];
        writer.seqnum = range.start as u64 + u64::from(source) * 1000;
        writer.append_all(&host.records[range]);
        fs::write(directory.path().join(name), writer.finish(OFFLINE)).expect("written");
    };
    // It began in the volatile journal; what was there was copied to the persistent one, in several files.
    let directory = TempDir::new().expect("a directory");
    write(&directory, "run.journal", 1, 0..220);
    write(&directory, "var@1.journal", 2, 0..250);
    write(&directory, "var@2.journal", 2, 250..330);
    write(&directory, "var@3.journal", 2, 330..host.records.len());
    let judged = judge(&directory, None);
    assert_eq!(judged.flaws, []);
    let unbroken = judged.evidence.iter().filter(|evidence| matches!(evidence, Evidence::Unbroken { .. })).count();
    assert_eq!(unbroken, 2);
    fs::remove_file(directory.path().join("var@2.journal")).expect("removed");
    let flaws = judge(&directory, None).flaws;
    assert!(matches!(flaws[..], [Flaw::SequenceHole { first: 2251, last: 2330, .. }]), "{flaws:?}");
}
