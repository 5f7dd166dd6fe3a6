//! A capture of a process on another host with nothing but plain commands there: raw material is fetched, and then
//! goes the way of everything that is collected on this host. What the commands cannot do is a gap.

use super::remote_file::{about, content, part};
use super::session::{Reply, Request, Session};
use super::{Fault, Forward, listing};
use crate::collect::{self, Fate, Gathered, Options};
use crate::process::{self, Error};
use crate::redact::Redactor;
use crate::sockets::{self, Listener, Owner, UnixListener};
use crate::systemd::Unit;
use crate::witness::journal::Wanted;
use crate::witness::log::{self, Descriptors, Stream};
use crate::witness::process::{self as process_witness, description, gap_of, kept_variables, listening, mapped_files};
use crate::witness::{Context, Found, Witness, endpoints, gap, unit};
use ascertain_model::Capture;
use ascertain_model::capture::{ArtifactGap, Remark, Start};
use ascertain_model::service::Manager;
use ascertain_model::wants::{Address, FileWant, ProcessFacts, Wants};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The kind of the remark that says how a capture was made.
pub const REMARK: &str = "agentless";
const SMALL: u64 = 64 << 10;
/// Command lines and environments are at most so long; the kernel allows less.
const LARGE: u64 = 8 << 20;
const WITH_PUSH: &str = "let the same program run there: `--push`";

/// A process there, and what was read about it at once.
pub struct FarProcess {
    /// What is known of it. Not redacted.
    pub facts: ProcessFacts,
    start: Start,
    host: Option<String>,
    taken: SystemTime,
    began: Instant,
    environ: Result<(), ArtifactGap>,
    status: Result<Vec<u8>, Error>,
    maps: Result<Vec<u8>, Error>,
    exe_deleted: Option<bool>,
    /// Not ours, ours, or not to be seen.
    own_files: Option<bool>,
    own_network: bool,
    /// Descriptors: number, target.
    open: Option<Vec<(u32, String)>>,
    /// `None`: they may not be seen.
    listening: Option<Vec<Listener>>,
    unix: Vec<UnixListener>,
    /// The text of `/proc/PID/cgroup`.
    pub(super) groups: String,
}

/// What was collected.
pub struct Collected {
    /// The capture.
    pub capture: Capture,
    /// Knows its secrets.
    pub redactor: Redactor,
    /// The way to the server's port, for requests that are sent later.
    pub forward: Option<Forward>,
}

impl Session {
    /// The executables of all processes that may be seen there, by PID; of those of other users what they call
    /// themselves.
    pub fn executables(&mut self) -> Result<Vec<(u32, String)>, Fault> {
        let requests = ["exes", "names"].map(|verb| Request::new::<&str>(verb, &[], LARGE as usize));
        let patience = self.patience();
        let replies = self.ask(&requests, patience)?;
        let [exes, names] = replies.as_slice() else { return Ok(Vec::new()) };
        let mut all: BTreeMap<u32, String> = called(&names.body);
        all.extend(listing::parse(&exes.body).into_iter().filter_map(|link| {
            let pid: u32 = link.name.strip_prefix("/proc/")?.strip_suffix("/exe")?.parse().ok()?;
            Some((pid, process::deleted(link.target?).0))
        }));
        Ok(all.into_iter().collect())
    }

    /// Who listens on `host:port` there.
    pub fn owner_of(&mut self, host: &str, port: u16) -> Result<Owner, Fault> {
        let Some(addresses) = self.its_addresses(host)? else { return Ok(Owner::Elsewhere) };
        let found = self.ask_one(listeners_in("/proc/net"))?;
        let inodes = tcp(&found)
            .into_iter()
            .filter(|one| one.port == port && addresses.iter().any(|address| sockets::answers(one.address, *address)))
            .map(|one| one.inode);
        self.holders(inodes.collect())
    }

    /// Looks at one process. The inner error is about the process.
    pub fn look(&mut self, pid: u32) -> Result<Result<FarProcess, Error>, Fault> {
        let began = Instant::now();
        let proc = |name: &str| format!("/proc/{pid}/{name}");
        let file = |name: &str, limit: u64| part(&proc(name), 0, limit);
        let links = ["exe", "cwd", "root", "ns/mnt", "ns/net"].map(proc);
        let own = ["root", "ns/mnt", "ns/net"].map(|name| format!("/proc/self/{name}"));
        let links: Vec<&str> = links.iter().chain(&own).map(String::as_str).collect();
        let requests = [
            file("cmdline", LARGE),
            file("environ", LARGE),
            file("status", SMALL),
            file("maps", LARGE),
            file("stat", SMALL),
            part("/proc/sys/kernel/random/boot_id", 0, SMALL),
            part("/proc/sys/kernel/hostname", 0, SMALL),
            Request::new("links", &links, SMALL as usize),
            Request::new("fds", &[pid.to_string()], LARGE as usize),
            listeners_in(&proc("net")),
            Request::new("find", &[" 00010000 ".to_owned(), proc("net/unix")], LARGE as usize),
            Request::new::<&str>("clock", &[], 0),
            file("cgroup", SMALL),
        ];
        let patience = self.patience();
        let mut replies = self.ask(&requests, patience)?.into_iter();
        let mut next = || replies.next().unwrap_or_default();
        let read = |reply: Reply, name: &str| content(reply).map_err(|error| Error::of(pid, proc(name), error));
        let cmdline = read(next(), "cmdline");
        let environ = read(next(), "environ");
        let status = read(next(), "status");
        let maps = read(next(), "maps");
        let stat = read(next(), "stat").and_then(|stat| {
            let why = "expected at least 22 fields";
            process::parse_stat(&stat).ok_or_else(|| Error::Malformed { path: proc("stat"), why })
        });
        let (boot, host) = (content(next()).ok(), content(next()).ok());
        let (links, fds, found, unix, clock) = (next(), next(), next(), next(), next());
        let groups = content(next()).unwrap_or_default();
        let (argv, stat) = match (cmdline, stat) {
            (Ok(cmdline), Ok(stat)) => (process::split(&cmdline), stat),
            (Err(error), _) | (_, Err(error)) => return Ok(Err(error)),
        };
        let links = listing::parse(&links.body);
        let link = |name: &str| links.iter().find(|link| link.name == name);
        let target = |name: &str| link(name).and_then(|link| link.target.clone());
        let same = |name: &str| Some(target(&proc(name))? == target(&format!("/proc/self/{name}"))?);
        let exe = target(&proc("exe")).map(process::deleted);
        let open: Option<Vec<(u32, String)>> = (fds.state() == "ok").then(|| {
            let links = listing::parse(&fds.body);
            links.into_iter().filter_map(|link| Some((link.name.parse().ok()?, link.target?))).collect()
        });
        let held: Option<BTreeSet<u64>> =
            open.as_ref().map(|open| open.iter().filter_map(|(_, target)| socket(target)).collect());
        let listening = held.as_ref().map(|held| {
            let mut all = tcp(&found);
            all.retain(|one| held.contains(&one.inode));
            all
        });
        let unix = String::from_utf8_lossy(&unix.body)
            .lines()
            .filter_map(sockets::parse_unix_line)
            .filter(|one| held.as_ref().is_some_and(|held| held.contains(&one.inode)))
            .collect();
        let (now, since_ms) = started(&clock, stat.start_ticks);
        let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
        let variables = environ.as_ref().map(|environ| process::variables(environ)).unwrap_or_default();
        Ok(Ok(FarProcess {
            facts: ProcessFacts {
                pid,
                exe: exe.as_ref().map(|exe| exe.0.clone()),
                argv,
                environ: variables,
                cwd: target(&proc("cwd")),
            },
            start: Start { boot: text(boot).unwrap_or_default(), pid, ticks: stat.start_ticks, since_ms },
            host: text(host),
            taken: now,
            began,
            environ: environ.map(|_| ()).map_err(|error| gap_of(&error)),
            status,
            maps,
            exe_deleted: exe.map(|exe| exe.1),
            own_files: same("ns/mnt").zip(same("root")).map(|(names, root)| names && root),
            own_network: same("ns/net") != Some(false),
            open,
            listening,
            unix,
            groups: String::from_utf8_lossy(&groups).into_owned(),
        }))
    }

    /// The configuration files that are wanted of a process there.
    pub fn files(&mut self, wants: &Wants, process: &FarProcess) -> Result<Vec<Found>, Fault> {
        let path = |want: &FileWant| process.absolute(&want.path);
        if process.own_files == Some(false) {
            let gaps = wants.files.iter().map(|want| Found::gap(&want.artifact, path(want), other_tree()));
            return Ok(gaps.collect());
        }
        let files: Vec<(String, u64)> = wants.files.iter().map(|want| (path(want), want.limit)).collect();
        let read = self.read_heads(&files)?;
        let found = wants.files.iter().zip(read).map(|(want, read)| Found::file(&want.artifact, path(want), read));
        Ok(found.collect())
    }

    /// Collects everything that is wanted of a process there. `files`: what [`Session::files`] brought.
    pub fn collect(
        &mut self,
        wants: &Wants,
        process: &FarProcess,
        options: &Options,
        mut found: Vec<Found>,
    ) -> Result<Collected, Fault> {
        let pid = process.facts.pid;
        let chosen = collect::choose(wants, Some(pid), options, process.listening.as_deref(), !process.own_network);
        let mut remarks = chosen.remarks;
        remarks.push(self.remark());
        found.extend(process.testify(wants));
        self.log(wants, process, options, &mut found, &mut remarks)?;
        for (artifact, path) in &wants.checkpoints {
            let why = "plain commands do not read the header of a model file";
            found.push(Found::gap(artifact, process.absolute(path), gap("not_supported", why, Some(WITH_PUSH))));
        }
        let (address, forward) = self.way_to(chosen.address);
        let through = forward.as_ref().map(Forward::address);
        let asked = hear_here(wants, Some(process), options, &address, through);
        found.extend(asked.into_iter().map(|found| with_complaint(found, forward.as_ref())));
        remarks.extend(self.changes(process)?);
        if let (Ok(address), true) = (&address, process.own_network)
            && let Some(text) = self.impostor(process, address)?
        {
            remarks.push(Remark { kind: "identity".to_owned(), text });
        }
        let gathered = Gathered {
            found,
            host: process.host.clone(),
            start: Some(process.start.clone()),
            taken: process.taken,
            remarks,
        };
        let (capture, redactor) = collect::assemble(wants, Some(&process.facts), options, gathered);
        Ok(Collected { capture, redactor, forward })
    }

    /// Collects what there is of a unit that has no process; the options name it.
    pub fn collect_stopped(&mut self, wants: &Wants, unit: &Unit, options: &Options) -> Result<Capture, Fault> {
        let owner = match &wants.address {
            Some(Address::Tcp { host, port, .. }) => self.owner_of(host, *port)?,
            _ => Owner::None,
        };
        let described = match &owner {
            Owner::Pid(owners) => self.who(owners.first().copied().unwrap_or(0))?,
            _ => String::new(),
        };
        let chosen = collect::stopped(unit, wants, &owner, |_| described);
        let mut remarks = chosen.remarks;
        remarks.push(self.remark());
        let mut found = hear_here(wants, None, options, &chosen.address, None);
        match Wanted::new(None, None, Some(unit), || None) {
            Some(wanted) => self.journal(&wanted, Some(unit), &wants.log_ready, &mut |one| found.push(one))?,
            None => {
                let why = format!("the manager knows of no start of {}", unit.name());
                found.push(Found::gap(log::LOG, "journalctl", gap("not_present", why, None)));
            }
        }
        let requests = [Request::new::<&str>("clock", &[], 0), part("/proc/sys/kernel/hostname", 0, SMALL)];
        let patience = self.patience();
        let mut replies = self.ask(&requests, patience)?.into_iter();
        let taken = replies.next().map_or_else(SystemTime::now, |clock| started(&clock, 0).0);
        let host = replies.next().and_then(|reply| content(reply).ok());
        let host = host.map(|host| String::from_utf8_lossy(&host).trim().to_owned());
        let gathered = Gathered { found, host, start: None, taken, remarks };
        Ok(collect::assemble(wants, None, options, gathered).0)
    }

    fn remark(&self) -> Remark {
        let text = format!("looked at with plain commands on {}; --push sees more", self.host());
        Remark { kind: REMARK.to_owned(), text }
    }

    /// A forward to where the server listens, or why there is none.
    fn way_to(&self, address: Result<Address, ArtifactGap>) -> (Result<Address, ArtifactGap>, Option<Forward>) {
        match &address {
            Ok(Address::Tcp { host, port, tls: false }) => {
                match Forward::open(self, crate::http::reachable(host), *port) {
                    Ok(forward) => (address, Some(forward)),
                    Err(error) => (Err(gap("malformed", format!("cannot open a forward: {error}"), None)), None),
                }
            }
            Ok(Address::Unix { path }) => {
                let why = format!("the server listens on unix:{path}, to which there is no forward");
                (Err(gap("not_supported", why, Some(WITH_PUSH))), None)
            }
            // Our client says itself that it does not speak TLS.
            _ => (address, None),
        }
    }

    /// Whether the process is still the one it was.
    pub fn still_runs(&mut self, process: &FarProcess) -> Result<bool, Fault> {
        Ok(self.changes(process)?.iter().all(|remark| remark.kind != "ended" && remark.kind != "restarted"))
    }

    fn changes(&mut self, process: &FarProcess) -> Result<Vec<Remark>, Fault> {
        let pid = process.facts.pid;
        let stat = content(self.ask_one(part(&format!("/proc/{pid}/stat"), 0, SMALL))?);
        let fate = match stat {
            Ok(stat) => {
                let stat = process::parse_stat(&stat);
                stat.filter(|stat| stat.start_ticks != process.start.ticks).map(|_| Fate::Replaced)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(Fate::Ended),
            Err(_) => None,
        };
        let deleted = process.exe_deleted.unwrap_or(false);
        Ok(collect::changed(pid, process.own_files.is_none(), deleted, fate))
    }

    /// As for a process of this host: who else may answer at its address.
    fn impostor(&mut self, process: &FarProcess, address: &Address) -> Result<Option<String>, Fault> {
        let Address::Tcp { host, port, .. } = address else { return Ok(None) };
        let own = process.listening.as_ref().is_some_and(|all| all.iter().any(|one| one.port == *port));
        let all = tcp(&self.ask_one(listeners_in("/proc/net"))?);
        // The common case needs no look at every process.
        if own && all.iter().filter(|one| one.port == *port).count() == 1 {
            return Ok(None);
        }
        let owner = self.owner_of(host, *port)?;
        let pid = process.facts.pid;
        let others = match &owner {
            Owner::Pid(owners) => owners.clone(),
            _ => Vec::new(),
        };
        let mut related = BTreeSet::from([pid]);
        for other in others.iter().copied() {
            if self.ancestors(other)?.contains(&pid) || self.ancestors(pid)?.contains(&other) {
                related.insert(other);
            }
        }
        let mut described = BTreeMap::new();
        for other in others.iter().take(3) {
            described.insert(*other, self.who(*other)?);
        }
        let who = |other: u32| described.get(&other).cloned().unwrap_or_else(|| format!("process {other}"));
        Ok(collect::misplaced(pid, address, &owner, own, |other| related.contains(&other), who))
    }

    /// A process as a person would look for it.
    fn who(&mut self, pid: u32) -> Result<String, Fault> {
        let requests = [
            Request::new("links", &[format!("/proc/{pid}/exe")], SMALL as usize),
            part(&format!("/proc/{pid}/cgroup"), 0, SMALL),
            part(&format!("/proc/{pid}/stat"), 0, SMALL),
            Request::new::<&str>("clock", &[], 0),
        ];
        let patience = self.patience();
        let replies = self.ask(&requests, patience)?;
        let [links, groups, stat, clock] = replies.as_slice() else { return Ok(format!("process {pid}")) };
        let exe =
            listing::parse(&links.body).into_iter().find_map(|link| link.target).map(|exe| process::deleted(exe).0);
        let groups = content(groups.clone()).unwrap_or_default();
        let unit = crate::systemd::named_in(&String::from_utf8_lossy(&groups)).map(|(name, _)| name);
        let stat = content(stat.clone()).ok().and_then(|stat| process::parse_stat(&stat));
        let since = stat.and_then(|stat| started(clock, stat.start_ticks).1);
        Ok(collect::person(pid, exe.as_deref(), unit.as_deref(), since))
    }

    /// A process and its ancestors but for the first of all.
    fn ancestors(&mut self, pid: u32) -> Result<Vec<u32>, Fault> {
        let mut line = vec![pid];
        while line.len() < 64 {
            let last = line.last().copied().unwrap_or(0);
            let stat = content(self.ask_one(part(&format!("/proc/{last}/stat"), 0, SMALL))?).ok();
            match stat.and_then(|stat| process::parse_stat(&stat)) {
                Some(stat) if stat.parent > 1 => line.push(stat.parent),
                _ => break,
            }
        }
        Ok(line)
    }

    fn holders(&mut self, inodes: BTreeSet<u64>) -> Result<Owner, Fault> {
        if inodes.is_empty() {
            return Ok(Owner::None);
        }
        let texts: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
        let mut pids: Vec<u32> = self.open_by_all(&texts.join("\n"))?.into_iter().map(|open| open.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        Ok(if pids.is_empty() { Owner::Unknown } else { Owner::Pid(pids) })
    }

    /// Every descriptor that leads to one of these, one a line.
    fn open_by_all(&mut self, texts: &str) -> Result<Vec<Open>, Fault> {
        let patience = self.patience() * 2;
        let mut replies = self.ask(&[Request::new("holders", &[texts], 8 << 20)], patience)?;
        let links = listing::parse(&replies.pop().unwrap_or_default().body);
        let wanted: Vec<&str> = texts.lines().collect();
        Ok(links
            .into_iter()
            .filter_map(|link| {
                link.target.filter(|target| wanted.contains(&target.as_str()))?;
                let pid = link.directory?.strip_prefix("/proc/")?.strip_suffix("/fd")?.parse().ok()?;
                Some(Open { pid, modes: link.modes })
            })
            .collect())
    }

    /// The addresses there that a host stands for; `None` if it has none of them.
    fn its_addresses(&mut self, host: &str) -> Result<Option<Vec<IpAddr>>, Fault> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || host == "localhost" || host.ends_with(".localhost") {
            return Ok(Some(vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]));
        }
        // A name may mean another address there than here.
        let Ok(address) = host.parse::<IpAddr>() else { return Ok(None) };
        if address.is_loopback() || address.is_unspecified() {
            return Ok(Some(vec![address]));
        }
        let requests = [part("/proc/net/fib_trie", 0, LARGE), part("/proc/net/if_inet6", 0, LARGE)];
        let patience = self.patience();
        let texts: Vec<String> = self
            .ask(&requests, patience)?
            .into_iter()
            .map(|reply| String::from_utf8_lossy(&content(reply).unwrap_or_default()).into_owned())
            .collect();
        let is_own = match (&address, texts.as_slice()) {
            (IpAddr::V4(address), [trie, _]) => {
                let named = format!("|-- {address}");
                let lines: Vec<&str> = trie.lines().map(str::trim).collect();
                lines.windows(2).any(|pair| pair[0] == named && pair[1].starts_with("/32 host LOCAL"))
            }
            (IpAddr::V6(address), [_, table]) => {
                let hex: String = address.octets().iter().map(|byte| format!("{byte:02x}")).collect();
                table.lines().any(|line| line.starts_with(&hex))
            }
            _ => false,
        };
        Ok(is_own.then_some(vec![address]))
    }

    /// The log, by the same rules as on this host.
    fn log(
        &mut self,
        wants: &Wants,
        process: &FarProcess,
        options: &Options,
        found: &mut Vec<Found>,
        remarks: &mut Vec<Remark>,
    ) -> Result<(), Fault> {
        let pid = process.facts.pid;
        let named = options.log.as_ref().map(|path| path.to_string_lossy().into_owned());
        let told = wants.log_file.as_ref().map(|path| process.absolute(path));
        let in_our_tree = process.own_files != Some(false);
        if let Some(path) = named.clone().or(told.filter(|_| in_our_tree)) {
            let read = self.read_ends(&path, &wants.log_beginnings)?;
            if let (Some(named), Err(error)) = (&named, &read) {
                return Err(Fault::on(self.host(), format!("cannot read the log {named}: {error}"))
                    .hint("--log names a file of the host on which the server runs"));
            }
            if read.is_ok() {
                if read.is_ok() && !self.holds(process, &path, wants.log_file.is_some())? {
                    remarks.push(collect::not_its_log(pid, &path));
                }
                found.push(Found::file(log::LOG, path, read));
                return Ok(());
            }
        }
        let (error, output) = self.streams(process)?;
        let start = journal_of(process, options.unit.as_deref());
        let mut there = There {
            session: self,
            beginnings: &wants.log_beginnings,
            ready: &wants.log_ready,
            unit: options.unit.as_deref(),
            start,
            fault: None,
        };
        log::of_streams(&mut there, pid, &error, &output, &mut |one| found.push(one));
        there.fault.map_or(Ok(()), Err)
    }

    /// Whether a process has a file open. `true` also if its output goes where it need not have.
    fn holds(&mut self, process: &FarProcess, path: &str, told: bool) -> Result<bool, Fault> {
        let Some(open) = &process.open else { return Ok(true) };
        let files: Vec<u32> =
            open.iter().filter(|(_, target)| target.starts_with('/')).map(|(fd, _)| *fd).take(256).collect();
        let mut requests = vec![part(path, 0, 0)];
        requests.extend(files.iter().map(|fd| part(&format!("/proc/{}/fd/{fd}", process.facts.pid), 0, 0)));
        let patience = self.patience();
        let ids: Vec<Option<(u64, u64)>> =
            self.ask(&requests, patience)?.iter().map(|reply| about(reply).map(|about| about.id)).collect();
        let Some((Some(wanted), held)) = ids.split_first() else { return Ok(true) };
        let writes_itself = told || files.iter().zip(held).any(|(fd, id)| matches!(fd, 1 | 2) && id.is_some());
        Ok(!writes_itself || held.contains(&Some(*wanted)))
    }

    /// Where standard error and standard output lead.
    fn streams(&mut self, process: &FarProcess) -> Result<(Stream, Stream), Fault> {
        let Some(open) = &process.open else { return Ok((Stream::NotPermitted, Stream::NotPermitted)) };
        let requests = [2, 1].map(|fd| part(&format!("/proc/{}/fd/{fd}", process.facts.pid), 0, 0));
        let patience = self.patience();
        let replies = self.ask(&requests, patience)?;
        let stream = |fd: u32, reply: Option<&Reply>| match open.iter().find(|(number, _)| *number == fd) {
            Some((_, target)) => Stream::to(target.clone(), || about(reply?).map(|about| about.id)),
            None => Stream::Closed,
        };
        Ok((stream(2, replies.first()), stream(1, replies.get(1))))
    }
}

/// One descriptor of a process.
struct Open {
    pid: u32,
    modes: (bool, bool),
}

impl FarProcess {
    /// A path as the process means it: relative ones start in its working directory.
    fn absolute(&self, path: &str) -> String {
        let cwd = self.facts.cwd.as_deref().unwrap_or("/");
        let path: PathBuf = Path::new(cwd).join(path);
        path.to_string_lossy().into_owned()
    }

    /// What the process witness says on this host.
    fn testify(&self, wants: &Wants) -> Vec<Found> {
        let pid = self.facts.pid;
        let of = |read: &Result<Vec<u8>, Error>, make: &dyn Fn(&[u8]) -> Vec<u8>| match read {
            Ok(bytes) => Ok(make(bytes)),
            Err(error) => Err(gap_of(error)),
        };
        let denied = |path: String| gap_of(&Error::NotPermitted { pid, path });
        process_witness::ARTIFACTS
            .iter()
            .map(|(name, file)| {
                let artifact: Result<Vec<u8>, ArtifactGap> = match *name {
                    "proc_cmdline.json" => Ok(process_witness::pretty(&serde_json::json!(self.facts.argv))),
                    "proc_environ.json" => {
                        self.environ.clone().map(|()| kept_variables(&self.facts.environ, &wants.environment))
                    }
                    "proc_status.txt" => of(&self.status, &<[u8]>::to_vec),
                    "maps_files.txt" => of(&self.maps, &mapped_files),
                    "process.json" => of(&self.status, &|status| {
                        description(pid, Some(&self.facts), self.exe_deleted, self.start.ticks, status)
                    }),
                    "listeners.json" => match &self.listening {
                        Some(tcp) => Ok(listening(tcp, &self.unix)),
                        None => Err(denied(format!("/proc/{pid}/fd"))),
                    },
                    _ => Err(gap("not_supported", "plain commands do not read it", Some(WITH_PUSH))),
                };
                let source = format!("/proc/{pid}/{file}");
                match artifact {
                    Ok(bytes) => Found::bytes(name, source, bytes),
                    Err(gap) => Found::gap(name, source, gap),
                }
            })
            .collect()
    }
}

/// A file that a process holds open: PID, descriptor, path, and device and inode.
type OpenFile = (u32, u32, String, (u64, u64));

struct There<'a> {
    session: &'a mut Session,
    beginnings: &'a [String],
    ready: &'a [String],
    unit: Option<&'a Unit>,
    start: Option<Wanted>,
    fault: Option<Fault>,
}

impl There<'_> {
    fn keep<T>(&mut self, done: Result<T, Fault>) -> Option<T> {
        done.map_err(|fault| self.fault = Some(fault)).ok()
    }

    /// The regular files that the readers of a pipe write.
    fn written_behind(&mut self, writer: u32, inode: u64) -> Result<Vec<OpenFile>, Fault> {
        let ends = self.session.open_by_all(&format!("pipe:[{inode}]"))?;
        let readers: BTreeSet<u32> =
            ends.iter().filter(|end| end.pid != writer && end.modes == (true, false)).map(|end| end.pid).collect();
        let mut files = Vec::new();
        for reader in readers.into_iter().take(16) {
            let reply = self.session.ask_one(Request::new("fds", &[reader.to_string()], LARGE as usize))?;
            for link in listing::parse(&reply.body) {
                let (Ok(fd), Some(target), true) = (link.name.parse::<u32>(), link.target, link.modes.1) else {
                    continue;
                };
                if !target.starts_with('/') {
                    continue;
                }
                let reply = self.session.ask_one(part(&format!("/proc/{reader}/fd/{fd}"), 0, 0))?;
                if let Some(about) = about(&reply) {
                    files.push((reader, fd, target, about.id));
                }
            }
        }
        Ok(files)
    }
}

impl Descriptors for There<'_> {
    fn read(&mut self, name: &str, pid: u32, fd: u32, path: &str) -> Found {
        let read = self.session.read_ends(&format!("/proc/{pid}/fd/{fd}"), self.beginnings);
        match self.keep(read) {
            Some(read) => Found::file(name, path.to_owned(), read),
            None => Found::gap(name, path, gap("timed_out", "the connection ended", None)),
        }
    }

    fn behind_pipe(&mut self, writer: u32, inode: u64) -> Option<(u32, u32, String)> {
        let files = self.written_behind(writer, inode);
        log::the_one(self.keep(files)?)
    }

    fn journal(&mut self, tell: &mut dyn FnMut(Found)) -> bool {
        let Some(start) = self.start.take() else { return false };
        let read = self.session.journal(&start, self.unit, self.ready, tell);
        self.keep(read);
        true
    }
}

/// The start of a unit that a process belongs to, by what it was given itself or else by what its manager says.
fn journal_of(process: &FarProcess, unit: Option<&Unit>) -> Option<Wanted> {
    let named = || {
        let (name, uid) = crate::systemd::named_in(&process.groups)?;
        let manager = match uid {
            None => Manager::System,
            Some(uid) => Manager::User { uid, home: String::new(), runtime: String::new() },
        };
        Some((name, manager))
    };
    Wanted::new(process.facts.env("INVOCATION_ID"), Some(process.facts.pid), unit, named)
}

/// The first words of command lines, from what `head` prints of several files. A process may write what looks like
/// another's; whoever looks at that one sees what it is.
fn called(text: &[u8]) -> BTreeMap<u32, String> {
    String::from_utf8_lossy(text)
        .split("==> /proc/")
        .filter_map(|part| {
            let (pid, rest) = part.split_once("/cmdline <==\n")?;
            let word = rest.split('\0').next().filter(|word| !word.trim().is_empty())?;
            Some((pid.parse().ok()?, word.to_owned()))
        })
        .collect()
}

fn other_tree() -> ArtifactGap {
    let why = "the process lives in another file tree (a container), where plain commands do not follow it";
    gap("not_supported", why, Some(WITH_PUSH))
}

/// Hears the witnesses that do their work from here: endpoints through the forward, and the unit, which was read
/// already. Without a process, its witness says only that there is none.
fn hear_here(
    wants: &Wants,
    process: Option<&FarProcess>,
    options: &Options,
    address: &Result<Address, ArtifactGap>,
    through: Option<Address>,
) -> Vec<Found> {
    const RUNNING: &[Witness] = &[endpoints::WITNESS, unit::WITNESS];
    const STOPPED: &[Witness] = &[endpoints::WITNESS, unit::WITNESS, process_witness::WITNESS];
    let context = Context {
        wants: wants.clone(),
        facts: process.map(|process| process.facts.clone()),
        log: None,
        api_key: options.api_key.clone(),
        address: address.clone(),
        through,
        root: crate::file::Root::ours(),
        timeout: options.timeout,
        began: Instant::now(),
        unit: options.unit.clone(),
    };
    let before = process.map_or(Duration::ZERO, |process| process.began.elapsed());
    let before = u64::try_from(before.as_millis()).unwrap_or(u64::MAX);
    let mut found = collect::hear(&Arc::new(context), if process.is_some() { RUNNING } else { STOPPED });
    for one in &mut found {
        one.entry.at_ms = one.entry.at_ms.saturating_add(before);
    }
    found
}

/// An endpoint that did not answer may be one to which no forward was let through.
fn with_complaint(mut found: Found, forward: Option<&Forward>) -> Found {
    if let Some(gap) = found.entry.gap.as_mut().filter(|gap| gap.reason == "refused")
        && let Some(complaint) = forward.and_then(Forward::complaint)
    {
        // Only what the other host says of the server is the server's doing.
        if complaint.contains("connect failed") {
            gap.text = format!("nobody answers there (ssh: {complaint})");
        } else {
            gap.reason = "not_permitted".to_owned();
            gap.text = format!("no forward to the server's port (ssh: {complaint})");
            gap.remedy = Some("let that host forward ports (AllowTcpForwarding), or `--push`".to_owned());
        }
    }
    found
}

/// The question for the sockets that accept connections.
fn listeners_in(directory: &str) -> Request {
    let words = [" 0A ".to_owned(), format!("{directory}/tcp"), format!("{directory}/tcp6")];
    Request::new("find", &words, LARGE as usize)
}

fn tcp(reply: &Reply) -> Vec<Listener> {
    let mut found: Vec<Listener> =
        String::from_utf8_lossy(&reply.body).lines().filter_map(sockets::parse_tcp).collect();
    found.sort();
    found.dedup();
    found
}

fn socket(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Now by the clock there, and when something started that did so some ticks after boot.
fn started(clock: &Reply, ticks: u64) -> (SystemTime, Option<u64>) {
    let [_, now, before, after, rest @ ..] = clock.status.as_slice() else { return (SystemTime::now(), None) };
    let digits: String = now.chars().take_while(char::is_ascii_digit).collect();
    // Nanoseconds where `date` knows them, else seconds.
    let milliseconds = match digits.parse::<u64>() {
        Ok(nanoseconds) if digits.len() > 12 => nanoseconds / 1_000_000,
        Ok(seconds) => seconds.saturating_mul(1000),
        Err(_) => return (SystemTime::now(), None),
    };
    // Linux counts 100 ticks in a second towards programs, on all but a few old machines.
    let per_second = rest.first().and_then(|ticks| ticks.parse().ok()).unwrap_or(100);
    // Starting `date` takes a while on a busy host.
    let uptime =
        before.parse::<f64>().ok().zip(after.parse::<f64>().ok()).map(|(before, after)| (before + after) / 2.0);
    let since = uptime.and_then(|uptime| process::started(ticks, per_second, uptime, milliseconds));
    let now = UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds));
    (now.unwrap_or_else(SystemTime::now), since)
}
