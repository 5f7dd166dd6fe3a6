//! A server that was started without a model: it only passes requests on to servers that it starts for them.

use crate::llama_cpp::reader::Reader;
use ascertain_model::{Finding, Locus, Severity};
use serde_json::Value as Json;

/// What a router says about contexts, models and samplers is about none of its models.
pub(super) fn router(reader: &mut Reader<'_>) {
    let Some(props) = &reader.props else { return };
    if props.value.get("role").and_then(Json::as_str) != Some("router") {
        return;
    }
    let range = crate::locate::locate(props.bytes, "/role").unwrap_or(0..0);
    let artifact = props.artifact.clone();
    let excerpt = format!("role = {}", reader.excerpt(&artifact, &range));
    let locus = Locus { artifact, start: range.start, end: range.end, label: "/role".to_string() };
    reader.findings.push(Finding {
        kind: "router",
        severity: Severity::Warning,
        text: "no model was given, so this server is a router: it starts one server for each model on request, and what is asked here shows only in those".to_string(),
        evidence: vec![(locus, excerpt)],
    });
    let why = "this server is a router: verify the server that it started for the model (ascertain list)";
    let names: Vec<String> = reader.intent.claims.iter().map(|claim| claim.setting.clone()).collect();
    for name in names {
        reader.weaken(&name, why, |one| ["props", "models", "slots", "completion"].contains(&one.witness.as_str()));
    }
}
