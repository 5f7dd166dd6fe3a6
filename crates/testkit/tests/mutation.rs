//! Evidence that was lost, cut, mixed up or made up never confirms what the whole evidence does not.
//!
//! Every test here takes the golden captures, spoils them in memory and judges what is left. What is drawn at random
//! is drawn from a fixed seed, so that a failure is the same failure again.

use ascertain_engines::data::{Data, Kind, Setting};
use ascertain_engines::{ENGINES, Reading};
use ascertain_model::{Asked, Capture, Evidence, Judged, Judgement, Rung, Value, Verdict, Voice, judge};
use ascertain_testkit::{Expected, captures, expected, golden, load};
use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// A golden capture and what is made of it as it is.
struct Recording {
    name: String,
    capture: Capture,
    judgement: Judgement,
    expected: Expected,
}

fn recordings() -> &'static [Recording] {
    static ALL: OnceLock<Vec<Recording>> = OnceLock::new();
    ALL.get_or_init(|| {
        golden("llamacpp")
            .expect("the recordings are there")
            .into_iter()
            .map(|(name, path)| {
                let capture = load(&path).expect("a readable recording");
                let (_, judgement) = judged(&capture);
                Recording { name, capture, judgement, expected: expected(&path).expect("a readable expectation") }
            })
            .collect()
    })
}

fn judged(capture: &Capture) -> (Reading, Judgement) {
    let reading = ENGINES[0].read(capture);
    let judgement = judge(&reading.case);
    (reading, judgement)
}

/// The same, but a panic is a line in the list of what went wrong.
fn survives(capture: &Capture, what: &str, wrong: &mut Vec<String>) -> Option<(Reading, Judgement)> {
    match catch_unwind(AssertUnwindSafe(|| judged(capture))) {
        Ok(judged) => Some(judged),
        Err(_) => {
            wrong.push(format!("{what}: panicked"));
            None
        }
    }
}

/// The engine's settings, as the engine's folder has them.
fn settings() -> &'static Data {
    static DATA: OnceLock<Data> = OnceLock::new();
    DATA.get_or_init(|| {
        let folder = captures().join("../crates/engines/src/llama_cpp");
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the engine's data");
        let (about, settings) = (text("about.toml"), text("settings.toml"));
        Data::read(&[("about.toml", &about), ("settings.toml", &settings)]).expect("the engine's data")
    })
}

/// Random numbers from a fixed seed (xorshift64*).
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let drawn = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16;
        if limit == 0 { 0 } else { (drawn % limit as u64) as usize }
    }
}

fn is_confirmed(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Confirmed { .. })
}

fn find<'a>(judgement: &'a Judgement, setting: &str) -> Option<&'a Judged> {
    judgement.claims.iter().find(|judged| judged.claim.setting == setting)
}

/// What is confirmed now and was not with the whole evidence.
///
/// Losing evidence could make a claim look better in one case only: the lost artifact was the single one that spoke
/// against it, and effective evidence for it remains. No recording is such a case, and none may become one unseen:
/// where the engine changes or drops what was asked, its effective witnesses show that themselves, and where an
/// artifact is what keeps a claim back (`slots` that say `speculative = false`), nothing else speaks for the claim.
fn newly_confirmed(recording: &Recording, after: &Judgement, what: &str, wrong: &mut Vec<String>) {
    for now in &after.claims {
        let before =
            find(&recording.judgement, &now.claim.setting).filter(|before| before.claim.asked == now.claim.asked);
        let name = &now.claim.setting;
        if is_confirmed(&now.verdict) && !before.is_some_and(|before| is_confirmed(&before.verdict)) {
            let before = before.map_or("not asked", |before| before.verdict.word());
            wrong.push(format!("{what}: {name} = {} was {before}, becomes {:?}", now.claim.wanted, now.verdict));
        }
        // Tokens that are drafted are drafted, also where it is no longer known who asked for it.
        let effect = find(&recording.judgement, name).and_then(|before| before.effect.as_ref());
        if now.effect.as_ref().is_some_and(is_confirmed) && !effect.is_some_and(is_confirmed) {
            wrong.push(format!("{what}: the effect of {name} was {:?}, becomes confirmed", effect.map(Verdict::word)));
        }
    }
}

fn without(capture: &Capture, gone: &BTreeSet<&str>) -> Capture {
    let mut less = capture.clone();
    less.artifacts.retain(|name, _| !gone.contains(name.as_str()));
    less.manifest.artifacts.retain(|artifact| !gone.contains(artifact.name.as_str()));
    less
}

fn report(mut wrong: Vec<String>) {
    wrong.dedup();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// How often the dice are thrown. `MUTATION_EFFORT=20 cargo test` looks harder.
fn effort(rounds: usize) -> usize {
    let factor = std::env::var("MUTATION_EFFORT").ok().and_then(|text| text.parse::<usize>().ok());
    rounds * factor.unwrap_or(1)
}

fn is_thorough() -> bool {
    effort(1) > 1
}

#[test]
fn lost_artifacts_confirm_nothing() {
    let mut wrong = Vec::new();
    for (index, recording) in recordings().iter().enumerate() {
        let mut dice = Dice::new(index as u64 + 1);
        let names: Vec<&str> = recording.capture.artifacts.keys().map(String::as_str).collect();
        let mut subsets: Vec<BTreeSet<&str>> = Vec::new();
        // Any one, those that speak about settings always.
        for name in &names {
            if is_thorough() || matches!(*name, "log.txt" | "props.json") || dice.below(8) == 0 {
                subsets.push(BTreeSet::from([*name]));
            }
        }
        // What says whether anything speculates.
        subsets.push(names.iter().copied().filter(|name| name.starts_with("slots_")).collect());
        // All but one and the command line.
        if is_thorough() {
            subsets.extend(
                names
                    .iter()
                    .map(|kept| names.iter().copied().filter(|name| name != kept && *name != "meta.json").collect()),
            );
        }
        for _ in 0..effort(1) {
            let share = 1 + dice.below(3);
            subsets.push(names.iter().copied().filter(|_| dice.below(4) < share).collect());
        }
        for gone in subsets.iter().filter(|gone| !gone.is_empty()) {
            let what = format!("{} without {}", recording.name, gone.iter().copied().collect::<Vec<_>>().join(","));
            if let Some((_, after)) = survives(&without(&recording.capture, gone), &what, &mut wrong) {
                newly_confirmed(recording, &after, &what, &mut wrong);
            }
        }
    }
    report(wrong);
}

/// The strings of the JSON array that begins at or after `from`: where each stands between its quotes, and its text
/// as it is written there. Enough for command lines, which have no nested values.
fn words(json: &[u8], from: usize) -> Vec<(Range<usize>, String)> {
    let mut list = Vec::new();
    let mut at = from;
    let mut open = None;
    while at < json.len() {
        match (json[at], open) {
            (b'"', None) => open = Some(at + 1),
            (b'"', Some(start)) => {
                list.push((start..at, String::from_utf8_lossy(&json[start..at]).into_owned()));
                open = None;
            }
            (b'\\', Some(_)) => at += 1,
            (b']', None) => break,
            _ => {}
        }
        at += 1;
    }
    list
}

/// Where the command line begins in an artifact that has it.
fn command_line(name: &str, json: &[u8]) -> Option<usize> {
    match name {
        "proc_cmdline.json" => Some(0),
        "meta.json" => {
            let key = b"\"argv\":";
            json.windows(key.len()).position(|window| window == key).map(|at| at + key.len())
        }
        _ => None,
    }
}

/// The words of the command line, without what started the engine for it (`nice`).
fn argv(capture: &Capture) -> Vec<String> {
    let Some(json) = capture.bytes("meta.json") else { return Vec::new() };
    let Some(from) = command_line("meta.json", json) else { return Vec::new() };
    let all: Vec<String> = words(json, from).into_iter().map(|(_, word)| word).collect();
    let first = all.iter().position(|word| word.ends_with("llama-server")).unwrap_or(0);
    all[first..].to_vec()
}

/// Puts another word in one place of the command line, in every artifact that shows it.
fn with_word(capture: &Capture, index: usize, text: &str) -> Capture {
    let mut other = capture.clone();
    for (name, bytes) in &mut other.artifacts {
        let Some(from) = command_line(name, bytes) else { continue };
        let all = words(bytes, from);
        let first = all.iter().position(|(_, word)| word.ends_with("llama-server")).unwrap_or(0);
        if let Some((range, _)) = all.get(first + index) {
            bytes.splice(range.clone(), text.bytes());
        }
    }
    other
}

/// Adds words to the end of the command line.
fn with_more_words(capture: &Capture, more: &[&str]) -> Capture {
    let mut other = capture.clone();
    for (name, bytes) in &mut other.artifacts {
        let Some(from) = command_line(name, bytes) else { continue };
        let Some((last, _)) = words(bytes, from).pop() else { continue };
        let text: String = more.iter().map(|word| format!(",\"{word}\"")).collect();
        bytes.splice(last.end + 1..last.end + 1, text.bytes());
    }
    other
}

/// Other values that the engine would take as well.
fn others(setting: &Setting, text: &str) -> Vec<String> {
    let choices = setting.choices.iter().filter(|choice| *choice != text).cloned();
    let mut list: Vec<String> = match setting.kind {
        Kind::Int => match text.parse::<i64>() {
            Ok(number) => vec![(number + 1).to_string(), if number == 0 { 2 } else { number * 2 }.to_string()],
            Err(_) => vec!["3".to_string()],
        },
        Kind::Float => match text.parse::<f64>() {
            Ok(number) => vec![(number + 1.0).to_string(), if number == 0.0 { 0.5 } else { number * 2.0 }.to_string()],
            Err(_) => vec!["0.5".to_string()],
        },
        Kind::Path => vec![match text.rsplit_once('/') {
            Some((folder, file)) => format!("{folder}/other-{file}"),
            None => format!("other-{text}"),
        }],
        Kind::Text if setting.name == "host" => vec!["127.0.0.2".to_string(), "0.0.0.0".to_string()],
        Kind::Text => vec![format!("{text}x")],
        Kind::List if setting.choices.is_empty() => vec![format!("{text},other"), "other".to_string()],
        Kind::List => setting
            .choices
            .iter()
            .filter(|choice| !text.contains(*choice))
            .map(|choice| format!("{text},{choice}"))
            .collect(),
        Kind::Enum | Kind::Switch | Kind::Bool => Vec::new(),
    };
    list.extend(choices);
    list.retain(|other| !setting.auto.contains(other));
    list
}

/// The members of a list, whose order does not matter.
fn members(text: &str) -> BTreeSet<&str> {
    text.split(',').collect()
}

#[test]
fn a_value_that_was_not_asked_for_is_not_confirmed() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for (index, recording) in recordings().iter().enumerate() {
        let mut dice = Dice::new(index as u64 + 1);
        let line = argv(&recording.capture);
        let mut changes: Vec<(usize, String, String)> = Vec::new();
        let mut at = 1;
        while at < line.len() {
            let flag = if line[at].starts_with("--") { line[at].replace('_', "-") } else { line[at].clone() };
            let Some((setting, positive)) = settings().flag(&flag) else {
                at += 1;
                continue;
            };
            let values = if positive { setting.values } else { 0 };
            match setting.kind {
                // The other form of a switch.
                Kind::Bool | Kind::Switch => {
                    let other = if positive { setting.negative.first() } else { setting.flags.first() };
                    changes.extend(other.map(|other| (at, setting.name.clone(), other.clone())));
                }
                // Of a secret only its presence is judged.
                _ if values == 1 && !setting.secret => {
                    if let Some(text) = line.get(at + 1) {
                        let mut others = others(setting, text);
                        while !is_thorough() && others.len() > 2 {
                            others.swap_remove(dice.below(others.len()));
                        }
                        changes.extend(others.into_iter().map(|other| (at + 1, setting.name.clone(), other)));
                    }
                }
                _ => {}
            }
            at += 1 + values;
        }
        for (at, setting, other) in changes {
            // Where everybody runs the same, one in four shows as much.
            if !is_thorough() && matches!(setting.as_str(), "host" | "port" | "model" | "metrics") && dice.below(6) > 0
            {
                continue;
            }
            let what = format!("{} with {setting} = {other}", recording.name);
            let Some((_, after)) = survives(&with_word(&recording.capture, at, &other), &what, &mut wrong) else {
                continue;
            };
            let Some(now) = find(&after, &setting) else { continue };
            // A later word of the line or another source may still win.
            if find(&recording.judgement, &setting).is_some_and(|before| before.claim.asked == now.claim.asked) {
                continue;
            }
            // What the engine made of the request is no longer another value once it is asked for.
            let golden = recording.expected.claims.get(&setting).and_then(|golden| golden.effective.as_deref());
            if golden.is_some_and(|in_force| members(in_force) == members(&other)) {
                continue;
            }
            tried += 1;
            if is_confirmed(&now.verdict) {
                wrong.push(format!("{what}: {:?}, wanted {}", now.verdict, now.claim.wanted));
            }
        }
    }
    assert!(tried > 150, "only {tried} changes were tried");
    report(wrong);
}

/// What stands between two pieces of text, the first time.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

/// The port a log says it listens on, and the model it says it loads.
fn log_is_of(capture: &Capture) -> (Option<String>, Option<String>) {
    let text = String::from_utf8_lossy(capture.bytes("log.txt").unwrap_or_default()).into_owned();
    let text = text + "\n";
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let port = between(&text, "listening on http://", "\n")
        .and_then(|rest| rest.rsplit_once(':'))
        .map(|(_, port)| digits(port));
    (port, between(&text, "loading model '", "'").map(str::to_string))
}

#[test]
fn the_log_of_another_server_confirms_nothing() {
    let mut wrong = Vec::new();
    let all = recordings();
    for (index, recording) in all.iter().enumerate() {
        let mut dice = Dice::new(index as u64 + 1);
        let (port, model) = log_is_of(&recording.capture);
        let donors: Vec<usize> =
            if is_thorough() { (0..all.len()).collect() } else { (0..3).map(|_| dice.below(all.len())).collect() };
        for donor in donors.into_iter().map(|donor| &all[donor]) {
            let (other_port, other_model) = log_is_of(&donor.capture);
            let differs = |a: &Option<String>, b: &Option<String>| a.is_some() && b.is_some() && a != b;
            if donor.name == recording.name || !differs(&port, &other_port) && !differs(&model, &other_model) {
                continue;
            }
            // The server that answers names its model, unless it wants a key first.
            let props = String::from_utf8_lossy(recording.capture.bytes("props.json").unwrap_or_default());
            let serves = props.contains("\"model_path\":");
            let told_apart = differs(&port, &other_port) || serves && differs(&model, &other_model);
            let mut capture = recording.capture.clone();
            capture
                .artifacts
                .insert("log.txt".to_string(), donor.capture.bytes("log.txt").unwrap_or_default().to_vec());
            let what = format!("{} with the log of {}", recording.name, donor.name);
            let Some((reading, after)) = survives(&capture, &what, &mut wrong) else { continue };
            for now in &after.claims {
                let rests_on_log = |one: &&Evidence| {
                    one.locus.artifact == "log.txt" && one.start == reading.case.start && one.voice == Voice::Effective
                };
                if told_apart && let Some(one) = now.evidence.iter().chain(&now.effect_evidence).find(rests_on_log) {
                    wrong.push(format!("{what}: {} is judged from {:?}", now.claim.setting, one.excerpt));
                }
                if told_apart && matches!(now.verdict, Verdict::Confirmed { rung: Rung::Acknowledged }) {
                    wrong.push(format!("{what}: {} {:?}", now.claim.setting, now.verdict));
                }
            }
            newly_confirmed(recording, &after, &what, &mut wrong);
        }
    }
    report(wrong);
}

#[test]
fn a_server_on_the_default_port_did_not_write_that_it_listens_elsewhere() {
    let mut wrong = Vec::new();
    for recording in recordings() {
        let line = argv(&recording.capture);
        let (Some(at), (Some(_), _)) = (line.iter().position(|word| word == "--port"), log_is_of(&recording.capture))
        else {
            continue;
        };
        // The two words that asked for a port say something else, twice.
        let capture = with_word(&with_word(&recording.capture, at, "--metrics"), at + 1, "--metrics");
        let Some((_, after)) = survives(&capture, &recording.name, &mut wrong) else { continue };
        for now in &after.claims {
            if matches!(now.verdict, Verdict::Confirmed { rung: Rung::Acknowledged }) {
                wrong.push(format!("{}: {} {:?}", recording.name, now.claim.setting, now.verdict));
            }
        }
    }
    report(wrong);
}

#[test]
fn an_address_in_brackets_is_read_whole() {
    let recording = recordings().iter().find(|one| one.name == "mtp").expect("a recording that speculates");
    let mut capture = recording.capture.clone();
    let log = String::from_utf8_lossy(capture.bytes("log.txt").unwrap_or_default()).replace("127.0.0.1", "[::1]");
    capture.artifacts.insert("log.txt".to_string(), log.into_bytes());
    let line = argv(&capture);
    let at = line.iter().position(|word| word == "127.0.0.1").expect("a host on the command line");
    let (_, after) = judged(&with_word(&capture, at, "::1"));
    for setting in ["host", "port"] {
        let verdict = find(&after, setting).map(|judged| &judged.verdict);
        assert_eq!(verdict, Some(&Verdict::Confirmed { rung: Rung::Acknowledged }), "{setting}");
    }
}

/// Every number that stands behind a key in JSON text.
fn numbers(json: &str, key: &str) -> Vec<f64> {
    let key = format!("\"{key}\":");
    json.match_indices(&key)
        .filter_map(|(at, _)| {
            let rest = json[at + key.len()..].trim_start();
            let end = rest
                .find(|letter: char| !matches!(letter, '0'..='9' | '.' | '-' | '+' | 'e' | 'E'))
                .unwrap_or(rest.len());
            rest[..end].parse().ok()
        })
        .collect()
}

#[test]
fn the_endpoints_of_another_server_confirm_nothing_that_they_deny() {
    let mut wrong = Vec::new();
    let running: Vec<&Recording> =
        recordings().iter().filter(|one| one.capture.bytes("props.json").is_some()).collect();
    let groups: [&[&str]; 4] = [
        &["props.json"],
        &["slots_before.json", "slots_after.json"],
        &["slots_after.json"],
        &["props.json", "slots_before.json", "slots_after.json"],
    ];
    for (index, recording) in running.iter().enumerate() {
        let mut dice = Dice::new(index as u64 + 1);
        let donors: Vec<usize> =
            if is_thorough() { (0..running.len()).collect() } else { vec![dice.below(running.len())] };
        for donor in donors.into_iter().map(|donor| running[donor]).filter(|donor| donor.name != recording.name) {
            for group in groups {
                if !is_thorough() && dice.below(2) == 0 {
                    continue;
                }
                let mut capture = recording.capture.clone();
                for name in group {
                    match donor.capture.bytes(name) {
                        Some(bytes) => capture.artifacts.insert((*name).to_string(), bytes.to_vec()),
                        None => capture.artifacts.remove(*name),
                    };
                }
                let what = format!("{} with {} of {}", recording.name, group.join(","), donor.name);
                let Some((_, after)) = survives(&capture, &what, &mut wrong) else { continue };
                let text = |name: &str| String::from_utf8_lossy(capture.bytes(name).unwrap_or_default()).into_owned();
                let (props, slots) = (text("props.json"), text("slots_before.json") + &text("slots_after.json"));
                for now in after.claims.iter().filter(|now| is_confirmed(&now.verdict)) {
                    let name = now.claim.setting.as_str();
                    let deny = |say: String| format!("{what}: {name} = {} confirmed, but {say}", now.claim.wanted);
                    let wanted = match &now.claim.asked {
                        Asked::Equals(value) => value,
                        _ => continue,
                    };
                    let said: Vec<f64> = match name {
                        "ctx_size" => [numbers(&props, "n_ctx"), numbers(&slots, "n_ctx")].concat(),
                        "parallel" => numbers(&props, "total_slots"),
                        "temp" => numbers(&props, "temperature"),
                        "top_k" | "top_p" | "min_p" | "seed" | "repeat_penalty" | "presence_penalty"
                        | "frequency_penalty" => numbers(&props, name),
                        _ => Vec::new(),
                    };
                    if let Some(number) = wanted.number()
                        && let Some(other) = said.iter().find(|said| **said as f32 != number as f32)
                    {
                        wrong.push(deny(format!("the endpoints say {other}")));
                    }
                    let speculates = matches!(wanted, Value::Set(types) if !types.is_empty());
                    if name == "spec_type"
                        && speculates == slots.contains("\"speculative\":false")
                        && slots.contains("\"speculative\":")
                    {
                        wrong.push(deny("the slots say the opposite".to_string()));
                    }
                    if name == "model"
                        && !props.contains(&format!("\"model_path\":\"{}\"", now.claim.wanted))
                        && props.contains("\"model_path\":")
                    {
                        wrong.push(deny("another is served".to_string()));
                    }
                    for (setting, key) in
                        [("metrics", "endpoint_metrics"), ("props", "endpoint_props"), ("slots", "endpoint_slots")]
                    {
                        if name == setting && props.contains(&format!("\"{key}\":{}", !wanted.same(&Value::Bool(true))))
                        {
                            wrong.push(deny(format!("props say that it is {}", !wanted.same(&Value::Bool(true)))));
                        }
                    }
                }
            }
        }
    }
    report(wrong);
}

fn spoil(bytes: &mut Vec<u8>, dice: &mut Dice) -> String {
    let at = dice.below(bytes.len());
    match dice.below(6) {
        0 => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
        1 => {
            bytes.drain(..at);
            format!("its first {at} bytes gone")
        }
        2 => {
            let count = 1 + dice.below(5);
            for _ in 0..count.min(bytes.len()) {
                let at = dice.below(bytes.len());
                bytes[at] ^= 1 << dice.below(8);
            }
            format!("{count} bits flipped")
        }
        3 => {
            let escape: &[u8] = [
                b"\x1b[2J\x1b[1;1H".as_slice(),
                b"\x1b]0;pwned\x07",
                b"\x9b31m",
                b"\r\x08\x08",
                b"\0",
                b"\xe2\x80\xae",
                b"\xff\xfe",
            ][dice.below(7)];
            bytes.splice(at..at, escape.iter().copied());
            format!("{escape:?} put in at {at}")
        }
        4 => {
            let length = dice.below(bytes.len().min(2000));
            let end = (at + length).min(bytes.len());
            bytes.drain(at..end);
            format!("{at}..{end} gone")
        }
        _ => {
            bytes.clear();
            "empty".to_string()
        }
    }
}

#[test]
fn spoilt_artifacts_confirm_nothing() {
    let mut wrong = Vec::new();
    for (index, recording) in recordings().iter().enumerate() {
        let mut dice = Dice::new(index as u64 + 1);
        let names: Vec<&String> = recording.capture.artifacts.keys().collect();
        for _ in 0..effort(3) {
            let mut capture = recording.capture.clone();
            let mut what = recording.name.clone();
            for _ in 0..1 + dice.below(2) {
                let name = names[dice.below(names.len())];
                if let Some(bytes) = capture.artifacts.get_mut(name) {
                    let how = spoil(bytes, &mut dice);
                    what = format!("{what}, {name} {how}");
                }
            }
            if let Some((_, after)) = survives(&capture, &what, &mut wrong) {
                newly_confirmed(recording, &after, &what, &mut wrong);
            }
        }
    }
    report(wrong);
}

/// A server of which nothing was kept but its log, and the command line as its recorder gave it. The port is the one
/// that the log states, because the system chose it and the log may be of a second run.
fn log_alone(recording: &Recording, log: &[u8]) -> Capture {
    let mut capture = recording.capture.clone();
    capture.artifacts.retain(|name, _| name == "meta.json");
    capture.manifest.artifacts.retain(|artifact| artifact.name == "meta.json");
    with_log(&capture, log)
}

fn with_log(capture: &Capture, log: &[u8]) -> Capture {
    let mut capture = capture.clone();
    capture.artifacts.insert("log.txt".to_string(), log.to_vec());
    let line = argv(&capture);
    match (line.iter().position(|word| word == "--port"), log_is_of(&capture)) {
        (Some(at), (Some(port), _)) => with_word(&capture, at + 1, &port),
        _ => capture,
    }
}

/// Everything that is confirmed although the golden verdict says that it is not so, or with another value.
fn not_as_expected(recording: &Recording, after: &Judgement, what: &str, wrong: &mut Vec<String>) {
    for now in after.claims.iter().filter(|now| is_confirmed(&now.verdict)) {
        let name = &now.claim.setting;
        let Some(golden) = recording.expected.claims.get(name).filter(|golden| golden.wanted == now.claim.wanted)
        else {
            if !matches!(name.as_str(), "verbosity" | "port") {
                wrong.push(format!("{what}: {name} = {} was never asked", now.claim.wanted));
            }
            continue;
        };
        let in_force = now.effective.as_ref().map(ToString::to_string).unwrap_or_default();
        if !matches!(golden.verdict.as_str(), "confirmed" | "unproven") {
            wrong.push(format!(
                "{what}: {name} = {} is {} because {}, becomes {:?}",
                golden.wanted, golden.verdict, golden.why, now.verdict
            ));
        } else if golden.effective.as_ref().is_some_and(|effective| members(effective) != members(&in_force)) {
            wrong.push(format!("{what}: {name}: {in_force} in force instead of {:?}", golden.effective));
        }
    }
}

#[test]
fn a_verbose_log_confirms_more_and_nothing_that_is_not_so() {
    let mut wrong = Vec::new();
    let mut more = 0;
    for recording in recordings() {
        // A second run of the same command line with `-lv 4`.
        let Ok(verbose) = std::fs::read(captures().join("llamacpp").join(&recording.name).join("log_lv4.txt")) else {
            continue;
        };
        let what = format!("{} at level 4", recording.name);
        let asked = ["-lv", "4"];
        let alone = with_more_words(&log_alone(recording, &verbose), &asked);
        let beside = with_more_words(&with_log(&recording.capture, &verbose), &asked);
        let Some((_, alone)) = survives(&alone, &what, &mut wrong) else { continue };
        not_as_expected(recording, &alone, &format!("{what}, the log alone"), &mut wrong);
        if let Some((_, beside)) = survives(&beside, &what, &mut wrong) {
            not_as_expected(
                recording,
                &beside,
                &format!("{what}, with all that was kept of the first run"),
                &mut wrong,
            );
        }
        let plain = log_alone(recording, recording.capture.bytes("log.txt").unwrap_or_default());
        let Some((_, plain)) = survives(&plain, &what, &mut wrong) else { continue };
        not_as_expected(recording, &plain, &format!("{}, its log alone", recording.name), &mut wrong);
        for now in alone.claims.iter().filter(|now| is_confirmed(&now.verdict) && now.claim.setting != "verbosity") {
            let before = find(&plain, &now.claim.setting).is_some_and(|before| is_confirmed(&before.verdict));
            more += usize::from(!before);
        }
    }
    report(wrong);
    assert!(more > 20, "a verbose log confirms only {more} claims more");
}
