//! One mounted tree: what the kernel asks of it, and who answers that.
//!
//! Owns which request is about what. What can be answered from here is answered at once;
//! the rest becomes a task.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use outrigger_sandbox::limits as door;

use super::answer::{self, Body};
use super::context::FuseContext;
use super::header::{self, Header, Request};
use super::kernel_requests::KernelRequests;
use super::mounted_tree::MountedTree;
use super::open::part;
use super::requests::Errno;
use super::{change, rename, resize};
use crate::limits;

/// A mounted tree.
#[derive(Debug)]
pub(super) struct Mount {
    requests: Rc<KernelRequests>,
    tree: Rc<MountedTree>,
    shared: Rc<FuseContext>,
    gone: Cell<bool>,
}

impl Mount {
    pub(super) fn new(device: OwnedFd, path: String, shared: Rc<FuseContext>) -> Self {
        Self {
            requests: Rc::new(KernelRequests::new(device, Rc::clone(&shared))),
            tree: Rc::new(MountedTree::new(path, Rc::clone(&shared))),
            shared,
            gone: Cell::new(false),
        }
    }

    /// On what the kernel asks.
    pub(super) fn device(&self) -> &OwnedFd {
        &self.requests.device
    }

    /// Whether nobody can ask here any more.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.get()
    }

    /// Lets those go that were interrupted and still wait. Gives when to look again.
    pub(super) fn let_go(&self, now: Instant) -> Option<Duration> {
        self.requests.let_go(now)
    }

    /// Something came from outside: nothing is known for sure any more.
    pub(super) fn take_back(&self) {
        self.tree.node_cache.take_back(self.device());
    }

    /// Takes what the kernel asks, as far as there is room for it.
    pub(super) fn read(&self, buffer: &mut [u8]) {
        for _ in 0..limits::REQUESTS_PER_TURN_MAX {
            if self.shared.requests.is_full() {
                return;
            }
            let length = match rustix::io::read(self.device(), &mut *buffer) {
                Ok(length) => length,
                // One that was taken back while it was read.
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => return self.gone.set(true),
            };
            match header::parse(&buffer[..length]) {
                Ok((header, request)) => self.dispatch(header, request),
                Err(header::MalformedRequest) => {
                    // Who asked is told, if it can be seen who that is.
                    if let Some(unique) = buffer[..length].get(8..16) {
                        let unique = unique.try_into().map_or(0, u64::from_ne_bytes);
                        answer::failed(self.device(), unique, libc::EIO);
                    }
                }
            }
            self.shared.tasks.run();
        }
    }

    fn dispatch(&self, header: Header, request: Request<'_>) {
        let Header { unique, node, pid } = header;
        let tree = Rc::clone(&self.tree);
        match request {
            Request::Lookup { name } => {
                let name = name_of(name).map_err(|_| libc::ENOENT);
                self.begin(unique, async move { tree.node_cache.lookup(node, &name?).await });
            }
            Request::GetAttr => {
                self.begin(unique, async move { tree.node_cache.attributes(node).await });
            }
            Request::SetAttr(change) => {
                self.begin(unique, async move {
                    resize::set_attributes(&tree, node, change, pid).await
                });
            }
            Request::Access { mask } => {
                self.begin(unique, async move { tree.node_cache.access(node, mask).await });
            }
            Request::Open { flags } => {
                self.begin(unique, async move { tree.open(node, flags, pid).await });
            }
            Request::Create { flags, name } => {
                let name = name_of(name);
                self.begin(unique, async move { tree.create(node, &name?, flags, pid).await });
            }
            Request::Read { handle, offset, size } => match tree.bytes_here(handle) {
                Ok(Some(bytes)) => answer::done(self.device(), unique, part(&bytes, offset, size)),
                Ok(None) => {
                    self.begin(unique, async move { tree.read_later(handle, offset, size).await });
                }
                Err(errno) => answer::failed(self.device(), unique, errno),
            },
            Request::Flush { handle } => {
                self.begin(unique, async move { tree.flush(handle, true).await });
            }
            Request::Sync { handle } => {
                self.begin(unique, async move { tree.flush(handle, false).await });
            }
            Request::OpenFolder => {
                self.begin(
                    unique,
                    async move { tree.directories.open(&tree.node_cache, node).await },
                );
            }
            Request::ReadFolder { handle, offset, size, plus } => self.begin(unique, async move {
                tree.directories.read(&tree.node_cache, handle, offset, size as usize, plus).await
            }),
            other => self.change(header, other),
        }
    }

    /// Answers what makes, removes or moves something.
    fn change(&self, header: Header, request: Request<'_>) {
        let Header { unique, node, .. } = header;
        let tree = Rc::clone(&self.tree);
        match request {
            Request::MakeNode { mode, name } => {
                let name = name_of(name);
                self.begin(unique, async move {
                    change::make_node(&tree.node_cache, node, &name?, mode).await
                });
            }
            Request::MakeFolder { name } => {
                let name = name_of(name);
                self.begin(unique, async move {
                    change::make_folder(&tree.node_cache, node, &name?).await
                });
            }
            Request::Unlink { name } => {
                let name = name_of(name);
                self.begin(unique, async move { change::unlink(&tree, node, &name?).await });
            }
            Request::RemoveFolder { name } => {
                let name = name_of(name);
                self.begin(unique, async move {
                    change::remove_folder(&tree.node_cache, node, &name?).await
                });
            }
            Request::Rename { to, flags, old, new } => {
                let (old, new) = (name_of(old), name_of(new));
                self.begin(unique, async move {
                    rename::rename(&tree, (node, &old?), (to, &new?), flags).await
                });
            }
            other => self.at_once(header, other),
        }
    }

    fn begin(&self, unique: u64, work: impl Future<Output = Result<Body, Errno>> + 'static) {
        self.requests.begin(unique, work);
    }

    /// Answers what nobody else need be asked for.
    fn at_once(&self, header: Header, request: Request<'_>) {
        let Header { unique, node, pid } = header;
        let tree = &self.tree;
        let result = match request {
            Request::Forget { count } => {
                return tree.node_cache.nodes.borrow_mut().forget(node, count);
            }
            Request::BatchForget { all } => {
                let mut nodes = tree.node_cache.nodes.borrow_mut();
                return all.into_iter().for_each(|(node, count)| nodes.forget(node, count));
            }
            Request::Interrupt { unique } => return self.requests.interrupt(unique),
            Request::Init { major, minor, readahead, flags } => {
                init(major, minor, readahead, flags)
            }
            Request::Write { handle, offset, flags, data } => {
                tree.write(handle, offset, flags, data, pid)
            }
            Request::Release { handle } => {
                tree.release(handle);
                Ok(Body::default())
            }
            Request::ReleaseFolder { handle } => {
                tree.directories.close(handle);
                Ok(Body::default())
            }
            Request::StatFs => Ok(answer::stat_fs()),
            Request::SyncFolder | Request::Destroy => Ok(Body::default()),
            Request::Refused { errno } => Err(errno),
            _ => Err(libc::ENOSYS),
        };
        self.requests.finish(unique, result);
    }
}

/// A name that a tree can have.
fn name_of(name: &[u8]) -> Result<String, Errno> {
    if name.len() > door::TREE_NAME_BYTES_MAX {
        return Err(libc::ENAMETOOLONG);
    }
    if name == b"." || name == b".." {
        return Err(libc::EINVAL);
    }
    String::from_utf8(name.to_vec()).map_err(|_| libc::EINVAL)
}

/// Agrees on what is used of the protocol.
fn init(major: u32, minor: u32, readahead: u32, flags: u32) -> Result<Body, Errno> {
    // Reads at once, cutting with opening, large writes, listings that say what
    // each name is, lookups side by side, and how many pages go at once.
    const WANTED: u32 = 1 | 1 << 3 | 1 << 5 | 1 << 13 | 1 << 18 | 1 << 22;
    if major != 7 || minor < limits::PROTOCOL_MINOR_MIN {
        return Err(libc::EPROTO);
    }
    let readahead = readahead.min(limits::WRITE_BYTES_MAX);
    Ok(answer::init(limits::PROTOCOL_MINOR_MIN, readahead, flags & WANTED, limits::WRITE_BYTES_MAX))
}
