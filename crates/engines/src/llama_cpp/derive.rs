//! What needs to know several things at once: speculation, the context length, the key, and a few settings whose
//! truth lies in how something looks rather than in what it says.
//!
//! Each function adds evidence, interventions (also for what the engine does in silence) or the knowledge that a
//! setting cannot apply. The experiments behind each rule are in `docs/engines/llama-cpp.md`.

use super::intent::From;
use super::read::{Exchange, Reader};
use ascertain_model::{
    Act, Asked, Evidence, Finding, Intervention, Locus, Rung, Seen, Severity, StartId, Subject, Tally, Unasked, Value,
    Voice,
};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::ops::Range;

/// Types that are left out without a line when they lack what they need, while the others run.
const SILENTLY_SKIPPED: [&str; 3] = ["draft-eagle3", "draft-dflash", "draft-dspark"];
/// Settings whose effect is speculation.
pub(super) const SPECULATION: [&str; 3] = ["spec_type", "spec_default", "spec_draft_model"];
/// Stands for the type that the engine infers from a draft file.
const INFERRED: &str = "draft-*";
/// What `--spec-default` adds.
const PRESET: &str = "ngram-mod";

/// Adds everything.
pub(super) fn all(reader: &mut Reader<'_>) {
    speculation(reader);
    context(reader);
    cache_is_unified(reader);
    batches(reader);
    threads(reader);
    model(reader);
    api_key(reader);
    cross_origin(reader);
    log_style(reader);
    memory_lock(reader);
    chat_template(reader);
    overrides(reader);
    listening(reader);
    prompt_cache(reader);
    context_shift(reader);
    traps(reader);
    third_source(reader);
    unasked_sampling(reader);
}

struct Statement<'a> {
    setting: &'a str,
    subject: Subject,
    seen: Seen,
    rung: Rung,
    voice: Voice,
    witness: &'a str,
    start: Option<StartId>,
    artifact: &'a str,
    range: Range<usize>,
    label: String,
    excerpt: Option<String>,
    note: Option<String>,
}

impl<'a> Statement<'a> {
    fn new(
        setting: &'a str,
        value: Value,
        rung: Rung,
        witness: &'a str,
        artifact: &'a str,
        range: Range<usize>,
    ) -> Self {
        Statement {
            setting,
            subject: Subject::Value,
            seen: Seen::Value(value),
            rung,
            voice: Voice::Effective,
            witness,
            start: None,
            artifact,
            range,
            label: String::new(),
            excerpt: None,
            note: None,
        }
    }

    fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    fn excerpt(mut self, excerpt: impl Into<String>) -> Self {
        self.excerpt = Some(excerpt.into());
        self
    }

    fn echo(mut self) -> Self {
        self.voice = Voice::Echo;
        self
    }

    fn effect(mut self, seen: Seen) -> Self {
        self.subject = Subject::Effect;
        self.seen = seen;
        self
    }

    fn of(mut self, start: StartId) -> Self {
        self.start = Some(start);
        self
    }
}

impl Reader<'_> {
    fn state(&mut self, statement: Statement<'_>) {
        let excerpt = statement.excerpt.unwrap_or_else(|| self.excerpt(statement.artifact, &statement.range));
        self.evidence.push(Evidence {
            setting: statement.setting.to_string(),
            subject: statement.subject,
            seen: statement.seen,
            rung: statement.rung,
            voice: statement.voice,
            witness: statement.witness.to_string(),
            start: statement.start.unwrap_or_else(|| self.facts.start.clone()),
            locus: Locus {
                artifact: statement.artifact.to_string(),
                start: statement.range.start,
                end: statement.range.end,
                label: statement.label,
            },
            excerpt,
            note: statement.note,
        });
    }

    /// Something the engine is known to do in silence.
    fn silently(&mut self, setting: &str, act: Act, by: impl Into<String>, remedy: &str) {
        self.interventions.push(Intervention {
            setting: setting.to_string(),
            act,
            by: by.into(),
            source: None,
            remedy: Some(remedy.to_string()),
            start: self.facts.start.clone(),
            locus: None,
            excerpt: String::new(),
        });
    }

    fn first_line(&self, words: &str) -> Option<(Range<usize>, String, String)> {
        let log = self.log.as_ref()?;
        let line = log.lines.iter().find(|line| line.text.contains(words))?;
        Some((line.range.clone(), format!("line {}", line.number), line.text.to_string()))
    }

    fn asked_number(&self, setting: &str) -> Option<i64> {
        match self.asked_value(setting) {
            Some(Value::Int(number)) => Some(number),
            _ => None,
        }
    }

    fn is_running(&self) -> bool {
        self.facts.running
    }
}

/// Which types of speculation were asked for, over all sources: they add up, and `none` takes nothing away.
fn asked_types(reader: &Reader<'_>) -> BTreeSet<String> {
    let mut types = BTreeSet::new();
    for ask in &reader.intent.asks {
        match ask.name.as_str() {
            "spec_type" => {
                types.extend(
                    ask.text
                        .split(',')
                        .map(|one| one.trim().to_string())
                        .filter(|one| !one.is_empty() && one != "none"),
                );
            }
            // In a configuration file naming it is enough.
            "spec_default" if ask.from != From::Env || matches!(ask.text.as_str(), "1" | "true" | "on" | "enabled") => {
                types.insert(PRESET.to_string());
            }
            _ => {}
        }
    }
    types
}

fn is_draft(name: &str) -> bool {
    name.starts_with("draft-")
}

fn speculation(reader: &mut Reader<'_>) {
    if !reader.is_running() {
        return;
    }
    let asked = asked_types(reader);
    let draft_file = reader.claim("spec_draft_model").is_some();

    // Whether anything speculates, slot by slot.
    let mut slots: Vec<(String, Range<usize>, String, bool)> = Vec::new();
    for answer in &reader.slots {
        for (index, slot) in answer.value.as_array().into_iter().flatten().enumerate().take(4096) {
            if let Some(on) = slot.get("speculative").and_then(Json::as_bool) {
                let pointer = format!("/{index}/speculative");
                let range = crate::locate::locate(answer.bytes, &pointer).unwrap_or(0..0);
                slots.push((answer.artifact.clone(), range, pointer, on));
            }
        }
    }
    // What was started, where the log is verbose enough to say it.
    let started = started(reader);
    let drafted: Vec<Exchange> =
        reader.exchanges.iter().filter(|exchange| exchange.drafted.unwrap_or(0) > 0).cloned().collect();
    let counters = reader.draft_counters();
    let tokens_drafted = !drafted.is_empty() || counters.as_ref().is_some_and(|(_, tally, _, _)| tally.tried > 0);

    // Without a type the engine takes one from the draft file, and says nowhere which.
    let inferred = if asked.is_empty() && draft_file { BTreeSet::from([INFERRED.to_string()]) } else { asked.clone() };
    // "On" names no type. It speaks for the types asked for only if none of them can be left out in silence.
    let ambiguous = inferred.len() > 1 && inferred.iter().any(|one| SILENTLY_SKIPPED.contains(&one.as_str()));
    // "On" is read together with what was asked, so all that was asked has to be known: the answers repeat it, and
    // where no answer does, command line and environment have both to be there.
    let echoes = echoed_types(reader);
    let known = if echoes.is_empty() {
        !reader.facts.argv.is_empty() && environment_is_known(reader)
    } else {
        echoes.iter().all(|echo| *echo == inferred || asked.is_empty() && echo.is_empty())
    };
    let on_types = (!inferred.is_empty() && !ambiguous && known).then(|| inferred.clone());

    for (artifact, range, pointer, on) in &slots {
        let excerpt = format!("speculative = {on}");
        match (on, &on_types) {
            (true, Some(types)) => {
                let note = if types.len() == 1 {
                    format!("something speculates, and {} is the only type asked for", show(types))
                } else {
                    "something speculates, and the types asked for start together or not at all".to_string()
                };
                type_statement(reader, types, Rung::Reported, "slots", artifact, range, pointer, &excerpt, &note);
            }
            (true, None) => {
                let note = "something speculates; which of the types asked for, it does not say";
                reader.state(
                    Statement::new("spec_type", Value::text("on"), Rung::Reported, "slots", artifact, range.clone())
                        .label(pointer.clone())
                        .excerpt(excerpt)
                        .note(note)
                        .echo(),
                );
            }
            (false, _) => {
                let note = "nothing speculates in this slot";
                type_statement(
                    reader,
                    &BTreeSet::new(),
                    Rung::Reported,
                    "slots",
                    artifact,
                    range,
                    pointer,
                    &excerpt,
                    note,
                );
            }
        }
    }
    if let Some((types, range, label)) = &started {
        let note = "every type whose start was announced, and the announcement that they are ready";
        let start = reader.log_start();
        let excerpt = reader.excerpt(reader.log_name, range);
        for setting in ["spec_type", "spec_default"] {
            let value = if setting == "spec_type" {
                Value::set(types.iter().cloned())
            } else {
                Value::Bool(types.contains(PRESET))
            };
            reader.state(
                Statement::new(setting, value, Rung::Acknowledged, "log", reader.log_name, range.clone())
                    .label(label.clone())
                    .excerpt(excerpt.clone())
                    .note(note)
                    .of(start.clone()),
            );
        }
    }
    if let Some((range, label, _)) = reader.first_line("creating MTP draft context against the target model") {
        let start = reader.log_start();
        reader.state(
            Statement::new("spec_type", Value::set(["draft-mtp"]), Rung::Acknowledged, "log", reader.log_name, range)
                .label(label)
                .note("printed before the start that can still fail")
                .echo()
                .of(start),
        );
    }

    let off = !slots.is_empty() && slots.iter().all(|(_, _, _, on)| !on);
    let on = slots.iter().any(|(_, _, _, on)| *on)
        || started.as_ref().is_some_and(|(types, _, _)| !types.is_empty()) && reader.foreign_log.is_none();
    let running: Option<BTreeSet<String>> = if off && !tokens_drafted {
        Some(BTreeSet::new())
    } else if on || tokens_drafted {
        match &started {
            Some((types, _, _)) if reader.foreign_log.is_none() => Some(types.clone()),
            _ => on_types.clone(),
        }
    } else {
        None
    };

    // Drafted tokens prove the type only where a single one was asked for.
    if let (Some(types), true) = (&on_types, inferred.len() == 1) {
        let note = format!("tokens were drafted, and {} is the only type asked for", show(types));
        for exchange in &drafted {
            type_statement(
                reader,
                types,
                Rung::Exercised,
                "traffic",
                &exchange.artifact,
                &exchange.range,
                &exchange.label,
                &exchange.excerpt,
                &note,
            );
        }
        if let Some((artifact, tally, range, excerpt)) = counters.as_ref().filter(|(_, tally, _, _)| tally.tried > 0) {
            let _ = tally;
            type_statement(reader, types, Rung::Exercised, "metrics", artifact, range, "", excerpt, &note);
        }
    }

    draft_model(reader, running.as_ref(), &asked, off);
    tuning(reader, running.as_ref());
    positions(reader, running.as_ref(), tokens_drafted);
    effects(reader, running.as_ref(), &slots, &drafted, counters.as_ref());

    if asked.is_empty() && (on || tokens_drafted) && reader.claim("spec_type").is_none() {
        let effective = running
            .clone()
            .filter(|types| !types.is_empty() && !types.contains(INFERRED))
            .map_or_else(|| Value::text("on"), Value::set);
        let why = draft_file.then(|| "inferred from the draft model".to_string());
        if let Some((artifact, range, pointer, _)) = slots.iter().find(|(_, _, _, on)| *on).cloned() {
            let excerpt = reader.excerpt(&artifact, &range);
            reader.unasked.push(Unasked {
                setting: "spec_type".to_string(),
                effective,
                default: "none".to_string(),
                why,
                witness: "slots".to_string(),
                locus: Locus { artifact, start: range.start, end: range.end, label: pointer },
                excerpt,
            });
        }
    }
    let carries = reader.first_line(".nextn.").filter(|(_, _, text)| text.contains("unused tensor"));
    if let (Some((range, label, _)), false, true) = (carries, on, !asked.contains("draft-mtp")) {
        let locus = Locus { artifact: reader.log_name.to_string(), start: range.start, end: range.end, label };
        let excerpt = reader.excerpt(reader.log_name, &range);
        reader.findings.push(Finding {
            kind: "unused_capability",
            severity: Severity::Info,
            text:
                "the model has layers for multi-token prediction and nothing asks for them: --spec-type draft-mtp would"
                    .to_string(),
            evidence: vec![(locus, excerpt)],
        });
    }
    let liar = reader
        .props
        .as_ref()
        .and_then(|props| props.value.pointer("/default_generation_settings/params/speculative.types"))
        .and_then(Json::as_str)
        .is_some_and(|types| types == "none");
    if liar && (on || tokens_drafted) {
        reader.findings.push(Finding {
            kind: "known_liar",
            severity: Severity::Info,
            text: "/props says speculative.types = none: this field never changes, speculation is on".to_string(),
            evidence: Vec::new(),
        });
    }
}

/// Which types the answers repeat as asked for. That proves nothing about what runs, but an answer that repeats other
/// types than those known here shows that another source asked too.
fn echoed_types(reader: &Reader<'_>) -> Vec<BTreeSet<String>> {
    let types = |text: &str| {
        text.split(',').map(str::trim).filter(|one| !one.is_empty() && *one != "none").map(str::to_string).collect()
    };
    let answers = ["completion.json", "chat.json"]
        .iter()
        .filter_map(|name| super::read::answer(reader.capture, name))
        .filter(|answer| answer.status == 200);
    let mut echoes: Vec<BTreeSet<String>> = answers
        .filter_map(|answer| {
            answer.value.pointer("/generation_settings/speculative.types").and_then(Json::as_str).map(types)
        })
        .collect();
    for answer in &reader.slots {
        let slots = answer.value.as_array().into_iter().flatten().take(4096);
        echoes.extend(
            slots.filter_map(|slot| slot.pointer("/params/speculative.types").and_then(Json::as_str).map(types)),
        );
    }
    echoes
}

/// Whether a witness for the environment spoke. Without one, a variable may have asked for more.
fn environment_is_known(reader: &Reader<'_>) -> bool {
    reader.capture.artifacts.keys().any(|name| name.starts_with("proc_environ") && name.ends_with(".json"))
        || super::read::answer(reader.capture, "meta.json")
            .is_some_and(|meta| meta.value.get("env").is_some_and(Json::is_object))
}

/// The types that the log says were started: those announced, if the announcement that they are ready follows.
fn started(reader: &Reader<'_>) -> Option<(BTreeSet<String>, Range<usize>, String)> {
    let log = reader.log.as_ref()?;
    let mut types = BTreeSet::new();
    for line in &log.lines {
        if let Some((_, rest)) = line.text.split_once("adding speculative implementation '") {
            types.insert(rest.split('\'').next().unwrap_or(rest).to_string());
        }
        if line.text.contains("speculative decoding context initialized") {
            return Some((types, line.range.clone(), format!("line {}", line.number)));
        }
    }
    None
}

fn show(types: &BTreeSet<String>) -> String {
    types.iter().cloned().collect::<Vec<_>>().join(",")
}

#[allow(clippy::too_many_arguments, reason = "one statement about two settings, spelled out once")]
fn type_statement(
    reader: &mut Reader<'_>,
    types: &BTreeSet<String>,
    rung: Rung,
    witness: &str,
    artifact: &str,
    range: &Range<usize>,
    label: &str,
    excerpt: &str,
    note: &str,
) {
    for setting in ["spec_type", "spec_default"] {
        if reader.claim(setting).is_none() {
            continue;
        }
        let value = if setting == "spec_type" {
            Value::set(types.iter().cloned())
        } else {
            Value::Bool(types.contains(PRESET))
        };
        reader.state(
            Statement::new(setting, value, rung, witness, artifact, range.clone())
                .label(label)
                .excerpt(excerpt)
                .note(note),
        );
    }
}

/// The draft model: read, mapped and used are three things.
fn draft_model(reader: &mut Reader<'_>, running: Option<&BTreeSet<String>>, asked: &BTreeSet<String>, off: bool) {
    let Some(claim) = reader.claim("spec_draft_model") else { return };
    let wanted = claim.wanted.clone();
    let used = running.is_some_and(|types| types.iter().any(|one| is_draft(one)));
    let start = reader.log_start();

    if let Some((range, label, text)) = reader.first_line("loading draft model '") {
        let named = text
            .split("loading draft model '")
            .nth(1)
            .and_then(|rest| rest.split('\'').next())
            .unwrap_or("")
            .to_string();
        let statement =
            Statement::new("spec_draft_model", Value::text(named), Rung::Acknowledged, "log", reader.log_name, range)
                .label(label)
                .of(start);
        reader.state(if used {
            statement.note("printed when the file is opened, and a type that needs it runs")
        } else {
            statement.echo().note("printed before the file is opened, also when nothing will draft")
        });
    }
    let same_file = reader.asked_value("model").is_some_and(|model| model.same(&Value::text(wanted.clone())));
    if let (Some(bytes), true, false) = (reader.capture.bytes("maps_files.txt"), used, same_file) {
        let mut at = 0;
        let mut mapped = None;
        for line in bytes.split(|byte| *byte == b'\n') {
            if line == wanted.as_bytes() {
                mapped = Some(at..at + line.len());
            }
            at += line.len() + 1;
        }
        if let Some(range) = mapped {
            reader.state(
                Statement::new(
                    "spec_draft_model",
                    Value::text(wanted.clone()),
                    Rung::Exercised,
                    "process",
                    "maps_files.txt",
                    range,
                )
                .note("the process has the file mapped, and a type that needs it runs"),
            );
        }
    }

    let explained = reader.interventions.iter().any(|act| act.setting == "spec_draft_model" && act.act == Act::Fails);
    if off && !explained {
        if asked.is_empty() {
            reader.silently(
                "spec_draft_model",
                Act::Fails,
                "the draft model is loaded, then dropped: no --spec-type asks for speculation",
                "add --spec-type draft-simple (or the type of the draft model) and restart",
            );
        } else {
            reader.silently(
                "spec_draft_model",
                Act::Fails,
                "speculation did not start, so the draft model serves nothing",
                "see spec_type",
            );
        }
    } else if running.is_some_and(|types| !types.is_empty() && !types.iter().any(|one| is_draft(one))) {
        let types = running.map(show).unwrap_or_default();
        reader.silently(
            "spec_draft_model",
            Act::Ignores,
            format!("the draft model is loaded and never used: only {types} runs"),
            "add the draft-* type of the draft model to --spec-type, or remove the draft model",
        );
    }
}

/// Which types a tuning setting speaks to.
fn tunes(setting: &str) -> Option<&'static str> {
    const PREFIXES: [(&str, &str); 6] = [
        ("spec_ngram_mod_", "ngram-mod"),
        ("spec_ngram_simple_", "ngram-simple"),
        ("spec_ngram_map_k4v_", "ngram-map-k4v"),
        ("spec_ngram_map_k_", "ngram-map-k"),
        ("lookup_cache_", "ngram-cache"),
        ("spec_draft_", "draft-"),
    ];
    if SPECULATION.contains(&setting) || setting == "spec_draft_hf" {
        return None;
    }
    PREFIXES.iter().find(|(prefix, _)| setting.starts_with(prefix)).map(|(_, of)| *of)
}

fn tuning(reader: &mut Reader<'_>, running: Option<&BTreeSet<String>>) {
    let Some(types) = running else { return };
    let names: Vec<String> = reader.intent.claims.iter().map(|claim| claim.setting.clone()).collect();
    for name in names {
        let Some(of) = tunes(&name) else { continue };
        let applies = types.iter().any(|one| if of == "draft-" { is_draft(one) } else { one == of });
        if applies {
            continue;
        }
        let why = if types.is_empty() {
            "it tunes speculation, which is not running".to_string()
        } else {
            format!("it tunes {}, and only {} runs", if of == "draft-" { "draft-* types" } else { of }, show(types))
        };
        reader.not_applicable(&name, &why);
    }
}

/// The metrics count acceptance by draft position: there are as many positions as the longest draft may have, over
/// all running types. It says something about one setting only where a single kind of type runs.
fn positions(reader: &mut Reader<'_>, running: Option<&BTreeSet<String>>, tokens_drafted: bool) {
    let Some(types) = running.filter(|types| !types.is_empty()) else { return };
    if reader.claim("spec_draft_n_max").is_none() || !types.iter().all(|one| is_draft(one)) {
        return;
    }
    let asked = reader.asked_number("spec_draft_n_max");
    match reader.draft_positions() {
        Some((artifact, positions, range)) => {
            reader.state(
                Statement::new("spec_draft_n_max", Value::Int(positions), Rung::Exercised, "metrics", &artifact, range)
                    .note("acceptance is counted for so many draft positions"),
            );
            if asked.is_some_and(|asked| positions < asked) {
                reader.silently(
                    "spec_draft_n_max",
                    Act::Adjusts { to: Some(Value::Int(positions)) },
                    "limited in silence to what the draft can predict",
                    "ask for no more than the model has prediction heads",
                );
            }
        }
        None if asked == Some(0) && tokens_drafted => {
            reader.silently(
                "spec_draft_n_max",
                Act::Ignores,
                "0 does not switch drafting off: one token a step is drafted",
                "remove --spec-type to switch speculation off",
            );
        }
        None => {}
    }
}

fn effects(
    reader: &mut Reader<'_>,
    running: Option<&BTreeSet<String>>,
    slots: &[(String, Range<usize>, String, bool)],
    drafted: &[Exchange],
    counters: Option<&(String, Tally, Range<usize>, String)>,
) {
    let only_drafts = running.is_some_and(|types| !types.is_empty() && types.iter().all(|one| is_draft(one)));
    let longest = longest_draft(reader, running);
    for setting in SPECULATION {
        let Some(claim) = reader.claim(setting) else { continue };
        // Asked to be off: nothing is expected of it.
        let wants_off = match &claim.asked {
            Asked::Equals(Value::Set(types)) => types.is_empty(),
            Asked::Equals(Value::Bool(on)) => !on,
            _ => false,
        };
        if wants_off {
            if let Some(claim) = reader.claim_mut(setting) {
                claim.effect = None;
            }
            continue;
        }
        // Tokens drafted from the text so far are no merit of the draft model.
        let attributable = setting != "spec_draft_model" || only_drafts;
        for (artifact, range, pointer, on) in slots {
            let unused = setting == "spec_draft_model"
                && running.is_some_and(|types| !types.is_empty() && !types.iter().any(|one| is_draft(one)));
            if !on || unused {
                let excerpt = format!("speculative = {on}");
                reader.state(
                    Statement::new(setting, Value::Bool(false), Rung::Reported, "slots", artifact, range.clone())
                        .label(pointer.clone())
                        .excerpt(excerpt)
                        .note(if unused {
                            "what speculates does not use the draft model"
                        } else {
                            "nothing speculates in this slot"
                        })
                        .effect(Seen::Off),
                );
            }
        }
        if !attributable {
            continue;
        }
        for exchange in reader.exchanges.clone() {
            if exchange.status != 200 {
                continue;
            }
            let tally = match exchange.drafted {
                Some(tried) => Tally { kept: exchange.accepted, tried, steps: tried.div_ceil(longest) },
                // A draft model drafts at every step: so many tokens without a draft are so many steps without one.
                // A lookup in the text so far may find nothing, which says nothing.
                None if only_drafts => Tally { kept: 0, tried: 0, steps: exchange.predicted },
                None => continue,
            };
            reader.state(
                Statement::new(
                    setting,
                    Value::Bool(true),
                    Rung::Exercised,
                    "traffic",
                    &exchange.artifact,
                    exchange.range.clone(),
                )
                .label(exchange.label.clone())
                .excerpt(exchange.excerpt.clone())
                .effect(Seen::Tally(tally)),
            );
        }
        if let Some((artifact, tally, range, excerpt)) = counters {
            reader.state(
                Statement::new(setting, Value::Bool(true), Rung::Exercised, "metrics", artifact, range.clone())
                    .excerpt(excerpt.clone())
                    .note("since the start of the server; 0 may be off or idle")
                    .effect(Seen::Tally(*tally)),
            );
        }
        if drafted.is_empty() && counters.is_none() {
            from_log(reader, setting, longest);
        }
    }
}

/// The counts that the log prints after each request, for when nothing else was asked.
fn from_log(reader: &mut Reader<'_>, setting: &str, longest: u64) {
    let Some(log) = &reader.log else { return };
    let mut found = Vec::new();
    for line in &log.lines {
        let Some((_, rest)) = line.text.split_once("draft acceptance = ") else { continue };
        let numbers: Vec<u64> = rest.split(['(', ')', '/', ' ']).filter_map(|word| word.parse().ok()).collect();
        if let [kept, tried, ..] = numbers[..] {
            found.push((
                line.range.clone(),
                format!("line {}", line.number),
                Tally { kept, tried, steps: tried.div_ceil(longest) },
            ));
        }
    }
    let start = reader.log_start();
    for (range, label, tally) in found.into_iter().take(32) {
        reader.state(
            Statement::new(setting, Value::Bool(true), Rung::Exercised, "log", reader.log_name, range)
                .label(label)
                .effect(Seen::Tally(tally))
                .of(start.clone()),
        );
    }
}

/// The longest draft that a step may have, which bounds from below how many steps made so many drafted tokens.
fn longest_draft(reader: &Reader<'_>, running: Option<&BTreeSet<String>>) -> u64 {
    let asked = |setting: &str, default: i64| reader.asked_number(setting).unwrap_or(default).clamp(1, 1 << 20) as u64;
    let of = |name: &str| match name {
        "ngram-simple" => asked("spec_ngram_simple_size_m", 48),
        "ngram-map-k" => asked("spec_ngram_map_k_size_m", 48),
        "ngram-map-k4v" => asked("spec_ngram_map_k4v_size_m", 48),
        "ngram-mod" => asked("spec_ngram_mod_n_max", 64),
        "ngram-cache" => 8,
        _ => asked("spec_draft_n_max", 3),
    };
    match running {
        Some(types) if !types.is_empty() => types.iter().map(|one| of(one)).max().unwrap_or(64),
        _ => 64,
    }
}

/// The engine pads the length to a multiple of 256, divides it among slots that do not share a cache, and cuts a
/// slot's part to the trained length. Only the last of these is said at the default verbosity.
fn context(reader: &mut Reader<'_>) {
    let seen = reader.effective("ctx_size");
    let per_slot = seen.iter().rev().find_map(|(_, value)| match value {
        Value::Int(number) => Some(*number),
        _ => None,
    });
    let trained = reader
        .models
        .as_ref()
        .and_then(|models| models.value.pointer("/data/0/meta/n_ctx_train"))
        .and_then(Json::as_i64);
    let slots =
        reader.effective("parallel").last().and_then(|(_, value)| value.number()).map_or(1, |slots| slots as i64);
    let shared = reader.effective("kv_unified").last().map(|(_, value)| value.same(&Value::Bool(true)));

    if let Some(exchange) =
        reader.exchanges.iter().find(|exchange| exchange.artifact.starts_with("exercise_context")).cloned()
    {
        match exchange.limit {
            Some(limit) => reader.state(
                Statement::new(
                    "ctx_size",
                    Value::Int(limit),
                    Rung::Exercised,
                    "traffic",
                    &exchange.artifact,
                    exchange.range.clone(),
                )
                .label("/body/error/n_ctx")
                .excerpt(format!("a longer prompt was refused: n_ctx {limit}"))
                .note("the limit that a prompt really ran into"),
            ),
            None if exchange.status == 200 => reader.findings.push(Finding {
                kind: "context_limit",
                severity: Severity::Warning,
                text: "a prompt longer than the reported context was accepted".to_string(),
                evidence: Vec::new(),
            }),
            None => {}
        }
    }

    let Some(per_slot) = per_slot else { return };
    let Some(claim) = reader.claim("ctx_size") else {
        if trained.is_some_and(|trained| per_slot < trained) {
            let why = (shared == Some(false) && slots > 1)
                .then(|| format!("each of {slots} slots has its own part of the cache"));
            if let Some(evidence) = reader
                .evidence
                .iter()
                .rev()
                .find(|one| one.setting == "ctx_size" && one.rung == Rung::Reported)
                .cloned()
            {
                reader.unasked.push(Unasked {
                    setting: "ctx_size".to_string(),
                    effective: Value::Int(per_slot),
                    default: format!("{} (the trained length)", trained.unwrap_or(0)),
                    why,
                    witness: evidence.witness,
                    locus: evidence.locus,
                    excerpt: evidence.excerpt,
                });
            }
        }
        return;
    };
    let Asked::Equals(Value::Int(asked)) = claim.asked else { return };
    if asked <= 0 || asked == per_slot {
        return;
    }
    let pad = |length: i64| length.saturating_add(255) / 256 * 256;
    let total = pad(asked);
    let divided = if shared == Some(false) && slots > 1 { pad(total / slots) } else { total };
    let to = Act::Adjusts { to: Some(Value::Int(per_slot)) };
    let capped = trained.is_some_and(|trained| per_slot == trained && divided > trained);
    if per_slot == divided && divided != total {
        reader.silently(
            "ctx_size",
            to,
            format!("divided among {slots} slots that do not share a cache: {asked} / {slots}, in multiples of 256, for each request"),
            "ask for slots times the length you want (-c), or share the cache (-kvu)",
        );
    } else if per_slot == divided {
        reader.silently("ctx_size", to, "rounded up to a multiple of 256", "ask for a multiple of 256");
    } else if capped {
        let by = if divided == total {
            "cut to the length the model was trained for".to_string()
        } else {
            format!("divided among {slots} slots, then cut to the length the model was trained for")
        };
        reader.silently("ctx_size", to, by, "ask for no more than the trained length, or set rope scaling");
    }
}

fn cache_is_unified(reader: &mut Reader<'_>) {
    let asked_off = reader.asked_value("kv_unified").is_some_and(|value| value.same(&Value::Bool(false)));
    let negative = reader.asked_number("parallel").is_some_and(|asked| asked < 0);
    if negative {
        reader.silently(
            "parallel",
            Act::Adjusts { to: None },
            "a negative number is taken for auto",
            "write -1, or the number of slots",
        );
    }
    let auto = negative || reader.claim("parallel").is_none_or(|claim| claim.asked == Asked::Auto);
    if asked_off && auto {
        reader.silently(
            "kv_unified",
            Act::Adjusts { to: Some(Value::Bool(true)) },
            "slots on auto force the unified cache",
            "give the number of slots too (-np N)",
        );
    }
}

/// A micro batch is never larger than the batch, and a batch never larger than the context as asked, in silence.
fn batches(reader: &mut Reader<'_>) {
    let in_force = |reader: &Reader<'_>, setting: &str| {
        reader.effective(setting).last().and_then(|(_, value)| value.number()).map(|number| number as i64)
    };
    let (batch, micro) = (in_force(reader, "batch_size"), in_force(reader, "ubatch_size"));
    let total = || {
        let (_, _, text) = reader.first_line("llama_context: n_ctx  ")?;
        text.rsplit("= ").next()?.trim().parse::<i64>().ok()
    };
    let limit = reader.asked_number("ctx_size").filter(|asked| *asked > 0).or_else(total);
    if let (Some(asked), Some(batch)) = (reader.asked_number("batch_size"), batch)
        && asked > batch
        && Some(batch) == limit
    {
        reader.silently(
            "batch_size",
            Act::Adjusts { to: Some(Value::Int(batch)) },
            "a batch is never larger than the context",
            "ask for no more than -c",
        );
    }
    if let (Some(asked), Some(micro)) = (reader.asked_number("ubatch_size"), micro)
        && (asked > micro || asked <= 0)
        && Some(micro) == batch
    {
        reader.silently(
            "ubatch_size",
            Act::Adjusts { to: Some(Value::Int(micro)) },
            "a micro batch is never larger than the batch",
            "ask for no more than -b",
        );
    }
}

/// 0 threads are as many as the host has processors.
fn threads(reader: &mut Reader<'_>) {
    for setting in ["threads", "threads_batch"] {
        if reader.asked_number(setting).is_some_and(|asked| asked <= 0) {
            reader.silently(
                setting,
                Act::Adjusts { to: None },
                "0 is taken for the number of processors",
                "write the number, or leave it out",
            );
        }
    }
}

/// The name of the model is logged before the file is opened; that it was loaded is logged when everything is.
fn model(reader: &mut Reader<'_>) {
    if reader.claim("model").is_none() || reader.first_line("llama_server: model loaded").is_none() {
        return;
    }
    let Some((range, label, text)) = reader.first_line("load_model: loading model '") else { return };
    let named = text.split("loading model '").nth(1).and_then(|rest| rest.split('\'').next()).unwrap_or("").to_string();
    let start = reader.log_start();
    reader.state(
        Statement::new("model", Value::text(named), Rung::Acknowledged, "log", reader.log_name, range)
            .label(label)
            .note("and a later line says that the model is loaded")
            .of(start),
    );
}

/// A key is in force if a request without it is turned away. The health check is always open, and in one release the
/// list of models.
fn api_key(reader: &mut Reader<'_>) {
    if reader.claim("api_key").is_none() && reader.claim("api_key_file").is_none() {
        return;
    }
    let settings: Vec<&str> =
        ["api_key", "api_key_file"].into_iter().filter(|name| reader.claim(name).is_some()).collect();
    let guarded =
        ["props.json", "props_without_key.json", "slots_before.json", "metrics_before.txt", "completion.json"];
    for name in guarded {
        let Some(status) = reader.statuses.get(name).copied() else { continue };
        let length = reader.capture.bytes(name).map_or(0, <[u8]>::len);
        let value = match status {
            401 | 403 => Value::Secret,
            200 if name == "props_without_key.json" => Value::Bool(false),
            _ => continue,
        };
        let note = if value == Value::Secret {
            "a request without a valid key was turned away"
        } else {
            "a request without a key was answered: no key is required"
        };
        for setting in &settings {
            reader.state(
                Statement::new(setting, value.clone(), Rung::Exercised, "http", name, 0..length)
                    .label(format!("status {status}"))
                    .excerpt(format!("answered with status {status}"))
                    .note(note),
            );
        }
    }

    // Without a key and with open cross-origin rules the server warns. Its silence is evidence only in a log that is
    // complete, of a release known to warn, and if nothing else closes those rules.
    let known = reader
        .facts
        .release
        .as_deref()
        .is_some_and(|release| reader.data.about.releases.iter().any(|known| known == release));
    let closes = ["cors_origins", "tools", "agent", "mcp_servers_config", "mcp_servers_json", "ui_mcp_proxy"];
    let other = closes.iter().any(|name| reader.claim(name).is_some());
    let complete = reader.foreign_log.is_none() && reader.log.as_ref().is_some_and(|log| log.would_show(3));
    let warned =
        reader.log.as_ref().is_some_and(|log| log.lines.iter().any(|line| line.text.contains("no API key is set")));
    let hidden_source =
        reader.log.as_ref().is_some_and(|log| log.lines.iter().any(|line| line.text.contains("using config file")));
    if known && complete && !other && !warned && !hidden_source {
        let log = reader.log.as_ref().map(|log| {
            (log.lines.first().map_or(0, |line| line.range.start), log.lines.last().map_or(0, |line| line.range.end))
        });
        let (start, end) = log.unwrap_or((0, 0));
        for setting in &settings {
            reader.state(
                Statement::new(setting, Value::Secret, Rung::Acknowledged, "log", reader.log_name, start..end)
                    .label("the whole start")
                    .excerpt("no line warns that no API key is set")
                    .note("this release warns at every start without a key, and the log is complete"),
            );
        }
    }
}

/// The answer to a request that named a foreign origin.
fn cross_origin(reader: &mut Reader<'_>) {
    if reader.claim("cors_origins").is_none() || reader.facts.release.as_deref() != Some("b10434") {
        return;
    }
    let Some(answer) = super::read::answer(reader.capture, "http_headers.json") else { return };
    let Some(all) = answer.value.as_object() else { return };
    for (artifact, exchange) in all {
        let Some(headers) = exchange.get("headers").and_then(Json::as_array) else { continue };
        let allowed = headers.iter().find_map(|header| {
            let name = header.get(0).and_then(Json::as_str)?;
            name.eq_ignore_ascii_case("access-control-allow-origin")
                .then(|| header.get(1).and_then(Json::as_str).map(str::to_string))?
        });
        let Some(allowed) = allowed else { continue };
        let pointer = format!("/{artifact}/headers");
        let range = crate::locate::locate(answer.bytes, &pointer).unwrap_or(0..0);
        let value = if allowed == "http://ascertain.invalid" { "*".to_string() } else { allowed.clone() };
        reader.state(
            Statement::new("cors_origins", Value::text(value), Rung::Exercised, "http", "http_headers.json", range)
                .label(pointer)
                .excerpt(format!("access-control-allow-origin: {}", crate::text::safe(&allowed)))
                .note("our foreign origin sent back means that every origin is allowed"),
        );
    }
}

/// How the log looks shows how it was told to look.
fn log_style(reader: &mut Reader<'_>) {
    let Some(log) = &reader.log else { return };
    let (style, first) = (log.style, log.lines.first().map(|line| (line.range.clone(), line.number)));
    let Some((range, number)) = first else { return };
    let start = reader.log_start();
    let mut say = |setting: &str, on: bool, note: &str| {
        if reader.claim(setting).is_some() {
            reader.state(
                Statement::new(setting, Value::Bool(on), Rung::Acknowledged, "log", reader.log_name, range.clone())
                    .label(format!("line {number}"))
                    .note(note)
                    .of(start.clone()),
            );
        }
    };
    if style.json > 0 {
        say("log_jsonl", true, "the lines are JSON objects");
        return;
    }
    say("log_jsonl", false, "the lines are not JSON objects");
    if style.levelled > 0 {
        say("log_prefix", true, "the lines begin with a level");
        say("log_timestamps", style.timed > 0, "with a prefix, the time shows whether it is on");
    } else if style.bare > 0 && style.timed == 0 {
        // Without a prefix there is no time either, whatever was asked.
        say("log_prefix", false, "the lines have no level");
    }
}

/// The kernel counts locked memory. Some of it can be locked although the whole was not, which the engine warns of.
fn memory_lock(reader: &mut Reader<'_>) {
    let Some(bytes) = reader.capture.bytes("proc_status.txt") else { return };
    let Some(text) = std::str::from_utf8(bytes).ok() else { return };
    let Some(at) = text.find("VmLck:") else { return };
    let line = text[at..].lines().next().unwrap_or("");
    let locked: u64 = line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    if locked == 0 {
        return;
    }
    let range = at..at + line.len();
    let failed =
        reader.log.as_ref().is_some_and(|log| log.lines.iter().any(|line| line.text.contains("failed to mlock")));
    let silent = reader.foreign_log.is_some() || reader.log.as_ref().is_none_or(|log| !log.would_show(2));
    if failed || silent {
        return;
    }
    let note = "memory is locked, and the complete log has no warning that a part could not be";
    if let Some(asked) = reader.asked_value("load_mode")
        && asked.to_string().contains("mlock")
    {
        // The model file stays mapped in one of the two modes and not in the other.
        let model = reader.asked_value("model").map(|model| model.to_string());
        let mapped = reader
            .capture
            .bytes("maps_files.txt")
            .zip(model)
            .map(|(maps, model)| maps.split(|byte| *byte == b'\n').any(|line| line == model.as_bytes()));
        let value = match mapped {
            Some(true) => "mmap+mlock",
            Some(false) => "mlock",
            None => return,
        };
        reader.state(
            Statement::new(
                "load_mode",
                Value::text(value),
                Rung::Exercised,
                "process",
                "proc_status.txt",
                range.clone(),
            )
            .label("VmLck")
            .note(note),
        );
    }
    if reader.claim("mlock").is_some() {
        reader.state(
            Statement::new("mlock", Value::Bool(true), Rung::Exercised, "process", "proc_status.txt", range)
                .label("VmLck")
                .note(note),
        );
    }
}

/// With the template engine on, a name is taken for the text of a template.
fn chat_template(reader: &mut Reader<'_>) {
    let Some(in_force) = reader
        .props
        .as_ref()
        .and_then(|props| props.value.get("chat_template"))
        .and_then(Json::as_str)
        .map(str::to_string)
    else {
        return;
    };
    let Some((bytes, artifact)) = reader.props.as_ref().map(|props| (props.bytes, props.artifact.clone())) else {
        return;
    };
    let range = crate::locate::locate(bytes, "/chat_template").unwrap_or(0..0);
    if let Some(asked) = reader.asked_value("chat_template").map(|value| value.to_string()) {
        let is_text = asked.contains("{{") || asked.contains("{%");
        if is_text {
            let same = asked == in_force;
            let value = if same { asked } else { "another template".to_string() };
            reader.state(
                Statement::new("chat_template", Value::text(value), Rung::Reported, "props", &artifact, range)
                    .label("/chat_template"),
            );
        } else if asked.trim() == in_force.trim() {
            reader.state(
                Statement::new(
                    "chat_template",
                    Value::text("the literal word"),
                    Rung::Reported,
                    "props",
                    &artifact,
                    range,
                )
                .label("/chat_template"),
            );
            reader.silently(
                "chat_template",
                Act::Ignores,
                format!(
                    "{} is taken for the text of a template: every prompt is that one word",
                    crate::text::safe(&asked)
                ),
                "add --no-jinja, or hand in the template itself with --chat-template-file",
            );
        }
    } else if reader.claim("chat_template_file").is_some()
        && let Some(file) = reader.capture.bytes("chat_template.txt").and_then(|bytes| std::str::from_utf8(bytes).ok())
    {
        let wanted = reader.asked_value("chat_template_file").map(|value| value.to_string()).unwrap_or_default();
        let value = if file.trim_end() == in_force.trim_end() { wanted } else { "another template".to_string() };
        reader.state(
            Statement::new("chat_template_file", Value::text(value), Rung::Reported, "props", &artifact, range)
                .label("/chat_template")
                .note("the template in force, compared with the file as it is now"),
        );
    }
}

/// An override of the trained length shows where the server reports it.
fn overrides(reader: &mut Reader<'_>) {
    let Some(asked) = reader.asked_value("override_kv").map(|value| value.to_string()) else { return };
    let length = asked.split_once(".context_length=int:").map(|(_, rest)| rest.to_string());
    let Some(length) = length.and_then(|length| length.parse::<i64>().ok()) else { return };
    let Some((bytes, artifact, trained)) = reader.models.as_ref().and_then(|models| {
        Some((models.bytes, models.artifact.clone(), models.value.pointer("/data/0/meta/n_ctx_train")?.as_i64()?))
    }) else {
        return;
    };
    let range = crate::locate::locate(bytes, "/data/0/meta/n_ctx_train").unwrap_or(0..0);
    let value = if trained == length { asked } else { format!("n_ctx_train {trained}") };
    reader.state(
        Statement::new("override_kv", Value::text(value), Rung::Reported, "models", &artifact, range)
            .label("/data/0/meta/n_ctx_train")
            .note("the key that was overridden is the one this field reports"),
    );
}

/// The sockets on which the process listens.
fn listening(reader: &mut Reader<'_>) {
    let Some(answer) = super::read::answer(reader.capture, "listeners.json") else { return };
    for (index, one) in answer.value.as_array().into_iter().flatten().enumerate() {
        let (Some(address), Some(port)) =
            (one.get("address").and_then(Json::as_str), one.get("port").and_then(Json::as_i64))
        else {
            continue;
        };
        for (setting, value, field) in [("host", Value::text(address), "address"), ("port", Value::Int(port), "port")] {
            if reader.claim(setting).is_none() {
                continue;
            }
            // A name is not an address: `localhost` may be either of two.
            if setting == "host"
                && !reader.asked_value("host").is_some_and(|host| host.to_string().parse::<std::net::IpAddr>().is_ok())
            {
                continue;
            }
            let pointer = format!("/{index}/{field}");
            let range = crate::locate::locate(answer.bytes, &pointer).unwrap_or(0..0);
            reader.state(
                Statement::new(setting, value, Rung::Exercised, "process", "listeners.json", range)
                    .label(pointer)
                    .excerpt(format!("listening on {address}:{port}"))
                    .note("a socket of this process"),
            );
        }
    }
    if let Some(port) = reader.asked_number("port")
        && port > 65_535
    {
        // The log repeats the number as asked; the socket shows what the kernel made of it.
        for evidence in reader.evidence.iter_mut().filter(|one| one.setting == "port" && one.witness == "log") {
            evidence.voice = Voice::Echo;
        }
        reader.silently(
            "port",
            Act::Ignores,
            format!("{port} is no port, and the log only repeats it"),
            "ask for a port up to 65535",
        );
    }
}

/// Tokens taken from the cache for a prompt that was sent before.
fn prompt_cache(reader: &mut Reader<'_>) {
    if reader.claim("cache_prompt").is_none() {
        return;
    }
    let wants_off = reader.asked_value("cache_prompt").is_some_and(|value| value.same(&Value::Bool(false)));
    for exchange in reader.exchanges.clone() {
        let Some(cached) = exchange.cached.filter(|cached| *cached > 0 && exchange.status == 200) else { continue };
        let statement = Statement::new(
            "cache_prompt",
            Value::Bool(true),
            Rung::Exercised,
            "traffic",
            &exchange.artifact,
            exchange.range.clone(),
        )
        .label(exchange.label.clone())
        .excerpt(format!("cache_n {cached}"));
        // A request may ask for the cache itself, so reuse does not show the server's own default.
        reader.state(
            statement.echo().note("tokens of the prompt came from the cache; a request may have asked for that itself"),
        );
        if !wants_off {
            reader.state(
                Statement::new(
                    "cache_prompt",
                    Value::Bool(true),
                    Rung::Exercised,
                    "traffic",
                    &exchange.artifact,
                    exchange.range.clone(),
                )
                .label(exchange.label.clone())
                .excerpt(format!("cache_n {cached}"))
                .effect(Seen::Tally(Tally { kept: cached, tried: cached, steps: 1 })),
            );
        }
    }
    if wants_off && let Some(claim) = reader.claim_mut("cache_prompt") {
        claim.effect = None;
    }
}

/// A shift that was logged is the shift at work.
fn context_shift(reader: &mut Reader<'_>) {
    let Some(claim) = reader.claim("context_shift") else { return };
    if claim.asked == Asked::Equals(Value::Bool(false)) {
        if let Some(claim) = reader.claim_mut("context_shift") {
            claim.effect = None;
        }
        return;
    }
    let Some((range, label, _)) = reader.first_line("slot context shift, n_keep") else { return };
    let start = reader.log_start();
    reader.state(
        Statement::new("context_shift", Value::Bool(true), Rung::Exercised, "log", reader.log_name, range)
            .label(label)
            .effect(Seen::Tally(Tally { kept: 1, tried: 1, steps: 1 }))
            .of(start),
    );
}

/// Ways of asking that read differently from what they say.
fn traps(reader: &mut Reader<'_>) {
    for ask in reader.intent.asks.clone() {
        if ask.from == From::Env && ask.negative && crate::data::truth(&ask.text) == Some(false) {
            reader.findings.push(Finding {
                kind: "negative_variable",
                severity: Severity::Warning,
                text: format!(
                    "{}={} switches it off: a NO_ variable means off whatever its value",
                    ask.typed,
                    crate::text::safe(&ask.text)
                ),
                evidence: ask
                    .locus
                    .clone()
                    .map(|locus| (locus, format!("{}={}", ask.typed, crate::text::safe(&ask.text))))
                    .into_iter()
                    .collect(),
            });
        }
        if ask.name == "api_key" && ask.from == From::Argv {
            reader.findings.push(Finding {
                kind: "secret_on_command_line",
                severity: Severity::Warning,
                text: "the API key stands on the command line, where every user of the host can read it: use --api-key-file".to_string(),
                evidence: Vec::new(),
            });
        }
    }
    if let Some(seed) = reader.asked_number("seed").filter(|seed| !(0..=i64::from(u32::MAX)).contains(seed)) {
        let to = seed.rem_euclid(1 << 32);
        reader.silently(
            "seed",
            Act::Adjusts { to: Some(Value::Int(to)) },
            format!("a seed has 32 bits: {seed} is {to}"),
            "ask for a seed below 4294967296",
        );
    }
    let longest = reader.asked_number("spec_draft_n_max").unwrap_or(3);
    let never = reader
        .asked_number("spec_draft_n_min")
        .filter(|least| *least > longest)
        .map(|least| format!("the least number of draft tokens ({least}) is above the greatest ({longest})"));
    let p_min = reader
        .asked_value("spec_draft_p_min")
        .and_then(|value| value.number())
        .filter(|least| *least > 1.0)
        .map(|least| format!("no token is as probable as {least}"));
    for why in never.into_iter().chain(p_min) {
        reader.findings.push(Finding {
            kind: "never_drafts",
            severity: Severity::Error,
            text: format!("{why}: nothing is ever drafted, and no message says so"),
            evidence: Vec::new(),
        });
    }
    if reader.asked_value("cors_origins").is_some_and(|value| matches!(&value, Value::Set(list) if list.len() > 1)) {
        reader.findings.push(Finding {
            kind: "cors_list",
            severity: Severity::Warning,
            text: "a list of origins is sent to browsers as it is, in one header, and browsers refuse that: allow one origin".to_string(),
            evidence: Vec::new(),
        });
    }
    if reader.claim("ssl_key_file").is_some() != reader.claim("ssl_cert_file").is_some() {
        reader.findings.push(Finding {
            kind: "plain_http",
            severity: Severity::Error,
            text: "only one of the two TLS files is given: the server then speaks plain HTTP without a word"
                .to_string(),
            evidence: Vec::new(),
        });
    }
}

/// Requests from a file that neither the command line nor the environment shows.
fn third_source(reader: &mut Reader<'_>) {
    let files: BTreeSet<String> = reader
        .intent
        .asks
        .iter()
        .filter(|ask| ask.from == From::File)
        .filter_map(|ask| ask.place.rsplit_once(':').map(|(path, _)| path.to_string()))
        .collect();
    for path in files {
        let names: BTreeSet<String> =
            reader.intent.asks.iter().filter(|ask| ask.place.starts_with(&path)).map(|ask| ask.name.clone()).collect();
        reader.findings.push(Finding {
            kind: "third_source",
            severity: Severity::Warning,
            text: format!(
                "{path} also configures this server ({}); neither its command line nor its environment shows that",
                names.into_iter().collect::<Vec<_>>().join(", ")
            ),
            evidence: Vec::new(),
        });
    }
    for artifact in ["config_system.ini", "config.ini"] {
        if reader.capture.bytes(artifact).is_some()
            && !reader.facts.config_files.iter().any(|file| file.artifact == artifact)
        {
            let path = reader.capture.entry(artifact).map_or(artifact.to_string(), |entry| entry.source.clone());
            reader.findings.push(Finding {
                kind: "changed_since",
                severity: Severity::Warning,
                text: format!("{} was changed after the start: what this start read in it is not known, so nothing in it is judged", crate::text::safe(&path)),
                evidence: Vec::new(),
            });
        }
    }
    let read: Vec<(String, Locus, String)> = reader
        .log
        .iter()
        .flat_map(|log| &log.lines)
        .filter_map(|line| {
            line.text.split_once("using config file: ").map(|(_, path)| {
                (path.to_string(), reader.line_locus(line), crate::text::excerpt(line.text.as_bytes()))
            })
        })
        .collect();
    for (path, locus, excerpt) in read {
        if !reader.facts.config_files.iter().any(|file| file.path == path) {
            reader.findings.push(Finding {
                kind: "third_source",
                severity: Severity::Warning,
                text: format!(
                    "{} was read at the start and is not among the evidence: it may ask for more than is judged here",
                    crate::text::safe(&path)
                ),
                evidence: vec![(locus, excerpt)],
            });
        }
    }
}

/// Sampling settings in force that differ from the default and that nobody asked for: a model file can carry them.
fn unasked_sampling(reader: &mut Reader<'_>) {
    let mut found = Vec::new();
    for evidence in reader
        .evidence
        .iter()
        .filter(|one| one.witness == "props" && one.voice == Voice::Effective && one.subject == Subject::Value)
    {
        let Some(setting) = reader.data.setting(&evidence.setting) else { continue };
        let Seen::Value(value) = &evidence.seen else { continue };
        let Some(default) = setting.default_value() else { continue };
        if setting.group != "sampling"
            || reader.claim(&setting.name).is_some()
            || setting.name == "seed"
            || setting.name == "sampler_seq"
            || value.same(&default)
        {
            continue;
        }
        found.push(Unasked {
            setting: setting.name.clone(),
            effective: value.clone(),
            default: default.to_string(),
            why: None,
            witness: evidence.witness.clone(),
            locus: evidence.locus.clone(),
            excerpt: evidence.excerpt.clone(),
        });
    }
    reader.unasked.extend(found);
}
