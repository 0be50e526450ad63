//! What comes of one attempt at a call, inside a sandbox or outside.

use outrigger_agent::Outcome;
use outrigger_sandbox::Sandbox;
use outrigger_tools::CommandTime;
use std::sync::Arc;

use crate::driver::session::SandboxLoss;

/// What one attempt at a call came to.
pub(super) struct AttemptEnd {
    pub(super) outcome: Outcome,
    /// How its sandbox was lost, if it was.
    pub(super) lost: Option<SandboxLoss>,
    /// The sandbox that did it, and its name.
    pub(super) attached: Option<(String, Arc<dyn Sandbox>)>,
    /// What a command took.
    pub(super) took: Option<CommandTime>,
}

impl AttemptEnd {
    pub(super) fn new(outcome: Outcome) -> Self {
        Self { outcome, lost: None, attached: None, took: None }
    }
}
