//! Targets on other hosts, over a real `sshd` on this one and a real `llama-server`.
//!
//! The other host is this host behind an `sshd` of its own: its own keys, port and configuration. Skipped without an
//! `sshd`, unless `ASCERTAIN_REQUIRE_HOST=1`, and without a server, see `live.rs`.

#[allow(dead_code)]
mod support;

use ascertain_engines::llama_cpp::tiny_model::TinyModel;
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::{Lab, Report, Run, Server, free_port, get};

const REQUIRE: &str = "ASCERTAIN_REQUIRE_HOST";

/// An `sshd` that is ended when dropped.
struct Host<'a> {
    lab: &'a Lab,
    sshd: Child,
    port: u16,
    /// More of the client's configuration.
    client: String,
}

impl<'a> Host<'a> {
    /// A host as it should be.
    fn open(lab: &'a Lab) -> Option<Host<'a>> {
        Host::with(lab, "")
    }

    /// One whose `sshd` is configured further.
    fn with(lab: &'a Lab, more: &str) -> Option<Host<'a>> {
        let sshd = sshd()?;
        for name in ["host_key", "key", "other_key"] {
            if !lab.path(name).exists() {
                let made = Command::new("ssh-keygen")
                    .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"])
                    .arg(lab.path(name))
                    .stdin(Stdio::null())
                    .status();
                assert!(made.expect("ssh-keygen runs").success());
            }
        }
        fs::copy(lab.path("key.pub"), lab.path("authorized_keys")).expect("authorized keys");
        // Debian's sshd wants this directory, which its service makes.
        let _ = fs::create_dir_all("/run/sshd");
        for _ in 0..5 {
            let port = free_port();
            let configuration = format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
                UsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
                PermitRootLogin prohibit-password\nMaxStartups 100\nSetEnv XDG_CACHE_HOME={}\n{more}\n",
                lab.text("host_key"),
                lab.text("authorized_keys"),
                lab.text("cache"),
            );
            let path = lab.write(&format!("sshd-{port}.conf"), configuration);
            let log = fs::File::create(lab.path(&format!("sshd-{port}.log"))).expect("a log");
            let mut child = Command::new(&sshd)
                .args(["-D", "-e", "-f"])
                .arg(path)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .expect("sshd runs");
            let until = Instant::now() + Duration::from_secs(10);
            while Instant::now() < until && child.try_wait().expect("a child").is_none() {
                if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Some(Host { lab, sshd: child, port, client: String::new() });
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("no sshd could be started");
    }

    /// One on which every command goes through a script, which finds the command in `$SSH_ORIGINAL_COMMAND`.
    fn through(lab: &'a Lab, script: &str) -> Option<Host<'a>> {
        let path = lab.write("through.sh", format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
        Host::with(lab, &format!("ForceCommand {}", path.display()))
    }

    /// The command to be used for `ssh`.
    fn command(&self) -> String {
        let known = fs::read_to_string(self.lab.path("host_key.pub")).expect("a key");
        let known = format!("[127.0.0.1]:{} {known}", self.port);
        let known = self.lab.write("known_hosts", known);
        let user = String::from_utf8(Command::new("id").arg("-un").output().expect("id runs").stdout).expect("a name");
        let configuration = format!(
            "{}\nHost box\n HostName 127.0.0.1\n Port {}\nHost *\n User {}\n IdentityFile {}\n IdentitiesOnly yes\n\
             UserKnownHostsFile {}\n GlobalKnownHostsFile none\n",
            self.client,
            self.port,
            user.trim(),
            self.lab.text("key"),
            known.display(),
        );
        format!("ssh -F '{}'", self.lab.write("ssh_config", configuration).display())
    }

    fn ascertain(&self, words: &[&str]) -> Run {
        self.ascertain_with(words, &[])
    }

    fn ascertain_with(&self, words: &[&str], more: &[(&str, &str)]) -> Run {
        let command = self.command();
        self.lab.ascertain_with(words, &[&[("ASCERTAIN_SSH", command.as_str())], more].concat())
    }

    fn verify(&self, target: &str, more: &[&str]) -> Report {
        self.ascertain(&[&["verify", target, "--format", "json"], more].concat()).report()
    }

    /// Where the program lies after it was pushed.
    fn pushed(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.lab.path("cache/ascertain")).into_iter().flatten().flatten();
        folders.map(|folder| folder.path().join("ascertain")).filter(|path| path.exists()).collect()
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

fn sshd() -> Option<PathBuf> {
    let there = ["/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd"].into_iter().map(PathBuf::from);
    let found = there.into_iter().find(|path| path.is_file());
    if found.is_none() {
        let demanded = std::env::var_os(REQUIRE).is_some_and(|value| value == "1");
        assert!(!demanded, "{REQUIRE}=1, and there is no sshd (Debian, Ubuntu: apt-get install openssh-server)");
        eprintln!("skipped: there is no sshd (Debian, Ubuntu: apt-get install openssh-server)");
    }
    found
}

/// What the report says of each claim, without where it was seen.
fn verdicts(report: &Report) -> Vec<[Value; 6]> {
    let claims = report.json["claims"].as_array().expect("claims");
    claims
        .iter()
        .map(|claim| {
            let effect = claim["effect"]["verdict"].clone();
            let [setting, verdict, rung] = ["setting", "verdict", "rung"].map(|key| claim[key].clone());
            [setting, claim["wanted"].clone(), claim["effective"].clone(), verdict, rung, effect]
        })
        .collect()
}

/// A report without what differs between two looks at the same server.
fn comparable(report: &Report) -> Value {
    let mut json = report.json.clone();
    json["target"]["name"] = Value::Null;
    // Clocks are read to some milliseconds, and this is rounded to a second.
    json["invocation"]["started"] = Value::Null;
    json
}

#[track_caller]
fn same(one: &Report, other: &Report) {
    assert_eq!(verdicts(one), verdicts(other));
    let (a, b) = (comparable(one), comparable(other));
    for key in ["verdict", "answer", "exit_code", "unasked", "findings", "engine", "invocation"] {
        assert_eq!(a[key], b[key], "{key}");
    }
    let started = |report: &Report| report.json["invocation"]["started"].as_i64().expect("a time");
    assert!((started(one) - started(other)).abs() <= 1);
}

/// All three ways to look at one server must agree.
#[track_caller]
fn all_ways(host: &Host<'_>, server: &Server, more: &[&str]) -> Report {
    let local = host.lab.verify(&server.target(), more);
    let target = format!("ssh://box/{}", server.target());
    let plain = host.verify(&target, more);
    same(&local, &plain);
    plain.witness("host", "partial");
    assert!(host.pushed().is_empty(), "nothing is copied unless --push allows it");
    let pushed = host.verify(&target, &[&["--push"], more].concat());
    if more.is_empty() {
        assert_eq!(comparable(&local), comparable(&pushed));
    } else {
        // Traffic is never the same twice.
        assert_eq!(verdicts(&local), verdicts(&pushed));
    }
    assert_eq!(pushed.json["target"]["name"], target);
    plain
}

#[test]
fn both_ways_give_the_report_that_a_look_on_the_host_gives() {
    let Some(lab) = Lab::open() else { return };
    let Some(host) = Host::open(&lab) else { return };
    let server = lab.serve(TinyModel::Dense).args(&["-c", "512", "--metrics", "-np", "2", "--no-slots"]).start();
    let report = all_ways(&host, &server, &[]);
    report.claim("parallel").is("confirmed");
    report.claim("port").on("exercised");
    // The copy is whole, ours alone, and used again without being allowed anew.
    let [copy] = host.pushed().try_into().expect("one copy");
    let mode = |path: &Path| fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
    assert_eq!((mode(&copy), mode(copy.parent().expect("a folder"))), (0o700, 0o700));
    let changed = fs::metadata(&copy).and_then(|data| data.modified()).expect("a time");
    let target = format!("ssh://box/{}", server.target());
    let again = host.verify(&target, &["--push"]);
    let unasked = host.verify(&target, &[]);
    for report in [again, unasked] {
        let notes = report.json["witnesses"].as_array().expect("witnesses");
        assert!(notes.iter().all(|note| note["name"] != "host"), "{notes:#?}");
    }
    assert_eq!(fs::metadata(&copy).and_then(|data| data.modified()).expect("a time"), changed);
}

#[test]
fn a_target_may_be_named_as_on_the_host() {
    let Some(lab) = Lab::open() else { return };
    let Some(host) = Host::open(&lab) else { return };
    let server = lab.serve(TinyModel::Dense).args(&["-a", "far-away"]).start();
    let port = server.port;
    for push in [false, true] {
        let push: &[&str] = if push { &["--push"] } else { &[] };
        for target in
            [format!(":{port}"), format!("http://127.0.0.1:{port}"), format!("localhost:{port}"), "far-away".into()]
        {
            let report = host.verify(&format!("ssh://box/{target}"), push);
            assert_eq!(report.json["target"]["pid"], server.pid(), "{target}");
            report.claim("alias").is("confirmed");
        }
        let run = host.ascertain(&[&["explain", &format!("ssh://box/:{port}"), "alias"], push].concat());
        run.ends(0).shows("far-away");
        let file = lab.text(if push.is_empty() { "plain.tgz" } else { "pushed.tgz" });
        host.ascertain(&[&["capture", &format!("ssh://box/:{port}"), "-o", &file], push].concat()).ends(0);
        // A stored one gives the report that looking gave.
        let live = host.verify(&format!("ssh://box/:{port}"), &[]);
        assert_eq!(verdicts(&live), verdicts(&lab.verify(&file, &[])));
        host.ascertain(&[&["verify", "ssh://box/no-such-name"], push].concat())
            .ends(2)
            .complains("on box: no unit and no running server is called \"no-such-name\"");
        let free = free_port();
        host.ascertain(&[&["verify", &format!("ssh://box/:{free}")], push].concat())
            .ends(2)
            .complains(&format!("on box: nothing listens on 127.0.0.1:{free}"));
        host.ascertain(&[&["verify", "ssh://box/pid:1"], push].concat())
            .ends(2)
            .complains("on box: process 1 (")
            .complains("is no engine that ascertain knows");
        host.ascertain(&[&["verify", "ssh://box/pid:4194303"], push].concat())
            .ends(2)
            .complains("on box: cannot look at");
    }
}

#[test]
fn configuration_files_logs_and_secrets_are_treated_as_on_the_host() {
    let Some(lab) = Lab::open() else { return };
    let Some(host) = Host::open(&lab) else { return };
    let key = "sk-a-key-that-nobody-may-see-0123456789";
    let log = lab.text("its own.log");
    let server = lab
        .serve(TinyModel::Dense)
        .env("LLAMA_API_KEY", key)
        .env("LLAMA_ARG_CTX_SIZE", "512")
        .args(&["--log-file", &log, "-lv", "4", "--props"])
        .start();
    for push in [&[][..], &["--push"]] {
        let target = format!("ssh://box/:{}", server.port);
        let seen = AtomicBool::new(false);
        let done = AtomicBool::new(false);
        let run = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    if in_command_lines(key) {
                        seen.store(true, Ordering::Relaxed);
                    }
                }
            });
            let words = [&["verify", target.as_str(), "--format", "json", "--api-key-env", "KEY", "-v"], push].concat();
            let run = host.ascertain_with(&words, &[("KEY", key)]);
            done.store(true, Ordering::Relaxed);
            run
        });
        assert!(!seen.load(Ordering::Relaxed), "the key was on a command line");
        assert!(!run.stdout.contains(key) && !run.stderr.contains(key));
        let report = run.report();
        report.claim("ctx_size").is("confirmed").wanted("512");
        report.witness("props", "spoke").witness("log", "spoke");
        let file = lab.text("kept.tgz");
        let words = [&["capture", &target, "-o", &file, "--force", "--api-key-env", "KEY"], push].concat();
        host.ascertain_with(&words, &[("KEY", key)]).ends(0);
        let unpacked = Command::new("tar").args(["xzOf", &file]).output().expect("tar runs").stdout;
        assert!(!unpacked.windows(key.len()).any(|bytes| bytes == key.as_bytes()), "the key was kept");
    }
    // A log that is named is one of that host, and not the process's own.
    let other = lab.write("other.log", "nothing\n");
    let target = format!("ssh://box/{}", server.target());
    let report = host.verify(&target, &["--log", other.to_str().expect("UTF-8")]);
    report.finds("foreign_log", "its log is another file");
    host.ascertain(&["verify", "--log", "/no/such/file", &target]).ends(2).complains("on box: /no/such/file: no such");
    fs::remove_dir_all(lab.path("cache")).expect("removed");
    let run = host.ascertain(&["verify", "--log", "/no/such/file", &target]);
    fails(&run, &["on box: cannot read the log /no/such/file"]);
}

fn in_command_lines(text: &str) -> bool {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| line.windows(text.len()).any(|bytes| bytes == text.as_bytes()))
}

#[test]
fn requests_are_sent_through_the_connection() {
    let Some(lab) = Lab::open() else { return };
    let Some(host) = Host::open(&lab) else { return };
    let server = lab.serve(TinyModel::Mtp).args(&["--spec-type", "draft-mtp", "-c", "1024"]).through_tee().start();
    let report = all_ways(&host, &server, &["--exercise"]);
    report.claim("spec_type").is("confirmed");
    report.witness("traffic", "spoke").witness("log", "spoke");
}

#[test]
fn a_host_that_forwards_nothing_leaves_gaps_and_no_verdict_on_the_server() {
    let Some(lab) = Lab::open() else { return };
    let Some(host) = Host::with(&lab, "AllowTcpForwarding no") else { return };
    let server = lab.serve(TinyModel::Dense).start();
    let report = host.verify(&format!("ssh://box/{}", server.target()), &[]);
    assert_eq!(report.run.code, 0, "{:#}", report.json);
    report.claim("model").is("confirmed");
    let notes = report.json["witnesses"].as_array().expect("witnesses");
    let props = notes.iter().find(|note| note["name"] == "props").expect("a note");
    assert!(props["note"].as_str().is_some_and(|note| note.contains("--push")), "{props:#}");
    let pushed = host.verify(&format!("ssh://box/{}", server.target()), &["--push"]);
    pushed.witness("props", "spoke");
}

#[test]
fn another_process_on_the_port_is_found_there_too() {
    let Some(lab) = Lab::open() else { return };
    let Some(host) = Host::open(&lab) else { return };
    let first = lab.serve(TinyModel::Dense).args(&["--reuse-port"]).start();
    let second = lab.serve(TinyModel::Dense).args(&["--reuse-port"]).port(first.port).spawn();
    let until = Instant::now() + Duration::from_secs(20);
    while !second.log().contains("listening on http://") && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    let target = format!("ssh://box/{}", second.target());
    let (local, plain) = (lab.verify(&second.target(), &[]), host.verify(&target, &[]));
    assert_eq!((local.run.code, plain.run.code), (4, 4));
    assert_eq!(local.json["answer"], plain.json["answer"]);
}

#[test]
fn a_master_connection_of_the_users_is_used_and_left_alone() {
    let Some(lab) = Lab::open() else { return };
    let Some(mut host) = Host::open(&lab) else { return };
    let server = lab.serve(TinyModel::Dense).start();
    let folder = tempfile::Builder::new().prefix("m").tempdir_in("/tmp").expect("a folder");
    let socket = folder.path().join("%C");
    host.client = format!("Host *\n ControlMaster auto\n ControlPath {}\n ControlPersist 30\n", socket.display());
    let target = format!("ssh://box/{}", server.target());
    host.verify(&target, &[]).witness("props", "spoke");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "the master stays");
    host.verify(&target, &[]).witness("props", "spoke");
    let command = host.command();
    let ended = Command::new("sh").args(["-c", &format!("{command} -O exit box")]).stderr(Stdio::null()).status();
    assert!(ended.expect("ssh runs").success());
}

#[test]
fn what_login_scripts_write_does_no_harm() {
    let Some(lab) = Lab::open() else { return };
    let script =
        "echo 'Welcome!'; printf '\\033[31m%s' 'no line break'; echo noise >&2; eval \"$SSH_ORIGINAL_COMMAND\"";
    let Some(host) = Host::through(&lab, script) else { return };
    let server = lab.serve(TinyModel::Dense).start();
    all_ways(&host, &server, &[]);
}

/// Each of these must end with exit code 2 and say what was wrong and what to do about it.
#[track_caller]
fn fails(run: &Run, words: &[&str]) {
    run.ends(2).complains("error: ").complains("hint: ");
    for words in words {
        run.complains(words);
    }
    assert!(run.stdout.is_empty(), "{}", run.stdout);
}

#[test]
fn a_host_that_cannot_be_reached() {
    let Some(lab) = Lab::open() else { return };
    let Some(mut host) = Host::open(&lab) else { return };
    host.client =
        format!("Host stranger\n IdentityFile {}\n HostName 127.0.0.1\n Port {}\n", lab.text("other_key"), host.port);
    // A key that is not let in; the one that is must not be tried.
    let command = host.command();
    let only = format!("{command} -o IdentityFile={} -o IdentityAgent=none", lab.text("other_key"));
    fs::remove_file(lab.path("authorized_keys")).expect("removed");
    fs::copy(lab.path("other_key.pub"), lab.path("spare")).expect("copied");
    let run = lab.ascertain_with(&["verify", "ssh://box/pid:1"], &[("ASCERTAIN_SSH", &only)]);
    fails(&run, &["cannot reach box: permission denied", "ssh-add"]);
    fs::copy(lab.path("key.pub"), lab.path("authorized_keys")).expect("copied");
    // A host key that nobody has seen, and one that has changed.
    let unknown = format!("{command} -o UserKnownHostsFile={}", lab.text("none_known"));
    let run = lab.ascertain_with(&["verify", "ssh://box/pid:1"], &[("ASCERTAIN_SSH", &unknown)]);
    fails(&run, &["its host key is not known", "log in once by hand"]);
    let other = fs::read_to_string(lab.path("other_key.pub")).expect("a key");
    let changed = lab.write("changed", format!("[127.0.0.1]:{} {other}", host.port));
    let changed = format!("{command} -o UserKnownHostsFile={}", changed.display());
    let run = lab.ascertain_with(&["verify", "ssh://box/pid:1"], &[("ASCERTAIN_SSH", &changed)]);
    fails(&run, &["another host key", "ssh-keygen -R"]);
    // No such name, nobody there, and somebody who never says a word.
    fails(&host.ascertain(&["verify", "ssh://no-such-host.invalid/pid:1"]), &["no host of that name"]);
    let free = free_port();
    fails(&host.ascertain(&["verify", &format!("ssh://127.0.0.1:{free}/pid:1")]), &["connection refused"]);
    let silent = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = silent.local_addr().expect("an address").port();
    let run = host.ascertain(&["verify", &format!("ssh://127.0.0.1:{port}/pid:1"), "--timeout", "1"]);
    fails(&run, &["does not answer", "--timeout"]);
    assert!(run.took < Duration::from_secs(8), "{:?}", run.took);
}

#[test]
fn a_connection_that_falls_silent_ends_in_time() {
    let Some(lab) = Lab::open() else { return };
    // The answer begins, and then the other end stops without a word, as if its host had lost power.
    let script = "sh -c \"$SSH_ORIGINAL_COMMAND\" | { dd bs=1 count=400 2>/dev/null; kill -STOP $PPID; sleep 20; kill -CONT $PPID; }";
    let Some(host) = Host::through(&lab, script) else { return };
    let server = lab.serve(TinyModel::Dense).start();
    for push in [&[][..], &["--push"]] {
        let target = format!("ssh://box/{}", server.target());
        let run = host.ascertain(&[&["verify", &target, "--timeout", "1"], push].concat());
        fails(&run, &["box", "answer"]);
        assert!(run.took < Duration::from_secs(10), "{:?}", run.took);
    }
    let stopped = Command::new("sh").args(["-c", "kill -CONT $(pgrep -f 'sshd: .*@notty') 2>/dev/null; true"]).status();
    assert!(stopped.expect("sh runs").success());
}

#[test]
fn what_no_host_should_answer() {
    let Some(lab) = Lab::open() else { return };
    let hello = "printf '%s hello 0 Linux x86_64\n. \n' \"$mark\"";
    for (name, script) in [
        ("nothing of the kind", "cat /dev/urandom | head -c 100000"),
        ("an end after the greeting", hello),
        ("a greeting without a user", "printf '%s hello nobody Linux x86_64\n. \n' \"$mark\"; sleep 30"),
        ("no base64", &format!("{hello}; printf '%s absent\n*** \n. \n' \"$mark\"; sleep 30")),
        ("no mark", &format!("{hello}; printf 'another absent\n. \n'; sleep 30")),
        ("an answer that is too long", &format!("{hello}; printf '%s ok\n' \"$mark\"; yes QUFBQUFBQUFBQUFB")),
        ("a line without an end", &format!("{hello}; printf '%s ok\n' \"$mark\"; cat /dev/zero | tr '\\0' A")),
        ("an end that is no base64", &format!("{hello}; printf '%s absent\n. ?\n' \"$mark\"; sleep 30")),
        ("escapes", "printf '\\033]0;title\\007\\033[31mno\\n' >&2; exit 255"),
    ] {
        let text = format!("#!/bin/sh\n[ \"$1\" = -G ] && exit 1\nread -r line; mark=${{line#mark=}}\n{script}\n");
        let ssh = lab.write("ssh", text);
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).expect("a mode");
        let command = ssh.to_str().expect("UTF-8");
        let run = lab.ascertain_with(&["verify", "ssh://box/pid:1", "--timeout", "1"], &[("ASCERTAIN_SSH", command)]);
        assert_eq!(run.code, 2, "{name}: {}", run.stderr);
        fails(&run, &["box"]);
        assert!(run.took < Duration::from_secs(9), "{name}: {:?}", run.took);
        assert!(!run.stderr.contains('\u{1b}'), "{name}: {:?}", run.stderr);
    }
}

#[test]
fn a_host_without_the_commands_that_it_takes() {
    let Some(lab) = Lab::open() else { return };
    let folder = lab.path("few");
    fs::create_dir_all(&folder).expect("a folder");
    let link = |name: &str| {
        let path =
            ["/bin", "/usr/bin"].map(|folder| Path::new(folder).join(name)).into_iter().find(|path| path.exists());
        let _ = std::os::unix::fs::symlink(path.expect("a command"), folder.join(name));
    };
    ["sh", "head", "cat", "id"].into_iter().for_each(link);
    let script = format!("PATH={} exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"", folder.display());
    let Some(host) = Host::through(&lab, &script) else { return };
    let run = host.ascertain(&["verify", "ssh://box/pid:1"]);
    fails(&run, &["on box: commands that every host should have are missing: base64 grep ls stat tail tr uname"]);
    fs::remove_file(folder.join("head")).expect("removed");
    fails(&host.ascertain(&["verify", "ssh://box/pid:1"]), &["on box: no POSIX shell", "head"]);
    fs::remove_file(folder.join("sh")).expect("removed");
    fails(&host.ascertain(&["verify", "ssh://box/pid:1"]), &["on box: no POSIX shell could be started", "sh"]);
    let Some(host) = Host::with(&lab, "ForceCommand /bin/echo This account is not available.") else { return };
    fails(&host.ascertain(&["verify", "ssh://box/pid:1"]), &["on box: no POSIX shell could be started"]);
    let Some(host) = Host::with(&lab, "ForceCommand yes 'a login script that never ends'") else { return };
    fails(&host.ascertain(&["verify", "ssh://box/pid:1"]), &["on box: the login shell writes more than"]);
}

#[test]
fn a_copy_that_cannot_be_made_or_trusted() {
    let Some(lab) = Lab::open() else { return };
    let Some(host) = Host::open(&lab) else { return };
    let server = lab.serve(TinyModel::Dense).start();
    let target = format!("ssh://box/{}", server.target());
    let modes = |path: &str, mode: u32| {
        fs::set_permissions(lab.path(path), fs::Permissions::from_mode(mode)).expect("a mode");
    };
    host.verify(&target, &["--push"]);
    let [copy] = host.pushed().try_into().expect("one copy");
    // A copy that somebody changed is not run, and replaced only when that is allowed.
    let whole = fs::read(&copy).expect("a copy");
    fs::write(&copy, "#!/bin/sh\ntouch /tmp/ascertain-ran-this\n").expect("changed");
    host.verify(&target, &[]).witness("host", "partial");
    assert!(!Path::new("/tmp/ascertain-ran-this").exists());
    host.verify(&target, &["--push"]);
    assert!(fs::read(&copy).expect("a copy") == whole);
    // Nor is one where others can write.
    modes("cache/ascertain", 0o777);
    host.verify(&target, &[]).witness("host", "partial");
    fails(
        &host.ascertain(&["verify", &target, "--push"]),
        &["on box: this program cannot be kept there", "others may write"],
    );
    modes("cache/ascertain", 0o700);
    // Nor one in a directory of somebody else's.
    if Command::new("chown").args(["12345"]).arg(lab.path("cache/ascertain")).status().is_ok_and(|done| done.success())
    {
        host.verify(&target, &[]).witness("host", "partial");
        fails(&host.ascertain(&["verify", &target, "--push"]), &["does not belong to the user"]);
    }
    fs::remove_dir_all(lab.path("cache")).expect("removed");
    fs::write(lab.path("cache"), "no directory").expect("a file");
    fails(&host.ascertain(&["verify", &target, "--push"]), &["on box: this program cannot be kept there"]);
    fs::remove_file(lab.path("cache")).expect("removed");
    // A full disk.
    fs::create_dir(lab.path("cache")).expect("a folder");
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=1m,mode=700", "none"]).arg(lab.path("cache"));
    if mount.stderr(Stdio::null()).status().is_ok_and(|done| done.success()) {
        let run = host.ascertain(&["verify", &target, "--push"]);
        let left: Vec<_> = walk(&lab.path("cache"));
        let unmounted = Command::new("umount").arg("-l").arg(lab.path("cache")).status();
        assert!(unmounted.expect("umount runs").success());
        fails(&run, &["on box: copying this program failed", "No space left", "XDG_CACHE_HOME"]);
        assert!(left.is_empty(), "{left:?}");
    } else {
        eprintln!("not tested: a full disk, since no file system may be mounted here");
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn a_host_of_another_kind_gets_no_copy() {
    let Some(lab) = Lab::open() else { return };
    let uname = lab.write("bin/uname", "#!/bin/sh\n[ \"$1\" = -s ] && echo Linux || echo aarch64\n");
    fs::set_permissions(&uname, fs::Permissions::from_mode(0o755)).expect("a mode");
    let script = format!("PATH={}:$PATH exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"", lab.text("bin"));
    let Some(host) = Host::through(&lab, &script) else { return };
    let server = lab.serve(TinyModel::Dense).start();
    let target = format!("ssh://box/{}", server.target());
    let run = host.ascertain(&["verify", &target, "--push"]);
    fails(&run, &["on box: this program is for Linux on ", "Linux on aarch64", "leave out --push"]);
    host.verify(&target, &[]).is("confirmed", 0);
}

#[test]
fn root_is_become_only_on_demand_and_without_a_question() {
    let Some(lab) = Lab::open() else { return };
    let sudo = lab.write(
        "bin/sudo",
        format!(
            "#!/bin/sh\nprintf '%s\n' \"$*\" >>{}\n[ \"$1\" = -n ] || exit 1\n[ \"$2\" = -H ] && shift\nshift\nexec \"$@\"\n",
            lab.text("asked")
        ),
    );
    fs::set_permissions(&sudo, fs::Permissions::from_mode(0o755)).expect("a mode");
    let script = format!("PATH={}:$PATH exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"", lab.text("bin"));
    let Some(host) = Host::through(&lab, &script) else { return };
    let server = lab.serve(TinyModel::Dense).start();
    let target = format!("ssh://box/{}", server.target());
    host.verify(&target, &[]).is("confirmed", 0);
    assert!(!lab.path("asked").exists());
    host.verify(&target, &["--sudo"]).is("confirmed", 0);
    assert!(fs::read_to_string(lab.path("asked")).expect("asked").starts_with("-n -H sh -c"));
    lab.write("bin/sudo", "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n");
    fails(&host.ascertain(&["verify", &target, "--sudo"]), &["on box: sudo wants a password", "NOPASSWD"]);
    fs::remove_file(lab.path("bin/sudo")).expect("removed");
    if !Path::new("/usr/bin/sudo").exists() {
        fails(&host.ascertain(&["verify", &target, "--sudo"]), &["on box: sudo does not do it", "not found"]);
    }
}

#[test]
fn without_an_ssh_client() {
    let Some(lab) = Lab::open() else { return };
    let run = lab.ascertain_with(&["verify", "ssh://box/pid:1"], &[("PATH", "/nowhere"), ("ASCERTAIN_SSH", "")]);
    fails(&run, &["there is no ssh", "openssh-client", "ASCERTAIN_SSH"]);
    let run = lab.ascertain_with(&["verify", "ssh://box/pid:1"], &[("ASCERTAIN_SSH", "/no/such/ssh -v")]);
    fails(&run, &["there is no /no/such/ssh"]);
    let run = lab.ascertain_with(&["verify", "ssh://box/pid:1"], &[("ASCERTAIN_SSH", "ssh 'open")]);
    fails(&run, &["ASCERTAIN_SSH is no command"]);
    let run = lab.ascertain_with(&["verify", "ssh://box/pid:1"], &[("ASCERTAIN_SSH", "ssh -o NoSuchOption=yes")]);
    fails(&run, &["ssh does not accept its configuration", "ASCERTAIN_SSH"]);
}

#[test]
fn a_dry_run_prints_commands_and_connects_to_nothing() {
    let Some(lab) = Lab::open() else { return };
    let fake = [("ASCERTAIN_SSH", "/no/such/ssh -F 'a file'")];
    let words = ["verify", "--dry-run", "ssh://me@llm-two:2222/qwen3", "--push", "--sudo", "--timeout", "7"];
    let run = lab.ascertain_with(&words, &fake);
    run.ends(0);
    for words in [
        "run     /no/such/ssh -F 'a file' -T -o BatchMode=yes -o ConnectTimeout=7 ",
        " -l me -p 2222 -- llm-two 'sudo -n -H sh -c ",
        "write   ${XDG_CACHE_HOME:-~/.cache}/ascertain/",
        "run     ascertain capture -o - --timeout 7 -- qwen3",
    ] {
        run.shows(words);
    }
    let run = lab.ascertain_with(&["verify", "--dry-run", "ssh://llm-two/:8080"], &fake);
    run.ends(0).shows("-W 127.0.0.1:8080 -- llm-two");
    assert!(!run.stdout.contains("write "), "{}", run.stdout);
}

#[test]
fn what_is_no_ssh_target() {
    let Some(lab) = Lab::open() else { return };
    // It would be made by anything that runs a command.
    let made = lab.text("made");
    for target in [
        format!("ssh://-oProxyCommand=touch${{IFS}}{made}/pid:1"),
        format!("ssh://me@-oProxyCommand=touch%20{made}/x"),
        format!("ssh://box;touch {made}/x"),
        "ssh:///pid:1".to_string(),
        "ssh://box:99999/pid:1".to_string(),
        "ssh://a b/pid:1".to_string(),
        "ssh://box/-o".to_string(),
        "ssh://box/8080".to_string(),
        "ssh://box/pid:x".to_string(),
        "ssh://box/ssh://other/pid:1".to_string(),
    ] {
        let run = lab.ascertain_with(&["verify", &target], &[("ASCERTAIN_SSH", "/no/such/ssh")]);
        run.ends(2).complains("hint: ");
        assert!(!run.stderr.contains("/no/such/ssh"), "{target} was taken: {}", run.stderr);
    }
    let run = lab.ascertain_with(&["verify", "ssh://me:secret-word@box/pid:1"], &[("ASCERTAIN_SSH", "/no/such/ssh")]);
    run.ends(2).complains("a password in an ssh:// target is not used");
    assert!(!run.stderr.contains("secret-word"));
    lab.ascertain(&["verify", "pid:1", "--push"]).ends(2).complains("--push is for targets on other hosts");
    lab.ascertain(&["verify", "pid:1", "--sudo"]).ends(2).complains("--sudo is for targets on other hosts");
    assert!(!Path::new(&made).exists() && get(1, "/").is_none());
}
