//! The user's own `ssh`, and how it is called.
//!
//! Configuration, keys, agent, jump hosts and a running master connection are the user's and stay as they are. What is
//! set here only keeps it from asking, from waiting for ever, and from doing more than it is for.

use super::{Destination, Fault, words};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Names a command to use instead of `ssh`, with options, as `GIT_SSH_COMMAND` does for git.
pub const COMMAND: &str = "ASCERTAIN_SSH";

/// How `ssh` is called for one host.
#[derive(Debug, Clone)]
pub struct Client {
    program: Vec<String>,
    host: Destination,
    timeout: Duration,
    sudo: bool,
    control: Option<PathBuf>,
}

impl Client {
    /// For a host. `command` is what [`COMMAND`] holds; `timeout` is how long connecting may take.
    pub fn new(host: Destination, command: Option<&str>, timeout: Duration, sudo: bool) -> Result<Client, Fault> {
        let program = match command {
            None => vec!["ssh".to_owned()],
            Some(command) => words::split(command).map_err(|why| {
                Fault::new(format!("{COMMAND} is no command: {why}"))
                    .hint(format!("for example: {COMMAND}='ssh -F /path/to/config'"))
            })?,
        };
        Ok(Client { program, host, timeout, sudo, control: None })
    }

    /// The host.
    pub fn host(&self) -> &Destination {
        &self.host
    }

    /// How long connecting may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn sudo(&self) -> bool {
        self.sudo
    }

    /// Puts the socket of a master connection of our own into `directory`, if the user has none and the path is short
    /// enough for one.
    pub(super) fn share(&mut self, directory: &Path) {
        let path = directory.join("s");
        // A socket's path has 108 bytes, and ssh appends 17 of its own while it makes one.
        let fits = path.as_os_str().len() <= 88 && !path.to_string_lossy().contains(['%', ' ', '"']);
        if fits && !self.has_own_master() {
            self.control = Some(path);
        }
    }

    /// Whether the user's configuration already says where the socket of a master connection is.
    fn has_own_master(&self) -> bool {
        let mut command = self.command(&["-G"], &[]);
        let Ok(output) = command.stdin(Stdio::null()).stderr(Stdio::null()).output() else { return false };
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines().filter_map(|line| line.strip_prefix("controlpath ")).any(|path| path != "none")
    }

    /// `ssh`, that runs a command there.
    pub(super) fn shell(&self, command: &str) -> Command {
        self.command(&self.options(true), &[command])
    }

    /// `ssh`, whose standard streams are a connection to a port there.
    pub(super) fn stream(&self, host: &str, port: u16) -> Command {
        let mut options = self.options(false);
        let place = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        options.extend(["-W".to_owned(), place]);
        self.command(&options, &[])
    }

    /// A command line as a person would type it.
    pub(super) fn shown(command: &Command) -> String {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let quoted = |word: std::borrow::Cow<'_, str>| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_.,:=@%+-[]".contains(&byte);
            if !word.is_empty() && word.bytes().all(plain) {
                word.into_owned()
            } else {
                format!("'{}'", word.replace('\'', "'\\''"))
            }
        };
        words.map(|word| quoted(word.to_string_lossy())).collect::<Vec<_>>().join(" ")
    }

    fn options(&self, first: bool) -> Vec<String> {
        let seconds = self.timeout.as_secs().max(1);
        let mut options = vec!["-T".to_owned()];
        let mut set = |option: String| options.extend(["-o".to_owned(), option]);
        set("BatchMode=yes".to_owned());
        set(format!("ConnectTimeout={seconds}"));
        // A connection that is half closed, or a host that went away, ends after three of these.
        set(format!("ServerAliveInterval={seconds}"));
        set("ServerAliveCountMax=3".to_owned());
        // Whatever the user's configuration wants besides: it is not for us, and can only fail.
        for option in ["ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no"] {
            set(option.to_owned());
        }
        set("RemoteCommand=none".to_owned());
        set("LogLevel=ERROR".to_owned());
        if let Some(control) = &self.control {
            set(format!("ControlMaster={}", if first { "yes" } else { "no" }));
            set(format!("ControlPath={}", control.display()));
            set("ControlPersist=no".to_owned());
        }
        options
    }

    fn command<O: AsRef<str>>(&self, options: &[O], words: &[&str]) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]).args(options.iter().map(AsRef::as_ref));
        if let Some(user) = &self.host.user {
            command.args(["-l", user]);
        }
        if let Some(port) = self.host.port {
            command.args(["-p", &port.to_string()]);
        }
        // Not even a window may ask.
        command.env("SSH_ASKPASS_REQUIRE", "never");
        command.arg("--").arg(&self.host.host).args(words);
        command
    }
}
