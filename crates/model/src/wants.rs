//! What the witnesses of one target want to read, as data.
//!
//! An engine fills this in from the process's own argv and environment; the capture crate carries it out. Because it
//! is data, `--dry-run` can print everything that would be touched, limits and time-outs sit in one place, and an
//! engine cannot do I/O.

/// What is known of a process before anything else is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessFacts {
    /// PID.
    pub pid: u32,
    /// Target of `/proc/PID/exe`, with ` (deleted)` cut off.
    pub exe: Option<String>,
    /// Command line as delivered. NOT redacted: keep it out of anything that is stored or shown.
    pub argv: Vec<String>,
    /// Environment as delivered. NOT redacted.
    pub environ: Vec<(String, String)>,
    /// Working directory.
    pub cwd: Option<String>,
}

impl ProcessFacts {
    /// The value of one environment variable.
    pub fn env(&self, name: &str) -> Option<&str> {
        self.environ.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A file to read whole, up to a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWant {
    /// Name of the artifact.
    pub artifact: String,
    /// Path as the process sees it (absolute).
    pub path: String,
    /// At most so many bytes.
    pub limit: u64,
}

/// A GET to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointWant {
    /// Name of the artifact.
    pub artifact: String,
    /// Path and query, `/props`.
    pub path: String,
    /// At most so many bytes of body.
    pub limit: u64,
    /// Ask without the API key, to see whether it is really required.
    pub without_key: bool,
    /// Do not ask where another artifact has `true` at a JSON pointer: asking would wake the server.
    pub unless: Option<(String, String)>,
}

/// Where the server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A host and port.
    Tcp {
        /// Host name or IP address, as configured (`0.0.0.0` stays as it is).
        host: String,
        /// Port.
        port: u16,
        /// TLS.
        tls: bool,
    },
    /// A UNIX socket.
    Unix {
        /// Its path.
        path: String,
    },
}

/// Everything wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wants {
    /// Environment variables to keep: names, or prefixes that end in `*`. All others are dropped unread.
    pub environment: Vec<String>,
    /// Flags whose value is a secret (`--api-key`).
    pub secret_flags: Vec<String>,
    /// Variables whose value is a secret.
    pub secret_env: Vec<String>,
    /// Keys in configuration files whose value is a secret (`api-key`).
    pub secret_keys: Vec<String>,
    /// Configuration files that the process may have read.
    pub files: Vec<FileWant>,
    /// A log file that the process was told to write.
    pub log_file: Option<String>,
    /// Texts that stand where a start begins in its log: of a file too long to be read whole, the part after the last
    /// of them is kept.
    pub log_beginnings: Vec<String>,
    /// Texts of which the first that its log says tells that the start is over.
    pub log_ready: Vec<String>,
    /// Where it was told to listen.
    pub address: Option<Address>,
    /// Path prefix of its endpoints, empty or `/v1`-like, without trailing slash.
    pub prefix: String,
    /// GETs to send.
    pub endpoints: Vec<EndpointWant>,
    /// Model files whose headers to read: artifact name and path.
    pub checkpoints: Vec<(String, String)>,
}

/// A few requests that settle what only traffic can settle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Experiment {
    /// Its name, part of the artifact's name: `exercise_NAME_N.json`.
    pub name: &'static str,
    /// Settings it settles.
    pub settles: Vec<String>,
    /// What it finds out, for the user.
    pub why: String,
    /// The requests, in order.
    pub requests: Vec<Post>,
    /// So many are sent in any case.
    pub at_least: usize,
    /// After that, the rest is left out once the number at this JSON pointer of any answer was positive.
    pub until_positive: Option<&'static str>,
    /// GETs to repeat afterwards: artifact and path.
    pub after: Vec<(String, String)>,
}

/// A POST of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// Path.
    pub path: String,
    /// JSON text.
    pub body: String,
}
