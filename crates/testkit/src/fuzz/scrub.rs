//! What may be kept of a unit.

use super::unit::{as_written, collected};
use ascertain_capture::redact::{MARK, Redactor, SecretNames};
use ascertain_capture::scrub;
use ascertain_capture::systemd::{PROPERTIES, Unit};
use ascertain_model::service::{FileEntry, FileText, ManagerState, Script, UnitFiles, is_not_kept};
use ascertain_unit::layers::Layer;
use serde::{Serialize, de::DeserializeOwned};

pub(super) const WORDS: &[&[u8]] = super::unit::WORDS;

/// No text of a fuzzer holds it by chance, and nothing takes it for a harmless word.
const SECRET: &str = "kX7-qvZ0wY3-pL9t";
const FLAG: &str = "--api-key";
const UNIT: &str = "/etc/systemd/system/a-b@c.service";

/// Lines that hold a secret wherever they stand in a unit file.
const LINES: &[&str] = &[
    "# SECRET",
    "; SECRET",
    "SetCredential=x:SECRET",
    "Environment=Q7=SECRET",
    "Environment=\"Q7=a SECRET b\" ENGINE_API_KEY=SECRET",
    "Environment=Q7_TOKEN='SECRET'",
    "ExecStartPre=/bin/echo SECRET",
    "X-Mine=SECRET",
    "no assignment SECRET",
    "Description=SECRET",
];

/// Commands with a secret in them.
const COMMANDS: &[&str] = &[
    "ExecStart=/opt/server -c 1 --api-key SECRET",
    "ExecStart=/opt/server -c 1 --api-key=SECRET -np 2",
    "ExecStart=/opt/server \\\n# SECRET\n  --api-key \\\n  \"SECRET\" \\\n  -np 2",
    "Environment=Q9=SECRET\nExecStart=/opt/server -c 1 --api-key ${Q9}",
    "Environment=\"Q9=-np 2 --api-key SECRET\"\nExecStart=/opt/server -c 1 $Q9",
    "ExecStart=/usr/bin/env Q9=SECRET /opt/server -c 1",
    "ExecStart=/bin/sh -c 'Q8=SECRET; export Q9=SECRET; exec /opt/server -c 1'",
    "ExecStart=/bin/sh -c 'Q9=SECRET; exec /opt/server -c 1 --api-key $Q9'",
    "ExecStart=/bin/sh -c \"curl -u me:SECRET http://x; exec /opt/server -c 1\"",
    "ExecStart=/opt/q9.sh",
];

const SCRIPT: &str = "#!/bin/sh\n# SECRET\nR9=SECRET\nexport R8=SECRET\nexec /opt/server --api-key $R9 \"$@\"\n";

/// Scrubs these texts, as they are and with secrets planted among them. No secret is kept, and what is kept asks for the
/// same.
pub fn scrub(bytes: &[u8]) {
    let (files, state, environ) = collected(bytes);
    let environ: Vec<(String, String)> = environ.into_iter().collect();
    let unit = held(files.clone(), state.clone());
    says_the_same(&unit, &environ);
    nothing_asked_secretly_stays(&unit, &environ);

    let choice = bytes.iter().fold(bytes.len(), |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let fill = |text: &str| text.replace("SECRET", SECRET);
    let mut planted = files;
    let line = fill(LINES[choice % LINES.len()]);
    let command = fill(COMMANDS[choice / 16 % COMMANDS.len()]);
    for (path, entry) in &mut planted.entries {
        let FileEntry::Text(text) = entry else { continue };
        // What begins in a file of any other name is unknown: a value may go on over lines.
        if path.ends_with(".service") || path.ends_with(".conf") {
            text.text = insert(&text.text, &line, choice / 256);
        } else {
            text.text = format!("# {SECRET}\nQ7={SECRET}\nexport Q6={SECRET}\n{}", text.text);
        }
    }
    let last = format!("[Service]\nExecStart=\n{command}\n");
    planted.entries.insert(format!("{UNIT}.d/zz.conf"), FileEntry::Text(FileText { text: last, changed_ms: None }));
    let script = Script { interpreter: "sh".to_owned(), text: Some(fill(SCRIPT)), ..Script::default() };
    planted.scripts.insert("/opt/q9.sh".to_owned(), script);
    let unit = held(planted, state);
    let (_, stored, _) = kept(&unit, &environ);
    assert!(!stored.contains(SECRET), "planted by {line:?} and {command:?}:\n{stored}");
}

/// The line as one of its own at some line's beginning, with nothing continued into it.
fn insert(text: &str, line: &str, choice: usize) -> String {
    let begins: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let at = begins[choice % begins.len()];
    format!("{}\n\n[Service]\n{line}\n{}", &text[..at], &text[at..])
}

fn held(files: UnitFiles, state: ManagerState) -> Unit {
    let unit = Unit { files, state };
    let written = unit.resolved().and_then(|resolved| as_written(&resolved, &unit.state));
    let mut state = written.unwrap_or(unit.state);
    // Others are not asked for.
    state.properties.retain(|name, _| PROPERTIES.contains(&name.as_str()));
    Unit { state, files: unit.files }
}

/// What is kept, as a unit again; the text that would be stored; what knows the secrets.
fn kept(unit: &Unit, environ: &[(String, String)]) -> (Unit, String, Redactor) {
    let names =
        SecretNames { flags: vec![FLAG.into()], env: vec!["ENGINE_API_KEY".into()], keys: vec!["api-key".into()] };
    let mut redactor = Redactor::new(names);
    scrub::learn(&mut redactor, unit);
    redactor.learn_environ(environ);
    let (files, state) = scrub::scrub(unit, &redactor, &["ENGINE_*".to_owned()], environ);
    // As the collector stores it: what is known to be secret is looked for once more.
    let (files, files_text): (UnitFiles, String) = stored(&redactor, &files);
    let (state, state_text): (ManagerState, String) = stored(&redactor, &state);
    (Unit { state, files }, files_text + &state_text, redactor)
}

fn stored<T: Serialize + DeserializeOwned>(redactor: &Redactor, kept: &T) -> (T, String) {
    let text = serde_json::to_vec(kept).expect("text");
    let text = String::from_utf8(redactor.values("unit.json", &text)).expect("text");
    (serde_json::from_str(&text).expect("what is stored can be read"), text)
}

fn layers(unit: &Unit) -> Option<[Layer; 2]> {
    unit.layers().map(|(written, loaded)| [written, loaded])
}

/// A value that is not kept, or that has a part taken out.
fn is_taken_out(word: &str) -> bool {
    word.contains(MARK) || word.contains("[not-kept") || is_not_kept(word)
}

/// Each word of the command is kept, or a mark stands for it, on the line where it was.
fn says_the_same(unit: &Unit, environ: &[(String, String)]) {
    let (kept, stored, _) = kept(unit, environ);
    let (Some(before), Some(after)) = (layers(unit), layers(&kept)) else { return };
    for (before, after) in before.iter().zip(&after) {
        // That not everything is known any more is said, and then nothing is concluded from what is missing.
        if !before.unknown.is_empty() || !after.unknown.is_empty() {
            assert!(!after.unknown.is_empty(), "{before:?}\n{after:?}\n{stored}");
            continue;
        }
        let plain = before.wrappers.is_empty();
        if plain {
            assert_eq!(before.argv.len(), after.argv.len(), "{before:?}\n{after:?}\n{stored}");
        }
        for ((one, place), (other, there)) in before.argv.iter().zip(&after.argv) {
            assert!(one == other || is_taken_out(other), "{one:?} became {other:?}\n{stored}");
            if plain {
                assert_eq!(place.to_string(), there.to_string(), "{one:?}\n{stored}");
            }
        }
        for (name, value, _) in before.environment.iter().filter(|(name, ..)| name.starts_with("ENGINE_")) {
            let now = after.environment.iter().find(|(known, ..)| known == name).map(|(_, value, _)| value);
            assert!(
                now.is_some_and(|now| now == value || is_taken_out(now)) || after.unkept.contains_key(name),
                "{name}={value:?} became {now:?}\n{stored}"
            );
        }
    }
}

/// What would come to the process as its key is nowhere in what is kept.
fn nothing_asked_secretly_stays(unit: &Unit, environ: &[(String, String)]) {
    let (_, stored, _) = kept(unit, environ);
    for layer in layers(unit).into_iter().flatten() {
        let words: Vec<&str> = layer.argv.iter().map(|(word, _)| word.as_str()).collect();
        let flags = words.windows(2).filter(|pair| pair[0] == FLAG).map(|pair| pair[1]);
        let keys =
            layer.environment.iter().filter(|(name, ..)| name == "ENGINE_API_KEY").map(|(_, value, _)| value.as_str());
        for secret in flags.chain(keys) {
            // Something that is a word of its own elsewhere cannot be looked for.
            if secret.contains("SECRET") && secret.len() > 8 {
                let printed = serde_json::to_string(secret).expect("text");
                assert!(!stored.contains(printed.trim_matches('"')), "{secret:?}:\n{stored}");
            }
        }
    }
}
