//! The two lowest rungs as what a process would be given: the command line behind all wrappers and the environment,
//! each word with the place where a person finds it.

use crate::collected::{Resolved, variables};
use crate::held::Held;
use crate::unit::{Content, Delivered, Environment, EnvironmentFile, Exec, Host, Setting, Source, Unit, Variable};
use crate::words::{Command, Prefixes, Word};
use crate::wrapper::{self, Change, Known, Seen};
use crate::{Kind, Span, Text};
use ascertain_model::service::{ManagerState, Script, UnitFiles, is_not_kept};
use std::collections::BTreeMap;

/// What stands for the place of a word that only the manager has.
pub const MANAGER: &str = "the manager";

/// What stands for the place of a variable that the manager gives every service.
pub const OF_ALL: &str = "the manager's environment";

/// What a process would be given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layer {
    /// The words behind all wrappers, the program first.
    pub argv: Vec<(String, Span)>,
    /// Name, value, place.
    pub environment: Vec<(String, String, Span)>,
    /// Variables whose value was not kept, with its mark.
    pub unkept: BTreeMap<String, String>,
    /// Variables that a wrapper takes away again, with the place where they are set.
    pub dropped: Vec<(String, Span)>,
    /// Why it is not all known; then nothing may be concluded from what is missing.
    pub unknown: Vec<String>,
    /// The wrappers between systemd and the program, outermost first.
    pub wrappers: Vec<String>,
    /// Whether the program is a child of the unit's main process rather than that process itself, where it is known.
    pub child: bool,
    /// Where the program works, as far as it is told: `cd` or `env -C` of a wrapper, else `WorkingDirectory=`.
    pub directory: Option<String>,
    /// The words of the outermost command line, variables replaced: what systemd runs.
    pub outer: Vec<String>,
}

/// What is written on disk.
pub fn written(resolved: &Resolved, files: &UnitFiles) -> Layer {
    let unit = &resolved.unit.value;
    let mut layer = Layer::default();
    layer.unknown.extend(files.flaw.clone());
    for problem in resolved.unit.problems.iter().filter(|problem| problem.kind == Kind::FileUnread) {
        layer.unknown.push(problem.to_string());
    }
    fill(unit, &resolved.host, &files.scripts, &mut layer);
    with_reason(layer, files)
}

/// Whoever kept the files knew why a command could not be seen through.
fn with_reason(mut layer: Layer, files: &UnitFiles) -> Layer {
    if let Some(reason) = &files.opaque {
        for why in layer.unknown.iter_mut().filter(|why| *why == wrapper::COMMAND_NOT_KEPT) {
            why.clone_from(reason);
        }
    }
    layer
}

/// What the manager holds. Environment files are read at the start, so their present content is part of it.
pub fn loaded(resolved: &Resolved, files: &UnitFiles, state: &ManagerState, held: &Held) -> Layer {
    let mut layer = Layer::default();
    layer.unknown.extend(files.flaw.clone());
    let mut unit = resolved.unit.value.clone();
    let here = Span::whole(MANAGER);
    let own = unit.start().last().cloned();
    let commands: Vec<Exec> = match &held.commands {
        Some(list) => list
            .iter()
            .map(|exact| {
                let words = exact.argv.iter().map(|word| Word { text: Text::Known(word.clone()), range: 0..0 });
                let prefixes = Prefixes { no_variables: exact.no_variables, ..Prefixes::default() };
                let path = Text::Known(exact.path.clone());
                let command = Command { prefixes, path, argv: words.collect(), range: 0..0 };
                Exec { command, span: here.clone(), words: vec![here.clone(); exact.argv.len()] }
            })
            .collect(),
        None => match held.show.commands("ExecStart").last() {
            None => Vec::new(),
            Some(printed) => {
                let joined = own.as_ref().map(|exec| {
                    let words: Vec<&str> = exec.command.argv.iter().map(|word| word.text.shown()).collect();
                    words.join(" ")
                });
                if joined.as_deref().map(str::trim_end) != Some(printed.argv.trim_end()) {
                    layer.unknown.push(
                        "systemctl prints the loaded command without quotes, so its words cannot be told apart"
                            .to_string(),
                    );
                }
                own.into_iter().collect()
            }
        },
    };
    if commands.is_empty() {
        layer.unknown.push("the manager holds no command".to_string());
    }
    unit.exec.insert("ExecStart".to_string(), commands);
    unit.environment = held
        .show
        .environment()
        .into_iter()
        .map(|(name, value)| {
            let span = here.clone();
            (name.clone(), Variable { name, value: Text::Known(value), span, overridden: Vec::new() })
        })
        .collect();
    let written_files = unit.environment_files.clone();
    unit.environment_files = held
        .show
        .environment_files()
        .into_iter()
        .map(|(path, optional)| {
            let known = written_files.iter().find(|file| file.path.known() == Some(path.as_str()));
            let content = match known {
                Some(file) => file.content.clone(),
                None if resolved.sources.entries.contains_key(&path) => reread(&path, resolved),
                None => Content::Unread("it was not collected".to_string()),
            };
            EnvironmentFile { path: Text::Known(path), optional, span: here.clone(), content }
        })
        .collect();
    for key in ["WorkingDirectory", "User"] {
        if let Some(value) = held.show.get(key) {
            let value = Text::Known(value.trim_start_matches('!').to_string());
            unit.settings.insert(key.to_string(), Setting { value, span: here.clone(), overridden: Vec::new() });
        }
    }
    for (key, list) in
        [("PassEnvironment", &mut unit.pass_environment), ("UnsetEnvironment", &mut unit.unset_environment)]
    {
        if held.show.get(key).is_some() {
            *list = held.show.list(key).into_iter().map(|name| (Text::Known(name), here.clone())).collect();
        }
    }
    if files.scripts.values().any(|script| script.reads_environment) {
        let own: BTreeMap<&str, Option<&str>> = resolved
            .unit
            .value
            .environment
            .iter()
            .map(|(name, variable)| (name.as_str(), variable.value.known()))
            .collect();
        let theirs: BTreeMap<&str, Option<&str>> =
            unit.environment.iter().map(|(name, variable)| (name.as_str(), variable.value.known())).collect();
        if own != theirs {
            layer.unknown.push("the script reads the environment, and the loaded one differs".to_string());
        }
    }
    let mut host = resolved.host.clone();
    host.manager_environment = state.environment.as_ref().map(|list| variables(list));
    fill(&unit, &host, &files.scripts, &mut layer);
    with_reason(layer, files)
}

fn reread(path: &str, resolved: &Resolved) -> Content {
    match resolved.sources.entries.get(path) {
        Some(crate::unit::Entry::Text(bytes)) => {
            Content::Read(vec![(path.to_string(), crate::words::env_file(bytes, resolved.host.version))])
        }
        Some(crate::unit::Entry::Absent) => Content::Missing,
        _ => Content::Unread("it was not collected".to_string()),
    }
}

fn fill(unit: &Unit, host: &Host, scripts: &BTreeMap<String, Script>, layer: &mut Layer) {
    let environment = unit.process_environment(host);
    layer.unknown.extend(environment.incomplete.iter().cloned());
    for file in &unit.environment_files {
        if let Content::Unread(why) = &file.content {
            let text = format!("{}: {why}", file.path.shown());
            if !layer.unknown.iter().any(|known| known.contains(file.path.shown())) {
                layer.unknown.push(text);
            }
        }
    }
    for (name, variable) in &environment.variables {
        let span = match &variable.source {
            Source::Unit(span) | Source::File(span) | Source::Pass(span) | Source::SearchPath(span) => span.clone(),
            Source::Manager => Span::whole(OF_ALL),
            // What systemd sets is no engine's configuration.
            Source::Systemd => continue,
        };
        match variable.value.known() {
            // What the manager gives every service is none of this unit's.
            Some(value) if is_not_kept(value) && variable.source == Source::Manager => {}
            Some(value) if is_not_kept(value) => {
                layer.unkept.insert(name.clone(), value.to_string());
            }
            Some(value) => layer.environment.push((name.clone(), value.to_string(), span)),
            None => layer.unknown.push(format!("{name} at {span} is not known")),
        }
    }
    let Some(exec) = unit.start().last() else {
        layer.unknown.push("the unit has no command".to_string());
        return;
    };
    let argv = unit.process_argv(exec, &environment).value;
    let mut words: Vec<String> = argv.iter().map(|argument| argument.text.shown().to_string()).collect();
    let mut places: Vec<Span> =
        argv.iter().map(|argument| exec.words.get(argument.word).unwrap_or(&exec.span).clone()).collect();
    for argument in &argv {
        if let Text::Opaque { written, why } = &argument.text {
            layer.unknown.push(format!("{written}: {why}"));
        }
    }
    layer.directory = unit.text("WorkingDirectory").map(|path| path.trim_start_matches(['-', '!']).to_string());
    layer.outer.clone_from(&words);
    // The program is the path, whatever it is told its name is.
    if let (Some(path), Some(first)) = (exec.command.path.known(), words.first_mut()) {
        *first = path.to_string();
    }
    if let Some(script) = words.first().and_then(|path| scripts.get(path)) {
        let interpreter = if script.interpreter.is_empty() { "sh" } else { &script.interpreter };
        words.insert(0, interpreter.to_string());
        places.insert(0, exec.span.clone());
    }
    inner(&words, &places, &environment, scripts, layer);
}

/// Looks through wrappers.
fn inner(
    words: &[String],
    places: &[Span],
    environment: &Environment,
    scripts: &BTreeMap<String, Script>,
    layer: &mut Layer,
) {
    match wrapper::see_through(words, &known(environment, scripts)) {
        Seen::Inner(inner) => {
            layer.argv = inner
                .argv
                .iter()
                .map(|word| {
                    let place = match &word.place.script {
                        Some(script) => Span::whole(script),
                        None => places.get(word.place.word).cloned().unwrap_or_else(|| Span::whole("")),
                    };
                    (word.text.clone(), place)
                })
                .collect();
            if let Some(directory) = &inner.directory {
                // A relative one starts where the wrapper was.
                layer.directory = directory.starts_with('/').then(|| directory.clone());
            }
            layer.wrappers = inner.layers.iter().map(|layer| layer.name.clone()).collect();
            layer.child = inner.layers.iter().any(|layer| layer.replaces != Some(true));
            let place = places.first().cloned().unwrap_or_else(|| Span::whole(""));
            for change in inner.environment {
                match change {
                    Change::Set(name, value) => {
                        layer.environment.retain(|(known, ..)| *known != name);
                        layer.unkept.remove(&name);
                        match value {
                            Some(value) if is_not_kept(&value) => {
                                layer.unkept.insert(name, value);
                            }
                            Some(value) => layer.environment.push((name, value, place.clone())),
                            None => layer.unknown.push(format!("a wrapper sets {name} to something")),
                        }
                    }
                    Change::Unset(name) => {
                        let gone = layer.environment.iter().filter(|(known, ..)| *known == name);
                        layer.dropped.extend(gone.map(|(name, _, place)| (name.clone(), place.clone())));
                        layer.environment.retain(|(known, ..)| *known != name);
                        layer.unkept.remove(&name);
                    }
                    Change::Clear => {
                        let gone = layer.environment.drain(..).filter(|(.., place)| *place.file != *OF_ALL);
                        layer.dropped.extend(gone.map(|(name, _, place)| (name, place)));
                        layer.unkept.clear();
                    }
                    Change::Anything(why) => layer.unknown.push(why),
                }
            }
            if let Some(container) = inner.container {
                layer.unknown.push(format!("{} runs the command in a container", container.tool));
            }
        }
        Seen::Opaque { why, layers, .. } => {
            let script = words.iter().find_map(|word| scripts.get(word)?.opaque.clone().map(|why| (word, why)));
            layer.wrappers = layers.iter().map(|layer| layer.name.clone()).collect();
            layer.unknown.push(script.map_or(why, |(path, why)| format!("{path}: {why}")));
        }
    }
}

/// What a wrapper may need to be seen through.
pub fn known(environment: &Environment, scripts: &BTreeMap<String, Script>) -> Known {
    let value = |delivered: &Delivered| delivered.value.known().map(str::to_string);
    Known {
        scripts: scripts
            .iter()
            .filter_map(|(path, script)| script.text.clone().map(|text| (path.clone(), text)))
            .collect(),
        environment: environment
            .incomplete
            .is_empty()
            .then(|| environment.variables.iter().map(|(name, one)| (name.clone(), value(one))).collect()),
    }
}
