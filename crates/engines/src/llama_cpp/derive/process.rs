//! What the process itself shows: its model, threads, locked memory, and how it writes its log.

use super::statement::Statement;
use crate::llama_cpp::reader::Reader;
use ascertain_model::{Act, Rung, Value};

/// 0 threads are as many as the host has processors.
pub(super) fn threads(reader: &mut Reader<'_>) {
    for setting in ["threads", "threads_batch"] {
        if reader.asked_number(setting).is_some_and(|asked| asked <= 0) {
            reader.silently(
                setting,
                Act::Adjusts { to: None },
                "0 is taken for the number of processors",
                "write the number, or leave it out",
            );
        }
    }
}

/// The name of the model is logged before the file is opened; that it was loaded is logged when everything is.
pub(super) fn model(reader: &mut Reader<'_>) {
    if reader.claim("model").is_none() || reader.first_line("llama_server: model loaded").is_none() {
        return;
    }
    let Some((range, label, text)) = reader.first_line("load_model: loading model '") else { return };
    let named = text.split("loading model '").nth(1).and_then(|rest| rest.split('\'').next()).unwrap_or("").to_string();
    let start = reader.log_start();
    reader.state(
        Statement::new("model", Value::text(named), Rung::Acknowledged, "log", reader.log_name, range)
            .label(label)
            .note("and a later line says that the model is loaded")
            .of(start),
    );
}

/// How the log looks shows how it was told to look.
pub(super) fn log_style(reader: &mut Reader<'_>) {
    let Some(log) = &reader.log else { return };
    let (style, first) = (log.style, log.lines.first().map(|line| (line.range.clone(), line.number)));
    let Some((range, number)) = first else { return };
    let start = reader.log_start();
    let mut say = |setting: &str, on: bool, note: &str| {
        if reader.claim(setting).is_some() {
            reader.state(
                Statement::new(setting, Value::Bool(on), Rung::Acknowledged, "log", reader.log_name, range.clone())
                    .label(format!("line {number}"))
                    .note(note)
                    .of(start.clone()),
            );
        }
    };
    if style.json > 0 {
        say("log_jsonl", true, "the lines are JSON objects");
        return;
    }
    say("log_jsonl", false, "the lines are not JSON objects");
    if style.levelled > 0 {
        say("log_prefix", true, "the lines begin with a level");
        say("log_timestamps", style.timed > 0, "with a prefix, the time shows whether it is on");
    } else if style.bare > 0 && style.timed == 0 {
        // Without a prefix there is no time either, whatever was asked.
        say("log_prefix", false, "the lines have no level");
    }
}

/// The kernel counts locked memory. Some of it can be locked although the whole was not, which the engine warns of.
pub(super) fn memory_lock(reader: &mut Reader<'_>) {
    let Some(bytes) = reader.capture.bytes("proc_status.txt") else { return };
    let Some(text) = std::str::from_utf8(bytes).ok() else { return };
    let Some(at) = text.find("VmLck:") else { return };
    let line = text[at..].lines().next().unwrap_or("");
    let locked: u64 = line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    if locked == 0 {
        return;
    }
    let range = at..at + line.len();
    let failed =
        reader.log.as_ref().is_some_and(|log| log.lines.iter().any(|line| line.text.contains("failed to mlock")));
    let silent = reader.foreign_log.is_some() || reader.log.as_ref().is_none_or(|log| !log.would_show(2));
    if failed || silent {
        return;
    }
    let note = "memory is locked, and the complete log has no warning that a part could not be";
    if let Some(asked) = reader.asked_value("load_mode")
        && asked.to_string().contains("mlock")
    {
        // The model file stays mapped in one of the two modes and not in the other.
        let model = reader.asked_value("model").map(|model| model.to_string());
        let mapped = reader
            .capture
            .bytes("maps_files.txt")
            .zip(model)
            .map(|(maps, model)| maps.split(|byte| *byte == b'\n').any(|line| line == model.as_bytes()));
        let value = match mapped {
            Some(true) => "mmap+mlock",
            Some(false) => "mlock",
            None => return,
        };
        reader.state(
            Statement::new(
                "load_mode",
                Value::text(value),
                Rung::Exercised,
                "process",
                "proc_status.txt",
                range.clone(),
            )
            .label("VmLck")
            .note(note),
        );
    }
    if reader.claim("mlock").is_some() {
        reader.state(
            Statement::new("mlock", Value::Bool(true), Rung::Exercised, "process", "proc_status.txt", range)
                .label("VmLck")
                .note(note),
        );
    }
}
