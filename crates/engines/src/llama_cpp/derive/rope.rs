//! The stretch of rotary positions. The log prints its inverse with six significant digits.

use super::statement::Statement;
use crate::llama_cpp::reader::Reader;
use ascertain_model::{Act, Rung, Seen, Subject, Value, Voice};

const DIGITS: i32 = 6;

pub(super) fn rope(reader: &mut Reader<'_>) {
    let printed = |seen: &Seen| match seen {
        Seen::Value(value) => value.number(),
        _ => None,
    };
    let mut last = None;
    for one in &mut reader.evidence {
        let states = one.witness == "log" && one.voice == Voice::Effective && one.subject == Subject::Value;
        if one.setting != "rope_freq_scale" || !states || one.start != reader.facts.start {
            continue;
        }
        let Some(factor) = printed(&one.seen).filter(|factor| factor.is_finite() && *factor > 0.0) else { continue };
        one.seen = Seen::Rounded(Value::Float(factor), decimals(factor));
        last = Some((factor, one.locus.clone(), one.excerpt.clone()));
    }
    let Some((factor, locus, excerpt)) = last else { return };
    let Some(asked) = reader.asked_value("rope_scale").and_then(|value| value.number()).filter(|asked| *asked > 0.0)
    else {
        return;
    };
    // One over the number asked for, printed as the engine prints it, is either the number in the log or another one.
    let same = round(1.0 / asked, DIGITS) == round(factor, DIGITS);
    // With so few digits no other number as short as this one is printed alike.
    let short = round(asked, DIGITS - 1) == asked;
    let value = if same && short { asked } else { round(1.0 / factor, DIGITS) };
    let mut statement = Statement::new(
        "rope_scale",
        Value::Float(value),
        Rung::Acknowledged,
        "log",
        &locus.artifact,
        locus.start..locus.end,
    )
    .label(locus.label.clone())
    .excerpt(excerpt)
    .note("the log states the inverse, freq_scale");
    if same && !short {
        statement = statement.echo();
    }
    reader.state(statement);
    if !same && factor == 1.0 && reader.asked_text("rope_scaling") == Some("none") {
        reader.silently(
            "rope_scale",
            Act::Ignores,
            "--rope-scaling none drops the scale",
            "ask for linear or yarn, or remove the scale",
        );
    }
}

/// How many decimals six significant digits are.
fn decimals(number: f64) -> u8 {
    (DIGITS - 1 - number.abs().log10().floor() as i32).clamp(0, 17) as u8
}

/// A number with so many significant digits.
fn round(number: f64, digits: i32) -> f64 {
    let precision = usize::try_from(digits - 1).unwrap_or(0);
    format!("{number:.precision$e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_digits() {
        assert_eq!(decimals(0.123457), 6);
        assert_eq!(decimals(0.0123457), 7);
        assert_eq!(decimals(4.0), 5);
        assert_eq!(round(0.3333333, 6), 0.333333);
        assert_eq!(round(1.0 / 3.0, 6), 0.333333);
    }
}
