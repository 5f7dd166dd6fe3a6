//! What `--grep` looks for.

use crate::failure::Failure;
use ascertain_capture::redact::MARK;
use ascertain_journal::Query;
use regex_lite::{Regex, RegexBuilder};

/// Characters that mean something in a regular expression; `|` apart.
const SPECIAL: &[char] = &['\\', '.', '+', '*', '?', '(', ')', '[', ']', '{', '}', '^', '$'];

/// A regular expression, and the plain words it stands for where it is made of nothing else.
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: Regex,
    words: Option<Vec<String>>,
}

impl Pattern {
    /// Reads a pattern. As with `journalctl --grep`, one without capitals matches whatever the case.
    pub fn new(text: &str) -> Result<Pattern, Failure> {
        let any_case = !text.chars().any(char::is_uppercase);
        let regex = RegexBuilder::new(text).case_insensitive(any_case).build().map_err(|error| {
            Failure::new(format!("{text:?} is no regular expression: {error}")).hint(
                "a character with a meaning of its own is meant as it stands behind a backslash: 'n_ctx \\(train\\)'",
            )
        })?;
        Ok(Pattern { regex, words: words(text) })
    }

    /// Whether a message is one that is looked for.
    pub fn matches(&self, message: &str) -> bool {
        self.regex.is_match(message)
    }

    /// A quick search for messages that may match; `None` if there is nothing quick about it.
    pub fn query(&self) -> Option<Query<'static>> {
        Query::words(self.words.as_ref()?).ok()
    }
}

/// The words of `spec|draft|mtp`.
fn words(text: &str) -> Option<Vec<String>> {
    let plain = |word: &&str| {
        // What is looked for is what is shown, and secrets are shown as a mark that no raw message holds.
        word.is_ascii() && !word.is_empty() && !word.contains(SPECIAL) && !MARK.contains(&word.to_ascii_lowercase())
    };
    let words: Vec<&str> = text.split('|').collect();
    words.iter().all(plain).then(|| words.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_without_capitals_matches_in_any_case() {
        let matches = |pattern: &str, text: &str| Pattern::new(pattern).expect("a pattern").matches(text);
        assert!(matches("mtp|eagle", "an EAGLE draft"));
        assert!(matches("n_ctx +=", "n_ctx      = 4096"));
        assert!(matches("MTP", "MTP") && !matches("MTP", "mtp"));
        assert!(Pattern::new("(").is_err());
    }

    #[test]
    fn only_plain_words_are_searched_for_quickly() {
        let quick = |text: &str| Pattern::new(text).expect("a pattern").query().is_some();
        assert!(quick("spec|eagle|extra_buffer") && quick("no API key"));
        assert!(!quick("spec.*") && !quick("a||b") && !quick("") && !quick("größe"));
        // What stands in place of a secret is in no message.
        assert!(!quick("redacted") && !quick("key|act"));
    }
}
