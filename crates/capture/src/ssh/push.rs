//! The same program, on the other host: found there or copied there, and asked for a capture.

use super::session::{Request, Session, last_line, outcome};
use super::{Destination, Fault};
use crate::{pack, seal};
use ascertain_model::Capture;
use std::path::Path;
use std::time::{Duration, Instant};

/// The variable that holds the key on the other host, for the one process that needs it.
pub const KEY_VARIABLE: &str = "ASCERTAIN_REMOTE_API_KEY";
/// A capture is mostly a log, of which at most [`crate::file::WHOLE`] is taken, compressed.
const MAX_CAPTURE: usize = 256 << 20;
/// So long a copy may take.
const COPY: Duration = Duration::from_secs(300);

/// The program that runs, to be run elsewhere.
pub struct Program {
    bytes: Vec<u8>,
    sha256: String,
}

impl Program {
    /// Reads it; right also if its file was replaced meanwhile.
    pub fn running() -> Result<Program, Fault> {
        let bytes = std::fs::read("/proc/self/exe")
            .map_err(|error| Fault::new(format!("cannot read the program that runs (/proc/self/exe): {error}")))?;
        let sha256 = seal::sha256(&bytes);
        Ok(Program { bytes, sha256 })
    }

    /// Where it lies on another host, as a shell would write it.
    pub fn place(&self) -> String {
        format!("${{XDG_CACHE_HOME:-~/.cache}}/ascertain/{}/ascertain", self.sha256)
    }
}

/// Whether the program can be run on another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It lies there, as it is here.
    Present,
    /// It is not there, or another is.
    Absent,
    /// It cannot be kept there.
    Refused(Fault),
}

impl Session {
    /// Looks whether the program is there.
    pub fn has(&mut self, program: &Program) -> Result<Presence, Fault> {
        if let Err(fault) = self.same_machine() {
            return Ok(Presence::Refused(fault));
        }
        let reply = self.ask_one(Request::new("have", &[&program.sha256], 0))?;
        Ok(match reply.state() {
            "present" => Presence::Present,
            "absent" | "changed" => Presence::Absent,
            _ => Presence::Refused(refused(self.host(), &reply.end)),
        })
    }

    /// What runs here must run there too.
    fn same_machine(&self) -> Result<(), Fault> {
        let here = std::env::consts::ARCH;
        let there = match self.machine.as_str() {
            "arm64" => "aarch64",
            "i386" | "i486" | "i586" | "i686" => "x86",
            machine if machine.starts_with("armv") => "arm",
            machine => machine,
        };
        if self.system == "Linux" && there == here {
            return Ok(());
        }
        Err(Fault::on(
            self.host(),
            format!("this program is for Linux on {here}, that host is {} on {}", self.system, self.machine),
        )
        .hint("leave out --push: plain commands do it too, with more gaps")
        .hint("or install ascertain there: ascertain capture TARGET -o FILE, then judge FILE here"))
    }

    /// Copies the program there. It is in its place whole or not at all.
    pub fn push(&mut self, program: &Program) -> Result<(), Fault> {
        self.same_machine()?;
        let length = program.bytes.len().to_string();
        let reply = self.ask_one(Request::new("push", &[&program.sha256, &length], 0))?;
        if reply.state() != "ready" {
            return Err(refused(self.host(), &reply.end));
        }
        self.send(program.bytes.clone());
        let reply = self.answer(0, Instant::now() + COPY, COPY)?;
        match reply.state() {
            "present" => Ok(()),
            _ => Err(Fault::on(self.host(), format!("copying this program failed: {}", last_line(&reply.end)))
                .hint("make room there, name a place with room in XDG_CACHE_HOME, or leave out --push")),
        }
    }

    /// Runs `ascertain capture` there and takes what it writes. `words`: its arguments; `key`: what is to be in
    /// [`KEY_VARIABLE`]; `patience`: so long it may take.
    pub fn capture(&mut self, words: &[String], key: Option<&str>, patience: Duration) -> Result<Capture, Fault> {
        if let Some(key) = key {
            // A line of its own, which the shell reads into a variable: no process ever has it as an argument.
            if key.contains(['\n', '\0']) {
                return Err(Fault::new("the API key holds a line break"));
            }
            self.send(format!("key\n{key}\n").into_bytes());
        }
        let mut all = vec![MAX_CAPTURE.to_string(), "capture".to_owned()];
        all.extend(words.iter().cloned());
        let reply = self.ask(&[Request::new("capture", &all, MAX_CAPTURE)], patience)?.pop().unwrap_or_default();
        let (stderr, code) = outcome(&reply.end);
        if code != Some(0) {
            return Err(of_program(self.host(), &stderr, code));
        }
        let name = format!("the capture from {}", self.host());
        pack::decode(reply.body.as_slice(), Path::new(&name)).map_err(|error| Fault::new(error.to_string()))
    }
}

fn refused(host: &Destination, why: &[u8]) -> Fault {
    Fault::on(host, format!("this program cannot be kept there: {}", last_line(why)))
        .hint("mend it, name another place in XDG_CACHE_HOME, or leave out --push")
}

/// What the program there could not do. Its own words, with its own advice.
fn of_program(host: &Destination, stderr: &str, code: Option<i32>) -> Fault {
    let mut lines = stderr.lines().skip_while(|line| !line.starts_with("error: "));
    if let Some(error) = lines.next().and_then(|line| line.strip_prefix("error: ")) {
        let mut fault = Fault::on(host, error);
        for hint in lines.filter_map(|line| line.trim_start().strip_prefix("hint: ")).take(20) {
            fault = fault.hint(format!("there: {hint}"));
        }
        return fault;
    }
    let said = last_line(stderr.as_bytes());
    let code = code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
    let fault = Fault::on(host, format!("the program that was copied there failed ({code}): {said}"));
    if said.contains("GLIBC") || said.contains("not found") {
        fault
            .hint("that host has an older C library: use one that needs none (RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --target x86_64-unknown-linux-gnu)")
            .hint("or leave out --push and remove the copy: plain commands do it too, with more gaps")
    } else {
        fault.hint("leave out --push: plain commands do it too, with more gaps")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_words_are_passed_on() {
        let host = Destination::parse("llm-two").unwrap();
        let fault = of_program(&host, "motd\nerror: no process 9\n  hint: ascertain list\n", Some(2));
        assert_eq!(fault.text, "on llm-two: no process 9");
        assert_eq!(fault.hints, ["there: ascertain list"]);
        let fault = of_program(&host, "ascertain: /lib/libc.so.6: version `GLIBC_2.39' not found\n", Some(1));
        assert!(fault.text.contains("GLIBC_2.39") && fault.hints[0].contains("crt-static"), "{fault:?}");
    }
}
