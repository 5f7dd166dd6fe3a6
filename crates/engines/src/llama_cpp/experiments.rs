//! The few requests that settle what only traffic can settle.

use super::reader::Reader;
use ascertain_model::Capture;
use ascertain_model::wants::{Experiment, Post};
use serde_json::Value as Json;

/// What to send to settle what nothing else does.
pub fn experiments(capture: &Capture) -> Vec<Experiment> {
    let reader = Reader::new(capture);
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
    if !asked.is_empty() {
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
