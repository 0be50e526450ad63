//! What hosts are asked of their trees.
//!
//! Owns the operations that wait for an answer, and that each of them gets one: from the
//! host, or an I/O error at once when nobody serves, when the connection ends, and when
//! it took too long. An operation that nobody waits for any more still counts until the
//! host answered it, because the host counts it too.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use outrigger_sandbox::{FileError, FileErrorKind, Node, TreeOp, TreeReply, limits as door};

use crate::connection::Connections;
use crate::limits;

/// The number of an error, as in errno(3).
pub(super) type Errno = i32;

/// When something was asked. What is answered is from after that, and may be from before
/// all that came in between.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskTime {
    /// Messages that had come from hosts.
    heard: u64,
    pub(super) at: Instant,
}

/// What was answered of a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeReply {
    pub(super) node: Node,
    pub(super) asked: AskTime,
}

impl AskTime {
    /// Whether nothing but the answer came from outside since then, so that nobody here can
    /// know that it is otherwise now.
    pub(super) fn is_fresh(&self, heard: u64) -> bool {
        self.heard + 1 >= heard && self.at.elapsed().as_millis() < u128::from(limits::FRESH_MS_MAX)
    }

    /// Whether that was before there had been so many messages.
    pub(super) fn is_before(&self, heard: u64) -> bool {
        self.heard < heard
    }
}

#[derive(Debug)]
struct PendingOp {
    since: Instant,
    waker: Waker,
    result: Option<Result<TreeReply, Errno>>,
}

/// Operations that hosts are asked for.
#[derive(Debug, Default)]
pub(super) struct HostRequests {
    waiting: RefCell<BTreeMap<u64, PendingOp>>,
    outgoing: RefCell<VecDeque<(u64, TreeOp)>>,
    /// Which connection owes which answer.
    owed: RefCell<BTreeMap<u64, u64>>,
    next: Cell<u64>,
    /// Connections that serve, the newest last.
    serving: RefCell<Vec<u64>>,
    /// Messages that came from hosts.
    heard: Cell<u64>,
}

/// As programs are told.
fn errno(error: &FileError) -> Errno {
    match error.kind {
        FileErrorKind::FileNotFound => libc::ENOENT,
        FileErrorKind::PermissionDenied => libc::EACCES,
        FileErrorKind::IsDirectory => libc::EISDIR,
        FileErrorKind::NotADirectory => libc::ENOTDIR,
        FileErrorKind::InvalidPath | FileErrorKind::InvalidArgument => libc::EINVAL,
        FileErrorKind::AlreadyExists => libc::EEXIST,
        FileErrorKind::TooLarge => libc::EFBIG,
        FileErrorKind::NoSpace => libc::ENOSPC,
        FileErrorKind::Conflict => libc::ESTALE,
        FileErrorKind::Io => libc::EIO,
        FileErrorKind::ReadOnly => libc::EROFS,
        FileErrorKind::NotEmpty => libc::ENOTEMPTY,
    }
}

/// Forgets an operation whose task was dropped.
struct Guard<'a>(&'a HostRequests, u64);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.waiting.borrow_mut().remove(&self.1);
    }
}

impl HostRequests {
    /// Has a host perform an operation.
    pub(super) async fn ask(&self, op: TreeOp) -> Result<TreeReply, Errno> {
        self.next.set(self.next.get() + 1);
        let number = self.next.get();
        let guard = Guard(self, number);
        let mut op = Some(op);
        let result = poll_fn(|context| {
            let waker = context.waker().clone();
            let mut waiting = self.waiting.borrow_mut();
            if let Some(op) = op.take() {
                let since = Instant::now();
                waiting.insert(number, PendingOp { since, waker, result: None });
                self.outgoing.borrow_mut().push_back((number, op));
                return Poll::Pending;
            }
            let Some(entry) = waiting.get_mut(&number) else { return Poll::Ready(Err(libc::EIO)) };
            match entry.result.take() {
                Some(result) => Poll::Ready(result),
                None => {
                    entry.waker = waker;
                    Poll::Pending
                }
            }
        })
        .await;
        drop(guard);
        result
    }

    /// A connection answers from now on.
    pub(super) fn serve(&self, connection: u64) {
        let mut serving = self.serving.borrow_mut();
        serving.retain(|other| *other != connection);
        serving.push(connection);
    }

    /// A host answered.
    pub(super) fn answer(
        &self,
        connection: u64,
        number: u64,
        result: Result<TreeReply, FileError>,
    ) {
        let mut owed = self.owed.borrow_mut();
        if owed.get(&number) == Some(&connection) {
            owed.remove(&number);
            self.resolve(number, result.map_err(|error| errno(&error)));
        }
    }

    /// Something came from a host: what happened outside can be known inside from now on.
    pub(super) fn hear(&self) {
        self.heard.set(self.heard.get() + 1);
    }

    /// Now, for what is about to be asked.
    pub(super) fn moment(&self) -> AskTime {
        AskTime { heard: self.heard.get(), at: Instant::now() }
    }

    /// How much was heard so far.
    pub(super) fn heard(&self) -> u64 {
        self.heard.get()
    }

    fn resolve(&self, number: u64, result: Result<TreeReply, Errno>) {
        if let Some(entry) = self.waiting.borrow_mut().get_mut(&number) {
            entry.result.get_or_insert(result);
            entry.waker.wake_by_ref();
        }
    }

    fn fail(&self, numbers: impl IntoIterator<Item = u64>) {
        numbers.into_iter().for_each(|number| self.resolve(number, Err(libc::EIO)));
    }

    /// Sends what is to be asked, and fails what nobody will answer. Says whether there was
    /// anything of either.
    pub(super) fn send(&self, out: &mut Connections) -> bool {
        let mut owed = self.owed.borrow_mut();
        let is_lost = |_: &u64, connection: &mut u64| !out.is_open(*connection);
        let lost: Vec<u64> = owed.extract_if(.., is_lost).map(|(number, _)| number).collect();
        let mut acted = !lost.is_empty();
        self.fail(lost);
        let mut serving = self.serving.borrow_mut();
        while serving.last().is_some_and(|connection| !out.is_open(*connection)) {
            serving.pop();
        }
        let mut outgoing = self.outgoing.borrow_mut();
        while owed.len() < door::TREE_OPS_MAX
            && let Some((number, op)) = outgoing.pop_front()
        {
            // Nobody may wait for it any more.
            acted = true;
            let wanted = self.waiting.borrow().get(&number).is_some_and(|w| w.result.is_none());
            match serving.last() {
                _ if !wanted => {}
                None => self.fail([number]),
                Some(connection) => {
                    owed.insert(number, *connection);
                    out.ask_tree(*connection, number, op);
                }
            }
        }
        acted
    }

    /// Whether so many wait that no more are taken.
    pub(super) fn is_full(&self) -> bool {
        self.outgoing.borrow().len() >= door::TREE_OPS_MAX
    }

    /// Fails what waits for longer than this.
    pub(super) fn fail_older(&self, than: Duration, now: Instant) {
        let waiting = self.waiting.borrow();
        let is_old = |entry: &PendingOp| now.saturating_duration_since(entry.since) >= than;
        let old: Vec<u64> =
            waiting.iter().filter(|(_, entry)| is_old(entry)).map(|(n, _)| *n).collect();
        drop(waiting);
        self.fail(old);
    }

    /// Since when the one waits that waits for the longest.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.waiting.borrow().values().map(|entry| entry.since).min()
    }
}

/// An error about a path that a number stands for: the name is looked up again.
pub(super) fn moved(errno: Errno) -> Errno {
    match errno {
        libc::ENOENT | libc::ENOTDIR | libc::EISDIR => libc::ESTALE,
        other => other,
    }
}
