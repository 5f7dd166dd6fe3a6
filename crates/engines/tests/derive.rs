//! What is concluded from several things at once, on recordings with changed artifacts.
//!
//! Each situation was first run against a real server (b10434); what the server really did is the verdict here.

use ascertain_engines::{Engine, Reading, llama_cpp::LlamaCpp};
use ascertain_model::capture::{Artifact, Capture, Manifest, SCHEMA, Start};
use ascertain_model::{Judgement, judge};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// A recording with changes.
struct Made {
    capture: Capture,
}

impl Made {
    fn from(recording: &str) -> Made {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures/llamacpp").join(recording);
        let mut artifacts = BTreeMap::new();
        for entry in std::fs::read_dir(&folder).expect("the recording is there") {
            let path = entry.expect("a readable folder").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name != "expected.toml" {
                artifacts.insert(name, std::fs::read(&path).expect("a readable artifact"));
            }
        }
        let manifest = Manifest {
            schema: SCHEMA.to_string(),
            tool: String::new(),
            target: recording.to_string(),
            host: None,
            start: None,
            taken: None,
            taken_ms: None,
            artifacts: Vec::new(),
            remarks: Vec::new(),
        };
        Made { capture: Capture { manifest, artifacts } }
    }

    /// The recording at the verbosity that shows the library's lines, with the flag that asks for it.
    fn verbose(&mut self) -> &mut Self {
        let log = self.capture.artifacts.remove("log_lv4.txt").expect("a verbose log");
        let log = String::from_utf8(log).expect("text");
        // It was another start, on another port.
        let port = self.words().last().cloned().unwrap_or_default();
        let listening = "listening on http://127.0.0.1:";
        let at = log.find(listening).expect("a server that listens") + listening.len();
        let rest = log[at..].trim_start_matches(|digit: char| digit.is_ascii_digit()).to_string();
        self.put("log.txt", format!("{}{port}{rest}", &log[..at]));
        self.argv(&["-lv", "4"])
    }

    fn words(&self) -> Vec<String> {
        serde_json::from_slice(&self.capture.artifacts["proc_cmdline.json"]).expect("a command line")
    }

    /// Adds words before the address, which stays the last one.
    fn argv(&mut self, more: &[&str]) -> &mut Self {
        let mut words = self.words();
        let at = words.iter().position(|word| word == "--host").unwrap_or(words.len());
        words.splice(at..at, more.iter().map(|word| (*word).to_string()));
        self.put("proc_cmdline.json", json!(words).to_string())
    }

    fn without(&mut self, flag: &str, values: usize) -> &mut Self {
        let mut words = self.words();
        let at = words.iter().position(|word| word == flag).expect("a flag of the recording");
        words.drain(at..=at + values);
        self.put("proc_cmdline.json", json!(words).to_string())
    }

    fn env(&mut self, entries: &[&str]) -> &mut Self {
        self.put("proc_environ_llama.json", json!(entries).to_string())
    }

    fn put(&mut self, name: &str, bytes: impl Into<Vec<u8>>) -> &mut Self {
        self.capture.artifacts.insert(name.to_string(), bytes.into());
        self
    }

    fn lose(&mut self, names: &[&str]) -> &mut Self {
        for name in names {
            self.capture.artifacts.remove(*name);
        }
        self
    }

    fn replace(&mut self, name: &str, old: &str, new: &str) -> &mut Self {
        let text = String::from_utf8(self.capture.artifacts[name].clone()).expect("text");
        assert!(text.contains(old), "{name} has no {old}");
        self.put(name, text.replace(old, new))
    }

    fn json(&mut self, name: &str, pointer: &str, new: Value) -> &mut Self {
        let mut value: Value = serde_json::from_slice(&self.capture.artifacts[name]).expect("JSON");
        let (before, key) = pointer.rsplit_once('/').expect("a pointer");
        value.pointer_mut(before).expect("the place is there")[key] = new;
        self.put(name, value.to_string())
    }

    fn entry(&mut self, name: &str, source: &str, changed_ms: Option<u64>) -> &mut Self {
        self.capture.manifest.artifacts.push(Artifact {
            name: name.to_string(),
            source: source.to_string(),
            bytes: None,
            sha256: None,
            at_ms: 0,
            changed_ms,
            partial: None,
            gap: None,
        });
        self
    }

    fn since(&mut self, since_ms: u64) -> &mut Self {
        self.capture.manifest.start = Some(Start { boot: String::new(), pid: 1, ticks: 1, since_ms: Some(since_ms) });
        self
    }

    /// What a request with our origin was told.
    fn origin(&mut self, allowed: &str) -> &mut Self {
        let told = |value: &str| json!({"status": 200, "headers": [["access-control-allow-origin", value]]});
        // The requests that name no origin are told nothing.
        self.put("http_headers.json", json!({"health.json": told(allowed), "props.json": told("")}).to_string())
    }

    fn listens(&mut self, address: &str) -> &mut Self {
        let port: u16 = self.words().last().expect("a port").parse().expect("a port");
        self.put("listeners.json", json!([{"address": address, "port": port}]).to_string())
    }

    /// Every request for tokens repeats these types.
    fn repeats(&mut self, old: &str, new: &str) -> &mut Self {
        for name in ["completion.json", "slots_after.json"] {
            self.replace(
                name,
                &format!("\"speculative.types\":\"{old}\""),
                &format!("\"speculative.types\":\"{new}\""),
            );
        }
        self
    }

    fn judge(&self) -> (Reading, Judgement) {
        let reading = LlamaCpp.read(&self.capture);
        let judgement = judge(&reading.case);
        (reading, judgement)
    }
}

struct Situation {
    name: &'static str,
    recording: &'static str,
    change: fn(&mut Made) -> &mut Made,
    /// `setting = verdict`, `setting.effect = verdict`, `finding = kind`, `by.setting = part of the explanation`.
    gives: &'static [(&'static str, &'static str)],
}

fn check(situations: &[Situation]) {
    let mut wrong = Vec::new();
    for situation in situations {
        let mut made = Made::from(situation.recording);
        (situation.change)(&mut made);
        let (reading, judgement) = made.judge();
        for (what, wanted) in situation.gives {
            let find = |name: &str| judgement.claims.iter().find(|judged| judged.claim.setting == name);
            let (given, fits) = if *what == "finding" {
                let kinds: Vec<&str> = reading.findings.iter().map(|one| one.kind).collect();
                (kinds.join(" "), kinds.contains(wanted))
            } else if let Some(setting) = what.strip_prefix("by.") {
                let by = find(setting).and_then(|judged| judged.by.as_ref()).map(|act| act.by.clone());
                let by = by.unwrap_or_default();
                let fits = by.contains(wanted);
                (by, fits)
            } else if let Some(setting) = what.strip_suffix(".effect") {
                let effect = find(setting).and_then(|judged| judged.effect.as_ref()).map_or("none", |one| one.word());
                (effect.to_string(), effect == *wanted)
            } else {
                let judged = find(what);
                let word = judged.map_or("no claim", |judged| judged.verdict.word());
                let shown = judged.map_or(String::new(), |judged| format!("{:?} {:?}", judged.verdict, judged.by));
                (format!("{word} {shown}"), word == *wanted)
            };
            if !fits {
                wrong.push(format!("{}: {what}: {given} expected {wanted}", situation.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn checkpoint(architecture: &str, trained: i64) -> String {
    let mut kv = serde_json::Map::new();
    kv.insert("general.architecture".to_string(), json!(architecture));
    kv.insert(format!("{architecture}.context_length"), json!(trained));
    json!({"format": "gguf", "kv": kv}).to_string()
}

#[test]
fn overrides_of_metadata() {
    check(&[
        Situation {
            name: "the key of the model, another value than the file's",
            recording: "override-kv",
            change: |made| made.put("checkpoint.json", checkpoint("qwen3", 2048)),
            gives: &[("override_kv", "confirmed")],
        },
        Situation {
            name: "the same without an effect",
            recording: "override-kv",
            change: |made| {
                made.put("checkpoint.json", checkpoint("qwen3", 2048)).json(
                    "v1_models.json",
                    "/data/0/meta/n_ctx_train",
                    json!(2048),
                )
            },
            gives: &[("override_kv", "contradicted")],
        },
        Situation {
            name: "the file says the same",
            recording: "override-kv",
            change: |made| made.put("checkpoint.json", checkpoint("qwen3", 4096)),
            gives: &[("override_kv", "unproven")],
        },
        Situation {
            name: "the key of another architecture",
            recording: "plain",
            change: |made| {
                made.argv(&["--override-kv", "llama.context_length=int:2048"])
                    .put("checkpoint.json", checkpoint("qwen3", 2048))
            },
            gives: &[("override_kv", "unproven")],
        },
        Situation {
            name: "the key of another architecture, which only the log names",
            recording: "plain",
            change: |made| made.verbose().argv(&["--override-kv", "llama.context_length=int:2048"]),
            gives: &[("override_kv", "unproven")],
        },
        Situation {
            name: "the header could not be read",
            recording: "override-kv",
            change: |made| made.entry("checkpoint.json", "/models/tiny-qwen3.gguf", None),
            gives: &[("override_kv", "unproven")],
        },
    ]);
}

#[test]
fn samplers_that_are_not_run() {
    check(&[
        Situation {
            name: "Mirostat replaces the chain",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--mirostat", "2", "--samplers", "top_k;temperature", "--top-k", "7", "--temp", "0.8"])
                    .json("props.json", "/default_generation_settings/params/mirostat", json!(2))
                    .json("props.json", "/default_generation_settings/params/top_k", json!(7))
                    .json("props.json", "/default_generation_settings/params/samplers", json!(["top_k", "temperature"]))
            },
            gives: &[
                ("mirostat", "confirmed"),
                ("samplers", "not_applicable"),
                ("top_k", "not_applicable"),
                ("temp", "confirmed"),
            ],
        },
        Situation {
            name: "a sampler that is not in the chain",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--samplers", "temperature", "--top-k", "7", "--min-p", "0.2", "--temp", "0.8"])
                    .json("props.json", "/default_generation_settings/params/top_k", json!(7))
                    .json("props.json", "/default_generation_settings/params/min_p", json!(0.2))
                    .json("props.json", "/default_generation_settings/params/samplers", json!(["temperature"]))
            },
            gives: &[
                ("samplers", "confirmed"),
                ("top_k", "not_applicable"),
                ("min_p", "not_applicable"),
                ("temp", "confirmed"),
            ],
        },
        Situation {
            name: "a chain of all",
            recording: "skulk-plain",
            change: |made| made.argv(&["--top-k", "40"]),
            gives: &[("top_k", "confirmed")],
        },
    ]);
}

const TURNED_AWAY: &str = r#"{"_status": 401, "_body": ""}"#;

#[test]
fn keys() {
    check(&[
        Situation {
            name: "one source",
            recording: "skulk-plain",
            change: |made| made.argv(&["--api-key-file", "/k"]).put("props_without_key.json", TURNED_AWAY),
            gives: &[("api_key_file", "confirmed")],
        },
        Situation {
            name: "two sources: which of them, nobody says",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--api-key", "[redacted]", "--api-key-file", "/k"])
                    .replace("log.txt", "CORS is set to allow all origins ('*') and no API key is set", "-")
                    .put("props_without_key.json", TURNED_AWAY)
            },
            gives: &[("api_key", "unproven"), ("api_key_file", "unproven")],
        },
        Situation {
            name: "an empty variable beside a file",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--api-key-file", "/k"]).env(&["LLAMA_API_KEY="]).put("props_without_key.json", TURNED_AWAY)
            },
            gives: &[
                ("api_key", "contradicted"),
                ("by.api_key", "an empty key is no key"),
                ("api_key_file", "confirmed"),
            ],
        },
        Situation {
            name: "a blank is a key",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--api-key", " "]).put("props_without_key.json", TURNED_AWAY).replace(
                    "log.txt",
                    "CORS is set to allow all origins ('*') and no API key is set",
                    "-",
                )
            },
            gives: &[("api_key", "confirmed")],
        },
        Situation {
            name: "a file that may be empty, and an environment that is not known",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--api-key-file", "/k"])
                    .put("props_without_key.json", TURNED_AWAY)
                    .lose(&["proc_environ_llama.json", "meta.json"])
            },
            gives: &[("api_key_file", "unproven")],
        },
        Situation {
            name: "an open server",
            recording: "skulk-plain",
            change: |made| {
                let props = made.capture.artifacts["props.json"].clone();
                made.argv(&["--api-key-file", "/k"]).put("props_without_key.json", props)
            },
            gives: &[("api_key_file", "contradicted")],
        },
    ]);
}

#[test]
fn origins() {
    check(&[
        Situation {
            name: "all",
            recording: "skulk-plain",
            change: |made| made.argv(&["--cors-origins", "*"]).origin("http://ascertain.invalid"),
            gives: &[("cors_origins", "confirmed")],
        },
        Situation {
            name: "one",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--cors-origins", "http://a.b"])
                    .origin("http://a.b")
                    // The log of the recording says that all are allowed.
                    .replace("log.txt", "CORS is set to allow all origins ('*') and no API key is set", "-")
            },
            gives: &[("cors_origins", "confirmed")],
        },
        Situation {
            name: "a list, sent as it is",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--cors-origins", "http://a.b, http://c.d"]).origin("http://a.b, http://c.d").replace(
                    "log.txt",
                    "CORS is set to allow all origins ('*') and no API key is set",
                    "-",
                )
            },
            gives: &[("cors_origins", "confirmed")],
        },
        Situation {
            name: "another one",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--cors-origins", "http://a.b"]).origin("http://c.d").replace(
                    "log.txt",
                    "CORS is set to allow all origins ('*') and no API key is set",
                    "-",
                )
            },
            gives: &[("cors_origins", "contradicted")],
        },
        Situation {
            name: "ours",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--cors-origins", "http://ascertain.invalid"]).origin("http://ascertain.invalid").replace(
                    "log.txt",
                    "CORS is set to allow all origins ('*') and no API key is set",
                    "-",
                )
            },
            gives: &[("cors_origins", "unproven")],
        },
    ]);
}

#[test]
fn addresses() {
    check(&[
        Situation {
            name: "an empty host",
            recording: "skulk-plain",
            change: |made| {
                let mut words = made.words();
                let at = words.iter().position(|word| word == "--host").expect("a host") + 1;
                words[at] = String::new();
                made.put("proc_cmdline.json", json!(words).to_string())
                    .replace("log.txt", "http://127.0.0.1:", "http://:")
                    .listens("::1")
            },
            gives: &[("host", "adjusted")],
        },
        Situation {
            name: "a long spelling",
            recording: "skulk-plain",
            change: |made| {
                let mut words = made.words();
                let at = words.iter().position(|word| word == "--host").expect("a host") + 1;
                words[at] = "0:0:0:0:0:0:0:1".to_string();
                made.put("proc_cmdline.json", json!(words).to_string())
                    .replace("log.txt", "http://127.0.0.1:", "http://[0:0:0:0:0:0:0:1]:")
                    .listens("::1")
            },
            gives: &[("host", "confirmed")],
        },
        Situation {
            name: "another address",
            recording: "skulk-plain",
            change: |made| made.lose(&["log.txt"]).listens("0.0.0.0"),
            gives: &[("host", "contradicted")],
        },
        Situation {
            name: "a unix socket",
            recording: "skulk-plain",
            change: |made| {
                let mut words = made.words();
                let at = words.iter().position(|word| word == "--host").expect("a host") + 1;
                words[at] = "/run/l.sock".to_string();
                made.put("proc_cmdline.json", json!(words).to_string())
                    .lose(&["log.txt"])
                    .put("listeners.json", json!([{"unix": "/run/l.sock"}]).to_string())
            },
            gives: &[("host", "confirmed"), ("port", "not_applicable")],
        },
    ]);
}

const MISSING: &str = r#"{"_status": 404, "_body": ""}"#;

#[test]
fn prefixes() {
    check(&[
        Situation {
            name: "endpoints answer under it",
            recording: "skulk-plain",
            change: |made| made.argv(&["--api-prefix", "/x"]).entry("props.json", "http://127.0.0.1:1/x/props", None),
            gives: &[("api_prefix", "confirmed")],
        },
        Situation {
            name: "they answer elsewhere",
            recording: "skulk-plain",
            change: |made| made.argv(&["--api-prefix", "/x"]).entry("props.json", "http://127.0.0.1:1/props", None),
            gives: &[("api_prefix", "unproven")],
        },
        Situation {
            name: "nothing answers under it",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--api-prefix", "/x"])
                    .put("props.json", MISSING)
                    .put("health.json", MISSING)
                    .entry("props.json", "http://127.0.0.1:1/x/props", None)
                    .entry("health.json", "http://127.0.0.1:1/x/health", None)
            },
            gives: &[("api_prefix", "unproven"), ("finding", "not_served")],
        },
        Situation {
            name: "no path",
            recording: "skulk-plain",
            change: |made| made.argv(&["--api-prefix", "x"]),
            gives: &[("api_prefix", "unproven"), ("finding", "not_served")],
        },
    ]);
}

#[test]
fn contexts() {
    check(&[
        Situation {
            name: "a part that is as asked, and a line about the total",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["-c", "256", "-np", "3"])
                    .replace("log.txt", "n_slots = 4, n_ctx_slot = 2048, kv_unified = 'true'", "n_slots = 3, n_ctx_slot = 256, kv_unified = 'false'")
                    .replace("log.txt", "initializing, n_slots", "n_ctx is not divisible by n_seq_max - rounding down to 768\n0.00.500.000 I srv    load_model: initializing, n_slots")
                    .json("props.json", "/total_slots", json!(3))
                    .json("props.json", "/default_generation_settings/n_ctx", json!(256))
                    .json("v1_models.json", "/data/0/meta/n_ctx", json!(256))
                    .lose(&["slots_before.json", "slots_after.json"])
            },
            gives: &[("ctx_size", "confirmed")],
        },
        Situation {
            name: "the trained length, divided",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["-c", "0", "-np", "3"])
                    .replace(
                        "log.txt",
                        "n_slots = 4, n_ctx_slot = 2048, kv_unified = 'true'",
                        "n_slots = 3, n_ctx_slot = 768, kv_unified = 'false'",
                    )
                    .json("props.json", "/total_slots", json!(3))
                    .json("props.json", "/default_generation_settings/n_ctx", json!(768))
                    .json("v1_models.json", "/data/0/meta/n_ctx", json!(768))
                    .lose(&["slots_before.json", "slots_after.json"])
            },
            gives: &[("ctx_size", "adjusted"), ("by.ctx_size", "divided among 3 slots")],
        },
        Situation {
            name: "the trained length, whole",
            recording: "skulk-plain",
            change: |made| made.argv(&["-c", "0"]),
            gives: &[("ctx_size", "confirmed")],
        },
        Situation {
            name: "a micro batch of 0",
            recording: "plain",
            change: |made| {
                made.verbose().argv(&["-ub", "0"]).replace(
                    "log.txt",
                    "llama_context: n_ubatch              = 512",
                    "llama_context: n_ubatch              = 2048",
                )
            },
            gives: &[("ubatch_size", "adjusted"), ("by.ubatch_size", "0 is taken for the size of the batch")],
        },
        Situation {
            name: "a negative number of threads",
            recording: "plain",
            change: |made| made.argv(&["-t", "-3"]),
            gives: &[("threads", "adjusted"), ("by.threads", "-3 is taken for the number of processors")],
        },
    ]);
}

#[test]
fn files_in_memory() {
    check(&[
        Situation {
            name: "--no-mmap --mlock is no mapping",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--no-mmap", "--mlock"]).replace("maps_files.txt", "/models/tiny-qwen3.gguf\n", "")
            },
            gives: &[("mmap", "confirmed")],
        },
        Situation {
            name: "--mmap --mlock is no mapping either",
            recording: "skulk-plain",
            change: |made| made.argv(&["--mmap", "--mlock"]).replace("maps_files.txt", "/models/tiny-qwen3.gguf\n", ""),
            gives: &[("mmap", "contradicted")],
        },
        Situation {
            name: "--mmap",
            recording: "skulk-plain",
            change: |made| made.argv(&["--mmap"]),
            gives: &[("mmap", "confirmed")],
        },
        Situation {
            name: "--no-mmap, mapped",
            recording: "skulk-plain",
            change: |made| made.argv(&["--no-mmap"]),
            gives: &[("mmap", "contradicted")],
        },
        Situation {
            name: "a file that the model's link may lead to",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--no-mmap"]).replace("maps_files.txt", "/models/tiny-qwen3.gguf", "/data/blobs/0a1b2c")
            },
            gives: &[("mmap", "unproven")],
        },
        Situation {
            name: "load mode mmap",
            recording: "plain",
            change: |made| made.argv(&["--load-mode", "mmap"]),
            gives: &[("load_mode", "confirmed")],
        },
        Situation {
            name: "load mode none, mapped",
            recording: "plain",
            change: |made| made.argv(&["--load-mode", "none"]),
            gives: &[("load_mode", "contradicted")],
        },
        Situation {
            name: "load mode none",
            recording: "plain",
            change: |made| {
                made.argv(&["--load-mode", "none"]).replace("maps_files.txt", "/models/tiny-qwen3.gguf\n", "")
            },
            gives: &[("load_mode", "confirmed")],
        },
        Situation {
            name: "a lock that failed names the old flag too",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--mlock"]).replace(
                    "log.txt",
                    "initializing, n_slots",
                    "x\n0.00.400.000 W warning: failed to mlock 375808-byte buffer (after previously locking 0 bytes): Cannot allocate memory\n0.00.500.000 I srv    load_model: initializing, n_slots",
                )
            },
            gives: &[("mlock", "contradicted")],
        },
    ]);
}

const IM: &str = "{%- for message in messages -%}\n  {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}\n{%- endfor -%}\n{%- if add_generation_prompt -%}\n  {{- '<|im_start|>assistant\n' -}}\n{%- endif -%}";

#[test]
fn templates() {
    check(&[
        Situation {
            name: "a name, with the engine",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--chat-template", "llama2"]).json("props.json", "/chat_template", json!("llama2"))
            },
            gives: &[("chat_template", "contradicted")],
        },
        Situation {
            name: "a name, without the engine",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--no-jinja", "--chat-template", "llama2"]).json(
                    "props.json",
                    "/chat_template",
                    json!("llama2"),
                )
            },
            gives: &[("chat_template", "confirmed")],
        },
        Situation {
            name: "chatml, without the engine",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--no-jinja", "--chat-template", "chatml"]).json("props.json", "/chat_template", json!(IM))
            },
            gives: &[("chat_template", "confirmed")],
        },
        Situation {
            name: "a word that is no name",
            recording: "skulk-plain",
            change: |made| made.argv(&["--chat-template", "zork"]).json("props.json", "/chat_template", json!("zork")),
            gives: &[("chat_template", "unproven"), ("finding", "constant_template")],
        },
        Situation {
            name: "a text without placeholders",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--chat-template", "Hello world {x}"]).json(
                    "props.json",
                    "/chat_template",
                    json!("Hello world {x}"),
                )
            },
            gives: &[("chat_template", "confirmed"), ("finding", "constant_template")],
        },
        Situation {
            name: "line ends",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--chat-template", "{{ a }}\r\n{{ b }}\n\n"]).json(
                    "props.json",
                    "/chat_template",
                    json!("{{ a }}\n{{ b }}\n"),
                )
            },
            gives: &[("chat_template", "confirmed")],
        },
        Situation {
            name: "another text",
            recording: "skulk-plain",
            change: |made| made.argv(&["--chat-template", "{{ a }}"]),
            gives: &[("chat_template", "contradicted")],
        },
        Situation {
            name: "chatml",
            recording: "skulk-plain",
            change: |made| made.argv(&["--chat-template", "chatml"]).json("props.json", "/chat_template", json!(IM)),
            gives: &[("chat_template", "confirmed")],
        },
        Situation {
            name: "chatml, and a template that looks like it",
            recording: "skulk-plain",
            change: |made| made.argv(&["--chat-template", "chatml"]),
            gives: &[("chat_template", "unproven")],
        },
        Situation {
            name: "a file with other line ends",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--chat-template-file", "/t"]).put("chat_template.txt", "{{ a }}\r\n").json(
                    "props.json",
                    "/chat_template",
                    json!("{{ a }}"),
                )
            },
            gives: &[("chat_template_file", "confirmed")],
        },
        Situation {
            name: "a file with a name",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--chat-template-file", "/t"]).put("chat_template.txt", "chatml\n").json(
                    "props.json",
                    "/chat_template",
                    json!(IM),
                )
            },
            gives: &[("chat_template_file", "unproven")],
        },
        Situation {
            name: "a file that was changed since",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--chat-template-file", "/t"])
                    .put("chat_template.txt", "{{ new }}")
                    .entry("chat_template.txt", "/t", Some(2_000_000))
                    .since(1_000_000)
                    .put("listeners.json", "[]")
            },
            gives: &[("chat_template_file", "unproven"), ("finding", "changed_since")],
        },
        Situation {
            name: "a file that is older than the start",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--chat-template-file", "/t"])
                    .put("chat_template.txt", "{{ old }}")
                    .entry("chat_template.txt", "/t", Some(500_000))
                    .since(1_000_000)
            },
            gives: &[("chat_template_file", "contradicted")],
        },
    ]);
}

#[test]
fn the_same_in_other_words() {
    check(&[
        Situation {
            name: "JSON",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--ui-config", r#"{ "x": 0.10, "a" : 1 }"#]).json(
                    "props.json",
                    "/ui_settings",
                    json!({"a": 1, "x": 0.1}),
                )
            },
            gives: &[("ui_config", "confirmed")],
        },
        Situation {
            name: "other JSON",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--ui-config", r#"{"a": 1}"#]).json("props.json", "/ui_settings", json!({"a": 1, "x": 0.1}))
            },
            gives: &[("ui_config", "contradicted")],
        },
        Situation {
            name: "six digits of a factor",
            recording: "plain",
            change: |made| {
                made.verbose().argv(&["--rope-freq-scale", "0.1234567"]).replace(
                    "log.txt",
                    "llama_context: freq_scale            = 1",
                    "llama_context: freq_scale            = 0.123457",
                )
            },
            gives: &[("rope_freq_scale", "unproven")],
        },
        Situation {
            name: "a factor of fewer digits",
            recording: "plain",
            change: |made| {
                made.verbose().argv(&["--rope-freq-scale", "0.125"]).replace(
                    "log.txt",
                    "llama_context: freq_scale            = 1",
                    "llama_context: freq_scale            = 0.125",
                )
            },
            gives: &[("rope_freq_scale", "confirmed")],
        },
        Situation {
            name: "another factor",
            recording: "plain",
            change: |made| made.verbose().argv(&["--rope-freq-scale", "0.125"]),
            gives: &[("rope_freq_scale", "contradicted")],
        },
        Situation {
            name: "a scale is one over the factor",
            recording: "plain",
            change: |made| {
                made.verbose().argv(&["--rope-scale", "3"]).replace(
                    "log.txt",
                    "llama_context: freq_scale            = 1",
                    "llama_context: freq_scale            = 0.333333",
                )
            },
            gives: &[("rope_scale", "confirmed")],
        },
        Situation {
            name: "a scale that was dropped",
            recording: "plain",
            change: |made| made.verbose().argv(&["--rope-scaling", "none", "--rope-scale", "4"]),
            gives: &[("rope_scale", "contradicted"), ("by.rope_scale", "drops the scale")],
        },
    ]);
}

#[test]
fn what_a_complete_log_leaves_out() {
    check(&[
        Situation {
            name: "no fit",
            recording: "fit-off",
            change: |made| made.verbose(),
            gives: &[("fit", "confirmed")],
        },
        Situation {
            name: "no fit asked for, and a log that says less",
            recording: "fit-off",
            change: |made| made,
            gives: &[("fit", "unproven")],
        },
        Situation {
            name: "a warm-up all the same",
            recording: "plain",
            change: |made| made.verbose().argv(&["--no-warmup"]),
            gives: &[("warmup", "contradicted")],
        },
        Situation {
            name: "no warm-up",
            recording: "plain",
            change: |made| made.verbose().argv(&["--no-warmup"]).replace("log.txt", "warming up the model", "x"),
            gives: &[("warmup", "confirmed")],
        },
    ]);
}

#[test]
fn embeddings() {
    check(&[
        Situation {
            name: "reranking pools by rank",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--rerank"]).replace(
                    "log.txt",
                    "initializing, n_slots",
                    "x\n0.00.400.000 W llama_init_from_model: model default pooling_type is [-1], but [4] was specified\n0.00.500.000 I srv    load_model: initializing, n_slots",
                )
            },
            gives: &[("rerank", "confirmed")],
        },
        Situation {
            name: "reranking, and nothing says so",
            recording: "skulk-plain",
            change: |made| made.argv(&["--rerank"]),
            gives: &[("rerank", "unproven")],
        },
        Situation {
            name: "pooling by rank was asked for itself",
            recording: "skulk-plain",
            change: |made| {
                made.argv(&["--embedding", "--pooling", "rank"]).replace(
                    "log.txt",
                    "initializing, n_slots",
                    "x\n0.00.400.000 W llama_init_from_model: model default pooling_type is [-1], but [4] was specified\n0.00.500.000 I srv    load_model: initializing, n_slots",
                )
            },
            gives: &[("pooling", "confirmed"), ("embedding", "unproven")],
        },
        Situation {
            name: "pooling without embeddings",
            recording: "skulk-plain",
            change: |made| made.argv(&["--pooling", "last"]),
            gives: &[("pooling", "not_applicable")],
        },
    ]);
}

#[test]
fn routers() {
    let props = r#"{"role":"router","model_path":"none","default_generation_settings":{"params":null,"n_ctx":0},"ui_settings":{},"build_info":"b1-7e4c0a9"}"#;
    let mut made = Made::from("skulk-plain");
    made.without("-m", 1)
        .argv(&["-c", "512", "-np", "2", "-a", "x", "--temp", "0.5"])
        .put("props.json", props)
        .put(
            "v1_models.json",
            r#"{"data":[{"id":"m","aliases":["x"],"meta":{"n_ctx":512,"n_ctx_train":512}}],"object":"list"}"#,
        )
        .lose(&["log.txt", "completion.json", "chat.json", "chat_stream.sse", "slots_before.json", "slots_after.json"]);
    let (reading, judgement) = made.judge();
    assert!(reading.findings.iter().any(|one| one.kind == "router"));
    for name in ["ctx_size", "parallel", "alias", "temp"] {
        let judged = judgement.claims.iter().find(|judged| judged.claim.setting == name).expect("a claim");
        assert_eq!(judged.verdict.word(), "unproven", "{name}: {:?}", judged.verdict);
    }
}

#[test]
fn drafts() {
    check(&[
        Situation {
            name: "some type of two drafts",
            recording: "skulk-mtp",
            change: |made| {
                made.without("--spec-type", 1)
                    .argv(&["--spec-type", "draft-eagle3"])
                    .env(&["LLAMA_ARG_SPEC_TYPE=ngram-simple"])
                    .repeats("none,draft-mtp", "none,ngram-simple,draft-eagle3")
            },
            gives: &[("spec_type", "unproven"), ("spec_type.effect", "unproven")],
        },
        Situation {
            name: "one type drafts",
            recording: "skulk-mtp",
            change: |made| made,
            gives: &[("spec_type", "confirmed"), ("spec_type.effect", "confirmed")],
        },
        Situation {
            name: "the preset beside a type",
            recording: "skulk-mtp",
            change: |made| made.argv(&["--spec-default"]).repeats("none,draft-mtp", "none,ngram-mod,draft-mtp"),
            gives: &[
                ("spec_type", "confirmed"),
                ("spec_type.effect", "confirmed"),
                ("spec_default", "confirmed"),
                ("spec_default.effect", "unproven"),
            ],
        },
        Situation {
            name: "the preset, and none asked for",
            recording: "skulk-mtp",
            change: |made| {
                made.without("--spec-type", 1)
                    .argv(&["--spec-default", "--spec-type", "none"])
                    .repeats("none,draft-mtp", "none,ngram-mod")
            },
            gives: &[("spec_type", "contradicted"), ("spec_default.effect", "confirmed")],
        },
        Situation {
            name: "0 is no switch",
            recording: "skulk-mtp",
            change: |made| made.argv(&["--spec-draft-n-max", "0"]).lose(&["metrics_after.txt"]),
            gives: &[("spec_draft_n_max", "contradicted")],
        },
        Situation {
            name: "0 is no switch, and the log repeats it",
            recording: "skulk-mtp",
            change: |made| {
                made.verbose()
                    .argv(&["--spec-draft-n-max", "0"])
                    .replace("log.txt", "- n_max=3, n_min=", "- n_max=0, n_min=")
                    .lose(&[
                        "completion.json",
                        "chat.json",
                        "chat_stream.sse",
                        "metrics_before.txt",
                        "metrics_after.txt",
                        "slots_after.json",
                    ])
            },
            gives: &[("spec_draft_n_max", "contradicted")],
        },
        Situation {
            name: "a type that the file brings, as the answers repeat it",
            recording: "skulk-mtp",
            change: |made| {
                made.without("--spec-type", 1)
                    .argv(&["-md", "/models/draft.gguf"])
                    .replace("maps_files.txt", "/models/", "/models/draft.gguf\n/models/")
                    .repeats("none,draft-mtp", "draft-mtp")
            },
            gives: &[("spec_draft_model", "confirmed"), ("spec_draft_model.effect", "confirmed")],
        },
        Situation {
            name: "the same, and the answers repeat two",
            recording: "skulk-mtp",
            change: |made| {
                made.without("--spec-type", 1)
                    .argv(&["-md", "/models/draft.gguf"])
                    .replace("maps_files.txt", "/models/", "/models/draft.gguf\n/models/")
                    .repeats("none,draft-mtp", "draft-mtp,ngram-mod")
            },
            gives: &[("spec_draft_model", "unproven"), ("spec_draft_model.effect", "unproven")],
        },
        Situation {
            name: "limits that no draft meets",
            recording: "skulk-draft",
            change: |made| {
                made.argv(&["--spec-draft-n-max", "2", "--spec-draft-n-min", "5"])
                    .lose(&[
                        "completion.json",
                        "chat.json",
                        "chat_stream.sse",
                        "metrics_before.txt",
                        "metrics_after.txt",
                        "slots_after.json",
                    ])
                    .replace("log.txt", "draft acceptance", "x")
            },
            gives: &[
                ("spec_type", "confirmed"),
                ("spec_type.effect", "contradicted"),
                ("spec_draft_model.effect", "contradicted"),
                ("finding", "never_drafts"),
            ],
        },
        Situation {
            name: "tokens that were drafted all the same",
            recording: "skulk-draft",
            change: |made| made.argv(&["--spec-draft-p-min", "1.5"]),
            gives: &[("spec_type.effect", "confirmed")],
        },
    ]);
}

#[test]
fn a_file_that_is_gone_may_have_asked() {
    let mut made = Made::from("skulk-plain");
    made.json("props.json", "/default_generation_settings/params/top_k", json!(7)).replace(
        "log.txt",
        "0.00.006.679 I cmn",
        "using config file: /etc/llama.cpp/config.ini\n0.00.006.679 I cmn",
    );
    let (reading, _) = made.judge();
    let one = reading.unasked.iter().find(|one| one.setting == "top_k").expect("an unasked setting");
    assert!(one.why.as_deref().is_some_and(|why| why.contains("/etc/llama.cpp/config.ini")), "{:?}", one.why);
}
