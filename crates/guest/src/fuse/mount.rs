//! One mounted tree: what the kernel asks of it, and who answers that.
//!
//! Owns the device, and everything that is known of this tree. What can be answered from
//! here is answered at once; the rest becomes a task. No call here ever waits, and none
//! may touch a path of the mount itself, which would wait for this very thread.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use outrigger_sandbox::{Node, TreeOp, TreeReply, limits as door};

use super::answer::{self, Body, NodeAttr};
use super::context::FuseContext;
use super::handle::{Handle, OpenFile};
use super::header::{self, AttrChange, Header, Request};
use super::nodes::Nodes;
use super::requests::{Errno, NodeReply};
use crate::limits;

/// Which revision of a file a process read last, the oldest note forgotten first.
#[derive(Debug, Default)]
pub(super) struct ReadHistory {
    last: HashMap<(u32, u64), u64>,
    order: VecDeque<(u32, u64)>,
}

impl ReadHistory {
    pub(super) fn note(&mut self, pid: u32, node: u64, revision: u64) {
        if self.last.insert((pid, node), revision).is_none() {
            self.order.push_back((pid, node));
        }
        if self.order.len() > limits::READS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.last.remove(&oldest);
        }
    }

    pub(super) fn get(&self, pid: u32, node: u64) -> Option<u64> {
        self.last.get(&(pid, node)).copied()
    }
}

/// Contents that are kept, by the order in which they were used.
#[derive(Debug, Default)]
struct Cache {
    order: VecDeque<(u64, u64, usize)>,
    bytes: usize,
}

/// A mounted tree.
#[derive(Debug)]
pub(super) struct Mount {
    pub(super) device: OwnedFd,
    pub(super) shared: Rc<FuseContext>,
    pub(super) nodes: RefCell<Nodes>,
    pub(super) handles: RefCell<HashMap<u64, Handle>>,
    pub(super) reads: RefCell<ReadHistory>,
    cache: RefCell<Cache>,
    /// Nodes whose attributes the kernel may use without asking.
    pub(super) lent: RefCell<Vec<u64>>,
    /// Tasks by the request that they answer.
    running: RefCell<HashMap<u64, u64>>,
    /// Requests whose process was sent a signal, and when.
    interrupted: RefCell<Vec<(u64, Instant)>>,
    gone: Cell<bool>,
}

impl Mount {
    pub(super) fn new(device: OwnedFd, path: String, shared: Rc<FuseContext>) -> Self {
        Self {
            device,
            shared,
            nodes: RefCell::new(Nodes::new(path)),
            handles: RefCell::default(),
            reads: RefCell::default(),
            cache: RefCell::default(),
            lent: RefCell::default(),
            running: RefCell::default(),
            interrupted: RefCell::default(),
            gone: Cell::new(false),
        }
    }

    /// Whether nobody can ask here any more.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.get()
    }

    /// Takes what the kernel asks, as far as there is room for it.
    pub(super) fn read(self: &Rc<Self>, buffer: &mut [u8]) {
        for _ in 0..limits::REQUESTS_PER_TURN_MAX {
            if self.shared.requests.is_full() {
                return;
            }
            let length = match rustix::io::read(&self.device, &mut *buffer) {
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
                        answer::failed(&self.device, unique, libc::EIO);
                    }
                }
            }
            self.shared.tasks.run();
        }
    }

    fn dispatch(self: &Rc<Self>, header: Header, request: Request<'_>) {
        let Header { unique, node, pid } = header;
        let mount = Rc::clone(self);
        let text = |name: &[u8]| name_of(name);
        match request {
            Request::Lookup { name } => {
                let name = text(name).map_err(|_| libc::ENOENT);
                self.begin(unique, async move { mount.lookup(node, &name?).await });
            }
            Request::GetAttr => self.begin(unique, async move { mount.attributes(node).await }),
            Request::SetAttr { valid, size, uid, gid } => {
                let change = AttrChange { valid, size, uid, gid };
                self.begin(unique, async move { mount.set_attributes(node, change, pid).await });
            }
            Request::MakeNode { mode, name } => {
                let name = text(name);
                self.begin(unique, async move { mount.make_node(node, &name?, mode).await });
            }
            Request::MakeFolder { name } => {
                let name = text(name);
                self.begin(unique, async move { mount.make_folder(node, &name?).await });
            }
            Request::Unlink { name } => {
                let name = text(name);
                self.begin(unique, async move { mount.unlink(node, &name?).await });
            }
            Request::RemoveFolder { name } => {
                let name = text(name);
                self.begin(unique, async move { mount.remove_folder(node, &name?).await });
            }
            Request::Rename { to, flags, old, new } => {
                let (old, new) = (text(old), text(new));
                self.begin(
                    unique,
                    async move { mount.rename((node, &old?), (to, &new?), flags).await },
                );
            }
            Request::Open { flags } => {
                self.begin(unique, async move { mount.open(node, flags, pid).await });
            }
            Request::Create { flags, name } => {
                let name = text(name);
                self.begin(unique, async move { mount.create(node, &name?, flags, pid).await });
            }
            Request::Read { handle, offset, size } => {
                if !self.read_at_once(unique, handle, offset, size) {
                    self.begin(unique, async move { mount.read_later(handle, offset, size).await });
                }
            }
            Request::Flush { handle } => {
                self.begin(unique, async move { mount.flush(handle, true).await });
            }
            Request::Sync { handle } => {
                self.begin(unique, async move { mount.flush(handle, false).await });
            }
            Request::OpenFolder => {
                self.begin(unique, async move { mount.open_folder(node).await });
            }
            Request::ReadFolder { handle, offset, size, plus } => self.begin(unique, async move {
                mount.read_folder(handle, offset, size as usize, plus).await
            }),
            Request::Access { mask } => {
                self.begin(unique, async move { mount.access(node, mask).await });
            }
            other => self.at_once(header, other),
        }
    }

    /// Answers what nobody else need be asked for.
    fn at_once(self: &Rc<Self>, header: Header, request: Request<'_>) {
        let Header { unique, node, pid } = header;
        let result = match request {
            Request::Forget { count } => return self.nodes.borrow_mut().forget(node, count),
            Request::BatchForget { all } => {
                let mut nodes = self.nodes.borrow_mut();
                return all.into_iter().for_each(|(node, count)| nodes.forget(node, count));
            }
            Request::Interrupt { unique } => return self.interrupt(unique),
            Request::Init { major, minor, readahead, flags } => {
                init(major, minor, readahead, flags)
            }
            Request::Write { handle, offset, flags, data } => {
                self.write(handle, offset, flags, data, pid)
            }
            Request::Release { handle } => {
                self.release(handle);
                Ok(Body::default())
            }
            Request::ReleaseFolder { handle } => {
                self.handles.borrow_mut().remove(&handle);
                Ok(Body::default())
            }
            Request::StatFs => Ok(answer::stat_fs()),
            Request::SyncFolder | Request::Destroy => Ok(Body::default()),
            Request::Refused { errno } => Err(errno),
            _ => Err(libc::ENOSYS),
        };
        self.finish(unique, result);
    }

    /// Has a request answered when its work is done.
    fn begin(
        self: &Rc<Self>,
        unique: u64,
        work: impl Future<Output = Result<Body, Errno>> + 'static,
    ) {
        let mount = Rc::clone(self);
        let task = self.shared.tasks.begin(async move {
            let result = work.await;
            mount.running.borrow_mut().remove(&unique);
            mount.finish(unique, result);
        });
        self.running.borrow_mut().insert(unique, task);
    }

    fn finish(&self, unique: u64, result: Result<Body, Errno>) {
        match result {
            Ok(body) => answer::done(&self.device, unique, &body.0),
            Err(errno) => answer::failed(&self.device, unique, errno),
        }
    }

    /// A process was sent a signal while it waits. Most answers come before that matters.
    fn interrupt(&self, unique: u64) {
        if self.running.borrow().contains_key(&unique) {
            self.interrupted.borrow_mut().push((unique, Instant::now()));
        }
    }

    /// Lets those go that were interrupted and still wait. Gives when to look again.
    pub(super) fn let_go(&self, now: Instant) -> Option<Duration> {
        let policy = Duration::from_millis(limits::INTERRUPTED_MS_MAX);
        let mut interrupted = self.interrupted.borrow_mut();
        interrupted.retain(|(unique, since)| {
            let running = self.running.borrow().get(unique).copied();
            let Some(task) = running else { return false };
            if *since + policy > now {
                return true;
            }
            self.running.borrow_mut().remove(unique);
            if self.shared.tasks.end(task) {
                answer::failed(&self.device, *unique, libc::EINTR);
            }
            false
        });
        let next = interrupted.iter().map(|(_, since)| *since + policy).min();
        next.map(|next| next.saturating_duration_since(now))
    }

    /// What is at a path.
    pub(super) async fn stat(&self, path: String) -> Result<NodeReply, Errno> {
        self.found(TreeOp::Stat { path }).await
    }

    /// The node that an operation answers with.
    pub(super) async fn found(&self, op: TreeOp) -> Result<NodeReply, Errno> {
        let asked = self.shared.requests.moment();
        let node = node_of(self.shared.requests.ask(op).await?)?;
        Ok(NodeReply { node, asked })
    }

    /// Passes if a file may be changed after all that was said not to be writable: it is
    /// the tree that refuses it, and knows then of what was tried.
    pub(super) async fn may_change(&self, path: String) -> Result<(), Errno> {
        match self.shared.requests.ask(TreeOp::MayChange { path }).await? {
            TreeReply::Done => Ok(()),
            _ => Err(libc::EIO),
        }
    }

    /// A file, whole.
    pub(super) async fn fetch(&self, path: String) -> Result<(NodeReply, Rc<Vec<u8>>), Errno> {
        let asked = self.shared.requests.moment();
        match self.shared.requests.ask(TreeOp::Read { path }).await? {
            TreeReply::Contents { node, contents }
                if !node.folder
                    && contents.len() <= door::TREE_FILE_BYTES_MAX
                    && contents.len() as u64 == node.bytes =>
            {
                Ok((NodeReply { node, asked }, Rc::new(contents)))
            }
            _ => Err(libc::EIO),
        }
    }

    /// A number that is larger than all before.
    pub(super) fn tick(&self) -> u64 {
        self.shared.ticks.set(self.shared.ticks.get() + 1);
        self.shared.ticks.get()
    }

    pub(super) fn heard(&self) -> u64 {
        self.shared.requests.heard()
    }

    /// Gives what was opened a number.
    pub(super) fn hold(&self, handle: Handle) -> u64 {
        self.shared.handles.set(self.shared.handles.get() + 1);
        self.handles.borrow_mut().insert(self.shared.handles.get(), handle);
        self.shared.handles.get()
    }

    /// The open file of a number, which is being used.
    pub(super) fn opened(&self, handle: u64) -> Result<OpenFile, Errno> {
        let mut handles = self.handles.borrow_mut();
        let Some(Handle::File(opened)) = handles.get_mut(&handle) else { return Err(libc::EBADF) };
        if std::mem::take(&mut opened.drops) {
            self.dropped(opened.node, handle);
        }
        Ok(*opened)
    }

    /// The kernel has the answer to an opening, and has dropped its pages of before.
    pub(super) fn dropped(&self, id: u64, handle: u64) {
        let mut nodes = self.nodes.borrow_mut();
        if let Ok(file) = nodes.get(id).and_then(super::nodes::Entry::file)
            && file.dropping == Some(handle)
        {
            file.dropping = None;
        }
    }

    /// How a node looks to the kernel.
    pub(super) fn look(&self, id: u64) -> Result<NodeAttr, Errno> {
        let mut nodes = self.nodes.borrow_mut();
        let entry = nodes.get(id)?;
        let links = if entry.detached { 0 } else { 1 };
        Ok(NodeAttr { id, node: entry.look(), links })
    }

    /// Keeps contents for as long as there is room.
    pub(super) fn keep(&self, nodes: &mut Nodes, id: u64, revision: u64, bytes: Rc<Vec<u8>>) {
        let tick = self.tick();
        let mut cache = self.cache.borrow_mut();
        let took = bytes.len() + limits::CONTENTS_OVERHEAD_BYTES;
        if let Ok(file) = nodes.get(id).and_then(super::nodes::Entry::file) {
            file.contents = Some(super::file::Contents { revision, bytes, tick });
            cache.order.push_back((tick, id, took));
            cache.bytes += took;
        }
        let mut spared = 0;
        while cache.bytes > limits::CONTENTS_BYTES_MAX
            && let Some((tick, id, took)) = cache.order.pop_front()
        {
            let file = nodes.get(id).and_then(super::nodes::Entry::file);
            let file =
                file.ok().filter(|file| file.contents.as_ref().is_some_and(|c| c.tick == tick));
            if let Some(file) = file {
                // What is open is read on, if it is not too much.
                let open = file.handles > 0 && cache.bytes <= limits::CONTENTS_OPEN_BYTES_MAX;
                if open && spared < cache.order.len() {
                    spared += 1;
                    cache.order.push_back((tick, id, took));
                    continue;
                }
                file.contents = None;
            }
            cache.bytes -= took;
        }
    }
}

/// What an answer says is at a path.
fn node_of(reply: TreeReply) -> Result<Node, Errno> {
    match reply {
        TreeReply::Node(node) if i64::try_from(node.bytes).is_ok() => Ok(node),
        _ => Err(libc::EIO),
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
