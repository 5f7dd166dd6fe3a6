//! `journalctl` as a witness: the real one over a journal made here, and ones that misbehave.

use ascertain_capture::journalctl::{Error, Journalctl};
use ascertain_journal::{Entry, Flaw, Id128, Manager, Reason};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const JOURNAL_REMOTE: &str = "/lib/systemd/systemd-journal-remote";
const ID: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1";
const OTHER: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa0";

fn id() -> Id128 {
    ID.parse().expect("an id")
}

/// The export text of a start that says `lines` lines, between lines of others.
fn export(lines: usize, cursors: bool) -> String {
    let mut text = String::new();
    let mut number = 0;
    let mut add = |fields: &[(&str, &str)], message: &str| {
        number += 1;
        let (boot, time) = ("b".repeat(32), 1_795_000_000_000_000_u64 + number * 1000);
        if cursors {
            text += &format!("__CURSOR=s={};i={number:x};b={boot};m={number:x};t={time:x};x=1\n", "7".repeat(32));
        }
        text += &format!("__REALTIME_TIMESTAMP={time}\n__MONOTONIC_TIMESTAMP={number}\n_BOOT_ID={boot}\n");
        fields.iter().for_each(|(name, value)| text += &format!("{name}={value}\n"));
        text += &format!("MESSAGE={message}\n\n");
    };
    let manager = [("_PID", "1"), ("_UID", "0"), ("UNIT", "llm.service"), ("INVOCATION_ID", ID), ("PRIORITY", "6")];
    let own = [("_PID", "9"), ("_SYSTEMD_UNIT", "llm.service"), ("_SYSTEMD_INVOCATION_ID", ID)];
    let other = [("_PID", "8"), ("_SYSTEMD_UNIT", "llm.service"), ("_SYSTEMD_INVOCATION_ID", OTHER)];
    let started = [&manager[..], &[("MESSAGE_ID", "39f53479d3a045ac8e11786248231fbf")]].concat();
    add(&other, "another start");
    add(&started, "Started llm.service.");
    for line in 0..lines {
        let priority = if line % 100 == 50 { "4" } else { "6" };
        add(&[&own[..], &[("PRIORITY", priority)]].concat(), &format!("line {line}"));
        add(&other, "another start");
    }
    text
}

fn messages(entries: impl IntoIterator<Item = Entry>) -> Vec<String> {
    let text = |entry: Entry| String::from_utf8(entry.message().expect("readable")).expect("text");
    entries.into_iter().map(text).collect()
}

/// A journal with this export text, or nothing where the tools are missing.
fn journal(text: &str) -> Option<TempDir> {
    if !Path::new(JOURNAL_REMOTE).exists() || Command::new("journalctl").arg("--version").output().is_err() {
        eprintln!("skipped: needs journalctl and systemd-journal-remote");
        return None;
    }
    let directory = TempDir::new().expect("a directory");
    let mut child = Command::new(JOURNAL_REMOTE)
        .args(["-o".as_ref(), directory.path().join("remote.journal").as_os_str(), "-".as_ref()])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("systemd-journal-remote starts");
    child.stdin.take().expect("its input").write_all(text.as_bytes()).expect("is taken");
    assert!(child.wait().expect("it ends").success());
    Some(directory)
}

/// A program in place of journalctl.
fn program(script: &str) -> (TempDir, Journalctl) {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("journalctl");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    let program = vec!["/bin/sh".into(), path.into()];
    (directory, Journalctl { program, ..Journalctl::default() })
}

#[test]
fn the_real_journalctl_gives_exactly_one_start() {
    let Some(directory) = journal(&export(300, false)) else { return };
    let journalctl = Journalctl { directory: Some(directory.path().into()), ..Journalctl::default() };
    let exported = journalctl.start("llm.service", Manager::System, id()).expect("it works");
    let start = exported.start("llm.service", Manager::System, id());
    let all = messages(start.entries());
    assert_eq!(all.len(), 301);
    assert_eq!((&all[0][..], &all[300][..]), ("Started llm.service.", "line 299"));
    assert_eq!(messages(start.warnings(50).0), ["line 50", "line 150", "line 250"]);
    assert_eq!(start.completeness(None).flaws, [Flaw::Exported]);
}

#[test]
fn of_a_log_over_the_limit_there_are_beginning_end_and_warnings() {
    let Some(directory) = journal(&export(3000, false)) else { return };
    let directory = Some(directory.path().to_owned());
    let journalctl = Journalctl { directory, bytes: 200_000, ..Journalctl::default() };
    let exported = journalctl.start("llm.service", Manager::System, id()).expect("it works");
    let start = exported.start("llm.service", Manager::System, id());
    let all = messages(start.entries());
    assert!(all.len() < 1500, "{}", all.len());
    assert_eq!((&all[0][..], &all[all.len() - 1][..]), ("Started llm.service.", "line 2999"));
    assert!(all.contains(&"line 1950".to_owned()) && !all.contains(&"line 1951".to_owned()));
    let flaws = start.completeness(None).flaws;
    assert!(
        flaws.iter().any(|flaw| matches!(flaw, Flaw::Unreadable(gap) if gap.reason == Reason::CutOff)),
        "{flaws:?}"
    );
}

#[test]
fn a_program_that_hangs_costs_the_time_it_was_given() {
    let (directory, journalctl) = program("exec sleep 60");
    let journalctl = Journalctl { time: Duration::from_millis(50), ..journalctl };
    let begun = Instant::now();
    let error = journalctl.start("llm.service", Manager::System, id()).err().expect("it says nothing");
    assert!(matches!(error, Error::Silent { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(30), "it was waited for");
    // Also when it has said something, and when something of it lives on.
    fs::write(directory.path().join("text"), export(3, true)).expect("written");
    let text = directory.path().join("text");
    let (_directory, journalctl) = program(&format!("cat {}\nsleep 60 &\nsleep 60", text.display()));
    let journalctl = Journalctl { time: Duration::from_secs(3), ..journalctl };
    let exported = journalctl.start("llm.service", Manager::System, id()).expect("what there is");
    assert!(begun.elapsed() < Duration::from_secs(30), "it was waited for");
    let start = exported.start("llm.service", Manager::System, id());
    assert_eq!(start.entries().count(), 4);
    assert!(exported.gaps().iter().any(|gap| gap.reason == Reason::CutOff));
}

#[test]
fn a_program_that_never_stops_printing_costs_the_bytes_it_was_given() {
    let (_directory, journalctl) = program("while :; do echo MESSAGE=more; done; echo >&2");
    let journalctl = Journalctl { bytes: 100_000, time: Duration::from_secs(60), ..journalctl };
    let exported = journalctl.start("llm.service", Manager::System, id()).expect("what there is");
    assert_eq!(exported.entries(&Default::default()).count(), 0, "no entry was whole");
    assert!(exported.gaps().iter().any(|gap| gap.reason == Reason::CutOff));
}

#[test]
fn what_it_complains_about_is_told() {
    let (_directory, journalctl) = program("echo 'No journal files were opened: Permission denied' >&2; exit 1");
    let error = journalctl.start("llm.service", Manager::System, id()).err().expect("it failed");
    assert!(error.to_string().contains("Permission denied"), "{error}");
    let journalctl = Journalctl { program: vec!["/nonexistent/journalctl".into()], ..Journalctl::default() };
    let error = journalctl.start("llm.service", Manager::System, id()).err().expect("there is none");
    assert!(matches!(error, Error::NotRun { .. }), "{error}");
    // Nothing to say is no failure.
    let (_directory, journalctl) = program("echo warning >&2");
    let exported = journalctl.start("llm.service", Manager::System, id()).expect("empty");
    let flaws = exported.start("llm.service", Manager::System, id()).completeness(None).flaws;
    assert_eq!(flaws, [Flaw::NoFirstLine, Flaw::NoLine, Flaw::Exported]);
}

#[test]
fn it_is_called_without_pager_and_in_plain_words() {
    let directory = TempDir::new().expect("a directory");
    let seen = directory.path().join("seen");
    let script = format!("printf '%s\\n' \"$@\" \"$LC_ALL\" \"pager=$SYSTEMD_PAGER\" >{}", seen.display());
    let (_program, asked) = program(&script);
    let asked = Journalctl { directory: Some("/var/log/journal/remote".into()), ..asked };
    asked.start("llm.service", Manager::System, id()).expect("it works");
    let words = fs::read_to_string(&seen).expect("written");
    let wanted = format!(
        "--output=export\n--quiet\n--no-pager\n--directory\n/var/log/journal/remote\n_SYSTEMD_INVOCATION_ID={ID}\n+\n\
         INVOCATION_ID={ID}\nUNIT=llm.service\n_PID=1\n+\nMESSAGE_ID=a596d6fe7bfa4994828e72309e95d61e\n\
         OBJECT_SYSTEMD_UNIT=llm.service\nC\npager=\n"
    );
    assert_eq!(words, wanted);
}
