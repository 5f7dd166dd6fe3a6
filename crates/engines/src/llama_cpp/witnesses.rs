//! How each witness fared, what limits the whole reading, and what would settle what is not proven.

use super::derive::SPECULATION;
use super::reader::Reader;
use crate::data::{Source, Testimony};
use crate::{strict, text};
use ascertain_model::{Finding, Gap, Rung, Severity, State, Voice, WitnessNote, WitnessState};

impl Reader<'_> {
    /// What keeps the model from speaking with full knowledge, said once.
    pub(super) fn own_limits(&mut self) {
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
        if let Some(text) = super::experiments::fatal(self).filter(|_| self.state.is_up()) {
            let text = format!("{text}; --exercise does not send one");
            self.findings.push(Finding { kind: "would_abort", severity: Severity::Error, text, evidence: Vec::new() });
        }
        if let State::Silent { why } = &self.state {
            self.findings.push(Finding {
                kind: "silent",
                severity: Severity::Error,
                text: format!("the server runs and does not answer: {why}"),
                evidence: Vec::new(),
            });
        }
        let stopped = self.service.is_some() && self.facts.argv.is_empty();
        if let Some(gap) = self.capture.gap("proc_environ.json").filter(|_| !stopped) {
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
                // The state says it already, or a witness does.
                "ended_in_exercise" | "other_log" | "agentless" => continue,
                _ => "remark",
            };
            self.findings.push(Finding { kind, severity, text: text::safe(&remark.text), evidence: Vec::new() });
        }
    }

    pub(super) fn witnesses(&mut self) -> Vec<WitnessNote> {
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
                if let Some(flaw) = self.journal_flaws.first() {
                    text.push_str(&format!(", may be incomplete: {flaw}"));
                } else if log.cut {
                    text.push_str(", a part was left out");
                }
                note("log", if complete { WitnessState::Spoke } else { WitnessState::Partial }, text);
            }
        }
        if let Some(service) = &self.service {
            let told = |name: &str, unknown: &[String]| match unknown.first() {
                None => (name.to_string(), WitnessState::Spoke, service.name.clone()),
                Some(why) => (name.to_string(), WitnessState::Partial, text::safe(why)),
            };
            let mut rungs = vec![told("unit", &service.written.unknown)];
            rungs.extend(service.loaded.as_ref().map(|layer| told("manager", &layer.unknown)));
            for (name, state, text) in rungs {
                note(&name, state, text);
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
                (None, _) => {
                    let hung = self.capture.gap(artifact).is_some_and(|gap| {
                        matches!(gap.reason.as_str(), "timed_out" | "refused" | "malformed" | "too_large")
                    });
                    let state = if hung { WitnessState::Failed } else { WitnessState::Absent };
                    note(name, state, gap_text(artifact).unwrap_or_default());
                }
            }
        }
        let answered = self.exchanges.iter().filter(|exchange| exchange.status == 200).count();
        match (self.exchanges.len(), answered) {
            (0, _) => note("traffic", WitnessState::Absent, "no request was sent (--exercise)".to_string()),
            (all, answered) if all == answered => {
                note("traffic", WitnessState::Spoke, format!("{all} answered requests"))
            }
            (all, answered) => {
                note("traffic", WitnessState::Spoke, format!("{all} requests, {answered} answered with tokens"))
            }
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
    pub(super) fn settle(&mut self) {
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
            } else if claim.effect.is_some() && self.slots.is_empty() && SPECULATION.contains(&claim.setting.as_str()) {
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
