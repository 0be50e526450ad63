//! Digests of image parts, and readers that compute them.
//!
//! Owns the one algorithm that is taken (SHA-256) and its spelling, `sha256:` and 64
//! lower-case hex digits (OCI image spec, "Descriptors"). A digest that was parsed is
//! safe to use as a file name.

use std::fmt;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a part of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImageDigest([u8; 32]);

impl ImageDigest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Parses `sha256:<hex>`. `None`: malformed, or another algorithm.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::from_hex(text.strip_prefix("sha256:")?)
    }

    /// Parses the 64 hex digits alone.
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        let mut bytes = [0; 32];
        if text.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(text.chunks(2)) {
            *byte = hex(pair[0])? << 4 | hex(pair[1])?;
        }
        Some(Self(bytes))
    }

    /// The hex digits alone: the name of a layer's directory.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for ImageDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl From<ImageDigest> for String {
    fn from(digest: ImageDigest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for ImageDigest {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| "not a digest of the form `sha256:<64 hex digits>`".into())
    }
}

/// Counts and digests what is read through it.
#[derive(Debug)]
pub(crate) struct HashingReader<R> {
    inner: R,
    state: Sha256,
    bytes: u64,
}

impl<R> HashingReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, state: Sha256::new(), bytes: 0 }
    }

    /// Bytes read until now.
    pub(crate) fn count(&self) -> u64 {
        self.bytes
    }

    /// The source, and the digest of what was read.
    pub(crate) fn finish(self) -> (R, ImageDigest) {
        (self.inner, ImageDigest(self.state.finalize().into()))
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        self.state.update(&buffer[..got]);
        self.bytes += got as u64;
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_spelling_is_a_digest() {
        let text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(ImageDigest::of(b"").to_string(), text);
        assert_eq!(ImageDigest::parse(text), Some(ImageDigest::of(b"")));
        let wrong = [
            String::new(),
            text.to_uppercase(),
            text.replace("sha256", "sha512"),
            text[..70].to_owned(),
            format!("{text}0"),
            text.replace('e', "/"),
            format!("sha256:{}", "é".repeat(32)),
        ];
        assert_eq!(wrong.map(|text| ImageDigest::parse(&text)), [None; 7]);
    }
}
