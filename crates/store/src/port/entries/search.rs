//! Looking for words: what is asked, what is found, and the part of a text that is shown.

use outrigger_policy::MemoryScope;

use super::{EntryAddress, EntryStat, Error};
use crate::limits;

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// Words that must all be there, in the text or in the path, in any case and with or
    /// without accents; those in double quotes one after the other. A word of three letters
    /// and more that ends with `*` is the beginning of one. No other sign means anything. At
    /// most [`crate::limits::SEARCH_WORDS_MAX`]; what is beyond is not looked for.
    pub words: String,
    /// In which memory scopes, of those that the scope sees; empty: on all.
    pub memory_scopes: Vec<MemoryScope>,
    /// How many files, at most [`crate::limits::SEARCH_HITS_MAX`].
    pub limit: usize,
}

/// A file that has the words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Where.
    pub place: EntryAddress,
    /// What it is.
    pub node: EntryStat,
    /// A part of its text, around the first of the words, in one line.
    pub snippet: String,
}

/// The words of a search, as the index and the snippet need them.
#[derive(Debug)]
pub(crate) struct Words {
    /// Texts that are one after the other, and whether the last word is only begun.
    pub(crate) phrases: Vec<(String, bool)>,
}

impl Words {
    /// Takes a text apart. Signs that are in no word only separate words.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let mut phrases = Vec::new();
        for (index, part) in text.split('"').enumerate() {
            let quoted = index % 2 == 1;
            let pieces: Vec<&str> =
                if quoted { vec![part] } else { part.split_whitespace().collect() };
            for piece in pieces {
                let (piece, prefix) = match piece.strip_suffix('*') {
                    Some(begin) if !quoted => {
                        (begin, begin.chars().count() >= limits::PREFIX_CHARS_MIN)
                    }
                    _ => (piece, false),
                };
                if piece.chars().any(char::is_alphanumeric) {
                    let plain = piece.chars().filter(|char| !char.is_control() && *char != '"');
                    phrases.push((plain.collect(), prefix));
                }
            }
        }
        phrases.truncate(limits::SEARCH_WORDS_MAX);
        if phrases.is_empty() { Err(Error::Words) } else { Ok(Self { phrases }) }
    }

    /// In the language of the index, where whatever stands in double quotes is plain text.
    pub(crate) fn expression(&self) -> String {
        let phrase = |(text, prefix): &(String, bool)| {
            let star = if *prefix { "*" } else { "" };
            format!("\"{text}\"{star}")
        };
        self.phrases.iter().map(phrase).collect::<Vec<_>>().join(" AND ")
    }
}

/// The part of a text around the first place where one of the words is; its beginning where
/// they are spelled otherwise there.
pub(crate) fn snippet(text: &str, words: &Words) -> String {
    let lower = text.to_lowercase();
    // Where lower case has another length, places do not fit, and the beginning is shown.
    let same = lower.len() == text.len();
    let places = words.phrases.iter().filter_map(|(word, _)| lower.find(&word.to_lowercase()));
    let at = places.min().filter(|_| same).unwrap_or(0);
    let start = text.floor_char_boundary(at.saturating_sub(limits::SNIPPET_BYTES_MAX / 3));
    let end = text.floor_char_boundary((start + limits::SNIPPET_BYTES_MAX).min(text.len()));
    let part: String = text[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
    let before = if start > 0 { "... " } else { "" };
    let after = if end < text.len() { " ..." } else { "" };
    format!("{before}{part}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn words_are_no_language() {
        let texts = [
            "plain",
            "two words",
            "\"one after the other\" x",
            "begin*",
            "be*",
            "a OR b NEAR(c) -d path:e",
            "\"open",
            "it's; DROP TABLE",
            "*",
            "\" \"",
            "",
            "\"**\"",
            "c++ \u{e9}t\u{e9}",
            "a\"b\"c",
            "x\0y",
        ];
        let mut shown = String::new();
        for text in texts {
            let read = Words::parse(text).map(|words| words.expression());
            shown += &format!("{text:?}: {}\n", read.unwrap_or_else(|error| error.to_string()));
        }
        expect![[r#"
            "plain": "plain"
            "two words": "two" AND "words"
            "\"one after the other\" x": "one after the other" AND "x"
            "begin*": "begin"*
            "be*": "be"
            "a OR b NEAR(c) -d path:e": "a" AND "OR" AND "b" AND "NEAR(c)" AND "-d" AND "path:e"
            "\"open": "open"
            "it's; DROP TABLE": "it's;" AND "DROP" AND "TABLE"
            "*": there is no word to look for
            "\" \"": there is no word to look for
            "": there is no word to look for
            "\"**\"": there is no word to look for
            "c++ été": "c++" AND "été"
            "a\"b\"c": "a" AND "b" AND "c"
            "x\0y": "xy"
        "#]]
        .assert_eq(&shown);
    }

    #[test]
    fn what_is_shown() {
        let words = Words::parse("Needle hay").unwrap();
        let text = format!("{} a\n  needle\tin it {}", "x ".repeat(100), "y ".repeat(100));
        let shown = snippet(&text, &words);
        assert!(shown.contains("a needle in it") && shown.len() < 300, "{shown}");
        for text in ["", "short", "\u{130}\u{130} needle", &"\u{e9}".repeat(500)] {
            let shown = snippet(text, &words);
            assert!(shown.len() <= limits::SNIPPET_BYTES_MAX + 8, "{shown}");
        }
    }
}
