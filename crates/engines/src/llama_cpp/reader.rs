//! Everything that could be parsed of one capture, and what has been made of it so far.

use super::artifacts::{self, Answer, Exchange, answer, are_slots, wrapped_status};
use super::log::{self, Line, Log};
use super::{Facts, data, intent};
use crate::data::{Data, MessageKind};
use crate::metrics::{self, Sample};
use crate::service::Service;
use crate::text;
use ascertain_model::{
    Asked, Capture, Claim, Evidence, Finding, Gap, Intervention, Locus, Rung, Seen, Standing, StartId, State, Tally,
    Unasked, Value, Voice,
};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::ops::Range;

/// The start that evidence of an earlier start, or of another process, is filed under.
pub(super) const ANOTHER: &str = "another start";

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
    /// The unit it belongs to.
    pub service: Option<Service>,
    pub doubt: Option<String>,
    pub broken: Option<String>,
    /// Why lines of the journal may be missing.
    pub journal_flaws: Vec<String>,
}

/// What a start says that found its port taken.
const TAKEN: &str = "couldn't bind HTTP server socket";

fn journal_flaws(capture: &Capture) -> Vec<String> {
    let Some(record) = answer(capture, "journal.json") else { return Vec::new() };
    if record.value.get("complete").and_then(Json::as_bool) == Some(true) {
        return Vec::new();
    }
    let listed = record.value.get("flaws").and_then(Json::as_array).into_iter().flatten();
    let mut flaws: Vec<String> = listed.filter_map(Json::as_str).map(text::safe).collect();
    if flaws.is_empty() {
        flaws.push("it is not known to be complete".to_string());
    }
    flaws
}

impl<'a> Reader<'a> {
    pub(super) fn new(capture: &'a Capture) -> Reader<'a> {
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
        let release = artifacts::release(data, capture, &props, log.as_ref());
        let exchanges = artifacts::exchanges(capture);
        let ready = meta.as_ref().and_then(|meta| meta.value.get("ready")).and_then(Json::as_bool);
        let alive = capture.bytes("process.json").is_some()
            || statuses.get("health.json").is_some_and(|status| *status == 200)
            || props.is_some();
        let facts = Facts {
            argv: artifacts::argv(capture, meta.as_ref()),
            environ: artifacts::environ(capture, meta.as_ref()),
            config_files: artifacts::config_files(capture, log.as_ref()),
            release,
            start,
            running: ready.unwrap_or(alive),
        };
        let intent = intent::read(data, &facts);
        // A later start that found the port taken is not the one that serves.
        let log = log.map(|log| match log.lines.first() {
            Some(first)
                if facts.running && !log.has_ready && log.lines.iter().any(|line| line.text.contains(TAKEN)) =>
            {
                let before = capture.bytes(log_name).map(|bytes| log::read(&bytes[..first.range.start]));
                before.filter(|before| before.has_ready).unwrap_or(log)
            }
            _ => log,
        });
        // Where the lines that begin and end the start are not shown, a client's words may stand anywhere in the log.
        let log = log.map(|mut log| {
            if facts.running && !(log.has_ready && log.verbosity.is_some()) {
                log.starting = 0;
            }
            log
        });
        // What the journal may have lost may have been anywhere.
        let journal_flaws = journal_flaws(capture);
        let log = log.map(|mut log| {
            log.cut |= !journal_flaws.is_empty();
            log
        });
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
            service: artifacts::service(capture),
            doubt: None,
            broken: None,
            journal_flaws,
        };
        reader.interventions.append(&mut reader.intent.interventions);
        reader.findings.append(&mut reader.intent.findings);
        reader.state = match capture.manifest.remarks.iter().find(|remark| remark.kind == "identity") {
            Some(remark) => State::Impostor { why: text::safe(&remark.text) },
            None => reader.state_of(meta.as_ref(), ready, alive),
        };
        reader.without_process();
        reader.facts.running = reader.state.is_up();
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
        if let Some(ended) = self.capture.manifest.remarks.iter().find(|remark| remark.kind == "ended_in_exercise") {
            return State::Failed { why: text::safe(&ended.text) };
        }
        if !failed {
            return self.silence().map_or(State::Running, |why| State::Silent { why });
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

    /// Why a server that runs does not answer: it is still loading, or nothing came back at all.
    fn silence(&self) -> Option<String> {
        if self.statuses.get("health.json") == Some(&503) {
            return Some("it is still loading its model".to_string());
        }
        let gap = self.capture.gap("health.json").filter(|_| self.statuses.is_empty())?;
        let tried = matches!(gap.reason.as_str(), "timed_out" | "refused" | "malformed" | "not_present");
        tried.then(|| text::safe(&gap.text))
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
