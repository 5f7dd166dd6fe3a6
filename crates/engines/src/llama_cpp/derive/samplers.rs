//! Samplers that are set up and never run.

use crate::llama_cpp::reader::Reader;
use serde_json::Value as Json;

/// The settings of each sampler, by its name in `/props`.
const SAMPLERS: [(&str, &[&str]); 10] = [
    ("penalties", &["repeat_last_n", "repeat_penalty", "presence_penalty", "frequency_penalty"]),
    ("dry", &["dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breaker"]),
    ("top_n_sigma", &["top_nsigma"]),
    ("top_k", &["top_k"]),
    ("typ_p", &["typical"]),
    ("top_p", &["top_p"]),
    ("min_p", &["min_p"]),
    ("xtc", &["xtc_probability", "xtc_threshold"]),
    ("temperature", &["temp", "dynatemp_range", "dynatemp_exp"]),
    ("adaptive_p", &["adaptive_target", "adaptive_decay"]),
];

/// Settings that do nothing while the parameter that switches their sampler on is 0. Seen on b10434:
/// for one seed the answers are equal to the byte with and without them.
const TUNES: [(&str, &str, &[&str]); 4] = [
    ("xtc_probability", "XTC", &["xtc_threshold"]),
    ("dry_multiplier", "DRY", &["dry_base", "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breaker"]),
    ("dynatemp_range", "the dynamic temperature", &["dynatemp_exp"]),
    ("mirostat", "Mirostat", &["mirostat_lr", "mirostat_ent"]),
];

/// `/props` lists the value of every sampler, also of those that are not run.
pub(super) fn samplers(reader: &mut Reader<'_>) {
    let params = reader.props.as_ref().and_then(|props| props.value.pointer("/default_generation_settings/params"));
    let Some(params) = params else { return };
    let mirostat = params.get("mirostat").and_then(Json::as_i64).unwrap_or(0);
    let off: Vec<(&str, &str)> = TUNES
        .iter()
        .filter(|(switch, ..)| params.get(*switch).and_then(Json::as_f64) == Some(0.0))
        .flat_map(|(_, what, settings)| settings.iter().map(move |setting| (*setting, *what)))
        .collect();
    let listed: Option<Vec<String>> = params
        .get("samplers")
        .and_then(Json::as_array)
        .map(|list| list.iter().filter_map(Json::as_str).map(str::to_string).collect());
    if mirostat > 0 {
        // It samples by temperature and its own rule, and nothing else.
        let why = format!("Mirostat {mirostat} is on, which replaces the other samplers");
        for setting in ["samplers", "sampler_seq", "dynatemp_range", "dynatemp_exp"] {
            reader.not_applicable(setting, &why);
        }
        for (_, settings) in SAMPLERS.iter().filter(|(name, _)| *name != "temperature") {
            for setting in *settings {
                reader.not_applicable(setting, &why);
            }
        }
        return;
    }
    for (setting, what) in off {
        reader.not_applicable(setting, &format!("it tunes {what}, which is off"));
    }
    let Some(listed) = listed else { return };
    for (name, settings) in SAMPLERS {
        if !listed.iter().any(|one| one == name) {
            for setting in settings {
                reader.not_applicable(
                    setting,
                    &format!("it tunes the sampler {name}, which is not among those that run"),
                );
            }
        }
    }
}
