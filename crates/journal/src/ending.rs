//! How the starts of a unit ended, in the manager's words.

use crate::entry::Entry;
use crate::filter::Match;
use crate::gap::{Gap, Gaps};
use crate::id::Id128;
use crate::journal::Journal;
use crate::which::{Manager, Which};
use std::collections::BTreeMap;

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
    /// When it said so last: microseconds since 1970.
    pub realtime: u64,
    /// Why it failed, in systemd's words: `exit-code`, `signal`, `timeout`, `oom-kill`, …; `None`: it did not.
    pub failure: Option<String>,
    /// How the last process ended of which it told: `exited` or `killed` or `dumped`, and the status or signal. It does not
    /// tell of a process that exits with 0.
    pub process: Option<(String, String)>,
}

impl Journal {
    /// How the starts of a unit (full name) ended. A start that is not among them runs on, or the host went down, or the
    /// manager's lines are not there. Cost: a few reads for each start.
    pub fn endings(&self, unit: &str, manager: Manager) -> (BTreeMap<Id128, Ending>, Vec<Gap>) {
        let said = Match::one_of("MESSAGE_ID", [SUCCESS, FAILURE, STOPPED, PROCESS_EXIT]);
        let mut entries = self.entries(&said.and(Which::said_about(unit, manager)).into());
        let mut endings: BTreeMap<Id128, Ending> = BTreeMap::new();
        let mut processes: BTreeMap<Id128, (String, String)> = BTreeMap::new();
        let mut gaps = Gaps::default();
        let field = match manager {
            Manager::System => "INVOCATION_ID",
            Manager::User(_) => "USER_INVOCATION_ID",
        };
        for entry in entries.by_ref() {
            let mut text = |name: &str| text(&entry, name, &mut gaps);
            let Some(id) = text(field).and_then(|id| id.parse().ok()) else { continue };
            let said = text("MESSAGE_ID");
            if said.as_deref() == Some(PROCESS_EXIT) {
                processes.extend(text("EXIT_CODE").zip(text("EXIT_STATUS")).map(|process| (id, process)));
                continue;
            }
            let new = Ending { realtime: 0, failure: None, process: None };
            let ending = endings.entry(id).or_insert(new);
            ending.realtime = entry.realtime();
            if said.as_deref() == Some(FAILURE) {
                ending.failure = Some(text("UNIT_RESULT").unwrap_or_else(|| "failed".to_owned()));
            }
        }
        for (id, ending) in &mut endings {
            ending.process = processes.remove(id);
        }
        gaps.extend(entries.into_gaps());
        (endings, gaps.into_vec())
    }
}

fn text(entry: &Entry, field: &str, gaps: &mut Gaps) -> Option<String> {
    match entry.get(field) {
        Ok(value) => value.map(|value| String::from_utf8_lossy(&value).into_owned()),
        Err(gap) => {
            gaps.add(gap);
            None
        }
    }
}
