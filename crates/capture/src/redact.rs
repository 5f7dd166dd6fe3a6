//! Redaction: what is secret is taken out before anything is stored.
//!
//! Two things happen, in this order. First the [`Redactor`] *learns*: it reads what is known to hold secrets (argv,
//! environment, configuration files, headers, URLs) and keeps their values. Then every artifact is rewritten: each
//! learned value goes wherever it stands as a token of its own, and whatever generic rules recognise goes too, even
//! if nobody declared it.
//!
//! A value shorter than [`ANYWHERE`] bytes goes only where it is not part of a longer word, so that the key `k1` does
//! not damage `task1` or `blk1`. Words that carry no secret but would take evidence with them (`none`, `on`, `0`,
//! the customary `EMPTY`) are never learned. JSON stays JSON: in an artifact that parses, only text inside strings
//! is replaced.

use aho_corasick::{AhoCorasick, MatchKind};
use ascertain_model::wants::Wants;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// What stands in place of a secret.
pub const MARK: &str = ascertain_model::capture::REDACTED;

/// From this length on a secret is also replaced inside longer words: it is too long to be there by chance.
pub const ANYWHERE: usize = 12;

/// A value learned from free text, or from a variable nobody declared, must be at least so long to be looked for
/// everywhere else.
const LEARN_FROM_TEXT: usize = 8;
const LEARN_UNDECLARED: usize = 4;

/// No artifact teaches more values, and none longer than this many bytes: a log made to look like a list of keys must
/// not cost memory. What stands behind a label goes in any case.
const LEARN_AT_MOST: usize = 256;
const LEARN_LONGEST: usize = 4096;

/// A stretch of text that was looked through from one label and is longer than this is not looked through again from
/// the labels in it. Keeps hostile text linear.
const LONG: usize = 1024;

/// Values that say "no secret", or that stand for something else in nearly every artifact.
const HARMLESS: &[&str] = &[
    "", "0", "1", "auto", "default", "disabled", "empty", "enabled", "false", "key", "no", "none", "null", "off", "on",
    "required", "set", "true", "unset", "yes",
];

/// Names of fields and keys whose value is a secret in any software. Deliberately not the single words `key` and
/// `token`: `bos_token` and `cache_key` are configuration.
const FIELD_NAMES: &[&str] = &[
    "api-key",
    "api-keys",
    "apikey",
    "access-token",
    "auth-token",
    "hf-token",
    "refresh-token",
    "bearer-token",
    "client-secret",
    "secret-key",
    "secret-access-key",
    "password",
    "passwd",
    "passphrase",
];

/// Words that name a secret in free text where they begin a name: `token=…`, `"secret": …`, `--pass …`.
const WORDS: &[&str] = &["token", "secret", "pass", "pwd", "pw"];

/// Headers whose value is a secret.
const HEADER_NAMES: &[&str] = &["authorization", "proxy-authorization", "cookie", "set-cookie"];

/// Shapes of tokens: prefix, and how many characters must follow.
const SHAPES: &[(&str, usize)] = &[
    ("hf_", 16),
    ("sk-", 16),
    ("sk_live_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("nvapi-", 20),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("AKIA", 16),
    ("eyJ", 40),
];

/// Words in the name of an environment variable that make its value a secret.
const VARIABLE_WORDS: &[&str] = &[
    "APIKEY",
    "CREDENTIAL",
    "CREDENTIALS",
    "DB_PASS",
    "KEY",
    "KEYS",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PASSWORDS",
    "SECRET",
    "SECRETS",
    "TOKEN",
];

/// Names under which an engine takes secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretNames {
    /// Flags whose value is a secret (`--api-key`).
    pub flags: Vec<String>,
    /// Variables whose value is a secret.
    pub env: Vec<String>,
    /// Keys in configuration files whose value is a secret (`api-key`).
    pub keys: Vec<String>,
}

impl From<&Wants> for SecretNames {
    fn from(wants: &Wants) -> Self {
        SecretNames {
            flags: wants.secret_flags.clone(),
            env: wants.secret_env.clone(),
            keys: wants.secret_keys.clone(),
        }
    }
}

/// What introduces a secret in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    /// A flag: the value follows after `=`, white space or, in a list, a comma.
    Flag,
    /// A key or variable: the value follows after `=` or `:`.
    Key,
    /// A header: the value follows after `:`, `=` or a comma, perhaps after the name of a scheme.
    Header,
    /// `Bearer ` with nothing before it.
    Bearer,
    /// `://`: user information may follow.
    Url,
    /// A word that names a secret, at the beginning of a name of its own: what follows `=`, `:` or a blank behind `--` is
    /// one if it looks like one.
    Word,
    /// The end of the name of a variable, in capitals and with its `=`.
    Variable,
    /// The beginning of a token of a known shape, so many more characters.
    Shape(usize),
}

/// Knows the secrets of one target and takes them out of bytes.
#[derive(Clone)]
pub struct Redactor {
    names: SecretNames,
    labels: Option<AhoCorasick>,
    label_kinds: Vec<Label>,
    label_patterns: Vec<Vec<u8>>,
    values: BTreeSet<Vec<u8>>,
    known: Option<AhoCorasick>,
    known_patterns: Vec<Vec<u8>>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the values.
        f.debug_struct("Redactor").field("names", &self.names).field("values", &self.values.len()).finish()
    }
}

impl Redactor {
    /// A redactor that knows names and generic rules, and no value yet.
    pub fn new(names: SecretNames) -> Self {
        let mut patterns: Vec<(Vec<u8>, Label)> = Vec::new();
        let both = |name: &str| [name.replace('_', "-"), name.replace('-', "_")];
        for flag in &names.flags {
            patterns.push((flag.clone().into_bytes(), Label::Flag));
        }
        for name in names.keys.iter().chain(&names.env).map(String::as_str).chain(FIELD_NAMES.iter().copied()) {
            patterns.extend(both(name).map(|name| (name.into_bytes(), Label::Key)));
        }
        for name in HEADER_NAMES {
            patterns.push((name.as_bytes().to_vec(), Label::Header));
        }
        patterns.extend(WORDS.iter().map(|word| (word.as_bytes().to_vec(), Label::Word)));
        patterns.extend(VARIABLE_WORDS.iter().map(|word| (format!("{word}=").into_bytes(), Label::Variable)));
        patterns.push((b"bearer ".to_vec(), Label::Bearer));
        patterns.push((b"://".to_vec(), Label::Url));
        for (prefix, more) in SHAPES {
            patterns.push((prefix.as_bytes().to_vec(), Label::Shape(*more)));
        }
        patterns.retain(|(pattern, _)| !pattern.is_empty());
        let (label_patterns, label_kinds): (Vec<_>, Vec<_>) = patterns.into_iter().unzip();
        Redactor {
            names,
            labels: automaton(&label_patterns, true),
            label_kinds,
            label_patterns,
            values: BTreeSet::new(),
            known: None,
            known_patterns: Vec::new(),
        }
    }

    /// How many secret values it knows.
    pub fn known(&self) -> usize {
        self.values.len()
    }

    /// Learns values that are secret by declaration, such as the API key a user gave. Several keys may be joined with
    /// commas: each is learned, and so is the whole.
    pub fn learn<'a>(&mut self, values: impl IntoIterator<Item = &'a str>) {
        let found: Vec<String> = values.into_iter().flat_map(parts).collect();
        self.insert(found);
    }

    /// Learns the values of secret flags in a command line, and the passwords in its URLs.
    pub fn learn_argv(&mut self, argv: &[String]) {
        let mut found = Vec::new();
        let mut after = false;
        for argument in argv {
            if after {
                found.extend(parts(argument));
                after = false;
            } else if let Some((_, value)) = argument.split_once('=').filter(|(flag, _)| self.secret_flag(flag)) {
                found.extend(parts(value));
            } else if self.secret_flag(argument) {
                after = true;
            } else {
                found.extend(url_secrets(argument.as_bytes()));
            }
        }
        self.insert(found);
    }

    /// Learns the values of secret variables, and the passwords in URLs.
    pub fn learn_environ(&mut self, environ: &[(String, String)]) {
        let mut found = Vec::new();
        for (name, value) in environ {
            if self.names.env.iter().any(|known| known == name) {
                found.extend(parts(value));
            } else if secret_variable(name, value) {
                if worth_learning(value) {
                    found.extend(parts(value).into_iter().filter(|part| worth_learning(part)));
                }
            } else {
                found.extend(url_secrets(value.as_bytes()));
            }
        }
        self.insert(found);
    }

    /// Learns from one artifact before any is rewritten: command lines and environments by their names, secret keys of
    /// configuration files, and what stands behind a secret label anywhere.
    pub fn learn_artifact(&mut self, name: &str, bytes: &[u8]) {
        let plain = name.strip_suffix(".json").unwrap_or(name);
        let parsed = || serde_json::from_slice::<serde_json::Value>(bytes).ok();
        if plain == "meta" {
            if let Some(meta) = parsed() {
                self.learn_argv(&strings(meta.get("argv")));
                self.learn_environ(&variables(meta.get("env")));
            }
        } else if plain.starts_with("proc_cmdline") {
            self.learn_argv(&strings(parsed().as_ref()));
        } else if plain.starts_with("proc_environ") {
            self.learn_environ(&variables(parsed().as_ref()));
        }
        if is_configuration(name) {
            self.learn_config(bytes);
        }
        let mut found = Vec::new();
        self.labelled(bytes, |label, range| {
            let value = &bytes[range];
            if matches!(label, Label::Shape(_)) || value.len() < LEARN_FROM_TEXT || value.starts_with(b"*") {
                return;
            }
            if let Ok(value) = std::str::from_utf8(value) {
                if label == Label::Url {
                    found.extend(value.split_once(':').map(|(_, password)| password.to_owned()));
                } else {
                    found.extend(parts(value));
                }
            }
        });
        found.retain(|value| (LEARN_FROM_TEXT..=LEARN_LONGEST).contains(&value.len()));
        found.sort();
        found.dedup();
        found.truncate(LEARN_AT_MOST);
        self.insert(found);
    }

    /// Learns the values of secret keys in a configuration file (`key = value`, `key: value`, and a YAML list under
    /// a key).
    pub fn learn_config(&mut self, bytes: &[u8]) {
        let mut found: Vec<String> = Vec::new();
        let mut list = false;
        for line in bytes.split(|byte| matches!(byte, b'\n' | b'\r')) {
            let line = String::from_utf8_lossy(line);
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(item) = line.strip_prefix("- ").filter(|_| list) {
                found.extend(config_values(item));
                continue;
            }
            list = false;
            let Some(at) = line.find(['=', ':']) else { continue };
            let key = line[..at].trim().trim_matches(['"', '\'']);
            if !self.secret_key(key) {
                continue;
            }
            let value = line[at + 1..].trim();
            if value.is_empty() {
                list = true;
            } else {
                found.extend(config_values(value));
            }
        }
        found.retain(|value| value.len() <= LEARN_LONGEST);
        found.truncate(LEARN_AT_MOST);
        self.insert(found);
    }

    /// A command line with the values of secret flags replaced, whatever they are.
    pub fn argv(&self, argv: &[String]) -> Vec<String> {
        let mut after = false;
        argv.iter()
            .map(|argument| {
                if after {
                    after = false;
                    // An empty key is no secret, and that it is empty must not get lost.
                    let is_empty = argument.chars().all(|c| c == ',' || c.is_whitespace());
                    return if is_empty { argument.clone() } else { MARK.to_owned() };
                }
                if let Some((flag, _)) = argument.split_once('=').filter(|(flag, _)| self.secret_flag(flag)) {
                    return format!("{flag}={MARK}");
                }
                after = self.secret_flag(argument);
                self.text(argument)
            })
            .collect()
    }

    /// The value of one environment variable, replaced if the name says that it is a secret.
    pub fn variable(&self, name: &str, value: &str) -> String {
        let declared = !value.is_empty() && self.names.env.iter().any(|known| known == name);
        let secret = declared || (!harmless(value) && secret_variable(name, value));
        if secret { MARK.to_owned() } else { self.text(value) }
    }

    /// One line of text, such as a path or a URL.
    pub fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes("", text.as_bytes())).into_owned()
    }

    /// The bytes of an artifact with every secret replaced. The name tells JSON from text.
    pub fn bytes(&self, name: &str, bytes: &[u8]) -> Vec<u8> {
        self.replace(name, bytes, true)
    }

    /// The bytes of an artifact with the secrets that are known replaced, without looking for labels: for one of
    /// which every part was chosen, and in which what stands behind a label may be its own mark.
    pub fn values(&self, name: &str, bytes: &[u8]) -> Vec<u8> {
        self.replace(name, bytes, false)
    }

    fn replace(&self, name: &str, bytes: &[u8], labels: bool) -> Vec<u8> {
        let mut spans: Vec<Range<usize>> = Vec::new();
        if labels {
            self.labelled(bytes, |_, range| spans.push(range));
        }
        self.known_values(bytes, |range| spans.push(range));
        if spans.is_empty() {
            return bytes.to_vec();
        }
        spans.sort_by_key(|span| (span.start, span.end));
        if name.ends_with(".json") && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
            spans = keep_json(bytes, spans);
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut done = 0;
        let mut iter = spans.into_iter().peekable();
        while let Some(mut span) = iter.next() {
            while let Some(next) = iter.next_if(|next| next.start < span.end) {
                span.end = span.end.max(next.end);
            }
            if span.start < done {
                continue;
            }
            out.extend_from_slice(&bytes[done..span.start]);
            out.extend_from_slice(MARK.as_bytes());
            done = span.end;
        }
        out.extend_from_slice(&bytes[done..]);
        out
    }

    fn insert(&mut self, found: Vec<String>) {
        let before = self.values.len();
        for value in found {
            let value = value.trim();
            if !harmless(value) && !value.contains("[redacted") {
                self.values.insert(value.as_bytes().to_vec());
            }
        }
        if self.values.len() == before {
            return;
        }
        let mut patterns: BTreeSet<Vec<u8>> = BTreeSet::new();
        for value in &self.values {
            // Engines mask a key in their log with stars and leave its end readable.
            let tail = &value[value.len().saturating_sub(4)..];
            patterns.insert([b"****", tail].concat());
            if value.len() >= 2 {
                patterns.insert(value.clone());
                patterns.extend(spellings(value));
            }
        }
        self.known_patterns = patterns.into_iter().collect();
        self.known = automaton(&self.known_patterns, false);
    }

    fn secret_flag(&self, argument: &str) -> bool {
        if !argument.starts_with('-') {
            return false;
        }
        let plain = argument.replace('_', "-");
        let declared = |flag: &String| {
            let flag = flag.replace('_', "-");
            // With something typed behind it by mistake; `--api-key-file` is another flag, and names no secret.
            let typed = plain.strip_prefix(flag.as_str()).filter(|_| flag.len() >= 4);
            typed.is_some_and(|rest| rest.len() <= 2 && !rest.starts_with('='))
        };
        self.names.flags.iter().any(declared)
            || plain.strip_prefix("--").is_some_and(|name| secret_field(name) || names_secret(name))
    }

    fn secret_key(&self, key: &str) -> bool {
        let plain = key.trim_start_matches('-').to_ascii_lowercase().replace('_', "-");
        let same = |name: &String| name.trim_start_matches('-').to_ascii_lowercase().replace('_', "-") == plain;
        self.names.keys.iter().any(same)
            || self.names.flags.iter().any(same)
            || self.names.env.iter().any(same)
            || secret_field(&plain)
    }

    /// Calls back with every value that stands behind a label.
    fn labelled(&self, bytes: &[u8], mut found: impl FnMut(Label, Range<usize>)) {
        let Some(labels) = &self.labels else { return };
        let mut covered = 0;
        for hit in labels.find_overlapping_iter(bytes) {
            let index = hit.pattern().as_usize();
            let label = self.label_kinds[index];
            let (start, end) = (hit.start(), hit.end());
            if start < covered {
                continue;
            }
            let token = || bytes[end..].iter().take(4096).take_while(|byte| shape_byte(**byte)).count();
            match label {
                Label::Url => {
                    if let Some(range) = user_information(bytes, end) {
                        found(label, range);
                    }
                }
                Label::Shape(more) => {
                    // Prefixes are told apart by case, the automaton is not.
                    if bytes[start..end] != self.label_patterns[index] || !boundary(bytes, start) {
                        continue;
                    }
                    let whole = start..end + token();
                    if whole.len() > LONG {
                        covered = whole.end;
                    }
                    if whole.end - end >= more && bytes[whole.clone()].iter().any(u8::is_ascii_digit) {
                        found(label, whole);
                    }
                }
                Label::Bearer => {
                    let length = token();
                    if length >= 16 {
                        found(label, end..end + length);
                    }
                }
                Label::Word => {
                    // `bos_token` and `n_token` are configuration.
                    let before = bytes[..start].iter().rposition(|byte| *byte != b'-').map(|at| bytes[at]);
                    let dashes = bytes[..start].iter().rev().take_while(|byte| **byte == b'-').count();
                    let begins =
                        before.is_none_or(|byte| !byte.is_ascii_alphanumeric() && byte != b'_' && byte != b'.');
                    if !begins || dashes == 1 {
                        continue;
                    }
                    if let Some(value) =
                        plain_value(bytes, end, dashes >= 2).filter(|value| looks_secret(&bytes[value.clone()]))
                    {
                        found(label, value);
                    }
                }
                Label::Variable => {
                    if bytes[start..end] != self.label_patterns[index] {
                        continue;
                    }
                    let from = end + quotes(&bytes[end..]);
                    let value = from..from + until_space(&bytes[from..]);
                    let text = &bytes[value.clone()];
                    if text.len() >= LEARN_UNDECLARED && !text.iter().all(u8::is_ascii_digit) && worth_replacing(text) {
                        found(label, value);
                    }
                }
                Label::Flag | Label::Key | Label::Header => {
                    // `ENGINE_API_KEY=` ends in a field name and counts; `monkeypassword` does not.
                    if boundary(bytes, start) {
                        let mut last = 0;
                        let looked = values_behind(bytes, end, label, |range| {
                            last = range.end;
                            found(label, range);
                        });
                        covered = covered.max(last);
                        if looked > end + LONG {
                            covered = covered.max(looked);
                        }
                    }
                }
            }
        }
    }

    /// Calls back with every place where a known value stands as a token of its own.
    fn known_values(&self, bytes: &[u8], mut found: impl FnMut(Range<usize>)) {
        let Some(known) = &self.known else { return };
        for hit in known.find_overlapping_iter(bytes) {
            let pattern = &self.known_patterns[hit.pattern().as_usize()];
            let masked = pattern.starts_with(b"****");
            let anywhere = pattern.len() >= ANYWHERE && !masked;
            if anywhere || (boundary(bytes, hit.start()) && boundary_after(bytes, hit.end())) {
                found(hit.start()..hit.end());
            }
        }
    }
}

/// An automaton over a few patterns. It can only fail on billions of states; then there is nothing to look for.
fn automaton(patterns: &[Vec<u8>], fold_case: bool) -> Option<AhoCorasick> {
    if patterns.is_empty() {
        return None;
    }
    AhoCorasick::builder().match_kind(MatchKind::Standard).ascii_case_insensitive(fold_case).build(patterns).ok()
}

fn harmless(value: &str) -> bool {
    HARMLESS.iter().any(|known| value.eq_ignore_ascii_case(known)) || value.bytes().all(|byte| byte == b'*')
}

/// Whether the value of a variable that only its name makes suspicious should be looked for elsewhere.
fn worth_learning(value: &str) -> bool {
    value.len() >= LEARN_UNDECLARED && !value.starts_with('/') && !value.bytes().all(|byte| byte.is_ascii_digit())
}

/// The value, and each of the keys in it if it is a comma-separated list.
fn parts(value: &str) -> Vec<String> {
    let mut parts = vec![value.to_owned()];
    if value.contains(',') {
        parts.extend(value.split(',').map(|part| part.trim().to_owned()));
    }
    parts
}

/// The values a configuration line gives: as it stands, without an inline comment, without quotes and brackets.
fn config_values(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    for value in [Some(value), value.find(" #").map(|at| &value[..at]), value.find(" ;").map(|at| &value[..at])] {
        let Some(value) = value else { continue };
        let value = value.trim().trim_end_matches(',').trim_matches(['[', ']', ' ']);
        for part in parts(value) {
            found.push(part.trim().trim_matches(['"', '\'']).to_owned());
        }
    }
    found
}

/// How a value looks when it is quoted in JSON (once and twice) or in a URL.
fn spellings(value: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let Ok(text) = std::str::from_utf8(value) else { return found };
    let quote = |text: &str| -> String {
        let quoted = serde_json::Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let once = quote(text);
    let twice = quote(&once);
    let ascii: String = once
        .chars()
        .flat_map(|c| {
            let mut units = [0u16; 2];
            let escaped: String = if c.is_ascii() {
                c.to_string()
            } else {
                c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
            };
            escaped.chars().collect::<Vec<_>>()
        })
        .collect();
    let percent: String = text
        .bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect();
    for spelling in [once.replace('/', "\\/"), once, twice, ascii, percent] {
        if spelling.as_bytes() != value {
            found.push(spelling.into_bytes());
        }
    }
    found
}

fn secret_field(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    FIELD_NAMES
        .iter()
        .any(|known| name.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with(['-', '_', '.'])))
}

/// Whether the last part of a flag that nobody declared names a secret: a misspelt or foreign one.
fn names_secret(name: &str) -> bool {
    let last = name.rsplit('-').next().unwrap_or(name).to_ascii_lowercase();
    ["token", "secret", "password", "passwd", "apikey", "key", "bearer", "pass", "credential", "credentials"]
        .iter()
        .any(|word| {
            last == *word
                || word.len() >= 5
                    && (last.ends_with(word)
                        || last.strip_prefix(word).is_some_and(|rest| rest.len() == 1 && rest != "s"))
        })
}

/// Whether the name of an environment variable says that its value is a secret.
fn secret_variable(name: &str, value: &str) -> bool {
    let words: Vec<String> = name.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_uppercase).collect();
    if words.last().is_some_and(|last| matches!(last.as_str(), "FILE" | "PATH" | "DIR" | "SOCK")) {
        return false;
    }
    words.iter().any(|word| {
        VARIABLE_WORDS.contains(&word.as_str())
            || (word == "TOKENS" && !value.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

fn is_configuration(name: &str) -> bool {
    [".ini", ".yaml", ".yml", ".toml", ".conf", ".cfg"].iter().any(|ending| name.ends_with(ending))
}

/// The passwords in the URLs of a text, or the whole user information where there is no password.
fn url_secrets(text: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].windows(3).position(|window| window == b"://") {
        let start = from + at + 3;
        if let Some(range) = user_information(text, start) {
            let whole = String::from_utf8_lossy(&text[range]);
            found.push(whole.split_once(':').map_or_else(|| whole.to_string(), |(_, password)| password.to_owned()));
        }
        from = start;
    }
    found
}

/// The user information of the URL whose authority begins at `start`.
fn user_information(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let authority = bytes[start..].iter().take(1024).take_while(|byte| {
        byte.is_ascii_graphic() && !matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'\\')
    });
    let end = start + authority.count();
    let at = bytes[start..end].iter().rposition(|byte| *byte == b'@')?;
    let range = start..start + at;
    (!range.is_empty() && !bytes[range.clone()].starts_with(b"[redacted")).then_some(range)
}

fn strings(value: Option<&serde_json::Value>) -> Vec<String> {
    let items = value.and_then(serde_json::Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// Variables as an object or as a list of `NAME=value`.
fn variables(value: Option<&serde_json::Value>) -> Vec<(String, String)> {
    if let Some(object) = value.and_then(serde_json::Value::as_object) {
        return object.iter().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
    }
    strings(value)
        .iter()
        .filter_map(|item| item.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect()
}

fn shape_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~' | b'+' | b'/')
}

/// Whether a token may begin at `start`: it does not continue an alphanumeric word. A letter or digit before it that
/// ends an escape (`\n` in JSON, `%20` in a URL, a colour on a terminal) is no part of a word.
fn boundary(bytes: &[u8], start: usize) -> bool {
    if start == 0 || start >= bytes.len() {
        return true;
    }
    let before = bytes[start - 1];
    if !before.is_ascii_alphanumeric() || !bytes[start].is_ascii_alphanumeric() {
        return true;
    }
    let back = |n: usize| start.checked_sub(n).and_then(|at| bytes.get(at)).copied();
    let hex = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
    if matches!(before, b'n' | b't' | b'r' | b'b' | b'f') && back(2) == Some(b'\\') {
        return true;
    }
    if hex(Some(before)) && hex(back(2)) && back(3) == Some(b'%') {
        return true;
    }
    if (1..=4).all(|n| hex(back(n))) && back(5) == Some(b'u') && back(6) == Some(b'\\') {
        return true;
    }
    if before.is_ascii_alphabetic() {
        let parameters =
            bytes[..start - 1].iter().rev().take(24).take_while(|byte| matches!(byte, b'0'..=b'9' | b';')).count();
        return back(2 + parameters) == Some(b'[')
            && (back(3 + parameters) == Some(0x1b) || matches!(back(3 + parameters), Some(b'b' | b'B' | b'3' | b'e')));
    }
    false
}

/// Whether a token may end at `end`.
fn boundary_after(bytes: &[u8], end: usize) -> bool {
    end == 0 || end >= bytes.len() || !bytes[end].is_ascii_alphanumeric() || !bytes[end - 1].is_ascii_alphanumeric()
}

/// Calls back with the values that follow the label which ends at `start`; returns how far it looked.
fn values_behind(bytes: &[u8], start: usize, label: Label, mut found: impl FnMut(Range<usize>)) -> usize {
    let mut at = start;
    let (mut assigned, mut comma, mut space, mut list, mut escaped) = (false, false, false, false, false);
    let mut quote = None;
    while let Some(&byte) = bytes.get(at).filter(|_| at - start < 48) {
        match byte {
            b'=' | b':' => assigned = true,
            b',' => comma = true,
            b' ' | b'\t' => space = true,
            b'\n' | b'\r' if comma => {}
            b'[' if bytes[at..].starts_with(b"[redacted") => return at,
            b'[' | b'(' if assigned => list = true,
            b'\\' => escaped = true,
            b'"' | b'\'' if assigned || comma || space => {
                quote = Some(byte);
                at += 1;
                break;
            }
            b'"' | b'\'' => escaped = false,
            _ => break,
        }
        at += 1;
    }
    let introduced = match label {
        Label::Flag => assigned || comma || space,
        Label::Header => assigned || comma,
        _ => assigned,
    };
    if !introduced || at >= bytes.len() {
        return at;
    }
    let Some(quote) = quote else {
        if label == Label::Header {
            at += scheme(&bytes[at..]);
        }
        let length = bytes[at..]
            .iter()
            .take(65536)
            .take_while(|byte| {
                !byte.is_ascii_whitespace()
                    && !matches!(byte, b'"' | b'\'' | b';' | b')' | b']' | b'}' | b'&' | b'<' | b'>' | b'\\')
            })
            .count();
        let mut end = at + length;
        while end > at && bytes[end - 1] == b',' {
            end -= 1;
        }
        // `--api-key --metrics` in a listing: more likely the next flag than a key.
        let flag = !assigned && bytes[at..end].starts_with(b"--");
        if !flag && worth_replacing(&bytes[at..end]) {
            found(at..end);
        }
        return end;
    };
    loop {
        if label == Label::Header {
            at += scheme(&bytes[at..]);
        }
        let mut end = at;
        while let Some(&byte) = bytes.get(end).filter(|_| end - at < 65536) {
            if byte == quote || byte == b'\n' || (escaped && byte == b'\\') {
                break;
            }
            end += if byte == b'\\' { 2 } else { 1 };
        }
        let end = end.min(bytes.len());
        if worth_replacing(&bytes[at..end]) {
            found(at..end);
        }
        // The other elements of a list.
        if !list {
            return end;
        }
        let mut next = end;
        while bytes.get(next).is_some_and(|byte| matches!(byte, b'"' | b'\'' | b'\\') && next - end < 3) {
            next += 1;
        }
        if bytes.get(next) != Some(&b',') {
            return end;
        }
        next += 1;
        while bytes.get(next).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'\\') {
            next += 1;
        }
        if bytes.get(next) != Some(&quote) {
            return end;
        }
        at = next + 1;
    }
}

/// Opening quotes, escaped or not.
fn quotes(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| matches!(byte, b'"' | b'\'' | b'\\')).count()
}

/// The length of a value that ends at a blank, a quote or a sign that separates.
fn until_space(bytes: &[u8]) -> usize {
    let ends = |byte: &u8| {
        byte.is_ascii_whitespace()
            || matches!(byte, b'"' | b'\'' | b';' | b',' | b')' | b']' | b'}' | b'&' | b'<' | b'>' | b'\\')
    };
    bytes.iter().take(LONG).take_while(|byte| !ends(byte)).count()
}

/// The value behind a word: after `=` or `:`, perhaps in quotes, or behind a flag after a blank.
fn plain_value(bytes: &[u8], end: usize, flag: bool) -> Option<Range<usize>> {
    let mut at = end + quotes(&bytes[end..]);
    match bytes.get(at) {
        Some(b'=' | b':') => at += 1,
        Some(b' ') if flag => at += 1,
        _ => return None,
    }
    // `"token": "…"`, but not `token: a sentence`.
    if at > end + 1 && bytes.get(at) == Some(&b' ') {
        at += 1;
    }
    at += quotes(&bytes[at..]);
    let length = until_space(&bytes[at..]);
    (length > 0).then_some(at..at + length)
}

/// Whether a value that only its place hints at is a secret: long enough, and no plain word or number.
fn looks_secret(value: &[u8]) -> bool {
    value.len() >= 6
        && value.iter().all(|byte| {
            shape_byte(*byte)
                || matches!(byte, b'.' | b'+' | b'/' | b'=' | b'~' | b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'*')
        })
        && value.iter().any(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'_'))
        && !value.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
        && worth_replacing(value)
}

/// The length of `Bearer ` and its like.
fn scheme(bytes: &[u8]) -> usize {
    ["bearer ", "basic ", "token ", "digest "]
        .iter()
        .find(|scheme| bytes.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme.as_bytes())))
        .map_or(0, |scheme| scheme.len())
}

fn worth_replacing(value: &[u8]) -> bool {
    !value.windows(9).any(|window| window == b"[redacted")
        && std::str::from_utf8(value).map_or(true, |value| !harmless(value))
}

/// Keeps JSON whole: cuts each span to the string it lies in and to whole escapes; drops what lies in none.
fn keep_json(bytes: &[u8], spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut contents: Vec<Range<usize>> = Vec::new();
    let mut escapes: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'"' {
            at += 1;
            continue;
        }
        let start = at + 1;
        at = start;
        while at < bytes.len() && bytes[at] != b'"' {
            if bytes[at] == b'\\' {
                let length = if bytes.get(at + 1) == Some(&b'u') { 6 } else { 2 };
                escapes.push(at..at + length);
                at += length;
            } else {
                at += 1;
            }
        }
        contents.push(start..at);
        at += 1;
    }
    let whole = |position: usize| -> Option<&Range<usize>> {
        let index = escapes.partition_point(|escape| escape.end <= position);
        escapes.get(index).filter(|escape| escape.start < position)
    };
    let mut kept = Vec::with_capacity(spans.len());
    for span in spans {
        let index = contents.partition_point(|content| content.end < span.start);
        let Some(content) = contents.get(index).filter(|content| content.start <= span.start) else { continue };
        let (mut start, mut end) = (span.start, span.end.min(content.end));
        if let Some(escape) = whole(start) {
            start = escape.start;
        }
        if let Some(escape) = whole(end) {
            end = escape.end;
        }
        if start < end {
            kept.push(start..end);
        }
    }
    kept.sort_by_key(|span| (span.start, span.end));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names() -> SecretNames {
        SecretNames {
            flags: vec!["--api-key".into()],
            env: vec!["ENGINE_API_KEY".into()],
            keys: vec!["api-key".into()],
        }
    }

    fn list(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    #[test]
    fn a_key_given_as_a_flag_goes_everywhere_as_a_token_only() {
        let mut redactor = Redactor::new(names());
        redactor.learn_argv(&list(&["server", "--api-key", "k1,k2", "-m", "x"]));
        let text = redactor.text("key k1 task1 blk1 k1x \"k1\" k2. ****k1 k1,k2 a=k1\u{1b}[32mk1\u{1b}[0m \\nk1 %20k2");
        assert!(!text.contains("\"k1\"") && !text.contains("k2"), "{text}");
        assert!(text.contains("task1 blk1 k1x"), "{text}");
        assert!(text.ends_with("[32m[redacted]\u{1b}[0m \\n[redacted] %20[redacted]"), "{text:?}");
        assert_eq!(
            redactor.argv(&list(&["server", "--api-key=k1", "--api-key", "on", "--metrics"])),
            list(&["server", "--api-key=[redacted]", "--api-key", "[redacted]", "--metrics"])
        );
    }

    #[test]
    fn misspelt_and_foreign_flags_hide_their_values_too() {
        let redactor = Redactor::new(names());
        for flag in
            ["--hf-tokenn", "--hftoken", "--api-key-x", "--token", "--key", "--auth-key", "--bearer", "--my-secret"]
        {
            assert_eq!(redactor.argv(&list(&["x", flag, "value-1"])), ["x", flag, MARK], "{flag}");
        }
        for flag in ["--api-key-file", "--tokenizer-path", "--max-tokens", "--cache-type-k", "--monkey-business"] {
            assert_eq!(redactor.argv(&list(&["x", flag, "value-1"])), ["x", flag, "value-1"], "{flag}");
        }
    }

    #[test]
    fn words_that_name_a_secret_hide_what_looks_like_one() {
        let redactor = Redactor::new(names());
        for text in [
            "token=abc-12345",
            "login secret=abc-12345 done",
            "{\"token\":\"abc-12345\"}",
            "GET /x?token=abc-12345&y=1",
            "run --token abc-12345",
            "Ignoring invalid environment assignment 'export MYTOKEN=abc-12345'",
            "DB_PASS=abc-12345",
        ] {
            let shown = redactor.text(text);
            assert!(!shown.contains("abc-12345") && shown.contains(MARK), "{shown}");
        }
        for text in [
            "n_tokens=1234567",
            "bos_token=<s-1-abcdef>",
            "token: 151643 of the vocabulary",
            "token=151643",
            "CACHE_KEYS_TOTAL 1234",
        ] {
            assert_eq!(redactor.text(text), text);
        }
    }

    #[test]
    fn environment_names_decide() {
        let mut redactor = Redactor::new(names());
        let variables: Vec<(String, String)> = [
            ("ENGINE_API_KEY", "abc"),
            ("HF_TOKEN", "quiet-river"),
            ("MY_DB_PASSWORD", "hunter22"),
            ("MAX_TOKENS", "4096"),
            ("TOKENIZERS_PARALLELISM", "false"),
            ("SSL_KEY_FILE", "/etc/key.pem"),
            ("HTTP_PROXY", "http://bob:pw9@proxy:3128"),
        ]
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
        redactor.learn_environ(&variables);
        let text = redactor.text("abc quiet-river hunter22 4096 false /etc/key.pem pw9 http://bob:zz@h/");
        assert_eq!(text, "[redacted] [redacted] [redacted] 4096 false /etc/key.pem [redacted] http://[redacted]@h/");
        assert_eq!(redactor.variable("HF_TOKEN", "x"), MARK);
        assert_eq!(redactor.variable("MAX_TOKENS", "4096"), "4096");
        assert_eq!(redactor.variable("SCALE_PER_TOKEN", "true"), "true");
        assert_eq!(redactor.variable("ENGINE_API_KEY", "true"), MARK);
    }

    #[test]
    fn configuration_files_are_learned_and_redacted() {
        let mut redactor = Redactor::new(names());
        let file = b"[*]\napi-key = sesame-1 ; mine\nctx-size = 768\nserved:\n  api_key:\n    - one1\n    - \"two2\"\n";
        redactor.learn_artifact("config.ini", file);
        let out = String::from_utf8(redactor.bytes("config.ini", file)).unwrap();
        assert_eq!(
            out,
            "[*]\napi-key = [redacted]\nctx-size = 768\nserved:\n  api_key:\n    - [redacted]\n    - \"[redacted]\"\n"
        );
        assert_eq!(redactor.text("got sesame-1"), "got [redacted]");
    }

    #[test]
    fn generic_shapes_in_logs() {
        let redactor = Redactor::new(names());
        for (text, wanted) in [
            ("Authorization: Bearer abc", "Authorization: Bearer [redacted]"),
            ("authorization: Basic dXNlcjpwYXNz\n", "authorization: Basic [redacted]\n"),
            ("use hf_abcdefgh12345678ijkl now", "use [redacted] now"),
            ("OPENAI=sk-abcdefghij1234567890", "OPENAI=[redacted]"),
            ("task-abcdefghij1234567890", "task-abcdefghij1234567890"),
            ("api_key='zz', host='h'", "api_key='[redacted]', host='h'"),
            ("api_key=['z1', 'z2'], x", "api_key=['[redacted]', '[redacted]'], x"),
            ("api_key=None, --api-key-file /x", "api_key=None, --api-key-file /x"),
            ("srv init: api_keys: ****z1", "srv init: api_keys: [redacted]"),
            ("\"bos_token\": \"<s>\", \"cache_key\": \"v\"", "\"bos_token\": \"<s>\", \"cache_key\": \"v\""),
            ("run --api-key z1 --metrics", "run --api-key [redacted] --metrics"),
            ("{'argv': ['--api-key', 'z1', '-c']}", "{'argv': ['--api-key', '[redacted]', '-c']}"),
            ("bearer token required", "bearer token required"),
            ("ENGINE_API_KEY=z1 x", "ENGINE_API_KEY=[redacted] x"),
        ] {
            assert_eq!(redactor.text(text), wanted);
        }
    }

    #[test]
    fn json_stays_json() {
        let mut redactor = Redactor::new(names());
        redactor.learn(["1234", "n9", "a\"b", "sé1"]);
        let body = br#"{"n_ctx":1234,"a":"1234 \n9 n9 a\"b s\u00e91","api_key":"zz","api_keys":["q1",
            "q2"],"api_key":77,"log":"x \"api_key\": \"inner\" y"}"#;
        let out = redactor.bytes("props.json", body);
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["n_ctx"], 1234);
        // The escape before `9` reads like the key `n9`: too much is better than too little.
        assert_eq!(value["a"], "[redacted] [redacted] [redacted] [redacted] [redacted]");
        assert_eq!(value["api_keys"][0], MARK);
        assert_eq!(value["api_keys"][1], MARK);
        assert_eq!(value["log"], "x \"api_key\": \"[redacted]\" y");
    }

    #[test]
    fn arguments_in_json_are_learned_from_by_name() {
        let mut redactor = Redactor::new(names());
        let meta = b"{\n \"argv\": [\n  \"server\",\n  \"--api-key\",\n  \"k1\"\n ],\n \"env\": {\"ENGINE_API_KEY\": \"e1\"}\n}";
        redactor.learn_artifact("meta.json", meta);
        redactor.learn_artifact("proc_environ_x.json", b"[\"ENGINE_API_KEY=e2\"]");
        let out = String::from_utf8(redactor.bytes("meta.json", meta)).unwrap();
        assert!(!out.contains("k1") && !out.contains("e1"), "{out}");
        assert_eq!(redactor.text("k1 e1 e2 e3"), "[redacted] [redacted] [redacted] e3");
        assert!(!format!("{redactor:?}").contains("k1"));
    }

    #[test]
    fn bytes_that_are_not_text_pass_through() {
        let mut redactor = Redactor::new(names());
        redactor.learn(["k1"]);
        assert_eq!(redactor.bytes("log.txt", b"\xff\xfek1\xff\x00"), b"\xff\xfe[redacted]\xff\x00");
    }

    #[test]
    fn a_large_log_is_linear() {
        let mut redactor = Redactor::new(names());
        redactor.learn(["k1", "aaaaaaaaaaaaaaaa"]);
        for unit in [
            &b"api_key:"[..],
            b"eyJ-",
            b"eyJ",
            b"api_key:x[redacted",
            b"api_key:'x\\n",
            b"api_key=abcdefgh,",
            &b"api_key=\"\\"[..],
            b"://",
            b"a",
            b"bearer ",
            b"authorization: ",
            b"api_keys:[\"x\", ",
            b"\x1b[1;1;1",
        ] {
            let log = unit.repeat((4 << 20) / unit.len());
            let begun = std::time::Instant::now();
            redactor.learn_artifact("log.txt", &log);
            let _ = redactor.bytes("log.txt", &log);
            assert!(begun.elapsed().as_secs() < 20, "{:?}", String::from_utf8_lossy(unit));
        }
    }

    proptest! {
        #[test]
        fn no_secret_token_survives(
            secret in "[a-zA-Z0-9]{2,20}",
            around in proptest::collection::vec("[ -~\\n]{0,12}", 1..8),
        ) {
            prop_assume!(!harmless(&secret) && !MARK.contains(&secret));
            let mut redactor = Redactor::new(names());
            redactor.learn([secret.as_str()]);
            let text = around.join(&format!(" {secret} "));
            let out = redactor.text(&text);
            let hit = out.split(|c: char| !c.is_ascii_alphanumeric()).any(|token| token == secret);
            prop_assert!(!hit, "{out}");
            prop_assert_eq!(redactor.text(&out), out.clone());
        }

        #[test]
        fn text_without_secrets_is_unchanged(text in "[a-z0-9 .,;_\\n-]{0,200}", secret in "[A-Z][A-Z0-9]{3,20}") {
            let mut redactor = Redactor::new(names());
            redactor.learn([secret.as_str()]);
            prop_assume!(!text.contains("sk-") && !text.contains("--api-key") && !text.contains("bearer"));
            prop_assert_eq!(redactor.text(&text), text);
        }

        #[test]
        fn json_remains_valid(secret in "\\PC{2,8}", text in "\\PC{0,40}", number in any::<i64>()) {
            let mut redactor = Redactor::new(names());
            redactor.learn([secret.as_str()]);
            let body = serde_json::json!({"a": format!("{text} {secret} {text}"), secret.clone(): number, "api_key": text});
            let out = redactor.bytes("a.json", body.to_string().as_bytes());
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok(), "{}", String::from_utf8_lossy(&out));
        }

        #[test]
        fn any_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut redactor = Redactor::new(names());
            redactor.learn_artifact("config.ini", &bytes);
            redactor.learn_artifact("meta.json", &bytes);
            let _ = redactor.bytes("x.json", &bytes);
        }
    }
}
