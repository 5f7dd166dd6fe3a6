//! Processes, as `/proc` shows them.

use ascertain_model::capture::Start;
use ascertain_model::wants::ProcessFacts;
use std::io;
use std::path::PathBuf;

/// What can go wrong while reading about a process.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such process, or it ended meanwhile.
    #[error("no process {pid}: it never was or has ended; list the running ones with `ps -e`")]
    Gone {
        /// PID.
        pid: u32,
    },
    /// It belongs to somebody else.
    #[error("not permitted to read {path}: run as the user of process {pid} or as root")]
    NotPermitted {
        /// PID.
        pid: u32,
        /// What was to be read.
        path: String,
    },
    /// The kernel wrote something that is not understood.
    #[error("cannot understand {path}: {why}")]
    Malformed {
        /// What was read.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Anything else.
    #[error("cannot read {path}: {source}")]
    Io {
        /// What was to be read.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// The error of a failed read under `/proc/PID`.
    pub fn of(pid: u32, path: impl Into<String>, source: io::Error) -> Self {
        let path = path.into();
        // ESRCH: the process ended between opening and reading.
        if source.kind() == io::ErrorKind::NotFound || source.raw_os_error() == Some(3) {
            Error::Gone { pid }
        } else if source.kind() == io::ErrorKind::PermissionDenied {
            Error::NotPermitted { pid, path }
        } else {
            Error::Io { path, source }
        }
    }

    /// Whether more rights would help.
    pub fn is_permission(&self) -> bool {
        matches!(self, Error::NotPermitted { .. })
    }
}

/// `/proc/PID/NAME`.
pub fn path(pid: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

/// Reads one of the small files of `/proc/PID`.
pub fn read(pid: u32, name: &str) -> Result<Vec<u8>, Error> {
    let path = path(pid, name);
    std::fs::read(&path).map_err(|source| Error::of(pid, path.display().to_string(), source))
}

/// Where one of the links of `/proc/PID` points.
pub fn link(pid: u32, name: &str) -> Result<String, Error> {
    let path = path(pid, name);
    match std::fs::read_link(&path) {
        Ok(target) => Ok(target.to_string_lossy().into_owned()),
        Err(source) => Err(Error::of(pid, path.display().to_string(), source)),
    }
}

/// All PIDs, lowest first.
pub fn pids() -> Vec<u32> {
    let mut pids: Vec<u32> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    pids
}

/// The processes that can be read, lowest PID first, with executable and command line only. Kernel threads and
/// processes that have ended have no command line and are left out.
pub fn list() -> Vec<ProcessFacts> {
    pids()
        .into_iter()
        .filter_map(|pid| {
            let argv = split(&read(pid, "cmdline").ok()?);
            let exe = link(pid, "exe").ok().map(|exe| deleted(exe).0);
            (!argv.is_empty()).then(|| ProcessFacts { pid, exe, argv, ..ProcessFacts::default() })
        })
        .collect()
}

/// What is known of one process. Executable, environment and working directory are left empty where they may not be
/// read: the process witness says so.
pub fn facts(pid: u32) -> Result<ProcessFacts, Error> {
    let argv = split(&read(pid, "cmdline")?);
    let environ = match environ(pid) {
        Ok(environ) => environ,
        Err(error) if error.is_permission() => Vec::new(),
        Err(error) => return Err(error),
    };
    let exe = link(pid, "exe").ok().map(|exe| deleted(exe).0);
    Ok(ProcessFacts { pid, exe, argv, environ, cwd: link(pid, "cwd").ok() })
}

/// The environment a process was started with.
pub fn environ(pid: u32) -> Result<Vec<(String, String)>, Error> {
    Ok(variables(&read(pid, "environ")?))
}

/// `NAME=value` items, each ended by NUL, as `/proc/PID/environ` holds them.
pub(crate) fn variables(bytes: &[u8]) -> Vec<(String, String)> {
    split(bytes)
        .into_iter()
        .filter_map(|item| item.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect()
}

/// Whether the executable was replaced or removed after the process was started.
pub fn exe_deleted(pid: u32) -> Result<bool, Error> {
    link(pid, "exe").map(|exe| deleted(exe).1)
}

/// Which start this is.
pub fn start(pid: u32) -> Result<Start, Error> {
    let stat = stat(pid)?;
    let boot = match std::fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        Ok(boot) => boot.trim().to_owned(),
        Err(_) => String::new(),
    };
    Ok(Start { boot, pid, ticks: stat.start_ticks, since_ms: since_ms(stat.start_ticks) })
}

/// Some fields of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// `R`, `S`, `Z` and so on.
    pub state: char,
    /// PID of the parent.
    pub parent: u32,
    /// Clock ticks after boot.
    pub start_ticks: u64,
}

/// Reads `/proc/PID/stat`.
pub fn stat(pid: u32) -> Result<Stat, Error> {
    parse_stat(&read(pid, "stat")?)
        .ok_or(Error::Malformed { path: format!("/proc/{pid}/stat"), why: "expected at least 22 fields" })
}

/// The second field is the name of the program in parentheses, and may itself hold spaces and parentheses: fields
/// are counted from the last one that closes.
pub(crate) fn parse_stat(stat: &[u8]) -> Option<Stat> {
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[close + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    // state is field 3, parent 4, the start 22.
    let start_ticks = fields.nth(17)?.parse().ok()?;
    Some(Stat { state, parent, start_ticks })
}

/// Whether one process is an ancestor of the other, or the same.
pub fn related(one: u32, other: u32) -> bool {
    let descends = |mut from: u32, to: u32| {
        for _ in 0..64 {
            if from == to {
                return true;
            }
            match stat(from) {
                Ok(stat) if stat.parent > 1 => from = stat.parent,
                _ => return false,
            }
        }
        false
    };
    descends(one, other) || descends(other, one)
}

/// When a process started, in milliseconds since the epoch: now, less the time since boot, plus the ticks after boot
/// at which it started. The kernel's boot time in whole seconds would be up to two seconds off.
fn since_ms(ticks: u64) -> Option<u64> {
    let per_second = rustix::param::clock_ticks_per_second();
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?.as_millis();
    started(ticks, per_second, uptime, u64::try_from(now).ok()?)
}

/// The same from what was read: ticks and ticks per second, seconds since boot, and now in milliseconds since the epoch.
pub(crate) fn started(ticks: u64, per_second: u64, uptime: f64, now_ms: u64) -> Option<u64> {
    let after_boot = ticks.checked_mul(1000)?.checked_div(per_second)?;
    let age = ((uptime * 1000.0) as u64).saturating_sub(after_boot);
    now_ms.checked_sub(age)
}

/// Splits a list in which each item ends in NUL. The last may lack its NUL (a program that rewrote its title).
pub(crate) fn split(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes.split(|byte| *byte == 0).map(|item| String::from_utf8_lossy(item).into_owned()).collect()
}

/// The kernel marks the path of a removed file.
pub(crate) fn deleted(path: String) -> (String, bool) {
    match path.strip_suffix(" (deleted)") {
        Some(plain) => (plain.to_owned(), true),
        None => (path, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_may_hold_anything() {
        let line = b"77 (a) b (c) 1 2) S 5 77 77 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 9876 1 2 3\n";
        assert_eq!(parse_stat(line), Some(Stat { state: 'S', parent: 5, start_ticks: 9876 }));
        assert_eq!(parse_stat(b"77 (x) S 5 77"), None);
        assert_eq!(parse_stat(b""), None);
    }

    #[test]
    fn this_process_is_known() {
        let pid = std::process::id();
        let facts = facts(pid).unwrap();
        assert_eq!(facts.argv, std::env::args().collect::<Vec<_>>());
        assert!(facts.env("PATH").is_some());
        assert_eq!(facts.exe.as_deref().map(std::path::Path::new), std::env::current_exe().ok().as_deref());
        let start = start(pid).unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        assert!(start.ticks > 0 && !start.boot.is_empty());
        assert!(
            start.since_ms.is_some_and(|since| since / 1000 <= now + 2 && since / 1000 + 3600 > now),
            "{start:?} {now}"
        );
        assert!(!exe_deleted(pid).unwrap());
        assert!(list().iter().any(|process| process.pid == pid));
        let parent = stat(pid).unwrap().parent;
        assert!(related(pid, parent) && related(parent, pid));
    }

    #[test]
    fn a_process_that_ended_is_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(matches!(facts(pid), Err(Error::Gone { .. })));
        assert!(matches!(start(pid), Err(Error::Gone { .. })));
    }

    #[test]
    fn items_end_in_nul() {
        assert_eq!(split(b"a\0\0b\0"), ["a", "", "b"]);
        assert_eq!(split(b"a"), ["a"]);
        assert!(split(b"").is_empty() && split(b"\0").is_empty());
    }
}
