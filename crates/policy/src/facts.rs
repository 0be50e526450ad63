//! What a rule may look at.

use serde::{Deserialize, Serialize};

/// What somebody is about to do to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Send the conversation to a model provider.
    AskModel,
    /// Make the session's sandbox.
    Provision,
    /// Run a command inside the sandbox.
    Execute,
    /// Read files inside the sandbox.
    ReadFiles,
    /// Change files inside the sandbox.
    WriteFiles,
}

/// The situation to judge. Everything in it comes from the harness; nothing in
/// it was chosen by the model except `resource`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts<'a> {
    /// On whose behalf, for example `person:local`.
    pub principal: &'a str,
    /// What is to be done.
    pub action: Action,
    /// To what: a model, a sandbox by name, a tool.
    pub resource: &'a str,
}
