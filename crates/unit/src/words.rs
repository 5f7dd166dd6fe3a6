//! How systemd splits and unquotes: command lines, `Environment=`, environment files, and the variables in a command
//! line.
//!
//! * Quotes group anywhere in a word; C escapes work within and outside of both kinds of quotes.
//! * In a command line an unknown escape keeps its backslash; in `Environment=` it drops the rest of the line.
//! * `;` as a word of its own separates commands, `\;` is the argument `;`.
//! * `$NAME` counts only as a whole word and is split at blanks; `${NAME}` counts anywhere and is not split; `$$` is
//!   `$`; a variable that is not set is nothing. `$NAME.txt` is the variable of that (impossible) name: nothing.

use crate::issue::Issue;
use crate::specifiers::{self, Context};
use crate::{Kind, Text, Version};
use std::ops::Range;

/// One word after splitting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// What it says, quotes and escapes removed, specifiers resolved.
    pub text: Text,
    /// Which bytes of the value it was written in.
    pub range: Range<usize>,
}

/// How [`first_word`] treats quotes and backslashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// Quotes group and are removed.
    pub unquote: bool,
    /// Backslashes begin C escapes; otherwise they just keep the next character.
    pub unescape: bool,
    /// An unknown escape keeps its backslash instead of failing.
    pub relax_escapes: bool,
    /// A quote that is not closed ends with the text instead of failing.
    pub relax: bool,
    /// Backslashes are ordinary characters.
    pub keep_backslashes: bool,
}

/// For `Environment=`, `PassEnvironment=`, `UnsetEnvironment=` and the first try at a command line.
pub const STRICT: Rules =
    Rules { unquote: true, unescape: true, relax_escapes: false, relax: false, keep_backslashes: false };

/// For the value of `$NAME` in a command line.
pub const SPLIT: Rules =
    Rules { unquote: true, unescape: false, relax_escapes: false, relax: true, keep_backslashes: false };

/// What [`first_word`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The word's bytes.
    pub bytes: Vec<u8>,
    /// Where it was written.
    pub range: Range<usize>,
    /// Where the next begins; the length of the text when there is none.
    pub next: usize,
}

/// Why a word cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bad {
    /// An escape sequence that does not exist, or a backslash at the very end.
    Escape,
    /// A quote that is not closed.
    Quote,
}

fn blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The first word at or after `from`.
pub fn first_word(text: &[u8], from: usize, rules: Rules) -> Result<Option<Found>, Bad> {
    let mut at = from;
    while text.get(at).is_some_and(|byte| blank(*byte)) {
        at += 1;
    }
    let start = at;
    let mut out = Vec::new();
    let mut quote: Option<u8> = None;
    if at >= text.len() {
        return Ok(None);
    }
    loop {
        let Some(&byte) = text.get(at) else {
            if quote.is_some() && !rules.relax {
                return Err(Bad::Quote);
            }
            return Ok(Some(Found { bytes: out, range: start..at, next: at }));
        };
        match (byte, quote) {
            (b'\\', _) if !rules.keep_backslashes => {
                at += 1;
                let Some(&next) = text.get(at) else {
                    if rules.relax_escapes && (quote.is_none() || rules.relax) {
                        out.push(b'\\');
                    } else if !rules.relax {
                        return Err(if quote.is_some() { Bad::Quote } else { Bad::Escape });
                    }
                    return Ok(Some(Found { bytes: out, range: start..at, next: at }));
                };
                if !rules.unescape {
                    out.push(next);
                    at += 1;
                } else if let Some((bytes, length)) = unescape_one(&text[at..]) {
                    out.extend_from_slice(&bytes);
                    at += length;
                } else if rules.relax_escapes {
                    out.extend_from_slice(&[b'\\', next]);
                    at += 1;
                } else {
                    return Err(Bad::Escape);
                }
            }
            (_, Some(open)) if byte == open => {
                quote = None;
                at += 1;
            }
            (_, Some(_)) => {
                out.push(byte);
                at += 1;
            }
            (b'"' | b'\'', None) if rules.unquote => {
                quote = Some(byte);
                at += 1;
            }
            (_, None) if blank(byte) => {
                let end = at;
                while text.get(at).is_some_and(|byte| blank(*byte)) {
                    at += 1;
                }
                return Ok(Some(Found { bytes: out, range: start..end, next: at }));
            }
            (_, None) => {
                out.push(byte);
                at += 1;
            }
        }
    }
}

/// One C escape, without its backslash: what it stands for and how long it is.
fn unescape_one(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let number = |from: usize, digits: usize, radix: u32| {
        let digits = std::str::from_utf8(text.get(from..from + digits)?).ok()?;
        if digits.starts_with('+') { None } else { u32::from_str_radix(digits, radix).ok().filter(|value| *value != 0) }
    };
    let simple = |byte: u8| Some((vec![byte], 1));
    match *text.first()? {
        b'a' => simple(7),
        b'b' => simple(8),
        b'f' => simple(12),
        b'n' => simple(b'\n'),
        b'r' => simple(b'\r'),
        b't' => simple(b'\t'),
        b'v' => simple(11),
        b's' => simple(b' '),
        byte @ (b'\\' | b'"' | b'\'') => simple(byte),
        b'x' => Some((vec![u8::try_from(number(1, 2, 16)?).ok()?], 3)),
        b'0'..=b'7' => Some((vec![u8::try_from(number(0, 3, 8)?).ok()?], 3)),
        kind @ (b'u' | b'U') => {
            let digits = if kind == b'u' { 4 } else { 8 };
            let c = char::from_u32(number(1, digits, 16)?)?;
            Some((c.to_string().into_bytes(), 1 + digits))
        }
        _ => None,
    }
}

/// Writes a word so that systemd reads it back as the same word: in quotes where needed. `%` and `$` are doubled only
/// by [`quote_argument`].
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-+=./,:@%$".contains(c) || (!c.is_ascii() && !c.is_control());
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    let mut out = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Writes an argument of a command line so that the process gets exactly this word: neither specifiers nor variables
/// are seen in it.
pub fn quote_argument(word: &str) -> String {
    quote(&word.replace('%', "%%").replace('$', "$$"))
}

/// What the characters before the program in a command line ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prefixes {
    /// `-`: a failure counts as success.
    pub ignore_failure: bool,
    /// `@`: the second word is `argv[0]`.
    pub argv0: bool,
    /// `:`: no variables are replaced.
    pub no_variables: bool,
    /// `+`: full privileges, `User=` and sandboxing do not apply.
    pub full_privileges: bool,
    /// `!`: `User=` is not applied by systemd.
    pub no_setuid: bool,
    /// `!!`: the same where the kernel has no ambient capabilities.
    pub ambient: bool,
    /// `|`: run through a shell (since 258).
    pub shell: bool,
}

/// One command of an `Exec…=` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The characters before the program.
    pub prefixes: Prefixes,
    /// The program.
    pub path: Text,
    /// `argv` as systemd holds it: specifiers resolved, variables not yet replaced.
    pub argv: Vec<Word>,
    /// The bytes of the value.
    pub range: Range<usize>,
}

/// An `Exec…=` value, read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commands {
    /// The commands.
    pub commands: Vec<Command>,
    /// What is the matter.
    pub issues: Vec<Issue>,
    /// The unit cannot be loaded because of it.
    pub fatal: bool,
}

fn text_of(bytes: Vec<u8>) -> Text {
    String::from_utf8(bytes).map_or_else(
        |bad| Text::opaque(String::from_utf8_lossy(bad.as_bytes()), "the escapes in it make bytes that are not UTF-8"),
        Text::Known,
    )
}

/// Reads the value of `ExecStart=` and its kin. An empty value is no command: the caller resets its list.
pub fn exec(value: &str, context: &Context) -> Commands {
    let text = value.as_bytes();
    let mut out = Commands::default();
    let mut at = 0;
    'commands: loop {
        // An open quote in the first word only drops the command.
        let Some(first) = exec_word(text, at, &mut out.issues) else { return out };
        let start = first.range.start;
        if first.bytes == b";" {
            at = first.next;
            continue;
        }
        let word = String::from_utf8_lossy(&first.bytes).into_owned();
        let (prefixes, rest) = prefixes(&word, context.version);
        // A failure to read it does not matter to systemd where the failure of the command would not.
        let fails = |out: &mut Commands, kind: Kind, range: Range<usize>, text: String| {
            out.issues.push(Issue::new(kind, range, text));
            out.fatal |= !prefixes.ignore_failure;
        };
        let path = match std::str::from_utf8(&first.bytes) {
            Ok(_) => specifiers::resolve(rest, context, first.range.clone(), &mut out.issues),
            Err(_) => Some(text_of(first.bytes.clone())),
        };
        let Some(path) = path else {
            out.fatal |= !prefixes.ignore_failure;
            return out;
        };
        let written = match &path {
            Text::Known(path) => Some(path.as_str()),
            Text::Opaque { .. } => None,
        };
        match written {
            Some("") => {
                fails(&mut out, Kind::EmptyCommand, first.range, "no program in the command line".into());
                return out;
            }
            Some(path) if !path.starts_with('/') && (path.contains('/') || path == "." || path == "..") => {
                let text = format!("{path}: neither an absolute path nor the name of a program");
                fails(&mut out, Kind::BadPath, first.range, text);
                return out;
            }
            Some(path) if path.ends_with('/') => {
                fails(&mut out, Kind::BadPath, first.range, format!("{path}: a directory"));
                return out;
            }
            _ => {}
        }
        let mut argv = Vec::new();
        if !prefixes.argv0 {
            argv.push(Word { text: path.clone(), range: first.range.clone() });
        }
        let path = match path {
            Text::Known(path) if path.starts_with('/') => Text::Known(simplify(&path)),
            other => other,
        };
        at = first.next;
        let mut end = first.range.end;
        let mut more = false;
        while at < text.len() {
            let ends = |offset: usize| text.get(at + offset).is_none_or(|byte| blank(*byte));
            if text[at] == b';' && ends(1) {
                at += 1;
                more = true;
                break;
            }
            if text[at..].starts_with(b"\\;") && ends(2) {
                argv.push(Word { text: ";".into(), range: at..at + 2 });
                end = at + 2;
                at += 2;
                while text.get(at).is_some_and(|byte| blank(*byte)) {
                    at += 1;
                }
                continue;
            }
            let issues = out.issues.len();
            let Some(word) = exec_word(text, at, &mut out.issues) else {
                if out.issues[issues..].iter().any(|issue| issue.kind == Kind::UnbalancedQuote) {
                    out.fatal |= !prefixes.ignore_failure;
                    return out;
                }
                break;
            };
            at = word.next;
            end = word.range.end;
            let resolved = match std::str::from_utf8(&word.bytes) {
                Ok(text) => specifiers::resolve(text, context, word.range.clone(), &mut out.issues),
                Err(_) => Some(text_of(word.bytes)),
            };
            let Some(resolved) = resolved else {
                out.fatal |= !prefixes.ignore_failure;
                return out;
            };
            argv.push(Word { text: resolved, range: word.range });
        }
        if argv.is_empty() {
            fails(&mut out, Kind::EmptyCommand, start..end, "'@' needs a word for argv[0]".into());
            return out;
        }
        out.commands.push(Command { prefixes, path, argv, range: start..end });
        if more {
            continue 'commands;
        }
        return out;
    }
}

/// A word of a command line. An unknown escape is kept as it stands; an open quote drops the whole line.
fn exec_word(text: &[u8], from: usize, issues: &mut Vec<Issue>) -> Option<Found> {
    match first_word(text, from, STRICT) {
        Ok(found) => found,
        Err(_) => match first_word(text, from, Rules { relax_escapes: true, ..STRICT }) {
            Ok(found) => {
                if let Some(found) = &found {
                    let text = "an unknown escape sequence: systemd keeps the backslash";
                    issues.push(Issue::new(Kind::UnknownEscape, found.range.clone(), text));
                }
                found
            }
            Err(_) => {
                issues.push(Issue::new(
                    Kind::UnbalancedQuote,
                    from..text.len(),
                    "a quote is not closed: systemd drops the command line",
                ));
                None
            }
        },
    }
}

fn prefixes(word: &str, version: Version) -> (Prefixes, &str) {
    let mut found = Prefixes::default();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let privileged = found.full_privileges || found.no_setuid || found.ambient;
        match first {
            '-' if !found.ignore_failure => found.ignore_failure = true,
            '@' if !found.argv0 => found.argv0 = true,
            ':' if !found.no_variables => found.no_variables = true,
            '+' if !privileged => found.full_privileges = true,
            '!' if !privileged => found.no_setuid = true,
            '!' if found.no_setuid && !found.ambient => {
                found.no_setuid = false;
                found.ambient = true;
            }
            '|' if version >= Version(258) && !found.shell => found.shell = true,
            _ => break,
        }
        rest = &rest[1..];
    }
    (found, rest)
}

/// A path without doubled slashes, `.` and slashes at the end.
pub(crate) fn simplify(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if path.starts_with('/') { format!("/{}", parts.join("/")) } else { parts.join("/") }
}

/// The words of `Environment=` and the like, specifiers resolved. Reading ends at the first word that cannot be read;
/// the words before it count.
pub fn words(value: &str, context: &Context) -> (Vec<Word>, Vec<Issue>) {
    let text = value.as_bytes();
    let (mut words, mut issues) = (Vec::new(), Vec::new());
    let mut at = 0;
    loop {
        match first_word(text, at, STRICT) {
            Ok(None) => break,
            Ok(Some(found)) => {
                at = found.next;
                match std::str::from_utf8(&found.bytes) {
                    Ok(text) => {
                        if let Some(text) = specifiers::resolve(text, context, found.range.clone(), &mut issues) {
                            words.push(Word { text, range: found.range });
                        }
                    }
                    Err(_) => issues.push(Issue::new(
                        Kind::NotUtf8,
                        found.range,
                        "its escapes make bytes that are not UTF-8: systemd ignores it",
                    )),
                }
            }
            Err(bad) => {
                let (kind, text) = match bad {
                    Bad::Escape => {
                        (Kind::UnknownEscape, "an unknown escape sequence: systemd drops the rest of the line")
                    }
                    Bad::Quote => (Kind::UnbalancedQuote, "a quote is not closed: systemd drops the rest of the line"),
                };
                issues.push(Issue::new(kind, at..value.len(), text));
                break;
            }
        }
    }
    (words, issues)
}

/// Whether systemd takes this as the name of a variable.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A word of the final `argv`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// What the process gets.
    pub text: Text,
    /// Which word of the command it came from.
    pub word: usize,
}

/// Replaces variables the way systemd does before it runs a command.
pub fn expand<'a>(command: &Command, lookup: &dyn Fn(&str) -> Option<&'a Text>) -> (Vec<Argument>, Vec<Issue>) {
    let (mut argv, mut issues) = (Vec::new(), Vec::new());
    for (index, word) in command.argv.iter().enumerate() {
        let text = match &word.text {
            Text::Known(text) if !command.prefixes.no_variables => text,
            other => {
                argv.push(Argument { text: other.clone(), word: index });
                continue;
            }
        };
        let mut unset = |name: &str| {
            issues.push(Issue::new(
                Kind::UnsetVariable,
                word.range.clone(),
                format!("${name} is not in the environment: it becomes nothing"),
            ));
        };
        match text.strip_prefix('$') {
            Some(name) if !name.starts_with(['{', '$']) => match lookup(name) {
                Some(Text::Known(value)) => {
                    let mut at = 0;
                    while let Ok(Some(found)) = first_word(value.as_bytes(), at, SPLIT) {
                        at = found.next;
                        argv.push(Argument { text: text_of(found.bytes), word: index });
                    }
                }
                Some(Text::Opaque { why, .. }) => {
                    argv.push(Argument { text: Text::opaque(text.clone(), why.clone()), word: index });
                }
                None => unset(name),
            },
            _ => argv.push(Argument { text: replace(text, lookup, &mut unset), word: index }),
        }
    }
    (argv, issues)
}

fn replace<'a>(text: &str, lookup: &dyn Fn(&str) -> Option<&'a Text>, unset: &mut dyn FnMut(&str)) -> Text {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(inside) = rest.strip_prefix('{') {
            match inside.find(['}', ':']) {
                Some(end) if inside[end..].starts_with('}') => {
                    let name = &inside[..end];
                    match lookup(name) {
                        Some(Text::Known(value)) => out.push_str(value),
                        Some(Text::Opaque { why, .. }) => return Text::opaque(text, why.clone()),
                        None => unset(name),
                    }
                    rest = &inside[end + 1..];
                }
                // `${NAME:-default}` is not understood: it stays as written, and so does `${` without an end.
                end => {
                    let kept = end.unwrap_or(inside.len());
                    out.push_str("${");
                    out.push_str(&inside[..kept]);
                    rest = &inside[kept..];
                }
            }
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    Text::Known(out)
}

/// One assignment of an environment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
    /// The bytes, from the name to the end of the value.
    pub range: Range<usize>,
    /// First and last line, from 1.
    pub lines: (usize, usize),
}

/// What an environment file says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnvFile {
    /// Its assignments in order; of one name the last counts.
    pub pairs: Vec<Pair>,
    /// What is the matter.
    pub issues: Vec<Issue>,
    /// Systemd cannot read the file: a unit that needs it does not start.
    pub fatal: bool,
}

/// Reads an environment file. It is not a shell script: `export` becomes part of a name that is none, `$` means
/// nothing, and `#` begins a comment only where a name could stand.
pub fn env_file(bytes: &[u8], version: Version) -> EnvFile {
    let mut out = EnvFile::default();
    // C strings: systemd refuses a file with a NUL byte in it.
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        out.issues.push(Issue::new(Kind::Nul, at..at + 1, "a NUL byte: systemd does not read the file"));
        out.fatal = true;
        return out;
    }
    let mut reader = EnvReader { bytes, at: 0, line: 1 };
    while let Some((key_start, first_line)) = reader.key_start(version) {
        let Some(name) = reader.key(key_start, &mut out.issues) else { continue };
        let value = reader.value();
        let range = key_start..value.end.max(key_start);
        let (Ok(name), Ok(value)) = (String::from_utf8(name), String::from_utf8(value.bytes)) else {
            out.issues.push(Issue::new(Kind::NotUtf8, range, "not UTF-8: systemd does not read the file"));
            out.fatal = true;
            return out;
        };
        let last_line = first_line.max(reader.line - usize::from(reader.just_ended()));
        if let Some(text) = refused(&name) {
            out.issues.push(Issue::new(Kind::InvalidAssignment, range, text));
            continue;
        }
        out.pairs.push(Pair { name, value, range, lines: (first_line, last_line) });
    }
    out
}

fn refused(name: &str) -> Option<String> {
    if let Some(rest) = name.strip_prefix("export").filter(|rest| rest.starts_with([' ', '\t'])) {
        let rest = rest.trim_start();
        return Some(format!("this is no shell script: 'export' makes systemd ignore {}", crate::file::shorten(rest)));
    }
    (!is_name(name)).then(|| format!("{}: not a variable's name, systemd ignores it", crate::file::shorten(name)))
}

struct EnvReader<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

struct EnvValue {
    bytes: Vec<u8>,
    end: usize,
}

impl EnvReader<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        self.line += usize::from(byte == b'\n');
        Some(byte)
    }

    fn just_ended(&self) -> bool {
        self.at > 0 && self.bytes.get(self.at - 1) == Some(&b'\n')
    }

    /// Passes over blanks and comments.
    fn key_start(&mut self, version: Version) -> Option<(usize, usize)> {
        loop {
            let (start, line) = (self.at, self.line);
            let byte = self.next()?;
            match byte {
                b'#' | b';' => {
                    let mut escaped = false;
                    while let Some(byte) = self.next() {
                        if matches!(byte, b'\n' | b'\r') && (!escaped || version >= Version(254)) {
                            break;
                        }
                        escaped = byte == b'\\' && !escaped;
                    }
                }
                byte if blank(byte) => {}
                _ => return Some((start, line)),
            }
        }
    }

    fn key(&mut self, start: usize, issues: &mut Vec<Issue>) -> Option<Vec<u8>> {
        // The first character is part of the name whatever it is, even `=`.
        loop {
            match self.next() {
                Some(b'=') => break,
                Some(b'\n' | b'\r') | None => {
                    let end = self.at - usize::from(self.at > start + 1);
                    issues.push(Issue::new(Kind::NotAnAssignment, start..end, "no '=', systemd ignores the line"));
                    return None;
                }
                Some(_) => {}
            }
        }
        let key = &self.bytes[start..self.at - 1];
        let end = key.iter().rposition(|byte| !blank(*byte)).map_or(0, |at| at + 1);
        Some(key[..end].to_vec())
    }

    fn value(&mut self) -> EnvValue {
        let mut out: Vec<u8> = Vec::new();
        let mut end = self.at;
        // After an opening blank or a closing quote blanks are dropped and a quote opens; within a bare word it does not.
        let mut bare = false;
        // Where blanks that end a bare word begin.
        let mut kept = 0;
        loop {
            let before = self.at;
            let Some(byte) = self.next() else { break };
            match byte {
                b'\n' | b'\r' => break,
                b'\\' => {
                    bare = true;
                    match self.next() {
                        None => {
                            kept = out.len();
                            end = self.at;
                            break;
                        }
                        Some(b'\n' | b'\r') => {}
                        Some(byte) => out.push(byte),
                    }
                    kept = out.len();
                    end = self.at;
                }
                quote @ (b'\'' | b'"') if !bare => {
                    while let Some(byte) = self.next() {
                        match byte {
                            byte if byte == quote => break,
                            b'\\' if quote == b'"' => match self.next() {
                                Some(byte @ (b'"' | b'\\' | b'`' | b'$')) => out.push(byte),
                                Some(b'\n') | None => {}
                                Some(byte) => out.extend_from_slice(&[b'\\', byte]),
                            },
                            byte => out.push(byte),
                        }
                    }
                    kept = out.len();
                    end = self.at;
                }
                byte if blank(byte) && !bare => {}
                byte => {
                    bare = true;
                    out.push(byte);
                    if !blank(byte) {
                        kept = out.len();
                        end = before + 1;
                    }
                }
            }
        }
        if bare {
            out.truncate(kept);
        }
        EnvValue { bytes: out, end }
    }
}
