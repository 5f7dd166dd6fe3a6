//! What of a unit may be kept.
//!
//! Unit files, environment files and scripts hold whatever their author needed: keys under odd names, credentials,
//! comments. So nothing of them is kept because it is there; what is kept is what was chosen: the commands, the
//! variables an engine reads or a command uses, and keys that say how the service is run. Everything is written anew,
//! each thing on the line where it stands in the file, so that a place in the kept text is a place in the file.

use crate::redact::{MARK, Redactor};
use crate::seal::sha256;
use crate::systemd::Unit;
use crate::witness::process::wanted;
use ascertain_model::service::{FileEntry, FileText, ManagerState, NOT_KEPT, Script, UnitFiles};
use ascertain_unit::collected::Resolved;
use ascertain_unit::file::{self, Assignment, What};
use ascertain_unit::layers::{self, Layer};
use ascertain_unit::specifiers::Context;
use ascertain_unit::unit::{Content, Environment, joined};
use ascertain_unit::words::{self, Command, quote};
use ascertain_unit::wrapper::{self, Change, Known, Seen};
use serde_json::Value;
use std::collections::BTreeSet;

/// Keys of unit files that are kept with their values: they say how the service is run and hold no secrets.
const KEYS: &[&str] = &[
    "Alias",
    "DynamicUser",
    "EnvironmentFile",
    "ExecSearchPath",
    "Group",
    "LogLevelMax",
    "LogNamespace",
    "LogRateLimitBurst",
    "LogRateLimitIntervalSec",
    "PassEnvironment",
    "RemainAfterExit",
    "Restart",
    "RestartSec",
    "RootDirectory",
    "RuntimeDirectory",
    "StandardError",
    "StandardInput",
    "StandardOutput",
    "SyslogIdentifier",
    "SyslogLevelPrefix",
    "Type",
    "UnsetEnvironment",
    "User",
    "WorkingDirectory",
];

/// What is kept, and what is known to be secret.
pub struct Scrub<'a> {
    redactor: &'a Redactor,
    /// Variables that an engine reads: names, or prefixes that end in `*`.
    wanted: &'a [String],
    /// Variables that the commands use.
    used: BTreeSet<String>,
    context: Context,
    /// Makes the marks of values that are not kept: never stored, so that nobody can try values against them.
    salt: Option<[u8; 32]>,
    /// What the wrappers may need.
    known: Known,
}

/// Learns the secrets of a unit: what its commands would give to a process is looked at after variables are replaced,
/// lines joined and wrappers seen through.
pub fn learn(redactor: &mut Redactor, unit: &Unit) {
    let Some(resolved) = unit.resolved() else { return };
    let environment = resolved.unit.value.process_environment(&resolved.host);
    let mut variables: Vec<(String, String)> = environment
        .variables
        .iter()
        .filter_map(|(name, delivered)| Some((name.clone(), delivered.value.known()?.to_owned())))
        .collect();
    for before in &resolved.unit.value.environment_before {
        variables.push((before.0.clone(), before.1.value.clone()));
    }
    // Also commands that another has replaced, or a file that does not count any more.
    let known = layers::known(&environment, &unit.files.scripts);
    for file in &resolved.unit.value.files {
        for assignment in file.assignments.iter().filter(|assignment| assignment.key == "ExecStart") {
            for command in words::exec(&assignment.value, &resolved.unit.value.context).commands {
                let words: Vec<String> = command.argv.iter().map(|word| word.text.shown().to_owned()).collect();
                redactor.learn_argv(&words);
                if let Seen::Inner(inner) = wrapper::see_through(&words, &known) {
                    redactor.learn_argv(&inner.argv.iter().map(|word| word.text.clone()).collect::<Vec<_>>());
                }
            }
        }
    }
    for layer in <[Layer; 2]>::from(unit.layers_of(&resolved)) {
        redactor.learn_argv(&layer.outer);
        redactor.learn_argv(&words_of(&layer));
        variables.extend(layer.environment.iter().map(|(name, value, _)| (name.clone(), value.clone())));
    }
    redactor.learn_environ(&variables);
}

fn words_of(layer: &Layer) -> Vec<String> {
    layer.argv.iter().map(|(word, _)| word.clone()).collect()
}

/// The unit as it may be kept. `environ` is what its process was given.
pub fn scrub(
    unit: &Unit,
    redactor: &Redactor,
    wanted: &[String],
    environ: &[(String, String)],
) -> (UnitFiles, ManagerState) {
    let empty = (UnitFiles { name: unit.name().to_owned(), ..UnitFiles::default() }, ManagerState::default());
    let Some(resolved) = unit.resolved() else { return empty };
    let environment = resolved.unit.value.process_environment(&resolved.host);
    let layers = <[Layer; 2]>::from(unit.layers_of(&resolved));
    let mut scrub = Scrub {
        redactor,
        wanted,
        used: BTreeSet::new(),
        context: resolved.unit.value.context.clone(),
        salt: salt(),
        known: layers::known(&environment, &unit.files.scripts),
    };
    scrub.find_used(unit, &resolved, &environment, &layers);
    let mut files = scrub.files(unit, &resolved);
    // What the manager gives every service is none of this unit's.
    let named: BTreeSet<&String> = layers
        .iter()
        .flat_map(|layer| &layer.environment)
        .filter(|(.., place)| *place.file != *layers::OF_ALL)
        .map(|(name, ..)| name)
        .collect();
    // What nothing gives it now it was given by something that has changed since.
    let given: BTreeSet<&String> = environment.variables.keys().collect();
    let is_logged_in = resolved.unit.value.text("PAMName").is_some();
    files.delivered = environ
        .iter()
        .filter(|(name, _)| !scrub.keeps(name))
        .filter(|(name, _)| named.contains(name) || !(is_logged_in || given.contains(name) || is_usual(name)))
        .map(|(name, value)| (name.clone(), scrub.unkept(name, value)))
        .collect();
    let state = scrub.state(&unit.state);
    let kept = Unit { state, files };
    let flaw = (!scrub.says_the_same(&layers, &kept))
        .then(|| "what was kept of the unit's files does not come to the same as they do".to_owned());
    let opaque = layers.iter().find_map(|layer| layer.unknown.first()).map(|why| redactor.text(why));
    (UnitFiles { flaw, opaque, ..kept.files }, kept.state)
}

impl Scrub<'_> {
    /// Whether what is kept asks for the same, but for its secrets.
    fn says_the_same(&self, before: &[Layer; 2], kept: &Unit) -> bool {
        let own = |layer: &Layer| -> Vec<(String, String)> {
            let own = layer.environment.iter().filter(|(name, ..)| self.keeps(name));
            own.map(|(name, value, _)| (name.clone(), self.redactor.variable(name, value))).collect()
        };
        let Some(after) = kept.layers().map(<[Layer; 2]>::from) else { return false };
        before.iter().zip(&after).all(|(before, after)| {
            // Of what is not all known nothing is concluded.
            !after.unknown.is_empty()
                || before.unknown.is_empty()
                    && self.redactor.argv(&words_of(before)) == words_of(after)
                    && own(before) == own(after)
        })
    }

    fn keeps(&self, name: &str) -> bool {
        self.used.contains(name) || wanted(self.wanted, name)
    }

    /// Variables whose value becomes a part of the command line that is kept anyway.
    fn find_used(&mut self, unit: &Unit, resolved: &Resolved, values: &Environment, layers: &[Layer; 2]) {
        let mut commands: Vec<Vec<String>> = resolved
            .unit
            .value
            .start()
            .iter()
            .map(|exec| exec.command.argv.iter().map(|word| word.text.shown().to_owned()).collect())
            .collect();
        for name in ["ExecStart", "ExecStartEx"] {
            let list = unit.state.properties.get(name).and_then(Value::as_array);
            commands.extend(list.into_iter().flatten().filter_map(|command| strings(command.get(1)?)));
        }
        for command in commands {
            for word in self.redactor.argv(&command) {
                for name in names_in(&word) {
                    let mut given = layers
                        .iter()
                        .flat_map(|layer| layer.environment.iter())
                        .filter(|(known, ..)| *known == name)
                        .map(|(_, value, _)| value.as_str())
                        .chain(values.variables.get(&name).and_then(|delivered| delivered.value.known()));
                    let shown = given.all(|value| {
                        // Of what is quoted in it, the words.
                        let plain = value.replace(['"', '\'', '\\'], " ");
                        let parts = plain.split_ascii_whitespace();
                        let known = |part: &str| {
                            layers
                                .iter()
                                .flat_map(|layer| layer.argv.iter())
                                .any(|(argument, _)| argument.contains(part))
                        };
                        value.is_empty()
                            || layers.iter().any(|layer| !layer.argv.is_empty()) && parts.clone().all(known)
                    });
                    if shown {
                        self.used.insert(name);
                    }
                }
            }
        }
    }

    /// What is kept of the value of a variable.
    fn value(&self, name: &str, value: &str) -> String {
        if self.keeps(name) { self.redactor.variable(name, value) } else { self.unkept(name, value) }
    }

    /// The mark of a value that is not kept.
    fn unkept(&self, name: &str, value: &str) -> String {
        let Some(salt) = &self.salt else { return NOT_KEPT.to_owned() };
        let whole = [&salt[..], name.as_bytes(), b"=", value.as_bytes()].concat();
        format!("[not-kept:{}]", &sha256(&whole)[..8])
    }

    fn files(&self, unit: &Unit, resolved: &Resolved) -> UnitFiles {
        let mut files = unit.files.clone();
        let environment_files: BTreeSet<String> = environment_files(unit, resolved);
        for (path, entry) in &mut files.entries {
            let FileEntry::Text(text) = entry else {
                if let FileEntry::Link(target) = entry {
                    *target = self.redactor.text(target);
                }
                continue;
            };
            let is_environment = environment_files.contains(path);
            let kept =
                if is_environment { self.environment_file(&text.text) } else { self.unit_file(path, &text.text) };
            *entry = match kept {
                Ok(kept) => FileEntry::Text(FileText { text: kept, changed_ms: text.changed_ms }),
                Err(why) => FileEntry::Unreadable(why),
            };
        }
        for (path, script) in &mut files.scripts {
            *script = self.script(path, script);
        }
        files
    }

    fn state(&self, state: &ManagerState) -> ManagerState {
        let mut state = state.clone();
        if let Some(environment) = &mut state.environment {
            environment.retain_mut(|item| self.item(item));
        }
        for (name, value) in &mut state.properties {
            match name.as_str() {
                "ExecStart" | "ExecStartEx" => self.commands(value),
                "Environment" => self.environment(value),
                _ => self.plain(value),
            }
        }
        state
    }

    /// `NAME=VALUE`, changed into what is kept of it. `false`: nothing.
    fn item(&self, item: &mut String) -> bool {
        let Some((name, value)) = item.split_once('=') else { return false };
        let kept = self.value(name, value);
        *item = format!("{name}={kept}");
        true
    }

    fn commands(&self, value: &mut Value) {
        match value {
            Value::Array(list) => {
                for command in list {
                    let kept = command.get(1).and_then(strings).map(|words| self.argv(&words));
                    if let (Some(kept), Some(field)) = (kept, command.get_mut(1)) {
                        *field = Value::from(kept);
                    }
                }
            }
            Value::String(text) => {
                // Printed without quotes: where a word ends is not known, so nothing but whole text can be compared.
                let printed: Vec<String> = text.split(' ').map(str::to_owned).collect();
                *text = self.redactor.argv(&printed).join(" ");
            }
            _ => *value = Value::Null,
        }
    }

    fn environment(&self, value: &mut Value) {
        let keep = |items: Vec<String>| -> Vec<String> {
            items.into_iter().filter_map(|mut item| self.item(&mut item).then_some(item)).collect()
        };
        match value {
            Value::Array(_) => *value = Value::from(keep(strings(value).unwrap_or_default())),
            Value::String(text) => {
                let kept = keep(ascertain_unit::show::words(text));
                *text = kept.iter().map(|item| quote(item)).collect::<Vec<_>>().join(" ");
            }
            _ => *value = Value::Null,
        }
    }

    fn plain(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redactor.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.plain(item)),
            _ => {}
        }
    }

    /// The words of a command: values of secret flags go, and so do the values of variables that a wrapper sets for
    /// something else than the engine. A shell's command that then no longer comes to the same is not kept at all.
    fn argv(&self, words: &[String]) -> Vec<String> {
        let mut kept = self.redactor.argv(words);
        let before = wrapper::see_through(words, &self.known);
        let given: Vec<&str> = match &before {
            Seen::Inner(inner) => inner.argv.iter().map(|word| word.text.as_str()).collect(),
            Seen::Opaque { .. } => Vec::new(),
        };
        let expected = self.redactor.argv(&given.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        for (name, value) in set_in(words, &before) {
            let used = !value.is_empty() && expected.iter().any(|word| word.contains(&value));
            if (self.keeps(&name) || used) && self.redactor.variable(&name, &value) == value {
                continue;
            }
            for (word, original) in kept.iter_mut().zip(words) {
                if original.starts_with(&format!("{name}=")) && !original.contains([' ', ';', '\n', '\t']) {
                    *word = format!("{name}={}", self.unkept(&name, &value));
                    continue;
                }
                for quote in ["", "'", "\""] {
                    *word = word.replace(
                        &format!("{name}={quote}{value}{quote}"),
                        &format!("{name}='{}'", self.unkept(&name, &value)),
                    );
                }
            }
        }
        let same = match (&before, wrapper::see_through(&kept, &self.known)) {
            (Seen::Inner(_), Seen::Inner(inner)) => inner.argv.iter().map(|word| &word.text).eq(expected.iter()),
            (Seen::Opaque { .. }, Seen::Opaque { .. }) => true,
            _ => false,
        };
        // What could not be seen through may say anything in its own language.
        if !same || matches!(before, Seen::Opaque { .. }) {
            for word in kept.iter_mut().filter(|word| word.contains([' ', ';', '\n', '\t'])) {
                *word = MARK.to_owned();
            }
        }
        kept
    }

    fn unit_file(&self, path: &str, text: &str) -> Result<String, String> {
        let parsed = file::parse(path, text.as_bytes()).value;
        let mut lines = Lines(vec![None; parsed.lines.len()]);
        for (number, line) in parsed.lines.iter().enumerate() {
            match &line.what {
                What::Header(_) => lines.put(number, text[line.range.clone()].trim()),
                What::Blank => lines.put(number, ""),
                // A header that is none ends the reading of the file, and that must not get lost.
                What::Ignored if text[line.range.clone()].trim_start().starts_with('[') => lines.put(number, "["),
                What::Comment | What::Assignment(_) | What::Ignored | What::Unread => {}
            }
        }
        for assignment in &parsed.assignments {
            for (offset, line) in self.assignment(assignment).into_iter().enumerate() {
                lines.put(assignment.span.first.saturating_sub(1) + offset, &line);
            }
        }
        Ok(lines.text())
    }

    /// An assignment as it is kept, on as many lines as it has, or fewer.
    fn assignment(&self, assignment: &Assignment) -> Vec<String> {
        let key = &assignment.key;
        if assignment.is_reset() {
            return vec![format!("{key}=")];
        }
        match key.as_str() {
            "ExecStart" => self.exec(assignment),
            // That there is one matters (`Type=` depends on it), what it does not.
            key if key.starts_with("Exec") && key != "ExecSearchPath" => {
                // Also that systemd refuses it: then it does not load the unit.
                let read = words::exec(&assignment.value, &self.context);
                let program = match (read.fatal, read.commands.is_empty()) {
                    (true, _) => "/bin/true/",
                    (false, true) => "-/bin/true/",
                    (false, false) => "/bin/true",
                };
                vec![format!("{key}={program} \"{NOT_KEPT}\"")]
            }
            "Environment" => {
                let (words, issues) = words::words(&assignment.value, &self.context);
                let mut kept: Vec<String> = words
                    .iter()
                    .filter_map(|word| {
                        let mut item = word.text.shown().to_owned();
                        self.item(&mut item).then(|| quote(&item.replace('%', "%%")))
                    })
                    .collect();
                if !issues.is_empty() {
                    // Reading ends here, as it does in the original.
                    kept.push("\"".to_owned());
                }
                vec![format!("{key}={}", kept.join(" "))]
            }
            key if KEYS.contains(&key) => vec![format!("{key}={}", self.redactor.text(&assignment.value))],
            key => vec![format!("{key}={NOT_KEPT}")],
        }
    }

    fn exec(&self, assignment: &Assignment) -> Vec<String> {
        let read = words::exec(&assignment.value, &self.context);
        if read.fatal || read.commands.is_empty() {
            // Systemd does not run it; why it does not must remain to be seen, so it is kept as one line of text.
            let mut kept = self.redactor.text(&assignment.value);
            let again = words::exec(&kept, &self.context);
            if !again.commands.is_empty() && !again.fatal {
                // What was wrong with it is gone with a secret: an open quote is wrong too.
                kept.push_str(" \"");
            }
            return vec![format!("ExecStart={kept}")];
        }
        let mut out = vec!["ExecStart=".to_owned()];
        for (index, command) in read.commands.iter().enumerate() {
            let words = self.argv(&command.argv.iter().map(|word| word.text.shown().to_owned()).collect::<Vec<_>>());
            let mut written: Vec<(String, usize)> = Vec::new();
            if index > 0 {
                written.push((";".to_owned(), command.range.start));
            }
            let program = command.path.shown().replace('%', "%%");
            written.push((format!("{}{}", marks(command), quote(&program)), command.range.start));
            let rest = words.iter().zip(&command.argv).skip(usize::from(!command.prefixes.argv0));
            written.extend(rest.map(|(word, original)| (quote(&word.replace('%', "%%")), original.range.start)));
            for (word, at) in written {
                // At the beginning of a line a semicolon makes a comment of it.
                let number = if word == ";" { 0 } else { assignment.line_of(at) };
                while out.len() <= number {
                    if let Some(last) = out.last_mut() {
                        last.push_str(" \\");
                    }
                    out.push(String::new());
                }
                if let Some(last) = out.last_mut() {
                    if !last.is_empty() && last != "ExecStart=" {
                        last.push(' ');
                    }
                    last.push_str(&word);
                }
            }
        }
        out
    }

    fn environment_file(&self, text: &str) -> Result<String, String> {
        let read = words::env_file(text.as_bytes(), self.context.version);
        if read.fatal {
            return Err("systemd cannot read it".to_owned());
        }
        let mut lines = Lines(vec![None; text.split_inclusive('\n').count()]);
        for pair in &read.pairs {
            let kept = self.value(&pair.name, &pair.value);
            let mut quoted = String::from("\"");
            for c in kept.chars() {
                if matches!(c, '"' | '\\' | '$' | '`') {
                    quoted.push('\\');
                }
                quoted.push(c);
            }
            quoted.push('"');
            for (offset, line) in format!("{}={quoted}", pair.name).split('\n').enumerate() {
                lines.put(pair.lines.0.saturating_sub(1) + offset, line);
            }
        }
        for issue in &read.issues {
            // `export NAME=…` is a fault worth telling; what it was to export is not.
            let number = text.as_bytes()[..issue.range.start.min(text.len())].iter().filter(|b| **b == b'\n').count();
            let original = text.get(issue.range.clone()).unwrap_or("");
            if let Some(name) = original.split('=').next().and_then(|left| left.strip_prefix("export "))
                && words::is_name(name.trim())
            {
                lines.put(number, &format!("export {}={NOT_KEPT}", name.trim()));
            }
        }
        Ok(lines.text())
    }

    /// A script as what it comes to: the variables it sets and the command it ends in.
    fn script(&self, path: &str, script: &Script) -> Script {
        let opaque = |why: String| Script { text: None, opaque: Some(why), ..script.clone() };
        let Some(text) = &script.text else { return script.clone() };
        // Whether it hands its arguments on, and does nothing else with them, shows when it is given some.
        const ARGUMENTS: [&[&str]; 4] = [&[], &["\u{1}"], &["\u{1}", "\u{2}", "\u{3}"], &["A=\u{1}", "-\u{2}"]];
        let mut seen = Vec::new();
        for arguments in ARGUMENTS {
            let plain = [script.interpreter.as_str(), path];
            let argv: Vec<String> = plain.iter().chain(arguments).map(|word| (*word).to_owned()).collect();
            match wrapper::see_through(&argv, &self.known) {
                Seen::Inner(inner) => seen.push(inner),
                Seen::Opaque { why, .. } => return opaque(self.redactor.text(&why)),
            }
        }
        let inner = seen.remove(0);
        let words: Vec<String> = inner.argv.iter().map(|word| word.text.clone()).collect();
        let comes_to = |hands_on: bool| {
            seen.iter().zip(&ARGUMENTS[1..]).all(|(more, arguments)| {
                let arguments = if hands_on { arguments } else { &ARGUMENTS[0] };
                let expected = words.iter().map(String::as_str).chain(arguments.iter().copied());
                more.argv.iter().map(|word| word.text.as_str()).eq(expected)
                    && (&more.environment, &more.layers) == (&inner.environment, &inner.layers)
            })
        };
        let arguments = if comes_to(false) {
            ""
        } else if comes_to(true) {
            " \"$@\""
        } else {
            return opaque("what it does with its arguments cannot be told".to_owned());
        };
        if inner.container.is_some() {
            return opaque("it starts a container".to_owned());
        }
        let mut out = String::new();
        for change in &inner.environment {
            match change {
                Change::Set(name, Some(value)) => {
                    let kept = self.value(name, value);
                    out.push_str(&format!("export {name}={}\n", single(&kept)));
                }
                Change::Unset(name) => out.push_str(&format!("unset {name}\n")),
                _ => return opaque("what it does to the environment cannot be told".to_owned()),
            }
        }
        let stays = inner.layers.iter().any(|layer| layer.replaces != Some(true));
        let kept: Vec<String> = self.redactor.argv(&words).iter().map(|word| single(word)).collect();
        let exec = if stays { "" } else { "exec " };
        out.push_str(&format!("{exec}{}{arguments}\n", kept.join(" ")));
        let reads = names_in(text).into_iter().any(|name| words::is_name(&name));
        Script { text: Some(out), reads_environment: reads, ..script.clone() }
    }
}

/// Variables that a command sets: by a wrapper for what it starts, or by a shell for itself.
fn set_in(words: &[String], seen: &Seen) -> Vec<(String, String)> {
    let mut list: Vec<(String, String)> = Vec::new();
    if let Seen::Inner(inner) = seen {
        list.extend(inner.environment.iter().filter_map(|change| match change {
            Change::Set(name, Some(value)) => Some((name.clone(), value.clone())),
            _ => None,
        }));
    }
    let shells = words.iter().filter(|word| word.contains([' ', ';', '\n', '\t']));
    for part in shells.flat_map(|word| word.split([' ', ';', '\n', '\t', '&', '|', '('])) {
        if let Some((name, value)) = part.split_once('=').filter(|(name, _)| words::is_name(name)) {
            list.push((name.to_owned(), value.trim_matches(['"', '\'']).to_owned()));
        }
    }
    // The longest first: the value of one may begin like that of another.
    list.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    list.dedup();
    list
}

fn marks(command: &Command) -> String {
    let prefixes = command.prefixes;
    let mut out = String::new();
    for (set, mark) in [
        (prefixes.ignore_failure, "-"),
        (prefixes.argv0, "@"),
        (prefixes.no_variables, ":"),
        (prefixes.full_privileges, "+"),
        (prefixes.no_setuid, "!"),
        (prefixes.ambient, "!!"),
        (prefixes.shell, "|"),
    ] {
        if set {
            out.push_str(mark);
        }
    }
    out
}

/// Variables that systemd, a shell or a session sets by itself.
fn is_usual(name: &str) -> bool {
    const NAMES: [&str; 24] = [
        "CACHE_DIRECTORY",
        "CONFIGURATION_DIRECTORY",
        "CREDENTIALS_DIRECTORY",
        "HOME",
        "INVOCATION_ID",
        "JOURNAL_STREAM",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "LOGS_DIRECTORY",
        "MAINPID",
        "MANAGERPID",
        "MANAGERPIDFDID",
        "NOTIFY_SOCKET",
        "OLDPWD",
        "PATH",
        "PIDFILE",
        "PWD",
        "RUNTIME_DIRECTORY",
        "SHELL",
        "SHLVL",
        "STATE_DIRECTORY",
        "TERM",
        "USER",
    ];
    const BEGINNINGS: [&str; 10] = [
        "DBUS_",
        "LC_",
        "LISTEN_",
        "MEMORY_PRESSURE_",
        "MONITOR_",
        "REMOTE_",
        "SYSTEMD_",
        "TRIGGER_",
        "WATCHDOG_",
        "XDG_",
    ];
    name == "_" || NAMES.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

fn salt() -> Option<[u8; 32]> {
    let mut salt = [0; 32];
    let mut source = std::fs::File::open("/dev/urandom").ok()?;
    std::io::Read::read_exact(&mut source, &mut salt).ok()?;
    Some(salt)
}

/// A word as a shell reads it back.
fn single(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Names behind `$` and `${`.
fn names_in(text: &str) -> Vec<String> {
    text.match_indices('$')
        .filter_map(|(at, _)| {
            let rest = text[at + 1..].trim_start_matches('{');
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            words::is_name(&rest[..end]).then(|| rest[..end].to_owned())
        })
        .collect()
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

fn environment_files(unit: &Unit, resolved: &Resolved) -> BTreeSet<String> {
    let mut named: BTreeSet<String> = BTreeSet::new();
    // Whatever is no unit file and no drop-in was read because something named it as an environment file.
    let is_named_so = |path: &str| path.ends_with(".conf") && path.contains(".d/") || unit_suffix(path);
    let mut units: BTreeSet<String> = unit.files.entries.keys().filter(|path| is_named_so(path)).cloned().collect();
    // What one of them links to is one too, whatever it is called.
    let mut todo: Vec<String> = units.iter().cloned().collect();
    while let Some(path) = todo.pop() {
        if let Some(FileEntry::Link(target)) = unit.files.entries.get(&path) {
            let target = if target.starts_with('/') { target.clone() } else { joined(&path, target) };
            if units.insert(target.clone()) {
                todo.push(target);
            }
        }
    }
    named.extend(unit.files.entries.keys().filter(|path| !units.contains(*path)).cloned());
    let own: BTreeSet<String> = resolved.unit.value.paths().map(str::to_owned).collect();
    for file in &resolved.unit.value.environment_files {
        let matched = match &file.content {
            Content::Read(list) => list.iter().map(|(path, _)| path.clone()).collect(),
            _ => Vec::new(),
        };
        let paths = file.path.known().map(str::to_owned).into_iter().chain(matched);
        named.extend(paths.filter(|path| !own.contains(path)));
    }
    named
}

fn unit_suffix(path: &str) -> bool {
    let end = path.rsplit('.').next().unwrap_or("");
    ["service", "socket", "target", "timer", "path", "scope", "slice", "mount"].contains(&end)
}

/// Lines of a text that are filled in; the others are comments.
struct Lines(Vec<Option<String>>);

impl Lines {
    fn put(&mut self, number: usize, line: &str) {
        if number >= self.0.len() {
            self.0.resize(number + 1, None);
        }
        // A NUL ends a line too, and the line break that is put after it would make another.
        self.0[number] = Some(line.trim_end_matches(['\r', '\n', '\0']).to_owned());
    }

    fn text(self) -> String {
        let mut out = String::new();
        for line in self.0 {
            out.push_str(line.as_deref().unwrap_or("#"));
            out.push('\n');
        }
        out
    }
}
