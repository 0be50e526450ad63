//! What is written to a terminal, without what moves its cursor and colours its text.
//!
//! Owns what a terminal answers to the questions of a program. Must never keep a screen: what is
//! looked for stands in what was written, one row after the other.

use super::terminal::{COLUMNS, ROWS};

/// How far it is in a sequence.
#[derive(Debug, Default)]
pub(super) enum Plain {
    #[default]
    Text,
    /// After an escape character.
    Escape,
    /// In a control sequence (ECMA-48, 5.4), with what it says so far.
    Control(Vec<u8>),
}

impl Plain {
    /// Takes what was written, in whatever pieces: gives the text of it, and what the terminal
    /// answers.
    pub(super) fn take(&mut self, bytes: &[u8]) -> (Vec<u8>, String) {
        let (mut text, mut answers) = (Vec::new(), String::new());
        for byte in bytes {
            *self = match (std::mem::take(self), byte) {
                (Self::Text, b'\x1b') => Self::Escape,
                (Self::Text, byte) => {
                    text.push(*byte);
                    Self::Text
                }
                (Self::Escape, b'[') => Self::Control(Vec::new()),
                (Self::Escape, _) => Self::Text,
                (Self::Control(said), 0x40..=0x7e) => {
                    answers.push_str(&answer(&said, *byte));
                    Self::Text
                }
                (Self::Control(mut said), byte) => {
                    said.push(*byte);
                    Self::Control(said)
                }
            };
        }
        (text, answers)
    }
}

/// What a terminal answers: how it is, where its cursor stands (in the last row, as in a full
/// screen), and that it is a VT220 (ECMA-48, DSR and DA).
fn answer(said: &[u8], end: u8) -> String {
    match (said, end) {
        (b"5", b'n') => "\x1b[0n".to_owned(),
        (b"6", b'n') => format!("\x1b[{ROWS};1R"),
        (b"18", b't') => format!("\x1b[8;{ROWS};{COLUMNS}t"),
        (b"" | b"0", b'c') => "\x1b[?62c".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_left_and_questions_are_answered_in_whatever_pieces_they_come() {
        let written = "\x1b[?2026h\r\x1b[1m› \x1b[0mab\x1b[K\r\n\x1b[6n\x1b7end\x1b[c";
        for size in [1, 2, 3, 100] {
            let (mut plain, mut text, mut answers) = (Plain::default(), Vec::new(), String::new());
            for piece in written.as_bytes().chunks(size) {
                let (more, answer) = plain.take(piece);
                text.extend(more);
                answers.push_str(&answer);
            }
            assert_eq!(String::from_utf8(text).unwrap(), "\r› ab\r\nend");
            assert_eq!(answers, "\x1b[30;1R\x1b[?62c");
        }
    }
}
