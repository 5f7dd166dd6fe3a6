//! What the operator asked for: the command line, the environment and `config.ini`, read the way this engine reads
//! them. The rules were found by running b10434; `docs/engines/llama-cpp.md` lists the experiments.
//!
//! * A word is a flag only as a whole: no `--flag=value`, no abbreviations, no combined short flags. `_` reads as `-`
//!   in words that begin with `--`. The word after a flag that takes a value is the value, also when it begins with
//!   `-`.
//! * Defaults < configuration files < environment < flags, and the last of several wins; settings marked
//!   `accumulates` are appended instead, across all sources, whatever the engine's own warning says.
//! * `NO_X` in the environment means off whatever its value, and beats `X`. A switch in the environment counts only
//!   with one of four words; in a configuration file naming it is enough. Of a variable that stands twice the first
//!   counts.
//! * Several settings may write one field. Then the last wins: the last flag, the last variable in the order in which
//!   the engine declares its options, the last key of a section in the byte order of the first flag it stands for.
//! * Numbers are read up to the first character that does not fit, and the rest is dropped in silence: `8k` is 8.

use super::{Facts, field, number};
use crate::data::{Data, Kind, Setting, truth};
use crate::nearest::nearest;
use crate::text;
use ascertain_model::{Act, Asked, Claim, EffectSpec, Finding, Intervention, Locus, Origin, Severity, Standing, Value};

/// Where something was asked, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum From {
    /// A configuration file.
    File,
    /// The environment.
    Env,
    /// The command line.
    Argv,
}

/// One request for one setting at one place.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Canonical name, or what was typed where there is no such setting.
    pub name: String,
    /// Whether the engine model has it.
    pub known: bool,
    /// The text asked, not redacted twice: artifacts are redacted when they are collected.
    pub text: String,
    /// It was asked through a negative form.
    pub negative: bool,
    /// Where.
    pub from: From,
    /// As a person finds it.
    pub place: String,
    /// What was typed: `-c`, `LLAMA_ARG_CTX_SIZE`, `ctx-size`.
    pub typed: String,
    /// The bytes.
    pub locus: Option<Locus>,
}

/// Everything that was asked.
#[derive(Debug, Default)]
pub struct Intent {
    /// One claim a setting.
    pub claims: Vec<Claim>,
    /// What the engine is known to do to requests while reading them.
    pub interventions: Vec<Intervention>,
    /// What is worth knowing about how it was asked.
    pub findings: Vec<Finding>,
    /// Every request, in the order of weight.
    pub asks: Vec<Ask>,
}

/// Reads all sources and merges them.
pub fn read(data: &Data, facts: &Facts<'_>) -> Intent {
    let mut asks = Vec::new();
    let mut intent = Intent::default();
    for file in &facts.config_files {
        from_file(data, file, &mut asks, &mut intent.findings);
    }
    from_environment(data, facts, &mut asks);
    from_argv(data, facts, &mut asks, &mut intent);
    merge(data, facts, &asks, &mut intent);
    one_field(data, facts, &asks, &mut intent);
    intent.asks = asks;
    intent
}

fn from_argv(data: &Data, facts: &Facts<'_>, asks: &mut Vec<Ask>, intent: &mut Intent) {
    let argv = &facts.argv;
    let mut swallowed = Vec::new();
    let mut index = 1;
    while index < argv.len() {
        let word = &argv[index].text;
        let flag = if word.starts_with("--") { word.replace('_', "-") } else { word.clone() };
        let place = format!("argv[{index}] {}", text::safe(word));
        let locus = argv[index].locus.clone();
        match data.flag(&flag) {
            Some((setting, positive)) => {
                let values = if positive { setting.values } else { 0 };
                let taken: Vec<&str> = argv[index + 1..].iter().take(values).map(|word| word.text.as_str()).collect();
                let text = match (setting.kind, positive) {
                    (_, false) => "false".to_string(),
                    (Kind::Switch | Kind::Bool, true) => "true".to_string(),
                    _ => taken.join(" "),
                };
                let is_flag = |word: &str| {
                    word.starts_with("--") && data.flag(&word.replace('_', "-")).is_some()
                        || word.starts_with('-') && data.flag(word).is_some()
                };
                if let Some(eaten) = taken.iter().find(|word| is_flag(word)) {
                    intent.findings.push(Finding {
                        kind: "swallowed_flag",
                        severity: Severity::Error,
                        text: format!(
                            "{word} takes a value and swallowed the next word: {eaten} was never read as a flag"
                        ),
                        evidence: locus.clone().map(|locus| (locus, format!("{word} {eaten}"))).into_iter().collect(),
                    });
                    // A switch was meant to be one; of a flag with a value the engine refuses what is left over.
                    let lost = if eaten.starts_with("--") { eaten.replace('_', "-") } else { eaten.to_string() };
                    if let Some((setting, positive)) = data.flag(&lost)
                        && (!positive || setting.values == 0)
                    {
                        let ask = Ask {
                            name: setting.name.clone(),
                            known: true,
                            text: positive.to_string(),
                            negative: !positive,
                            from: From::Argv,
                            place: place.clone(),
                            typed: eaten.to_string(),
                            locus: locus.clone(),
                        };
                        let act = Intervention {
                            setting: setting.name.clone(),
                            act: Act::Ignores,
                            by: format!("{word} takes a value and took {eaten} for it"),
                            source: None,
                            remedy: Some(format!("give {word} a value")),
                            start: facts.start.clone(),
                            locus: None,
                            excerpt: String::new(),
                        };
                        swallowed.push((ask, act));
                    }
                }
                asks.push(Ask {
                    name: setting.name.clone(),
                    known: true,
                    text,
                    negative: !positive,
                    from: From::Argv,
                    place,
                    typed: word.clone(),
                    locus,
                });
                index += 1 + values;
            }
            None => {
                let next = argv.get(index + 1).map(|word| word.text.as_str());
                let value = next.filter(|next| !next.starts_with('-') && word.starts_with('-'));
                asks.push(Ask {
                    name: typed_name(word),
                    known: false,
                    text: value.unwrap_or("true").to_string(),
                    negative: false,
                    from: From::Argv,
                    place,
                    typed: word.clone(),
                    locus,
                });
                index += 1 + usize::from(value.is_some());
            }
        }
    }
    // What is asked for elsewhere too is not lost.
    for (ask, act) in swallowed {
        if !asks.iter().any(|other| other.name == ask.name) {
            asks.push(ask);
            intent.interventions.push(act);
        }
    }
}

fn typed_name(word: &str) -> String {
    let name = text::safe(word.trim_start_matches('-')).replace('-', "_");
    if name.is_empty() { text::safe(word) } else { name }
}

fn from_environment(data: &Data, facts: &Facts<'_>, asks: &mut Vec<Ask>) {
    // In the order in which they are applied: that of the engine's options, as the data lists them.
    let order = |variable: &super::Variable| {
        let setting = data.env(&variable.name).map(|(setting, _)| setting);
        setting.and_then(|setting| data.settings.iter().position(|one| one.name == setting.name)).unwrap_or(usize::MAX)
    };
    let mut entries: Vec<&super::Variable> = facts.environ.iter().collect();
    entries.sort_by(|a, b| (order(a), &a.name).cmp(&(order(b), &b.name)));
    // The sort is stable: of a variable that stands twice the first is left, which is the one that is read.
    entries.dedup_by(|later, first| later.name == first.name);
    for variable in entries {
        let name = variable.name.as_str();
        let known = data.env(name);
        if known.is_none() && !is_slip(data, name) {
            continue;
        }
        let (canonical, negative) = match known {
            Some((setting, positive)) => (setting.name.clone(), !positive),
            None => (text::safe(name), false),
        };
        asks.push(Ask {
            name: canonical,
            known: known.is_some(),
            text: variable.value.clone(),
            negative,
            from: From::Env,
            place: format!("env {}", text::safe(name)),
            typed: name.to_string(),
            locus: variable.locus.clone(),
        });
    }
}

/// Whether a variable that names no setting was meant to: in the engine's own name space, or a near miss of it.
/// What an orchestrator injects for a service of a similar name is noise.
fn is_slip(data: &Data, name: &str) -> bool {
    let about = &data.about;
    if !name.starts_with(&about.env_family)
        || about.env_known.iter().any(|known| known == name)
        || is_service_link(name)
    {
        return false;
    }
    if name.starts_with(&about.env_prefix) || data.meant.iter().any(|meant| meant.typed == name) {
        return true;
    }
    let rest = &name[about.env_family.len()..];
    let guess = format!("{}{rest}", about.env_prefix);
    data.envs().any(|real| crate::nearest::distance(&guess, real) <= 1 + usize::from(rest.len() > 6))
}

fn is_service_link(name: &str) -> bool {
    let tail = name.rsplit("_PORT").next().unwrap_or("");
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.contains("_PORT_")
            && (tail.ends_with("_TCP") || tail.contains("_TCP_") || tail.ends_with("_UDP") || tail.contains("_UDP_"))
}

/// Sections that hold for every model are `[*]` and, over it, `[default]`, which is also what stands before any
/// section; others are passed over in silence. A section that is opened twice starts empty again. Of two spellings of
/// one setting within a section the last in byte order counts, of the same spelling the last line. `;` and `#` begin a
/// comment wherever they stand.
fn from_file(data: &Data, file: &super::ConfigFile<'_>, asks: &mut Vec<Ask>, findings: &mut Vec<Finding>) {
    let mut unread = |text: String| {
        findings.push(Finding { kind: "not_read", severity: Severity::Warning, text, evidence: Vec::new() });
    };
    let mut skipped: Vec<String> = Vec::new();
    let mut every: Vec<Ask> = Vec::new();
    let mut default: Vec<Ask> = Vec::new();
    let mut section = "default".to_string();
    let mut at = 0;
    for (index, line) in file.text.split_inclusive('\n').enumerate() {
        let start = at;
        at += line.len();
        let shown = line.trim_end();
        let content = shown.split([';', '#']).next().unwrap_or("").trim_end();
        if content.trim().is_empty() {
            continue;
        }
        if let Some(rest) = content.strip_prefix('[') {
            section = rest.split(']').next().unwrap_or("").to_string();
            let lost = match section.as_str() {
                "*" => std::mem::take(&mut every),
                "default" => std::mem::take(&mut default),
                _ => Vec::new(),
            };
            if !lost.is_empty() {
                let names: Vec<String> = lost.iter().map(|ask| text::safe(&ask.typed)).collect();
                unread(format!(
                    "{}:{}: a section that is opened again starts empty: {} above it no longer count",
                    text::safe(&file.path),
                    index + 1,
                    names.join(", ")
                ));
            }
            continue;
        }
        let asks = match section.as_str() {
            "*" => &mut every,
            "default" => &mut default,
            other => {
                if !skipped.iter().any(|name| name == other) {
                    skipped.push(other.to_string());
                }
                continue;
            }
        };
        let Some((key, value)) = content.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim());
        // Here a `NO_` variable means the setting itself, not its opposite: only flags invert.
        let known = data
            .flag(&format!("--{key}"))
            .or_else(|| data.flag(&format!("-{key}")))
            .or_else(|| data.env(key).map(|(setting, _)| (setting, true)));
        let locus = Locus {
            artifact: file.artifact.to_string(),
            start,
            end: start + shown.len(),
            label: format!("line {}", index + 1),
        };
        let ask = Ask {
            name: match known {
                Some((setting, _)) => setting.name.clone(),
                // Here `_` is no `-`: `ctx_size` is not `ctx-size`, and must not be taken for the setting of that name.
                None if data.setting(&typed_name(key)).is_some() => format!("{} in {}", text::safe(key), file.artifact),
                None => typed_name(key),
            },
            known: known.is_some(),
            text: value.to_string(),
            negative: known.is_some_and(|(_, positive)| !positive),
            from: From::File,
            place: format!("{}:{}", text::safe(&file.path), index + 1),
            typed: key.to_string(),
            locus: Some(locus),
        };
        match asks.iter().position(|other| other.name == ask.name) {
            Some(other) if asks[other].typed <= ask.typed => asks[other] = ask,
            Some(_) => {}
            None => asks.push(ask),
        }
    }
    for section in skipped {
        unread(format!(
            "{}: section [{}] is not read by this server, only [*] and [default] are",
            text::safe(&file.path),
            text::safe(&section)
        ));
    }
    // In the order in which they are applied within a section.
    let first_flag = |ask: &Ask| data.setting(&ask.name).and_then(|setting| setting.flags.first()).cloned();
    for mut section in [every, default] {
        section.sort_by_key(first_flag);
        asks.extend(section);
    }
}

fn merge(data: &Data, facts: &Facts<'_>, asks: &[Ask], intent: &mut Intent) {
    let mut names: Vec<&str> = Vec::new();
    for ask in asks.iter().rev().filter(|ask| ask.from == From::Argv).collect::<Vec<_>>().into_iter().rev() {
        if !names.contains(&ask.name.as_str()) {
            names.push(&ask.name);
        }
    }
    for ask in asks {
        if !names.contains(&ask.name.as_str()) {
            names.push(&ask.name);
        }
    }
    for name in names {
        let mine: Vec<&Ask> = asks.iter().filter(|ask| ask.name == name).collect();
        let claim = match data.setting(name) {
            Some(setting) if mine.iter().any(|ask| ask.known) => known_claim(data, facts, setting, &mine, intent),
            _ => unknown_claim(data, facts, &mine),
        };
        intent.claims.push(claim);
    }
}

/// Settings that write one and the same field: the last request wins and takes the others back in silence.
fn one_field(data: &Data, facts: &Facts<'_>, asks: &[Ask], intent: &mut Intent) {
    let mut fields: Vec<&str> = data.settings.iter().filter_map(|setting| setting.field.as_deref()).collect();
    fields.sort_unstable();
    fields.dedup();
    for field in fields {
        let group: Vec<&Setting> =
            data.settings.iter().filter(|setting| setting.field.as_deref() == Some(field)).collect();
        let is_of_group = |ask: &Ask| {
            ask.known
                && group.iter().any(|setting| {
                    setting.name == ask.name
                        && setting.is_in(facts.release.as_deref())
                        && !(setting.kind == Kind::Switch && is_unset(ask))
                })
        };
        let writers: Vec<&Ask> = asks.iter().filter(|ask| is_of_group(ask)).collect();
        let Some(from) = writers.iter().map(|ask| ask.from).max() else { continue };
        let Some(last) = writers.iter().rfind(|ask| ask.from == from) else { continue };
        let value = |setting: &Setting| {
            let mine: Vec<&Ask> = writers.iter().filter(|ask| ask.name == setting.name).copied().collect();
            let won = (!mine.is_empty()).then(|| winner(&mine))?;
            Some((won, request(setting, won).asked))
        };
        let Some((last, in_force)) = data.setting(&last.name).and_then(value) else { continue };
        for setting in group.iter().filter(|setting| setting.name != last.name) {
            let Some((won, asked)) = value(setting) else { continue };
            if let (Some(asked), Some(in_force)) = (plain_value(&asked, won), plain_value(&in_force, last))
                && field::holds((&setting.name, &asked), (&last.name, &in_force))
            {
                continue;
            }
            let names: Vec<&str> = group.iter().map(|setting| setting.name.as_str()).collect();
            let comes = match from {
                _ if won.from < from => "has more weight",
                From::Argv => "comes later",
                // There the order of the engine counts, not that of the lines.
                From::Env | From::File => "is applied later",
            };
            intent.interventions.push(Intervention {
                setting: setting.name.clone(),
                act: Act::Ignores,
                by: format!("{} sets the same field and {comes}: it replaces this in silence", last.place),
                source: None,
                remedy: Some(format!("keep one of the flags that set it: {}", names.join(", "))),
                start: facts.start.clone(),
                locus: None,
                excerpt: String::new(),
            });
        }
    }
}

fn plain_value(asked: &Asked, ask: &Ask) -> Option<Value> {
    match asked {
        Asked::Equals(value) => Some(value.clone()),
        Asked::Auto => Some(Value::text(ask.text.trim())),
        _ => None,
    }
}

/// Whether a variable of a switch is to the engine as if it were not there.
fn is_unset(ask: &Ask) -> bool {
    ask.from == From::Env && !matches!(ask.text.as_str(), "1" | "true" | "on" | "enabled")
}

/// The request that wins. A negative variable beats a positive one; otherwise the last of the weightiest source.
fn winner<'a>(asks: &[&'a Ask]) -> &'a Ask {
    let from = asks.iter().map(|ask| ask.from).max().unwrap_or(From::File);
    let mine: Vec<&&Ask> = asks.iter().filter(|ask| ask.from == from).collect();
    let negative = (from == From::Env).then(|| mine.iter().find(|ask| ask.negative)).flatten();
    negative.or(mine.last()).copied().copied().unwrap_or(asks[0])
}

fn known_claim(data: &Data, facts: &Facts<'_>, setting: &Setting, asks: &[&Ask], intent: &mut Intent) -> Claim {
    let mut won = winner(asks);
    let mut stays_on = None;
    if setting.kind == Kind::Switch && is_unset(won) {
        // It neither switches on nor off.
        if let Some(file) = asks.iter().copied().rfind(|ask| ask.from == From::File) {
            if is_no(&won.text) {
                stays_on = Some(format!("{} cannot switch off what {} switches on", won.place, file.place));
            } else {
                won = file;
            }
        }
    }
    let same_source: Vec<&Ask> = asks.iter().copied().filter(|ask| ask.from == won.from).collect();
    let mut request = if setting.accumulates && matches!(setting.kind, Kind::List) {
        let joined = join(setting, &same_source);
        match &joined.asked {
            // No name asked for is the name that the engine chooses.
            Asked::Equals(Value::Set(members)) if members.is_empty() && setting.is_auto("") => {
                Request::plain(Asked::Auto, won.text.clone())
            }
            _ => joined,
        }
    } else if setting.accumulates && same_source.len() > 1 {
        let texts: Vec<&str> = same_source.iter().map(|ask| ask.text.as_str()).collect();
        let value = if setting.json { merged(&texts) } else { None };
        Request::plain(Asked::Equals(Value::text(value.unwrap_or_else(|| texts.join(",")))), texts.join(","))
    } else {
        request(setting, won)
    };
    if setting.presence {
        request.asked = Asked::Present;
    }
    if setting.secret {
        // All sources count, and an empty one gives nothing.
        let empty = asks.iter().all(|ask| ask.text.split(',').all(|part| part.is_empty()));
        request = Request::plain(Asked::Present, if empty { String::new() } else { "[redacted]".to_string() });
        if empty {
            request.trap = Some("an empty key is no key".to_string());
            request.remedy = Some("give a key, or do not ask for one".to_string());
        }
    }

    let mut act = |act: Act, by: String, remedy: Option<String>| {
        intent.interventions.push(Intervention {
            setting: setting.name.clone(),
            act,
            by,
            source: None,
            remedy,
            start: facts.start.clone(),
            locus: None,
            excerpt: String::new(),
        });
    };
    if let Some(by) = stays_on {
        act(Act::Ignores, by, Some("remove it from the configuration file".to_string()));
    }
    if let (Some(least), Asked::Equals(Value::Int(number))) = (setting.least, &request.asked)
        && *number < least
    {
        act(
            Act::Adjusts { to: Some(Value::Int(least)) },
            format!("{number} is taken for {least}"),
            Some(format!("write {least}")),
        );
    }
    if let Some(trap) = request.trap.take() {
        act(Act::Ignores, trap, request.remedy.take());
    }
    // Sources that are appended although the engine says that the weightier one overwrites.
    if setting.accumulates && setting.kind == Kind::List && asks.len() > same_source.len() && !setting.secret {
        let others: Vec<&str> = asks.iter().filter(|ask| ask.from != won.from).map(|ask| ask.place.as_str()).collect();
        let all = join(setting, asks);
        let by = format!(
            "{} is appended, not overwritten: values of this setting add up over all sources",
            others.join(", ")
        );
        let remedy = Some(format!("remove {}", others.join(", ")));
        match (&request.asked, all.asked) {
            (Asked::Equals(mine), Asked::Equals(union)) if !mine.same(&union) => {
                let nothing = matches!(mine, Value::Set(members) if members.is_empty());
                // Asked to be off and kept on is not an adjustment of the value, it is the opposite.
                act(if nothing { Act::Ignores } else { Act::Adjusts { to: Some(union) } }, by, remedy);
            }
            _ => {}
        }
    }

    let overridden: Vec<&&Ask> =
        asks.iter().filter(|ask| !std::ptr::eq(**ask, won) && !setting.accumulates && ask.text != won.text).collect();
    if !overridden.is_empty() {
        let places: Vec<String> =
            overridden.iter().map(|ask| format!("{} asks {}", ask.place, shown(setting, &ask.text))).collect();
        intent.findings.push(Finding {
            kind: "overridden",
            severity: Severity::Info,
            text: format!("{}: {} has more weight than {}", setting.name, won.place, places.join(", ")),
            evidence: Vec::new(),
        });
    }

    let exists = setting.is_in(facts.release.as_deref());
    let read_from_env = won.from != From::Env
        || setting.env_only_in.is_empty()
        || facts.release.as_deref().is_none_or(|release| setting.env_only_in.iter().any(|known| known == release));
    let standing = if exists && read_from_env {
        Standing::Known
    } else {
        let mut nearest = meant(data, facts, &won.typed);
        if exists {
            nearest.extend(setting.flags.iter().filter(|flag| flag.starts_with("--")).take(1).cloned());
        }
        Standing::Unknown { nearest }
    };
    Claim {
        setting: setting.name.clone(),
        asked: request.asked,
        wanted: request.wanted,
        origins: origins(setting.secret, won, asks, setting.accumulates),
        standing,
        effect: setting.effect.as_ref().map(|is| EffectSpec {
            is: is.clone(),
            enough_steps: 100,
            settle: "send it real requests: ascertain verify --exercise".to_string(),
        }),
        settle: None,
    }
}

fn origins(secret: bool, won: &Ask, asks: &[&Ask], accumulates: bool) -> Vec<Origin> {
    let mut list: Vec<Origin> = Vec::new();
    let mut sorted: Vec<&&Ask> = asks.iter().collect();
    sorted.sort_by_key(|ask| (!std::ptr::eq(**ask, won), std::cmp::Reverse(ask.from)));
    for ask in sorted {
        list.push(Origin {
            kind: match ask.from {
                From::Argv => "argv",
                From::Env => "env",
                From::File => "file",
            },
            place: ask.place.clone(),
            value: if secret && !ask.text.is_empty() { "[redacted]".to_string() } else { text::safe(&ask.text) },
            overridden: !std::ptr::eq(*ask, won) && !accumulates,
            locus: ask.locus.clone(),
        });
    }
    list
}

fn shown(setting: &Setting, text: &str) -> String {
    if setting.secret && !text.is_empty() { "[redacted]".to_string() } else { text::safe(text) }
}

struct Request {
    asked: Asked,
    wanted: String,
    trap: Option<String>,
    remedy: Option<String>,
}

impl Request {
    fn plain(asked: Asked, wanted: String) -> Request {
        Request { asked, wanted: text::safe(&wanted), trap: None, remedy: None }
    }

    fn trapped(asked: Asked, wanted: &str, trap: String, remedy: &str) -> Request {
        Request { asked, wanted: text::safe(wanted), trap: Some(trap), remedy: Some(remedy.to_string()) }
    }
}

/// The union of several requests for a list, without `none` where something else is asked.
fn join(setting: &Setting, asks: &[&Ask]) -> Request {
    let mut members: Vec<&str> = Vec::new();
    for ask in asks {
        for member in ask.text.split(',').map(str::trim).filter(|member| !member.is_empty()) {
            if !members.contains(&member) {
                members.push(member);
            }
        }
    }
    // "none" neither adds a type nor takes one away.
    if setting.default.as_deref() == Some("none") {
        members.retain(|member| *member != "none");
    }
    let wanted = if members.is_empty() { "none".to_string() } else { members.join(",") };
    Request::plain(Asked::Equals(Value::set(members)), wanted)
}

fn request(setting: &Setting, ask: &Ask) -> Request {
    let text = ask.text.as_str();
    let trimmed = text.trim();
    if setting.is_auto(trimmed) {
        return Request::plain(Asked::Auto, text.to_string());
    }
    match setting.kind {
        Kind::Int if setting.choices.iter().any(|choice| choice == trimmed) => {
            Request::plain(Asked::Equals(Value::text(trimmed)), text.to_string())
        }
        Kind::Int => match number::whole(trimmed) {
            Some(read) if read.is_all_of(trimmed) => {
                Request::plain(Asked::Equals(Value::Int(read.value)), text.to_string())
            }
            read => unreadable(text, read.map(|read| read.value.to_string())),
        },
        Kind::Float => match number::fraction(trimmed) {
            Some(read) if read.is_all_of(trimmed) => {
                Request::plain(Asked::Equals(Value::Float(read.value)), text.to_string())
            }
            read => unreadable(text, read.map(|read| read.value.to_string())),
        },
        Kind::Switch | Kind::Bool => switch(setting, ask),
        Kind::List => join(setting, &[ask]),
        Kind::Enum | Kind::Text | Kind::Path => {
            let value = setting.value(text).unwrap_or_else(|| Value::text(text));
            Request::plain(Asked::Equals(value), text.to_string())
        }
    }
}

fn unreadable(text: &str, read_as: Option<String>) -> Request {
    match read_as {
        Some(read_as) => Request::trapped(
            Asked::Unreadable,
            text,
            format!("{} is read as {read_as}: the engine drops what follows the digits in silence", text::safe(text)),
            "write the number out in digits",
        ),
        None => Request::plain(Asked::Unreadable, text.to_string()),
    }
}

/// Several objects as the engine merges them: of equal keys the last.
fn merged(texts: &[&str]) -> Option<String> {
    let mut all = serde_json::Map::new();
    for text in texts {
        let serde_json::Value::Object(members) = serde_json::from_str(text).ok()? else { return None };
        all.extend(members);
    }
    Some(serde_json::Value::Object(all).to_string())
}

/// What a person writes for "off".
fn is_no(text: &str) -> bool {
    matches!(text.to_ascii_lowercase().as_str(), "0" | "false" | "off" | "disabled" | "no")
}

fn switch(setting: &Setting, ask: &Ask) -> Request {
    let truthy = |text: &str| matches!(text, "1" | "true" | "on" | "enabled");
    let text = ask.text.as_str();
    match (ask.from, setting.kind, ask.negative) {
        (From::Argv, _, negative) => Request::plain(Asked::Equals(Value::Bool(!negative)), (!negative).to_string()),
        (From::Env, _, true) => {
            let mut request = Request::plain(Asked::Equals(Value::Bool(false)), "false".to_string());
            if truth(text) == Some(false) {
                // The engine reads "off"; whether the operator meant that is another question, and a finding.
                request.remedy = None;
            }
            request
        }
        (From::Env, Kind::Switch, false) if !truthy(text) => {
            if !is_no(text) && !text.is_empty() {
                Request::trapped(
                    Asked::Equals(Value::Bool(true)),
                    text,
                    format!(
                        "{}={} is ignored in silence: only 1, true, on and enabled switch it on",
                        ask.typed,
                        text::safe(text)
                    ),
                    "write 1",
                )
            } else {
                Request::plain(Asked::Equals(Value::Bool(false)), text.to_string())
            }
        }
        (From::File, Kind::Switch, _) => {
            if !is_no(text) {
                Request::plain(Asked::Equals(Value::Bool(true)), "true".to_string())
            } else {
                Request::trapped(
                    Asked::Equals(Value::Bool(false)),
                    text,
                    format!("the value of {} in a configuration file is not read: naming it switches it on", ask.typed),
                    "remove the line to switch it off",
                )
            }
        }
        (From::File, Kind::Bool, negative) => {
            let on = truthy(text) != negative;
            Request::plain(Asked::Equals(Value::Bool(on)), on.to_string())
        }
        (_, _, negative) => match truth(text) {
            Some(on) => Request::plain(Asked::Equals(Value::Bool(on != negative)), (on != negative).to_string()),
            None => Request::plain(Asked::Unreadable, text.to_string()),
        },
    }
}

fn unknown_claim(data: &Data, facts: &Facts<'_>, asks: &[&Ask]) -> Claim {
    let won = winner(asks);
    let mut names = meant(data, facts, &won.typed);
    if names.is_empty() {
        let typed = won.typed.replace('_', "-");
        names = match won.from {
            From::Argv => nearest(&typed, data.flags(), 3),
            From::Env => nearest(&won.typed, data.envs(), 3),
            From::File => nearest(&format!("--{typed}"), data.flags(), 3)
                .into_iter()
                .map(|flag| flag.trim_start_matches('-').to_string())
                .collect(),
        };
    }
    // A flag that neither known release has, on a server that runs: it would have refused to start, so this is a
    // release that nobody has read, or not this command line. Less knowledge, never wrong knowledge.
    let refuses = won.from == From::Argv;
    let seen_release =
        facts.release.as_deref().is_some_and(|release| data.about.releases.iter().any(|known| known == release));
    let standing =
        if refuses && facts.running && !seen_release { Standing::Known } else { Standing::Unknown { nearest: names } };
    let settle = matches!(standing, Standing::Known).then(|| {
        "this release is not one ascertain has read; run the server's --help to see what the flag is".to_string()
    });
    Claim {
        setting: won.name.clone(),
        asked: Asked::Equals(Value::text(won.text.clone())),
        wanted: text::safe(&won.text),
        origins: origins(false, won, asks, false),
        standing,
        effect: None,
        settle,
    }
}

/// What is meant by a spelling that was removed, or that belongs to another release or engine.
fn meant(data: &Data, facts: &Facts<'_>, typed: &str) -> Vec<String> {
    let flag = if typed.starts_with("--") { typed.replace('_', "-") } else { typed.to_string() };
    let spelled = |name: &str| {
        data.setting(name).and_then(|setting| setting.flags.iter().find(|flag| flag.starts_with("--"))).cloned()
    };
    if let Some(removed) =
        data.removed.iter().find(|removed| removed.flags.contains(&flag) || removed.env.iter().any(|env| env == typed))
    {
        return removed.replacements.iter().filter_map(|name| spelled(name)).collect();
    }
    data.meant
        .iter()
        .filter(|meant| meant.typed == flag || meant.typed == typed)
        .filter(|meant| {
            meant.only_in.is_empty()
                || facts.release.as_deref().is_none_or(|release| meant.only_in.iter().any(|known| known == release))
        })
        .filter_map(|meant| meant.hint.clone().or_else(|| spelled(&meant.setting)))
        .collect()
}

#[cfg(test)]
#[path = "intent_tests.rs"]
mod tests;
