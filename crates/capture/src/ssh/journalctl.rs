//! The journal of another host, through its `journalctl`: the lines of one process in one start.
//!
//! `journalctl` says nothing of what it leaves out, so a log that came from it never counts as complete.

use super::Fault;
use super::session::{Request, Session, outcome};
use crate::witness::journal::JOURNAL;
use crate::witness::{Found, gap, log};
use serde_json::{Value, json};

/// So much of a start is taken from its first line on…
const BEGINNING: usize = 16 << 20;
/// …and, if that is not all, so many of its newest lines.
const NEWEST: usize = 500;

/// One process in one start of a unit, or all of them.
pub(super) struct Start {
    unit: String,
    invocation: String,
    pid: Option<u32>,
}

impl Start {
    /// `None`: that is no id of a start.
    pub fn new(unit: String, invocation: String, pid: Option<u32>) -> Option<Start> {
        let is_id = invocation.len() == 32 && invocation.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then_some(Start { unit, invocation, pid })
    }

    fn request(&self, limit: usize, more: &[&str]) -> Request {
        let mut words = vec![limit.to_string()];
        let fields = "--output-fields=MESSAGE,_LINE_BREAK";
        words.extend(["journalctl", "--no-pager", "--quiet", "--output=json", fields].map(str::to_owned));
        words.extend(more.iter().map(|word| (*word).to_owned()));
        words.push(format!("_SYSTEMD_INVOCATION_ID={}", self.invocation));
        words.extend(self.pid.map(|pid| format!("_PID={pid}")));
        Request::new("run", &words, limit)
    }
}

impl Session {
    /// Reads the lines.
    pub(super) fn journal(&mut self, start: &Start, tell: &mut dyn FnMut(Found)) -> Result<(), Fault> {
        let source = format!("journalctl, start {} of {}", start.invocation, start.unit);
        let patience = self.patience() * 2;
        let reply = self.ask(&[start.request(BEGINNING, &[])], patience)?.pop().unwrap_or_default();
        let is_cut = reply.body.len() >= BEGINNING;
        let mut lines = Lines::default();
        lines.add(&reply.body, is_cut);
        if is_cut {
            let request = start.request(BEGINNING, &["-n", &NEWEST.to_string()]);
            let newest = self.ask(&[request], patience)?.pop().unwrap_or_default();
            lines.text.extend_from_slice(b"[ascertain: lines left out here]\n");
            lines.add(&newest.body, false);
        }
        if lines.count == 0 {
            let (stderr, _) = outcome(&reply.end);
            let said = stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or("it has no line of this start");
            let remedy =
                "log in as root or as a member of the group systemd-journal, use --sudo, or name the log: `--log FILE`";
            tell(Found::gap(log::LOG, source, gap("not_present", format!("journalctl: {said}"), Some(remedy))));
            return Ok(());
        }
        let mut flaws = vec!["journalctl does not say what it leaves out".to_owned()];
        if lines.malformed > 0 {
            flaws.push(format!("{} lines of journalctl were not understood", lines.malformed));
        }
        let record = json!({
            "unit": start.unit,
            "invocation": start.invocation,
            "read": "journalctl",
            "lines": lines.count,
            "lines_of_others": 0,
            "complete": false,
            "flaws": flaws,
        });
        let mut found = Found::bytes(log::LOG, source.clone(), lines.text);
        found.entry.partial = is_cut.then(|| "its first lines, and its newest".to_owned());
        tell(found);
        tell(Found::bytes(JOURNAL, source, format!("{record:#}\n").into_bytes()));
        Ok(())
    }
}

#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    count: usize,
    malformed: usize,
}

impl Lines {
    /// Adds entries in JSON, one a line. The last one may be cut.
    fn add(&mut self, entries: &[u8], is_cut: bool) {
        let mut lines: Vec<&[u8]> = entries.split(|byte| *byte == b'\n').collect();
        if is_cut {
            lines.pop();
        }
        for line in lines.into_iter().filter(|line| !line.is_empty()) {
            let Ok(entry) = serde_json::from_slice::<Value>(line) else {
                self.malformed += 1;
                continue;
            };
            let Some(message) = entry.get("MESSAGE").and_then(bytes_of) else {
                self.malformed += 1;
                continue;
            };
            self.count += 1;
            // One entry is one line, whatever is in it.
            self.text.extend(message.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }));
            // A line longer than journald takes at once goes on in the next entry.
            if entry.get("_LINE_BREAK").and_then(Value::as_str) != Some("line-max") {
                self.text.push(b'\n');
            }
        }
    }
}

/// A field: text, or a list of bytes where it is none. A very long one is `null`.
fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Array(bytes) => {
            bytes.iter().map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok())).collect()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_become_lines() {
        let mut lines = Lines::default();
        let entries = b"{\"MESSAGE\":\"a\\nb\"}\n{\"MESSAGE\":[255,10],\"_PID\":\"7\"}\n{\"MESSAGE\":\"long \",\"_LINE_BREAK\":\"line-max\"}\n\
            {\"MESSAGE\":\"line\"}\n{\"MESSAGE\":null}\ngarbage\n{\"MESSAGE\":\"cu";
        lines.add(entries, true);
        assert_eq!(lines.text, b"a b\n\xff \nlong line\n");
        assert_eq!((lines.count, lines.malformed), (4, 2));
        assert!(Start::new("x".into(), "not an id".into(), None).is_none());
    }
}
