//! Puts a reply together from the chunks of a stream.
//!
//! Must never accept a stream without a finish reason. The closing `[DONE]` may
//! be missing, because several servers leave it out.

use outrigger_agent::{Raw, Stop, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

use super::message::Message;
use crate::fault::Fault;
use crate::sse;
use crate::wire::{self, Answer, CallIds, Delta, Flow, count, read};

/// The reply as far as it has come.
#[derive(Debug)]
pub(crate) struct Decoder {
    ids: CallIds,
    response_id: Option<String>,
    message: Message,
    finish_reason: Option<String>,
    usage: Usage,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<&'a RawValue>,
    #[serde(default)]
    finish_reason: Option<String>,
}

impl Decoder {
    /// One at the beginning of a stream.
    pub(crate) fn new(ids: CallIds) -> Self {
        Self {
            ids,
            response_id: None,
            message: Message::default(),
            finish_reason: None,
            usage: Usage::default(),
        }
    }
}

impl wire::Decoder for Decoder {
    fn event(
        &mut self,
        event: sse::Event<'_>,
        sink: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Flow, Fault> {
        if event.data == "[DONE]" {
            return Ok(Flow::Done);
        }
        if event.name == "error" {
            return Err(Fault::of_event(event.data));
        }
        let chunk: Chunk<'_> = read(event.data, "a chunk")?;
        if chunk.error.is_some() {
            return Err(Fault::of_event(event.data));
        }
        if self.response_id.is_none() {
            self.response_id = chunk.id.filter(|id| !id.is_empty()).map(Cow::into_owned);
        }
        // Only one choice was asked for.
        let choices = chunk.choices.unwrap_or_default();
        for choice in choices.into_iter().filter(|choice| choice.index.unwrap_or(0) == 0) {
            if let Some(delta) = choice.delta {
                self.message.merge(delta, sink)?;
            }
            if choice.finish_reason.is_some() {
                self.finish_reason = choice.finish_reason;
            }
        }
        if let Some(account) = chunk.usage {
            self.usage = usage(account);
        }
        Ok(Flow::More)
    }

    /// Nothing but the usage comes behind the finish reason.
    fn is_whole(&self) -> bool {
        self.finish_reason.is_some()
    }

    fn finish(self: Box<Self>) -> Result<Answer, Fault> {
        let Self { ids, response_id, message, finish_reason, usage } = *self;
        let Some(reason) = finish_reason else {
            return Err(Fault::garbled("the stream ended without a finish reason"));
        };
        let whole = message.finish(ids)?;
        let stop = match (reason.as_str(), whole.refusal) {
            (_, Some(refusal)) => Stop::Refused(refusal),
            ("length", None) => Stop::OutputLimit,
            ("content_filter", None) => Stop::Refused("content filter".to_owned()),
            ("error" | "insufficient_system_resource", None) => {
                return Err(Fault::unavailable(format!("the stream finished with `{reason}`")));
            }
            (_, None) => Stop::End,
        };
        let native = vec![whole.native];
        Ok(Answer { response_id, parts: whole.parts, native, stop, usage })
    }
}

fn usage(account: &RawValue) -> Usage {
    let value: serde_json::Value = serde_json::from_str(account.get()).unwrap_or_default();
    let cached = count(&value, "/prompt_tokens_details/cached_tokens");
    Usage {
        input_tokens: count(&value, "/prompt_tokens"),
        output_tokens: count(&value, "/completion_tokens"),
        // Where there are no details, DeepSeek's own name.
        cache_read_tokens: cached.max(count(&value, "/prompt_cache_hit_tokens")),
        cache_write_tokens: 0,
        reasoning_tokens: count(&value, "/completion_tokens_details/reasoning_tokens"),
        native: Raw::new(account.get().to_owned()).ok(),
    }
}
