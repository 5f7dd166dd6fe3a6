//! Chat templates.

use super::statement::Statement;
use crate::llama_cpp::reader::Reader;
use ascertain_model::{Act, Finding, Rung, Severity, Value};
use serde_json::Value as Json;

/// Names of built-in templates, as `--help` lists them. With the template engine on only `chatml` is one.
const BUILT_IN: [&str; 53] = [
    "bailing",
    "bailing-think",
    "bailing2",
    "chatglm3",
    "chatglm4",
    "command-r",
    "deepseek",
    "deepseek-ocr",
    "deepseek2",
    "deepseek3",
    "exaone-moe",
    "exaone3",
    "exaone4",
    "falcon3",
    "gemma",
    "gigachat",
    "glmedge",
    "gpt-oss",
    "granite",
    "granite-4.0",
    "granite-4.1",
    "grok-2",
    "hunyuan-dense",
    "hunyuan-moe",
    "hunyuan-vl",
    "kimi-k2",
    "llama2",
    "llama2-sys",
    "llama2-sys-bos",
    "llama2-sys-strip",
    "llama3",
    "llama4",
    "megrez",
    "minicpm",
    "mistral-v1",
    "mistral-v3",
    "mistral-v3-tekken",
    "mistral-v7",
    "mistral-v7-tekken",
    "monarch",
    "openchat",
    "orion",
    "pangu-embedded",
    "phi3",
    "phi4",
    "rwkv-world",
    "seed_oss",
    "smolvlm",
    "solar-open",
    "vicuna",
    "vicuna-orca",
    "yandex",
    "zephyr",
];
const CHATML: &str = "chatml";
/// What `chatml` stands for where the template engine is on (b10434).
const CHATML_TEXT: &str = "{%- for message in messages -%}\n  {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}\n{%- endfor -%}\n{%- if add_generation_prompt -%}\n  {{- '<|im_start|>assistant\n' -}}\n{%- endif -%}";
const ANOTHER: &str = "another template";
/// When a process began is known less exactly than when a file was written.
const SLACK_MS: u64 = 2_000;

/// The engine reads a template with the line ends of this system and without what is blank at its end.
fn plain(text: &str) -> String {
    text.replace("\r\n", "\n").trim_end().to_string()
}

fn is_name(text: &str) -> bool {
    let text = text.trim();
    text == CHATML || BUILT_IN.contains(&text)
}

pub(super) fn chat_template(reader: &mut Reader<'_>) {
    let Some((in_force, artifact, range)) = reader.props.as_ref().and_then(|props| {
        let text = props.value.get("chat_template").and_then(Json::as_str)?;
        let range = crate::locate::locate(props.bytes, "/chat_template").unwrap_or(0..0);
        Some((text.to_string(), props.artifact.clone(), range))
    }) else {
        return;
    };
    let state = |setting: &'static str, value: Value| {
        Statement::new(setting, value, Rung::Reported, "props", &artifact, range.clone()).label("/chat_template")
    };
    if let (Some(asked), Some(as_asked)) =
        (reader.asked_text("chat_template").map(str::to_string), reader.as_asked("chat_template"))
    {
        let setting = "chat_template";
        let same = plain(&asked) == plain(&in_force);
        let name = asked.trim();
        let is_text = asked.contains("{{") || asked.contains("{%");
        let is_word = !is_text && !name.is_empty() && !name.contains(char::is_whitespace);
        if name == CHATML {
            if plain(&in_force) == plain(CHATML_TEXT) {
                reader.state(state(setting, as_asked).note("the text that chatml stands for"));
            } else {
                // Another release may write it otherwise, and the model's own may look alike.
                reader.settles(setting, "hand in the template itself with --chat-template-file: that can be compared");
            }
        } else if is_name(name) && !reader.asked_off("jinja") {
            if same {
                reader.state(state(setting, Value::text("the literal word")));
                reader.silently(
                    setting,
                    Act::Ignores,
                    format!(
                        "{} is taken for the text of a template: every prompt is that one word",
                        crate::text::safe(name)
                    ),
                    "add --no-jinja, or hand in the template itself with --chat-template-file",
                );
            } else {
                reader.state(state(setting, Value::text(ANOTHER)));
            }
        } else if same {
            let statement = state(setting, as_asked);
            if is_word && !is_name(name) {
                // A name that another release may know, or text: what is in force is that word.
                reader.state(statement.note("the word is the template, or its name").echo());
                reader.settles(setting, "hand in the template itself, or a name that --help lists");
            } else {
                reader.state(statement);
            }
            if !is_name(name) && !is_text {
                reader.findings.push(Finding {
                    kind: "constant_template",
                    severity: Severity::Warning,
                    text: "the chat template has no placeholder: every prompt is the same text, whatever a client says"
                        .to_string(),
                    evidence: Vec::new(),
                });
            }
        } else if !asked.trim().is_empty() {
            reader.state(state(setting, Value::text(ANOTHER)));
        }
    }

    let Some(file) = reader.capture.bytes("chat_template.txt").and_then(|bytes| std::str::from_utf8(bytes).ok()) else {
        return;
    };
    let setting = "chat_template_file";
    let Some(as_asked) = reader.as_asked(setting) else { return };
    let file = file.to_string();
    let note = "the template in force, compared with the file as it is now";
    if plain(&file) == plain(&in_force) {
        reader.state(state(setting, as_asked).note(note));
        return;
    }
    if is_name(&file) || file.trim().is_empty() {
        let why = "the file holds the name of a template, not a template: what it stands for is not known here";
        reader.state(state(setting, Value::text(ANOTHER)).note(why).echo());
        reader.settles(setting, "write the template itself into the file");
        return;
    }
    let written = reader.capture.entry("chat_template.txt").and_then(|entry| entry.changed_ms);
    let since = reader.capture.manifest.start.as_ref().and_then(|start| start.since_ms);
    match (written, since) {
        (Some(written), Some(since)) if written.saturating_add(SLACK_MS) < since => {
            reader.state(state(setting, Value::text(ANOTHER)).note(note));
        }
        (Some(_), Some(_)) => {
            let why = "the template in force is not the one in the file, which was changed since the start";
            reader.state(state(setting, Value::text(ANOTHER)).note(why).echo());
            reader.settles(setting, "restart the server, so that it reads the file as it is now");
            reader.findings.push(Finding {
                kind: "changed_since",
                severity: Severity::Warning,
                text: "the file of the chat template was changed after the start: what this start read in it is not known, and another template is in force than it holds now".to_string(),
                evidence: Vec::new(),
            });
        }
        _ => {
            let why = "the template in force is not the one in the file, which may have been changed since the start";
            reader.state(state(setting, Value::text(ANOTHER)).note(why).echo());
            reader.settles(
                setting,
                "restart the server, then verify the process itself: that shows when the file was written",
            );
        }
    }
}
