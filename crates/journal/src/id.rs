//! 128-bit identifiers: boots, machines, invocations, files.

use std::fmt;
use std::str::FromStr;

/// A 128-bit identifier as systemd writes it: 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Id128(pub [u8; 16]);

impl Id128 {
    /// Whether all bits are 0, which systemd never uses for an identifier.
    pub fn is_null(&self) -> bool {
        self.0 == [0; 16]
    }
}

impl fmt::Display for Id128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Id128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Not 32 hexadecimal digits, with or without the dashes of a UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an identifier of 32 hexadecimal digits: {0:?}")]
pub struct NotAnId(pub String);

impl FromStr for Id128 {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let mut bytes = [0; 16];
        let mut digits = text.chars().filter(|c| *c != '-');
        for byte in &mut bytes {
            let mut digit = || digits.next().and_then(|c| c.to_digit(16));
            match (digit(), digit()) {
                (Some(high), Some(low)) => *byte = (high << 4 | low) as u8,
                _ => return Err(NotAnId(text.to_owned())),
            }
        }
        if digits.next().is_some() { Err(NotAnId(text.to_owned())) } else { Ok(Self(bytes)) }
    }
}
