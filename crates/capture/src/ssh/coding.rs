//! How bytes travel: words of requests with octal escapes, bodies of answers in base64. Neither can be mistaken for the
//! frame around it.

/// A word of a request, for the shell's `printf %b`.
pub(super) fn word(text: &[u8]) -> String {
    use std::fmt::Write as _;
    if text.is_empty() {
        // "No more output", which leaves the word empty and is not seen as the end of the list.
        return "\\c".to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for byte in text {
        if byte.is_ascii_alphanumeric() || b"/_.,:=@%+-".contains(byte) {
            out.push(char::from(*byte));
        } else {
            let _ = write!(out, "\\0{byte:03o}");
        }
    }
    out
}

/// Decodes one line of base64 and appends it; `false` if it is none.
pub(super) fn decode_line(line: &[u8], out: &mut Vec<u8>) -> bool {
    if !line.len().is_multiple_of(4) {
        return false;
    }
    for group in line.chunks_exact(4) {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        let mut bits = 0u32;
        for byte in group {
            let value = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                b'=' => 0,
                _ => return false,
            };
            bits = bits << 6 | u32::from(value);
        }
        // An equals sign before the end of a group was read as a zero: no base64 has one there.
        if padding > 2 || group[..4 - padding].contains(&b'=') {
            return false;
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        let all: Vec<u8> = (1..=255).collect();
        let script = format!("word=$(printf '%b.' '{}'); printf %s \"${{word%.}}\"", word(&all));
        let echoed = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
        assert_eq!(echoed.stdout, all);
        let script =
            "set -- a $(printf %s '\\c') b; for word; do word=$(printf '%b.' \"$word\"); echo \"<${word%.}>\"; done";
        let echoed = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
        assert_eq!((word(b"").as_str(), echoed.stdout.as_slice()), ("\\c", &b"<a>\n<>\n<b>\n"[..]));
        assert!(!word(b"a b*?[\\'\"\n").contains([' ', '*', '?', '[', '\'', '"', '\n']));
    }

    #[test]
    fn base64() {
        let decoded = |text: &str| {
            let mut out = Vec::new();
            decode_line(text.as_bytes(), &mut out).then_some(out)
        };
        assert_eq!(decoded("").as_deref(), Some(&b""[..]));
        assert_eq!(decoded("AA==").as_deref(), Some(&b"\0"[..]));
        assert_eq!(decoded("//8=").as_deref(), Some(&b"\xff\xff"[..]));
        assert_eq!(decoded("aGVsbG8h").as_deref(), Some(&b"hello!"[..]));
        assert_eq!(decoded("AA==AAAA").as_deref(), Some(&b"\0\0\0\0"[..]));
        for text in ["A", "AAA", "A===", "====", "A=A=", "AA=A", "AA A", "AA\n="] {
            assert_eq!(decoded(text), None, "{text:?}");
        }
    }
}
