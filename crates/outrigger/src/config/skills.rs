//! `[skills]`: whose skills are taken in, and which content of one is offered.

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
        let wrong = || format!("`{text}` is not 64 hexadecimal digits");
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
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

/// 32 bytes as they are written.
pub(crate) fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
