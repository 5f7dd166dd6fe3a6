//! What is written and what the manager has loaded: where they part, and what mends it.
//!
//! `NeedDaemonReload` decides nothing alone. Systemd 252 leaves it at `no` for a drop-in in a new directory, a mere
//! `touch` sets it, and after a reload without a restart it is `no` again while the old process runs on. So contents
//! are compared.
//!
//! Texts of findings name variables and never their values: those are in [`Difference`], for a caller that redacts.

use crate::show::Show;
use crate::specifiers::Manager;
use crate::unit::Unit;
use crate::{Kind, Span};
use ascertain_model::service::is_not_kept;
use std::collections::{BTreeMap, BTreeSet};

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
    /// A drop-in, or a part of it, that systemd ignores.
    DropInIgnored,
    /// Two drop-ins set the same thing.
    DropInsFight,
    /// A drop-in replaces what the unit says.
    Overridden,
    /// The service starts again and again.
    RestartLoop,
    /// There is no process.
    NotRunning,
}

impl What {
    /// A stable name.
    pub fn name(self) -> &'static str {
        match self {
            What::Masked => "masked",
            What::Refused => "refused",
            What::NotReloaded => "not_reloaded",
            What::Touched => "touched",
            What::DropInIgnored => "drop_in_ignored",
            What::DropInsFight => "drop_ins_fight",
            What::Overridden => "overridden",
            What::RestartLoop => "restart_loop",
            What::NotRunning => "not_running",
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

/// Compares what is written and loaded. What the process was given is for the caller: only the engine knows what words
/// mean the same.
pub fn compare(unit: &Unit, show: Option<&Show>) -> Vec<Finding> {
    let mut out = Comparison { unit, findings: Vec::new() };
    out.written();
    if out.findings.iter().any(|finding| finding.what == What::Masked) {
        return out.findings;
    }
    if let Some(show) = show {
        out.loaded(show);
        out.state(show);
    }
    out.findings
}

struct Comparison<'a> {
    unit: &'a Unit,
    findings: Vec<Finding>,
}

impl Comparison<'_> {
    fn systemctl(&self, verb: &str) -> String {
        let option = self.unit.context.manager.option();
        match verb {
            "daemon-reload" => format!("systemctl {option}daemon-reload"),
            verb => format!("systemctl {option}{verb} {}", crate::words::quote(&self.unit.name.full())),
        }
    }

    fn push(&mut self, what: What, severity: Severity, text: String, remedy: Vec<String>, places: Vec<Span>) {
        self.findings.push(Finding { what, severity, text, remedy, places, differences: Vec::new() });
    }

    /// What can be said from the files alone.
    fn written(&mut self) {
        let unit = self.unit;
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
        self.unit.dropins.iter().any(|path| **path == *span.file)
    }

    fn overridden(&mut self) {
        let unit = self.unit;
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

    fn loaded(&mut self, show: &Show) {
        let mut differences = Vec::new();
        let unit = self.unit;
        let load = show.get("LoadState").unwrap_or("loaded");
        let reload = vec![self.systemctl("daemon-reload"), self.systemctl("restart")];
        if load == "masked" {
            let text = format!("{} is masked in the manager, and no longer on disk", unit.name.full());
            self.push(What::NotReloaded, Severity::Error, text, reload, Vec::new());
            return;
        }
        if load == "not-found" && unit.fragment.is_some() {
            let text =
                format!("the manager does not know {}: its file is newer than the last reload", unit.name.full());
            self.push(What::NotReloaded, Severity::Error, text, reload, Vec::new());
            return;
        }
        if load != "loaded" {
            return;
        }
        self.differences(show, &mut differences);
        let flag = show.flag("NeedDaemonReload");
        if differences.is_empty() {
            if flag == Some(true) && unit.refused.is_empty() {
                let text = "NeedDaemonReload=yes, but what the files say is loaded: they were only touched";
                let remedy = vec![self.systemctl("daemon-reload")];
                self.push(What::Touched, Severity::Info, text.to_string(), remedy, Vec::new());
            }
            return;
        }
        let mut names: Vec<&str> = differences.iter().map(|difference| difference.what.as_str()).collect();
        names.dedup();
        let note = match flag {
            Some(false) => " (NeedDaemonReload=no all the same)",
            _ => "",
        };
        let text = format!("the manager holds something else than the files say: {}{note}", names.join(", "));
        let places = differences.iter().filter_map(|difference| difference.span.clone()).collect();
        self.findings.push(Finding {
            what: What::NotReloaded,
            severity: Severity::Error,
            text,
            remedy: reload,
            places,
            differences,
        });
    }

    fn differences(&self, show: &Show, out: &mut Vec<Difference>) {
        let unit = self.unit;
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
    fn state(&mut self, show: &Show) {
        let restarts = show.number("NRestarts").unwrap_or(0);
        let waiting = show.get("SubState") == Some("auto-restart");
        let result = show.get("Result").filter(|result| *result != "success");
        let journal = match self.unit.context.manager {
            Manager::System => format!("journalctl -u {} -b", self.unit.name.full()),
            Manager::User { .. } => format!("journalctl --user -u {} -b", self.unit.name.full()),
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
            let active = state == "active" && self.unit.kind() == "oneshot";
            if !active {
                let why = result.map(|result| format!(", {result}")).unwrap_or_default();
                let text = format!("the service has no process: {state}{why}");
                let remedy = if state == "failed" { vec![journal] } else { vec![self.systemctl("start")] };
                self.push(What::NotRunning, Severity::Error, text, remedy, Vec::new());
            }
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
