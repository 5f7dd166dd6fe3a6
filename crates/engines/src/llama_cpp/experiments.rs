//! The few requests that settle what only traffic can settle.

use super::derive::{longest_draft, padded};
use super::reader::Reader;
use ascertain_model::wants::{Experiment, Post};
use ascertain_model::{Capture, State, Value};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// What to send to settle what nothing else does.
pub fn experiments(capture: &Capture) -> Vec<Experiment> {
    let reader = Reader::new(capture);
    // Nobody who does not answer a GET answers a request for tokens.
    if reader.state != State::Running {
        return Vec::new();
    }
    let mut list = Vec::new();
    let speculates = ["spec_type", "spec_default", "spec_draft_model"];
    let asked: Vec<String> = reader
        .intent
        .claims
        .iter()
        .filter(|claim| speculates.contains(&claim.setting.as_str()) && claim.effect.is_some())
        .map(|claim| claim.setting.clone())
        .collect();
    let after = vec![
        ("metrics_after.txt".to_string(), "/metrics".to_string()),
        ("slots_after.json".to_string(), "/slots".to_string()),
    ];
    if !asked.is_empty() && fatal(&reader).is_none() {
        // Three kinds of text, because one unlucky prompt proves nothing, and one that repeats itself, without which
        // a lookup in the text so far has nothing to find.
        let prompts = [
            "The old lighthouse keeper climbed the stairs every evening, lit the lamp and wrote in his book:",
            "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a - b\n\ndef mul(a, b):\n",
            "one two three four five six seven eight nine ten one two three four five six seven eight nine ten one two three",
        ];
        let requests = prompts
            .iter()
            .cycle()
            .take(6)
            .enumerate()
            .map(|(round, prompt)| Post {
                path: "/completion".to_string(),
                body: serde_json::json!({
                    "prompt": prompt, "n_predict": if round < 3 { 96 } else { 320 }, "temperature": 0.0, "cache_prompt": false,
                })
                .to_string(),
            })
            .collect();
        list.push(Experiment {
            name: "speculation",
            settles: asked,
            why: "whether tokens are drafted and accepted".to_string(),
            requests,
            at_least: 3,
            until_positive: Some("/timings/draft_n_accepted"),
            after: after.clone(),
        });
    }
    let limit = reader
        .props
        .as_ref()
        .and_then(|props| props.value.pointer("/default_generation_settings/n_ctx"))
        .and_then(Json::as_u64);
    let asks_context = reader.intent.claims.iter().any(|claim| claim.setting == "ctx_size");
    if let Some(limit) = limit.filter(|limit| asks_context && (1..=65_536).contains(limit)) {
        let tokens: Vec<u64> = vec![1; limit as usize + 8];
        list.push(Experiment {
            name: "context",
            settles: vec!["ctx_size".to_string()],
            why: format!("whether a prompt longer than {limit} tokens is refused"),
            requests: vec![Post {
                path: "/completion".to_string(),
                body: serde_json::json!({ "prompt": tokens, "n_predict": 1, "cache_prompt": false }).to_string(),
            }],
            at_least: 1,
            until_positive: None,
            after: Vec::new(),
        });
    }
    list
}

/// Why a request for tokens would end the process rather than be answered. Seen on b10434: an embedding server that
/// drafts, and a batch that does not hold a draft and the token before it, abort at the first completion; so it is with
/// drafts that are looked up in the text so far.
pub(super) fn fatal(reader: &Reader<'_>) -> Option<String> {
    let on = |name: &str| reader.asked_value(name).is_some_and(|value| value.same(&Value::Bool(true)));
    // Whichever source names a type, a preset or a draft model: what is not in force harms nothing.
    let mut types: BTreeSet<String> = BTreeSet::new();
    for ask in &reader.intent.asks {
        match ask.name.as_str() {
            "spec_type" => types.extend(ask.text.split(',').map(|one| one.trim().to_string())),
            "spec_default" => {
                types.insert("ngram-mod".to_string());
            }
            "spec_draft_model" | "spec_draft_hf_repo" => {
                types.insert("draft-simple".to_string());
            }
            _ => {}
        }
    }
    types.retain(|one| !one.is_empty() && one != "none");
    if types.is_empty() {
        return None;
    }
    if reader.capture.gap("proc_environ.json").is_some() {
        return Some("the environment may ask for what ends it at the first request for tokens".to_string());
    }
    if on("embedding") || on("rerank") {
        return Some("an embedding server that drafts aborts at the first request for tokens".to_string());
    }
    // A batch is never larger than the context as asked, and a draft always smaller than the context in force.
    let context = reader.asked_number("ctx_size").filter(|length| *length > 0);
    let batch = reader.asked_number("batch_size").unwrap_or(2048).min(context.unwrap_or(i64::MAX));
    let in_force = context.map_or(i64::MAX, padded);
    let longest = i64::try_from(longest_draft(reader, Some(&types))).unwrap_or(i64::MAX).min(in_force - 1);
    (batch <= longest).then(|| {
        format!(
            "a batch of {batch} does not hold a draft of {longest} tokens: the server aborts at the first request that drafts as much"
        )
    })
}
