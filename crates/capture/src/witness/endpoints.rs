//! What the server says about itself when it is asked over HTTP.

use super::{Context, Found, Witness, gap};
use crate::http::{self, Limits, Request};
use ascertain_model::wants::EndpointWant;
use serde_json::json;

pub(crate) const WITNESS: Witness = Witness { name: "endpoints", artifacts, plan, testify };

const HEADERS: &str = "http_headers.json";

/// A web page that does not exist (RFC 2606). Who answers it with CORS headers answers any.
const ORIGIN: &str = "http://ascertain.invalid";

/// A connection on this host or network stands at once or not at all.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(2);

fn artifacts(context: &Context) -> Vec<String> {
    context.wants.endpoints.iter().map(|want| want.artifact.clone()).collect()
}

fn plan(context: &Context) -> Vec<String> {
    let base = match &context.address {
        Ok(address) => http::shown(address),
        Err(gap) => format!("<{}>", gap.text),
    };
    let key = |want: &EndpointWant| match &context.api_key {
        Some(_) if want.without_key => " (without the API key)",
        Some(_) => " (with the API key)",
        None => "",
    };
    let line = |want: &EndpointWant| {
        let unless = if want.unless.is_some() { " (not where it would wake the server)" } else { "" };
        format!("GET     {base}{}{}{}{unless}", context.wants.prefix, want.path, key(want))
    };
    context.wants.endpoints.iter().map(line).collect()
}

fn testify(context: &Context, tell: &mut dyn FnMut(Found)) {
    let wants = &context.wants.endpoints;
    if wants.is_empty() {
        return;
    }
    let address = match &context.address {
        Ok(address) => address,
        Err(gap) => {
            for want in wants {
                tell(Found::gap(&want.artifact, want.path.as_str(), gap.clone()));
            }
            return;
        }
    };
    let base = http::shown(address);
    let reach = context.through.as_ref().unwrap_or(address);
    let plain = wants.iter().find(|want| !want.without_key);
    let request = |want: &EndpointWant| {
        let total = context.deadline().saturating_duration_since(std::time::Instant::now());
        let mut request = Request::get(format!("{}{}", context.wants.prefix, want.path));
        if let Some(key) = context.api_key.as_ref().filter(|_| !want.without_key) {
            request.headers.push(("authorization".into(), format!("Bearer {key}")));
        }
        if plain.is_some_and(|plain| plain.artifact == want.artifact) {
            request.headers.push(("origin".into(), ORIGIN.into()));
        }
        (request, Limits { connect: CONNECT.min(total), total, idle: total, max_body: want.limit })
    };
    // What might wake the server is asked when it is known to be awake.
    let (later, first): (Vec<_>, Vec<_>) = wants.iter().partition(|want| want.unless.is_some());
    let answers = http::get_many(reach, first.iter().map(|want| request(want)).collect());
    let mut all: Vec<_> = first.into_iter().zip(answers).collect();
    let is_asleep = |want: &EndpointWant| {
        let Some((artifact, pointer)) = &want.unless else { return false };
        all.iter().filter(|(other, _)| other.artifact == *artifact).any(|(_, answer)| {
            let body = answer.as_ref().ok().filter(|answer| answer.status == 200).map(|answer| &answer.body);
            body.and_then(|body| serde_json::from_slice::<serde_json::Value>(body).ok())
                .is_some_and(|value| value.pointer(pointer) == Some(&serde_json::Value::Bool(true)))
        })
    };
    let (asleep, awake): (Vec<_>, Vec<_>) = later.into_iter().partition(|want| is_asleep(want));
    let answers = http::get_many(reach, awake.iter().map(|want| request(want)).collect());
    all.extend(awake.into_iter().zip(answers));
    for want in asleep {
        let why = "the server sleeps, and asking would wake it";
        tell(Found::gap(
            &want.artifact,
            want.path.as_str(),
            gap("not_asked", why, Some("send it a request, then try again")),
        ));
    }
    let mut headers = serde_json::Map::new();
    for (want, answer) in all {
        let source = format!("{base}{}{}", context.wants.prefix, want.path);
        let name = want.artifact.as_str();
        match answer {
            Ok(answer) => {
                let pairs: Vec<_> = answer.headers.iter().map(|(name, value)| json!([name, value])).collect();
                headers.insert(want.artifact.clone(), json!({"status": answer.status, "headers": pairs}));
                let truncated = answer.truncated;
                let body = if answer.status == 200 {
                    answer.body
                } else {
                    let body = String::from_utf8_lossy(&answer.body);
                    format!("{{\"_status\": {}, \"_body\": {}}}", answer.status, json!(body)).into_bytes()
                };
                let mut found = Found::bytes(name, source, body);
                found.entry.partial = truncated.then(|| "the server closed the connection before the end".to_owned());
                tell(found);
            }
            Err(error) => {
                let remedy = match error {
                    http::HttpError::TimedOut { .. } => Some("give it more time: `--timeout SECONDS`"),
                    http::HttpError::NotPermitted { .. } => Some("run as the user of the server or as root"),
                    _ => None,
                };
                tell(Found::gap(name, source, gap(error.reason(), error.to_string(), remedy)));
            }
        }
    }
    if !headers.is_empty() {
        tell(Found::bytes(HEADERS, base, serde_json::Value::Object(headers).to_string().into_bytes()));
    }
}
