//! What the server asks of whoever knows the agents.

use async_trait::async_trait;
pub use axum::http::HeaderMap;
use outrigger_agent::SessionId;
use outrigger_api::{AgentDefinition, AgentInfo};
use outrigger_store::entries::EntryAddress;
use std::fmt::Debug;

use crate::RequestError;

/// Knows the agents, and what a definition may say.
#[async_trait]
pub trait AgentCatalog: Send + Sync + Debug {
    /// The agents that a person can start, and those of theirs that can't be.
    ///
    /// # Errors
    /// What the store says.
    async fn list(&self, person: &str) -> Result<Vec<AgentInfo>, RequestError>;

    /// A definition as it is kept.
    ///
    /// # Errors
    /// What in it can't be, by its key.
    fn text(&self, definition: &AgentDefinition) -> Result<String, RequestError>;

    /// Whether a text can be kept as a definition, at a place.
    ///
    /// # Errors
    /// What in it, or in its name, can't be, and in which line.
    fn check(&self, at: &EntryAddress, text: &str) -> Result<(), RequestError>;

    /// Opens the session that a message starts, once however often it comes.
    ///
    /// # Errors
    /// [`outrigger_api::ProblemCode::Unauthenticated`] alike for an agent that is not there, one without a
    /// webhook, and a wrong signature; what keeps the session from being opened.
    async fn deliver(&self, message: WebhookMessage) -> Result<SessionId, RequestError>;
}

/// A message of another system.
#[derive(Debug, Clone)]
pub struct WebhookMessage {
    /// Whose the agent is: `organisation`, `configuration`, `group:NAME` or `person:NAME`.
    pub owner: String,
    /// The agent.
    pub agent: String,
    /// With its id and its signature.
    pub headers: HeaderMap,
    /// What is signed.
    pub body: Vec<u8>,
}
