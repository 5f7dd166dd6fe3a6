//! The log of one start of a unit, from the journal.

use super::lines::{Source, learn};
use super::starts::{Which, ids};
use super::{Asked, Heading, Slice};
use crate::failure::Failure;
use crate::target::redactor;
use ascertain_capture::journalctl::Journalctl;
use ascertain_capture::{Redactor, process};
use ascertain_engines::nearest::nearest;
use ascertain_engines::{Engine, by_executable};
use ascertain_journal::{
    Boot, Ending, Entry, Exported, Flaw, Gap, Id128, Invocation, Journal, Manager, Match, Reason, Start,
};
use serde::Serialize;
use std::path::PathBuf;

/// Entries at the beginning of a start from which secrets are learned before anything is shown.
const HEAD: usize = 2000;
/// Entries that are looked through for the engine's executable: a wrapper may speak first.
const WRAPPERS: usize = 50;
/// Newest entries of a unit in which its starts are looked for where only journalctl can tell.
const SEEN_BY_JOURNALCTL: usize = 5000;
/// Units named when nothing is near.
const NAMED: usize = 8;

/// A journal that was opened.
pub struct Opened {
    journal: Journal,
    gaps: Vec<Gap>,
    /// What was asked for, for messages.
    places: String,
    /// The directory for journalctl; `None`: its own.
    directory: Option<PathBuf>,
}

/// One start as `--list` tells of it.
#[derive(Debug, Clone, Serialize)]
pub struct Known {
    /// 0 is the newest, -1 the one before.
    pub number: i64,
    /// Its `INVOCATION_ID`.
    pub invocation: String,
    /// First line, microseconds since 1970.
    #[serde(serialize_with = "rfc3339")]
    pub first: u64,
    /// Last line, microseconds since 1970.
    #[serde(serialize_with = "rfc3339")]
    pub last: u64,
    /// Lines of its own and the manager's.
    pub lines: u64,
    /// `running`, `ended`, `failed`, `boot_ended` or `unknown`, as far as the journal tells.
    pub state: &'static str,
    /// Why it failed, in systemd's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// How its process ended, in systemd's words: `exited` or `killed`, and the status or signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<(String, String)>,
}

fn rfc3339<S: serde::Serializer>(time: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&ascertain_capture::time::rfc3339(*time))
}

impl Opened {
    /// Opens the journal in these directories or files, or the host's own.
    pub fn open(given: &[PathBuf]) -> Opened {
        let own: Vec<PathBuf> = Journal::default_directories().iter().map(|path| path.to_path_buf()).collect();
        let paths = if given.is_empty() { &own } else { given };
        let (journal, mut gaps) = Journal::open(paths);
        // Of its two places a host mostly uses one.
        gaps.retain(|gap| !given.is_empty() || gap.reason != Reason::NotFound);
        let places = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        Opened { journal, gaps, places, directory: given.first().cloned() }
    }

    fn is_empty(&self) -> bool {
        self.journal.files().next().is_none()
    }

    /// The full name of a unit that the journal knows.
    pub fn unit(&self, name: &str) -> Result<String, Failure> {
        if self.is_empty() {
            return Err(self.unreadable());
        }
        if let Some(unit) = self.known_unit(name) {
            return Ok(unit);
        }
        let (system, mut gaps) = self.journal.units();
        let (user, more) = self.journal.user_units();
        gaps.extend(more);
        let names: Vec<String> = system.into_iter().chain(user).map(|unit| unit.name).collect();
        let short = |name: &'_ str| name.strip_suffix(".service").unwrap_or(name).to_owned();
        let stems: Vec<String> = names.iter().map(|name| short(name)).collect();
        let mut failure = Failure::new(format!("the journal has no line of a unit {name:?} ({})", self.places));
        let near = nearest(&short(name), stems.iter().map(String::as_str), 3);
        for near in &near {
            failure = failure.hint(format!("did you mean {near}?"));
        }
        if near.is_empty() {
            let mut services: Vec<&String> = names.iter().filter(|name| name.ends_with(".service")).collect();
            services.dedup();
            let more = services.len().saturating_sub(NAMED);
            services.truncate(NAMED);
            let listed = services.iter().map(|name| short(name)).collect::<Vec<_>>().join(", ");
            if !listed.is_empty() {
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                failure = failure.hint(format!("it has lines of {listed}{more}"));
            }
        }
        Err(self.and_gaps(failure))
    }

    /// The full name of a unit, if the journal has a start of it.
    pub fn known_unit(&self, name: &str) -> Option<String> {
        let is_known = |unit: &String| !self.journal.invocations(unit).0.is_empty();
        [name.to_owned(), format!("{name}.service")].into_iter().find(is_known)
    }

    /// The unit of a start, by what journald itself notes about its lines, else by what the manager says.
    pub fn unit_of(&self, id: Id128) -> Option<String> {
        let text = |entry: &Entry, field: &str| {
            let value = entry.get(field).ok().flatten()?;
            String::from_utf8(value).ok()
        };
        [
            ("_SYSTEMD_INVOCATION_ID", ["_SYSTEMD_USER_UNIT", "_SYSTEMD_UNIT"]),
            ("INVOCATION_ID", ["UNIT", "USER_UNIT"]),
            ("USER_INVOCATION_ID", ["USER_UNIT", "UNIT"]),
        ]
        .into_iter()
        .find_map(|(by, fields)| {
            let entry = self.journal.entries(&Match::field(by, id.to_string()).into()).next()?;
            fields.into_iter().find_map(|field| text(&entry, field))
        })
    }

    /// All starts of a unit, oldest first.
    pub fn list(&self, unit: &str) -> Vec<Known> {
        let (starts, _) = self.journal.invocations(unit);
        let mut endings = self.journal.endings(unit, Manager::System).0;
        // A unit of a user may have the name of one of the system.
        if let Some(manager @ Manager::User(_)) = starts.last().map(|start| self.manager(unit, start.id)) {
            endings.extend(self.journal.endings(unit, manager).0);
        }
        let newest_boot = self.journal.boots().0.last().map(|boot: &Boot| boot.id);
        let count = starts.len() as i64;
        starts
            .iter()
            .enumerate()
            .map(|(index, start)| {
                let ending = endings.get(&start.id).cloned();
                let is_last = index + 1 == starts.len();
                let state = match &ending {
                    Some(Ending { failure: Some(_), .. }) => "failed",
                    Some(_) => "ended",
                    None if Some(start.boot_id) != newest_boot => "boot_ended",
                    None if is_last => "running",
                    None => "unknown",
                };
                let (failure, process) = ending.map_or((None, None), |ending| (ending.failure, ending.process));
                let Invocation { id, first, last, own, manager, .. } = *start;
                let (number, lines) = (index as i64 + 1 - count, own.saturating_add(manager));
                Known { number, invocation: id.to_string(), first, last, lines, state, failure, process }
            })
            .collect()
    }

    fn start(&self, unit: &str, id: Id128) -> Start<'_> {
        self.journal.start(unit, self.manager(unit, id), id)
    }

    /// Which manager a start is of.
    fn manager(&self, unit: &str, id: Id128) -> Manager {
        let lines = [
            Match::field("_SYSTEMD_INVOCATION_ID", id.to_string()).and(Match::field("_SYSTEMD_USER_UNIT", unit)),
            Match::field("USER_INVOCATION_ID", id.to_string()).and(Match::field("USER_UNIT", unit)),
        ];
        let by_user = |lines: Match| {
            let entry = self.journal.entries(&lines.into()).next()?;
            String::from_utf8(entry.get("_UID").ok().flatten()?).ok()?.parse().ok()
        };
        let system = Match::field("_SYSTEMD_INVOCATION_ID", id.to_string()).and(Match::field("_SYSTEMD_UNIT", unit));
        if self.journal.entries(&system.into()).next().is_some() {
            return Manager::System;
        }
        lines.into_iter().find_map(by_user).map_or(Manager::System, Manager::User)
    }

    /// The log of one start of a unit of which the full name is known.
    pub fn slice(&self, unit: &str, which: &Which, asked: &Asked) -> Result<Slice, Failure> {
        let (starts, _) = self.journal.invocations(unit);
        let starts = ids(&starts);
        let index = which.among(&starts, unit)?;
        let id = starts[index];
        let heading = Heading {
            source: format!("the journal ({})", self.places),
            unit: Some(unit.to_owned()),
            invocation: Some(id.to_string()),
            number: Some(index as i64 + 1 - starts.len() as i64),
            starts: Some(starts.len()),
            engine: None,
        };
        Ok(slice_of(&self.start(unit, id), id, heading, asked))
    }

    /// The same through `journalctl`, where no file could be read: it may be allowed to, or know the format.
    pub fn slice_by_journalctl(&self, name: &str, which: &Which, asked: &Asked) -> Result<Slice, Failure> {
        let unit = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
        let journalctl = Journalctl { directory: self.directory.clone(), ..Journalctl::default() };
        let failed = |error: ascertain_capture::journalctl::Error| self.unreadable().hint(error);
        let newest = journalctl.newest(&Match::unit(&unit), SEEN_BY_JOURNALCTL).map_err(failed)?;
        let mut starts: Vec<Id128> = Vec::new();
        for entry in newest.entries(&Match::Every.into()) {
            let id = ["_SYSTEMD_INVOCATION_ID", "INVOCATION_ID"].iter().find_map(|field| {
                let value = entry.get(field).ok().flatten()?;
                String::from_utf8(value).ok()?.parse().ok()
            });
            if let Some(id) = id.filter(|id| !starts.contains(id)) {
                starts.push(id);
            }
        }
        if starts.is_empty() {
            return Err(self.unreadable().hint(format!("journalctl has no line of {unit} either")));
        }
        let index = which.among(&starts, &unit)?;
        let id = starts[index];
        let exported: Exported = journalctl.start(&unit, Manager::System, id).map_err(failed)?;
        let heading = Heading {
            source: "journalctl".to_owned(),
            unit: Some(unit.clone()),
            invocation: Some(id.to_string()),
            number: Some(index as i64 + 1 - starts.len() as i64),
            starts: None,
            engine: None,
        };
        Ok(slice_of(&exported.start(&unit, Manager::System, id), id, heading, asked))
    }

    /// Whether files are there and none of them could be read.
    pub fn is_closed(&self) -> bool {
        self.is_empty() && !self.gaps.is_empty()
    }

    fn unreadable(&self) -> Failure {
        let failure = if self.is_closed() {
            Failure::new(format!("no file of the journal could be read ({})", self.places))
        } else {
            Failure::new(format!("there is no journal in {}", self.places))
                .hint("name the directory with its files: --journal DIR")
        };
        self.and_gaps(failure)
    }

    /// What could not be read may hold what was not found.
    fn and_gaps(&self, mut failure: Failure) -> Failure {
        for gap in self.gaps.iter().take(NAMED) {
            failure = failure.hint(gap);
        }
        if self.gaps.iter().any(|gap| gap.reason == Reason::NotPermitted) {
            failure = failure.hint("run it as root or as a member of the group systemd-journal");
        }
        failure
    }
}

fn slice_of(start: &Start<'_>, id: Id128, mut heading: Heading, asked: &Asked) -> Slice {
    let mut flaws: Vec<String> = start.completeness(None).flaws.iter().map(Flaw::to_string).collect();
    let head = start.head_until(HEAD, |_| false).entries;
    let engine = head.iter().take(WRAPPERS).find_map(engine_of);
    heading.engine = engine.map(Engine::name);
    let redactor = redactor_of(&head, &start.newest(1).0, id);
    let quick = asked.pattern.as_ref().and_then(|pattern| pattern.query());
    let source = match (quick, asked.newest) {
        (Some(query), _) => {
            let found = start.search(&query);
            if found.not_listed > 0 {
                flaws.push(format!("{} more lines match and are not shown", found.not_listed));
            }
            flaws.extend(found.gaps.iter().map(Gap::to_string));
            let mut entries: Vec<Entry> = found.hits.into_iter().map(|hit| hit.entry).collect();
            entries.dedup_by_key(|entry| entry.cursor());
            Source::Found(entries.into_iter(), id)
        }
        (None, Some(newest)) if asked.pattern.is_none() => {
            let (entries, gaps) = start.newest(newest);
            flaws.extend(gaps.iter().map(Gap::to_string));
            Source::Found(entries.into_iter(), id)
        }
        (None, _) => Source::Entries(Box::new(start.entries()), id),
    };
    Slice { heading, engine, redactor, source, flaws }
}

/// The engine that wrote an entry, by its executable.
fn engine_of(entry: &Entry) -> Option<&'static dyn Engine> {
    ["_EXE", "_COMM"].iter().find_map(|field| {
        let value = entry.get(field).ok().flatten()?;
        by_executable(std::str::from_utf8(&value).ok()?)
    })
}

/// A redactor that knows the secrets in the command lines and messages at the beginning of a start, and those of its
/// process, if it still runs.
fn redactor_of(head: &[Entry], last: &[Entry], id: Id128) -> Redactor {
    let mut redactor = redactor();
    let mut command = Vec::new();
    for entry in head {
        if let Ok(Some(line)) = entry.get("_CMDLINE")
            && line != command
        {
            let words: Vec<String> = String::from_utf8_lossy(&line).split_whitespace().map(str::to_owned).collect();
            redactor.learn_argv(&words);
            command = line;
        }
        if let Ok(message) = entry.message() {
            learn(&mut redactor, &message);
        }
    }
    let pid = |entry: &Entry| String::from_utf8(entry.get("_PID").ok().flatten()?).ok()?.parse().ok();
    let mut pids: Vec<u32> = head.iter().chain(last).filter_map(pid).filter(|pid| *pid > 1).collect();
    pids.sort_unstable();
    pids.dedup();
    for facts in pids.into_iter().filter_map(|pid| process::facts(pid).ok()) {
        // Another process may have the number by now.
        if facts.env("INVOCATION_ID").and_then(|text| text.parse().ok()) == Some(id) {
            redactor.learn_argv(&facts.argv);
            redactor.learn_environ(&facts.environ);
        }
    }
    redactor
}
