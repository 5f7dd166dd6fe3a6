//! Output formats, one file each. Everything a screen shows is also in the JSON.

pub mod explain;
pub mod json;
pub mod log;
pub mod text;

use anstyle::{AnsiColor, Style};
use ascertain_engines::text::safe;

/// How to draw on this terminal.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    /// Whether to use colour.
    pub colour: bool,
    /// Columns.
    pub width: usize,
}

impl Paint {
    fn with(self, style: Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    /// Secondary text.
    pub fn dim(self, text: &str) -> String {
        self.with(Style::new().dimmed(), text)
    }

    /// Headings.
    pub fn bold(self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }

    /// Text in the colour of a verdict.
    pub fn verdict(self, word: &str, text: &str) -> String {
        let colour = match word {
            "confirmed" => AnsiColor::Green,
            "adjusted" => AnsiColor::Cyan,
            "unproven" | "stale" | "not_applicable" => AnsiColor::Yellow,
            _ => AnsiColor::Red,
        };
        self.with(Style::new().fg_color(Some(colour.into())), text)
    }

    /// The name of a setting beside a line.
    pub fn setting(self, text: &str) -> String {
        self.with(Style::new().fg_color(Some(AnsiColor::Cyan.into())), text)
    }

    /// A message of a log, by its priority: 0 (emergency) to 7 (debug).
    pub fn priority(self, priority: Option<u8>, text: &str) -> String {
        match priority {
            Some(..=3) => self.verdict("contradicted", text),
            Some(4) => self.verdict("unproven", text),
            Some(7..) => self.dim(text),
            _ => text.to_string(),
        }
    }
}

/// The sign of a verdict, for those who do not see colours.
pub fn sign(word: &str) -> &'static str {
    match word {
        "confirmed" => "✓",
        "adjusted" => "~",
        "unproven" | "stale" => "?",
        "not_applicable" => "–",
        _ => "✗",
    }
}

/// A verdict's word for people.
pub fn spoken(word: &str) -> String {
    word.replace('_', " ")
}

/// Text made [safe] to show and cut in the middle to fit, counted in characters.
pub fn fit(text: &str, width: usize) -> String {
    let text = safe(text);
    let count = text.chars().count();
    if count <= width {
        return text;
    }
    if width < 2 {
        return text.chars().take(width).collect();
    }
    // The end of a path says more than its beginning.
    let head = (width - 1) / 3;
    let tail = width - 1 - head;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}…{end}")
}

/// Text made [safe] to show and broken into lines of at most `width` characters at blanks; longer words are broken where they must be.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(10);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let mut word = safe(word);
        loop {
            let count = word.chars().count();
            let gap = usize::from(length > 0);
            if length + gap + count <= width {
                if gap > 0 {
                    line.push(' ');
                }
                line.push_str(&word);
                length += gap + count;
                break;
            }
            if length > 0 {
                lines.push(std::mem::take(&mut line));
                length = 0;
                continue;
            }
            let head: String = word.chars().take(width).collect();
            word = word.chars().skip(width).collect();
            lines.push(head);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_fit_and_lose_nothing() {
        let text = "the draft model is loaded, then dropped: averyveryverylongwordthatdoesnotfit here";
        let lines = wrap(text, 20);
        assert!(lines.iter().all(|line| line.chars().count() <= 20), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
    }

    #[test]
    fn a_path_keeps_its_end() {
        assert_eq!(fit("/models/tiny-qwen35-mtp.gguf", 20), "/model…en35-mtp.gguf");
        assert_eq!(fit("short", 20), "short");
    }
}
