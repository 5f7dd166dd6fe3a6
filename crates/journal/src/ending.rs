//! How a start ended, in the manager's words.

use crate::entry::Entry;
use crate::filter::{Direction, Filter, Match};
use crate::gap::Gap;
use crate::start::Start;

/// sd-messages.h: SD_MESSAGE_UNIT_SUCCESS, "Deactivated successfully".
const SUCCESS: &str = "7ad2d189f7e94e70a38c781354912448";
/// sd-messages.h: SD_MESSAGE_UNIT_FAILURE_RESULT, "Failed with result …".
const FAILURE: &str = "d9b373ed55a64feb8242e02dbe79a49c";
/// sd-messages.h: SD_MESSAGE_UNIT_STOPPED, "Stopped …".
const STOPPED: &str = "9d1aaa27d60140bd96365438aad20286";
/// sd-messages.h: SD_MESSAGE_UNIT_PROCESS_EXIT, "Main process exited, code=…, status=…".
const PROCESS_EXIT: &str = "98e322203f7a4ed290d09fe03c09fe15";

/// The end of a start, as the manager logs it (systemd 252).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// When it said so: microseconds since 1970.
    pub realtime: u64,
    /// Why it failed, in systemd's words: `exit-code`, `signal`, `timeout`, `oom-kill`, …; `None`: it did not.
    pub failure: Option<String>,
    /// How the last process ended of which it told: `exited` or `killed` or `dumped`, and the status or signal. It does not
    /// tell of a process that exits with 0.
    pub process: Option<(String, String)>,
}

impl Start<'_> {
    /// How it ended; `None`: the manager did not say, so it may run on, or the host went down.
    pub fn ending(&self) -> (Option<Ending>, Vec<Gap>) {
        let said = |ids: &[&str]| Match::one_of("MESSAGE_ID", ids).and(self.which.manager_lines());
        let newest_first = |ids| Filter { direction: Direction::Backward, ..said(ids).into() };
        let mut entries = self.source.entries(&newest_first(&[SUCCESS, FAILURE, STOPPED]));
        let mut ending: Option<Ending> = None;
        // "Stopped" comes last, and what came of it just before.
        for entry in entries.by_ref().take(3) {
            let ending = ending.get_or_insert(Ending { realtime: entry.realtime(), failure: None, process: None });
            if text(&entry, "MESSAGE_ID").as_deref() == Some(FAILURE) {
                ending.failure = Some(text(&entry, "UNIT_RESULT").unwrap_or_else(|| "failed".to_owned()));
            }
        }
        let mut gaps = entries.into_gaps();
        if let Some(ending) = &mut ending {
            let mut entries = self.source.entries(&newest_first(&[PROCESS_EXIT]));
            if let Some(entry) = entries.next() {
                ending.process = text(&entry, "EXIT_CODE").zip(text(&entry, "EXIT_STATUS"));
            }
            gaps.extend(entries.into_gaps());
        }
        (ending, gaps)
    }
}

fn text(entry: &Entry, field: &str) -> Option<String> {
    entry.get(field).ok().flatten().map(|value| String::from_utf8_lossy(&value).into_owned())
}
