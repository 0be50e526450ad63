//! `[skills]`: whose skills are taken in, and which content of one is offered.

use outrigger_agent::Digest;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The keys of the table.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Skills {
    /// Keys by which a skill must be signed to be taken in; any, if there are none.
    pub(crate) trusted_keys: Vec<Key>,
    /// Folders of skills, as sessions see them, with the only digest that is offered.
    pub(crate) pins: BTreeMap<String, Key>,
}

/// 32 bytes, written as 64 hexadecimal digits: a public key, or a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Key(pub(crate) [u8; 32]);

impl TryFrom<String> for Key {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = Digest::parse(&text.to_ascii_lowercase());
        let read = read.ok_or_else(|| format!("`{text}` is not 64 hexadecimal digits"))?;
        Ok(Self(read.to_sha256()))
    }
}

impl Skills {
    /// What a stronger file adds and replaces.
    pub(super) fn absorb(&mut self, more: Self) {
        if !more.trusted_keys.is_empty() {
            self.trusted_keys = more.trusted_keys;
        }
        self.pins.extend(more.pins);
    }
}
