//! The journal of another host, through its `journalctl`: the lines of one process in one start.
//!
//! `journalctl` says nothing of what it leaves out, so a log that came from it never counts as complete.

use super::Fault;
use super::session::{Request, Session, outcome};
use crate::systemd::Unit;
use crate::witness::Found;
use crate::witness::journal::{Lines, Testimony, Wanted};
use ascertain_journal::Exported;

/// So much of a start is taken from its first line on…
const BEGINNING: usize = 16 << 20;
/// …and, if that is not all, so many of its newest lines.
const NEWEST: usize = 500;

const MORE_RIGHTS: &str =
    "log in as root or as a member of the group systemd-journal, use --sudo, or name the log: `--log FILE`";

fn request(wanted: &Wanted, newest: Option<usize>) -> Request {
    let mut words: Vec<String> = vec![BEGINNING.to_string()];
    words.extend(["journalctl", "--no-pager", "--quiet", "--output=export"].map(str::to_owned));
    words.extend(newest.map(|newest| format!("--lines={newest}")));
    let condition = Exported::condition(&wanted.unit, wanted.manager, wanted.invocation);
    let arguments = condition.arguments().unwrap_or_default();
    words.extend(arguments.iter().map(|argument| argument.to_string_lossy().into_owned()));
    Request::new("run", &words, BEGINNING)
}

impl Session {
    /// Reads the lines. `ready` as in [`Wants::log_ready`](ascertain_model::wants::Wants::log_ready).
    pub(super) fn journal(
        &mut self,
        wanted: &Wanted,
        unit: Option<&Unit>,
        ready: &[String],
        tell: &mut dyn FnMut(Found),
    ) -> Result<(), Fault> {
        let name = format!("journalctl on {}", self.host());
        let patience = self.patience() * 2;
        let reply = self.ask(&[request(wanted, None)], patience)?.pop().unwrap_or_default();
        let is_cut = reply.body.len() >= BEGINNING;
        let (said, _) = outcome(&reply.end);
        let mut exported = Exported::read(&name, reply.body);
        if is_cut {
            exported.cut_off(&name);
            let newest = self.ask(&[request(wanted, Some(NEWEST))], patience)?.pop().unwrap_or_default();
            exported.add(Exported::read(&name, newest.body));
        }
        let start = exported.start(&wanted.unit, wanted.manager, wanted.invocation);
        let lines = Lines::of(&start, wanted, ready);
        let help = match said.lines().find(|line| !line.trim().is_empty()) {
            Some(said) => format!("journalctl said: {said}; {MORE_RIGHTS}"),
            None => MORE_RIGHTS.to_owned(),
        };
        let began = wanted.began(unit);
        let testimony = Testimony { read: "journalctl", unit, began, flooded: None, help: &help };
        wanted.tell(&testimony, &start, lines, tell);
        Ok(())
    }
}
