//! The artifacts of a capture, parsed: answers, exchanges, command line, environment, configuration files.
//!
//! Nothing is concluded here. What cannot be parsed is left out; the witness notes say so.

use super::log::Log;
use super::{ConfigFile, Variable, Word, data};
use crate::data::Data;
use crate::locate::locate;
use crate::service::Service;
use crate::strict;
use crate::template::Template;
use ascertain_model::{Capture, Locus};
use ascertain_unit::layers::Layer;
use serde_json::Value as Json;
use std::ops::Range;

/// A JSON answer and how it was answered.
#[derive(Debug, Clone)]
pub(crate) struct Answer<'a> {
    pub artifact: String,
    pub bytes: &'a [u8],
    pub value: Json,
    pub status: u16,
}

/// One answered request for tokens.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub artifact: String,
    pub range: Range<usize>,
    pub label: String,
    pub excerpt: String,
    pub drafted: Option<u64>,
    pub accepted: u64,
    pub predicted: u64,
    pub cached: Option<u64>,
    pub status: u16,
    /// The limit that a refused prompt ran into.
    pub limit: Option<i64>,
}

pub(crate) fn answer<'a>(capture: &'a Capture, name: &str) -> Option<Answer<'a>> {
    let bytes = capture.bytes(name)?;
    let value = strict::parse(bytes).ok()?;
    let status = wrapped_status(bytes).unwrap_or(200);
    Some(Answer { artifact: name.to_string(), bytes, value, status })
}

/// Whether this is what the slots endpoint answers: objects that are numbered and have a context.
pub(super) fn are_slots(value: &Json) -> bool {
    let is_slot =
        |slot: &Json| slot.get("id").is_some_and(Json::is_number) && slot.get("n_ctx").is_some_and(Json::is_number);
    value.as_array().is_some_and(|slots| !slots.is_empty() && slots.iter().all(is_slot))
}

pub(super) fn wrapped_status(bytes: &[u8]) -> Option<u16> {
    if !bytes.starts_with(b"{") {
        return None;
    }
    let value = strict::parse(bytes).ok()?;
    // The recorder's wrapper, or the server's own error body.
    let status = value.get("_status").or_else(|| value.pointer("/error/code"))?;
    status.as_u64().and_then(|status| u16::try_from(status).ok())
}

pub(super) fn release(
    data: &Data,
    capture: &Capture,
    props: &Option<Answer<'_>>,
    log: Option<&Log<'_>>,
) -> Option<String> {
    let stated = props
        .as_ref()
        .and_then(|props| props.value.get("build_info"))
        .and_then(Json::as_str)
        .map(str::to_string)
        .or_else(|| {
            answer(capture, "chat.json")?.value.get("system_fingerprint").and_then(Json::as_str).map(str::to_string)
        });
    if let Some(stated) = stated {
        if let Some(known) = data.about.builds.get(&stated) {
            return Some(known.clone());
        }
        let number = stated.split('-').next().unwrap_or(&stated);
        return Some(number.to_string());
    }
    let template = Template::new("common_params_print_info: build {number} ({commit})");
    log?.start().iter().find_map(|line| template.matches(&line.text)).and_then(|holes| {
        let number = holes.first().map(|(_, text)| *text)?;
        let commit = holes.get(1).map_or("", |(_, text)| *text);
        let known = data.about.builds.get(&format!("b{number}-{commit}")).cloned();
        known.or_else(|| number.bytes().all(|byte| byte.is_ascii_digit()).then(|| format!("b{number}")))
    })
}

pub(super) fn argv(capture: &Capture, meta: Option<&Answer<'_>>) -> Vec<Word> {
    let from = |artifact: &str, bytes: &[u8], value: &Json, pointer: &str| -> Vec<Word> {
        let words: Vec<&str> = value
            .pointer(pointer)
            .and_then(Json::as_array)
            .map(|words| words.iter().filter_map(Json::as_str).collect())
            .unwrap_or_default();
        let first = words
            .iter()
            .position(|word| data().about.executables.iter().any(|name| word.rsplit('/').next() == Some(name)))
            .unwrap_or(0);
        words
            .iter()
            .enumerate()
            .skip(first)
            .map(|(index, word)| {
                let at = format!("{pointer}/{index}");
                let range = locate(bytes, &at).unwrap_or(0..0);
                let locus = Locus {
                    artifact: artifact.to_string(),
                    start: range.start,
                    end: range.end,
                    label: format!("word {}", index - first),
                };
                Word { text: (*word).to_string(), locus: Some(locus) }
            })
            .collect()
    };
    if let Some(answer) = answer(capture, "proc_cmdline.json") {
        return from("proc_cmdline.json", answer.bytes, &answer.value, "");
    }
    meta.map(|meta| from("meta.json", meta.bytes, &meta.value, "/argv")).unwrap_or_default()
}

pub(super) fn environ(capture: &Capture, meta: Option<&Answer<'_>>) -> Vec<Variable> {
    let name = capture.artifacts.keys().find(|name| name.starts_with("proc_environ") && name.ends_with(".json"));
    if let Some(answer) = name.and_then(|name| answer(capture, name)) {
        let entries = answer.value.as_array().cloned().unwrap_or_default();
        return entries
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| {
                let (name, value) = entry.as_str()?.split_once('=')?;
                let range = locate(answer.bytes, &format!("/{index}")).unwrap_or(0..0);
                let locus = Locus {
                    artifact: answer.artifact.clone(),
                    start: range.start,
                    end: range.end,
                    label: name.to_string(),
                };
                Some(Variable { name: name.to_string(), value: value.to_string(), locus: Some(locus) })
            })
            .collect();
    }
    let Some(meta) = meta else { return Vec::new() };
    let entries = meta.value.get("env").and_then(Json::as_object);
    entries
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| {
            let pointer = format!("/env/{}", name.replace('~', "~0").replace('/', "~1"));
            let range = locate(meta.bytes, &pointer).unwrap_or(0..0);
            let locus =
                Locus { artifact: "meta.json".to_string(), start: range.start, end: range.end, label: name.clone() };
            Some(Variable { name: name.clone(), value: value.as_str()?.to_string(), locus: Some(locus) })
        })
        .collect()
}

/// Reads the unit; a command whose program is no server of this engine leaves it unknown what is asked.
pub(super) fn service(capture: &Capture) -> Option<Service> {
    let mut service = crate::service::read(capture)?;
    let check = |layer: &mut Layer| {
        let Some((program, _)) = layer.argv.first() else { return };
        let name = program.rsplit('/').next().unwrap_or(program);
        if !data().about.executables.iter().any(|known| known == name) {
            layer.unknown.push(format!("what {name} starts is not known"));
            layer.argv.clear();
        }
    };
    check(&mut service.written);
    if let Some(loaded) = &mut service.loaded {
        check(loaded);
    }
    Some(service)
}

/// A file that was written so shortly after the process began may still have been read: the kernel's ticks are coarse.
pub(super) const SLACK_MS: u64 = 100;

/// Configuration files in the order in which the engine applies them. A file that was changed after the start is not
/// what this start read.
pub(super) fn config_files<'a>(capture: &'a Capture, log: Option<&Log<'_>>) -> Vec<ConfigFile<'a>> {
    let template = Template::new("using config file: {path}");
    let used: Vec<String> = log
        .map(|log| {
            log.lines
                .iter()
                .filter_map(|line| template.matches(&line.text))
                .filter_map(|holes| holes.first().map(|(_, text)| text.to_string()))
                .collect()
        })
        .unwrap_or_default();
    let mut files = Vec::new();
    for artifact in ["config_system.ini", "config.ini"] {
        let Some(text) = capture.bytes(artifact).and_then(|bytes| std::str::from_utf8(bytes).ok()) else { continue };
        let entry = capture.entry(artifact);
        let changed = entry
            .and_then(|entry| entry.changed_ms)
            .zip(capture.manifest.start.as_ref().and_then(|start| start.since_ms));
        if changed.is_some_and(|(modified, since)| modified > since + SLACK_MS) {
            continue;
        }
        let is_system = artifact == "config_system.ini";
        let path = entry
            .map(|entry| entry.source.clone())
            .filter(|source| source.starts_with('/') && source.ends_with("config.ini"))
            .or_else(|| used.iter().find(|path| path.starts_with("/etc/") == is_system).cloned())
            .unwrap_or_else(|| artifact.to_string());
        files.push(ConfigFile { artifact, path, text });
    }
    files
}

pub(super) fn exchanges(capture: &Capture) -> Vec<Exchange> {
    let mut list = Vec::new();
    for (name, bytes) in &capture.artifacts {
        let is_exercise = name.starts_with("exercise_") && name.ends_with(".json");
        if name == "completion.json" || name == "chat.json" || is_exercise {
            let Some(answer) = answer(capture, name) else { continue };
            let (base, status) = if is_exercise {
                ("/body", answer.value.get("status").and_then(Json::as_u64).unwrap_or(0) as u16)
            } else {
                ("", answer.status)
            };
            list.extend(exchange(name, bytes, &answer.value, base, status, 0));
        } else if name == "chat_stream.sse" {
            let mut at = 0;
            let mut last = None;
            for line in bytes.split(|byte| *byte == b'\n') {
                if let Some(data) = line.strip_prefix(b"data: ")
                    && data.windows(10).any(|window| window == b"\"timings\":")
                {
                    last = Some((at + 6, data));
                }
                at += line.len() + 1;
            }
            if let Some((offset, data)) = last
                && let Ok(value) = strict::parse(data)
            {
                list.extend(exchange(name, data, &value, "", 200, offset));
            }
        }
    }
    list
}

fn exchange(name: &str, bytes: &[u8], value: &Json, base: &str, status: u16, offset: usize) -> Option<Exchange> {
    let number = |pointer: &str| value.pointer(&format!("{base}{pointer}")).and_then(Json::as_u64);
    let pointer = format!("{base}/timings");
    let has_timings = value.pointer(&pointer).is_some();
    if !has_timings && status == 200 {
        return None;
    }
    let refused_at = format!("{base}/error/n_ctx");
    let range = locate(bytes, &pointer).or_else(|| locate(bytes, &refused_at)).unwrap_or(0..0);
    let drafted = number("/timings/draft_n");
    let accepted = number("/timings/draft_n_accepted").unwrap_or(0);
    let predicted = number("/timings/predicted_n").unwrap_or(0);
    let excerpt = match drafted {
        Some(drafted) => format!("predicted_n {predicted}, draft_n {drafted}, draft_n_accepted {accepted}"),
        None => format!("predicted_n {predicted}, no draft_n"),
    };
    Some(Exchange {
        artifact: name.to_string(),
        range: range.start + offset..range.end + offset,
        label: pointer,
        excerpt,
        drafted,
        accepted,
        predicted,
        cached: number("/timings/cache_n"),
        status,
        limit: value.pointer(&format!("{base}/error/n_ctx")).and_then(Json::as_i64),
    })
}
