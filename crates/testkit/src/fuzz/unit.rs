//! A unit: its files, drop-ins, environment files and scripts, and what the manager says of it.

use super::parts::{Part, parts};
use ascertain_model::service::{FileEntry, FileText, ManagerState, Script, UnitFiles};
use ascertain_unit::collected::{self, Resolved};
use ascertain_unit::compare::{self, What};
use ascertain_unit::held::Held;
use ascertain_unit::layers::{self, Layer};
use ascertain_unit::unit::Exec;
use ascertain_unit::{Span, Version, file, show, words};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) const WORDS: &[&[u8]] = &[
    b"\n@@ file /etc/systemd/system/a-b@c.service\n",
    b"\n@@ file /etc/systemd/system/a-.service.d/x.conf\n",
    b"\n@@ file /x.env\n",
    b"\n@@ link /etc/systemd/system/a-b@c.service\n",
    b"\n@@ script /opt/run.sh\n",
    b"\n@@ show\n",
    b"\n@@ manager\n",
    b"\n@@ environ\n",
    b"\n@@ name a-b@c.service\n",
    b"\n@@ release 257\n",
    b"[Service]\n",
    b"[Unit]\n",
    b"[",
    b"]",
    b"\n",
    b"\r\n",
    b"\r",
    b"\0",
    b"\\\n",
    b"\\",
    b" ",
    b"\t",
    b"#",
    b";",
    b"=",
    b"ExecStart=",
    b"ExecStart=/bin/x ",
    b"ExecStartPre=",
    b"Environment=",
    b"EnvironmentFile=",
    b"EnvironmentFile=-/x.env\n",
    b"PassEnvironment=",
    b"UnsetEnvironment=",
    b"ExecSearchPath=",
    b"Type=oneshot\n",
    b"User=",
    b"WorkingDirectory=~",
    b"A=1",
    b"\"",
    b"'",
    b"%",
    b"%%",
    b"%i",
    b"%n",
    b"%h",
    b"%H",
    b"$A",
    b"$",
    b"${A}",
    b"${",
    b"}",
    b"$$",
    b"-",
    b"@",
    b":",
    b"+",
    b"!",
    b" ; ",
    b"\\x41",
    b"\\u00e9",
    b"\\s",
    b"\\;",
    b"/bin/sh -c ",
    b"/opt/run.sh",
    b"exec ",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xc3\xa9",
    b"export ",
];

const UNIT: &str = "/etc/systemd/system/a-b@c.service";

/// Puts a unit together from these texts. Files are kept byte for byte, every place lies in a file, the answer is always
/// the same, and when the manager holds what is written, no difference is found.
pub fn unit(bytes: &[u8]) {
    let (files, state, _) = collected(bytes);
    for (path, entry) in &files.entries {
        if let FileEntry::Text(text) = entry {
            one_file(path, text.text.as_bytes());
            environment_file(text.text.as_bytes());
        }
    }
    // As it is on disk, before anybody made text of it.
    one_file(UNIT, bytes);
    environment_file(bytes);
    let Some(resolved) = collected::resolve(&files, Some(&state)) else { return };
    places(&resolved, &files);
    let found = look(&resolved, &files, &state);
    let again = collected::resolve(&files, Some(&state)).expect("it was a name");
    assert_eq!(found, look(&again, &files, &state));
    held_as_written(&resolved, &files, &state);
}

/// The texts as a collector hands them on, and the variables of the process.
pub(super) fn collected(bytes: &[u8]) -> (UnitFiles, ManagerState, BTreeMap<String, String>) {
    let mut files = UnitFiles { name: "a-b@c.service".to_owned(), ..UnitFiles::default() };
    let mut state = ManagerState { source: "systemctl show".to_owned(), ..ManagerState::default() };
    let mut environ = BTreeMap::new();
    for part in parts(bytes) {
        let Part { kind, name, .. } = part;
        let text = |part: &Part<'_>| FileEntry::Text(FileText { text: part.text(), changed_ms: Some(1) });
        match kind {
            "file" => drop(files.entries.insert(name.to_owned(), text(&part))),
            "link" => drop(files.entries.insert(name.to_owned(), FileEntry::Link(part.text()))),
            "absent" => drop(files.entries.insert(name.to_owned(), FileEntry::Absent)),
            "script" => {
                let script = Script { interpreter: "sh".to_owned(), text: Some(part.text()), ..Script::default() };
                files.scripts.insert(name.to_owned(), script);
            }
            "name" => files.name = name.to_owned(),
            "release" => state.release = name.parse().ok(),
            "manager" => state.environment = Some(part.lines()),
            "show" => {
                for (name, value) in show::parse(&part.text()).value.properties {
                    state.properties.insert(name, Value::from(value));
                }
            }
            "environ" => {
                let pairs = part
                    .lines()
                    .into_iter()
                    .filter_map(|line| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())));
                environ = pairs.collect();
            }
            _ => drop(files.entries.insert(UNIT.to_owned(), text(&part))),
        }
    }
    (files, state, environ)
}

fn one_file(path: &str, bytes: &[u8]) {
    let read = file::parse(path, bytes);
    assert_eq!(read.value.bytes(), bytes);
    let mut at = 0;
    for line in &read.value.lines {
        assert_eq!(line.range.start, at, "lines follow each other");
        at = line.range.end;
        if let file::What::Assignment(index) = line.what {
            assert!(index < read.value.assignments.len());
        }
    }
    assert_eq!(at, bytes.len(), "lines are the file");
    for assignment in &read.value.assignments {
        let range = assignment.value_range.clone();
        assert!(range.start <= range.end && range.end <= bytes.len(), "{assignment:?}");
        span(&assignment.span, bytes.len(), read.value.lines.len());
        for offset in 0..assignment.value.len() {
            let located = assignment.locate(offset..offset + 1);
            let (byte, there) = (assignment.value.as_bytes()[offset], bytes[located.start]);
            // A backslash that continued the line became a blank.
            assert!(there == byte || there == b'\\' && byte == b' ', "{assignment:?} at {offset}");
        }
    }
    for problem in &read.problems {
        span(&problem.span, bytes.len(), read.value.lines.len());
    }
}

fn span(span: &Span, length: usize, lines: usize) {
    assert!(span.start <= span.end && span.end <= length, "{span:?} of {length}");
    assert!(span.first <= span.last && span.last <= lines.max(1), "{span:?} of {lines} lines");
}

fn environment_file(bytes: &[u8]) {
    let breaks = bytes.iter().filter(|byte| **byte == b'\n').count();
    for release in [252, 257] {
        let read = words::env_file(bytes, Version(release));
        let mut before = 0;
        for pair in &read.pairs {
            assert!(words::is_name(&pair.name), "{pair:?}");
            assert!(before <= pair.range.start && pair.range.start < pair.range.end, "{pair:?}");
            assert!(pair.range.end <= bytes.len(), "{pair:?}");
            assert!(1 <= pair.lines.0 && pair.lines.0 <= pair.lines.1 && pair.lines.1 <= breaks + 1, "{pair:?}");
            assert!(bytes[pair.range.clone()].starts_with(pair.name.as_bytes()), "{pair:?}");
            before = pair.range.end;
        }
        for issue in &read.issues {
            assert!(issue.range.start <= issue.range.end && issue.range.end <= bytes.len(), "{issue:?}");
        }
    }
}

/// Places of a unit are places in its files.
fn places(resolved: &Resolved, files: &UnitFiles) {
    let unit = &resolved.unit.value;
    let check = |one: &Span| {
        let lengths = files.entries.get(&*one.file).and_then(|entry| match entry {
            FileEntry::Text(text) => Some(text.text.len()),
            _ => None,
        });
        if let Some(length) = lengths {
            assert!(one.start <= one.end && one.end <= length && one.first <= one.last, "{one:?} of {length}");
        }
    };
    unit.settings.values().for_each(|setting| check(&setting.span));
    unit.environment.values().for_each(|variable| check(&variable.span));
    for exec in unit.exec.values().flatten() {
        check(&exec.span);
        assert_eq!(exec.words.len(), exec.command.argv.len());
        exec.words.iter().for_each(check);
    }
    resolved.unit.problems.iter().chain(&unit.refused).for_each(|problem| check(&problem.span));
    for name in unit.environment.keys() {
        assert!(words::is_name(name), "{name:?}");
    }
}

type Found = (Layer, Layer, Vec<compare::Finding>);

fn look(resolved: &Resolved, files: &UnitFiles, state: &ManagerState) -> Found {
    let held = Held::read(state);
    let written = layers::written(resolved, files);
    let loaded = layers::loaded(resolved, files, state, &held);
    let findings = compare::compare(&resolved.unit.value, Some(&held.show));
    (written, loaded, findings)
}

/// The manager holds what is written, as it says so over D-Bus.
pub(super) fn as_written(resolved: &Resolved, state: &ManagerState) -> Option<ManagerState> {
    let unit = &resolved.unit.value;
    let environment: Option<Vec<String>> =
        unit.environment.values().map(|one| one.value.known().map(|value| format!("{}={value}", one.name))).collect();
    let files: Option<Vec<Value>> =
        unit.environment_files.iter().map(|file| Some(json!([file.path.known()?, file.optional]))).collect();
    let names = |list: &[(ascertain_unit::Text, Span)]| -> Option<Vec<String>> {
        list.iter().map(|(name, _)| name.known().map(str::to_owned)).collect()
    };
    let mut state = ManagerState { source: "busctl".to_owned(), ..state.clone() };
    state.environment.get_or_insert_default();
    state.properties = BTreeMap::from([
        ("LoadState".to_owned(), json!("loaded")),
        ("Environment".to_owned(), json!(environment?)),
        ("EnvironmentFiles".to_owned(), json!(files?)),
        ("PassEnvironment".to_owned(), json!(names(&unit.pass_environment)?)),
        ("UnsetEnvironment".to_owned(), json!(names(&unit.unset_environment)?)),
    ]);
    for (key, list) in &unit.exec {
        state.properties.insert(format!("{key}Ex"), Value::from(list.iter().map(command).collect::<Option<Vec<_>>>()?));
    }
    Some(state)
}

/// A command as D-Bus has it.
fn command(exec: &Exec) -> Option<Value> {
    let prefixes = exec.command.prefixes;
    let flags = [
        (prefixes.ignore_failure, "ignore-failure"),
        (prefixes.full_privileges, "privileged"),
        (prefixes.no_setuid, "no-setuid"),
        (prefixes.ambient, "ambient"),
        (prefixes.no_variables, "no-env-expand"),
    ];
    let flags: Vec<&str> = flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag).collect();
    let argv: Option<Vec<&str>> = exec.command.argv.iter().map(|word| word.text.known()).collect();
    Some(json!([exec.command.path.known()?, argv?, flags, 0, 0, 0, 0, 0, 0, 0]))
}

fn held_as_written(resolved: &Resolved, files: &UnitFiles, state: &ManagerState) {
    let Some(state) = as_written(resolved, state) else { return };
    // A unit that systemd does not load is not held as it is written.
    if !resolved.unit.value.refused.is_empty() {
        return;
    }
    let Some(resolved) = collected::resolve(files, Some(&state)) else { return };
    let (written, loaded, findings) = look(&resolved, files, &state);
    let texts = |layer: &Layer| -> Vec<String> { layer.argv.iter().map(|(word, _)| word.clone()).collect() };
    if written.unknown.is_empty() && loaded.unknown.is_empty() {
        assert_eq!(texts(&written), texts(&loaded));
        let values = |layer: &Layer| -> Vec<(String, String)> {
            layer.environment.iter().map(|(name, value, _)| (name.clone(), value.clone())).collect()
        };
        assert_eq!(values(&written), values(&loaded));
    }
    for finding in findings {
        assert!(finding.what != What::NotReloaded, "the manager holds what is written: {finding:?}");
    }
}
