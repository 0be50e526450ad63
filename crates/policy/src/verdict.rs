//! The three rulings of a judgement, with the rules that made it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// SHA-256 over the canonical text of a rule set: names exactly what was in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RuleSetHash([u8; 32]);

impl RuleSetHash {
    pub(crate) fn new(digest: [u8; 32]) -> Self {
        Self(digest)
    }
}

impl fmt::Display for RuleSetHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<RuleSetHash> for String {
    fn from(hash: RuleSetHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for RuleSetHash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let malformed = || format!("`{text}` is not 64 hexadecimal digits");
        if text.len() != 64 || !text.is_ascii() {
            return Err(malformed());
        }
        let mut digest = [0; 32];
        for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| malformed())?;
        }
        Ok(Self(digest))
    }
}

/// What the rules say of a situation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may be done.
    Permit {
        /// The rules that permit it.
        rules: Vec<String>,
    },
    /// It may not, and nobody can approve it.
    Forbid {
        /// The rules that forbid it; empty when no rule speaks of it.
        rules: Vec<String>,
        /// Why, in the words of those rules that say it (`@reason`).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reasons: Vec<String>,
    },
    /// It may be done once a person approves.
    Ask {
        /// The rules that ask.
        rules: Vec<String>,
        /// The people and groups that they name; none where anybody may approve who may
        /// speak in the session.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        approvers: Vec<String>,
        /// Those who may approve too once nobody answered for a time, or `anyone`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        escalates: Vec<String>,
    },
}

impl Verdict {
    /// That it may not be done, by rules that do not say why.
    #[must_use]
    pub fn forbid(rules: Vec<String>) -> Self {
        Self::Forbid { rules, reasons: Vec::new() }
    }

    /// Why it may not be done, in a sentence or more; nothing for what may.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let Self::Forbid { rules, reasons } = self else { return None };
        if rules.is_empty() {
            return Some("No rule permits it.".to_owned());
        }
        let by = format!("It is forbidden by: {}.", rules.join(", "));
        Some(reasons.iter().fold(by, |text, reason| format!("{text} {reason}")))
    }

    /// The rules that decided.
    #[must_use]
    pub fn rules(&self) -> &[String] {
        match self {
            Self::Permit { rules } | Self::Forbid { rules, .. } | Self::Ask { rules, .. } => rules,
        }
    }
}

/// The three rulings, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// It may be done.
    Permit,
    /// It may not.
    Forbid,
    /// A person decides.
    Ask,
}

impl Ruling {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permit => "permit",
            Self::Forbid => "forbid",
            Self::Ask => "ask",
        }
    }
}

impl Verdict {
    /// Which of the three it is.
    #[must_use]
    pub fn ruling(&self) -> Ruling {
        match self {
            Self::Permit { .. } => Ruling::Permit,
            Self::Forbid { .. } => Ruling::Forbid,
            Self::Ask { .. } => Ruling::Ask,
        }
    }
}
