//! A tree as it is in this sandbox.
//!
//! Owns what is open of it, what is kept of its files, and who read what. No call here ever
//! waits but for a host, and none may touch a path of the mount itself, which would wait
//! for this very thread.

use std::cell::RefCell;
use std::rc::Rc;

use super::contents_cache::ContentsCache;
use super::context::FuseContext;
use super::directory::OpenDirectories;
use super::file::Contents;
use super::node_cache::NodeCache;
use super::nodes::{Entry, Nodes};
use super::open_files::{OpenFile, OpenFiles};
use super::read_history::ReadHistory;
use super::requests::Errno;

/// A tree as it is in this sandbox. Files are opened, read and written by it in `open`, and
/// written back in `writeback`.
#[derive(Debug)]
pub(super) struct MountedTree {
    pub(super) shared: Rc<FuseContext>,
    pub(super) node_cache: NodeCache,
    pub(super) files: RefCell<OpenFiles>,
    pub(super) directories: OpenDirectories,
    pub(super) reads: RefCell<ReadHistory>,
    contents: RefCell<ContentsCache>,
}

impl MountedTree {
    pub(super) fn new(path: String, shared: Rc<FuseContext>) -> Self {
        Self {
            node_cache: NodeCache::new(path, Rc::clone(&shared)),
            shared,
            files: RefCell::default(),
            directories: OpenDirectories::default(),
            reads: RefCell::default(),
            contents: RefCell::default(),
        }
    }

    /// Gives an open file a number.
    pub(super) fn hold(&self, file: OpenFile) -> u64 {
        let handle = self.shared.next_handle();
        self.files.borrow_mut().insert(handle, file);
        handle
    }

    /// The open file of a number, which is being used.
    pub(super) fn opened(&self, handle: u64) -> Result<OpenFile, Errno> {
        let opened = self.files.borrow_mut().used(handle)?;
        if opened.drops {
            self.dropped(opened.node, handle);
        }
        Ok(opened)
    }

    /// The kernel has the answer to an opening, and has dropped its pages of before.
    pub(super) fn dropped(&self, id: u64, handle: u64) {
        let mut nodes = self.node_cache.nodes.borrow_mut();
        if let Ok(file) = nodes.get(id).and_then(Entry::file)
            && file.dropping == Some(handle)
        {
            file.dropping = None;
        }
    }

    /// Keeps contents for as long as there is room.
    pub(super) fn keep(&self, nodes: &mut Nodes, id: u64, revision: u64, bytes: Rc<Vec<u8>>) {
        let contents = Contents { revision, bytes, tick: self.shared.tick() };
        self.contents.borrow_mut().keep(nodes, id, contents);
    }
}
