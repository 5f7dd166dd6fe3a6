//! What is the matter with a part of a value.

use crate::Kind;
use std::ops::Range;

/// What is the matter with a part of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// What kind.
    pub kind: Kind,
    /// Which bytes of the value.
    pub range: Range<usize>,
    /// One line a person understands.
    pub text: String,
}

impl Issue {
    pub(crate) fn new(kind: Kind, range: Range<usize>, text: impl Into<String>) -> Issue {
        Issue { kind, range, text: text.into() }
    }
}
