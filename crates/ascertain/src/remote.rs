//! Targets on other hosts.
//!
//! Where the same program is there, or may be copied there, it captures there and its capture comes back. Else plain
//! commands fetch what they can. Either way the result is a capture like any other, judged here.

use crate::Look;
use crate::failure::Failure;
use crate::target::{Remote, Written, engine_of, no_engine, place_of};
use ascertain_capture::collect::{self, Options};
use ascertain_capture::redact::Redactor;
use ascertain_capture::sockets::Owner;
use ascertain_capture::ssh::agentless::FarProcess;
use ascertain_capture::ssh::push::{KEY_VARIABLE, Presence, Program};
use ascertain_capture::ssh::{COMMAND, Client, Fault, Session};
use ascertain_capture::systemd::Unit;
use ascertain_engines::{ENGINES, Engine, by_executable};
use ascertain_exercise::{Budget, Server};
use ascertain_model::Capture;
use ascertain_model::capture::Remark;
use ascertain_model::wants::{Address, ProcessFacts};
use std::sync::Arc;
use std::time::Duration;

/// What the user allows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allowed {
    /// Copy this program there.
    pub push: bool,
    /// Become root there.
    pub sudo: bool,
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Failure { text: fault.text, hints: fault.hints }
    }
}

/// Collects a capture of a target on another host. `progress` is told what is being done.
pub fn observe(
    remote: &Remote,
    look: &Look,
    allowed: Allowed,
    progress: &mut dyn FnMut(&str),
) -> Result<Capture, Failure> {
    let client = client(remote, look, allowed)?;
    progress(&format!("connecting to {}", remote.host));
    // Its hash is made while the connection is.
    let program = std::thread::spawn(Program::running);
    let mut session = Session::open(client)?;
    let program = program.join().map_err(|_| Failure::new("the program that runs could not be read"))??;
    let is_there = match session.has(&program)? {
        Presence::Present => true,
        Presence::Absent if allowed.push => {
            progress(&format!("copying this program to {}", remote.host));
            session.push(&program)?;
            true
        }
        Presence::Refused(fault) if allowed.push => return Err(fault.into()),
        Presence::Absent | Presence::Refused(_) => false,
    };
    progress(&format!("reading what the witnesses on {} say", remote.host));
    let mut capture = if is_there {
        let key = look.options.api_key.as_deref();
        session.capture(&words(remote, look), key, patience(look))?
    } else {
        plainly(&mut session, remote, look, progress)?
    };
    // As the user named it, wherever it was captured.
    let redactor = Redactor::new(crate::target::secret_names());
    capture.manifest.target = match &remote.text {
        // A user's name is no secret, and there is never a password beside it.
        Some(text) => format!("ssh://{}/{}", remote.host, redactor.text(text)),
        None => format!("ssh://{}", remote.host),
    };
    Ok(capture)
}

/// What would be run and read, without a connection.
pub fn plan(remote: &Remote, look: &Look, allowed: Allowed) -> Result<Vec<String>, Failure> {
    let client = client(remote, look, allowed)?;
    let program = Program::running()?;
    let host = &remote.host;
    let place = program.place();
    let mut lines = vec![
        format!("run     {}", Session::shown(&client)),
        format!("on {host}:"),
        format!("  look    whether this program is {place}, and nobody else can have put it there"),
    ];
    if allowed.push {
        lines.push(format!("  write   {place}, unless it is there (--push)"));
    }
    let mut command = vec!["ascertain".to_string(), "capture".to_string()];
    command.extend(words(remote, look));
    let if_there = if allowed.push { "" } else { ", if it is there" };
    lines.push(format!("  run     {}{if_there}", command.join(" ")));
    if !allowed.push {
        lines.push("  else, with plain commands (head, ls, stat, grep):".to_string());
        lines.push(
            "  read    /proc/PID, /proc/net, /proc/sys/kernel; the files and the log its process names".to_string(),
        );
        lines.push("  GET     what the engine answers, through".to_string());
        lines.push(format!("run     {}", ascertain_capture::ssh::Forward::shown(&client, "127.0.0.1", 8080)));
        lines.push("        (with the host and port on which the process is found to listen)".to_string());
    }
    if look.exercise {
        lines.push("POST a few small requests for tokens, one at a time (--exercise)".to_string());
    }
    Ok(lines)
}

fn client(remote: &Remote, look: &Look, allowed: Allowed) -> Result<Client, Failure> {
    let command = std::env::var(COMMAND).ok().filter(|command| !command.is_empty());
    Ok(Client::new(remote.host.clone(), command.as_deref(), look.options.timeout, allowed.sudo)?)
}

/// What the program there is told, after `capture`.
fn words(remote: &Remote, look: &Look) -> Vec<String> {
    let mut words = vec!["-o".to_string(), "-".to_string()];
    words.extend(["--timeout".to_string(), look.options.timeout.as_secs().to_string()]);
    if let Some(log) = &look.options.log {
        words.extend(["--log".to_string(), log.to_string_lossy().into_owned()]);
    }
    if look.options.api_key.is_some() {
        words.extend(["--api-key-env".to_string(), KEY_VARIABLE.to_string()]);
    }
    if look.exercise {
        words.push("--exercise".to_string());
    }
    words.push("--".to_string());
    words.extend(remote.text.clone());
    words
}

/// How long a capture there may take: all its witnesses at once, and a manager and requests before and after.
fn patience(look: &Look) -> Duration {
    let exercise = if look.exercise { Budget::default().total + Duration::from_secs(10) } else { Duration::ZERO };
    look.options.timeout * 2 + Duration::from_secs(10) + exercise
}

/// Collects with plain commands.
fn plainly(
    session: &mut Session,
    remote: &Remote,
    look: &Look,
    progress: &mut dyn FnMut(&str),
) -> Result<Capture, Failure> {
    let Chosen { process, engine, address, unit } = match find(session, &remote.target)? {
        Meant::Process(chosen) => *chosen,
        Meant::Stopped(engine, unit) => {
            let unit = Arc::new(*unit);
            let wants = crate::planned_wants(engine, &unit);
            let mut options = Options { target: remote.to_string(), ..look.options.clone() };
            options.unit = Some(Arc::clone(&unit));
            return Ok(session.collect_stopped(&wants, &unit, &options)?);
        }
    };
    let wants = engine.wants(&process.facts, &[]);
    let files = session.files(&wants, &process)?;
    let texts: Vec<(String, String)> = files
        .iter()
        .filter_map(|found| Some((found.entry.name.clone(), String::from_utf8(found.bytes.clone()?).ok()?)))
        .collect();
    let wants = if texts.is_empty() { wants } else { engine.wants(&process.facts, &texts) };
    let mut options = Options { target: remote.to_string(), ..look.options.clone() };
    options.pid = Some(process.facts.pid);
    options.address = address;
    options.unit = unit.map(Arc::new);
    let collected = session.collect(&wants, &process, &options, files)?;
    let mut capture = collected.capture;
    let is_impostor = capture.manifest.remarks.iter().any(|remark| remark.kind == "identity");
    if let (true, false, Some(forward)) = (look.exercise, is_impostor, &collected.forward) {
        let experiments = engine.experiments(&capture);
        let server = Server {
            // Whether it still runs is looked up on its own host, afterwards.
            start: None,
            address: forward.address(),
            prefix: wants.prefix.clone(),
            api_key: options.api_key.clone(),
        };
        let outcome = ascertain_exercise::run(&server, &experiments, Budget::default(), progress);
        for exchange in &outcome.exchanges {
            collect::add(&mut capture, &collected.redactor, &exchange.artifact, &exchange.source, &exchange.bytes);
        }
        if let Some(last) = outcome.exchanges.last()
            && !session.still_runs(&process)?
        {
            capture.manifest.remarks.push(Remark {
                kind: "ended_in_exercise".to_string(),
                text: format!("the process ended while it was exercised, after {}", last.source),
            });
        }
    }
    Ok(capture)
}

/// What a target there turned out to be.
enum Meant {
    Process(Box<Chosen>),
    /// A unit that has no process.
    Stopped(&'static dyn Engine, Box<Unit>),
}

/// A process there.
struct Chosen {
    process: FarProcess,
    engine: &'static dyn Engine,
    /// Where to ask it, if the user said so.
    address: Option<Address>,
    unit: Option<Unit>,
}

/// Finds what is meant.
fn find(session: &mut Session, target: &Written) -> Result<Meant, Failure> {
    let host = session.host().to_string();
    let on = |text: String| Failure::new(format!("on {host}: {text}"));
    let (mut address, mut unit) = (None, None);
    let pid = match target {
        Written::Pid(pid) => *pid,
        Written::Url(url) => {
            let (name, port, tls) = place_of(url)?;
            let pid = match session.owner_of(&name, port)? {
                Owner::Pid(pids) => {
                    let engines = engines(session)?;
                    // A forked helper may hold the same socket: the engine among the holders is meant.
                    let engine = pids.iter().find(|pid| engines.iter().any(|(known, _)| known == *pid));
                    engine.or(pids.first()).copied().unwrap_or(0)
                }
                Owner::None => return Err(on(format!("nothing listens on {name}:{port}"))),
                Owner::Unknown => {
                    return Err(on(format!(
                        "which process listens on {name}:{port} may not be seen, so what was asked for is not known"
                    ))
                    .hint("log in as root or as the user of the server, or use --sudo"));
                }
                Owner::Elsewhere => {
                    return Err(on(format!("{name} is no address that is known to be its own"))
                        .hint(format!("write the port alone: ssh://{host}/:{port}")));
                }
            };
            address = Some(Address::Tcp { host: name, port, tls });
            pid
        }
        Written::Name(name) => match session.unit(name)? {
            Some(found) => match of_unit(session, &found)? {
                Some(pid) => {
                    unit = Some(found);
                    pid
                }
                None => {
                    let engine = engine_of(&found).ok_or_else(|| {
                        let failure = no_engine(&found);
                        Failure { text: format!("on {host}: {}", failure.text), ..failure }
                    })?;
                    return Ok(Meant::Stopped(engine, Box::new(found)));
                }
            },
            None => called(session, name)?,
        },
        Written::Container(name) => {
            return Err(on(format!("container:{name} is not looked into with plain commands"))
                .hint("let the same program run there: --push")
                .hint("or name its process as that host sees it: ssh://HOST/pid:PID"));
        }
        Written::Only => match engines(session)?.as_slice() {
            [] => {
                return Err(on("no inference server was found running there".to_string())
                    .hint("as another user or in a container: log in as root, or use --sudo"));
            }
            [(pid, _)] => *pid,
            several => {
                let pids = several.iter().map(|(pid, exe)| format!("ssh://{host}/pid:{pid}  {exe}"));
                return Err(pids.fold(on(format!("{} servers run there: say which", several.len())), Failure::hint));
            }
        },
        Written::Stored(_) | Written::Remote(_) => return Err(on("that is no name of anything that runs".to_string())),
    };
    let process = session.look(pid)?.map_err(|error| {
        let failure = on(format!("cannot look at process {pid}: {error}"));
        if error.is_permission() {
            failure.hint("log in as the user of the server or as root, or use --sudo")
        } else {
            failure
        }
    })?;
    let exe = executable(&process.facts);
    match by_executable(exe) {
        Some(engine) => {
            // A manager that does not answer leaves the process to be judged by what it was given.
            let unit = match unit {
                None => session.unit_of(&process)?,
                unit => unit,
            };
            Ok(Meant::Process(Box::new(Chosen { process, engine, address, unit })))
        }
        None => {
            let known: Vec<&str> = ENGINES.iter().map(|engine| engine.name()).collect();
            Err(on(format!("process {pid} ({exe}) is no engine that ascertain knows ({})", known.join(", "))))
        }
    }
}

fn executable(facts: &ProcessFacts) -> &str {
    facts.exe.as_deref().or(facts.argv.first().map(String::as_str)).unwrap_or("")
}

/// The engines that run there, as far as they may be seen.
fn engines(session: &mut Session) -> Result<Vec<(u32, String)>, Failure> {
    let mut all = session.executables()?;
    all.retain(|(_, exe)| by_executable(exe).is_some());
    Ok(all)
}

/// The engine among the processes of a unit: its main process, or else the one with the lowest PID. `None`: it has no
/// process.
fn of_unit(session: &mut Session, unit: &Unit) -> Result<Option<u32>, Failure> {
    let engines = engines(session)?;
    let pids = unit.main_pid().into_iter().chain(unit.state.processes.iter().copied());
    let engine = pids.clone().find(|pid| engines.iter().any(|(known, _)| known == pid));
    match (engine, pids.clone().next()) {
        (Some(pid), _) => Ok(Some(pid)),
        (None, None) => Ok(None),
        (None, Some(pid)) => Err(Failure::new(format!(
            "on {}: {} runs process {pid}, and among its processes no engine that ascertain knows is to be seen",
            session.host(),
            unit.name()
        ))
        .hint("if it has only just been started, try again")
        .hint("as another user: log in as root, or use --sudo")),
    }
}

/// The one running server that is called so.
fn called(session: &mut Session, name: &str) -> Result<u32, Failure> {
    let host = session.host().to_string();
    let on = |text: String| Failure::new(format!("on {host}: {text}"));
    let engines = engines(session)?;
    let mut matching = Vec::new();
    for (pid, exe) in &engines {
        let Some(engine) = by_executable(exe) else { continue };
        let plain = exe.rsplit('/').next().unwrap_or(exe);
        let is_it = plain == name
            || engine.name() == name
            || session.look(*pid)?.is_ok_and(|process| engine.names(&process.facts).iter().any(|one| one == name));
        if is_it {
            matching.push(*pid);
        }
    }
    match matching.as_slice() {
        [pid] => Ok(*pid),
        [] => {
            let failure = on(format!("no unit and no running server is called {name:?}"));
            let hints = engines.iter().map(|(pid, exe)| format!("ssh://{host}/pid:{pid}  {exe}"));
            Err(hints.fold(failure, Failure::hint))
        }
        several => {
            let failure = on(format!("{} running servers are called {name:?}", several.len()));
            Err(several.iter().fold(failure, |failure, pid| failure.hint(format!("ssh://{host}/pid:{pid}"))))
        }
    }
}
