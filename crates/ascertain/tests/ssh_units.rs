//! Units of another host: a real systemd host over its own SSH server, with the real `llama-server` as the service. What
//! is seen over SSH, with a copy of the program there and with plain commands, must be what is seen on the host.

// Other files of tests use the rest of it.
#[allow(dead_code)]
#[path = "support/host.rs"]
mod host;
#[allow(dead_code)]
mod support;

use ascertain_engines::llama_cpp::tiny_model::TinyModel::Dense;
use host::{Host, USER};
use serde_json::Value;
use support::Report;

/// Boots a host, or ends the test.
macro_rules! host {
    () => {
        match Host::boot() {
            Some(host) => host,
            None => return,
        }
    };
}

/// Claims and findings without the evidence for them.
fn judged(report: &Report) -> (Vec<Value>, Value, Value, Value) {
    let claims = report.json["claims"].as_array().expect("claims");
    let claims = claims.iter().map(|claim| {
        let effect = &claim["effect"]["verdict"];
        let keys = ["setting", "wanted", "effective", "verdict", "rung", "origin", "break", "remedy"];
        let mut kept: serde_json::Map<String, Value> =
            keys.iter().map(|key| ((*key).to_string(), claim[*key].clone())).collect();
        kept.insert("effect".to_string(), effect.clone());
        Value::Object(kept)
    });
    let of = |key: &str| report.json[key].clone();
    (claims.collect(), of("findings"), of("answer"), of("exit_code"))
}

/// Looks at a target on the host, from here with plain commands, and from here with a copy, which must agree.
#[track_caller]
fn all_ways(host: &Host, target: &str) -> Report {
    let local = host.verify(target);
    let plain = host.verify_from_here("root", target, &[]);
    assert_eq!(judged(&local), judged(&plain), "plain commands over SSH");
    plain.witness("host", "partial");
    let pushed = host.verify_from_here("root", target, &["--push"]);
    assert_eq!(judged(&local), judged(&pushed), "a copy over SSH");
    host.sh("rm -r /root/.cache/ascertain");
    plain
}

#[test]
fn every_rung_of_a_unit_is_seen_over_ssh() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    host.write("/etc/llama.env", "LLAMA_ARG_BATCH=256\n");
    let unit = format!("[Service]\nEnvironmentFile=/etc/llama.env\nExecStart={serve} -c 512\n");
    host.start("llama", 8000, &unit);
    let report = all_ways(&host, "llama");
    report.witness("unit", "spoke").witness("manager", "spoke").witness("props", "spoke");
    report.claim("ctx_size").is("confirmed");
    for target in ["llama.service", &format!("pid:{}", host.pid("llama")), ":8000"] {
        all_ways(&host, target).witness("unit", "spoke");
    }
    // Edited and not reloaded, in a directory that was not there before; a link among the files.
    host.write("/srv/more.conf", "[Service]\nEnvironment=LLAMA_ARG_N_PARALLEL=2\n");
    host.sh(
        "mkdir -p /etc/systemd/system/llama.service.d && ln -s /srv/more.conf /etc/systemd/system/llama.service.d/",
    );
    all_ways(&host, "llama").claim("parallel").is("contradicted").breaks("written", "loaded");
    // Reloaded and not restarted.
    host.reload();
    all_ways(&host, "llama").claim("parallel").is("contradicted").breaks("loaded", "delivered");
    // An environment file changed after the start.
    host.restart("llama", 8000);
    host.write("/etc/llama.env", "LLAMA_ARG_BATCH=128\n");
    all_ways(&host, "llama").claim("batch_size").is("contradicted");
}

#[test]
fn a_unit_without_a_process_is_judged_over_ssh() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    host.start("llama", 8000, &format!("[Service]\nExecStart={serve}\n"));
    host.systemctl(&["stop", "llama"]);
    assert_eq!(all_ways(&host, "llama").run.code, 1);
    // Another one holds its port.
    host.start("other", 8000, &format!("[Service]\nExecStart={serve}\n"));
    assert_eq!(all_ways(&host, "llama").run.code, 4);
}

#[test]
fn an_ordinary_user_sees_what_it_may() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    host.start("llama", 8000, &format!("[Service]\nExecStart={serve} -c 512\n"));
    let plain = host.verify_from_here(USER, "llama", &[]);
    let pushed = host.verify_from_here(USER, "llama", &["--push"]);
    assert_eq!(judged(&plain), judged(&pushed));
    plain.finds("environment_not_read", "not permitted");
    assert_eq!(plain.json["target"]["name"], format!("ssh://{USER}@testbed/llama"));
}
