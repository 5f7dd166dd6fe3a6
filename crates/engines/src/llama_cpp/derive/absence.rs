//! What a complete log proves by a line that it does not have.

use super::statement::Statement;
use crate::llama_cpp::reader::Reader;
use ascertain_model::{Rung, Value};

/// Steps of a start that say that they run, and say nothing when they are switched off.
pub(super) fn left_out(reader: &mut Reader<'_>) {
    if !reader.is_running() || !reader.is_silence_evidence(4) {
        return;
    }
    let steps = [
        ("fit", Value::text("off"), "fitting params to device memory"),
        ("warmup", Value::Bool(false), "warming up the model with an empty run"),
    ];
    for (setting, off, line) in steps {
        let wants_off = reader.asked_value(setting).is_some_and(|asked| asked.same(&off));
        if !wants_off || reader.first_line(line).is_some() {
            continue;
        }
        let range = reader.whole_log();
        let start = reader.log_start();
        reader.state(
            Statement::new(setting, off, Rung::Acknowledged, "log", reader.log_name, range)
                .label("the whole start")
                .excerpt(format!("no line says: {line}"))
                .note("this release says so at every start that does it, and the log is complete and verbose enough")
                .of(start),
        );
    }
}
