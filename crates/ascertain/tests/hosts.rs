//! `ascertain verify UNIT` on a real systemd host, with the real `llama-server` as the service: one test a situation.
//!
//! Each test boots a machine of its own (tests/testbed/host: systemd as PID 1, a journal, namespaces of its own), writes
//! units there and does what operators do. Without root, sshd or a server these tests are skipped, or fail if
//! `ASCERTAIN_REQUIRE_HOST=1` or `ASCERTAIN_REQUIRE_LIVE=1`; `scripts/test` installs what is needed. What is expected
//! follows from what systemd and the server do, which the tests ask them where they can.

// Other files of tests use the rest of it.
#[allow(dead_code)]
#[path = "support/host.rs"]
mod host;
#[allow(dead_code)]
mod support;

use ascertain_engines::llama_cpp::tiny_model::TinyModel::{Dense, Mtp};
use host::{Host, SERVER, USER};
use std::process::{Command, Stdio};
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

/// A service with this command line.
fn service(exec_start: &str) -> String {
    format!("[Unit]\nDescription=A model\n\n[Service]\nExecStart={exec_start}\n")
}

/// The same, started again and again for as long as it ends.
fn restarting(exec_start: &str) -> String {
    let service = service(exec_start)
        .replace("[Service]", "StartLimitIntervalSec=0\n\n[Service]\nRestart=always\nRestartSec=50ms");
    assert!(service.contains("Restart=always"));
    service
}

/// Places of a claim that are in this file, as line numbers.
#[track_caller]
fn lines_in(report: &Report, setting: &str, file: &str) -> Vec<usize> {
    let claim = report.raw(setting);
    let places = claim["origin"].as_array().expect("origin").iter().filter_map(|origin| origin["place"].as_str());
    let prefix = format!("{file}:");
    let number = |rest: &str| rest.split(|char: char| !char.is_ascii_digit()).next().and_then(|line| line.parse().ok());
    let lines: Vec<usize> = places.filter_map(|place| number(place.split_once(&prefix)?.1)).collect();
    assert!(!lines.is_empty(), "{setting} is not said to come from {file}: {:#}", claim["origin"]);
    lines
}

// Nothing unusual.

#[test]
fn a_service_is_as_written_however_it_is_called() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    host.start("llm", 8000, &format!("[Service]\nExecStart={serve} \\\n  -c 512 \\\n  --metrics\n"));
    let process = format!("pid:{}", host.pid("llm"));
    for target in [Some("llm"), Some("llm.service"), Some(&*process), Some(":8000"), None] {
        let words: Vec<&str> = ["verify", "--format", "json"].into_iter().chain(target).collect();
        let report = host.ascertain(&words).report();
        report.is("confirmed", 0).has_no_objection().witness("unit", "spoke").witness("manager", "spoke");
        report
            .claim("ctx_size")
            .is("confirmed")
            .wanted("512")
            .in_force("512")
            .evidence("unit", "written")
            .evidence("manager", "loaded")
            .evidence("process", "delivered");
        report.claim("metrics").is("confirmed").on("exercised");
        // The statement begins on line 2; its flag is on line 3.
        let lines = lines_in(&report, "ctx_size", "/etc/systemd/system/llm.service");
        assert!(lines.iter().all(|line| (2..=3).contains(line)), "{lines:?}");
        assert_eq!(report.log().0, "spoke", "{:#}", report.json["witnesses"]);
        assert_eq!(report.json["target"]["pid"], host.pid("llm"));
        assert_eq!(report.json["findings"], serde_json::json!([]), "all is well, so nothing is found");
    }
}

#[test]
fn a_capture_of_a_service_gives_the_same_report_elsewhere() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    host.start("llm", 8000, &service(&format!("{serve} -c 512 --fit off -lv 4")));
    host.edit("llm", &service(&format!("{serve} -c 1024 --fit off -lv 4")));
    host.ascertain(&["capture", "llm", "-o", "/root/llm.tgz"]).ends(0);
    let live = host.verify("llm");
    live.is("contradicted", 1);
    // Nothing of the host is left to be asked.
    host.systemctl(&["stop", "llm"]);
    host.remove("/etc/systemd/system/llm.service");
    host.reload();
    let stored = host.verify("/root/llm.tgz");
    stored.is("contradicted", 1).claim("ctx_size").in_force("512").breaks("written", "loaded");
    stored.claim("fit").is("confirmed").evidence("log", "acknowledged");
    let decided = |report: &Report| {
        let claims = report.json["claims"].as_array().expect("claims").iter();
        let facts = ["setting", "wanted", "verdict", "effective", "rung", "break", "origin", "remedy"];
        claims.map(|claim| facts.map(|fact| claim[fact].clone())).collect::<Vec<_>>()
    };
    assert_eq!(decided(&stored), decided(&live));
    assert_eq!(stored.json["findings"], live.json["findings"]);
    assert_eq!(stored.json["invocation"], live.json["invocation"]);
}

#[test]
fn what_changes_nothing_is_no_break() {
    let host = host!();
    let unit = service(&format!("{} -c 512", host.serve(Dense, 8000)));
    host.start("llm", 8000, &unit);
    // Now `systemctl show` says that a reload is needed. It would change nothing.
    host.edit("llm", &format!("# The good one.\n{}", unit.replace(" -c 512", " \\\n    -c 512")));
    assert_eq!(host.property("llm", "NeedDaemonReload"), "yes");
    host.verify("llm").is("confirmed", 0).has_no_objection().claim("ctx_size").in_force("512");
    host.reload();
    host.verify("llm").is("confirmed", 0).has_no_objection().claim("ctx_size").in_force("512");
}

// Written, loaded, delivered.

#[test]
fn speculation_is_added_step_by_step() {
    let host = host!();
    let serve = host.serve(Mtp, 8000);
    host.start("llm", 8000, &service(&serve));
    host.edit("llm", &service(&format!("{serve} --spec-type draft-mtp")));

    let report = host.verify("llm");
    report.is("contradicted", 1);
    report
        .claim("spec_type")
        .is("contradicted")
        .wanted("draft-mtp")
        .breaks("written", "loaded")
        .remedy("systemctl daemon-reload")
        .remedy("systemctl restart llm")
        .evidence("unit", "written");
    host.ascertain(&["verify", "llm"]).ends(1).shows("systemctl daemon-reload").shows("spec_type");

    host.reload();
    // systemd sees nothing wrong any more, and shows what does not run.
    assert_eq!(host.property("llm", "NeedDaemonReload"), "no");
    assert!(host.property("llm", "ExecStart").contains("draft-mtp"));
    let report = host.verify("llm");
    report.is("contradicted", 1);
    report
        .claim("spec_type")
        .is("contradicted")
        .breaks("loaded", "delivered")
        .remedy("systemctl restart llm")
        .evidence("manager", "loaded");
    host.ascertain(&["verify", "llm"]).ends(1).shows("systemctl restart llm");

    host.restart("llm", 8000);
    let report = host.verify("llm");
    report.has_no_objection().claim("spec_type").is("confirmed").in_force("draft-mtp").evidence("process", "delivered");
}

#[test]
fn a_changed_file_that_was_not_reloaded() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    host.start("llm", 8000, &service(&format!("{serve} -c 512 --metrics --alias one")));

    // A value is changed, a flag removed.
    host.edit("llm", &service(&format!("{serve} -c 1024 --alias one")));
    let report = host.verify("llm");
    report.is("contradicted", 1);
    report.claim("ctx_size").is("contradicted").wanted("1024").in_force("512").breaks("written", "loaded");
    report
        .claim("metrics")
        .is("contradicted")
        .breaks("written", "loaded")
        .remedy("systemctl daemon-reload")
        .remedy("systemctl restart llm");
    report.claim("alias").is("confirmed").in_force("one");

    host.reload();
    let report = host.verify("llm");
    report.is("contradicted", 1);
    report.claim("ctx_size").is("contradicted").wanted("1024").in_force("512").breaks("loaded", "delivered");
    report.claim("metrics").is("contradicted").breaks("loaded", "delivered").remedy("systemctl restart llm");

    host.restart("llm", 8000);
    host.verify("llm").is("confirmed", 0).has_no_objection().claim("ctx_size").in_force("1024");
}

#[test]
fn an_environment_file_that_changed_after_the_start() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    host.write("/etc/default/llm", "# Sizes\nLLAMA_ARG_CTX_SIZE=512\nLLAMA_ARG_ALIAS=one\n");
    let unit = format!(
        "[Service]\nEnvironmentFile=-/etc/default/nothing\nEnvironmentFile=/etc/default/llm\nExecStart={serve}\n"
    );
    host.start("llm", 8000, &unit);
    let report = host.verify("llm");
    report.is("confirmed", 0).has_no_objection().claim("ctx_size").in_force("512").evidence("unit", "written");
    assert_eq!(lines_in(&report, "ctx_size", "/etc/default/llm"), [2]);

    host.write("/etc/default/llm", "# Sizes\n\nLLAMA_ARG_CTX_SIZE=1024\nLLAMA_ARG_ALIAS=one\n");
    // systemd reads such files when it starts a service and does not watch them.
    for _ in ["before", "after"] {
        assert_eq!(host.property("llm", "NeedDaemonReload"), "no");
        let report = host.verify("llm");
        report.is("contradicted", 1);
        report
            .claim("ctx_size")
            .is("contradicted")
            .wanted("1024")
            .in_force("512")
            .breaks("loaded", "delivered")
            .remedy("systemctl restart llm");
        assert_eq!(lines_in(&report, "ctx_size", "/etc/default/llm"), [3]);
        report.claim("alias").is("confirmed");
        host.reload();
    }

    host.restart("llm", 8000);
    host.verify("llm").is("confirmed", 0).has_no_objection().claim("ctx_size").in_force("1024");

    // The file is gone, which the next start would not survive.
    host.remove("/etc/default/llm");
    let report = host.verify("llm");
    assert_ne!(report.run.code, 0, "{:#}", report.json);
    report.advises("/etc/default/llm");
}

#[test]
fn a_variable_that_was_changed_in_the_unit() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    let unit = |size| {
        format!("[Service]\nEnvironment=LLAMA_ARG_CTX_SIZE={size} \"LLAMA_ARG_ALIAS=one two\"\nExecStart={serve}\n")
    };
    host.start("llm", 8000, &unit(512));
    host.verify("llm").is("confirmed", 0).has_no_objection().claim("alias").in_force("one two");
    host.edit("llm", &unit(1024));
    host.verify("llm").is("contradicted", 1).claim("ctx_size").in_force("512").breaks("written", "loaded");
    host.reload();
    let report = host.verify("llm");
    report.is("contradicted", 1).claim("ctx_size").in_force("512").breaks("loaded", "delivered");
    report.claim("alias").is("confirmed").in_force("one two");
}

#[test]
fn a_drop_in_in_a_new_folder() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    host.start("llm", 8000, &service(&format!("{serve} -c 512")));
    let content = format!("[Service]\nExecStart=\nExecStart={serve} -c 1024\n");
    host.drop_in("llm", "size", &content);
    // systemd 252 does not see that the folder is new, and goes on saying that no reload is needed.
    let report = host.verify("llm");
    report.is("contradicted", 1);
    report
        .claim("ctx_size")
        .is("contradicted")
        .wanted("1024")
        .in_force("512")
        .breaks("written", "loaded")
        .remedy("systemctl daemon-reload");
    assert_eq!(lines_in(&report, "ctx_size", "/etc/systemd/system/llm.service.d/size.conf"), [3]);

    host.reload();
    host.verify("llm").is("contradicted", 1).claim("ctx_size").breaks("loaded", "delivered");
    host.restart("llm", 8000);
    host.verify("llm").is("confirmed", 0).has_no_objection().claim("ctx_size").in_force("1024");
}

#[test]
fn a_drop_in_without_a_section() {
    let host = host!();
    let unit = service(&format!("{} -c 512", host.serve(Dense, 8000)));
    host.drop_in("llm", "size", "Environment=LLAMA_ARG_ALIAS=one\n");
    host.start("llm", 8000, &unit);
    // It was there at the start, and systemd passed over it.
    assert_eq!(host.property("llm", "Environment"), "");
    let report = host.verify("llm");
    report.mentions(&["/etc/systemd/system/llm.service.d/size.conf", "[Service]", "ignore"]);
    report.claim("ctx_size").is("confirmed").in_force("512");
    assert!(report.json["claims"].as_array().expect("claims").iter().all(|claim| claim["setting"] != "alias"));
}

#[test]
fn two_drop_ins_fight() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    host.drop_in("llm", "10-ours", "[Service]\nEnvironment=LLAMA_ARG_CTX_SIZE=512\n");
    host.drop_in("llm", "20-theirs", "[Service]\n\nEnvironment=LLAMA_ARG_CTX_SIZE=1024\n");
    host.start("llm", 8000, &service(&serve));
    let report = host.verify("llm");
    report.has_no_objection().claim("ctx_size").is("confirmed").wanted("1024").in_force("1024");
    report.mentions(&["llm.service.d/10-ours.conf", "llm.service.d/20-theirs.conf"]);
    assert_eq!(lines_in(&report, "ctx_size", "/etc/systemd/system/llm.service.d/20-theirs.conf"), [3]);

    // The same with the whole command line: the later name wins, wherever its folder is.
    host.remove("/etc/systemd/system/llm.service.d/10-ours.conf");
    host.remove("/etc/systemd/system/llm.service.d/20-theirs.conf");
    host.drop_in("llm", "10-ours", &format!("[Service]\nExecStart=\nExecStart={serve} -c 512\n"));
    let theirs = format!("[Service]\nExecStart=\nExecStart={serve} -c 1024\n");
    host.write("/run/systemd/system/llm.service.d/20-theirs.conf", theirs);
    host.reload();
    host.restart("llm", 8000);
    let report = host.verify("llm");
    report.has_no_objection().claim("ctx_size").is("confirmed").wanted("1024").in_force("1024");
    report.mentions(&[
        "/etc/systemd/system/llm.service.d/10-ours.conf",
        "/run/systemd/system/llm.service.d/20-theirs.conf",
    ]);
    assert_eq!(lines_in(&report, "ctx_size", "/run/systemd/system/llm.service.d/20-theirs.conf"), [3]);
}

#[test]
fn a_file_that_is_gone_or_cannot_be_loaded() {
    let host = host!();
    let unit = service(&format!("{} -c 512", host.serve(Dense, 8000)));
    host.start("llm", 8000, &unit);
    // Two commands in a service that is no oneshot: systemd would refuse it, and says so only after a reload.
    host.edit("llm", &format!("{unit}ExecStart=/bin/true\n"));
    let report = host.verify("llm");
    report.mentions(&["ExecStart=", "/etc/systemd/system/llm.service:"]);
    assert_ne!(report.json["verdict"], "confirmed", "what is written cannot be loaded: {:#}", report.json);
    host.reload();
    assert_eq!(host.property("llm", "LoadState"), "bad-setting");
    let report = host.verify("llm");
    assert_ne!(report.json["verdict"], "confirmed", "what is written cannot be loaded: {:#}", report.json);

    host.remove("/etc/systemd/system/llm.service");
    let report = host.verify("llm");
    report.mentions(&["llm.service"]);
    assert_ne!(report.json["invocation"]["state"], "failed", "it runs: {:#}", report.json);
}

// Ways to write a command line.

/// Starts these services at once, each with the context size 512, and expects that nothing is found against any.
#[track_caller]
fn all_as_written(host: &Host, units: &[(&str, u16, String)]) {
    for (name, _, content) in units {
        if !content.is_empty() {
            host.edit(name, content);
        }
    }
    host.reload();
    let names: Vec<&str> = units.iter().map(|(name, ..)| *name).collect();
    host.systemctl(&[&["restart"], &*names].concat());
    for (name, port, _) in units {
        host.answers(*port);
        let report = host.verify(name);
        report.has_no_objection().claim("ctx_size").is("confirmed").wanted("512").in_force("512");
        report.claim("port").is("confirmed").in_force(&port.to_string());
        println!("{name}: as written");
    }
}

#[test]
fn command_lines_in_all_spellings() {
    let host = host!();
    let model = host.model(Dense);
    let serve = |port| host.serve(Dense, port);
    host.write("/etc/systemd/system/template@.service", service(&format!("{} -c 512 --alias %p-%i", serve(8006))));
    let units = [
        (
            "braces",
            8001,
            format!(
                "[Service]\nEnvironment=\"NAME=two words\" SIZE=512\nExecStart={} -c ${{SIZE}} --alias ${{NAME}}\n",
                serve(8001)
            ),
        ),
        (
            "split",
            8002,
            format!(
                "[Service]\nEnvironment='MORE=-c 512 --metrics' NOTHING=\nExecStart={} $MORE $NOTHING $UNSET\n",
                serve(8002)
            ),
        ),
        (
            "quotes",
            8003,
            service(&format!("{} \"-c\" '512' --alias \"it's a \\\"model\\\" for 5$$ and 100%%\" ", serve(8003))),
        ),
        (
            "lines",
            8004,
            service(&format!("{} \\\n# -c 1024 \\\n    -c \\\n; another comment\n\t512 \\\n  --metrics", serve(8004))),
        ),
        ("specifiers", 8005, service(&format!("{} -c 512 --alias %n-%p-%H-%u", serve(8005)))),
        ("template@x", 8006, String::new()),
        (
            "relative",
            8007,
            format!(
                "[Service]\nWorkingDirectory=/opt/models\nExecStart={SERVER} -m {} --host 127.0.0.1 --port 8007 -c 512\n",
                model.rsplit('/').next().expect("a name")
            ),
        ),
        (
            "unset",
            8008,
            format!(
                "[Service]\nEnvironment=LLAMA_ARG_ALIAS=gone LLAMA_ARG_CTX_SIZE=512\nUnsetEnvironment=LLAMA_ARG_ALIAS\nExecStart=-{}\n",
                serve(8008)
            ),
        ),
        (
            "prefixes",
            8009,
            format!(
                "[Service]\nEnvironment=SIZE=512\nExecStartPre=-/bin/false -c 1\nExecStart=@{SERVER} renamed -m {model} --host 127.0.0.1 --port 8009 -c $SIZE --alias :\n"
            ),
        ),
        (
            "sandboxed",
            8010,
            format!(
                "[Service]\nDynamicUser=yes\nPrivateTmp=yes\nProtectSystem=strict\nProtectHome=yes\nPrivateDevices=yes\nExecStart={} -c 512\n",
                serve(8010)
            ),
        ),
        (
            "precedence",
            8011,
            // A file has more weight than the unit's own variables, and the later of two lines wins.
            format!(
                "[Service]\nEnvironmentFile=/etc/default/precedence\nEnvironment=LLAMA_ARG_CTX_SIZE=1024\nExecStart={}\n",
                serve(8011)
            ),
        ),
    ];
    host.write("/etc/default/precedence", "LLAMA_ARG_CTX_SIZE=2048\nLLAMA_ARG_CTX_SIZE='5'\"1\"\\\n2\n");
    all_as_written(&host, &units);
    let report = host.verify("braces");
    report.claim("alias").is("confirmed").in_force("two words");
    assert!(
        lines_in(&report, "ctx_size", "/etc/systemd/system/braces.service").iter().all(|line| [2, 3].contains(line))
    );
    host.verify("split").claim("metrics").is("confirmed");
    host.verify("quotes").claim("alias").is("confirmed").in_force("it's a \"model\" for 5$ and 100%");
    host.verify("specifiers").claim("alias").is("confirmed").in_force("specifiers.service-specifiers-testbed-root");
    let report = host.verify("template@x.service");
    report.claim("alias").is("confirmed").in_force("template-x");
    lines_in(&report, "alias", "/etc/systemd/system/template@.service");
}

#[test]
fn files_that_systemd_puts_together() {
    let host = host!();
    let serve = |port| host.serve(Dense, port);
    // A unit of a package, and the administrator's own one.
    host.write("/usr/lib/systemd/system/packaged.service", service(&format!("{} -c 1024", serve(8001))));
    // Drop-ins for all services, for all that begin alike, and for one.
    host.write("/etc/systemd/system/service.d/all.conf", "[Service]\nEnvironment=LLAMA_ARG_ENDPOINT_METRICS=1\n");
    host.write("/etc/systemd/system/begin-.service.d/x.conf", "[Service]\nEnvironment=LLAMA_ARG_CTX_SIZE=512\n");
    host.drop_in("reset", "x", "[Service]\nEnvironment=\nEnvironment=LLAMA_ARG_CTX_SIZE=512\n");
    host.write("/etc/systemd/system/escaped@.service", service(&format!("{} -c 512 --alias %i=%I=%p", serve(8004))));
    host.write("/etc/llm.d/10.env", "LLAMA_ARG_CTX_SIZE=1024\n");
    host.write("/etc/llm.d/20.env", "export LLAMA_ARG_CTX_SIZE = 2048\n  LLAMA_ARG_CTX_SIZE=512  \n");
    let units = [
        ("packaged", 8001, service(&format!("{} -c 512", serve(8001)))),
        ("begin-here", 8002, service(&serve(8002))),
        (
            "reset",
            8003,
            format!(
                "[Service]\nEnvironment=LLAMA_ARG_CTX_SIZE=1024 LLAMA_ARG_N_PREDICT=7\nExecStart={}\n",
                serve(8003)
            ),
        ),
        ("escaped@a\\x2db", 8004, String::new()),
        ("globbed", 8005, format!("[Service]\nEnvironmentFile=/etc/llm.d/*.env\nExecStart={}\n", serve(8005))),
        (
            "literal",
            8006,
            format!("[Service]\nEnvironment=SIZE=1024\nExecStart=:{} -c 512 --alias $SIZE\n", serve(8006)),
        ),
        (
            "sections",
            8007,
            // A section may come again, and one that systemd does not know counts for nothing.
            format!(
                "[Service]\nExecStart={}\n[X-Notes]\nEnvironment=LLAMA_ARG_CTX_SIZE=1024\n[Service]\nEnvironment=LLAMA_ARG_CTX_SIZE=512\n",
                serve(8007)
            ),
        ),
    ];
    all_as_written(&host, &units);
    let report = host.verify("begin-here");
    lines_in(&report, "ctx_size", "/etc/systemd/system/begin-.service.d/x.conf");
    lines_in(&report, "metrics", "/etc/systemd/system/service.d/all.conf");
    report.claim("metrics").is("confirmed").in_force("true");
    // `Environment=` with nothing behind it takes back the variables of all services, too.
    let report = host.verify("reset");
    let claims = report.json["claims"].as_array().expect("claims");
    assert!(claims.iter().all(|claim| claim["setting"] != "predict" && claim["setting"] != "metrics"), "{claims:#?}");
    host.verify("escaped@a\\x2db").claim("alias").is("confirmed").in_force("a\\x2db=a-b=escaped");
    host.verify("literal").claim("alias").is("confirmed").in_force("$SIZE");
    assert_eq!(lines_in(&host.verify("globbed"), "ctx_size", "/etc/llm.d/20.env"), [2]);

    // A unit that nobody wrote into a folder of units.
    let words: Vec<String> = serve(8008).split(' ').map(str::to_string).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let begin = ["systemd-run", "-q", "--unit=transient", "--setenv=LLAMA_ARG_ALIAS=a b"];
    host.get(&[&begin, &*words, &["-c", "512"]].concat());
    host.answers(8008);
    let report = host.verify("transient");
    report.has_no_objection().claim("ctx_size").is("confirmed").in_force("512").evidence("manager", "loaded");
    report.claim("alias").is("confirmed").in_force("a b");
}

#[test]
fn what_stands_between_systemd_and_the_server() {
    let host = host!();
    let serve = |port| host.serve(Dense, port);
    host.program("/usr/local/bin/serve-exec", &format!("#!/bin/sh\nSIZE=512\nexec {SERVER} \"$@\" -c \"$SIZE\"\n"));
    host.program("/usr/local/bin/serve-child", &format!("#!/bin/bash\n{SERVER} \"$@\" -c 512\necho over\n"));
    let words = |port: u16| {
        let serve = serve(port);
        serve.strip_prefix(SERVER).expect("the server first").to_string()
    };
    let units = [
        ("env", 8001, service(&format!("/usr/bin/env -u NOTHING LLAMA_ARG_CTX_SIZE=512 {}", serve(8001)))),
        ("shell", 8002, service(&format!("/bin/sh -c \"exec {} -c 512\"", serve(8002)))),
        (
            "login-shell",
            8003,
            service(&format!("/bin/bash -lc 'cd / && export LLAMA_ARG_CTX_SIZE=512; exec {}'", serve(8003))),
        ),
        ("waiting-shell", 8004, service(&format!("/bin/bash -c '{} -c 512; echo over'", serve(8004)))),
        ("pipe", 8005, service(&format!("/bin/bash -c '{} -c 512 2>&1 | tee /var/log/pipe.log'", serve(8005)))),
        ("script-exec", 8006, service(&format!("/usr/local/bin/serve-exec{}", words(8006)))),
        ("script-child", 8007, service(&format!("/bin/bash /usr/local/bin/serve-child{}", words(8007)))),
        ("nice", 8008, service(&format!("/usr/bin/nice -n 5 /usr/bin/stdbuf -oL {} -c 512", serve(8008)))),
        ("forking", 8009, format!("[Service]\nType=forking\nExecStart=/bin/sh -c '{} -c 512 &'\n", serve(8009))),
        ("user", 8010, format!("[Service]\nUser={USER}\nExecStart=/usr/bin/env HOME=/tmp {} -c 512\n", serve(8010))),
        ("delegated", 8011, format!("[Service]\nSlice=llm.slice\nDelegate=yes\nExecStart={} -c 512\n", serve(8011))),
    ];
    all_as_written(&host, &units);
    // Its process in a cgroup below that of the unit, as container managers do it.
    let pid = host.pid("delegated");
    let cgroup = "/sys/fs/cgroup/llm.slice/delegated.service/inner";
    host.sh(&format!("mkdir {cgroup}; echo {pid} >{cgroup}/cgroup.procs"));
    let process = format!("pid:{pid}");
    for target in [&process, ":8011", "delegated"] {
        let report = host.verify(target);
        report.has_no_objection().claim("ctx_size").is("confirmed").evidence("unit", "written");
    }

    // What a script does with its words is its own affair; that they changed is not.
    host.edit("script-exec", &service(&format!("/usr/local/bin/serve-exec{} --metrics", words(8006))));
    let report = host.verify("script-exec");
    assert!(["contradicted", "unproven"].iter().any(|verdict| report.json["verdict"] == *verdict), "{:#}", report.json);
    report.advises("systemctl daemon-reload").advises("script-exec.service");
    // A shell is seen through.
    host.edit("shell", &service(&format!("/bin/sh -c \"exec {} -c 1024\"", serve(8002))));
    let report = host.verify("shell");
    report.is("contradicted", 1).claim("ctx_size").is("contradicted").in_force("512").breaks("written", "loaded");
}

#[test]
fn a_variable_of_the_manager_itself() {
    let host = host!();
    host.systemctl(&["set-environment", "LLAMA_ARG_CTX_SIZE=512"]);
    host.start("llm", 8000, &service(&host.serve(Dense, 8000)));
    // No file of the unit has it, and the process got it all the same.
    host.verify("llm").has_no_objection().claim("ctx_size").is("confirmed").in_force("512");
    host.systemctl(&["unset-environment", "LLAMA_ARG_CTX_SIZE"]);
    host.systemctl(&["set-property", "--runtime", "llm", "CPUWeight=50"]);
    let report = host.verify("llm");
    report.claim("ctx_size").in_force("512");
    report.claim("port").is("confirmed");
}

// Services that do not run.

#[test]
fn a_service_that_was_stopped() {
    let host = host!();
    let unit = service(&format!("{} -c 512", host.serve(Dense, 8000)));
    host.edit("llm", &unit);
    host.reload();
    host.verify("llm").is("failed", 1).judges_nothing();
    host.restart("llm", 8000);
    host.verify("llm").is("confirmed", 0);
    host.systemctl(&["stop", "llm"]);
    let report = host.verify("llm");
    report
        .is("failed", 1)
        .judges_nothing()
        .why(&["inactive"])
        .witness("props", "absent")
        .advises("systemctl start llm");
    host.ascertain(&["verify", "llm"]).ends(1).shows("inactive");
}

#[test]
fn a_service_that_does_not_start() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    host.edit("wrong-flag", &service(&format!("{serve} -c 512 --no-such-flag")));
    host.edit("no-program", &service("/opt/nothing/llama-server --port 8000"));
    host.edit("no-model", &service(&format!("{SERVER} -m /opt/models/nothing.gguf --port 8000")));
    host.edit("loop", &restarting(&format!("{serve} --no-such-flag")));
    let limit = "[Unit]\nStartLimitIntervalSec=60\nStartLimitBurst=2\n[Service]\nRestart=always\nRestartSec=1ms\n";
    host.edit("limit", &format!("{limit}ExecStart={serve} --no-such-flag\n"));
    host.edit("killed", &service(&format!("{serve} -c 512")));
    host.edit("waiting", &format!("[Service]\nExecStartPre=/bin/sleep 1000\nExecStart={serve}\n"));
    host.reload();
    host.run(&["systemctl", "--no-block", "start", "wrong-flag", "no-program", "no-model", "loop", "limit", "waiting"]);
    for name in ["wrong-flag", "no-program", "no-model", "limit"] {
        host.until("it fails", || host.property(name, "ActiveState") == "failed");
    }

    let report = host.verify("wrong-flag");
    report.is("failed", 1).why(&["exit-code", "--no-such-flag"]).witness("props", "absent");
    report.claim("no_such_flag").is("unknown");
    report.claim("ctx_size").is("unproven").in_force_unseen();
    host.verify("no-program").is("failed", 1).judges_nothing().why(&["exit-code", "203"]);
    host.verify("no-model").is("failed", 1).why(&["exit-code", "/opt/models/nothing.gguf"]);
    let result = host.property("limit", "Result");
    host.verify("limit").is("failed", 1).why(&[&result, "--no-such-flag"]);

    // Between two starts, and in the middle of one.
    host.until("it was restarted", || host.property("loop", "NRestarts") != "0");
    for _ in 0..5 {
        let report = host.verify("loop");
        report.is("failed", 1).why(&["--no-such-flag"]).mentions(&["restart"]);
    }
    host.systemctl(&["stop", "loop"]);

    host.until("it waits", || host.property("waiting", "SubState") == "start-pre");
    let report = host.verify("waiting");
    assert_eq!(report.run.code, 1, "it does not serve: {:#}", report.json);
    report.judges_nothing();
    host.systemctl(&["kill", "waiting"]);

    host.restart("killed", 8000);
    host.systemctl(&["kill", "--signal=SEGV", "killed"]);
    host.until("it fails", || host.property("killed", "ActiveState") == "failed");
    let result = host.property("killed", "Result");
    host.verify("killed").is("failed", 1).judges_nothing().why(&[&result]).witness("props", "absent");
}

// Who answers.

#[test]
fn an_orphan_holds_the_port() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    let orphan = host.sh(&format!("setsid {serve} -c 512 </dev/null >/root/by-hand.log 2>&1 & echo $!"));
    host.answers(8000);
    assert_eq!(host.listener(8000).to_string(), orphan);
    host.edit("llm", &restarting(&format!("{serve} -c 1024")));
    host.edit("once", &service(&format!("{serve} -c 1024")));
    host.reload();
    host.systemctl(&["--no-block", "start", "llm", "once"]);
    host.until("it is restarted", || host.property("llm", "NRestarts").parse::<u32>().is_ok_and(|count| count > 1));
    host.until("it fails", || host.property("once", "ActiveState") == "failed");

    let kill = format!("kill {orphan}");
    for name in ["llm", "once"] {
        let report = host.verify(name);
        report.is("contradicted", 4).judges_nothing().why(&[&orphan]).advises(&kill);
        assert_eq!(report.json["invocation"]["state"], "impostor");
        host.ascertain(&["verify", name]).ends(4).shows(&kill).shows("8000");
    }
    // The orphan itself is what its command line says; nobody asks whose it is.
    host.verify(&format!("pid:{orphan}")).claim("ctx_size").is("confirmed").in_force("512");

    host.sh(&kill);
    host.until("it gets the port", || {
        host.property("llm", "ActiveState") == "active" && {
            host.answers(8000);
            host.listener(8000) == host.pid("llm")
        }
    });
    host.verify("llm").is("confirmed", 0).has_no_objection().claim("ctx_size").in_force("1024");
}

#[test]
fn a_process_of_the_previous_start_holds_the_port() {
    let host = host!();
    let serve = |size| format!("/bin/bash -c '{} -c {size}; echo over'", host.serve(Dense, 8000));
    // Only the shell is stopped, and the server stays, in the cgroup of the unit.
    let unit = |size| service(&serve(size)).replace("[Service]", "[Service]\nKillMode=process");
    host.start("llm", 8000, &unit(512));
    let left = host.listener(8000);
    host.edit("llm", &unit(1024));
    host.reload();
    host.systemctl(&["restart", "llm"]);
    host.until("the second cannot have the port", || host.property("llm", "ActiveState") == "inactive");
    assert_eq!(host.listener(8000), left);
    assert!(host.sh(&format!("cat /proc/{left}/cgroup")).contains("llm.service"));

    let report = host.verify("llm");
    report.is("contradicted", 4).judges_nothing().why(&[&left.to_string()]).advises(&format!("kill {left}"));
}

#[test]
fn two_services_want_one_port() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    host.start("first", 8000, &service(&format!("{serve} -c 512")));
    host.edit("second", &restarting(&format!("{serve} -c 1024")));
    host.reload();
    host.systemctl(&["--no-block", "start", "second"]);
    host.until("it is restarted", || host.property("second", "NRestarts").parse::<u32>().is_ok_and(|count| count > 1));
    let report = host.verify("second");
    report.is("contradicted", 4).judges_nothing().why(&[&host.pid("first").to_string(), "first.service"]);
    let report = host.verify("first");
    report.has_no_objection().claim("ctx_size").is("confirmed").in_force("512");
    // Whoever asks by the port means the one that answers.
    host.verify(":8000").has_no_objection().claim("ctx_size").is("confirmed").in_force("512");
}

#[test]
fn two_servers_in_one_service() {
    let host = host!();
    let (first, second) = (host.serve(Dense, 8000), host.serve(Dense, 8001));
    let both = service(&format!("/bin/bash -c '{first} -c 512 & {second} -c 1024; wait'"));
    host.start("llm", 8000, &both);
    host.answers(8001);
    let pids = [host.listener(8000), host.listener(8001)].map(|pid| pid.to_string());
    // The name does not tell which one is meant: whatever is said, the other one is not passed over.
    let run = host.ascertain(&["verify", "llm", "--format", "json"]);
    let said = if run.code == 2 { &run.stderr } else { &run.stdout };
    assert!(pids.iter().all(|pid| said.contains(pid)), "not both of {pids:?} are named:\n{}{}", run.stdout, run.stderr);
    for (pid, size) in pids.iter().zip(["512", "1024"]) {
        host.verify(&format!("pid:{pid}")).claim("ctx_size").is("confirmed").wanted(size).in_force(size);
    }
}

#[test]
fn a_service_that_is_restarted_all_the_while() {
    let host = host!();
    let unit = service(&format!("{} -c 512", host.serve(Dense, 8000)));
    host.start("llm", 8000, &unit.replace("[Service]", "StartLimitIntervalSec=0\n\n[Service]"));
    host.sh("(for turn in {1..12}; do systemctl restart llm; sleep 0.1$turn; done; touch /run/over) </dev/null &>/dev/null &");
    let over = host.path("/run/over");
    let mut times = 0;
    while !over.exists() {
        // It serves, or it does not yet or any more. Nothing is wrong with its settings, and nobody is in its place.
        let report = host.verify("llm");
        assert!([0, 1].contains(&report.run.code), "{:#}", report.json);
        for claim in report.json["claims"].as_array().expect("claims") {
            assert_ne!(claim["verdict"], "contradicted", "{claim:#}");
        }
        times += 1;
    }
    assert!(times > 0, "not verified meanwhile");
    host.answers(8000);
    host.verify("llm").is("confirmed", 0).has_no_objection().claim("ctx_size").in_force("512");
}

#[test]
fn one_port_in_two_networks() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    host.start("open", 8000, &service(&format!("{serve} -c 512")));
    // It listens on the same address and port, where nobody but itself can reach it.
    host.edit("closed", &format!("[Service]\nPrivateNetwork=yes\nExecStart={serve} -c 1024\n"));
    host.reload();
    host.systemctl(&["start", "closed"]);
    host.until("it listens", || {
        let pid = host.pid("closed").to_string();
        let inside = ["nsenter", "--net", "--target", &pid, "ss", "-Hltn", "sport = :8000"];
        String::from_utf8_lossy(&host.run(&inside).stdout).contains(":8000")
    });
    let report = host.verify("closed");
    let claim = report.raw("ctx_size");
    assert_ne!(claim["verdict"], "contradicted", "the other one was asked: {claim:#}");
    assert_ne!(claim["effective"], "512", "the other one was asked: {claim:#}");
    host.verify("open").has_no_objection().claim("ctx_size").is("confirmed").in_force("512");
}

// The journal.

/// The numbers in a text.
fn numbers(text: &str) -> Vec<usize> {
    let plain: String = text.chars().filter(|&char| char != ',').collect();
    plain.split(|char: char| !char.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[test]
fn the_log_is_exactly_this_start() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    host.write("/etc/default/llm", "LLAMA_ARG_CTX_SIZE=512\n");
    let unit = format!(
        "[Service]\nEnvironmentFile=/etc/default/llm\nRestart=always\nRestartSec=10ms\nExecStart={serve} --fit off -lv 4\n"
    );
    host.start("llm", 8000, &unit);
    host.verify("llm").is("confirmed", 0).claim("fit").is("confirmed").evidence("log", "acknowledged");

    // It restarts itself, with another size. What it said before counts no more.
    host.write("/etc/default/llm", "LLAMA_ARG_CTX_SIZE=1024\n");
    let before = (host.pid("llm"), host.property("llm", "InvocationID"));
    host.systemctl(&["kill", "--signal=KILL", "llm"]);
    host.until("it is restarted", || host.pid("llm") != before.0 && host.pid("llm") != 0);
    host.answers(8000);
    assert_ne!(host.property("llm", "InvocationID"), before.1);
    assert_eq!(host.property("llm", "NRestarts"), "1");

    let least = host.lines("llm");
    let report = host.verify("llm");
    let most = host.lines("llm");
    report.has_no_objection().claim("ctx_size").is("confirmed").wanted("1024").in_force("1024");
    report.claim("fit").is("confirmed").in_force("off").evidence("log", "acknowledged");
    let (state, note) = report.log();
    assert_eq!(state, "spoke", "{note}");
    // Its own lines, and perhaps the few of the manager about it.
    let counted = numbers(note).into_iter().any(|count| (least..=most + 8).contains(&count));
    assert!(counted, "{least} to {most} lines are in the journal, and the witness says: {note}");
    assert!(!report.json["claims"].to_string().contains("\"512\""), "{:#}", report.json["claims"]);
}

#[test]
fn the_journal_lost_the_start() {
    let host = host!();
    host.start("llm", 8000, &service(&format!("{} -c 512 --fit off -lv 4", host.serve(Dense, 8000))));
    let report = host.verify("llm");
    report.is("confirmed", 0).claim("fit").is("confirmed").evidence("log", "acknowledged");
    assert!(host.lines("llm") > 100);

    // Each rotation leaves a file; all but the newest are removed.
    host.sh("for turn in 1 2 3; do journalctl --rotate; logger turn; done; journalctl -q --vacuum-files=1");
    let invocation = format!("_SYSTEMD_INVOCATION_ID={}", host.property("llm", "InvocationID"));
    assert_eq!(host.get(&["journalctl", "-q", "-o", "cat", &invocation]), "", "the start is lost");

    // The journal is silent about it, which proves nothing.
    let report = host.verify("llm");
    assert!(["absent", "partial"].contains(&report.log().0), "{:#}", report.json["witnesses"]);
    report.claim("fit").is("unproven").in_force_unseen();
    report.claim("ctx_size").is("confirmed").in_force("512").on("reported");
    report.is("unproven", 0);

    // Lines of the same start that are written now do not make it whole.
    host.sh("exec 3<>/dev/tcp/127.0.0.1/8000; printf 'POST /tokenize HTTP/1.0\\r\\nContent-Length: 15\\r\\n\\r\\n{\"content\": \"a\"}' >&3; cat <&3 >/dev/null");
    host.until("it says something", || host.lines("llm") > 0);
    let report = host.verify("llm");
    assert_eq!(report.log().0, "partial", "{:#}", report.json["witnesses"]);
    report.claim("fit").is("unproven").in_force_unseen();
}

#[test]
fn a_file_of_the_journal_is_damaged() {
    let host = host!();
    host.start("llm", 8000, &service(&format!("{} -c 512 --fit off -lv 4", host.serve(Dense, 8000))));
    host.sh("journalctl --rotate; logger after; journalctl --sync");
    let archived = host.sh("echo /var/log/journal/*/system@*.journal");
    host.verify("llm").is("confirmed", 0).claim("fit").is("confirmed").evidence("log", "acknowledged");

    // Its end is cut off, as after a full disk. journalctl passes over the whole file and succeeds.
    host.sh(&format!("truncate -s -100000 {archived}"));
    let invocation = format!("_SYSTEMD_INVOCATION_ID={}", host.property("llm", "InvocationID"));
    let seen = host.get(&["journalctl", "-q", "-o", "cat", &invocation]);
    assert!(!seen.contains("listening on"), "the start is lost:\n{seen}");
    let report = host.verify("llm");
    report.has_no_objection().claim("ctx_size").is("confirmed").in_force("512");
    assert_ne!(report.log().0, "spoke", "{:#}", report.json["witnesses"]);
    report.claim("fit").is("unproven").in_force_unseen();

    // Rubbish in the place of a journal.
    host.sh(&format!("head -c 200000 /dev/urandom >{archived}"));
    let report = host.verify("llm");
    report.has_no_objection().claim("fit").is("unproven");
}

#[test]
fn lines_were_dropped_on_their_way_to_the_journal() {
    let host = host!();
    // systemd multiplies the number by the free space of the disk: of some 200 lines a few dozen arrive.
    let unit = |port, interval| {
        let limit = format!("LogRateLimitIntervalSec={interval}\nLogRateLimitBurst=5");
        format!("[Service]\n{limit}\nExecStart={} -c 512 --fit off -lv 4\n", host.serve(Dense, port))
    };
    host.edit("silent", &unit(8001, "1h"));
    host.edit("told", &unit(8002, "2s"));
    host.reload();
    host.systemctl(&["start", "silent", "told"]);
    host.answers(8001);
    host.answers(8002);

    // Nothing in the journal tells that something is missing.
    let invocation = format!("_SYSTEMD_INVOCATION_ID={}", host.property("silent", "InvocationID"));
    let kept = host.get(&["journalctl", "-q", "-o", "cat", &invocation]);
    assert!(kept.lines().count() < 100 && !kept.contains("listening on"), "some were to be dropped:\n{kept}");
    let report = host.verify("silent");
    assert_eq!(report.log().0, "partial", "{:#}", report.json["witnesses"]);
    report.claim("fit").is("unproven").in_force_unseen();
    report.claim("ctx_size").is("confirmed").in_force("512");

    // Here the journal says so, as soon as the interval is over and the service says something more.
    host.until("journald says how many it dropped", || {
        host.run(&[
            "bash",
            "-c",
            "exec 3<>/dev/tcp/127.0.0.1/8002; printf 'GET /slots HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3",
        ]);
        host.get(&["journalctl", "-q", "-o", "cat", "-u", "told"]).contains("Suppressed")
    });
    let report = host.verify("told");
    let (state, note) = report.log();
    assert_eq!(state, "partial", "{note}");
    report.claim("fit").is("unproven").in_force_unseen();
    let dropped = host.get(&["journalctl", "-q", "-o", "cat", "-u", "told", "--grep", "Suppressed"]);
    assert!(numbers(&dropped).iter().any(|count| numbers(note).contains(count)), "{dropped}\n{note}");
}

#[test]
fn output_that_goes_to_a_file() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    host.write("/etc/default/llm", "LLAMA_ARG_CTX_SIZE=512\n");
    let output = "EnvironmentFile=/etc/default/llm\nStandardOutput=append:/var/log/llm.log\nStandardError=inherit";
    host.start("llm", 8000, &format!("[Service]\n{output}\nExecStart={serve} --fit off -lv 4\n"));
    host.write("/etc/default/llm", "LLAMA_ARG_CTX_SIZE=1024\n");
    host.restart("llm", 8000);
    // Both starts are in the file, as soon as the last line is written.
    host.until("the file has both starts", || {
        let log = std::fs::read_to_string(host.path("/var/log/llm.log")).expect("a log");
        log.matches("listening on").count() == 2
    });
    let report = host.verify("llm");
    report.is("confirmed", 0).has_no_objection().witness("log", "spoke");
    report.claim("ctx_size").is("confirmed").in_force("1024");
    report.claim("fit").is("confirmed").in_force("off").evidence("log", "acknowledged");

    // Its name is gone, and somebody else writes a file of that name: the server still has its own.
    let forged = "common_init_: fitting params to device memory ...\n";
    host.remove("/var/log/llm.log");
    host.write("/var/log/llm.log", forged);
    let report = host.verify("llm");
    report.has_no_objection();
    assert_ne!(report.raw("fit")["verdict"], "contradicted", "others said that");
    // It is emptied under the server's hands, as logrotate's copytruncate does.
    host.restart("llm", 8000);
    host.write("/var/log/llm.log", "");
    let report = host.verify("llm");
    assert_ne!(report.log().0, "spoke", "{:#}", report.json["witnesses"]);
    report.claim("fit").is("unproven").in_force_unseen();

    // To nowhere.
    host.start(
        "mute",
        8001,
        &format!("[Service]\nStandardOutput=null\nExecStart={} --fit off -lv 4\n", host.serve(Dense, 8001)),
    );
    let report = host.verify("mute");
    assert_ne!(report.log().0, "spoke", "{:#}", report.json["witnesses"]);
    report.claim("fit").is("unproven").in_force_unseen();
}

#[test]
fn journals_in_other_places() {
    let host = host!();
    let serve = |port| format!("{} --fit off -lv 4", host.serve(Dense, port));
    // A journal of its own, and afterwards one that is kept in memory only.
    host.start("spaced", 8000, &format!("[Service]\nLogNamespace=models\nExecStart={}\n", serve(8000)));
    host.write("/etc/systemd/journald.conf.d/volatile.conf", "[Journal]\nStorage=volatile\n");
    host.remove("/etc/systemd/journald.conf.d/99-testbed.conf");
    host.systemctl(&["restart", "systemd-journald"]);
    host.start("volatile", 8001, &service(&serve(8001)));
    assert!(host.sh("ls /run/log/journal/*/").contains("system.journal"));
    for name in ["spaced", "volatile"] {
        let report = host.verify(name);
        report.has_no_objection().witness("log", "spoke");
        report.claim("fit").is("confirmed").in_force("off").evidence("log", "acknowledged");
    }
}

#[test]
fn the_server_talks_beside_a_file_that_somebody_else_writes() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    // Its own words, and those of a helper of the same unit, and those of another unit under the same identifier.
    let helper = "ExecStartPre=/bin/echo 'common_init_: fitting params to device memory ...'";
    host.start(
        "llm",
        8000,
        &format!("[Service]\nSyslogIdentifier=shared\n{helper}\nExecStart={serve} --fit off -lv 4\n"),
    );
    host.edit("other", &format!("[Service]\nType=oneshot\nSyslogIdentifier=shared\n{}\n", helper.replace("Pre=", "=")));
    host.reload();
    host.systemctl(&["start", "other"]);
    let report = host.verify("llm");
    report.has_no_objection();
    assert_ne!(report.raw("fit")["verdict"], "contradicted", "others said that");
}

// Whose service.

#[test]
fn a_service_of_a_user() {
    let host = host!();
    let id = host.get(&["id", "-u", USER]);
    let manager = format!("user@{id}.service");
    host.systemctl(&["start", &manager]);
    let place = format!("/home/{USER}/.config/systemd/user/mine.service");
    let unit = |size| service(&format!("{} -c {size} --metrics", host.serve(Dense, 8000)));
    let user = |words: &str| {
        host.sh(&format!("runuser -u {USER} -- env XDG_RUNTIME_DIR=/run/user/{id} systemctl --user {words}"))
    };
    host.write(&place, unit(512));
    host.sh(&format!("chown -R {USER}: /home/{USER}/.config"));
    user("daemon-reload");
    user("start mine");
    host.answers(8000);
    let process = format!("pid:{}", host.listener(8000));

    let words = ["verify", "mine", "--format", "json"];
    let as_user = |words: &[&str]| host.ascertain_as_user(words).report();
    for report in [as_user(&words), as_user(&["verify", &process, "--format", "json"]), host.verify(&process)] {
        report.has_no_objection().claim("ctx_size").is("confirmed").in_force("512").evidence("unit", "written");
        lines_in(&report, "ctx_size", &place);
    }
    host.verify(&process).witness("log", "spoke");

    host.write(&place, unit(1024));
    for report in [as_user(&words), host.verify(&process)] {
        report.is("contradicted", 1);
        let claim = report.claim("ctx_size");
        claim
            .breaks("written", "loaded")
            .remedy("systemctl --user daemon-reload")
            .remedy("systemctl --user restart mine");
    }
    user("daemon-reload");
    let report = as_user(&words);
    report
        .is("contradicted", 1)
        .claim("ctx_size")
        .breaks("loaded", "delivered")
        .remedy("systemctl --user restart mine");
    user("stop mine");
    as_user(&words).is("failed", 1).judges_nothing();
}

#[test]
fn somebody_without_permission() {
    let host = host!();
    host.write("/etc/default/llm", "LLAMA_ARG_CTX_SIZE=512\n");
    host.sh("chmod 600 /etc/default/llm");
    let unit =
        format!("[Service]\nEnvironmentFile=/etc/default/llm\nExecStart={} --metrics\n", host.serve(Dense, 8000));
    host.start("llm", 8000, &unit);
    // A unit that only root may read, too.
    host.start("hidden", 8001, &service(&format!("{} -c 512", host.serve(Dense, 8001))));
    host.sh("chmod 600 /etc/systemd/system/hidden.service");
    for name in ["llm", "hidden"] {
        host.verify(name).is("confirmed", 0);
        let run = host.ascertain_as_user(&["verify", name, "--format", "json"]);
        if run.code == 2 {
            run.complains("root");
            continue;
        }
        // What may not be read is a gap: nothing was found against it, and what is lacking is said.
        let report = run.report();
        assert_eq!((report.run.code, report.json["exit_code"].as_i64()), (0, Some(0)), "{:#}", report.json);
        assert_ne!(report.json["verdict"], "contradicted");
        let lacks = report.json["witnesses"].as_array().expect("witnesses").iter();
        assert!(lacks.clone().any(|witness| witness["state"] != "spoke"), "{:#}", report.json["witnesses"]);
    }
}

#[test]
fn a_name_that_is_wrong() {
    let host = host!();
    host.start("sglang-qwen", 8000, &service(&host.serve(Dense, 8000)));
    for name in ["sglang-qwn", "sglang-qwn.service", "sglang_qwen"] {
        host.ascertain(&["verify", name]).ends(2).complains("sglang-qwen").complains(name);
    }
    host.ascertain(&["verify", "nothing-like-it"]).ends(2).complains("nothing-like-it");
    // Services there are, and no servers.
    host.ascertain(&["verify", "dbus.service"]).ends(2).complains("dbus.service");
    host.edit("masked", "");
    host.systemctl(&["daemon-reload"]);
    host.remove("/etc/systemd/system/masked.service");
    host.sh("ln -s /dev/null /etc/systemd/system/masked.service; systemctl daemon-reload");
    let run = host.ascertain(&["verify", "masked.service"]);
    assert!([1, 2].contains(&run.code), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("masked") || run.stderr.contains("masked"));
    // Another name of the same unit.
    host.sh("ln -s sglang-qwen.service /etc/systemd/system/model.service; systemctl daemon-reload");
    host.verify("model").has_no_objection().claim("port").is("confirmed").in_force("8000");
}

// Secrets.

#[test]
fn keys_appear_nowhere() {
    let host = host!();
    let serve = |port| host.serve(Dense, port);
    let with = |before: &str, rest: String| format!("[Service]\n{before}\nExecStart={rest}\n");
    host.write("/etc/default/odd", "# was ZQold7comment\nQUAINT=\"ZQfile7part\\\nZQfile7rest\"\nBILLING=ZQbilling7\n");
    host.write("/etc/default/plain", "LLAMA_API_KEY=ZQvariable7\nHF_TOKEN=ZQtoken7\nNOTES=ZQnotes7\n");
    host.write("/etc/credentials/key", "ZQcredential7");
    let units = [
        (
            "continued",
            8001,
            with("# key ZQnote7", format!("{} \\\n  --api-key \\\n  # --api-key ZQdisabled7\n  ZQline7", serve(8001))),
        ),
        ("equals", 8002, with("; ZQnote7", format!("{} '--api-key' \"ZQquoted7\"", serve(8002)))),
        (
            "inside",
            8003,
            with("Environment=MYWORD=ZQword7 OTHER=ZQother7", format!("{} --api-key ${{MYWORD}}", serve(8003))),
        ),
        ("split", 8004, with("Environment='ARGS=--api-key ZQsplit7'", format!("{} $ARGS", serve(8004)))),
        ("file", 8005, with("EnvironmentFile=/etc/default/odd", format!("{} --api-key $QUAINT", serve(8005)))),
        ("variable", 8006, with("EnvironmentFile=/etc/default/plain", serve(8006))),
        (
            "shell",
            8007,
            with("", format!("/bin/sh -c 'K=ZQshell7; exec {} --api-key $K'", serve(8007).replace('$', "$$"))),
        ),
        (
            "credential",
            8008,
            with(
                "SetCredential=key:ZQset7\nSetCredential=more:ZQmore7\\x41\nLoadCredential=file:/etc/credentials/key\nExecStartPre=/bin/echo -H 'Authorization: Bearer ZQbearer7bearer7'",
                format!("/bin/sh -c 'exec {} --api-key-file $CREDENTIALS_DIRECTORY/key'", serve(8008)),
            ),
        ),
        (
            "escaped",
            8010,
            with("", format!("{} --api-key \"ZQone7\\\"ZQtwo7%%ZQthree7$$ZQfour7\\x5aQfive7\"", serve(8010))),
        ),
        ("script", 8011, service(&format!("/usr/local/bin/with-key{}", serve(8011).replace(SERVER, "")))),
        ("changed", 8009, with("Environment=PASSWORD=ZQpassword7", format!("{} --api-key ZQbefore7", serve(8009)))),
    ];
    let remember = "# ZQremark7\nWORD=ZQscript7\nPASSWORD='ZQlocal7'";
    let script = format!("#!/bin/sh\n{remember}\nexec {SERVER} \"$@\" --api-key \"$WORD\"\n");
    host.program("/usr/local/bin/with-key", &script);
    for (name, _, content) in &units {
        host.edit(name, content);
    }
    host.drop_in(
        "equals",
        "more",
        "# ZQdropin7\n[Service]\nEnvironment=\"WANDB_API_KEY=ZQwandb7\" 'URL=http://me:ZQurl7@example.invalid/'\n",
    );
    host.reload();
    let names: Vec<&str> = units.iter().map(|(name, ..)| *name).collect();
    host.systemctl(&[&["start"], &*names].concat());
    for (_, port, _) in &units {
        host.answers(*port);
        // The key is in force: else nothing would be hidden here.
        let ask = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET /props HTTP/1.0\\r\\n\\r\\n' >&3; read -r _ code _ <&3; echo $code"
        );
        assert_eq!(host.sh(&ask), "401", "port {port}");
    }
    // One that was written and neither loaded nor delivered, beside one that is on its way out.
    host.edit("changed", &with("", format!("{} --api-key ZQafter7", serve(8009))));

    for (name, ..) in &units {
        let report = host.ascertain(&["verify", name, "--format", "json"]);
        assert!([0, 1].contains(&report.code), "{name}: {}{}", report.stdout, report.stderr);
        let verbose = host.ascertain(&["verify", name, "-v"]);
        let explain = host.ascertain(&["explain", name, "api_key"]);
        let dry = host.ascertain(&["verify", name, "--dry-run"]);
        let file = format!("/root/{name}.tgz");
        host.ascertain(&["capture", name, "-o", &file]).ends(0);
        for run in [&report, &verbose, &explain, &dry] {
            hides(name, run.stdout.as_bytes());
            hides(name, run.stderr.as_bytes());
        }
        let unpacked =
            Command::new("tar").arg("-xzOf").arg(host.path(&file)).stdin(Stdio::null()).output().expect("tar");
        assert!(unpacked.status.success() && unpacked.stdout.len() > 1000, "{name}: the capture can be unpacked");
        hides(name, &unpacked.stdout);
        // The names of the artifacts as well.
        let names = Command::new("tar").arg("-tzf").arg(host.path(&file)).stdin(Stdio::null()).output().expect("tar");
        hides(name, &names.stdout);
    }
    // It was looked at, and not just left out.
    host.verify("continued").claim("api_key").wanted("[redacted]");
}

/// Expects that none of the secrets is in there. They all begin alike.
#[track_caller]
fn hides(name: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(at) = text.find("ZQ") {
        let around: String = text[at..].chars().take(80).collect();
        let before: String = text[..at].chars().rev().take(80).collect::<String>().chars().rev().collect();
        panic!("{name}: a secret is shown: …{before}{around}…");
    }
}

/// No setting shows it, and what runs is not what is written all the same.
#[test]
fn what_differs_beside_the_settings() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    let reloaded = |before: &str, after: &str| {
        host.start("llm", 8000, before);
        host.verify("llm").is("confirmed", 0);
        host.edit("llm", after);
        host.reload();
        host.verify("llm")
    };
    let unit = |more: &str| format!("[Service]\n{more}\nExecStart={serve} -c 512\n");

    // A variable that other libraries read: changed, and taken away.
    let report = reloaded(&unit("Environment=CUDA_VISIBLE_DEVICES=1"), &unit("Environment=CUDA_VISIBLE_DEVICES=2"));
    report.is("contradicted", 1).finds("environment_differs", "CUDA_VISIBLE_DEVICES");
    let report = reloaded(&unit("Environment=CUDA_VISIBLE_DEVICES=1"), &unit(""));
    report.is("unproven", 0).finds("environment_differs", "CUDA_VISIBLE_DEVICES");

    // Where it works.
    host.sh("mkdir -p /srv/one /srv/two");
    let report = reloaded(&unit("WorkingDirectory=/srv/one"), &unit("WorkingDirectory=/srv/two"));
    report.is("unproven", 0).finds("process_differs", "/srv/one");

    // As whom.
    let report = reloaded(&unit(&format!("User={USER}")), &unit("User=nobody"));
    report.is("contradicted", 1).finds("process_differs", "nobody");

    // Which program.
    host.sh(&format!("mkdir -p /opt/other && cp -r $(dirname {SERVER})/. /opt/other/"));
    let other = unit("").replace(SERVER, "/opt/other/llama-server");
    let report = reloaded(&unit(""), &other);
    report.is("contradicted", 1).finds("process_differs", "/opt/other/llama-server");

    // What the unit sets and a wrapper takes away again.
    for wrapper in ["env -i", "env -u LLAMA_ARG_CTX_SIZE"] {
        let unit = format!("[Service]\nEnvironment=LLAMA_ARG_CTX_SIZE=1024\nExecStart=/usr/bin/{wrapper} {serve}\n");
        host.start("llm", 8000, &unit);
        host.verify("llm").is("contradicted", 1).finds("variable_dropped", "LLAMA_ARG_CTX_SIZE");
    }

    // A model that is another one by now.
    let model = host.model(Dense);
    host.sh(&format!("cp {model} /srv/one/model.gguf"));
    host.start("llm", 8000, &unit("").replace(&model, "/srv/one/model.gguf"));
    host.verify("llm").is("confirmed", 0);
    host.sh(&format!("cp {model} /srv/one/new.gguf && mv /srv/one/new.gguf /srv/one/model.gguf"));
    host.verify("llm").is("unproven", 0).finds("changed_since", "/srv/one/model.gguf");
}

/// Lines of a unit that do nothing, and files that cannot be read.
#[test]
fn what_systemd_passes_over_or_cannot_read() {
    let host = host!();
    let serve = host.serve(Dense, 8000);
    host.start("llm", 8000, &format!("[Service]\nEnviroment=LLAMA_ARG_CTX_SIZE=99\nExecStart={serve} -c 512\n"));
    host.verify("llm").is("contradicted", 1).finds("unit_ignored", "Environment= is meant");
    host.start(
        "llm",
        8000,
        &format!("[service]\nEnvironment=LLAMA_ARG_CTX_SIZE=99\n[Service]\nExecStart={serve} -c 512\n"),
    );
    host.verify("llm").is("contradicted", 1).finds("unit_ignored", "[Service]");

    // One byte that is no UTF-8, in a comment: systemd reads the file, and we do not.
    host.start("llm", 8000, &format!("[Service]\nExecStart={serve} -c 512\n"));
    let text = format!("# gr\u{f6}\n[Service]\nExecStart={serve} -c 1024\n");
    let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).expect("Latin-1")).collect();
    host.write("/etc/systemd/system/llm.service", &latin);
    host.reload();
    let report = host.verify("llm");
    report.is("contradicted", 1).claim("ctx_size").in_force("512").breaks("loaded", "delivered");
    host.restart("llm", 8000);
    host.verify("llm").is("unproven", 0).claim("ctx_size").is("confirmed").in_force("1024");

    // A script that reads another file may ask for anything.
    host.write("/etc/default/llm", "LLAMA_ARG_CTX_SIZE=512\n");
    host.start("llm", 8000, &service(&format!("/bin/sh -c 'set -a; . /etc/default/llm; exec {serve}'")));
    let report = host.verify("llm");
    report.is("unproven", 0).claim("ctx_size").is("confirmed").in_force("512");
    let answer = report.json["answer"].as_str().expect("an answer");
    assert!(answer.contains("set -a"), "it says why not: {answer}");
}
