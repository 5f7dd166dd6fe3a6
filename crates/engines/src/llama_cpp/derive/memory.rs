//! How the file of the model is in memory: mapped, locked, or read.

use super::statement::Statement;
use crate::llama_cpp::artifacts::answer;
use crate::llama_cpp::reader::Reader;
use ascertain_model::{Act, Asked, Rung, Value};
use serde_json::Value as Json;
use std::ops::Range;

/// Whether the process has the file of its model mapped. Not having it among the mapped files says so only where
/// nothing is mapped that could be it under another name: a link is shown as the file it leads to.
fn mapped(reader: &Reader<'_>) -> Option<bool> {
    let maps = std::str::from_utf8(reader.capture.bytes("maps_files.txt")?).ok()?;
    let whole = reader.capture.entry("maps_files.txt").is_none_or(|entry| entry.partial.is_none());
    let model = reader.asked_text("model")?;
    let process = answer(reader.capture, "process.json");
    let about = |name: &str| process.as_ref().and_then(|process| process.value.get(name)).and_then(Json::as_str);
    let path = match about("cwd") {
        Some(cwd) if !model.starts_with('/') => format!("{cwd}/{}", model.trim_start_matches("./")),
        _ => model.to_string(),
    };
    let lines = || maps.lines().filter(|line| line.starts_with('/'));
    let executable = about("exe").or_else(|| reader.facts.argv.first().map(|word| word.text.as_str()));
    if lines().any(|line| line.strip_suffix(" (deleted)").unwrap_or(line) == path) {
        return Some(true);
    }
    // What comes with the executable lies beside it.
    let home = executable.and_then(|exe| exe.rsplit_once('/')).map(|(folder, _)| folder);
    let beside = |line: &str| home.is_some_and(|home| !home.is_empty() && line.starts_with(home));
    let is_known = |line: &str| {
        let name = line.rsplit('/').next().unwrap_or(line);
        let is_library = name.ends_with(".so") || name.contains(".so.");
        let is_in_library = ["/usr/lib", "/lib"].iter().any(|folder| line.starts_with(folder)) || beside(line);
        let is_device = ["/dev/nvidia", "/dev/dri/", "/dev/kfd", "/dev/zero"].iter().any(|node| line.starts_with(node));
        is_library && is_in_library || is_device || line.starts_with("/usr/lib/locale/") || Some(line) == executable
    };
    // Tensors that were sent elsewhere leave nothing to map.
    let moved = reader.claim("override_tensor").is_some();
    (whole && !moved && lines().next().is_some() && lines().all(is_known)).then_some(false)
}

/// The kibibytes that the kernel counts as locked, and where it says so.
fn locked(reader: &Reader<'_>) -> Option<(u64, Range<usize>)> {
    let text = std::str::from_utf8(reader.capture.bytes("proc_status.txt")?).ok()?;
    let at = text.find("VmLck:")?;
    let line = text[at..].lines().next().unwrap_or("");
    let locked = line.split_whitespace().nth(1)?.parse().ok()?;
    Some((locked, at..at + line.len()))
}

/// Mapped or not, as the kernel lists it.
pub(super) fn memory_map(reader: &mut Reader<'_>) {
    if !reader.is_running() {
        return;
    }
    let Some(mapped) = mapped(reader) else { return };
    let locked = locked(reader).map(|(locked, _)| locked);
    let length = reader.capture.bytes("maps_files.txt").map_or(0, <[u8]>::len);
    let note = if mapped { "the file of the model is mapped" } else { "the file of the model is not mapped" };
    let asked = match reader.claim("load_mode").map(|claim| &claim.asked) {
        Some(Asked::Auto) => Some("auto".to_string()),
        _ => reader.asked_value("load_mode").map(|asked| asked.to_string()),
    };
    let mut say = |setting: &str, value: Value| {
        reader.state(
            Statement::new(setting, value, Rung::Exercised, "process", "maps_files.txt", 0..length)
                .label("files")
                .excerpt(note)
                .note(note),
        );
    };
    say("mmap", Value::Bool(mapped));
    match (asked.as_deref(), locked) {
        (Some("auto" | "mmap" | "none"), Some(0)) if mapped => say("load_mode", Value::text("mmap")),
        // Nothing tells a plain read from a direct one; only one of them was asked for.
        (Some("none"), Some(0)) => say("load_mode", Value::text("none")),
        (Some("mmap"), Some(0)) => say("load_mode", Value::text("not mapped")),
        _ => {}
    }
    // Another request for the same field did not change what this one asks for.
    if reader.asked_value("mmap").is_some_and(|asked| asked.same(&Value::Bool(mapped))) {
        reader.interventions.retain(|act| act.setting != "mmap" || act.locus.is_some());
    }
}

/// Which device each layer is on is told at the highest verbosity only. The line that counts offloaded layers repeats
/// the request, also where there is no GPU at all.
pub(super) fn devices(reader: &mut Reader<'_>) {
    let setting = "gpu_layers";
    let asks_for_some = |asked: &str| asked == "all" || asked.parse::<i64>().is_ok_and(|layers| layers > 0);
    if !reader.asked_value(setting).is_some_and(|asked| asks_for_some(&asked.to_string())) {
        return;
    }
    let Some(log) = &reader.log else { return };
    let mut assigned = log
        .start()
        .iter()
        .filter(|line| line.text.contains("load_tensors: layer ") && line.text.contains(" assigned to device "));
    let Some(first) = assigned.next() else {
        if !log.start().is_empty() || log.verbosity.is_none() {
            reader.settles(setting, "start it with -lv 5: its log then says on which device each layer is");
        }
        return;
    };
    let on_cpu = |line: &crate::llama_cpp::log::Line<'_>| line.text.contains(" assigned to device CPU");
    if !on_cpu(first) || !assigned.all(on_cpu) {
        return;
    }
    let (range, label) = (first.range.clone(), format!("line {}", first.number));
    let start = reader.log_start();
    reader.state(
        Statement::new(setting, Value::text("0"), Rung::Acknowledged, "log", reader.log_name, range)
            .label(label)
            .note("this line stands for each layer, and none is on another device")
            .of(start),
    );
    reader.silently(
        setting,
        Act::Ignores,
        "every layer is on the CPU, although the log also says that they were offloaded",
        "use a build that finds the GPU: llama-server --list-devices shows what it finds",
    );
}

/// The kernel counts locked memory. Some of it can be locked although the whole was not, which the engine warns of.
pub(super) fn memory_lock(reader: &mut Reader<'_>) {
    let Some((locked, range)) = locked(reader) else { return };
    if locked == 0 {
        return;
    }
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
        let value = match mapped(reader) {
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
