//! Text of models, tools and files, made harmless for a terminal, and for a shell.

use outrigger_agent::{HiddenCharPolicy, visible};

/// Text that cannot move the cursor, hide a line, read otherwise than it is, or type. Line
/// breaks and tabs stay.
pub(crate) fn inert(text: &str) -> String {
    visible(text, HiddenCharPolicy::Marked)
}

/// Inert text for what somebody answers for: what nobody sees is written out.
pub(crate) fn escaped(text: &str) -> String {
    visible(text, HiddenCharPolicy::Escaped)
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
    use super::word;

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
}
