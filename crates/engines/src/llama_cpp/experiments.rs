//! The few requests that settle what only traffic can settle.

use super::reader::Reader;
use ascertain_model::wants::{Experiment, Post};
use ascertain_model::{Capture, State, Value};
use serde_json::Value as Json;

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
/// drafts, and a batch that does not hold a draft and the token before it, abort at the first completion.
pub(super) fn fatal(reader: &Reader<'_>) -> Option<String> {
    let number = |name: &str, default: i64| match reader.asked_value(name) {
        Some(Value::Int(number)) => number,
        _ => default,
    };
    let on = |name: &str| reader.asked_value(name).is_some_and(|value| value.same(&Value::Bool(true)));
    let types = reader.claim("spec_type").map(|claim| claim.wanted.clone()).unwrap_or_default();
    if !types.split(',').any(|one| one.starts_with("draft-")) {
        return None;
    }
    if on("embedding") || on("rerank") {
        return Some("an embedding server that drafts aborts at the first request for tokens".to_string());
    }
    let (batch, longest) = (number("batch_size", 2048), number("spec_draft_n_max", 3));
    (batch <= longest).then(|| {
        format!(
            "a batch of {batch} does not hold a draft of {longest} tokens: the server aborts at the first request for tokens"
        )
    })
}
