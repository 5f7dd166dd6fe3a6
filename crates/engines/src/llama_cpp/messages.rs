//! What the engine says in its log that it did: changed, ignored, refused or failed something.

use super::intent;
use super::reader::Reader;
use crate::data::MessageKind;
use crate::text;
use aho_corasick::AhoCorasick;
use ascertain_model::{Act, Finding, Intervention, Severity, State};

impl Reader<'_> {
    pub(super) fn messages(&mut self) {
        let Some(log) = self.log.as_ref().filter(|_| self.foreign_log.is_none()) else { return };
        let data = self.data;
        let Ok(keys) = AhoCorasick::new(data.messages.iter().map(|(_, template)| template.key())) else { return };
        let mut acts = Vec::new();
        let mut findings: Vec<Finding> = Vec::new();
        for (index, line) in log.lines.iter().enumerate() {
            let mut candidates: Vec<usize> =
                keys.find_overlapping_iter(line.text.as_ref()).map(|hit| hit.pattern().as_usize()).collect();
            candidates.sort_unstable();
            candidates.dedup();
            for candidate in candidates {
                let (message, template) = &data.messages[candidate];
                let about_start = !matches!(message.kind, MessageKind::Note | MessageKind::Trouble);
                if about_start && index >= log.starting {
                    continue;
                }
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
}
