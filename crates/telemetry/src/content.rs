//! What people, models and tools said, in the form of the conventions, cut to a size: only for
//! those who asked for it.

use outrigger_agent::{Part, Reply};
use serde_json::{Value, json};

use crate::attributes::finish_reason;
use crate::limits::{CONTENT_BYTES_MAX, TEXT_BYTES_MAX};

pub(crate) const INPUT: &str = "gen_ai.input.messages";
pub(crate) const OUTPUT: &str = "gen_ai.output.messages";
pub(crate) const ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const RESULT: &str = "gen_ai.tool.call.result";

/// Messages of one attribute, up to its size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Messages {
    all: Vec<Value>,
    bytes: usize,
}

impl Messages {
    /// One more, unless there is no room for it.
    pub(crate) fn add(&mut self, message: Value) {
        let bytes = message.to_string().len();
        if self.bytes + bytes <= CONTENT_BYTES_MAX {
            self.bytes += bytes;
            self.all.push(message);
        }
    }

    pub(crate) fn said(&mut self, text: &str) {
        self.add(json!({ "role": "user", "parts": [{ "type": "text", "content": cut(text) }] }));
    }

    /// As the value of an attribute.
    pub(crate) fn text(&self) -> String {
        Value::Array(self.all.clone()).to_string()
    }
}

/// The beginning of a text.
pub(crate) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

/// What a model answered.
pub(crate) fn answer(reply: &Reply) -> Value {
    let part = |part: &Part| match part {
        Part::Text(text) => Some(json!({ "type": "text", "content": cut(text) })),
        Part::Thinking(text) => Some(json!({ "type": "reasoning", "content": cut(text) })),
        Part::Call(call) => Some(json!({
            "type": "tool_call",
            "id": call.id,
            "name": call.name,
            "arguments": cut(call.given()),
        })),
        Part::Opaque(_) => None,
    };
    let (mut parts, mut bytes) = (Vec::new(), 0);
    for part in reply.parts.iter().filter_map(part) {
        bytes += part.to_string().len();
        if bytes > CONTENT_BYTES_MAX / 2 {
            break;
        }
        parts.push(part);
    }
    let reason = finish_reason(&reply.stop);
    json!({ "role": "assistant", "parts": parts, "finish_reason": reason })
}
