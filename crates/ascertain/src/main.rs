//! The command line: parse, dispatch, exit code.

use ascertain::cli::{Cli, run};
use clap::Parser;
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let outcome = run(&cli, &mut out).and_then(|code| out.flush().map(|()| code).map_err(Into::into));
    match outcome {
        Ok(code) => ExitCode::from(code),
        // A reader that closed the pipe has seen enough.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            drop(out);
            eprintln!("{error}");
            ExitCode::from(error.code())
        }
    }
}
