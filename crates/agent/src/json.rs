//! What a model's JSON must be so that every reader takes it for the same.
//!
//! Owns the bounds of it. Grammar alone is not enough: it lets a half of a surrogate pair
//! stand alone, the same key stand twice, and lists nest without end, and readers fail on
//! those or differ about them. Must never change a text.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;

use crate::limits::{ARGUMENT_DEPTH_MAX, JSON_DEPTH_MAX};

/// What is wrong with the arguments of a call; nothing if they are one JSON object that can
/// only be read in one way.
#[must_use]
pub fn arguments_fault(text: &str) -> Option<String> {
    if !text.trim_start().starts_with('{') {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text);
        return Some(match is_json {
            Ok(_) => "expected a JSON object".to_owned(),
            Err(error) => error.to_string(),
        });
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = Strict { depth_left: ARGUMENT_DEPTH_MAX }.deserialize(&mut reader);
    read.and_then(|()| reader.end()).err().map(|error| error.to_string())
}

/// Reads a value whole and keeps nothing of it.
#[derive(Clone, Copy)]
struct Strict {
    depth_left: usize,
}

impl Strict {
    fn within<E: Error>(self) -> Result<Self, E> {
        let deep = || E::custom(format_args!("nested more than {ARGUMENT_DEPTH_MAX} deep"));
        self.depth_left.checked_sub(1).map(|depth_left| Self { depth_left }).ok_or_else(deep)
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let within = self.within()?;
        while items.next_element_seed(within)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let (within, mut keys) = (self.within()?, BTreeSet::new());
        while let Some(key) = fields.next_key::<String>()? {
            fields.next_value_seed(within)?;
            if let Some(twice) = keys.replace(key) {
                return Err(A::Error::custom(format_args!("the key {twice:?} stands there twice")));
            }
        }
        Ok(())
    }
}

/// Whether a piece of JSON holds nothing that a reader of JSON may fail on.
#[must_use]
pub fn is_sound(text: &str) -> bool {
    depth(text) <= JSON_DEPTH_MAX && lone_halves(text).is_empty()
}

/// How deep the objects and lists of a piece of JSON nest.
#[must_use]
pub fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut bytes) = (0_usize, 0, text.bytes());
    let mut in_string = false;
    while let Some(byte) = bytes.next() {
        match (in_string, byte) {
            (true, b'\\') => drop(bytes.next()),
            (_, b'"') => in_string = !in_string,
            (false, b'{' | b'[') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            (_, _) => {}
        }
    }
    deepest
}

/// A half of a surrogate pair, written as an escape of six bytes, that stands alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Half {
    /// Where its escape begins, in bytes.
    pub at: usize,
    /// Whether the other half may stand in another piece of the same text.
    pub edge: Edge,
}

/// Where in its string a half stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// A second half that its string begins with.
    Begins,
    /// A first half that its string ends with.
    Ends,
    /// Neither.
    Inside,
}

/// Bytes of an escape.
pub const ESCAPE_BYTES: usize = 6;

/// All halves in the strings of a piece of JSON that stand alone, in order.
#[must_use]
pub fn lone_halves(text: &str) -> Vec<Half> {
    let (bytes, mut halves) = (text.as_bytes(), Vec::new());
    if !text.contains("\\u") {
        return halves;
    }
    let (mut at, mut began) = (0, None);
    while let Some(byte) = bytes.get(at) {
        let escaped = began.filter(|_| *byte == b'\\');
        at += match (escaped, unit(bytes, at)) {
            (None, _) => {
                if *byte == b'"' {
                    began = if began.is_some() { None } else { Some(at + 1) };
                }
                1
            }
            (Some(_), Some(0xd800..=0xdbff)) => match unit(bytes, at + ESCAPE_BYTES) {
                Some(0xdc00..=0xdfff) => 2 * ESCAPE_BYTES,
                Some(_) | None => {
                    let ends = bytes.get(at + ESCAPE_BYTES) == Some(&b'"');
                    let edge = if ends { Edge::Ends } else { Edge::Inside };
                    halves.push(Half { at, edge });
                    ESCAPE_BYTES
                }
            },
            (Some(began), Some(0xdc00..=0xdfff)) => {
                let edge = if began == at { Edge::Begins } else { Edge::Inside };
                halves.push(Half { at, edge });
                ESCAPE_BYTES
            }
            (Some(_), Some(_)) => ESCAPE_BYTES,
            (Some(_), None) => 2,
        };
    }
    halves
}

/// The unit of UTF-16 that an escape at that place stands for.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + ESCAPE_BYTES)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn arguments_can_be_read_in_one_way_or_are_faulty() {
        let deep = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        let mut told = String::new();
        for text in [
            r#"{"a": [1.0, -2, null, true, "\ud83d\ude00"], "b": {"a": 1}} "#,
            r#"{"a": 1, "\u0061": 2}"#,
            r#"{"a": {"b": 1, "c": 2, "b": 3}}"#,
            r#"{"a": "\ud83d"}"#,
            r#"{"a": 1} {}"#,
            r#"{"a": "#,
            "[1]",
            "nothing",
            &deep(63),
            &deep(64),
            &deep(5_000),
            &format!("{{\"a\":{}", "[".repeat(100_000)),
        ] {
            let shown: String = text.chars().take(40).collect();
            told += &format!("{shown}: {}\n", arguments_fault(text).unwrap_or_default());
        }
        expect![[r#"
            {"a": [1.0, -2, null, true, "\ud83d\ude0: 
            {"a": 1, "\u0061": 2}: the key "a" stands there twice at line 1 column 21
            {"a": {"b": 1, "c": 2, "b": 3}}: the key "b" stands there twice at line 1 column 30
            {"a": "\ud83d"}: unexpected end of hex escape at line 1 column 14
            {"a": 1} {}: trailing characters at line 1 column 10
            {"a": : EOF while parsing a value at line 1 column 6
            [1]: expected a JSON object
            nothing: expected ident at line 1 column 2
            {"a":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[: 
            {"a":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[: nested more than 64 deep at line 1 column 70
            {"a":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[: nested more than 64 deep at line 1 column 69
            {"a":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[: nested more than 64 deep at line 1 column 69
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn halves_that_stand_alone_are_found() {
        let found = |text: &str| {
            let halves = lone_halves(text).into_iter();
            halves.map(|half| format!("{} {:?}", half.at, half.edge)).collect::<Vec<_>>().join(", ")
        };
        for (text, halves) in [
            (r#"["\ud83d\ude00"]"#, ""),
            (r#"["\\ud83d", "\\\\ude00", "\u00e9\n"]"#, ""),
            (r#"["\uD83D"]"#, "2 Ends"),
            (r#"["\ude00x"]"#, "2 Begins"),
            (r#"["a\ude00\ud83dx\ud83d"]"#, "3 Inside, 9 Inside, 16 Ends"),
            (r#"["\ud83d\ud83d\ude00"]"#, "2 Inside"),
            (r#""\ud83"#, ""),
            (r#""\u+83d""#, ""),
            ("\"\\uü83d\"", ""),
        ] {
            assert_eq!(found(text), halves, "{text}");
        }
    }

    #[test]
    fn depth_is_that_of_brackets_outside_of_strings() {
        for (text, deepest) in [("1", 0), (r#"["[[\"[[", {"a": []}]"#, 3), ("[]]]{", 1)] {
            assert_eq!(depth(text), deepest, "{text}");
        }
    }
}
