//! What a stream of a session carries beside its events.
//!
//! A stream is `text/event-stream`. `event: event` has a [`SessionEvent`](crate::SessionEvent)
//! as its data and the `seq` as its `id`, so that `Last-Event-ID` goes on after it. `event:
//! live` has a [`LiveFrame`] and no `id`: it is not kept, and the settled event takes its place.
//! `event: session` has a [`SessionInfo`](crate::SessionInfo) that stands otherwise than before.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Output of an effect that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LiveFrame {
    /// The effect.
    pub effect: u64,
    /// What it is.
    pub kind: LiveKind,
    /// The text, to be added to what came before of its kind.
    pub text: String,
}

/// What a frame has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LiveKind {
    /// Another attempt begins: what came of the effect before is void. The text is its number.
    Attempt,
    /// The model will be asked again. The text says why.
    Retrying,
    /// Text of the model.
    Text,
    /// Reasoning of the model.
    Thinking,
    /// The model writes a call of the tool that the text names.
    Calling,
    /// Output of a command.
    Output,
    /// Something went wrong beside the work.
    Warning,
}
