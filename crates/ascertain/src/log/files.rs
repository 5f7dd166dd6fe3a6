//! The log of one start from a file: that of a capture, or the one a process writes to.

use super::lines::Source;
use super::{Heading, Raw, Slice};
use crate::failure::Failure;
use crate::target::{redactor, stored};
use ascertain_capture::collect::{self, Options};
use ascertain_capture::process;
use ascertain_engines::{Engine, by_capture, by_executable};
use ascertain_model::Capture;
use ascertain_model::wants::ProcessFacts;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// What stands where a part of a log was left out.
const LEFT_OUT: &[u8] = b"[ascertain: ";

/// The log in a capture file or an evidence directory.
pub fn of_stored(path: &Path) -> Result<Slice, Failure> {
    let capture = stored(path)?;
    let engine = by_capture(&capture);
    slice_of(&capture, engine, path.display().to_string())
}

/// The log that a process writes to a file.
pub fn of_process(facts: &ProcessFacts) -> Result<Slice, Failure> {
    let exe = facts.exe.as_deref().or(facts.argv.first().map(String::as_str)).unwrap_or("");
    let engine = by_executable(exe);
    let mut wants = engine.map(|engine| engine.wants(facts, &[])).unwrap_or_default();
    // Nothing but the log is wanted.
    wants.endpoints.clear();
    wants.checkpoints.clear();
    let target = format!("pid:{}", facts.pid);
    let options = Options { pid: Some(facts.pid), target: target.clone(), ..Options::default() };
    slice_of(&collect::collect(&wants, Some(facts), &options), engine, target)
}

/// Whether a process writes to the journal, or to another collector of logs, rather than to a file.
pub fn writes_to_socket(pid: u32) -> bool {
    let is_socket =
        |fd: &str| std::fs::metadata(process::path(pid, fd)).is_ok_and(|metadata| metadata.file_type().is_socket());
    is_socket("fd/2") || is_socket("fd/1")
}

fn slice_of(capture: &Capture, engine: Option<&'static dyn Engine>, source: String) -> Result<Slice, Failure> {
    let Some((name, bytes)) = capture.first(&["log.txt", "log_stdout.txt"]) else {
        let gap = capture.gap("log.txt");
        let failure = Failure::new(match gap {
            Some(gap) => format!("{source} has no log: {}", gap.text),
            None => format!("{source} has no log"),
        });
        return Err(match gap.and_then(|gap| gap.remedy.as_ref()) {
            Some(remedy) => failure.hint(remedy),
            None => failure.hint("docs/evidence-directory.md lists what may be in an evidence directory or a capture"),
        });
    };
    let mut flaws = Vec::new();
    if let Some(partial) = capture.entry(name).and_then(|entry| entry.partial.as_ref()) {
        flaws.push(format!("only a part of it was taken: {partial}"));
    }
    // A file may hold the logs of several starts.
    let begin = match engine.map(|engine| engine.last_start(bytes)) {
        Some(Some(begin)) => begin,
        Some(None) => {
            flaws.push("the first line of a start is not in it".to_owned());
            0
        }
        None => 0,
    };
    let mut lines: Vec<Raw> = Vec::new();
    let text = bytes.get(begin..).unwrap_or_default();
    for line in text.strip_suffix(b"\n").unwrap_or(text).split(|byte| *byte == b'\n') {
        if line.starts_with(LEFT_OUT) && flaws.is_empty() {
            flaws.push("a part of it was left out".to_owned());
        }
        lines.push(Raw { own: true, message: line.strip_suffix(b"\r").unwrap_or(line).to_vec(), ..Raw::default() });
    }
    if text.is_empty() {
        lines.clear();
    }
    let heading = Heading { source, engine: engine.map(Engine::name), ..Heading::default() };
    Ok(Slice { heading, engine, redactor: redactor(), source: Source::Text(lines.into_iter()), flaws })
}
