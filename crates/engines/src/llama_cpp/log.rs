//! The log of this engine: lines, levels, and which start they belong to.
//!
//! A line is `M.SS.mmm.uuu L tag function: text` (time since start, level), the same without one or both of the
//! first two (`--no-log-prefix`), or a JSON object with the text in `msg` (`--log-jsonl`). Warnings of the argument
//! parser have no prefix at all and come before, or out of order. Seen on b10434 and b11434.

use crate::text;
use std::borrow::Cow;
use std::ops::Range;

/// One line.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    /// Its bytes in the artifact, without the line break.
    pub range: Range<usize>,
    /// Counted from 1.
    pub number: usize,
    /// Without prefix, without terminal escapes.
    pub text: Cow<'a, str>,
    /// `I`, `W`, `E`, `D`, where the line shows it.
    pub level: Option<char>,
    /// Microseconds since the start, where the line shows it.
    pub time: Option<u64>,
}

/// How lines are written, which is itself evidence for the settings that choose it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Lines that are JSON objects.
    pub json: usize,
    /// Lines with a time.
    pub timed: usize,
    /// Lines with a level.
    pub levelled: usize,
    /// Lines without either that the engine's own logger wrote.
    pub bare: usize,
}

/// The log of one start.
#[derive(Debug, Clone)]
pub struct Log<'a> {
    /// Lines of the last start in the file that the engine itself wrote: what a client could have put into it (a line
    /// break in a field that is logged as it came) is left out.
    pub lines: Vec<Line<'a>>,
    /// So many of them belong to the start itself, before the server listened.
    pub starting: usize,
    /// Lines of earlier starts in the same file.
    pub earlier: Vec<Line<'a>>,
    /// The verbosity that the log states.
    pub verbosity: Option<u8>,
    /// The first thing that every start logs is there.
    pub has_beginning: bool,
    /// It goes on until the server was ready to serve.
    pub has_ready: bool,
    /// It tells of more than one server at once: nothing in it can be told apart.
    pub mixed: bool,
    /// What looks like the last start in it may be the words of a client.
    pub doubtful: bool,
    /// Lines were left out before or within this start.
    pub cut: bool,
    /// Microseconds after the start at which the last line was written, where lines have a time.
    pub last_time: Option<u64>,
    /// How it is written.
    pub style: Style,
}

impl<'a> Log<'a> {
    /// Whether a message of this level and verbosity would be here if it had been logged during the start.
    pub fn would_show(&self, verbosity: u8) -> bool {
        self.has_beginning
            && self.has_ready
            && !self.cut
            && !self.mixed
            && self.verbosity.is_some_and(|shown| shown >= verbosity)
    }

    /// The lines of the start itself: no client was there to put words into them.
    pub fn start(&self) -> &[Line<'a>] {
        &self.lines[..self.starting.min(self.lines.len())]
    }
}

/// The words of the lines that only a start logs. The first is the newer release's first line, the second the first
/// line of both at the default verbosity.
const BEGINNING: [&str; 2] = ["llama_server: initializing ...", "common_params_print_info: verbosity = "];
const BUILD: &str = "common_params_print_info: build ";
const CONFIG: &str = "using config file: ";
pub(super) const READY: &str = "llama_server: listening on ";
/// A server that slept loads its model again.
const WAKES: &str = "exiting sleeping state";

/// Lines that begin a start, for whoever looks for the last one in a long file.
pub const MARKERS: [&str; 3] = [BEGINNING[0], BEGINNING[1], BUILD];

/// Writers in several threads may pass each other by so much, in microseconds.
const JITTER: u64 = 1_000_000;

/// Reads a log.
pub fn read(bytes: &[u8]) -> Log<'_> {
    let mut lines = Vec::new();
    let mut style = Style::default();
    let mut at = 0;
    // Where a part was left out: so many lines stand before it.
    let mut hole = None;
    let mut harmless = false;
    for (index, raw) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let start = at;
        at += raw.len() + 1;
        if raw.is_empty() {
            continue;
        }
        if raw.starts_with(b"[ascertain: ") {
            // Whoever cut it looked whether a start lies in the part that is left out.
            if raw.ends_with(b" bytes without a start left out here]") {
                harmless = true;
            } else {
                hole = Some(lines.len());
            }
            continue;
        }
        lines.push(line(raw, start, index + 1, &mut style));
    }

    let (mut begin, doubtful) = last_start(&lines);
    // A start that began before the hole may have been followed by others within it.
    let cut = hole.is_some_and(|hole| hole > begin);
    if let Some(hole) = hole.filter(|_| cut) {
        begin = hole;
    }
    let earlier = lines.drain(..begin).collect();
    let prefixed = style.timed > 0 && style.json == 0;
    let ready = lines.iter().position(|line| line.text.contains(READY) && (!prefixed || line.time.is_some()));
    let starting = ready.map_or(lines.len(), |ready| ready + 1);
    let states = |line: &&Line<'_>| line.text.contains(BEGINNING[1]) && (!prefixed || line.time.is_some());
    let listens = |line: &&Line<'_>| line.text.contains(READY) && line.time.is_some();
    // Two that state themselves in one start are two servers. After it listens, a line could be anybody's.
    let mixed = lines[..starting].iter().filter(states).count() > 1
        || lines.iter().filter(listens).count() > 1 && !lines.iter().any(|line| line.text.contains(WAKES));
    let lines = genuine(lines, starting, prefixed, style.json > 0);
    let start = &lines[..starting.min(lines.len())];
    let verbosity = start.iter().find_map(|line| {
        let rest = line.text.split_once(BEGINNING[1])?.1;
        let number: u64 = rest.split(' ').next()?.parse().ok()?;
        Some(u8::try_from(number).unwrap_or(u8::MAX))
    });
    let has_beginning = !cut && start.iter().any(|line| BEGINNING.iter().any(|words| line.text.contains(words)));
    let last_time = lines.iter().rev().find_map(|line| line.time);
    let cut = cut || harmless;
    Log {
        has_ready: ready.is_some(),
        starting,
        verbosity,
        has_beginning,
        mixed,
        cut,
        last_time,
        lines,
        earlier,
        style,
        doubtful,
    }
}

/// Leaves out what the engine did not write. While it starts, nobody else can write; afterwards a line without the
/// prefix that all others have, or with a time that does not fit among its neighbours, came out of a request. Behind a line
/// that repeats what a client sent, even a line that fits may be the client's.
fn genuine(lines: Vec<Line<'_>>, starting: usize, prefixed: bool, json: bool) -> Vec<Line<'_>> {
    if json {
        return lines;
    }
    // The smallest time that any later line has.
    let mut later = vec![u64::MAX; lines.len()];
    let mut least = u64::MAX;
    for (index, line) in lines.iter().enumerate().rev() {
        later[index] = least;
        least = least.min(line.time.unwrap_or(u64::MAX));
    }
    let mut latest = 0;
    let mut repeated = false;
    lines
        .into_iter()
        .enumerate()
        .filter(|(index, line)| {
            if *index < starting {
                latest = latest.max(line.time.unwrap_or(0));
                return true;
            }
            // Without prefixes nothing tells the engine's lines from a client's.
            let Some(time) = line.time.filter(|_| prefixed && !repeated) else { return false };
            repeated = repeats_a_client(&line.text);
            let fits = time.saturating_add(JITTER) >= latest && time <= later[*index].saturating_add(JITTER);
            if fits {
                latest = latest.max(time);
            }
            fits
        })
        .map(|(_, line)| line)
        .collect()
}

/// Whether a line repeats a text of a client as it came, line breaks and all: what follows may be the rest of that text.
fn repeats_a_client(text: &str) -> bool {
    text.contains("unable to match sampler by name")
        || text.contains("parse: ")
        || text.contains("grammar")
        || text.matches('\'').count() % 2 == 1
        || text.matches('"').count() % 2 == 1
}

/// The index of the first line of the last start, and whether a client may have written what looks like it.
fn last_start(lines: &[Line<'_>]) -> (usize, bool) {
    let mut begin = 0;
    let mut stated = false;
    let mut doubtful = false;
    // After a server listens, clients can write.
    let mut ready = None;
    let mut begun = false;
    for (index, line) in lines.iter().enumerate() {
        let begins = line.text.contains(BEGINNING[0])
            || line.text.contains(CONFIG)
            || line.text.contains(BUILD)
            || line.text.contains(BEGINNING[1]);
        let restarts = begins && index > begin && restarted(lines, begin, index, stated);
        if restarts || begins && !begun {
            // While a server starts nobody can write; before the first line of all, somebody may have.
            let from = ready.unwrap_or(begin);
            doubtful |= lines[from..index].iter().any(|line| repeats_a_client(&line.text));
            begun = true;
        }
        if restarts {
            begin = index;
            stated = false;
            ready = None;
        }
        if ready.is_none() && line.text.contains(READY) {
            ready = Some(index + 1);
        }
        if line.text.contains(BEGINNING[1]) {
            stated = true;
        }
    }
    // What the argument parser wrote stands, without a time, just before the first line of its start.
    while begin > 0 && lines[begin - 1].time.is_none() && is_parser_warning(&lines[begin - 1].text) {
        begin -= 1;
    }
    (begin, doubtful)
}

/// Whether a new start begins at `index`. Its clock begins anew; where lines have no time, the start before must have
/// stated itself. What a client put there may look the same, which is [told](repeats_a_client) by what stands before.
fn restarted(lines: &[Line<'_>], begin: usize, index: usize, stated: bool) -> bool {
    let before = lines[begin..index].iter().filter_map(|line| line.time).max();
    match (before, lines[index].time) {
        // One line that goes back among others that do not is no start.
        (Some(before), Some(now)) => {
            let next = lines[index + 1..].iter().find_map(|line| line.time);
            now < before && now < 60 * JITTER && next.is_none_or(|next| next < before)
        }
        // Another start may be told to write no times.
        (Some(_), None) => stated,
        (None, _) => stated,
    }
}

fn is_parser_warning(text: &str) -> bool {
    text.starts_with("warn: ") || text.starts_with("warning: ")
}

/// One line by itself.
pub(super) fn single(raw: &[u8]) -> Line<'_> {
    line(raw, 0, 1, &mut Style::default())
}

fn line<'a>(raw: &'a [u8], start: usize, number: usize, style: &mut Style) -> Line<'a> {
    let range = start..start + raw.len();
    // What is matched is the beginning of a line; nobody logs a setting after a megabyte.
    let head = &raw[..raw.len().min(64 << 10)];
    let whole: Cow<'a, str> = match String::from_utf8_lossy(head) {
        Cow::Borrowed(text) => text::without_escapes(text),
        Cow::Owned(text) => Cow::Owned(text::without_escapes(&text).into_owned()),
    };
    let whole = match whole {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_end_matches('\r')),
        Cow::Owned(text) => Cow::Owned(text.trim_end_matches('\r').to_string()),
    };
    if whole.starts_with("{\"type\":") {
        style.json += 1;
        return json_line(&whole, range, number);
    }
    let (time, used) = timestamp(&whole);
    let rest = &whole[used..];
    let mut chars = rest.chars();
    let level = match (chars.next(), chars.next()) {
        (Some(level @ ('I' | 'W' | 'E' | 'D')), Some(' ')) => Some(level),
        _ => None,
    };
    let skip = used + if level.is_some() { 2 } else { 0 };
    match (time, level) {
        (None, None) if is_own(rest) => style.bare += 1,
        (None, None) => {}
        (Some(_), level) => {
            style.timed += 1;
            style.levelled += usize::from(level.is_some());
        }
        (None, Some(_)) => style.levelled += 1,
    }
    let text = match whole {
        Cow::Borrowed(text) => Cow::Borrowed(&text[skip..]),
        Cow::Owned(text) => Cow::Owned(text[skip..].to_string()),
    };
    Line { range, number, text, level, time }
}

/// Whether a line without prefix was written by the engine's logger rather than by a library or the argument parser.
fn is_own(text: &str) -> bool {
    ["srv  ", "cmn  ", "slot ", "spec "].iter().any(|tag| text.starts_with(tag))
}

/// The time at the head of a line, in microseconds, and how many bytes it takes with the blank behind it.
fn timestamp(text: &str) -> (Option<u64>, usize) {
    let Some((head, _)) = text.split_once(' ') else { return (None, 0) };
    let mut parts = head.split('.');
    let mut next = |digits: Option<usize>| -> Option<u64> {
        let part = parts.next()?;
        let fits = digits.is_none_or(|digits| part.len() == digits) && part.len() <= 9;
        (fits && part.bytes().all(|byte| byte.is_ascii_digit())).then(|| part.parse().ok())?
    };
    let time = (|| {
        let (minutes, seconds, millis, micros) = (next(None)?, next(Some(2))?, next(Some(3))?, next(Some(3))?);
        Some(((minutes * 60 + seconds) * 1000 + millis) * 1000 + micros)
    })();
    match time {
        Some(time) if parts.next().is_none() => (Some(time), head.len() + 1),
        _ => (None, 0),
    }
}

fn json_line<'a>(whole: &str, range: Range<usize>, number: usize) -> Line<'a> {
    let parsed: Option<serde_json::Value> = serde_json::from_str(whole).ok();
    let field = |name: &str| parsed.as_ref().and_then(|value| value.get(name));
    let text = field("msg").and_then(|msg| msg.as_str()).unwrap_or("").trim_end().to_string();
    let level = match field("level").and_then(|level| level.as_str()) {
        Some("info") => Some('I'),
        Some("warn" | "warning") => Some('W'),
        Some("error") => Some('E'),
        Some("debug") => Some('D'),
        _ => None,
    };
    let time = field("time").and_then(serde_json::Value::as_u64);
    Line { range, number, text: Cow::Owned(text), level, time }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: &str = "0.00.001.075 I srv  llama_server: initializing ...\n\
        0.00.002.418 I cmn  common_param: common_params_print_info: verbosity = 3 (adjust with the `-lv N` CLI arg)\n\
        0.00.035.053 I srv  llama_server: listening on http://127.0.0.1:33381\n";

    #[test]
    fn reads_time_level_and_text() {
        let log = read(START.as_bytes());
        assert_eq!(log.lines.len(), 3);
        assert_eq!(log.lines[0].time, Some(1075));
        assert_eq!(log.lines[0].level, Some('I'));
        assert_eq!(log.lines[0].text, "srv  llama_server: initializing ...");
        assert_eq!(log.verbosity, Some(3));
        assert!(log.would_show(3));
        assert!(!log.would_show(4));
    }

    #[test]
    fn only_the_last_start_of_a_file_counts() {
        let log = format!("{START}12.00.000.000 W srv  something\nwarn: X environment variable\n{START}");
        let log = read(log.as_bytes());
        assert_eq!(log.earlier.len(), 4);
        assert_eq!(log.lines[0].text, "warn: X environment variable");
    }

    #[test]
    fn the_older_release_has_no_initializing_line() {
        let start = START.split_once('\n').map(|(_, rest)| rest).unwrap_or_default();
        let two = format!("{start}0.09.000.000 I srv  y\n{start}");
        let log = read(two.as_bytes());
        assert_eq!(log.earlier.len(), 3);
        assert!(log.would_show(3));
    }

    #[test]
    fn a_cut_log_is_no_witness_for_absence() {
        let log = format!("{START}[ascertain: 12 bytes left out here]\n0.01.000.000 I x\n");
        assert!(!read(log.as_bytes()).would_show(3));
    }

    #[test]
    fn a_long_file_is_of_the_start_after_the_hole_or_of_none() {
        let log = format!("{START}[ascertain: 12 bytes left out here]\n{START}");
        let log = read(log.as_bytes());
        assert!(log.would_show(3) && !log.cut);
        let log = format!("{START}[ascertain: 12 bytes left out here]\n9.00.000.000 I srv  x\n");
        let log = read(log.as_bytes());
        assert!(!log.has_beginning && log.cut);
        assert_eq!(log.earlier.len(), 3);
    }

    #[test]
    fn a_client_cannot_write_into_it() {
        let log = format!(
            "{START}0.09.000.000 W slot x: unable to match sampler by name 'x\n\
             llama_context: n_ubatch              = 128\n\
             0.00.000.001 I srv  llama_server: initializing ...\n\
             9.00.000.000 I srv  forged: later than what follows\n\
             0.10.000.000 I slot release: true\n"
        );
        let log = read(log.as_bytes());
        assert_eq!(log.lines.len(), 3, "{:?}", log.lines);
        assert!(log.earlier.is_empty());
        assert!(log.would_show(3));
    }

    #[test]
    fn a_start_behind_the_words_of_a_client_is_doubted() {
        let carrier = "0.09.000.000 W slot x: unable to match sampler by name 'x";
        let log = format!("{START}{carrier}\n{START}0.10.000.000 I slot release: true\n");
        assert!(read(log.as_bytes()).doubtful);
        let log = format!("{START}0.09.000.000 W srv  x\n{START}");
        assert!(!read(log.as_bytes()).doubtful);
    }

    #[test]
    fn a_start_without_times_follows_one_with_times() {
        let bare: String = START.lines().map(|line| format!("{}\n", &line[15..])).collect();
        let both = format!("{START}{bare}");
        let log = read(both.as_bytes());
        assert_eq!(log.earlier.len(), 3, "{log:?}");
        assert!(log.lines.iter().all(|line| line.time.is_none()));
    }

    #[test]
    fn two_servers_in_one_file_prove_nothing() {
        let both: String = START.lines().flat_map(|line| [format!("{line}\n"), format!("{line}\n")]).collect();
        assert!(read(both.as_bytes()).mixed);
    }

    #[test]
    fn jsonl_is_unwrapped() {
        let log = read(b"{\"type\":\"log\",\"time\":2467,\"level\":\"warn\",\"msg\":\"srv  a: b\\n\"}\n");
        assert_eq!(log.lines[0].text, "srv  a: b");
        assert_eq!(log.lines[0].level, Some('W'));
        assert_eq!(log.style.json, 1);
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = read(&bytes);
        }
    }
}
