//! From entries to lines that may be shown: secrets taken out, the settings they are about found.

use super::{Asked, Raw, Slice};
use ascertain_capture::Redactor;
use ascertain_engines::Engine;
use ascertain_journal::{Entries, Entry, Gap, Id128};
use serde::{Serialize, Serializer};
use std::collections::VecDeque;
use std::io;

/// Secrets learned from messages beyond which no more are: a log made to look like a list of keys must not cost time.
const MOST_SECRETS: usize = 512;

/// Where lines come from.
pub enum Source {
    /// Entries of the journal, read as they are wanted, of the start with this id.
    Entries(Box<Entries>, Id128),
    /// Entries that were found already.
    Found(std::vec::IntoIter<Entry>, Id128),
    /// Lines of a text.
    Text(std::vec::IntoIter<Raw>),
}

/// One line that may be shown.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// Microseconds since 1970.
    #[serde(serialize_with = "stamp", skip_serializing_if = "Option::is_none")]
    pub time: Option<u64>,
    /// Its place in the journal, for `journalctl --cursor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Who wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier: Option<String>,
    /// The process that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// 0 (emergency) to 7 (debug).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// The settings it is about, by canonical name.
    pub settings: Vec<String>,
    /// What it says, without secrets; what a terminal would obey is still in it.
    pub message: String,
}

fn stamp<S: Serializer>(time: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(ascertain_capture::time::rfc3339).serialize(serializer)
}

/// What was shown of a log.
#[derive(Debug, Default)]
pub struct Shown {
    /// Lines.
    pub lines: u64,
    /// What could not be read on the way.
    pub gaps: Vec<String>,
}

impl Slice {
    /// Hands over each line that is asked for, oldest first, until `show` fails or says `false`.
    pub fn each(self, asked: &Asked, show: &mut dyn FnMut(&Line) -> io::Result<bool>) -> io::Result<Shown> {
        let mut gaps = Vec::new();
        let mut shown = Shown::default();
        let mut last = VecDeque::new();
        let Slice { mut source, engine, mut redactor, .. } = self;
        while let Some(raw) = source.next(&mut gaps) {
            let line = readable(raw, engine, &mut redactor);
            if asked.pattern.as_ref().is_some_and(|pattern| !pattern.matches(&line.message)) {
                continue;
            }
            match asked.newest {
                Some(most) => {
                    if last.len() == most {
                        last.pop_front();
                    }
                    last.extend((most > 0).then_some(line));
                }
                None => {
                    shown.lines += 1;
                    if !show(&line)? {
                        break;
                    }
                }
            }
        }
        for line in last {
            shown.lines += 1;
            if !show(&line)? {
                break;
            }
        }
        gaps.extend(source.gaps());
        shown.gaps = gaps.iter().map(Gap::to_string).collect();
        Ok(shown)
    }
}

impl Source {
    fn next(&mut self, gaps: &mut Vec<Gap>) -> Option<Raw> {
        let (entry, id) = match self {
            Source::Entries(entries, id) => (entries.next()?, *id),
            Source::Found(entries, id) => (entries.next()?, *id),
            Source::Text(lines) => return lines.next(),
        };
        Some(raw(&entry, id, gaps))
    }

    fn gaps(&self) -> Vec<Gap> {
        match self {
            Source::Entries(entries, _) => entries.gaps().to_vec(),
            Source::Found(..) | Source::Text(_) => Vec::new(),
        }
    }
}

/// What a line needs of an entry. Each field is read once.
fn raw(entry: &Entry, id: Id128, gaps: &mut Vec<Gap>) -> Raw {
    let mut raw = Raw { time: Some(entry.realtime()), cursor: Some(entry.cursor().to_string()), ..Raw::default() };
    let mut comm = None;
    let mut unreadable = false;
    for field in entry.fields() {
        let field = match field {
            Ok(field) => field,
            Err(gap) => {
                unreadable = true;
                if !gaps.contains(&gap) && gaps.len() < MOST_SECRETS {
                    gaps.push(gap);
                }
                continue;
            }
        };
        let text = || String::from_utf8_lossy(field.value()).into_owned();
        match field.name() {
            b"MESSAGE" if raw.message.is_empty() => raw.message = field.value().to_vec(),
            b"SYSLOG_IDENTIFIER" => raw.identifier = Some(text()),
            b"_COMM" => comm = Some(text()),
            b"_PID" => raw.pid = text().parse().ok(),
            b"PRIORITY" => raw.priority = text().parse().ok(),
            b"_SYSTEMD_INVOCATION_ID" => raw.own = text().parse() == Ok(id),
            _ => {}
        }
    }
    raw.identifier = raw.identifier.or(comm);
    if unreadable && raw.message.is_empty() {
        raw.message = b"[ascertain: this entry could not be read]".to_vec();
    }
    raw
}

fn readable(raw: Raw, engine: Option<&'static dyn Engine>, redactor: &mut Redactor) -> Line {
    learn(redactor, &raw.message);
    let text = String::from_utf8_lossy(&raw.message);
    let message = redactor.text(&text);
    // The manager's lines are about the unit, not about the engine's settings.
    let settings = match engine {
        Some(engine) if raw.own => {
            let mut settings: Vec<String> = message.lines().flat_map(|line| engine.speaks_of(line)).collect();
            let mut seen = std::collections::BTreeSet::new();
            settings.retain(|name| seen.insert(name.clone()));
            settings
        }
        _ => Vec::new(),
    };
    let identifier = raw.identifier.map(|name| redactor.text(&name));
    Line { time: raw.time, cursor: raw.cursor, identifier, pid: raw.pid, priority: raw.priority, settings, message }
}

/// Learns the secrets in a text.
pub(super) fn learn(redactor: &mut Redactor, text: &[u8]) {
    if redactor.known() < MOST_SECRETS {
        redactor.learn_artifact("log.txt", text);
    }
}
