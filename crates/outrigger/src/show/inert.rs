//! Text of models, tools and files, made harmless for a terminal, and for a shell.

/// Takes control characters out, so that no text can move the cursor, hide a line,
/// or type. Line breaks and tabs stay.
pub(crate) fn inert(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => clean.push(c),
            '\r' => {}
            // Direction overrides make text read otherwise than it is.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => clean.push('\u{fffd}'),
            c if c.is_control() => clean.push('\u{fffd}'),
            c => clean.push(c),
        }
    }
    clean
}

/// Text as one word of a command that a person may paste.
pub(crate) fn word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,@%=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", inert(text).replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::{inert, word};

    #[test]
    fn a_word_stays_one_word_in_a_shell() {
        for (text, expected) in [
            ("get_issue", "get_issue"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$(id);`id`", "'$(id);`id`'"),
            ("it's\x1b", "'it'\\''s\u{fffd}'"),
        ] {
            assert_eq!(word(text), expected);
        }
    }

    #[test]
    fn terminal_sequences_are_inert() {
        for (text, expected) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\x1b[2Jgone", "\u{fffd}[2Jgone"),
            ("a\rb\u{9b}31m", "ab\u{fffd}31m"),
            ("safe\u{202e}txt.exe", "safe\u{fffd}txt.exe"),
        ] {
            assert_eq!(inert(text), expected);
        }
    }
}
