//! Directories that are sent to the server, for sessions that begin with them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::object;

/// A directory that was sent. It is kept for a day, until a session begins with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UploadedWorkspace {
    /// By which a session is begun with it, once, by who sent it.
    pub id: String,
    /// Files and links in it.
    pub files: u64,
    /// Bytes of its archive, unpacked.
    pub bytes: u64,
}

/// The directory that a session begins with, where it was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SentWorkspace {
    /// As the upload was answered.
    pub id: String,
    /// What people know it by, for example `laptop:/home/ada/till`.
    pub source: String,
    /// Where in it the person works; at its top if empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// Files of it that speak to agents, and which the person trusts as they are. Others are told
    /// to the agent as data.
    #[serde(default, deserialize_with = "object::all", skip_serializing_if = "Vec::is_empty")]
    pub trusted: Vec<TrustedContent>,
}

/// A file that a person trusts as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustedContent {
    /// Its path in the directory, for example `AGENTS.md`.
    pub path: String,
    /// Of its contents, in hexadecimal digits.
    pub sha256: String,
}
