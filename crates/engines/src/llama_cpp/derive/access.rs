//! Who may ask, from where, and on which address.

use super::statement::Statement;
use crate::llama_cpp::artifacts::answer;
use crate::llama_cpp::reader::Reader;
use ascertain_model::{Act, Finding, Rung, Severity, State, Value, Voice};
use serde_json::Value as Json;
use std::net::IpAddr;

/// A key is in force if a request without it is turned away. The health check is always open, and in one release the
/// list of models. Keys of all sources add up, so that only the last open question can be which of them are in force.
pub(super) fn api_key(reader: &mut Reader<'_>) {
    let settings: Vec<&str> =
        ["api_key", "api_key_file"].into_iter().filter(|name| reader.claim(name).is_some()).collect();
    if settings.is_empty() {
        return;
    }
    let empty: Vec<&str> = settings
        .iter()
        .copied()
        .filter(|setting| {
            let mut mine = reader.intent.asks.iter().filter(|ask| ask.name == *setting);
            mine.all(|ask| ask.text.is_empty())
        })
        .collect();
    for setting in &empty {
        reader.weaken(setting, "another source gave the key: this one is empty", |one| one.witness == "log");
        reader.silently(setting, Act::Ignores, "an empty key is no key", "give a key, or remove it");
    }
    let full: Vec<&str> = settings.iter().copied().filter(|setting| !empty.contains(setting)).collect();
    // A text may hold no key (a comma), a file may be empty.
    let unseen = !reader.all_sources_are_known();
    let shared = full.len() > 1;
    let why = if shared {
        "a key is required; whether it is this one or another that was asked for, that does not show"
    } else {
        "a key is required; whether it is one of this file, that does not show: not all that may ask for one is known"
    };
    let open_question = |setting: &str| shared || unseen && setting == "api_key_file";
    let guarded =
        ["props.json", "props_without_key.json", "slots_before.json", "metrics_before.txt", "completion.json"];
    for name in guarded {
        let Some(status) = reader.statuses.get(name).copied() else { continue };
        let length = reader.capture.bytes(name).map_or(0, <[u8]>::len);
        let required = match status {
            401 | 403 => true,
            200 if name == "props_without_key.json" => false,
            _ => continue,
        };
        for setting in if required { &full } else { &settings } {
            let value = if required { Some(Value::Secret) } else { Some(Value::Bool(false)) };
            let value = if required { reader.as_asked(setting).or(value) } else { value };
            let Some(value) = value else { continue };
            let mut statement = Statement::new(setting, value, Rung::Exercised, "http", name, 0..length)
                .label(format!("status {status}"))
                .excerpt(format!("answered with status {status}"))
                .note(match required {
                    true if open_question(setting) => why,
                    true => "a request without a valid key was turned away",
                    false => "a request without a key was answered: no key is required",
                });
            if required && open_question(setting) {
                statement = statement.echo();
            }
            reader.state(statement);
        }
    }
    for setting in &full {
        if open_question(setting) {
            reader.weaken(setting, why, |one| {
                one.witness == "log" && !matches!(&one.seen, ascertain_model::Seen::Value(Value::Bool(false)))
            });
            reader.settles(setting, "send a request with exactly this key");
        }
    }

    // Without a key and with open cross-origin rules the server warns. Its silence is evidence only in a log that is
    // complete, of a release known to warn, and if nothing else closes those rules.
    let known = reader
        .facts
        .release
        .as_deref()
        .is_some_and(|release| reader.data.about.releases.iter().any(|known| known == release));
    let closes = ["cors_origins", "tools", "agent", "mcp_servers_config", "mcp_servers_json", "ui_mcp_proxy"];
    let other = closes.iter().any(|name| reader.claim(name).is_some());
    let complete = reader.foreign_log.is_none() && reader.log.as_ref().is_some_and(|log| log.would_show(3));
    let warned =
        reader.log.as_ref().is_some_and(|log| log.lines.iter().any(|line| line.text.contains("no API key is set")));
    let hidden_source =
        reader.log.as_ref().is_some_and(|log| log.lines.iter().any(|line| line.text.contains("using config file")));
    if known && complete && !other && !warned && !hidden_source {
        let range = reader.whole_log();
        for setting in full.iter().filter(|setting| !open_question(setting)) {
            let Some(value) = reader.as_asked(setting) else { continue };
            reader.state(
                Statement::new(setting, value, Rung::Acknowledged, "log", reader.log_name, range.clone())
                    .label("the whole start")
                    .excerpt("no line warns that no API key is set")
                    .note("this release warns at every start without a key, and the log is complete"),
            );
        }
    }
}

/// The origin that the capture names in its first request, which no operator allows.
const OUR_ORIGIN: &str = "http://ascertain.invalid";

/// The answer to a request that named a foreign origin. Only the first request names one.
pub(super) fn cross_origin(reader: &mut Reader<'_>) {
    if reader.facts.release.as_deref() != Some("b10434") {
        return;
    }
    let (Some(asked), Some(as_asked)) =
        (reader.asked_text("cors_origins").map(str::to_string), reader.as_asked("cors_origins"))
    else {
        return;
    };
    let Some(answer) = answer(reader.capture, "http_headers.json") else { return };
    let pointer = "/health.json/headers";
    let Some(headers) = answer.value.pointer(pointer).and_then(Json::as_array) else { return };
    let allowed = headers.iter().find_map(|header| {
        let name = header.get(0).and_then(Json::as_str)?;
        name.eq_ignore_ascii_case("access-control-allow-origin")
            .then(|| header.get(1).and_then(Json::as_str).map(str::to_string))?
    });
    let Some(allowed) = allowed else { return };
    let range = crate::locate::locate(answer.bytes, pointer).unwrap_or(0..0);
    let echoed = allowed == OUR_ORIGIN;
    // What is asked is sent as it is, but for `*`, which sends back whatever origin a request names.
    let (value, note) = if asked == OUR_ORIGIN && echoed {
        // Sent back, or sent as asked: it looks the same.
        (as_asked, "our origin is the one that was asked for, so this does not show which rule answered")
    } else if echoed {
        let value = if asked.trim() == "*" { as_asked } else { Value::text("*") };
        (value, "our foreign origin sent back means that every origin is allowed")
    } else if allowed == asked {
        (as_asked, "sent to browsers as it was asked for")
    } else {
        (Value::text(&allowed), "what browsers are told")
    };
    let mut statement = Statement::new("cors_origins", value, Rung::Exercised, "http", "http_headers.json", range)
        .label(pointer)
        .excerpt(format!("access-control-allow-origin: {}", crate::text::safe(&allowed)))
        .note(note);
    if asked == OUR_ORIGIN {
        statement = statement.echo();
    }
    reader.state(statement);
}

/// The prefix under which the endpoints answered.
pub(super) fn api_prefix(reader: &mut Reader<'_>) {
    let (Some(prefix), Some(as_asked)) =
        (reader.asked_text("api_prefix").map(str::to_string), reader.as_asked("api_prefix"))
    else {
        return;
    };
    if prefix.is_empty() || matches!(reader.state, State::Failed { .. }) {
        return;
    }
    if !prefix.starts_with('/') {
        not_served(reader, &prefix, "a path begins with /, so no request can ask for anything under it");
        return;
    }
    let asked_under = |artifact: &str, path: &str| {
        let entry = reader.capture.entry(artifact);
        entry.is_some_and(|entry| entry.source.ends_with(&format!("{prefix}{path}")))
    };
    let endpoints = [
        ("props.json", "/props"),
        ("slots_before.json", "/slots"),
        ("v1_models.json", "/v1/models"),
        ("health.json", "/health"),
    ];
    let asked: Vec<&str> = endpoints
        .iter()
        .filter(|(artifact, path)| asked_under(artifact, path))
        .map(|(artifact, _)| *artifact)
        .collect();
    // A page that answers 200 to everything is not this server.
    let is_real = |artifact: &str| match artifact {
        "props.json" => reader.props.as_ref().is_some_and(|props| props.value.get("build_info").is_some()),
        "slots_before.json" => reader.slots.iter().any(|slots| slots.artifact == artifact),
        "health.json" => {
            answer(reader.capture, artifact).is_some_and(|answer| answer.value == serde_json::json!({"status": "ok"}))
        }
        _ => false,
    };
    let status = |artifact: &str| reader.statuses.get(artifact).copied();
    let answered = asked.iter().copied().find(|artifact| status(artifact) == Some(200) && is_real(artifact));
    let refused = !asked.is_empty() && asked.iter().all(|artifact| status(artifact) == Some(404));
    if let Some(artifact) = answered {
        let length = reader.capture.bytes(artifact).map_or(0, <[u8]>::len);
        let source = reader.capture.entry(artifact).map(|entry| crate::text::safe(&entry.source)).unwrap_or_default();
        reader.state(
            Statement::new("api_prefix", as_asked, Rung::Exercised, "http", artifact, 0..length)
                .label("status 200")
                .excerpt(format!("{source} answered with status 200"))
                .note("the endpoints answer under this prefix"),
        );
    } else if refused {
        not_served(reader, &prefix, "every endpoint under it answers 404");
    }
}

fn not_served(reader: &mut Reader<'_>, prefix: &str, why: &str) {
    reader.findings.push(Finding {
        kind: "not_served",
        severity: Severity::Error,
        text: format!("nothing is served under the prefix {}: {why}", crate::text::safe(prefix)),
        evidence: Vec::new(),
    });
    reader.settles("api_prefix", "write it with / in front and none behind");
}

/// The sockets on which the process listens.
pub(super) fn listening(reader: &mut Reader<'_>) {
    unix_socket(reader);
    // An IPv6 address stands in brackets in the log, and its colons hide where it ends.
    reader.evidence.retain(|one| {
        let split = one.witness == "log" && one.seen.to_string().starts_with('[');
        one.setting != "host" || !split
    });
    let Some(answer) = answer(reader.capture, "listeners.json") else { return };
    let host = reader.asked_text("host").map(str::to_string);
    let as_asked = reader.as_asked("host");
    let parsed = |text: &str| text.parse::<IpAddr>().ok().map(|address| address.to_canonical());
    for (index, one) in answer.value.as_array().into_iter().flatten().enumerate() {
        let (Some(address), Some(port)) =
            (one.get("address").and_then(Json::as_str), one.get("port").and_then(Json::as_i64))
        else {
            continue;
        };
        let host = match (&host, &as_asked) {
            (Some(host), Some(_)) if host.is_empty() => Some(Value::text(address)),
            // A name is not an address: `localhost` may be either of two.
            (Some(host), Some(as_asked)) => parsed(host)
                .map(|asked| if parsed(address) == Some(asked) { as_asked.clone() } else { Value::text(address) }),
            _ => None,
        };
        let port_claimed = reader.claim("port").is_some();
        let said = [("host", host, "address"), ("port", port_claimed.then_some(Value::Int(port)), "port")];
        for (setting, value, field) in said {
            let Some(value) = value else { continue };
            let pointer = format!("/{index}/{field}");
            let range = crate::locate::locate(answer.bytes, &pointer).unwrap_or(0..0);
            reader.state(
                Statement::new(setting, value, Rung::Exercised, "process", "listeners.json", range)
                    .label(pointer)
                    .excerpt(format!("listening on {address}:{port}"))
                    .note("a socket of this process"),
            );
        }
    }
    if host.as_deref() == Some("") {
        reader.silently(
            "host",
            Act::Adjusts { to: Some(Value::text("::1")) },
            "an empty host is taken for ::1, which only IPv6 clients of this machine reach",
            "write the address: 127.0.0.1, ::1 or 0.0.0.0",
        );
    }
    if let Some(port) = reader.asked_number("port")
        && port > 65_535
    {
        // The log repeats the number as asked; the socket shows what the kernel made of it.
        for evidence in reader.evidence.iter_mut().filter(|one| one.setting == "port" && one.witness == "log") {
            evidence.voice = Voice::Echo;
        }
        reader.silently(
            "port",
            Act::Ignores,
            format!("{port} is no port, and the log only repeats it"),
            "ask for a port up to 65535",
        );
    }
}

/// A host that ends with `.sock` is the path of a socket, and a port says nothing then.
fn unix_socket(reader: &mut Reader<'_>) {
    let Some(path) = reader.asked_text("host").filter(|host| host.ends_with(".sock")).map(str::to_string) else {
        return;
    };
    reader.not_applicable("port", "the server listens on a unix socket, which has no port");
    let (Some(answer), Some(as_asked)) = (answer(reader.capture, "listeners.json"), reader.as_asked("host")) else {
        return;
    };
    for (index, one) in answer.value.as_array().into_iter().flatten().enumerate() {
        if one.get("unix").and_then(Json::as_str) != Some(path.as_str()) {
            continue;
        }
        let pointer = format!("/{index}/unix");
        let range = crate::locate::locate(answer.bytes, &pointer).unwrap_or(0..0);
        reader.state(
            Statement::new("host", as_asked.clone(), Rung::Exercised, "process", "listeners.json", range)
                .label(pointer)
                .excerpt(format!("listening on {}", crate::text::safe(&path)))
                .note("a socket of this process"),
        );
    }
}
