//! What `systemctl show` printed.

use ascertain_unit::show::{self, Show};
use ascertain_unit::words::quote;

pub(super) const WORDS: &[&[u8]] = &[
    b"\n",
    b"\n\n",
    b"=",
    b"ExecStart=",
    b"ExecStartEx=",
    b"{ path=",
    b" ; argv[]=",
    b" ; ignore_errors=no",
    b" ; flags=",
    b" ; start_time=[",
    b"n/a",
    b"]",
    b" ; pid=",
    b" ; code=(null)",
    b" ; status=0/0",
    b" }",
    b"Environment=",
    b"EnvironmentFiles=",
    b" (ignore_errors=yes)",
    b"\"",
    b"'",
    b"$'",
    b"\\",
    b"\\x",
    b"\\n",
    b"\\0",
    b"A=1",
    b"MainPID=",
    b"Names=",
    b"ExecMainStartTimestamp=",
    b"Mon 2026-11-30 09:17:44 UTC",
    b"@",
    b".",
    b"UTC",
    b"-",
    b":",
    b"[not set]",
    b"\xc3\xa9",
];

/// Reads these bytes as what was printed. What is read and printed again is the same, words survive quoting, and nothing
/// is there that was not printed.
pub fn show(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let read = show::parse(&text);
    for problem in &read.problems {
        assert!(problem.span.start <= problem.span.end && problem.span.end <= text.len(), "{problem:?}");
    }
    let show = &read.value;
    let lines: Vec<String> = show.properties.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    assert_eq!(&show::parse(&lines.concat()).value, show);
    for (name, value) in &show.properties {
        assert!(text.contains(name.as_str()), "{name}");
        words(value);
        look(show, name, value);
    }
    words(&text);
    if let Some(moment) = show::moment(&text) {
        assert_eq!(moment.text, text.trim());
    }
    let properties: usize = show::parse_all(&text).iter().map(|read| read.value.properties.len()).sum();
    assert!(properties <= text.lines().count() + 1);
}

fn look(show: &Show, name: &str, value: &str) {
    let name = name.strip_suffix("Ex").unwrap_or(name);
    for command in show.commands(name) {
        let printed = |part: &str| show.properties.iter().any(|(_, value)| value.contains(part));
        assert!(printed(&command.path) && printed(&command.argv), "{command:?}");
    }
    assert!(show.environment().keys().all(|name| !name.contains('=')));
    assert!(show.environment_files().len() <= value.lines().count() + show.properties.len() * 64 + (1 << 16));
    let _ = (show.moment(name), show.monotonic(name), show.number(name), show.flag(name));
    if let Some(pid) = show.main_pid() {
        assert_ne!(pid, 0);
    }
}

/// Words that are quoted as `systemctl` does are the same words when they are read again.
fn words(value: &str) {
    let words = show::words(value);
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    assert_eq!(show::words(&quoted.join(" ")), words, "{quoted:?}");
}
