//! Names of sandboxes, of their lives and of what runs in them.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::limits;

/// A name was empty, too long or had a character outside `[A-Za-z0-9._-]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a valid {what}: use 1 to {max} characters of A-Z a-z 0-9 . _ -")]
pub struct InvalidId {
    what: &'static str,
    name: String,
    max: usize,
}

fn check(what: &'static str, name: &str) -> Result<(), InvalidId> {
    let charset = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let plain = !name.is_empty()
        && name.len() <= limits::ID_BYTES_MAX
        && name.bytes().all(charset)
        && !name.starts_with('.');
    if plain {
        return Ok(());
    }
    let name = name.chars().take(40).collect();
    Err(InvalidId { what, name, max: limits::ID_BYTES_MAX })
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks and wraps a name: 1 to 128 characters of `[A-Za-z0-9._-]`, not starting with a dot.
            ///
            /// # Errors
            /// [`InvalidId`] says what is wrong with it.
            pub fn new(name: impl Into<String>) -> Result<Self, InvalidId> {
                let name = name.into();
                check($what, &name)?;
                Ok(Self(name))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(name: String) -> Result<Self, InvalidId> {
                Self::new(name)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// Names a sandbox among all of a backend. Chosen by the caller.
    SandboxId, "sandbox id"
}

id! {
    /// Names one command, or one changing file operation, within one
    /// [`Generation`] of a sandbox. Chosen by the caller: repeating an id
    /// re-attaches to what it named before and never runs it again.
    ExecId, "exec id"
}

id! {
    /// One life of a sandbox, from the start of its guest to its end. Suspend and
    /// resume keep it; a reboot, a restore or a lost host makes a new one.
    Generation, "generation"
}

id! {
    /// Names a snapshot among all of a backend. Chosen by the caller.
    SnapshotId, "snapshot id"
}
