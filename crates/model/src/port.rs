//! The one port to models: ask with a whole conversation, get a whole reply.
//!
//! Owns what a caller sees of any model. Must never name a provider or a wire.

use async_trait::async_trait;
use outrigger_agent::{Item, Reply, ToolSpec};
use std::fmt::Debug;

use crate::{Error, PictureBytes};

/// A model that can be asked.
///
/// Asking keeps nothing between calls: everything that the model should know is
/// in the request. Dropping the future gives up the call at once; what was
/// streamed of it then counts for nothing.
#[async_trait]
pub trait Model: Send + Sync + Debug {
    /// What it is.
    fn describe(&self) -> &Description;

    /// Asks for the next reply, in at most [`crate::limits::ATTEMPTS_MAX`] attempts.
    /// Pieces of it are handed to `frames` while they arrive; only what is
    /// returned counts. A reply is returned only if its stream came to its end.
    ///
    /// # Errors
    /// [`Error`], after every attempt that its kind allows.
    async fn reply(&self, request: &Request<'_>, frames: &dyn Frames) -> Result<Reply, Error>;
}

/// What a model is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its name, as its provider knows it.
    pub name: String,
    /// The provider, by the host of its base URL; `scripted` for a script.
    pub provider: String,
    /// The wire that it speaks, for example `anthropic-messages`.
    pub api: String,
    /// Whether its replies come from a script and not from a model.
    pub scripted: bool,
    /// Tokens that its context holds, input and output together.
    pub context_tokens: u64,
    /// Tokens of output that one call may ask for.
    pub output_tokens_max: u64,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The system prompt.
    pub system: &'a str,
    /// The tools on offer.
    pub tools: &'a [ToolSpec],
    /// The conversation. Each tool call in it has its result in it.
    pub items: &'a [Item],
    /// The pictures of the conversation that the model is shown. Of any other it is told that
    /// it sees none.
    pub pictures: &'a PictureBytes,
    /// Tokens that the reply may have.
    pub output_tokens_max: u64,
    /// Names the conversation; requests of the same one share the provider's cache.
    pub session: &'a str,
    /// What the reply is for.
    pub purpose: Purpose,
}

/// What a reply is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To go on with the conversation.
    Turn,
    /// To take the conversation's place as a summary; no tool may be called.
    Compact,
}

/// Where pieces of a reply go while they arrive.
pub trait Frames: Send + Sync {
    /// Takes one piece. Called in order, and never at the same time for one
    /// reply; must return quickly, because the stream waits for it.
    fn frame(&self, frame: Frame<'_>);
}

/// A piece of a reply, or news of its attempts. A higher attempt takes the place
/// of all pieces of the lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// An attempt was started.
    AttemptStarted {
        /// Which, from 1.
        attempt: u32,
    },
    /// The provider began to answer: what it read and writes from here on is paid for,
    /// also if the attempt fails.
    Answered {
        /// Which, from 1.
        attempt: u32,
    },
    /// Some text for the reader.
    Text {
        /// Which attempt, from 1.
        attempt: u32,
        /// What to append.
        delta: &'a str,
    },
    /// Some reasoning.
    Thinking {
        /// Which attempt, from 1.
        attempt: u32,
        /// What to append.
        delta: &'a str,
    },
    /// Some of a tool call's arguments.
    ToolArguments {
        /// Which attempt, from 1.
        attempt: u32,
        /// Which call of the reply, from 0.
        call: usize,
        /// Name of the tool.
        name: &'a str,
        /// What to append; may be empty at the call's start.
        delta: &'a str,
    },
    /// An attempt failed and there will be another one.
    Retrying {
        /// Which attempt failed, from 1.
        attempt: u32,
        /// How long until the next one starts.
        wait_ms: u64,
        /// What went wrong, for people.
        reason: &'a str,
    },
}

/// Frames for callers that only want the whole reply.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFrames;

impl Frames for NoFrames {
    fn frame(&self, _frame: Frame<'_>) {}
}
