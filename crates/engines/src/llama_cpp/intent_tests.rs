//! What is made of a command line, an environment and a configuration file. The truth of each row was seen on a
//! running b10434.

use super::*;
use crate::llama_cpp::{ConfigFile, Variable, Word, data};
use ascertain_model::StartId;

/// Words of the command line, variables, text of `config.ini`.
struct Row {
    argv: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    ini: &'static str,
}

const NOTHING: Row = Row { argv: &[], env: &[], ini: "" };

fn argv(argv: &'static [&'static str]) -> Row {
    Row { argv, ..NOTHING }
}

fn env(env: &'static [(&'static str, &'static str)]) -> Row {
    Row { env, ..NOTHING }
}

fn ini(ini: &'static str) -> Row {
    Row { ini, ..NOTHING }
}

fn intent(row: &Row) -> Intent {
    let word = |text: &str| Word { text: text.to_string(), locus: None };
    let facts = Facts {
        argv: std::iter::once("llama-server").chain(row.argv.iter().copied()).map(word).collect(),
        environ: row
            .env
            .iter()
            .map(|(name, value)| Variable { name: (*name).to_string(), value: (*value).to_string(), locus: None })
            .collect(),
        config_files: vec![ConfigFile { artifact: "config.ini", path: "/config.ini".to_string(), text: row.ini }],
        release: Some("b10434".to_string()),
        start: StartId("this start".to_string()),
        running: true,
    };
    read(data(), &facts)
}

fn claim(row: &Row, setting: &str) -> Claim {
    let claim = intent(row).claims.into_iter().find(|claim| claim.setting == setting);
    claim.unwrap_or_else(|| panic!("no claim about {setting}: {:?} {:?} {}", row.argv, row.env, row.ini))
}

fn asked(row: &Row, setting: &str) -> Asked {
    claim(row, setting).asked
}

/// The settings that are taken back, in alphabetical order.
fn ignored(row: &Row) -> String {
    let intent = intent(row);
    let mut names: Vec<String> =
        intent.interventions.into_iter().filter(|act| act.act == Act::Ignores).map(|act| act.setting).collect();
    names.sort();
    names.join(",")
}

fn text(text: &str) -> Asked {
    Asked::Equals(Value::text(text))
}

#[test]
fn a_file_of_keys_is_asked_to_be_there_and_is_shown() {
    let claim = claim(&argv(&["--api-key-file", "keys.txt"]), "api_key_file");
    assert_eq!((claim.asked, claim.wanted.as_str()), (Asked::Present, "keys.txt"));
    assert_eq!(claim.origins[0].value, "keys.txt");
    let two = argv(&["--api-key-file", "a", "--api-key-file", "b"]);
    assert_eq!(asked(&two, "api_key_file"), Asked::Present);
}

#[test]
fn an_empty_key_is_no_key() {
    let both = argv(&["--api-key", "", "--api-key-file", "keys.txt"]);
    assert_eq!(ignored(&both), "api_key");
    assert_eq!(claim(&both, "api_key").wanted, "");
    assert_eq!(ignored(&argv(&["--api-key", ","])), "api_key");
    assert_eq!(ignored(&env(&[("LLAMA_API_KEY", "")])), "api_key");
    // The keys of all sources add up.
    let one = Row { argv: &["--api-key", ""], env: &[("LLAMA_API_KEY", "[redacted]")], ini: "" };
    assert_eq!(ignored(&one), "");
    let key = argv(&["--api-key", "k"]);
    assert_eq!((ignored(&key).as_str(), claim(&key, "api_key").wanted.as_str()), ("", "[redacted]"));
}

#[test]
fn numbers_that_leave_it_to_the_engine() {
    for row in [
        (argv(&["--port", "0"]), "port"),
        (argv(&["--threads-http", "0"]), "threads_http"),
        (argv(&["--threads-http", "-7"]), "threads_http"),
        (argv(&["--threads-http", "-1"]), "threads_http"),
        (argv(&["-a", ""]), "alias"),
        (env(&[("LLAMA_ARG_ALIAS", "")]), "alias"),
    ] {
        assert_eq!(asked(&row.0, row.1), Asked::Auto, "{}", row.1);
    }
    assert_eq!(asked(&argv(&["--threads-http", "3"]), "threads_http"), Asked::Equals(Value::Int(3)));
    assert_eq!(asked(&argv(&["--port", "8081"]), "port"), Asked::Equals(Value::Int(8081)));
    assert_eq!(asked(&argv(&["--tags", ""]), "tags"), Asked::Equals(Value::set::<_, String>([])));
}

#[test]
fn numbers_are_read_as_the_engine_reads_them() {
    for (words, setting, wanted) in [
        (&["-c", "512.0"], "ctx_size", Asked::Equals(Value::Int(512))),
        (&["--top-k", "40.0"], "top_k", Asked::Equals(Value::Int(40))),
        (&["--top-k", "64.9"], "top_k", Asked::Unreadable),
        (&["-c", "8k"], "ctx_size", Asked::Unreadable),
        (&["--temp", "0x1p-1"], "temp", Asked::Equals(Value::Float(0.5))),
        (&["--temp", "0,5"], "temp", Asked::Unreadable),
    ] {
        let row = Row { argv: words, ..NOTHING };
        assert_eq!(asked(&row, setting), wanted, "{words:?}");
    }
}

#[test]
fn a_number_below_the_least_is_the_least() {
    let acts = intent(&argv(&["-ctxcp", "-5"])).interventions;
    let [act] = &acts[..] else { panic!("{acts:?}") };
    assert_eq!((act.setting.as_str(), &act.act), ("ctx_checkpoints", &Act::Adjusts { to: Some(Value::Int(0)) }));
    assert!(act.locus.is_none());
    assert!(intent(&argv(&["-ctxcp", "0"])).interventions.is_empty());
}

#[test]
fn samplers_by_any_of_their_names() {
    for (words, setting, wanted) in [
        (&["--samplers", "top-k;temp;nucleus;min-p"], "samplers", "top_k;temperature;top_p;min_p"),
        (&["--samplers", "TOP_K;Typ;top_k;"], "samplers", "top_k;typ_p;top_k"),
        (&["--samplers", "topk;XTC"], "samplers", "top_k;xtc"),
        // Neither is a name, and it does not become one here.
        (&["--samplers", "typical;top_k,temp"], "samplers", "typical;top_k,temp"),
        (&["--samplers", ""], "samplers", ""),
        (&["--sampling-seq", "kt"], "sampler_seq", "top_k;temperature"),
        (
            &["--sampling-seq", "edskypmxt"],
            "sampler_seq",
            "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature",
        ),
        (&["--sampling-seq", "kzt"], "sampler_seq", "kzt"),
        (&["--sampling-seq", "tK"], "sampler_seq", "tK"),
    ] {
        let row = Row { argv: words, ..NOTHING };
        assert_eq!(asked(&row, setting), text(wanted), "{words:?}");
    }
    // What is reported meets it.
    let setting = data().setting("sampler_seq").unwrap();
    assert_eq!(setting.value("top_k;temperature"), Some(Value::text("top_k;temperature")));
}

#[test]
fn json_is_compared_by_what_it_says() {
    let row = argv(&["--ui-config", "{ \"x\": 0.10, \"theme\" : \"dark\", \"a\": 1 }"]);
    assert_eq!(asked(&row, "ui_config"), text("{\"a\":1,\"theme\":\"dark\",\"x\":0.1}"));
    let reported = data().setting("ui_config").unwrap().value("{\"a\":1,\"x\":0.1,\"theme\":\"dark\"}");
    assert_eq!(asked(&row, "ui_config"), Asked::Equals(reported.unwrap()));
    assert_eq!(asked(&argv(&["--ui-config", ""]), "ui_config"), text("{}"));
    let twice = argv(&["--chat-template-kwargs", "{\"a\":1,\"b\":1}", "--chat-template-kwargs", "{\"b\": 2}"]);
    assert_eq!(asked(&twice, "chat_template_kwargs"), text("{\"a\":1,\"b\":2}"));
    assert_eq!(asked(&argv(&["--chat-template-kwargs", "{x"]), "chat_template_kwargs"), text("{x"));
}

#[test]
fn the_last_flag_of_a_field_wins() {
    for (words, lost) in [
        (&["--mlock", "--mmap"][..], "mlock"),
        (&["--mmap", "--mlock"], "mmap"),
        (&["--mlock", "--load-mode", "none"], "mlock"),
        (&["--load-mode", "auto", "--mlock"], "load_mode"),
        (&["--samplers", "top_k", "--sampling-seq", "mt"], "samplers"),
        (&["--sampling-seq", "mt", "--samplers", "top_k"], "sampler_seq"),
        (&["-v", "-lv", "3"], "verbose"),
        (&["-lv", "3", "-v"], "verbosity"),
        (&["--rerank", "--pooling", "mean"], "rerank"),
        (&["--pooling", "mean", "--rerank"], "pooling"),
        (&["--rope-scale", "4", "--rope-freq-scale", "0.5"], "rope_scale"),
        (&["--rope-freq-scale", "0.5", "--rope-scale", "4"], "rope_freq_scale"),
        (&["--chat-template-file", "f", "--chat-template", "x"], "chat_template_file"),
        (&["--ui-config-file", "f", "--ui-config", "{}"], "ui_config_file"),
        // Nothing is lost where both say the same.
        (&["--no-mmap", "--mlock"], ""),
        (&["--mmap", "--load-mode", "mmap"], ""),
        (&["--mmap", "--load-mode", "mmap+mlock"], ""),
        (&["--mlock", "--load-mode", "mmap+mlock"], ""),
        (&["--load-mode", "mlock", "--mlock"], ""),
        (&["--pooling", "rank", "--rerank"], ""),
        (&["--rope-scale", "4", "--rope-freq-scale", "0.25"], ""),
        (&["--samplers", "top_k;temp", "--sampling-seq", "kt"], ""),
    ] {
        let row = Row { argv: words, ..NOTHING };
        assert_eq!(ignored(&row), lost, "{words:?}");
    }
}

#[test]
fn among_variables_the_order_of_the_engine_counts() {
    for (variables, lost) in [
        (&[("LLAMA_ARG_MLOCK", "1"), ("LLAMA_ARG_LOAD_MODE", "none")], "mlock"),
        (&[("LLAMA_ARG_LOAD_MODE", "mlock"), ("LLAMA_ARG_MMAP", "0")], ""),
        (&[("LLAMA_ARG_MMAP", "1"), ("LLAMA_ARG_LOAD_MODE", "mlock")], "mmap"),
        // A switch that does not switch on writes nothing.
        (&[("LLAMA_ARG_MMAP", "1"), ("LLAMA_ARG_MLOCK", "yes")], "mlock"),
        (&[("LLAMA_ARG_DIO", "1"), ("LLAMA_ARG_NO_MMAP", "1")], ""),
        (&[("LLAMA_ARG_DIO", "1"), ("LLAMA_ARG_MMAP", "1")], "mmap"),
        (&[("LLAMA_ARG_RERANKING", "1"), ("LLAMA_ARG_POOLING", "mean")], "pooling"),
        (&[("LLAMA_ARG_ROPE_SCALE", "4"), ("LLAMA_ARG_ROPE_FREQ_SCALE", "0.5")], "rope_scale"),
        (&[("LLAMA_ARG_CHAT_TEMPLATE_FILE", "f"), ("LLAMA_ARG_CHAT_TEMPLATE", "x")], "chat_template"),
        (&[("LLAMA_ARG_UI_CONFIG", "{}"), ("LLAMA_ARG_UI_CONFIG_FILE", "f")], "ui_config"),
    ] {
        let row = Row { env: variables, ..NOTHING };
        assert_eq!(ignored(&row), lost, "{variables:?}");
    }
    // A flag is stronger whatever the order.
    let row = Row { argv: &["--mlock"], env: &[("LLAMA_ARG_LOAD_MODE", "mmap")], ini: "load-mode = dio\n" };
    assert_eq!(ignored(&row), "load_mode");
}

#[test]
fn among_keys_of_a_file_the_order_of_their_first_flags_counts() {
    for (text, lost) in [
        ("mlock = 1\nload-mode = dio\nmmap = 1\n", "mlock,mmap"),
        ("verbose = 1\nverbosity = 3\n", "verbosity"),
        ("log-verbosity = 3\nlog-verbose = 1\n", "verbosity"),
        ("rerank = 1\npooling = mean\n", "pooling"),
        ("samplers = top_k\nsampling-seq = mt\n", "sampler_seq"),
        ("rope-scale = 4\nrope-freq-scale = 0.5\n", "rope_freq_scale"),
        ("chat-template-file = f\nchat-template = x\n", "chat_template"),
        ("ui-config-file = f\nui-config = {}\n", "ui_config"),
        // `[default]` lies over `[*]`.
        ("[*]\nverbose = 1\n[default]\nverbosity = 3\n", "verbose"),
    ] {
        assert_eq!(ignored(&ini(text)), lost, "{text}");
    }
}

#[test]
fn of_a_variable_that_stands_twice_the_first_counts() {
    let row = env(&[("LLAMA_ARG_TOP_K", "7"), ("LLAMA_ARG_CTX_SIZE", "512"), ("LLAMA_ARG_TOP_K", "9")]);
    assert_eq!(asked(&row, "top_k"), Asked::Equals(Value::Int(7)));
    assert_eq!(claim(&row, "top_k").origins.len(), 1);
}
