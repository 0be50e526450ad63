//! What somebody may do in a session that is shared with them.

use serde::{Deserialize, Serialize};

/// What somebody may do in a session that is not theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedAccess {
    /// Nothing, not even know of it.
    None,
    /// See everything in it.
    Read,
    /// Speak in it, too, and answer what it asks.
    TakePart,
}

impl SharedAccess {
    /// The word for it in the journal and in requests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::TakePart => "take_part",
        }
    }
}
