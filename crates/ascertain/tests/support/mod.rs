//! Real servers, started and stopped by tests, and reports that say what they hold when an expectation fails.

use ascertain_engines::llama_cpp::tiny_model::TinyModel;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Names the server to start.
const SERVER: &str = "ASCERTAIN_LLAMA_SERVER";
/// Makes its absence a failure.
const REQUIRE: &str = "ASCERTAIN_REQUIRE_LIVE";
/// A tiny model is served after a tenth of a second. This is for a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with models, a home of its own and a real server to start. Everything is removed when it is dropped.
pub struct Lab {
    folder: TempDir,
    server: PathBuf,
}

impl Lab {
    /// A lab, or nothing when there is no server to start and none is demanded.
    pub fn open() -> Option<Lab> {
        let Some(server) = std::env::var_os(SERVER).filter(|path| !path.is_empty()).map(PathBuf::from) else {
            let demanded = std::env::var_os(REQUIRE).is_some_and(|value| value == "1");
            assert!(!demanded, "{REQUIRE}=1, and {SERVER} names no llama-server: run scripts/test, which installs one");
            eprintln!("skipped: {SERVER} names no llama-server; scripts/test installs one");
            return None;
        };
        assert!(server.is_file(), "{SERVER} names {}, which is no file", server.display());
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("home")).expect("a home");
        Some(Lab { folder, server })
    }

    /// The real server.
    pub fn server(&self) -> &Path {
        &self.server
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The same, as text for a command line.
    pub fn text(&self, name: &str) -> String {
        text(&self.path(name))
    }

    /// A file with this content.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(&path, content).expect("a file");
        path
    }

    /// The file of a model.
    pub fn model(&self, model: TinyModel) -> String {
        let path = self.path(model.file_name());
        if !path.exists() {
            fs::write(&path, model.bytes()).expect("a model");
        }
        text(&path)
    }

    /// A server of this model on a port of its own, to be told more and then started.
    pub fn serve(&self, model: TinyModel) -> Launch<'_> {
        let model = self.model(model);
        self.launch(&["-m", &model])
    }

    /// A server with these words and a port of its own.
    pub fn launch(&self, words: &[&str]) -> Launch<'_> {
        let words = words.iter().map(ToString::to_string).collect();
        Launch { lab: self, words, environment: Vec::new(), port: None, log: Log::File }
    }

    /// Runs the program.
    pub fn ascertain(&self, words: &[&str]) -> Run {
        self.ascertain_with(words, &[])
    }

    /// Runs the program with variables.
    pub fn ascertain_with(&self, words: &[&str], environment: &[(&str, &str)]) -> Run {
        let began = Instant::now();
        let output = self
            .clean(Path::new(env!("CARGO_BIN_EXE_ascertain")))
            .args(words)
            .env(SERVER, &self.server)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .output()
            .expect("ascertain runs");
        Run::of(words, output, began.elapsed())
    }

    /// `ascertain verify … --format json`.
    pub fn verify(&self, target: &str, more: &[&str]) -> Report {
        self.ascertain(&[&["verify", target, "--format", "json"], more].concat()).report()
    }

    /// A command that sees nothing of what configures servers of the person who runs the tests.
    fn clean(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LLAMA_") {
                command.env_remove(name);
            }
        }
        command.env("HOME", self.path("home")).env_remove("XDG_CONFIG_HOME").env_remove("COLUMNS");
        command
    }
}

/// Where a server's output goes.
enum Log {
    File,
    Tee,
}

/// A server that is about to be started.
pub struct Launch<'a> {
    lab: &'a Lab,
    words: Vec<String>,
    environment: Vec<(String, String)>,
    port: Option<u16>,
    log: Log,
}

impl Launch<'_> {
    /// More words for its command line.
    pub fn args(mut self, words: &[&str]) -> Self {
        self.words.extend(words.iter().map(ToString::to_string));
        self
    }

    /// A variable of its environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_string(), value.to_string()));
        self
    }

    /// Exactly this port, whoever holds it.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Its output goes through a pipe to `tee`, as with `llama-server … 2>&1 | tee FILE`.
    pub fn through_tee(mut self) -> Self {
        self.log = Log::Tee;
        self
    }

    /// Starts it and waits until it is ready.
    #[track_caller]
    pub fn start(&self) -> Server {
        for _ in 0..5 {
            match self.run() {
                Ok(server) => return server,
                // Somebody took the free port in the meantime.
                Err(ended) if self.port.is_none() && ended.log.contains("couldn't bind") => {}
                Err(ended) => panic!("the server ended with {}:\n{}", ended.status, ended.log),
            }
        }
        panic!("no port stayed free for long enough");
    }

    /// Starts it and waits until it ends, which it must do by itself.
    #[track_caller]
    pub fn start_in_vain(&self) -> Ended {
        match self.run() {
            Ok(server) => panic!("the server was to end by itself, and is ready:\n{}", server.log()),
            Err(ended) => ended,
        }
    }

    /// Starts it and does not wait for anything.
    pub fn spawn(&self) -> Server {
        let port = self.port.unwrap_or_else(free_port);
        let port_text = port.to_string();
        let mut argv = vec![text(&self.lab.server)];
        argv.extend(self.words.iter().cloned());
        argv.extend(["--host", "127.0.0.1", "--port", &port_text].map(String::from));
        let logs = (0..).map(|number| self.lab.path(&format!("log-{number}.txt")));
        let log = logs.into_iter().find(|path| !path.exists()).expect("a free name");
        let mut command = self.lab.clean(&self.lab.server);
        command.args(&argv[1..]).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        let tee = match self.log {
            Log::File => {
                let _ = fs::remove_file(&log);
                // As `>> FILE`, so that others can write to it too.
                let file = File::options().create(true).append(true).open(&log).expect("a log");
                command.stderr(file.try_clone().expect("a second handle")).stdout(file);
                None
            }
            Log::Tee => {
                let (reader, writer) = io::pipe().expect("a pipe");
                command.stderr(writer.try_clone().expect("a second handle")).stdout(writer);
                let mut tee = Command::new("tee");
                tee.arg(&log).stdin(reader).stdout(Stdio::null()).stderr(Stdio::null());
                Some(tee.spawn().expect("tee runs"))
            }
        };
        let child = command.spawn().expect("the server runs");
        Server { child, tee, port, log, argv, environment: self.environment.clone() }
    }

    fn run(&self) -> Result<Server, Ended> {
        let mut server = self.spawn();
        let until = Instant::now() + PATIENCE;
        loop {
            // First whether it lives: on a port that it could not get, somebody else answers.
            if let Some(status) = server.child.try_wait().expect("a child can be asked") {
                let (argv, environment) = (server.argv.clone(), server.environment.clone());
                return Err(Ended { status, log: server.log(), argv, environment });
            }
            if server.log().contains("listening on http://") && get(server.port, "/health").is_some_and(is_ok) {
                return Ok(server);
            }
            assert!(Instant::now() < until, "the server is not ready after a minute:\n{}", server.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A server that runs; it is killed when dropped.
pub struct Server {
    child: Child,
    tee: Option<Child>,
    /// Where it was told to listen.
    pub port: u16,
    log: PathBuf,
    argv: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Server {
    /// Its PID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// It as a target.
    pub fn target(&self) -> String {
        format!("pid:{}", self.pid())
    }

    /// What it said.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Adds to its log, as another start with the same file does.
    pub fn append(&self, text: &str) {
        let mut file = File::options().append(true).open(&self.log).expect("its log");
        file.write_all(text.as_bytes()).expect("written");
    }

    /// Sends it a signal.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.pid().to_string()]).status().expect("kill runs");
        assert!(status.success(), "kill -s {name}: {status}");
    }

    /// The status and the body of an answer to a GET.
    pub fn get(&self, path: &str) -> (u16, String) {
        get(self.port, path).expect("an answer")
    }

    /// Waits until it answers, for one whose log does not say when.
    #[track_caller]
    pub fn healthy(self) -> Server {
        let until = Instant::now() + Duration::from_secs(60);
        while get(self.port, "/health").is_none_or(|(status, _)| status != 200) {
            assert!(Instant::now() < until, "the server is not ready");
            std::thread::sleep(Duration::from_millis(10));
        }
        self
    }

    /// The status and the body of an answer to a POST of JSON.
    pub fn post(&self, path: &str, body: &str) -> (u16, String) {
        let length = body.len();
        let request = format!("POST {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n{body}");
        exchange(self.port, &request).expect("an answer")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(tee) = &mut self.tee {
            let _ = tee.wait();
        }
    }
}

/// A server that ended by itself.
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// What it said.
    pub log: String,
    argv: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Ended {
    /// Whether its log holds these words.
    pub fn says(&self, words: &str) -> bool {
        self.log.contains(words)
    }

    /// What a recorder would hand in, as docs/evidence-directory.md says.
    pub fn evidence(&self, lab: &Lab) -> String {
        use std::os::unix::process::ExitStatusExt;
        let environment: serde_json::Map<String, Value> =
            self.environment.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let code = self.status.code().or(self.status.signal().map(|signal| -signal));
        let meta = json!({ "argv": self.argv, "env": environment, "ready": false, "rc": code });
        lab.write("evidence/meta.json", meta.to_string());
        lab.write("evidence/log.txt", &self.log);
        lab.text("evidence")
    }
}

/// What the program did.
pub struct Run {
    words: String,
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Wall time.
    pub took: Duration,
}

impl Run {
    /// What `ascertain` with these words did.
    pub fn of(words: &[&str], output: Output, took: Duration) -> Run {
        Run {
            words: words.join(" "),
            code: output.status.code().expect("ascertain was not ended by a signal"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
            took,
        }
    }

    /// Its output as a report, whose exit code must be that of the program.
    #[track_caller]
    pub fn report(self) -> Report {
        let json: Value = match serde_json::from_str(&self.stdout) {
            Ok(json) => json,
            Err(error) => panic!("ascertain {}: {error}\n{}\n{}", self.words, self.stdout, self.stderr),
        };
        assert_eq!(json["schema"], "ascertain.report/1");
        assert_eq!(json["exit_code"], self.code, "the report and the program must agree");
        Report { json, run: self }
    }

    /// Expects this exit code.
    #[track_caller]
    pub fn ends(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "ascertain {}\n{}\n{}", self.words, self.stdout, self.stderr);
        self
    }

    /// Expects these words on standard error.
    #[track_caller]
    pub fn complains(&self, words: &str) -> &Self {
        assert!(self.stderr.contains(words), "{words:?} is not in:\n{}", self.stderr);
        self
    }

    /// Expects these words on standard output.
    #[track_caller]
    pub fn shows(&self, words: &str) -> &Self {
        assert!(self.stdout.contains(words), "{words:?} is not in:\n{}", self.stdout);
        self
    }
}

/// A report as JSON.
pub struct Report {
    /// The whole.
    pub json: Value,
    /// The run that gave it.
    pub run: Run,
}

impl Report {
    /// Expects a verdict on the whole and its exit code.
    #[track_caller]
    pub fn is(&self, verdict: &str, code: i32) -> &Self {
        assert_eq!((self.json["verdict"].as_str(), self.run.code), (Some(verdict), code), "{}", self.brief());
        self
    }

    /// The claim about a setting, which must be there.
    #[track_caller]
    pub fn claim(&self, setting: &str) -> Claim<'_> {
        let all = self.json["claims"].as_array().expect("claims");
        match all.iter().find(|claim| claim["setting"] == setting) {
            Some(json) => Claim { json },
            None => panic!("no claim about {setting}:\n{}", self.brief()),
        }
    }

    /// How a witness fared: `spoke`, `partial`, `absent` or `failed`.
    #[track_caller]
    pub fn witness(&self, name: &str, state: &str) -> &Self {
        let all = self.json["witnesses"].as_array().expect("witnesses");
        let state_is = all.iter().find(|witness| witness["name"] == name).map(|witness| &witness["state"]);
        assert!(state_is.is_some_and(|is| is == state), "{name} is not {state}: {:#}", self.json["witnesses"]);
        self
    }

    /// Expects a finding of this kind whose text holds these words.
    #[track_caller]
    pub fn finds(&self, kind: &str, words: &str) -> &Self {
        let all = self.json["findings"].as_array().expect("findings");
        let found = all.iter().any(|finding| finding["kind"] == kind && holds(&finding["text"], words));
        assert!(found, "no finding {kind} with {words:?} in {:#}", self.json["findings"]);
        self
    }

    /// Expects a setting that is in force and that nobody asked for.
    #[track_caller]
    pub fn unasked(&self, setting: &str, effective: &str) -> &Self {
        let all = self.json["unasked"].as_array().expect("unasked");
        let found = all.iter().any(|one| one["setting"] == setting && one["effective"] == effective);
        assert!(found, "{setting} = {effective} is not in {:#}", self.json["unasked"]);
        self
    }

    /// Enough to see why an expectation failed.
    fn brief(&self) -> String {
        let claims: Vec<String> = self.json["claims"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|claim| {
                let effect = claim["effect"]["verdict"].as_str().unwrap_or("none");
                format!("{}: {} {}, effect {effect}", claim["setting"], claim["verdict"], claim["effective"])
            })
            .collect();
        format!("{}\n{}\nfindings {:#}", self.json["answer"], claims.join("\n"), self.json["findings"])
    }
}

/// One claim of a report.
pub struct Claim<'a> {
    json: &'a Value,
}

impl Claim<'_> {
    /// Expects this verdict.
    #[track_caller]
    pub fn is(&self, verdict: &str) -> &Self {
        self.field("verdict", verdict)
    }

    /// Expects this value in force.
    #[track_caller]
    pub fn in_force(&self, value: &str) -> &Self {
        self.field("effective", value)
    }

    /// Expects that it was asked for like this.
    #[track_caller]
    pub fn wanted(&self, value: &str) -> &Self {
        self.field("wanted", value)
    }

    /// Expects that the value in force was seen on this rung.
    #[track_caller]
    pub fn on(&self, rung: &str) -> &Self {
        self.field("rung", rung)
    }

    /// Expects this verdict on the effect.
    #[track_caller]
    pub fn effect(&self, verdict: &str) -> &Self {
        assert_eq!(self.json["effect"]["verdict"], verdict, "{:#}", self.json);
        self
    }

    /// Expects that no value in force is shown.
    #[track_caller]
    pub fn in_force_unseen(&self) -> &Self {
        assert!(self.json["effective"].is_null(), "{:#}", self.json);
        self
    }

    /// Expects these words in the explanation.
    #[track_caller]
    pub fn because(&self, words: &str) -> &Self {
        let places = [&self.json["by"]["text"], &self.json["break"]["diagnosis"], &self.json["lacking"]];
        assert!(places.into_iter().any(|text| holds(text, words)), "{words:?} does not explain {:#}", self.json);
        self
    }

    /// Expects these words in what to do about it.
    #[track_caller]
    pub fn remedy(&self, words: &str) -> &Self {
        assert!(holds(&self.json["remedy"], words), "{words:?} is not the remedy of {:#}", self.json);
        self
    }

    /// Expects the chain to break between two rungs.
    #[track_caller]
    pub fn breaks(&self, lower: &str, higher: &str) -> &Self {
        assert_eq!(self.json["break"]["between"], json!([lower, higher]), "{:#}", self.json);
        self
    }

    /// Expects an origin: `argv`, `env` or `file`, a place that holds these words, and whether another has more weight.
    #[track_caller]
    pub fn origin(&self, kind: &str, place: &str, overridden: bool) -> &Self {
        let all = self.json["origin"].as_array().expect("origin");
        let found =
            all.iter().any(|one| one["kind"] == kind && holds(&one["place"], place) && one["overridden"] == overridden);
        assert!(found, "no {kind} origin at {place}, overridden {overridden}: {:#}", self.json["origin"]);
        self
    }

    /// Expects this among the nearest real spellings.
    #[track_caller]
    pub fn nearest(&self, spelling: &str) -> &Self {
        let all = self.json["nearest"].as_array().expect("nearest");
        assert!(all.iter().any(|one| one == spelling), "{spelling} is not in {:#}", self.json);
        self
    }

    /// Expects evidence of this witness on this rung.
    #[track_caller]
    pub fn evidence(&self, witness: &str, rung: &str) -> &Self {
        let all = self.json["evidence"].as_array().expect("evidence");
        let found = all.iter().any(|one| one["witness"] == witness && one["rung"] == rung);
        assert!(found, "{witness} said nothing on rung {rung}: {:#}", self.json);
        self
    }

    #[track_caller]
    fn field(&self, name: &str, value: &str) -> &Self {
        assert_eq!(self.json[name], value, "{name} of {:#}", self.json);
        self
    }
}

fn holds(text: &Value, words: &str) -> bool {
    text.as_str().is_some_and(|text| text.contains(words))
}

fn text(path: &Path) -> String {
    path.to_str().expect("a UTF-8 path").to_string()
}

/// A port that nobody held a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

fn is_ok((status, _): (u16, String)) -> bool {
    status == 200
}

/// The status and the body of an answer, without the code that is tested.
pub fn get(port: u16, path: &str) -> Option<(u16, String)> {
    exchange(port, &format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"))
}

fn exchange(port: u16, request: &str) -> Option<(u16, String)> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_string()))
}
