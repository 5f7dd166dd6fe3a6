//! Whether tokens are drafted, by what, and what comes of it.

use super::statement::Statement;
use crate::llama_cpp::artifacts::{Exchange, answer};
use crate::llama_cpp::intent::From;
use crate::llama_cpp::reader::Reader;
use ascertain_model::{Act, Asked, Finding, Locus, Rung, Seen, Severity, Tally, Unasked, Value};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::ops::Range;

/// Types that are left out without a line when they lack what they need, while the others run.
const SILENTLY_SKIPPED: [&str; 3] = ["draft-eagle3", "draft-dflash", "draft-dspark"];
/// Settings whose effect is speculation.
pub(in crate::llama_cpp) const SPECULATION: [&str; 3] = ["spec_type", "spec_default", "spec_draft_model"];
/// Stands for the type that the engine infers from a draft file.
const INFERRED: &str = "draft-*";
/// What `--spec-default` adds.
const PRESET: &str = "ngram-mod";

pub(super) fn speculation(reader: &mut Reader<'_>) {
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

    let echoes = echoed_types(reader);
    // Without a type the engine takes one from the draft file. It says which only where an answer repeats it.
    let from_file = asked.is_empty() && draft_file;
    let repeated =
        echoes.first().filter(|first| from_file && first.len() == 1 && echoes.iter().all(|one| one == *first));
    let inferred = match repeated {
        Some(types) => types.clone(),
        None if from_file => BTreeSet::from([INFERRED.to_string()]),
        None => asked.clone(),
    };
    // "On" names no type. It speaks for the types asked for only if none of them can be left out in silence.
    let ambiguous = inferred.len() > 1 && inferred.iter().any(|one| SILENTLY_SKIPPED.contains(&one.as_str()));
    // "On" is read together with what was asked, so all that was asked has to be known: the answers repeat it, and
    // where no answer does, command line and environment have both to be there.
    let known = if echoes.is_empty() {
        reader.all_sources_are_known()
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
            let value = running_value(reader, setting, types);
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
    positions(reader, running.as_ref());
    effects(reader, running.as_ref(), &slots, &drafted, counters.as_ref());
    never_drafts(reader, running.as_ref());

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
            severity: Severity::Warning,
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

/// Which types the answers repeat as asked for. That proves nothing about what runs, but an answer that repeats other
/// types than those known here shows that another source asked too.
fn echoed_types(reader: &Reader<'_>) -> Vec<BTreeSet<String>> {
    let types = |text: &str| {
        text.split(',').map(str::trim).filter(|one| !one.is_empty() && *one != "none").map(str::to_string).collect()
    };
    let answers = ["completion.json", "chat.json"]
        .iter()
        .filter_map(|name| answer(reader.capture, name))
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

/// The types that the log says were started: those announced, if the announcement that they are ready follows.
fn started(reader: &Reader<'_>) -> Option<(BTreeSet<String>, Range<usize>, String)> {
    let log = reader.log.as_ref()?;
    let mut types = BTreeSet::new();
    for line in log.start() {
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

/// What the running types are to one of the two settings that ask for types. What the preset adds is no answer to the
/// other one, unless that asks for nothing to run.
fn running_value(reader: &Reader<'_>, setting: &str, types: &BTreeSet<String>) -> Value {
    if setting == "spec_default" {
        return Value::Bool(types.contains(PRESET));
    }
    let preset = reader.asked_value("spec_default").is_some_and(|asked| asked.same(&Value::Bool(true)));
    let adds = match reader.asked_value("spec_type") {
        Some(Value::Set(asked)) => preset && !asked.is_empty() && !asked.contains(PRESET),
        _ => false,
    };
    Value::set(types.iter().filter(|one| !adds || one.as_str() != PRESET).cloned())
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
        let value = running_value(reader, setting, types);
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
fn positions(reader: &mut Reader<'_>, running: Option<&BTreeSet<String>>) {
    let Some(types) = running.filter(|types| !types.is_empty()) else { return };
    let asked = reader.asked_number("spec_draft_n_max");
    if asked == Some(0) && types.iter().any(|one| is_draft(one)) {
        reader.silently(
            "spec_draft_n_max",
            Act::Ignores,
            "0 does not switch drafting off: one token a step is drafted",
            "remove --spec-type to switch speculation off",
        );
    }
    if reader.claim("spec_draft_n_max").is_none() || !types.iter().all(|one| is_draft(one)) {
        return;
    }
    let Some((artifact, positions, range)) = reader.draft_positions() else { return };
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
        // A drafted token does not say which of the running types drafted it: it is a merit of a setting only where all
        // that run are what that setting asks for.
        let attributable = match setting {
            "spec_draft_model" => only_drafts,
            "spec_default" => running.is_some_and(|types| !types.is_empty() && types.iter().all(|one| one == PRESET)),
            _ => running.is_some_and(|types| !types.is_empty()),
        };
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
        every_request_failed(reader, setting);
        if !attributable {
            let how = match (setting, running, reader.lost_files().first()) {
                (_, None, Some((path, _, _))) => format!(
                    "{} was read at the start and may have asked for other types: bring it back, or start the server with -lv 4",
                    crate::text::safe(path)
                ),
                (_, None, None) => "start it with -lv 4: something may draft, and only that log names what".to_string(),
                ("spec_default", ..) => {
                    "ask for no other type: tokens do not say which of the types drafted them".to_string()
                }
                _ => "ask for draft-* types only: tokens do not say which of the types drafted them".to_string(),
            };
            let drafts = slots.iter().any(|(_, _, _, on)| *on) || !drafted.is_empty();
            if let Some(effect) = reader.claim_mut(setting).and_then(|claim| claim.effect.as_mut())
                && drafts
            {
                effect.settle = how;
            }
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
            reader.state(Statement::exercised(setting, Value::Bool(true), &exchange).effect(Seen::Tally(tally)));
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

/// Limits that no draft can meet: nothing is ever drafted by a draft-* type then.
pub(super) fn unmeetable(reader: &Reader<'_>) -> Vec<(&'static str, String)> {
    // 0 still drafts one token.
    let longest = reader.asked_number("spec_draft_n_max").unwrap_or(3).max(1);
    let least = reader.asked_number("spec_draft_n_min").filter(|least| *least > longest).map(|least| {
        let why = format!("the least number of draft tokens ({least}) is above the greatest ({longest})");
        ("spec_draft_n_min", why)
    });
    let asked = reader.asked_value("spec_draft_p_min").and_then(|value| value.number());
    let probable = asked
        .filter(|least| *least > 1.0)
        .map(|least| ("spec_draft_p_min", format!("no token is as probable as {least}")));
    least.into_iter().chain(probable).collect()
}

/// What such limits mean for the effect of what they apply to.
fn never_drafts(reader: &mut Reader<'_>, running: Option<&BTreeSet<String>>) {
    let Some(types) = running.filter(|types| types.iter().any(|one| is_draft(one))) else { return };
    let works = reader.evidence.iter().any(|one| {
        SPECULATION.contains(&one.setting.as_str()) && matches!(one.seen, Seen::Tally(tally) if tally.kept > 0)
    });
    if !reader.is_known_release() || works && types.iter().all(|one| is_draft(one)) {
        return;
    }
    let only_drafts = types.iter().all(|one| is_draft(one));
    for (setting, why) in unmeetable(reader) {
        let place =
            reader.claim(setting).and_then(|claim| claim.origins.first()).and_then(|origin| origin.locus.clone());
        let Some(place) = place else { continue };
        for about in ["spec_draft_model", "spec_type"] {
            if reader.claim(about).is_none() || about == "spec_type" && !only_drafts {
                continue;
            }
            reader.state(
                Statement::new(
                    about,
                    Value::Bool(false),
                    Rung::Acknowledged,
                    "process",
                    &place.artifact,
                    place.start..place.end,
                )
                .label(place.label.clone())
                .note(format!("{why}: this engine is known to draft nothing then, in silence"))
                .effect(Seen::Off),
            );
        }
    }
}

/// Requests were sent to see drafting at work, and none was answered with tokens: whatever it says, it does not work.
fn every_request_failed(reader: &mut Reader<'_>, setting: &str) {
    let sent: Vec<Exchange> = reader
        .exchanges
        .iter()
        .filter(|exchange| exchange.artifact.starts_with("exercise_speculation"))
        .cloned()
        .collect();
    // Turned away for want of a key, or asked too fast, is no failure of drafting.
    // A server that is busy, or slower than we wait, may draft well.
    let failed = |exchange: &&Exchange| exchange.status == 500;
    let Some(first) = sent.iter().find(failed) else { return };
    if !sent.iter().all(|exchange| failed(&exchange)) {
        return;
    }
    let how = format!("with status {}", first.status);
    reader.state(
        Statement::new(setting, Value::Bool(false), Rung::Exercised, "traffic", &first.artifact, first.range.clone())
            .excerpt(format!("{} requests, all ended {how}", sent.len()))
            .note(format!("every request for tokens ends {how}"))
            .effect(Seen::Off),
    );
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
pub(in crate::llama_cpp) fn longest_draft(reader: &Reader<'_>, running: Option<&BTreeSet<String>>) -> u64 {
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
