//! Which settings a line of the log is about, for whoever reads the log with their own eyes.
//!
//! The same templates as for evidence, and the few lines that `derive` reads by itself, but without its care about who
//! wrote a line and when: nothing here is evidence.

use super::{data, log};
use crate::data::Data;
use crate::template::Template;
use aho_corasick::AhoCorasick;
use std::sync::OnceLock;

/// Lines that are read in code, by words in them. Seen on b10434 and b11434.
const READ_IN_CODE: &[(&str, &[&str])] = &[
    ("adding speculative implementation '", &["spec_type"]),
    ("speculative decoding context initialized", &["spec_type"]),
    ("creating MTP draft context against the target model", &["spec_type"]),
    ("draft acceptance = ", &["spec_type"]),
    ("loading draft model '", &["spec_draft_model"]),
    ("load_model: loading model '", &["model"]),
    ("no API key is set", &["api_key"]),
    ("llama_context: n_ctx  ", &["ctx_size"]),
    ("slot context shift, n_keep", &["context_shift"]),
    ("failed to mlock", &["mlock"]),
];

/// Words by which a line is found, and what is then looked at.
struct Known {
    keys: AhoCorasick,
    about: Vec<About>,
}

enum About {
    /// Words alone.
    Words(&'static [&'static str]),
    /// The template of a testimony about one setting.
    Statement(&'static Template, &'static str),
    /// The template of a message, with the settings that the data names; none where the line itself does.
    Message(&'static Template, Vec<&'static str>),
}

fn known() -> Option<&'static Known> {
    static KNOWN: OnceLock<Option<Known>> = OnceLock::new();
    let read = || {
        let data = data();
        let mut about = Vec::new();
        let mut words = Vec::new();
        for (line, settings) in READ_IN_CODE {
            words.push(*line);
            about.push(About::Words(settings));
        }
        for (testimony, template) in &data.testimonies {
            if let Some(template) = template {
                words.push(template.key());
                about.push(About::Statement(template, &testimony.setting));
            }
        }
        for (message, template) in &data.messages {
            words.push(template.key());
            about.push(About::Message(template, message.setting.names()));
        }
        AhoCorasick::new(words).ok().map(|keys| Known { keys, about })
    };
    KNOWN.get_or_init(read).as_ref()
}

/// The settings that a line speaks about, by canonical name.
pub(super) fn speaks_of(raw: &str) -> Vec<String> {
    let Some(known) = known() else { return Vec::new() };
    let line = log::single(raw.as_bytes());
    let mut candidates: Vec<usize> =
        known.keys.find_overlapping_iter(line.text.as_ref()).map(|hit| hit.pattern().as_usize()).collect();
    candidates.sort_unstable();
    candidates.dedup();
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if !names.iter().any(|other| other == name) {
            names.push(name.to_string());
        }
    };
    for candidate in candidates {
        match &known.about[candidate] {
            About::Words(settings) => settings.iter().for_each(|name| add(name)),
            About::Statement(template, name) => {
                if template.matches(&line.text).is_some() {
                    add(name);
                }
            }
            About::Message(template, settings) => {
                let Some(holes) = template.matches(&line.text) else { continue };
                settings.iter().for_each(|name| add(name));
                if settings.is_empty() {
                    holes.iter().filter_map(|(hole, text)| named(data(), hole, text)).for_each(&mut add);
                }
            }
        }
    }
    names
}

/// The setting that the text of a hole names.
fn named<'d>(data: &'d Data, hole: &str, text: &str) -> Option<&'d str> {
    let text = text.trim_matches(['"', '\'']);
    let found = match hole {
        "flag" => data.flag(text),
        "env" => data.env(text),
        "key" => data.flag(&format!("--{text}")),
        _ => None,
    };
    found.map(|(setting, _)| setting.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_about_the_settings_that_it_states() {
        for (line, settings) in [
            ("0.00.120.001 I cmn  init: llama threadpool init, n_threads = 2", &["threads"][..]),
            (
                "W common_init: failed to initialize speculative decoding context: x",
                &["spec_type", "spec_draft_model", "spec_default"],
            ),
            ("error while handling argument \"--ctx-size\": stoi", &["ctx_size"]),
            ("error while handling environment variable \"LLAMA_ARG_CTX_SIZE\": stoi", &["ctx_size"]),
            ("\u{1b}[33mW\u{1b}[0m srv    load_model: loading draft model '/x.gguf'", &["spec_draft_model"]),
            ("I srv  log_server_r: done request: POST /completion 127.0.0.1 200", &[]),
            ("", &[]),
        ] {
            assert_eq!(speaks_of(line), settings, "{line}");
        }
        assert_eq!(speaks_of(&format!("{{\"type\":\"x\",\"msg\":\"{}\"}}", "n_threads")), [""; 0]);
    }

    #[test]
    fn what_is_read_in_code_names_settings() {
        for (line, settings) in READ_IN_CODE {
            for name in *settings {
                assert!(data().setting(name).is_some(), "{name} of {line:?}");
            }
            assert_eq!(speaks_of(&format!("x {line} y"))[..settings.len()], **settings, "{line}");
        }
    }
}
