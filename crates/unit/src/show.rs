//! What `systemctl show` prints.
//!
//! It was made for people and lost something on the way: `argv[]=` is the words with blanks between, without quotes, so
//! it can be compared but not split. `Environment=` can be read back. Values may contain line breaks.

use crate::{Kind, Problem, Read, Span};
use std::collections::BTreeMap;

/// One command as the manager holds it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Command {
    /// The program.
    pub path: String,
    /// The words joined by blanks: not to be split again.
    pub argv: String,
    /// `-`.
    pub ignore_errors: Option<bool>,
    /// Flags of `ExecStartEx=`: `ignore-failure`, `privileged`, `no-setuid`, `ambient`, `no-env-expand`.
    pub flags: Vec<String>,
    /// When it was started; `None` for a command that has not run since it was loaded.
    pub start: Option<Moment>,
    /// When it ended.
    pub stop: Option<Moment>,
    /// Its process; 0 where it has not run since it was loaded.
    pub pid: Option<u32>,
    /// `exited`, `killed`, `(null)`.
    pub code: String,
    /// `0/0`, `9/KILL`.
    pub status: String,
}

/// A point in time as it was printed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// The text.
    pub text: String,
    /// Microseconds since 1970, where the text says so in UTC or as a number.
    pub micros: Option<u64>,
}

/// All properties of one unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Show {
    /// In the order of printing; a list of commands has one entry a command.
    pub properties: Vec<(String, String)>,
}

/// Reads the properties of one unit. Several units are separated by empty lines: [`parse_all`].
pub fn parse(text: &str) -> Read<Show> {
    let mut show = Show::default();
    let mut problems = Vec::new();
    let mut at = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let start = at;
        at += line.len();
        let line = line.strip_suffix('\n').unwrap_or(line);
        let open = show.properties.last().is_some_and(|(_, value)| is_open(value));
        match line.split_once('=') {
            Some((name, value)) if !open && is_property(name) => {
                show.properties.push((name.to_string(), value.to_string()));
            }
            _ => match show.properties.last_mut() {
                Some((_, value)) => {
                    value.push('\n');
                    value.push_str(line);
                }
                None if line.trim().is_empty() => {}
                None => problems.push(Problem {
                    kind: Kind::Unreadable,
                    span: Span {
                        file: "systemctl show".into(),
                        first: index + 1,
                        last: index + 1,
                        start,
                        end: start + line.len(),
                    },
                    text: format!("{}: not a property", crate::file::shorten(line)),
                }),
            },
        }
    }
    for (_, value) in &mut show.properties {
        while value.ends_with('\n') {
            value.pop();
        }
    }
    Read { value: show, problems }
}

/// Reads the properties of several units.
pub fn parse_all(text: &str) -> Vec<Read<Show>> {
    let mut parts: Vec<String> = Vec::new();
    let mut fresh = true;
    for line in text.split_inclusive('\n') {
        // A property of every unit that is printed first tells units from line breaks within values.
        let blank = line.trim_end_matches('\n').is_empty();
        if fresh && !blank {
            parts.push(String::new());
        }
        fresh = blank;
        if let (false, Some(part)) = (blank, parts.last_mut()) {
            part.push_str(line);
        }
    }
    parts.iter().map(|part| parse(part)).collect()
}

fn is_property(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A command whose words contain line breaks is not printed to its end yet.
fn is_open(value: &str) -> bool {
    value.starts_with("{ path=") && !(value.ends_with(" }") && value.contains(" ; status="))
}

impl Show {
    /// The property, where it was printed.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.properties.iter().find(|(property, _)| property == name).map(|(_, value)| value.as_str())
    }

    /// All values of a property that is printed once an entry.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.properties.iter().filter(move |(property, _)| property == name).map(|(_, value)| value.as_str())
    }

    /// The property, unless empty or `[not set]`.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !matches!(*value, "" | "[not set]" | "[no data]" | "n/a" | "[n/a]"))
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.trim().parse().ok()
    }

    /// `yes` or `no`.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.get(name)?.trim() {
            "yes" | "true" | "1" => Some(true),
            "no" | "false" | "0" => Some(false),
            _ => None,
        }
    }

    /// The process, where there is one.
    pub fn main_pid(&self) -> Option<u32> {
        self.number("MainPID").and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0)
    }

    /// The commands of `ExecStart=` or another list of commands. `NameEx=` tells more about flags and is merged.
    pub fn commands(&self, name: &str) -> Vec<Command> {
        let mut list: Vec<Command> = self.all(name).flat_map(commands).collect();
        let extended = format!("{name}Ex");
        let more: Vec<Command> = self.all(&extended).flat_map(commands).collect();
        if list.is_empty() {
            return more;
        }
        if list.len() == more.len() {
            for (command, more) in list.iter_mut().zip(more) {
                command.flags = more.flags;
            }
        }
        list
    }

    /// `Environment=`, by name; the last of several counts.
    pub fn environment(&self) -> BTreeMap<String, String> {
        self.all("Environment")
            .flat_map(words)
            .filter_map(|word| word.split_once('=').map(|(name, value)| (name.to_string(), value.to_string())))
            .collect()
    }

    /// `EnvironmentFiles=`: path, and whether it may be missing.
    pub fn environment_files(&self) -> Vec<(String, bool)> {
        let mut list = Vec::new();
        for value in self.all("EnvironmentFiles").flat_map(str::lines) {
            let Some((path, rest)) = value.rsplit_once(" (ignore_errors=") else { continue };
            list.push((path.to_string(), rest.starts_with("yes")));
        }
        list
    }

    /// A list of paths or names: `DropInPaths`, `Names`.
    pub fn list(&self, name: &str) -> Vec<String> {
        self.all(name).flat_map(words).collect()
    }

    /// A time stamp: the property, or its `…Monotonic` twin in microseconds since the boot.
    pub fn moment(&self, name: &str) -> Option<Moment> {
        moment(self.text(name)?)
    }

    /// Microseconds since the boot.
    pub fn monotonic(&self, name: &str) -> Option<u64> {
        let twin = if name.ends_with("Monotonic") { name.to_string() } else { format!("{name}Monotonic") };
        self.number(&twin).filter(|micros| *micros != 0)
    }
}

fn commands(value: &str) -> Vec<Command> {
    let mut list = Vec::new();
    let mut rest = value;
    while let Some(at) = rest.find("{ path=") {
        let from = at + "{ path=".len();
        let end = rest[from..].find(" ; status=").and_then(|status| {
            let after = from + status;
            rest[after..].find(" }").map(|close| after + close)
        });
        let end = end.unwrap_or(rest.len());
        list.push(command(&rest[from..end]));
        rest = rest.get(end + 2..).unwrap_or("");
    }
    list
}

fn command(text: &str) -> Command {
    let (path, rest) = text.split_once(" ; argv[]=").unwrap_or((text, ""));
    // From the end: words of the command may look like the fields after it.
    let tail = rest.rfind(" ; ignore_errors=").or_else(|| rest.rfind(" ; flags=")).unwrap_or(rest.len());
    let mut command = Command { path: path.to_string(), argv: rest[..tail].to_string(), ..Command::default() };
    for field in rest[tail..].split(" ; ") {
        let Some((name, value)) = field.split_once('=') else { continue };
        let value = value.trim();
        let inner = value.strip_prefix('[').and_then(|value| value.strip_suffix(']')).unwrap_or(value);
        match name.trim() {
            "ignore_errors" => command.ignore_errors = Some(value == "yes"),
            "flags" => command.flags = value.split_whitespace().map(str::to_string).collect(),
            "start_time" => command.start = moment(inner),
            "stop_time" => command.stop = moment(inner),
            "pid" => command.pid = value.parse().ok(),
            "code" => command.code = value.to_string(),
            "status" => command.status = value.to_string(),
            _ => {}
        }
    }
    command
}

/// Splits a list the way `systemctl` quotes it: bare words, `"…"` or `$'…'` with escapes.
pub fn words(value: &str) -> Vec<String> {
    let bytes = value.as_bytes();
    let (mut list, mut at) = (Vec::new(), 0);
    loop {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        if at >= bytes.len() {
            return list;
        }
        let mut word: Vec<u8> = Vec::new();
        let mut quote: Option<u8> = None;
        while let Some(&byte) = bytes.get(at) {
            match (byte, quote) {
                (b'$', None) if word.is_empty() && bytes.get(at + 1) == Some(&b'\'') => at += 1,
                (b'"' | b'\'', None) => {
                    quote = Some(byte);
                    at += 1;
                }
                (byte, Some(open)) if byte == open => {
                    quote = None;
                    at += 1;
                }
                (b'\\', _) => {
                    let (bytes, length) = escape(&bytes[at + 1..]);
                    word.extend(bytes);
                    at += 1 + length;
                }
                (byte, None) if byte.is_ascii_whitespace() => break,
                (byte, _) => {
                    word.push(byte);
                    at += 1;
                }
            }
        }
        list.push(String::from_utf8_lossy(&word).into_owned());
    }
}

fn escape(text: &[u8]) -> (Vec<u8>, usize) {
    let number = |from: usize, length: usize, radix: u32| {
        let digits = text.get(from..from + length).and_then(|digits| std::str::from_utf8(digits).ok())?;
        u8::from_str_radix(digits, radix).ok()
    };
    match text.first() {
        None => (vec![b'\\'], 0),
        Some(b'a') => (vec![7], 1),
        Some(b'b') => (vec![8], 1),
        Some(b'f') => (vec![12], 1),
        Some(b'n') => (vec![b'\n'], 1),
        Some(b'r') => (vec![b'\r'], 1),
        Some(b't') => (vec![b'\t'], 1),
        Some(b'v') => (vec![11], 1),
        Some(b'x') => number(1, 2, 16).map_or((b"\\x".to_vec(), 1), |byte| (vec![byte], 3)),
        Some(b'0'..=b'7') => number(0, 3, 8).map_or((vec![b'\\', text[0]], 1), |byte| (vec![byte], 3)),
        Some(byte) => (vec![*byte], 1),
    }
}

/// Reads `Mon 2026-11-30 09:17:44 UTC`, with or without fractions, `@1790000000.123456`, or a number of microseconds.
pub fn moment(text: &str) -> Option<Moment> {
    let text = text.trim();
    if matches!(text, "" | "n/a" | "[n/a]" | "0") {
        return None;
    }
    let micros = if let Some(unix) = text.strip_prefix('@') {
        let (seconds, fraction) = unix.split_once('.').unwrap_or((unix, ""));
        seconds
            .parse::<u64>()
            .ok()
            .and_then(|seconds| seconds.checked_mul(1_000_000)?.checked_add(fractions(fraction)?))
    } else if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        calendar(text)
    };
    Some(Moment { text: text.to_string(), micros })
}

fn fractions(digits: &str) -> Option<u64> {
    if digits.is_empty() {
        return Some(0);
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let six: String = digits.chars().chain(std::iter::repeat('0')).take(6).collect();
    six.parse().ok()
}

/// Only UTC can be turned into a number without knowing the host's time zone.
fn calendar(text: &str) -> Option<u64> {
    let mut parts = text.split_whitespace();
    let mut first = parts.next()?;
    if first.starts_with(|c: char| c.is_ascii_alphabetic()) {
        first = parts.next()?;
    }
    let (time, zone) = (parts.next()?, parts.next()?);
    if zone != "UTC" {
        return None;
    }
    let mut date = first.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut clock = time.splitn(3, ':');
    let (hour, minute) = (clock.next()?.parse::<i64>().ok()?, clock.next()?.parse::<i64>().ok()?);
    let (second, fraction) = clock.next().map(|second| second.split_once('.').unwrap_or((second, "")))?;
    let second: i64 = second.parse().ok()?;
    let fine = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !fine {
        return None;
    }
    // Days since 1970 by counting years from March.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    u64::try_from(seconds).ok()?.checked_mul(1_000_000)?.checked_add(fractions(fraction)?)
}
