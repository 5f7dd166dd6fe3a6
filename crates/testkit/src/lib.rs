//! Golden captures: recordings of real servers in named situations, each with the verdicts it must give.
//!
//! `captures/ENGINE/NAME/` is an evidence directory; its `expected.toml` was reasoned by hand from the evidence, with
//! the reason beside each verdict, before the program that is tested existed.
//!
//! [`fuzz`]: what must hold for any bytes, for the fuzzers and for a bounded run among the tests.

pub mod fuzz;

use anyhow::{Context, Result};
use ascertain_model::{Capture, Judged, Verdict, Whole};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a golden capture must give.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The whole.
    pub verdict: String,
    /// Its exit code.
    pub exit_code: u8,
    /// The release that the evidence states.
    #[serde(default)]
    pub engine_version: Option<String>,
    /// What decides.
    pub why: String,
    /// One for each setting that was asked for.
    #[serde(default)]
    pub claims: BTreeMap<String, ExpectedClaim>,
    /// Settings in force that nobody asked for.
    #[serde(default)]
    pub unasked: BTreeMap<String, String>,
}

/// What one claim must give.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedClaim {
    /// The request that won.
    pub wanted: String,
    /// The verdict's word.
    pub verdict: String,
    /// The highest rung on which it was seen.
    #[serde(default)]
    pub rung: Option<String>,
    /// The value in force.
    #[serde(default)]
    pub effective: Option<String>,
    /// The effect's verdict.
    #[serde(default)]
    pub effect: Option<String>,
    /// Why.
    pub why: String,
    /// Other verdicts that the same evidence allows.
    #[serde(default)]
    pub also: Vec<String>,
}

/// The folder of the golden captures.
pub fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures")
}

/// Every golden capture of one engine, by name.
pub fn golden(engine: &str) -> Result<Vec<(String, PathBuf)>> {
    let folder = captures().join(engine);
    let mut list = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            list.push((name, path));
        }
    }
    list.sort();
    Ok(list)
}

/// The expectation that lies beside a golden capture.
pub fn expected(path: &Path) -> Result<Expected> {
    let file = path.join("expected.toml");
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    toml::from_str(&text).with_context(|| file.display().to_string())
}

/// Reads an evidence directory the way the tool does.
pub fn load(path: &Path) -> Result<Capture> {
    let engine = ascertain_engines::ENGINES[0];
    let wants = engine.wants(&Default::default(), &[]);
    let secrets = ascertain_capture::redact::SecretNames::from(&wants);
    Ok(ascertain_capture::directory::read(path, engine.artifacts(), &secrets)?)
}

/// Everything in which a judgement differs from what is expected, one line each.
pub fn differences(expected: &Expected, whole: Whole, claims: &[Judged]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |line: String| lines.push(line);
    if whole.word() != expected.verdict {
        say(format!("whole: {} expected {}", whole.word(), expected.verdict));
    }
    if whole.exit_code(false) != expected.exit_code {
        say(format!("exit code: {} expected {}", whole.exit_code(false), expected.exit_code));
    }
    for judged in claims {
        let name = &judged.claim.setting;
        let Some(wanted) = expected.claims.get(name) else {
            say(format!("{name}: no such claim expected ({})", judged.verdict.word()));
            continue;
        };
        let word = judged.verdict.word();
        if word != wanted.verdict && !wanted.also.iter().any(|also| also == word) {
            say(format!("{name}: {word} expected {} because {}", wanted.verdict, wanted.why));
        }
        if judged.claim.wanted != wanted.wanted {
            say(format!("{name}: wanted {:?} expected {:?}", judged.claim.wanted, wanted.wanted));
        }
        let rung = match judged.verdict {
            Verdict::Confirmed { rung } | Verdict::Adjusted { rung, .. } => Some(rung.name()),
            _ => None,
        };
        if word == wanted.verdict && wanted.rung.is_some() && rung != wanted.rung.as_deref() {
            say(format!("{name}: rung {rung:?} expected {:?}", wanted.rung));
        }
        let members = |text: &str| -> Vec<String> {
            let mut list: Vec<String> = text.split(',').map(str::to_string).collect();
            list.sort();
            list
        };
        if word == wanted.verdict
            && let Some(effective) = &wanted.effective
            && judged.effective.as_ref().map(|value| members(&value.to_string())) != Some(members(effective))
        {
            say(format!(
                "{name}: effective {:?} expected {effective:?}",
                judged.effective.as_ref().map(ToString::to_string)
            ));
        }
        let effect = judged.effect.as_ref().map(Verdict::word);
        if effect != wanted.effect.as_deref() {
            say(format!("{name}: effect {effect:?} expected {:?}", wanted.effect));
        }
    }
    for name in expected.claims.keys() {
        if !claims.iter().any(|judged| judged.claim.setting == *name) {
            say(format!("{name}: no claim"));
        }
    }
    lines
}
