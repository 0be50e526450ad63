//! What stands for a provider's key: given by the composition root, seen by the gate alone,
//! which sends the key in its place.
//!
//! Must never be printed, serialised, logged, or read from the environment here.

use reqwest::header::HeaderValue;
use std::fmt;

/// A key, or the placeholder that the gate takes for one. Its text leaves this type only as a header marked sensitive.
#[derive(Clone)]
pub struct Key(String);

/// Why a text is no key. Says nothing of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is empty.
    #[error("the key is empty")]
    Empty,
    /// It has a character that no header can carry.
    #[error("the key has a space, a line break or another character that no key has")]
    Unprintable,
}

impl Key {
    /// Wraps a key. Space around it, as a file or a shell leaves it, is cut off.
    ///
    /// # Errors
    /// What is wrong with it, without the text.
    pub fn new(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Error::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::Unprintable);
        }
        Ok(Self(text.to_owned()))
    }

    /// The value of a header: `prefix` and the key.
    pub(crate) fn header(&self, prefix: &str) -> HeaderValue {
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", self.0))
            .expect("only printable characters, as `new` checked");
        value.set_sensitive(true);
        value
    }

    /// The text with every mention of the key taken out.
    pub(crate) fn redact(&self, text: &str) -> String {
        text.replace(&self.0, "[key]")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_printed() {
        let key = Key::new(" sk-canary-1\n").unwrap();
        assert_eq!(format!("{key:?}"), "Key(..)");
        assert_eq!(format!("{:?}", key.header("Bearer ")), "Sensitive");
        assert_eq!(key.header("Bearer ").as_bytes(), b"Bearer sk-canary-1");
        assert_eq!(key.redact("wrong key sk-canary-1!"), "wrong key [key]!");
    }

    #[test]
    fn what_is_no_key_is_refused_without_its_text() {
        assert_eq!(Key::new("  ").unwrap_err(), Error::Empty);
        let error = Key::new("sk canary").unwrap_err();
        assert_eq!(error, Error::Unprintable);
        assert!(!error.to_string().contains("canary"));
    }
}
