//! Building one piece of evidence.

use crate::llama_cpp::reader::Reader;
use ascertain_model::{Act, Evidence, Intervention, Locus, Rung, Seen, StartId, Subject, Value, Voice};
use std::ops::Range;

pub(super) struct Statement<'a> {
    setting: &'a str,
    subject: Subject,
    seen: Seen,
    rung: Rung,
    voice: Voice,
    witness: &'a str,
    start: Option<StartId>,
    artifact: &'a str,
    range: Range<usize>,
    label: String,
    excerpt: Option<String>,
    note: Option<String>,
}

impl<'a> Statement<'a> {
    pub(super) fn new(
        setting: &'a str,
        value: Value,
        rung: Rung,
        witness: &'a str,
        artifact: &'a str,
        range: Range<usize>,
    ) -> Self {
        Statement {
            setting,
            subject: Subject::Value,
            seen: Seen::Value(value),
            rung,
            voice: Voice::Effective,
            witness,
            start: None,
            artifact,
            range,
            label: String::new(),
            excerpt: None,
            note: None,
        }
    }

    pub(super) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    pub(super) fn excerpt(mut self, excerpt: impl Into<String>) -> Self {
        self.excerpt = Some(excerpt.into());
        self
    }

    pub(super) fn echo(mut self) -> Self {
        self.voice = Voice::Echo;
        self
    }

    pub(super) fn effect(mut self, seen: Seen) -> Self {
        self.subject = Subject::Effect;
        self.seen = seen;
        self
    }

    pub(super) fn of(mut self, start: StartId) -> Self {
        self.start = Some(start);
        self
    }
}

impl Reader<'_> {
    pub(super) fn state(&mut self, statement: Statement<'_>) {
        let excerpt = statement.excerpt.unwrap_or_else(|| self.excerpt(statement.artifact, &statement.range));
        self.evidence.push(Evidence {
            setting: statement.setting.to_string(),
            subject: statement.subject,
            seen: statement.seen,
            rung: statement.rung,
            voice: statement.voice,
            witness: statement.witness.to_string(),
            start: statement.start.unwrap_or_else(|| self.facts.start.clone()),
            locus: Locus {
                artifact: statement.artifact.to_string(),
                start: statement.range.start,
                end: statement.range.end,
                label: statement.label,
            },
            excerpt,
            note: statement.note,
        });
    }

    /// Something the engine is known to do in silence.
    pub(super) fn silently(&mut self, setting: &str, act: Act, by: impl Into<String>, remedy: &str) {
        self.interventions.push(Intervention {
            setting: setting.to_string(),
            act,
            by: by.into(),
            source: None,
            remedy: Some(remedy.to_string()),
            start: self.facts.start.clone(),
            locus: None,
            excerpt: String::new(),
        });
    }

    pub(super) fn first_line(&self, words: &str) -> Option<(Range<usize>, String, String)> {
        let log = self.log.as_ref()?;
        let line = log.lines.iter().find(|line| line.text.contains(words))?;
        Some((line.range.clone(), format!("line {}", line.number), line.text.to_string()))
    }

    pub(super) fn asked_number(&self, setting: &str) -> Option<i64> {
        match self.asked_value(setting) {
            Some(Value::Int(number)) => Some(number),
            _ => None,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.facts.running
    }
}
