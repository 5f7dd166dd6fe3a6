//! Matching log lines against message templates.
//!
//! A template is literal text with holes: `llama threadpool init, n_threads = {value}`. A hole takes the shortest
//! run of characters up to the next literal, or the rest of the line when it stands last. The first literal may stand
//! anywhere in the line, since prefixes (time, level, function) differ between releases and log options; `^` at the
//! beginning of a template pins it to the beginning of the message.

/// A compiled template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pinned: bool,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Hole(String),
}

/// The text that stood in the holes of a matched line, by hole name; holes named `_` are left out.
pub type Holes<'a> = Vec<(String, &'a str)>;

impl Template {
    /// Compiles a template. Unbalanced braces are taken as text.
    pub fn new(text: &str) -> Template {
        let (pinned, mut rest) = match text.strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut parts: Vec<Part> = Vec::new();
        let mut literal = String::new();
        while let Some(open) = rest.find('{') {
            let name_end = rest[open + 1..].find('}').map(|close| open + 1 + close);
            match name_end {
                Some(close) if is_name(&rest[open + 1..close]) => {
                    literal.push_str(&rest[..open]);
                    if !literal.is_empty() {
                        parts.push(Part::Literal(std::mem::take(&mut literal)));
                    }
                    parts.push(Part::Hole(rest[open + 1..close].to_string()));
                    rest = &rest[close + 1..];
                }
                _ => {
                    literal.push_str(&rest[..=open]);
                    rest = &rest[open + 1..];
                }
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Template { pinned, parts }
    }

    /// The longest literal of the template: a line without it cannot match.
    pub fn key(&self) -> &str {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Literal(text) => Some(text.as_str()),
                Part::Hole(_) => None,
            })
            .max_by_key(|text| text.len())
            .unwrap_or("")
    }

    /// Matches one line. White space around the text of a hole is cut off.
    pub fn matches<'a>(&self, line: &'a str) -> Option<Holes<'a>> {
        let mut holes = Vec::new();
        let mut rest = line;
        let mut open: Option<&str> = None;
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                Part::Literal(text) => {
                    let at = if index == 0 && self.pinned {
                        rest.starts_with(text.as_str()).then_some(0)?
                    } else {
                        rest.find(text.as_str())?
                    };
                    if let Some(name) = open.take() {
                        push(&mut holes, name, &rest[..at]);
                    }
                    rest = &rest[at + text.len()..];
                }
                Part::Hole(name) => open = Some(name),
            }
        }
        if let Some(name) = open {
            push(&mut holes, name, rest);
        }
        Some(holes)
    }
}

fn push<'a>(holes: &mut Holes<'a>, name: &str, text: &'a str) {
    if name != "_" {
        holes.push((name.to_string(), text.trim()));
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hole<'a>(template: &str, line: &'a str) -> Option<&'a str> {
        Template::new(template).matches(line).and_then(|holes| holes.first().map(|(_, text)| *text))
    }

    #[test]
    fn a_hole_at_the_end_takes_the_rest_of_the_line() {
        assert_eq!(hole("n_threads = {value}", "cmn  init: llama threadpool init, n_threads = 2"), Some("2"));
    }

    #[test]
    fn a_hole_between_literals_takes_the_shortest_run() {
        let line = "srv load_model: initializing, n_slots = 4, n_ctx_slot = 2048, kv_unified = 'true'";
        assert_eq!(hole("n_slots = {value},", line), Some("4"));
        assert_eq!(hole("kv_unified = '{value}'", line), Some("true"));
    }

    #[test]
    fn a_line_without_the_literal_does_not_match() {
        assert_eq!(hole("n_threads = {value}", "n_thread = 2"), None);
        assert_eq!(hole("^warn: {value}", "x warn: y"), None);
        assert_eq!(hole("^warn: {value}", "warn: y"), Some("y"));
    }

    #[test]
    fn json_braces_are_text() {
        assert_eq!(hole("got {\"a\": {value}}", "got {\"a\": 3}"), Some("3"));
    }
}
