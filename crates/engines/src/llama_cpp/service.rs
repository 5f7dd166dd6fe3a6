//! The rungs below the process: what the unit says on disk, and what the manager holds.

use super::intent;
use super::reader::Reader;
use super::{Facts, Variable, Word, data};
use crate::service::{self, FILES};
use crate::text;
use ascertain_model::{Claim, Finding, Locus, Rung, Severity, State, Voice};
use ascertain_unit::layers::Layer;

impl Reader<'_> {
    /// Whether the unit has no process. Then nothing is in force, and why is the verdict.
    pub(super) fn without_process(&mut self) {
        let Some(service) = &self.service else { return };
        if !self.facts.argv.is_empty() || matches!(self.state, State::Impostor { .. }) {
            return;
        }
        let said = match &self.state {
            State::Failed { why } => format!(": {why}"),
            _ => String::new(),
        };
        self.state = State::Failed {
            why: text::safe(&format!("{} has no process, it is {}{said}", service.name, service.standing)),
        };
        self.facts.running = false;
        let (option, name) = (service.option(), &service.name);
        let remedy = if service.standing.starts_with("inactive") {
            format!("start it: systemctl {option}start {name}")
        } else {
            format!("see what it said: journalctl {option}-u {name} -b")
        };
        self.findings.push(Finding {
            kind: "not_running",
            severity: Severity::Error,
            text: format!("{name} has no process ({}); {remedy}", service.standing),
            evidence: Vec::new(),
        });
    }

    /// Puts the unit under what is known of the process.
    pub(super) fn lower_rungs(&mut self) {
        let Some(service) = self.service.take() else { return };
        self.findings.extend(service.findings.iter().cloned());
        // What another process was given says nothing of this unit.
        if !matches!(self.state, State::Impostor { .. }) {
            let mut claims = std::mem::take(&mut self.intent.claims);
            let lower =
                service::apply(&service, self.capture, &self.facts.start, &mut claims, &|layer| self.claims_of(layer));
            self.intent.claims = claims;
            // What was delivered is one of the rungs now, and said once.
            self.evidence.retain(|one| one.rung != Rung::Delivered || one.voice == Voice::Effective);
            self.evidence.extend(lower.evidence);
            self.findings.extend(lower.findings);
            self.doubt = lower.doubt.or(self.doubt.take());
            self.broken = lower.broken;
        }
        self.service = Some(service);
    }

    fn claims_of(&self, layer: &Layer) -> Vec<Claim> {
        let locus = |place: String| Some(Locus { artifact: FILES.to_string(), start: 0, end: 0, label: place });
        let facts = Facts {
            argv: layer
                .argv
                .iter()
                .map(|(text, place)| Word { text: text.clone(), locus: locus(place.to_string()) })
                .collect(),
            environ: layer
                .environment
                .iter()
                .map(|(name, value, place)| Variable {
                    name: name.clone(),
                    value: value.clone(),
                    locus: locus(place.to_string()),
                })
                .collect(),
            config_files: self.facts.config_files.clone(),
            release: self.facts.release.clone(),
            start: self.facts.start.clone(),
            running: self.facts.running,
        };
        intent::read(data(), &facts).claims
    }
}
