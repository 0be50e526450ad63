//! One output item, read for its canonical parts. Must never be written again:
//! the item itself is kept as it came.

use outrigger_agent::Part;
use serde::Deserialize;

use crate::fault::Fault;
use crate::wire::CallIds;

/// What is read of an item; all of it may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Item {
    r#type: String,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    content: Option<Vec<Content>>,
    summary: Option<Vec<Content>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Content {
    r#type: String,
    text: Option<String>,
    refusal: Option<String>,
}

/// What an item says.
#[derive(Debug)]
pub(super) enum Read {
    Parts(Vec<Part>),
    Refusal(String),
}

impl Item {
    /// The tool, if it is a call of one.
    pub(super) fn function(&self) -> Option<String> {
        (self.r#type == "function_call").then(|| self.name.clone().unwrap_or_default())
    }

    /// What it says; `calls` counts the tool calls before it.
    pub(super) fn read(self, ids: CallIds, calls: usize) -> Result<Read, Fault> {
        let part = match self.r#type.as_str() {
            "message" => return Ok(message(self.content.unwrap_or_default())),
            "reasoning" => {
                let texts = [self.summary, self.content].into_iter().flatten().flatten();
                let texts: Vec<String> = texts.filter_map(|content| content.text).collect();
                Part::Thinking(texts.join("\n\n"))
            }
            "function_call" => {
                let name = self.name.filter(|name| !name.is_empty());
                let name =
                    name.ok_or_else(|| Fault::garbled("a tool call of the stream has no name"))?;
                let arguments = self.arguments.unwrap_or_default();
                Part::Call(ids.call(self.call_id, calls, name, &arguments))
            }
            _ => Part::Opaque(self.r#type),
        };
        Ok(Read::Parts(vec![part]))
    }
}

fn message(contents: Vec<Content>) -> Read {
    let mut parts = Vec::new();
    for content in contents {
        if let Some(refusal) = content.refusal.filter(|_| content.r#type == "refusal") {
            return Read::Refusal(refusal);
        }
        parts.push(match content.text {
            Some(text) => Part::Text(text),
            None => Part::Opaque(content.r#type),
        });
    }
    Read::Parts(parts)
}
