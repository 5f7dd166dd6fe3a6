//! A shell on the other host that answers requests: one connection, one process of `ssh`.
//!
//! Everything that comes back is foreign: lines, answers and noise have limits, nothing is waited for without a
//! deadline, and what is not an answer in form ends the session.

use super::{Client, Destination, Fault, coding, fault};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The program that answers there.
const PROGRAM: &str = include_str!("remote.sh");
/// What login scripts may write before it answers.
const MAX_NOISE: usize = 1 << 20;
/// The longest line of an answer; those of base64 have 76 bytes.
const MAX_LINE: usize = 64 << 10;
/// What is kept of standard error.
const MAX_ERRORS: usize = 64 << 10;

/// One question, answered by the function of the same name in `remote.sh`.
#[derive(Debug, Clone)]
pub(super) struct Request {
    line: String,
    limit: usize,
}

impl Request {
    /// `limit`: the answer has no more bytes.
    pub fn new<W: AsRef<[u8]>>(verb: &str, words: &[W], limit: usize) -> Request {
        let mut line = verb.to_owned();
        for word in words {
            line.push(' ');
            line.push_str(&coding::word(word.as_ref()));
        }
        line.push('\n');
        Request { line, limit }
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Reply {
    /// The words behind the mark; never empty.
    pub status: Vec<String>,
    /// The bytes.
    pub body: Vec<u8>,
    /// What stands behind the full stop.
    pub end: Vec<u8>,
}

impl Reply {
    /// The first word.
    pub fn state(&self) -> &str {
        self.status.first().map_or("", String::as_str)
    }
}

/// An open connection. It ends when dropped.
pub struct Session {
    client: Client,
    child: Child,
    requests: Sender<Vec<u8>>,
    pieces: Receiver<Vec<u8>>,
    errors: Arc<Mutex<Vec<u8>>>,
    errors_end: Receiver<()>,
    mark: String,
    rest: Vec<u8>,
    /// Our user there.
    pub(super) uid: u32,
    /// `uname -m`.
    pub(super) machine: String,
    /// `uname -s`; empty until it has answered.
    pub(super) system: String,
    /// Holds the socket of our master connection.
    _directory: Option<tempfile::TempDir>,
}

impl Session {
    /// Connects. Takes no longer than twice the time that connecting may take, and ten seconds for logging in.
    pub fn open(mut client: Client) -> Result<Session, Fault> {
        let directory = private_directory().ok();
        if let Some(directory) = &directory {
            client.share(directory.path());
        }
        let mark = mark();
        let program = program(&mark);
        let mut command = shell(&client, program.len());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| not_started(&command, &error))?;
        let (requests, to_write) = mpsc::channel::<Vec<u8>>();
        let (pieces_out, pieces) = mpsc::sync_channel::<Vec<u8>>(16);
        let (errors_out, errors_end) = mpsc::channel::<()>();
        let errors = Arc::new(Mutex::new(Vec::new()));
        if let (Some(mut input), Some(output), Some(error)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        {
            // Each of them ends with the process, and none is waited for: a master connection of the user's that was
            // started by this one may keep standard error open for hours.
            std::thread::spawn(move || {
                for bytes in to_write {
                    if input.write_all(&bytes).and_then(|()| input.flush()).is_err() {
                        return;
                    }
                }
            });
            std::thread::spawn(move || forward(output, &pieces_out));
            let errors = Arc::clone(&errors);
            std::thread::spawn(move || {
                keep_end(error, &errors);
                drop(errors_out);
            });
        }
        let mut session = Session {
            client,
            child,
            requests,
            pieces,
            errors,
            errors_end,
            mark,
            rest: Vec::new(),
            uid: u32::MAX,
            machine: String::new(),
            system: String::new(),
            _directory: directory,
        };
        session.send(program.into_bytes());
        session.greet()?;
        Ok(session)
    }

    /// The command line by which a session would be opened, for people.
    pub fn shown(client: &Client) -> String {
        Client::shown(&shell(client, program(&mark()).len()))
    }

    /// The host.
    pub fn host(&self) -> &Destination {
        self.client.host()
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Reads past what login scripts write, up to the mark.
    fn greet(&mut self) -> Result<(), Fault> {
        let limit = self.client.timeout() * 2 + Duration::from_secs(10);
        let until = Instant::now() + limit;
        let mut noise = 0;
        let late = |host: &Destination| {
            Fault::new(format!("cannot reach {host}: no answer within {} s", limit.as_secs()))
                .hint("is it up, and can you log in without being asked anything? try: ssh -o BatchMode=yes HOST true")
                .hint("give it more time: --timeout SECONDS")
        };
        let begin = self.mark.clone().into_bytes();
        loop {
            let line = self.line(until, limit).map_err(|end| self.fault(end, &late))?;
            if line.starts_with(&begin) {
                let words = words_of(&line[begin.len()..]);
                self.end_line(until, limit).map_err(|end| self.fault(end, &late))?;
                return self.understand(&words);
            }
            noise += line.len() + 1;
            if noise > MAX_NOISE {
                return Err(Fault::on(self.host(), format!("the login shell writes more than {MAX_NOISE} bytes before it does anything"))
                    .hint("see what it writes: ssh HOST true; scripts such as .bashrc must be silent where there is no terminal"));
            }
        }
    }

    fn understand(&mut self, words: &[String]) -> Result<(), Fault> {
        match words {
            [word, tools @ ..] if word == "lacks" => Err(Fault::on(
                self.host(),
                format!("commands that every host should have are missing: {}", tools.join(" ")),
            )
            .hint("install coreutils and grep there, or mend the PATH of a login without a terminal")),
            [word, uid, system, machine] if word == "hello" => {
                self.uid = uid.parse().map_err(|_| self.nonsense())?;
                self.system.clone_from(system);
                self.machine.clone_from(machine);
                Ok(())
            }
            _ => Err(self.nonsense()),
        }
    }

    /// The line that ends the greeting.
    fn end_line(&mut self, until: Instant, idle: Duration) -> Result<(), End> {
        match self.line(until, idle)?.first() {
            Some(b'.') => Ok(()),
            _ => Err(End::Malformed),
        }
    }

    pub(super) fn send(&self, bytes: Vec<u8>) {
        // If nobody writes any more the connection has ended, which the next answer will tell.
        let _ = self.requests.send(bytes);
    }

    /// Sends requests at once and takes their answers in order. `idle`: so long nothing may come.
    pub(super) fn ask(&mut self, requests: &[Request], idle: Duration) -> Result<Vec<Reply>, Fault> {
        let all: String = requests.iter().map(|request| request.line.as_str()).collect();
        self.send(all.into_bytes());
        let until = Instant::now() + idle * 4 + Duration::from_secs(60);
        requests.iter().map(|request| self.answer(request.limit, until, idle)).collect()
    }

    /// The same with a single one, and the patience of a request that is answered at once.
    pub(super) fn ask_one(&mut self, request: Request) -> Result<Reply, Fault> {
        let idle = self.patience();
        Ok(self.ask(&[request], idle)?.pop().unwrap_or_default())
    }

    /// So long nothing may come of what is answered at once.
    pub(super) fn patience(&self) -> Duration {
        self.client.timeout() + Duration::from_millis(500)
    }

    /// Waits for one answer.
    pub(super) fn answer(&mut self, limit: usize, until: Instant, idle: Duration) -> Result<Reply, Fault> {
        let late = |host: &Destination| {
            Fault::new(format!("{host} stopped answering: nothing came for {} s", idle.as_secs_f64().round()))
                .hint("is it overloaded, or the connection half closed? give it more time: --timeout SECONDS")
        };
        self.frame(limit, until, idle).map_err(|end| self.fault(end, &late))
    }

    fn frame(&mut self, limit: usize, until: Instant, idle: Duration) -> Result<Reply, End> {
        let head = self.line(until, idle)?;
        let status = head.strip_prefix(self.mark.as_bytes()).map(words_of).filter(|words| !words.is_empty());
        let mut reply = Reply { status: status.ok_or(End::Malformed)?, ..Reply::default() };
        loop {
            let line = self.line(until, idle)?;
            if let Some(end) = line.strip_prefix(b".") {
                let end = end.trim_ascii();
                return if coding::decode_line(end, &mut reply.end) { Ok(reply) } else { Err(End::Malformed) };
            }
            if !coding::decode_line(&line, &mut reply.body) || reply.body.len() > limit {
                return Err(End::Malformed);
            }
        }
    }

    /// The next line, without its end.
    fn line(&mut self, until: Instant, idle: Duration) -> Result<Vec<u8>, End> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.rest[searched..].iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.rest.drain(..=searched + at).collect();
                line.pop();
                return Ok(line);
            }
            searched = self.rest.len();
            if searched > MAX_LINE {
                // Noise without line breaks is still only noise.
                return Ok(std::mem::take(&mut self.rest));
            }
            let wait = idle.min(until.saturating_duration_since(Instant::now()));
            match self.pieces.recv_timeout(wait) {
                Ok(piece) => self.rest.extend_from_slice(&piece),
                Err(RecvTimeoutError::Timeout) => return Err(End::Late),
                Err(RecvTimeoutError::Disconnected) => return Err(End::Closed),
            }
        }
    }

    fn fault(&mut self, end: End, late: &dyn Fn(&Destination) -> Fault) -> Fault {
        match end {
            End::Late => late(self.host()),
            End::Malformed => self.nonsense(),
            End::Closed => {
                let code = self.exit_code();
                let _ = self.errors_end.recv_timeout(Duration::from_millis(200));
                let stderr = self.errors.lock().map(|errors| String::from_utf8_lossy(&errors).into_owned());
                let stderr = stderr.unwrap_or_default();
                if !self.system.is_empty() {
                    return Fault::lost(self.host(), &stderr);
                }
                Fault::of_ssh(self.host(), code, &stderr, self.client.sudo())
            }
        }
    }

    fn nonsense(&self) -> Fault {
        Fault::on(self.host(), "what comes back is not what our commands write")
            .hint("something else writes to the same stream: see what `ssh HOST true` prints, and silence it (.bashrc)")
    }

    /// How it ended; standard output was closed, so it will.
    fn exit_code(&mut self) -> Option<i32> {
        for _ in 0..100 {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.code(),
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Err(_) => return None,
            }
        }
        None
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It only ever read: nothing is lost by ending it at once.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Why there is no line.
enum End {
    Late,
    Closed,
    Malformed,
}

/// The remote command is as small as can be, and means the same to every shell that a user may have: the program comes
/// over standard input, of which `head` takes as much as it is long.
fn shell(client: &Client, length: usize) -> Command {
    let shell = format!("sh -c 'eval \"$(head -c {length})\"'");
    // Its own home directory: what root runs must not lie where somebody else can write.
    let sudo = if client.sudo() { "sudo -n -H " } else { "" };
    client.shell(&format!("{sudo}{shell}"))
}

fn program(mark: &str) -> String {
    format!("mark={mark}\n{PROGRAM}")
}

/// A directory for sockets, that only we can enter. Their paths must be short, wherever temporary files go.
pub(super) fn private_directory() -> std::io::Result<tempfile::TempDir> {
    let builder = || tempfile::Builder::new().prefix("ascertain-").tempdir_in("/tmp");
    builder().or_else(|_| tempfile::Builder::new().prefix("ascertain-").tempdir())
}

fn not_started(command: &Command, error: &std::io::Error) -> Fault {
    let program = command.get_program().to_string_lossy().into_owned();
    if error.kind() == std::io::ErrorKind::NotFound {
        return Fault::new(format!("there is no {program} to reach other hosts with"))
            .hint("install an OpenSSH client (Debian, Ubuntu: apt-get install openssh-client)")
            .hint(format!("or name the command in {}", super::COMMAND));
    }
    Fault::new(format!("cannot start {program}: {error}"))
}

fn words_of(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).split_ascii_whitespace().map(str::to_owned).collect()
}

/// Text that nothing writes by accident.
fn mark() -> String {
    use std::hash::{BuildHasher, Hasher};
    // The standard library's hash maps are seeded by the system for each thread, and once more for each of them.
    let random = || std::collections::hash_map::RandomState::new().build_hasher().finish();
    format!("ascertain-{:016x}{:016x}", random(), random())
}

fn forward(mut from: impl Read, to: &SyncSender<Vec<u8>>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) if to.send(buffer[..read].to_vec()).is_ok() => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

/// Keeps the last of what is written.
pub(super) fn keep_end(mut from: impl Read, to: &Mutex<Vec<u8>>) {
    let mut buffer = vec![0; 4096];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => {
                let Ok(mut kept) = to.lock() else { return };
                kept.extend_from_slice(&buffer[..read]);
                let over = kept.len().saturating_sub(MAX_ERRORS);
                kept.drain(..over);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// The end of standard error and the exit code of a command that [`run`](PROGRAM) ran.
pub(super) fn outcome(end: &[u8]) -> (String, Option<i32>) {
    let text = String::from_utf8_lossy(end);
    match text.rsplit_once('\n') {
        Some((stderr, code)) => (stderr.to_owned(), code.parse().ok()),
        None => (String::new(), text.parse().ok()),
    }
}

/// The last line of a text, for errors.
pub(super) fn last_line(text: &[u8]) -> String {
    fault::excerpt(&String::from_utf8_lossy(text))
}
