//! Files of a session's workspace.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileList {
    /// The folder.
    pub path: String,
    /// What is in it, by name.
    pub data: Vec<FileInfo>,
    /// Whether there is more than is told.
    pub more: bool,
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileInfo {
    /// The name.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
    /// Size of a file.
    pub bytes: u64,
    /// When it was changed last.
    pub modified_ms: i64,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, which is not followed.
    Link,
    /// A FIFO, device or socket.
    Other,
}

/// What a file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileContent {
    /// The file.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its text, cut at 512 KiB; nothing if it is none.
    pub text: Option<String>,
    /// Bytes that were cut off.
    pub hidden_bytes: u64,
}

/// What is moved in a sandbox, and where to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveFile {
    /// A file, a link or a folder with all that is in it.
    #[schema(min_length = 1, example = "/workspace/notes.txt")]
    pub from: String,
    /// Where it is then. Folders above it are made; a file there is replaced, a folder is not.
    #[schema(min_length = 1, example = "/workspace/old/notes.txt")]
    pub to: String,
}
