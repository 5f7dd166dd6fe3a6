//! Containers, by the command-line tools that manage them: they are asked for one number, the PID of the first process.

use crate::command::{self, Error};
use std::process::Command;
use std::time::{Duration, Instant};

/// Tools that understand `inspect --format`, in the order in which they are asked.
const TOOLS: [&str; 3] = ["podman", "docker", "nerdctl"];

/// Most that a tool may print.
const LONGEST: u64 = 64 << 10;

/// Why there is no PID.
#[derive(Debug, thiserror::Error)]
pub enum NoContainer {
    /// None of the tools is there.
    #[error("container:{0}: neither podman nor docker nor nerdctl can be run here")]
    NoTool(String),
    /// The tools that are there do not know it.
    #[error("container:{name}: {said}")]
    Unknown {
        /// Its name.
        name: String,
        /// What the tools said.
        said: String,
    },
    /// It has no process.
    #[error("container:{0} does not run")]
    Stopped(String),
}

/// PID of the first process of a container, as this host numbers it.
pub fn pid(name: &str, timeout: Duration) -> Result<u32, NoContainer> {
    let until = Instant::now() + timeout;
    let mut said: Vec<String> = Vec::new();
    for tool in TOOLS {
        let mut inspect = Command::new(tool);
        inspect.args(["inspect", "--format", "{{.State.Pid}}", "--", name]);
        match command::run(&mut inspect, until.saturating_duration_since(Instant::now()), LONGEST) {
            Ok(bytes) => match String::from_utf8_lossy(&bytes).trim().parse::<u32>() {
                Ok(0) => return Err(NoContainer::Stopped(name.to_owned())),
                Ok(pid) => return Ok(pid),
                Err(_) => said.push(format!("{tool} did not answer with a number")),
            },
            Err(Error::Start { .. }) => {}
            Err(error) => said.push(error.to_string()),
        }
    }
    Err(match said.is_empty() {
        true => NoContainer::NoTool(name.to_owned()),
        false => NoContainer::Unknown { name: name.to_owned(), said: said.join("; ") },
    })
}
