//! The only part of ascertain that touches a machine.
//!
//! It collects raw bytes and does not interpret them: it knows of no engine. What is to be read comes in as data
//! ([`Wants`](ascertain_model::wants::Wants)), what was read goes out as a
//! [`Capture`](ascertain_model::capture::Capture), redacted before it is stored or shown. Everything is read-only, and
//! everything has a limit: a witness that hangs, lies or fails leaves a gap, never a failed run.

pub mod collect;
pub mod command;
pub mod containers;
pub mod directory;
pub mod file;
pub mod http;
pub mod journalctl;
pub mod pack;
pub mod process;
pub mod redact;
pub mod scrub;
pub mod seal;
pub mod sockets;
pub mod ssh;
pub mod systemd;
pub mod time;
pub mod witness;

pub use collect::{Options, collect, describe};
pub use directory::{Stored, read_any};
pub use redact::{Redactor, SecretNames};
pub use seal::seal;
