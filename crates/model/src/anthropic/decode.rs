//! Puts a reply together from the events of a stream.
//!
//! Owns the order of events; the blocks themselves are `block`'s. Events of
//! unknown types are passed over, as the API asks of its clients. Must never
//! accept a stream without a stop reason.

use outrigger_agent::{Part, Raw, Stop, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

use super::block::Block;
use crate::fault::Fault;
use crate::json::Object;
use crate::limits::ITEMS_PER_REPLY_MAX;
use crate::sse;
use crate::wire::{self, Answer, CallIds, Delta, Flow, count, read};

/// The reply as far as it has come.
#[derive(Debug)]
pub(crate) struct Decoder {
    ids: CallIds,
    response_id: Option<String>,
    blocks: Vec<Block>,
    calls: usize,
    usage: Object,
    stop_reason: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(default)]
    index: Option<usize>,
    #[serde(borrow, default)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    delta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageStart {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    usage: Option<Object>,
}

#[derive(Deserialize)]
struct MessageDelta {
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    stop_details: Option<StopDetails>,
}

#[derive(Deserialize)]
struct StopDetails {
    #[serde(default)]
    explanation: Option<String>,
}

impl wire::Decoder for Decoder {
    fn event(
        &mut self,
        event: sse::Event<'_>,
        sink: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Flow, Fault> {
        let data: Event<'_> = read(event.data, "an event")?;
        match &*data.r#type {
            "message_start" => {
                let message: MessageStart = part(data.message, "message")?;
                self.response_id = message.id;
                self.usage = message.usage.unwrap_or_default();
            }
            "content_block_start" => self.block_start(&data, sink)?,
            "content_block_delta" => {
                let delta = data.delta.ok_or_else(|| missing("delta"))?;
                self.block(data.index)?.delta(delta, sink)?;
            }
            "content_block_stop" => self.block(data.index)?.close(),
            "message_delta" => self.message_delta(&data)?,
            "message_stop" => return Ok(Flow::Done),
            "error" => return Err(Fault::of_event(event.data)),
            _ => {}
        }
        Ok(Flow::More)
    }

    /// The stop reason comes with the usage, behind the last block.
    fn is_whole(&self) -> bool {
        self.stop_reason.is_some() && !self.blocks.iter().any(Block::is_open)
    }

    fn finish(self: Box<Self>) -> Result<Answer, Fault> {
        if self.stop_reason.is_none() {
            return Err(Fault::garbled("the stream ended without a stop reason"));
        }
        if self.blocks.iter().any(Block::is_open) {
            return Err(Fault::garbled("a content block of the stream never ended"));
        }
        let stop = match self.stop_reason.as_deref() {
            Some("max_tokens") => Stop::OutputLimit,
            Some("pause_turn") => Stop::Paused,
            Some("refusal") => Stop::Refused(self.refusal.unwrap_or_default()),
            Some("model_context_window_exceeded") => {
                return Err(Fault::context_too_long(
                    "the reply ran into the end of the model's context",
                ));
            }
            Some(_) | None => Stop::End,
        };
        let (native, parts): (Vec<Raw>, Vec<Part>) = self
            .blocks
            .into_iter()
            .map(|block| block.finish(self.ids))
            // The API itself refuses an empty text that it had sent.
            .filter(|(_, part)| !matches!(part, Part::Text(text) if text.is_empty()))
            .unzip();
        let usage = usage(&self.usage);
        Ok(Answer { response_id: self.response_id, parts, native, stop, usage })
    }
}

impl Decoder {
    /// One at the beginning of a stream.
    pub(crate) fn new(ids: CallIds) -> Self {
        Self {
            ids,
            response_id: None,
            blocks: Vec::new(),
            calls: 0,
            usage: Object::default(),
            stop_reason: None,
            refusal: None,
        }
    }

    fn block_start(
        &mut self,
        data: &Event<'_>,
        sink: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Fault> {
        let text = data.content_block.ok_or_else(|| missing("content_block"))?;
        if data.index != Some(self.blocks.len()) {
            return Err(Fault::garbled("a content block of the stream is out of order"));
        }
        if self.blocks.len() == ITEMS_PER_REPLY_MAX {
            return Err(Fault::garbled(format!("more than {ITEMS_PER_REPLY_MAX} content blocks")));
        }
        let block = Block::start(text, self.calls, sink)?;
        self.calls += usize::from(block.is_call());
        self.blocks.push(block);
        Ok(())
    }

    fn block(&mut self, index: Option<usize>) -> Result<&mut Block, Fault> {
        index
            .and_then(|index| self.blocks.get_mut(index))
            .ok_or_else(|| Fault::garbled("the stream goes on with a block that it never began"))
    }

    fn message_delta(&mut self, data: &Event<'_>) -> Result<(), Fault> {
        let delta: MessageDelta = part(data.delta, "delta")?;
        if delta.stop_reason.is_some() {
            self.stop_reason = delta.stop_reason;
        }
        if let Some(details) = delta.stop_details {
            self.refusal = details.explanation;
        }
        // Its counts are totals, not increments.
        if let Some(usage) = data.usage {
            let usage: Object = read(usage.get(), "the usage")?;
            for (name, value) in usage.fields().filter(|(_, value)| value.get() != "null") {
                self.usage.set(name, value.to_owned());
            }
        }
        Ok(())
    }
}

fn usage(account: &Object) -> Usage {
    let text = account.text();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let cache_read_tokens = count(&value, "/cache_read_input_tokens");
    let cache_write_tokens = count(&value, "/cache_creation_input_tokens");
    Usage {
        input_tokens: count(&value, "/input_tokens")
            .saturating_add(cache_read_tokens)
            .saturating_add(cache_write_tokens),
        output_tokens: count(&value, "/output_tokens"),
        cache_read_tokens,
        cache_write_tokens,
        // Counted as output and not apart.
        reasoning_tokens: 0,
        native: Raw::new(text).ok(),
    }
}

fn part<T: serde::de::DeserializeOwned>(raw: Option<&RawValue>, name: &str) -> Result<T, Fault> {
    let raw = raw.ok_or_else(|| missing(name))?;
    read(raw.get(), "an event")
}

fn missing(name: &str) -> Fault {
    Fault::garbled(format!("an event of the stream has no `{name}`"))
}
