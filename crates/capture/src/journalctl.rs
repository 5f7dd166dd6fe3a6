//! The journal through `journalctl`, for where its files may not be read.
//!
//! The output is in the export format, which keeps every byte of every field, and is read by
//! [`Exported`]. journalctl drops what it cannot read without a word and exits 0, so what comes this way is never a
//! complete log.

use ascertain_journal::{Exported, Id128, Manager, Match};
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Newest entries, and newest warnings, that are asked for when a log is too long to be taken whole.
const NEWEST: usize = 200;
/// What is kept of the standard error output, in bytes.
const COMPLAINTS: usize = 4096;
const PIECE: usize = 64 << 10;

/// How `journalctl` is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journalctl {
    /// The program, with words before its arguments where another program carries them to it.
    pub program: Vec<OsString>,
    /// The directory with the files; `None` is the host's own.
    pub directory: Option<PathBuf>,
    /// Most bytes of one call's output.
    pub bytes: usize,
    /// Time for all calls about one start.
    pub time: Duration,
}

impl Default for Journalctl {
    fn default() -> Self {
        Self { program: vec!["journalctl".into()], directory: None, bytes: 16 << 20, time: Duration::from_secs(5) }
    }
}

/// Why `journalctl` told nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be started.
    #[error("cannot run {program}")]
    NotRun {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It failed: not permitted, no such directory, an option that its release does not know.
    #[error("{program} failed ({status}): {complaint}")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        complaint: String,
    },
    /// It did not print anything in time.
    #[error("{program} printed nothing within {} ms", .after.as_millis())]
    Silent {
        /// The program.
        program: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// Its output could not be read.
    #[error("cannot read what {program} prints")]
    Unreadable {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// What one call printed.
struct Printed {
    bytes: Vec<u8>,
    /// Whether it ended by itself, in time and within the limit.
    whole: bool,
}

impl Journalctl {
    /// The log of one start of a unit: all of it, or its beginning with its newest entries and warnings where it is longer
    /// than the limits allow. What is missing then is among the gaps of the answer.
    pub fn start(&self, unit: &str, manager: Manager, invocation: Id128) -> Result<Exported, Error> {
        let until = Instant::now() + self.time;
        let condition = Exported::condition(unit, manager, invocation);
        let first = self.call(&condition, None, until)?;
        let name = self.name(&condition);
        let mut exported = Exported::read(&name, first.bytes);
        if first.whole {
            return Ok(exported);
        }
        exported.cut_off(&name);
        for more in [condition.clone(), condition.and(Match::warnings())] {
            // The beginning is worth having without them.
            if let Ok(printed) = self.call(&more, Some(NEWEST), until) {
                exported.add(Exported::read(&name, printed.bytes));
            }
        }
        Ok(exported)
    }

    /// The newest entries of a condition.
    pub fn newest(&self, condition: &Match, count: usize) -> Result<Exported, Error> {
        let printed = self.call(condition, Some(count), Instant::now() + self.time)?;
        let name = self.name(condition);
        let mut exported = Exported::read(&name, printed.bytes);
        if !printed.whole {
            exported.cut_off(&name);
        }
        Ok(exported)
    }

    /// The words of a call for the entries of a condition, all or the newest ones, to be run or to be shown.
    pub fn words(&self, condition: &Match, newest: Option<usize>) -> Vec<OsString> {
        let mut words = self.program.clone();
        words.extend(["--output=export", "--quiet", "--no-pager"].map(OsString::from));
        if let Some(directory) = &self.directory {
            words.extend(["--directory".into(), directory.into()]);
        }
        if let Some(newest) = newest {
            words.push(format!("--lines={newest}").into());
        }
        words.extend(condition.arguments().unwrap_or_default());
        words
    }

    fn name(&self, condition: &Match) -> PathBuf {
        self.words(condition, None).join(&OsString::from(" ")).into()
    }

    fn program(&self) -> String {
        self.program.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn call(&self, condition: &Match, newest: Option<usize>, until: Instant) -> Result<Printed, Error> {
        let begun = Instant::now();
        let words = self.words(condition, newest);
        let (program, arguments) = words.split_first().map_or((None, &words[..]), |(first, rest)| (Some(first), rest));
        let mut child = Command::new(program.unwrap_or(&OsString::new()))
            .args(arguments)
            .env("LC_ALL", "C")
            .env("SYSTEMD_PAGER", "")
            .env("SYSTEMD_COLORS", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| Error::NotRun { program: self.program(), source })?;
        let (pieces, complaints) = listen(&mut child);
        let printed = self.collect(&pieces, until);
        let ended = matches!(&printed, Ok(Printed { whole: true, .. }));
        let status = end(&mut child, ended, until);
        let printed = printed.map_err(|source| Error::Unreadable { program: self.program(), source })?;
        match status {
            Some(status) if ended && !status.success() => {
                let complaint = complaints.recv_timeout(Duration::from_millis(100)).unwrap_or_default();
                let complaint = String::from_utf8_lossy(&complaint).trim().to_owned();
                Err(Error::Failed { program: self.program(), status, complaint })
            }
            _ if !printed.whole && printed.bytes.is_empty() => {
                Err(Error::Silent { program: self.program(), after: begun.elapsed() })
            }
            _ => Ok(printed),
        }
    }

    fn collect(&self, pieces: &Receiver<io::Result<Vec<u8>>>, until: Instant) -> io::Result<Printed> {
        let mut bytes = Vec::new();
        loop {
            match pieces.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(piece) => {
                    let piece = piece?;
                    let room = self.bytes - bytes.len();
                    bytes.extend_from_slice(&piece[..piece.len().min(room)]);
                    if piece.len() > room {
                        return Ok(Printed { bytes, whole: false });
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(Printed { bytes, whole: true }),
                Err(RecvTimeoutError::Timeout) => return Ok(Printed { bytes, whole: false }),
            }
        }
    }
}

/// Has threads read both outputs, which end with the process. They are not waited for: something that the program left
/// behind may keep a pipe open for ever.
fn listen(child: &mut Child) -> (Receiver<io::Result<Vec<u8>>>, Receiver<Vec<u8>>) {
    // Few pieces wait, so that a flood stands still until it is wanted.
    let (tell, pieces) = mpsc::sync_channel(4);
    let (complain, complaints) = mpsc::sync_channel(1);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    thread::spawn(move || {
        let Some(mut stdout) = stdout else { return };
        loop {
            let mut piece = vec![0; PIECE];
            let read = match stdout.read(&mut piece) {
                Ok(0) => return,
                Ok(read) => {
                    piece.truncate(read);
                    Ok(piece)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let failed = read.is_err();
            if tell.send(read).is_err() || failed {
                return;
            }
        }
    });
    thread::spawn(move || {
        let Some(mut stderr) = stderr else { return };
        let mut kept = Vec::new();
        // A pipe that nobody reads would stop the program; one that cannot be read says nothing.
        let _ = stderr.by_ref().take(COMPLAINTS as u64).read_to_end(&mut kept);
        let _ = io::copy(&mut stderr, &mut io::sink());
        let _ = complain.send(kept);
    });
    (pieces, complaints)
}

/// Ends the process and says how it ended; `None` if it had to be ended.
fn end(child: &mut Child, ended: bool, until: Instant) -> Option<ExitStatus> {
    // It has closed its output and is about to exit.
    while ended && Instant::now() < until {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => thread::sleep(Duration::from_millis(1)),
            Err(_) => break,
        }
    }
    // It may have ended meanwhile, and then there is nothing to end.
    let _ = child.kill();
    let _ = child.wait();
    None
}
