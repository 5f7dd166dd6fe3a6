//! A command line of wrappers, shells and scripts.

use super::parts::parts;
use ascertain_unit::wrapper::{self, Change, Inner, Known, Program, Seen};
use std::collections::BTreeMap;

pub(super) const WORDS: &[&[u8]] = &[
    b"\n@@ argv\n",
    b"\n@@ script /opt/run.sh\n",
    b"\n@@ environment\n",
    b"\n",
    b"sh\n-c\n",
    b"bash\n-lc\n",
    b"env\n",
    b"-i\n",
    b"-S\n",
    b"A=1",
    b"nice\n-n\n5\n",
    b"numactl\n",
    b"sudo\n-u\nx\n",
    b"docker\nrun\n",
    b"--\n",
    b"exec ",
    b"timeout\n5\n",
    b"taskset\n",
    b"su\n-\n",
    b"uv\nrun\n",
    b"python\n-m\n",
    b"/opt/run.sh",
    b"#!/bin/sh\n",
    b"$",
    b"${",
    b"${A:-x}",
    b"}",
    b"$A",
    b"\"$@\"",
    b"$@",
    b"$1",
    b"\"",
    b"'",
    b"\\",
    b"\\\n",
    b" ",
    b"\t",
    b";",
    b"&&",
    b"||",
    b"|",
    b"&",
    b"(",
    b")",
    b"{",
    b">",
    b"<",
    b"2>&1",
    b"`",
    b"$(",
    b"*",
    b"?",
    b"~",
    b"[",
    b"]",
    b"#",
    b"cd /x",
    b"source y",
    b"export B=2",
    b"unset A",
    b"set -e",
    b"shift",
    b"if ",
    b"[not-kept:1]",
    b"[redacted]",
    b"\xc3\xa9",
];

/// Looks through these words. What is found points into what was given, looking once more changes nothing, and knowing
/// less never leads to another answer, only to none.
pub fn wrapper(bytes: &[u8]) {
    let mut argv: Vec<String> = Vec::new();
    let mut known = Known::default();
    for part in parts(bytes) {
        match part.kind {
            "script" => drop(known.scripts.insert(part.name.to_owned(), part.text())),
            "environment" => {
                known.environment.get_or_insert_default().extend(part.lines().into_iter().map(|line| {
                    match line.split_once('=') {
                        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                        None => (line, None),
                    }
                }));
            }
            // A command in a text of its own, so that it can have several lines.
            "word" => argv.push(part.text()),
            _ => argv.extend(part.lines()),
        }
    }
    let seen = wrapper::see_through(&argv, &known);
    assert_eq!(seen, wrapper::see_through(&argv, &known));
    match &seen {
        Seen::Inner(inner) => {
            places(inner, &argv, &known.scripts);
            again(inner);
        }
        Seen::Opaque { word, why, .. } => {
            assert!(*word <= argv.len(), "{word}: {why}");
            assert!(!why.is_empty());
        }
    }
    less(&argv, &known, &seen);
}

fn places(inner: &Inner, argv: &[String], scripts: &BTreeMap<String, String>) {
    for word in &inner.argv {
        assert!(word.place.word < argv.len(), "{word:?}");
        if let Some(script) = &word.place.script {
            assert!(scripts.contains_key(script), "{word:?}");
        }
        if let Some(range) = &word.place.range {
            assert!(range.start <= range.end, "{word:?}");
        }
    }
    for change in &inner.environment {
        if let Change::Set(name, _) | Change::Unset(name) = change {
            assert!(!name.contains('='), "{change:?}");
        }
    }
    match wrapper::program(&inner.argv) {
        Some((Program::Module(_, at) | Program::Script(_, at) | Program::Code(at), first)) => {
            assert!(at < inner.argv.len() && first <= inner.argv.len() && at < first + 1);
        }
        Some((Program::Executable(_), first)) => assert_eq!(first, 1),
        None => {}
    }
}

/// Behind the last wrapper there is none.
fn again(inner: &Inner) {
    let words: Vec<String> = inner.argv.iter().map(|word| word.text.clone()).collect();
    if inner.container.is_some() || words.is_empty() {
        return;
    }
    match wrapper::see_through(&words, &Known::default()) {
        Seen::Inner(again) => {
            assert!(again.argv.iter().map(|word| &word.text).eq(&words), "{words:?}");
            assert!(again.layers.is_empty(), "{words:?}");
        }
        Seen::Opaque { why, .. } => panic!("{why}: {words:?}"),
    }
}

/// Without the environment or the scripts it may be opaque, but not another command.
fn less(argv: &[String], known: &Known, seen: &Seen) {
    let without = Known { environment: None, ..known.clone() };
    if let Seen::Inner(inner) = wrapper::see_through(argv, &without) {
        let Seen::Inner(more) = seen else { panic!("known without the environment: {inner:?}, with it: {seen:?}") };
        assert!(inner.argv.iter().map(|word| &word.text).eq(more.argv.iter().map(|word| &word.text)), "{seen:?}");
    }
}
