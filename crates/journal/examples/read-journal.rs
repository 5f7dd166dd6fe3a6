//! What `benches/journal` measures.
//!
//!   read-journal start DIR UNIT INVOCATION READY   what a verification needs of one start: its beginning up to the line
//!                                                  with READY, its warnings, its newest lines, whether it is complete
//!   read-journal words DIR UNIT INVOCATION WORDS   the lines of one start with one of the WORDS (spec|draft|…)
//!   read-journal history DIR UNIT WORDS            the lines of all starts of a unit with one of the WORDS
//!   read-journal newest DIR UNIT                   the id of the newest start and its number of lines
//!
//! Prints the messages, one a line, and on the standard error its peak of memory in kilobytes and what it found.

use ascertain_journal::{Entry, Gap, Id128, Journal, Manager, Match, Query};
use std::error::Error;
use std::io::{self, BufWriter, Write};

/// As the journal witness reads a start.
const BEGINNING: usize = 20_000;
const NEWEST: usize = 500;
const WARNINGS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut out = BufWriter::with_capacity(1 << 18, io::stdout().lock());
    match words[..] {
        ["start", directory, unit, id, ready] => start(directory, unit, id.parse()?, ready, &mut out)?,
        ["words", directory, unit, id, words] => {
            let journal = open(directory);
            let found = journal.start(unit, Manager::System, id.parse()?).search(&Query::words(words.split('|'))?);
            report(&found.gaps);
            for hit in &found.hits {
                line(&hit.message()?, &mut out)?;
            }
        }
        ["history", directory, unit, words] => {
            let mut lines = 0;
            let mut failed = None;
            let query = Query::words(words.split('|'))?;
            let found = open(directory).search_each(&Match::unit(unit).into(), &query, |hit| {
                lines += 1;
                let written = hit.message().map_err(|gap| io::Error::other(gap.to_string()));
                failed = failed.take().or(written.and_then(|message| line(&message, &mut out)).err());
            });
            if let Some(failed) = failed {
                return Err(failed.into());
            }
            report(&found.gaps);
            eprintln!("{lines} lines of {} entries", found.examined);
        }
        ["newest", directory, unit] => {
            let (starts, gaps) = open(directory).invocations(unit);
            report(&gaps);
            let newest = starts.last().ok_or("no start of this unit")?;
            writeln!(out, "{} {}", newest.id, newest.own)?;
        }
        _ => return Err("see the head of crates/journal/examples/read-journal.rs".into()),
    }
    out.flush()?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("").trim();
    eprintln!("peak {peak}");
    Ok(())
}

fn start(directory: &str, unit: &str, id: Id128, ready: &str, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let journal = open(directory);
    let start = journal.start(unit, Manager::System, id);
    let is_ready = |entry: &Entry| {
        entry.message().is_ok_and(|message| message.windows(ready.len()).any(|part| part == ready.as_bytes()))
    };
    let head = start.head_until(BEGINNING, is_ready);
    let warnings = start.warnings(WARNINGS);
    let newest = start.newest(NEWEST);
    let judged = start.completeness(None);
    for (title, entries, gaps) in
        [("head", &head.entries, &head.gaps), ("warnings", &warnings.0, &warnings.1), ("newest", &newest.0, &newest.1)]
    {
        report(gaps);
        writeln!(out, "# {title} {}", entries.len())?;
        for entry in entries {
            line(&entry.message()?, out)?;
        }
    }
    eprintln!("ready {}, complete {}", head.found, judged.is_complete());
    judged.flaws.iter().for_each(|flaw| eprintln!("{flaw}"));
    Ok(())
}

fn open(directory: &str) -> Journal {
    let (journal, gaps) = Journal::open([directory]);
    report(&gaps);
    journal
}

fn report(gaps: &[Gap]) {
    gaps.iter().for_each(|gap| eprintln!("gap: {gap}"));
}

fn line(message: &[u8], out: &mut impl Write) -> io::Result<()> {
    out.write_all(message)?;
    out.write_all(b"\n")
}
