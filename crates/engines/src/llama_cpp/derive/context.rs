//! The context and its cache: length, slots, batches, shifting, reuse.

use super::statement::Statement;
use crate::llama_cpp::artifacts::answer;
use crate::llama_cpp::reader::Reader;
use ascertain_model::{Act, Asked, Finding, Rung, Seen, Severity, Tally, Unasked, Value};
use serde_json::Value as Json;

/// The engine pads the length to a multiple of 256, divides it among slots that do not share a cache, and cuts a
/// slot's part to the trained length. Only the last of these is said at the default verbosity.
pub(super) fn context(reader: &mut Reader<'_>) {
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
                Statement::exercised("ctx_size", Value::Int(limit), &exchange)
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
    // Without a log nothing states whether the slots share a cache. A number of slots that was asked for means that they
    // do not, unless sharing was asked for too.
    let asks_for_slots = reader.asked_number("parallel").is_some_and(|slots| slots > 0);
    let asks_to_share = reader.asked_value("kv_unified").map(|value| value.same(&Value::Bool(true)));
    let divides = shared.map_or(asks_to_share.map_or(asks_for_slots, |asks| !asks), |shared| !shared);
    let part = |total: i64| if divides && slots > 1 { padded(total / slots) } else { total };
    // 0 asks for the trained length, of which each slot gets its part.
    if claim.asked == Asked::Auto
        && let Some(trained) = trained.filter(|trained| per_slot < *trained && part(padded(*trained)) == per_slot)
    {
        if let Some(claim) = reader.claim_mut("ctx_size") {
            claim.asked = Asked::Equals(Value::Int(trained));
        }
        reader.silently(
            "ctx_size",
            Act::Adjusts { to: Some(Value::Int(per_slot)) },
            format!("the trained length, {trained}, is divided among {slots} slots that do not share a cache"),
            "ask for slots times the length you want (-c), or share the cache (-kvu)",
        );
        return;
    }
    let Asked::Equals(Value::Int(asked)) = claim.asked else { return };
    if asked <= 0 || asked == per_slot {
        return;
    }
    let total = padded(asked);
    let divided = part(total);
    let to = Act::Adjusts { to: Some(Value::Int(per_slot)) };
    let capped = trained.is_some_and(|trained| per_slot == trained && divided > trained);
    if per_slot == divided && divided != total {
        reader.silently(
            "ctx_size",
            to,
            format!("divided among {slots} slots that do not share a cache: {asked} / {slots}, in multiples of 256, for each request"),
            format!("if {per_slot} for each request is what you want, nothing; for {asked} each: -c {} or -kvu", asked.saturating_mul(slots)),
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

/// The length that the engine makes of one that was asked for: a multiple of 256.
pub(in crate::llama_cpp) fn padded(length: i64) -> i64 {
    length.saturating_add(255) / 256 * 256
}

pub(super) fn cache_is_unified(reader: &mut Reader<'_>) {
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
pub(super) fn batches(reader: &mut Reader<'_>) {
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
            if asked == 0 {
                "a micro batch of 0 is taken for the size of the batch"
            } else if asked < 0 {
                "a negative micro batch is taken for the size of the batch"
            } else {
                "a micro batch is never larger than the batch"
            },
            "ask for 1 up to the value of -b",
        );
    }
}

/// An override of the trained length shows where the server reports it, if its key is one that the model reads. Keys of
/// another architecture are never looked at, and an override that repeats the file's own value shows nothing.
pub(super) fn overrides(reader: &mut Reader<'_>) {
    let setting = "override_kv";
    let Some(as_asked) = reader.as_asked(setting) else { return };
    let members: Vec<String> = reader
        .intent
        .asks
        .iter()
        .filter(|ask| ask.name == setting)
        .flat_map(|ask| ask.text.split(','))
        .map(|one| one.trim().to_string())
        .filter(|one| !one.is_empty())
        .collect();
    let [only] = &members[..] else { return };
    let Some((key, length)) = only.split_once("=int:") else { return };
    let Some(architecture) = key.strip_suffix(".context_length") else { return };
    let Ok(length) = length.parse::<i64>() else { return };
    let file = answer(reader.capture, "checkpoint.json");
    let own = |key: &str| file.as_ref().and_then(|file| file.value.get("kv")?.get(key).cloned());
    let logged = || {
        let (_, _, text) = reader.first_line("print_info: arch ")?;
        text.split_once('=').map(|(_, name)| name.trim().to_string())
    };
    let of_model = own("general.architecture").and_then(|name| name.as_str().map(str::to_string)).or_else(logged);
    let why = match (&of_model, own(key).and_then(|value| value.as_i64())) {
        (Some(of_model), _) if of_model != architecture => Some(format!(
            "the model is a {of_model}, which does not read {key}: its own key is {of_model}.context_length"
        )),
        (Some(_), Some(own)) if own == length => {
            Some("the file of the model says the same, so that nothing shows whether the override did it".to_string())
        }
        (Some(_), Some(_)) => None,
        _ => Some(
            "the header of the model's file tells whether it reads this key; it is not among the evidence".to_string(),
        ),
    };
    if let Some(why) = why {
        reader.settles(setting, &crate::text::safe(&why));
        return;
    }
    let Some((bytes, artifact, trained)) = reader.models.as_ref().and_then(|models| {
        Some((models.bytes, models.artifact.clone(), models.value.pointer("/data/0/meta/n_ctx_train")?.as_i64()?))
    }) else {
        return;
    };
    let range = crate::locate::locate(bytes, "/data/0/meta/n_ctx_train").unwrap_or(0..0);
    let value = if trained == length { as_asked } else { Value::text(format!("n_ctx_train {trained}")) };
    reader.state(
        Statement::new(setting, value, Rung::Reported, "models", &artifact, range)
            .label("/data/0/meta/n_ctx_train")
            .note("the key that was overridden is the one this field reports"),
    );
}

/// Tokens taken from the cache for a prompt that was sent before.
pub(super) fn prompt_cache(reader: &mut Reader<'_>) {
    if reader.claim("cache_prompt").is_none() {
        return;
    }
    let wants_off = reader.asked_value("cache_prompt").is_some_and(|value| value.same(&Value::Bool(false)));
    for exchange in reader.exchanges.clone() {
        let Some(cached) = exchange.cached.filter(|cached| *cached > 0 && exchange.status == 200) else { continue };
        let reused =
            || Statement::exercised("cache_prompt", Value::Bool(true), &exchange).excerpt(format!("cache_n {cached}"));
        // A request may ask for the cache itself, so reuse does not show the server's own default.
        reader.state(
            reused().echo().note("tokens of the prompt came from the cache; a request may have asked for that itself"),
        );
        if !wants_off {
            reader.state(reused().effect(Seen::Tally(Tally { kept: cached, tried: cached, steps: 1 })));
        }
    }
    if wants_off && let Some(claim) = reader.claim_mut("cache_prompt") {
        claim.effect = None;
    }
}

/// A shift that was logged is the shift at work.
pub(super) fn context_shift(reader: &mut Reader<'_>) {
    let Some(claim) = reader.claim("context_shift") else { return };
    if claim.asked == Asked::Equals(Value::Bool(false)) {
        if let Some(claim) = reader.claim_mut("context_shift") {
            claim.effect = None;
        }
        return;
    }
    let shift = reader.log.as_ref().and_then(|log| {
        let line = log.lines.iter().find(|line| line.text.contains("slot context shift, n_keep"))?;
        Some((line.range.clone(), format!("line {}", line.number)))
    });
    let Some((range, label)) = shift else { return };
    let start = reader.log_start();
    reader.state(
        Statement::new("context_shift", Value::Bool(true), Rung::Exercised, "log", reader.log_name, range)
            .label(label)
            .effect(Seen::Tally(Tally { kept: 1, tried: 1, steps: 1 }))
            .of(start),
    );
}
