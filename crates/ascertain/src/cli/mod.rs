//! The commands, one file each, and what they share.

mod capture;
mod demo;
mod explain;
mod list;
mod log;
mod shell;
mod verify;

use crate::failure::{COULD_NOT, Failure};
use crate::remote::{self, Allowed};
use crate::render::Paint;
use crate::target::{Found, Located, Remote, Written, locate};
use crate::{Look, observe};
use ascertain_capture::Options;
use ascertain_model::Capture;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Is a running LLM inference server really running with the configuration its operator intended?
#[derive(Debug, Parser)]
#[command(
    name = "ascertain",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  ascertain                                  verify the only server on this host
  ascertain verify pid:1234                  verify one process
  ascertain verify http://127.0.0.1:8080 --exercise
                                             also send a few small requests
  ascertain capture qwen3 -o before.tgz      keep what the witnesses saw
  ascertain verify before.tgz                judge it later, elsewhere
  ascertain verify ssh://root@llm-two/qwen3  a unit or a server on another host
  ascertain log sglang-qwen --grep mtp       the log of the newest start of a unit, and nothing else
  ascertain explain pid:1234 spec_type       everything known about one setting
  ascertain demo                             see it work with nothing installed

Exit codes: 0 all confirmed, or adjusted by the engine; 1 something is not in force, has no
effect or is unknown, or the server did not start or does not answer; 2 could not do the job; 3 something is not
proven (with --strict); 4 the process that answers is not the one meant."
)]
pub struct Cli {
    /// When to use colour.
    #[arg(long, global = true, value_enum, default_value_t = When::Auto, value_name = "WHEN")]
    pub color: When,
    /// What to do; without a command, verify the only server on this host.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Verify a server: a verdict with evidence for every setting that was asked for.
    Verify(verify::Verify),
    /// Keep everything the witnesses see in one file, to be judged later or elsewhere.
    Capture(capture::CaptureTo),
    /// Show all evidence about one setting, rung by rung.
    Explain(explain::Explain),
    /// Print the log of exactly one start of a unit, with the settings its lines are about.
    Log(log::LogOf),
    /// List the engines that run on this host.
    List(list::List),
    /// See it work: a recorded server that only seems to speculate, and one that does.
    Demo(demo::Demo),
    /// Print a completion script for a shell.
    Completions(shell::Completions),
    /// Print the manual page.
    Man,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs: schema ascertain.report/1, for a log ascertain.log/1.
    Json,
}

/// How a live server is looked at.
#[derive(Debug, Args)]
pub struct LookArgs {
    /// Its log, if it cannot be found through the process; a file of the host the server runs on.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub log: Option<PathBuf>,
    /// Name of the environment variable that holds the server's API key.
    #[arg(long, value_name = "NAME")]
    pub api_key_env: Option<String>,
    /// Also send a few small real requests, to settle what only traffic can settle.
    #[arg(long)]
    pub exercise: bool,
    /// Seconds each witness may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: u64,
    /// On another host: copy this program there (into the user's cache directory) and run it there.
    #[arg(long)]
    pub push: bool,
    /// On another host: become root with `sudo -n`, which never asks for a password.
    #[arg(long)]
    pub sudo: bool,
}

impl LookArgs {
    /// Looks at a live server, and tells a person at a terminal what is going on.
    fn observe(&self, located: &Located) -> Result<Capture, Failure> {
        let mut progress = Progress::new();
        Ok(observe(located, &self.look()?, &mut |text| progress.say(text)))
    }

    /// The same on another host.
    fn observe_remote(&self, remote: &Remote) -> Result<Capture, Failure> {
        let mut progress = Progress::new();
        remote::observe(remote, &self.remote_look()?, self.allowed(), &mut |text| progress.say(text))
    }

    /// The capture that a target stands for, made now if it is not a stored one.
    fn capture(&self, written: &Written) -> Result<Capture, Failure> {
        if let Written::Remote(remote) = written {
            return self.observe_remote(remote);
        }
        match self.locate(written)? {
            Found::Stored(capture) => Ok(*capture),
            Found::Live(located) => self.observe(&located),
        }
    }

    /// Finds a target of this host.
    fn locate(&self, written: &Written) -> Result<Found, Failure> {
        for (given, option) in [(self.push, "--push"), (self.sudo, "--sudo")] {
            if given && !matches!(written, Written::Remote(_)) {
                return Err(Failure::new(format!("{option} is for targets on other hosts"))
                    .hint("write ssh://[USER@]HOST[:PORT]/UNIT, …/pid:N or …/:PORT"));
            }
        }
        locate(written)
    }

    fn allowed(&self) -> Allowed {
        Allowed { push: self.push, sudo: self.sudo }
    }

    fn look(&self) -> Result<Look, Failure> {
        if let Some(log) = &self.log
            && !log.is_file()
        {
            return Err(Failure::new(format!("{}: no such log file", log.display())));
        }
        self.remote_look()
    }

    /// Where files that are named are those of another host.
    fn remote_look(&self) -> Result<Look, Failure> {
        Ok(Look { options: self.options()?, exercise: self.exercise })
    }

    fn options(&self) -> Result<Options, Failure> {
        let api_key = match &self.api_key_env {
            None => None,
            Some(name) => Some(std::env::var(name).map_err(|_| {
                Failure::new(format!("the environment variable {name} is not set")).hint(format!(
                    "put the key into it: {name}=… ascertain …; the key itself is never written on a command line"
                ))
            })?),
        };
        Ok(Options {
            log: self.log.clone(),
            api_key: api_key.filter(|key| !key.is_empty()),
            timeout: Duration::from_secs(self.timeout),
            ..Options::default()
        })
    }
}

/// Whether nobody reads the standard output any more. What is still written goes nowhere, so that a verdict keeps its exit
/// code; whoever could go on writing for long looks here.
pub static READER_GONE: AtomicBool = AtomicBool::new(false);

/// Why a command ended without a verdict.
#[derive(Debug)]
pub enum Ended {
    /// It could not do its job.
    Failure(Failure),
    /// Its output could not be written.
    Output(io::Error),
}

impl Ended {
    /// The exit code.
    pub fn code(&self) -> u8 {
        COULD_NOT
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Failure(failure) => failure.fmt(f),
            Ended::Output(error) => write!(f, "error: cannot write the output: {error}"),
        }
    }
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Ended::Failure(failure)
    }
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Ended::Output(error)
    }
}

/// Runs a command; the answer is the exit code.
pub fn run(cli: &Cli, out: &mut dyn Write) -> Result<u8, Ended> {
    let paint = paint(cli.color);
    match &cli.command {
        None => verify::run(&verify::Verify::only(), paint, out),
        Some(Command::Verify(args)) => verify::run(args, paint, out),
        Some(Command::Capture(args)) => capture::run(args, out),
        Some(Command::Explain(args)) => explain::run(args, paint, out),
        Some(Command::Log(args)) => log::run(args, paint, out),
        Some(Command::List(args)) => list::run(args, out),
        Some(Command::Demo(args)) => demo::run(args, paint, out),
        Some(Command::Completions(args)) => shell::completions(args, out),
        Some(Command::Man) => shell::man(out),
    }
}

fn paint(when: When) -> Paint {
    let colour = match when {
        When::Always => true,
        When::Never => false,
        When::Auto => io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    };
    let width = columns().unwrap_or(80);
    Paint { colour, width: width.clamp(40, 200) }
}

/// Columns of the terminal that the output goes to, or that `COLUMNS` states.
fn columns() -> Option<usize> {
    terminal_size::terminal_size()
        .map(|(width, _)| usize::from(width.0))
        .or_else(|| std::env::var("COLUMNS").ok()?.parse().ok())
}

/// Tells a person at a terminal what is going on, on the line below the prompt, and takes it back when done.
pub(crate) struct Progress {
    shown: bool,
    since: std::time::Instant,
    terminal: bool,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress { shown: false, since: std::time::Instant::now(), terminal: io::stderr().is_terminal() }
    }

    /// What is quick is not announced.
    pub(crate) fn say(&mut self, text: &str) {
        if self.terminal && self.since.elapsed() > Duration::from_millis(300) {
            eprint!("\r\u{1b}[2K… {text}");
            let _ = io::stderr().flush();
            self.shown = true;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r\u{1b}[2K");
            let _ = io::stderr().flush();
        }
    }
}
