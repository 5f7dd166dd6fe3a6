//! Building one piece of evidence.

use crate::llama_cpp::artifacts::Exchange;
use crate::llama_cpp::reader::Reader;
use ascertain_model::{Act, Asked, Evidence, Intervention, Locus, Rung, Seen, StartId, Subject, Value, Voice};
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

    /// What an answered request for tokens shows.
    pub(super) fn exercised(setting: &'a str, value: Value, exchange: &'a Exchange) -> Self {
        Statement::new(setting, value, Rung::Exercised, "traffic", &exchange.artifact, exchange.range.clone())
            .label(exchange.label.clone())
            .excerpt(exchange.excerpt.clone())
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
    pub(super) fn silently(&mut self, setting: &str, act: Act, by: impl Into<String>, remedy: impl Into<String>) {
        self.interventions.push(Intervention {
            setting: setting.to_string(),
            act,
            by: by.into(),
            source: None,
            remedy: Some(remedy.into()),
            start: self.facts.start.clone(),
            locus: None,
            excerpt: String::new(),
        });
    }

    /// The first line of the start with these words. What comes later may hold the words of a client.
    pub(super) fn first_line(&self, words: &str) -> Option<(Range<usize>, String, String)> {
        let log = self.log.as_ref()?;
        let line = log.start().iter().find(|line| line.text.contains(words))?;
        Some((line.range.clone(), format!("line {}", line.number), line.text.to_string()))
    }

    pub(in crate::llama_cpp) fn asked_number(&self, setting: &str) -> Option<i64> {
        match self.asked_value(setting) {
            Some(Value::Int(number)) => Some(number),
            _ => None,
        }
    }

    /// The text that won, as it was written.
    pub(super) fn asked_text(&self, setting: &str) -> Option<&str> {
        let won = self.claim(setting)?.origins.first()?;
        self.intent.asks.iter().find(|ask| ask.name == setting && ask.place == won.place).map(|ask| ask.text.as_str())
    }

    /// The value that a witness states when it states what was asked in other words.
    pub(super) fn as_asked(&self, setting: &str) -> Option<Value> {
        match &self.claim(setting)?.asked {
            Asked::Equals(value) => Some(value.clone()),
            Asked::Present => Some(Value::Secret),
            Asked::Auto | Asked::Unreadable | Asked::Unset => None,
        }
    }

    pub(super) fn asked_off(&self, setting: &str) -> bool {
        self.asked_value(setting).is_some_and(|value| value.same(&Value::Bool(false)))
    }

    /// Takes the authority from what was stated about a setting: it fits what was asked without proving it.
    pub(super) fn weaken(&mut self, setting: &str, why: &str, applies: impl Fn(&Evidence) -> bool) {
        let mut weakened = false;
        for one in &mut self.evidence {
            let states = one.voice == Voice::Effective && one.rung > Rung::Delivered && one.subject == Subject::Value;
            if one.setting == setting && states && applies(one) {
                one.voice = Voice::Echo;
                one.note = Some(why.to_string());
                weakened = true;
            }
        }
        if weakened {
            self.settles(setting, why);
        }
    }

    /// Says what would prove a claim, where the general advice would not.
    pub(super) fn settles(&mut self, setting: &str, how: &str) {
        if let Some(claim) = self.claim_mut(setting)
            && claim.settle.is_none()
        {
            claim.settle = Some(how.to_string());
        }
    }

    /// Whether the release is one of those that the rules were made on.
    pub(super) fn is_known_release(&self) -> bool {
        let release = self.facts.release.as_deref();
        release.is_some_and(|release| self.data.about.releases.iter().any(|known| known == release))
    }

    /// Whether a missing line that this verbosity prints is a statement: the release is known to print it, and the log
    /// is of this start and whole.
    pub(super) fn is_silence_evidence(&self, verbosity: u8) -> bool {
        self.is_known_release()
            && self.foreign_log.is_none()
            && self.log.as_ref().is_some_and(|log| log.would_show(verbosity))
    }

    /// Where the log of this start begins and ends.
    pub(super) fn whole_log(&self) -> Range<usize> {
        let lines = self.log.as_ref().map_or(&[][..], |log| &log.lines);
        lines.first().map_or(0, |line| line.range.start)..lines.last().map_or(0, |line| line.range.end)
    }

    /// Configuration files that were read at the start and are not among the evidence.
    pub(super) fn lost_files(&self) -> Vec<(String, Locus, String)> {
        let lines = self.log.iter().filter(|_| self.foreign_log.is_none()).flat_map(|log| log.start());
        lines
            .filter_map(|line| {
                let (_, path) = line.text.split_once("using config file: ")?;
                let here = self.facts.config_files.iter().any(|file| file.path == path);
                (!here).then(|| (path.to_string(), self.line_locus(line), crate::text::excerpt(line.text.as_bytes())))
            })
            .collect()
    }

    pub(super) fn is_running(&self) -> bool {
        self.facts.running
    }
}
