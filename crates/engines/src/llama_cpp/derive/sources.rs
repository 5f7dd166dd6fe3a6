//! How it was asked: traps in reading, sources nobody sees, and what is in force although nobody asked.

use crate::llama_cpp::intent::From;
use crate::llama_cpp::reader::Reader;
use ascertain_model::{Act, Finding, Seen, Severity, Subject, Unasked, Value, Voice};
use std::collections::BTreeSet;

/// Ways of asking that read differently from what they say.
pub(super) fn traps(reader: &mut Reader<'_>) {
    for ask in reader.intent.asks.clone() {
        if ask.from == From::Env && ask.negative && crate::data::truth(&ask.text) == Some(false) {
            reader.findings.push(Finding {
                kind: "negative_variable",
                severity: Severity::Warning,
                text: format!(
                    "{}={} switches it off: a NO_ variable means off whatever its value",
                    ask.typed,
                    crate::text::safe(&ask.text)
                ),
                evidence: ask
                    .locus
                    .clone()
                    .map(|locus| (locus, format!("{}={}", ask.typed, crate::text::safe(&ask.text))))
                    .into_iter()
                    .collect(),
            });
        }
        if ask.name == "api_key" && ask.from == From::Argv {
            reader.findings.push(Finding {
                kind: "secret_on_command_line",
                severity: Severity::Warning,
                text: "the API key stands on the command line, where every user of the host can read it: use --api-key-file".to_string(),
                evidence: Vec::new(),
            });
        }
    }
    if let Some(seed) = reader.asked_number("seed").filter(|seed| !(0..=i64::from(u32::MAX)).contains(seed)) {
        let to = seed.rem_euclid(1 << 32);
        reader.silently(
            "seed",
            Act::Adjusts { to: Some(Value::Int(to)) },
            format!("a seed has 32 bits: {seed} is {to}"),
            "ask for a seed below 4294967296",
        );
    }
    for (_, why) in super::speculation::unmeetable(reader) {
        reader.findings.push(Finding {
            kind: "never_drafts",
            severity: Severity::Error,
            text: format!("{why}: nothing is ever drafted, and no message says so"),
            evidence: Vec::new(),
        });
    }
    if reader.asked_value("cors_origins").is_some_and(|value| matches!(&value, Value::Set(list) if list.len() > 1)) {
        reader.findings.push(Finding {
            kind: "cors_list",
            severity: Severity::Warning,
            text: "a list of origins is sent to browsers as it is, in one header, and browsers refuse that: allow one origin".to_string(),
            evidence: Vec::new(),
        });
    }
    if reader.claim("ssl_key_file").is_some() != reader.claim("ssl_cert_file").is_some() {
        reader.findings.push(Finding {
            kind: "plain_http",
            severity: Severity::Error,
            text: "only one of the two TLS files is given: the server then speaks plain HTTP without a word"
                .to_string(),
            evidence: Vec::new(),
        });
    }
}

/// Requests from a file that neither the command line nor the environment shows.
pub(super) fn third_source(reader: &mut Reader<'_>) {
    let files: BTreeSet<String> = reader
        .intent
        .asks
        .iter()
        .filter(|ask| ask.from == From::File)
        .filter_map(|ask| ask.place.rsplit_once(':').map(|(path, _)| path.to_string()))
        .collect();
    for path in files {
        let names: BTreeSet<String> =
            reader.intent.asks.iter().filter(|ask| ask.place.starts_with(&path)).map(|ask| ask.name.clone()).collect();
        reader.findings.push(Finding {
            kind: "third_source",
            severity: Severity::Warning,
            text: format!(
                "{path} also configures this server ({}); neither its command line nor its environment shows that",
                names.into_iter().collect::<Vec<_>>().join(", ")
            ),
            evidence: Vec::new(),
        });
    }
    for artifact in ["config_system.ini", "config.ini"] {
        if reader.capture.bytes(artifact).is_some()
            && !reader.facts.config_files.iter().any(|file| file.artifact == artifact)
        {
            let path = reader.capture.entry(artifact).map_or(artifact.to_string(), |entry| entry.source.clone());
            reader.doubt.get_or_insert(format!("{} was changed after the start", crate::text::safe(&path)));
            reader.findings.push(Finding {
                kind: "changed_since",
                severity: Severity::Warning,
                text: format!("{} was changed after the start: what this start read in it is not known, so nothing in it is judged", crate::text::safe(&path)),
                evidence: Vec::new(),
            });
        }
    }
    changed_models(reader);
    for (path, locus, excerpt) in reader.lost_files() {
        reader.findings.push(Finding {
            kind: "third_source",
            severity: Severity::Warning,
            text: format!(
                "{} was read at the start and is not among the evidence: it may ask for more than is judged here",
                crate::text::safe(&path)
            ),
            evidence: vec![(locus, excerpt)],
        });
    }
}

/// A model file that was changed, or put in its place, after the start is not the one that is served. One that the server
/// fetches itself is written then.
fn changed_models(reader: &mut Reader<'_>) {
    let Some(since) = reader.capture.manifest.start.as_ref().and_then(|start| start.since_ms) else { return };
    let fetches = ["model_url", "hf_repo", "hf_file", "docker_repo", "spec_draft_hf_repo"];
    if fetches.iter().any(|setting| reader.claim(setting).is_some()) {
        return;
    }
    for artifact in ["checkpoint.json", "checkpoint_draft.json"] {
        let Some(entry) = reader.capture.entry(artifact) else { continue };
        if entry.changed_ms.is_some_and(|changed| changed > since + super::super::artifacts::SLACK_MS) {
            let text = format!("{} was changed after the start", crate::text::safe(&entry.source));
            reader.findings.push(Finding {
                kind: "changed_since",
                severity: Severity::Warning,
                text: format!(
                    "{text}: what is served is what it held before; restart the server to serve it as it is now"
                ),
                evidence: Vec::new(),
            });
            reader.doubt.get_or_insert(text);
        }
    }
}

/// A file that was read and is gone may be the place that asked for what nobody is known to have asked.
pub(super) fn lost_sources(reader: &mut Reader<'_>) {
    let Some((path, _, _)) = reader.lost_files().into_iter().next() else { return };
    let why = format!("{} was read at the start and may have asked for it", crate::text::safe(&path));
    for one in reader.unasked.iter_mut().filter(|one| one.why.is_none()) {
        one.why = Some(why.clone());
    }
}

/// Sampling settings in force that differ from the default and that nobody asked for: a model file can carry them.
pub(super) fn unasked_sampling(reader: &mut Reader<'_>) {
    let mut found = Vec::new();
    for evidence in reader
        .evidence
        .iter()
        .filter(|one| one.witness == "props" && one.voice == Voice::Effective && one.subject == Subject::Value)
    {
        let Some(setting) = reader.data.setting(&evidence.setting) else { continue };
        let Seen::Value(value) = &evidence.seen else { continue };
        let Some(default) = setting.default_value() else { continue };
        if setting.group != "sampling"
            || reader.claim(&setting.name).is_some()
            || setting.name == "seed"
            || setting.name == "sampler_seq"
            || value.same(&default)
        {
            continue;
        }
        found.push(Unasked {
            setting: setting.name.clone(),
            effective: value.clone(),
            default: default.to_string(),
            why: None,
            witness: evidence.witness.clone(),
            locus: evidence.locus.clone(),
            excerpt: evidence.excerpt.clone(),
        });
    }
    reader.unasked.extend(found);
}
