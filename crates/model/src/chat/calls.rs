//! The tool calls of one message, put together from their deltas.
//!
//! Servers differ in how they number calls; every way seen is read here. Must
//! never merge two calls into one, nor drop an unknown field.

use outrigger_agent::Call;
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::json::{self, Object, arguments_object, assembled, quote};
use crate::limits::ITEMS_PER_REPLY_MAX;
use crate::wire::{CallIds, Delta, read};

/// The calls as far as they have come.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<PartialCall>);

/// A call as far as it has come.
#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    /// All fields but those below, in order; `function` holds the place of its own.
    fields: Object,
    function: Object,
    id: String,
    name: String,
    arguments: String,
}

impl Calls {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the calls of a delta.
    pub(super) fn merge(
        &mut self,
        list: &RawValue,
        sink: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Fault> {
        let list: Vec<Object> = read(list.get(), "a list of tool calls")?;
        for delta in list {
            let at = self.place(&delta)?;
            let known = !self.0[at].name.is_empty();
            let arguments = self.0[at].merge(&delta)?;
            let name = &self.0[at].name;
            if !name.is_empty() && (!known || !arguments.is_empty()) {
                sink(Delta::Arguments { call: at, name, delta: &arguments });
            }
        }
        Ok(())
    }

    /// Which call a delta belongs to. The index says so; but where there is none,
    /// or one index is used for all calls, another id means another call.
    fn place(&mut self, delta: &Object) -> Result<usize, Fault> {
        let index = delta.get("index").and_then(|index| serde_json::from_str(index.get()).ok());
        let id = delta.string("id").unwrap_or_default();
        let other = |call: &PartialCall| !id.is_empty() && !call.id.is_empty() && call.id != id;
        let found = match index {
            Some(_) => self.0.iter().rposition(|call| call.index == index),
            None => self.0.len().checked_sub(1),
        };
        match found {
            Some(at) if !other(&self.0[at]) => Ok(at),
            Some(_) | None if self.0.len() == ITEMS_PER_REPLY_MAX => {
                Err(Fault::garbled(format!("more than {ITEMS_PER_REPLY_MAX} tool calls")))
            }
            Some(_) | None => {
                self.0.push(PartialCall { index, ..PartialCall::default() });
                Ok(self.0.len() - 1)
            }
        }
    }

    /// The list as the server takes it back, and the canonical calls.
    pub(super) fn finish(self, ids: CallIds) -> Result<(Box<RawValue>, Vec<Call>), Fault> {
        let mut texts = Vec::new();
        let mut calls = Vec::new();
        for (index, growing) in self.0.into_iter().enumerate() {
            let (text, call) = growing.finish(ids, index)?;
            texts.push(text);
            calls.push(call);
        }
        Ok((assembled(format!("[{}]", texts.join(","))), calls))
    }
}

impl PartialCall {
    /// Takes a delta; gives what it adds to the arguments.
    fn merge(&mut self, delta: &Object) -> Result<String, Fault> {
        let mut added = String::new();
        for (name, value) in delta.fields() {
            match name {
                "index" => {}
                "id" => {
                    first(&mut self.id, value);
                    self.fields.set("id", quote(&self.id));
                }
                "function" => {
                    let function: Option<Object> = read(value.get(), "a tool call")?;
                    let function = function.unwrap_or_default();
                    added.push_str(&self.merge_function(&function));
                    self.fields.set("function", quote(""));
                }
                _ if value.get() == "null" => {}
                _ => self.fields.set(name, value.to_owned()),
            }
        }
        Ok(added)
    }

    fn merge_function(&mut self, function: &Object) -> String {
        let mut added = String::new();
        for (name, value) in function.fields() {
            match name {
                "name" => {
                    first(&mut self.name, value);
                    self.function.set("name", quote(&self.name));
                }
                "arguments" => {
                    added = arguments(value);
                    self.arguments.push_str(&added);
                    self.function.set("arguments", quote(""));
                }
                _ if value.get() == "null" => {}
                _ => self.function.set(name, value.to_owned()),
            }
        }
        added
    }

    /// Servers render the arguments of earlier calls into their prompts and fail
    /// on what is no object, so malformed ones go back as an object that holds them.
    fn finish(mut self, ids: CallIds, index: usize) -> Result<(String, Call), Fault> {
        if self.name.is_empty() {
            return Err(Fault::garbled("a tool call of the stream has no name"));
        }
        let call = ids.call(Some(self.id), index, self.name, &self.arguments);
        let replayed = if json::is_object(&call.arguments) {
            quote(&call.arguments)
        } else {
            quote(&arguments_object(&call.arguments))
        };
        self.function.set("arguments", replayed);
        self.fields.set("id", quote(&call.id));
        if self.fields.get("type").is_none() {
            self.fields.set("type", quote("function"));
        }
        self.fields.set("function", assembled(self.function.text()));
        Ok((self.fields.text(), call))
    }
}

/// The first value that is not empty stays: servers repeat it or leave it out.
fn first(field: &mut String, value: &RawValue) {
    if field.is_empty() {
        *field = json::string(value).unwrap_or_default();
    }
}

/// Arguments are a string of JSON; some servers give the JSON itself.
fn arguments(value: &RawValue) -> String {
    match json::string(value) {
        Some(text) => text,
        None if value.get() == "null" => String::new(),
        None => value.get().to_owned(),
    }
}
