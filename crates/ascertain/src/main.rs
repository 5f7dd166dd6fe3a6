//! The command line: parse, dispatch, exit code.

use ascertain::cli::{Cli, READER_GONE, run};
use clap::Parser;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = io::BufWriter::new(WhileRead { stdout: io::stdout().lock(), gone: false });
    let outcome = run(&cli, &mut out).and_then(|code| out.flush().map(|()| code).map_err(Into::into));
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            drop(out);
            eprintln!("{error}");
            ExitCode::from(error.code())
        }
    }
}

/// Standard output for as long as somebody reads it. A reader that closed the pipe has seen enough; the exit code is
/// still that of the verdict, so that `verify | head -1` never passes what failed.
struct WhileRead {
    stdout: io::StdoutLock<'static>,
    gone: bool,
}

impl WhileRead {
    fn unless_gone<T>(&mut self, done: io::Result<T>, otherwise: T) -> io::Result<T> {
        match done {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.gone = true;
                READER_GONE.store(true, Ordering::Relaxed);
                Ok(otherwise)
            }
            done => done,
        }
    }
}

impl Write for WhileRead {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.gone {
            return Ok(bytes.len());
        }
        let done = self.stdout.write(bytes);
        self.unless_gone(done, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.gone {
            return Ok(());
        }
        let done = self.stdout.flush();
        self.unless_gone(done, ())
    }
}
