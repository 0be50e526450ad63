//! File operations: one enum of all that can be asked, one of all that can be answered.
//!
//! Every path is absolute, or relative to the workspace, and is resolved inside
//! the sandbox beneath the workspace or another allowed root. A symlink that
//! leaves its root is refused; so are FIFOs, devices and sockets. Nothing hangs.

use serde::{Deserialize, Serialize};

use crate::ExecId;

/// SHA-256 of a file's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContentDigest(pub [u8; 32]);

/// An operation on the sandbox's files. Those that change something carry an id
/// and are performed once per id and generation, so that a repeat is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileOp {
    /// What is in a directory, sorted by name. Answer: [`FileReply::Entries`].
    List {
        /// The directory.
        path: String,
        /// At most [`crate::limits::ENTRIES_MAX`].
        entries_max: u32,
    },
    /// What a path is, without following a last symlink. Answer: [`FileReply::Entry`].
    Stat {
        /// The path.
        path: String,
    },
    /// Bytes of a regular file. Answer: [`FileReply::Bytes`]. Beyond the end: empty.
    /// One that the sandbox's user owns and closed to itself is opened to it again.
    Read {
        /// The file.
        path: String,
        /// First byte, from 0.
        offset: u64,
        /// At most [`crate::limits::FILE_CHUNK_BYTES_MAX`].
        bytes_max: u64,
    },
    /// Whole lines of a regular file. Answer: [`FileReply::Lines`].
    ReadLines {
        /// The file.
        path: String,
        /// First line, from 1.
        first: u64,
        /// How many at most.
        lines_max: u64,
        /// How many bytes at most, all lines together.
        bytes_max: u64,
    },
    /// Writes a regular file, through a temporary name and a rename unless it
    /// appends. Makes missing parent directories. Answer: [`FileReply::Written`].
    Write {
        /// Performed once per id.
        id: ExecId,
        /// The file.
        path: String,
        /// At most [`crate::limits::FILE_CHUNK_BYTES_MAX`]; longer files follow by `Append`.
        #[serde(with = "serde_bytes")]
        contents: Vec<u8>,
        /// New file, replacement or continuation.
        mode: WriteMode,
        /// Sets or clears the execute bits; `None` keeps them (a new file has none).
        executable: Option<bool>,
        /// When it is said to have been changed last, in nanoseconds since 1970; `None`: now.
        modified_ns: Option<i64>,
        /// What must hold of the file before.
        precondition: Precondition,
    },
    /// Replaces text in a regular file; bytes outside the replacement stay as they are.
    /// Answer: [`FileReply::Edited`]. Text that is absent, or there more than once
    /// when one was asked for, gives `conflict` with the count.
    Edit {
        /// Performed once per id.
        id: ExecId,
        /// The file, at most [`crate::limits::EDIT_FILE_BYTES_MAX`].
        path: String,
        /// The bytes to replace; not empty.
        #[serde(with = "serde_bytes")]
        old: Vec<u8>,
        /// What takes their place.
        #[serde(with = "serde_bytes")]
        new: Vec<u8>,
        /// Exactly one, or all.
        occurrences: Occurrences,
        /// What must hold of the file before.
        precondition: Precondition,
    },
    /// Makes a symbolic link whose target is stored as given. Answer: [`FileReply::Done`].
    Link {
        /// Performed once per id.
        id: ExecId,
        /// Where the link stands. Replaces a file or link, not a directory.
        path: String,
        /// What it says.
        target: String,
    },
    /// Makes a directory and its missing parents. Answer: [`FileReply::Done`].
    MakeDir {
        /// Performed once per id.
        id: ExecId,
        /// The directory. One that is there already is fine.
        path: String,
    },
    /// Removes a file, a link, or a directory with all in it. Answer: [`FileReply::Done`].
    Remove {
        /// Performed once per id.
        id: ExecId,
        /// What to remove.
        path: String,
    },
    /// Gives a file, a link or a directory another path, in one step; links are moved, not
    /// followed. Makes missing parents. Answer: [`FileReply::Done`]. Across file systems
    /// (`/workspace` and `/tmp` may be two) it is `invalid_path`.
    Move {
        /// Performed once per id.
        id: ExecId,
        /// What to move.
        path: String,
        /// Where it is then. A file or link there is replaced, a directory is not.
        to: String,
    },
    /// Paths of files that match a pattern (`*`, `**`, `?`, `[..]`, `{..}`), sorted,
    /// hidden ones included, `.git` left out unless the pattern or root names it. Answer: [`FileReply::Paths`].
    Glob {
        /// Where to look.
        root: String,
        /// Matched against the path relative to `root`; one without `/` matches at any depth.
        pattern: String,
        /// At most [`crate::limits::ENTRIES_MAX`].
        paths_max: u32,
    },
    /// Lines that match, by path and line; binary files are passed over. Answer: [`FileReply::Matches`].
    Grep {
        /// A directory to search, or one file.
        root: String,
        /// What to look for.
        pattern: GrepPattern,
        /// Only files that match this glob.
        glob: Option<String>,
        /// At most [`crate::limits::MATCHES_MAX`].
        matches_max: u32,
    },
    /// Every file and link beneath a directory with its digest, and every FIFO, device and
    /// socket without one, sorted by path, in pages. Answer: [`FileReply::Manifest`].
    ///
    /// All or nothing: what can't be read, or is above
    /// [`crate::limits::MANIFEST_FILE_BYTES_MAX`], is an error that names it, because
    /// what is missing here is taken for deleted. A file or directory that the
    /// sandbox's user owns and closed to itself is opened to it again.
    Manifest {
        /// The directory.
        root: String,
        /// The last path of the page before.
        after: Option<String>,
        /// Directories beneath it that are passed over with all that is in them, by their
        /// paths from there.
        skip: Vec<String>,
        /// At most [`crate::limits::ENTRIES_MAX`].
        entries_max: u32,
    },
}

impl FileOp {
    /// The path that it is about; for a search and a manifest the root of it.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::List { path, .. }
            | Self::Stat { path }
            | Self::Read { path, .. }
            | Self::ReadLines { path, .. }
            | Self::Write { path, .. }
            | Self::Edit { path, .. }
            | Self::Link { path, .. }
            | Self::MakeDir { path, .. }
            | Self::Remove { path, .. }
            | Self::Move { path, .. }
            | Self::Glob { root: path, .. }
            | Self::Grep { root: path, .. }
            | Self::Manifest { root: path, .. } => path,
        }
    }

    /// The id of an operation that changes something; `None` for one that only reads.
    #[must_use]
    pub fn id(&self) -> Option<&ExecId> {
        match self {
            Self::Write { id, .. }
            | Self::Edit { id, .. }
            | Self::Link { id, .. }
            | Self::MakeDir { id, .. }
            | Self::Remove { id, .. }
            | Self::Move { id, .. } => Some(id),
            Self::List { .. }
            | Self::Stat { .. }
            | Self::Read { .. }
            | Self::ReadLines { .. }
            | Self::Glob { .. }
            | Self::Grep { .. }
            | Self::Manifest { .. } => None,
        }
    }
}

/// How [`FileOp::Write`] treats what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteMode {
    /// A new file; `already_exists` if there is one.
    Create,
    /// A new file, or the new contents of an old one.
    Replace,
    /// At the end of the file, which must be there.
    Append,
}

/// What [`FileOp::Write`] and [`FileOp::Edit`] demand of the file before they change it;
/// else `conflict`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Precondition {
    /// Nothing.
    None,
    /// Its contents have this digest. `too_large` above
    /// [`crate::limits::MANIFEST_FILE_BYTES_MAX`].
    Digest(ContentDigest),
}

/// How many places [`FileOp::Edit`] changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Occurrences {
    /// The text must be there exactly once.
    One,
    /// Every place, at least one.
    All,
}

/// What [`FileOp::Grep`] looks for in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GrepPattern {
    /// This text, as it is.
    Literal(String),
    /// A regular expression of the `regex` crate, which takes linear time.
    Regex(String),
    /// A regular expression without regard to case.
    RegexIgnoreCase(String),
}

/// What a name in a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// FIFO, device or socket.
    Other,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListEntry {
    /// The name; bytes that are no UTF-8 are shown as U+FFFD.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Size of a file.
    pub bytes: u64,
    /// Last change, milliseconds since 1970.
    pub modified_ms: i64,
    /// Whether any execute bit is set.
    pub executable: bool,
}

/// Lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// The bytes of the lines, with their line ends.
    #[serde(with = "serde_bytes")]
    pub text: Vec<u8>,
    /// Number of the first line given, from 1.
    pub first: u64,
    /// How many lines are given.
    pub count: u64,
    /// How many lines the file has; a last line without a line end counts.
    /// `None` if the file was too large to count within the limits.
    pub total: Option<u64>,
    /// Lines of `text` that were cut at [`crate::limits::LINE_BYTES_MAX`].
    pub cut_lines: u64,
    /// Digest of the whole file, if it was read whole.
    pub digest: Option<ContentDigest>,
}

/// What an edit changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditReport {
    /// How many places were replaced.
    pub replaced: u64,
    /// Line of the first of them, from 1.
    pub first_line: u64,
    /// Digest of the file after it.
    pub digest: ContentDigest,
}

/// A line that matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrepMatch {
    /// Absolute path.
    pub path: String,
    /// Line, from 1.
    pub line: u64,
    /// Its text without the line end, invalid UTF-8 replaced, cut at [`crate::limits::LINE_BYTES_MAX`].
    pub text: String,
}

/// A file or link of a tree with what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    /// Path relative to the root of the manifest.
    pub path: String,
    /// What it is; directories are listed only when empty.
    pub kind: EntryKind,
    /// Whether any execute bit is set.
    pub executable: bool,
    /// Size of a file.
    pub bytes: u64,
    /// Digest of the contents, or of the target of a link. `None` for a file above
    /// [`crate::limits::MANIFEST_FILE_BYTES_MAX`], which is not read, and for what is
    /// neither file, link nor directory.
    pub digest: Option<ContentDigest>,
    /// What a link says; `None` for a file.
    pub target: Option<String>,
}

/// The answer to a [`FileOp`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileReply {
    /// To `List`.
    Entries {
        /// Sorted by name.
        entries: Vec<ListEntry>,
        /// Whether there were more.
        truncated: bool,
    },
    /// To `Stat`.
    Entry(ListEntry),
    /// To `Read`.
    Bytes {
        /// What was read.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
        /// Size of the whole file.
        total_bytes: u64,
    },
    /// To `ReadLines`.
    Lines(Lines),
    /// To `Write`.
    Written {
        /// Digest of the written piece.
        digest: ContentDigest,
        /// Whether a file was there before.
        replaced: bool,
    },
    /// To `Edit`.
    Edited(EditReport),
    /// To `Link`, `MakeDir` and `Remove`.
    Done,
    /// To `Glob`.
    Paths {
        /// Absolute paths, sorted.
        paths: Vec<String>,
        /// Whether there were more, or a limit ended the search.
        truncated: bool,
    },
    /// To `Grep`.
    Matches {
        /// By path and line.
        matches: Vec<GrepMatch>,
        /// Whether there were more, or a limit ended the search.
        truncated: bool,
    },
    /// To `Manifest`.
    Manifest {
        /// Sorted by path.
        entries: Vec<ManifestEntry>,
        /// Whether another page follows after the last of these.
        more: bool,
    },
}
