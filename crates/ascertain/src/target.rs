//! What the user means by a target.

use crate::failure::Failure;
use ascertain_capture::containers;
use ascertain_capture::directory;
use ascertain_capture::process;
use ascertain_capture::redact::{Redactor, SecretNames};
use ascertain_capture::sockets::{self, Owner};
use ascertain_capture::ssh::Destination;
use ascertain_capture::systemd::{self, Unit};
use ascertain_engines::text::safe;
use ascertain_engines::{ENGINES, Engine, by_executable};
use ascertain_model::Capture;
use ascertain_model::wants::{Address, ProcessFacts};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a service manager may take to answer.
const MANAGER: Duration = Duration::from_secs(3);

/// A target as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// `pid:1234`.
    Pid(u32),
    /// `container:NAME`.
    Container(String),
    /// `http://host:port`.
    Url(String),
    /// A capture file or an evidence directory.
    Stored(PathBuf),
    /// A name.
    Name(String),
    /// Nothing: the only engine on this host.
    Only,
    /// `ssh://[user@]host[:port]/…`: any of these but a stored one, on another host.
    Remote(Box<Remote>),
}

/// A target on another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// The host.
    pub host: Destination,
    /// What is meant there.
    pub target: Written,
    /// The same as it was written, for the program there.
    pub text: Option<String>,
}

impl Remote {
    /// Reads what stands behind `ssh://`.
    fn parse(rest: &str) -> Result<Remote, Failure> {
        const HOW: &str = "write ssh://[USER@]HOST[:PORT]/UNIT, …/pid:N, …/:PORT or …/http://127.0.0.1:PORT";
        let (place, text) = rest.split_once('/').unwrap_or((rest, ""));
        // What stands there is not repeated: it may hold a password.
        let host = Destination::parse(place)
            .map_err(|error| Failure::new(format!("this is no ssh:// target: {error}")).hint(HOW))?;
        let text = Some(text).filter(|text| !text.is_empty());
        let target = match text {
            Some(text) if text.starts_with("ssh://") => {
                return Err(Failure::new("one host after another is not written like this")
                    .hint("set ProxyJump for the second one in ~/.ssh/config"));
            }
            Some(text) if text.starts_with('-') || text.contains(char::is_control) => {
                return Err(Failure::new(format!("{text:?} is the name of nothing that runs")).hint(HOW));
            }
            text => Written::live(text)?,
        };
        Ok(Remote { host, target, text: text.map(str::to_string) })
    }
}

impl std::fmt::Display for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ssh://{}", self.host)?;
        self.text.as_ref().map_or(Ok(()), |text| write!(f, "/{text}"))
    }
}

impl Written {
    /// Reads a target.
    pub fn parse(text: Option<&str>) -> Result<Written, Failure> {
        if let Some((scheme, rest)) = text.and_then(|text| text.split_once("://"))
            && scheme.eq_ignore_ascii_case("ssh")
        {
            return Ok(Written::Remote(Box::new(Remote::parse(rest)?)));
        }
        if let Some(text) = text
            && !text.contains("://")
            && !["pid:", "container:"].iter().any(|kind| text.starts_with(kind))
            && (Path::new(text).exists() || text.contains('/'))
        {
            return Ok(Written::Stored(PathBuf::from(text)));
        }
        Written::live(text)
    }

    /// Reads the name of something that runs.
    fn live(text: Option<&str>) -> Result<Written, Failure> {
        let Some(text) = text else { return Ok(Written::Only) };
        if let Some(pid) = text.strip_prefix("pid:") {
            let pid = pid.parse().map_err(|_| {
                Failure::new(format!("{pid:?} is no PID")).hint("write a number: ascertain verify pid:1234")
            })?;
            return Ok(Written::Pid(pid));
        }
        if let Some(name) = text.strip_prefix("container:") {
            return Ok(Written::Container(name.to_string()));
        }
        if let Some((scheme, rest)) = text.split_once("://")
            && ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
        {
            return Ok(Written::Url(format!("{}://{rest}", scheme.to_ascii_lowercase())));
        }
        if text.contains("://") {
            // The user may have put a password into it.
            let shown = Redactor::new(SecretNames::default()).text(text);
            return Err(Failure::new(format!("{shown:?}: a target of this kind is not known"))
                .hint("on another host: ssh://[USER@]HOST[:PORT]/UNIT, …/pid:N or …/:PORT"));
        }
        if let Some((host, port)) = text.rsplit_once(':')
            && port.parse::<u16>().is_ok()
        {
            return Ok(Written::Url(format!("http://{}:{port}", if host.is_empty() { "127.0.0.1" } else { host })));
        }
        if text.parse::<u32>().is_ok() {
            return Err(Failure::new(format!("{text} may be a PID or a port"))
                .hint(format!("a process: pid:{text}"))
                .hint(format!("a port: :{text}")));
        }
        Ok(Written::Name(text.to_string()))
    }
}

/// A live target that was found.
pub struct Located {
    /// Its engine.
    pub engine: &'static dyn Engine,
    /// The process, where it is on this host.
    pub facts: Option<ProcessFacts>,
    /// Where to ask, when the user said so.
    pub address: Option<Address>,
    /// The target's name in reports.
    pub name: String,
    /// The unit it belongs to.
    pub unit: Option<Arc<Unit>>,
}

/// What a target turned out to be.
pub enum Found {
    /// A live server.
    Live(Box<Located>),
    /// A stored capture.
    Stored(Box<Capture>),
}

/// An engine process on this host.
pub struct Running {
    /// Its engine.
    pub engine: &'static dyn Engine,
    /// What is known of it.
    pub facts: ProcessFacts,
}

impl Running {
    /// The names by which it may be called, safe to show.
    pub fn names(&self) -> Vec<String> {
        self.engine.names(&self.facts).iter().map(|name| safe(name)).collect()
    }

    /// The ports on which it accepts connections; `None` if they may not be seen.
    pub fn ports(&self) -> Option<Vec<u16>> {
        let mut ports: Vec<u16> = sockets::listening_of(self.facts.pid)?.iter().map(|socket| socket.port).collect();
        ports.sort_unstable();
        ports.dedup();
        Some(ports)
    }

    /// One line to tell it from others.
    pub fn line(&self) -> String {
        let names = self.names();
        let ports = match self.ports() {
            None => "port not visible (run as root)".to_string(),
            Some(ports) if ports.is_empty() => "no port".to_string(),
            Some(ports) => {
                format!("port {}", ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", "))
            }
        };
        let unit = self.unit().map(|unit| format!("  {unit}")).unwrap_or_default();
        format!(
            "pid:{}  {}  {}  {}{unit}",
            self.facts.pid,
            self.engine.name(),
            ports,
            names.last().cloned().unwrap_or_default()
        )
    }

    /// The unit in whose control group it is.
    pub fn unit(&self) -> Option<String> {
        systemd::named_by(self.facts.pid).map(|(name, _)| safe(&name))
    }
}

/// Every engine process that can be seen.
pub fn running() -> Vec<Running> {
    process::list()
        .into_iter()
        .filter_map(|facts| {
            let exe = facts.exe.as_deref().or(facts.argv.first().map(String::as_str))?;
            by_executable(exe).map(|engine| (engine, facts))
        })
        .map(|(engine, facts)| Running { engine, facts })
        .collect()
}

/// Finds what a target means.
pub fn locate(written: &Written) -> Result<Found, Failure> {
    match written {
        Written::Stored(path) => Ok(Found::Stored(Box::new(stored(path)?))),
        Written::Pid(pid) => Ok(Found::Live(Box::new(of_pid(*pid, None, format!("pid:{pid}"))?))),
        Written::Container(name) => Ok(Found::Live(Box::new(of_container(name)?))),
        Written::Url(url) => Ok(Found::Live(Box::new(of_url(url)?))),
        Written::Name(name) => Ok(Found::Live(Box::new(of_name(name)?))),
        Written::Only => Ok(Found::Live(Box::new(only()?))),
        Written::Remote(remote) => Err(Failure::new(format!("{} is on another host", remote.host))),
    }
}

/// Reads a stored capture.
pub fn stored(path: &Path) -> Result<Capture, Failure> {
    if !path.exists() {
        return Err(Failure::new(format!("{}: no such file or directory", path.display()))
            .hint("a target is a unit, a PID (pid:1234), a URL, the name of a running server, a capture file or an evidence directory"));
    }
    let names: Vec<&str> = ENGINES.iter().flat_map(|engine| engine.artifacts()).copied().collect();
    let read = directory::read_any(path, &names, &secret_names());
    read.map(|(_, capture)| capture).map_err(|error| {
        Failure::new(error).hint("docs/evidence-directory.md lists what may be in an evidence directory or a capture")
    })
}

/// The names under which any engine keeps secrets.
pub(crate) fn secret_names() -> SecretNames {
    let mut secrets = SecretNames { flags: Vec::new(), env: Vec::new(), keys: Vec::new() };
    for engine in ENGINES {
        let wants = engine.wants(&ProcessFacts::default(), &[]);
        secrets.flags.extend(wants.secret_flags);
        secrets.env.extend(wants.secret_env);
        secrets.keys.extend(wants.secret_keys);
    }
    secrets
}

/// Texts that stand where a start of any engine begins in its log.
pub(crate) fn log_beginnings() -> Vec<String> {
    ENGINES.iter().flat_map(|engine| engine.wants(&ProcessFacts::default(), &[]).log_beginnings).collect()
}

/// A redactor that knows under which names any engine keeps secrets, and none of them yet.
pub(crate) fn redactor() -> Redactor {
    Redactor::new(secret_names())
}

/// A redactor for what is added to a stored capture, whose own secrets are gone already.
pub(crate) fn redactor_for(_capture: &Capture) -> Redactor {
    redactor()
}

fn of_pid(pid: u32, address: Option<Address>, name: String) -> Result<Located, Failure> {
    let facts = process::facts(pid).map_err(|error| {
        let failure = Failure::new(format!("cannot look at process {pid}: {error}"));
        if error.is_permission() {
            failure.hint("run it as the user of the server, or as root")
        } else {
            failure.hint("list what runs here: ascertain list")
        }
    })?;
    let exe = facts.exe.as_deref().or(facts.argv.first().map(String::as_str)).unwrap_or("");
    let Some(engine) = by_executable(exe) else {
        let known: Vec<&str> = ENGINES.iter().map(|engine| engine.name()).collect();
        return Err(Failure::new(format!(
            "process {pid} ({exe}) is no engine that ascertain knows ({})",
            known.join(", ")
        ))
        .hint(match systemd::of_process(pid, MANAGER).and_then(Result::ok) {
            Some(unit) => format!("verify what its unit runs: ascertain verify {}", unit.name()),
            None => "list what runs here: ascertain list".to_string(),
        }));
    };
    // A manager that does not answer leaves the process to be judged by what it was given.
    let unit = systemd::of_process(pid, MANAGER).and_then(Result::ok).map(Arc::new);
    Ok(Located { engine, facts: Some(facts), address, name, unit })
}

/// The engine in a container: its first process, or another in the same PID namespace.
fn of_container(name: &str) -> Result<Located, Failure> {
    let shown = format!("container:{name}");
    let main = containers::pid(name, MANAGER).map_err(|error| {
        Failure::new(error).hint("or name its process as this host sees it: pid:PID (ascertain list shows them)")
    })?;
    let Ok(space) = process::link(main, "ns/pid") else {
        return Err(Failure::new(format!("process {main} of {shown} may not be looked at")).hint("run it as root"));
    };
    let mut inside: Vec<u32> = running().iter().map(|one| one.facts.pid).collect();
    inside.retain(|pid| process::link(*pid, "ns/pid").is_ok_and(|other| other == space));
    match inside.as_slice() {
        _ if inside.contains(&main) => of_pid(main, None, shown),
        [pid] => of_pid(*pid, None, shown),
        [] => Err(Failure::new(format!("{shown} runs, and no process in it is an engine that ascertain knows"))
            .hint("if it has only just been started, try again")),
        several => Err(several
            .iter()
            .fold(Failure::new(format!("{} servers run in {shown}: say which", several.len())), |failure, pid| {
                failure.hint(format!("pid:{pid}"))
            })),
    }
}

/// Where a URL leads: host, port, and whether over TLS.
pub(crate) fn place_of(url: &str) -> Result<(String, u16, bool), Failure> {
    let (tls, rest) = match url.strip_prefix("https://") {
        Some(rest) => (true, rest),
        None => (false, url.strip_prefix("http://").unwrap_or(url)),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    // User information is no part of where it listens.
    let authority = authority.rsplit('@').next().unwrap_or(authority);
    let bad = || Failure::new(format!("{:?} is no address", authority)).hint("write http://HOST:PORT");
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => match authority.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() {
        return Err(bad());
    }
    let port: u16 = match port {
        Some(port) => port.parse().map_err(|_| bad())?,
        None if tls => 443,
        None => 80,
    };
    Ok((host.to_string(), port, tls))
}

fn of_url(url: &str) -> Result<Located, Failure> {
    let (host, port, tls) = place_of(url)?;
    let address = Address::Tcp { host: host.clone(), port, tls };
    match sockets::owner_of(port, &host) {
        Owner::Pid(pids) => {
            // A forked helper may hold the same socket: the engine among the holders is meant.
            let engine = pids.iter().copied().find(|pid| {
                process::facts(*pid)
                    .is_ok_and(|facts| facts.exe.as_deref().is_some_and(|exe| by_executable(exe).is_some()))
            });
            let pid = engine.or(pids.first().copied()).unwrap_or(0);
            of_pid(pid, Some(address), url.to_string())
        }
        Owner::None => {
            Err(Failure::new(format!("nothing listens on {host}:{port}")).hint("list what runs here: ascertain list"))
        }
        // Without its process nothing tells what was asked for, and a verdict on nothing would look like a good one.
        Owner::Unknown => Err(Failure::new(format!(
            "which process listens on {host}:{port} may not be seen, so what was asked for is not known"
        ))
        .hint("run it as root, or as the user of the server")),
        Owner::Elsewhere => Err(Failure::new(format!(
            "{host} is no address of this host, and from here nobody can say what a process there was given"
        ))
        .hint(format!("look from there: ssh://{host}/:{port}"))
        .hint("or collect there and judge here: ascertain capture TARGET -o FILE, then ascertain verify FILE")),
    }
}

/// How often a unit that is said to run, and of which no server is found, is looked at again, and after how long: it may
/// be between two starts, or about to become the server.
const AGAIN: u32 = 8;
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// A unit: the engine among its processes, or without one the engine that its command names.
fn of_unit(mut unit: Unit) -> Result<Located, Failure> {
    let name = unit.name().to_string();
    let option = unit.manager().option();
    let mut looked = engine_in(&unit);
    for _ in 0..AGAIN {
        let is_over =
            matches!(unit.text("ActiveState"), Some("inactive" | "failed") | None) && unit.main_pid().is_none();
        if is_over || unit.text("SubState") == Some("auto-restart") || matches!(&looked, Ok(Some(_))) {
            break;
        }
        std::thread::sleep(PAUSE);
        let Some(now) = unit_called(&name) else { break };
        unit = now;
        looked = engine_in(&unit);
    }
    match looked {
        Ok(Some((facts, engine))) => {
            return Ok(Located { engine, facts: Some(facts), address: None, name, unit: Some(Arc::new(unit)) });
        }
        Err(Failed::Several(pids)) => {
            let failure = Failure::new(format!("{} servers run in {name}: say which", pids.len()));
            return Err(pids.iter().fold(failure, |failure, pid| failure.hint(format!("pid:{pid}"))));
        }
        Err(Failed::Refused(pid, error)) => {
            return Err(Failure::new(format!("cannot look at process {pid} of {name}: {error}"))
                .hint("run it as root, or as the user of the service"));
        }
        Ok(None) => {}
    }
    if let Some(main) = unit.main_pid() {
        return Err(Failure::new(format!(
            "{name} runs process {main}, which is no engine that ascertain knows, and none of its other processes is"
        ))
        .hint("if it has only just been started, try again")
        .hint("list what runs here: ascertain list"));
    }
    let refused = match unit.text("LoadState") {
        Some("masked") => Some(("is masked", format!("systemctl {option}unmask {name}"))),
        Some("bad-setting") => {
            Some(("is refused by systemd: one of its settings is bad", format!("systemd-analyze verify {name}")))
        }
        Some("error") => Some(("could not be loaded by systemd", format!("systemctl {option}status {name}"))),
        _ => None,
    };
    if let Some((what, next)) = refused {
        return Err(Failure::new(format!("{name} {what}, and has no process")).hint(next));
    }
    let engine = engine_of(&unit).ok_or_else(|| no_engine(&unit))?;
    Ok(Located { engine, facts: None, address: None, name, unit: Some(Arc::new(unit)) })
}

/// The engine that the command of a unit names.
pub(crate) fn engine_of(unit: &Unit) -> Option<&'static dyn Engine> {
    let layers = unit.layers();
    let words = layers.iter().flat_map(|(written, loaded)| written.argv.iter().chain(&loaded.argv));
    words.map(|(word, _)| word).find_map(|word| by_executable(word))
}

/// A unit that has no process and names no engine.
pub(crate) fn no_engine(unit: &Unit) -> Failure {
    let (name, option) = (unit.name(), unit.manager().option());
    Failure::new(format!("{name} has no process, and its command names no engine that ascertain knows"))
        .hint(format!("see what it runs: systemctl {option}cat {name}"))
}

/// Why no process of a unit is the one meant.
enum Failed {
    /// This one may not be looked at.
    Refused(u32, process::Error),
    /// Each of these could be.
    Several(Vec<u32>),
}

/// The engine process of a unit.
type InUnit = Result<Option<(ProcessFacts, &'static dyn Engine)>, Failed>;

/// The engine among the processes of a unit: the main process where it is one, else the one that was there first. One
/// that is left over from another start is none of it.
fn engine_in(unit: &Unit) -> InUnit {
    let main = unit.main_pid();
    let mut refused = None;
    let mut found: Vec<(u64, ProcessFacts, &'static dyn Engine)> = Vec::new();
    let others = unit.state.processes.iter().copied().filter(|pid| Some(*pid) != main);
    for pid in main.into_iter().chain(others) {
        match process::facts(pid) {
            Ok(facts) => {
                let exe = facts.exe.as_deref().or(facts.argv.first().map(String::as_str)).unwrap_or("");
                if let Some(engine) = by_executable(exe).filter(|_| !unit.is_left_over(&facts)) {
                    let began = process::stat(pid).map_or(u64::MAX, |stat| stat.start_ticks);
                    found.push((if Some(pid) == main { 0 } else { began }, facts, engine));
                }
            }
            Err(process::Error::Gone { .. }) => {}
            Err(error) => refused = Some((pid, error)),
        }
    }
    found.sort_by_key(|(began, facts, _)| (*began, facts.pid));
    // Those that one of them started are its workers. Of several that nobody started but the unit, none is the one meant.
    let first = found.first().map(|(_, facts, _)| facts.pid);
    let apart = |pid: u32| first.is_some_and(|first| first != pid && !process::related(first, pid));
    let several: Vec<u32> = found.iter().map(|(_, facts, _)| facts.pid).filter(|pid| apart(*pid)).collect();
    if first != main && !several.is_empty() {
        return Err(Failed::Several(first.into_iter().chain(several).collect()));
    }
    match (found.into_iter().next(), refused) {
        (Some((_, facts, engine)), _) => Ok(Some((facts, engine))),
        (None, Some((pid, error))) => Err(Failed::Refused(pid, error)),
        (None, None) => Ok(None),
    }
}

/// What the process of a unit that has none would be told: its port may be held by somebody else.
pub fn planned(unit: &Unit) -> ProcessFacts {
    let Some((written, loaded)) = unit.layers() else { return ProcessFacts::default() };
    let layer = if loaded.argv.is_empty() { written } else { loaded };
    ProcessFacts {
        argv: layer.argv.into_iter().map(|(word, _)| word).collect(),
        environ: layer.environment.into_iter().map(|(name, value, _)| (name, value)).collect(),
        ..ProcessFacts::default()
    }
}

/// The main process of a unit, as it is now.
pub(crate) fn main_pid(name: &str) -> Option<u32> {
    unit_called(name)?.main_pid()
}

/// The same unit once more, as it is now.
pub(crate) fn of_unit_called(name: &str, shown: &str) -> Result<Located, Failure> {
    let gone = || Failure::new(format!("{name} is gone"));
    let located = of_unit(unit_called(name).ok_or_else(gone)?)?;
    Ok(Located { name: shown.to_string(), ..located })
}

/// A unit of that name. `Ok(None)`: there is none, or no manager that could be asked.
fn unit_called(name: &str) -> Option<Unit> {
    systemd::find(name, MANAGER).ok().flatten()
}

fn of_name(name: &str) -> Result<Located, Failure> {
    let manager = systemd::find(name, MANAGER);
    if let Ok(Some(unit)) = manager {
        return of_unit(unit);
    }
    let all = running();
    let mut matching: Vec<&Running> = all
        .iter()
        .filter(|one| {
            let exe = one.facts.exe.as_deref().unwrap_or("").rsplit('/').next().unwrap_or("");
            exe == name || one.engine.name() == name || one.engine.names(&one.facts).iter().any(|known| known == name)
        })
        .collect();
    match matching.len() {
        0 => {
            let mut failure = match &manager {
                Ok(_) => Failure::new(format!("no unit and no running server is called {name:?}")),
                // A host that has no manager has no units.
                Err(error) if error.is_absence() => {
                    Failure::new(format!("no unit and no running server is called {name:?}"))
                }
                Err(error) => Failure::new(format!("no running server is called {name:?}"))
                    .hint(format!("whether a unit is could not be found out: {error}")),
            };
            let mut names: Vec<String> = all.iter().flat_map(|one| one.engine.names(&one.facts)).collect();
            // What is gone may still be listed.
            let listed = systemd::names(MANAGER)
                .into_iter()
                .filter(|unit| unit.trim_end_matches(".service") != name.trim_end_matches(".service"));
            names.extend(listed.map(|unit| {
                // People leave the suffix out, and then so does the one that is meant.
                if name.ends_with(".service") { unit } else { unit.trim_end_matches(".service").to_string() }
            }));
            let near = ascertain_engines::nearest::nearest(name, names.iter().map(String::as_str), 1);
            if let Some(near) = near.first() {
                failure = failure.hint(format!("did you mean {near}?"));
            }
            failure = if all.is_empty() {
                failure.hint(
                    "no engine runs on this host that can be seen; as another user or in a container, run as root",
                )
            } else {
                all.iter().fold(failure, |failure, one| failure.hint(one.line()))
            };
            Err(failure)
        }
        1 => {
            let pid = matching.remove(0).facts.pid;
            of_pid(pid, None, name.to_string())
        }
        _ => Err(matching
            .iter()
            .fold(Failure::new(format!("{} running servers are called {name:?}", matching.len())), |failure, one| {
                failure.hint(one.line())
            })),
    }
}

fn only() -> Result<Located, Failure> {
    let all = running();
    match all.as_slice() {
        [] => Err(Failure::new("no inference server was found running on this host")
            .hint("as another user or in a container, run as root")
            .hint("see how it works without one: ascertain demo")),
        [one] => of_pid(one.facts.pid, None, format!("pid:{}", one.facts.pid)),
        several => Err(several
            .iter()
            .fold(Failure::new(format!("{} servers run on this host: say which", several.len())), |failure, one| {
                failure.hint(one.line())
            })),
    }
}
