//! Answers to the kernel (linux/fuse.h).
//!
//! Owns their form, and that each is written in one piece. Who asked may be gone: then
//! nobody is told.

use std::io::IoSlice;
use std::os::fd::OwnedFd;

use outrigger_sandbox::Node;

use crate::limits;

/// Bytes before each answer.
const HEAD_BYTES: usize = 16;

/// For how long the kernel may use a name without asking, in seconds. Who opens or looks
/// at a file or folder asks for that, and is told when the name no longer stands for it.
const FOLDER_S: u64 = 3_600;
/// For how long the kernel may use the name of a file: a path through what was a file and
/// is a folder now is refused by the kernel itself, without a question. Long enough for a
/// program that lists a folder before it opens what is in it.
const FILE_S: u64 = 30;

/// Flags of an opened file.
pub(super) const KEEP_CACHE: u32 = 1 << 1;
pub(super) const NO_FLUSH: u32 = 1 << 5;

/// Numbers in a row.
#[derive(Debug, Default, Clone)]
pub(super) struct Body(pub(super) Vec<u8>);

impl Body {
    pub(super) fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(super) fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn zeros(mut self, bytes: usize) -> Self {
        self.0.resize(self.0.len() + bytes, 0);
        self
    }
}

/// Whose files they seem to be, as the kernel of whoever mounted them counts ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner(pub(super) u32);

/// What a node looks like.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeAttr {
    pub(super) id: u64,
    pub(super) node: Node,
    /// Names that it has.
    pub(super) links: u32,
}

/// Type and permissions as in stat(2).
pub(super) fn mode(node: &Node) -> u32 {
    let write = if node.writable { 0o200 } else { 0 };
    match (node.folder, node.executable) {
        (true, _) => libc::S_IFDIR | 0o555 | write,
        (false, true) => libc::S_IFREG | 0o555 | write,
        (false, false) => libc::S_IFREG | 0o444 | write,
    }
}

impl Owner {
    /// `struct fuse_attr`.
    fn attr(self, body: Body, look: NodeAttr) -> Body {
        let NodeAttr { id, node, links } = look;
        let seconds = node.modified_ms / 1_000;
        let nanoseconds = u32::try_from(node.modified_ms % 1_000).unwrap_or(0) * 1_000_000;
        let body = body.u64(id).u64(node.bytes).u64(node.bytes.div_ceil(512));
        let body = body.u64(seconds).u64(seconds).u64(seconds);
        let body = body.u32(nanoseconds).u32(nanoseconds).u32(nanoseconds);
        // Owner and group, no device, blocks of a page, no flags.
        body.u32(mode(&node)).u32(links).u32(self.0).u32(self.0).u32(0).u32(4_096).u32(0)
    }

    /// `struct fuse_attr_out`: good for this one answer or, if they are `lent`, for a moment.
    pub(super) fn attributes(self, look: NodeAttr, lent: bool) -> Body {
        let nanoseconds = if lent { limits::LENT_NS } else { 0 };
        self.attr(Body::default().u64(0).u32(nanoseconds).u32(0), look)
    }

    /// `struct fuse_entry_out`, attributes good for this one answer.
    pub(super) fn entry(self, body: Body, look: NodeAttr) -> Body {
        let seconds = if look.node.folder { FOLDER_S } else { FILE_S };
        self.attr(body.u64(look.id).u64(0).u64(seconds).zeros(16), look)
    }
}

/// A name of which the kernel is told nothing else, in a listing that has room for more.
pub(super) fn no_entry(body: Body) -> Body {
    body.zeros(128)
}

/// Adds `struct fuse_dirent`.
pub(super) fn dirent(body: Body, id: u64, offset: u64, name: &[u8], folder: bool) -> Body {
    // DT_DIR and DT_REG of readdir(3).
    let kind = if folder { 4 } else { 8 };
    let length = u32::try_from(name.len()).unwrap_or(0);
    let mut body = body.u64(id).u64(offset).u32(length).u32(kind);
    body.0.extend(name);
    let padding = name.len().next_multiple_of(8) - name.len();
    body.zeros(padding)
}

/// Bytes that [`dirent`] takes.
pub(super) fn dirent_bytes(name: &[u8]) -> usize {
    24 + name.len().next_multiple_of(8)
}

/// `struct fuse_open_out`.
pub(super) fn opened(body: Body, handle: u64, flags: u32) -> Body {
    body.u64(handle).u32(flags).u32(0)
}

/// `struct fuse_init_out`.
pub(super) fn init(minor: u32, readahead: u32, flags: u32, write_bytes: u32) -> Body {
    let pages = u16::try_from(write_bytes / 4_096).unwrap_or(1);
    let body = Body::default().u32(7).u32(minor).u32(readahead).u32(flags);
    // What may wait in the background, and from when on that is much.
    let body = body.u16(64).u16(48).u32(write_bytes).u32(1_000_000).u16(pages);
    body.zeros(2 + 4 + 28)
}

/// `struct fuse_kstatfs`: much room, because the room is somebody else's.
pub(super) fn stat_fs() -> Body {
    const BLOCKS: u64 = 1 << 28;
    const FILES: u64 = 1 << 20;
    let body = Body::default().u64(BLOCKS).u64(BLOCKS).u64(BLOCKS).u64(FILES).u64(FILES);
    body.u32(4_096).u32(255).u32(4_096).zeros(4 + 24)
}

/// Tells who asked that it is done, with this.
pub(super) fn done(device: &OwnedFd, unique: u64, body: &[u8]) {
    write(device, unique, 0, body);
}

/// Tells who asked what went wrong.
pub(super) fn failed(device: &OwnedFd, unique: u64, errno: i32) {
    write(device, unique, -errno, &[]);
}

/// Has the kernel ask for the attributes of a node before it uses them again. Its pages
/// stay, so that this never waits for anybody.
pub(super) fn take_back(device: &OwnedFd, id: u64) {
    // FUSE_NOTIFY_INVAL_INODE, from a place before the first: of no page.
    const INVALID: i32 = 2;
    write(device, 0, INVALID, &Body::default().u64(id).u64(u64::MAX).u64(0).0);
}

fn write(device: &OwnedFd, unique: u64, error: i32, body: &[u8]) {
    let length = u32::try_from(HEAD_BYTES + body.len()).unwrap_or(u32::MAX);
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&length.to_ne_bytes());
    head[4..8].copy_from_slice(&error.to_ne_bytes());
    head[8..].copy_from_slice(&unique.to_ne_bytes());
    // Refused if nobody waits for it any more.
    let _ = rustix::io::writev(device, &[IoSlice::new(&head), IoSlice::new(body)]);
}
