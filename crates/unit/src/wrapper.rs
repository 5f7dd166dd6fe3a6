//! Through wrappers to the program meant: shells, `env`, `numactl`, `sudo`, `docker run` and the like.
//!
//! Only what can be read with certainty is seen through; anything else is opaque, with the reason. A word that is
//! returned is a word the inner program gets.

use ascertain_model::capture::REDACTED;
use ascertain_model::service::is_not_kept;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Where a word of the inner command line comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Which word of the outer command line.
    pub word: usize,
    /// Which bytes of that word, or of the script, where it is a part of it.
    pub range: Option<Range<usize>>,
    /// The script it stands in.
    pub script: Option<String>,
}

/// A word of the inner command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// What it says.
    pub text: String,
    /// Where it comes from.
    pub place: Place,
}

/// What a wrapper does to the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Sets a variable; `None`: to something that is not known.
    Set(String, Option<String>),
    /// Removes one.
    Unset(String),
    /// Removes all.
    Clear,
    /// May set anything, and why (`source env.sh`).
    Anything(String),
}

/// One wrapper that was seen through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Its name: `sh`, `numactl`.
    pub name: String,
    /// Whether it becomes the inner program (`exec`) or stays as its parent. A shell that is not told to `exec` may do
    /// either.
    pub replaces: Option<bool>,
}

/// A container that is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// `docker`, `podman`.
    pub tool: String,
    /// The image.
    pub image: String,
    /// `--name`.
    pub name: Option<String>,
    /// `--entrypoint`; without it the image decides what is run, and the words are its arguments.
    pub entrypoint: Option<String>,
    /// `-e NAME=VALUE`; `None` takes the value from the environment of the tool.
    pub environment: Vec<(String, Option<String>)>,
    /// Files given with `--env-file`.
    pub environment_files: Vec<String>,
}

/// What is behind the wrappers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inner {
    /// The inner command line; in a container the words after the image.
    pub argv: Vec<Word>,
    /// The wrappers, outermost first.
    pub layers: Vec<Layer>,
    /// What they do to the environment, in order.
    pub environment: Vec<Change>,
    /// `cd`, `env -C`: the last.
    pub directory: Option<String>,
    /// Output goes elsewhere than the wrapper's own: where, as far as it is written.
    pub redirected: Vec<String>,
    /// It runs in a container.
    pub container: Option<Container>,
}

/// The result of looking through wrappers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// The inner command line. Without any wrapper it is the outer one.
    Inner(Box<Inner>),
    /// It cannot be told.
    Opaque {
        /// Why.
        why: String,
        /// At which word of the outer command line.
        word: usize,
        /// The wrappers before it.
        layers: Vec<Layer>,
    },
}

/// What a wrapper may need to be seen through.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known {
    /// Texts of scripts, by path.
    pub scripts: BTreeMap<String, String>,
    /// The environment the outermost process gets; `None`: unknown, and `$X` in a shell is opaque.
    /// A variable that is set to something unknown has no value.
    pub environment: Option<BTreeMap<String, Option<String>>>,
}

struct Failed {
    why: String,
    word: usize,
}

/// How a simple wrapper reads its options.
struct Tool {
    names: &'static [&'static str],
    /// Options without a value: letters, then long names.
    flags: &'static str,
    long_flags: &'static [&'static str],
    /// Options with a value.
    valued: &'static str,
    long_valued: &'static [&'static str],
    /// Words between the options and the command.
    operands: usize,
    /// `A=b` before the command.
    assigns: bool,
    /// It becomes the command.
    replaces: bool,
}

const TOOLS: &[Tool] = &[
    Tool {
        names: &["numactl"],
        flags: "alb",
        long_flags: &["all", "localalloc", "balancing", "strict", "huge"],
        valued: "iNCmpPwc",
        long_valued: &[
            "interleave",
            "weighted-interleave",
            "cpunodebind",
            "physcpubind",
            "membind",
            "preferred",
            "preferred-many",
            "cpubind",
        ],
        operands: 0,
        assigns: false,
        replaces: true,
    },
    Tool {
        names: &["nice"],
        flags: "0123456789",
        long_flags: &[],
        valued: "n",
        long_valued: &["adjustment"],
        operands: 0,
        assigns: false,
        replaces: true,
    },
    Tool {
        names: &["ionice"],
        flags: "t",
        long_flags: &["ignore"],
        valued: "cn",
        long_valued: &["class", "classdata"],
        operands: 0,
        assigns: false,
        replaces: true,
    },
    Tool {
        names: &["chrt"],
        flags: "abdfiorRv",
        long_flags: &["all-tasks", "batch", "deadline", "fifo", "idle", "other", "rr", "reset-on-fork", "verbose"],
        valued: "DPT",
        long_valued: &["sched-runtime", "sched-period", "sched-deadline"],
        operands: 1,
        assigns: false,
        replaces: true,
    },
    Tool {
        names: &["stdbuf"],
        flags: "",
        long_flags: &[],
        valued: "ioe",
        long_valued: &["input", "output", "error"],
        operands: 0,
        assigns: false,
        replaces: true,
    },
    Tool {
        names: &["setpriv"],
        flags: "",
        long_flags: &["clear-groups", "init-groups", "keep-groups", "nnp", "no-new-privs"],
        valued: "",
        long_valued: &[
            "reuid",
            "regid",
            "ruid",
            "rgid",
            "euid",
            "egid",
            "groups",
            "inh-caps",
            "ambient-caps",
            "bounding-set",
            "securebits",
            "pdeathsig",
            "selinux-label",
            "apparmor-profile",
            "ptracer",
            "landlock-access",
            "landlock-rule",
            "seccomp-filter",
        ],
        operands: 0,
        assigns: false,
        replaces: true,
    },
    Tool {
        names: &["sudo"],
        flags: "EHnSbkPB",
        long_flags: &["preserve-env", "set-home", "non-interactive", "stdin", "background", "preserve-groups", "bell"],
        valued: "ugCDRThprt",
        long_valued: &[
            "user",
            "group",
            "close-from",
            "chdir",
            "chroot",
            "command-timeout",
            "host",
            "prompt",
            "role",
            "type",
        ],
        operands: 0,
        assigns: true,
        replaces: false,
    },
    Tool {
        names: &["doas"],
        flags: "n",
        long_flags: &[],
        valued: "uC",
        long_valued: &[],
        operands: 0,
        assigns: false,
        replaces: true,
    },
    Tool {
        names: &["time"],
        flags: "pvaq",
        long_flags: &["portability", "verbose", "append", "quiet"],
        valued: "fo",
        long_valued: &["format", "output"],
        operands: 0,
        assigns: false,
        replaces: false,
    },
    Tool {
        names: &["nohup"],
        flags: "",
        long_flags: &[],
        valued: "",
        long_valued: &[],
        operands: 0,
        assigns: false,
        replaces: true,
    },
    Tool {
        names: &["setsid"],
        flags: "cw",
        long_flags: &["ctty", "wait"],
        valued: "",
        long_valued: &[],
        operands: 0,
        assigns: false,
        replaces: true,
    },
    Tool {
        names: &["timeout"],
        flags: "v",
        long_flags: &["preserve-status", "foreground", "verbose"],
        valued: "sk",
        long_valued: &["signal", "kill-after"],
        operands: 1,
        assigns: false,
        replaces: false,
    },
    Tool {
        names: &["tini", "tini-static"],
        flags: "svwg",
        long_flags: &[],
        valued: "pe",
        long_valued: &[],
        operands: 0,
        assigns: false,
        replaces: false,
    },
    Tool {
        names: &["dumb-init"],
        flags: "cv",
        long_flags: &["single-child", "verbose"],
        valued: "r",
        long_valued: &["rewrite"],
        operands: 0,
        assigns: false,
        replaces: false,
    },
    Tool {
        names: &["catatonit"],
        flags: "P",
        long_flags: &[],
        valued: "",
        long_valued: &[],
        operands: 0,
        assigns: false,
        replaces: false,
    },
    Tool {
        names: &["gosu", "su-exec"],
        flags: "",
        long_flags: &[],
        valued: "",
        long_valued: &[],
        operands: 1,
        assigns: false,
        replaces: true,
    },
    Tool {
        names: &["systemd-cat"],
        flags: "",
        long_flags: &[],
        valued: "tp",
        long_valued: &["identifier", "priority", "stderr-priority", "level-prefix"],
        operands: 0,
        assigns: false,
        replaces: true,
    },
    Tool {
        names: &["systemd-inhibit"],
        flags: "",
        long_flags: &[],
        valued: "",
        long_valued: &["what", "who", "why", "mode"],
        operands: 0,
        assigns: false,
        replaces: false,
    },
    Tool {
        names: &["conda", "mamba", "micromamba"],
        flags: "v",
        long_flags: &["no-capture-output", "live-stream", "dev", "verbose"],
        valued: "npa",
        long_valued: &["name", "prefix", "cwd", "attach"],
        operands: 0,
        assigns: false,
        replaces: false,
    },
    Tool {
        names: &["poetry", "pipenv", "pdm"],
        flags: "",
        long_flags: &[],
        valued: "",
        long_valued: &[],
        operands: 0,
        assigns: false,
        replaces: true,
    },
    Tool {
        names: &["uv"],
        flags: "qvnm",
        long_flags: &[
            "frozen",
            "locked",
            "no-sync",
            "isolated",
            "active",
            "no-project",
            "all-extras",
            "all-groups",
            "all-packages",
            "offline",
            "quiet",
            "verbose",
            "no-dev",
            "dev",
            "only-dev",
            "no-default-groups",
            "exact",
            "no-cache",
            "no-config",
            "no-env-file",
            "native-tls",
            "refresh",
            "reinstall",
            "upgrade",
            "no-progress",
            "module",
            "managed-python",
            "no-managed-python",
            "no-python-downloads",
        ],
        valued: "pPi",
        long_valued: &[
            "with",
            "with-editable",
            "with-requirements",
            "python",
            "project",
            "directory",
            "extra",
            "no-extra",
            "group",
            "no-group",
            "only-group",
            "package",
            "env-file",
            "index",
            "default-index",
            "index-url",
            "extra-index-url",
            "find-links",
            "cache-dir",
            "config-file",
            "color",
            "index-strategy",
            "resolution",
            "prerelease",
            "link-mode",
            "refresh-package",
            "upgrade-package",
            "reinstall-package",
            "python-platform",
        ],
        operands: 0,
        assigns: false,
        replaces: false,
    },
];

const RUN_FLAGS: &[&str] = &[
    "detach",
    "init",
    "interactive",
    "tty",
    "rm",
    "privileged",
    "read-only",
    "publish-all",
    "oom-kill-disable",
    "no-healthcheck",
    "quiet",
    "replace",
    "tls-verify",
    "no-hosts",
    "rmi",
    "sig-proxy",
    "disable-content-trust",
    "env-host",
    "http-proxy",
];
const RUN_VALUED: &[&str] = &[
    "add-host",
    "annotation",
    "attach",
    "blkio-weight",
    "cap-add",
    "cap-drop",
    "cgroup-parent",
    "cgroupns",
    "cgroups",
    "cidfile",
    "conmon-pidfile",
    "cpu-period",
    "cpu-quota",
    "cpu-shares",
    "cpus",
    "cpuset-cpus",
    "cpuset-mems",
    "device",
    "device-cgroup-rule",
    "dns",
    "dns-option",
    "dns-search",
    "domainname",
    "entrypoint",
    "env",
    "env-file",
    "expose",
    "gpus",
    "group-add",
    "health-cmd",
    "health-interval",
    "health-retries",
    "health-start-period",
    "health-timeout",
    "hostname",
    "hooks-dir",
    "ip",
    "ip6",
    "ipc",
    "isolation",
    "kernel-memory",
    "label",
    "label-file",
    "link",
    "log-driver",
    "log-opt",
    "log-level",
    "mac-address",
    "memory",
    "memory-reservation",
    "memory-swap",
    "memory-swappiness",
    "mount",
    "name",
    "network",
    "net",
    "network-alias",
    "oom-score-adj",
    "pid",
    "pidfile",
    "pids-limit",
    "platform",
    "pod",
    "publish",
    "pull",
    "restart",
    "runtime",
    "sdnotify",
    "secret",
    "security-opt",
    "shm-size",
    "stop-signal",
    "stop-timeout",
    "storage-opt",
    "subgidname",
    "subuidname",
    "sysctl",
    "systemd",
    "tmpfs",
    "tz",
    "uidmap",
    "gidmap",
    "ulimit",
    "umask",
    "user",
    "userns",
    "uts",
    "volume",
    "volume-driver",
    "volumes-from",
    "workdir",
    "preserve-fds",
    "requires",
    "timeout",
    "arch",
    "os",
    "variant",
];

/// Commands of the shell that take assignments as arguments.
const EXPORTS: [&str; 4] = ["export", "declare", "typeset", "readonly"];

/// Words of the shell's grammar.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function",
    "{", "}", "!", "[[", "((", "coproc", "time",
];

/// Commands that are over soon.
const SHORT: &[&str] = &[
    "mkdir",
    "rm",
    "rmdir",
    "chmod",
    "chown",
    "chgrp",
    "ln",
    "cp",
    "mv",
    "touch",
    "cat",
    "ls",
    "date",
    "sleep",
    "install",
    "sysctl",
    "modprobe",
    "nvidia-smi",
    "rocm-smi",
    "hostname",
    "id",
    "whoami",
    "env",
    "printenv",
    "logger",
    "kill",
    "pkill",
    "killall",
    "fuser",
    "stat",
    "du",
    "df",
    "find",
    "grep",
    "sed",
    "awk",
    "head",
    "tail",
    "tr",
    "cut",
    "which",
    "uname",
    "false",
    "mountpoint",
    "mount",
    "umount",
    "systemd-notify",
];

/// What is said of a command that a collector did not keep.
pub const COMMAND_NOT_KEPT: &str = "the command was not kept";

/// The most wrappers around each other that are looked through.
const DEEPEST: usize = 12;

/// Looks through the wrappers of a command line.
pub fn see_through(argv: &[String], known: &Known) -> Seen {
    let mut inner = Inner {
        argv: argv
            .iter()
            .enumerate()
            .map(|(word, text)| Word { text: text.clone(), place: Place { word, range: None, script: None } })
            .collect(),
        ..Inner::default()
    };
    for _ in 0..DEEPEST {
        match step(&mut inner, known) {
            Ok(true) => {}
            Ok(false) => return Seen::Inner(Box::new(inner)),
            Err(failed) => return Seen::Opaque { why: failed.why, word: failed.word, layers: inner.layers },
        }
    }
    let word = inner.argv.first().map_or(0, |word| word.place.word);
    Seen::Opaque { why: "too many wrappers around each other".to_string(), word, layers: inner.layers }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| crate::words::is_name(name))
}

/// Takes one wrapper off. `false`: there is none.
fn step(inner: &mut Inner, known: &Known) -> Result<bool, Failed> {
    let Some(first) = inner.argv.first() else {
        return Err(Failed { why: "an empty command line".to_string(), word: 0 });
    };
    if inner.container.is_some() {
        return Ok(false);
    }
    // A mark in the place of a command is no program of that name: from what it does not say nothing may be concluded.
    if first.text == REDACTED || is_not_kept(&first.text) {
        return Err(Failed { why: COMMAND_NOT_KEPT.to_string(), word: first.place.word });
    }
    let name = base(&first.text).to_string();
    let at = first.place.word;
    let layer = |replaces: Option<bool>| Layer { name: name.clone(), replaces };
    match name.as_str() {
        "sh" | "bash" | "dash" | "ash" | "ksh" | "zsh" | "rbash" => return shell(inner, known, &name),
        "env" => {
            env(inner, at)?;
            inner.layers.push(layer(Some(true)));
            return Ok(true);
        }
        "taskset" => {
            taskset(inner, at)?;
            inner.layers.push(layer(Some(true)));
            return Ok(true);
        }
        "runuser" | "su" => {
            return runuser(inner, &name, at);
        }
        "docker" | "podman" | "nerdctl" => {
            if container(inner, &name)? {
                inner.layers.push(layer(Some(false)));
            }
            return Ok(false);
        }
        "systemd-run" => {
            return Err(Failed { why: "systemd-run starts the command as a unit of its own".to_string(), word: at });
        }
        _ => {}
    }
    let Some(tool) = TOOLS.iter().find(|tool| tool.names.contains(&name.as_str())) else { return Ok(false) };
    let mut index = 1;
    let mut module = false;
    if ["conda", "mamba", "micromamba", "poetry", "pipenv", "pdm", "uv"].contains(&name.as_str()) {
        match inner.argv.get(1).map(|word| word.text.as_str()) {
            Some("run") => index = 2,
            _ => return Err(Failed { why: format!("{name} without 'run' directly after it"), word: at }),
        }
    }
    index = options(&inner.argv, index, tool, &name, &mut |option, value| match (name.as_str(), option) {
        ("uv", "m" | "module") => module = true,
        ("uv", "env-file") => inner.environment.push(Change::Anything(format!("{name} --env-file {value}"))),
        ("uv", "directory") | ("conda" | "mamba" | "micromamba", "cwd") | ("sudo", "D" | "chdir") => {
            inner.directory = Some(value.to_string());
        }
        _ => {}
    })?;
    // `chrt` without a priority is an old form; with `--other`, `--batch` and `--idle` newer ones allow leaving it out.
    index += tool.operands;
    if tool.assigns {
        while let Some(word) = inner.argv.get(index).filter(|word| is_assignment(&word.text)) {
            if let Some((variable, value)) = word.text.split_once('=') {
                inner.environment.push(Change::Set(variable.to_string(), Some(value.to_string())));
            }
            index += 1;
        }
    }
    match name.as_str() {
        "sudo" | "doas" => inner.environment.push(Change::Anything(format!("{name} chooses what it passes on"))),
        "conda" | "mamba" | "micromamba" | "poetry" | "pipenv" | "pdm" | "uv" => {
            inner.environment.push(Change::Anything(format!("{name} run activates an environment")));
        }
        _ => {}
    }
    let mut argv = inner
        .argv
        .get(index..)
        .filter(|rest| !rest.is_empty())
        .map(<[Word]>::to_vec)
        .ok_or_else(|| Failed { why: format!("{name} without a command"), word: at })?;
    let script = name == "uv" && argv[0].text.ends_with(".py");
    if module || script {
        let place = argv[0].place.clone();
        let mut python = vec![Word { text: "python".to_string(), place: place.clone() }];
        if module {
            python.push(Word { text: "-m".to_string(), place });
        }
        python.append(&mut argv);
        argv = python;
    }
    inner.argv = argv;
    inner.layers.push(layer(Some(tool.replaces)));
    Ok(true)
}

/// Passes over the options of a wrapper. An option that is not known may take a value: then nothing is certain.
fn options(
    argv: &[Word],
    from: usize,
    tool: &Tool,
    name: &str,
    seen: &mut dyn FnMut(&str, &str),
) -> Result<usize, Failed> {
    let mut index = from;
    while let Some(word) = argv.get(index) {
        let text = word.text.as_str();
        let next = argv.get(index + 1).map_or("", |word| word.text.as_str());
        let unknown = |option: &str| Failed {
            why: format!("{option} is not known here as an option of {name}"),
            word: word.place.word,
        };
        if text == "--" {
            return Ok(index + 1);
        }
        if let Some(long) = text.strip_prefix("--") {
            let (option, given) = match long.split_once('=') {
                Some((option, value)) => (option, Some(value)),
                None => (long, None),
            };
            if tool.long_valued.contains(&option) {
                seen(option, given.unwrap_or(next));
                index += 1 + usize::from(given.is_none());
            } else if tool.long_flags.contains(&option) {
                seen(option, given.unwrap_or(""));
                index += 1;
            } else {
                return Err(unknown(text));
            }
            continue;
        }
        let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) else { break };
        index += 1;
        for (at, letter) in letters.char_indices() {
            let option = &letters[at..at + letter.len_utf8()];
            let rest = &letters[at + letter.len_utf8()..];
            if tool.valued.contains(letter) {
                seen(option, if rest.is_empty() { next } else { rest });
                index += usize::from(rest.is_empty());
                break;
            }
            if !tool.flags.contains(letter) {
                return Err(unknown(text));
            }
            seen(option, "");
        }
    }
    Ok(index.min(argv.len()))
}

fn env(inner: &mut Inner, at: usize) -> Result<(), Failed> {
    let mut index = 1;
    let mut argv = inner.argv.clone();
    let mut splits = 0;
    while let Some(word) = argv.get(index) {
        let place = word.place.clone();
        let text = word.text.clone();
        let next = argv.get(index + 1).map(|word| word.text.clone());
        let lacking = || Failed { why: format!("{text} without a value"), word: place.word };
        match text.as_str() {
            "--" => {
                index += 1;
                break;
            }
            "-" | "-i" | "--ignore-environment" => inner.environment.push(Change::Clear),
            "-0" | "--null" | "-v" | "--debug" => {}
            "-u" | "--unset" => {
                inner.environment.push(unset(&next.ok_or_else(lacking)?, place.word)?);
                index += 1;
            }
            "-C" | "--chdir" => {
                inner.directory = Some(next.ok_or_else(lacking)?);
                index += 1;
            }
            text if text.starts_with("--unset=") => {
                inner.environment.push(unset(&text["--unset=".len()..], place.word)?);
            }
            text if text.starts_with("--chdir=") => inner.directory = Some(text["--chdir=".len()..].to_string()),
            text if text.starts_with("-S") || text.starts_with("--split-string") || text == "-vS" => {
                let (string, used) = match text.strip_prefix("--split-string=").or_else(|| text.strip_prefix("-S")) {
                    Some(rest) if !rest.is_empty() => (rest.to_string(), 1),
                    _ => (next.ok_or_else(lacking)?, 2),
                };
                splits += 1;
                if splits > 4 || string.contains(['\\', '$', '"', '\'', '#']) {
                    return Err(Failed {
                        why: "env -S with quotes, variables or escapes".to_string(),
                        word: place.word,
                    });
                }
                let words: Vec<Word> = string
                    .split_whitespace()
                    .map(|text| Word { text: text.to_string(), place: place.clone() })
                    .collect();
                argv.splice(index..index + used, words);
                continue;
            }
            text if text.starts_with('-') && text.len() == 2 || text.starts_with("--") => {
                return Err(Failed { why: format!("{text} is not known here as an option of env"), word: place.word });
            }
            text if text.starts_with("-u") => inner.environment.push(unset(&text[2..], place.word)?),
            text if text.starts_with('-') => {
                return Err(Failed { why: format!("{text} is not known here as an option of env"), word: place.word });
            }
            _ => break,
        }
        index += 1;
    }
    // Here any word with `=` is an assignment.
    while let Some((name, value)) = argv.get(index).and_then(|word| word.text.split_once('=')) {
        inner.environment.push(Change::Set(name.to_string(), Some(value.to_string())));
        index += 1;
    }
    let rest = argv.get(index..).filter(|rest| !rest.is_empty()).map(<[Word]>::to_vec);
    inner.argv = rest.ok_or_else(|| Failed { why: "env without a command".to_string(), word: at })?;
    Ok(())
}

/// What `env -u NAME` does; with a name that cannot be one it runs nothing (coreutils 9.1: "cannot unset").
fn unset(name: &str, word: usize) -> Result<Change, Failed> {
    if name.is_empty() || name.contains('=') {
        return Err(Failed { why: format!("env cannot unset {name:?}"), word });
    }
    Ok(Change::Unset(name.to_string()))
}

fn taskset(inner: &mut Inner, at: usize) -> Result<(), Failed> {
    let mut index = 1;
    while let Some(text) = inner.argv.get(index).map(|word| word.text.as_str()).filter(|text| text.starts_with('-')) {
        match text {
            "-a" | "--all-tasks" | "-c" | "--cpu-list" | "-ac" | "-ca" => index += 1,
            _ => return Err(Failed { why: format!("{text} of taskset is not understood"), word: at }),
        }
    }
    let rest = inner.argv.get(index + 1..).filter(|rest| !rest.is_empty()).map(<[Word]>::to_vec);
    inner.argv = rest.ok_or_else(|| Failed { why: "taskset without a command".to_string(), word: at })?;
    Ok(())
}

fn runuser(inner: &mut Inner, name: &str, at: usize) -> Result<bool, Failed> {
    let opaque = |why: String| Failed { why, word: at };
    let mut index = 1;
    let mut user = None;
    let mut command = None;
    while let Some(word) = inner.argv.get(index) {
        let next = inner.argv.get(index + 1);
        match word.text.as_str() {
            "--" => {
                index += 1;
                break;
            }
            "-u" | "--user" if name == "runuser" => {
                user = next.cloned();
                index += 2;
            }
            "-c" | "--command" => {
                command = next.cloned();
                index += 2;
            }
            "-s" | "--shell" | "-g" | "--group" | "-G" | "--supp-group" | "-w" | "--whitelist-environment" => {
                index += 2
            }
            "-" | "-l" | "--login" | "-m" | "-p" | "--preserve-environment" | "-f" | "--fast" | "-P" | "--pty" => {
                index += 1
            }
            text if text.starts_with('-') => return Err(opaque(format!("{text} of {name} is not understood"))),
            _ if user.is_none() && command.is_none() && name == "runuser" || command.is_some() || name == "su" => {
                // The user's name, where no -u was given.
                if user.is_some() {
                    break;
                }
                user = Some(word.clone());
                index += 1;
            }
            _ => break,
        }
    }
    inner.environment.push(Change::Anything(format!("{name} sets HOME, USER, SHELL and more")));
    inner.layers.push(Layer { name: name.to_string(), replaces: Some(false) });
    if let Some(command) = command {
        let shell = Word { text: "sh".to_string(), place: command.place.clone() };
        let flag = Word { text: "-c".to_string(), place: command.place.clone() };
        inner.argv = vec![shell, flag, command];
        return Ok(true);
    }
    match inner.argv.get(index..).filter(|rest| !rest.is_empty() && name == "runuser") {
        Some(rest) => {
            inner.argv = rest.to_vec();
            Ok(true)
        }
        None => Err(opaque(format!("{name} without a command"))),
    }
}

/// `false`: not a `run`.
fn container(inner: &mut Inner, name: &str) -> Result<bool, Failed> {
    let mut argv = inner.argv.clone();
    let verb = argv.iter().skip(1).position(|word| !word.text.starts_with('-')).map(|at| at + 1);
    let global =
        |word: &Word| word.text.contains('=') || ["--debug", "-D", "--tls", "--remote"].contains(&word.text.as_str());
    let Some(mut verb) = verb else { return Ok(false) };
    if argv[verb].text == "container" && argv.get(verb + 1).is_some_and(|word| word.text == "run") {
        verb += 1;
    }
    if argv[verb].text != "run" {
        let what = argv[verb].text.clone();
        return Err(Failed {
            why: format!("{name} {what}: the command line of the container is not on this one"),
            word: argv[verb].place.word,
        });
    }
    if let Some(word) = argv[1..verb].iter().find(|word| word.text.starts_with('-') && !global(word)) {
        return Err(Failed { why: format!("{} of {name} may take a value", word.text), word: word.place.word });
    }
    let tool = Tool {
        names: &[],
        flags: "ditPq",
        long_flags: RUN_FLAGS,
        valued: "acehlmpuvw",
        long_valued: RUN_VALUED,
        operands: 0,
        assigns: false,
        replaces: false,
    };
    let mut made = Container {
        tool: name.to_string(),
        image: String::new(),
        name: None,
        entrypoint: None,
        environment: Vec::new(),
        environment_files: Vec::new(),
    };
    let at = options(&argv, verb + 1, &tool, name, &mut |option, value| match option {
        "name" => made.name = Some(value.to_string()),
        "entrypoint" => made.entrypoint = Some(value.to_string()),
        "env-file" => made.environment_files.push(value.to_string()),
        "e" | "env" => made.environment.push(match value.split_once('=') {
            Some((name, value)) => (name.to_string(), Some(value.to_string())),
            None => (value.to_string(), None),
        }),
        _ => {}
    })?;
    let Some(image) = argv.get(at) else {
        return Err(Failed { why: format!("{name} run without an image"), word: argv[verb].place.word });
    };
    made.image = image.text.clone();
    let rest = argv.split_off(at + 1);
    inner.argv = rest;
    inner.container = Some(made);
    Ok(true)
}

fn shell(inner: &mut Inner, known: &Known, name: &str) -> Result<bool, Failed> {
    let at = inner.argv[0].place.word;
    let mut index = 1;
    let mut command = false;
    while let Some(word) = inner.argv.get(index) {
        match word.text.as_str() {
            "--" | "-" => {
                index += 1;
                break;
            }
            "--login" | "--norc" | "--noprofile" | "--posix" => {
                if word.text == "--login" {
                    inner.environment.push(Change::Anything("a login shell reads profiles".to_string()));
                }
                index += 1;
            }
            "-o" | "+o" | "-O" | "+O" => index += 2,
            text if text.starts_with("--") => {
                return Err(Failed { why: format!("{text} of {name} is not understood"), word: word.place.word });
            }
            text if text.starts_with(['-', '+']) => {
                if !text[1..].chars().all(|letter| "abcefhiklmnptuvxBCEHP".contains(letter) || letter == 'o') {
                    return Err(Failed { why: format!("{text} of {name} is not understood"), word: word.place.word });
                }
                if text[1..].contains(['n', 's']) {
                    return Err(Failed { why: format!("{text} of {name}: it runs no command"), word: word.place.word });
                }
                if text[1..].contains(['l', 'i']) {
                    inner.environment.push(Change::Anything("a login or interactive shell reads profiles".to_string()));
                }
                command |= text.starts_with('-') && text.contains('c');
                index += 1 + usize::from(text.contains('o'));
            }
            _ => break,
        }
    }
    let Some(subject) = inner.argv.get(index).cloned() else {
        return Err(Failed { why: format!("{name} without a command"), word: at });
    };
    let arguments = inner.argv[index + 1..].to_vec();
    let (text, script, positional) = if command {
        // The first word after the string is $0.
        (subject.text.clone(), None, arguments.get(1..).unwrap_or_default().to_vec())
    } else {
        let text = known.scripts.get(&subject.text).ok_or_else(|| Failed {
            why: format!("the script {} was not read", crate::file::shorten(&subject.text)),
            word: subject.place.word,
        })?;
        (text.clone(), Some(subject.text.clone()), arguments)
    };
    let mut shell = Shell {
        text: &text,
        word: subject.place.word,
        script,
        positional,
        variables: BTreeMap::new(),
        exported: BTreeSet::new(),
        environment: known.environment.as_ref(),
        certain: !inner.environment.iter().any(|change| matches!(change, Change::Anything(_))),
        changes: inner.environment.clone(),
    };
    let found = shell.run(inner)?;
    inner.environment = shell.changes;
    inner.argv = found.0;
    inner.layers.push(Layer { name: name.to_string(), replaces: found.1.then_some(true) });
    Ok(true)
}

/// What ends a simple command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Next,
    And,
    Or,
    Pipe,
    Background,
    Nothing,
}

struct Shell<'a> {
    text: &'a str,
    word: usize,
    script: Option<String>,
    positional: Vec<Word>,
    variables: BTreeMap<String, Option<String>>,
    /// Variables that were marked to be handed on, also if they are assigned later.
    exported: BTreeSet<String>,
    environment: Option<&'a BTreeMap<String, Option<String>>>,
    certain: bool,
    changes: Vec<Change>,
}

/// Commands of the shell that change nothing the program could see.
const WITHOUT_EFFECT: [&str; 12] =
    ["test", "[", "true", ":", "echo", "printf", "ulimit", "umask", "trap", "wait", "shopt", "hash"];

const DEPENDS: &str = "'&&': whether what stands before it succeeded is not known";

/// Whether a command cannot fail: it changes the shell or prints.
fn is_certain(words: &[Word], quoted: &[bool]) -> bool {
    let assigns = |(word, quoted): (&Word, &bool)| !quoted && is_assignment(&word.text);
    match words.first().map(|word| word.text.as_str()) {
        None => false,
        Some("true" | ":" | "echo" | "printf" | "set" | "umask" | "export" | "unset") => true,
        Some(_) => words.iter().zip(quoted).all(assigns),
    }
}

type Simple = (Vec<Word>, Vec<bool>, Vec<String>, End);

impl Shell<'_> {
    fn fail(&self, why: impl Into<String>) -> Failed {
        Failed { why: why.into(), word: self.word }
    }

    /// The command the shell ends in, and whether it is told to become it.
    fn run(&mut self, inner: &mut Inner) -> Result<(Vec<Word>, bool), Failed> {
        let mut at = 0;
        let mut last: Option<(Vec<Word>, Vec<String>)> = None;
        let mut before = End::Next;
        // Within a chain of `&&`: whether a command before may have failed, and whether something was done that then was
        // not done. A chain that goes on to the command that runs did not fail; one that ends before it may have.
        let (mut may_fail, mut in_doubt) = (false, false);
        loop {
            let (mut words, quoted, redirected, end) = self.simple(&mut at)?;
            let is_guarded = before == End::And && may_fail;
            may_fail = end == End::And && (before == End::And && may_fail || !is_certain(&words, &quoted));
            in_doubt &= before == End::And;
            if words.is_empty() {
                if !redirected.is_empty() {
                    return Err(self.fail("a redirection without a command"));
                }
                self.nothing(at, before, end)?;
                if end == End::Nothing {
                    break;
                }
                continue;
            }
            if before == End::Or {
                return Err(self.fail("'||': which command runs depends on what happens"));
            }
            if end == End::Background {
                return Err(self.fail("'&': more than one command runs"));
            }
            // Assignments before a command.
            let mut assigned = Vec::new();
            let count =
                words.iter().zip(&quoted).take_while(|(word, quoted)| !**quoted && is_assignment(&word.text)).count();
            for word in words.drain(..count) {
                if let Some((name, value)) = word.text.split_once('=') {
                    assigned.push((name.to_string(), value.to_string()));
                }
            }
            if words.is_empty() {
                for (name, value) in assigned {
                    self.assign(&name, Some(value), false);
                }
                in_doubt |= is_guarded;
                self.settled(in_doubt, end)?;
                before = end;
                if end == End::Nothing {
                    break;
                }
                continue;
            }
            let mut exec = false;
            if words[0].text == "exec" {
                exec = true;
                words.remove(0);
                while words.first().is_some_and(|word| word.text.starts_with('-')) {
                    let option = words.remove(0).text;
                    match option.as_str() {
                        "--" => break,
                        "-a" if !words.is_empty() => {
                            words.remove(0);
                        }
                        "-c" => self.changes.push(Change::Clear),
                        "-l" => {}
                        _ => return Err(self.fail(format!("exec {option}"))),
                    }
                }
                if words.is_empty() {
                    inner.redirected.extend(redirected);
                    before = end;
                    if end == End::Nothing {
                        break;
                    }
                    continue;
                }
            }
            if !exec && self.builtin(&words, inner)? {
                in_doubt |= is_guarded && !WITHOUT_EFFECT.contains(&words[0].text.as_str());
                self.settled(in_doubt, end)?;
                before = end;
                if end == End::Nothing {
                    break;
                }
                continue;
            }
            if end == End::Pipe {
                if let Some((earlier, _)) = &last {
                    self.short(earlier)?;
                }
                self.tail(at)?;
                self.rest(at, end)?;
                let mut redirected = redirected;
                redirected.push("a pipe".to_string());
                self.take(assigned);
                inner.redirected.extend(redirected);
                return Ok((words, false));
            }
            if let Some((earlier, _)) = last.as_ref().filter(|_| exec) {
                self.short(earlier)?;
            }
            // What stands behind the chain runs if it fails.
            if exec && is_guarded && end != End::Nothing {
                return Err(self.fail(DEPENDS));
            }
            if exec {
                self.rest(at, end)?;
                self.take(assigned);
                inner.redirected.extend(redirected);
                return Ok((words, true));
            }
            if let Some((earlier, _)) = &last {
                self.short(earlier)?;
            }
            last = Some((words, redirected));
            self.settled(in_doubt, end)?;
            if end == End::Nothing {
                self.take(assigned);
                break;
            }
            before = end;
            if end == End::Or {
                return Err(self.fail("'||': which command runs depends on what happens"));
            }
            let mut look = at;
            let rest = self.simple(&mut look)?;
            if rest.0.is_empty() && rest.3 == End::Nothing {
                self.nothing(look, end, End::Nothing)?;
                self.take(assigned);
                break;
            }
        }
        let Some((words, redirected)) = last else { return Err(self.fail("no command is run")) };
        inner.redirected.extend(redirected);
        Ok((words, false))
    }

    fn take(&mut self, assigned: Vec<(String, String)>) {
        for (name, value) in assigned {
            self.changes.push(Change::Set(name, Some(value)));
        }
    }

    /// What was done in a chain of `&&` that ends before the command that runs may not have been done.
    fn settled(&self, in_doubt: bool, end: End) -> Result<(), Failed> {
        if in_doubt && matches!(end, End::Next) { Err(self.fail(DEPENDS)) } else { Ok(()) }
    }

    /// A command before the last must be one that is over soon: else it may be the one that is running.
    fn short(&self, words: &[Word]) -> Result<(), Failed> {
        let name = words.first().map_or("", |word| base(&word.text));
        // `env` alone prints; with a command it becomes that one.
        if SHORT.contains(&name) && (name != "env" || words.len() == 1) {
            return Ok(());
        }
        Err(self
            .fail(format!("{} and a later command: which of them is running is not known", crate::file::shorten(name))))
    }

    /// An empty command: fine on a line of its own.
    fn nothing(&self, at: usize, before: End, end: End) -> Result<(), Failed> {
        let semicolon = at.checked_sub(1).and_then(|at| self.text.as_bytes().get(at)) == Some(&b';');
        match end {
            End::Nothing | End::Next if before != End::Next => Err(self.fail("an operator without a command")),
            End::Nothing => Ok(()),
            End::Next if !semicolon => Ok(()),
            _ => Err(self.fail("an operator without a command")),
        }
    }

    /// A shell that cannot read what follows may not run what comes before.
    fn rest(&self, mut at: usize, mut before: End) -> Result<(), Failed> {
        if before == End::Nothing {
            return Ok(());
        }
        loop {
            let (words, _, redirected, end) = self.simple(&mut at)?;
            if words.is_empty() && redirected.is_empty() {
                self.nothing(at, before, end)?;
            }
            if words.first().is_some_and(|word| RESERVED.contains(&word.text.as_str())) {
                return Err(self.fail("what follows the command is not followed"));
            }
            if end == End::Nothing {
                return Ok(());
            }
            before = end;
        }
    }

    /// What follows a pipe must only take the output.
    fn tail(&mut self, mut at: usize) -> Result<(), Failed> {
        loop {
            let (words, _, _, end) = self.simple(&mut at)?;
            match words.first().map(|word| base(&word.text)) {
                Some("tee" | "cat" | "ts" | "logger" | "systemd-cat" | "multilog" | "rotatelogs" | "cronolog") => {}
                _ => return Err(self.fail("a pipe into something that is not known to just take the output")),
            }
            match end {
                End::Pipe => {}
                End::Nothing | End::Next => return Ok(()),
                _ => return Err(self.fail("a pipe in a list of commands")),
            }
        }
    }

    fn assign(&mut self, name: &str, value: Option<String>, export: bool) {
        self.variables.insert(name.to_string(), value.clone());
        let exported = self.environment.is_none_or(|environment| environment.contains_key(name));
        if export {
            self.exported.insert(name.to_string());
        }
        if exported || self.exported.contains(name) {
            self.changes.push(Change::Set(name.to_string(), value));
        }
    }

    /// Commands that change the shell itself. `true`: it was one, and what it does is noted.
    fn builtin(&mut self, words: &[Word], inner: &mut Inner) -> Result<bool, Failed> {
        let name = words[0].text.as_str();
        match name {
            "cd" | "pushd" => {
                inner.directory = words.get(1).map(|word| word.text.clone());
                self.variables.insert("PWD".to_string(), None);
            }
            name if EXPORTS.contains(&name) => {
                let options = words[1..].iter().filter(|word| word.text.starts_with('-'));
                let options: String = options.map(|word| word.text.as_str()).collect();
                if options.contains(['n', 'f', 'r', 'a', 'A', 'i', 'l', 'u', 'c', '+']) {
                    return Err(self.fail(format!("{name} {options} is not followed")));
                }
                let export = name == "export" || options.contains('x');
                for word in words[1..].iter().filter(|word| !word.text.starts_with('-')) {
                    match word.text.split_once('=') {
                        Some((name, value)) => self.assign(name, Some(value.to_string()), export),
                        None if !export => {}
                        None => {
                            self.exported.insert(word.text.clone());
                            if let Some(value) = self.variables.get(&word.text).cloned() {
                                self.changes.push(Change::Set(word.text.clone(), value));
                            }
                        }
                    }
                }
            }
            "unset" => {
                for word in words[1..].iter().filter(|word| word.text != "-v") {
                    // Functions (`-f`), parts of lists; no name at all ends dash and not bash.
                    if !crate::words::is_name(&word.text) {
                        return Err(self.fail("unset of something that is no variable is not followed"));
                    }
                    self.variables.insert(word.text.clone(), Some(String::new()));
                    self.changes.push(Change::Unset(word.text.clone()));
                }
            }
            "source" | "." => {
                let what = words.get(1).map_or("", |word| word.text.as_str());
                self.changes.push(Change::Anything(format!("{name} {what}")));
                self.certain = false;
                self.variables.clear();
            }
            "set" => {
                let allexport = |word: &Word| {
                    let text = word.text.as_str();
                    text == "allexport" || text.strip_prefix('-').is_some_and(|letters| letters.contains('a'))
                };
                if words[1..].iter().any(allexport) {
                    return Err(self.fail("set -a hands on every variable that is set from here on"));
                }
                if words.iter().skip(1).any(|word| !word.text.starts_with(['-', '+']) || word.text == "--") {
                    let named = words.len() == 3
                        && matches!(
                            words[1].text.as_str(),
                            "-o" | "+o" | "-eo" | "-euo" | "-uo" | "-euxo" | "-xeuo" | "-exo"
                        );
                    if !named {
                        return Err(self.fail("set with words changes the arguments"));
                    }
                }
            }
            "ulimit" | "umask" | "trap" | "true" | ":" | "echo" | "printf" | "test" | "[" | "wait" | "shopt"
            | "hash" => {}
            "eval" | "read" | "exit" | "return" | "shift" | "getopts" | "alias" | "mapfile" | "readarray" | "let"
            | "local" | "builtin" | "command" | "enable" => {
                return Err(self.fail(format!("'{name}' in a shell command is not followed")));
            }
            name if RESERVED.contains(&name) => {
                return Err(self.fail(format!("'{name}' in a shell command is not followed")));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn variable(&self, name: &str) -> Result<String, Failed> {
        if let Ok(index) = name.parse::<usize>() {
            return match index.checked_sub(1).map(|index| self.positional.get(index)) {
                Some(word) => Ok(word.map(|word| word.text.clone()).unwrap_or_default()),
                None => Err(self.fail("$0 is not followed")),
            };
        }
        match self.variables.get(name) {
            Some(Some(value)) => return Ok(value.clone()),
            Some(None) => return Err(self.fail(format!("${name} is not known here"))),
            None => {}
        }
        if !self.certain {
            return Err(self.fail(format!("${name} may have been set by something that was not read")));
        }
        for change in self.changes.iter().rev() {
            match change {
                Change::Set(set, value) if set == name => {
                    return value.clone().ok_or_else(|| self.fail(format!("${name} is not known here")));
                }
                Change::Unset(unset) if unset == name => return Ok(String::new()),
                Change::Clear => return Ok(String::new()),
                _ => {}
            }
        }
        match self.environment {
            Some(environment) => match environment.get(name) {
                Some(Some(value)) => Ok(value.clone()),
                Some(None) => Err(self.fail(format!("${name} is not known here"))),
                None => Ok(String::new()),
            },
            None => Err(self.fail(format!("${name}: the environment was not read"))),
        }
    }

    /// One simple command, quotes removed and variables replaced. Alongside each word, whether its first part was
    /// quoted or came from a variable (then it is no assignment).
    fn simple(&self, at: &mut usize) -> Result<Simple, Failed> {
        let bytes = self.text.as_bytes();
        let (mut words, mut quoted, mut redirected): (Vec<Word>, Vec<bool>, Vec<String>) = Default::default();
        let mut assigning = 0;
        let mut redirect: Option<String> = None;
        loop {
            while matches!(bytes.get(*at), Some(b' ' | b'\t' | b'\r')) || bytes[*at..].starts_with(b"\\\n") {
                *at += if bytes[*at] == b'\\' { 2 } else { 1 };
            }
            let two = |text: &[u8]| bytes[*at..].starts_with(text);
            let end = match bytes.get(*at) {
                None => Some((End::Nothing, 0)),
                Some(b'#') => {
                    let line = bytes[*at..].iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len() - *at);
                    *at += line;
                    continue;
                }
                Some(b'\n') => Some((End::Next, 1)),
                Some(b';') if two(b";;") => return Err(self.fail("';;' in a shell command is not followed")),
                Some(b';') => Some((End::Next, 1)),
                Some(b'&') if two(b"&&") => Some((End::And, 2)),
                Some(b'&') if two(b"&>") => None,
                Some(b'&') => Some((End::Background, 1)),
                Some(b'|') if two(b"||") => Some((End::Or, 2)),
                Some(b'|') if two(b"|&") => Some((End::Pipe, 2)),
                Some(b'|') => Some((End::Pipe, 1)),
                Some(b'(' | b')') => return Err(self.fail("parentheses in a shell command are not followed")),
                Some(_) => None,
            };
            if let Some((end, length)) = end {
                if redirect.is_some() {
                    return Err(self.fail("a redirection without a target"));
                }
                *at += length;
                if end == End::And || end == End::Or || end == End::Pipe {
                    while matches!(bytes.get(*at), Some(b'\n' | b' ' | b'\t')) {
                        *at += 1;
                    }
                }
                return Ok((words, quoted, redirected, end));
            }
            if let Some(length) = redirection(&bytes[*at..]) {
                let operator = &self.text[*at..*at + length];
                if operator.contains("<<") {
                    return Err(self.fail("a here document in a shell command is not followed"));
                }
                if operator.ends_with(|c: char| c.is_ascii_digit() || c == '-') {
                    *at += length;
                    if !["&1", "&2", "&-"].iter().any(|target| operator.ends_with(target)) {
                        return Err(self.fail("a redirection to a descriptor of unknown meaning"));
                    }
                    if bytes.get(*at).is_some_and(|byte| !b" \t\r\n;&|()".contains(byte)) {
                        return Err(self.fail("a redirection to a computed descriptor is not followed"));
                    }
                    redirected.push(operator.to_string());
                    continue;
                }
                redirect = Some(operator.to_string());
                *at += length;
                continue;
            }
            let start = *at;
            // Only before the command is a word with `=` an assignment, whose value is not split.
            while assigning < words.len() && !quoted[assigning] && is_assignment(&words[assigning].text) {
                assigning += 1;
            }
            let assigns = assigning == words.len();
            let exports = words.first().is_some_and(|word| EXPORTS.contains(&word.text.as_str()));
            let parts = self.word(at, assigns)?;
            if exports && parts.0.len() > 1 {
                return Err(self.fail("shells differ on whether the value of an export is split"));
            }
            if *at == start {
                return Err(self.fail("a character in a shell command is not understood"));
            }
            if let Some(operator) = redirect.take() {
                let [target] = parts.0.as_slice() else {
                    return Err(self.fail("a redirection to nothing or to several files"));
                };
                redirected.push(format!("{operator}{target}"));
                continue;
            }
            for (index, text) in parts.0.into_iter().enumerate() {
                let place = match &parts.2 {
                    Some(words) => match words.get(index) {
                        Some(word) => word.place.clone(),
                        None => self.place(start..*at),
                    },
                    None => self.place(start..*at),
                };
                words.push(Word { text, place });
                quoted.push(parts.1);
            }
        }
    }

    fn place(&self, range: Range<usize>) -> Place {
        Place { word: self.word, range: Some(range), script: self.script.clone() }
    }

    /// The words one word of the text becomes; whether it cannot be an assignment; the words of `$@`.
    #[allow(clippy::type_complexity)]
    fn word(&self, at: &mut usize, assigns: bool) -> Result<(Vec<String>, bool, Option<Vec<Word>>), Failed> {
        let bytes = self.text.as_bytes();
        if self.text[*at..].starts_with("\"$@\"") {
            let after = bytes.get(*at + 4);
            if after.is_none_or(|byte| b" \t\n;&|<>".contains(byte)) {
                *at += 4;
                let words = self.positional.clone();
                return Ok((words.iter().map(|word| word.text.clone()).collect(), true, Some(words)));
            }
        }
        let mut fields: Vec<String> = Vec::new();
        let mut current = String::new();
        let mut open = false;
        let from = *at;
        let mut opaque_start = false;
        while let Some(&byte) = bytes.get(*at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')' => break,
                b'\\' => {
                    opaque_start |= *at == from;
                    *at += 1;
                    let Some(c) = self.text[*at..].chars().next() else {
                        return Err(self.fail("a backslash at the end is not followed"));
                    };
                    if c == '\n' {
                        // At the end of a word it is the blank that follows which ends it.
                        let next = bytes.get(*at + 1);
                        if next.is_some_and(|byte| !b" \t".contains(byte)) {
                            return Err(self.fail("a line that is continued within a word is not followed"));
                        }
                    } else {
                        current.push(c);
                        open = true;
                    }
                    *at += c.len_utf8();
                }
                b'\'' => {
                    opaque_start |= *at == from;
                    let rest = &self.text[*at + 1..];
                    let Some(length) = rest.find('\'') else { return Err(self.fail("a quote is not closed")) };
                    current.push_str(&rest[..length]);
                    open = true;
                    *at += length + 2;
                }
                b'"' => {
                    opaque_start |= *at == from;
                    *at += 1;
                    open = true;
                    loop {
                        match bytes.get(*at) {
                            None => return Err(self.fail("a quote is not closed")),
                            Some(b'"') => break,
                            Some(b'\\') => {
                                let next = bytes.get(*at + 1).copied();
                                match next {
                                    Some(byte @ (b'$' | b'`' | b'"' | b'\\')) => {
                                        current.push(byte as char);
                                        *at += 2;
                                    }
                                    Some(b'\n') => *at += 2,
                                    _ => {
                                        current.push('\\');
                                        *at += 1;
                                    }
                                }
                            }
                            Some(b'`') => return Err(self.fail("a command substitution is not followed")),
                            Some(b'$') => {
                                let value = self.dollar(at)?;
                                current.push_str(&value);
                            }
                            Some(_) => {
                                let Some(c) = self.text[*at..].chars().next() else { break };
                                current.push(c);
                                *at += c.len_utf8();
                            }
                        }
                    }
                    *at += 1;
                }
                b'`' => return Err(self.fail("a command substitution is not followed")),
                b'$' => {
                    opaque_start |= *at == from;
                    // Within an assignment a value is not split.
                    let assigning = assigns && fields.is_empty() && !opaque_start && is_assignment(&current);
                    let value = self.dollar(at)?;
                    if assigning {
                        current.push_str(&value);
                        continue;
                    }
                    if !is_not_kept(&value) && value.replace(REDACTED, "").contains(['*', '?', '[']) {
                        return Err(self.fail("a variable with a file pattern in it is not followed"));
                    }
                    let mut parts = value.split([' ', '\t', '\n']).peekable();
                    while let Some(part) = parts.next() {
                        current.push_str(part);
                        open |= !part.is_empty();
                        if parts.peek().is_some() && open {
                            fields.push(std::mem::take(&mut current));
                            open = false;
                        }
                    }
                }
                b'[' if marked(&self.text[*at..]).is_some() => {
                    let mark = marked(&self.text[*at..]).unwrap_or_default().to_string();
                    current.push_str(&mark);
                    open = true;
                    *at += mark.len();
                }
                b'*' | b'?' | b'[' | b'{' | b'~'
                    if unquoted_special(byte, *at == from || current.ends_with(['=', ':']), &self.text[*at..])
                        // A name before it makes it a subscript to some shells, which must be closed.
                        || byte == b'[' && crate::words::is_name(&current) =>
                {
                    return Err(self.fail("a file pattern or braces in a shell command are not followed"));
                }
                _ => {
                    let Some(c) = self.text[*at..].chars().next() else { break };
                    current.push(c);
                    open = true;
                    *at += c.len_utf8();
                }
            }
        }
        if open {
            fields.push(current);
        }
        Ok((fields, opaque_start, None))
    }

    fn dollar(&self, at: &mut usize) -> Result<String, Failed> {
        let rest = &self.text[*at + 1..];
        if let Some(inside) = rest.strip_prefix('{') {
            let Some(end) = inside.find('}') else { return Err(self.fail("'${' is not closed")) };
            let content = &inside[..end];
            *at += end + 3;
            let (name, default) = match content.split_once(":-").or_else(|| content.split_once('-')) {
                Some((name, default)) => (name, Some(default)),
                None => (content, None),
            };
            let simple =
                crate::words::is_name(name) || name.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty();
            if !simple || default.is_some_and(|text| text.contains(['$', '`', '\\', '"', '\''])) {
                return Err(self.fail(format!("${{{content}}} is not followed")));
            }
            let value = self.variable(name)?;
            return Ok(match default {
                Some(default) if value.is_empty() => default.to_string(),
                _ => value,
            });
        }
        let length = match rest.bytes().next() {
            Some(byte) if byte.is_ascii_digit() => 1,
            _ => rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count(),
        };
        if length == 0 {
            // Also a lone `$`: bash does not split a word that holds one.
            return Err(self.fail("a '$' that begins no simple variable is not followed"));
        }
        *at += 1 + length;
        self.variable(&rest[..length])
    }
}

/// The mark of a value that was taken out, which is no file pattern.
fn marked(rest: &str) -> Option<&str> {
    let mark = &rest[..=rest.find(']')?];
    (mark == REDACTED || is_not_kept(mark)).then_some(mark)
}

/// Characters that a shell would expand here. A tilde counts at the start of a word, or of a part of one.
fn unquoted_special(byte: u8, first: bool, rest: &str) -> bool {
    match byte {
        b'~' => first,
        b'{' => rest.find('}').is_some_and(|end| rest[..end].contains([',', '.'])) || rest.starts_with("{ "),
        // The word `[` is a command.
        b'[' => !(first && rest[1..].starts_with([' ', '\t'])) && rest.contains(']') && rest.len() > 1,
        _ => true,
    }
}

/// The length of a redirection operator with its number: `2>`, `>>`, `2>&1`.
fn redirection(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = &text[digits..];
    let operator = [&b"&>>"[..], b"&>", b"<<<", b"<<", b">>", b">|", b">&", b"<&", b"<>", b">", b"<"]
        .into_iter()
        .find(|operator| rest.starts_with(operator))?;
    if operator.starts_with(b"&") && digits > 0 {
        return None;
    }
    let mut length = digits + operator.len();
    if operator.ends_with(b"&") {
        let target = text[length..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
        length += target;
    }
    Some(length)
}

/// What the inner program is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// `python -m MODULE`; the index of the word that names it.
    Module(String, usize),
    /// `python FILE`, or a script run by its own name.
    Script(String, usize),
    /// `python -c CODE`.
    Code(usize),
    /// Anything else.
    Executable(String),
}

/// What an inner command line runs, and the index of its first argument. `None` where the interpreter's options are
/// not understood.
pub fn program(argv: &[Word]) -> Option<(Program, usize)> {
    let first = &argv.first()?.text;
    let name = base(first);
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    if !version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')) {
        return Some((Program::Executable(first.clone()), 1));
    }
    let mut index = 1;
    while let Some(word) = argv.get(index) {
        let text = word.text.as_str();
        if text == "-" || !text.starts_with('-') {
            return Some((Program::Script(text.to_string(), index), index + 1));
        }
        if text.starts_with("--") {
            index += 1 + usize::from(text == "--check-hash-based-pycs");
            continue;
        }
        for (at, letter) in text[1..].char_indices() {
            let rest = &text[1 + at + letter.len_utf8()..];
            match letter {
                'm' if rest.is_empty() => {
                    let module = argv.get(index + 1)?.text.clone();
                    return Some((Program::Module(module, index + 1), index + 2));
                }
                'm' => return Some((Program::Module(rest.to_string(), index), index + 1)),
                'c' => {
                    let code = if rest.is_empty() { index + 1 } else { index };
                    return (code < argv.len()).then_some((Program::Code(code), code + 1));
                }
                'W' | 'X' | 'Q' => {
                    index += usize::from(rest.is_empty());
                    break;
                }
                letter if "bBdEhiIOqRsSuvVxP3t".contains(letter) => {}
                _ => return None,
            }
        }
        index += 1;
    }
    None
}
