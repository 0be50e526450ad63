//! The fake's files: a tree in memory and how paths are resolved in it.
//!
//! Owns what is where and who may write where. It must never know of commands,
//! ids or time; times of change are a counter.

use std::collections::BTreeMap;

use outrigger_sandbox::{EntryKind, FileError, FileErrorKind, ListEntry, is_within, limits, text};

/// Where relative paths start.
pub(super) const WORKSPACE: &str = "/workspace";
/// Beneath these the sandbox's user may write.
const WRITABLE: [&str; 3] = [WORKSPACE, "/tmp", "/home/agent"];

/// What a path stands for.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Directory,
    File {
        bytes: Vec<u8>,
        executable: bool,
        modified: i64,
    },
    Link {
        target: String,
    },
    /// Like `/dev/null`: there, and not for file operations.
    Device,
}

impl Node {
    pub(super) fn kind(&self) -> EntryKind {
        match self {
            Self::Directory => EntryKind::Directory,
            Self::File { .. } => EntryKind::File,
            Self::Link { .. } => EntryKind::Link,
            Self::Device => EntryKind::Other,
        }
    }
}

/// A path as the caller gave it, with the absolute one that it leads to.
#[derive(Debug, Clone)]
pub(super) struct ResolvedPath {
    given: String,
    pub(super) path: String,
}

impl ResolvedPath {
    pub(super) fn error(&self, kind: FileErrorKind, detail: &str) -> FileError {
        FileError { kind, path: self.given.clone(), detail: detail.to_owned() }
    }

    fn parent(&self) -> &str {
        parent(&self.path)
    }
}

/// Whether the last part of a path is followed when it is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symlinks {
    Followed,
    AsItIs,
}

/// Every path that there is, absolute and without links.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    nodes: BTreeMap<String, Node>,
    changes: i64,
    bytes: usize,
}

impl Tree {
    /// A workspace and a `/tmp`, both empty, and a little of a system around them.
    pub(super) fn new() -> Self {
        let mut nodes = BTreeMap::new();
        for path in ["/", "/dev", "/etc", "/tmp", "/usr", "/usr/bin", WORKSPACE] {
            nodes.insert(path.to_owned(), Node::Directory);
        }
        nodes.insert("/dev/null".to_owned(), Node::Device);
        nodes.insert("/dev/zero".to_owned(), Node::Device);
        let passwd = b"user:x:1000:1000::/workspace:/bin/sh\n".to_vec();
        let passwd = Node::File { bytes: passwd, executable: false, modified: 0 };
        nodes.insert("/etc/passwd".to_owned(), passwd);
        Self { nodes, changes: 0, bytes: 0 }
    }

    /// Where a path leads, following links beneath its root. What is missing at
    /// the end of it is no error here.
    pub(super) fn resolve(&self, given: &str, last: Symlinks) -> Result<ResolvedPath, FileError> {
        text::check_path(given)?;
        let fail = |kind, detail: &str| {
            Err(FileError { kind, path: given.to_owned(), detail: detail.to_owned() })
        };
        let root = root_of(given);
        let mut rest = parts(given.strip_prefix(root).unwrap_or(given));
        let mut at = root.to_owned();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part == ".." {
                if at == root {
                    return fail(FileErrorKind::InvalidPath, "the path leaves its root");
                }
                at = parent(&at).to_owned();
                continue;
            }
            let next = join(&at, &part);
            match self.nodes.get(&at) {
                Some(Node::Directory) | None => {}
                Some(Node::File { .. } | Node::Link { .. } | Node::Device) => {
                    return fail(FileErrorKind::NotADirectory, "a part of the path is a file");
                }
            }
            let Some(Node::Link { target }) = self.nodes.get(&next) else {
                at = next;
                continue;
            };
            if rest.is_empty() && last == Symlinks::AsItIs {
                at = next;
                continue;
            }
            links += 1;
            if links > limits::LINKS_MAX {
                return fail(FileErrorKind::InvalidPath, "too many symbolic links; perhaps a loop");
            }
            let mut beneath = target.as_str();
            if target.starts_with('/') {
                if root_of(target) != root {
                    return fail(FileErrorKind::InvalidPath, "a symbolic link leaves its root");
                }
                root.clone_into(&mut at);
                beneath = target.strip_prefix(root).unwrap_or(target);
            }
            rest.extend(parts(beneath));
        }
        Ok(ResolvedPath { given: given.to_owned(), path: at })
    }

    /// What is there.
    pub(super) fn get(&self, resolved: &ResolvedPath) -> Result<&Node, FileError> {
        let missing =
            || resolved.error(FileErrorKind::FileNotFound, "there is nothing at that path");
        self.nodes.get(&resolved.path).ok_or_else(missing)
    }

    /// The contents of a regular file.
    pub(super) fn file(&self, path: &str) -> Result<&[u8], FileError> {
        let resolved = self.resolve(path, Symlinks::Followed)?;
        match self.get(&resolved)? {
            Node::File { bytes, .. } => Ok(bytes),
            Node::Directory => Err(resolved.error(FileErrorKind::IsDirectory, "it is a directory")),
            Node::Link { .. } | Node::Device => {
                Err(resolved.error(FileErrorKind::InvalidPath, "it is not a regular file"))
            }
        }
    }

    /// Everything beneath a directory, at any depth, by absolute path in byte order.
    pub(super) fn beneath<'a>(
        &'a self,
        directory: &str,
    ) -> impl Iterator<Item = (&'a str, &'a Node)> + use<'a> {
        let prefix = if directory == "/" { "/".to_owned() } else { format!("{directory}/") };
        let range = self.nodes.range(prefix.clone()..);
        let inside = range.take_while(move |(path, _)| path.starts_with(&prefix));
        inside.filter(|(path, _)| *path != "/").map(|(path, node)| (path.as_str(), node))
    }

    /// A place as an entry of a listing.
    pub(super) fn entry(path: &str, node: &Node) -> ListEntry {
        let (bytes, modified_ms, executable) = match node {
            Node::File { bytes, executable, modified } => {
                (bytes.len() as u64, *modified, *executable)
            }
            Node::Directory | Node::Link { .. } | Node::Device => (0, 0, false),
        };
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        ListEntry { name, kind: node.kind(), bytes, modified_ms, executable }
    }

    /// Refuses places where the sandbox's user may not write.
    pub(super) fn check_writable(resolved: &ResolvedPath) -> Result<(), FileError> {
        let inside = |root: &&str| resolved.path.starts_with(&format!("{root}/"));
        if WRITABLE.iter().any(inside) {
            return Ok(());
        }
        let detail = "the sandbox's user may write beneath /workspace, /tmp and /home/agent only";
        Err(resolved.error(FileErrorKind::PermissionDenied, detail))
    }

    /// Makes the missing directories above a place.
    pub(super) fn make_parents(&mut self, resolved: &ResolvedPath) -> Result<(), FileError> {
        self.make_directories(resolved.parent(), resolved)
    }

    /// Makes a directory and what is missing above it.
    pub(super) fn make_directories(
        &mut self,
        path: &str,
        resolved: &ResolvedPath,
    ) -> Result<(), FileError> {
        let mut at = "/".to_owned();
        for part in parts(path).into_iter().rev() {
            at = join(&at, &part);
            let node = self.nodes.entry(at.clone()).or_insert(Node::Directory);
            if !matches!(node, Node::Directory) {
                let detail = "a part of the path is a file";
                return Err(resolved.error(FileErrorKind::NotADirectory, detail));
            }
        }
        Ok(())
    }

    /// Puts a file where there is none or one, in a directory that is there.
    pub(super) fn put_file(
        &mut self,
        resolved: &ResolvedPath,
        bytes: Vec<u8>,
        executable: bool,
    ) -> Result<(), FileError> {
        let before = match self.nodes.get(&resolved.path) {
            Some(Node::File { bytes, .. }) => bytes.len(),
            Some(Node::Directory | Node::Link { .. } | Node::Device) | None => 0,
        };
        let after = self.bytes - before + bytes.len();
        if after > crate::limits::FAKE_DISK_BYTES_MAX {
            return Err(resolved.error(FileErrorKind::NoSpace, "the disk is full"));
        }
        self.bytes = after;
        self.changes += 1;
        let node = Node::File { bytes, executable, modified: self.changes };
        self.nodes.insert(resolved.path.clone(), node);
        Ok(())
    }

    /// Puts a link, in place of a file or link.
    pub(super) fn put_link(&mut self, resolved: &ResolvedPath, target: String) {
        self.remove(resolved);
        self.nodes.insert(resolved.path.clone(), Node::Link { target });
    }

    /// Gives what is there, with all beneath it, another path; a file there is replaced.
    pub(super) fn rename(&mut self, from: &ResolvedPath, to: &ResolvedPath) {
        let prefix = format!("{}/", from.path);
        let moves = |path: &&String| **path == from.path || path.starts_with(&prefix);
        let moving: Vec<_> = self.nodes.keys().filter(moves).cloned().collect();
        for path in moving {
            let Some(node) = self.nodes.remove(&path) else { continue };
            self.nodes.insert(format!("{}{}", to.path, &path[from.path.len()..]), node);
        }
    }

    /// Removes what is there with all beneath it.
    pub(super) fn remove(&mut self, resolved: &ResolvedPath) {
        let prefix = format!("{}/", resolved.path);
        let gone = |path: &String| *path == resolved.path || path.starts_with(&prefix);
        self.nodes.retain(|path, _| !gone(path));
        let sizes = self.nodes.values().map(|node| match node {
            Node::File { bytes, .. } => bytes.len(),
            Node::Directory | Node::Link { .. } | Node::Device => 0,
        });
        self.bytes = sizes.sum();
    }
}

/// The root that a path must stay beneath.
fn root_of(path: &str) -> &'static str {
    match WRITABLE.iter().find(|root| is_within(path, root)) {
        Some(root) => root,
        None if path.starts_with('/') => "/",
        None => WORKSPACE,
    }
}

/// The parts of a path, last first, empty ones and `.` left out.
fn parts(path: &str) -> Vec<String> {
    let named = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    named.rev().map(str::to_owned).collect()
}

fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &path[..at],
    }
}

fn join(directory: &str, name: &str) -> String {
    if directory == "/" { format!("/{name}") } else { format!("{directory}/{name}") }
}
