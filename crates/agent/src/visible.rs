//! Text of models, tools, files and strangers, made fit for eyes and for prompts.
//!
//! Owns which characters act without being seen: they move a cursor, make text read
//! otherwise than it is, or spell words that a model reads and a person does not. Nothing
//! else in the workspace keeps a list of them.

/// What becomes of a character that nobody sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenCharPolicy {
    /// It goes: for a prompt, where a model would read whatever stood for it.
    Removed,
    /// U+FFFD stands for one, or for several in a row: for a terminal.
    Marked,
    /// Its escape stands for it, for example `\u{202e}`: for a name, and for what somebody
    /// answers for.
    Escaped,
}

/// A text without characters that nobody sees. Line breaks and tabs stay, and so do the
/// joiners and selectors of which emoji and the words of several languages are made, one
/// each behind a letter or a sign. Carriage returns are left out, unless they are escaped.
#[must_use]
pub fn visible(text: &str, hidden: HiddenCharPolicy) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut place = Place::default();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if matches!(char, '\n' | '\t') || !is_hidden(char) {
            place = Place { base: Some(char), ..Place::default() };
            clean.push(char);
        } else if place.takes(char, chars.peek().copied()) {
            clean.push(char);
        } else {
            match hidden {
                HiddenCharPolicy::Escaped => clean.extend(char.escape_unicode()),
                HiddenCharPolicy::Marked if char != '\r' && !place.marked => clean.push('\u{fffd}'),
                HiddenCharPolicy::Marked | HiddenCharPolicy::Removed => {}
            }
            place.marked |= char != '\r';
        }
    }
    clean
}

/// Where in a text the next character stands.
#[derive(Debug, Default)]
struct Place {
    /// The last character that is seen.
    base: Option<char>,
    /// What came behind it.
    selected: bool,
    joined: bool,
    marked: bool,
}

impl Place {
    /// Whether a character that nobody sees does nothing but shape those around it.
    fn takes(&mut self, char: char, next: Option<char>) -> bool {
        let foreign = |char: char| !char.is_ascii() && !is_hidden(char);
        let Some(base) = self.base.filter(|_| !self.marked) else { return false };
        match char {
            // How the sign before it is drawn; digits in a box are written so too.
            '\u{fe0e}' | '\u{fe0f}' if foreign(base) || next == Some('\u{20e3}') => {
                !self.joined && !std::mem::replace(&mut self.selected, true)
            }
            '\u{200c}' | '\u{200d}' if foreign(base) && next.is_some_and(foreign) => {
                !std::mem::replace(&mut self.joined, true)
            }
            _ => false,
        }
    }
}

/// Controls, zero width, blank letters, direction, separators that no editor shows,
/// selectors of variants, and the tags of Unicode, which spell hidden text.
fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_removed_marked_or_escaped() {
        for (text, removed, marked, escaped) in [
            ("plain\ttext\n", "plain\ttext\n", "plain\ttext\n", "plain\ttext\n"),
            ("\x1b[2Jgone", "[2Jgone", "\u{fffd}[2Jgone", "\\u{1b}[2Jgone"),
            ("a\r\nb\u{9b}31m", "a\nb31m", "a\nb\u{fffd}31m", "a\\u{d}\nb\\u{9b}31m"),
            ("safe\u{202e}txt", "safetxt", "safe\u{fffd}txt", "safe\\u{202e}txt"),
            ("a\u{e0041}\u{e0042}b", "ab", "a\u{fffd}b", "a\\u{e0041}\\u{e0042}b"),
            ("ls\u{200d}a\u{fe0f}", "lsa", "ls\u{fffd}a\u{fffd}", "ls\\u{200d}a\\u{fe0f}"),
            ("a\u{2028}b", "ab", "a\u{fffd}b", "a\\u{2028}b"),
        ] {
            assert_eq!(visible(text, HiddenCharPolicy::Removed), removed, "{text:?}");
            assert_eq!(visible(text, HiddenCharPolicy::Marked), marked, "{text:?}");
            assert_eq!(visible(text, HiddenCharPolicy::Escaped), escaped, "{text:?}");
        }
    }

    #[test]
    fn emoji_and_words_stay_whole_and_carry_nothing_besides() {
        for text in [
            "\u{26a0}\u{fe0f} \u{2764}\u{fe0f}\u{200d}\u{1f525} 1\u{fe0f}\u{20e3}",
            "\u{1f469}\u{200d}\u{1f4bb} \u{1f44d}\u{1f3fd}",
            "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
        ] {
            assert_eq!(visible(text, HiddenCharPolicy::Escaped), text);
        }
        for (text, kept) in [
            ("\u{1f44d}\u{fe0f}\u{fe0e}\u{fe0f}", "\u{1f44d}\u{fe0f}"),
            ("\u{1f44d}\u{e0101}\u{fe0f}x", "\u{1f44d}x"),
            ("\u{645}\u{200c}\u{200d}\u{62e}", "\u{645}\u{62e}"),
            ("\u{645}\u{200c}a", "\u{645}a"),
        ] {
            assert_eq!(visible(text, HiddenCharPolicy::Removed), kept, "{text:?}");
        }
    }
}
