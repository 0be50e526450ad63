//! Puts a reply together from the chunks of a stream.
//!
//! Must never accept a stream without a finish reason, unless the prompt itself was refused.

use outrigger_agent::{Raw, Stop, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::part::Parts;
use crate::fault::Fault;
use crate::json::Object;
use crate::sse;
use crate::wire::{self, Answer, CallIds, Delta, Flow, count, read};

/// The reply as far as it has come.
#[derive(Debug)]
pub(crate) struct Decoder {
    ids: CallIds,
    response_id: Option<String>,
    parts: Parts,
    finish_reason: Option<String>,
    blocked: Option<String>,
    usage: Usage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(default)]
    response_id: Option<String>,
    #[serde(default)]
    candidates: Option<Vec<Candidate>>,
    #[serde(default)]
    prompt_feedback: Option<PromptFeedback>,
    #[serde(borrow, default)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    parts: Option<Vec<Object>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    #[serde(default)]
    block_reason: Option<String>,
}

impl Decoder {
    /// One at the beginning of a stream.
    pub(crate) fn new(ids: CallIds) -> Self {
        Self {
            ids,
            response_id: None,
            parts: Parts::default(),
            finish_reason: None,
            blocked: None,
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
        if event.name == "error" {
            return Err(Fault::of_event(event.data));
        }
        let chunk: Chunk<'_> = read(event.data, "a chunk")?;
        if chunk.error.is_some() {
            return Err(Fault::of_event(event.data));
        }
        self.response_id = self.response_id.take().or(chunk.response_id);
        let blocked = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason);
        self.blocked = blocked.or(self.blocked.take());
        // Only one candidate was asked for.
        let candidates = chunk.candidates.unwrap_or_default();
        for candidate in candidates.into_iter().filter(|one| one.index.unwrap_or(0) == 0) {
            for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
                self.parts.take(part, sink)?;
            }
            self.finish_reason = candidate.finish_reason.or(self.finish_reason.take());
        }
        if let Some(account) = chunk.usage_metadata {
            self.usage = usage(account);
        }
        Ok(Flow::More)
    }

    /// Nothing but the usage comes behind the finish reason.
    fn is_whole(&self) -> bool {
        self.finish_reason.is_some() || self.blocked.is_some()
    }

    fn finish(self: Box<Self>) -> Result<Answer, Fault> {
        let Self { ids, response_id, parts, finish_reason, blocked, usage } = *self;
        let stop = match (finish_reason.as_deref(), blocked) {
            (Some("STOP" | "FINISH_REASON_UNSPECIFIED"), _) => Stop::End,
            (Some("MAX_TOKENS"), _) => Stop::OutputLimit,
            // What a model wrote wrong it may write right the next time.
            (Some(reason @ ("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "OTHER")), _) => {
                return Err(Fault::garbled(format!("the stream finished with `{reason}`")));
            }
            (Some(reason), _) => Stop::Refused(reason.to_lowercase().replace('_', " ")),
            (None, Some(reason)) => {
                let reason = reason.to_lowercase().replace('_', " ");
                Stop::Refused(format!("the prompt was blocked: {reason}"))
            }
            (None, None) => {
                return Err(Fault::garbled("the stream ended without a finish reason"));
            }
        };
        let (native, parts) = parts.finish(ids)?;
        Ok(Answer { response_id, parts, native, stop, usage })
    }
}

/// Thoughts are counted beside the answer, and paid for like it.
fn usage(account: &RawValue) -> Usage {
    let value: serde_json::Value = serde_json::from_str(account.get()).unwrap_or_default();
    let of = |path: &str| count(&value, path);
    let reasoning_tokens = of("/thoughtsTokenCount");
    Usage {
        input_tokens: of("/promptTokenCount").saturating_add(of("/toolUsePromptTokenCount")),
        output_tokens: of("/candidatesTokenCount").saturating_add(reasoning_tokens),
        cache_read_tokens: of("/cachedContentTokenCount"),
        cache_write_tokens: 0,
        reasoning_tokens,
        native: Raw::new(account.get().to_owned()).ok(),
    }
}
