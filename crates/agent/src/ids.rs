//! Names and numbers that events refer to.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// Names a session. Made by the composition root; the machine only carries it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// The name of one of its effects: by it people write what waits for them, and
    /// sandboxes know a command again.
    #[must_use]
    pub fn effect(&self, effect: Seq) -> String {
        format!("{self}.{effect}")
    }

    /// Wraps a name: 1 to 64 characters of `[A-Za-z0-9_-]`. Nothing for any other.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Option<Self> {
        let name = name.into();
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        ((1..=64).contains(&name.len()) && name.bytes().all(plain)).then_some(Self(name))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Of this session and those above it, the one that no session started, by its name:
    /// those of subagents go on with a hyphen and a number.
    #[must_use]
    pub fn root(&self) -> Self {
        let starts = |pair: &[u8]| pair[0] == b'-' && pair[1].is_ascii_digit();
        let end = self.0.as_bytes().windows(2).position(starts).filter(|end| *end > 0);
        Self(self.0[..end.unwrap_or(self.0.len())].to_owned())
    }

    /// Whether it is a subagent's, however far below, by its name.
    #[must_use]
    pub fn is_below(&self, above: &Self) -> bool {
        let rest = self.0.strip_prefix(&above.0).and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Place of an event in its session's journal, from 1. The place of a
/// `Proposed` event is the id of its effect.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The place after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// SHA-256 of some bytes, written as 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_sha256(Sha256::digest(bytes).into())
    }

    /// Writes down a SHA-256 that was computed elsewhere, for example piece by piece.
    #[must_use]
    pub fn from_sha256(digest: [u8; 32]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let pair = |byte: u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        Self(digest.into_iter().flat_map(pair).map(char::from).collect())
    }

    /// Reads 64 hexadecimal digits in lower case. Nothing for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let plain = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 64 && text.bytes().all(plain)).then(|| Self(text.to_owned()))
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes that it was written down from.
    #[must_use]
    pub fn to_sha256(&self) -> [u8; 32] {
        let mut digest = [0; 32];
        for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
            let digits = self.0.get(at..at + 2).unwrap_or_default();
            *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
        }
        digest
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::SessionId;

    #[test]
    fn who_is_below_whom_by_their_names() {
        let id = |name: &str| SessionId::new(name).unwrap();
        for (name, root) in [
            ("k3v", "k3v"),
            ("k3v-12", "k3v"),
            ("k3v-12-7", "k3v"),
            ("fix-login", "fix-login"),
            ("fix-login-4", "fix-login"),
            ("-4", "-4"),
        ] {
            assert_eq!(id(name).root(), id(root), "{name}");
            assert_eq!(id(name).is_below(&id(root)), name != root, "{name}");
        }
        assert!(id("a-1-2").is_below(&id("a-1")));
        assert!(!id("fix-login").is_below(&id("fix")));
        assert!(!id("a").is_below(&id("a-1")));
    }
}
