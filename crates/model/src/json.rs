//! Reads and writes objects without losing the text of their values.
//!
//! Must never know a provider.

use outrigger_agent::Raw;
use outrigger_agent::json::arguments_fault;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The fields of an endpoint, as they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [(String, Raw)]);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
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
        serde_json::to_string(self).expect("made of text alone")
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.fields())
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
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
        deserializer.deserialize_map(ObjectVisitor)
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
