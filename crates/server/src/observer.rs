//! Who is told what the server did.

use outrigger_agent::SessionId;
use outrigger_telemetry::Span;
use std::fmt::Debug;

/// A request that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredRequest {
    /// Its id, which is in its answer too.
    pub id: String,
    /// Its method.
    pub method: String,
    /// Its address without names of things; nothing where there is no such address.
    pub route: Option<String>,
    /// The status of the answer.
    pub status: u16,
    /// From its head until that of its answer, in milliseconds.
    pub took_ms: u64,
    /// Who asked, where that is known.
    pub person: Option<String>,
    /// The session that it was about.
    pub session: Option<SessionId>,
    /// What is wrong in the server (500).
    pub fault: Option<String>,
}

/// How many spans were sent to a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExportCounts {
    /// It took them.
    pub exported: u64,
    /// They were too many, or it refused them.
    pub dropped: u64,
    /// They wait to be sent.
    pub waiting: u64,
}

/// Is told what the server did. Its calls return at once, whatever becomes of what they tell.
pub trait Observer: Send + Sync + Debug {
    /// A request was answered.
    fn answered(&self, request: &AnsweredRequest);

    /// Spans of sessions are over. After a crash those of a turn that goes on come again, with
    /// the same ids.
    fn ended(&self, spans: &[Span]);

    /// Whether spans are to have what was said.
    fn wants_content(&self) -> bool;

    /// What became of spans, if they go to a collector.
    fn exports(&self) -> Option<ExportCounts>;
}
