//! Units: what the manager holds of one, and the files it is made of. Read-only: `busctl` and `systemctl` are run to
//! ask, never to change.
//!
//! What is gathered here is NOT redacted: [`crate::scrub`] decides what of it may be kept.

use crate::command::{self, Error};
use crate::file::{self, Content, Root};
use crate::process;
use ascertain_model::service::{Account, FileEntry, FileText, Manager, ManagerState, Script, UnitFiles};
use ascertain_model::wants::ProcessFacts;
use ascertain_unit::collected::{self, Resolved};
use ascertain_unit::held::Held;
use ascertain_unit::layers::{self, Layer};
use ascertain_unit::specifiers::UnitName;
use ascertain_unit::unit;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Most that the manager may answer.
const LONGEST_ANSWER: u64 = 8 << 20;
/// A unit file, drop-in or environment file is never longer.
const LONGEST_FILE: u64 = 1 << 20;
/// A script that starts a server is never longer.
const LONGEST_SCRIPT: u64 = 64 << 10;
/// Links that are followed one after the other.
const MOST_LINKS: usize = 16;
/// Where a host's control groups are; the second where version 1 is mounted beside it.
const GROUPS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Properties that are kept. Others say nothing about what a service was told, or may hold secrets
/// (`SetCredential`).
pub const PROPERTIES: &[&str] = &[
    "ActiveEnterTimestamp",
    "ActiveState",
    "ControlGroup",
    "DropInPaths",
    "DynamicUser",
    "Environment",
    "EnvironmentFiles",
    "ExecMainCode",
    "ExecMainExitTimestamp",
    "ExecMainPID",
    "ExecMainStartTimestamp",
    "ExecMainStartTimestampMonotonic",
    "ExecMainStatus",
    "ExecStart",
    "ExecStartEx",
    "FragmentPath",
    "Group",
    "Id",
    "InactiveEnterTimestamp",
    "InactiveExitTimestamp",
    "InvocationID",
    "LoadState",
    "LogLevelMax",
    "LogNamespace",
    "LogRateLimitBurst",
    "LogRateLimitIntervalUSec",
    "MainPID",
    "NRestarts",
    "Names",
    "NeedDaemonReload",
    "PassEnvironment",
    "Restart",
    "RestartUSec",
    "Result",
    "RootDirectory",
    "SourcePath",
    "StandardError",
    "StandardOutput",
    "StateChangeTimestamp",
    "SubState",
    "Transient",
    "Type",
    "UnitFileState",
    "UnsetEnvironment",
    "User",
    "WorkingDirectory",
];

/// A unit, as the manager and its files know it. Not redacted.
#[derive(Clone)]
pub struct Unit {
    /// What the manager holds.
    pub state: ManagerState,
    /// What its files say. Scripts are as they are on disk.
    pub files: UnitFiles,
}

impl std::fmt::Debug for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unit").field("name", &self.files.name).finish_non_exhaustive()
    }
}

impl Unit {
    /// Its full name.
    pub fn name(&self) -> &str {
        &self.files.name
    }

    /// Whose it is.
    pub fn manager(&self) -> &Manager {
        &self.files.manager
    }

    /// A property that is one text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.state.properties.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// A property that is one number.
    pub fn number(&self, name: &str) -> Option<u64> {
        let value = self.state.properties.get(name)?;
        value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
    }

    /// Its main process.
    pub fn main_pid(&self) -> Option<u32> {
        self.number("MainPID").and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0)
    }

    /// The id of its last start, 32 hexadecimal digits.
    pub fn invocation(&self) -> Option<String> {
        let id = match self.state.properties.get("InvocationID")? {
            Value::String(id) => id.replace('-', ""),
            Value::Array(bytes) => {
                bytes.iter().map(|byte| byte.as_u64().map(|byte| format!("{byte:02x}"))).collect::<Option<String>>()?
            }
            _ => return None,
        };
        (id.len() == 32 && id.bytes().any(|byte| byte != b'0')).then_some(id)
    }

    /// Whether a process was left over by another start than the one the manager speaks of: its own environment says of
    /// which it is.
    pub fn is_left_over(&self, facts: &ProcessFacts) -> bool {
        facts.env("INVOCATION_ID").is_some_and(|id| {
            self.main_pid() != Some(facts.pid) && self.invocation().is_some_and(|own| own != id.replace('-', ""))
        })
    }

    /// Whether the manager knows it, or a file of that name is there.
    fn is_there(&self) -> bool {
        !matches!(self.text("LoadState"), Some("not-found") | None)
            || self.resolved().is_some_and(|resolved| resolved.unit.value.fragment.is_some())
    }

    /// What its files come to.
    pub fn resolved(&self) -> Option<Resolved> {
        collected::resolve(&self.files, Some(&self.state))
    }

    /// What a process would be given by what is written, and by what is loaded.
    pub fn layers(&self) -> Option<(Layer, Layer)> {
        self.resolved().map(|resolved| self.layers_of(&resolved))
    }

    /// The same of a unit that is resolved already.
    pub(crate) fn layers_of(&self, resolved: &Resolved) -> (Layer, Layer) {
        let held = Held::read(&self.state);
        let written = layers::written(resolved, &self.files);
        let loaded = layers::loaded(resolved, &self.files, &self.state, &held);
        (written, loaded)
    }
}

/// What must be known of a host to find out about its units: of this one, or of another.
pub(crate) trait Machine {
    /// Asks a manager several things at once.
    fn ask(&self, program: &str, manager: &Manager, questions: &[&[&str]]) -> Vec<Result<Vec<u8>, Error>>;
    /// Our user there.
    fn uid(&self) -> u32;
    /// `$XDG_RUNTIME_DIR` of a user.
    fn runtime(&self, uid: u32) -> String;
    /// What a path is.
    fn kind(&self, path: &str) -> Kind;
    /// Reads the beginning of a regular file.
    fn read(&self, path: &str, limit: u64) -> io::Result<Content>;
    /// The same as a process sees it, which may have another file tree.
    fn read_as(&self, pid: Option<u32>, path: &str, limit: u64) -> io::Result<Content> {
        let _ = pid;
        self.read(path, limit)
    }
    /// A path without links, where that is found out.
    fn real(&self, path: &str) -> Option<String> {
        let _ = path;
        None
    }
    /// The names in a directory; none where it cannot be read.
    fn names(&self, directory: &str) -> Vec<String>;
    /// The processes of a control group and of those below it, lowest first.
    fn processes(&self, group: &str) -> Vec<u32>;
}

/// What a path is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing is there.
    Absent,
    /// It may not be looked at, and why.
    Unreadable(String),
    /// A symbolic link, with what it says.
    Link(String),
    /// A directory.
    Directory,
    /// Anything else.
    Other,
}

/// This host.
struct Here {
    timeout: Duration,
}

impl Machine for Here {
    fn ask(&self, program: &str, manager: &Manager, questions: &[&[&str]]) -> Vec<Result<Vec<u8>, Error>> {
        let one = |words: &[&str]| command::run(ask(program, manager).args(words), self.timeout, LONGEST_ANSWER);
        let ended = || Error::Output { program: program.to_owned(), what: "nothing".to_owned() };
        std::thread::scope(|scope| {
            let running: Vec<_> = questions.iter().map(|words| scope.spawn(move || one(words))).collect();
            running.into_iter().map(|one| one.join().unwrap_or_else(|_| Err(ended()))).collect()
        })
    }

    fn uid(&self) -> u32 {
        rustix::process::getuid().as_raw()
    }

    fn runtime(&self, uid: u32) -> String {
        let ours = uid == self.uid();
        let runtime = ours.then(|| std::env::var("XDG_RUNTIME_DIR").ok()).flatten().filter(|dir| dir.starts_with('/'));
        runtime.unwrap_or_else(|| format!("/run/user/{uid}"))
    }

    fn kind(&self, path: &str) -> Kind {
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Kind::Absent,
            Err(error) => Kind::Unreadable(error.to_string()),
            Ok(metadata) if metadata.is_symlink() => match std::fs::read_link(path) {
                Ok(target) => Kind::Link(target.to_string_lossy().into_owned()),
                Err(error) => Kind::Unreadable(error.to_string()),
            },
            Ok(metadata) if metadata.is_dir() => Kind::Directory,
            Ok(_) => Kind::Other,
        }
    }

    fn read(&self, path: &str, limit: u64) -> io::Result<Content> {
        file::read_head(Path::new(path), &Root::ours(), limit)
    }

    fn read_as(&self, pid: Option<u32>, path: &str, limit: u64) -> io::Result<Content> {
        file::read_head(Path::new(path), &pid.map_or_else(Root::ours, Root::of), limit)
    }

    fn real(&self, path: &str) -> Option<String> {
        std::fs::canonicalize(path).ok()?.into_os_string().into_string().ok()
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn processes(&self, group: &str) -> Vec<u32> {
        processes(group)
    }
}

/// Looks a unit up by its name, with the system's manager, then with one's own. `None`: there is no such unit.
pub fn find(name: &str, timeout: Duration) -> Result<Option<Unit>, Error> {
    find_on(&Here { timeout }, name)
}

/// The same on any host.
pub(crate) fn find_on(machine: &dyn Machine, name: &str) -> Result<Option<Unit>, Error> {
    let Some(parsed) = UnitName::parse(name) else { return Ok(None) };
    let system = of_manager(machine, &parsed.full(), Manager::System);
    match system {
        Ok(unit) if unit.is_there() => return Ok(Some(unit)),
        _ => {}
    }
    if let Some(manager) = user_manager(machine, machine.uid())
        && let Ok(unit) = of_manager(machine, &parsed.full(), manager)
        && unit.is_there()
    {
        return Ok(Some(unit));
    }
    system.map(|_| None)
}

/// The unit a process belongs to, by its control group. `None`: it belongs to none, such as one started by hand.
pub fn of_process(pid: u32, timeout: Duration) -> Option<Result<Unit, Error>> {
    let groups = String::from_utf8(process::read(pid, "cgroup").ok()?).ok()?;
    of_groups(&Here { timeout }, &groups)
}

/// The same on any host, from the text of `/proc/PID/cgroup`.
pub(crate) fn of_groups(machine: &dyn Machine, groups: &str) -> Option<Result<Unit, Error>> {
    let (name, uid) = named_in(groups)?;
    let manager = match uid {
        None => Manager::System,
        Some(uid) => user_manager(machine, uid)?,
    };
    let unit = match of_manager(machine, &name, manager) {
        Ok(unit) => unit,
        Err(error) => return Some(Err(error)),
    };
    // The name in a control group of another host or container means something else here. A service may have made
    // groups below its own.
    let group = unit.text("ControlGroup")?;
    let within = |path: &str| path.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    groups.lines().filter_map(|line| line.splitn(3, ':').nth(2)).any(within).then_some(Ok(unit))
}

/// The name of the unit in whose control group a process is, and whose it is, without asking the manager.
pub fn named_by(pid: u32) -> Option<(String, Manager)> {
    let groups = String::from_utf8(process::read(pid, "cgroup").ok()?).ok()?;
    let (name, uid) = named_in(&groups)?;
    let manager = match uid {
        None => Manager::System,
        Some(uid) => Manager::User { uid, home: String::new(), runtime: String::new() },
    };
    Some((name, manager))
}

/// The unit that the text of `/proc/PID/cgroup` names, and the user whose it is.
pub(crate) fn named_in(groups: &str) -> Option<(String, Option<u32>)> {
    groups.lines().rev().find_map(|line| of_group(line.splitn(3, ':').nth(2)?))
}

/// The unit of a control group, and whose it is: the innermost service.
fn of_group(path: &str) -> Option<(String, Option<u32>)> {
    let mut uid = None;
    let mut name = None;
    for part in path.split('/') {
        let Some(stem) = part.strip_suffix(".service") else { continue };
        match stem.strip_prefix("user@").and_then(|uid| uid.parse().ok()) {
            Some(number) => uid = Some(number),
            // Below its own service a process may have made groups of any name.
            None if name.is_none() => name = Some(part.to_owned()),
            None => {}
        }
    }
    Some((name?, uid))
}

fn user_manager(machine: &dyn Machine, uid: u32) -> Option<Manager> {
    let account = accounts(machine).into_iter().find(|account| account.uid == uid)?;
    let runtime = machine.runtime(uid);
    let is_there = machine.kind(&format!("{runtime}/systemd")) == Kind::Directory;
    is_there.then_some(Manager::User { uid, home: account.home, runtime })
}

/// A command that asks a manager.
fn ask(program: &str, manager: &Manager) -> Command {
    let mut command = Command::new(program);
    if let Manager::User { uid, runtime, .. } = manager {
        command.arg("--user").env("XDG_RUNTIME_DIR", runtime);
        let ours = rustix::process::getuid().as_raw();
        if ours != *uid {
            // Only the user's own processes are let in.
            let gid = passwd(&Here { timeout: Duration::ZERO })
                .into_iter()
                .find(|(account, _)| account.uid == *uid)
                .map_or(*uid, |(_, gid)| gid);
            command.uid(*uid).gid(gid).env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={runtime}/bus"));
        }
    }
    command
}

fn of_manager(machine: &dyn Machine, name: &str, manager: Manager) -> Result<Unit, Error> {
    let state = match over_bus(machine, name, &manager) {
        Ok(state) => state,
        // Without a bus the manager can still be asked directly, by root.
        Err(_) => shown(machine, name, &manager)?,
    };
    let files = UnitFiles { name: name.to_owned(), manager, ..UnitFiles::default() };
    let mut unit = Unit { state, files };
    unit.state.processes = unit.text("ControlGroup").map(|group| machine.processes(group)).unwrap_or_default();
    read_files(machine, &mut unit);
    Ok(unit)
}

const BUS: [&str; 5] =
    ["--json=short", "call", "org.freedesktop.systemd1", "org.freedesktop.DBus.Properties", "GetAll"];

fn over_bus(machine: &dyn Machine, name: &str, manager: &Manager) -> Result<ManagerState, Error> {
    let path = format!("/org/freedesktop/systemd1/unit/{}", label(name));
    let [json, call, service, interface, method] = BUS;
    let of = |path| [json, call, service, path, interface, method, "s", ""];
    let read = |answer: Result<Vec<u8>, Error>| -> Result<BTreeMap<String, Value>, Error> {
        let bad = |what: &str| Error::Output { program: "busctl".to_owned(), what: what.to_owned() };
        let answer: Value = serde_json::from_slice(&answer?).map_err(|_| bad("no JSON"))?;
        let all = answer.pointer("/data/0").and_then(Value::as_object).ok_or_else(|| bad("no properties"))?;
        Ok(all.iter().filter_map(|(name, value)| Some((name.clone(), value.get("data")?.clone()))).collect())
    };
    let answers = machine.ask("busctl", manager, &[&of(&path), &of("/org/freedesktop/systemd1")]);
    let mut answers = answers.into_iter().map(read);
    let mut next = || answers.next().unwrap_or_else(|| Ok(BTreeMap::new()));
    let (properties, own) = (next()?, next()?);
    let environment = own
        .get("Environment")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect());
    Ok(ManagerState {
        source: "busctl".to_owned(),
        release: own.get("Version").and_then(Value::as_str).and_then(first_number),
        environment,
        properties: keep(properties),
        processes: Vec::new(),
    })
}

fn shown(machine: &dyn Machine, name: &str, manager: &Manager) -> Result<ManagerState, Error> {
    const QUIET: [&str; 2] = ["--no-pager", "--no-ask-password"];
    let show = [&QUIET[..], &["show", "--all", "--", name]].concat();
    let environment = [&QUIET[..], &["show-environment"]].concat();
    let mut answers = machine.ask("systemctl", manager, &[&show, &environment, &["--version"]]).into_iter();
    let mut next = || {
        let none = || Err(Error::Output { program: "systemctl".to_owned(), what: "nothing".to_owned() });
        answers.next().unwrap_or_else(none)
    };
    let text = String::from_utf8_lossy(&next()?).into_owned();
    let (environment, version) = (next(), next());
    let mut properties: BTreeMap<String, Value> = BTreeMap::new();
    for (name, value) in ascertain_unit::show::parse(&text).value.properties {
        let text = match properties.remove(&name) {
            Some(Value::String(before)) => format!("{before}\n{value}"),
            _ => value,
        };
        properties.insert(name, Value::String(text));
    }
    let environment = environment
        .ok()
        .map(|bytes| String::from_utf8_lossy(&bytes).lines().flat_map(ascertain_unit::show::words).collect());
    Ok(ManagerState {
        source: "systemctl show".to_owned(),
        release: version.ok().and_then(|bytes| first_number(&String::from_utf8_lossy(&bytes))),
        environment,
        properties: keep(properties),
        processes: Vec::new(),
    })
}

fn keep(mut properties: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    properties.retain(|name, _| PROPERTIES.contains(&name.as_str()));
    properties
}

fn first_number(text: &str) -> Option<u32> {
    let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// A name as a part of an object path: everything but letters and digits is `_` and two hexadecimal digits.
fn label(name: &str) -> String {
    let mut out = String::new();
    for (index, byte) in name.bytes().enumerate() {
        if byte.is_ascii_alphabetic() || byte.is_ascii_digit() && index > 0 {
            out.push(byte as char);
        } else {
            out.push_str(&format!("_{byte:02x}"));
        }
    }
    out
}

/// The processes of a control group and of those below it, lowest first.
pub fn processes(group: &str) -> Vec<u32> {
    processes_in(group, |directory| {
        let mut all = String::new();
        let mut todo = vec![PathBuf::from(directory)];
        let mut seen = 0;
        while let Some(directory) = todo.pop() {
            seen += 1;
            if seen > 1000 {
                break;
            }
            all.push_str(&std::fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default());
            let below = std::fs::read_dir(&directory).into_iter().flatten().flatten();
            todo.extend(
                below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
            );
        }
        all
    })
}

/// The same on any host: `members` reads every `cgroup.procs` in a directory and below it.
pub(crate) fn processes_in(group: &str, mut members: impl FnMut(&str) -> String) -> Vec<u32> {
    if !group.starts_with('/') || group.split('/').any(|part| part == "..") {
        return Vec::new();
    }
    let mut pids = Vec::new();
    for root in GROUPS {
        let text = members(&format!("{root}{group}"));
        pids.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()).filter(|pid| *pid != 0));
    }
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Users of this host with their groups.
fn passwd(machine: &dyn Machine) -> Vec<(Account, u32)> {
    let text = machine.read("/etc/passwd", LONGEST_FILE).map(|content| content.bytes).unwrap_or_default();
    String::from_utf8_lossy(&text)
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, uid, gid, _, home, shell] = fields.as_slice() else { return None };
            let account = Account {
                name: (*name).to_owned(),
                uid: uid.parse().ok()?,
                home: (*home).to_owned(),
                shell: (*shell).to_owned(),
            };
            Some((account, gid.parse().ok()?))
        })
        .collect()
}

fn accounts(machine: &dyn Machine) -> Vec<Account> {
    passwd(machine).into_iter().map(|(account, _)| account).collect()
}

/// Reads everything the unit is made of into `unit.files`.
pub(crate) fn read_files(machine: &dyn Machine, unit: &mut Unit) {
    let Some(name) = UnitName::parse(&unit.files.name) else { return };
    let manager = collected::manager(&unit.files.manager);
    let names = unit.state.properties.get("Names").and_then(Value::as_array).cloned().unwrap_or_default();
    let names = names.iter().filter_map(|name| UnitName::parse(name.as_str()?));
    let mut all = vec![name];
    all.extend(names);
    all.dedup();
    let mut entries = BTreeMap::new();
    for directory in ["/lib", "/etc/systemd/system", "/run/systemd/system"] {
        if let Kind::Link(target) = machine.kind(directory) {
            entries.insert(directory.to_owned(), FileEntry::Link(target));
        }
    }
    for name in &all {
        for path in unit::fragments(name, &manager) {
            read(machine, &path.to_string_lossy(), &mut entries);
        }
        for directory in unit::directories(name, &manager) {
            for path in listed(machine, &directory, |name| name.ends_with(".conf")) {
                read(machine, &path, &mut entries);
            }
        }
    }
    // The manager may know of others: aliases, files it was linked to.
    if let Some(path) = unit.text("FragmentPath") {
        read(machine, path, &mut entries);
    }
    let text = |path: &str| {
        let content = machine.read(path, LONGEST_FILE).ok()?;
        String::from_utf8(content.bytes).ok().map(|text| text.trim().to_owned())
    };
    unit.files.entries = entries;
    unit.files.host_name = text("/proc/sys/kernel/hostname");
    unit.files.machine_id = text("/etc/machine-id");
    unit.files.boot_id = text("/proc/sys/kernel/random/boot_id").map(|id| id.replace('-', ""));
    unit.files.kernel = text("/proc/sys/kernel/osrelease");
    let own = match unit.manager() {
        Manager::System => 0,
        Manager::User { uid, .. } => *uid,
    };
    let Some(resolved) = unit.resolved() else { return };
    let users: Vec<&str> = resolved.unit.value.text("User").into_iter().chain(unit.text("User")).collect();
    unit.files.accounts = accounts(machine)
        .into_iter()
        .filter(|account| {
            account.uid == own || users.iter().any(|user| account.name == *user || account.uid.to_string() == *user)
        })
        .collect();
    // Which environment files and scripts it names is known only now.
    let mut named: Vec<String> =
        resolved.unit.value.environment_files.iter().filter_map(|file| file.path.known().map(str::to_owned)).collect();
    named.extend(Held::read(&unit.state).show.environment_files().into_iter().map(|(path, _)| path));
    for path in named {
        match path.rfind('/') {
            Some(at) if path.contains(['*', '?', '[']) && !path[..at].contains(['*', '?', '[']) => {
                let all = listed(machine, Path::new(&path[..at]), |_| true);
                // A pattern without a match is a file that is not there.
                if machine.kind(&path[..at]) == Kind::Directory && !all.iter().any(|one| unit::matches(&path, one)) {
                    unit.files.entries.insert(path.clone(), FileEntry::Absent);
                }
                for path in all {
                    read(machine, &path, &mut unit.files.entries);
                }
            }
            _ => read(machine, &path, &mut unit.files.entries),
        }
    }
    read_scripts(machine, unit);
}

fn read_scripts(machine: &dyn Machine, unit: &mut Unit) {
    let Some((written, loaded)) = unit.layers() else { return };
    // In a file tree of its own a path is another place.
    if unit.text("RootDirectory").is_none() {
        for directory in [&written.directory, &loaded.directory].into_iter().flatten() {
            if let Some(real) = machine.real(directory) {
                unit.files.real.insert(directory.clone(), real);
            }
        }
    }
    let folder = unit.text("WorkingDirectory").unwrap_or("/").trim_start_matches(['!', '-']).to_owned();
    let mut words: Vec<String> = Vec::new();
    for outer in [&written.outer, &loaded.outer] {
        words.extend(outer.iter().take(8).cloned());
    }
    for word in words {
        if word.starts_with('-') || word.len() > 4096 || unit.files.scripts.contains_key(&word) {
            continue;
        }
        let path = Path::new(&folder).join(&word);
        let Ok(content) = machine.read_as(unit.main_pid(), &path.to_string_lossy(), LONGEST_SCRIPT) else { continue };
        let Some(interpreter) = interpreter(&content.bytes).or_else(|| {
            // A script without a first line of its own, given to a shell.
            (word.ends_with(".sh")).then(|| "sh".to_owned())
        }) else {
            continue;
        };
        let (text, opaque) = match String::from_utf8(content.bytes) {
            _ if content.partial.is_some() => (None, Some(format!("it is longer than {LONGEST_SCRIPT} bytes"))),
            Ok(text) => (Some(text), None),
            Err(_) => (None, Some("it is not UTF-8".to_owned())),
        };
        let script = Script { interpreter, text, opaque, reads_environment: false, changed_ms: content.changed_ms };
        unit.files.scripts.insert(word, script);
    }
}

/// The shell in the first line of a script; `None` for anything that is no shell script.
fn interpreter(bytes: &[u8]) -> Option<String> {
    let line = bytes.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line).into_owned();
    let mut words = line.split_ascii_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let mut name = words.next()?;
    if name == "env" {
        name = words.find(|word| !word.starts_with('-'))?;
    }
    ["sh", "bash", "dash", "ash", "ksh", "zsh", "rbash"].contains(&name).then(|| name.to_owned())
}

/// Paths in a directory, sorted; none where it cannot be read.
fn listed(machine: &dyn Machine, directory: &Path, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let directory = directory.to_string_lossy();
    let mut paths: Vec<String> = machine
        .names(&directory)
        .into_iter()
        .filter(|name| wanted(name))
        .map(|name| format!("{directory}/{name}"))
        .collect();
    paths.sort();
    paths
}

/// Reads a path, following links one at a time so that each of them is known.
fn read(machine: &dyn Machine, path: &str, entries: &mut BTreeMap<String, FileEntry>) {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if entries.contains_key(&path) || path == "/dev/null" {
            return;
        }
        let (entry, next) = entry(machine, &path);
        entries.insert(path, entry);
        match next {
            Some(next) => path = next,
            None => return,
        }
    }
}

fn entry(machine: &dyn Machine, path: &str) -> (FileEntry, Option<String>) {
    match machine.kind(path) {
        Kind::Absent => (FileEntry::Absent, None),
        Kind::Unreadable(why) => (FileEntry::Unreadable(why), None),
        Kind::Link(target) => {
            let next = if target.starts_with('/') { target.clone() } else { unit::joined(path, &target) };
            (FileEntry::Link(target), Some(next))
        }
        Kind::Directory | Kind::Other => (content(machine, path), None),
    }
}

fn content(machine: &dyn Machine, path: &str) -> FileEntry {
    match machine.read(path, LONGEST_FILE) {
        Ok(content) if content.partial.is_some() => {
            FileEntry::Unreadable(format!("it is longer than {LONGEST_FILE} bytes"))
        }
        Ok(content) => match String::from_utf8(content.bytes) {
            Ok(text) => FileEntry::Text(FileText { text, changed_ms: content.changed_ms }),
            Err(_) => FileEntry::Unreadable("it is not UTF-8".to_owned()),
        },
        Err(error) => FileEntry::Unreadable(error.to_string()),
    }
}

/// Names of services that a manager knows, for a name that was misspelt.
pub fn names(timeout: Duration) -> Vec<String> {
    let mut list = Vec::new();
    for verb in ["list-units", "list-unit-files"] {
        let mut command = ask("systemctl", &Manager::System);
        command.args(["--no-pager", "--no-legend", "--plain", "--type=service", "--all", verb]);
        let Ok(bytes) = command::run(&mut command, timeout, LONGEST_ANSWER) else { continue };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        list.extend(text.lines().filter_map(|line| line.split_ascii_whitespace().next().map(str::to_owned)));
    }
    list.sort();
    list.dedup();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_parts_of_object_paths() {
        assert_eq!(label("llama.service"), "llama_2eservice");
        assert_eq!(label("a-b@c\\x2dd.service"), "a_2db_40c_5cx2dd_2eservice");
        assert_eq!(label("9a"), "_39a");
    }

    #[test]
    fn the_unit_of_a_control_group() {
        let of = |path: &str| of_group(path);
        assert_eq!(of("/system.slice/llama.service"), Some(("llama.service".into(), None)));
        assert_eq!(of("/system.slice/system-llama.slice/llama@a.service"), Some(("llama@a.service".into(), None)));
        assert_eq!(
            of("/user.slice/user-1000.slice/user@1000.service/app.slice/llama.service"),
            Some(("llama.service".into(), Some(1000)))
        );
        assert_eq!(of("/system.slice/llama.service/payload.service"), Some(("llama.service".into(), None)));
        assert_eq!(of("/user.slice/user-0.slice/session-3.scope"), None);
        assert_eq!(of("/user.slice/user-1000.slice/user@1000.service/init.scope"), None);
        assert_eq!(of("/"), None);
    }

    #[test]
    fn shells_of_scripts() {
        assert_eq!(interpreter(b"#!/bin/sh -e\nexec x"), Some("sh".into()));
        assert_eq!(interpreter(b"#!/usr/bin/env -S bash\n"), Some("bash".into()));
        assert_eq!(interpreter(b"#!/usr/bin/python3\n"), None);
        assert_eq!(interpreter(b"\x7fELF"), None);
    }

    #[test]
    fn releases() {
        assert_eq!(first_number("252.39-1~deb12u2"), Some(252));
        assert_eq!(first_number("systemd 257 (257.9-1~deb13u1)"), Some(257));
        assert_eq!(first_number("v256-rc1"), Some(256));
        assert_eq!(first_number("none"), None);
    }
}
