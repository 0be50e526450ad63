//! What a server says of a tool, and how it is made harmless.

use outrigger_agent::{Digest, HiddenCharPolicy, Raw, visible};
use serde_json::Value;
use std::collections::BTreeMap;

use crate::{cut, limits};

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDescription {
    /// Its name at the server.
    pub tool: String,
    /// What the server says of it. Whoever runs the server wrote it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Raw,
}

impl ToolDescription {
    /// Digest of all that it says, whatever the order of the keys.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let schema = serde_json::from_str(self.schema.as_str()).unwrap_or(Value::Null);
        let whole = serde_json::json!([self.tool, self.description, canonical(schema)]);
        Digest::of(whole.to_string().as_bytes())
    }

    /// As people and models are shown it: without control characters and
    /// characters that can't be seen, and no longer than it may be.
    #[must_use]
    pub fn inert(&self) -> Self {
        let schema = serde_json::from_str(self.schema.as_str()).unwrap_or(Value::Null);
        let schema = clean_all(schema).to_string();
        Self {
            tool: clean(&self.tool, limits::OUTSIDE_NAME_CHARS_MAX),
            description: clean(&self.description, limits::DESCRIPTION_CHARS_MAX),
            schema: Raw::new(schema).expect("a JSON value is written as JSON"),
        }
    }
}

/// With the keys of every object in order.
fn canonical(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<_, _> =
                fields.into_iter().map(|(key, value)| (key, canonical(value))).collect();
            Value::Object(sorted.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(canonical).collect()),
        other => other,
    }
}

/// Every text within is cleaned.
fn clean_all(value: Value) -> Value {
    let text = |text: &str| clean(text, limits::DESCRIPTION_CHARS_MAX);
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (text(&key), clean_all(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(clean_all).collect()),
        Value::String(words) => Value::String(text(&words)),
        other => other,
    }
}

/// Text without terminal control and without characters that nobody sees and models read,
/// cut after `chars_max` characters.
#[must_use]
pub fn clean(text: &str, chars_max: usize) -> String {
    let seen = visible(&cut::plain(text.as_bytes()), HiddenCharPolicy::Removed);
    let mut chars = seen.chars();
    let mut kept: String = chars.by_ref().take(chars_max).collect();
    if chars.next().is_some() {
        kept.push_str(" [cut]");
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(tool: &str, description: &str, schema: &str) -> ToolDescription {
        let schema = Raw::new(schema.to_owned()).unwrap();
        ToolDescription { tool: tool.to_owned(), description: description.to_owned(), schema }
    }

    #[test]
    fn a_digest_knows_every_word_and_not_their_order() {
        let first = description("t", "d", r#"{"type":"object","properties":{"a":{},"b":{}}}"#);
        let same = description("t", "d", r#"{"properties": {"b":{}, "a":{}}, "type":"object"}"#);
        assert_eq!(first.digest(), same.digest());
        for other in [
            description("u", "d", first.schema.as_str()),
            description("t", "d ", first.schema.as_str()),
            description("t", "d", r#"{"type":"object","properties":{"a":{},"c":{}}}"#),
        ] {
            assert_ne!(first.digest(), other.digest());
        }
    }
}
