//! What the server asks about the disks of a session's sandboxes.

use std::fmt::Debug;
use std::fs::File;

use async_trait::async_trait;
use outrigger_agent::{FileBaseline, Seq, SessionId};
use outrigger_api::{
    AppliedChanges, ApplyChanges, ChangedFile, CheckpointInfo, FileContent, FileList, ReadObjects,
};

use crate::RequestError;

/// Takes out what sessions changed.
#[async_trait]
pub trait SessionChanges: Send + Sync + Debug {
    /// What a session changed in its workspace, as it is now.
    ///
    /// # Errors
    /// Where its sandbox can't be reached.
    async fn changes(&self, session: &SessionId) -> Result<TakenChanges, RequestError>;

    /// What a session changed, as an archive with which it is written back on another machine:
    /// each file as it was beneath `before/`, and as it is beneath `after/`.
    ///
    /// # Errors
    /// Where its sandbox can't be reached, or is gone.
    async fn change_archive(&self, session: &SessionId) -> Result<File, RequestError>;

    /// What was committed in its sandbox: HEAD and objects, as git prints them.
    ///
    /// # Errors
    /// Where its sandbox can't be reached, or they are too many.
    async fn objects(
        &self,
        session: &SessionId,
        asked: ReadObjects,
    ) -> Result<Vec<u8>, RequestError>;

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
}

/// Looks into the sandboxes of sessions, and copies or sets back their disks.
#[async_trait]
pub trait SessionDisks: Send + Sync + Debug {
    /// What is in a folder of its sandbox, as it is now.
    ///
    /// # Errors
    /// Where there is none, or its sandbox can't be reached.
    async fn folder(&self, session: &SessionId, path: String) -> Result<FileList, RequestError>;

    /// A file of its sandbox, as it is now, cut.
    ///
    /// # Errors
    /// Where there is none, or its sandbox can't be reached.
    async fn file(&self, session: &SessionId, path: String) -> Result<FileContent, RequestError>;

    /// What an effect that waits would make of a file. Nothing for one that changes none.
    ///
    /// # Errors
    /// Where its sandbox can't be reached.
    async fn preview(
        &self,
        session: &SessionId,
        effect: Seq,
    ) -> Result<Option<FilePreview>, RequestError>;

    /// Where a session can be forked or gone back to, the oldest first.
    ///
    /// # Errors
    /// Where its disks can't be asked for.
    async fn checkpoints(&self, session: &SessionId) -> Result<Vec<CheckpointInfo>, RequestError>;

    /// Begins another session where one stood. Where there is one of that name nothing is done:
    /// the same request came twice.
    ///
    /// # Errors
    /// Where there is no such checkpoint, or its disks can't be copied.
    async fn fork(
        &self,
        session: &SessionId,
        at: Option<Seq>,
        into: &SessionId,
        by: &str,
    ) -> Result<(), RequestError>;

    /// Takes a session back to where it stood.
    ///
    /// # Errors
    /// Where there is no such checkpoint, or something runs.
    async fn rewind(
        &self,
        session: &SessionId,
        to: Option<Seq>,
        by: &str,
    ) -> Result<CheckpointInfo, RequestError>;
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
