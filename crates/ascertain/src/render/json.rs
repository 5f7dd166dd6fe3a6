//! JSON: schema `ascertain.report/1`.

use serde::Serialize;
use std::io::{self, Write};

/// Writes a value as indented JSON with a line break behind it. What a terminal would obey, or show in another order,
/// is escaped: the value stays the same to a parser.
pub fn write<T: Serialize>(value: &T, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", escaped(serde_json::to_string_pretty(value)?))
}

/// The same in one line, without the line break.
pub fn compact<T: Serialize>(value: &T) -> io::Result<String> {
    Ok(escaped(serde_json::to_string(value)?))
}

fn escaped(text: String) -> String {
    // Outside strings JSON is ASCII without control characters but line breaks; inside, serde_json escapes those of
    // ASCII but for DEL.
    let obeyed = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
    };
    if !text.contains(obeyed) {
        return text;
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if obeyed(c) {
            plain.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_a_terminal_obeys_is_escaped_and_nothing_is_lost() {
        let value = serde_json::json!({ "a\u{9b}": "\u{1b}[2J\u{7f}\u{202e}\r\n\tü✓" });
        let mut out = Vec::new();
        super::write(&value, &mut out).expect("memory");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{7f}', '\u{202e}', '\r', '\t']), "{text:?}");
        assert!(text.contains("ü✓"));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
    }
}
