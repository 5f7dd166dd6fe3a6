//! A text in the export format, and where in it fields are.

use crate::field::Field;
use crate::gap::{Fault, Gap, Reason};
use std::ops::Range;
use std::path::PathBuf;

/// A text in the export format and what it is called in gaps.
pub(crate) struct Text {
    pub(crate) source: PathBuf,
    pub(crate) bytes: Vec<u8>,
    /// Longest value that is read, in bytes.
    pub(crate) longest: u64,
}

/// The places of a field's name and value in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) name: Range<usize>,
    pub(crate) value: Range<usize>,
}

impl Text {
    pub(crate) fn name(&self, span: &Span) -> &[u8] {
        self.bytes.get(span.name.clone()).unwrap_or_default()
    }

    pub(crate) fn value(&self, span: &Span) -> Result<&[u8], Gap> {
        let bytes = span.value.len() as u64;
        if bytes > self.longest {
            let reason = Reason::TooLarge { bytes, limit: self.longest };
            return Err(Fault { offset: span.value.start as u64, reason }.at(&self.source));
        }
        Ok(self.bytes.get(span.value.clone()).unwrap_or_default())
    }

    pub(crate) fn field(&self, span: &Span) -> Result<Field, Gap> {
        Ok(Field::new(self.name(span), self.value(span)?))
    }
}
