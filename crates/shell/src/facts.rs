//! What rules may look at in a command.

use std::collections::BTreeSet;

/// What is known of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandFacts {
    /// The programs that it names, without their directories.
    pub programs: BTreeSet<String>,
    /// The guarded paths that it names, as they were given.
    pub touches: BTreeSet<String>,
    /// Whether it does what can't be known from its text.
    pub opaque: bool,
}

impl CommandFacts {
    /// Whether all of it is known, and none of it is near what is guarded.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        !self.opaque && self.touches.is_empty()
    }
}
