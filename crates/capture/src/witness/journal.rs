//! The journal: the lines that one process wrote in exactly this start of its unit, and whether they are all there.

use super::{Context, Found, gap};
use crate::journalctl::Journalctl;
use crate::process;
use crate::systemd::Unit;
use ascertain_journal::{Entry, Filter, Gap, Id128, Journal, Manager, Match, Reason, Start};
use ascertain_model::service;
use serde_json::json;

/// What is known about the lines being complete.
pub(crate) const JOURNAL: &str = "journal.json";

/// Of a start so many lines are read from its first on, unless it says earlier that it is ready…
const FIRST_LINES: usize = 20_000;
/// …so many after that…
const AFTER_READY: usize = 200;
/// …and so many of the newest.
const NEWEST_LINES: usize = 500;
/// journald may write a line so much after its process has ended, in microseconds.
const LATE: u64 = 1_000_000;
/// What journald lets through unless told otherwise: messages of one unit in so many microseconds.
const BURST: u64 = 10_000;
const INTERVAL: u64 = 30_000_000;

/// Which start's lines to read.
pub(crate) struct Wanted {
    pub(crate) unit: String,
    pub(crate) manager: Manager,
    pub(crate) invocation: Id128,
    /// Only lines of this process; `None`: of all that the unit ran.
    pid: Option<u32>,
}

/// Which start a process of this host, or else a unit without one, belongs to.
pub(super) fn wanted(context: &Context) -> Option<Wanted> {
    let pid = context.pid();
    let given = context.facts.as_ref().and_then(|facts| facts.env("INVOCATION_ID"));
    Wanted::new(given, pid, context.unit.as_deref(), || crate::systemd::named_by(pid?))
}

impl Wanted {
    /// What the process itself was `given` comes first: the manager may already speak of another start. `named` is the
    /// unit its control group names.
    pub(crate) fn new(
        given: Option<&str>,
        pid: Option<u32>,
        unit: Option<&Unit>,
        named: impl FnOnce() -> Option<(String, service::Manager)>,
    ) -> Option<Wanted> {
        let invocation = match (given, pid) {
            (Some(id), _) => id.parse().ok()?,
            // Its environment may not be read: then the manager must count it among the unit's.
            (None, Some(pid)) => unit.filter(|unit| unit.state.processes.contains(&pid))?.invocation()?.parse().ok()?,
            (None, None) => unit?.invocation()?.parse().ok()?,
        };
        let (name, manager) = match unit {
            Some(unit) => (unit.name().to_owned(), unit.manager().clone()),
            None => named()?,
        };
        let manager = match manager {
            service::Manager::System => Manager::System,
            service::Manager::User { uid, .. } => Manager::User(uid),
        };
        Some(Wanted { unit: name, manager, invocation, pid })
    }

    pub(crate) fn source(&self) -> String {
        format!("the journal of {} in start {}", self.unit, self.invocation)
    }
}

/// Reads them: from the files of the journal, or where those may not be read, through `journalctl`.
pub(super) fn read(context: &Context, wanted: &Wanted, tell: &mut dyn FnMut(Found)) {
    let unit = context.unit.as_deref();
    let began =
        wanted.began(unit).or_else(|| process::start(wanted.pid?).ok()?.since_ms.map(|ms| ms.saturating_mul(1000)));
    let (journal, opening) = Journal::open(Journal::default_directories());
    let start = journal.start(&wanted.unit, wanted.manager, wanted.invocation);
    let lines = Lines::of(&start, wanted, &context.wants.log_ready);
    let lines = match wanted.of_last_process(unit, &journal) {
        Some(found) if lines.own == 0 => found,
        _ => lines,
    };
    // Files that may not be read are all one's own lines are in.
    if lines.own > 0 || (journal.files().next().is_some() && !opening.iter().any(is_refused)) {
        let help = format!("restart it (`systemctl restart {}`), or hand in the log: `--log FILE`", wanted.unit);
        let flooded = flooded(unit, &lines);
        wanted.tell(&Testimony { read: "journal files", unit, began, flooded, help: &help }, &start, lines, tell);
        return;
    }
    let until = context.deadline().saturating_duration_since(std::time::Instant::now());
    let journalctl = Journalctl { time: until, ..Journalctl::default() };
    match journalctl.start(&wanted.unit, wanted.manager, wanted.invocation) {
        Ok(exported) => {
            let start = exported.start(&wanted.unit, wanted.manager, wanted.invocation);
            let lines = Lines::of(&start, wanted, &context.wants.log_ready);
            let testimony = Testimony { read: "journalctl", unit, began, flooded: None, help: MORE_RIGHTS };
            wanted.tell(&testimony, &start, lines, tell);
        }
        Err(error) => {
            let why = opening.first().map_or_else(|| error.to_string(), ToString::to_string);
            tell(Found::gap("log.txt", wanted.source(), gap("not_present", why, Some(MORE_RIGHTS))));
        }
    }
}

const MORE_RIGHTS: &str = "run as root or as a member of the group systemd-journal, or hand in the log: `--log FILE`";

fn is_refused(gap: &Gap) -> bool {
    gap.reason == Reason::NotPermitted
}

/// How lines were come by.
pub(crate) struct Testimony<'a> {
    /// `journal files` or `journalctl`.
    pub(crate) read: &'a str,
    /// The unit.
    pub(crate) unit: Option<&'a Unit>,
    /// When the process began, microseconds since 1970.
    pub(crate) began: Option<u64>,
    /// Why lines may have been dropped without a trace.
    pub(crate) flooded: Option<String>,
    /// What would help where there are none.
    pub(crate) help: &'a str,
}

impl Wanted {
    /// When the process began, as the manager knows it: microseconds since 1970.
    pub(crate) fn began(&self, unit: Option<&Unit>) -> Option<u64> {
        unit.filter(|unit| unit.main_pid().is_some() && unit.main_pid() == self.pid)?.number("ExecMainStartTimestamp")
    }

    /// Of a unit without a process, the lines that its last main process wrote. journald finds out of which start a line
    /// is by looking at the process, and of one that ended at once it can only guess; its number it is told.
    fn of_last_process(&self, unit: Option<&Unit>, journal: &Journal) -> Option<Lines> {
        let unit = unit.filter(|_| self.pid.is_none())?;
        let pid = unit.number("ExecMainPID").filter(|pid| *pid != 0)?;
        let began = unit.number("ExecMainStartTimestamp").filter(|began| *began != 0)?;
        let ended = unit.number("ExecMainExitTimestamp").filter(|ended| *ended >= began)?;
        let of = Match::field("_PID", pid.to_string()).and(Match::field("_SYSTEMD_UNIT", &self.unit));
        let filter = Filter { since: Some(began), until: Some(ended.saturating_add(LATE)), ..of.into() };
        let mut lines = Lines::none();
        for entry in journal.entries(&filter).take(FIRST_LINES) {
            lines.push(&entry);
        }
        Some(lines)
    }

    /// Hands over the lines, with what is known about them being all.
    pub(crate) fn tell(&self, how: &Testimony<'_>, start: &Start<'_>, lines: Lines, tell: &mut dyn FnMut(Found)) {
        let source = self.source();
        let judged = start.completeness(how.began);
        let mut flaws: Vec<String> = judged.flaws.iter().map(ToString::to_string).collect();
        flaws.extend(lines.gaps.iter().cloned());
        flaws.extend(how.unit.and_then(filtered));
        let last = judged.span.map(|(_, last)| last.realtime);
        flaws.extend(how.flooded.clone().filter(|_| lines.is_silent_since(last, how.unit)));
        if lines.own == 0 {
            let why = if lines.others > 0 {
                format!(
                    "the journal holds {} lines of this start, and none of process {}",
                    lines.others,
                    self.pid.unwrap_or(0)
                )
            } else {
                let mut why = "the journal has no line of this start".to_owned();
                if let Some(flaw) = flaws.iter().find(|flaw| **flaw != why) {
                    why.push_str(&format!(": {flaw}"));
                }
                why
            };
            tell(Found::gap("log.txt", source, gap("not_present", why, Some(how.help))));
            return;
        }
        let record = json!({
            "unit": self.unit,
            "invocation": self.invocation.to_string(),
            "read": how.read,
            "lines": lines.own,
            "lines_of_others": lines.others,
            "complete": flaws.is_empty(),
            "flaws": flaws,
        });
        let mut found = Found::bytes("log.txt", source.clone(), lines.text);
        if lines.cut {
            found.entry.partial = Some("from its first line until it was ready, and its newest lines".to_owned());
        }
        tell(found);
        tell(Found::bytes(JOURNAL, source, format!("{record:#}\n").into_bytes()));
    }
}

/// The lines as text.
pub(crate) struct Lines {
    text: Vec<u8>,
    own: usize,
    others: usize,
    cut: bool,
    gaps: Vec<String>,
    /// When the first and the last of the beginning were written, microseconds since 1970.
    span: Option<(u64, u64)>,
}

impl Lines {
    fn none() -> Lines {
        Lines { text: Vec::new(), own: 0, others: 0, cut: false, gaps: Vec::new(), span: None }
    }

    pub(crate) fn of(start: &Start<'_>, wanted: &Wanted, ready: &[String]) -> Lines {
        let mut after: Option<usize> = None;
        let head = start.head_until(FIRST_LINES, |entry| {
            if let Some(left) = &mut after {
                *left = left.saturating_sub(1);
                return *left == 0;
            }
            let says = |message: Vec<u8>| ready.iter().any(|mark| contains(&message, mark.as_bytes()));
            if entry.message().is_ok_and(says) {
                after = Some(AFTER_READY);
            }
            false
        });
        let mut lines = Lines::none();
        lines.gaps.extend(head.gaps.iter().map(ToString::to_string));
        for entry in &head.entries {
            lines.add(entry, wanted);
        }
        lines.span =
            head.entries.first().zip(head.entries.last()).map(|(first, last)| (first.realtime(), last.realtime()));
        if head.found || head.entries.len() >= FIRST_LINES {
            let (newest, gaps) = start.newest(NEWEST_LINES);
            lines.gaps.extend(gaps.iter().map(ToString::to_string));
            let reached = head.entries.last().map(Entry::cursor);
            let later: Vec<&Entry> = newest
                .iter()
                .filter(|entry| reached.is_none_or(|reached| entry.cursor().order(&reached).is_gt()))
                .collect();
            if later.len() >= NEWEST_LINES {
                lines.cut = true;
                lines.text.extend_from_slice(b"[ascertain: lines left out here]\n");
            }
            for entry in later {
                lines.add(entry, wanted);
            }
        }
        lines
    }

    fn add(&mut self, entry: &Entry, wanted: &Wanted) {
        let field = |name: &str| entry.get(name).ok().flatten();
        // The manager's own lines about the unit are not the service's.
        if field("_SYSTEMD_INVOCATION_ID").as_deref() != Some(wanted.invocation.to_string().as_bytes()) {
            return;
        }
        if let Some(pid) = wanted.pid
            && field("_PID").as_deref() != Some(pid.to_string().as_bytes())
        {
            self.others += 1;
            return;
        }
        self.push(entry);
    }

    /// Whether nothing was written after the beginning for as long as the rate limit holds.
    fn is_silent_since(&self, last: Option<u64>, unit: Option<&Unit>) -> bool {
        let end = self.span.map_or(0, |(_, end)| end);
        last.is_none_or(|last| last < end.saturating_add(interval(unit)))
    }

    fn push(&mut self, entry: &Entry) {
        match entry.message() {
            Ok(message) => {
                self.own += 1;
                // One entry is one line, whatever is in it.
                self.text.extend(message.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }));
                // A line longer than journald takes at once goes on in the next entry.
                if entry.get("_LINE_BREAK").ok().flatten().as_deref() != Some(b"line-max") {
                    self.text.push(b'\n');
                }
            }
            Err(gap) => self.gaps.push(gap.to_string()),
        }
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && text.windows(part.len()).any(|window| window == part)
}

/// Lines that journald or the manager throws away because of their level.
fn filtered(unit: &Unit) -> Option<String> {
    let level = unit.state.properties.get("LogLevelMax")?.as_i64()?;
    (0..7).contains(&level).then(|| format!("LogLevelMax={level} of the unit drops lines by their level"))
}

/// journald tells of what its rate limit dropped only when the unit writes again. So a start that wrote as much as is
/// let through, and nothing since, may have lost lines without a trace.
fn flooded(unit: Option<&Unit>, lines: &Lines) -> Option<String> {
    let own = unit.and_then(|unit| unit.number("LogRateLimitBurst")).filter(|burst| *burst > 0);
    let burst = own.or_else(|| configured("RateLimitBurst")).unwrap_or(BURST);
    let (first, end) = lines.span?;
    let written = (lines.own + lines.others) as u64;
    let dense = end.saturating_sub(first) < interval(unit) || written > burst;
    (written >= burst && dense).then(|| {
        format!("{written} lines were written, of which the rate limit lets {burst} through, and none since: what was dropped leaves no trace")
    })
}

fn interval(unit: Option<&Unit>) -> u64 {
    unit.and_then(|unit| unit.number("LogRateLimitIntervalUSec")).filter(|interval| *interval > 0).unwrap_or(INTERVAL)
}

fn configured(key: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/etc/systemd/journald.conf").ok()?;
    let value = text.lines().rev().find_map(|line| line.trim().strip_prefix(key)?.trim_start().strip_prefix('='))?;
    value.trim().parse().ok()
}
