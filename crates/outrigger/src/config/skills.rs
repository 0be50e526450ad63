//! `[skills]`: whose skills are taken in, and which content of one is offered.

use outrigger_agent::Digest;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Whose skills are taken in, and which content of one is offered (`docs/how-to/skills.md`).
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Skills {
    /// Public keys of Ed25519. `outrigger skills import` takes in only what one of them signed, in
    /// the file SKILL.sig; every skill, if there are none.
    #[cfg_attr(test, schemars(example =
        ["d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"]))]
    pub(crate) trusted_keys: Vec<Key>,
    /// Folders of skills as sessions see them, each with a digest. A session is told of such a
    /// skill only as long as its content has this digest, which `outrigger skills ls` shows.
    #[cfg_attr(test, schemars(example = serde_json::json!({"/skills/organisation/pdf":
        "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"})))]
    pub(crate) pins: BTreeMap<String, Key>,
}

/// 32 bytes, written as 64 hexadecimal digits: a public key, or a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("pattern" = "^[0-9A-Fa-f]{64}$")))]
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
