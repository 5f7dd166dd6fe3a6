//! `ascertain` against the real `llama-server`, started here with tiny models: one test a situation.
//!
//! The server is the one that `ASCERTAIN_LLAMA_SERVER` names; `scripts/test` installs one. Without it these tests are
//! skipped, or fail if `ASCERTAIN_REQUIRE_LIVE=1`. What is expected follows from what the server does, which the tests
//! ask it themselves where they can, and from the design; see docs/engines/llama-cpp.md.

mod support;

use ascertain::render::json;
use ascertain::target::{Found, Written, locate};
use ascertain::{Look, observe, verify};
use ascertain_capture::{Options, pack};
use ascertain_engines::llama_cpp::tiny_model::TinyModel::{Dense, Draft, Hybrid, Mtp, OtherVocabulary};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Lab, free_port, get};

/// Opens a lab, or ends the test.
macro_rules! lab {
    () => {
        match Lab::open() {
            Some(lab) => lab,
            None => return,
        }
    };
}

// Nothing unusual.

#[test]
fn a_plain_server_is_as_asked_for() {
    let lab = lab!();
    let server = lab.serve(Dense).start();
    let report = lab.verify(&server.target(), &[]);
    report.is("confirmed", 0).witness("process", "spoke").witness("log", "spoke").witness("props", "spoke");
    report.claim("model").is("confirmed").in_force(&lab.model(Dense));
    report.claim("host").is("confirmed").in_force("127.0.0.1");
    report.claim("port").is("confirmed").in_force(&server.port.to_string()).on("exercised");
    assert_eq!(report.json["engine"]["name"], "llama.cpp");
    assert_eq!(report.json["target"]["pid"], server.pid());
    assert_eq!(report.json["invocation"]["state"], "running");
    assert_eq!(report.json["findings"], serde_json::json!([]), "all is well, so nothing is found");
}

#[test]
fn flags_that_need_a_verbose_log_are_unproven_without_it() {
    let lab = lab!();
    let words = ["-ctk", "q8_0", "-b", "512", "-ub", "128", "-fa", "on"];
    let quiet = lab.serve(Dense).args(&words).start();
    let report = lab.verify(&quiet.target(), &[]);
    report.is("unproven", 0);
    for setting in ["cache_type_k", "batch_size", "ubatch_size"] {
        report.claim(setting).is("unproven").in_force_unseen();
    }
    lab.ascertain(&["verify", &quiet.target(), "--strict"]).ends(3);

    let verbose = lab.serve(Dense).args(&words).args(&["-lv", "4"]).start();
    let report = lab.verify(&verbose.target(), &[]);
    report.claim("cache_type_k").is("confirmed").in_force("q8_0").on("acknowledged");
    report.claim("batch_size").is("confirmed").in_force("512");
    report.claim("ubatch_size").is("confirmed").in_force("128");
}

// Speculation.

#[test]
fn multi_token_prediction_is_on_but_idle() {
    let lab = lab!();
    let server = lab.serve(Mtp).args(&["--spec-type", "draft-mtp", "--metrics"]).start();
    let report = lab.verify(&server.target(), &[]);
    report.is("unproven", 0);
    report
        .claim("spec_type")
        .is("confirmed")
        .in_force("draft-mtp")
        .on("reported")
        .evidence("slots", "reported")
        .effect("unproven")
        .remedy("--exercise");
    lab.ascertain(&["verify", &server.target(), "--strict"]).ends(3);
}

#[test]
fn multi_token_prediction_is_exercised() {
    let lab = lab!();
    let server = lab.serve(Mtp).args(&["--spec-type", "draft-mtp", "--metrics"]).start();
    let report = lab.verify(&server.target(), &["--exercise"]);
    report.is("confirmed", 0).witness("traffic", "spoke").witness("metrics", "spoke");
    report.claim("spec_type").is("confirmed").in_force("draft-mtp").on("exercised").effect("confirmed");
    // Not only because our own traffic says so.
    let (_, metrics) = server.get("/metrics");
    let accepted =
        metrics.lines().find_map(|line| line.strip_prefix("llamacpp:spec_decode_num_accepted_tokens_total "));
    assert!(accepted.and_then(|count| count.parse::<f64>().ok()).is_some_and(|count| count > 0.0), "{metrics}");
    // Traffic of others counts as well: now it needs no more of ours.
    lab.verify(&server.target(), &[]).is("confirmed", 0).claim("spec_type").effect("confirmed");
}

#[test]
fn prediction_layers_that_nobody_asks_for() {
    let lab = lab!();
    let server = lab.serve(Mtp).start();
    lab.verify(&server.target(), &["--exercise"])
        .is("confirmed", 0)
        .finds("unused_capability", "--spec-type draft-mtp");
}

#[test]
fn multi_token_prediction_without_the_layers_for_it() {
    let lab = lab!();
    let ended = lab.serve(Hybrid).args(&["--spec-type", "draft-mtp"]).start_in_vain();
    let report = lab.verify(&ended.evidence(&lab), &[]);
    report.is("failed", 1);
    report.claim("spec_type").is("contradicted").because("MTP");
}

#[test]
fn a_draft_model_and_nothing_that_asks_for_speculation() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-md", &lab.model(Draft), "--metrics"]).start();
    for more in [&[][..], &["--exercise"]] {
        let report = lab.verify(&server.target(), more);
        report.is("contradicted", 1);
        report
            .claim("spec_draft_model")
            .is("contradicted")
            .effect("contradicted")
            .because("no --spec-type asks for speculation")
            .remedy("--spec-type draft-simple");
    }
}

#[test]
fn a_draft_model_with_another_vocabulary() {
    let lab = lab!();
    let words = ["-md", &lab.model(OtherVocabulary), "--spec-type", "draft-simple"];
    let server = lab.serve(Dense).args(&words).start();
    assert_eq!(server.get("/health").0, 200, "healthy all the same");
    let report = lab.verify(&server.target(), &[]);
    report.is("contradicted", 1);
    report.claim("spec_type").is("contradicted").in_force("none").effect("contradicted").because("vocabulary");
    report.claim("spec_draft_model").is("contradicted").effect("contradicted").because("vocabulary");
}

#[test]
fn a_draft_model_at_work() {
    let lab = lab!();
    let words = ["-md", &lab.model(Draft), "--spec-type", "draft-simple", "--metrics"];
    let server = lab.serve(Dense).args(&words).start();
    let report = lab.verify(&server.target(), &[]);
    report.is("unproven", 0);
    report.claim("spec_type").is("confirmed").in_force("draft-simple").effect("unproven");
    let report = lab.verify(&server.target(), &["--exercise"]);
    report.is("confirmed", 0);
    report.claim("spec_type").is("confirmed").in_force("draft-simple").on("exercised").effect("confirmed");
    report.claim("spec_draft_model").is("confirmed").in_force(&lab.model(Draft)).effect("confirmed");
}

#[test]
fn n_grams_draft_from_the_text_so_far() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["--spec-type", "ngram-simple"]).start();
    lab.verify(&server.target(), &[]).is("unproven", 0).claim("spec_type").is("confirmed").effect("unproven");
    let report = lab.verify(&server.target(), &["--exercise"]);
    report.is("confirmed", 0).witness("metrics", "absent");
    report.claim("spec_type").is("confirmed").in_force("ngram-simple").effect("confirmed");
}

// Where it is asked for.

/// Written a moment before the start, as in "edit, then restart".
#[test]
fn a_configuration_file_that_neither_argv_nor_environ_shows() {
    let lab = lab!();
    let path = lab.write("xdg/llama.cpp/config.ini", "ctx-size = 512\nspec-typo = draft-mtp\nmetrics = true\n");
    let server = lab.serve(Dense).env("XDG_CONFIG_HOME", &lab.text("xdg")).start();
    let file = path.to_str().unwrap();
    assert!(server.log().contains(&format!("using config file: {file}")));
    let report = lab.verify(&server.target(), &[]);
    report.is("unknown", 1).finds("third_source", file);
    report.claim("ctx_size").is("confirmed").in_force("512").origin("file", &format!("{file}:1"), false);
    report.claim("metrics").is("confirmed").in_force("true").origin("file", &format!("{file}:3"), false);
    report.claim("spec_typo").is("unknown").origin("file", &format!("{file}:2"), false).nearest("spec-type");
}

#[test]
fn a_configuration_file_in_the_home_has_less_weight_than_a_flag() {
    let lab = lab!();
    let path = lab.write("home/.config/llama.cpp/config.ini", "ctx-size = 512\n");
    let server = lab.serve(Dense).args(&["-c", "1024"]).start();
    let report = lab.verify(&server.target(), &[]);
    report.is("confirmed", 0);
    let place = format!("{}:1", path.display());
    report.claim("ctx_size").is("confirmed").in_force("1024").origin("argv", "-c", false).origin("file", &place, true);
}

#[test]
fn a_configuration_file_that_was_changed_after_the_start() {
    let lab = lab!();
    let path = lab.write("home/.config/llama.cpp/config.ini", "ctx-size = 512\n");
    let server = lab.serve(Dense).start();
    fs::write(&path, "ctx-size = 1024\n").unwrap();
    // An hour later, without waiting for it.
    let later = std::time::SystemTime::now() + Duration::from_secs(3600);
    fs::File::options().write(true).open(&path).and_then(|file| file.set_modified(later)).unwrap();
    let report = lab.verify(&server.target(), &[]);
    report.finds("changed_since", path.to_str().unwrap()).unasked("ctx_size", "512");
    let claims = report.json["claims"].as_array().unwrap();
    assert!(claims.iter().all(|claim| claim["setting"] != "ctx_size"), "{claims:#?}");
}

#[test]
fn a_flag_has_more_weight_than_a_variable() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-c", "1024"]).env("LLAMA_ARG_CTX_SIZE", "512").start();
    let report = lab.verify(&server.target(), &[]);
    report.is("confirmed", 0);
    report.claim("ctx_size").is("confirmed").wanted("1024").in_force("1024").origin("argv", "-c", false).origin(
        "env",
        "LLAMA_ARG_CTX_SIZE",
        true,
    );
}

#[test]
fn types_of_speculation_add_up_over_their_sources() {
    let lab = lab!();
    let server = lab.serve(Mtp).args(&["--spec-type", "draft-mtp"]).env("LLAMA_ARG_SPEC_TYPE", "ngram-simple").start();
    let report = lab.verify(&server.target(), &[]);
    report
        .claim("spec_type")
        .is("adjusted")
        .wanted("draft-mtp")
        .in_force("draft-mtp,ngram-simple")
        .because("appended")
        .remedy("LLAMA_ARG_SPEC_TYPE")
        .origin("argv", "--spec-type", false)
        .origin("env", "LLAMA_ARG_SPEC_TYPE", false);
}

#[test]
fn a_flag_cannot_switch_off_what_a_variable_switches_on() {
    let lab = lab!();
    let server = lab.serve(Mtp).args(&["--spec-type", "none"]).env("LLAMA_ARG_SPEC_TYPE", "draft-mtp").start();
    let report = lab.verify(&server.target(), &[]);
    report.is("contradicted", 1);
    report.claim("spec_type").is("contradicted").wanted("none").in_force("draft-mtp").remedy("LLAMA_ARG_SPEC_TYPE");
}

#[test]
fn a_variable_that_is_misspelt() {
    let lab = lab!();
    let server = lab.serve(Mtp).env("LLAMA_ARG_SPEC_TYP", "draft-mtp").start();
    let report = lab.verify(&server.target(), &[]);
    report.is("unknown", 1);
    report
        .claim("LLAMA_ARG_SPEC_TYP")
        .is("unknown")
        .nearest("LLAMA_ARG_SPEC_TYPE")
        .origin("env", "LLAMA_ARG_SPEC_TYP", false)
        .remedy("LLAMA_ARG_SPEC_TYPE");
}

// The key.

const KEY: &str = "sk-live-0123456789abcdefZq9w";
/// The end of it, which the server prints into a verbose log.
const TAIL: &str = "****Zq9w";

#[test]
fn a_key_is_required_and_not_given() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["--api-key", KEY, "--metrics", "--slots"]).start();
    let report = lab.verify(&server.target(), &[]);
    report.is("unproven", 0).witness("props", "failed").witness("slots", "failed").witness("metrics", "failed");
    report.claim("api_key").is("confirmed").wanted("[redacted]").on("exercised");
    report.claim("metrics").is("unproven").remedy("--api-key-env");
    report.claim("slots").is("unproven").remedy("--api-key-env");
    report.finds("secret_on_command_line", "--api-key-file");
}

#[test]
fn a_wrong_key_confirms_nothing_but_the_key() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["--api-key", KEY, "--metrics"]).start();
    let words = ["verify", &server.target(), "--format", "json", "--api-key-env", "WRONG"];
    let report = lab.ascertain_with(&words, &[("WRONG", "sk-wrong-0123456789")]).report();
    report.is("unproven", 0);
    report.claim("api_key").is("confirmed");
    report.claim("metrics").is("unproven");
    assert!(!report.run.stdout.contains("sk-wrong-0123456789"));
}

#[test]
fn a_key_opens_the_endpoints_and_appears_nowhere() {
    let lab = lab!();
    let words = ["--api-key", KEY, "--metrics", "--spec-type", "draft-mtp", "-lv", "4"];
    let server = lab.serve(Mtp).args(&words).start();
    assert!(server.log().contains(TAIL), "this release prints the end of the key");
    let environment = [("MODEL_KEY", KEY)];
    let target = server.target();
    let with_key = |words: &[&str]| {
        let run = lab.ascertain_with(&[words, &["--api-key-env", "MODEL_KEY"]].concat(), &environment);
        for secret in [KEY, TAIL] {
            assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret), "{words:?}\n{}", run.stdout);
        }
        run
    };
    let report = with_key(&["verify", &target, "--format", "json", "--exercise"]).report();
    report.is("confirmed", 0);
    report.claim("api_key").is("confirmed").on("exercised");
    report.claim("metrics").is("confirmed");
    report.claim("spec_type").is("confirmed").effect("confirmed");

    with_key(&["verify", &target, "-v"]).ends(0).shows("[redacted]");
    with_key(&["verify", &target, "--dry-run"]).ends(0);
    with_key(&["explain", &target, "api_key"]).ends(0);
    let file = lab.text("kept.tgz");
    with_key(&["capture", &target, "--exercise", "-o", &file]).ends(0);
    // Also without it: the command line of the server is known.
    let other = lab.text("other.tgz");
    lab.ascertain(&["capture", &target, "-o", &other]).ends(0);
    for file in [file, other] {
        let capture = pack::read(Path::new(&file)).unwrap();
        let manifest = serde_json::to_vec(&capture.manifest).unwrap();
        for (name, bytes) in capture.artifacts.iter().chain([(&"manifest.json".to_string(), &manifest)]) {
            for secret in [KEY, TAIL, "Zq9w"] {
                assert!(!holds(bytes, secret), "{secret} is in {name} of {file}");
            }
        }
    }
}

/// The log states the same release as the endpoints, in another way.
#[test]
fn the_release_is_known_also_without_the_endpoints() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["--api-key", KEY, "-lv", "4"]).start();
    let words = ["verify", &server.target(), "--format", "json"];
    let with = lab.ascertain_with(&[&words[..], &["--api-key-env", "K"]].concat(), &[("K", KEY)]).report();
    let without = lab.ascertain(&words).report();
    assert_eq!(without.json["engine"], with.json["engine"]);
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

// Context and slots.

#[test]
fn a_context_beyond_the_trained_length() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-c", "8192"]).start();
    let report = lab.verify(&server.target(), &[]);
    report.is("adjusted", 0);
    report.claim("ctx_size").is("adjusted").wanted("8192").in_force("2048").on("reported");
    // A prompt really runs into it.
    let report = lab.verify(&server.target(), &["--exercise"]);
    report.is("adjusted", 0);
    report.claim("ctx_size").is("adjusted").in_force("2048").on("exercised").evidence("traffic", "exercised");
    report.witness("traffic", "spoke");
}

#[test]
fn a_context_that_is_divided_among_slots() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-c", "2048", "-np", "4"]).start();
    let report = lab.verify(&server.target(), &[]);
    report.is("adjusted", 0);
    report.claim("ctx_size").is("adjusted").in_force("512").because("divided among 4 slots").remedy("-kvu");
    report.claim("parallel").is("confirmed").in_force("4");
}

#[test]
fn a_context_that_is_shared_by_slots() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-c", "2048", "-np", "4", "-kvu"]).start();
    let report = lab.verify(&server.target(), &[]);
    report.is("confirmed", 0);
    report.claim("ctx_size").is("confirmed").in_force("2048");
    report.claim("kv_unified").is("confirmed").in_force("true");
}

#[test]
fn a_context_that_is_padded() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-c", "1000"]).start();
    let report = lab.verify(&server.target(), &[]);
    report.is("adjusted", 0);
    report.claim("ctx_size").is("adjusted").wanted("1000").in_force("1024").because("multiple of 256");
}

#[test]
fn slots_on_auto() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-np", "-1", "--no-kv-unified"]).start();
    let report = lab.verify(&server.target(), &[]);
    report.is("adjusted", 0);
    report.claim("parallel").is("confirmed").wanted("-1").in_force("4");
    report.claim("kv_unified").is("adjusted").wanted("false").in_force("true").remedy("-np");
}

// Other things the engine does to what was asked.

#[test]
fn layers_for_a_gpu_that_is_not_there() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-ngl", "99"]).start();
    if !server.log().contains("no usable GPU found") {
        eprintln!("skipped: this server may have a GPU");
        return;
    }
    let report = lab.verify(&server.target(), &[]);
    report.is("contradicted", 1);
    report.claim("gpu_layers").is("contradicted").because("GPU");
}

#[test]
fn a_context_shift_that_a_hybrid_cannot_do() {
    let lab = lab!();
    let server = lab.serve(Hybrid).args(&["--context-shift"]).start();
    assert!(server.log().contains("disabling KV cache shifting"));
    let report = lab.verify(&server.target(), &[]);
    report.is("adjusted", 0);
    report.claim("context_shift").is("adjusted").in_force("false").because("cannot shift").on("acknowledged");
}

// Witnesses that are switched off.

#[test]
fn metrics_are_off_when_nobody_asks_for_them() {
    let lab = lab!();
    let server = lab.serve(Mtp).args(&["--spec-type", "draft-mtp"]).start();
    assert_eq!(server.get("/metrics").0, 501);
    let report = lab.verify(&server.target(), &["--exercise"]);
    report.is("confirmed", 0).witness("metrics", "absent");
    report.claim("spec_type").is("confirmed").effect("confirmed").evidence("traffic", "exercised");
}

#[test]
fn without_slots_only_traffic_tells() {
    let lab = lab!();
    let server = lab.serve(Mtp).args(&["--no-slots", "--spec-type", "draft-mtp"]).start();
    let report = lab.verify(&server.target(), &[]);
    report.is("unproven", 0).witness("slots", "absent");
    report.claim("slots").is("confirmed").in_force("false").on("exercised");
    report.claim("spec_type").is("unproven").in_force_unseen().effect("unproven").remedy("--exercise");
    let report = lab.verify(&server.target(), &["--exercise"]);
    report.is("confirmed", 0);
    report.claim("spec_type").is("confirmed").in_force("draft-mtp").on("exercised").effect("confirmed");
}

// Servers that do not start.

#[test]
fn a_flag_that_does_not_exist() {
    let lab = lab!();
    let ended = lab.serve(Mtp).args(&["--spec-tpye", "draft-mtp"]).start_in_vain();
    assert_eq!(ended.status.code(), Some(1));
    let report = lab.verify(&ended.evidence(&lab), &[]);
    report.is("failed", 1);
    assert_eq!(report.json["invocation"]["state"], "failed");
    report.claim("spec_tpye").is("unknown").nearest("--spec-type").because("no such flag");
    report.claim("model").is("unproven");
}

#[test]
fn a_value_that_does_not_exist() {
    let lab = lab!();
    let ended = lab.serve(Mtp).args(&["--spec-type", "mtp"]).start_in_vain();
    let report = lab.verify(&ended.evidence(&lab), &[]);
    report.is("failed", 1);
    report
        .claim("spec_type")
        .is("contradicted")
        .wanted("mtp")
        .because("no such type")
        .breaks("delivered", "acknowledged");
}

#[test]
fn a_variable_that_is_no_number() {
    let lab = lab!();
    let ended = lab.serve(Dense).env("LLAMA_ARG_CTX_SIZE", "many").start_in_vain();
    let report = lab.verify(&ended.evidence(&lab), &[]);
    report.is("failed", 1);
    report.claim("ctx_size").is("contradicted").wanted("many").origin("env", "LLAMA_ARG_CTX_SIZE", false);
}

#[test]
fn a_quantized_cache_that_needs_flash_attention() {
    let lab = lab!();
    let ended = lab.serve(Dense).args(&["-ctv", "q8_0", "-fa", "off"]).start_in_vain();
    let report = lab.verify(&ended.evidence(&lab), &[]);
    report.is("failed", 1);
    report.claim("cache_type_v").is("contradicted").because("flash");
}

#[test]
fn a_model_that_is_not_there() {
    let lab = lab!();
    let ended = lab.launch(&["-m", &lab.text("none.gguf")]).start_in_vain();
    let report = lab.verify(&ended.evidence(&lab), &[]);
    report.is("failed", 1);
    report.claim("model").is("contradicted").because("No such file");
}

#[test]
fn a_port_that_another_server_holds() {
    let lab = lab!();
    let first = lab.serve(Dense).start();
    // The server writes its log from another thread, and one that gives up at once may end before its last words are out.
    let ended = (0..20)
        .map(|_| lab.serve(Mtp).port(first.port).args(&["--spec-type", "draft-mtp"]).start_in_vain())
        .find(|ended| ended.says("couldn't bind"))
        .expect("it says why at least once");
    let report = lab.verify(&ended.evidence(&lab), &[]);
    report.is("failed", 1);
    report.claim("port").is("contradicted");
    report.claim("spec_type").is("unproven");
}

// Who answers.

/// The second server is told to listen where the first one does, and waits for a file before it gets that far: what
/// answers on its port is not it. The file is a pipe into which nobody writes, so that it waits for as long as we like.
#[test]
fn another_process_answers_on_its_port() {
    let lab = lab!();
    let first = lab.serve(Mtp).args(&["--spec-type", "draft-mtp", "--metrics"]).start();
    let pipe = lab.text("grammar");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let words = ["--spec-type", "draft-mtp", "--metrics", "--grammar-file", &pipe];
    let second = lab.serve(Mtp).port(first.port).args(&words).spawn();
    let until = Instant::now() + Duration::from_secs(10);
    // From here on it has its own command line and not that of the test.
    while fs::read(format!("/proc/{}/cmdline", second.pid())).is_ok_and(|words| !holds(&words, "--grammar-file")) {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(5));
    }
    for more in [&[][..], &["--exercise"]] {
        let report = lab.verify(&second.target(), more);
        assert_eq!(report.run.code, 4, "{}", report.json["answer"]);
        assert_eq!(report.json["invocation"]["state"], "impostor");
        report.finds("identity", &format!("held by process {}, not by process {}", first.pid(), second.pid()));
        // What the first one says of itself is no evidence about the second one.
        for setting in ["model", "port", "spec_type", "metrics"] {
            report.claim(setting).is("unproven").in_force_unseen();
        }
    }
    lab.ascertain(&["verify", &second.target()]).ends(4).shows("the one meant");
    lab.verify(&first.target(), &["--exercise"]).is("confirmed", 0);
}

/// Both listen on one port, and the kernel deals out the connections: no answer can be said to be of one of them. The
/// second one loads a draft model and drops it without a word, while the first one speculates.
#[test]
fn two_servers_share_a_port() {
    let lab = lab!();
    let first = lab.serve(Mtp).args(&["--spec-type", "draft-mtp", "--reuse-port"]).start();
    let second = lab.serve(Mtp).port(first.port).args(&["-md", &lab.model(Draft), "--reuse-port"]).start();
    for _ in 0..8 {
        let report = lab.verify(&second.target(), &[]);
        report.finds("identity", &first.pid().to_string());
        assert_ne!(report.run.code, 0, "{}", report.json["answer"]);
        let claims = report.json["claims"].as_array().unwrap();
        let draft = claims.iter().find(|claim| claim["setting"] == "spec_draft_model").unwrap();
        assert_ne!(draft["verdict"], "confirmed", "{draft:#}");
    }
}

#[test]
fn a_url_means_the_process_that_listens_there() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-c", "512"]).start();
    for host in ["127.0.0.1", "localhost"] {
        let report = lab.verify(&format!("http://{host}:{}", server.port), &[]);
        report.is("confirmed", 0).witness("process", "spoke").witness("log", "spoke");
        assert_eq!(report.json["target"]["pid"], server.pid());
        report.claim("ctx_size").is("confirmed").in_force("512").origin("argv", "-c", false);
    }
    let nobody = format!("http://127.0.0.1:{}", free_port());
    lab.ascertain(&["verify", &nobody]).ends(2).complains("nothing listens on");
}

#[test]
fn a_name_means_the_server_that_has_it() {
    let lab = lab!();
    // Nobody else on this host has these names.
    let alias = format!("alias-{}", std::process::id());
    let stem = format!("model-{}", std::process::id());
    let model = lab.write(&format!("{stem}.gguf"), Dense.bytes());
    let server = lab.launch(&["-m", model.to_str().unwrap(), "--alias", &alias]).start();
    for name in [&alias, &stem, &format!("{stem}.gguf")] {
        let report = lab.verify(name, &[]);
        report.is("confirmed", 0).claim("alias").is("confirmed").in_force(&alias);
        assert_eq!(report.json["target"]["pid"], server.pid());
        assert_eq!(report.json["target"]["name"], **name);
    }
    lab.ascertain(&["verify", &format!("{alias}x")]).ends(2).complains(&format!("did you mean {alias}?"));
}

#[test]
fn a_name_that_two_servers_have() {
    let lab = lab!();
    let alias = format!("twice-{}", std::process::id());
    let first = lab.serve(Dense).args(&["--alias", &alias]).start();
    let second = lab.serve(Hybrid).args(&["--alias", &alias]).start();
    let run = lab.ascertain(&["verify", &alias]);
    run.ends(2).complains(&format!("2 running servers are called \"{alias}\""));
    run.complains(&first.target()).complains(&second.target());
    // Without a target there are at least these two.
    let run = lab.ascertain(&["verify"]);
    run.ends(2).complains("say which").complains(&first.target()).complains(&second.target());
    lab.ascertain(&["list"]).ends(0).shows(&first.target()).shows(&second.target());
}

/// In a PID namespace of its own, where no server of another test and none of the host can be seen.
#[test]
fn no_target_means_the_only_server() {
    let lab = lab!();
    let port = free_port();
    let alone = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--fork", "--pid", "--mount-proc", "sh", "-c", script, "sh"]);
        command
            .env("SERVER", lab.server())
            .env("ASCERTAIN", env!("CARGO_BIN_EXE_ascertain"))
            .env("HOME", lab.path("home"));
        command.env("MODEL", lab.model(Dense)).env("PORT", port.to_string()).env("LOG", lab.path("log"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    if !alone("true").status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: this user may not make a PID namespace");
        return;
    }
    let none = alone(r#"exec "$ASCERTAIN" verify"#).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no inference server was found"), "{none:?}");

    let script = r#"
        "$SERVER" -m "$MODEL" --host 127.0.0.1 --port "$PORT" >"$LOG" 2>&1 &
        read -r ready
        "$ASCERTAIN" list
        "$ASCERTAIN" verify --format json"#;
    let mut child = alone(script).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while get(port, "/health").is_none_or(|(status, _)| status != 200) {
        assert!(Instant::now() < until && child.try_wait().unwrap().is_none(), "the server is not ready");
        std::thread::sleep(Duration::from_millis(10));
    }
    // Closes its standard input, for which the script waits.
    let output = child.wait_with_output().unwrap();
    let (list, report) = std::str::from_utf8(&output.stdout).unwrap().split_once('\n').unwrap();
    assert!(list.contains(&format!("port {port}")), "{list}");
    let report: serde_json::Value = serde_json::from_str(report).unwrap();
    assert_eq!((output.status.code(), report["verdict"].as_str()), (Some(0), Some("confirmed")), "{report:#}");
    assert!(report["claims"].as_array().unwrap().iter().any(|claim| claim["wanted"] == *port.to_string()));
}

#[test]
fn a_process_that_is_gone_or_no_server() {
    let lab = lab!();
    let server = lab.serve(Dense).start();
    let target = server.target();
    drop(server);
    lab.ascertain(&["verify", &target]).ends(2).complains("ascertain list");
    let own = format!("pid:{}", std::process::id());
    lab.ascertain(&["verify", &own]).ends(2).complains("no engine that ascertain knows");
}

// Captures.

#[test]
fn a_capture_gives_the_same_report_again_and_elsewhere() {
    let lab = lab!();
    let server = lab.serve(Mtp).args(&["--spec-type", "draft-mtp", "--metrics", "-c", "8192"]).start();
    let file = lab.text("kept.tgz");
    let target = server.target();
    let live = lab.verify(&target, &["--exercise"]);
    lab.ascertain(&["capture", &target, "--exercise", "-o", &file]).ends(0).shows("artifacts of");
    drop(server);

    let first = lab.verify(&file, &[]);
    let again = lab.verify(&file, &[]);
    assert_eq!(first.run.stdout, again.run.stdout);

    let folder = lab.path("unpacked");
    fs::create_dir(&folder).unwrap();
    let tar = Command::new("tar").arg("xzf").arg(&file).arg("-C").arg(&folder).status().unwrap();
    assert!(tar.success());
    let unpacked = lab.verify(folder.to_str().unwrap(), &[]);
    assert_eq!(first.run.stdout, unpacked.run.stdout);

    // The live report was of other requests, so only what was decided can be the same.
    assert_eq!(decided(&live.json), decided(&first.json));
    assert_eq!(live.run.code, first.run.code);
    assert_eq!(live.json["target"], first.json["target"]);
    assert_eq!(live.json["invocation"], first.json["invocation"]);

    // A byte more, and nothing is judged.
    fs::write(folder.join("log.txt"), "0.00.000.000 I srv  llama_server: model loaded\n").unwrap();
    lab.ascertain(&["verify", folder.to_str().unwrap()]).ends(2).complains("log.txt");
}

fn decided(report: &serde_json::Value) -> Vec<String> {
    let claims = report["claims"].as_array().expect("claims").iter();
    claims
        .map(|one| format!("{} {} {} {}", one["setting"], one["verdict"], one["effective"], one["effect"]["verdict"]))
        .collect()
}

#[test]
fn judging_live_and_judging_a_file_are_one_thing() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-md", &lab.model(Draft), "-c", "1000"]).start();
    let Ok(Found::Live(located)) = locate(&Written::Pid(server.pid())) else { panic!("it is live") };
    let look = Look { options: Options::default(), exercise: true };
    let capture = observe(&located, &look, &mut |_| {});
    let file = lab.path("kept.tgz");
    pack::write(&capture, &file).unwrap();
    let mut live = Vec::new();
    json::write(&verify(&capture, false).unwrap(), &mut live).unwrap();
    let stored = lab.ascertain(&["verify", file.to_str().unwrap(), "--format", "json"]);
    assert_eq!(stored.ends(1).stdout, String::from_utf8(live).unwrap());
}

// Other commands.

#[test]
fn the_ladder_of_one_setting() {
    let lab = lab!();
    let server = lab.serve(Mtp).args(&["--spec-type", "draft-mtp"]).start();
    let target = server.target();
    for name in ["spec_type", "--spec-type"] {
        let run = lab.ascertain(&["explain", &target, name]);
        run.ends(0)
            .shows("spec_type: confirmed")
            .shows("reported")
            .shows("slots_before.json")
            .shows("effect: unproven");
    }
    lab.ascertain(&["explain", &target, "spec_typ"]).ends(2).complains("did you mean spec_type?");
}

#[test]
fn a_dry_run_touches_nothing() {
    let lab = lab!();
    let server = lab.serve(Dense).start();
    let before = server.log();
    lab.ascertain(&["verify", &server.target(), "--dry-run", "--exercise"]).ends(0).shows("/props").shows("--exercise");
    assert_eq!(server.log(), before);
}

#[test]
fn the_live_demonstration() {
    let lab = lab!();
    let run = lab.ascertain(&["demo", "--live"]);
    run.ends(0).shows("CONFIRMED").shows("spec_type").shows("the server was stopped");
    let pid = run.stdout.split("pid:").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    assert!(!Path::new("/proc").join(pid).exists(), "the server of the demonstration still runs");
}

// Servers and logs that make it hard.

#[test]
fn a_server_that_hangs() {
    let lab = lab!();
    let server = lab.serve(Mtp).args(&["--spec-type", "draft-mtp", "--metrics", "-c", "512"]).start();
    server.signal("STOP");
    for more in [&["--timeout", "1"][..], &["--timeout", "1", "--exercise"]] {
        let report = lab.verify(&server.target(), more);
        assert!(report.run.took < Duration::from_secs(4), "{:?}", report.run.took);
        report.witness("process", "spoke").witness("log", "spoke");
        for name in ["health", "props", "slots", "models", "metrics"] {
            report.witness(name, "failed");
        }
        for setting in ["spec_type", "metrics"] {
            report.claim(setting).is("unproven").in_force_unseen();
        }
    }
    // It comes back as if nothing had been.
    server.signal("CONT");
    lab.verify(&server.target(), &[]).claim("spec_type").is("confirmed").in_force("draft-mtp");
}

/// What is in force may be proven by the log alone. That nothing answers must be said all the same.
#[test]
fn a_server_that_hangs_is_not_all_well() {
    let lab = lab!();
    let server = lab.serve(Dense).start();
    server.signal("STOP");
    let report = lab.verify(&server.target(), &["--timeout", "1"]);
    let findings = report.json["findings"].as_array().unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding["severity"] != "info" && finding["text"].as_str().unwrap().contains("answer")),
        "{} {findings:#?}",
        report.json["answer"]
    );
}

#[test]
fn a_log_that_goes_through_tee() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-c", "8192", "-lv", "4", "-b", "512"]).through_tee().start();
    let report = lab.verify(&server.target(), &[]);
    report.is("adjusted", 0).witness("log", "spoke");
    report.claim("batch_size").is("confirmed").in_force("512").evidence("log", "acknowledged");
    report.claim("ctx_size").is("adjusted").because("trained length").in_force("2048");
}

#[test]
fn a_log_that_goes_nowhere() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["--log-disable"]).spawn().healthy();
    let report = lab.verify(&server.target(), &[]);
    assert_eq!(report.run.code, 0);
    report.claim("model").is("confirmed").on("reported");
    report.claim("port").is("confirmed").on("exercised");
}

// What a second adversary found.

#[test]
fn a_switch_that_another_flag_took_is_not_in_force() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-a", "--metrics"]).start();
    let report = lab.verify(&server.target(), &[]);
    report.is("contradicted", 1);
    report.claim("metrics").is("contradicted").because("-a takes a value").remedy("give -a a value");
    report.claim("alias").is("confirmed").in_force("--metrics");
}

#[test]
fn division_among_slots_is_known_without_a_log() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-c", "1024", "-np", "2", "-lv", "1"]).spawn().healthy();
    let report = lab.verify(&server.target(), &[]);
    report.claim("ctx_size").is("adjusted").in_force("512").because("divided among 2 slots").remedy("-c 2048");
    let shared = lab.serve(Dense).args(&["-c", "1024", "-np", "2", "-kvu", "-lv", "1"]).spawn().healthy();
    lab.verify(&shared.target(), &[]).claim("ctx_size").is("confirmed").in_force("1024");
}

#[test]
fn samplers_that_are_off_make_what_tunes_them_pointless() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["--xtc-threshold", "0.2", "--adaptive-target", "0.5"]).start();
    let report = lab.verify(&server.target(), &[]);
    report.claim("xtc_threshold").is("not_applicable").because("XTC, which is off");
    report.claim("adaptive_target").is("not_applicable").because("adaptive_p");
    let on = lab.serve(Dense).args(&["--xtc-threshold", "0.2", "--xtc-probability", "0.5"]).start();
    lab.verify(&on.target(), &[]).claim("xtc_threshold").is("confirmed").in_force("0.2");
}

#[test]
fn exercising_sends_nothing_that_ends_the_server() {
    let lab = lab!();
    for words in [["-b", "16", "--spec-type", "ngram-simple"], ["-b", "40", "--spec-type", "ngram-mod"]] {
        let server = lab.serve(Dense).args(&words).start();
        let report = lab.verify(&server.target(), &["--exercise"]);
        report.finds("would_abort", "does not hold a draft");
        assert_eq!(server.get("/health").0, 200, "{words:?}");
    }
}

#[test]
fn a_copy_of_the_log_is_not_the_log() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-lv", "4", "-ub", "128"]).start();
    lab.verify(&server.target(), &[]).claim("ubatch_size").is("confirmed");
    let copy = lab.write("copy.log", server.log());
    let report = lab.verify(&server.target(), &["--log", &copy.display().to_string()]);
    report.finds("foreign_log", "its log is another file");
    let claims = report.json["claims"].as_array().unwrap();
    let ubatch = claims.iter().find(|claim| claim["setting"] == "ubatch_size").unwrap();
    assert_ne!(ubatch["verdict"], "confirmed");
}

#[test]
fn a_client_cannot_write_a_start_into_the_log() {
    let lab = lab!();
    // Without the line that ends the start, and with the whole of a start behind the words of a client.
    for verbosity in ["2", "4"] {
        let server = lab.serve(Dense).args(&["-lv", verbosity, "-ub", "128", "-b", "64"]).spawn().healthy();
        let forged = format!(
            "x\n0.00.001.000 I srv  llama_server: initializing ...\n\
             0.00.002.000 I cmn  common_param: common_params_print_info: verbosity = {verbosity} (adjust\n\
             0.00.003.000 I llama_context: n_ubatch              = 128\n\
             0.00.004.000 I srv  llama_server: listening on http://127.0.0.1:{}\nx",
            server.port
        );
        let body = serde_json::json!({ "prompt": "a", "n_predict": 1, "samplers": [forged] }).to_string();
        server.post("/completion", &body);
        assert!(server.log().contains("n_ubatch              = 128"), "the server repeats what it was sent");
        let report = lab.verify(&server.target(), &[]);
        let claims = report.json["claims"].as_array().unwrap();
        let ubatch = claims.iter().find(|claim| claim["setting"] == "ubatch_size").unwrap();
        assert_ne!(ubatch["verdict"], "confirmed", "-lv {verbosity}: {ubatch:#}");
    }
}

#[test]
fn a_later_start_that_found_the_port_taken_is_not_this_one() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-lv", "4", "-ub", "128"]).start();
    let log = server.log();
    let second = lab.serve(Dense).port(server.port).args(&["-lv", "4", "-ub", "64"]).start_in_vain();
    assert!(second.log.contains("couldn't bind"), "{}", second.log);
    server.append(&second.log);
    assert!(server.log().len() > log.len());
    let report = lab.verify(&server.target(), &[]);
    report.claim("ubatch_size").is("confirmed").in_force("128").on("acknowledged");
}

#[test]
fn layers_that_stay_on_the_cpu() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["-ngl", "99", "-lv", "5"]).start();
    let log = server.log();
    assert!(log.contains("offloaded 5/5 layers to GPU"), "the log of this release says so in any case");
    if log.lines().any(|line| line.contains(" assigned to device ") && !line.contains(" assigned to device CPU")) {
        eprintln!("skipped: there is a GPU");
        return;
    }
    let report = lab.verify(&server.target(), &[]);
    report.is("contradicted", 1);
    report.claim("gpu_layers").is("contradicted").in_force("0").remedy("--list-devices");
    let quiet = lab.serve(Dense).args(&["-ngl", "99"]).start();
    lab.verify(&quiet.target(), &[]).claim("gpu_layers").is("unproven").remedy("-lv 5");
}

#[test]
fn a_sleeping_server_is_not_woken() {
    let lab = lab!();
    let server = lab.serve(Dense).args(&["--sleep-idle-seconds", "1", "--metrics"]).start();
    let sleeps = || serde_json::from_str::<serde_json::Value>(&server.get("/props").1).unwrap()["is_sleeping"] == true;
    let until = Instant::now() + Duration::from_secs(60);
    while !sleeps() {
        assert!(Instant::now() < until, "the server does not fall asleep");
        std::thread::sleep(Duration::from_millis(50));
    }
    let report = lab.verify(&server.target(), &[]);
    assert!(sleeps(), "it was woken");
    report.witness("slots", "absent").witness("metrics", "absent").witness("props", "spoke");
    report.claim("model").is("confirmed");
    report.claim("metrics").is("confirmed").on("reported");
}
