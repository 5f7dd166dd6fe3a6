//! The data's testimonies applied to log, endpoints and metrics: every statement about one setting, with its voice.

use super::artifacts::{Answer, answer, are_slots};
use super::log::Line;
use super::reader::{ANOTHER, Reader};
use crate::data::{Kind, Part, Setting, Source, Testimony};
use crate::locate::locate;
use crate::template::Template;
use aho_corasick::AhoCorasick;
use ascertain_model::{Evidence, Locus, Rung, Seen, StartId, Subject, Value, Voice};
use serde_json::Value as Json;
use std::collections::BTreeMap;

impl Reader<'_> {
    pub(super) fn testimonies(&mut self) {
        self.delivered();
        let data = self.data;
        let mut found = Vec::new();
        for (testimony, _) in &data.testimonies {
            match testimony.from {
                Source::Log => {}
                Source::Props => {
                    if let Some(answer) = &self.props {
                        self.hear_json(testimony, answer, &mut found);
                    }
                }
                Source::Slots => {
                    for answer in &self.slots {
                        self.hear_json(testimony, answer, &mut found);
                    }
                }
                Source::Models => {
                    if let Some(answer) = &self.models {
                        self.hear_json(testimony, answer, &mut found);
                    }
                }
                Source::Completion => {
                    for name in ["completion.json", "chat.json"] {
                        if let Some(answer) = answer(self.capture, name).filter(|answer| answer.status == 200) {
                            self.hear_json(testimony, &answer, &mut found);
                        }
                    }
                }
                Source::Http => self.hear_status(testimony, &mut found),
                Source::Metrics | Source::Status => {}
            }
        }
        self.evidence.extend(found);
        self.hear_log();
    }

    /// What was delivered, as evidence: the lowest rung that a running process shows.
    fn delivered(&mut self) {
        let mut found = Vec::new();
        for claim in &self.intent.claims {
            for origin in &claim.origins {
                let Some(locus) = &origin.locus else { continue };
                found.push(Evidence {
                    setting: claim.setting.clone(),
                    subject: Subject::Value,
                    seen: Seen::Value(Value::text(origin.value.clone())),
                    rung: Rung::Delivered,
                    voice: Voice::Echo,
                    witness: if origin.kind == "file" { "config" } else { "process" }.to_string(),
                    start: self.facts.start.clone(),
                    locus: locus.clone(),
                    excerpt: match origin.kind {
                        // The value is the next word.
                        "argv" => {
                            format!("{} {}", origin.place.split_once(' ').map_or("", |(_, flag)| flag), origin.value)
                        }
                        _ => self.excerpt(&locus.artifact, &(locus.start..locus.end)),
                    },
                    note: Some(format!("asked for in {}", origin.place)),
                });
            }
        }
        self.evidence.extend(found);
    }

    fn hear_json(&self, testimony: &Testimony, answer: &Answer<'_>, found: &mut Vec<Evidence>) {
        let Some(pointer) = testimony.pointer.as_deref() else { return };
        let pointers: Vec<String> = match pointer.split_once("/*/") {
            Some((before, rest)) => {
                let elements = answer.value.pointer(before).and_then(Json::as_array).map_or(0, Vec::len);
                (0..elements.min(4096)).map(|index| format!("{before}/{index}/{rest}")).collect()
            }
            None => vec![pointer.to_string()],
        };
        for pointer in pointers {
            let Some(json) = answer.value.pointer(&pointer) else { continue };
            let Some(raw) = plain(json) else { continue };
            if testimony.when.as_ref().is_some_and(|when| *when != raw) {
                continue;
            }
            let Some(setting) = self.data.setting(&testimony.setting) else { continue };
            // A field of another type than the setting's is not the field that was known.
            if testimony.is.is_none() && testimony.map.is_empty() && !is_of_kind(json, setting.kind) {
                continue;
            }
            let value = match (json, &testimony.is) {
                (_, Some(is)) if testimony.voice != Voice::Constant => self.stated(setting, testimony, is),
                (Json::Array(members), _) if setting.kind == Kind::List => {
                    Some(Value::set(members.iter().filter_map(Json::as_str)))
                }
                (Json::Array(members), _) => {
                    let names: Vec<&str> = members.iter().filter_map(Json::as_str).collect();
                    Some(Value::text(names.join(";")))
                }
                _ => self.stated(setting, testimony, &raw),
            };
            let Some(value) = value else { continue };
            let range = locate(answer.bytes, &pointer).unwrap_or(0..0);
            let excerpt =
                format!("{} = {}", pointer.rsplit('/').next().unwrap_or(""), self.excerpt(&answer.artifact, &range));
            let locus = Locus { artifact: answer.artifact.clone(), start: range.start, end: range.end, label: pointer };
            found.push(self.testify(testimony, setting, value, self.facts.start.clone(), locus, excerpt));
        }
    }

    fn hear_status(&self, testimony: &Testimony, found: &mut Vec<Evidence>) {
        let (Some(field), Some(when), Some(is)) = (&testimony.field, &testimony.when, &testimony.is) else { return };
        let (stem, extension) = field.rsplit_once('.').unwrap_or((field, ""));
        let after = format!("{}after.{extension}", stem.trim_end_matches("before"));
        for artifact in [field.clone(), after] {
            let Some(status) = self.statuses.get(&artifact) else { continue };
            // A page that answers 200 to everything is not this endpoint.
            let is_real = *status != 200
                || self.metrics.iter().any(|(name, _)| *name == artifact)
                || self.slots.iter().any(|slots| slots.artifact == artifact && are_slots(&slots.value));
            if status.to_string() != *when || !is_real {
                continue;
            }
            let Some(setting) = self.data.setting(&testimony.setting) else { continue };
            let Some(value) = self.stated(setting, testimony, is) else { continue };
            let length = self.capture.bytes(&artifact).map_or(0, <[u8]>::len);
            let locus = Locus { artifact: artifact.clone(), start: 0, end: length, label: format!("status {status}") };
            found.push(self.testify(
                testimony,
                setting,
                value,
                self.facts.start.clone(),
                locus,
                format!("answered with status {status}"),
            ));
        }
    }

    fn stated(&self, setting: &Setting, testimony: &Testimony, raw: &str) -> Option<Value> {
        let raw = testimony.map.get(raw).map_or(raw, String::as_str);
        if setting.secret {
            return Some(if raw == "false" { Value::Bool(false) } else { Value::Secret });
        }
        setting.value(raw)
    }

    fn testify(
        &self,
        testimony: &Testimony,
        setting: &Setting,
        value: Value,
        start: StartId,
        locus: Locus,
        excerpt: String,
    ) -> Evidence {
        let seen = match testimony.precision {
            Some(decimals) => Seen::Rounded(value, decimals),
            None => Seen::Value(value),
        };
        Evidence {
            setting: setting.name.clone(),
            subject: Subject::Value,
            seen,
            rung: testimony.rung,
            voice: testimony.voice,
            witness: testimony.from.name().to_string(),
            start,
            locus,
            excerpt,
            note: testimony.note.clone(),
        }
    }

    fn hear_log(&mut self) {
        let Some(log) = &self.log else { return };
        let data = self.data;
        let templates: Vec<(&Testimony, &Template)> = data
            .testimonies
            .iter()
            .filter_map(|(testimony, template)| template.as_ref().map(|template| (testimony, template)))
            .collect();
        let Ok(keys) = AhoCorasick::new(templates.iter().map(|(_, template)| template.key())) else { return };
        let mut found: Vec<Evidence> = Vec::new();
        let parts = parts(&log.lines);
        let mut scan = |lines: &[Line<'_>], parts: Option<&[Part]>, start: &StartId| {
            // The last statement of a line that repeats for trial runs; all distinct ones of the others.
            let mut last: BTreeMap<usize, Evidence> = BTreeMap::new();
            let mut distinct: BTreeMap<usize, Vec<Evidence>> = BTreeMap::new();
            for (index, line) in lines.iter().enumerate() {
                // What the engine acknowledges, it acknowledges while it starts. Later lines may repeat what a client
                // sent, and tell only of what the server does.
                let starting = parts.is_none() || index < log.starting;
                let mut candidates: Vec<usize> =
                    keys.find_overlapping_iter(line.text.as_ref()).map(|hit| hit.pattern().as_usize()).collect();
                candidates.sort_unstable();
                candidates.dedup();
                for candidate in candidates {
                    let (testimony, template) = templates[candidate];
                    if !starting && testimony.rung < Rung::Exercised {
                        continue;
                    }
                    let here = parts.map_or(Part::Target, |parts| parts[index]);
                    let wanted = match testimony.context {
                        Some(Part::Both) | None => Part::Target,
                        Some(part) => part,
                    };
                    // Only the lines that a draft model repeats are told apart by position.
                    if matches!(testimony.context, Some(Part::Both)) && here != Part::Target
                        || matches!(testimony.context, Some(Part::Draft)) && here != wanted && repeats(testimony)
                        || matches!(testimony.context, Some(Part::Target)) && here == Part::Draft && repeats(testimony)
                    {
                        continue;
                    }
                    let Some(holes) = template.matches(&line.text) else { continue };
                    let raw = match &testimony.is {
                        Some(is) => is.as_str(),
                        None => match holes.iter().find(|(name, _)| name == "value") {
                            Some((_, text)) => text,
                            None => continue,
                        },
                    };
                    // `[::1]:8080` has a template of its own; the plain one takes the bracket for the host.
                    if raw.starts_with('[') && testimony.setting == "host" {
                        continue;
                    }
                    let Some(setting) = data.setting(&testimony.setting) else { continue };
                    let Some(value) = self.stated(setting, testimony, raw) else { continue };
                    // A longer sibling of the line also fits: its hole then holds more than one number.
                    if matches!(setting.kind, Kind::Int | Kind::Float)
                        && value.number().is_none()
                        && !setting.choices.contains(&raw.to_string())
                        && !setting.auto.contains(&raw.to_string())
                    {
                        continue;
                    }
                    let excerpt = self.excerpt(self.log_name, &line.range);
                    let evidence =
                        self.testify(testimony, setting, value, start.clone(), self.line_locus(line), excerpt);
                    if matches!(testimony.context, Some(Part::Both)) {
                        last.insert(candidate, evidence);
                    } else {
                        let list = distinct.entry(candidate).or_default();
                        if list.len() < 8 && !list.iter().any(|other| other.seen == evidence.seen) {
                            list.push(evidence);
                        }
                    }
                }
            }
            found.extend(last.into_values());
            found.extend(distinct.into_values().flatten());
        };
        let start = self.log_start();
        scan(&log.lines, Some(&parts), &start);
        scan(&log.earlier, None, &StartId(ANOTHER.to_string()));
        self.evidence.extend(found);
    }
}

/// Whether a line repeats for the draft model, so that position decides of which it speaks.
fn repeats(testimony: &Testimony) -> bool {
    testimony.template.as_deref().is_some_and(|template| {
        ["llama_context: ", "llama_kv_cache: ", "load_tensors: ", "print_info: ", "resolve_fused_ops: "]
            .iter()
            .any(|head| template.starts_with(head))
    })
}

/// Of which model each line of the start speaks.
fn parts(lines: &[Line<'_>]) -> Vec<Part> {
    let mut here = Part::Target;
    lines
        .iter()
        .map(|line| {
            if line.text.contains("common_speculative_init_result: ") {
                here = Part::Draft;
            } else if line.text.contains("initializing, n_slots = ") {
                here = Part::Target;
            }
            here
        })
        .collect()
}

/// Whether a JSON value can be the value of a setting of this type.
fn is_of_kind(json: &Json, kind: Kind) -> bool {
    let texts = |list: &Vec<Json>| list.iter().all(Json::is_string);
    match (json, kind) {
        (Json::Number(_), Kind::Int | Kind::Float) => true,
        (Json::Bool(_), Kind::Bool | Kind::Switch | Kind::Enum) => true,
        (Json::String(_), Kind::Text | Kind::Path | Kind::Enum | Kind::List) => true,
        // A list of names; where order counts it is shown as text.
        (Json::Array(list), Kind::List | Kind::Text) => texts(list),
        (Json::Object(_), Kind::Text) => true,
        _ => false,
    }
}

/// A scalar as the text that a person would type.
fn plain(json: &Json) -> Option<String> {
    match json {
        Json::String(text) => Some(text.clone()),
        Json::Bool(on) => Some(on.to_string()),
        Json::Number(number) => Some(number.to_string()),
        Json::Array(_) => Some(String::new()),
        Json::Object(_) => Some(json.to_string()),
        Json::Null => None,
    }
}
