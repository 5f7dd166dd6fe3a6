//! Making foreign text safe to look at.

/// Longest excerpt, in characters.
const LONGEST: usize = 240;

/// A short, safe rendering of raw bytes: invalid UTF-8 replaced, control characters (escape sequences among them)
/// made visible, long text cut.
pub fn excerpt(bytes: &[u8]) -> String {
    // A gigabyte line must not be copied to show its beginning.
    let head = &bytes[..bytes.len().min(LONGEST * 4)];
    let text = String::from_utf8_lossy(head);
    let mut shown = String::new();
    let mut cut = bytes.len() > head.len();
    for (count, c) in text.trim_end_matches(['\n', '\r']).chars().enumerate() {
        if count >= LONGEST {
            cut = true;
            break;
        }
        push_safe(&mut shown, c);
    }
    if cut {
        shown.push('…');
    }
    shown
}

/// The whole text with control characters made visible.
pub fn safe(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        push_safe(&mut shown, c);
    }
    shown
}

fn push_safe(shown: &mut String, c: char) {
    match c {
        '\t' => shown.push(' '),
        // Direction overrides reorder what a terminal shows.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {
            shown.extend(c.escape_unicode());
        }
        c if c.is_control() => shown.extend(c.escape_default()),
        c => shown.push(c),
    }
}

/// The text without terminal escape sequences (CSI and OSC), for matching only: what is shown keeps them visible.
pub fn without_escapes(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            plain.push(c);
            continue;
        }
        match chars.peek() {
            Some('[') => {
                chars.next();
                for c in chars.by_ref() {
                    if ('\u{40}'..='\u{7e}').contains(&c) {
                        break;
                    }
                }
            }
            Some(']') => {
                while let Some(c) = chars.next() {
                    if c == '\u{7}' {
                        break;
                    }
                    if c == '\u{1b}' {
                        chars.next();
                        break;
                    }
                }
            }
            _ => {
                chars.next();
            }
        }
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escape_sequences_are_shown_not_obeyed() {
        assert_eq!(excerpt(b"a\x1b[2Jb\n"), "a\\u{1b}[2Jb");
        assert_eq!(without_escapes("\u{1b}[32mI\u{1b}[0m ok"), "I ok");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(excerpt("x".repeat(10_000).as_bytes()).chars().count(), LONGEST + 1);
    }

    proptest! {
        #[test]
        fn nothing_a_terminal_obeys_survives(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(!excerpt(&bytes).chars().any(char::is_control));
        }

        #[test]
        fn stripping_never_panics(text in ".*") {
            let _ = without_escapes(&text);
        }
    }
}
