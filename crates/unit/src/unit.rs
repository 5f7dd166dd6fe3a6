//! One service, put together from its files the way the manager does: which file it is, which drop-ins apply in which
//! order, what each setting comes to, and what the process will be given.

use crate::file::{self, Assignment, File};
use crate::issue::Issue;
use crate::specifiers::{Context, Facts, Manager, UnitName};
use crate::words::{self, Argument, Command, Prefixes, Word};
use crate::{Kind, Problem, Read, Span, Text, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What was found at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file.
    Text(Vec<u8>),
    /// A symbolic link, with what it says.
    Link(String),
    /// Looked for and not there.
    Absent,
    /// There, but not to be read.
    Unreadable(String),
}

/// All files that were collected: unit files, drop-ins, environment files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources {
    /// By path.
    pub entries: BTreeMap<String, Entry>,
    /// Other names of the unit, where the manager was asked (`systemctl show -p Names`).
    pub names: Vec<String>,
}

impl Sources {
    /// The path without symbolic links among its directories (`/lib` is one to `/usr/lib` on most hosts).
    fn real(&self, path: &str) -> String {
        let mut path = path.to_string();
        'again: for _ in 0..16 {
            let directories: Vec<usize> = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0).collect();
            for at in directories {
                if let Some(Entry::Link(target)) = self.entries.get(&path[..at]) {
                    path = format!("{}{}", joined(&path[..at], target), &path[at..]);
                    continue 'again;
                }
            }
            break;
        }
        path
    }

    fn get(&self, path: &str) -> Option<&Entry> {
        self.entries.get(&self.real(path))
    }

    /// Follows symbolic links. `Err` where they lead nowhere that was collected.
    fn follow(&self, path: &str) -> Result<(String, &Entry), String> {
        let mut path = self.real(path);
        for _ in 0..16 {
            if path == "/dev/null" {
                return Ok((path, &Entry::Absent));
            }
            match self.entries.get(&path) {
                Some(Entry::Link(target)) => path = self.real(&joined(&path, target)),
                Some(entry) => return Ok((path, entry)),
                None => return Err(path),
            }
        }
        Err(path)
    }
}

/// What a symbolic link at `path` that says `target` points to.
pub fn joined(path: &str, target: &str) -> String {
    let whole = if target.starts_with('/') {
        target.to_string()
    } else {
        format!("{}/{target}", path.rsplit_once('/').map_or("", |(directory, _)| directory))
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The directories a manager looks for units in, the strongest first.
pub fn search_paths(manager: &Manager) -> Vec<String> {
    match manager {
        Manager::System => [
            "/etc/systemd/system.control",
            "/run/systemd/system.control",
            "/run/systemd/transient",
            "/run/systemd/generator.early",
            "/etc/systemd/system",
            "/etc/systemd/system.attached",
            "/run/systemd/system",
            "/run/systemd/system.attached",
            "/run/systemd/generator",
            "/usr/local/lib/systemd/system",
            "/lib/systemd/system",
            "/usr/lib/systemd/system",
            "/run/systemd/generator.late",
        ]
        .map(str::to_string)
        .to_vec(),
        Manager::User { home, runtime, config, data } => {
            let config = config.clone().unwrap_or_else(|| format!("{home}/.config"));
            let data = data.clone().unwrap_or_else(|| format!("{home}/.local/share"));
            vec![
                format!("{config}/systemd/user.control"),
                format!("{runtime}/systemd/user.control"),
                format!("{runtime}/systemd/transient"),
                format!("{runtime}/systemd/generator.early"),
                format!("{config}/systemd/user"),
                "/etc/xdg/systemd/user".to_string(),
                "/etc/systemd/user".to_string(),
                format!("{runtime}/systemd/user"),
                "/run/systemd/user".to_string(),
                format!("{runtime}/systemd/generator"),
                format!("{data}/systemd/user"),
                "/usr/local/share/systemd/user".to_string(),
                "/usr/share/systemd/user".to_string(),
                "/usr/local/lib/systemd/user".to_string(),
                "/usr/lib/systemd/user".to_string(),
                format!("{runtime}/systemd/generator.late"),
            ]
        }
    }
}

/// The names under which drop-ins of a unit are looked for, the strongest first: the name itself, its template with the
/// prefixes that end in a dash (`foo-.service`), then those prefixes with the instance (`foo-@x.service`).
pub fn dropin_names(name: &UnitName) -> Vec<String> {
    let mut names = Vec::new();
    let mut todo = vec![name.clone()];
    while let Some(name) = todo.pop() {
        if names.contains(&name.full()) {
            continue;
        }
        names.push(name.full());
        if let Some(prefix) = shorter(&name.prefix) {
            let instance = name.instance.clone().filter(|_| name.is_instance());
            todo.push(UnitName { prefix: prefix.to_string(), instance, suffix: name.suffix.clone() });
        }
        if name.is_instance() {
            todo.push(UnitName { instance: Some(String::new()), ..name });
        }
    }
    names
}

/// `foo-bar-` of `foo-bar-baz`, `foo-` of `foo-bar-`.
fn shorter(prefix: &str) -> Option<&str> {
    let dash = prefix.strip_suffix('-').unwrap_or(prefix).rfind('-').filter(|dash| *dash > 0)?;
    Some(&prefix[..=dash])
}

/// The directories whose files a collector must read for this unit: its drop-ins, the strongest directory first.
pub fn directories(name: &UnitName, manager: &Manager) -> Vec<PathBuf> {
    dropin_directories(std::slice::from_ref(name), manager).into_iter().map(PathBuf::from).collect()
}

/// The files a collector must read for this unit, following symbolic links and keeping what they say.
pub fn fragments(name: &UnitName, manager: &Manager) -> Vec<PathBuf> {
    let names: Vec<String> = std::iter::once(name.full()).chain(name.template()).collect();
    let paths = search_paths(manager);
    names.iter().flat_map(|name| paths.iter().map(move |path| PathBuf::from(format!("{path}/{name}")))).collect()
}

fn dropin_directories(names: &[UnitName], manager: &Manager) -> Vec<String> {
    let paths = search_paths(manager);
    let mut list: Vec<String> = Vec::new();
    for name in names {
        let specific = dropin_names(name);
        for path in &paths {
            list.extend(specific.iter().map(|name| format!("{path}/{name}.d")));
        }
    }
    if let Some(name) = names.first() {
        list.extend(paths.iter().map(|path| format!("{path}/{}.d", name.suffix)));
    }
    let mut seen = BTreeSet::new();
    list.retain(|path| seen.insert(path.clone()));
    list
}

/// A user of the host, from `passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Name.
    pub name: String,
    /// Number.
    pub uid: u32,
    /// Home directory.
    pub home: String,
    /// Shell.
    pub shell: String,
}

/// What the unit does not say and the process depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Host {
    /// For specifiers.
    pub facts: Facts,
    /// Which systemd it is.
    pub version: Version,
    /// What the manager gives every service (`systemctl show-environment`); `None` where it was not asked.
    pub manager_environment: Option<BTreeMap<String, String>>,
    /// The manager's own environment (`/proc/1/environ`), for `PassEnvironment=`.
    pub manager_process: Option<BTreeMap<String, String>>,
    /// Users, as far as known.
    pub accounts: Vec<Account>,
}

/// A value that does not count any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// What it was.
    pub value: String,
    /// Where.
    pub span: Span,
    /// What took its place, or took it back.
    pub by: Span,
}

/// A setting of which the last assignment counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The value.
    pub value: Text,
    /// Where it was assigned.
    pub span: Span,
    /// What it replaced, oldest first.
    pub overridden: Vec<Before>,
}

/// A command of the unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// The command.
    pub command: Command,
    /// Where.
    pub span: Span,
    /// Where each word of `argv` is.
    pub words: Vec<Span>,
}

/// A variable that the unit sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Name.
    pub name: String,
    /// Value.
    pub value: Text,
    /// Where.
    pub span: Span,
    /// What it replaced, oldest first.
    pub overridden: Vec<Before>,
}

/// What became of an environment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Read: for each file the pattern matched, its path and what it says.
    Read(Vec<(String, words::EnvFile)>),
    /// Not there.
    Missing,
    /// Not collected, or not readable for us, and why.
    Unread(String),
}

/// An environment file that the unit names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentFile {
    /// Its path or pattern.
    pub path: Text,
    /// It may be missing (`-`).
    pub optional: bool,
    /// Where it is named.
    pub span: Span,
    /// What it says.
    pub content: Content,
}

/// A service as its files say it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its name; of an alias the real one.
    pub name: UnitName,
    /// The unit file.
    pub fragment: Option<String>,
    /// The drop-ins that apply, in the order in which they do.
    pub dropins: Vec<String>,
    /// It is masked by this path.
    pub masked: Option<String>,
    /// Systemd will not start it, for these reasons.
    pub refused: Vec<Problem>,
    /// All commands, by key (`ExecStart`, `ExecStartPre` …).
    pub exec: BTreeMap<String, Vec<Exec>>,
    /// Commands that were taken back by an empty assignment or belong to nothing any more.
    pub exec_before: Vec<(String, Before)>,
    /// `Environment=`, by name.
    pub environment: BTreeMap<String, Variable>,
    /// Variables that an empty `Environment=` took back.
    pub environment_before: Vec<(String, Before)>,
    /// `EnvironmentFile=`, in order.
    pub environment_files: Vec<EnvironmentFile>,
    /// `PassEnvironment=`.
    pub pass_environment: Vec<(Text, Span)>,
    /// `UnsetEnvironment=`.
    pub unset_environment: Vec<(Text, Span)>,
    /// `ExecSearchPath=`.
    pub search_path: Vec<(Text, Span)>,
    /// All other settings of `[Service]`, by key: the last assignment.
    pub settings: BTreeMap<String, Setting>,
    /// The files as they were read.
    pub files: Vec<File>,
    /// What it was resolved with.
    pub context: Context,
}

/// Keys that make commands.
const COMMANDS: [&str; 7] =
    ["ExecCondition", "ExecStartPre", "ExecStart", "ExecStartPost", "ExecReload", "ExecStop", "ExecStopPost"];

/// Keys whose values may hold specifiers, among those that are kept as one text.
const SPECIFIED: [&str; 22] = [
    "BusName",
    "RootImage",
    "SELinuxContext",
    "AppArmorProfile",
    "SmackProcessLabel",
    "UtmpIdentifier",
    "User",
    "Group",
    "WorkingDirectory",
    "RootDirectory",
    "StandardOutput",
    "StandardError",
    "StandardInput",
    "SyslogIdentifier",
    "PIDFile",
    "RuntimeDirectory",
    "StateDirectory",
    "CacheDirectory",
    "LogsDirectory",
    "ConfigurationDirectory",
    "SupplementaryGroups",
    "TTYPath",
];

/// Keys that add up instead of replacing each other, among those kept as one text.
const LISTS: [&str; 7] = [
    "RuntimeDirectory",
    "StateDirectory",
    "CacheDirectory",
    "LogsDirectory",
    "ConfigurationDirectory",
    "SupplementaryGroups",
    "AmbientCapabilities",
];

/// Keys of `[Service]` that people write into `[Unit]` or `[Install]`.
const SERVICE_ONLY: [&str; 22] = [
    "Environment",
    "EnvironmentFile",
    "PassEnvironment",
    "UnsetEnvironment",
    "ExecStart",
    "ExecStartPre",
    "ExecStartPost",
    "ExecStop",
    "ExecReload",
    "ExecCondition",
    "ExecStopPost",
    "User",
    "Group",
    "WorkingDirectory",
    "Restart",
    "RestartSec",
    "Type",
    "StandardOutput",
    "StandardError",
    "LimitNOFILE",
    "TimeoutStartSec",
    "RemainAfterExit",
];

/// Keys of `[Unit]` and `[Install]` that people write into `[Service]`.
const NOT_SERVICE: [&str; 13] = [
    "After",
    "Before",
    "Wants",
    "Requires",
    "BindsTo",
    "PartOf",
    "Conflicts",
    "Description",
    "Documentation",
    "ConditionPathExists",
    "WantedBy",
    "RequiredBy",
    "Alias",
];

/// Puts a unit together.
pub fn resolve(name: &UnitName, manager: &Manager, sources: &Sources, host: &Host) -> Read<Unit> {
    let mut problems = Vec::new();
    let mut found = find(name, manager, sources, &mut problems);
    // Builds for hosts with `/lib` apart name that first; where it is a link, one name is enough.
    found.fragment = found.fragment.map(|path| if path.starts_with("/lib/") { sources.real(&path) } else { path });
    let context = Context {
        name: found.name.clone(),
        manager: manager.clone(),
        version: host.version,
        facts: host.facts.clone(),
        fragment: found.fragment.as_ref().map(|path| sources.follow(path).map_or(path.clone(), |(path, _)| path)),
        aliases: Vec::new(),
    };
    let mut unit = Unit {
        name: found.name,
        fragment: found.fragment,
        dropins: Vec::new(),
        masked: found.masked,
        refused: Vec::new(),
        exec: BTreeMap::new(),
        exec_before: Vec::new(),
        environment: BTreeMap::new(),
        environment_before: Vec::new(),
        environment_files: Vec::new(),
        pass_environment: Vec::new(),
        unset_environment: Vec::new(),
        search_path: Vec::new(),
        settings: BTreeMap::new(),
        files: Vec::new(),
        context,
    };
    if let Some(path) = &unit.masked {
        let text = format!("{} is masked: systemd will not start it", unit.name.full());
        let problem = Problem { kind: Kind::Masked, span: Span::whole(path), text };
        unit.refused.push(problem.clone());
        problems.push(problem);
        return Read { value: unit, problems };
    }
    let mut texts: Vec<(String, &[u8], bool)> = Vec::new();
    if let Some(path) = unit.fragment.clone() {
        match sources.follow(&path) {
            Ok((_, Entry::Text(bytes))) => texts.push((path, bytes, false)),
            Ok((_, Entry::Unreadable(why))) => {
                let text = format!("the unit file cannot be read: {why}");
                problems.push(Problem { kind: Kind::FileUnread, span: Span::whole(&path), text });
            }
            _ => {}
        }
    } else {
        let text = format!("no file named {} in the unit directories that were read", unit.name.full());
        let problem = Problem { kind: Kind::NotFound, span: Span::whole(&unit.name.full()), text };
        unit.refused.push(problem.clone());
        problems.push(problem);
    }
    let mut names = vec![unit.name.clone()];
    names.extend(found.aliases);
    names.extend(sources.names.iter().filter_map(|name| UnitName::parse(name)));
    names.extend(aliases(&unit.name, manager, sources));
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    unit.context.aliases = names[1..].to_vec();
    for (path, bytes) in dropins(&names, manager, sources, &mut problems) {
        unit.dropins.push(path.clone());
        texts.push((path, bytes, true));
    }
    for (path, bytes, dropin) in texts {
        let read = file::parse(&path, bytes);
        problems.extend(read.problems);
        unit.take(&read.value, dropin, sources, &mut problems);
        unit.files.push(read.value);
    }
    unit.check(&mut problems);
    Read { value: unit, problems }
}

struct Located {
    name: UnitName,
    aliases: Vec<UnitName>,
    fragment: Option<String>,
    masked: Option<String>,
}

fn find(name: &UnitName, manager: &Manager, sources: &Sources, problems: &mut Vec<Problem>) -> Located {
    let paths = search_paths(manager);
    let mut located = Located { name: name.clone(), aliases: Vec::new(), fragment: None, masked: None };
    'names: for _ in 0..8 {
        let candidates: Vec<String> = std::iter::once(located.name.full()).chain(located.name.template()).collect();
        for candidate in &candidates {
            for directory in &paths {
                let path = format!("{directory}/{candidate}");
                match sources.get(&path) {
                    None | Some(Entry::Absent) => {}
                    Some(Entry::Text(text)) if text.is_empty() => {
                        located.masked = Some(path);
                        return located;
                    }
                    Some(Entry::Text(_) | Entry::Unreadable(_)) => {
                        located.fragment = Some(path);
                        return located;
                    }
                    Some(Entry::Link(target)) => {
                        let target = joined(&path, target);
                        let inside = target
                            .rsplit_once('/')
                            .filter(|(directory, _)| paths.iter().any(|path| path == directory))
                            .and_then(|(_, name)| UnitName::parse(name));
                        if target == "/dev/null" {
                            located.masked = Some(path);
                            return located;
                        }
                        match inside {
                            Some(mut other) if other.full() != *candidate => {
                                if other.is_template() && located.name.is_instance() {
                                    other.instance.clone_from(&located.name.instance);
                                }
                                // An alias must be of the same make: plain for plain, the same instance for an
                                // instance. Others are ignored.
                                if other.instance != located.name.instance || other.suffix != located.name.suffix {
                                    problems.push(Problem {
                                        kind: Kind::BadLink,
                                        span: Span::whole(&path),
                                        text: format!(
                                            "systemd does not take {} as an alias of {}",
                                            candidate,
                                            other.full()
                                        ),
                                    });
                                    continue;
                                }
                                if located.aliases.contains(&other) {
                                    break 'names;
                                }
                                located.aliases.push(std::mem::replace(&mut located.name, other));
                                continue 'names;
                            }
                            _ => match sources.follow(&path) {
                                Ok((end, _)) if end == "/dev/null" => {
                                    located.masked = Some(path);
                                    return located;
                                }
                                Ok((_, Entry::Text(text))) if text.is_empty() => {
                                    located.masked = Some(path);
                                    return located;
                                }
                                Ok((_, Entry::Text(_) | Entry::Unreadable(_))) => {
                                    // A link from outside is read under its own name, one within under the target's.
                                    located.fragment = Some(if inside.is_some() { target } else { path });
                                    return located;
                                }
                                Ok(_) => {}
                                Err(end) => problems.push(Problem {
                                    kind: Kind::BadLink,
                                    span: Span::whole(&path),
                                    text: format!("points to {end}, which was not collected"),
                                }),
                            },
                        }
                    }
                }
            }
        }
        return located;
    }
    problems.push(Problem {
        kind: Kind::BadLink,
        span: Span::whole(&name.full()),
        text: "its aliases go round in a circle".to_string(),
    });
    located
}

/// The other names that symbolic links in the unit directories give to a unit.
fn aliases(name: &UnitName, manager: &Manager, sources: &Sources) -> Vec<UnitName> {
    let mut list = Vec::new();
    for directory in search_paths(manager) {
        let from = sources.real(&format!("{directory}/"));
        for (path, entry) in sources.entries.range(from.clone()..) {
            let Some(file) = path.strip_prefix(&from) else { break };
            let (Entry::Link(_), Some(mut alias)) = (entry, UnitName::parse(file)) else { continue };
            if file.contains('/') || alias.full() != file {
                continue;
            }
            if alias.is_template() {
                alias.instance.clone_from(&name.instance);
            }
            if alias != *name && find(&alias, manager, sources, &mut Vec::new()).name == *name {
                list.push(alias);
            }
        }
    }
    list
}

/// The drop-ins that apply, in order: of one file name the strongest directory's, then by file name.
fn dropins<'a>(
    names: &[UnitName],
    manager: &Manager,
    sources: &'a Sources,
    problems: &mut Vec<Problem>,
) -> Vec<(String, &'a [u8])> {
    let mut by_name: BTreeMap<String, String> = BTreeMap::new();
    for directory in dropin_directories(names, manager) {
        let from = sources.real(&format!("{directory}/"));
        for path in sources.entries.range(from.clone()..).map(|(path, _)| path) {
            let Some(file) = path.strip_prefix(&from) else { break };
            if file.contains('/') || !file.ends_with(".conf") || file.starts_with('.') {
                continue;
            }
            by_name.entry(file.to_string()).or_insert_with(|| path.clone());
        }
    }
    let mut list = Vec::new();
    for path in by_name.into_values() {
        match sources.follow(&path) {
            Ok((end, _)) if end == "/dev/null" => {
                let text = "a link to /dev/null: drop-ins of this name do not apply".to_string();
                problems.push(Problem { kind: Kind::Masked, span: Span::whole(&path), text });
                list.push((path, &[][..]));
            }
            Ok((_, Entry::Text(bytes))) => list.push((path, bytes.as_slice())),
            Ok((_, Entry::Unreadable(why))) => {
                let text = format!("the drop-in cannot be read: {why}");
                problems.push(Problem { kind: Kind::FileUnread, span: Span::whole(&path), text });
            }
            Ok(_) => {}
            Err(end) => {
                let text = format!("points to {end}, which was not collected");
                problems.push(Problem { kind: Kind::BadLink, span: Span::whole(&path), text });
            }
        }
    }
    list
}

impl Unit {
    fn take(&mut self, file: &File, dropin: bool, sources: &Sources, problems: &mut Vec<Problem>) {
        let mut said: BTreeSet<&str> = BTreeSet::new();
        let mut any_header = false;
        let context = self.context.clone();
        for assignment in &file.assignments {
            let Some(section) = assignment.section.as_deref() else { continue };
            any_header = true;
            let wrong = |kind: Kind, text: String| Problem { kind, span: assignment.span.clone(), text };
            match section {
                "Service" if NOT_SERVICE.contains(&assignment.key.as_str()) => problems.push(wrong(
                    Kind::WrongSection,
                    format!("{}= does not belong into [Service]: systemd ignores it", assignment.key),
                )),
                "Service" => {
                    if self.assign(file, assignment, &context, sources, problems) {
                        continue;
                    }
                    let text = if dropin {
                        "systemd refuses this line and ignores the rest of this drop-in".to_string()
                    } else {
                        "systemd refuses this line and does not load the unit".to_string()
                    };
                    let problem = wrong(Kind::Fatal, text);
                    if !dropin {
                        self.refused.push(problem.clone());
                    }
                    problems.push(problem);
                    return;
                }
                "Unit" | "Install" if SERVICE_ONLY.contains(&assignment.key.as_str()) => problems.push(wrong(
                    Kind::WrongSection,
                    format!("{}= belongs into [Service]: in [{section}] systemd ignores it", assignment.key),
                )),
                "Unit" | "Install" => {}
                other if other.starts_with("X-") => {}
                other => {
                    if said.insert(other) {
                        let text = format!("services have no section [{other}]: systemd ignores all of it");
                        problems.push(wrong(Kind::UnknownSection, text));
                    }
                }
            }
        }
        if file.broken && !dropin {
            let text = "systemd cannot read the unit file to its end and does not load the unit".to_string();
            self.refused.push(Problem { kind: Kind::Fatal, span: Span::whole(&file.path), text });
        }
        let headless = !any_header && file.assignments.iter().any(|assignment| assignment.section.is_none());
        if dropin && headless {
            let text = "a drop-in without a section header: systemd ignores all of it; begin it with [Service]";
            problems.push(Problem { kind: Kind::NoSection, span: Span::whole(&file.path), text: text.to_string() });
        }
    }

    /// `false`: systemd stops reading this file here.
    fn assign(
        &mut self,
        file: &File,
        assignment: &Assignment,
        context: &Context,
        sources: &Sources,
        problems: &mut Vec<Problem>,
    ) -> bool {
        let key = assignment.key.as_str();
        let span = &assignment.span;
        let at = |range: std::ops::Range<usize>| file.span(assignment.locate(range));
        let report = |issues: Vec<Issue>, problems: &mut Vec<Problem>| {
            for issue in issues {
                let text = format!("{key}=: {}", issue.text);
                problems.push(Problem { kind: issue.kind, span: at(issue.range), text });
            }
        };
        let value = assignment.value.as_str();
        match key {
            _ if COMMANDS.contains(&key) => {
                if value.is_empty() {
                    for exec in self.exec.remove(key).unwrap_or_default() {
                        let value = shown(&exec.command);
                        self.exec_before.push((key.to_string(), Before { value, span: exec.span, by: span.clone() }));
                    }
                    return true;
                }
                let read = words::exec(value, context);
                report(read.issues, problems);
                let list = self.exec.entry(key.to_string()).or_default();
                for command in read.commands {
                    let words = command.argv.iter().map(|word| at(word.range.clone())).collect();
                    list.push(Exec { span: at(command.range.clone()), words, command });
                }
                if list.is_empty() {
                    self.exec.remove(key);
                }
                return !read.fatal;
            }
            "Environment" => {
                if value.is_empty() {
                    for (name, variable) in std::mem::take(&mut self.environment) {
                        let value = variable.value.shown().to_string();
                        let before = Before { value, span: variable.span, by: span.clone() };
                        self.environment_before.push((name, before));
                    }
                    return true;
                }
                let (list, issues) = words::words(value, context);
                report(issues, problems);
                for word in list {
                    self.variable(&word, at(word.range.clone()), problems);
                }
            }
            "EnvironmentFile" => {
                if value.is_empty() {
                    self.environment_files.clear();
                    return true;
                }
                let mut issues = Vec::new();
                let (optional, path) = match value.strip_prefix('-') {
                    Some(path) => (true, path),
                    None => (false, value),
                };
                let path = crate::specifiers::resolve(path, context, 0..value.len(), &mut issues);
                report(issues, problems);
                let Some(path) = path else { return true };
                if let Text::Known(path) = &path
                    && !path.starts_with('/')
                {
                    let text = format!("EnvironmentFile={path}: not an absolute path, systemd ignores the line");
                    problems.push(Problem { kind: Kind::BadPath, span: span.clone(), text });
                    return true;
                }
                let path = match path {
                    Text::Known(path) => Text::Known(words::simplify(&path)),
                    opaque => opaque,
                };
                let content = content(&path, optional, sources, context.version, span, problems);
                self.environment_files.push(EnvironmentFile { path, optional, span: span.clone(), content });
            }
            "PassEnvironment" | "UnsetEnvironment" => {
                let (words, issues) = words::words(value, context);
                report(issues, problems);
                let list =
                    if key == "PassEnvironment" { &mut self.pass_environment } else { &mut self.unset_environment };
                if value.is_empty() {
                    list.clear();
                }
                for word in words {
                    let fine = word.text.known().is_none_or(|text| {
                        words::is_name(text)
                            || key == "UnsetEnvironment"
                                && text.split_once('=').is_some_and(|(name, _)| words::is_name(name))
                    });
                    if fine {
                        list.push((word.text, at(word.range)));
                    } else {
                        let text = format!("{key}=: {}: not a variable, ignored", word.text.shown());
                        problems.push(Problem { kind: Kind::InvalidAssignment, span: at(word.range), text });
                    }
                }
            }
            "ExecSearchPath" if context.version >= Version(250) => {
                if value.is_empty() {
                    self.search_path.clear();
                }
                let mut issues = Vec::new();
                for part in value.split(':').filter(|part| !part.is_empty()) {
                    match crate::specifiers::resolve(part, context, 0..value.len(), &mut issues) {
                        Some(path) if path.known().is_none_or(|path| path.starts_with('/')) => {
                            self.search_path.push((path, span.clone()));
                        }
                        // One that is not absolute ends the list.
                        _ => break,
                    }
                }
                report(issues, problems);
            }
            _ => {
                let mut issues = Vec::new();
                let text = if SPECIFIED.contains(&key) {
                    crate::specifiers::resolve(value, context, 0..value.len(), &mut issues)
                } else {
                    Some(Text::Known(value.to_string()))
                };
                report(issues, problems);
                // A user or a directory that cannot be is as bad as a command that cannot be.
                let fatal = match key {
                    "User" | "Group" => !text.as_ref().is_some_and(|text| text.known().is_none_or(is_user)),
                    "SupplementaryGroups" => !text
                        .as_ref()
                        .is_some_and(|text| text.known().is_none_or(|groups| groups.split_whitespace().all(is_user))),
                    "WorkingDirectory" | "RootDirectory" | "RootImage" => {
                        let fine = |path: &str| matches!(path, "" | "~") || is_normal(path);
                        !value.starts_with('-') && !text.as_ref().is_some_and(|text| text.known().is_none_or(fine))
                    }
                    "SELinuxContext" | "AppArmorProfile" | "SmackProcessLabel" => text.is_none(),
                    _ => false,
                };
                if fatal {
                    let text = format!("{key}={}: not a value that systemd accepts", file::shorten(value));
                    problems.push(Problem { kind: Kind::InvalidAssignment, span: span.clone(), text });
                    return false;
                }
                if let Some(allowed) = allowed(key, value) {
                    let text = format!("{key}={}: systemd ignores it; it may be {allowed}", file::shorten(value));
                    problems.push(Problem { kind: Kind::InvalidAssignment, span: span.clone(), text });
                } else if let Some(text) = text {
                    self.setting(key, text, span);
                }
            }
        }
        true
    }

    fn setting(&mut self, key: &str, value: Text, span: &Span) {
        let old = self.settings.remove(key);
        let mut overridden = Vec::new();
        let mut value = value;
        if let Some(mut old) = old {
            overridden = std::mem::take(&mut old.overridden);
            let adds = LISTS.contains(&key) && value.known() != Some("");
            match (&value, &old.value) {
                (Text::Known(new), Text::Known(before)) if adds => {
                    value = Text::Known(format!("{before} {new}").trim().to_string());
                }
                _ => {
                    let before = Before { value: old.value.shown().to_string(), span: old.span, by: span.clone() };
                    overridden.push(before);
                }
            }
        }
        self.settings.insert(key.to_string(), Setting { value, span: span.clone(), overridden });
    }

    fn variable(&mut self, word: &Word, span: Span, problems: &mut Vec<Problem>) {
        let (name, value) = match &word.text {
            Text::Known(text) => match text.split_once('=') {
                Some((name, value)) if words::is_name(name) => (name.to_string(), Text::Known(value.to_string())),
                _ => {
                    let text = format!(
                        "Environment=: {}: not an assignment of a variable, systemd ignores it",
                        file::shorten(text)
                    );
                    problems.push(Problem { kind: Kind::InvalidAssignment, span, text });
                    return;
                }
            },
            Text::Opaque { written, why } => match written.split_once('=') {
                Some((name, value)) if words::is_name(name) => (name.to_string(), Text::opaque(value, why.clone())),
                _ => return,
            },
        };
        let mut overridden = Vec::new();
        if let Some(mut old) = self.environment.remove(&name) {
            overridden = std::mem::take(&mut old.overridden);
            overridden.push(Before { value: old.value.shown().to_string(), span: old.span, by: span.clone() });
        }
        self.environment.insert(name.clone(), Variable { name, value, span, overridden });
    }

    fn check(&mut self, problems: &mut Vec<Problem>) {
        let start = self.exec.get("ExecStart").map_or(&[][..], Vec::as_slice);
        let whole = || Span::whole(self.fragment.as_deref().unwrap_or(""));
        let oneshot = self.kind() == "oneshot";
        let problem = match start {
            [first, .., last] if !oneshot => Some(Problem {
                kind: Kind::SeveralCommands,
                span: last.span.clone(),
                text: format!(
                    "ExecStart= is also set at {}: only Type=oneshot may have several, systemd refuses the unit; put \
                     an empty ExecStart= before the one that counts",
                    first.span
                ),
            }),
            [] if self.fragment.is_some() && (!self.may_lack_start() || !oneshot) => {
                let text = "the service has no ExecStart=: systemd refuses it".to_string();
                Some(Problem { kind: Kind::NoCommand, span: whole(), text })
            }
            _ => None,
        };
        if let Some(problem) = problem {
            self.refused.push(problem.clone());
            problems.push(problem);
        }
    }

    /// A service without ExecStart= needs something else to do.
    fn may_lack_start(&self) -> bool {
        let acts = self.files.iter().flat_map(|file| &file.assignments).rfind(|it| it.key == "SuccessAction");
        let acts = acts.is_some_and(|it| !matches!(it.value.as_str(), "" | "none"));
        acts || self.exec.contains_key("ExecStop") && self.text("RemainAfterExit").is_some_and(is_yes)
    }

    fn has(&self, key: &str) -> bool {
        self.settings.get(key).is_some_and(|setting| setting.value.known() != Some(""))
    }

    /// The last value of a setting, where one was assigned, is known and was not taken back.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.settings.get(key)?.value.known().filter(|value| !value.is_empty())
    }

    /// `Type=`, with systemd's default.
    pub fn kind(&self) -> &str {
        self.text("Type").unwrap_or_else(|| {
            if self.text("BusName").is_some() {
                "dbus"
            } else if self.exec.contains_key("ExecStart") {
                "simple"
            } else {
                "oneshot"
            }
        })
    }

    /// The commands of `ExecStart=`.
    pub fn start(&self) -> &[Exec] {
        self.exec.get("ExecStart").map_or(&[], Vec::as_slice)
    }

    /// The files it is made of: the unit file, then its drop-ins.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.fragment.iter().chain(&self.dropins).map(String::as_str)
    }
}

/// Whether systemd takes this as the name or number of a user or group.
fn is_user(name: &str) -> bool {
    name.is_empty()
        || !name.contains(|c: char| c.is_control() || matches!(c, ':' | '/'))
            && !matches!(name, "." | "..")
            && name.trim() == name
            && (!name.bytes().all(|byte| byte.is_ascii_digit())
                || name.parse::<u32>().is_ok_and(|number| number != u32::MAX && number != 0xffff))
}

/// Whether this is an absolute path without `..`.
fn is_normal(path: &str) -> bool {
    path.starts_with('/') && path.split('/').all(|part| part != "..")
}

/// Where output may go.
const OUTPUTS: [&str; 12] = [
    "inherit",
    "null",
    "tty",
    "journal",
    "kmsg",
    "journal+console",
    "kmsg+console",
    "socket",
    "syslog",
    "syslog+console",
    "fd",
    "file:PATH, append:PATH, truncate:PATH",
];

/// What a setting may be, where it is something else.
fn allowed(key: &str, value: &str) -> Option<String> {
    let words: &[&str] = match key {
        "Type" => &["simple", "exec", "forking", "oneshot", "dbus", "notify", "notify-reload", "idle"],
        "Restart" => &["no", "on-success", "on-failure", "on-abnormal", "on-watchdog", "on-abort", "always"],
        "RemainAfterExit" => &["yes", "no", "true", "false", "on", "off", "1", "0", "y", "n", "t", "f"],
        "NotifyAccess" => &["none", "main", "exec", "all"],
        "StandardOutput" | "StandardError" => {
            let file = ["file:", "append:", "truncate:"]
                .iter()
                .any(|kind| value.strip_prefix(kind).is_some_and(|path| path.starts_with(['/', '%'])));
            if file || value.starts_with("fd:") {
                return None;
            }
            &OUTPUTS
        }
        "TTYPath" if !value.is_empty() && !value.starts_with(['/', '%']) => &["an absolute path"],
        _ => return None,
    };
    let found = words.iter().any(|word| *word == value || key == "RemainAfterExit" && value.eq_ignore_ascii_case(word));
    // An empty value takes back; where that is not allowed it is ignored, which comes to the same for the first.
    (!found && !value.is_empty()).then(|| words.join(", "))
}

fn is_yes(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "1" | "yes" | "y" | "true" | "t" | "on")
}

/// A command line as a person would write it.
pub fn shown(command: &Command) -> String {
    let Prefixes { ignore_failure, argv0, no_variables, full_privileges, no_setuid, ambient, shell } = command.prefixes;
    let mut out = String::new();
    for (set, mark) in [
        (ignore_failure, "-"),
        (argv0, "@"),
        (no_variables, ":"),
        (full_privileges, "+"),
        (no_setuid, "!"),
        (ambient, "!!"),
        (shell, "|"),
    ] {
        if set {
            out.push_str(mark);
        }
    }
    let path = std::iter::once(command.path.shown()).filter(|_| argv0);
    let skip = if argv0 || command.argv.is_empty() { None } else { Some(command.path.shown()) };
    let words = path.chain(skip).chain(command.argv.iter().skip(usize::from(!argv0)).map(|word| word.text.shown()));
    out.push_str(&words.map(words::quote).collect::<Vec<_>>().join(" "));
    out
}

fn content(
    path: &Text,
    optional: bool,
    sources: &Sources,
    version: Version,
    span: &Span,
    problems: &mut Vec<Problem>,
) -> Content {
    let Text::Known(pattern) = path else { return Content::Unread("its path is not known".to_string()) };
    let mut push = |kind: Kind, span: Span, text: String| problems.push(Problem { kind, span, text });
    let paths: Vec<String> = if pattern.contains(['*', '?', '[']) && !sources.entries.contains_key(pattern) {
        sources.entries.keys().filter(|path| glob(pattern.as_bytes(), path.as_bytes())).cloned().collect()
    } else {
        vec![pattern.clone()]
    };
    if paths.is_empty() {
        push(Kind::FileUnread, span.clone(), format!("{pattern}: no file that was collected matches"));
        return Content::Unread("no file that was collected matches the pattern".to_string());
    }
    let mut read = Vec::new();
    for path in paths {
        match sources.follow(&path) {
            Ok((_, Entry::Text(bytes))) => {
                let env = words::env_file(bytes, version);
                for issue in &env.issues {
                    let lines = 1 + bytes[..issue.range.start.min(bytes.len())].iter().filter(|b| **b == b'\n').count();
                    let span = Span {
                        file: path.as_str().into(),
                        first: lines,
                        last: lines,
                        start: issue.range.start,
                        end: issue.range.end,
                    };
                    push(issue.kind, span, issue.text.clone());
                }
                read.push((path, env));
            }
            Ok((end, _)) if end == "/dev/null" => read.push((path, words::EnvFile::default())),
            Ok((_, Entry::Absent)) => {
                if !optional {
                    let text = format!("{path} is not there: systemd does not start the service");
                    push(Kind::FileMissing, span.clone(), text);
                }
                return Content::Missing;
            }
            Ok((_, Entry::Unreadable(why))) => {
                push(Kind::FileUnread, span.clone(), format!("{path} cannot be read: {why}"));
                return Content::Unread(why.clone());
            }
            Ok((_, Entry::Link(_))) | Err(_) => {
                push(Kind::FileUnread, span.clone(), format!("{path} was not collected"));
                return Content::Unread("it was not collected".to_string());
            }
        }
    }
    Content::Read(read)
}

/// Whether a path matches the pattern of an `EnvironmentFile=`.
pub fn matches(pattern: &str, path: &str) -> bool {
    glob(pattern.as_bytes(), path.as_bytes())
}

/// Shell patterns as `glob(3)` reads them: a leading dot and a slash match only themselves.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while t < text.len() {
        let hidden = text[t] == b'.' && (t == 0 || text[t - 1] == b'/');
        let step = match pattern.get(p) {
            Some(b'*') if !hidden => {
                back = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(b'?') if !hidden && text[t] != b'/' => Some(p + 1),
            Some(b'[') if !hidden && text[t] != b'/' => class(pattern, p, text[t]),
            Some(b'\\') if pattern.get(p + 1) == Some(&text[t]) => Some(p + 2),
            Some(byte) if *byte == text[t] => Some(p + 1),
            _ => None,
        };
        match (step, back) {
            (Some(next), _) => {
                p = next;
                t += 1;
            }
            (None, Some((after, from))) if text[from] != b'/' => {
                p = after;
                t = from + 1;
                back = Some((after, from + 1));
            }
            _ => return false,
        }
    }
    pattern[p.min(pattern.len())..].iter().all(|byte| *byte == b'*')
}

fn class(pattern: &[u8], open: usize, byte: u8) -> Option<usize> {
    let negated = matches!(pattern.get(open + 1), Some(b'!' | b'^'));
    let first = open + 1 + usize::from(negated);
    let close = first + 1 + pattern.get(first + 1..)?.iter().position(|byte| *byte == b']')?;
    let set = &pattern[first..close];
    let mut inside = false;
    let mut at = 0;
    while at < set.len() {
        if set.get(at + 1) == Some(&b'-') && at + 2 < set.len() {
            inside |= (set[at]..=set[at + 2]).contains(&byte);
            at += 3;
        } else {
            inside |= set[at] == byte;
            at += 1;
        }
    }
    (inside != negated).then_some(close + 1)
}

/// Who gave a variable its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// What the manager gives every service.
    Manager,
    /// What systemd itself sets for this service.
    Systemd,
    /// `ExecSearchPath=`.
    SearchPath(Span),
    /// `PassEnvironment=`.
    Pass(Span),
    /// `Environment=`.
    Unit(Span),
    /// A line of an environment file.
    File(Span),
}

/// A variable of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// Its value.
    pub value: Text,
    /// Where it comes from.
    pub source: Source,
    /// What had less weight, weakest first.
    pub overridden: Vec<(Text, Source)>,
}

/// What the process's environment will be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// By name.
    pub variables: BTreeMap<String, Delivered>,
    /// Removed by `UnsetEnvironment=`: name and where.
    pub removed: BTreeMap<String, Span>,
    /// Why there may be more variables, or other values, than are listed.
    pub incomplete: Vec<String>,
}

impl Environment {
    fn set(&mut self, name: &str, value: Text, source: Source) {
        match self.variables.get_mut(name) {
            Some(old) => {
                let new = Delivered { value, source, overridden: Vec::new() };
                let before = std::mem::replace(old, new);
                old.overridden = before.overridden;
                old.overridden.push((before.value, before.source));
            }
            None => {
                self.variables.insert(name.to_string(), Delivered { value, source, overridden: Vec::new() });
            }
        }
    }
}

impl Unit {
    /// The environment of the process, from the weakest source to the strongest: the manager, systemd itself,
    /// `ExecSearchPath=`, `PassEnvironment=`, `Environment=`, environment files; then `UnsetEnvironment=`.
    pub fn process_environment(&self, host: &Host) -> Environment {
        let mut out = Environment::default();
        match &host.manager_environment {
            Some(variables) => {
                for (name, value) in variables {
                    out.set(name, Text::Known(value.clone()), Source::Manager);
                }
            }
            None => out.incomplete.push("the manager's own environment was not collected".to_string()),
        }
        self.set_by_systemd(host, &mut out);
        if let Some((_, span)) = self.search_path.first() {
            let parts: Option<Vec<&str>> = self.search_path.iter().map(|(path, _)| path.known()).collect();
            let value = match parts {
                Some(parts) => Text::Known(parts.join(":")),
                None => Text::opaque("", "a part of ExecSearchPath= is not known"),
            };
            out.set("PATH", value, Source::SearchPath(span.clone()));
        }
        for (name, span) in &self.pass_environment {
            let Some(name) = name.known() else { continue };
            match &host.manager_process {
                Some(own) => {
                    if let Some(value) = own.get(name) {
                        out.set(name, Text::Known(value.clone()), Source::Pass(span.clone()));
                    }
                }
                None => {
                    let value = Text::opaque("", "the manager's own environment was not collected");
                    out.set(name, value, Source::Pass(span.clone()));
                }
            }
        }
        for variable in self.environment.values() {
            out.set(&variable.name, variable.value.clone(), Source::Unit(variable.span.clone()));
        }
        for file in &self.environment_files {
            match &file.content {
                Content::Missing => {}
                Content::Unread(why) => {
                    let text = format!("{} ({}): {why}", file.path.shown(), file.span);
                    out.incomplete.push(text.clone());
                    // Whatever it sets is unknown, and it may replace anything set so far.
                    for delivered in out.variables.values_mut() {
                        let written = delivered.value.shown().to_string();
                        if !matches!(delivered.source, Source::Systemd) {
                            delivered.value = Text::opaque(written, format!("{} may replace it", file.path.shown()));
                        }
                    }
                }
                Content::Read(list) => {
                    for (path, env) in list.iter().filter(|(_, env)| !env.fatal) {
                        for pair in &env.pairs {
                            let span = Span {
                                file: path.as_str().into(),
                                first: pair.lines.0,
                                last: pair.lines.1,
                                start: pair.range.start,
                                end: pair.range.end,
                            };
                            out.set(&pair.name, Text::Known(pair.value.clone()), Source::File(span));
                        }
                    }
                }
            }
        }
        for (what, span) in &self.unset_environment {
            let Some(what) = what.known() else { continue };
            let (name, value) = match what.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (what, None),
            };
            let matches = out.variables.get(name).is_some_and(|delivered| match value {
                Some(value) => delivered.value.known() == Some(value),
                None => true,
            });
            if matches {
                out.variables.remove(name);
                out.removed.insert(name.to_string(), span.clone());
            }
        }
        out
    }

    fn set_by_systemd(&self, host: &Host, out: &mut Environment) {
        let runtime = |what: &str| Text::opaque("", format!("{what}: new for every start"));
        for name in ["INVOCATION_ID", "SYSTEMD_EXEC_PID"] {
            if name != "SYSTEMD_EXEC_PID" || host.version >= Version(248) {
                out.set(name, runtime(name), Source::Systemd);
            }
        }
        // Seen on 257 and not on 252.
        if host.version > Version(252) && !self.has("User") && matches!(self.context.manager, Manager::System) {
            out.set("USER", Text::opaque("root", "newer releases name the manager's user"), Source::Systemd);
        }
        if matches!(self.context.manager, Manager::User { .. }) {
            out.set("MANAGERPID", runtime("MANAGERPID"), Source::Systemd);
        }
        let to_journal = |key: &str, default: &str| {
            let value = self.text(key).unwrap_or(default);
            value.starts_with("journal") || value.starts_with("kmsg") || value.starts_with("syslog")
        };
        let stdout = to_journal("StandardOutput", "journal");
        let stderr = match self.text("StandardError") {
            None | Some("inherit") => stdout,
            Some(_) => to_journal("StandardError", "inherit"),
        };
        if stdout || stderr {
            out.set("JOURNAL_STREAM", runtime("JOURNAL_STREAM"), Source::Systemd);
        }
        let watched = self.text("WatchdogSec").is_some_and(|time| time.contains(|c| matches!(c, '1'..='9')));
        let notifies = self.kind().starts_with("notify") || self.text("NotifyAccess").is_some_and(|to| to != "none");
        if notifies || watched {
            out.set("NOTIFY_SOCKET", Text::opaque("", "chosen by the manager"), Source::Systemd);
        }
        let terminal =
            |key: &str| self.text(key).is_some_and(|value| value.starts_with("tty") || value.ends_with("+console"));
        if ["StandardInput", "StandardOutput", "StandardError"].into_iter().any(terminal) || self.has("TTYPath") {
            out.set("TERM", Text::opaque("", "the manager's TERM or the terminal's"), Source::Systemd);
        }
        if watched {
            out.set("WATCHDOG_USEC", Text::opaque("", "from WatchdogSec="), Source::Systemd);
            out.set("WATCHDOG_PID", runtime("WATCHDOG_PID"), Source::Systemd);
        }
        if host.version >= Version(254) {
            for name in ["MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE"] {
                out.set(name, Text::opaque("", "depends on the host's memory controller"), Source::Systemd);
            }
        }
        if let Some(path) = self.text("PIDFile") {
            let root = crate::specifiers::resolve("%t", &self.context, 0..0, &mut Vec::new());
            let value = match root.as_ref().and_then(Text::known) {
                _ if path.starts_with('/') => Text::Known(words::simplify(path)),
                Some(root) => Text::Known(words::simplify(&format!("{root}/{path}"))),
                None => Text::opaque("", "the runtime directory is not known"),
            };
            out.set("PIDFILE", value, Source::Systemd);
        }
        let credentials = ["LoadCredential", "LoadCredentialEncrypted", "SetCredential", "SetCredentialEncrypted"];
        if host.version >= Version(247) && credentials.into_iter().any(|key| self.has(key)) {
            out.set("CREDENTIALS_DIRECTORY", Text::opaque("", "chosen by the manager"), Source::Systemd);
        }
        if self.text("WorkingDirectory") == Some("~") && !self.has("User") {
            let home = crate::specifiers::resolve("%h", &self.context, 0..0, &mut Vec::new());
            out.set("HOME", home.unwrap_or(Text::opaque("", "not known")), Source::Systemd);
        }
        if self.text("DynamicUser").is_some_and(is_yes) && !self.has("User") {
            for name in ["LOGNAME", "USER"] {
                out.set(name, Text::opaque("", "a user made up for this start"), Source::Systemd);
            }
        }
        for (key, name) in [
            ("RuntimeDirectory", "RUNTIME_DIRECTORY"),
            ("StateDirectory", "STATE_DIRECTORY"),
            ("CacheDirectory", "CACHE_DIRECTORY"),
            ("LogsDirectory", "LOGS_DIRECTORY"),
            ("ConfigurationDirectory", "CONFIGURATION_DIRECTORY"),
        ] {
            if let Some(paths) = self.directories_of(key) {
                out.set(name, paths, Source::Systemd);
            }
        }
        if let Some(setting) = self.settings.get("User").filter(|setting| setting.value.known() != Some("")) {
            let user = setting.value.known();
            let nobody =
                Account { name: "nobody".into(), uid: 65534, home: "/".into(), shell: "/usr/sbin/nologin".into() };
            let account = user.and_then(|user| {
                let uid = user.parse::<u32>().ok();
                // Systemd makes this one up whatever passwd says, without a home and a shell.
                if user == "nobody" || uid == Some(65534) {
                    return Some(&nobody);
                }
                host.accounts.iter().find(|account| account.name == user || Some(account.uid) == uid)
            });
            let lacking = || Text::opaque("", "the user's entry in passwd was not collected");
            let none = |shell: &str| {
                [
                    "",
                    "/bin/false",
                    "/usr/bin/false",
                    "/sbin/nologin",
                    "/usr/sbin/nologin",
                    "/bin/nologin",
                    "/usr/bin/nologin",
                ]
                .contains(&shell)
            };
            match account {
                Some(account) => {
                    for name in ["LOGNAME", "USER"] {
                        out.set(name, Text::Known(account.name.clone()), Source::Systemd);
                    }
                    if !matches!(account.home.as_str(), "" | "/") {
                        out.set("HOME", Text::Known(words::simplify(&account.home)), Source::Systemd);
                    }
                    if !none(&account.shell) {
                        out.set("SHELL", Text::Known(account.shell.clone()), Source::Systemd);
                    }
                }
                None => {
                    for name in ["LOGNAME", "USER", "HOME", "SHELL"] {
                        out.set(name, lacking(), Source::Systemd);
                    }
                }
            }
        }
    }

    fn directories_of(&self, key: &str) -> Option<Text> {
        let setting = self.settings.get(key).filter(|setting| setting.value.known() != Some(""))?;
        let letter = match key {
            "RuntimeDirectory" => "%t",
            "StateDirectory" => "%S",
            "CacheDirectory" => "%C",
            "LogsDirectory" => "%L",
            _ => "%E",
        };
        let root = crate::specifiers::resolve(letter, &self.context, 0..0, &mut Vec::new());
        let (Some(root), Some(value)) = (root.as_ref().and_then(Text::known), setting.value.known()) else {
            return Some(Text::opaque("", format!("{key}= is not known")));
        };
        let (words, _) = words::words(&value.replace('%', "%%"), &self.context);
        let mut paths = Vec::new();
        for word in &words {
            let name = word.text.shown().split(':').next().unwrap_or_default();
            // Absolute paths and those with `..` are ignored.
            if !name.is_empty() && !name.starts_with('/') && name.split('/').all(|part| part != "..") {
                paths.push(format!("{root}/{name}"));
            }
        }
        (!paths.is_empty()).then(|| Text::Known(paths.join(":")))
    }

    /// What the process of this command gets as `argv`.
    pub fn process_argv(&self, exec: &Exec, environment: &Environment) -> Read<Vec<Argument>> {
        let unknown = Text::opaque("", environment.incomplete.first().cloned().unwrap_or_default());
        let lookup = |name: &str| {
            let found = environment.variables.get(name).map(|delivered| &delivered.value);
            let open = !environment.incomplete.is_empty() && !environment.removed.contains_key(name);
            if found.is_none() && open { Some(&unknown) } else { found }
        };
        let (value, issues) = words::expand(&exec.command, &lookup);
        let span = |range: &std::ops::Range<usize>| {
            let index = exec.command.argv.iter().position(|word| word.range == *range);
            index.and_then(|index| exec.words.get(index)).unwrap_or(&exec.span).clone()
        };
        let problems = issues
            .into_iter()
            .map(|issue| Problem { kind: issue.kind, span: span(&issue.range), text: issue.text })
            .collect();
        Read { value, problems }
    }
}
