//! What a session changed in its workspace.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a session changed since it began.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceChanges {
    /// The files, in the order of their paths.
    pub files: Vec<ChangedFile>,
    /// A unified diff that `git apply` takes, cut at 2 MiB.
    pub patch: String,
    /// Bytes that were cut off.
    pub hidden_bytes: u64,
    /// What a person has to know before it is written back, in words.
    pub warnings: Vec<String>,
}

/// A file that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangedFile {
    /// Its path in the workspace.
    pub path: String,
    /// How.
    pub change: FileChangeKind,
}

/// How a file was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// It is new.
    Added,
    /// It is otherwise.
    Modified,
    /// It is gone.
    Removed,
}

/// Asks for what was committed in a session's sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadObjects {
    /// Commits that one has, by their ids of 40 hexadecimal digits: what they lead to is left
    /// out.
    #[serde(default)]
    pub known: Vec<String>,
    /// These objects are asked for, and no others, and no HEAD.
    #[serde(default)]
    pub objects: Vec<String>,
}

/// Writes what a session changed back into the directory that it began with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyChanges {
    /// Also what programs run or obey by themselves, such as hooks and CI files, which is refused
    /// otherwise.
    #[serde(default)]
    pub accept_hazards: bool,
}

/// What was written back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AppliedChanges {
    /// How many files.
    pub files: u64,
    /// Where.
    pub directory: String,
}
