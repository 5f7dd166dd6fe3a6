//! What the process itself shows: its model, threads, and how it writes its log.

use super::statement::Statement;
use crate::llama_cpp::reader::Reader;
use ascertain_model::{Act, Rung, Value};

/// 0 threads or fewer are as many as the host has processors.
pub(super) fn threads(reader: &mut Reader<'_>) {
    for setting in ["threads", "threads_batch"] {
        if let Some(asked) = reader.asked_number(setting).filter(|asked| *asked <= 0) {
            reader.silently(
                setting,
                Act::Adjusts { to: None },
                format!("{asked} is taken for the number of processors, as every number below 1 is"),
                "write the number, or leave it out",
            );
        }
    }
}

/// The name of the model is logged before the file is opened; that it was loaded is logged when everything is.
pub(super) fn model(reader: &mut Reader<'_>) {
    // A repository's file is kept under a name of the engine's own.
    if reader.claim("model").is_none()
        || reader.claim("hf_repo").is_some()
        || reader.first_line("llama_server: model loaded").is_none()
    {
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
