//! Skills: which there are, and whether sessions are told of them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Skills, and whose are taken in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct SkillList {
    /// Those that are yours to see.
    pub data: Vec<SkillInfo>,
    /// Public keys of Ed25519, in hexadecimal: `outrigger skills import` takes in only what one of
    /// them signed; every skill, if there are none.
    #[serde(default)]
    pub trusted_keys: Vec<String>,
}

/// A folder that is, or should be, a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SkillInfo {
    /// As sessions see it, for example `/skills/user/pdf`.
    pub path: String,
    /// What it is called; absent if it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it says it is for; absent if it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// SHA-256 over all of its files but the signature, by which it is pinned.
    pub digest: String,
    /// Whether sessions are told of it.
    pub standing: SkillStanding,
    /// Why it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How many files it has.
    pub files: u64,
}

/// Whether sessions are told of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillStanding {
    /// They are.
    Offered,
    /// Its content is not what is pinned.
    NotPinned,
    /// Somebody else wrote it, or a session that had read what nobody vouches for, and nobody
    /// accepted it.
    NotReviewed,
    /// It is not as the format demands.
    Invalid,
}
