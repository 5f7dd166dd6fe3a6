//! `ascertain log`.

use super::{Ended, Format, READER_GONE, columns};
use crate::failure::Failure;
use crate::log::grep::Pattern;
use crate::log::journal::Opened;
use crate::log::starts::Which;
use crate::log::{Asked, Slice, files};
use crate::render::{Paint, json, log};
use crate::target::{Found, Written, locate, running};
use ascertain_capture::{process, systemd};
use ascertain_engines::text::safe;
use clap::Args;
use serde_json::json;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Print the log of exactly one start of a unit, with the settings its lines are about.
#[derive(Debug, Args)]
#[command(after_help = "\
A target is a unit (its name, with or without .service; it need not run), a process (pid:1234, or that
of container:NAME: its start in the journal, or the file it writes to), a capture file or an evidence
directory.

The log is that of one start: the lines of the unit's own processes with that invocation id, and
what the service manager said about it. Journal files are read directly; a file that cannot be read,
is damaged or missing, or messages that journald dropped, are told at the end, because a line that
is not there proves something only in a complete log.

In the margin stand the settings that a line is about, for engines that ascertain knows.

Examples:
  ascertain log sglang-qwen                          the newest start, from its first line
  ascertain log sglang-qwen --list                   all starts that the journal knows
  ascertain log sglang-qwen --invocation -1 -n 50    how the start before it ended
  ascertain log sglang-qwen --grep 'spec|draft|mtp'  whatever the case; with capitals as written
  ascertain log sglang-qwen --journal /mnt/var/log/journal

Exit codes: 0 lines were found, 1 none, 2 could not look.")]
pub struct LogOf {
    /// Whose log.
    pub target: String,
    /// Only lines that match a regular expression.
    #[arg(short, long, value_name = "RE")]
    pub grep: Option<String>,
    /// Which start: 0 the newest, -1 the one before it, 1 the oldest, or the beginning of its id.
    #[arg(short, long, value_name = "N|ID", allow_hyphen_values = true, conflicts_with = "list")]
    pub invocation: Option<Which>,
    /// Only the newest lines.
    #[arg(short = 'n', long, value_name = "LINES", conflicts_with = "list")]
    pub lines: Option<usize>,
    /// List the starts instead: number, id, first and last line, how they ended.
    #[arg(short, long, conflicts_with = "grep")]
    pub list: bool,
    /// Read the journal in this directory (or file), as journalctl -D does.
    #[arg(short = 'D', long, value_name = "DIR", value_hint = clap::ValueHint::AnyPath)]
    pub journal: Vec<PathBuf>,
    /// How to write it.
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    pub format: Format,
}

pub(super) fn run(args: &LogOf, paint: Paint, out: &mut dyn Write) -> Result<u8, Ended> {
    let asked = Asked { pattern: args.grep.as_deref().map(Pattern::new).transpose()?, newest: args.lines };
    let written = Written::parse(Some(&args.target))?;
    match &written {
        Written::Stored(path) => {
            args.only_of_units()?;
            show(files::of_stored(path)?, &asked, args.format, paint, out)
        }
        Written::Pid(pid) => of_pid(args, *pid, &asked, paint, out),
        Written::Container(_) => {
            let pid = match locate(&written)? {
                Found::Live(located) => located.facts.as_ref().map(|facts| facts.pid),
                Found::Stored(_) => None,
            };
            let unknown = || Failure::new(format!("the process of {} is not known", args.target));
            of_pid(args, pid.ok_or_else(unknown)?, &asked, paint, out)
        }
        Written::Name(name) => of_unit(args, name, &asked, paint, out),
        Written::Remote(_) => Err(Failure::new("logs of other hosts are read from a capture")
            .hint(format!("ascertain capture {} -o FILE, then ascertain log FILE", args.target))
            .into()),
        Written::Url(_) | Written::Only => Err(Failure::new(format!("{:?} is no unit", args.target))
            .hint("name a unit (sglang-qwen), a process (pid:1234), a capture file or an evidence directory")
            .into()),
    }
}

impl LogOf {
    fn only_of_units(&self) -> Result<(), Failure> {
        if self.list || self.invocation.is_some() || !self.journal.is_empty() {
            return Err(Failure::new(
                "--list, --invocation and --journal are about units, and this is the log of one start",
            ));
        }
        Ok(())
    }
}

fn of_unit(args: &LogOf, name: &str, asked: &Asked, paint: Paint, out: &mut dyn Write) -> Result<u8, Ended> {
    let opened = Opened::open(&args.journal);
    let which = args.invocation.clone().unwrap_or(Which::Number(0));
    if opened.is_closed() && !args.list {
        return show(opened.slice_by_journalctl(name, &which, asked)?, asked, args.format, paint, out);
    }
    let unit = match opened.unit(name) {
        Ok(unit) => unit,
        Err(failure) => return Err(or_running(failure, name).into()),
    };
    if args.list {
        return list(&opened, &unit, args.format, paint, out);
    }
    let mut slice = opened.slice(&unit, &which, asked)?;
    if args.journal.is_empty() && args.invocation.is_none() {
        slice.flaws.extend(as_the_manager_knows(&unit, slice.heading.invocation.as_deref()));
    }
    show(slice, asked, args.format, paint, out)
}

/// What the service manager knows against this being the log of the newest start.
fn as_the_manager_knows(unit: &str, invocation: Option<&str>) -> Vec<String> {
    let Ok(Some(unit)) = systemd::find(unit, Duration::from_secs(3)) else { return Vec::new() };
    let mut flaws = Vec::new();
    if let (Some(newest), Some(shown)) = (unit.invocation(), invocation)
        && newest != shown
    {
        flaws.push(format!("the newest start of {} is {newest}, of which the journal has no line", unit.name()));
    }
    let output = unit.text("StandardOutput").unwrap_or("journal");
    let error = unit.text("StandardError").filter(|to| *to != "inherit").unwrap_or(output);
    let elsewhere = |to: &str| !["journal", "kmsg", "syslog", "inherit"].iter().any(|known| to.starts_with(known));
    for (name, to) in [("standard output", output), ("standard error", error)] {
        if elsewhere(to) {
            flaws.push(format!("its {name} goes elsewhere ({to})"));
        }
    }
    flaws
}

/// The name of a running server is none of a unit, but its process has a log.
fn or_running(failure: Failure, name: &str) -> Failure {
    let named = running().into_iter().filter(|one| one.names().iter().any(|known| known == name));
    named.fold(failure, |failure, one| {
        failure.hint(format!("a server of that name runs: ascertain log pid:{}", one.facts.pid))
    })
}

fn of_pid(args: &LogOf, pid: u32, asked: &Asked, paint: Paint, out: &mut dyn Write) -> Result<u8, Ended> {
    let facts = process::facts(pid).map_err(|error| {
        Failure::new(format!("cannot look at process {pid}: {error}")).hint("list what runs here: ascertain list")
    })?;
    let id = facts.env("INVOCATION_ID").and_then(|id| id.parse().ok());
    // A process that was started by hand in a service inherits the id, and writes where it was told to.
    let Some(id) = id.filter(|_| files::writes_to_socket(pid)) else {
        args.only_of_units()?;
        return show(files::of_process(&facts)?, asked, args.format, paint, out);
    };
    let opened = Opened::open(&args.journal);
    let Some(unit) = opened.unit_of(id) else {
        return Err(Failure::new(format!("the journal has no line of process {pid} (invocation {id})"))
            .hint("its log may go to another collector, or may not be read: run it as root")
            .into());
    };
    if args.list {
        return list(&opened, &unit, args.format, paint, out);
    }
    let which = args.invocation.clone().unwrap_or_else(|| Which::Id(id.to_string()));
    show(opened.slice(&unit, &which, asked)?, asked, args.format, paint, out)
}

fn list(opened: &Opened, unit: &str, format: Format, paint: Paint, out: &mut dyn Write) -> Result<u8, Ended> {
    let starts = opened.list(unit);
    match format {
        Format::Json => json::write(&json!({ "schema": log::SCHEMA, "unit": unit, "starts": starts }), out)?,
        Format::Text => {
            writeln!(out, "{}", paint.bold(&safe(unit)))?;
            log::list(&starts, paint, out)?;
        }
    }
    Ok(u8::from(starts.is_empty()))
}

fn show(slice: Slice, asked: &Asked, format: Format, paint: Paint, out: &mut dyn Write) -> Result<u8, Ended> {
    let heading = slice.heading.clone();
    let mut flaws = slice.flaws.clone();
    let go_on = || Ok(!READER_GONE.load(Ordering::Relaxed));
    let shown = match format {
        Format::Text => {
            // A terminal, or one that is said to be there, is drawn on; anything else gets whole lines.
            let columns = columns().filter(|_| io::stdout().is_terminal() || std::env::var_os("COLUMNS").is_some());
            let mut text = log::Text::new(paint, columns.map(|_| paint.width), &heading);
            text.heading(&heading, out)?;
            slice.each(asked, &mut |line| {
                text.line(line, out)?;
                go_on()
            })?
        }
        Format::Json => {
            let mut text = log::Json::begin(&heading, out)?;
            let shown = slice.each(asked, &mut |line| {
                text.line(line, out)?;
                go_on()
            })?;
            add(&mut flaws, &shown.gaps);
            text.end(&flaws, out)?;
            shown
        }
    };
    add(&mut flaws, &shown.gaps);
    out.flush()?;
    if !flaws.is_empty() {
        eprintln!("not the complete log of this start: {}", safe(&flaws.join("; ")));
    }
    Ok(u8::from(shown.lines == 0))
}

fn add(flaws: &mut Vec<String>, gaps: &[String]) {
    for gap in gaps {
        if !flaws.contains(gap) {
            flaws.push(gap.clone());
        }
    }
}
