//! The command line as its users meet it: exit codes, both formats, widths, colours, messages.

use ascertain_testkit::golden;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ascertain");

/// What a run left.
struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn finish(command: &mut Command) -> Ran {
    let output = command.stdin(Stdio::null()).output().expect("the program starts");
    Ran {
        code: output.status.code().unwrap_or_else(|| panic!("ended by a signal: {}", output.status)),
        out: String::from_utf8(output.stdout).expect("output is UTF-8"),
        err: String::from_utf8(output.stderr).expect("messages are UTF-8"),
    }
}

/// The program without anything from our own environment that it listens to.
fn program(args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(args);
    for name in ["NO_COLOR", "COLUMNS", "ASCERTAIN_LLAMA_SERVER"] {
        command.env_remove(name);
    }
    command
}

fn run(args: &[&str]) -> Ran {
    finish(&mut program(args))
}

fn at_width(columns: usize, args: &[&str]) -> Ran {
    finish(program(args).env("COLUMNS", columns.to_string()))
}

fn json(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("not JSON: {error}\n{text}"))
}

/// Every golden capture: name and path.
fn all() -> Vec<(String, String)> {
    let all = golden("llamacpp").expect("the recordings are there");
    assert!(all.len() >= 89);
    all.into_iter().map(|(name, path)| (name, path.display().to_string())).collect()
}

/// The JSON report of a golden capture, once for all tests.
fn structured(path: &str) -> &'static Ran {
    static RUNS: OnceLock<BTreeMap<String, Ran>> = OnceLock::new();
    let runs = RUNS.get_or_init(|| {
        let report = |(_, path): (String, String)| (path.clone(), run(&["verify", &path, "--format", "json"]));
        all().into_iter().map(report).collect()
    });
    &runs[path]
}

fn one(name: &str) -> String {
    let (_, path) = all().into_iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no recording {name}"));
    path
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

fn has(text: &str, what: &str) {
    assert!(text.contains(what), "expected {what:?} in:\n{text}");
}

/// A process that looks like a server, stopped when dropped: a copy of the shell under the server's name, which runs
/// its "model". It serves nothing.
struct Pretender {
    child: Child,
    folder: tempfile::TempDir,
}

impl Pretender {
    fn start(args: &[&str]) -> Pretender {
        let (folder, mut command) = pretender(args);
        let log = fs::File::create(folder.path().join("log.txt")).expect("a log");
        let child =
            command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log).spawn().expect("a shell");
        wait_for_name(child.id());
        Pretender { child, folder }
    }

    fn target(&self) -> String {
        format!("pid:{}", self.child.id())
    }
}

impl Drop for Pretender {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pretender(args: &[&str]) -> (tempfile::TempDir, Command) {
    let folder = tempfile::tempdir().expect("a folder");
    let server = folder.path().join("llama-server");
    fs::copy("/bin/sh", &server).expect("a copy of the shell");
    fs::write(folder.path().join("model.gguf"), "while :; do sleep 1; done\n").expect("a model");
    let mut command = Command::new(&server);
    command.args(["-m", "model.gguf"]).args(args).current_dir(folder.path());
    (folder, command)
}

/// Waits until a process has become what it was started as.
fn wait_for_name(pid: u32) {
    for _ in 0..500 {
        if fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.windows(12).any(|part| part == b"llama-server"))
        {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    panic!("process {pid} did not become a server");
}

// ---------------------------------------------------------------------------------------------------------------------
// The schema

/// Where a value does not fit its schema. Knows the part of JSON Schema 2020-12 that the schema uses, and refuses any
/// other keyword, so that none is taken for checked that is not.
fn misfits(root: &Json, schema: &Json, value: &Json, at: &str, misfit: &mut Vec<String>) {
    let object = schema.as_object().expect("a schema is an object");
    for (keyword, rule) in object {
        let mut say = |what: String| misfit.push(format!("{at}: {what}"));
        match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => {}
            "$ref" => {
                let pointer = rule.as_str().and_then(|rule| rule.strip_prefix('#')).expect("a local reference");
                let target = root.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not in the schema"));
                misfits(root, target, value, at, misfit);
            }
            "type" => {
                let types: Vec<&str> = match rule {
                    Json::Array(rules) => rules.iter().filter_map(Json::as_str).collect(),
                    rule => rule.as_str().into_iter().collect(),
                };
                let fits = types.iter().any(|kind| match *kind {
                    "null" => value.is_null(),
                    "boolean" => value.is_boolean(),
                    "string" => value.is_string(),
                    "array" => value.is_array(),
                    "object" => value.is_object(),
                    "integer" => value.is_i64() || value.is_u64(),
                    kind => panic!("unknown type {kind}"),
                });
                if !fits {
                    say(format!("{value} is not {types:?}"));
                }
            }
            "const" if value != rule => say(format!("{value} is not {rule}")),
            "const" => {}
            "enum" => {
                if !rule.as_array().expect("an enum is an array").contains(value) {
                    say(format!("{value} is none of {rule}"));
                }
            }
            "anyOf" => {
                let rules = rule.as_array().expect("anyOf is an array");
                let tries: Vec<Vec<String>> = rules
                    .iter()
                    .map(|rule| {
                        let mut inner = Vec::new();
                        misfits(root, rule, value, at, &mut inner);
                        inner
                    })
                    .collect();
                if tries.iter().all(|inner| !inner.is_empty()) {
                    say(format!("fits none of anyOf: {}", tries.concat().join("; ")));
                }
            }
            "required" => {
                for name in rule.as_array().expect("required is an array").iter().filter_map(Json::as_str) {
                    if value.as_object().is_some_and(|value| !value.contains_key(name)) {
                        say(format!("{name} is missing"));
                    }
                }
            }
            "properties" => {
                for (name, rule) in rule.as_object().expect("properties is an object") {
                    if let Some(value) = value.get(name) {
                        misfits(root, rule, value, &format!("{at}/{name}"), misfit);
                    }
                }
            }
            "additionalProperties" => {
                assert_eq!(rule, &Json::Bool(false), "only false is understood");
                let known = schema["properties"].as_object().expect("properties");
                for name in value.as_object().into_iter().flat_map(|value| value.keys()) {
                    if !known.contains_key(name) {
                        say(format!("{name} is not described"));
                    }
                }
            }
            "items" => {
                for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                    misfits(root, rule, value, &format!("{at}/{index}"), misfit);
                }
            }
            "minItems"
                if value.as_array().is_some_and(|value| (value.len() as u64) < rule.as_u64().expect("a number")) =>
            {
                say(format!("{value} has too few items"));
            }
            "maxItems"
                if value.as_array().is_some_and(|value| (value.len() as u64) > rule.as_u64().expect("a number")) =>
            {
                say(format!("{value} has too many items"));
            }
            "minimum" if value.as_i64().is_some_and(|value| value < rule.as_i64().expect("a number")) => {
                say(format!("{value} is less than {rule}"));
            }
            "minItems" | "maxItems" | "minimum" => {}
            "pattern" => {
                assert_eq!(rule, "^[a-z_]+$", "only this pattern is understood");
                let fits =
                    |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
                if value.as_str().is_some_and(|text| !fits(text)) {
                    say(format!("{value} does not match {rule}"));
                }
            }
            keyword => panic!("{at}: the keyword {keyword} is not understood"),
        }
    }
}

fn schema() -> Json {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
    json(&fs::read_to_string(path).expect("the schema is there"))
}

#[test]
fn every_report_fits_the_schema() {
    let schema = schema();
    let mut wrong = Vec::new();
    for (name, path) in all() {
        let mut misfit = Vec::new();
        misfits(&schema, &schema, &json(&structured(&path).out), "", &mut misfit);
        wrong.extend(misfit.into_iter().map(|line| format!("{name}{line}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_validator_finds_what_does_not_fit() {
    let schema = schema();
    let report = json(&run(&["verify", &one("mtp"), "--format", "json"]).out);
    type Mutation = (&'static str, fn(&mut Json));
    let mutations: [Mutation; 8] = [
        ("a field more", |report| report["claims"][0]["more"] = 1.into()),
        ("a field less", |report| drop(report["target"].as_object_mut().map(|target| target.remove("argv")))),
        ("another word", |report| report["claims"][0]["verdict"] = "fine".into()),
        ("another schema", |report| report["schema"] = "ascertain.report/2".into()),
        ("another type", |report| report["exit_code"] = "0".into()),
        ("null", |report| report["claims"][0]["evidence"][0]["locus"] = Json::Null),
        ("too short", |report| report["claims"][0]["evidence"][0]["locus"]["bytes"] = Json::Array(vec![1.into()])),
        ("negative", |report| report["target"]["pid"] = (-1).into()),
    ];
    for (what, mutate) in mutations {
        let mut changed = report.clone();
        mutate(&mut changed);
        let mut misfit = Vec::new();
        misfits(&schema, &schema, &changed, "", &mut misfit);
        assert!(!misfit.is_empty(), "{what} was not noticed");
    }
}

#[test]
fn the_schema_describes_and_closes_every_object() {
    fn walk(schema: &Json, at: &str, wrong: &mut Vec<String>) {
        let described = schema.get("description").is_some() || schema.get("$ref").is_some();
        if let Some(properties) = schema.get("properties").and_then(Json::as_object) {
            if schema["additionalProperties"] != Json::Bool(false) {
                wrong.push(format!("{at} is open"));
            }
            let required: BTreeSet<&str> =
                schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
            let named: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
            // The report leaves no field out: what is not known is null.
            if required != named {
                wrong.push(format!("{at} does not require all its fields"));
            }
            for (name, property) in properties {
                walk(property, &format!("{at}/{name}"), wrong);
            }
        }
        if let Some(items) = schema.get("items").filter(|items| items.get("properties").is_some()) {
            walk(items, &format!("{at}/items"), wrong);
        }
        if !described {
            wrong.push(format!("{at} is not described"));
        }
    }
    let schema = schema();
    let mut wrong = Vec::new();
    for (name, part) in schema["$defs"].as_object().expect("$defs") {
        walk(part, name, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// ---------------------------------------------------------------------------------------------------------------------
// Both formats

/// Whether a line shows a value: whole, or cut in the middle.
fn shows(line: &str, value: &str) -> bool {
    if line.contains(value) {
        return true;
    }
    line.match_indices('…').any(|(at, cut)| {
        let (before, after) = (&line[..at], &line[at + cut.len()..]);
        let head = before.rsplit("  ").next().unwrap_or(before).trim_start_matches(['✓', '~', '?', '–', '✗', ' ']);
        let tail = after.split("  ").next().unwrap_or(after).trim_end();
        !head.is_empty() && !tail.is_empty() && value.starts_with(head) && value.ends_with(tail)
    })
}

#[test]
fn text_and_json_say_the_same() {
    for (name, path) in all() {
        let text = at_width(140, &["verify", &path]);
        assert!(widest(&text.out) <= 140, "{name}: {}", widest(&text.out));
        let structured = structured(&path);
        let report = json(&structured.out);
        assert_eq!(text.code, structured.code, "{name}");
        assert_eq!(report["exit_code"], text.code, "{name}");
        assert!(text.err.is_empty() && structured.err.is_empty(), "{name}: {}{}", text.err, structured.err);

        let flat = text.out.split_whitespace().collect::<Vec<_>>().join(" ");
        let says = |what: &str| flat.contains(&what.split_whitespace().collect::<Vec<_>>().join(" "));
        let word = report["verdict"].as_str().expect("a verdict").to_uppercase();
        assert!(text.out.lines().next().is_some_and(|line| line.contains(&word)), "{name}: {word}");
        assert!(says(report["answer"].as_str().expect("an answer")), "{name}");

        // A row begins with a sign and ends with the verdict; what is said below it is indented.
        let rows: Vec<&str> = text
            .out
            .lines()
            .skip_while(|line| !line.starts_with("  SETTING"))
            .skip(1)
            .take_while(|line| !line.is_empty())
            .filter(|line| !line.starts_with("    "))
            .collect();
        let claims = report["claims"].as_array().expect("claims");
        assert_eq!(rows.len(), claims.len(), "{name}:\n{}", text.out);
        for claim in claims {
            let of = |field: &str| claim[field].as_str().unwrap_or("");
            let mut verdict = of("verdict").replace('_', " ");
            if let Some(rung) = claim["rung"].as_str() {
                verdict = format!("{verdict}, {rung}");
            }
            let found =
                rows.iter().any(|row| row.ends_with(&verdict) && shows(row, of("setting")) && shows(row, of("wanted")));
            assert!(found, "{name}: no row for {} {} {verdict}:\n{}", of("setting"), of("wanted"), text.out);
            let failed = report["invocation"]["state"] != "running";
            if !failed && let Some(effect) = claim["effect"].as_object() {
                let line = format!(
                    "{}: {}",
                    effect["is"].as_str().unwrap_or(""),
                    effect["verdict"].as_str().unwrap_or("").replace('_', " ")
                );
                assert!(says(&line), "{name}: {line}:\n{}", text.out);
            }
            if !(failed && of("verdict") == "unproven") {
                assert!(says(of("remedy")), "{name}: {}:\n{}", of("remedy"), text.out);
            }
        }
        for unasked in report["unasked"].as_array().expect("unasked") {
            let line = format!(
                "{} = {}",
                unasked["setting"].as_str().unwrap_or(""),
                unasked["effective"].as_str().unwrap_or("")
            );
            assert!(says(&line), "{name}: {line}:\n{}", text.out);
        }
        for finding in
            report["findings"].as_array().expect("findings").iter().filter(|finding| finding["severity"] != "info")
        {
            assert!(says(finding["text"].as_str().unwrap_or("")), "{name}: {finding}:\n{}", text.out);
        }
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut wrong = Vec::new();
    for (name, path) in all() {
        for (columns, more) in [(80, None), (80, Some("-v"))] {
            let mut args = vec!["verify", path.as_str()];
            args.extend(more);
            let ran = at_width(columns, &args);
            if widest(&ran.out) > columns {
                let line = ran.out.lines().max_by_key(|line| line.chars().count()).unwrap_or("");
                wrong.push(format!("{name} at {columns} {more:?}: {} columns: {line}", widest(&ran.out)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn verbose_shows_every_piece_of_evidence_and_all_findings() {
    for name in ["mtp", "draft-md-without-spec-type", "config-ini", "api-key", "bad-flag"] {
        let path = one(name);
        let short = at_width(200, &["verify", &path]);
        let long = at_width(200, &["verify", "-v", &path]);
        assert_eq!(long.code, short.code);
        assert!(long.out.lines().count() > short.out.lines().count(), "{name}");
        let report = json(&structured(&path).out);
        let flat = long.out.split_whitespace().collect::<Vec<_>>().join(" ");
        for finding in report["findings"].as_array().expect("findings") {
            let text = finding["text"].as_str().unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ");
            has(&flat, &text);
        }
        for witness in report["witnesses"].as_array().expect("witnesses") {
            has(&long.out, witness["name"].as_str().unwrap_or("?"));
        }
        if report["invocation"]["state"] == "running" {
            for evidence in report["claims"]
                .as_array()
                .expect("claims")
                .iter()
                .flat_map(|claim| claim["evidence"].as_array().expect("evidence"))
            {
                has(
                    &long.out,
                    &format!(
                        "{} {}",
                        evidence["locus"]["artifact"].as_str().unwrap_or("?"),
                        evidence["locus"]["label"].as_str().unwrap_or("?")
                    ),
                );
            }
        }
    }
}

#[test]
fn explain_shows_the_ladder_of_every_claim() {
    for name in ["mtp", "draft-md-without-spec-type", "config-ini", "env-and-flag", "bad-flag", "ctx-gt-train"] {
        let path = one(name);
        let report = json(&structured(&path).out);
        for claim in report["claims"].as_array().expect("claims") {
            let setting = claim["setting"].as_str().expect("a name");
            let ran = at_width(80, &["explain", &path, setting]);
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{name} {setting}");
            assert!(widest(&ran.out) <= 80, "{name} {setting}: {}", widest(&ran.out));
            let first = ran.out.lines().next().unwrap_or("");
            has(first, setting);
            has(first, &claim["verdict"].as_str().unwrap_or("?").replace('_', " "));
            // Every rung is there, the highest first.
            let rungs = ["exercised", "reported", "acknowledged", "delivered", "loaded", "written"];
            let places: Vec<Option<usize>> = rungs
                .iter()
                .map(|rung| ran.out.lines().position(|line| line.split("  ").next() == Some(rung)))
                .collect();
            assert!(
                places.iter().all(Option::is_some) && places.is_sorted(),
                "{name} {setting} {places:?}:\n{}",
                ran.out
            );
            for evidence in claim["evidence"].as_array().expect("evidence") {
                has(&ran.out, evidence["locus"]["artifact"].as_str().unwrap_or("?"));
            }
            let structured = run(&["explain", &path, setting, "--format", "json"]);
            assert_eq!(&json(&structured.out), claim, "{name} {setting}");
        }
    }
    // A flag is as good as the name.
    let path = one("mtp");
    let by_name = run(&["explain", &path, "spec_type"]).out;
    assert_eq!(run(&["explain", &path, "--spec-type"]).out, by_name);
    assert_eq!(run(&["explain", &path, "spec-type"]).out, by_name);
    assert_eq!(run(&["explain", &path, "-m"]).out, run(&["explain", &path, "model"]).out);
}

#[test]
fn explain_of_a_setting_nobody_asked_for_says_what_was_asked() {
    let ran = run(&["explain", &one("mtp"), "spec_tpye"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    has(&ran.err, "nobody asked for \"spec_tpye\"");
    has(&ran.err, "did you mean spec_type?");
    has(&ran.err, "asked for: model");
}

// ---------------------------------------------------------------------------------------------------------------------
// Exit codes and messages

#[test]
fn exit_codes_are_a_contract() {
    for (name, args, code) in [
        ("mtp", &[][..], 0),
        ("ctx-gt-train", &[], 0),
        ("api-key", &[], 0),
        ("api-key", &["--strict"], 3),
        ("mtp", &["--strict"], 0),
        ("draft-md-without-spec-type", &[], 1),
        ("draft-md-without-spec-type", &["--strict"], 1),
        ("bad-flag", &[], 1),
        ("config-ini", &[], 1),
        ("mtp", &["--no-such-option"], 2),
        ("mtp", &["--exercise"], 2),
        ("mtp", &["--dry-run"], 2),
    ] {
        let path = one(name);
        let ran = run(&[&["verify", path.as_str()], args].concat());
        assert_eq!(ran.code, code, "{name} {args:?}: {}{}", ran.out, ran.err);
        // What could not be done prints no report; what was done prints no error.
        assert_eq!(ran.out.is_empty(), code == 2, "{name} {args:?}");
        assert_eq!(ran.err.is_empty(), code != 2, "{name} {args:?}: {}", ran.err);
    }
}

#[test]
fn another_process_on_the_port_is_exit_code_4() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let (folder, server) = pretender(&["--port", &port]);
    // Its parent ends at once, so that the listener (this process) is none of its ancestors.
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "\"$@\" >/dev/null 2>&1 </dev/null & echo $!", "sh"]);
    shell.arg(server.get_program()).args(server.get_args()).current_dir(folder.path());
    let pid: u32 = finish(&mut shell).out.trim().parse().expect("a PID");
    wait_for_name(pid);
    let target = format!("pid:{pid}");
    let text = run(&["verify", &target, "--timeout", "1"]);
    let structured = run(&["verify", &target, "--timeout", "1", "--format", "json"]);
    let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert_eq!((text.code, structured.code), (4, 4), "{}{}", text.out, text.err);
    has(&text.out, "the one meant");
    let report = json(&structured.out);
    assert_eq!(report["invocation"]["state"], "impostor");
    assert_eq!(report["exit_code"], 4);
    assert!(
        report["claims"].as_array().expect("claims").iter().all(|claim| claim["verdict"] != "confirmed"),
        "{report:#}"
    );
    let mut misfit = Vec::new();
    misfits(&schema(), &schema(), &report, "", &mut misfit);
    assert!(misfit.is_empty(), "{misfit:?}");
}

#[test]
fn what_cannot_be_done_says_why_and_what_to_do() {
    let nothing = tempfile::tempdir().expect("a folder");
    fs::write(nothing.path().join("notes.txt"), "x").expect("a file");
    let nothing = nothing.path().display().to_string();
    let golden = one("mtp");
    let me = format!("pid:{}", std::process::id());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let open = format!("http://127.0.0.1:{}", listener.local_addr().expect("an address").port());
    let cases: &[(&[&str], &[&str])] = &[
        (&["verify", "no-such-server"], &["no running server is called \"no-such-server\"", "hint:"]),
        (&["verify", "./no/such/file"], &["./no/such/file: no such file or directory", "hint: a target is"]),
        (&["verify", &nothing], &["holds no evidence", "log.txt", "evidence-directory.md"]),
        (&["verify", "/dev/null"], &["/dev/null", "not a regular file"]),
        (&["verify", &me], &["is no engine that ascertain knows (llama.cpp)", "ascertain list"]),
        (&["verify", "pid:4194999"], &["4194999", "ascertain list"]),
        (&["verify", "pid:x"], &["\"x\" is no PID", "pid:1234"]),
        (&["verify", "http://127.0.0.1:1"], &["nothing listens on 127.0.0.1:1"]),
        (&["verify", "http://127.0.0.1:99999"], &["is no address", "http://HOST:PORT"]),
        (&["verify", "http://"], &["is no address"]),
        (&["verify", "HTTP://127.0.0.1:1"], &["nothing listens on 127.0.0.1:1"]),
        (&["verify", ":1"], &["nothing listens on 127.0.0.1:1"]),
        (&["verify", "localhost:1"], &["nothing listens on localhost:1"]),
        (&["verify", "http://host.invalid:8080"], &["no address of this host", "ascertain capture"]),
        (&["verify", "4194999"], &["may be a PID or a port", "pid:4194999"]),
        (&["verify", &open, "--timeout", "1"], &["is no engine that ascertain knows"]),
        (&["verify", "ssh://-host/unit"], &["no ssh:// target", "ssh://[USER@]HOST[:PORT]/UNIT"]),
        (&["verify", "ftp://host/unit"], &["a target of this kind is not known", "ssh://"]),
        (&["verify", "pid:1", "--push"], &["for targets on other hosts", "ssh://"]),
        (&["verify", &golden, "--exercise"], &["no server to ask"]),
        (&["verify", &golden, "--log", "/no/such/log"], &["/no/such/log"]),
        (&["verify", &golden, "--timeout", "0"], &["0 is not in 1..=600"]),
        (&["verify", &golden, "--format", "xml"], &["text, json"]),
        (&["capture", &golden, "-o", "/no/such/folder/x.tgz"], &["/no/such/folder/x.tgz", "hint:"]),
        (&["capture", &golden], &["--output <FILE>"]),
        (&["explain", &golden], &["<SETTING>"]),
        (&["completions", "tcsh"], &["bash"]),
        (&["verfy"], &["verify"]),
    ];
    for (args, wanted) in cases {
        let ran = run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {}", ran.err);
        assert!(ran.err.starts_with("error: "), "{args:?}: {}", ran.err);
        wanted.iter().for_each(|wanted| has(&ran.err, wanted));
    }
}

#[test]
fn a_key_is_named_by_its_variable_only() {
    let server = Pretender::start(&["--port", "1"]);
    let ran = run(&["verify", &server.target(), "--api-key-env", "ASCERTAIN_TEST_NOT_SET"]);
    assert_eq!(ran.code, 2);
    has(&ran.err, "ASCERTAIN_TEST_NOT_SET is not set");
}

#[test]
fn a_server_that_only_was_started_confirms_nothing() {
    let server = Pretender::start(&["-c", "4096", "--metrics", "--port", "1"]);
    let report = json(&run(&["verify", &server.target(), "--format", "json"]).out);
    let verdicts: Vec<&str> =
        report["claims"].as_array().expect("claims").iter().filter_map(|claim| claim["verdict"].as_str()).collect();
    assert!(!verdicts.is_empty() && verdicts.iter().all(|verdict| *verdict == "unproven"), "{report:#}");
    // It does not answer, which no script may take for success.
    assert_eq!(run(&["verify", &server.target(), "--strict"]).code, 1);
    // Its model, its executable and its PID name it.
    let listed = run(&["list"]);
    has(&listed.out, &server.target());
    let dry = run(&["verify", &server.target(), "--dry-run"]);
    assert_eq!(dry.code, 0);
    for touched in ["/proc/", "fd/2", "GET     http://127.0.0.1:1/props", "model.gguf", "config.ini"] {
        has(&dry.out, touched);
    }
    assert!(server.folder.path().join("log.txt").exists());
}

#[test]
fn a_process_of_somebody_else_leaves_gaps_with_a_hint() {
    let setpriv = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "true"])
        .stderr(Stdio::null())
        .status();
    if !setpriv.is_ok_and(|status| status.success()) {
        eprintln!("skipped: needs root and setpriv to become another user");
        return;
    }
    let server = Pretender::start(&["-c", "4096", "--port", "1"]);
    // Somebody else may not enter the folder in which we were built.
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("ascertain");
    fs::copy(PROGRAM, &program).expect("a copy");
    open_up(folder.path());
    let as_nobody = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program)
            .args(args)
            .env("COLUMNS", "200")
            .current_dir("/");
        finish(&mut command)
    };
    let ran = as_nobody(&["verify", &server.target(), "-v"]);
    let said = format!("{}{}", ran.out, ran.err);
    assert!(ran.code == 2 || (ran.code == 1 && ran.out.contains("UNPROVEN")), "{}: {said}", ran.code);
    has(&said, "not permitted");
    has(&said, "as the user of the server or as root");
    assert!([1, 2].contains(&as_nobody(&["verify", &server.target(), "--strict"]).code));
    // Environment and configuration files may ask for more than the command line shows: that they could not be read
    // must be said, or a claim that nobody saw would pass.
    let report = json(&as_nobody(&["verify", &server.target(), "--format", "json"]).out);
    let process =
        report["witnesses"].as_array().expect("witnesses").iter().find(|witness| witness["name"] == "process");
    let process = process.expect("the process is a witness");
    assert_ne!(process["state"], "spoke", "the environment was not read: {process}");
    has(process["note"].as_str().unwrap_or(""), "environ");
}

fn open_up(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

// ---------------------------------------------------------------------------------------------------------------------
// Terminals and pipes

#[test]
fn colour_is_for_terminals() {
    let path = one("draft-md-without-spec-type");
    for args in [
        &["verify", path.as_str()][..],
        &["explain", path.as_str(), "model"],
        &["demo"],
        &["--help"],
        &["verify", "--help"],
    ] {
        assert!(!run(args).out.contains('\u{1b}'), "{args:?}");
        let mut never = args.to_vec();
        never.extend(["--color", "never"]);
        assert!(!run(&never).out.contains('\u{1b}'), "{args:?}");
    }
    assert!(!run(&["verify", "nobody"]).err.contains('\u{1b}'));
    for args in [
        &["verify", path.as_str()][..],
        &["verify", "-v", path.as_str()],
        &["explain", path.as_str(), "model"],
        &["demo"],
    ] {
        let plain = run(args).out;
        let mut always = args.to_vec();
        always.extend(["--color", "always"]);
        let coloured = run(&always).out;
        assert!(coloured.contains('\u{1b}'), "{args:?}");
        assert_eq!(without_colour(&coloured), plain, "{args:?}");
        // Asked for in so many words, it wins over the environment.
        assert_eq!(finish(program(&always).env("NO_COLOR", "1")).out, coloured);
    }
    let structured = run(&["verify", &path, "--format", "json", "--color", "always"]).out;
    assert!(!structured.contains('\u{1b}'));
}

fn without_colour(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        let end = rest[at..].find('m').expect("only colours are sent");
        assert!(
            rest[at + 1..at + end].chars().skip(1).all(|c| c.is_ascii_digit() || c == ';'),
            "only colours are sent"
        );
        rest = &rest[at + end + 1..];
    }
    plain.push_str(rest);
    plain
}

#[test]
fn on_a_terminal_no_color_is_respected() {
    let on_terminal = |no_color: Option<&str>| -> Option<String> {
        let mut command = Command::new("script");
        command.args(["-qec", &format!("'{PROGRAM}' verify '{}'", one("mtp")), "/dev/null"]).env_remove("NO_COLOR");
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let output = command.stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.contains("CONFIRMED").then_some(text)
    };
    let Some(coloured) = on_terminal(None) else {
        eprintln!("skipped: needs script(1) to make a terminal");
        return;
    };
    assert!(coloured.contains("\u{1b}["), "{coloured:?}");
    assert!(!on_terminal(Some("1")).expect("a report").contains("\u{1b}["));
    // An empty NO_COLOR is none (no-color.org).
    assert!(on_terminal(Some("")).expect("a report").contains("\u{1b}["));
}

#[test]
fn a_reader_that_went_away_ends_it_quietly() {
    let mtp = one("mtp");
    let bad = one("draft-md-without-spec-type");
    for (args, code) in [
        (&["demo"][..], 0),
        (&["man"], 0),
        (&["completions", "bash"], 0),
        (&["verify", mtp.as_str(), "-v"], 0),
        // Less output must not look like a better verdict.
        (&["verify", bad.as_str()], 1),
        (&["verify", bad.as_str(), "--format", "json"], 1),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = program(args)
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts")
            .wait_with_output()
            .expect("ends");
        assert_eq!(output.stderr, b"", "{args:?}");
        assert_eq!(output.status.code(), Some(code), "{args:?}");
    }
    // And one that read a line first.
    let mut child =
        program(&["demo"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut first = [0; 16];
    child.stdout.take().expect("a pipe").read_exact(&mut first).expect("a line");
    let output = child.wait_with_output().expect("ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_full_disk_is_an_error() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        eprintln!("skipped: needs /dev/full");
        return;
    };
    let output = program(&["verify", &one("mtp")])
        .stdin(Stdio::null())
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .expect("starts");
    assert_eq!(output.status.code(), Some(2));
    has(&String::from_utf8_lossy(&output.stderr), "cannot write the output");
}

// ---------------------------------------------------------------------------------------------------------------------
// Captures

#[test]
fn a_capture_replaces_nothing_unasked() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, golden) = all().remove(0);
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_string();
    let file = at("there.tgz");
    fs::write(&file, "precious").expect("a file");
    let ran = run(&["capture", &golden, "-o", &file]);
    assert_eq!(ran.code, 2, "{}", ran.out);
    has(&ran.err, "is there already");
    has(&ran.err, "--force");
    assert_eq!(fs::read(&file).expect("the file"), b"precious");
    assert_eq!(run(&["capture", &golden, "-o", &file, "--force"]).code, 0);
    assert_ne!(fs::read(&file).expect("the file"), b"precious");
    // A link stays a link, with or without.
    let link = at("link.tgz");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    let ran = run(&["capture", &golden, "-o", &link, "--force"]);
    assert_eq!(ran.code, 2, "{}", ran.out);
    has(&ran.err, "no regular file");
    assert!(fs::symlink_metadata(&link).expect("the link").is_symlink());
    // The standard output gets the same bytes.
    let output = program(&["capture", &golden, "-o", "-"]).output().expect("it runs");
    assert!(output.status.success());
    assert_eq!(output.stdout, fs::read(&file).expect("the file"));
}

#[test]
fn evidence_of_another_program_is_not_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("process.json"), "{\"exe\": \"/usr/bin/bash\"}").expect("a file");
    fs::write(folder.path().join("log.txt"), "hello\n").expect("a file");
    let ran = run(&["verify", folder.path().to_str().expect("UTF-8")]);
    assert_eq!(ran.code, 2, "{}", ran.out);
    has(&ran.err, "/usr/bin/bash, which is no engine");
}

#[test]
fn a_packed_capture_gives_the_same_report_byte_for_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, path) in all() {
        let file = folder.path().join(format!("{name}.tgz")).display().to_string();
        let packed = run(&["capture", &path, "-o", &file]);
        assert_eq!(packed.code, 0, "{name}: {}", packed.err);
        has(&packed.out, &file);
        let (direct, stored) = (structured(&path), run(&["verify", &file, "--format", "json"]));
        assert_eq!(stored.out, direct.out, "{name}");
        assert_eq!(stored.code, direct.code, "{name}");
    }
    // The same evidence always gives the same file.
    let (one_file, other) = (folder.path().join("one.tgz"), folder.path().join("other.tgz"));
    for file in [&one_file, &other] {
        run(&["capture", &one("mtp"), "-o", &file.display().to_string()]);
    }
    assert_eq!(fs::read(one_file).expect("a file"), fs::read(other).expect("a file"));
}

#[test]
fn the_order_in_which_files_were_written_changes_nothing() {
    let source = PathBuf::from(one("mtp"));
    let mut names: Vec<_> =
        fs::read_dir(&source).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    let wanted = run(&["verify", &source.display().to_string(), "--format", "json"]).out;
    let folder = tempfile::tempdir().expect("a folder");
    for turn in 0..4 {
        let copy = folder.path().join(turn.to_string()).join("mtp");
        fs::create_dir_all(&copy).expect("a folder");
        let length = names.len();
        if turn % 2 == 1 {
            names.reverse();
        }
        names.rotate_left(turn * 5 % length);
        for name in &names {
            fs::copy(source.join(name), copy.join(name)).expect("a copy");
        }
        // What nobody asks for is passed over.
        fs::write(copy.join("notes.md"), "n_ctx = 1").expect("a file");
        fs::create_dir(copy.join("more")).expect("a folder");
        assert_eq!(run(&["verify", &copy.display().to_string(), "--format", "json"]).out, wanted);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The rest

#[test]
fn completions_of_every_shell_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = run(&["completions", shell]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{shell}");
        for word in ["verify", "capture", "explain", "demo", "--exercise", "--format"] {
            let word = if shell == "fish" { word.trim_start_matches('-') } else { word };
            has(&ran.out, word);
        }
    }
    // The shell that is surely there accepts its script.
    if let Ok(mut bash) = Command::new("bash").arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        let script = run(&["completions", "bash"]).out;
        bash.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("a script");
        let output = bash.wait_with_output().expect("ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_manual_page_names_every_command() {
    let page = run(&["man"]);
    assert_eq!((page.code, page.err.as_str()), (0, ""));
    assert!(page.out.contains(".TH "), "{}", page.out);
    for command in ["verify", "capture", "explain", "list", "demo", "completions"] {
        has(&page.out, command);
    }
    has(&page.out, "Exit codes");
    // Nothing that roff would take for a request of its own.
    for line in page.out.lines().filter(|line| line.starts_with('.')) {
        let request: String = line.chars().skip(1).take_while(char::is_ascii_alphanumeric).collect();
        assert!(
            ["TH", "SH", "SS", "TP", "PP", "RS", "RE", "br", "ie", "el", "IP", "nf", "fi"].contains(&request.as_str()),
            "{line}"
        );
    }
    // Where there is a roff, it has nothing to complain about.
    let roff = Command::new("groff")
        .args(["-man", "-Tutf8", "-ww", "-z"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    if let Ok(mut roff) = roff {
        roff.stdin.take().expect("a pipe").write_all(page.out.as_bytes()).expect("a page");
        assert_eq!(String::from_utf8_lossy(&roff.wait_with_output().expect("ends").stderr), "");
    }
}

#[test]
fn help_is_readable() {
    for command in ["", "verify", "capture", "explain", "list", "demo", "completions", "man"] {
        for flag in ["--help", "-h"] {
            let args: Vec<&str> = [command, flag].into_iter().filter(|word| !word.is_empty()).collect();
            let ran = at_width(100, &args);
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{command} {flag}");
            assert!(widest(&ran.out) <= 100, "{command} {flag}: {}", widest(&ran.out));
            has(&ran.out, "Usage: ascertain");
        }
    }
    let main = run(&["--help"]).out;
    for word in ["Exit codes: 0", "Examples:", "pid:1234", "http://", "ascertain demo"] {
        has(&main, word);
    }
    let verify = run(&["verify", "--help"]).out;
    for word in ["pid:1234", "http://host:port", "capture file", "evidence", "exit code 3", "--exercise"] {
        has(&verify, word);
    }
    has(&run(&["explain", "--help"]).out, "as for verify");
    has(&run(&["--version"]).out, concat!("ascertain ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_demo_shows_both_verdicts() {
    let ran = at_width(80, &["demo"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for word in ["✗ CONTRADICTED", "✓ CONFIRMED", "# exit code 1", "# exit code 0", "ascertain demo --live"] {
        has(&ran.out, word);
    }
    // The first report to the letter: whoever changes what people see sees it here.
    let first: Vec<&str> = ran
        .out
        .lines()
        .skip_while(|line| !line.starts_with('✗'))
        .take_while(|line| !line.starts_with("# exit code"))
        .collect();
    assert_eq!(first.join("\n"), FIRST_REPORT, "the demo's first report reads differently:\n{}", first.join("\n"));
}

const FIRST_REPORT: &str = "\
✗ CONTRADICTED  Not as intended: 1 of 5 settings not in force or without effect
                (spec_draft_model).
llama.cpp b11434 (demo: a draft model is given)

  SETTING           WANTED                    IN FORCE   VERDICT
✗ spec_draft_model  /models…qwen3-draft.gguf  –          contradicted
    ✗ tokens are drafted and accepted: contradicted (it is not running, so
      nothing can come of it)
    delivered ≠ acknowledged: the draft model is loaded, then dropped: no
    --spec-type asks for speculation
    → add --spec-type draft-simple (or the type of the draft model) and restart
✓ model             /models/tiny-qwen3.gguf   the same   confirmed, reported
✓ metrics           true                      true       confirmed, exercised
✓ host              127.0.0.1                 127.0.0.1  confirmed, acknowledged
✓ port              35123                     35123      confirmed, acknowledged

Witnesses: process, log, health, props, slots, models, metrics, traffic
";

#[test]
fn a_live_demo_without_a_server_says_what_to_do() {
    let ran = finish(program(&["demo", "--live"]).env("PATH", "/no/such/folder"));
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    has(&ran.err, "no llama-server on PATH");
    has(&ran.err, "ASCERTAIN_LLAMA_SERVER=");
    let ran = finish(program(&["demo", "--live"]).env("ASCERTAIN_LLAMA_SERVER", "/no/such/file"));
    assert_eq!(ran.code, 2);
    has(&ran.err, "/no/such/file");
}
