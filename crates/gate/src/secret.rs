//! Secrets as callers have them: sealed, with the terms under which they are used.
//!
//! Owns the types that are stored and sent. A value in clear exists in [`SecretValue`] on its
//! way to the gate, and in the gate.

use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::network::{Grant, Scheme};

/// A secret that only a gate with the same master key can read. What it says of itself is
/// sealed with it: a gate refuses one whose terms were changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedSecret {
    /// Stays when the value is rotated, and so do its placeholders.
    pub id: String,
    /// For what it is.
    pub terms: SecretTerms,
    /// The value, encrypted; base64.
    pub sealed: String,
}

/// For what a secret is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretTerms {
    /// The variable in which programs look for it: a letter or `_`, then letters, digits and `_`.
    pub name: String,
    /// Whose it is. Each organisation has a key of its own.
    pub organisation: String,
    /// Where it is sent. Nowhere else.
    pub places: Vec<SecretPlace>,
    /// When it ends to be sent, in milliseconds since 1970. `None`: when it is revoked.
    #[serde(default)]
    pub ends_ms: Option<u64>,
    /// Whether the gate says with it if somebody else signed a message with the same secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verifies: bool,
}

/// Where a secret is sent, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretPlace {
    /// The host and what may be asked of it, which the sandbox may reach by this as well.
    pub grant: Grant,
    /// The headers in which it is sent, in lower case. Empty: `authorization`, and each whose
    /// whole value it is.
    #[serde(default)]
    pub headers: Vec<String>,
    /// The parameters of the query that it may be.
    #[serde(default)]
    pub queries: Vec<String>,
    /// The fields of a form, or of a JSON object, that it may be in the body.
    #[serde(default)]
    pub fields: Vec<String>,
    /// What in a JSON answer to a request with the secret is a secret itself: the sandbox gets a
    /// placeholder of it, good for the same places, as long as the gate lives.
    #[serde(default)]
    pub mints: Vec<String>,
    /// Requests to there are signed with the secret, as AWS does it, by this id of a key. It is
    /// not sent.
    #[serde(default)]
    pub aws_key_id: Option<String>,
    /// The place is a repository of git, of which these may be pushed: full names of refs, `*`
    /// for any characters. `None`: it is none.
    #[serde(default)]
    pub refs: Option<Vec<String>>,
}

/// A value in clear. It is wiped when it is dropped, and shown by nothing.
#[derive(Clone, Serialize, Deserialize)]
pub struct SecretValue(Zeroizing<String>);

impl SecretValue {
    /// Wraps a value. What a terminal or a file has at its end (a line break) is cut off.
    ///
    /// # Errors
    /// One sentence without the value, where it can't be sent in a header or is too short to
    /// be told from other text.
    pub fn new(text: Zeroizing<String>) -> Result<Self, String> {
        let value = text.trim_end_matches(['\r', '\n']);
        if value.len() < crate::limits::SECRET_BYTES_MIN {
            return Err(format!(
                "a secret has at least {} characters",
                crate::limits::SECRET_BYTES_MIN
            ));
        }
        if value.len() > crate::limits::SECRET_BYTES_MAX {
            return Err(format!("a secret has at most {} bytes", crate::limits::SECRET_BYTES_MAX));
        }
        if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a secret is one line of printable ASCII without spaces".to_owned());
        }
        Ok(Self(Zeroizing::new(value.to_owned())))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(..)")
    }
}

impl SecretPlace {
    /// A place to which a secret is sent in the usual headers.
    pub fn new(grant: Grant) -> Self {
        let (headers, queries, fields, mints) = <(Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
        Self { grant, headers, queries, fields, mints, aws_key_id: None, refs: None }
    }
}

impl SecretTerms {
    /// Whether they can be what was meant; otherwise a sentence.
    pub(crate) fn check(&self) -> Result<(), String> {
        let name = self.name.as_bytes();
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let fits = (1..=crate::limits::SECRET_NAME_BYTES_MAX).contains(&name.len());
        if !fits || !name.iter().all(plain) || name[0].is_ascii_digit() {
            return Err("a secret has the name of a variable: letters, digits and _".to_owned());
        }
        if self.places.is_empty() && !self.verifies {
            return Err("a secret that is sent nowhere is of no use".to_owned());
        }
        if self.places.iter().any(|place| place.grant.scheme == Scheme::Tcp) {
            return Err("a secret is not sent in what is passed on unread (tcp:)".to_owned());
        }
        if self.places.len() > crate::limits::SECRET_PLACES_MAX {
            return Err(format!(
                "a secret is sent to at most {} places",
                crate::limits::SECRET_PLACES_MAX
            ));
        }
        Ok(())
    }
}
