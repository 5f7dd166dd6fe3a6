//! The process itself: what it was given, what it is, what it holds open.

use super::{Context, Found, Witness, gap, no_process};
use crate::process::{self, Error};
use crate::sockets::{self, Listener, UnixListener};
use ascertain_model::capture::ArtifactGap;
use ascertain_model::wants::ProcessFacts;
use serde_json::json;
use std::collections::BTreeSet;

pub(crate) const WITNESS: Witness = Witness { name: "process", artifacts, plan, testify };

pub(crate) const ARTIFACTS: [(&str, &str); 6] = [
    ("proc_cmdline.json", "cmdline"),
    ("proc_environ.json", "environ"),
    ("proc_status.txt", "status"),
    ("maps_files.txt", "maps"),
    ("process.json", "stat"),
    ("listeners.json", "net/tcp"),
];

fn artifacts(_: &Context) -> Vec<String> {
    ARTIFACTS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

fn plan(context: &Context) -> Vec<String> {
    let Some(pid) = context.pid() else { return Vec::new() };
    let files = [
        "cmdline", "environ", "status", "maps", "stat", "exe", "cwd", "root", "fd", "net/tcp", "net/tcp6", "net/unix",
        "ns/mnt", "ns/net",
    ];
    let mut plan: Vec<String> = files.iter().map(|file| format!("read    /proc/{pid}/{file}")).collect();
    if !context.wants.environment.is_empty() {
        plan[1].push_str(&format!(" (kept: {})", context.wants.environment.join(", ")));
    }
    plan
}

fn testify(context: &Context, tell: &mut dyn FnMut(Found)) {
    let Some(pid) = context.pid() else {
        for (name, file) in ARTIFACTS {
            tell(Found::gap(name, format!("/proc/PID/{file}"), no_process()));
        }
        return;
    };
    for (name, file) in ARTIFACTS {
        let read: Result<Vec<u8>, Error> = match name {
            "proc_cmdline.json" => process::facts(pid).map(|facts| pretty(&json!(facts.argv))),
            "proc_environ.json" => {
                process::environ(pid).map(|environ| kept_variables(&environ, &context.wants.environment))
            }
            "maps_files.txt" => process::read(pid, "maps").map(|maps| mapped_files(&maps)),
            "process.json" => describe(pid, context),
            "listeners.json" => listeners(pid),
            _ => process::read(pid, file),
        };
        let source = format!("/proc/{pid}/{file}");
        tell(match read {
            Ok(bytes) => Found::bytes(name, source, bytes),
            Err(error) => Found::gap(name, source, gap_of(&error)),
        });
    }
}

/// The variables that are wanted, as an artifact.
pub(crate) fn kept_variables(environ: &[(String, String)], patterns: &[String]) -> Vec<u8> {
    let kept: Vec<String> = environ
        .iter()
        .filter(|(name, _)| wanted(patterns, name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pretty(&json!(kept))
}

pub(crate) fn gap_of(error: &Error) -> ArtifactGap {
    match error {
        Error::Gone { .. } => gap("not_present", error.to_string(), None),
        Error::NotPermitted { path, .. } => gap(
            "not_permitted",
            format!("not permitted to read {path}"),
            Some("run as the user of the server or as root"),
        ),
        _ => gap("malformed", error.to_string(), None),
    }
}

/// Whether a variable is to be kept: named, or under a prefix that ends in `*`.
pub(crate) fn wanted(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    })
}

fn describe(pid: u32, context: &Context) -> Result<Vec<u8>, Error> {
    let stat = process::stat(pid)?;
    let status = process::read(pid, "status")?;
    Ok(description(pid, context.facts.as_ref(), process::exe_deleted(pid).ok(), stat.start_ticks, &status))
}

/// What the process is, as an artifact: `status` is the text of `/proc/PID/status`.
pub(crate) fn description(
    pid: u32,
    facts: Option<&ProcessFacts>,
    exe_deleted: Option<bool>,
    start_ticks: u64,
    status: &[u8],
) -> Vec<u8> {
    let status = String::from_utf8_lossy(status);
    let number = |key: &str| -> Option<u64> {
        status.lines().find_map(|line| line.strip_prefix(key))?.split_ascii_whitespace().next()?.parse().ok()
    };
    pretty(&json!({
        "pid": pid,
        "exe": facts.and_then(|facts| facts.exe.clone()),
        "exe_deleted": exe_deleted,
        "cwd": facts.and_then(|facts| facts.cwd.clone()),
        "start_ticks": start_ticks,
        "threads": number("Threads:"),
        "rss_kb": number("VmRSS:"),
    }))
}

/// The files mapped into a process, each once, sorted.
pub(crate) fn mapped_files(maps: &[u8]) -> Vec<u8> {
    let mut files: BTreeSet<&[u8]> = BTreeSet::new();
    for line in maps.split(|byte| *byte == b'\n') {
        // `address perms offset dev inode      path`: five fields, then the path, which may hold spaces.
        let mut rest = line;
        for _ in 0..5 {
            let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
            rest = rest[end..].trim_ascii_start();
        }
        if rest.starts_with(b"/") {
            files.insert(rest);
        }
    }
    let mut out = Vec::new();
    for file in files {
        out.extend_from_slice(file);
        out.push(b'\n');
    }
    out
}

fn listeners(pid: u32) -> Result<Vec<u8>, Error> {
    let not_permitted = || match process::read(pid, "stat") {
        Ok(_) => Error::NotPermitted { pid, path: format!("/proc/{pid}/fd") },
        Err(error) => error,
    };
    let tcp = sockets::listening_of(pid).ok_or_else(not_permitted)?;
    let unix = sockets::unix_listening_of(pid).unwrap_or_default();
    Ok(listening(&tcp, &unix))
}

/// Where it accepts connections, as an artifact.
pub(crate) fn listening(tcp: &[Listener], unix: &[UnixListener]) -> Vec<u8> {
    let mut all: Vec<serde_json::Value> = Vec::new();
    all.extend(tcp.iter().map(|listener| json!({"address": listener.address.to_string(), "port": listener.port})));
    all.extend(unix.iter().map(|listener| json!({"unix": listener.path})));
    pretty(&json!(all))
}

pub(crate) fn pretty(value: &serde_json::Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_maps() {
        let maps = b"55d0-55d1 r--p 00000000 fd:00 12  /usr/bin/a b\n7f00-7f01 rw-p 0 00:00 0 \n7f00-7f01 r-xp 0 00:00 0   [vdso]\n\
            7f02-7f03 r--p 00001000 fd:00 12  /usr/bin/a b\n7f02-7f03 r--s 0 fd:00 13  /m.gguf (deleted)\n";
        assert_eq!(mapped_files(maps), b"/m.gguf (deleted)\n/usr/bin/a b\n");
    }

    #[test]
    fn names_and_prefixes() {
        let patterns = ["HOME".to_owned(), "ENGINE_*".to_owned()];
        assert!(wanted(&patterns, "HOME") && wanted(&patterns, "ENGINE_X"));
        assert!(!wanted(&patterns, "HOME2") && !wanted(&patterns, "XENGINE_A"));
    }
}
