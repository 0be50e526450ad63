//! One content block, put together from its start and its deltas.
//!
//! A block without deltas keeps its text byte for byte; in one with deltas only
//! the fields that they name are written anew. Must never drop a field or a block
//! because it is unknown.

use outrigger_agent::{Part, Raw};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

use crate::fault::Fault;
use crate::halves::mended;
use crate::json::{self, Object, arguments_object, assembled, quote};
use crate::wire::{CallIds, Delta, read};

/// A block that is being streamed.
#[derive(Debug)]
pub(super) struct Block {
    kind: String,
    start: Object,
    start_text: String,
    changes: Vec<(String, Change)>,
    /// Which call of the reply it is, and of which tool.
    call: Option<(usize, String)>,
    open: bool,
}

/// What the deltas do to a field.
#[derive(Debug)]
enum Change {
    /// Appends to its string.
    Append(String),
    /// Appends to its list.
    Push(Vec<Box<RawValue>>),
    /// Is the text of its JSON.
    Json(String),
    /// Takes its place.
    Set(Box<RawValue>),
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    signature: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    partial_json: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    citation: Option<&'a RawValue>,
}

impl Block {
    /// A block as it starts; `calls` counts the tool calls before it.
    pub(super) fn start(
        text: &RawValue,
        calls: usize,
        sink: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Self, Fault> {
        let start: Object = read(text.get(), "a content block")?;
        let kind = start
            .string("type")
            .ok_or_else(|| Fault::garbled("a content block of the stream has no type"))?;
        let call = if kind == "tool_use" {
            let name = start.string("name").filter(|name| !name.is_empty());
            let name =
                name.ok_or_else(|| Fault::garbled("a tool call of the stream has no name"))?;
            sink(Delta::Arguments { call: calls, name: &name, delta: "" });
            Some((calls, name))
        } else {
            None
        };
        let start_text = text.get().to_owned();
        Ok(Self { kind, start, start_text, changes: Vec::new(), call, open: true })
    }

    /// Whether it is a call of one of our tools.
    pub(super) fn is_call(&self) -> bool {
        self.call.is_some()
    }

    /// Whether its end has not come.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Notes its end.
    pub(super) fn close(&mut self) {
        self.open = false;
    }

    /// Takes a delta.
    pub(super) fn delta(
        &mut self,
        delta: &RawValue,
        sink: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Fault> {
        if !self.open {
            return Err(Fault::garbled("a delta of the stream comes after its block's end"));
        }
        let piece: Piece<'_> = read(delta.get(), "a delta")?;
        let missing = || Fault::garbled(format!("a {} of the stream is empty", piece.r#type));
        match &*piece.r#type {
            "text_delta" => {
                let text = piece.text.as_deref().ok_or_else(missing)?;
                sink(Delta::Text(text));
                self.append("text", text);
            }
            "thinking_delta" => {
                let thinking = piece.thinking.as_deref().ok_or_else(missing)?;
                sink(Delta::Thinking(thinking));
                self.append("thinking", thinking);
            }
            "signature_delta" => {
                self.append("signature", piece.signature.as_deref().ok_or_else(missing)?);
            }
            "input_json_delta" => {
                let text = piece.partial_json.as_deref().ok_or_else(missing)?;
                if let Some((call, name)) = &self.call {
                    sink(Delta::Arguments { call: *call, name, delta: text });
                }
                match self.change("input", || Change::Json(String::new())) {
                    Change::Json(json) => json.push_str(text),
                    Change::Append(_) | Change::Push(_) | Change::Set(_) => {}
                }
            }
            "citations_delta" => {
                self.push("citations", vec![piece.citation.ok_or_else(missing)?.to_owned()]);
            }
            _ => self.unknown(delta)?,
        }
        Ok(())
    }

    /// A delta of a later version of the API: its strings are appended to the
    /// fields of the same name, its lists too, and anything else takes their place.
    fn unknown(&mut self, delta: &RawValue) -> Result<(), Fault> {
        let delta: Object = read(delta.get(), "a delta")?;
        for (name, value) in delta.fields().filter(|(name, _)| *name != "type") {
            if let Some(text) = json::string(value) {
                self.append(name, &text);
            } else if let Ok(list) = serde_json::from_str::<Vec<Box<RawValue>>>(value.get()) {
                self.push(name, list);
            } else if value.get() != "null" {
                let value = value.to_owned();
                *self.change(name, || Change::Set(value.clone())) = Change::Set(value.clone());
            }
        }
        Ok(())
    }

    fn append(&mut self, field: &str, text: &str) {
        if let Change::Append(all) = self.change(field, || Change::Append(String::new())) {
            all.push_str(text);
        }
    }

    fn push(&mut self, field: &str, list: Vec<Box<RawValue>>) {
        if let Change::Push(all) = self.change(field, || Change::Push(Vec::new())) {
            all.extend(list);
        }
    }

    fn change(&mut self, field: &str, new: impl FnOnce() -> Change) -> &mut Change {
        let at = self.changes.iter().position(|(name, _)| name == field).unwrap_or_else(|| {
            self.changes.push((field.to_owned(), new()));
            self.changes.len() - 1
        });
        &mut self.changes[at].1
    }

    /// The block as the API takes it back, and its canonical part.
    pub(super) fn finish(self, ids: CallIds) -> (Raw, Part) {
        let Self { kind, mut start, start_text, changes, call: tool, open: _ } = self;
        let changed = !changes.is_empty();
        let mut arguments = None;
        for (field, change) in changes {
            let value = match change {
                Change::Append(text) => {
                    quote(&format!("{}{text}", start.string(&field).unwrap_or_default()))
                }
                Change::Push(list) => extended(start.get(&field), list),
                Change::Json(text) if text.trim().is_empty() => continue,
                Change::Json(text) => {
                    let text = mended(&text).into_owned();
                    let object = assembled(arguments_object(&text));
                    arguments = Some(text);
                    object
                }
                Change::Set(value) => value,
            };
            start.set(&field, value);
        }
        let part = match kind.as_str() {
            "text" => Part::Text(start.string("text").unwrap_or_default()),
            "thinking" => Part::Thinking(start.string("thinking").unwrap_or_default()),
            _ => match tool {
                Some((index, name)) => {
                    let input = || start.get("input").map(|input| input.get().to_owned());
                    let arguments = arguments.or_else(input).unwrap_or_default();
                    Part::Call(ids.call(start.string("id"), index, name, &arguments))
                }
                None => Part::Opaque(kind),
            },
        };
        let text = if changed { start.text() } else { start_text };
        (Raw::new(text).expect("put together from parts that are JSON"), part)
    }
}

/// A list with more elements behind it.
fn extended(list: Option<&RawValue>, more: Vec<Box<RawValue>>) -> Box<RawValue> {
    let mut all: Vec<Box<RawValue>> =
        list.and_then(|list| serde_json::from_str(list.get()).ok()).unwrap_or_default();
    all.extend(more);
    let texts: Vec<&str> = all.iter().map(|element| element.get()).collect();
    assembled(format!("[{}]", texts.join(",")))
}
