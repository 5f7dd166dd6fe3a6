//! Splits a command that stands in an environment variable into words, as a shell would: quotes and backslashes, and
//! nothing else. Nothing in it is expanded or run by a shell.

/// The words, or why there are none.
pub(super) fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some('\'') => break,
                        Some(character) => word.push(character),
                        None => return Err("a ' is not closed"),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some('"') => break,
                        Some('\\') => match characters.next() {
                            Some(character @ ('"' | '\\' | '$' | '`')) => word.push(character),
                            Some(character) => word.extend(['\\', character]),
                            None => return Err("a \" is not closed"),
                        },
                        Some(character) => word.push(character),
                        None => return Err("a \" is not closed"),
                    }
                }
            }
            '\\' => match characters.next() {
                Some(character) => word.get_or_insert_default().push(character),
                None => return Err("nothing follows the last \\"),
            },
            character if character.is_ascii_whitespace() => words.extend(word.take()),
            character => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    if words.first().is_none_or(String::is_empty) { Err("it is empty") } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_shell_would() {
        let text = r#" ssh  -F '/a b/c' -o "User=x \"y\" \z" a\ b '' x'y'"z" "#;
        assert_eq!(split(text).unwrap(), ["ssh", "-F", "/a b/c", "-o", r#"User=x "y" \z"#, "a b", "", "xyz"]);
        for text in ["", "  ", "''", "ssh 'a", "ssh \"a", "ssh \\"] {
            assert!(split(text).is_err(), "{text:?}");
        }
    }
}
