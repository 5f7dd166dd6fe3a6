//! The same said in other words.

use crate::llama_cpp::reader::Reader;
use ascertain_model::{Rung, Seen, Subject, Value};
use serde_json::Value as Json;

/// The server writes JSON its own way: without blanks, keys in order, `0.10` as `0.1`.
pub(super) fn json(reader: &mut Reader<'_>) {
    let setting = "ui_config";
    let (Some(asked), Some(text)) = (reader.as_asked(setting), reader.asked_text(setting)) else { return };
    let Ok(wanted) = crate::strict::parse(text.as_bytes()) else { return };
    for one in &mut reader.evidence {
        let Seen::Value(Value::Text(seen)) = &one.seen else { continue };
        if one.setting == setting
            && one.rung > Rung::Delivered
            && one.subject == Subject::Value
            && crate::strict::parse(seen.as_bytes()).is_ok_and(|seen| same(&wanted, &seen))
        {
            one.seen = Seen::Value(asked.clone());
        }
    }
}

fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(x), Json::Number(y)) => x == y || x.is_f64() | y.is_f64() && x.as_f64() == y.as_f64(),
        (Json::Array(x), Json::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Json::Object(x), Json::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| same(x, y)))
        }
        (x, y) => x == y,
    }
}
