//! Ids of traces and spans: digests of what they are of, so that a second export of the same
//! event has the same.

use outrigger_agent::{Digest, Seq, SessionId};
use std::fmt;

/// Names a trace: what came of one message to a session, subagents included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// Names a span of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

/// A span, as another one names it that hangs below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanContext {
    /// Its trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
}

fn digest<const N: usize>(of: &str, session: &SessionId, seq: Seq) -> [u8; N] {
    let digest = Digest::of(format!("{of} {session} {seq}").as_bytes()).to_sha256();
    std::array::from_fn(|at| digest[at])
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl TraceId {
    /// That of what began with an event.
    pub(crate) fn of(session: &SessionId, begun: Seq) -> Self {
        Self(digest("trace", session, begun))
    }
}

impl SpanId {
    /// That of the turn that an event began.
    pub(crate) fn of_turn(session: &SessionId, begun: Seq) -> Self {
        Self(digest("turn", session, begun))
    }

    /// That of an effect.
    pub(crate) fn of_effect(session: &SessionId, effect: Seq) -> Self {
        Self(digest("effect", session, effect))
    }

    /// That of the question to a person that an event was.
    pub(crate) fn of_question(session: &SessionId, decided: Seq) -> Self {
        Self(digest("question", session, decided))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}
