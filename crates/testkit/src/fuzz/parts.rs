//! Inputs of several texts in one file that a person can read: a line `@@ KIND NAME` begins the next of them.

/// One of the texts.
pub(super) struct Part<'a> {
    /// What it is.
    pub kind: &'a str,
    /// The rest of its first line.
    pub name: &'a str,
    /// What follows, up to the next such line; without the line break before that.
    pub bytes: &'a [u8],
}

impl Part<'_> {
    /// Its text, as a collector keeps it.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes).into_owned()
    }

    /// Its lines, one word each.
    pub fn lines(&self) -> Vec<String> {
        self.text().split('\n').map(str::to_owned).collect()
    }
}

/// The texts of an input. What stands before the first such line is of no kind.
pub(super) fn parts(bytes: &[u8]) -> Vec<Part<'_>> {
    let mut list = Vec::new();
    let mut rest = bytes;
    let (mut kind, mut name) = ("", "");
    loop {
        let next = if rest.starts_with(b"@@ ") { Some(0) } else { find(rest, b"\n@@ ").map(|at| at + 1) };
        let text = match next {
            None => rest,
            Some(at) => &rest[..at.saturating_sub(1)],
        };
        if !(text.is_empty() && kind.is_empty()) {
            list.push(Part { kind, name, bytes: text });
        }
        let Some(at) = next else { return list };
        let line = &rest[at + 3..];
        let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
        (kind, name) =
            std::str::from_utf8(&line[..end]).map_or(("", ""), |line| line.split_once(' ').unwrap_or((line, "")));
        rest = line.get(end + 1..).unwrap_or_default();
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}
