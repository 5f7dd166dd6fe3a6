//! Who may ask, from where, and on which address.

use super::statement::Statement;
use crate::llama_cpp::artifacts::answer;
use crate::llama_cpp::reader::Reader;
use ascertain_model::{Act, Rung, Value, Voice};
use serde_json::Value as Json;

/// A key is in force if a request without it is turned away. The health check is always open, and in one release the
/// list of models.
pub(super) fn api_key(reader: &mut Reader<'_>) {
    if reader.claim("api_key").is_none() && reader.claim("api_key_file").is_none() {
        return;
    }
    let settings: Vec<&str> =
        ["api_key", "api_key_file"].into_iter().filter(|name| reader.claim(name).is_some()).collect();
    let guarded =
        ["props.json", "props_without_key.json", "slots_before.json", "metrics_before.txt", "completion.json"];
    for name in guarded {
        let Some(status) = reader.statuses.get(name).copied() else { continue };
        let length = reader.capture.bytes(name).map_or(0, <[u8]>::len);
        let value = match status {
            401 | 403 => Value::Secret,
            200 if name == "props_without_key.json" => Value::Bool(false),
            _ => continue,
        };
        let note = if value == Value::Secret {
            "a request without a valid key was turned away"
        } else {
            "a request without a key was answered: no key is required"
        };
        for setting in &settings {
            reader.state(
                Statement::new(setting, value.clone(), Rung::Exercised, "http", name, 0..length)
                    .label(format!("status {status}"))
                    .excerpt(format!("answered with status {status}"))
                    .note(note),
            );
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
        let log = reader.log.as_ref().map(|log| {
            (log.lines.first().map_or(0, |line| line.range.start), log.lines.last().map_or(0, |line| line.range.end))
        });
        let (start, end) = log.unwrap_or((0, 0));
        for setting in &settings {
            reader.state(
                Statement::new(setting, Value::Secret, Rung::Acknowledged, "log", reader.log_name, start..end)
                    .label("the whole start")
                    .excerpt("no line warns that no API key is set")
                    .note("this release warns at every start without a key, and the log is complete"),
            );
        }
    }
}

/// The answer to a request that named a foreign origin.
pub(super) fn cross_origin(reader: &mut Reader<'_>) {
    if reader.claim("cors_origins").is_none() || reader.facts.release.as_deref() != Some("b10434") {
        return;
    }
    let Some(answer) = answer(reader.capture, "http_headers.json") else { return };
    let Some(all) = answer.value.as_object() else { return };
    for (artifact, exchange) in all {
        let Some(headers) = exchange.get("headers").and_then(Json::as_array) else { continue };
        let allowed = headers.iter().find_map(|header| {
            let name = header.get(0).and_then(Json::as_str)?;
            name.eq_ignore_ascii_case("access-control-allow-origin")
                .then(|| header.get(1).and_then(Json::as_str).map(str::to_string))?
        });
        let Some(allowed) = allowed else { continue };
        let pointer = format!("/{artifact}/headers");
        let range = crate::locate::locate(answer.bytes, &pointer).unwrap_or(0..0);
        let value = if allowed == "http://ascertain.invalid" { "*".to_string() } else { allowed.clone() };
        reader.state(
            Statement::new("cors_origins", Value::text(value), Rung::Exercised, "http", "http_headers.json", range)
                .label(pointer)
                .excerpt(format!("access-control-allow-origin: {}", crate::text::safe(&allowed)))
                .note("our foreign origin sent back means that every origin is allowed"),
        );
    }
}

/// The sockets on which the process listens.
pub(super) fn listening(reader: &mut Reader<'_>) {
    let Some(answer) = answer(reader.capture, "listeners.json") else { return };
    for (index, one) in answer.value.as_array().into_iter().flatten().enumerate() {
        let (Some(address), Some(port)) =
            (one.get("address").and_then(Json::as_str), one.get("port").and_then(Json::as_i64))
        else {
            continue;
        };
        for (setting, value, field) in [("host", Value::text(address), "address"), ("port", Value::Int(port), "port")] {
            if reader.claim(setting).is_none() {
                continue;
            }
            // A name is not an address: `localhost` may be either of two.
            if setting == "host"
                && reader.asked_value("host").is_none_or(|host| host.to_string().parse::<std::net::IpAddr>().is_err())
            {
                continue;
            }
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
