//! Writes a request's body once, straight into its bytes, and reads objects
//! without losing the text of their values.
//!
//! Owns how raw JSON is spliced: never parsed, never encoded again. Must never
//! know a provider.

use outrigger_agent::json::arguments_fault;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The bytes of a body as they grow.
#[derive(Debug)]
pub(crate) struct Body(Vec<u8>);

impl Body {
    /// An empty body with room for `bytes`.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Appends a text that is JSON, or a part of it.
    pub(crate) fn raw(&mut self, text: &str) -> &mut Self {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    /// Appends a string.
    pub(crate) fn string(&mut self, text: impl fmt::Display) -> &mut Self {
        serde_json::to_writer(&mut self.0, &Shown(text))
            .expect("a string always serialises, and a vector takes it");
        self
    }

    /// Appends a number.
    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        self.raw(&number.to_string())
    }

    /// Appends a comma, but not behind an opening bracket.
    pub(crate) fn comma(&mut self) -> &mut Self {
        if !matches!(self.0.last(), Some(b'[' | b'{')) {
            self.0.push(b',');
        }
        self
    }

    /// The bytes.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Serialises what a value displays, piece by piece.
struct Shown<T>(T);

impl<T: fmt::Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// An object whose fields keep their order and the text of their values.
#[derive(Debug, Default, Clone)]
pub(crate) struct Object(Vec<(String, Box<RawValue>)>);

impl Object {
    /// Reads an object.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The fields, in order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), &**value))
    }

    /// A field's text.
    pub(crate) fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// A field that is a string.
    pub(crate) fn string(&self, name: &str) -> Option<String> {
        self.get(name).and_then(string)
    }

    /// Puts a field in its place, or at the end.
    pub(crate) fn set(&mut self, name: &str, value: Box<RawValue>) {
        match self.0.iter_mut().find(|(key, _)| key == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// The object's text.
    pub(crate) fn text(&self) -> String {
        let mut body = Body::with_capacity(64);
        body.raw("{");
        for (name, value) in &self.0 {
            body.comma().string(name).raw(":").raw(value.get());
        }
        body.raw("}");
        String::from_utf8(body.into_bytes()).expect("made of text alone")
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut object = Object::default();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    object.set(&name, value);
                }
                Ok(object)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// The raw text of a string.
pub(crate) fn quote(text: &str) -> Box<RawValue> {
    serde_json::value::to_raw_value(text).expect("a string always serialises")
}

/// The raw text of what was put together from parts that are JSON.
pub(crate) fn assembled(text: String) -> Box<RawValue> {
    RawValue::from_string(text).expect("put together from parts that are JSON")
}

/// The string that a raw text holds, if it holds one.
pub(crate) fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// The string that a raw text holds, borrowed where it has no escapes.
pub(crate) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(serde::Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(raw.get()).ok().map(|text| text.0)
}

/// Whether a text is one JSON object that can be read in one way, and nothing else.
pub(crate) fn is_object(text: &str) -> bool {
    arguments_fault(text).is_none()
}

/// The arguments of a call as an object: as they are, or, where the model wrote
/// something else, that text under `_raw`, so that it can be shown to the model again.
pub(crate) fn arguments_object(arguments: &str) -> String {
    if is_object(arguments) {
        arguments.trim().to_owned()
    } else if arguments.trim().is_empty() {
        "{}".to_owned()
    } else {
        format!("{{\"_raw\":{}}}", quote(arguments).get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_keeps_order_and_numbers() {
        let text = r#"{"z":1.10,"a":[1e400,"é"],"n":123456789012345678901234567890}"#;
        let mut object = Object::parse(text).unwrap();
        assert_eq!(object.text(), text);
        object.set("a", quote("new\n"));
        object.set("last", assembled("[]".into()));
        assert_eq!(
            object.text(),
            r#"{"z":1.10,"a":"new\n","n":123456789012345678901234567890,"last":[]}"#
        );
    }

    #[test]
    fn arguments_become_an_object() {
        for (arguments, object) in [
            (r#"{"a": 1.0}"#, r#"{"a": 1.0}"#),
            ("", "{}"),
            (r#"{"a":"#, r#"{"_raw":"{\"a\":"}"#),
            ("[1]", r#"{"_raw":"[1]"}"#),
            ("{} {}", r#"{"_raw":"{} {}"}"#),
            (r#"{"a":"\ud83d"}"#, r#"{"_raw":"{\"a\":\"\\ud83d\"}"}"#),
        ] {
            assert_eq!(arguments_object(arguments), object);
        }
    }
}
