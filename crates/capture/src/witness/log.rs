//! The log: the file the process writes to, wherever that is.
//!
//! In this order: what the user names, what the process was told to write, what its standard error and standard
//! output are, and what the process at the other end of a pipe writes.

use super::{Context, Found, Witness, gap, journal, no_process};
use crate::file::{self, Root};
use crate::process;
use ascertain_model::capture::ArtifactGap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(super) const WITNESS: Witness = Witness { name: "log", artifacts, plan, testify };

pub(crate) const LOG: &str = "log.txt";
/// Standard output, where it is a file of its own.
const LOG_STDOUT: &str = "log_stdout.txt";
const NAME_IT: &str = "name the file the log goes to: `--log FILE`";

fn artifacts(_: &Context) -> Vec<String> {
    vec![LOG.to_owned()]
}

fn plan(context: &Context) -> Vec<String> {
    if let Some(path) = &context.log {
        return vec![format!("read    {}", path.display())];
    }
    let mut plan = Vec::new();
    if let Some(path) = &context.wants.log_file {
        plan.push(format!("read    {}", context.root.shown(&context.absolute(path))));
    }
    if let Some(pid) = context.pid() {
        plan.push(format!("read    the regular file that /proc/{pid}/fd/2 or fd/1 is"));
        plan.push("read    if that is a pipe: /proc/*/fd, /proc/*/fdinfo, and the file its reader writes".to_owned());
    }
    if let Some(start) = journal::wanted(context) {
        plan.push(format!("read    if that is a socket: /run/log/journal, /var/log/journal ({})", start.source()));
    }
    plan
}

fn testify(context: &Context, tell: &mut dyn FnMut(Found)) {
    if let Some(path) = &context.log {
        tell(Found::file(
            LOG,
            path.display().to_string(),
            file::read_ends(path, &Root::ours(), &context.wants.log_beginnings),
        ));
        return;
    }
    if let Some(path) = &context.wants.log_file {
        let path = context.absolute(path);
        if let Ok(content) = file::read_ends(&path, &context.root, &context.wants.log_beginnings) {
            tell(Found::file(LOG, context.root.shown(&path), Ok(content)));
            return;
        }
    }
    let start = journal::wanted(context);
    let Some(pid) = context.pid() else {
        if let Some(start) = start {
            journal::read(context, &start, tell);
            return;
        }
        let mut gap = no_process();
        gap.remedy = Some(NAME_IT.to_owned());
        tell(Found::gap(LOG, "/proc/PID/fd/2", gap));
        return;
    };
    of_streams(&mut Here { context, start }, pid, &Stream::of(pid, 2), &Stream::of(pid, 1), tell);
}

/// Where descriptors are looked at: on this host, or on another.
pub(crate) trait Descriptors {
    /// Reads an open file; the path is only shown.
    fn read(&mut self, name: &str, pid: u32, fd: u32, path: &str) -> Found;
    /// The one regular file that the reader of a pipe writes: its PID, descriptor and path.
    fn behind_pipe(&mut self, writer: u32, inode: u64) -> Option<(u32, u32, String)>;
    /// Reads the journal of the start that the process belongs to; `false` if it belongs to none.
    fn journal(&mut self, tell: &mut dyn FnMut(Found)) -> bool;
}

struct Here<'a> {
    context: &'a Context,
    start: Option<journal::Wanted>,
}

impl Descriptors for Here<'_> {
    fn read(&mut self, name: &str, pid: u32, fd: u32, path: &str) -> Found {
        // Through its descriptor: right in every namespace, and also after it was removed.
        let descriptor = process::path(pid, &format!("fd/{fd}"));
        let read = file::read_ends(&descriptor, &Root::ours(), &self.context.wants.log_beginnings);
        Found::file(name, path.to_owned(), read)
    }

    fn behind_pipe(&mut self, writer: u32, inode: u64) -> Option<(u32, u32, String)> {
        behind_pipe(writer, inode, self.context)
    }

    fn journal(&mut self, tell: &mut dyn FnMut(Found)) -> bool {
        let Some(start) = &self.start else { return false };
        journal::read(self.context, start, tell);
        true
    }
}

/// The log of a process, from where its standard streams lead.
pub(crate) fn of_streams(
    at: &mut dyn Descriptors,
    pid: u32,
    error: &Stream,
    output: &Stream,
    tell: &mut dyn FnMut(Found),
) {
    let same =
        matches!((error, output), (Stream::File { id: one, .. }, Stream::File { id: other, .. }) if one == other);
    match (error, output) {
        (Stream::File { path, .. }, other) => {
            let mut found = at.read(LOG, pid, 2, path);
            if !same {
                if let Stream::File { path, .. } = other {
                    also(&mut found, format!("standard error only; standard output is in {LOG_STDOUT}"));
                    tell(at.read(LOG_STDOUT, pid, 1, path));
                } else {
                    also(&mut found, format!("standard error only; standard output goes to {}", other.shown()));
                }
            }
            tell(found);
        }
        (other, Stream::File { path, .. }) => {
            let mut found = at.read(LOG, pid, 1, path);
            also(&mut found, format!("standard output only; standard error goes to {}", other.shown()));
            tell(found);
        }
        _ => {
            let pipes = [(error, output, "error", "output"), (output, error, "output", "error")];
            for (stream, other, this, that) in pipes {
                let Stream::Pipe(inode) = stream else { continue };
                if let Some((reader, fd, path)) = at.behind_pipe(pid, *inode) {
                    let mut found = at.read(LOG, reader, fd, &path);
                    if !matches!(other, Stream::Pipe(second) if second == inode) {
                        also(&mut found, format!("standard {this} only; standard {that} goes to {}", other.shown()));
                    }
                    tell(found);
                    return;
                }
            }
            // The lines there are the journal's own if this process wrote them.
            if (matches!(error, Stream::Socket) || matches!(output, Stream::Socket)) && at.journal(tell) {
                return;
            }
            tell(Found::gap(LOG, format!("/proc/{pid}/fd/2"), error.gap()));
        }
    }
}

/// Adds to what the manifest says about the part that was taken.
fn also(found: &mut Found, text: String) {
    if found.bytes.is_some() {
        found.entry.partial = Some(match found.entry.partial.take() {
            Some(partial) => format!("{partial}; {text}"),
            None => text,
        });
    }
}

/// Where a standard stream leads.
#[derive(Debug)]
pub(crate) enum Stream {
    File { path: String, id: (u64, u64) },
    Pipe(u64),
    Terminal(String),
    Null,
    Socket,
    Closed,
    NotPermitted,
    Other(String),
}

impl Stream {
    fn of(pid: u32, fd: u32) -> Self {
        let name = format!("fd/{fd}");
        let target = match process::link(pid, &name) {
            Ok(target) => target,
            Err(error) if error.is_permission() => return Stream::NotPermitted,
            Err(_) => return Stream::Closed,
        };
        let regular = || match std::fs::metadata(process::path(pid, &name)) {
            Ok(metadata) if metadata.is_file() => Some((metadata.dev(), metadata.ino())),
            _ => None,
        };
        Stream::to(target, regular)
    }

    /// The stream that leads to `target`; `regular` tells device and inode if that is a regular file.
    pub(crate) fn to(target: String, regular: impl FnOnce() -> Option<(u64, u64)>) -> Self {
        let inode = |kind: &str| target.strip_prefix(kind)?.strip_suffix(']')?.parse().ok();
        if let Some(inode) = inode("pipe:[") {
            Stream::Pipe(inode)
        } else if target.starts_with("socket:[") {
            Stream::Socket
        } else if target == "/dev/null" {
            Stream::Null
        } else if target.starts_with("/dev/pts/") || target.starts_with("/dev/tty") || target == "/dev/console" {
            Stream::Terminal(target)
        } else {
            match regular() {
                Some(id) => Stream::File { path: target, id },
                None => Stream::Other(target),
            }
        }
    }

    fn shown(&self) -> String {
        match self {
            Stream::File { path, .. } => path.clone(),
            Stream::Pipe(_) => "a pipe".to_owned(),
            Stream::Terminal(path) => format!("the terminal {path}"),
            Stream::Null => "/dev/null".to_owned(),
            Stream::Socket => "a socket".to_owned(),
            Stream::Closed => "nowhere: it is closed".to_owned(),
            Stream::NotPermitted => "a place that may not be looked at".to_owned(),
            Stream::Other(target) => target.clone(),
        }
    }

    /// Why there is no log, and what would help.
    fn gap(&self) -> ArtifactGap {
        let where_to = self.shown();
        match self {
            Stream::NotPermitted => gap(
                "not_permitted",
                "not permitted to see where standard error goes",
                Some("run as the user of the server or as root, or name the file: `--log FILE`"),
            ),
            Stream::Socket => gap(
                "not_present",
                "standard error goes to a socket (the journal, or another collector of logs)",
                Some("write it to a file (`journalctl -u UNIT -b > FILE`) and name it: `--log FILE`"),
            ),
            Stream::Pipe(_) => gap(
                "not_present",
                "standard error goes to a pipe, and the process that reads it does not write exactly one file",
                Some(NAME_IT),
            ),
            Stream::Terminal(_) | Stream::Null | Stream::Closed => gap(
                "not_present",
                format!("standard error goes to {where_to}: the log is kept nowhere"),
                Some("start the server with its output in a file (`2> FILE`), then `--log FILE`"),
            ),
            Stream::File { .. } | Stream::Other(_) => gap(
                "not_present",
                format!("standard error goes to {where_to}, which is not a regular file"),
                Some(NAME_IT),
            ),
        }
    }
}

/// The one regular file that the reader of a pipe writes, such as that of `tee`: its PID, descriptor and path.
fn behind_pipe(writer: u32, inode: u64, context: &Context) -> Option<(u32, u32, String)> {
    let wanted = PathBuf::from(format!("pipe:[{inode}]"));
    let mut files: Vec<(u32, u32, String, (u64, u64))> = Vec::new();
    for reader in process::pids().into_iter().filter(|pid| *pid != writer) {
        if std::time::Instant::now() > context.deadline() {
            return None;
        }
        let Ok(entries) = std::fs::read_dir(process::path(reader, "fd")) else { continue };
        let open: Vec<(u32, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| {
                let fd = entry.file_name().to_str()?.parse().ok()?;
                Some((fd, std::fs::read_link(entry.path()).ok()?))
            })
            .collect();
        if !open.iter().any(|(fd, target)| *target == wanted && access(reader, *fd) == Some(0)) {
            continue;
        }
        for (fd, target) in open {
            let regular =
                target.starts_with("/").then(|| std::fs::metadata(process::path(reader, &format!("fd/{fd}"))).ok());
            let Some(metadata) = regular.flatten().filter(|metadata| metadata.is_file()) else { continue };
            if matches!(access(reader, fd), Some(1 | 2)) {
                files.push((reader, fd, target.to_string_lossy().into_owned(), (metadata.dev(), metadata.ino())));
            }
        }
    }
    the_one(files)
}

/// The file, if it is one: its PID, descriptor and path. Each comes with what tells files apart.
pub(crate) fn the_one<I: PartialEq>(mut files: Vec<(u32, u32, String, I)>) -> Option<(u32, u32, String)> {
    // Its own standard streams are no copies of what it reads, if it writes anything else.
    if files.iter().any(|(_, fd, ..)| *fd > 2) {
        files.retain(|(_, fd, ..)| *fd > 2);
    }
    files.dedup_by(|one, other| one.3 == other.3);
    match files.as_slice() {
        [(reader, fd, path, _)] => Some((*reader, *fd, path.clone())),
        _ => None,
    }
}

/// The access mode of a descriptor: 0 reads, 1 writes, 2 both.
fn access(pid: u32, fd: u32) -> Option<u32> {
    let info = std::fs::read_to_string(Path::new(&format!("/proc/{pid}/fdinfo/{fd}"))).ok()?;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    Some(u32::from_str_radix(flags.trim(), 8).ok()? & 3)
}
