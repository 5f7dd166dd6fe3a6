//! What `ascertain demo` shows: two recordings of real servers, and a real one on request.

use crate::failure::Failure;
use crate::target::{self, Found, Located, Written};
use ascertain_capture::seal;
use ascertain_engines::{Demo, ENGINES, Recording};
use ascertain_model::capture::{Artifact, Capture, Manifest, SCHEMA};
use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A recorded server.
pub struct Recorded {
    /// What its operator believes.
    pub story: &'static str,
    /// What the witnesses saw.
    pub capture: Capture,
}

/// The recordings of all engines.
pub fn recordings() -> Vec<Recorded> {
    let of =
        |recording: &Recording| Recorded { story: recording.story, capture: capture(recording.name, recording.files) };
    ENGINES.iter().filter_map(|engine| engine.demo()).flat_map(|demo| demo.recordings.iter().map(of)).collect()
}

/// The executables that `--live` looks for, and the variables that name others.
pub fn servers() -> Vec<(&'static str, &'static str)> {
    ENGINES.iter().filter_map(|engine| engine.demo()).map(|demo| (demo.executable, demo.variable)).collect()
}

fn capture(name: &str, files: &[(&str, &[u8])]) -> Capture {
    let artifacts: BTreeMap<String, Vec<u8>> =
        files.iter().map(|(name, bytes)| ((*name).to_string(), bytes.to_vec())).collect();
    let entry = |name: &String| Artifact {
        name: name.clone(),
        source: "recording".to_string(),
        bytes: None,
        sha256: None,
        at_ms: 0,
        changed_ms: None,
        partial: None,
        gap: None,
    };
    let mut capture = Capture {
        manifest: Manifest {
            schema: SCHEMA.to_string(),
            tool: concat!("ascertain ", env!("CARGO_PKG_VERSION")).to_string(),
            target: name.to_string(),
            host: None,
            start: None,
            taken: None,
            taken_ms: None,
            artifacts: artifacts.keys().map(entry).collect(),
            remarks: Vec::new(),
        },
        artifacts,
    };
    seal::seal(&mut capture);
    capture
}

/// A real server with a tiny model, stopped when dropped.
pub struct LiveServer {
    /// Its command line.
    pub argv: Vec<String>,
    child: Child,
    _models: tempfile::TempDir,
}

impl LiveServer {
    /// Its PID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The server as a target.
    pub fn located(&self) -> Result<Located, Failure> {
        match target::locate(&Written::Pid(self.pid()))? {
            Found::Live(located) => Ok(*located),
            Found::Stored(_) => Err(Failure::new("a PID is no stored capture")),
        }
    }
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a server of the first engine that has a demonstration.
pub fn start() -> Result<LiveServer, Failure> {
    let demo =
        ENGINES.iter().find_map(|engine| engine.demo()).ok_or_else(|| Failure::new("no engine has a demonstration"))?;
    let server = find_server(&demo)?;
    let models =
        tempfile::tempdir().map_err(|error| Failure::new(format!("cannot make a temporary directory: {error}")))?;
    let (file_name, bytes) = (demo.model)();
    let model = models.path().join(file_name);
    std::fs::write(&model, bytes)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", model.display())))?;
    // Bound and let go: nobody else is likely to take it in the meantime, and if so the server says so and exits.
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|error| Failure::new(format!("cannot find a free port: {error}")))?
        .port();
    let mut argv = vec![server.display().to_string()];
    argv.extend((demo.arguments)(&model.display().to_string(), port));
    let log_path = models.path().join("log.txt");
    let log = std::fs::File::create(&log_path)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", log_path.display())))?;
    let again =
        log.try_clone().map_err(|error| Failure::new(format!("cannot write {}: {error}", log_path.display())))?;
    let mut child = Command::new(&argv[0])
        .args(&argv[1..])
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(again)
        .spawn()
        .map_err(|error| Failure::new(format!("cannot start {}: {error}", server.display())))?;
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            let said = std::fs::read_to_string(&log_path).unwrap_or_default();
            let last: Vec<&str> = said.lines().rev().take(3).collect();
            return Err(Failure::new(format!(
                "{} ended with {status}: {}",
                server.display(),
                last.into_iter().rev().collect::<Vec<_>>().join(" / ")
            ))
            .hint(demo.needs));
        }
        if healthy(port, demo.health) {
            break;
        }
        if Instant::now() > until {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Failure::new("the server did not become ready within a minute"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(LiveServer { argv, child, _models: models })
}

fn healthy(port: u16, path: &str) -> bool {
    use ascertain_capture::http::{Limits, Request, exchange};
    use ascertain_model::wants::Address;
    if TcpStream::connect(("127.0.0.1", port)).is_err() {
        return false;
    }
    let address = Address::Tcp { host: "127.0.0.1".to_string(), port, tls: false };
    exchange(&address, &Request::get(path), Limits::within(Duration::from_secs(2), 1 << 16))
        .is_ok_and(|answer| answer.status == 200)
}

fn find_server(demo: &Demo) -> Result<PathBuf, Failure> {
    if let Some(path) = std::env::var_os(demo.variable).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(Failure::new(format!("{} names {}, which is no file", demo.variable, path.display())))
        };
    }
    std::env::var_os("PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .map(|folder: PathBuf| folder.join(demo.executable))
        .find(|path: &PathBuf| Path::is_file(path))
        .ok_or_else(|| {
            Failure::new(format!("no {} on PATH", demo.executable))
                .hint(format!("name one: {}=/path/to/{} ascertain demo --live", demo.variable, demo.executable))
                .hint("the recorded demo needs none: ascertain demo")
        })
}
