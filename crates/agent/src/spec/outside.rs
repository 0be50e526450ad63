//! Tools of other people's servers, as a session holds to them.

use serde::{Deserialize, Serialize};

use crate::Digest;

/// A tool that a server outside offers, as it was when the session was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideTool {
    /// The server, as our configuration names it.
    pub server: String,
    /// The tool, as the server names it.
    pub tool: String,
    /// Digest of what the server says of it, which is what the model is told.
    pub digest: Digest,
    /// Digest of what the server said when the session was opened, if that was not what
    /// a person trusts and the model is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Digest>,
    /// Whether *our* configuration says that it changes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

impl OutsideTool {
    /// What the server must still say of it for a call to be made.
    #[must_use]
    pub fn held_to(&self) -> &Digest {
        self.changed.as_ref().unwrap_or(&self.digest)
    }
}
