//! What a service manager and its files say about a service, as a collector keeps it.
//!
//! Two artifacts of a capture: `unit_files.json` is a [`UnitFiles`], `unit_manager.json` a [`ManagerState`]. Both hold
//! only what was chosen to be kept; `docs/evidence-directory.md` says what that is.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Stands for the value of a variable or key that is nobody's business here. Never to be taken for a value.
pub const NOT_KEPT: &str = "[not-kept]";

/// Whether this stands for a value that is not kept: [`NOT_KEPT`], or the same with a mark, `[not-kept:0a1b2c3d]`. Equal
/// values of one name have equal marks within a capture; the marks say nothing else.
pub fn is_not_kept(text: &str) -> bool {
    text == NOT_KEPT || text.strip_prefix("[not-kept:").is_some_and(|rest| rest.ends_with(']') && rest.len() < 20)
}

/// Whose units these are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manager {
    /// PID 1.
    #[default]
    System,
    /// A user's own manager.
    User {
        /// The user's number.
        uid: u32,
        /// Home directory.
        home: String,
        /// `$XDG_RUNTIME_DIR`.
        runtime: String,
    },
}

impl Manager {
    /// The option of `systemctl` and `journalctl` that addresses it.
    pub fn option(&self) -> &'static str {
        match self {
            Manager::System => "",
            Manager::User { .. } => "--user ",
        }
    }
}

/// What was found at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileEntry {
    /// A file.
    Text(FileText),
    /// A symbolic link, with what it says.
    Link(String),
    /// Looked for and not there.
    Absent,
    /// There, but not to be read, and why.
    Unreadable(String),
}

/// A file's text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileText {
    /// What it says, line by line as in the file. What is not kept is `#`, or a value of [`NOT_KEPT`].
    pub text: String,
    /// When it was last written or put in its place, milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_ms: Option<u64>,
}

/// A user of the host, as `passwd` has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Name.
    pub name: String,
    /// Number.
    pub uid: u32,
    /// Home directory.
    pub home: String,
    /// Shell.
    pub shell: String,
}

/// A script that a unit's command runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Script {
    /// The interpreter in its first line, empty where there is none.
    pub interpreter: String,
    /// What it comes to: the variables it sets and the command it ends in; `None` where that cannot be told.
    pub text: Option<String>,
    /// Why it cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<String>,
    /// What it comes to depends on the environment it is run with.
    #[serde(default)]
    pub reads_environment: bool,
    /// When it was last written or put in its place, milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_ms: Option<u64>,
}

/// A unit's files and what they depend on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UnitFiles {
    /// The unit's full name.
    pub name: String,
    /// Whose it is.
    #[serde(default)]
    pub manager: Manager,
    /// Unit files, drop-ins, environment files, by path.
    pub entries: BTreeMap<String, FileEntry>,
    /// Scripts the command runs, by path as the command names them.
    #[serde(default)]
    pub scripts: BTreeMap<String, Script>,
    /// Why a command that was not kept could not be seen through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<String>,
    /// What was kept does not come to the same as the files do, and why nothing may be concluded from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaw: Option<String>,
    /// Directories and programs as they are without links, by the path as it is written.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub real: BTreeMap<String, String>,
    /// Marks of the values that the process has of variables that are not kept, and of those that nothing gives it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub delivered: BTreeMap<String, String>,
    /// Users that matter to it.
    #[serde(default)]
    pub accounts: Vec<Account>,
    /// Host name.
    #[serde(default)]
    pub host_name: Option<String>,
    /// Machine id.
    #[serde(default)]
    pub machine_id: Option<String>,
    /// Boot id, without dashes.
    #[serde(default)]
    pub boot_id: Option<String>,
    /// Kernel release.
    #[serde(default)]
    pub kernel: Option<String>,
}

/// What the manager holds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ManagerState {
    /// How it was asked: `busctl` (words of commands are exact) or `systemctl show` (they are printed without quotes).
    pub source: String,
    /// Release of systemd, its first number.
    #[serde(default)]
    pub release: Option<u32>,
    /// What the manager gives every service, `NAME=VALUE`; `None`: not asked.
    #[serde(default)]
    pub environment: Option<Vec<String>>,
    /// The unit's properties: D-Bus values as JSON, or what `systemctl show` printed as strings.
    pub properties: BTreeMap<String, Value>,
    /// Processes of the unit's control group.
    #[serde(default)]
    pub processes: Vec<u32>,
}
