//! What is written, what the manager has loaded, and what the process was given: where they part, and what mends it.
//!
//! `NeedDaemonReload` decides nothing alone. Systemd 252 leaves it at `no` for a drop-in in a new directory, a mere
//! `touch` sets it, and after a reload without a restart it is `no` again while the old process runs on. So contents
//! are compared.
//!
//! Texts of findings name variables and never their values: those are in [`Difference`], for a caller that redacts.

use crate::show::Show;
use crate::specifiers::Manager;
use crate::unit::{Content, Environment, Host, Source, Unit};
use crate::wrapper::{self, Change, Known, Seen};
use crate::{Kind, Span};
use ascertain_model::service::is_not_kept;
use std::collections::{BTreeMap, BTreeSet};

/// The process as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// `/proc/PID/cmdline`.
    pub argv: Vec<String>,
    /// `/proc/PID/environ`; `None` where it could not be read.
    pub environ: Option<BTreeMap<String, String>>,
    /// When it started, in microseconds since 1970.
    pub started: Option<u64>,
}

/// All that is compared.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// What is written.
    pub unit: &'a Unit,
    /// What it was resolved with.
    pub host: &'a Host,
    /// What is loaded.
    pub show: Option<&'a Show>,
    /// What was delivered: the unit's main process.
    pub process: Option<&'a Process>,
    /// When files were changed last, in microseconds since 1970.
    pub changed: &'a BTreeMap<String, u64>,
    /// Scripts that a wrapper may run.
    pub known: &'a Known,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// The unit is masked.
    Masked,
    /// Systemd refuses to load or start what is written.
    Refused,
    /// The manager holds something else than the files say.
    NotReloaded,
    /// Files were touched; what they say is loaded.
    Touched,
    /// The process was started from something else than is loaded.
    NotRestarted,
    /// The process belongs to another start of the unit.
    OtherInvocation,
    /// An environment file changed after the start, and the process has the old values.
    EnvironmentFileChanged,
    /// A drop-in, or a part of it, that systemd ignores.
    DropInIgnored,
    /// A variable is loaded, and the process does not have it or has it otherwise: something between dropped it.
    VariableDropped,
    /// Two drop-ins set the same thing.
    DropInsFight,
    /// A drop-in replaces what the unit says.
    Overridden,
    /// The service starts again and again.
    RestartLoop,
    /// There is no process.
    NotRunning,
    /// The process's words cannot be compared.
    NotComparable,
}

impl What {
    /// A stable name.
    pub fn name(self) -> &'static str {
        match self {
            What::Masked => "masked",
            What::Refused => "refused",
            What::NotReloaded => "not_reloaded",
            What::Touched => "touched",
            What::NotRestarted => "not_restarted",
            What::OtherInvocation => "other_invocation",
            What::EnvironmentFileChanged => "environment_file_changed",
            What::DropInIgnored => "drop_in_ignored",
            What::VariableDropped => "variable_dropped",
            What::DropInsFight => "drop_ins_fight",
            What::Overridden => "overridden",
            What::RestartLoop => "restart_loop",
            What::NotRunning => "not_running",
            What::NotComparable => "not_comparable",
        }
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something to look at.
    Warning,
    /// Something is wrong.
    Error,
}

/// One thing on which two neighbours disagree. Values may be secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// `ExecStart`, `Environment HF_TOKEN`, `DropInPaths`.
    pub what: String,
    /// On the lower rung, as far as it is there.
    pub lower: Option<String>,
    /// On the higher rung, as far as it is there.
    pub higher: Option<String>,
    /// Where it is written.
    pub span: Option<Span>,
}

/// What was found, and what mends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub what: What,
    /// How bad it is.
    pub severity: Severity,
    /// One line a person understands.
    pub text: String,
    /// Commands that mend it, in order.
    pub remedy: Vec<String>,
    /// Where.
    pub places: Vec<Span>,
    /// In detail.
    pub differences: Vec<Difference>,
}

/// Compares what is written, loaded and delivered.
pub fn compare(facts: &Facts<'_>) -> Vec<Finding> {
    let mut out = Comparison { facts, findings: Vec::new() };
    out.written();
    if out.findings.iter().any(|finding| finding.what == What::Masked) {
        return out.findings;
    }
    let loaded = facts.show.map(|show| out.loaded(show));
    out.state();
    if let (Some(show), Some(process)) = (facts.show, facts.process) {
        out.delivered(show, process, loaded.unwrap_or_default());
    }
    out.findings
}

/// On what written and loaded differ.
#[derive(Default)]
struct Loaded {
    differences: Vec<Difference>,
}

impl Loaded {
    fn differs(&self, what: &str) -> bool {
        self.differences.iter().any(|difference| difference.what == what)
    }
}

struct Comparison<'a> {
    facts: &'a Facts<'a>,
    findings: Vec<Finding>,
}

impl Comparison<'_> {
    fn systemctl(&self, verb: &str) -> String {
        let option = self.facts.unit.context.manager.option();
        match verb {
            "daemon-reload" => format!("systemctl {option}daemon-reload"),
            verb => format!("systemctl {option}{verb} {}", crate::words::quote(&self.facts.unit.name.full())),
        }
    }

    fn push(&mut self, what: What, severity: Severity, text: String, remedy: Vec<String>, places: Vec<Span>) {
        self.findings.push(Finding { what, severity, text, remedy, places, differences: Vec::new() });
    }

    /// What can be said from the files alone.
    fn written(&mut self) {
        let unit = self.facts.unit;
        for problem in &unit.refused {
            let (what, remedy) = match problem.kind {
                Kind::Masked => (What::Masked, vec![self.systemctl("unmask")]),
                Kind::SeveralCommands => (What::Refused, vec![self.systemctl("edit"), self.systemctl("restart")]),
                _ => (What::Refused, vec![self.systemctl("cat")]),
            };
            self.push(what, Severity::Error, problem.text.clone(), remedy, vec![problem.span.clone()]);
        }
        for file in unit.files.iter().filter(|file| unit.dropins.iter().any(|path| **path == *file.path)) {
            let lost: Vec<&crate::file::Assignment> =
                file.assignments.iter().filter(|assignment| assignment.section.is_none()).collect();
            let Some(first) = lost.first() else { continue };
            let keys: Vec<&str> = lost.iter().map(|assignment| assignment.key.as_str()).collect();
            let text = format!(
                "{}: {} before any section header: systemd ignores it; the line [Service] is missing above",
                first.span,
                keys.join(", ")
            );
            let remedy = vec![
                format!("sed -i '{}i [Service]' {}", first.span.first, crate::words::quote(&file.path)),
                self.systemctl("daemon-reload"),
                self.systemctl("restart"),
            ];
            self.push(What::DropInIgnored, Severity::Error, text, remedy, vec![first.span.clone()]);
        }
        self.overridden();
    }

    fn is_dropin(&self, span: &Span) -> bool {
        self.facts.unit.dropins.iter().any(|path| **path == *span.file)
    }

    fn overridden(&mut self) {
        let unit = self.facts.unit;
        let mut list: Vec<(String, Span, Vec<Span>)> = Vec::new();
        let others = |before: &[crate::unit::Before], by: &Span| -> Vec<Span> {
            before.iter().map(|before| before.span.clone()).filter(|span| span.file != by.file).collect()
        };
        for (key, setting) in &unit.settings {
            list.push((format!("{key}="), setting.span.clone(), others(&setting.overridden, &setting.span)));
        }
        for variable in unit.environment.values() {
            let name = format!("the variable {}", variable.name);
            list.push((name, variable.span.clone(), others(&variable.overridden, &variable.span)));
        }
        let mut commands: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
        for (key, before) in &unit.exec_before {
            commands.entry(key).or_default().push(before.span.clone());
        }
        for (key, before) in commands {
            if let Some(now) = unit.exec.get(key).and_then(|list| list.last()) {
                let before = before.into_iter().filter(|span| span.file != now.span.file).collect();
                list.push((format!("{key}="), now.span.clone(), before));
            }
        }
        for (name, by, before) in list {
            if before.is_empty() {
                continue;
            }
            let fight = self.is_dropin(&by) && before.iter().any(|span| self.is_dropin(span));
            let places: Vec<String> = before.iter().map(Span::to_string).collect();
            let text = format!("{name} at {by} wins over {}", places.join(", "));
            let (what, severity) =
                if fight { (What::DropInsFight, Severity::Warning) } else { (What::Overridden, Severity::Info) };
            let spans = std::iter::once(by).chain(before).collect();
            self.push(what, severity, text, vec![self.systemctl("cat")], spans);
        }
    }

    fn loaded(&mut self, show: &Show) -> Loaded {
        let mut out = Loaded::default();
        let unit = self.facts.unit;
        let load = show.get("LoadState").unwrap_or("loaded");
        let reload = vec![self.systemctl("daemon-reload"), self.systemctl("restart")];
        if load == "masked" {
            let text = format!("{} is masked in the manager, and no longer on disk", unit.name.full());
            self.push(What::NotReloaded, Severity::Error, text, reload, Vec::new());
            return out;
        }
        if load == "not-found" && unit.fragment.is_some() {
            let text =
                format!("the manager does not know {}: its file is newer than the last reload", unit.name.full());
            self.push(What::NotReloaded, Severity::Error, text, reload, Vec::new());
            return out;
        }
        if load != "loaded" {
            return out;
        }
        self.differences(show, &mut out.differences);
        let flag = show.flag("NeedDaemonReload");
        if out.differences.is_empty() {
            if flag == Some(true) && unit.refused.is_empty() {
                let text = "NeedDaemonReload=yes, but what the files say is loaded: they were only touched";
                let remedy = vec![self.systemctl("daemon-reload")];
                self.push(What::Touched, Severity::Info, text.to_string(), remedy, Vec::new());
            }
            return out;
        }
        let mut names: Vec<&str> = out.differences.iter().map(|difference| difference.what.as_str()).collect();
        names.dedup();
        let note = match flag {
            Some(false) => " (NeedDaemonReload=no all the same)",
            _ => "",
        };
        let text = format!("the manager holds something else than the files say: {}{note}", names.join(", "));
        let places = out.differences.iter().filter_map(|difference| difference.span.clone()).collect();
        self.findings.push(Finding {
            what: What::NotReloaded,
            severity: Severity::Error,
            text,
            remedy: reload,
            places,
            differences: out.differences.clone(),
        });
        out
    }

    fn differences(&self, show: &Show, out: &mut Vec<Difference>) {
        let unit = self.facts.unit;
        let mut push = |what: &str, lower: Option<String>, higher: Option<String>, span: Option<Span>| {
            out.push(Difference { what: what.to_string(), lower, higher, span });
        };
        if let Some(path) = show.text("FragmentPath")
            && unit.fragment.as_deref().map(merged) != Some(merged(path))
            // Systemd 247 names the file a link points to.
            && unit.context.fragment.as_deref().map(merged) != Some(merged(path))
        {
            push("FragmentPath", unit.fragment.clone(), Some(path.to_string()), None);
        }
        if show.get("DropInPaths").is_some() {
            let paths = show.list("DropInPaths");
            let paths: Vec<String> = paths.iter().map(|path| merged(path)).collect();
            for path in unit.dropins.iter().filter(|path| !paths.contains(&merged(path))) {
                push("DropInPaths", Some(path.clone()), None, Some(Span::whole(path)));
            }
            for path in paths.iter().filter(|path| !unit.dropins.iter().any(|ours| merged(ours) == **path)) {
                push("DropInPaths", None, Some(path.clone()), None);
            }
        }
        if !unit.refused.is_empty() {
            return;
        }
        for key in ["ExecStartPre", "ExecStart", "ExecStartPost"] {
            if show.get(key).is_none() && show.get(&format!("{key}Ex")).is_none() && !unit.exec.contains_key(key) {
                continue;
            }
            let theirs = show.commands(key);
            let ours = unit.exec.get(key).map_or(&[][..], Vec::as_slice);
            // A collector that did not keep the words cannot have them compared.
            if ours.iter().any(|exec| exec.command.argv.iter().any(|word| word.text.known().is_some_and(is_not_kept))) {
                continue;
            }
            let same = theirs.len() == ours.len()
                && ours.iter().zip(&theirs).all(|(ours, theirs)| {
                    let known = ours.command.argv.iter().all(|word| word.text.known().is_some());
                    let words: Vec<&str> = ours.command.argv.iter().map(|word| word.text.shown()).collect();
                    ours.command.path.known().is_none_or(|path| path == crate::words::simplify(&theirs.path))
                        && (!known || words.join(" ").trim_end() == theirs.argv.trim_end())
                        && theirs.ignore_errors.is_none_or(|ignore| ignore == ours.command.prefixes.ignore_failure)
                });
            if !same {
                let lower: Vec<String> = ours.iter().map(|exec| crate::unit::shown(&exec.command)).collect();
                let higher: Vec<&str> = theirs.iter().map(|command| command.argv.as_str()).collect();
                push(key, Some(lower.join("\n")), Some(higher.join("\n")), ours.last().map(|exec| exec.span.clone()));
            }
        }
        if show.get("Environment").is_some() || !unit.environment.is_empty() {
            let theirs = show.environment();
            for variable in unit.environment.values() {
                let Some(value) = variable.value.known() else { continue };
                let higher = theirs.get(&variable.name);
                if higher.map(String::as_str) != Some(value) {
                    let what = format!("Environment {}", variable.name);
                    push(&what, Some(value.to_string()), higher.cloned(), Some(variable.span.clone()));
                }
            }
            for (name, value) in theirs.iter().filter(|(name, _)| !unit.environment.contains_key(*name)) {
                push(&format!("Environment {name}"), None, Some(value.clone()), None);
            }
        }
        let files: Vec<(String, bool)> =
            unit.environment_files.iter().map(|file| (file.path.shown().to_string(), file.optional)).collect();
        let known = unit.environment_files.iter().all(|file| file.path.known().is_some());
        let theirs = show.environment_files();
        if known && theirs != files {
            let list = |files: &[(String, bool)]| {
                let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
                Some(paths.join(" ")).filter(|text| !text.is_empty())
            };
            push("EnvironmentFile", list(&files), list(&theirs), unit.environment_files.last().map(|f| f.span.clone()));
        }
        for (key, ours) in [("PassEnvironment", &unit.pass_environment), ("UnsetEnvironment", &unit.unset_environment)]
        {
            if ours.iter().any(|(text, _)| text.known().is_none()) {
                continue;
            }
            let mine: BTreeSet<String> = ours.iter().map(|(text, _)| text.shown().to_string()).collect();
            let theirs: BTreeSet<String> = show.list(key).into_iter().collect();
            if mine != theirs {
                let join = |set: &BTreeSet<String>| Some(set.iter().cloned().collect::<Vec<_>>().join(" "));
                push(key, join(&mine), join(&theirs), ours.last().map(|(_, span)| span.clone()));
            }
        }
        for key in ["User", "Group", "Type", "Restart", "StandardOutput", "StandardError", "WorkingDirectory"] {
            let Some(theirs) = show.get(key) else { continue };
            let Some(setting) = unit.settings.get(key) else { continue };
            let Some(mine) = setting.value.known().filter(|value| !value.is_empty()) else { continue };
            let plain = match key {
                // The path after the colon is not printed, and an unset one is printed as its default.
                "StandardOutput" | "StandardError" => mine.split(':').next().unwrap_or(mine).to_string(),
                "WorkingDirectory" => match mine.strip_prefix('-') {
                    Some(path) => format!("!{}", crate::words::simplify(path)),
                    None if mine.starts_with('/') => crate::words::simplify(mine),
                    None => mine.to_string(),
                },
                _ => mine.to_string(),
            };
            if plain != theirs && (key != "Type" || theirs != "simple" || known_type(mine)) {
                push(key, Some(mine.to_string()), Some(theirs.to_string()), Some(setting.span.clone()));
            }
        }
    }

    /// Whether it runs at all, and how often it was started.
    fn state(&mut self) {
        let Some(show) = self.facts.show else { return };
        let restarts = show.number("NRestarts").unwrap_or(0);
        let waiting = show.get("SubState") == Some("auto-restart");
        let result = show.get("Result").filter(|result| *result != "success");
        let journal = match self.facts.unit.context.manager {
            Manager::System => format!("journalctl -u {} -b", self.facts.unit.name.full()),
            Manager::User { .. } => format!("journalctl --user -u {} -b", self.facts.unit.name.full()),
        };
        if restarts >= 3 || waiting {
            let why = result.map(|result| format!(", last result: {result}")).unwrap_or_default();
            let times = match restarts {
                0 => "is about to restart the service by itself".to_string(),
                1 => "restarted the service once by itself".to_string(),
                restarts => format!("restarted the service {restarts} times by itself"),
            };
            let text = format!("systemd {times}{why}");
            let severity = if waiting || show.main_pid().is_none() { Severity::Error } else { Severity::Warning };
            self.push(What::RestartLoop, severity, text, vec![journal.clone()], Vec::new());
        }
        if show.main_pid().is_none() && show.get("MainPID").is_some() {
            let state = show.get("ActiveState").unwrap_or("unknown");
            let active = state == "active" && self.facts.unit.kind() == "oneshot";
            if !active {
                let why = result.map(|result| format!(", {result}")).unwrap_or_default();
                let text = format!("the service has no process: {state}{why}");
                let remedy = if state == "failed" { vec![journal] } else { vec![self.systemctl("start")] };
                self.push(What::NotRunning, Severity::Error, text, remedy, Vec::new());
            }
        }
    }

    fn delivered(&mut self, show: &Show, process: &Process, loaded: Loaded) {
        let unit = self.facts.unit;
        let restart = vec![self.systemctl("restart")];
        if let (Some(theirs), Some(environ)) = (show.text("InvocationID"), &process.environ)
            && let Some(mine) = environ.get("INVOCATION_ID")
            && mine.replace('-', "") != theirs.replace('-', "")
        {
            let text = format!("process {} belongs to another start than the one the manager speaks of", process.pid);
            self.push(What::OtherInvocation, Severity::Error, text, restart, Vec::new());
            return;
        }
        let environment = unit.process_environment(self.facts.host);
        let mut stale: Vec<Difference> = Vec::new();
        let mut notes: Vec<String> = Vec::new();
        let commands = show.commands("ExecStart");
        // Systemd 252 forgets at every reload when a command ran: there was one since the start.
        let forgotten = commands.len() == 1
            && commands[0].start.is_none()
            && commands[0].pid == Some(0)
            && unit.kind() != "oneshot"
            && show.main_pid() == Some(process.pid);
        if forgotten {
            notes.push("the manager was reloaded after it started".to_string());
        }
        let layers = self.argv(process, &environment, &loaded, &commands, &mut stale);
        self.environ(process, &environment, &loaded, layers.as_ref(), &mut stale);
        if stale.is_empty() {
            return;
        }
        let newer: Vec<String> = unit
            .paths()
            .filter(|path| {
                process.started.is_some_and(|started| self.facts.changed.get(*path).is_some_and(|at| *at > started))
            })
            .map(str::to_string)
            .collect();
        if !newer.is_empty() {
            notes.push(format!("{} changed after it started", newer.join(", ")));
        }
        let names: Vec<&str> = stale.iter().map(|difference| difference.what.as_str()).collect();
        let mut text = format!("process {} was not started from what is loaded now", process.pid);
        if !names.is_empty() {
            text.push_str(&format!(": {}", names.join(", ")));
        }
        if !notes.is_empty() {
            text.push_str(&format!(" ({})", notes.join("; ")));
        }
        let mut places: Vec<Span> = stale.iter().filter_map(|difference| difference.span.clone()).collect();
        places.dedup();
        self.findings.push(Finding {
            what: What::NotRestarted,
            severity: Severity::Error,
            text,
            remedy: restart,
            places,
            differences: stale,
        });
    }

    /// Compares the process's words; gives back what stands between systemd and it.
    fn argv(
        &mut self,
        process: &Process,
        environment: &Environment,
        loaded: &Loaded,
        commands: &[crate::show::Command],
        stale: &mut Vec<Difference>,
    ) -> Option<Between> {
        let unit = self.facts.unit;
        let exec = unit.start().first()?;
        if loaded.differs("ExecStart") {
            // What is written is not loaded, so only the manager's words count, and those without their quotes.
            let command = commands.first()?;
            let words = process.argv.join(" ");
            let plain = !command.argv.contains('$');
            if plain && !words.ends_with(command.argv.trim_end()) && command.pid == Some(0) {
                stale.push(Difference {
                    what: "argv".to_string(),
                    lower: Some(command.argv.clone()),
                    higher: Some(words),
                    span: None,
                });
            }
            return None;
        }
        let outer = unit.process_argv(exec, environment).value;
        let texts: Option<Vec<String>> =
            outer.iter().map(|argument| argument.text.known().map(str::to_string)).collect();
        let Some(mut texts) = texts else {
            let text = "the command line depends on something that was not read".to_string();
            self.push(What::NotComparable, Severity::Info, text, Vec::new(), vec![exec.span.clone()]);
            return None;
        };
        let direct = texts == process.argv || shebang(&texts, &process.argv);
        // The program is the path, whatever argv[0] says.
        if let (Some(path), Some(first)) = (exec.command.path.known(), texts.first_mut())
            && exec.command.prefixes.argv0
        {
            *first = path.to_string();
        }
        let known = Known {
            environment: environment.incomplete.is_empty().then(|| {
                let value = |delivered: &crate::unit::Delivered| delivered.value.known().map(str::to_string);
                environment.variables.iter().map(|(name, delivered)| (name.clone(), value(delivered))).collect()
            }),
            scripts: self.facts.known.scripts.clone(),
        };
        let seen = wrapper::see_through(&texts, &known);
        let between = match &seen {
            Seen::Inner(inner) => Between {
                layers: inner.layers.iter().map(|layer| layer.name.clone()).collect(),
                changes: inner.environment.clone(),
                opaque: None,
            },
            Seen::Opaque { why, layers, .. } => Between {
                layers: layers.iter().map(|layer| layer.name.clone()).collect(),
                changes: Vec::new(),
                opaque: Some(why.clone()),
            },
        };
        let inner = match &seen {
            Seen::Inner(inner) if inner.container.is_none() => {
                let words: Vec<String> = inner.argv.iter().map(|word| word.text.clone()).collect();
                words == process.argv || shebang(&words, &process.argv)
            }
            _ => false,
        };
        if direct || inner {
            return Some(between);
        }
        let opaque = matches!(seen, Seen::Opaque { .. });
        // A title that a program gave itself is one word, or ends in empty ones.
        let renamed = process.argv.len() <= 1 || process.argv.iter().skip(1).all(String::is_empty);
        let wrapped = !between.layers.is_empty();
        if opaque || renamed || wrapped {
            let why = match &between.opaque {
                Some(why) => why.clone(),
                None if renamed => "it may have given itself another title".to_string(),
                None => format!("{} may have changed it", between.layers.join(", ")),
            };
            let text = format!("the words of process {} are not those of the unit: {why}", process.pid);
            self.push(What::NotComparable, Severity::Info, text, Vec::new(), vec![exec.span.clone()]);
            return Some(between);
        }
        stale.push(Difference {
            what: "argv".to_string(),
            lower: Some(texts.iter().map(|word| crate::words::quote(word)).collect::<Vec<_>>().join(" ")),
            higher: Some(process.argv.iter().map(|word| crate::words::quote(word)).collect::<Vec<_>>().join(" ")),
            span: Some(exec.span.clone()),
        });
        Some(between)
    }

    fn environ(
        &mut self,
        process: &Process,
        environment: &Environment,
        loaded: &Loaded,
        between: Option<&Between>,
        stale: &mut Vec<Difference>,
    ) {
        let Some(environ) = &process.environ else { return };
        // A process that overwrote its environment says nothing about it.
        if !environ.contains_key("INVOCATION_ID") && !between.is_some_and(Between::touches) {
            return;
        }
        let mut dropped: Vec<Difference> = Vec::new();
        let mut files: BTreeMap<String, Vec<Difference>> = BTreeMap::new();
        for (name, delivered) in &environment.variables {
            let (span, from_file) = match &delivered.source {
                Source::Unit(span) | Source::SearchPath(span) => (span, false),
                Source::File(span) => (span, true),
                Source::Manager | Source::Systemd | Source::Pass(_) => continue,
            };
            let Some(value) = delivered.value.known() else { continue };
            if loaded.differs(&format!("Environment {name}")) || loaded.differs("EnvironmentFile") {
                continue;
            }
            let higher = environ.get(name);
            if higher.map(String::as_str) == Some(value) {
                continue;
            }
            let difference = Difference {
                what: format!("Environment {name}"),
                lower: Some(value.to_string()),
                higher: higher.cloned(),
                span: Some(span.clone()),
            };
            let after = |path: &str| {
                process.started.is_some_and(|started| self.facts.changed.get(path).is_some_and(|at| *at > started))
            };
            if from_file {
                files.entry(span.file.to_string()).or_default().push(difference);
            } else if between.is_some_and(|between| between.may_change(name)) && !after(&span.file) {
                dropped.push(difference);
            } else {
                stale.push(difference);
            }
        }
        // Taken away by what is loaded, and the process has it all the same.
        for (name, span) in environment.removed.iter().filter(|(name, _)| environ.contains_key(*name)) {
            if !loaded.differs("UnsetEnvironment") && !between.is_some_and(|between| between.may_change(name)) {
                stale.push(Difference {
                    what: format!("UnsetEnvironment {name}"),
                    lower: None,
                    higher: environ.get(name).cloned(),
                    span: Some(span.clone()),
                });
            }
        }
        for (path, differences) in files {
            let names: Vec<&str> =
                differences.iter().filter_map(|difference| difference.what.strip_prefix("Environment ")).collect();
            let text = format!(
                "{path} says something else than process {} was given: {}; systemd reads it only at the start",
                process.pid,
                names.join(", ")
            );
            let places = differences.iter().filter_map(|difference| difference.span.clone()).collect();
            let remedy = vec![self.systemctl("restart")];
            self.findings.push(Finding {
                what: What::EnvironmentFileChanged,
                severity: Severity::Error,
                text,
                remedy,
                places,
                differences,
            });
        }
        self.touched_files(process);
        if dropped.is_empty() {
            return;
        }
        let names: Vec<&str> =
            dropped.iter().filter_map(|difference| difference.what.strip_prefix("Environment ")).collect();
        let by = match between {
            Some(between) if !between.layers.is_empty() => between.layers.join(", "),
            _ => "what systemd starts".to_string(),
        };
        let text =
            format!("process {} does not have {} as it is loaded: {by} dropped it", process.pid, names.join(", "));
        let places = dropped.iter().filter_map(|difference| difference.span.clone()).collect();
        let remedy = vec![self.systemctl("cat")];
        self.findings.push(Finding {
            what: What::VariableDropped,
            severity: Severity::Error,
            text,
            remedy,
            places,
            differences: dropped,
        });
    }

    /// Environment files that changed after the start and could not be compared.
    fn touched_files(&mut self, process: &Process) {
        let Some(started) = process.started else { return };
        let mut list: Vec<(String, Span)> = Vec::new();
        for file in &self.facts.unit.environment_files {
            if !matches!(file.content, Content::Unread(_)) {
                continue;
            }
            let path = file.path.shown();
            if self.facts.changed.get(path).is_some_and(|at| *at > started) {
                list.push((path.to_string(), file.span.clone()));
            }
        }
        for (path, span) in list {
            let text = format!("{path} changed after process {} started, and could not be read", process.pid);
            let remedy = vec![self.systemctl("restart")];
            self.push(What::EnvironmentFileChanged, Severity::Warning, text, remedy, vec![span]);
        }
    }
}

/// `/lib` is `/usr/lib`.
fn merged(path: &str) -> String {
    path.strip_prefix("/lib/").map_or_else(|| path.to_string(), |rest| format!("/usr/lib/{rest}"))
}

fn known_type(kind: &str) -> bool {
    ["simple", "exec", "forking", "oneshot", "dbus", "notify", "notify-reload", "idle"].contains(&kind)
}

/// A script run by its own name: the kernel puts the interpreter, and perhaps one option, before it.
fn shebang(words: &[String], argv: &[String]) -> bool {
    let extra = argv.len().saturating_sub(words.len());
    (1..=2).contains(&extra) && !words.is_empty() && argv[extra..] == *words
}

/// What stands between systemd and the process.
struct Between {
    layers: Vec<String>,
    changes: Vec<Change>,
    opaque: Option<String>,
}

impl Between {
    fn touches(&self) -> bool {
        self.opaque.is_some() || !self.changes.is_empty()
    }

    fn may_change(&self, name: &str) -> bool {
        self.opaque.is_some()
            || self.changes.iter().any(|change| match change {
                Change::Set(other, _) | Change::Unset(other) => other == name,
                Change::Clear | Change::Anything(_) => true,
            })
    }
}
