//! The words of a text as PostgreSQL's index has them, and what is asked of it.
//!
//! Owns what a word is, so that both kinds of database find the same: letters and digits without
//! accents, in lower case, as SQLite's index takes texts apart. PostgreSQL's own ways depend on
//! how the database was set up.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::entries::{EntryPath, Words};
use crate::limits;

fn words(text: &str) -> impl Iterator<Item = String> {
    let separated = text.split(|char: char| !char.is_alphanumeric() && !is_combining_mark(char));
    let plain = |word: &str| -> String {
        let letters = word.nfd().filter(|char| !is_combining_mark(*char));
        letters.flat_map(char::to_lowercase).filter(|char| char.is_alphanumeric()).collect()
    };
    separated.map(plain).filter(|word| !word.is_empty() && word.len() <= limits::WORD_BYTES_MAX)
}

/// The words of a file, those of its path first and marked, as a literal. What is beyond the
/// limits is not found.
pub(crate) fn vector(path: &EntryPath, text: &[u8]) -> String {
    let mut places: BTreeMap<String, Vec<(usize, &str)>> = BTreeMap::new();
    let (mut place, mut bytes) = (0, 0);
    let text = std::str::from_utf8(text).unwrap_or_default();
    for (text, mark) in [(path.as_str(), "A"), (text, "")] {
        // Nothing follows on the path.
        place += 2;
        for word in words(text) {
            place += 1;
            bytes += limits::WORD_PLACE_BYTES;
            if place > limits::WORD_PLACES_MAX || bytes > limits::WORDS_BYTES_MAX {
                break;
            }
            let known = places.entry(word);
            if let std::collections::btree_map::Entry::Vacant(new) = &known {
                bytes += new.key().len() + limits::WORD_PLACE_BYTES;
            }
            known.or_default().push((place, mark));
        }
    }
    let mut literal = String::new();
    for (word, places) in places {
        write!(literal, "'{word}'").expect("a String takes everything");
        for (index, (place, mark)) in places.into_iter().enumerate() {
            let before = if index == 0 { ':' } else { ',' };
            write!(literal, "{before}{place}{mark}").expect("a String takes everything");
        }
        literal.push(' ');
    }
    literal
}

/// What is asked for, as a literal: all of the words, those of a phrase one after the other.
pub(crate) fn question(asked: &Words) -> String {
    let phrase = |(text, prefix): &(String, bool)| {
        let words: Vec<String> = words(text).map(|word| format!("'{word}'")).collect();
        let star = if *prefix && !words.is_empty() { ":*" } else { "" };
        format!("{}{star}", words.join(" <-> "))
    };
    let phrases = asked.phrases.iter().map(phrase).filter(|phrase| !phrase.is_empty());
    phrases.map(|phrase| format!("({phrase})")).collect::<Vec<_>>().join(" & ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn words_have_no_accents_no_case_and_no_signs() {
        let path = EntryPath::parse("notes/Caf\u{e9}.md").unwrap();
        let text = "It's a cafe\u{301}, isn't it?\nX-1: a\0";
        let asked = Words::parse("\"It's a\" CAF\u{c9} beg* near(c)").unwrap();
        expect![[r#"
            '1':16 'a':10,17 'cafe':4A,11 'isn':12 'it':8,14 'md':5A 'notes':3A 's':9 't':13 'x':15 
            ('it' <-> 's' <-> 'a') & ('cafe') & ('beg':*) & ('near' <-> 'c')"#]]
        .assert_eq(&format!("{}\n{}", vector(&path, text.as_bytes()), question(&asked)));
    }

    #[test]
    fn many_words_stay_within_what_an_index_takes() {
        let path = EntryPath::parse("x").unwrap();
        let many: String = (0..400_000).map(|number| format!("w{number} ")).collect();
        assert!(vector(&path, many.as_bytes()).len() < 1 << 20);
    }
}
