//! What is open.

use std::rc::Rc;

use outrigger_sandbox::TreeEntry;

use super::requests::AskTime;

/// What is open.
#[derive(Debug)]
pub(super) enum Handle {
    File(OpenFile),
    Folder(OpenDirectory),
}

/// An open file.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenFile {
    pub(super) node: u64,
    pub(super) writes: bool,
    pub(super) appends: bool,
    /// What was written by it, or by others of its file, was refused and is lost.
    pub(super) stale: bool,
    /// That of its file when it was opened.
    pub(super) epoch: u64,
    /// The kernel drops pages of before when it has the answer, and was not seen to have it.
    pub(super) drops: bool,
}

/// An open folder.
#[derive(Debug)]
pub(super) struct OpenDirectory {
    pub(super) node: u64,
    /// After which name each page begins, as far as they are known.
    pub(super) begins: Vec<Option<String>>,
    /// The page that was read last.
    pub(super) page: Option<Page>,
    /// Whether it was read yet since it was asked for.
    pub(super) used: bool,
}

/// A page of an open folder.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) number: u64,
    pub(super) entries: Rc<Vec<TreeEntry>>,
    pub(super) more: bool,
    pub(super) asked: AskTime,
}
