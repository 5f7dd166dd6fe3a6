//! A machine of its own for a test: systemd, a journal and services, started by tests/testbed/host and gone with the test.

use crate::support::{Lab, Report, Run};
use ascertain_engines::llama_cpp::tiny_model::TinyModel;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Makes it a failure that no host can be started here.
const REQUIRE: &str = "ASCERTAIN_REQUIRE_HOST";
/// The real server, as units call it. Its folder is shared with the host.
pub const SERVER: &str = "/opt/llama/llama-server";
/// Where models are.
const MODELS: &str = "/opt/models";
/// Where units are.
const UNITS: &str = "/etc/systemd/system";
/// What one thing may take. It takes a fraction of a second; this is for a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A host that runs; it is ended when dropped, or when the test is killed.
pub struct Host {
    /// Ends with its standard input.
    supervisor: Child,
    testbed: PathBuf,
    state: PathBuf,
    /// Its root directory, seen from here.
    root: PathBuf,
    models: PathBuf,
    /// Last, because the others live in its folder.
    lab: Lab,
}

impl Host {
    /// A host, or nothing when none can be started here and none is demanded.
    pub fn boot() -> Option<Host> {
        let demanded = std::env::var_os(REQUIRE).is_some_and(|value| value == "1");
        let Some(lab) = Lab::open() else {
            assert!(
                !demanded,
                "{REQUIRE}=1, and there is no server to run on a host: run scripts/test, which installs one"
            );
            return None;
        };
        let testbed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/testbed/host");
        let check = Command::new(&testbed).arg("check").stdin(Stdio::null()).output().expect("the testbed runs");
        if !check.status.success() {
            let why = String::from_utf8_lossy(&check.stderr);
            assert!(!demanded, "{REQUIRE}=1, and no host can be started here:\n{why}");
            eprintln!("skipped: no host can be started here:\n{why}");
            return None;
        }
        let models = lab.path("models");
        fs::create_dir(&models).expect("a folder for models");
        let state = lab.path("host");
        let server = fs::canonicalize(lab.server()).expect("the server");
        let mut supervisor = Command::new(&testbed)
            .arg("run")
            .arg(&state)
            .args(["--share", concat!(env!("CARGO_BIN_EXE_ascertain"), "=/usr/local/bin/ascertain")])
            .arg("--share")
            .arg(format!("{}=/opt/llama", server.parent().expect("a folder").display()))
            .arg("--share")
            .arg(format!("{}={MODELS}", models.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the testbed runs");
        let mut said = String::new();
        BufReader::new(supervisor.stdout.take().expect("its output")).read_line(&mut said).expect("a line");
        assert_eq!(said, "ready\n", "the host did not boot");
        let pid = Command::new(&testbed).arg("pid").arg(&state).output().expect("the testbed runs").stdout;
        let pid = String::from_utf8(pid).expect("a number");
        let root = PathBuf::from(format!("/proc/{}/root", pid.trim()));
        Some(Host { supervisor, testbed, state, root, models, lab })
    }

    /// A file of the host, seen from here. No part of the path may be a symbolic link.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.strip_prefix('/').expect("an absolute path"))
    }

    /// Writes a file on the host.
    #[track_caller]
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let here = self.path(path);
        fs::create_dir_all(here.parent().expect("a parent")).expect("a folder");
        fs::write(here, content).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Writes a program on the host.
    #[track_caller]
    pub fn program(&self, path: &str, content: &str) {
        use std::os::unix::fs::PermissionsExt;
        self.write(path, content);
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).expect("a program");
    }

    /// Removes a file of the host.
    #[track_caller]
    pub fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Writes a service of the system, and does not tell systemd.
    #[track_caller]
    pub fn edit(&self, name: &str, content: &str) {
        self.write(&format!("{UNITS}/{name}.service"), content);
    }

    /// Writes a drop-in of a service, and does not tell systemd.
    #[track_caller]
    pub fn drop_in(&self, name: &str, file: &str, content: &str) {
        self.write(&format!("{UNITS}/{name}.service.d/{file}.conf"), content);
    }

    /// The path of a model there.
    pub fn model(&self, model: TinyModel) -> String {
        let here = self.models.join(model.file_name());
        if !here.exists() {
            fs::write(&here, model.bytes()).expect("a model");
        }
        format!("{MODELS}/{}", model.file_name())
    }

    /// The beginning of a command line: the server, a model, and a port of 127.0.0.1.
    pub fn serve(&self, model: TinyModel, port: u16) -> String {
        format!("{SERVER} -m {} --host 127.0.0.1 --port {port}", self.model(model))
    }

    /// Runs a command inside, as root. One that hangs is ended, and then its exit code is 124.
    pub fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(&self.testbed);
        let patience = PATIENCE.as_secs().to_string();
        command.arg("sh").arg(&self.state).args(["timeout", "--kill-after=5", &patience]).args(words);
        command.stdin(Stdio::null());
        command.output().expect("the testbed runs")
    }

    /// The output of a command that must succeed, without the last line break.
    #[track_caller]
    pub fn get(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {}\n{stderr}{}", output.status, self.journal());
        String::from_utf8_lossy(&output.stdout).trim_end().to_string()
    }

    /// The output of a shell script that must succeed.
    #[track_caller]
    pub fn sh(&self, script: &str) -> String {
        self.get(&["bash", "-euc", script])
    }

    /// `systemctl …`, which must succeed.
    #[track_caller]
    pub fn systemctl(&self, words: &[&str]) -> String {
        self.get(&[&["systemctl"], words].concat())
    }

    /// Tells systemd that files changed.
    #[track_caller]
    pub fn reload(&self) {
        self.systemctl(&["daemon-reload"]);
    }

    /// Writes a service, starts it and waits until its server answers.
    #[track_caller]
    pub fn start(&self, name: &str, port: u16, content: &str) {
        self.edit(name, content);
        self.reload();
        self.restart(name, port);
    }

    /// Restarts a service and waits until its server answers.
    #[track_caller]
    pub fn restart(&self, name: &str, port: u16) {
        self.systemctl(&["restart", name]);
        self.answers(port);
    }

    /// Waits until a server answers on this port.
    #[track_caller]
    pub fn answers(&self, port: u16) {
        let ask = r#"
            ask() {
                exec 3<>"/dev/tcp/127.0.0.1/$0" && printf 'GET /health HTTP/1.0\r\n\r\n' >&3 && read -r _ code _ <&3
            } 2>/dev/null
            code=
            for ((tries = 0; tries < 2000; tries++)); do
                (ask; [ "$code" = 200 ]) && exit 0
                sleep 0.02
            done
            exit 1"#;
        let output = self.run(&["bash", "-c", ask, &port.to_string()]);
        assert!(output.status.success(), "nothing answers on port {port}\n{}", self.journal());
    }

    /// A property of a service, as systemd holds it.
    #[track_caller]
    pub fn property(&self, name: &str, property: &str) -> String {
        self.systemctl(&["show", "--value", "--property", property, name])
    }

    /// The PID of the main process of a service, as seen on the host.
    #[track_caller]
    pub fn pid(&self, name: &str) -> u32 {
        self.property(name, "MainPID").parse().expect("a PID")
    }

    /// The PID of the process that listens on a port.
    #[track_caller]
    pub fn listener(&self, port: u16) -> u32 {
        let line = self.get(&["ss", "-Hltnp", &format!("sport = :{port}")]);
        let pid = line.split_once("pid=").and_then(|(_, rest)| rest.split(',').next()?.parse().ok());
        pid.unwrap_or_else(|| panic!("nobody listens on {port}: {line:?}"))
    }

    /// Waits for something.
    #[track_caller]
    pub fn until(&self, what: &str, mut happens: impl FnMut() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !happens() {
            assert!(Instant::now() < end, "in vain: {what}\n{}", self.journal());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// How many lines the journal holds of the service's present invocation, written by its own processes.
    #[track_caller]
    pub fn lines(&self, name: &str) -> usize {
        let invocation = format!("_SYSTEMD_INVOCATION_ID={}", self.property(name, "InvocationID"));
        self.get(&["journalctl", "-q", "-o", "cat", "--no-pager", &invocation]).lines().count()
    }

    /// Runs the program, as root.
    pub fn ascertain(&self, words: &[&str]) -> Run {
        self.timed(&[], words)
    }

    /// Runs the program as the ordinary user, with the session variables that a login sets.
    #[track_caller]
    pub fn ascertain_as_user(&self, words: &[&str]) -> Run {
        let runtime = format!("XDG_RUNTIME_DIR=/run/user/{}", self.get(&["id", "-u", USER]));
        self.timed(&["runuser", "-u", USER, "--", "env", "HOME=/home/llm", "USER=llm", &runtime], words)
    }

    fn timed(&self, before: &[&str], words: &[&str]) -> Run {
        let began = Instant::now();
        let output = self.run(&[before, &["ascertain"], words].concat());
        Run::of(words, output, began.elapsed())
    }

    /// `ascertain verify … --format json` here, of a target on that host, over SSH as this user.
    #[track_caller]
    pub fn verify_from_here(&self, user: &str, target: &str, more: &[&str]) -> Report {
        let ssh = format!("ssh -F '{}/ssh_config'", self.state.display());
        let target = format!("ssh://{user}@testbed/{target}");
        let words = [&["verify", &target, "--format", "json"], more].concat();
        self.lab.ascertain_with(&words, &[("ASCERTAIN_SSH", ssh.as_str())]).report()
    }

    /// `ascertain verify … --format json`, as root.
    #[track_caller]
    pub fn verify(&self, target: &str) -> Report {
        self.ascertain(&["verify", target, "--format", "json"]).report()
    }

    /// The end of the journal, for those who look for what went wrong.
    fn journal(&self) -> String {
        let output = self.run(&["journalctl", "-q", "--no-pager", "-n", "40", "-o", "short-monotonic"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Its standard input ends.
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}

/// The ordinary user that exists on the host.
pub const USER: &str = "llm";

/// What a report says that has no fixed place in it.
impl Report {
    /// Expects a finding whose text holds all these words.
    #[track_caller]
    pub fn mentions(&self, words: &[&str]) -> &Self {
        let all = self.json["findings"].as_array().expect("findings");
        let found = all.iter().any(|finding| {
            let text = finding["text"].as_str().expect("a text");
            words.iter().all(|word| text.contains(word))
        });
        assert!(found, "no finding with {words:?}: {:#}", self.json["findings"]);
        self
    }

    /// Expects that this is why the service failed, or who answers in its place.
    #[track_caller]
    pub fn why(&self, words: &[&str]) -> &Self {
        let why = self.json["invocation"]["why"].as_str().unwrap_or_default();
        assert!(words.iter().all(|word| why.contains(word)), "{words:?} is not why: {:#}", self.json["invocation"]);
        self
    }

    /// Expects these words somewhere.
    #[track_caller]
    pub fn advises(&self, words: &str) -> &Self {
        assert!(self.json.to_string().contains(words), "{words:?} is not in {:#}", self.json);
        self
    }

    /// A claim as it is, for what may be one thing or another.
    #[track_caller]
    pub fn raw(&self, setting: &str) -> &Value {
        let all = self.json["claims"].as_array().expect("claims");
        all.iter().find(|claim| claim["setting"] == setting).unwrap_or_else(|| panic!("no claim {setting}: {all:#?}"))
    }

    /// Expects that all is as written: exit code 0, and nothing found against any claim.
    #[track_caller]
    pub fn has_no_objection(&self) -> &Self {
        for claim in self.json["claims"].as_array().expect("claims") {
            let verdict = claim["verdict"].as_str().expect("a verdict");
            assert!(["confirmed", "adjusted", "unproven", "not_applicable"].contains(&verdict), "{claim:#}");
        }
        assert_eq!(self.json["invocation"]["state"], "running");
        assert_eq!(self.run.code, 0, "{:#}", self.json);
        self
    }

    /// Expects that no claim was judged one way or the other.
    #[track_caller]
    pub fn judges_nothing(&self) -> &Self {
        for claim in self.json["claims"].as_array().expect("claims") {
            assert_eq!((&claim["effective"], &claim["rung"]), (&Value::Null, &Value::Null), "{claim:#}");
            let verdict = claim["verdict"].as_str().expect("a verdict");
            assert!(!["confirmed", "adjusted", "contradicted", "divided"].contains(&verdict), "{claim:#}");
        }
        self
    }

    /// How the log fared, and what is said about it.
    #[track_caller]
    pub fn log(&self) -> (&str, &str) {
        let all = self.json["witnesses"].as_array().expect("witnesses");
        let log = all.iter().find(|witness| witness["name"] == "log").expect("a witness log");
        (log["state"].as_str().expect("a state"), log["note"].as_str().expect("a note"))
    }
}
