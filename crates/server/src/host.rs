//! What the server asks of whoever opens and drives sessions.

use std::fmt::Debug;

use async_trait::async_trait;
use outrigger_agent::SessionId;
use outrigger_api::{CreateSession, ServerInfo};
use outrigger_policy::{AccessRules, Directory};
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
}
