//! Why a command could not do its job, and what to do next.

use ascertain_engines::text::safe;
use std::fmt;

/// Exit code of a command that could not do its job.
pub const COULD_NOT: u8 = 2;

/// A failure as the user sees it: what was being done, why it failed, what to do next.
#[derive(Debug)]
pub struct Failure {
    /// What failed and why, without a full stop.
    pub text: String,
    /// What to do next, one line each.
    pub hints: Vec<String>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(text: impl fmt::Display) -> Failure {
        Failure { text: text.to_string(), hints: Vec::new() }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl fmt::Display) -> Failure {
        self.hints.push(hint.to_string());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names of files and processes are foreign text.
        write!(f, "error: {}", safe(&self.text))?;
        for hint in &self.hints {
            write!(f, "\n  hint: {}", safe(hint))?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
