//! What the server asks of whoever opens and drives sessions.

use std::fmt::Debug;

use async_trait::async_trait;
use outrigger_agent::{Picture, SessionId, State};
use outrigger_api::{CreateSession, ServerInfo, SessionLimits, UploadedWorkspace};
use outrigger_engine::ResumeChange;
use outrigger_policy::{AccessRules, Directory};
use std::fs::File;
use std::sync::Arc;

use crate::RequestError;

/// Opens sessions and sees to it that they are driven.
#[async_trait]
pub trait SessionHost: Send + Sync + Debug {
    /// What the server is, for a person who is logged in.
    fn info(&self, person: &str) -> ServerInfo;

    /// Who may do what here, by the rules and the people of now.
    ///
    /// # Errors
    /// Where they can't be read.
    fn access(&self) -> Result<Arc<AccessRules>, RequestError>;

    /// Who there is now.
    ///
    /// # Errors
    /// Where it can't be read.
    fn directory(&self) -> Result<Directory, RequestError>;

    /// Opens a session under a name, and has it driven. Where there is one of that name
    /// nothing is done: the same request came twice. `pictures` are stored, and come with its
    /// first words.
    ///
    /// # Errors
    /// What keeps it from being opened; then there is none.
    async fn create(
        &self,
        person: &str,
        session: &SessionId,
        request: CreateSession,
        pictures: Vec<Picture>,
    ) -> Result<(), RequestError>;

    /// Something was appended to a session: it is driven until it waits again, here unless
    /// another process does. Safe to call at any time.
    ///
    /// # Errors
    /// What keeps it from being driven.
    async fn wake(&self, session: &SessionId) -> Result<(), RequestError>;

    /// How a session goes on that may use something else from now on, as far as any may here.
    fn resumed(&self, state: &State, limits: SessionLimits) -> ResumeChange;

    /// Whether anybody drives a session whose turn runs.
    async fn is_driven(&self, session: &SessionId) -> bool;

    /// Removes a session that is over, with those below it: journals, disks, patches. The log
    /// of the store says that they were removed.
    ///
    /// # Errors
    /// Where it has something to do yet, somebody drives it, or a disk can't be deleted; then it
    /// is there as before.
    async fn remove(&self, session: &SessionId) -> Result<(), RequestError>;
}

/// Takes directories that people send.
#[async_trait]
pub trait UploadHost: Send + Sync + Debug {
    /// Makes room for a directory that a person sends.
    ///
    /// # Errors
    /// Where too many wait already, or there is no room.
    async fn begin_upload(&self, person: &str) -> Result<Upload, RequestError>;

    /// Looks through what was sent: from then on a session can begin with it.
    ///
    /// # Errors
    /// Where it is no archive of a directory, or one that is too large; then it is gone.
    async fn end_upload(&self, id: &str) -> Result<UploadedWorkspace, RequestError>;
}

/// A directory that is being sent.
#[derive(Debug)]
pub struct Upload {
    /// By which it is named.
    pub id: String,
    /// Where its archive is written, as tar(1) writes one.
    pub archive: File,
    /// Bytes of the archive.
    pub bytes_max: u64,
}
