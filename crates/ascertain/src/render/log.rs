//! The log of one start, and the list of starts: text and JSON, schema `ascertain.log/1`.
//!
//! On a terminal: a margin with the settings a line is about, the time of day, and the message wrapped beside them.
//! Elsewhere each line stays one line, with its full time and its writer, for `grep` and `sort`.

use super::{Paint, json};
use crate::log::Heading;
use crate::log::journal::Known;
use crate::log::lines::Line;
use ascertain_capture::time;
use ascertain_engines::text::safe;
use serde::Serialize;
use std::io::{self, Write};

/// Schema of the JSON form.
pub const SCHEMA: &str = "ascertain.log/1";

/// Rows that the settings of one line may take beside it.
const MOST_SETTINGS: usize = 4;

/// Writes lines one after the other.
pub struct Text {
    paint: Paint,
    /// Columns of the terminal; `None`: it goes somewhere else.
    columns: Option<usize>,
    /// Columns of the margin; 0 where nothing could stand in it.
    margin: usize,
    /// The day of the last line, and who wrote it.
    day: String,
    writer: Option<String>,
}

impl Text {
    /// For a terminal of so many columns, or for a file or pipe.
    pub fn new(paint: Paint, columns: Option<usize>, heading: &Heading) -> Text {
        let margin = match (heading.engine, columns) {
            (None, _) => 0,
            (Some(_), Some(..100)) => 18,
            (Some(_), _) => 26,
        };
        Text { paint, columns, margin, day: String::new(), writer: None }
    }

    /// Which log it is, on a terminal only.
    pub fn heading(&self, heading: &Heading, out: &mut dyn Write) -> io::Result<()> {
        let Some(columns) = self.columns else { return Ok(()) };
        let name = safe(heading.unit.as_deref().unwrap_or(&heading.source));
        let mut more = Vec::new();
        if let (Some(number), Some(starts)) = (heading.number, heading.starts) {
            more.push(match (number, starts) {
                (_, 1) => "the only start".to_owned(),
                (0, _) => format!("newest of {starts} starts"),
                _ => format!("start {number} of {starts}"),
            });
        }
        more.extend(heading.invocation.clone());
        more.extend(heading.engine.map(str::to_owned));
        let title = if more.is_empty() { name.clone() } else { format!("{name}: {}", more.join(", ")) };
        for (index, row) in super::wrap(&title, columns).into_iter().enumerate() {
            let row = match row.strip_prefix(name.as_str()).filter(|_| index == 0) {
                Some(rest) => format!("{}{}", self.paint.bold(&name), self.paint.dim(rest)),
                None => self.paint.dim(&row),
            };
            writeln!(out, "{row}")?;
        }
        Ok(())
    }

    /// One line.
    pub fn line(&mut self, line: &Line, out: &mut dyn Write) -> io::Result<()> {
        match self.columns {
            Some(columns) => self.rows(line, columns, out),
            None => self.row(line, out),
        }
    }

    /// One row, whatever its length.
    fn row(&mut self, line: &Line, out: &mut dyn Write) -> io::Result<()> {
        let margin = line.settings.join(",");
        if self.margin > 0 {
            write!(out, "{} ", self.paint.setting(&format!("{margin:width$}", width = self.margin - 1)))?;
        }
        if let Some(at) = line.time {
            write!(out, "{} ", self.paint.dim(&time::rfc3339(at)))?;
        }
        let writer = writer(line).map(|writer| format!("{writer}: ")).unwrap_or_default();
        let mut parts = line.message.split('\n');
        let first = safe(parts.next().unwrap_or(""));
        writeln!(out, "{writer}{}", self.paint.priority(line.priority, &first))?;
        // As journalctl does: what belongs to the line above is moved in.
        for part in parts {
            let indent = self.margin + line.time.map_or(0, |_| 28) + writer.chars().count();
            writeln!(out, "{:indent$}{}", "", self.paint.priority(line.priority, &safe(part)))?;
        }
        Ok(())
    }

    /// As many rows as a terminal needs.
    fn rows(&mut self, line: &Line, columns: usize, out: &mut dyn Write) -> io::Result<()> {
        if let Some(at) = line.time {
            let day = time::date(at / 1_000_000);
            if day != self.day {
                writeln!(
                    out,
                    "{}",
                    self.paint.dim(&format!("{:margin$}{day} (times are UTC)", "", margin = self.margin))
                )?;
                self.day = day;
            }
        }
        let stamp = line.time.map_or(String::new(), |at| format!("{} ", time::of_day(at)));
        let beside = self.margin + stamp.len();
        let width = columns.saturating_sub(beside).max(20);
        let writer = writer(line).filter(|writer| self.writer.as_ref() != Some(writer));
        let mut rows = Vec::new();
        for (index, part) in line.message.split('\n').enumerate() {
            let text = match &writer {
                Some(writer) if index == 0 => format!("{writer}: {}", safe(part)),
                _ => safe(part),
            };
            rows.extend(broken(&text, width));
        }
        self.writer = writer.or(self.writer.take());
        let shown = line.settings.len().min(MOST_SETTINGS);
        for index in 0..rows.len().max(if self.margin > 0 { shown } else { 0 }) {
            let name = match line.settings.get(index).filter(|_| self.margin > 0 && index < shown) {
                Some(name) if index + 1 == shown && shown < line.settings.len() => {
                    format!("{name} +{}", line.settings.len() - shown)
                }
                Some(name) => name.clone(),
                None => String::new(),
            };
            let name = super::fit(&name, self.margin.saturating_sub(1));
            let room = " ".repeat(self.margin - name.chars().count());
            let stamp = if index == 0 { self.paint.dim(&stamp) } else { " ".repeat(stamp.len()) };
            let text = rows.get(index).map(|row| self.paint.priority(line.priority, row)).unwrap_or_default();
            let name = if name.is_empty() { name } else { self.paint.setting(&name) };
            writeln!(out, "{}", format!("{name}{room}{stamp}{text}").trim_end())?;
        }
        Ok(())
    }
}

/// `llama-server[412]`.
fn writer(line: &Line) -> Option<String> {
    let name = line.identifier.as_deref().map(safe);
    match (name, line.pid) {
        (Some(name), Some(pid)) => Some(format!("{name}[{pid}]")),
        (Some(name), None) => Some(name),
        (None, Some(pid)) => Some(format!("[{pid}]")),
        (None, None) => None,
    }
}

/// Rows of at most `width` characters, broken at a blank where one is near, all characters kept.
fn broken(text: &str, width: usize) -> Vec<String> {
    let chars: Vec<char> = text.trim_end().chars().collect();
    let mut rows = Vec::new();
    let mut rest = chars.as_slice();
    while rest.len() > width {
        let blank = rest[..=width].iter().rposition(|c| *c == ' ').filter(|at| *at >= width / 2);
        let (row, after) = rest.split_at(blank.unwrap_or(width));
        rows.push(row.iter().collect());
        rest = if blank.is_some() { &after[1..] } else { after };
    }
    rows.push(rest.iter().collect());
    rows
}

/// Writes the JSON form piece by piece.
pub struct Json {
    first: bool,
}

#[derive(Serialize)]
struct Head<'h> {
    schema: &'static str,
    #[serde(flatten)]
    heading: &'h Heading,
}

#[derive(Serialize)]
struct Tail<'t> {
    complete: bool,
    flaws: &'t [String],
}

impl Json {
    /// What stands before the lines.
    pub fn begin(heading: &Heading, out: &mut dyn Write) -> io::Result<Json> {
        let head = json::compact(&Head { schema: SCHEMA, heading })?;
        write!(out, "{},\"lines\":[", head.trim_end_matches('}'))?;
        Ok(Json { first: true })
    }

    /// One line.
    pub fn line(&mut self, line: &Line, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{}{}", if self.first { "\n" } else { ",\n" }, json::compact(line)?)?;
        self.first = false;
        Ok(())
    }

    /// What stands behind them.
    pub fn end(self, flaws: &[String], out: &mut dyn Write) -> io::Result<()> {
        let tail = json::compact(&Tail { complete: flaws.is_empty(), flaws })?;
        writeln!(out, "\n],{}", tail.trim_start_matches('{'))
    }
}

/// Writes the starts of a unit as a table.
pub fn list(starts: &[Known], paint: Paint, out: &mut dyn Write) -> io::Result<()> {
    // Eight digits tell one start from another, and are enough to name it.
    let (digits, places) = if paint.width >= 120 { (32, 19) } else { (8, 16) };
    let title = format!(
        "{:>4}  {:digits$}  {:places$}  {:places$}  {:>8}  ENDED",
        "NO.", "ID", "FIRST (UTC)", "LAST (UTC)", "LINES"
    );
    writeln!(out, "{}", paint.bold(&title))?;
    for start in starts {
        let [first, last] =
            [start.first, start.last].map(|at| time::seconds(at).chars().take(places).collect::<String>());
        let id: String = start.invocation.chars().take(digits).collect();
        let beside = format!("{:>4}  {id}  {first}  {last}  {:>8}  ", start.number, start.lines);
        let indent = beside.chars().count();
        let room = paint.width.saturating_sub(indent).max(12);
        for (index, row) in super::wrap(&ended(start), room).into_iter().enumerate() {
            let row = if start.state == "failed" { paint.verdict("contradicted", &row) } else { row };
            writeln!(out, "{}{row}", if index == 0 { beside.clone() } else { " ".repeat(indent) })?;
        }
    }
    Ok(())
}

/// How a start ended, in a few words.
fn ended(start: &Known) -> String {
    let process = match &start.process {
        Some((how, status)) => format!(" ({how}, {status})"),
        None => String::new(),
    };
    match start.state {
        "failed" => format!("failed: {}{process}", start.failure.as_deref().unwrap_or("")),
        "ended" => format!("ended{process}"),
        "running" => "not yet".to_owned(),
        "boot_ended" => "with its boot".to_owned(),
        _ => "not logged".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_and_keep_what_is_aligned() {
        let text = "llama_context: n_ctx         = 4096 and a word_that_is_longer_than_any_row_may_be end";
        let rows = broken(text, 24);
        assert!(rows.iter().all(|row| row.chars().count() <= 24), "{rows:?}");
        assert_eq!(rows.concat().replace(' ', ""), text.replace(' ', ""));
        assert_eq!(broken("n_ctx         = 4096", 24), ["n_ctx         = 4096"]);
        assert_eq!(broken("", 24), [""]);
    }
}
