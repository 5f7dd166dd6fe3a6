//! Prometheus text, read with positions.

use std::ops::Range;

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<'a> {
    /// Metric name.
    pub name: &'a str,
    /// Labels, in the order they stand.
    pub labels: Vec<(&'a str, String)>,
    /// Value.
    pub value: f64,
    /// The whole line.
    pub range: Range<usize>,
}

impl Sample<'_> {
    /// The value of one label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }
}

/// All samples of a text. Lines that are not samples are passed over.
pub fn samples(text: &str) -> Vec<Sample<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((name, labels, value)) = sample(line) {
            found.push(Sample { name, labels, value, range: start..start + line.len() });
        }
    }
    found
}

type Parsed<'a> = (&'a str, Vec<(&'a str, String)>, f64);

fn sample(line: &str) -> Option<Parsed<'_>> {
    let name_end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let name = &line[..name_end];
    let mut rest = &line[name_end..];
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            rest = rest.trim_start_matches([',', ' ']);
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            let equals = rest.find('=')?;
            let key = rest[..equals].trim();
            rest = rest[equals + 1..].strip_prefix('"')?;
            let mut value = String::new();
            let mut chars = rest.char_indices();
            let end = loop {
                match chars.next()? {
                    (index, '"') => break index,
                    (_, '\\') => match chars.next()?.1 {
                        'n' => value.push('\n'),
                        other => value.push(other),
                    },
                    (_, other) => value.push(other),
                }
            };
            rest = &rest[end + 1..];
            labels.push((key, value));
        }
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some((name, labels, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_names_labels_and_positions() {
        let text = "# HELP x y\nx_total{position=\"0\",m=\"a\\\"b\"} 39\n\nplain 1.5e3\nbroken{\n";
        let found = samples(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].label("position"), Some("0"));
        assert_eq!(found[0].label("m"), Some("a\"b"));
        assert_eq!(found[0].value, 39.0);
        assert_eq!(&text[found[1].range.clone()], "plain 1.5e3");
    }

    proptest! {
        #[test]
        fn never_panics(text in ".*") {
            let _ = samples(&text);
        }
    }
}
