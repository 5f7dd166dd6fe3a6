//! A unit as the rungs below the engine: what is written on disk, what the manager holds, what the process was given.
//!
//! What is written is what the operator wants. Where all of it is known, it decides what is claimed: a flag that was
//! taken out of the file and still runs is as wrong as one that was added and does not.

use crate::{locate, nearest, strict, text};
use ascertain_model::service::{Manager, ManagerState, UnitFiles};
use ascertain_model::{
    Asked, Capture, Claim, Evidence, Finding, Locus, Rung, Seen, Severity, Standing, StartId, Subject, Voice,
};
use ascertain_unit::Kind;
use ascertain_unit::collected::{self, Resolved};
use ascertain_unit::compare;
use ascertain_unit::held::Held;
use ascertain_unit::layers::{self, Layer};
use std::collections::BTreeMap;

/// The artifacts it is read from.
pub const FILES: &str = "unit_files.json";
/// What the manager holds.
pub const MANAGER: &str = "unit_manager.json";

/// A file written so shortly after the process began may still have been read: the kernel's ticks are coarse.
const SLACK_MS: u64 = 100;

/// What is known of the unit.
#[derive(Debug, Clone)]
pub struct Service {
    /// Its full name.
    pub name: String,
    /// On disk.
    pub written: Layer,
    /// In the manager.
    pub loaded: Option<Layer>,
    /// Where its files and the manager part, in words, with the commands that mend it.
    pub findings: Vec<Finding>,
    /// How it stands with the manager: `failed (exit-code, status 1)`.
    pub standing: String,
    /// Files it is made of that were changed after the process began.
    pub changed_after: Vec<String>,
    /// What the manager holds was read anew since the process was started, or an environment file was changed.
    pub renewed: bool,
    /// On what its files and the manager differ, and whether that is more than which files there are.
    differs: Option<(String, bool)>,
    /// Directories without links.
    real: BTreeMap<String, String>,
    /// The user the manager would run it as, where that is one known by number.
    user: Option<(String, u32)>,
    /// Marks of values that the process has of variables that are not kept.
    delivered: BTreeMap<String, String>,
    /// The option of `systemctl` that addresses its manager.
    option: &'static str,
}

/// Reads the unit of a capture, if it is of one.
pub fn read(capture: &Capture) -> Option<Service> {
    let files: UnitFiles = serde_json::from_value(strict::parse(capture.bytes(FILES)?).ok()?).ok()?;
    let state: Option<ManagerState> = capture
        .bytes(MANAGER)
        .and_then(|bytes| strict::parse(bytes).ok())
        .and_then(|value| serde_json::from_value(value).ok());
    let resolved = collected::resolve(&files, state.as_ref())?;
    let held = state.as_ref().map(Held::read);
    let written = layers::written(&resolved, &files);
    let loaded = state.as_ref().zip(held.as_ref()).map(|(state, held)| layers::loaded(&resolved, &files, state, held));
    let began = capture.manifest.start.as_ref().and_then(|start| start.since_ms);
    let changed_after = changed_after(&files, &resolved, began);
    let show = held.as_ref().map(|held| &held.show);
    let commands = show.map(|show| show.commands("ExecStart")).unwrap_or_default();
    let reread = commands.iter().any(|command| command.start.is_none());
    let (findings, differs) = findings(&resolved, held.as_ref());
    Some(Service {
        name: files.name.clone(),
        written,
        loaded,
        findings,
        differs,
        standing: standing(held.as_ref()),
        // A file that is gone has no time at which it went.
        renewed: reread
            || !changed_after.is_empty()
            || resolved.unit.problems.iter().any(|problem| problem.kind == Kind::FileMissing),
        changed_after,
        option: files.manager.option(),
        user: user(&files, held.as_ref()),
        real: files.real,
        delivered: files.delivered,
    })
}

/// The user of the service. Prefixes of the command and users made up for it are left aside.
fn user(files: &UnitFiles, held: Option<&Held>) -> Option<(String, u32)> {
    let held = held?;
    let plain = held.show.commands("ExecStart").iter().all(|command| {
        !command.flags.iter().any(|flag| matches!(flag.as_str(), "privileged" | "no-setuid" | "ambient"))
    });
    if !plain || held.show.flag("DynamicUser") == Some(true) || !matches!(files.manager, Manager::System) {
        return None;
    }
    match held.show.get("User")? {
        "" => Some(("root".to_string(), 0)),
        user => {
            let known = files.accounts.iter().find(|account| account.name == user).map(|account| account.uid);
            Some((user.to_string(), user.parse().ok().or(known)?))
        }
    }
}

fn changed_after(files: &UnitFiles, resolved: &Resolved, began: Option<u64>) -> Vec<String> {
    let Some(began) = began else { return Vec::new() };
    let unit = &resolved.unit.value;
    let mut paths: Vec<&str> = unit.paths().collect();
    let environment = unit.environment_files.iter().filter_map(|file| file.path.known());
    paths.extend(environment);
    let mut list: Vec<String> = Vec::new();
    let mut newer = |path: &str, changed: Option<u64>| {
        if changed.is_some_and(|changed| changed > began + SLACK_MS) && !list.iter().any(|known| known == path) {
            list.push(path.to_string());
        }
    };
    for path in paths {
        // Through links to the file itself.
        let mut at = path.to_string();
        for _ in 0..16 {
            match files.entries.get(&at) {
                Some(ascertain_model::service::FileEntry::Link(target)) => {
                    at = ascertain_unit::unit::joined(&at, target);
                }
                Some(ascertain_model::service::FileEntry::Text(file)) => {
                    newer(path, file.changed_ms);
                    break;
                }
                _ => break,
            }
        }
    }
    for (path, script) in &files.scripts {
        newer(path, script.changed_ms);
    }
    list
}

fn standing(held: Option<&Held>) -> String {
    let Some(held) = held else { return "its manager was not asked".to_string() };
    let get = |name: &str| held.show.text(name);
    if get("LoadState") == Some("masked") {
        return "masked".to_string();
    }
    let active = get("ActiveState").unwrap_or("not known to its manager");
    let mut notes: Vec<String> = Vec::new();
    if let Some(sub) = get("SubState").filter(|sub| *sub != active && !matches!(*sub, "dead" | "running")) {
        notes.push(sub.to_string());
    }
    if let Some(result) = get("Result").filter(|result| *result != "success") {
        notes.push(result.to_string());
        if let Some(status) = held.show.number("ExecMainStatus").filter(|status| *status != 0) {
            let what = if result == "signal" || result == "core-dump" { "signal" } else { "status" };
            notes.push(format!("{what} {status}"));
        }
    }
    if let Some(restarts) = held.show.number("NRestarts").filter(|restarts| *restarts > 0) {
        notes.push(format!("restarted {restarts} times"));
    }
    if notes.is_empty() { active.to_string() } else { format!("{active} ({})", notes.join(", ")) }
}

/// Keys that decide what is run, and with what.
const KEYS: [&str; 8] = [
    "Environment",
    "EnvironmentFile",
    "ExecStart",
    "ExecSearchPath",
    "PassEnvironment",
    "UnsetEnvironment",
    "User",
    "WorkingDirectory",
];

/// Near misses of keys and sections that decide what is run: systemd passes over them with a line in its own log.
fn misspelt(resolved: &Resolved) -> Vec<String> {
    let unit = &resolved.unit.value;
    let mut list = Vec::new();
    for file in unit.files.iter().filter(|file| unit.paths().any(|path| *path == *file.path)) {
        for assignment in &file.assignments {
            let (key, span) = (assignment.key.as_str(), &assignment.span);
            let section = assignment.section.as_deref().unwrap_or("");
            if section != "Service" && section.eq_ignore_ascii_case("Service") {
                list.push(text::safe(&format!("{span}: systemd ignores [{section}], it is called [Service]")));
                break;
            }
            let near = |known: &&&str| {
                **known != key
                    && (known.eq_ignore_ascii_case(key)
                        || nearest::distance(known, key) <= 1 + usize::from(key.len() > 8))
            };
            if section == "Service"
                && !KEYS.contains(&key)
                && !OTHERS.contains(&key)
                && let Some(meant) = KEYS.iter().find(near)
            {
                list.push(text::safe(&format!("{span}: systemd ignores {key}=, {meant}= is meant")));
            }
        }
    }
    list
}

/// Keys that are none of those and look like one.
const OTHERS: [&str; 4] = ["ExecStop", "ExecStartPre", "ExecStartPost", "ExecCondition"];

/// What systemd does not take as it was meant.
const IGNORED: [Kind; 12] = [
    Kind::UnknownSection,
    Kind::FileMissing,
    Kind::WrongSection,
    Kind::BadHeader,
    Kind::NotAnAssignment,
    Kind::BlankAfterBackslash,
    Kind::EndsInContinuation,
    Kind::NotUtf8,
    Kind::UnknownEscape,
    Kind::UnbalancedQuote,
    Kind::InvalidAssignment,
    Kind::UnsetVariable,
];

fn findings(resolved: &Resolved, held: Option<&Held>) -> (Vec<Finding>, Option<(String, bool)>) {
    // Of what could not be read nothing is known, not even that something is missing.
    if resolved.unit.problems.iter().any(|problem| problem.kind == Kind::FileUnread) {
        return (Vec::new(), None);
    }
    let found = compare::compare(&resolved.unit.value, held.map(|held| &held.show));
    let parted = |found: &compare::Finding| {
        let names = |one: &compare::Difference| matches!(one.what.as_str(), "DropInPaths" | "FragmentPath");
        let serious = match found.what {
            compare::What::NotReloaded => !found.differences.iter().all(names),
            compare::What::DropInIgnored | compare::What::Refused => true,
            compare::What::Masked => false,
            _ => return None,
        };
        Some((text::safe(&found.text), serious))
    };
    let all: Vec<(String, bool)> = found.iter().filter_map(parted).collect();
    let differs = all.iter().find(|(_, serious)| *serious).cloned();
    let differs_mildly = all.into_iter().next();
    let misspelt: Vec<(String, bool)> = misspelt(resolved).into_iter().map(|text| (text, true)).collect();
    let differs = differs.or(misspelt.first().cloned());
    let missing = resolved.unit.problems.iter().find(|problem| problem.kind == Kind::FileMissing);
    let differs = differs.or(missing.map(|problem| (text::safe(&problem.text), true))).or(differs_mildly);
    let ignored =
        resolved.unit.problems.iter().filter(|problem| IGNORED.contains(&problem.kind)).map(|problem| Finding {
            kind: "unit_ignored",
            severity: if problem.kind == Kind::FileMissing { Severity::Error } else { Severity::Warning },
            text: text::safe(&problem.to_string()),
            evidence: Vec::new(),
        });
    let found = found
        .into_iter()
        // The state says it.
        .filter(|found| found.what != compare::What::NotRunning)
        .map(|found| {
            let mut text = found.text;
            if !found.remedy.is_empty() && found.severity != compare::Severity::Info {
                text.push_str(&format!("; {}", found.remedy.join(" && ")));
            }
            Finding {
                kind: found.what.name(),
                severity: match found.severity {
                    compare::Severity::Info => Severity::Info,
                    compare::Severity::Warning => Severity::Warning,
                    compare::Severity::Error => Severity::Error,
                },
                text: text::safe(&text),
                evidence: Vec::new(),
            }
        })
        .chain(ignored)
        .chain(misspelt.into_iter().map(|(text, _)| Finding {
            kind: "unit_ignored",
            severity: Severity::Error,
            text,
            evidence: Vec::new(),
        }))
        .collect();
    (found, differs)
}

/// What the lower rungs add to a case.
#[derive(Debug, Default)]
pub struct Lower {
    /// Evidence of the rungs written, loaded and delivered.
    pub evidence: Vec<Evidence>,
    /// Why what runs may not be what is written although no claim shows it.
    pub doubt: Option<String>,
    /// What runs otherwise than it is written and is no claim.
    pub broken: Option<String>,
    /// What is worth knowing.
    pub findings: Vec<Finding>,
}

/// What one rung asks for.
struct Asking<'a> {
    rung: Rung,
    claims: Vec<Claim>,
    /// Nothing may be concluded from what is not there.
    partial: bool,
    witness: &'static str,
    artifact: &'static str,
    capture: &'a Capture,
}

/// Puts the rungs below the engine under its claims. `claims` are those of what was delivered, and become those of
/// what is written where that is known; `of` reads a layer as the engine reads a command line and environment.
pub fn apply(
    service: &Service,
    capture: &Capture,
    start: &StartId,
    claims: &mut Vec<Claim>,
    of: &dyn Fn(&Layer) -> Vec<Claim>,
) -> Lower {
    let mut lower = Lower::default();
    let has_process = capture.bytes("proc_cmdline.json").is_some();
    let written = Asking {
        rung: Rung::Written,
        claims: placed(of(&service.written), "unit"),
        partial: !service.written.unknown.is_empty(),
        witness: "unit",
        artifact: FILES,
        capture,
    };
    let loaded = service.loaded.as_ref().map(|layer| Asking {
        rung: Rung::Loaded,
        claims: placed(of(layer), "manager"),
        partial: !layer.unknown.is_empty(),
        witness: "manager",
        artifact: MANAGER,
        capture,
    });
    let delivered = has_process.then(|| Asking {
        rung: Rung::Delivered,
        claims: claims.clone(),
        partial: capture.gap("proc_environ.json").is_some()
            || claims.is_empty() && capture.bytes("proc_environ.json").is_none(),
        witness: "process",
        artifact: "proc_cmdline.json",
        capture,
    });
    for why in &service.written.unknown {
        lower.findings.push(Finding {
            kind: "unit_not_known",
            severity: Severity::Info,
            text: format!(
                "not all of what {} asks is known, so it is judged by what its process was given: {}",
                service.name,
                text::safe(why)
            ),
            evidence: Vec::new(),
        });
    }
    if has_process && let Some((text, serious)) = &service.differs {
        // A drop-in that is not loaded and says nothing new changes nothing.
        if *serious { lower.broken = Some(text.clone()) } else { lower.doubt = Some(text.clone()) }
    }
    if has_process && written.partial && !service.changed_after.is_empty() {
        lower.doubt = Some(format!(
            "{} changed after it was started, and what that changes cannot be told ({})",
            service.changed_after.join(", "),
            text::safe(service.written.unknown.first().map_or("", String::as_str)),
        ));
    }
    if has_process {
        service.other_variables(capture, &mut lower);
        service.other_facts(capture, &mut lower);
        service.dropped(of, &mut lower);
    }
    if has_process && written.partial {
        let why = text::safe(service.written.unknown.first().map_or("", String::as_str));
        lower.doubt.get_or_insert(format!("not all of what {} asks for is known ({why})", service.name));
    }
    // What cannot be read on disk the manager may hold.
    match &loaded {
        _ if !written.partial => adopt(claims, &written, delivered.as_ref()),
        Some(loaded) if !loaded.partial => adopt(claims, loaded, delivered.as_ref()),
        _ => {}
    }
    let rungs: Vec<&Asking<'_>> = std::iter::once(&written).chain(&loaded).chain(&delivered).collect();
    for claim in claims.iter_mut() {
        for rung in &rungs {
            lower.evidence.extend(rung.evidence(claim, start));
        }
        if claim.settle.is_none() {
            claim.settle = service.mends(claim, &written, loaded.as_ref(), delivered.as_ref());
        }
    }
    // Something between systemd and the program took it away: nothing was changed since the start.
    if !service.renewed && has_process {
        let between = match service.written.wrappers.as_slice() {
            [] => "what systemd starts".to_string(),
            wrappers => wrappers.join(", "),
        };
        for one in &mut lower.evidence {
            let lost = one.rung == Rung::Delivered
                && claims.iter().any(|claim| claim.setting == one.setting && claim.is_asked(&one.seen) == Some(false));
            if lost {
                one.note = Some(format!("{between} did not hand it on"));
            }
        }
    }
    lower
}

/// What is written takes the place of what was delivered.
fn adopt(claims: &mut Vec<Claim>, written: &Asking<'_>, delivered: Option<&Asking<'_>>) {
    for claim in claims.iter_mut() {
        match written.claims.iter().find(|wanted| wanted.setting == claim.setting) {
            Some(wanted) if wanted.asked.same(&wanted.wanted, &claim.asked, &claim.wanted) => {
                let mut origins = wanted.origins.clone();
                origins.append(&mut claim.origins);
                claim.origins = origins;
            }
            Some(wanted) => {
                // What the running value does says nothing of the wanted one.
                *claim = Claim { effect: None, ..wanted.clone() };
            }
            // A configuration file of the engine's own is no part of the unit.
            None if claim.origins.iter().all(|origin| origin.kind == "file") => {}
            None => {
                claim.asked = Asked::Unset;
                claim.wanted = "not asked for".to_string();
                claim.effect = None;
                claim.standing = Standing::Known;
            }
        }
    }
    for wanted in &written.claims {
        if !claims.iter().any(|claim| claim.setting == wanted.setting) {
            let partial = delivered.is_some_and(|delivered| delivered.partial);
            let effect = wanted.effect.clone().filter(|_| partial);
            claims.push(Claim { effect, ..wanted.clone() });
        }
    }
}

impl Asking<'_> {
    fn evidence(&self, claim: &Claim, start: &StartId) -> Option<Evidence> {
        let (asked, seen) = self.seen(claim);
        if self.partial && claim.is_asked(&seen) == Some(false) {
            return None;
        }
        // What the engine's own files ask for is on no rung of the unit.
        if asked.is_none() && claim.origins.iter().all(|origin| origin.kind == "file") {
            return None;
        }
        let origin = asked.and_then(|asked| asked.origins.iter().find(|origin| !origin.overridden));
        let place = origin.map(|origin| origin.place.clone()).unwrap_or_default();
        let locus = match origin.and_then(|origin| origin.locus.clone()) {
            Some(locus) if locus.artifact == FILES && self.rung == Rung::Written => {
                let (start, end) = range(self.capture, &locus.label);
                Locus { start, end, ..locus }
            }
            Some(locus) if locus.artifact != FILES => locus,
            _ => Locus {
                artifact: self.artifact.to_string(),
                start: 0,
                end: self.capture.bytes(self.artifact).map_or(0, <[u8]>::len),
                label: String::new(),
            },
        };
        let excerpt = match asked {
            Some(asked) => text::safe(format!("{place} {}", asked.wanted).trim()),
            None => format!("{} is not asked for", claim.setting),
        };
        Some(Evidence {
            setting: claim.setting.clone(),
            subject: Subject::Value,
            seen,
            rung: self.rung,
            voice: Voice::Effective,
            witness: self.witness.to_string(),
            start: start.clone(),
            locus,
            excerpt,
            note: None,
        })
    }

    /// What this rung asks for, and how it shows.
    fn seen(&self, claim: &Claim) -> (Option<&Claim>, Seen) {
        let asked = self.claims.iter().find(|known| known.setting == claim.setting);
        let seen = asked.map_or(Seen::NotAsked, |asked| Seen::Asks(asked.asked.clone(), asked.wanted.clone()));
        (asked, seen)
    }

    fn agrees_on(&self, claim: &Claim) -> Option<bool> {
        claim.is_asked(&self.seen(claim).1).filter(|agreed| *agreed || !self.partial)
    }
}

impl Service {
    /// The option of `systemctl` and `journalctl` that addresses its manager, with a blank behind it, or nothing.
    pub fn option(&self) -> &'static str {
        self.option
    }

    /// Variables that are none of the engine's own and that the process has otherwise than what is loaded.
    fn other_variables(&self, capture: &Capture, lower: &mut Lower) {
        let layer = self.loaded.as_ref().filter(|layer| layer.unknown.is_empty()).unwrap_or(&self.written);
        if !layer.unknown.is_empty() || capture.gap("proc_environ.json").is_some() {
            return;
        }
        let more: Vec<&str> =
            self.delivered.keys().filter(|name| !layer.unkept.contains_key(*name)).map(String::as_str).collect();
        if !more.is_empty() {
            let text = format!("its process has {}, which nothing gives it now", more.join(", "));
            lower.findings.push(Finding {
                kind: "environment_differs",
                severity: Severity::Warning,
                text: text::safe(&format!("{text}; systemctl {}restart {}", self.option, self.name)),
                evidence: Vec::new(),
            });
            lower.doubt.get_or_insert(text);
        }
        let names: Vec<&str> = layer
            .unkept
            .iter()
            .filter(|(name, mark)| self.delivered.get(*name) != Some(mark))
            .map(|(name, _)| name.as_str())
            .collect();
        if names.is_empty() {
            return;
        }
        let mends = if self.renewed {
            format!("systemctl {}restart {}", self.option, self.name)
        } else {
            format!(
                "something between systemd and the program changed them; systemctl {}cat {}",
                self.option, self.name
            )
        };
        let text = format!("its process does not have {} as loaded now", names.join(", "));
        lower.findings.push(Finding {
            kind: "environment_differs",
            severity: Severity::Warning,
            text: text::safe(&format!("{text}; {mends}")),
            evidence: Vec::new(),
        });
        lower.broken.get_or_insert(text);
    }

    /// Variables of the engine that the unit sets and a wrapper takes away: they were meant to reach it.
    fn dropped(&self, of: &dyn Fn(&Layer) -> Vec<Claim>, lower: &mut Lower) {
        let layer = &self.written;
        for (name, place) in &layer.dropped {
            let alone = Layer { environment: vec![(name.clone(), "1".to_string(), place.clone())], ..Layer::default() };
            let is_read = !of(&Layer { argv: layer.argv.first().cloned().into_iter().collect(), ..alone }).is_empty();
            let set_again = layer.environment.iter().any(|(known, ..)| known == name);
            if !is_read || set_again {
                continue;
            }
            let text = text::safe(&format!(
                "{name} at {place} does not reach the server: {} drops it",
                layer.wrappers.join(", ")
            ));
            lower.findings.push(Finding {
                kind: "variable_dropped",
                severity: Severity::Error,
                text: text.clone(),
                evidence: Vec::new(),
            });
            lower.broken.get_or_insert(text);
        }
    }

    /// The program, its user and its directory, where the process has them otherwise than what is loaded.
    fn other_facts(&self, capture: &Capture, lower: &mut Lower) {
        let layer = self.loaded.as_ref().filter(|layer| layer.unknown.is_empty()).unwrap_or(&self.written);
        if !layer.unknown.is_empty() {
            return;
        }
        let read = |name: &str| capture.bytes(name).and_then(|bytes| strict::parse(bytes).ok());
        let restart = format!("systemctl {}restart {}", self.option, self.name);
        let mut differs = |text: String, proven: bool| {
            lower.findings.push(Finding {
                kind: "process_differs",
                severity: Severity::Warning,
                text: text::safe(&format!("{text}; {restart}")),
                evidence: Vec::new(),
            });
            let place = if proven { &mut lower.broken } else { &mut lower.doubt };
            place.get_or_insert(text);
        };
        let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_string();
        let first = read("proc_cmdline.json").and_then(|words| words.get(0)?.as_str().map(str::to_string));
        if let (Some((program, _)), Some(first)) = (layer.argv.first(), first)
            && program.starts_with('/')
            && first.starts_with('/')
            // One that was given another name is not known by it.
            && base(program) == base(&first)
            && *program != first
        {
            differs(format!("its process runs {first}, not {program} as loaded now"), true);
        }
        let process = read("process.json");
        let told = |name: &str| process.as_ref().and_then(|process| process.get(name)?.as_str().map(str::to_string));
        if let (Some(directory), Some(cwd)) = (&layer.directory, told("cwd"))
            && let Some(real) = self.real.get(directory)
            && *real != cwd
        {
            // A program may change it.
            differs(format!("its process works in {cwd}, not in {directory} as loaded now"), false);
        }
        let uid = capture.bytes("proc_status.txt").and_then(|bytes| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.lines()
                .find_map(|line| line.strip_prefix("Uid:")?.split_ascii_whitespace().next()?.parse::<u32>().ok())
        });
        if let (Some(uid), Some((user, wanted))) = (uid, &self.user)
            && layer.wrappers.is_empty()
            && uid != *wanted
        {
            differs(format!("its process runs as user {uid}, not as {user} ({wanted}) as loaded now"), true);
        }
    }

    /// What mends a break between two rungs below the engine.
    fn mends(
        &self,
        claim: &Claim,
        written: &Asking<'_>,
        loaded: Option<&Asking<'_>>,
        delivered: Option<&Asking<'_>>,
    ) -> Option<String> {
        let (option, name) = (self.option, &self.name);
        if written.agrees_on(claim) == Some(true) && loaded.and_then(|rung| rung.agrees_on(claim)) == Some(false) {
            return Some(format!("systemctl {option}daemon-reload && systemctl {option}restart {name}"));
        }
        if delivered.and_then(|rung| rung.agrees_on(claim)) == Some(false) {
            if self.renewed {
                return Some(format!("systemctl {option}restart {name}"));
            }
            return Some(format!("look at what stands between systemd and the program: systemctl {option}cat {name}"));
        }
        None
    }
}

/// Claims with the places of the layer they were read from, rather than the words' numbers.
fn placed(mut claims: Vec<Claim>, kind: &'static str) -> Vec<Claim> {
    for claim in &mut claims {
        // The engine's own files are read whatever the unit says.
        claim.origins.retain(|origin| origin.kind != "file");
        for origin in &mut claim.origins {
            let typed = origin.place.split_once(' ').map_or("", |(_, typed)| typed);
            if let Some(locus) = &origin.locus {
                origin.place = format!("{} {typed}", locus.label).trim().to_string();
            }
            origin.kind = kind;
        }
    }
    claims.retain(|claim| !claim.origins.is_empty());
    claims
}

/// Where in the artifact the text of the file stands that a place (`/path:5`) is in.
fn range(capture: &Capture, place: &str) -> (usize, usize) {
    let path = place.rsplit_once(':').map_or(place, |(path, _)| path);
    let pointer = format!("/entries/{}/text", path.replace('~', "~0").replace('/', "~1"));
    let found = capture.bytes(FILES).and_then(|bytes| locate::locate(bytes, &pointer));
    found.map_or((0, 0), |range| (range.start, range.end))
}
