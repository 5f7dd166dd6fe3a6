//! llama.cpp's `llama-server`, as seen on b10434 and b11434.

mod artifacts;
mod demo;
mod derive;
mod experiments;
mod field;
mod identity;
mod intent;
mod log;
mod messages;
mod number;
mod read;
mod reader;
mod service;
mod speaks;
mod testimony;
pub mod tiny_model;
mod witnesses;

use crate::data::Data;
use crate::{Demo, Engine, Reading};
use ascertain_model::wants::{Address, EndpointWant, Experiment, FileWant, ProcessFacts, Wants};
use ascertain_model::{Capture, Locus, StartId};
use std::sync::OnceLock;

/// The engine.
pub struct LlamaCpp;

/// Artifacts of an evidence directory that this engine reads.
const ARTIFACTS: &[&str] = &[
    "meta.json",
    "log.txt",
    "log_stdout.txt",
    "journal.json",
    "unit_files.json",
    "unit_manager.json",
    "proc_cmdline.json",
    "proc_environ*.json",
    "proc_status.txt",
    "maps_files.txt",
    "process.json",
    "listeners.json",
    "http_headers.json",
    "config.ini",
    "config_system.ini",
    "chat_template.txt",
    "health.json",
    "props.json",
    "props_without_key.json",
    "slots_before.json",
    "slots_after.json",
    "metrics_before.txt",
    "metrics_after.txt",
    "v1_models.json",
    "completion.json",
    "chat.json",
    "chat_stream.sse",
    "exercise_*.json",
    "checkpoint.json",
    "checkpoint_draft.json",
];

/// The data of the folder, parsed once.
pub(crate) fn data() -> &'static Data {
    static DATA: OnceLock<Data> = OnceLock::new();
    DATA.get_or_init(|| {
        let files = [
            ("about.toml", include_str!("about.toml")),
            ("settings.toml", include_str!("settings.toml")),
            ("testimony.toml", include_str!("testimony.toml")),
            ("messages.toml", include_str!("messages.toml")),
        ];
        // Embedded and covered by a test: it cannot be wrong at run time.
        Data::read(&files).unwrap_or_else(|error| panic!("embedded data of llama.cpp: {error}"))
    })
}

/// One word of the command line and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Word {
    pub text: String,
    pub locus: Option<Locus>,
}

/// One environment variable and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub name: String,
    pub value: String,
    pub locus: Option<Locus>,
}

/// A configuration file.
#[derive(Debug, Clone)]
pub(crate) struct ConfigFile<'a> {
    pub artifact: &'static str,
    pub path: String,
    pub text: &'a str,
}

/// What is known before the settings are read.
#[derive(Debug, Clone)]
pub(crate) struct Facts<'a> {
    /// Executable first.
    pub argv: Vec<Word>,
    pub environ: Vec<Variable>,
    /// Weakest first.
    pub config_files: Vec<ConfigFile<'a>>,
    /// Release, where something states it.
    pub release: Option<String>,
    pub start: StartId,
    pub running: bool,
}

impl Engine for LlamaCpp {
    fn name(&self) -> &'static str {
        "llama.cpp"
    }

    fn recognises(&self, executable: &str) -> bool {
        data().about.executables.iter().any(|name| name == executable)
    }

    fn artifacts(&self) -> &'static [&'static str] {
        ARTIFACTS
    }

    fn wants(&self, facts: &ProcessFacts, files: &[(String, String)]) -> Wants {
        wants(facts, files)
    }

    fn names(&self, facts: &ProcessFacts) -> Vec<String> {
        let mut names = Vec::new();
        for (name, value) in asked(facts, &[]) {
            match name.as_str() {
                "alias" => names.extend(value.split(',').map(|one| one.trim().to_string())),
                "model" => {
                    let file = value.rsplit('/').next().unwrap_or(&value);
                    names.push(file.to_string());
                    names.push(file.trim_end_matches(".gguf").to_string());
                }
                _ => {}
            }
        }
        names
    }

    fn read(&self, capture: &Capture) -> Reading {
        read::read(capture)
    }

    fn experiments(&self, capture: &Capture) -> Vec<Experiment> {
        experiments::experiments(capture)
    }

    fn speaks_of(&self, line: &str) -> Vec<String> {
        speaks::speaks_of(line)
    }

    fn last_start(&self, log: &[u8]) -> Option<usize> {
        let log = log::read(log);
        log.lines.first().filter(|_| log.has_beginning).map(|line| line.range.start)
    }

    fn demo(&self) -> Option<Demo> {
        Some(demo::DEMO)
    }
}

/// What argv, the environment and configuration files ask, by canonical name; flags last, so that the last of a name wins.
fn asked(facts: &ProcessFacts, files: &[(String, String)]) -> Vec<(String, String)> {
    let words = |text: &String| Word { text: text.clone(), locus: None };
    let given = Facts {
        argv: facts.argv.iter().map(words).collect(),
        environ: facts
            .environ
            .iter()
            .map(|(name, value)| Variable { name: name.clone(), value: value.clone(), locus: None })
            .collect(),
        config_files: ["config_system.ini", "config.ini"]
            .iter()
            .filter_map(|artifact| {
                let (_, text) = files.iter().find(|(name, _)| name == artifact)?;
                Some(ConfigFile { artifact, path: (*artifact).to_string(), text })
            })
            .collect(),
        release: None,
        start: StartId(String::new()),
        running: true,
    };
    let intent = intent::read(data(), &given);
    intent.asks.into_iter().map(|ask| (ask.name, ask.text)).collect()
}

fn wants(facts: &ProcessFacts, files: &[(String, String)]) -> Wants {
    let data = data();
    let asked = asked(facts, files);
    let last = |name: &str| asked.iter().rev().find(|(asked, _)| asked == name).map(|(_, value)| value.clone());
    let absolute = |path: &str| match (&facts.cwd, path.starts_with('/')) {
        (Some(cwd), false) => format!("{cwd}/{path}"),
        _ => path.to_string(),
    };

    let mut wants = Wants::default();
    wants.environment.push(format!("{}*", data.about.env_family));
    wants.environment.extend(data.about.env_keep.iter().cloned());
    for setting in data.settings.iter().filter(|setting| setting.secret) {
        wants.secret_flags.extend(setting.flags.iter().cloned());
        wants.secret_env.extend(setting.env.iter().cloned());
        wants.secret_keys.extend(setting.flags.iter().map(|flag| flag.trim_start_matches('-').to_string()));
        wants.environment.extend(setting.env.iter().cloned());
    }
    wants.environment.extend(
        data.settings
            .iter()
            .flat_map(|setting| setting.env.iter())
            .filter(|name| !name.starts_with(&data.about.env_family))
            .cloned(),
    );

    let limit = 1 << 20;
    wants.files.push(FileWant {
        artifact: "config_system.ini".into(),
        path: "/etc/llama.cpp/config.ini".into(),
        limit,
    });
    let base = match facts.env("XDG_CONFIG_HOME").filter(|dir| !dir.is_empty()) {
        Some(dir) => Some(absolute(dir)),
        None => facts.env("HOME").filter(|dir| !dir.is_empty()).map(|home| format!("{home}/.config")),
    };
    if let Some(base) = base {
        let path = format!("{base}/llama.cpp/config.ini");
        wants.files.push(FileWant { artifact: "config.ini".into(), path, limit });
    }
    if let Some(file) = last("chat_template_file") {
        wants.files.push(FileWant { artifact: "chat_template.txt".into(), path: absolute(&file), limit });
    }
    wants.log_file = last("log_file").map(|file| absolute(&file));
    wants.log_beginnings = log::MARKERS.map(str::to_string).into();
    wants.log_ready = vec![log::READY.to_string()];
    let host = last("host").unwrap_or_else(|| "127.0.0.1".to_string());
    // Nothing is taken for the loopback address of IPv6.
    let host = if host.is_empty() { "::1".to_string() } else { host };
    wants.address = Some(if host.ends_with(".sock") {
        Address::Unix { path: absolute(&host) }
    } else {
        let tls = last("ssl_key_file").is_some() && last("ssl_cert_file").is_some();
        // The kernel takes the lower 16 bits.
        let port =
            last("port").and_then(|port| port.trim().parse::<u64>().ok()).map_or(8080, |port| (port % 65_536) as u16);
        Address::Tcp { host: host.split(',').next().unwrap_or(&host).to_string(), port, tls }
    });
    wants.prefix = last("api_prefix").unwrap_or_default();
    for endpoint in &data.about.endpoint {
        wants.endpoints.push(EndpointWant {
            artifact: endpoint.artifact.clone(),
            path: endpoint.path.clone(),
            limit: endpoint.limit,
            without_key: endpoint.without_key,
            unless: endpoint.unless.clone(),
        });
    }
    for (artifact, name) in [("checkpoint.json", "model"), ("checkpoint_draft.json", "spec_draft_model")] {
        if let Some(path) = last(name) {
            wants.checkpoints.push((artifact.to_string(), absolute(&path)));
        }
    }
    wants
}
