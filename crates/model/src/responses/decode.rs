//! Puts a reply together from the events of a stream.
//!
//! The items are kept as the API gives them when each is done; deltas are only
//! shown. Must never accept a stream without `response.completed` or
//! `response.incomplete`.

use outrigger_agent::{Part, Raw, Stop, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

use super::item::{Item, Read};
use crate::fault::Fault;
use crate::halves::mended;
use crate::json::{Object, assembled, quote, text};
use crate::limits::ITEMS_PER_REPLY_MAX;
use crate::sse;
use crate::wire::{self, Answer, CallIds, Delta, Flow, count, read};

/// The reply as far as it has come.
#[derive(Debug)]
pub(crate) struct Decoder {
    ids: CallIds,
    response_id: Option<String>,
    items: BTreeMap<usize, Box<RawValue>>,
    /// Tool calls by the place of their item: which call, and of which tool.
    calls: BTreeMap<usize, (usize, String)>,
    end: Option<End>,
}

/// How the response ended.
#[derive(Debug)]
struct End {
    stop: Stop,
    output: Vec<Box<RawValue>>,
    usage: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    delta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(default)]
    output_index: Option<usize>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    output: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    usage: Option<Box<RawValue>>,
    #[serde(default)]
    incomplete_details: Option<Incomplete>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Incomplete {
    #[serde(default)]
    reason: Option<String>,
}

impl wire::Decoder for Decoder {
    fn event(
        &mut self,
        event: sse::Event<'_>,
        sink: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Flow, Fault> {
        // Some servers close with the marker of the other wire.
        if event.data == "[DONE]" {
            return Ok(Flow::More);
        }
        let data: Event<'_> = read(event.data, "an event")?;
        match &*data.r#type {
            "response.output_text.delta" => self.show(&data, |delta| sink(Delta::Text(delta)))?,
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.show(&data, |delta| sink(Delta::Thinking(delta)))?;
            }
            "response.function_call_arguments.delta" => {
                let known = data.output_index.and_then(|index| self.calls.get(&index));
                if let Some((call, name)) = known {
                    let call = *call;
                    self.show(&data, |delta| sink(Delta::Arguments { call, name, delta }))?;
                }
            }
            "response.output_item.added" => self.item_added(&data, sink)?,
            "response.output_item.done" => self.item_done(&data)?,
            "response.completed" | "response.incomplete" => {
                self.end(&data)?;
                return Ok(Flow::Done);
            }
            "response.failed" => {
                let response: Response<'_> = response(&data)?;
                let error = response.error.map_or("", RawValue::get);
                return Err(Fault::of_event(error));
            }
            "error" => return Err(Fault::of_event(event.data)),
            _ => {}
        }
        Ok(Flow::More)
    }

    fn is_whole(&self) -> bool {
        self.end.is_some()
    }

    fn finish(self: Box<Self>) -> Result<Answer, Fault> {
        let Self { ids, response_id, items, calls: _, end } = *self;
        let Some(End { mut stop, output, usage: account }) = end else {
            return Err(Fault::garbled("the stream ended before its `response.completed`"));
        };
        // Each item comes when it is done; servers that leave that out give all at the end.
        let items: Vec<Box<RawValue>> =
            if items.len() >= output.len() { items.into_values().collect() } else { output };
        let mut native = Vec::new();
        let mut parts: Vec<Part> = Vec::new();
        for raw in items {
            let item: Item = read(raw.get(), "an item")?;
            let calls = parts.iter().filter(|part| matches!(part, Part::Call(_))).count();
            let read = item.read(ids, calls)?;
            native.push(replayed(&raw, &read));
            match read {
                Read::Parts(more) => parts.extend(more),
                Read::Refusal(reason) => stop = Stop::Refused(reason),
            }
        }
        let usage = account.as_deref().map(usage).unwrap_or_default();
        Ok(Answer { response_id, parts, native, stop, usage })
    }
}

impl Decoder {
    /// One at the beginning of a stream.
    pub(crate) fn new(ids: CallIds) -> Self {
        let (items, calls) = (BTreeMap::new(), BTreeMap::new());
        Self { ids, response_id: None, items, calls, end: None }
    }

    fn show(&self, data: &Event<'_>, sink: impl FnOnce(&str)) -> Result<(), Fault> {
        let delta = data.delta.and_then(text);
        sink(&delta.ok_or_else(|| Fault::garbled("a delta of the stream is no text"))?);
        Ok(())
    }

    fn item_added(
        &mut self,
        data: &Event<'_>,
        sink: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Fault> {
        let (Some(index), Some(item)) = (data.output_index, data.item) else { return Ok(()) };
        let item: Item = read(item.get(), "an item")?;
        if let Some(name) = item.function() {
            let call = self.calls.len();
            sink(Delta::Arguments { call, name: &name, delta: "" });
            self.calls.insert(index, (call, name));
        }
        Ok(())
    }

    fn item_done(&mut self, data: &Event<'_>) -> Result<(), Fault> {
        let item =
            data.item.ok_or_else(|| Fault::garbled("a finished item of the stream is missing"))?;
        let next = self.items.last_key_value().map_or(0, |(index, _)| index + 1);
        if self.items.len() == ITEMS_PER_REPLY_MAX {
            return Err(Fault::garbled(format!("more than {ITEMS_PER_REPLY_MAX} items")));
        }
        self.items.insert(data.output_index.unwrap_or(next), item.to_owned());
        Ok(())
    }

    fn end(&mut self, data: &Event<'_>) -> Result<(), Fault> {
        let response: Response<'_> = response(data)?;
        let reason = response.incomplete_details.and_then(|details| details.reason);
        let stop = match (&*data.r#type, reason.as_deref()) {
            ("response.completed", _) => Stop::End,
            (_, Some("content_filter")) => Stop::Refused("content filter".to_owned()),
            (_, _) => Stop::OutputLimit,
        };
        self.response_id = response.id;
        self.end =
            Some(End { stop, output: response.output.unwrap_or_default(), usage: response.usage });
        Ok(())
    }
}

fn response<'a>(data: &Event<'a>) -> Result<Response<'a>, Fault> {
    let raw = data.response.ok_or_else(|| Fault::garbled("the end of the stream is empty"))?;
    read(raw.get(), "the end")
}

fn usage(account: &RawValue) -> Usage {
    let value: serde_json::Value = serde_json::from_str(account.get()).unwrap_or_default();
    Usage {
        input_tokens: count(&value, "/input_tokens"),
        output_tokens: count(&value, "/output_tokens"),
        cache_read_tokens: count(&value, "/input_tokens_details/cached_tokens"),
        cache_write_tokens: 0,
        reasoning_tokens: count(&value, "/output_tokens_details/reasoning_tokens"),
        native: Some(raw_of(account)),
    }
}

/// An item as it goes back: as it came, but for a call that got its id here, or whose
/// arguments were mended.
fn replayed(raw: &RawValue, read: &Read) -> Raw {
    let Read::Parts(parts) = read else { return raw_of(raw) };
    let (Some(Part::Call(call)), Ok(mut item)) = (parts.first(), Object::parse(raw.get())) else {
        return raw_of(raw);
    };
    let (id, written) = (item.string("call_id"), item.string("arguments").unwrap_or_default());
    let arguments = mended(&written);
    if id.as_deref() == Some(call.id.as_str()) && *arguments == *written {
        return raw_of(raw);
    }
    item.set("call_id", quote(&call.id));
    item.set("arguments", quote(&arguments));
    raw_of(&assembled(item.text()))
}

fn raw_of(raw: &RawValue) -> Raw {
    Raw::new(raw.get().to_owned()).expect("a raw value is JSON")
}
