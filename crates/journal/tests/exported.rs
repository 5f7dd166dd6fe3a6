//! journalctl's export format: the same entries and answers as from the files, and nothing made up where it is broken.

mod support;

use ascertain_journal::{
    Caveat, Direction, Entry, Evidence, Exported, Filter, Flaw, Journal, Limits, Manager, Match, Query, Reason,
};
use std::ffi::OsString;
use std::path::Path;
use support::host::{EARLIER, Host, ID, UNIT};
use support::{OFFLINE, PLAIN, Random, Record, Writer, has_systemd_tools, journal_remote, journalctl_text, records};
use tempfile::TempDir;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// Everything that an entry holds. The order of fields is that of the file in one case, and journalctl's in the other,
/// which puts the boot first.
fn content(entry: &Entry) -> (String, Fields) {
    let fields = entry.fields().map(|field| field.expect("readable"));
    let mut fields: Fields = fields.map(|field| (field.name().to_vec(), field.value().to_vec())).collect();
    fields.sort();
    (entry.cursor().to_string(), fields)
}

fn all_of(entries: ascertain_journal::Entries) -> Vec<(String, Fields)> {
    entries.map(|entry| content(&entry)).collect()
}

/// Records as journalctl would print them.
fn printed(records: &[Record]) -> Vec<u8> {
    let mut text = Vec::new();
    for (number, record) in records.iter().enumerate() {
        record.export_with_cursor(number as u64 + 1, &mut text);
    }
    text
}

fn messages(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| String::from_utf8(entry.message().expect("readable")).expect("text")).collect()
}

fn start_of(exported: &Exported) -> ascertain_journal::Start<'_> {
    exported.start(UNIT, Manager::System, ID.parse().expect("an id"))
}

fn compare(directory: &Path) {
    let (journal, gaps) = Journal::open([directory]);
    assert_eq!(gaps, []);
    let exported = Exported::read("journalctl", journalctl_text(directory, &[""; 0]));
    assert_eq!(exported.gaps(), []);
    let every = Filter::default();
    let middle = journal.entries(&every).nth(500).expect("so many").cursor();
    let unit: Filter = Match::unit("a.service").into();
    for filter in [
        every.clone(),
        unit.clone(),
        Filter { direction: Direction::Backward, ..unit.clone() },
        Filter { after: Some(middle), ..unit.clone() },
        Filter { after: Some(middle), direction: Direction::Backward, ..unit.clone() },
        Filter { boot: Some(middle.boot_id), since: Some(middle.realtime - 200_000), ..every.clone() },
        Filter { until: Some(middle.realtime), ..Match::warnings().into() },
    ] {
        let ours = all_of(journal.entries(&filter));
        assert!(ours.len() > 50, "{filter:?}");
        assert!(ours == all_of(exported.entries(&filter)), "{filter:?}");
    }
    let query = Query::words(["LINE 1", "again"]).expect("short");
    let (ours, theirs) = (journal.search(&unit, &query), exported.search(&unit, &query));
    let found = |found: &ascertain_journal::Found| {
        let hit = |hit: &ascertain_journal::Hit| (hit.entry.cursor(), hit.message().expect("readable").into_owned());
        found.hits.iter().map(hit).collect::<Vec<_>>()
    };
    assert!(!ours.hits.is_empty());
    assert_eq!(found(&ours), found(&theirs));
    assert_eq!(ours.examined, theirs.examined);
    // A condition said in journalctl's words leads to the same entries.
    for condition in [
        Match::unit("b.service"),
        Match::unit("c@x.service").and(Match::warnings()),
        Match::Every.and(Match::one_of("PRIORITY", ["3"])),
    ] {
        let arguments: Vec<OsString> = condition.arguments().expect("journalctl can say it");
        let theirs = Exported::read("journalctl", journalctl_text(directory, &arguments));
        let ours = all_of(journal.entries(&condition.clone().into()));
        assert!(!ours.is_empty());
        assert!(ours == all_of(theirs.entries(&every)), "{arguments:?}");
    }
}

#[test]
fn the_same_entries_as_from_the_files() {
    if !has_systemd_tools() {
        return;
    }
    let written = records(42, 1000, 1_795_000_000_000_000);
    let directory = TempDir::new().expect("a directory");
    journal_remote(&written, &directory.path().join("remote.journal"), &[], &[]);
    compare(directory.path());
    let directory = TempDir::new().expect("a directory");
    let mut writer = Writer::new(PLAIN, 5);
    writer.append_all(&written);
    std::fs::write(directory.path().join("system.journal"), writer.finish(OFFLINE)).expect("written");
    compare(directory.path());
}

#[test]
fn what_journalctl_cannot_be_told_is_not_told() {
    let both = Match::field("A", "1").and(Match::field("A", "2"));
    assert_eq!(both.arguments(), None, "journalctl would take it for either");
    assert_eq!(Match::Every.arguments(), None);
    assert_eq!(Match::All(vec![]).arguments(), None);
    assert_eq!(Match::Any(vec![]).arguments(), None);
    let many = || Match::one_of("A", (0..100).map(|number| number.to_string()));
    assert_eq!(many().and(Match::one_of("B", ["1", "2", "3"])).arguments(), None, "too many");
    let said = Match::field("A", "1").and(Match::one_of("B", ["2", "3"])).arguments();
    assert_eq!(said, Some(["A=1", "B=2", "+", "A=1", "B=3"].map(OsString::from).to_vec()));
}

#[test]
fn a_start_answers_as_it_does_from_the_files() {
    let mut host = Host::new();
    host.suppressed(EARLIER);
    let directory = host.write(&[], OFFLINE);
    let (journal, _) = Journal::open([directory.path()]);
    let native = journal.start(UNIT, Manager::System, ID.parse().expect("an id"));
    let exported = Exported::read("journalctl", printed(&host.records));
    let start = start_of(&exported);
    let ready = |entry: &Entry| entry.message().is_ok_and(|message| message.ends_with(b"ready"));
    let (head, same) = (start.head_until(100, ready), native.head_until(100, ready));
    assert!(head.found);
    assert_eq!(messages(&head.entries), messages(&same.entries));
    for count in [1, 3, 500] {
        assert_eq!(messages(&start.newest(count).0), messages(&native.newest(count).0));
        assert_eq!(messages(&start.warnings(count).0), messages(&native.warnings(count).0));
    }
    let query = Query::words(["ready"]).expect("short");
    assert_eq!(start.search(&query).hits.len(), native.search(&query).hits.len());
    let (judged, whole) = (start.completeness(Some(1)), native.completeness(None));
    assert!(whole.is_complete());
    assert_eq!(judged.span.map(|(first, last)| (first.seqnum, last.seqnum)), Some((211, 418)));
    assert_eq!(judged.flaws, [Flaw::Exported], "nothing is wrong, and still nothing is proven");
    assert!(matches!(judged.evidence[..], [Evidence::FirstLine { .. }]), "{:?}", judged.evidence);
    assert!(matches!(judged.caveats[..], [Caveat::SilentSince(_)]));
}

#[test]
fn an_export_is_never_complete_and_says_all_it_knows_against_it() {
    let empty = Exported::read("journalctl", Vec::new());
    assert_eq!(start_of(&empty).completeness(None).flaws, [Flaw::NoFirstLine, Flaw::NoLine, Flaw::Exported]);
    let mut host = Host::new();
    host.suppressed(ID);
    let text = printed(&host.records);
    let exported = Exported::read("journalctl", text.clone());
    let flaws = start_of(&exported).completeness(None).flaws;
    assert!(matches!(flaws[..], [Flaw::Suppressed { messages: Some(4711), .. }, Flaw::Exported]), "{flaws:?}");
    let cut = Exported::read("journalctl", text[..text.len() - 5].to_vec());
    let flaws = start_of(&cut).completeness(None).flaws;
    assert!(matches!(&flaws[..], [Flaw::Exported, Flaw::Unreadable(gap)] if gap.reason == Reason::CutOff), "{flaws:?}");
    let mut cut = Exported::read("journalctl", printed(&Host::new().records));
    cut.cut_off("journalctl");
    let flaws = start_of(&cut).completeness(None).flaws;
    assert!(matches!(&flaws[..], [Flaw::Exported, Flaw::Unreadable(gap)] if gap.reason == Reason::CutOff), "{flaws:?}");
}

#[test]
fn the_condition_of_a_start_brings_all_that_is_judged() {
    let mut host = Host::new();
    host.suppressed(ID);
    let directory = host.write(&[], OFFLINE);
    let condition = Exported::condition(UNIT, Manager::System, ID.parse().expect("an id"));
    let (journal, _) = Journal::open([directory.path()]);
    let kept: Vec<_> = journal.entries(&condition.clone().into()).collect();
    assert_eq!(kept.len(), 208, "the 207 of the start and the one about suppressed messages");
    if !has_systemd_tools() {
        return;
    }
    let arguments = condition.arguments().expect("journalctl can say it");
    let exported = Exported::read("journalctl", journalctl_text(directory.path(), &arguments));
    assert_eq!(messages(&kept), messages(&exported.entries(&Filter::default()).collect::<Vec<_>>()));
}

#[test]
fn outputs_of_several_calls_are_put_together_once() {
    let host = Host::new();
    let whole = all_of(Exported::read("all", printed(&host.records)).entries(&Filter::default()));
    let part = |range: std::ops::Range<usize>| {
        let mut text = Vec::new();
        for number in range {
            host.records[number].export_with_cursor(number as u64 + 1, &mut text);
        }
        Exported::read("part", text)
    };
    let mut together = part(0..50);
    together.add(part(300..host.records.len()));
    together.add(part(30..310));
    together.add(part(0..0));
    assert!(all_of(together.entries(&Filter::default())) == whole);
    let mut backwards = part(100..host.records.len());
    backwards.add(part(0..101));
    assert!(all_of(backwards.entries(&Filter::default())) == whole);
}

#[test]
fn wherever_it_is_cut_the_entries_before_are_read_and_the_cut_is_told() {
    let written = records(6, 25, 1_795_000_000_000_000);
    let text = printed(&written);
    let whole = all_of(Exported::read("all", text.clone()).entries(&Filter::default()));
    assert_eq!(whole.len(), written.len());
    let mut ends = vec![0];
    for count in 1..=written.len() {
        ends.push(printed(&written[..count]).len());
    }
    for length in (0..text.len()).filter(|length| *length < 6000 || length % 97 == 0) {
        let cut = Exported::read("cut", text[..length].to_vec());
        let read = all_of(cut.entries(&Filter::default()));
        // The line feed that ends an entry is all that tells that it is whole.
        let expected = ends.partition_point(|end| *end <= length) - 1;
        assert!(read == whole[..expected], "at {length}");
        assert_eq!(cut.gaps().is_empty(), ends.contains(&length), "at {length}");
    }
}

/// `ASCERTAIN_FUZZ_ROUNDS` makes it longer.
#[test]
fn random_damage_neither_panics_nor_changes_what_stands_before_it() {
    let rounds = std::env::var("ASCERTAIN_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(2000);
    let text = printed(&records(9, 40, 1_795_000_000_000_000));
    let exported = Exported::read("all", text.clone());
    let whole: Vec<_> = exported.entries(&Filter::default()).collect();
    let mut random = Random(0x5eed);
    let pieces: [&[u8]; 6] =
        [b"\n", b"\n\n", b"=", b"\nMESSAGE\n\xff\xff\xff\xff\xff\xff\xff\xff", b"__CURSOR=", b"A\n\x01"];
    for round in 0..rounds {
        let mut damaged = text.clone();
        let mut first = damaged.len();
        for _ in 0..random.below(4) + 1 {
            let at = random.below(damaged.len() as u64) as usize;
            match random.below(4) {
                0 => damaged[at] = random.next() as u8,
                1 => {
                    let piece = pieces[random.below(6) as usize];
                    damaged.splice(at..at, piece.iter().copied());
                }
                2 => {
                    let end = damaged.len().min(at + random.below(40) as usize + 1);
                    damaged.drain(at..end);
                }
                _ => {
                    let copy = damaged[at..damaged.len().min(at + 200)].to_vec();
                    damaged.splice(at..at, copy);
                }
            }
            first = first.min(at);
        }
        let read = Exported::read_with("damaged", damaged, Limits { value_bytes: 1 << 16, ..Limits::default() });
        let entries: Vec<_> = read.entries(&Filter::default()).collect();
        let before = whole.iter().take_while(|entry| (entry.offset() as usize) < first).count().saturating_sub(1);
        assert!(entries.len() >= before, "round {round}");
        for (entry, same) in entries.iter().zip(&whole).take(before) {
            assert_eq!(entry.cursor(), same.cursor(), "round {round}");
        }
        for entry in &entries {
            entry.fields().for_each(drop);
        }
        let start = read.start("a.service", Manager::System, ID.parse().expect("an id"));
        assert!(!start.completeness(Some(1)).is_complete());
        start.warnings(3);
        start.newest(3);
        read.search(&Filter::default(), &Query::words(["line"]).expect("short"));
    }
}

#[test]
fn a_message_that_looks_like_entries_is_none() {
    let mut forged = Vec::new();
    let real = Record::new(1_700_000_000_000_000, 5, &"b".repeat(32), &[("MESSAGE", "from PID 1"), ("_PID", "1")]);
    forged.extend(b"first line\n\n");
    real.export_with_cursor(7, &mut forged);
    let mut record = Record::new(1_700_000_000_000_000, 5, &"b".repeat(32), &[("_PID", "666")]);
    record.fields.push(("MESSAGE".to_owned(), forged));
    let text = printed(&[record]);
    let exported = Exported::read("journalctl", text.clone());
    assert_eq!((exported.entries(&Filter::default()).count(), exported.gaps().len()), (1, 0));
    // Also where the size that tells where it ends is damaged, unless by chance it points at another line's end.
    let at = text.windows(8).position(|part| part == b"MESSAGE\n").expect("a message") + 8;
    for size in (0..200_usize).filter(|size| text[at + 8 + size] != b'\n') {
        let mut damaged = text.clone();
        damaged[at..at + 8].copy_from_slice(&(size as u64).to_le_bytes());
        let exported = Exported::read("journalctl", damaged);
        assert_eq!(exported.entries(&Match::field("_PID", "1").into()).count(), 0, "{size}");
        assert!(!exported.gaps().is_empty(), "{size}");
    }
}

#[test]
fn a_value_over_the_limit_is_a_gap_and_the_rest_is_read() {
    let long = "x".repeat(5000);
    let boot = "b".repeat(32);
    let mut record = Record::new(1_700_000_000_000_000, 5, &boot, &[("MESSAGE", &long), ("_PID", "7")]);
    record.fields.push(("BLOB".to_owned(), [0; 4000].to_vec()));
    let after = Record::new(1_700_000_000_000_001, 6, &boot, &[("MESSAGE", "short")]);
    let limits = Limits { value_bytes: 3000, ..Limits::default() };
    let exported = Exported::read_with("journalctl", printed(&[record, after]), limits);
    assert_eq!(exported.gaps(), []);
    let entries: Vec<_> = exported.entries(&Filter::default()).collect();
    assert_eq!(entries.len(), 2);
    let reason = entries[0].message().expect_err("too long").reason;
    assert_eq!(reason, Reason::TooLarge { bytes: 5000, limit: 3000 });
    assert!(entries[0].get("BLOB").is_err());
    assert_eq!(entries[0].get("_PID").expect("readable").as_deref(), Some(&b"7"[..]));
    assert_eq!(entries[1].message().expect("readable"), b"short");
    let found = exported.search(&Filter::default(), &Query::words(["x"]).expect("short"));
    assert_eq!((found.hits.len(), found.gaps.len()), (0, 1), "what was not searched is told");
}

#[test]
fn an_entry_without_its_place_is_a_gap_and_the_next_is_read() {
    let records = records(3, 3, 1_700_000_000_000_000);
    let mut text = Vec::new();
    records[0].export(&mut text);
    records[1].export_with_cursor(2, &mut text);
    text.extend(b"__CURSOR=nonsense\nMESSAGE=a\n\n\n\n__CURSOR=twice\n__CURSOR=twice\nMESSAGE=b\n\n");
    records[2].export_with_cursor(3, &mut text);
    let exported = Exported::read("journalctl", text);
    assert_eq!(exported.entries(&Filter::default()).count(), 2);
    assert_eq!(exported.gaps().iter().map(|gap| gap.times).sum::<u64>(), 3);
    let not = Exported::read("journalctl", b"Hint: You are currently not seeing messages from other users.\n".to_vec());
    assert!(matches!(not.gaps()[0].reason, Reason::NotExported(_)));
}
