//! Values of settings, compared with sense.
//!
//! An operator writes `0.90`, the engine reports `0.8999999761581421`; an operator writes `alt,prod`, the engine
//! reports `["prod","alt"]`. Both are the same value. `8k` is not `8192` unless the engine reads it so, therefore
//! nothing here knows about suffixes: reading text into a [`Value`] is the engine's business.

use std::collections::BTreeSet;
use std::fmt;

/// One value of one setting, already read the way the engine reads it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A switch.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction, as it was written or reported.
    Float(f64),
    /// Anything that is compared letter by letter.
    Text(String),
    /// A list whose order does not matter (names, types).
    Set(BTreeSet<String>),
    /// Something that is there but must not be shown. Two secrets are never compared, only their presence is.
    Secret,
}

impl Value {
    /// A set from its members.
    pub fn set<I, S>(members: I) -> Value
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Value::Set(members.into_iter().map(Into::into).collect())
    }

    /// A text value.
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    /// Whether two values mean the same.
    ///
    /// Numbers are equal across `Int` and `Float`; fractions are equal when they name the same 32-bit float, which
    /// is what engines keep and print back with sixteen digits.
    pub fn same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => same_float(*a, *b),
            // Whole numbers are exact: the tolerance for fractions would make 16777217 the same as 16777216.
            (Value::Int(a), Value::Float(b)) | (Value::Float(b), Value::Int(a)) => *a as f64 == *b,
            (Value::Set(a), Value::Text(b)) | (Value::Text(b), Value::Set(a)) => a.len() == 1 && a.contains(b),
            (a, b) => a == b,
        }
    }

    /// Whether `self` agrees with `printed`, a rendering of it that was rounded to `decimals` digits.
    ///
    /// `None` means that the rounding hides the answer: `0.9999` printed as `1.00` could be `1.0`.
    pub fn same_rounded(&self, printed: &Value, decimals: u8) -> Option<bool> {
        let (Some(exact), Some(seen)) = (self.number(), printed.number()) else {
            return Some(self.same(printed));
        };
        // More digits than a float has are no rounding.
        if decimals > 17 {
            return Some(same_float(exact, seen));
        }
        // Ties are rounded differently by different libraries: only what no rounding can explain is another value.
        let scale = 10f64.powi(i32::from(decimals));
        if (exact - seen).abs() * scale > 0.5 + 1e-6 {
            return Some(false);
        }
        // Rounded alike. It is the same value only if nothing was lost in rounding.
        if same_float(exact, seen) { Some(true) } else { None }
    }

    /// The value as a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Float(x) => Some(*x),
            _ => None,
        }
    }
}

/// Engines keep 32-bit floats and print them with the digits of 64-bit ones. Where 32 bits hold neither value, they
/// say nothing.
fn same_float(a: f64, b: f64) -> bool {
    let (short_a, short_b) = (a as f32, b as f32);
    let holds = |short: f32| short.is_finite() && short != 0.0;
    a == b || (holds(short_a) && holds(short_b) && short_a == short_b) || (a.is_nan() && b.is_nan())
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(true) => f.write_str("true"),
            Value::Bool(false) => f.write_str("false"),
            Value::Int(n) => write!(f, "{n}"),
            // A 32-bit float printed with 64-bit digits is noise: show the shortest text that names the same float.
            Value::Float(x) if x.is_finite() => write!(f, "{}", *x as f32),
            Value::Float(x) => write!(f, "{x}"),
            Value::Text(text) => f.write_str(text),
            Value::Set(members) if members.is_empty() => f.write_str("none"),
            Value::Set(members) => {
                for (index, member) in members.iter().enumerate() {
                    if index > 0 {
                        f.write_str(",")?;
                    }
                    f.write_str(member)?;
                }
                Ok(())
            }
            Value::Secret => f.write_str("[redacted]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_equals_its_32_bit_echo() {
        assert!(Value::Float(0.95).same(&Value::Float(0.949999988079071)));
        assert!(Value::Float(0.9).same(&Value::Float(0.90)));
        assert!(!Value::Float(0.95).same(&Value::Float(0.951)));
        assert!(Value::Int(1).same(&Value::Float(1.0)));
        assert!(!Value::Int(16_777_217).same(&Value::Float(16_777_216.0)));
        assert!(!Value::Float(1e39).same(&Value::Float(1e300)));
        assert!(!Value::Float(1e-50).same(&Value::Float(0.0)));
    }

    #[test]
    fn sets_ignore_order_but_not_members() {
        assert!(Value::set(["alt", "prod"]).same(&Value::set(["prod", "alt"])));
        assert!(!Value::set(["alt"]).same(&Value::set(["prod", "alt"])));
        assert!(Value::set(["alt"]).same(&Value::text("alt")));
    }

    #[test]
    fn rounding_that_hides_the_answer_is_no_answer() {
        assert_eq!(Value::Float(0.9999).same_rounded(&Value::Float(1.0), 2), None);
        assert_eq!(Value::Float(0.5).same_rounded(&Value::Float(0.5), 2), Some(true));
        assert_eq!(Value::Float(0.5).same_rounded(&Value::Float(0.75), 2), Some(false));
        assert_eq!(Value::Float(0.0625).same_rounded(&Value::Float(0.062), 3), None);
        assert_eq!(Value::Float(1e100).same_rounded(&Value::Float(2e100), 255), Some(false));
    }

    #[test]
    fn a_float_is_shown_as_short_as_it_was_written() {
        assert_eq!(Value::Float(0.949999988079071).to_string(), "0.95");
    }
}
