//! The assistant's message, put together from its deltas.
//!
//! Strings grow, lists of numbered objects grow element by element, anything else
//! is taken as it comes. Must never drop a field because it is unknown.

use outrigger_agent::{Part, Raw};
use serde_json::value::RawValue;

use super::calls::Calls;
use crate::fault::Fault;
use crate::json::{self, Object, assembled, quote};
use crate::wire::{CallIds, Delta, read};

/// The message as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Message {
    fields: Vec<(String, Field)>,
    calls: Calls,
}

/// A field as far as it has come.
#[derive(Debug)]
enum Field {
    Text(String),
    List(Vec<Element>),
    Other(Box<RawValue>),
    /// The place of the tool calls.
    Calls,
}

/// An element of a list, for example of `reasoning_details`.
#[derive(Debug)]
enum Element {
    /// With its number, by which its deltas find it.
    Numbered(u64, Object),
    Whole(Box<RawValue>),
}

/// A whole message.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) native: Raw,
    pub(super) parts: Vec<Part>,
    pub(super) refusal: Option<String>,
}

impl Message {
    /// Takes a delta.
    pub(super) fn merge(
        &mut self,
        delta: &RawValue,
        sink: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Fault> {
        let delta: Object = read(delta.get(), "a delta")?;
        let explained = delta.get("reasoning_content").is_some_and(|text| text.get() != "null");
        for (name, value) in delta.fields().filter(|(_, value)| value.get() != "null") {
            if name == "tool_calls" {
                self.field(name, || Field::Calls);
                self.calls.merge(value, sink)?;
                continue;
            }
            if let Some(text) = json::text(value) {
                match name {
                    "content" if !text.is_empty() => sink(Delta::Text(&text)),
                    "reasoning_content" if !text.is_empty() => sink(Delta::Thinking(&text)),
                    "reasoning" if !explained && !text.is_empty() => sink(Delta::Thinking(&text)),
                    _ => {}
                }
                self.text(name, &text);
            } else if let Ok(list) = serde_json::from_str::<Vec<Box<RawValue>>>(value.get()) {
                self.list(name, list);
            } else {
                *self.field(name, || Field::Other(value.to_owned())) =
                    Field::Other(value.to_owned());
            }
        }
        Ok(())
    }

    fn text(&mut self, name: &str, text: &str) {
        match self.field(name, || Field::Text(String::new())) {
            // Servers repeat the role in every delta.
            Field::Text(all) if name == "role" => text.clone_into(all),
            Field::Text(all) => all.push_str(text),
            other @ (Field::List(_) | Field::Other(_)) => *other = Field::Text(text.to_owned()),
            Field::Calls => {}
        }
    }

    fn list(&mut self, name: &str, list: Vec<Box<RawValue>>) {
        let field = self.field(name, || Field::List(Vec::new()));
        let Field::List(all) = field else {
            *field = Field::Other(joined(list.iter().map(|element| element.get().to_owned())));
            return;
        };
        for raw in list {
            let object = Object::parse(raw.get()).ok();
            let number = object
                .as_ref()
                .and_then(|object| serde_json::from_str::<u64>(object.get("index")?.get()).ok());
            match (number, object) {
                (Some(number), Some(object)) => numbered(all, number, object),
                (_, _) => all.push(Element::Whole(raw)),
            }
        }
    }

    fn field(&mut self, name: &str, new: impl FnOnce() -> Field) -> &mut Field {
        let at = self.fields.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.fields.push((name.to_owned(), new()));
            self.fields.len() - 1
        });
        &mut self.fields[at].1
    }

    fn string(&self, name: &str) -> Option<&str> {
        self.fields.iter().find_map(|(known, field)| match field {
            Field::Text(text) if known == name && !text.is_empty() => Some(text.as_str()),
            Field::Text(_) | Field::List(_) | Field::Other(_) | Field::Calls => None,
        })
    }

    /// The message as the server takes it back, and its canonical parts.
    pub(super) fn finish(self, ids: CallIds) -> Result<Whole, Fault> {
        let mut parts = Vec::new();
        if let Some(text) = self.string("reasoning_content").or(self.string("reasoning")) {
            parts.push(Part::Thinking(text.to_owned()));
        }
        if let Some(text) = self.string("content") {
            parts.push(Part::Text(text.to_owned()));
        }
        let refusal = self.string("refusal").map(str::to_owned);
        let with_calls = !self.calls.is_empty();
        let (list, calls) = self.calls.finish(ids)?;
        parts.extend(calls.into_iter().map(Part::Call));

        let mut message = Object::default();
        if !self.fields.iter().any(|(name, _)| name == "role") {
            message.set("role", quote("assistant"));
        }
        for (name, field) in self.fields {
            let value = match field {
                Field::Text(text) => quote(&text),
                Field::List(list) => joined(list.into_iter().map(|element| match element {
                    Element::Numbered(_, object) => object.text(),
                    Element::Whole(raw) => raw.get().to_owned(),
                })),
                Field::Other(raw) => raw,
                Field::Calls if with_calls => list.clone(),
                Field::Calls => continue,
            };
            message.set(&name, value);
        }
        // Some servers refuse null beside calls, some that it is left out; none an empty text.
        if message.get("content").is_none_or(|content| content.get() == "null") {
            message.set("content", quote(""));
        }
        let native = Raw::new(message.text()).expect("put together from parts that are JSON");
        Ok(Whole { native, parts, refusal })
    }
}

/// Merges an element into the one of its number: what is written piece by piece
/// grows, anything else takes the place of what was there.
fn numbered(all: &mut Vec<Element>, number: u64, delta: Object) {
    let kind = delta.string("type");
    let known = all.iter_mut().rev().find_map(|element| match element {
        Element::Numbered(known, object)
            if *known == number && (kind.is_none() || object.string("type") == kind) =>
        {
            Some(object)
        }
        Element::Numbered(_, _) | Element::Whole(_) => None,
    });
    let Some(object) = known else {
        all.push(Element::Numbered(number, delta));
        return;
    };
    for (name, value) in delta.fields().filter(|(_, value)| value.get() != "null") {
        let grown = match (name, json::text(value), object.string(name)) {
            ("text" | "summary" | "data", Some(more), Some(text)) => quote(&(text + &more)),
            (_, _, _) => value.to_owned(),
        };
        object.set(name, grown);
    }
}

fn joined(texts: impl Iterator<Item = String>) -> Box<RawValue> {
    assembled(format!("[{}]", texts.collect::<Vec<_>>().join(",")))
}
