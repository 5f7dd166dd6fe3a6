//! Running one of the host's own commands: in so much time, for so many bytes, without a terminal.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Why a command gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not there, or may not be run.
    #[error("cannot run {program}: {source}")]
    Start {
        /// Its name.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It did not end in time.
    #[error("{program} did not answer within {} ms", .limit.as_millis())]
    TimedOut {
        /// Its name.
        program: String,
        /// How long it was given.
        limit: Duration,
    },
    /// It failed.
    #[error("{program}: {said}")]
    Failed {
        /// Its name.
        program: String,
        /// Its first line on standard error.
        said: String,
    },
    /// It printed more than is read, or something else than was expected.
    #[error("{program} printed {what}")]
    Output {
        /// Its name.
        program: String,
        /// What is wrong with it.
        what: String,
    },
}

impl Error {
    /// Whether what was asked is not on this host at all.
    pub fn is_absence(&self) -> bool {
        match self {
            Error::Start { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
            Error::Failed { said, .. } => said.contains("not been booted with systemd"),
            _ => false,
        }
    }
}

/// Runs a command and gives back what it printed. Its language is C, its input is empty, and it asks nothing.
pub fn run(command: &mut Command, timeout: Duration, limit: u64) -> Result<Vec<u8>, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .env("LC_ALL", "C")
        .env("SYSTEMD_COLORS", "0")
        .env("SYSTEMD_PAGER", "")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| Error::Start { program: program.clone(), source })?;
    let read = |stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(stream) = stream {
                // One byte more tells that there was more.
                let _ = stream.take(limit.saturating_add(1)).read_to_end(&mut bytes);
            }
            bytes
        })
    };
    let output = read(child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>));
    let errors = read(child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>));
    let until = Instant::now() + timeout;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::TimedOut { program, limit: timeout });
            }
            Err(source) => return Err(Error::Start { program, source }),
        }
    };
    let bytes = output.join().unwrap_or_default();
    if bytes.len() as u64 > limit {
        return Err(Error::Output { program, what: format!("more than {limit} bytes") });
    }
    if status.success() {
        return Ok(bytes);
    }
    let said = String::from_utf8_lossy(&errors.join().unwrap_or_default()).into_owned();
    let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed without a word").to_owned();
    Err(Error::Failed { program, said })
}
