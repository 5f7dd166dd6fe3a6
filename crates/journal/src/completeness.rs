//! Whether the log of one start is complete, and what that rests on.

use crate::cursor::Cursor;
use crate::file::{FileInfo, State};
use crate::filter::{Filter, Match, Walk};
use crate::gap::{Gap, Gaps, Reason};
use crate::id::Id128;
use crate::journal::Journal;
use crate::list::Reading;
use crate::start::{STARTED, STARTING, Source, Start};
use crate::which::Manager;
use std::fmt;
use std::path::{Path, PathBuf};

/// Entries about suppressed messages that are listed one by one.
const MOST_SUPPRESSIONS: usize = 1000;

/// What is known about a start's log being whole. A negative ("the service never said so") needs
/// [`Completeness::is_complete`] and a search without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completeness {
    /// First and last entry; `None`: the journal has no line of this start.
    pub span: Option<(Cursor, Cursor)>,
    /// What speaks for it, point by point.
    pub evidence: Vec<Evidence>,
    /// What is missing or may be: each is enough to say that the log is not complete.
    pub flaws: Vec<Flaw>,
    /// What holds for every log of its kind and cannot be settled from the journal alone.
    pub caveats: Vec<Caveat>,
}

impl Completeness {
    /// Whether nothing speaks against it.
    pub fn is_complete(&self) -> bool {
        self.flaws.is_empty()
    }
}

/// The manager's line with which a start begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartLine {
    /// "Starting …": before the first process runs.
    Starting,
    /// "Started …": all there is for `Type=simple`, at the moment of the fork; for others the start is done.
    Started,
}

/// A point that was looked at and is in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// The manager's first line about this start is there.
    FirstLine {
        /// Which of them.
        line: StartLine,
        /// Its place.
        at: Cursor,
    },
    /// The boot has entries before the start began, so that nothing was vacuumed from its beginning.
    ReachesBefore {
        /// Oldest entry of the boot: microseconds since 1970.
        oldest: u64,
    },
    /// The files have all sequence numbers from the first line to the last.
    Unbroken {
        /// Sequence number of the first line.
        first: u64,
        /// Sequence number of the last line.
        last: u64,
        /// Files that hold them.
        files: usize,
    },
    /// journald wrote no "Suppressed N messages" about this unit in this time.
    NoneSuppressed,
    /// All lists of the start's entries were walked and are sound.
    IndexSound {
        /// Files that were walked.
        files: usize,
    },
}

/// A reason why a start's log is not complete, or not known to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// There is no line of this start.
    NoLine,
    /// The manager's first line about it is missing: cut off, or written elsewhere (a manager without a journal).
    NoFirstLine,
    /// The oldest entry of the boot is younger than the start: its beginning was vacuumed or never stored.
    BeginsTooLate {
        /// When the start began: microseconds since 1970, as the caller knows it.
        started: u64,
        /// Oldest entry of the boot: microseconds since 1970; `None`: there is none.
        oldest: Option<u64>,
    },
    /// No file has these sequence numbers between the first line and the last: a file is missing.
    SequenceHole {
        /// First missing sequence number.
        first: u64,
        /// Last missing sequence number.
        last: u64,
        /// The file before the hole.
        after: PathBuf,
        /// The file after it.
        before: PathBuf,
    },
    /// journald's rate limit dropped messages of the unit.
    Suppressed {
        /// How many, as journald says; `None` if it does not.
        messages: Option<u64>,
        /// journald's entry about it.
        at: Cursor,
    },
    /// A file was not closed by its writer and is not being written any more: its last entries may be missing.
    NotClosed(PathBuf),
    /// Something could not be read.
    Unreadable(Gap),
    /// It was read through `journalctl`, which leaves out damaged entries and missing files without a word
    /// (systemd 252): what is not there may have been.
    Exported,
}

/// What holds for a log that may be complete all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caveat {
    /// The file is being written: what the unit said in the last moments may not be there yet.
    StillWritten(PathBuf),
    /// journald tells of suppressed messages only when the unit logs again: a flood just before the last line of a
    /// start that is silent since leaves no trace. The last line: microseconds since 1970.
    SilentSince(u64),
    /// Fewer entries than sequence numbers in this span: they went to files that are not among those opened (another
    /// user's journal), or were lost.
    Thinned {
        /// Sequence numbers without an entry.
        missing: u64,
    },
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::NoLine => write!(f, "the journal has no line of this start"),
            Flaw::NoFirstLine => write!(f, "the service manager's first line about this start is missing"),
            Flaw::BeginsTooLate { oldest: Some(oldest), started } => write!(
                f,
                "the oldest entry of this boot is {:.1} s younger than the start",
                oldest.saturating_sub(*started) as f64 / 1e6
            ),
            Flaw::BeginsTooLate { oldest: None, .. } => write!(f, "the journal has no entry of this boot"),
            Flaw::SequenceHole { first, last, after, before } => {
                write!(f, "entries {first} to {last} are missing between {} and {}", after.display(), before.display())
            }
            Flaw::Suppressed { messages: Some(messages), .. } => {
                write!(f, "journald's rate limit dropped {messages} messages")
            }
            Flaw::Suppressed { messages: None, .. } => write!(f, "journald's rate limit dropped messages"),
            Flaw::NotClosed(path) => write!(f, "{} was not closed by its writer", path.display()),
            Flaw::Unreadable(gap) => gap.fmt(f),
            Flaw::Exported => {
                write!(f, "it was read through journalctl, which does not say when files are missing or damaged")
            }
        }
    }
}

impl Start<'_> {
    /// Judges whether its log is complete. `started`: when the start began, microseconds since 1970, if the caller
    /// knows it from the manager.
    ///
    /// Walks the lists of the start's entries but reads only its first and last ones: damage of an entry in between is
    /// met, and told, by whoever reads it.
    pub fn completeness(&self, started: Option<u64>) -> Completeness {
        let mut gaps = Gaps::default();
        let mut judged = Completeness { span: None, evidence: Vec::new(), flaws: Vec::new(), caveats: Vec::new() };
        let mut forward = self.entries();
        let first = forward.next();
        gaps.extend(forward.into_gaps());
        let (last, met) = self.newest(1);
        gaps.extend(met);
        let span = first.zip(last.into_iter().next());
        judged.span = span.as_ref().map(|(first, last)| (first.cursor(), last.cursor()));
        self.check_first_line(&mut judged, &mut gaps);
        match &judged.span {
            Some((first, last)) => {
                let (first, last) = (*first, *last);
                self.check_suppression(&first, &mut judged, &mut gaps);
                judged.caveats.push(Caveat::SilentSince(last.realtime));
            }
            None => judged.flaws.push(Flaw::NoLine),
        }
        match self.source {
            Source::Files(journal) => self.check_files(journal, started, &mut judged, &mut gaps),
            Source::Exported(exported) => {
                judged.flaws.push(Flaw::Exported);
                gaps.extend(exported.gaps().iter().cloned());
            }
        }
        judged.flaws.extend(gaps.into_vec().into_iter().map(Flaw::Unreadable));
        judged
    }

    /// What only the files themselves can tell.
    fn check_files(&self, journal: &Journal, started: Option<u64>, judged: &mut Completeness, gaps: &mut Gaps) {
        if let Some((first, last)) = judged.span {
            self.check_reach(journal, started, &first, judged);
            check_sequence(journal, &first, &last, judged);
            self.check_closed(journal, &first, judged);
        }
        self.check_index(journal, judged, gaps);
        for gap in &journal.opening {
            if self.concerns(journal, gap, judged.span.as_ref()) {
                gaps.add(gap.clone());
            }
        }
    }

    fn check_first_line(&self, judged: &mut Completeness, gaps: &mut Gaps) {
        let condition = self.which.manager_lines().and(Match::one_of("MESSAGE_ID", [STARTING, STARTED]));
        let mut lines = self.source.entries(&condition.into());
        match lines.next() {
            Some(entry) => {
                let starting = entry.get("MESSAGE_ID").is_ok_and(|id| id.as_deref() == Some(STARTING.as_bytes()));
                let line = if starting { StartLine::Starting } else { StartLine::Started };
                judged.evidence.push(Evidence::FirstLine { line, at: entry.cursor() });
            }
            None => judged.flaws.push(Flaw::NoFirstLine),
        }
        gaps.extend(lines.into_gaps());
    }

    fn check_reach(&self, journal: &Journal, started: Option<u64>, first: &Cursor, judged: &mut Completeness) {
        let boot = Filter { boot: Some(first.boot_id), ..Filter::default() };
        let oldest = journal.entries(&boot).next().map(|entry| entry.realtime());
        let begin = started.unwrap_or(first.realtime);
        match (oldest, started) {
            (Some(oldest), _) if oldest < begin => judged.evidence.push(Evidence::ReachesBefore { oldest }),
            (oldest, Some(started)) => judged.flaws.push(Flaw::BeginsTooLate { started, oldest }),
            // The start's own first entry is the oldest of the boot: only the manager's first line can tell.
            (_, None) => {}
        }
    }

    fn check_suppression(&self, first: &Cursor, judged: &mut Completeness, gaps: &mut Gaps) {
        let filter = Filter { boot: Some(first.boot_id), ..self.which.suppressions().into() };
        let mut entries = self.source.entries(&filter);
        let mut none = true;
        for entry in entries.by_ref().take(MOST_SUPPRESSIONS) {
            let of_this_start = match entry.get("OBJECT_SYSTEMD_INVOCATION_ID") {
                Ok(Some(id)) => id == self.which.invocation.to_string().as_bytes(),
                _ => entry.cursor().order(first).is_ge(),
            };
            if of_this_start {
                none = false;
                let messages = entry.get("N_DROPPED").ok().flatten();
                let messages = messages.and_then(|number| String::from_utf8(number).ok()?.trim().parse().ok());
                judged.flaws.push(Flaw::Suppressed { messages, at: entry.cursor() });
            }
        }
        // An export holds what was asked for, which may not have been these entries.
        if none && matches!(self.source, Source::Files(_)) {
            judged.evidence.push(Evidence::NoneSuppressed);
        }
        gaps.extend(entries.into_gaps());
    }

    fn check_closed(&self, journal: &Journal, first: &Cursor, judged: &mut Completeness) {
        for file in journal.files() {
            let before = file.tail_realtime < first.realtime;
            if file.state != State::Online || before || self.is_of_users(&file.path) {
                continue;
            }
            let name = file.path.file_name().unwrap_or_default().to_string_lossy();
            if name.ends_with('~') || name.contains('@') {
                judged.flaws.push(Flaw::NotClosed(file.path.clone()));
            } else {
                judged.caveats.push(Caveat::StillWritten(file.path.clone()));
            }
        }
    }

    fn check_index(&self, journal: &Journal, judged: &mut Completeness, gaps: &mut Gaps) {
        let before = gaps.as_slice().len();
        let mut files = 0;
        for file in &journal.files {
            let mut buffers = file.buffers();
            let mut on = Reading { file, buffers: &mut buffers, gaps };
            // The manager's lines are few and were read for the first line.
            if let Some(mut walk) = Walk::new(&mut on, &self.which.own_lines()) {
                walk.check(&mut on);
                files += 1;
            }
        }
        if gaps.as_slice().len() == before {
            judged.evidence.push(Evidence::IndexSound { files });
        }
    }

    /// Whether a file that could not be opened, or only in part, may have held lines of this start.
    fn concerns(&self, journal: &Journal, gap: &Gap, span: Option<&(Cursor, Cursor)>) -> bool {
        // Not there is not damaged, and users' journals hold no lines of system services.
        if gap.reason == Reason::NotFound || self.is_of_users(&gap.path) {
            return false;
        }
        let opened = journal.files().find(|file| file.path == gap.path);
        opened.zip(span).is_none_or(|(file, (first, _))| file.tail_realtime >= first.realtime)
    }

    fn is_of_users(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.which.manager == Manager::System && name.starts_with("user-")
    }
}

/// Looks for missing sequence numbers, also where a start began in the volatile journal and went on in the persistent
/// one, which count apart.
fn check_sequence(journal: &Journal, first: &Cursor, last: &Cursor, judged: &mut Completeness) {
    if first.seqnum_id == last.seqnum_id {
        check_source(journal, first.seqnum_id, first, (first.seqnum, last.seqnum), judged);
    } else {
        check_source(journal, first.seqnum_id, first, (first.seqnum, u64::MAX), judged);
        check_source(journal, last.seqnum_id, first, (0, last.seqnum), judged);
    }
}

/// Looks for numbers of one source that no file has, from the first to the last given, in files written since `start`.
fn check_source(
    journal: &Journal,
    source: Id128,
    start: &Cursor,
    (first, last): (u64, u64),
    judged: &mut Completeness,
) {
    let mut files: Vec<&FileInfo> = journal
        .files()
        .filter(|file| {
            let within = file.tail_seqnum >= first && file.head_seqnum <= last;
            file.seqnum_id == source && file.entries > 0 && within && file.tail_realtime >= start.realtime
        })
        .collect();
    files.sort_by_key(|file| (file.head_seqnum, file.tail_seqnum));
    let holes = judged.flaws.len();
    let mut before: Option<&FileInfo> = None;
    for file in &files {
        if let Some(reached) = before
            && file.head_seqnum > reached.tail_seqnum.saturating_add(1)
        {
            judged.flaws.push(Flaw::SequenceHole {
                first: reached.tail_seqnum + 1,
                last: file.head_seqnum - 1,
                after: reached.path.clone(),
                before: file.path.clone(),
            });
        }
        if before.is_none_or(|reached| file.tail_seqnum > reached.tail_seqnum) {
            before = Some(file);
        }
    }
    if judged.flaws.len() == holes {
        let from = files.iter().map(|file| file.head_seqnum).min().unwrap_or(0);
        let to = files.iter().map(|file| file.tail_seqnum).max().unwrap_or(0);
        judged.evidence.push(Evidence::Unbroken { first: first.max(from), last: last.min(to), files: files.len() });
        let span = to.saturating_sub(from).saturating_add(1);
        let there = files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.entries));
        if there < span {
            judged.caveats.push(Caveat::Thinned { missing: span - there });
        }
    }
}
