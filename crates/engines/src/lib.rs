//! What ascertain knows of each engine.
//!
//! One folder an engine: data (what its flags, lines, fields and metrics mean, each with the release it was seen on)
//! and the few readers its formats need. This crate reads captures into cases; it does no I/O, so it can be tested
//! on recordings and cannot touch a machine.

pub mod data;
pub mod locate;
pub mod metrics;
pub mod nearest;
pub mod service;
pub mod strict;
pub mod template;
pub mod text;

pub mod llama_cpp;

use ascertain_model::wants::{Experiment, ProcessFacts, Wants};
use ascertain_model::{Capture, Case, Finding, Unasked, WitnessNote};

/// Everything an engine reads out of a capture.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Its release as it states it.
    pub version: Option<String>,
    /// Whether its data was made on exactly this release.
    pub known_release: bool,
    /// The unit it belongs to, where known.
    pub unit: Option<String>,
    /// The command line, redacted.
    pub argv: Vec<String>,
    /// What the judge is given.
    pub case: Case,
    /// What else is worth knowing.
    pub findings: Vec<Finding>,
    /// Settings in force that nobody asked for.
    pub unasked: Vec<Unasked>,
    /// Who testified.
    pub witnesses: Vec<WitnessNote>,
}

/// What `ascertain demo` shows of an engine.
pub struct Demo {
    /// Recordings of real servers.
    pub recordings: &'static [Recording],
    /// File name of the executable to look for.
    pub executable: &'static str,
    /// Environment variable that names another one.
    pub variable: &'static str,
    /// What it must be able to do.
    pub needs: &'static str,
    /// File name and bytes of a model small enough to be made on the spot.
    pub model: fn() -> (&'static str, Vec<u8>),
    /// Arguments for a model file and a port of 127.0.0.1.
    pub arguments: fn(&str, u16) -> Vec<String>,
    /// Path that answers 200 when the server is ready.
    pub health: &'static str,
}

/// A recorded server.
pub struct Recording {
    /// Its name in the report.
    pub name: &'static str,
    /// What its operator believes.
    pub story: &'static str,
    /// What the witnesses saw.
    pub files: &'static [(&'static str, &'static [u8])],
}

/// An engine.
pub trait Engine: Sync {
    /// Its name in reports.
    fn name(&self) -> &'static str;
    /// Whether a process with this executable (file name only) is this engine.
    fn recognises(&self, executable: &str) -> bool;
    /// Names of the artifacts it reads; `*` stands for any run of characters.
    fn artifacts(&self) -> &'static [&'static str];
    /// What to collect from a process. `files` are the texts of the configuration files that an earlier call without
    /// them wanted, by artifact: they can say where the server listens, what it logs to and what it loads.
    fn wants(&self, facts: &ProcessFacts, files: &[(String, String)]) -> Wants;
    /// Names by which an operator may call the service: model, aliases.
    fn names(&self, facts: &ProcessFacts) -> Vec<String>;
    /// Reads a capture.
    fn read(&self, capture: &Capture) -> Reading;
    /// What to send to settle what nothing else does.
    fn experiments(&self, capture: &Capture) -> Vec<Experiment>;
    /// The settings, by canonical name, that a line of its log is about: to find one's way in a log, not as evidence.
    fn speaks_of(&self, line: &str) -> Vec<String>;
    /// Where the last start begins in a log, in bytes; `None`: its first line is not there.
    fn last_start(&self, log: &[u8]) -> Option<usize>;
    /// What the demonstration shows of it.
    fn demo(&self) -> Option<Demo> {
        None
    }
}

/// All engines. A test asserts that no folder was forgotten.
pub const ENGINES: &[&dyn Engine] = &[&llama_cpp::LlamaCpp];

/// The engine of a process, by the file name of its executable.
pub fn by_executable(path: &str) -> Option<&'static dyn Engine> {
    let name = path.rsplit('/').next().unwrap_or(path);
    ENGINES.iter().copied().find(|engine| engine.recognises(name))
}

/// The engine of a capture: from the command line it recorded.
pub fn by_capture(capture: &Capture) -> Option<&'static dyn Engine> {
    programs(capture).iter().find_map(|word| by_executable(word))
}

/// The program that a capture says it is of, safe to show.
pub fn program_of(capture: &Capture) -> Option<String> {
    programs(capture).first().map(|word| text::safe(word))
}

fn programs(capture: &Capture) -> Vec<String> {
    let words = |name: &str, pointer: &str| -> Vec<String> {
        capture
            .bytes(name)
            .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(bytes).ok())
            .and_then(|value| value.pointer(pointer).cloned())
            .and_then(|value| serde_json::from_value(value).ok())
            .unwrap_or_default()
    };
    let exe: Option<String> = capture
        .bytes("process.json")
        .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(bytes).ok())
        .and_then(|value| value.get("exe").and_then(|exe| exe.as_str()).map(str::to_string));
    let mut list: Vec<String> =
        exe.into_iter().chain(words("proc_cmdline.json", "")).chain(words("meta.json", "/argv")).collect();
    // A unit without a process: what it would start.
    if list.is_empty()
        && let Some(service) = service::read(capture)
    {
        list.extend(service.written.argv.into_iter().map(|(word, _)| word));
        list.extend(service.loaded.into_iter().flat_map(|layer| layer.argv).map(|(word, _)| word));
    }
    list
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_engine_folder_is_in_the_list() {
        let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let folders = std::fs::read_dir(here)
            .expect("src is readable")
            .filter_map(Result::ok)
            .filter(|entry| entry.path().is_dir())
            .count();
        assert_eq!(folders, super::ENGINES.len());
    }

    #[test]
    fn the_data_of_every_engine_fits_together() {
        let data = super::llama_cpp::data();
        assert!(data.settings.len() > 200);
    }
}
