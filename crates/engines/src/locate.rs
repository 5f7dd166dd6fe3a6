//! Where in a JSON text a value stands.
//!
//! Every verdict shows its proof as a byte range of the artifact, and JSON parsers throw positions away. This walks
//! the text once for a pointer; it trusts nothing and never allocates by what it reads.

use std::ops::Range;

/// The byte range of the value at an RFC 6901 pointer. `None` if the text has no such value.
pub fn locate(text: &[u8], pointer: &str) -> Option<Range<usize>> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.space();
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        match scanner.peek()? {
            b'{' => scanner.enter_member(&token)?,
            b'[' => scanner.enter_element(token.parse().ok()?)?,
            _ => return None,
        }
    }
    scanner.space();
    let start = scanner.at;
    scanner.skip(0)?;
    Some(start..scanner.at)
}

const DEEPEST: usize = 256;

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.space();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn enter_member(&mut self, name: &str) -> Option<()> {
        self.expect(b'{')?;
        loop {
            self.space();
            let start = self.at;
            self.string()?;
            let key: String = serde_json::from_slice(&self.text[start..self.at]).ok()?;
            self.expect(b':')?;
            self.space();
            if key == name {
                return Some(());
            }
            self.skip(0)?;
            self.expect(b',')?;
        }
    }

    fn enter_element(&mut self, index: usize) -> Option<()> {
        self.expect(b'[')?;
        for _ in 0..index {
            self.space();
            self.skip(0)?;
            self.expect(b',')?;
        }
        self.space();
        (self.peek()? != b']').then_some(())
    }

    fn string(&mut self) -> Option<()> {
        self.expect(b'"')?;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    fn skip(&mut self, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        self.space();
        match self.peek()? {
            b'"' => self.string(),
            open @ (b'{' | b'[') => {
                let close = if open == b'{' { b'}' } else { b']' };
                self.at += 1;
                loop {
                    self.space();
                    match self.peek()? {
                        byte if byte == close => {
                            self.at += 1;
                            return Some(());
                        }
                        b',' | b':' => self.at += 1,
                        _ => self.skip(depth + 1)?,
                    }
                }
            }
            _ => {
                let start = self.at;
                while self
                    .peek()
                    .is_some_and(|byte| !matches!(byte, b',' | b'}' | b']' | b':') && !byte.is_ascii_whitespace())
                {
                    self.at += 1;
                }
                (self.at > start).then_some(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at<'a>(text: &'a str, pointer: &str) -> Option<&'a str> {
        locate(text.as_bytes(), pointer).map(|range| &text[range])
    }

    #[test]
    fn finds_members_and_elements() {
        let text = r#"{ "a": [1, {"b/c": "x,}"}], "d": true }"#;
        assert_eq!(at(text, "/a/1/b~1c"), Some("\"x,}\""));
        assert_eq!(at(text, "/a/0"), Some("1"));
        assert_eq!(at(text, "/d"), Some("true"));
        assert_eq!(at(text, ""), Some(text));
        assert_eq!(at(text, "/a/2"), None);
        assert_eq!(at(text, "/nope"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in ".*", pointer in "(/[a-z0-9~]{0,3}){0,4}") {
            let _ = locate(text.as_bytes(), &pointer);
        }
    }
}
