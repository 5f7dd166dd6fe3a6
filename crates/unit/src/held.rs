//! What the manager holds, from D-Bus values or from what `systemctl show` printed.
//!
//! Over D-Bus the words of commands are exact. `systemctl show` prints them with blanks between and without quotes, so
//! that they can be compared but not always split.

use crate::show::{self, Moment, Show};
use crate::words::quote;
use ascertain_model::service::ManagerState;
use serde_json::Value;

/// A command of which every word is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exact {
    /// The program.
    pub path: String,
    /// `argv`, variables not yet replaced.
    pub argv: Vec<String>,
    /// `no-env-expand`: no variables are replaced.
    pub no_variables: bool,
}

/// What the manager holds of one unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held {
    /// Its properties, as `systemctl show` would print them.
    pub show: Show,
    /// The commands of `ExecStart=`, where they were asked for over D-Bus.
    pub commands: Option<Vec<Exact>>,
}

impl Held {
    /// Reads what was collected.
    pub fn read(state: &ManagerState) -> Held {
        let mut held = Held::default();
        for (name, value) in &state.properties {
            for text in printed(name, value) {
                held.show.properties.push((name.clone(), text));
            }
        }
        let exact = ["ExecStartEx", "ExecStart"].into_iter().find_map(|name| state.properties.get(name)?.as_array());
        held.commands = exact.and_then(|list| list.iter().map(command).collect());
        held
    }
}

/// `[path, [word, …], flags or a truth value, …]`.
fn command(value: &Value) -> Option<Exact> {
    let fields = value.as_array()?;
    let argv = fields.get(1)?.as_array()?;
    let flags = fields.get(2).and_then(Value::as_array);
    Some(Exact {
        path: fields.first()?.as_str()?.to_string(),
        argv: argv.iter().map(|word| word.as_str().map(str::to_string)).collect::<Option<_>>()?,
        no_variables: flags.is_some_and(|flags| flags.iter().any(|flag| flag.as_str() == Some("no-env-expand"))),
    })
}

/// A property as `systemctl show` prints it: one text, or one for each entry of a list of commands.
fn printed(name: &str, value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Bool(true) => vec!["yes".to_string()],
        Value::Bool(false) => vec!["no".to_string()],
        Value::Number(number) => vec![number.to_string()],
        Value::Array(items) if name.starts_with("Exec") => items.iter().filter_map(printed_command).collect(),
        Value::Array(items) if name == "EnvironmentFiles" => items
            .iter()
            .filter_map(|item| {
                let (path, optional) = (item.get(0)?.as_str()?, item.get(1)?.as_bool()?);
                Some(format!("{path} (ignore_errors={})", if optional { "yes" } else { "no" }))
            })
            .collect(),
        Value::Array(items) => {
            let words: Vec<String> = items.iter().filter_map(Value::as_str).map(quote).collect();
            vec![words.join(" ")]
        }
        Value::Null | Value::Object(_) => Vec::new(),
    }
}

fn printed_command(value: &Value) -> Option<String> {
    let exact = command(value)?;
    let fields = value.as_array()?;
    let number = |index: usize| fields.get(index).and_then(Value::as_u64).unwrap_or(0);
    let time = |micros: u64| if micros == 0 { "n/a".to_string() } else { micros.to_string() };
    let ignores = match fields.get(2) {
        Some(Value::Bool(ignores)) => *ignores,
        Some(Value::Array(flags)) => flags.iter().any(|flag| flag.as_str() == Some("ignore-failure")),
        _ => false,
    };
    Some(format!(
        "{{ path={} ; argv[]={} ; ignore_errors={} ; start_time=[{}] ; stop_time=[{}] ; pid={} ; code=(null) ; status=0/0 }}",
        exact.path,
        exact.argv.join(" "),
        if ignores { "yes" } else { "no" },
        time(number(3)),
        time(number(5)),
        number(7),
    ))
}

/// A time stamp of a property: microseconds since 1970.
pub fn micros(show: &Show, name: &str) -> Option<u64> {
    show.text(name).and_then(show::moment).and_then(|Moment { micros, .. }| micros).filter(|micros| *micros > 0)
}
