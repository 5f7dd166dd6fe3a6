//! Settings that write one and the same field of the engine: the last request wins and takes the others back in
//! silence. Which settings those are is data (`field` in `settings.toml`); here stands when nothing is taken back.

use ascertain_model::Value;

/// Whether what one setting asks is in force when another setting has the last word about their field: `--mmap` is
/// not taken back by `--load-mode mmap`.
pub(super) fn holds(asked: (&str, &Value), last: (&str, &Value)) -> bool {
    if let (Some(wanted), Some(mode)) = (wanted(asked.0, asked.1), mode(last.0, last.1)) {
        let parts = [(wanted.mapped, mode.mapped), (wanted.locked, mode.locked), (wanted.direct, mode.direct)];
        return parts.iter().all(|(wanted, is)| wanted.is_none() || is.is_none() || wanted == is);
    }
    match (content(asked.0, asked.1), content(last.0, last.1)) {
        (Some(wanted), Some(is)) => wanted.same(&is),
        _ => false,
    }
}

/// What a request makes of a field other than the load mode, where two settings can say the same.
fn content(setting: &str, value: &Value) -> Option<Value> {
    let on = value.same(&Value::Bool(true));
    match setting {
        "rope_scale" => value.number().map(|factor| Value::Float(1.0 / factor)),
        "rope_freq_scale" | "verbosity" => value.number().map(Value::Float),
        "verbose" => on.then(|| Value::Float(f64::from(i32::MAX))),
        "rerank" => on.then(|| Value::text("rank")),
        "pooling" | "samplers" | "sampler_seq" => Some(value.clone()),
        _ => None,
    }
}

/// How the model file gets into memory, as far as it is asked or known.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    mapped: Option<bool>,
    locked: Option<bool>,
    direct: Option<bool>,
}

/// What is asked of the load mode.
fn wanted(setting: &str, value: &Value) -> Option<Load> {
    let on = Some(value.same(&Value::Bool(true)));
    match setting {
        "mlock" => Some(Load { locked: on, ..Load::default() }),
        "mmap" => Some(Load { mapped: on, ..Load::default() }),
        "direct_io" => Some(Load { direct: on, ..Load::default() }),
        "load_mode" if !value.same(&Value::text("auto")) => mode(setting, value),
        _ => None,
    }
}

/// The load mode after a request that has the last word: it sets all of it.
fn mode(setting: &str, value: &Value) -> Option<Load> {
    let on = value.same(&Value::Bool(true));
    let word = match setting {
        "mlock" if on => "mlock".to_string(),
        "mmap" if on => "mmap".to_string(),
        "direct_io" if on => "dio".to_string(),
        "mmap" | "direct_io" => "none".to_string(),
        "load_mode" => value.to_string(),
        _ => return None,
    };
    let (mapped, locked, direct) = match word.as_str() {
        "mmap" => (Some(true), false, false),
        "none" => (Some(false), false, false),
        "mlock" => (Some(false), true, false),
        "mmap+mlock" => (Some(true), true, false),
        "dio" => (Some(false), false, true),
        // It maps where it can.
        "auto" => (None, false, false),
        _ => return None,
    };
    Some(Load { mapped, locked: Some(locked), direct: Some(direct) })
}
