//! Reading a capture of this engine into a case.
//!
//! First everything is parsed that can be; then the claims are read (`intent`), the data's testimonies and messages
//! are applied to log, endpoints and metrics, and `derive` adds what needs to know several things at once.

use super::log::{self, Line, Log};
use super::{ConfigFile, Facts, Variable, Word, data, derive, intent};
use crate::Reading;
use crate::data::{Data, Kind, MessageKind, Part, Setting, Source, Testimony};
use crate::locate::locate;
use crate::metrics::{self, Sample};
use crate::strict;
use crate::template::Template;
use crate::text;
use aho_corasick::AhoCorasick;
use ascertain_model::wants::{Experiment, Post};
use ascertain_model::{
    Act, Asked, Capture, Case, Claim, Evidence, Finding, Gap, Intervention, Locus, Rung, Seen, Severity, Standing,
    StartId, State, Subject, Tally, Unasked, Value, Voice, WitnessNote, WitnessState,
};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::ops::Range;

/// The start that evidence of an earlier start, or of another process, is filed under.
const ANOTHER: &str = "another start";

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

/// Everything that could be parsed, and what is made of it.
pub(crate) struct Reader<'a> {
    pub capture: &'a Capture,
    pub data: &'static Data,
    pub facts: Facts<'a>,
    pub log: Option<Log<'a>>,
    /// The artifact it is read from.
    pub log_name: &'static str,
    /// The log is of another process or start.
    pub foreign_log: Option<String>,
    pub props: Option<Answer<'a>>,
    pub slots: Vec<Answer<'a>>,
    pub models: Option<Answer<'a>>,
    pub metrics: Vec<(String, Vec<Sample<'a>>)>,
    pub exchanges: Vec<Exchange>,
    pub statuses: BTreeMap<String, u16>,
    pub intent: intent::Intent,
    pub state: State,
    pub evidence: Vec<Evidence>,
    pub interventions: Vec<Intervention>,
    pub findings: Vec<Finding>,
    pub unasked: Vec<Unasked>,
    pub gaps: Vec<Gap>,
}

/// Reads a capture.
pub fn read(capture: &Capture) -> Reading {
    let mut reader = Reader::new(capture);
    reader.testimonies();
    reader.messages();
    derive::all(&mut reader);
    reader.own_limits();
    let witnesses = reader.witnesses();
    reader.settle();
    reader.finish(witnesses)
}

/// What to send to settle what nothing else does.
pub fn experiments(capture: &Capture) -> Vec<Experiment> {
    let reader = Reader::new(capture);
    let mut list = Vec::new();
    let speculates = ["spec_type", "spec_default", "spec_draft_model"];
    let asked: Vec<String> = reader
        .intent
        .claims
        .iter()
        .filter(|claim| speculates.contains(&claim.setting.as_str()) && claim.effect.is_some())
        .map(|claim| claim.setting.clone())
        .collect();
    let after = vec![
        ("metrics_after.txt".to_string(), "/metrics".to_string()),
        ("slots_after.json".to_string(), "/slots".to_string()),
    ];
    if !asked.is_empty() {
        // Three kinds of text, because one unlucky prompt proves nothing, and one that repeats itself, without which
        // a lookup in the text so far has nothing to find.
        let prompts = [
            "The old lighthouse keeper climbed the stairs every evening, lit the lamp and wrote in his book:",
            "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a - b\n\ndef mul(a, b):\n",
            "one two three four five six seven eight nine ten one two three four five six seven eight nine ten one two three",
        ];
        let requests = prompts
            .iter()
            .cycle()
            .take(6)
            .enumerate()
            .map(|(round, prompt)| Post {
                path: "/completion".to_string(),
                body: serde_json::json!({
                    "prompt": prompt, "n_predict": if round < 3 { 96 } else { 320 }, "temperature": 0.0, "cache_prompt": false,
                })
                .to_string(),
            })
            .collect();
        list.push(Experiment {
            name: "speculation",
            settles: asked,
            why: "whether tokens are drafted and accepted".to_string(),
            requests,
            at_least: 3,
            until_positive: Some("/timings/draft_n_accepted"),
            after: after.clone(),
        });
    }
    let limit = reader
        .props
        .as_ref()
        .and_then(|props| props.value.pointer("/default_generation_settings/n_ctx"))
        .and_then(Json::as_u64);
    let asks_context = reader.intent.claims.iter().any(|claim| claim.setting == "ctx_size");
    if let Some(limit) = limit.filter(|limit| asks_context && (1..=65_536).contains(limit)) {
        let tokens: Vec<u64> = vec![1; limit as usize + 8];
        list.push(Experiment {
            name: "context",
            settles: vec!["ctx_size".to_string()],
            why: format!("whether a prompt longer than {limit} tokens is refused"),
            requests: vec![Post {
                path: "/completion".to_string(),
                body: serde_json::json!({ "prompt": tokens, "n_predict": 1, "cache_prompt": false }).to_string(),
            }],
            at_least: 1,
            until_positive: None,
            after: Vec::new(),
        });
    }
    list
}

impl<'a> Reader<'a> {
    fn new(capture: &'a Capture) -> Reader<'a> {
        let data = data();
        let meta = answer(capture, "meta.json");
        // JSON lines go to standard output, which may be another file than the rest.
        let error = capture.bytes("log.txt").map(log::read);
        let output = capture.bytes("log_stdout.txt").map(log::read).filter(|log| log.style.json > 0);
        let (log, log_name) = match output {
            Some(output) if error.as_ref().is_none_or(|error| !error.has_beginning) => (Some(output), "log_stdout.txt"),
            _ => (error, "log.txt"),
        };
        let props = answer(capture, "props.json").or_else(|| answer(capture, "props_without_key.json"));
        let slots: Vec<Answer<'a>> =
            ["slots_before.json", "slots_after.json"].iter().filter_map(|name| answer(capture, name)).collect();
        let models = answer(capture, "v1_models.json");

        let mut statuses = BTreeMap::new();
        for name in [
            "health.json",
            "props.json",
            "props_without_key.json",
            "slots_before.json",
            "slots_after.json",
            "v1_models.json",
            "metrics_before.txt",
            "metrics_after.txt",
            "completion.json",
            "chat.json",
        ] {
            if let Some(bytes) = capture.bytes(name) {
                statuses.insert(name.to_string(), wrapped_status(bytes).unwrap_or(200));
            }
        }
        let metrics = ["metrics_before.txt", "metrics_after.txt"]
            .iter()
            .filter(|name| statuses.get(**name) == Some(&200))
            .filter_map(|name| {
                capture
                    .bytes(name)
                    .and_then(|bytes| std::str::from_utf8(bytes).ok())
                    .map(|text| ((*name).to_string(), metrics::samples(text)))
            })
            .filter(|(_, samples)| !samples.is_empty())
            .collect();

        let start = StartId(match &capture.manifest.start {
            Some(start) => format!("boot {} pid {} start {}", start.boot, start.pid, start.ticks),
            None => "this start".to_string(),
        });
        let release = release(data, capture, &props, log.as_ref());
        let exchanges = exchanges(capture);
        let ready = meta.as_ref().and_then(|meta| meta.value.get("ready")).and_then(Json::as_bool);
        let alive = capture.bytes("process.json").is_some()
            || statuses.get("health.json").is_some_and(|status| *status == 200)
            || props.is_some();
        let facts = Facts {
            argv: argv(capture, meta.as_ref()),
            environ: environ(capture, meta.as_ref()),
            config_files: config_files(capture, log.as_ref()),
            release,
            start,
            running: ready.unwrap_or(alive),
        };
        let intent = intent::read(data, &facts);
        let mut reader = Reader {
            capture,
            data,
            facts,
            log,
            log_name,
            foreign_log: None,
            props: props.filter(|props| props.status == 200),
            slots: slots.into_iter().filter(|slots| slots.status == 200 && are_slots(&slots.value)).collect(),
            models: models.filter(|models| models.status == 200),
            metrics,
            exchanges,
            statuses,
            intent,
            state: State::Running,
            evidence: Vec::new(),
            interventions: Vec::new(),
            findings: Vec::new(),
            unasked: Vec::new(),
            gaps: Vec::new(),
        };
        reader.interventions.append(&mut reader.intent.interventions);
        reader.findings.append(&mut reader.intent.findings);
        reader.state = match capture.manifest.remarks.iter().find(|remark| remark.kind == "identity") {
            Some(remark) => State::Impostor { why: text::safe(&remark.text) },
            None => reader.state_of(meta.as_ref(), ready, alive),
        };
        reader.facts.running = reader.state == State::Running;
        reader.foreign_log = reader.is_foreign();
        reader
    }

    /// What became of the start: what the recorder noted, else whether anything answers, else what the log ends with.
    fn state_of(&self, meta: Option<&Answer<'_>>, ready: Option<bool>, alive: bool) -> State {
        let failed = match ready {
            Some(ready) => !ready,
            None if alive => false,
            None => self.log.as_ref().is_some_and(|log| !log.has_ready && self.refusal(log).is_some()),
        };
        if !failed {
            return State::Running;
        }
        let code = meta.and_then(|meta| meta.value.get("rc")).and_then(Json::as_i64).map(|code| {
            if code < 0 {
                format!("it was ended by signal {}", code.unsigned_abs())
            } else {
                format!("it exited with code {code}")
            }
        });
        let said = self.log.as_ref().and_then(|log| self.refusal(log)).or_else(|| {
            // The last error it logged says more than an exit code.
            let log = self.log.as_ref()?;
            log.lines.iter().rev().find(|line| line.level == Some('E')).map(|line| text::excerpt(line.text.as_bytes()))
        });
        let why = match (said, code) {
            (Some(said), Some(code)) => format!("{said} ({code})"),
            (Some(said), None) => said,
            (None, Some(code)) => code,
            (None, None) => "it never became ready".to_string(),
        };
        State::Failed { why }
    }

    fn refusal(&self, log: &Log<'_>) -> Option<String> {
        log.lines.iter().find_map(|line| {
            self.data
                .messages
                .iter()
                .filter(|(message, _)| message.kind == MessageKind::Refusal)
                .find(|(_, template)| template.matches(&line.text).is_some())
                .map(|_| text::excerpt(line.text.as_bytes()))
        })
    }

    /// Whether the log cannot be of this start: it names another port or another model than the server that answers.
    fn is_foreign(&self) -> Option<String> {
        let log = self.log.as_ref()?;
        // The address may be `[::1]`, with colons of its own.
        let address = Template::new("listening on http://{address}");
        let logged = log.lines.iter().find_map(|line| address.matches(&line.text)).and_then(|holes| {
            holes.first().and_then(|(_, text)| text.rsplit_once(':')).map(|(_, port)| port.to_string())
        });
        let listening: Vec<String> = answer(self.capture, "listeners.json")
            .and_then(|answer| answer.value.as_array().cloned())
            .unwrap_or_default()
            .iter()
            .filter_map(|one| one.get("port").and_then(Json::as_u64).map(|port| port.to_string()))
            .collect();
        if let Some(logged) = &logged
            && !listening.is_empty()
            && !listening.contains(logged)
        {
            return Some(format!(
                "it says that its server listens on port {logged}, this one listens on {}",
                listening.join(", ")
            ));
        }
        let asked = self.asked_value("port");
        if let (Some(logged), Some(Value::Int(asked))) = (&logged, asked)
            && listening.is_empty()
            && (1..=65_535).contains(&asked)
            && logged.parse() != Ok(asked)
        {
            return Some(format!("it says that its server listens on port {logged}, this one was told {asked}"));
        }
        // Nobody asked for a port, so it is the default one.
        let default = self.data.setting("port").and_then(Setting::default_value);
        if let (Some(logged), Some(Value::Int(default))) = (&logged, default)
            && listening.is_empty()
            && !self.facts.argv.is_empty()
            && self.claim("port").is_none()
            && logged.parse() != Ok(default)
        {
            return Some(format!(
                "it says that its server listens on port {logged}, this one was told none, which is {default}"
            ));
        }
        let model = Template::new("load_model: loading model '{model}'");
        let logged = log.lines.iter().find_map(|line| {
            model.matches(&line.text).and_then(|holes| holes.first().map(|(_, text)| text.to_string()))
        });
        let serving = self.props.as_ref().and_then(|props| props.value.get("model_path")).and_then(Json::as_str);
        if let (Some(logged), Some(serving)) = (logged, serving)
            && logged != serving
        {
            return Some(format!(
                "it loads {}, the server that answers serves {}",
                text::safe(&logged),
                text::safe(serving)
            ));
        }
        None
    }

    /// What a claim asks for, if it asks for one value.
    pub fn asked_value(&self, setting: &str) -> Option<Value> {
        self.claim(setting).and_then(|claim| match &claim.asked {
            Asked::Equals(value) => Some(value.clone()),
            _ => None,
        })
    }

    pub fn claim(&self, setting: &str) -> Option<&Claim> {
        self.intent.claims.iter().find(|claim| claim.setting == setting)
    }

    pub fn claim_mut(&mut self, setting: &str) -> Option<&mut Claim> {
        self.intent.claims.iter_mut().find(|claim| claim.setting == setting)
    }

    /// Effective values of this start that were seen for a setting.
    pub fn effective(&self, setting: &str) -> Vec<(Rung, Value)> {
        self.evidence
            .iter()
            .filter(|one| one.setting == setting && one.voice == Voice::Effective && one.start == self.facts.start)
            .filter_map(|one| match &one.seen {
                Seen::Value(value) => Some((one.rung, value.clone())),
                _ => None,
            })
            .collect()
    }

    /// The start that log lines belong to.
    pub fn log_start(&self) -> StartId {
        if self.foreign_log.is_some() { StartId(ANOTHER.to_string()) } else { self.facts.start.clone() }
    }

    pub fn line_locus(&self, line: &Line<'_>) -> Locus {
        Locus {
            artifact: self.log_name.to_string(),
            start: line.range.start,
            end: line.range.end,
            label: format!("line {}", line.number),
        }
    }

    pub fn excerpt(&self, artifact: &str, range: &Range<usize>) -> String {
        self.capture.bytes(artifact).and_then(|bytes| bytes.get(range.clone())).map(text::excerpt).unwrap_or_default()
    }

    fn testimonies(&mut self) {
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
                let mut candidates: Vec<usize> =
                    keys.find_overlapping_iter(line.text.as_ref()).map(|hit| hit.pattern().as_usize()).collect();
                candidates.sort_unstable();
                candidates.dedup();
                for candidate in candidates {
                    let (testimony, template) = templates[candidate];
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
                    if raw == "[" {
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

    fn messages(&mut self) {
        let Some(log) = &self.log else { return };
        let data = self.data;
        let Ok(keys) = AhoCorasick::new(data.messages.iter().map(|(_, template)| template.key())) else { return };
        let mut acts = Vec::new();
        let mut findings: Vec<Finding> = Vec::new();
        for line in &log.lines {
            let mut candidates: Vec<usize> =
                keys.find_overlapping_iter(line.text.as_ref()).map(|hit| hit.pattern().as_usize()).collect();
            candidates.sort_unstable();
            candidates.dedup();
            for candidate in candidates {
                let (message, template) = &data.messages[candidate];
                let Some(holes) = template.matches(&line.text) else { continue };
                let fill = |text: &str| {
                    holes.iter().fold(text.to_string(), |text, (name, value)| {
                        text.replace(&format!("{{{name}}}"), &text::safe(value))
                    })
                };
                let by = fill(&message.summary);
                let excerpt = self.excerpt(self.log_name, &line.range);
                let locus = self.line_locus(line);
                let names = self.named(message.setting.names(), &holes);
                let severity = match message.kind {
                    MessageKind::Note => Some(Severity::Info),
                    MessageKind::Trouble => Some(Severity::Error),
                    _ => None,
                };
                if let Some(severity) = severity {
                    if !findings.iter().any(|other| other.text == by) {
                        findings.push(Finding {
                            kind: "message",
                            severity,
                            text: by,
                            evidence: vec![(locus, excerpt)],
                        });
                    }
                    continue;
                }
                for name in names {
                    // A message about a value of a kind speaks only about the setting that asked for that value.
                    let setting = data.setting(&name);
                    let act = match message.kind {
                        MessageKind::Adjustment => Act::Adjusts {
                            to: message
                                .to
                                .as_deref()
                                .map(&fill)
                                .and_then(|to| setting.and_then(|setting| setting.value(&to))),
                        },
                        MessageKind::Ignored => Act::Ignores,
                        MessageKind::Refusal if matches!(self.state, State::Failed { .. }) => Act::Refuses,
                        MessageKind::Refusal => continue,
                        MessageKind::Failure => Act::Fails,
                        MessageKind::Note | MessageKind::Trouble => continue,
                    };
                    acts.push(Intervention {
                        setting: name,
                        act,
                        by: by.clone(),
                        source: message.source.as_ref().map(|source| format!("{source} (b11434)")),
                        remedy: message.remedy.as_deref().map(&fill),
                        start: self.log_start(),
                        locus: Some(locus.clone()),
                        excerpt: excerpt.clone(),
                    });
                }
            }
        }
        self.interventions.extend(acts);
        self.findings.extend(findings);
    }

    /// The settings a message speaks about: those the data names, else those the line itself names.
    fn named(&self, names: Vec<&str>, holes: &crate::template::Holes<'_>) -> Vec<String> {
        if !names.is_empty() {
            return names.into_iter().map(str::to_string).collect();
        }
        let hole = |name: &str| holes.iter().find(|(hole, _)| hole == name).map(|(_, text)| *text);
        let typed = hole("flag").or_else(|| hole("env")).or_else(|| hole("key"));
        if let Some(typed) = typed {
            let typed = typed.trim_matches('"');
            let same = |ask: &&intent::Ask| ask.typed == typed || ask.typed.replace('_', "-") == typed;
            return self.intent.asks.iter().filter(same).map(|ask| ask.name.clone()).take(1).collect();
        }
        // A file or value that exactly one request names.
        let text = hole("file").or_else(|| hole("value"));
        if let Some(text) = text {
            let mut asks: Vec<String> =
                self.intent.asks.iter().filter(|ask| ask.text == text).map(|ask| ask.name.clone()).collect();
            asks.dedup();
            if asks.len() == 1 {
                return asks;
            }
        }
        Vec::new()
    }

    /// What keeps the model from speaking with full knowledge, said once.
    fn own_limits(&mut self) {
        let known = self
            .facts
            .release
            .as_deref()
            .is_some_and(|release| self.data.about.releases.iter().any(|known| known == release));
        if let (Some(release), false) = (&self.facts.release, known) {
            self.findings.push(Finding {
                kind: "unread_release",
                severity: Severity::Info,
                text: format!(
                    "release {} is not one of those ascertain's knowledge was made on ({}): what it states is believed, what it leaves out proves nothing",
                    text::safe(release),
                    self.data.about.releases.join(", ")
                ),
                evidence: Vec::new(),
            });
        }
        if let Some(why) = &self.foreign_log {
            self.findings.push(Finding {
                kind: "foreign_log",
                severity: Severity::Warning,
                text: format!("the log is not of this start: {why}"),
                evidence: Vec::new(),
            });
        }
        if let Some(gap) = self.capture.gap("proc_environ.json") {
            self.findings.push(Finding {
                kind: "environment_not_read",
                severity: Severity::Warning,
                text: format!(
                    "the environment of the process could not be read, so what it asks for is not judged: {}{}",
                    text::safe(&gap.text),
                    gap.remedy.as_ref().map(|remedy| format!(" ({})", text::safe(remedy))).unwrap_or_default()
                ),
                evidence: Vec::new(),
            });
        }
        for remark in &self.capture.manifest.remarks {
            let severity = if remark.kind == "identity" { Severity::Error } else { Severity::Warning };
            let kind = match remark.kind.as_str() {
                "identity" => "identity",
                "executable_replaced" => "executable_replaced",
                _ => "remark",
            };
            self.findings.push(Finding { kind, severity, text: text::safe(&remark.text), evidence: Vec::new() });
        }
    }

    fn witnesses(&mut self) -> Vec<WitnessNote> {
        let mut list = Vec::new();
        let mut note = |name: &str, state: WitnessState, text: String| {
            list.push(WitnessNote { name: name.to_string(), state, note: text });
        };
        let gap_text = |name: &str| {
            self.capture.gap(name).map(|gap| match &gap.remedy {
                Some(remedy) => format!("{} ({remedy})", gap.text),
                None => gap.text.clone(),
            })
        };

        if self.capture.first(&["proc_cmdline.json"]).is_some() {
            let words = format!("{} words on the command line", self.facts.argv.len());
            match gap_text("proc_environ.json") {
                None => note("process", WitnessState::Spoke, words),
                Some(gap) => note("process", WitnessState::Partial, format!("{words}, but not its environment: {gap}")),
            }
        } else if !self.facts.argv.is_empty() {
            note("process", WitnessState::Partial, "the command line is the recorder's, not the process's".to_string());
        } else {
            note(
                "process",
                WitnessState::Absent,
                gap_text("proc_cmdline.json").unwrap_or_else(|| "no command line".to_string()),
            );
        }
        match &self.log {
            None => note(
                "log",
                WitnessState::Absent,
                gap_text("log.txt").unwrap_or_else(|| "no log was handed in (--log FILE)".to_string()),
            ),
            Some(_) if self.foreign_log.is_some() => note("log", WitnessState::Failed, "not of this start".to_string()),
            Some(log) if log.lines.is_empty() => {
                note("log", WitnessState::Partial, "empty: proves nothing".to_string())
            }
            Some(log) => {
                let mut text = format!("{} lines", log.lines.len());
                if let Some(verbosity) = log.verbosity {
                    text.push_str(&format!(" at verbosity {verbosity}"));
                }
                if !log.earlier.is_empty() {
                    text.push_str(&format!(", {} lines of earlier starts left aside", log.earlier.len()));
                }
                let complete = log.has_beginning && !log.cut;
                if !log.has_beginning {
                    text.push_str(", the beginning of the start is missing");
                }
                if log.cut {
                    text.push_str(", a part was left out");
                }
                note("log", if complete { WitnessState::Spoke } else { WitnessState::Partial }, text);
            }
        }
        for file in &self.facts.config_files {
            note("config", WitnessState::Spoke, text::safe(&file.path));
        }
        for (name, artifact) in [
            ("health", "health.json"),
            ("props", "props.json"),
            ("slots", "slots_before.json"),
            ("models", "v1_models.json"),
            ("metrics", "metrics_before.txt"),
        ] {
            let bytes = self.capture.bytes(artifact);
            match (self.statuses.get(artifact), bytes) {
                (Some(200), Some(bytes)) => {
                    let understood = artifact.ends_with(".txt") && self.metrics.iter().any(|(one, _)| one == artifact)
                        || artifact.ends_with(".json") && strict::parse(bytes).is_ok();
                    if understood {
                        note(name, WitnessState::Spoke, String::new());
                    } else {
                        note(
                            name,
                            WitnessState::Failed,
                            format!("answered something else: {}", short(&text::excerpt(bytes))),
                        );
                    }
                }
                (Some(401 | 403), _) => {
                    note(name, WitnessState::Failed, "wants an API key (--api-key-env NAME)".to_string())
                }
                (Some(501), _) => note(name, WitnessState::Absent, "switched off in this server".to_string()),
                (Some(status), _) => note(name, WitnessState::Failed, format!("answered with status {status}")),
                (None, _) => note(name, WitnessState::Absent, gap_text(artifact).unwrap_or_default()),
            }
        }
        match self.exchanges.iter().filter(|exchange| exchange.status == 200).count() {
            0 => note("traffic", WitnessState::Absent, "no request was sent (--exercise)".to_string()),
            count => note("traffic", WitnessState::Spoke, format!("{count} answered requests")),
        }
        for (name, artifact) in [("checkpoint", "checkpoint.json"), ("draft checkpoint", "checkpoint_draft.json")] {
            if self.capture.bytes(artifact).is_some() {
                note(name, WitnessState::Spoke, String::new());
            } else if let Some(text) = gap_text(artifact) {
                note(name, WitnessState::Absent, text);
            }
        }
        for witness in &list {
            if witness.state != WitnessState::Spoke {
                self.gaps.push(Gap { witness: witness.name.clone(), why: witness.note.clone(), remedy: None });
            }
        }
        list
    }

    /// For every claim, what would prove it: the nearest testimony that this capture does not have.
    fn settle(&mut self) {
        let verbosity = self.log.as_ref().filter(|_| self.foreign_log.is_none()).and_then(|log| log.verbosity);
        let has_log = self.log.as_ref().is_some_and(|log| !log.lines.is_empty()) && self.foreign_log.is_none();
        let refused = |artifact: &str| matches!(self.statuses.get(artifact), Some(401 | 403));
        let locked = self.props.is_none() && (refused("props.json") || refused("slots_before.json"));
        let mut texts = Vec::new();
        for claim in &self.intent.claims {
            if claim.settle.is_some() {
                continue;
            }
            let mine =
                |testimony: &&Testimony| testimony.setting == claim.setting && testimony.voice == Voice::Effective;
            let mut ways: Vec<(u8, String)> = Vec::new();
            let asks_server = claim.effect.is_some()
                || self.data.testimonies.iter().any(|(one, _)| {
                    one.setting == claim.setting && one.from != Source::Log && one.voice == Voice::Effective
                });
            if locked && asks_server {
                ways.push((0, "give the server's API key: --api-key-env NAME".to_string()));
            } else if claim.effect.is_some()
                && self.slots.is_empty()
                && derive::SPECULATION.contains(&claim.setting.as_str())
            {
                ways.push((
                    1,
                    "start it without --no-slots, or send it requests: ascertain verify --exercise".to_string(),
                ));
            }
            for testimony in self.data.testimonies.iter().map(|(testimony, _)| testimony).filter(mine) {
                match testimony.from {
                    Source::Log if !has_log => ways.push((2, "hand in its log: --log FILE".to_string())),
                    Source::Log
                        if testimony.rung == Rung::Acknowledged
                            && verbosity.is_none_or(|shown| shown < testimony.verbosity) =>
                    {
                        ways.push((
                            3,
                            format!(
                                "start it with -lv {}: its log then states the value in force",
                                testimony.verbosity
                            ),
                        ));
                    }
                    Source::Props if self.props.is_none() => {
                        ways.push((1, unlock(refused("props.json"), "/props", "")))
                    }
                    Source::Slots if self.slots.is_empty() => {
                        ways.push((1, unlock(refused("slots_before.json"), "/slots", "start it without --no-slots: ")))
                    }
                    Source::Models if self.models.is_none() => {
                        ways.push((1, unlock(refused("v1_models.json"), "/v1/models", "")))
                    }
                    _ => {}
                }
            }
            ways.sort();
            let text = ways
                .into_iter()
                .next()
                .map(|(_, text)| text)
                .or_else(|| self.data.setting(&claim.setting).and_then(|setting| setting.settle.clone()));
            texts.push((claim.setting.clone(), text));
        }
        for (setting, text) in texts {
            if let Some(claim) = self.claim_mut(&setting)
                && claim.settle.is_none()
            {
                claim.settle = text;
            }
        }
    }

    fn finish(self, witnesses: Vec<WitnessNote>) -> Reading {
        let known_release = self
            .facts
            .release
            .as_deref()
            .is_some_and(|release| self.data.about.releases.iter().any(|known| known == release));
        Reading {
            version: self.facts.release.clone(),
            known_release,
            argv: self.facts.argv.iter().map(|word| text::safe(&word.text)).collect(),
            case: Case {
                start: self.facts.start,
                state: self.state,
                claims: self.intent.claims,
                evidence: self.evidence,
                interventions: self.interventions,
                gaps: self.gaps,
            },
            findings: self.findings,
            unasked: self.unasked,
            witnesses,
        }
    }

    /// The sum of the counters that speculation moves, from the latest metrics.
    pub fn draft_counters(&self) -> Option<(String, Tally, Range<usize>, String)> {
        let (artifact, samples) = self.metrics.last()?;
        let read = |name: &str| samples.iter().find(|sample| sample.name == name);
        let drafts = read("llamacpp:spec_decode_num_drafts_total")?;
        let tried = read("llamacpp:spec_decode_num_draft_tokens_total")?;
        let kept = read("llamacpp:spec_decode_num_accepted_tokens_total")?;
        let tally = Tally { kept: kept.value as u64, tried: tried.value as u64, steps: drafts.value as u64 };
        let excerpt = format!("{} drafts, {} tokens drafted, {} accepted", tally.steps, tally.tried, tally.kept);
        Some((artifact.clone(), tally, drafts.range.clone(), excerpt))
    }

    /// How many draft positions the metrics count, and where.
    pub fn draft_positions(&self) -> Option<(String, i64, Range<usize>)> {
        let (artifact, samples) = self.metrics.last()?;
        let positions: Vec<&Sample<'_>> = samples
            .iter()
            .filter(|sample| sample.name == "llamacpp:spec_decode_num_accepted_tokens_per_pos_total")
            .collect();
        let most = positions.iter().filter_map(|sample| sample.label("position")?.parse::<i64>().ok()).max()?;
        let range = positions.first().map(|sample| sample.range.clone())?;
        Some((artifact.clone(), most + 1, range))
    }

    /// Marks a claim as not applicable.
    pub fn not_applicable(&mut self, setting: &str, why: &str) {
        if let Some(claim) = self.claim_mut(setting)
            && claim.standing == Standing::Known
        {
            claim.standing = Standing::NotApplicable { why: why.to_string() };
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

fn unlock(refused: bool, endpoint: &str, otherwise: &str) -> String {
    if refused {
        format!("give the API key: --api-key-env NAME ({endpoint} states it)")
    } else {
        format!("{otherwise}{endpoint} states it")
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

/// Whether this is what the slots endpoint answers: objects that are numbered and have a context.
fn are_slots(value: &Json) -> bool {
    let is_slot =
        |slot: &Json| slot.get("id").is_some_and(Json::is_number) && slot.get("n_ctx").is_some_and(Json::is_number);
    value.as_array().is_some_and(|slots| !slots.is_empty() && slots.iter().all(is_slot))
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

fn wrapped_status(bytes: &[u8]) -> Option<u16> {
    if !bytes.starts_with(b"{") {
        return None;
    }
    let value = strict::parse(bytes).ok()?;
    // The recorder's wrapper, or the server's own error body.
    let status = value.get("_status").or_else(|| value.pointer("/error/code"))?;
    status.as_u64().and_then(|status| u16::try_from(status).ok())
}

pub(crate) fn answer<'a>(capture: &'a Capture, name: &str) -> Option<Answer<'a>> {
    let bytes = capture.bytes(name)?;
    let value = strict::parse(bytes).ok()?;
    let status = wrapped_status(bytes).unwrap_or(200);
    Some(Answer { artifact: name.to_string(), bytes, value, status })
}

fn release(data: &Data, capture: &Capture, props: &Option<Answer<'_>>, log: Option<&Log<'_>>) -> Option<String> {
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
    let template = Template::new("common_params_print_info: build {number} (");
    log?.lines.iter().find_map(|line| template.matches(&line.text)).and_then(|holes| {
        let number = holes.first().map(|(_, text)| *text)?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then(|| format!("b{number}"))
    })
}

fn argv(capture: &Capture, meta: Option<&Answer<'_>>) -> Vec<Word> {
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

fn environ(capture: &Capture, meta: Option<&Answer<'_>>) -> Vec<Variable> {
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

/// Configuration files in the order in which the engine applies them. A file that was changed after the start is not
/// what this start read.
fn config_files<'a>(capture: &'a Capture, log: Option<&Log<'_>>) -> Vec<ConfigFile<'a>> {
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
        let changed =
            entry.and_then(|entry| entry.modified).zip(capture.manifest.start.as_ref().and_then(|start| start.since));
        if changed.is_some_and(|(modified, since)| modified > since) {
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

fn exchanges(capture: &Capture) -> Vec<Exchange> {
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
