//! What the server asks of whoever opens and drives sessions.

use std::fmt::Debug;

use async_trait::async_trait;
use outrigger_agent::{FileBaseline, Seq, SessionId};
use outrigger_api::{AppliedChanges, ApplyChanges, ChangedFile, CreateSession, ServerInfo};

use crate::RequestError;

/// Opens sessions and sees to it that they are driven.
#[async_trait]
pub trait SessionHost: Send + Sync + Debug {
    /// What the server is, for a person who is logged in.
    fn info(&self, person: &str) -> ServerInfo;

    /// Opens a session under a name, and has it driven. Where there is one of that name
    /// nothing is done: the same request came twice.
    ///
    /// # Errors
    /// What keeps it from being opened; then there is none.
    async fn create(
        &self,
        person: &str,
        session: &SessionId,
        request: CreateSession,
    ) -> Result<(), RequestError>;

    /// Something was appended to a session: it is driven until it waits again, here unless
    /// another process does. Safe to call at any time.
    ///
    /// # Errors
    /// What keeps it from being driven.
    async fn wake(&self, session: &SessionId) -> Result<(), RequestError>;

    /// Whether anybody drives a session whose turn runs.
    fn is_driven(&self, session: &SessionId) -> bool;

    /// What a session changed in its workspace, as it is now.
    ///
    /// # Errors
    /// Where its sandbox can't be reached.
    async fn changes(&self, session: &SessionId) -> Result<TakenChanges, RequestError>;

    /// Writes what a session changed back into the directory that it began with: all of it or
    /// nothing. What programs run or obey by themselves has to be accepted.
    ///
    /// # Errors
    /// While its turn runs; where files changed meanwhile; for what has to be accepted.
    async fn apply(
        &self,
        session: &SessionId,
        asked: ApplyChanges,
    ) -> Result<AppliedChanges, RequestError>;

    /// What an effect that waits would make of a file. Nothing for one that changes none.
    ///
    /// # Errors
    /// Where its sandbox can't be reached.
    async fn preview(
        &self,
        session: &SessionId,
        effect: Seq,
    ) -> Result<Option<FilePreview>, RequestError>;
}

/// What a session changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TakenChanges {
    /// The files, in the order of their paths.
    pub files: Vec<ChangedFile>,
    /// All of it, for `git apply`.
    pub patch: Vec<u8>,
    /// What a person has to know before it is written back.
    pub warnings: Vec<String>,
}

/// What an effect would make of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePreview {
    /// A unified diff.
    pub diff: String,
    /// By which a person says that this is what they looked at.
    pub name: String,
    /// The file that it was made from.
    pub seen: FileBaseline,
}
