//! Memory and skills: files with versions, by the paths that sessions see them at.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A file or folder of memory or skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EntryInfo {
    /// For example `/memory/user/notes.md`.
    pub path: String,
    /// Whether it is a folder, which has no versions.
    pub folder: bool,
    /// The newest version, from 1.
    pub revision: u64,
    /// Size of a file.
    pub bytes: u64,
    /// SHA-256 of what is in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// When it was changed last.
    pub modified_ms: u64,
    /// Whether a sandbox may execute it.
    pub executable: bool,
    /// From when on it should be looked at again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_by_ms: Option<u64>,
    /// Whether its content was destroyed.
    pub redacted: bool,
}

/// Files and folders.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct EntryList {
    /// By their paths.
    pub data: Vec<EntryInfo>,
}

/// A version of a file, and who wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EntryVersion {
    /// Where it was then.
    pub path: String,
    /// Its number, from 1.
    pub revision: u64,
    /// What was there then.
    pub state: EntryVersionState,
    /// Size of a file.
    pub bytes: u64,
    /// SHA-256 of what was in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// For whom it was written.
    pub author: String,
    /// Through what.
    pub via: EntryVia,
    /// When.
    pub at_ms: u64,
    /// The agent that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// In which session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// By which event of its journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// What sticks to it, for example that others had a hand in it.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Why, as who wrote it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Who accepted it, where changes are reviewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_by: Option<String>,
    /// Whether its content is still there.
    pub kept: bool,
    /// Who destroyed its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<EntryRedaction>,
}

/// What was at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryVersionState {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// Nothing any more.
    Removed,
}

/// Through what a version was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryVia {
    /// A tool of the agent.
    Tool,
    /// A program in a sandbox.
    Sandbox,
    /// A person.
    Person,
    /// An import.
    Import,
}

/// Who destroyed a content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EntryRedaction {
    /// Who.
    pub by: String,
    /// Why.
    pub why: String,
    /// When.
    pub at_ms: u64,
}

/// A version with what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EntryContent {
    /// The version.
    pub version: EntryVersion,
    /// Nothing if it is no text.
    pub text: Option<String>,
}

/// Versions, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct EntryHistory {
    /// A page of them.
    pub data: Vec<EntryVersion>,
    /// Whether there are older ones.
    pub more: bool,
}

/// What changed from one version to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EntryDiff {
    /// The file.
    pub path: String,
    /// The older version; 0 before there was one.
    pub from: u64,
    /// The newer version.
    pub to: u64,
    /// A unified diff.
    pub diff: String,
}

/// Who wrote each line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EntryBlame {
    /// The file.
    pub path: String,
    /// Its lines.
    pub lines: Vec<EntryLine>,
}

/// A line, and who wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EntryLine {
    /// The line, with its end.
    pub line: String,
    /// The version in which it appeared.
    pub revision: u64,
    /// For whom it was written.
    pub author: String,
    /// The agent that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// In which session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// By which event of its journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// When.
    pub at_ms: u64,
}

/// Files that have the words that were asked for, best first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct EntryHits {
    /// The files.
    pub data: Vec<EntryHit>,
}

/// A file that has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EntryHit {
    /// The file.
    pub entry: EntryInfo,
    /// Where they stand in it.
    pub snippet: String,
}

/// Writes a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteEntry {
    /// All that it says from then on.
    pub text: String,
    /// Why, for who reads its history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether a sandbox may execute it; as before if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<bool>,
}

/// Makes an older version the newest again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RevertEntry {
    /// The file.
    pub path: String,
    /// The version that comes back.
    pub to: u64,
}

/// Destroys the content of versions for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedactEntry {
    /// The file.
    pub path: String,
    /// Only this version; all of them if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// What becomes of versions that are no copies and still have a part of it, because they were
    /// edited. If absent and there are any, nothing is destroyed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived: Option<DerivedVersions>,
    /// What whoever asks for it later is told.
    pub why: String,
}

/// What becomes of versions that have a part of what is destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DerivedVersions {
    /// They stay.
    Leave,
    /// They are destroyed as well.
    Destroy,
}

/// What was destroyed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RedactedEntry {
    /// The versions that lost their content, copies elsewhere among them.
    pub data: Vec<EntryVersion>,
    /// And so many that the person does not see.
    pub unseen: u64,
    /// Others read the store just now: the last bytes go when they are done.
    pub lingers: bool,
    /// The proposal that somebody has to accept first; then nothing is destroyed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<u64>,
}

/// What a change made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangedEntry {
    /// The file.
    pub path: String,
    /// Its version now; nothing where it was proposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// The proposal that somebody has to accept first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<u64>,
}
