//! Sends the few requests that settle what only traffic can settle.
//!
//! What is sent is data that the engine declares ([`Experiment`]); this crate sends it one request at a time, within a
//! budget, and keeps every exchange raw with its stamps. It draws no conclusion: numbers come later, from the capture.

use ascertain_capture::http::{self, Limits, Request};
use ascertain_capture::process;
use ascertain_model::capture::Start;
use ascertain_model::wants::{Address, Experiment, Post};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What an exercise may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// For everything together.
    pub total: Duration,
    /// For one request.
    pub each: Duration,
    /// Requests over all experiments.
    pub requests: usize,
}

impl Default for Budget {
    /// Small enough for a server in production: a dozen requests, one at a time, within a minute.
    fn default() -> Self {
        Budget { total: Duration::from_secs(60), each: Duration::from_secs(30), requests: 12 }
    }
}

/// One raw exchange, ready to be added to a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Name of the artifact.
    pub artifact: String,
    /// What was sent, for the manifest.
    pub source: String,
    /// The raw exchange as JSON, or the body of a GET.
    pub bytes: Vec<u8>,
}

/// Where to send and how to be let in.
#[derive(Debug, Clone)]
pub struct Server {
    /// The start, where the process is on this host: when a request fails it is looked whether it still runs.
    pub start: Option<Start>,
    /// Where it listens.
    pub address: Address,
    /// Path prefix of its endpoints.
    pub prefix: String,
    /// API key.
    pub api_key: Option<String>,
}

const MAX_BODY: u64 = 8 << 20;

/// What came of an exercise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Every exchange, raw.
    pub exchanges: Vec<Exchange>,
    /// The request after which the process was no longer there.
    pub ended_after: Option<String>,
}

/// Sends all experiments. `progress` is told what is being done.
pub fn run(server: &Server, experiments: &[Experiment], budget: Budget, progress: &mut dyn FnMut(&str)) -> Outcome {
    let begun = Instant::now();
    let mut left = budget.requests;
    let mut outcome = Outcome::default();
    for experiment in experiments {
        let mut settled = false;
        for (index, post) in experiment.requests.iter().enumerate() {
            let remaining = budget.total.saturating_sub(begun.elapsed());
            if left == 0 || remaining.is_zero() || (settled && index >= experiment.at_least) {
                break;
            }
            left -= 1;
            progress(&format!("{} ({} of {})", experiment.why, index + 1, experiment.requests.len()));
            let sent = send(server, post, budget.each.min(remaining), begun);
            settled |= experiment
                .until_positive
                .and_then(|pointer| sent.record.pointer("/body")?.pointer(pointer))
                .and_then(Value::as_f64)
                .is_some_and(|number| number > 0.0);
            let artifact = format!("exercise_{}_{}.json", experiment.name, index + 1);
            let source = format!("POST {}", post.path);
            if !sent.answered && server.has_ended() {
                outcome.ended_after = Some(format!("{source} ({})", experiment.why));
            }
            outcome.exchanges.push(Exchange { artifact, source, bytes: sent.record.to_string().into_bytes() });
            // One that does not answer is left alone.
            if !sent.answered {
                return outcome;
            }
        }
        outcome.exchanges.extend(experiment.after.iter().filter_map(|(artifact, path)| get(server, artifact, path)));
    }
    outcome
}

struct Sent {
    record: Value,
    answered: bool,
}

fn send(server: &Server, post: &Post, each: Duration, begun: Instant) -> Sent {
    let request = request(server, "POST", &post.path, post.body.clone().into_bytes());
    let sent_ms = begun.elapsed().as_millis() as u64;
    let answer = http::exchange(&server.address, &request, Limits::within(each, MAX_BODY));
    let done_ms = begun.elapsed().as_millis() as u64;
    let asked = json!({ "method": "POST", "path": post.path, "body": shortened(&post.body) });
    match answer {
        Ok(answer) => Sent {
            record: json!({
                "request": asked, "sent_ms": sent_ms, "done_ms": done_ms,
                "status": answer.status, "truncated": answer.truncated, "body": body(&answer.body),
            }),
            // A server in trouble is not asked again. A refusal of what was sent is an answer.
            answered: !answer.truncated && answer.status != 429 && answer.status < 500,
        },
        Err(error) => Sent {
            record: json!({ "request": asked, "sent_ms": sent_ms, "done_ms": done_ms, "failed": error.to_string() }),
            answered: false,
        },
    }
}

/// What cannot be read afterwards was a gap before already.
fn get(server: &Server, artifact: &str, path: &str) -> Option<Exchange> {
    let request = request(server, "GET", path, Vec::new());
    let limits = Limits::within(Duration::from_secs(5), MAX_BODY);
    let answer = http::exchange(&server.address, &request, limits).ok()?;
    (answer.status == 200 && !answer.truncated).then(|| Exchange {
        artifact: artifact.to_string(),
        source: format!("GET {path}"),
        bytes: answer.body,
    })
}

impl Server {
    /// Whether the process is gone. One that dies may be looked at by a debugger first, which takes a while.
    fn has_ended(&self) -> bool {
        let Some(start) = &self.start else { return false };
        let until = Instant::now() + Duration::from_secs(5);
        loop {
            let gone = match process::stat(start.pid) {
                Ok(stat) => stat.start_ticks != start.ticks || matches!(stat.state, 'Z' | 'X'),
                Err(_) => true,
            };
            if gone || Instant::now() > until {
                return gone;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn request(server: &Server, method: &str, path: &str, body: Vec<u8>) -> Request {
    let mut headers = vec![("Accept".to_string(), "application/json".to_string())];
    if !body.is_empty() {
        headers.push(("Content-Type".to_string(), "application/json".to_string()));
    }
    if let Some(key) = &server.api_key {
        headers.push(("Authorization".to_string(), format!("Bearer {key}")));
    }
    Request { method: method.to_string(), path: format!("{}{path}", server.prefix), headers, body }
}

/// The body as JSON where it is, else as text.
fn body(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

/// A body made of thousands of equal tokens need not be kept whole to be repeated.
fn shortened(body: &str) -> Value {
    if body.len() > 4096 {
        let head: String = body.chars().take(200).collect();
        return Value::String(format!("{head}… ({} bytes)", body.len()));
    }
    serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_string()))
}
