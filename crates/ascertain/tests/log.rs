//! `ascertain log`, over journals that the real systemd-journal-remote writes, over captures and over processes.

use serde_json::Value as Json;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const JOURNAL_REMOTE: &str = "/lib/systemd/systemd-journal-remote";
const FIRST: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa0";
const SECOND: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1";
const THIRD: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb2";
const UNIT: &str = "llama-qwen.service";
/// 2026-11-30 10:58:21 UTC.
const BEGIN: u64 = 1_796_036_301_000_000;
const KEY: &str = "correct-horse-battery";

/// Entries as text in the export format.
#[derive(Default)]
struct Entries {
    text: Vec<u8>,
    count: u64,
}

impl Entries {
    fn add(&mut self, fields: &[(&str, &str)], message: &[u8]) {
        let time = BEGIN + self.count * 1_000_000;
        self.count += 1;
        let head = format!("__REALTIME_TIMESTAMP={time}\n__MONOTONIC_TIMESTAMP={}\n", time - BEGIN + 5_000_000);
        self.text.extend(head.bytes());
        self.text.extend(format!("_BOOT_ID={}\n_HOSTNAME=llm-two\n", "b".repeat(32)).bytes());
        for (name, value) in fields {
            self.text.extend(format!("{name}={value}\n").bytes());
        }
        self.text.extend(b"MESSAGE\n");
        self.text.extend((message.len() as u64).to_le_bytes());
        self.text.extend(message);
        self.text.extend(b"\n\n");
    }

    fn own(&mut self, id: &str, message: &[u8]) {
        let command = format!("/opt/llama.cpp/bin/llama-server -m /models/qwen.gguf --api-key {KEY}");
        self.add(
            &[
                ("_SYSTEMD_UNIT", UNIT),
                ("_SYSTEMD_INVOCATION_ID", id),
                ("_PID", "999999999"),
                ("_UID", "1000"),
                ("_COMM", "llama-server"),
                ("_EXE", "/opt/llama.cpp/bin/llama-server"),
                ("_CMDLINE", &command),
                ("SYSLOG_IDENTIFIER", "llama-server"),
                ("PRIORITY", if message.windows(3).any(|part| part == b" W ") { "4" } else { "6" }),
            ],
            message,
        );
    }

    fn manager(&mut self, id: &str, more: &[(&str, &str)], message: &str) {
        let fields = [("_PID", "1"), ("_UID", "0"), ("UNIT", UNIT), ("INVOCATION_ID", id), ("PRIORITY", "6")];
        let fields = [&fields[..], &[("_COMM", "systemd"), ("SYSLOG_IDENTIFIER", "systemd")], more].concat();
        self.add(&fields, message.as_bytes());
    }

    fn start(&mut self, id: &str, context: &str) {
        self.manager(id, &[("MESSAGE_ID", "39f53479d3a045ac8e11786248231fbf")], "Started llama-qwen.service - Qwen.");
        self.own(id, b"0.00.001.075 I srv  llama_server: initializing ...");
        let line = format!(
            "0.00.300.001 I srv    load_model: initializing, n_slots = 4, n_ctx_slot = {context}, kv_unified = 'true'"
        );
        self.own(id, line.as_bytes());
        self.own(
            id,
            b"0.00.310.000 W srv  common_init: failed to initialize speculative decoding context: no MTP layers",
        );
        self.own(id, format!("0.00.320.000 I srv  main: the key is {KEY}, \x1b[2J\x1b]0;x\x07 really").as_bytes());
        self.own(id, b"0.00.400.000 I srv  llama_server: listening on http://127.0.0.1:8080");
    }

    /// Three starts of one unit, and lines of another.
    fn of_a_host() -> Entries {
        let mut entries = Entries::default();
        let other = [("_SYSTEMD_UNIT", "nginx.service"), ("_SYSTEMD_INVOCATION_ID", THIRD), ("_PID", "7")];
        entries.add(&other, b"somebody else says n_threads");
        entries.start(FIRST, "1024");
        entries.manager(
            FIRST,
            &[("MESSAGE_ID", "98e322203f7a4ed290d09fe03c09fe15"), ("EXIT_CODE", "exited"), ("EXIT_STATUS", "1")],
            "llama-qwen.service: Main process exited",
        );
        entries.manager(
            FIRST,
            &[("MESSAGE_ID", "d9b373ed55a64feb8242e02dbe79a49c"), ("UNIT_RESULT", "exit-code")],
            "llama-qwen.service: Failed with result 'exit-code'.",
        );
        entries.add(&other, b"somebody else again");
        entries.start(SECOND, "4096");
        // A process that pretends to be the manager, and a message of several lines.
        entries.add(&[("_PID", "666"), ("UNIT", UNIT), ("INVOCATION_ID", SECOND)], b"forged");
        entries.own(SECOND, b"first of two\nsecond of two");
        entries
    }

    /// As journalctl prints them: with the place of each.
    fn with_cursors(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut number = 0;
        for line in self.text.split_inclusive(|byte| *byte == b'\n') {
            if line.starts_with(b"__REALTIME_TIMESTAMP=") {
                let time = String::from_utf8_lossy(&line[21..]).trim().parse::<u64>().expect("a time");
                let (source, boot) = ("7".repeat(32), "b".repeat(32));
                text.extend(format!("__CURSOR=s={source};i={number:x};b={boot};m=1;t={time:x};x=1\n").bytes());
                number += 1;
            }
            text.extend(line);
        }
        text
    }

    /// The directory of a journal that holds them; nothing where the tools are missing.
    fn journal(&self) -> Option<TempDir> {
        if !Path::new(JOURNAL_REMOTE).exists() {
            eprintln!("skipped: needs systemd-journal-remote");
            return None;
        }
        let directory = TempDir::new().expect("a directory");
        let mut child = Command::new(JOURNAL_REMOTE)
            .args(["-o".as_ref(), directory.path().join("remote.journal").as_os_str(), "-".as_ref()])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("systemd-journal-remote starts");
        child.stdin.take().expect("its input").write_all(&self.text).expect("is taken");
        assert!(child.wait().expect("it ends").success());
        Some(directory)
    }
}

struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ascertain"));
    command.arg("log").args(args).env_remove("COLUMNS");
    command
}

fn ran(command: &mut Command) -> Ran {
    let output = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    Ran { code: output.status.code().expect("an exit code"), out: text(&output.stdout), err: text(&output.stderr) }
}

/// `ascertain log` of a unit in a journal.
fn log(journal: &TempDir, args: &[&str]) -> Ran {
    ran(command(args).arg("--journal").arg(journal.path()))
}

fn has(text: &str, what: &str) {
    assert!(text.contains(what), "expected {what:?} in:\n{text}");
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[test]
fn it_is_the_log_of_exactly_one_start() {
    let Some(journal) = Entries::of_a_host().journal() else { return };
    let newest = log(&journal, &["llama-qwen"]);
    assert_eq!((newest.code, &newest.err[..]), (0, ""), "{}", newest.out);
    let shown = lines(&newest.out);
    assert_eq!(shown.len(), 8, "{}", newest.out);
    has(shown[0], "2026-11-30T10:58:31.000000Z systemd[1]: Started llama-qwen.service");
    has(
        shown[2],
        "llama-server[999999999]: 0.00.300.001 I srv    load_model: initializing, n_slots = 4, n_ctx_slot = 4096",
    );
    assert!(shown[7].starts_with(' ') && shown[7].ends_with("  second of two"), "moved in below the first line");
    for foreign in ["1024", "forged", "somebody"] {
        assert!(!newest.out.contains(foreign), "{foreign}:\n{}", newest.out);
    }
    let before = log(&journal, &[UNIT, "--invocation", "-1"]);
    assert_eq!(lines(&before.out).len(), 8);
    has(&before.out, "n_ctx_slot = 1024");
    has(&before.out, "Failed with result");
    for same in ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa0", "AAAAAAAA-AAAAAAAAAAAAAAAAAAAAAAA0", "1"] {
        assert_eq!(log(&journal, &["llama-qwen", "-i", same]).out, before.out);
    }
    let wrong = log(&journal, &["llama-qwen", "-i", "-2"]);
    assert_eq!(wrong.code, 2);
    has(&wrong.err, "the journal knows 2 starts");
    has(&wrong.err, "--list");
    assert_eq!(log(&journal, &["llama-qwen", "-i", "aaaaaa"]).code, 2, "two begin so");
    assert_eq!(log(&journal, &["llama-qwen", "-i", "yesterday"]).code, 2);
}

#[test]
fn the_margin_names_the_settings_a_line_is_about() {
    let Some(journal) = Entries::of_a_host().journal() else { return };
    let shown = log(&journal, &["llama-qwen"]).out;
    let of = |words: &str| {
        shown
            .lines()
            .find(|line| line.contains(words))
            .expect("the line")
            .split(' ')
            .next()
            .expect("a margin")
            .to_owned()
    };
    assert!(of("n_ctx_slot = 4096").split(',').any(|name| name == "ctx_size"), "{shown}");
    assert_eq!(of("failed to initialize speculative"), "spec_type,spec_draft_model,spec_default");
    assert_eq!(of("Started llama-qwen"), "");
    // A unit that is no engine has no margin.
    let other = log(&journal, &["nginx"]);
    assert!(other.out.starts_with("2026-11-30T10:58:21.000000Z [7]: somebody else says n_threads\n"), "{}", other.out);
}

#[test]
fn secrets_and_what_a_terminal_would_obey_are_not_shown() {
    let Some(journal) = Entries::of_a_host().journal() else { return };
    let json = log(&journal, &["llama-qwen", "--format", "json"]).out;
    let text = log(&journal, &["llama-qwen"]).out;
    for shown in [&json, &text] {
        assert!(!shown.contains(KEY) && !shown.contains('\u{1b}') && !shown.contains('\u{7}'), "{shown}");
        has(shown, "the key is [redacted]");
    }
    // Nor can they be found out by asking for them.
    let asked = log(&journal, &["llama-qwen", "--grep", "correct-horse"]);
    assert_eq!((asked.code, &asked.out[..]), (1, ""));
    has(&log(&journal, &["llama-qwen", "--grep", "redacted"]).out, "the key is [redacted]");
}

#[test]
fn lines_are_chosen_by_pattern_and_number() {
    let Some(journal) = Entries::of_a_host().journal() else { return };
    let count = |args: &[&str]| {
        let ran = log(&journal, &[&["llama-qwen"], args].concat());
        (ran.code, lines(&ran.out).len())
    };
    assert_eq!(count(&["--grep", "SPECULATIVE|Listening"]), (1, 0), "with capitals as written");
    assert_eq!(count(&["--grep", "LISTENING"]), (1, 0));
    assert_eq!(count(&["--grep", "speculative|listening"]), (0, 2));
    assert_eq!(count(&["--grep", r"n_ctx_slot = \d+"]), (0, 1));
    assert_eq!(count(&["--grep", "mtp"]), (0, 1));
    assert_eq!(count(&["--grep", "no such words"]), (1, 0));
    assert_eq!(count(&["-n", "3"]), (0, 4), "the last has two rows");
    assert_eq!(count(&["-n", "0"]), (1, 0));
    assert_eq!(count(&["-n", "1", "--grep", "speculative|listening"]), (0, 1));
    has(&log(&journal, &["llama-qwen", "-n", "1", "--grep", "s.*ing"]).out, "listening");
    let wrong = log(&journal, &["llama-qwen", "--grep", "("]);
    assert_eq!(wrong.code, 2);
    has(&wrong.err, "is no regular expression");
}

#[test]
fn a_terminal_gets_a_margin_and_wrapped_lines() {
    let Some(journal) = Entries::of_a_host().journal() else { return };
    for columns in [80, 140] {
        let ran = ran(command(&["llama-qwen", "--journal"]).arg(journal.path()).env("COLUMNS", columns.to_string()));
        let shown = lines(&ran.out);
        assert_eq!(ran.code, 0);
        assert!(shown.iter().all(|line| line.chars().count() <= columns), "{columns}:\n{}", ran.out);
        has(shown[0], "llama-qwen.service: newest of 2 starts, aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1");
        has(&ran.out, "2026-11-30 (times are UTC)");
        has(&ran.out, "10:58:31.000 systemd[1]: Started");
        // Each setting of a line has a row of its own, beside the wrapped message.
        let first = |index: usize| shown[index].split(' ').next().expect("a margin");
        let at = shown.iter().position(|line| line.starts_with("spec_type")).expect("a margin");
        assert_eq!([first(at + 1), first(at + 2)], ["spec_draft_model", "spec_default"], "{}", ran.out);
        let words = ran.out.replace("spec_draft_model", "").split_whitespace().collect::<Vec<_>>().join(" ");
        has(&words, "failed to initialize");
        // Who writes is said when it changes.
        assert_eq!(ran.out.matches("llama-server[999999999]").count(), 1, "{}", ran.out);
    }
    let painted = ran(command(&["llama-qwen", "--color", "always", "--journal"]).arg(journal.path()));
    has(&painted.out, "\u{1b}[33m0.00.310.000 W");
}

#[test]
fn the_json_holds_what_is_shown() {
    let Some(journal) = Entries::of_a_host().journal() else { return };
    let ran = log(&journal, &["llama-qwen", "--format", "json"]);
    let json: Json = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(json["schema"], "ascertain.log/1");
    assert_eq!((&json["unit"], &json["invocation"], &json["number"]), (&UNIT.into(), &SECOND.into(), &0.into()));
    assert_eq!((&json["engine"], &json["complete"]), (&"llama.cpp".into(), &true.into()));
    let rows = json["lines"].as_array().expect("lines");
    assert_eq!(rows.len(), 7);
    assert_eq!(rows[0]["time"], "2026-11-30T10:58:31.000000Z");
    assert_eq!(rows[0]["identifier"], "systemd");
    assert_eq!(rows[3]["settings"], serde_json::json!(["spec_type", "spec_draft_model", "spec_default"]));
    assert_eq!((&rows[3]["priority"], &rows[3]["pid"]), (&4.into(), &999_999_999.into()));
    assert_eq!(rows[6]["message"], "first of two\nsecond of two");
    assert!(rows[4]["message"].as_str().expect("text").contains('\u{1b}'), "the bytes are the same to a parser");
    let empty = log(&journal, &["llama-qwen", "--format", "json", "--grep", "nothing like it"]);
    let json: Json = serde_json::from_str(&empty.out).expect("JSON");
    assert_eq!((empty.code, json["lines"].as_array().expect("lines").len()), (1, 0));
}

#[test]
fn starts_are_listed_with_how_they_ended() {
    let Some(journal) = Entries::of_a_host().journal() else { return };
    let ran = log(&journal, &["llama-qwen", "--list"]);
    assert_eq!((ran.code, &ran.err[..]), (0, ""));
    let shown = lines(&ran.out);
    assert_eq!(shown[0], UNIT);
    has(shown[2], "  -1  aaaaaaaa  2026-11-30 10:58  2026-11-30 10:58         8  failed: exit-code");
    has(shown[3], "  (exited, 1)");
    has(shown[4], "   0  aaaaaaaa  2026-11-30 10:58  2026-11-30 10:58         8  not yet");
    assert!(shown.iter().all(|line| line.chars().count() <= 80), "{}", ran.out);
    let json: Json =
        serde_json::from_str(&log(&journal, &["llama-qwen", "--list", "--format", "json"]).out).expect("JSON");
    let first = &json["starts"][0];
    assert_eq!(
        (&first["number"], &first["invocation"], &first["state"]),
        (&(-1).into(), &FIRST.into(), &"failed".into())
    );
    assert_eq!((&first["failure"], &first["process"]), (&"exit-code".into(), &serde_json::json!(["exited", "1"])));
}

#[test]
fn a_misspelt_unit_is_put_right() {
    let Some(journal) = Entries::of_a_host().journal() else { return };
    let ran = log(&journal, &["llama-qwne"]);
    assert_eq!((ran.code, &ran.out[..]), (2, ""));
    has(&ran.err, "the journal has no line of a unit \"llama-qwne\"");
    has(&ran.err, "did you mean llama-qwen?");
    let far = log(&journal, &["postgresql"]);
    has(&far.err, "it has lines of llama-qwen, nginx");
    let nowhere = TempDir::new().expect("a directory");
    let ran = log(&nowhere, &["llama-qwen"]);
    assert_eq!(ran.code, 2);
    has(&ran.err, "there is no journal in");
    let ran = log(&nowhere, &["http://127.0.0.1:8080"]);
    assert_eq!(ran.code, 2);
    has(&ran.err, "is no unit");
}

#[test]
fn what_is_missing_is_told() {
    // The manager's first line is not there, and journald dropped messages.
    let mut entries = Entries::default();
    entries.own(SECOND, b"0.00.300.001 I srv    load_model: somewhere in the middle");
    entries.add(
        &[
            ("_PID", "300"),
            ("_UID", "0"),
            ("MESSAGE_ID", "a596d6fe7bfa4994828e72309e95d61e"),
            ("OBJECT_SYSTEMD_UNIT", UNIT),
            ("OBJECT_SYSTEMD_INVOCATION_ID", SECOND),
            ("N_DROPPED", "4711"),
        ],
        b"Suppressed 4711 messages from llama-qwen.service",
    );
    let Some(journal) = entries.journal() else { return };
    let ran = log(&journal, &["llama-qwen"]);
    assert_eq!((ran.code, lines(&ran.out).len(), lines(&ran.err).len()), (0, 1, 1), "{}", ran.err);
    has(&ran.err, "not the complete log of this start: ");
    has(&ran.err, "first line about this start is missing");
    has(&ran.err, "dropped 4711 messages");
    let json: Json = serde_json::from_str(&log(&journal, &["llama-qwen", "--format", "json"]).out).expect("JSON");
    assert_eq!((&json["complete"], json["flaws"].as_array().expect("flaws").len()), (&false.into(), 2));

    // A file that was cut.
    let mut entries = Entries::of_a_host();
    (0..2000).for_each(|line| entries.own(SECOND, format!("line {line}").as_bytes()));
    let Some(journal) = entries.journal() else { return };
    let path = journal.path().join("remote.journal");
    let bytes = fs::read(&path).expect("read");
    let last_object = u64::from_le_bytes(bytes[136..144].try_into().expect("eight")) as usize;
    let table = u64::from_le_bytes(bytes[104..112].try_into().expect("eight")) as usize;
    let size = u64::from_le_bytes(bytes[112..120].try_into().expect("eight")) as usize;
    fs::write(&path, &bytes[..(table + size + last_object) / 2]).expect("written");
    let ran = log(&journal, &["llama-qwen"]);
    assert_eq!(ran.code, 0);
    has(&ran.err, "is truncated");
    let shown = lines(&ran.out).len();
    assert!(shown > 100 && shown < 2000, "{shown}");
}

#[test]
fn an_entry_that_cannot_be_read_is_told_and_the_others_are_shown() {
    let mut entries = Entries::of_a_host();
    (0..50).for_each(|line| entries.own(SECOND, format!("unique line {line}").as_bytes()));
    let Some(journal) = entries.journal() else { return };
    let path = journal.path().join("remote.journal");
    let mut bytes = fs::read(&path).expect("read");
    let words = b"MESSAGE=unique line 17";
    let at = bytes.windows(words.len()).position(|part| part == words).expect("the message");
    bytes[at + words.len() - 1] = b'8';
    fs::write(&path, &bytes).expect("written");
    let ran = log(&journal, &["llama-qwen"]);
    has(&ran.out, "unique line 16");
    has(&ran.out, "[ascertain: this entry could not be read]");
    has(&ran.err, "holds a damaged value");
    let json: Json = serde_json::from_str(&log(&journal, &["llama-qwen", "--format", "json"]).out).expect("JSON");
    assert_eq!(json["complete"], false);
    // A search that cannot see a message says so.
    let ran = log(&journal, &["llama-qwen", "--grep", "unique line 18"]);
    assert_eq!(lines(&ran.out).len(), 1);
    has(&ran.err, "holds a damaged value");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut entries = Entries::of_a_host();
    (0..5000).for_each(|line| entries.own(SECOND, format!("line {line}").as_bytes()));
    let Some(journal) = entries.journal() else { return };
    let mut child = command(&["llama-qwen", "--journal"])
        .arg(journal.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().expect("its output"));
    reader.read_line(&mut first).expect("a line");
    drop(reader);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// A folder with a program called journalctl.
fn journalctl(script: &str) -> TempDir {
    let folder = TempDir::new().expect("a directory");
    let path = folder.path().join("journalctl");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    folder
}

#[test]
fn where_no_file_can_be_read_journalctl_is_asked_and_that_is_said() {
    // Ours cannot read these files; the journalctl of the host may.
    let journal = TempDir::new().expect("a directory");
    fs::write(journal.path().join("system.journal"), "of another format").expect("written");
    let entries = Entries::of_a_host();
    fs::write(journal.path().join("export"), entries.with_cursors()).expect("written");
    let path = |folder: &TempDir| format!("{}:/usr/bin:/bin", folder.path().display());
    let able = journalctl(&format!("cat {}/export", journal.path().display()));
    let run = |folder: &TempDir, args: &[&str]| {
        ran(command(args).arg("--journal").arg(journal.path()).env("PATH", path(folder)))
    };
    let shown = run(&able, &["llama-qwen"]);
    assert_eq!((shown.code, lines(&shown.out).len()), (0, 8), "{}", shown.err);
    has(&shown.out, "n_ctx_slot = 4096");
    has(&shown.out, "the key is [redacted]");
    has(&shown.err, "it was read through journalctl");
    let before = run(&able, &["llama-qwen", "-i", "-1", "--grep", "n_ctx"]);
    has(&before.out, "n_ctx_slot = 1024");
    let json: Json = serde_json::from_str(&run(&able, &["llama-qwen", "--format", "json"]).out).expect("JSON");
    assert_eq!((&json["source"], &json["complete"]), (&"journalctl".into(), &false.into()));
    let unable = run(&journalctl("echo 'Permission denied' >&2; exit 1"), &["llama-qwen"]);
    assert_eq!(unable.code, 2);
    has(&unable.err, "no file of the journal could be read");
    has(&unable.err, "is not a journal file");
    has(&unable.err, "Permission denied");
    let silent = run(&journalctl("exit 0"), &["llama-qwen"]);
    assert_eq!(silent.code, 2);
    has(&silent.err, "journalctl has no line of llama-qwen.service either");
}

#[test]
fn a_captures_log_is_shown_as_well() {
    let captures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../captures/llamacpp/draft-vocab-mismatch");
    let path = captures.to_str().expect("a path");
    let ran = ran(&mut command(&[path]));
    assert_eq!(ran.code, 0);
    let line = ran.out.lines().find(|line| line.contains("vocabs are not compatible")).expect("the line");
    assert!(line.starts_with("spec_type,spec_draft_model "), "{line}");
    let few = self::ran(&mut command(&[path, "--grep", "vocabs"]));
    assert!((1..4).contains(&lines(&few.out).len()), "{}", few.out);
    for wrong in [&[path, "--list"][..], &[path, "-i", "-1"]] {
        assert_eq!(self::ran(&mut command(wrong)).code, 2);
    }
    let ran = self::ran(&mut command(&["/nonexistent/capture"]));
    assert_eq!(ran.code, 2);
    has(&ran.err, "no such file or directory");
}

#[test]
fn only_the_last_start_of_a_file_is_shown() {
    let directory = TempDir::new().expect("a directory");
    let start = |port: u16| {
        format!(
            "0.00.001.075 I srv  llama_server: initializing ...\n\
             0.00.002.418 I cmn  common_param: common_params_print_info: verbosity = 3 (adjust with the `-lv N` CLI arg)\n\
             0.00.035.053 I srv  llama_server: listening on http://127.0.0.1:{port}\n"
        )
    };
    fs::write(directory.path().join("log.txt"), start(1) + &start(2)).expect("written");
    let argv = r#"["/opt/llama-server", "-m", "x.gguf"]"#;
    fs::write(directory.path().join("proc_cmdline.json"), argv).expect("written");
    let path = directory.path().to_str().expect("a path");
    let whole = ran(&mut command(&[path]));
    assert_eq!((lines(&whole.out).len(), &whole.err[..]), (3, ""), "{}", whole.out);
    has(&whole.out, "127.0.0.1:2");
    fs::write(directory.path().join("log.txt"), "0.00.035.053 I srv  llama_server: listening on http://127.0.0.1:3\n")
        .expect("written");
    let cut = ran(&mut command(&[path]));
    assert_eq!(cut.code, 0);
    has(&cut.err, "the first line of a start is not in it");
}

#[test]
fn a_process_is_followed_to_the_file_it_writes() {
    let directory = TempDir::new().expect("a directory");
    let file = fs::File::create(directory.path().join("server.log")).expect("a file");
    let server = directory.path().join("llama-server");
    fs::copy("/bin/sh", &server).expect("a copy of the shell");
    fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).expect("made executable");
    let script = "echo '0.00.001.075 I srv  llama_server: initializing ...' >&2\n\
                  echo 'W load: failed to load draft model, a' >&2\necho --api-key=correct-horse-battery >&2\n\
                  echo done; read nothing";
    let mut child = Command::new(&server)
        .args(["-c", script])
        // Inherited by whatever is started by hand in a service: it writes to its file all the same.
        .env("INVOCATION_ID", SECOND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(file)
        .spawn()
        .expect("it starts");
    let mut said = String::new();
    BufReader::new(child.stdout.as_mut().expect("its output")).read_line(&mut said).expect("it is ready");
    let ran = ran(&mut command(&[&format!("pid:{}", child.id())]));
    drop(child.stdin.take());
    child.wait().expect("it ends");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(lines(&ran.out).len(), 3, "{}", ran.out);
    has(&ran.out, "--api-key=[redacted]");
    let gone = self::ran(&mut command(&["pid:999999999"]));
    assert_eq!(gone.code, 2);
    has(&gone.err, "cannot look at process");
}

#[test]
fn a_process_is_followed_to_its_start_in_the_journal() {
    let Some(journal) = Entries::of_a_host().journal() else { return };
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a socket");
    let mut child = Command::new("/bin/cat")
        .env("INVOCATION_ID", FIRST)
        .stdin(Stdio::piped())
        .stdout(std::os::fd::OwnedFd::from(theirs.try_clone().expect("a socket")))
        .stderr(std::os::fd::OwnedFd::from(theirs))
        .spawn()
        .expect("it starts");
    let target = format!("pid:{}", child.id());
    let shown = log(&journal, &[&target]);
    let listed = log(&journal, &[&target, "--list"]);
    drop(child.stdin.take());
    child.wait().expect("it ends");
    drop(ours);
    assert_eq!(shown.code, 0, "{}", shown.err);
    has(&shown.out, "n_ctx_slot = 1024");
    has(&listed.out, UNIT);
}
