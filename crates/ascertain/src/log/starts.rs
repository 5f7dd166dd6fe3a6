//! The starts of a unit, numbered, and which of them is meant.

use crate::failure::Failure;
use ascertain_journal::{Id128, Invocation};

/// Which start is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// 0 the newest, -1 the one before it, 1 the oldest.
    Number(i64),
    /// The beginning of its id.
    Id(String),
}

/// Fewest digits of an id that are taken for one; fewer look like a number.
const SHORTEST_ID: usize = 6;

impl std::str::FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // An id may be all digits: only a short one is a number.
        if let Ok(number) = text.parse::<i64>()
            && (number < 0 || text.len() < SHORTEST_ID)
        {
            return Ok(Which::Number(number));
        }
        let digits: String = text.chars().filter(|c| *c != '-').collect::<String>().to_ascii_lowercase();
        let is_id = (SHORTEST_ID..=32).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_id && !text.starts_with('-') {
            Ok(Which::Id(digits))
        } else {
            Err("write 0 for the newest start, -1 for the one before, or an id of which --list shows them".to_owned())
        }
    }
}

impl Which {
    /// The index of the start that is meant among all, oldest first.
    pub fn among(&self, starts: &[Id128], unit: &str) -> Result<usize, Failure> {
        let list = || format!("list them: ascertain log {unit} --list");
        match self {
            Which::Number(number) => {
                let count = starts.len() as i64;
                let index = if *number > 0 { number - 1 } else { count - 1 + number };
                usize::try_from(index).ok().filter(|index| *index < starts.len()).ok_or_else(|| {
                    let starts = if count == 1 { "1 start".to_owned() } else { format!("{count} starts") };
                    Failure::new(format!("there is no start {number} of {unit}: the journal knows {starts}"))
                        .hint(list())
                })
            }
            Which::Id(digits) => {
                let mut matching = (0..starts.len()).filter(|index| starts[*index].to_string().starts_with(digits));
                match (matching.next(), matching.count()) {
                    (Some(index), 0) => Ok(index),
                    (None, _) => {
                        Err(Failure::new(format!("no start of {unit} has an id that begins with {digits}"))
                            .hint(list()))
                    }
                    (Some(_), more) => {
                        Err(Failure::new(format!("{} starts of {unit} have ids that begin with {digits}", more + 1))
                            .hint("write more digits")
                            .hint(list()))
                    }
                }
            }
        }
    }
}

/// The ids, in order.
pub fn ids(starts: &[Invocation]) -> Vec<Id128> {
    starts.iter().map(|start| start.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_named_by_its_number_or_by_the_beginning_of_its_id() {
        let starts: Vec<Id128> = ["aaaaaa0", "aaaaaa1", "1234567"]
            .iter()
            .map(|head| format!("{head:0<32}").parse().expect("an id"))
            .collect();
        let index = |text: &str| text.parse::<Which>().map(|which| which.among(&starts, "x.service").ok());
        assert_eq!(index("0"), Ok(Some(2)));
        assert_eq!(index("-1"), Ok(Some(1)));
        assert_eq!(index("-2"), Ok(Some(0)));
        assert_eq!(index("-3"), Ok(None));
        assert_eq!(index("-1234567"), Ok(None));
        assert_eq!(index("1"), Ok(Some(0)));
        assert_eq!(index("4"), Ok(None));
        assert_eq!(index("AAAAAA1"), Ok(Some(1)));
        assert_eq!(index("1234567"), Ok(Some(2)));
        assert_eq!(index("aaaaaa"), Ok(None), "two begin so");
        assert_eq!(index("bbbbbb"), Ok(None));
        for wrong in ["", "x", "abc", "-aaaaaa0", "123456789012345678901234567890123"] {
            assert!(wrong.parse::<Which>().is_err(), "{wrong}");
        }
    }
}
