//! Collecting a capture: all witnesses at once, each with a deadline, then redaction, then the manifest.

use crate::file::Root;
use crate::http;
use crate::process;
use crate::redact::{Redactor, SecretNames};
use crate::scrub;
use crate::seal;
use crate::sockets::{self, Owner};
use crate::systemd::Unit;
use crate::time;
use crate::witness::{Context, Found, WITNESSES, Witness, gap, unit};
use ascertain_model::capture::{ArtifactGap, Capture, Manifest, Remark, SCHEMA, Start};
use ascertain_model::wants::{Address, ProcessFacts, Wants};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A witness gets so much longer than its deadline before it is given up: time to say itself why it is late.
const GRACE: Duration = Duration::from_millis(250);

/// What the user decides.
#[derive(Clone)]
pub struct Options {
    /// The process, where there is one.
    pub pid: Option<u32>,
    /// Where to ask, whatever the process was told.
    pub address: Option<Address>,
    /// Where the log is, whatever the process was told.
    pub log: Option<PathBuf>,
    /// Sent to endpoints that want one. Redacted everywhere.
    pub api_key: Option<String>,
    /// How long each witness may take.
    pub timeout: Duration,
    /// The target as the user named it.
    pub target: String,
    /// Name and version of the tool, for the manifest.
    pub tool: String,
    /// The unit it belongs to. One that has no process is looked at all the same.
    pub unit: Option<Arc<Unit>>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("pid", &self.pid)
            .field("address", &self.address)
            .field("log", &self.log)
            .field("api_key", &self.api_key.as_ref().map(|_| crate::redact::MARK))
            .field("timeout", &self.timeout)
            .field("target", &self.target)
            .field("tool", &self.tool)
            .field("unit", &self.unit)
            .finish()
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            pid: None,
            address: None,
            log: None,
            api_key: None,
            timeout: Duration::from_secs(5),
            target: String::new(),
            tool: concat!("ascertain ", env!("CARGO_PKG_VERSION")).to_owned(),
            unit: None,
        }
    }
}

/// Where to ask, and what was noticed while finding out.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The address, or why there is none.
    pub address: Result<Address, ArtifactGap>,
    /// What should be told.
    pub remarks: Vec<Remark>,
}

/// Collects everything that is wanted.
pub fn collect(wants: &Wants, facts: Option<&ProcessFacts>, options: &Options) -> Capture {
    collect_with(wants, facts, options).0
}

/// Collects everything that is wanted, and hands over the redactor that now knows all secrets, for artifacts that are
/// [added](add) later.
pub fn collect_with(wants: &Wants, facts: Option<&ProcessFacts>, options: &Options) -> (Capture, Redactor) {
    let began = Instant::now();
    let taken = SystemTime::now();
    let facts = facts.cloned().or_else(|| process::facts(options.pid?).ok());
    let pid = facts.as_ref().map(|facts| facts.pid).or(options.pid);
    let start = pid.and_then(|pid| process::start(pid).ok());
    let chosen = match (&options.unit, pid) {
        (Some(unit), None) => without_process(unit, wants),
        _ => choose_address(wants, pid, options),
    };
    let mut remarks = chosen.remarks;
    let context = Arc::new(Context {
        wants: wants.clone(),
        root: pid.map_or_else(Root::ours, Root::of),
        log: options.log.clone(),
        api_key: options.api_key.clone(),
        address: chosen.address,
        through: None,
        timeout: options.timeout,
        began,
        facts: facts.clone(),
        unit: options.unit.clone(),
    });
    let found = hear(&context, WITNESSES);
    if let Some(pid) = pid {
        remarks.extend(changes(pid, start.as_ref()));
        remarks.extend(other_log(pid, &context));
        // Who else listens may have begun to do so in the meantime.
        if !remarks.iter().any(|remark| remark.kind == "identity")
            && sockets::same_network(pid) != Some(false)
            && let Ok(address) = &context.address
            && let Some(text) = impostor(pid, address, sockets::listening_of(pid).as_deref())
        {
            remarks.push(Remark { kind: "identity".to_owned(), text });
        }
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    assemble(wants, facts.as_ref(), options, Gathered { found, host, start, taken, remarks })
}

/// What was brought together about a target, not redacted yet.
pub(crate) struct Gathered {
    /// Artifacts and gaps.
    pub found: Vec<Found>,
    /// Name of the host.
    pub host: Option<String>,
    /// Which start it is of.
    pub start: Option<Start>,
    /// When the collection began, by the clock of that host.
    pub taken: SystemTime,
    /// What was noticed.
    pub remarks: Vec<Remark>,
}

/// Makes a capture of what was brought together, wherever it came from: learns its secrets, takes them out, seals it.
pub(crate) fn assemble(
    wants: &Wants,
    facts: Option<&ProcessFacts>,
    options: &Options,
    gathered: Gathered,
) -> (Capture, Redactor) {
    let Gathered { found, host, start, taken, remarks } = gathered;
    // Secrets are learned from everything before anything is rewritten.
    let mut redactor = redactor(wants, facts, options);
    if let Some(unit) = &options.unit {
        scrub::learn(&mut redactor, unit);
    }
    for found in &found {
        if let Some(bytes) = &found.bytes {
            redactor.learn_artifact(&found.entry.name, bytes);
            if wants.files.iter().any(|want| want.artifact == found.entry.name) {
                redactor.learn_config(bytes);
            }
        }
    }
    let mut capture = Capture {
        manifest: Manifest {
            schema: SCHEMA.to_owned(),
            tool: options.tool.clone(),
            target: redactor.text(&options.target),
            host,
            start,
            taken: Some(rfc3339(taken)),
            taken_ms: taken.duration_since(UNIX_EPOCH).ok().and_then(|since| u64::try_from(since.as_millis()).ok()),
            artifacts: Vec::new(),
            remarks: remarks.into_iter().map(|remark| Remark { text: redactor.text(&remark.text), ..remark }).collect(),
        },
        artifacts: BTreeMap::new(),
    };
    let of_unit = options.unit.as_ref().map(|unit| {
        let environ = facts.as_ref().map_or(&[][..], |facts| &facts.environ);
        scrub::scrub(unit, &redactor, &wants.environment, environ)
    });
    for found in found {
        let mut entry = found.entry;
        entry.source = redactor.text(&entry.source);
        if let Some(gap) = &mut entry.gap {
            gap.text = redactor.text(&gap.text);
        }
        entry.partial = entry.partial.map(|partial| redactor.text(&partial));
        if let Some(bytes) = found.bytes {
            let bytes = match (&of_unit, entry.name.as_str()) {
                (Some((files, _)), unit::FILES) => written(&redactor, unit::FILES, files),
                (Some((_, state)), unit::MANAGER) => written(&redactor, unit::MANAGER, state),
                _ => redact(&redactor, &entry.name, &bytes),
            };
            capture.artifacts.insert(entry.name.clone(), bytes);
        }
        capture.manifest.artifacts.push(entry);
    }
    seal::seal(&mut capture);
    (capture, redactor)
}

/// A redactor that knows what the process was given and what the user gave us. What configuration files hold is not
/// known to it yet: prefer the one of [`collect_with`].
pub fn redactor(wants: &Wants, facts: Option<&ProcessFacts>, options: &Options) -> Redactor {
    let mut redactor = Redactor::new(SecretNames::from(wants));
    redactor.learn(options.api_key.as_deref());
    if let Some(facts) = facts {
        redactor.learn_argv(&facts.argv);
        redactor.learn_environ(&facts.environ);
    }
    // The user may have put a password into a URL.
    redactor.learn_argv(std::slice::from_ref(&options.target));
    redactor
}

/// Adds an artifact to a capture, redacted, or replaces the one of that name. A sealed capture stays sealed.
pub fn add(capture: &mut Capture, redactor: &Redactor, name: &str, source: &str, bytes: &[u8]) {
    let bytes = redactor.bytes(name, bytes);
    let mut entry = seal::entry(name, &redactor.text(source));
    entry.bytes = Some(bytes.len() as u64);
    entry.sha256 = Some(seal::sha256(&bytes));
    let entries = &mut capture.manifest.artifacts;
    entries.retain(|entry| entry.name != name);
    let at = entries.partition_point(|entry| entry.name.as_str() < name);
    entries.insert(at, entry);
    capture.artifacts.insert(name.to_owned(), bytes);
}

/// Every file, socket and URL that [`collect`] would touch, without touching one.
pub fn describe(wants: &Wants, facts: Option<&ProcessFacts>, options: &Options) -> Vec<String> {
    let unknown = || gap("not_asked", "the socket on which the process is found to listen", None);
    let address = options.address.clone().or_else(|| wants.address.clone()).ok_or_else(unknown);
    let facts = facts.cloned().or_else(|| options.pid.map(|pid| ProcessFacts { pid, ..ProcessFacts::default() }));
    let context = Context {
        wants: wants.clone(),
        log: options.log.clone(),
        api_key: options.api_key.clone(),
        address,
        through: None,
        root: Root::ours(),
        timeout: options.timeout,
        began: Instant::now(),
        facts,
        unit: options.unit.clone(),
    };
    let redactor = redactor(wants, context.facts.as_ref(), options);
    let mut lines = vec!["read    /proc/sys/kernel/hostname".to_owned()];
    if let Some(pid) = context.pid() {
        lines.push("read    /proc/sys/kernel/random/boot_id".to_owned());
        lines.push("read    /proc/stat".to_owned());
        lines.push(format!(
            "read    if the port is not held by process {pid}: /proc/net/tcp, /proc/net/tcp6, /proc/*/fd"
        ));
    }
    lines.extend(WITNESSES.iter().flat_map(|witness| (witness.plan)(&context)));
    lines.iter().map(|line| redactor.text(line)).collect()
}

/// Finds out where to ask: where the user says, else where the process really listens, else where it was told to.
pub fn choose_address(wants: &Wants, pid: Option<u32>, options: &Options) -> Chosen {
    let listening = pid.and_then(sockets::listening_of);
    let elsewhere = pid.is_some_and(|pid| sockets::same_network(pid) == Some(false));
    let mut chosen = choose(wants, pid, options, listening.as_deref(), elsewhere);
    if let (Some(pid), Ok(address), false) = (pid, &chosen.address, elsewhere)
        && let Some(text) = impostor(pid, address, listening.as_deref())
    {
        chosen.remarks.push(Remark { kind: "identity".to_owned(), text });
    }
    chosen
}

/// The same from what is known: the sockets on which the process listens, and whether it lives in another network.
pub(crate) fn choose(
    wants: &Wants,
    pid: Option<u32>,
    options: &Options,
    listening: Option<&[sockets::Listener]>,
    elsewhere: bool,
) -> Chosen {
    let mut remarks = Vec::new();
    let mut remark = |kind: &str, text: String| remarks.push(Remark { kind: kind.to_owned(), text });
    let address = if let Some(address) = &options.address {
        Ok(address.clone())
    } else if let (true, Some(pid)) = (elsewhere, pid) {
        Err(gap(
            "not_permitted",
            format!("process {pid} lives in another network (a container): its own addresses mean something else here"),
            Some("say where it can be reached from here: a URL such as `http://HOST:PORT`"),
        ))
    } else {
        let wanted = match &wants.address {
            Some(Address::Tcp { port, .. }) => Some(*port),
            _ => None,
        };
        match (&wants.address, listening) {
            (Some(address @ Address::Unix { .. }), _) => Ok(address.clone()),
            (Some(address), Some(sockets)) if sockets.iter().any(|socket| Some(socket.port) == wanted) => {
                Ok(address.clone())
            }
            (configured, Some([socket, others @ ..])) if others.iter().all(|other| other.port == socket.port) => {
                if let (Some(port), Some(pid)) = (wanted.filter(|port| *port != 0), pid) {
                    remark(
                        "address",
                        format!("process {pid} listens on port {}, not on {port} as configured", socket.port),
                    );
                }
                let tls = matches!(configured, Some(Address::Tcp { tls: true, .. }));
                Ok(Address::Tcp { host: socket.address.to_string(), port: socket.port, tls })
            }
            (Some(address), _) => Ok(address.clone()),
            (None, Some([])) => Err(gap("not_present", "the process does not listen on any TCP port", None)),
            (None, Some(_)) => Err(gap(
                "not_asked",
                "the process listens on several ports",
                Some("say which one to ask: a URL such as `http://127.0.0.1:PORT`"),
            )),
            (None, None) => Err(gap(
                "not_present",
                "it is not known where the server listens",
                Some("say where: a URL such as `http://127.0.0.1:PORT`"),
            )),
        }
    };
    Chosen { address, remarks }
}

/// What may be kept of a unit, as text.
fn written(redactor: &Redactor, name: &str, kept: &impl serde::Serialize) -> Vec<u8> {
    let text = serde_json::to_string_pretty(kept).unwrap_or_default();
    redactor.values(name, text.as_bytes())
}

/// A unit without a process is asked nothing. Whoever listens where it would is another.
fn without_process(unit: &Unit, wants: &Wants) -> Chosen {
    let owner = match &wants.address {
        Some(Address::Tcp { host, port, .. }) => sockets::owner_of(*port, host),
        _ => Owner::None,
    };
    stopped(unit, wants, &owner, who)
}

/// The same from what is known: who listens where it would.
pub(crate) fn stopped(unit: &Unit, wants: &Wants, owner: &Owner, who: impl FnOnce(u32) -> String) -> Chosen {
    let name = unit.name();
    let mut remarks = Vec::new();
    if let (Some(address), Owner::Pid(owners)) = (&wants.address, owner)
        && let Some(owner) = owners.first()
    {
        let who = match unit.state.processes.contains(owner) {
            true => format!("{owner} is left over from another start (`kill {owner}` ends it)"),
            false => who(*owner),
        };
        let text = format!("{} is held by process {owner}, and {name} has none: {who}", http::shown(address));
        remarks.push(Remark { kind: "identity".to_owned(), text });
    }
    let gap =
        gap("not_present", format!("{name} has no process"), Some(&format!("start it: `systemctl start {name}`")));
    Chosen { address: Err(gap), remarks }
}

/// A process as a person would look for it, and how to end it.
fn who(pid: u32) -> String {
    let exe = process::link(pid, "exe").ok().map(|exe| process::deleted(exe).0);
    let unit = crate::systemd::named_by(pid).map(|(name, _)| name);
    let since_ms = process::start(pid).ok().and_then(|start| start.since_ms);
    person(pid, exe.as_deref(), unit.as_deref(), since_ms)
}

/// The same from what is known: its executable, its unit, and when it started.
pub(crate) fn person(pid: u32, exe: Option<&str>, unit: Option<&str>, since_ms: Option<u64>) -> String {
    let program = exe.and_then(|exe| exe.rsplit('/').next());
    let age = since_ms.and_then(|since| UNIX_EPOCH.checked_add(Duration::from_millis(since)));
    // It is known to some milliseconds only.
    let age = age.map(rfc3339).map(|age| format!(", started {}Z", age.split('.').next().unwrap_or(&age)));
    let of = match unit {
        Some(unit) => format!(", of {unit} (`systemctl stop {unit}` ends it)"),
        None => format!(", of no unit (`kill {pid}` ends it)"),
    };
    format!("{pid} is {}{}{of}", program.unwrap_or("a program that may not be seen"), age.unwrap_or_default())
}

/// Whether somebody other than the process answers at an address.
fn impostor(pid: u32, address: &Address, listening: Option<&[sockets::Listener]>) -> Option<String> {
    let (owner, own) = match address {
        Address::Tcp { host, port, .. } => {
            let own = listening.is_some_and(|sockets| sockets.iter().any(|socket| socket.port == *port));
            // The common case needs no look at every process: one socket listens there, and it is its own.
            if own && sockets::listeners().iter().filter(|socket| socket.port == *port).count() == 1 {
                return None;
            }
            (sockets::owner_of(*port, host), own)
        }
        Address::Unix { path } => (sockets::owner_of_unix(path), false),
    };
    misplaced(pid, address, &owner, own, |other| process::related(pid, other), who)
}

/// The same from what is known: who holds the address, whether the process itself does (`own`), and which processes
/// belong to it; `who` describes one.
pub(crate) fn misplaced(
    pid: u32,
    address: &Address,
    owner: &Owner,
    own: bool,
    mut related: impl FnMut(u32) -> bool,
    who: impl FnMut(u32) -> String,
) -> Option<String> {
    match owner {
        Owner::Pid(owners) => {
            let others: Vec<String> = owners.iter().filter(|owner| !related(**owner)).map(u32::to_string).collect();
            if others.is_empty() {
                None
            } else if own && others.len() < owners.len() {
                Some(format!(
                    "processes {pid} and {} both listen on {}, and which of them answers cannot be told: stop one of them",
                    others.join(", "),
                    http::shown(address)
                ))
            } else if others.len() == owners.len() {
                let shown: Vec<String> = owners.iter().take(3).copied().map(who).collect();
                Some(format!(
                    "{} is held by process {}, not by process {pid}: {}",
                    http::shown(address),
                    others.join(", "),
                    shown.join("; ")
                ))
            } else {
                None
            }
        }
        Owner::Elsewhere => {
            Some(format!("{} is not an address of the host process {pid} runs on", http::shown(address)))
        }
        _ => None,
    }
}

/// What changed about the process while it was looked at, or before.
fn changes(pid: u32, start: Option<&Start>) -> Vec<Remark> {
    let tree = process::link(pid, "ns/mnt").is_err_and(|error| error.is_permission());
    let deleted = process::exe_deleted(pid).unwrap_or(false);
    let fate = match (start, process::start(pid)) {
        (Some(start), Ok(now)) if now.ticks != start.ticks => Some(Fate::Replaced),
        (Some(_), Err(process::Error::Gone { .. })) => Some(Fate::Ended),
        _ => None,
    };
    changed(pid, tree, deleted, fate)
}

/// What became of a process while it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its PID is another process's now.
    Replaced,
    /// It is gone.
    Ended,
}

/// The same from what is known: whether it may not be seen which files the process sees, whether its executable was
/// removed, and what became of it.
pub(crate) fn changed(pid: u32, tree_unseen: bool, exe_deleted: bool, fate: Option<Fate>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut remark = |kind: &str, text: String| remarks.push(Remark { kind: kind.to_owned(), text });
    if tree_unseen {
        let text = format!(
            "files were read as this user sees them: it may not be looked up whether process {pid} sees the same"
        );
        remark("file_tree", text);
    }
    if exe_deleted {
        remark(
            "executable_replaced",
            format!("the executable of process {pid} was replaced or removed after it was started"),
        );
    }
    match fate {
        Some(Fate::Replaced) => {
            remark("restarted", format!("PID {pid} was given to another process while it was looked at"));
        }
        Some(Fate::Ended) => remark("ended", format!("process {pid} ended while it was looked at")),
        None => {}
    }
    remarks
}

/// Whether the log that was read by its name is not the file that the process writes to: a copy, the log of another
/// start, or one that took its place.
fn other_log(pid: u32, context: &Context) -> Option<Remark> {
    use std::os::unix::fs::MetadataExt;
    let (path, seen) = match (&context.log, &context.wants.log_file) {
        (Some(path), _) => (path.clone(), path.clone()),
        (None, Some(path)) => {
            let path = context.absolute(path);
            let seen = process::path(pid, "root").join(path.strip_prefix("/").unwrap_or(&path));
            (path, seen)
        }
        (None, None) => return None,
    };
    let file = std::fs::metadata(seen).ok()?;
    let open: Vec<(String, std::fs::Metadata)> = std::fs::read_dir(process::path(pid, "fd"))
        .ok()?
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_string_lossy().into_owned(), entry.path().metadata().ok()?)))
        .filter(|(_, metadata)| metadata.is_file())
        .collect();
    let holds = open.iter().any(|(_, metadata)| (metadata.dev(), metadata.ino()) == (file.dev(), file.ino()));
    // What goes through a pipe or a socket ends in a file that the process does not hold.
    let writes_itself = context.wants.log_file.is_some() || open.iter().any(|(fd, _)| fd == "1" || fd == "2");
    (!holds && writes_itself && file.is_file()).then(|| not_its_log(pid, &path.display().to_string()))
}

pub(crate) fn not_its_log(pid: u32, path: &str) -> Remark {
    Remark {
        kind: "other_log".to_owned(),
        text: format!("process {pid} does not write to {path}: its log is another file"),
    }
}

enum Message {
    Found(Box<Found>),
    Done(Option<String>),
}

/// Lets all witnesses testify at once. One that is stuck in the kernel cannot be ended from outside: its thread is
/// left behind, and what it did not bring becomes a gap.
pub(crate) fn hear(context: &Arc<Context>, witnesses: &'static [Witness]) -> Vec<Found> {
    let (sender, receiver) = mpsc::channel::<(usize, Message)>();
    let mut failed: BTreeMap<usize, ArtifactGap> = BTreeMap::new();
    let mut running: BTreeSet<usize> = BTreeSet::new();
    for (index, witness) in witnesses.iter().enumerate() {
        let (context, sender) = (Arc::clone(context), sender.clone());
        let spawned = std::thread::Builder::new().name(witness.name.to_owned()).spawn(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                (witness.testify)(&context, &mut |mut found| {
                    found.entry.at_ms = u64::try_from(context.began.elapsed().as_millis()).unwrap_or(u64::MAX);
                    let _ = sender.send((index, Message::Found(Box::new(found))));
                });
            }));
            let panic = outcome.err().map(|panic| {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown".to_owned())
            });
            let _ = sender.send((index, Message::Done(panic)));
        });
        match spawned {
            Ok(_) => {
                running.insert(index);
            }
            Err(error) => {
                failed.insert(
                    index,
                    gap("malformed", format!("cannot start the {} witness: {error}", witness.name), None),
                );
            }
        }
    }
    drop(sender);
    let until = context.deadline() + GRACE;
    let mut all: Vec<(usize, Found)> = Vec::new();
    while !running.is_empty() {
        match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok((index, Message::Found(found))) => {
                let known = all.iter().any(|(_, other)| other.entry.name == found.entry.name);
                if !known && seal::is_name(&found.entry.name) {
                    all.push((index, *found));
                }
            }
            Ok((index, Message::Done(panic))) => {
                running.remove(&index);
                if let Some(text) = panic {
                    let name = witnesses[index].name;
                    failed.insert(
                        index,
                        gap("malformed", format!("the {name} witness failed: {text} (a bug: please report it)"), None),
                    );
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    for index in running {
        let text =
            format!("the {} witness did not finish within {} ms", witnesses[index].name, context.timeout.as_millis());
        failed.insert(index, gap("timed_out", text, Some("give it more time: `--timeout SECONDS`")));
    }
    for (index, gap) in failed {
        let witness = &witnesses[index];
        let expected = catch_unwind(AssertUnwindSafe(|| (witness.artifacts)(context))).unwrap_or_default();
        for name in expected {
            if !all.iter().any(|(_, found)| found.entry.name == name) {
                all.push((index, Found::gap(&name, witness.name, gap.clone())));
            }
        }
    }
    all.into_iter().map(|(_, found)| found).collect()
}

/// Redacts one artifact. In command line and environment the place alone makes a value secret.
fn redact(redactor: &Redactor, name: &str, bytes: &[u8]) -> Vec<u8> {
    let items: Option<Vec<String>> = match name {
        "proc_cmdline.json" | "proc_environ.json" => serde_json::from_slice(bytes).ok(),
        _ => None,
    };
    let Some(items) = items else { return redactor.bytes(name, bytes) };
    let items = if name == "proc_cmdline.json" {
        redactor.argv(&items)
    } else {
        let variable = |item: &String| match item.split_once('=') {
            Some((name, value)) => format!("{name}={}", redactor.variable(name, value)),
            None => redactor.text(item),
        };
        items.iter().map(variable).collect()
    };
    format!("{:#}\n", json!(items)).into_bytes()
}

/// A moment as RFC 3339 in UTC, to the millisecond.
fn rfc3339(moment: SystemTime) -> String {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    let microseconds = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
    format!("{}T{}Z", time::date(since.as_secs()), time::of_day(microseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(_: &Context) -> Vec<String> {
        vec!["one.txt".into(), "two.txt".into()]
    }

    fn none(_: &Context) -> Vec<String> {
        Vec::new()
    }

    #[test]
    fn a_witness_that_panics_or_hangs_leaves_gaps() {
        const BAD: &[Witness] = &[
            Witness {
                name: "panics",
                artifacts: one,
                plan: none,
                testify: |_, tell| {
                    tell(Found::bytes("one.txt", "x", b"1".to_vec()));
                    panic!("no more");
                },
            },
            Witness {
                name: "hangs",
                artifacts: |_| vec!["three.txt".into()],
                plan: none,
                testify: |_, _| std::thread::sleep(Duration::from_secs(600)),
            },
            Witness {
                name: "works",
                artifacts: none,
                plan: none,
                testify: |_, tell| tell(Found::bytes("four.txt", "x", b"4".to_vec())),
            },
        ];
        let context = Arc::new(Context {
            wants: Wants::default(),
            facts: None,
            log: None,
            api_key: None,
            address: Err(gap("not_asked", "", None)),
            through: None,
            root: Root::ours(),
            timeout: Duration::from_secs(3),
            began: Instant::now(),
            unit: None,
        });
        let found = hear(&context, BAD);
        let of = |name: &str| found.iter().find(|found| found.entry.name == name).unwrap();
        assert_eq!(of("one.txt").bytes.as_deref(), Some(&b"1"[..]));
        assert_eq!(of("four.txt").bytes.as_deref(), Some(&b"4"[..]));
        assert!(of("two.txt").entry.gap.as_ref().unwrap().text.contains("no more"));
        assert_eq!(of("three.txt").entry.gap.as_ref().unwrap().reason, "timed_out");
    }

    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_799, "2000-02-29T23:59:59.000Z"),
            (1_767_225_599, "2025-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
