//! Other hosts, over the user's own OpenSSH client.
//!
//! One connection runs a small shell program there (`session`) that answers requests. Through it either the same
//! program is started there and its capture streamed back ([`push`]), or raw material is fetched with plain commands
//! and made into a capture here ([`agentless`]). Endpoints are asked by our own client through a forward (`forward`).
//! Nothing is ever asked of the user, and everything ends in bounded time.

pub mod agentless;
mod client;
mod coding;
mod destination;
mod far;
mod fault;
mod forward;
mod journalctl;
mod listing;
pub mod push;
mod remote_file;
mod session;
mod words;

pub use client::{COMMAND, Client};
pub use destination::{Destination, Invalid};
pub use fault::Fault;
pub use forward::Forward;
pub use session::Session;
