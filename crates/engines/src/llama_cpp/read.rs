//! Reading a capture of this engine into a case.
//!
//! First everything is parsed that can be; then the claims are read (`intent`), the data's testimonies and messages
//! are applied to log, endpoints and metrics, and `derive` adds what needs to know several things at once.

use super::derive;
use super::reader::Reader;
use crate::Reading;
use crate::text;
use ascertain_model::{Capture, Case, WitnessNote};

/// Reads a capture.
pub fn read(capture: &Capture) -> Reading {
    let mut reader = Reader::new(capture);
    reader.testimonies();
    reader.messages();
    derive::all(&mut reader);
    reader.lower_rungs();
    reader.own_limits();
    let witnesses = reader.witnesses();
    reader.settle();
    reader.finish(witnesses)
}

impl Reader<'_> {
    fn finish(self, witnesses: Vec<WitnessNote>) -> Reading {
        let known_release = self
            .facts
            .release
            .as_deref()
            .is_some_and(|release| self.data.about.releases.iter().any(|known| known == release));
        Reading {
            version: self.facts.release.clone(),
            known_release,
            unit: self.service.map(|service| service.name),
            argv: self.facts.argv.iter().map(|word| text::safe(&word.text)).collect(),
            case: Case {
                start: self.facts.start,
                state: self.state,
                claims: self.intent.claims,
                evidence: self.evidence,
                interventions: self.interventions,
                gaps: self.gaps,
                doubt: self.doubt,
                broken: self.broken,
            },
            findings: self.findings,
            unasked: self.unasked,
            witnesses,
        }
    }
}
