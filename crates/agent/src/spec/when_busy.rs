//! What becomes of what is said while a turn runs.

use serde::{Deserialize, Serialize};

/// What becomes of what is said while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenBusy {
    /// The turn reads it before its next step.
    #[default]
    Steer,
    /// It begins a turn of its own once this one is over.
    Queue,
    /// The turn is stopped, and it begins another one.
    Interrupt,
    /// It is not taken.
    Refuse,
}

impl WhenBusy {
    /// Whether nothing was said about it.
    pub(crate) fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}
