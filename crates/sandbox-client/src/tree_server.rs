//! Answers for the trees that are served into a sandbox.
//!
//! Owns how many operations are performed for one connection at once, and for how long.
//! Everything that is asked comes from inside a sandbox: it is checked for form here, and
//! for rights by the tree.

use std::future::poll_fn;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use outrigger_sandbox::wire::{self, GuestRequest, ToGuest};
use outrigger_sandbox::{FileError, FileErrorKind, SandboxId, TreeOp, TreeReply, Trees, limits};
use tokio::sync::Semaphore;

use crate::outbox::Outbox;
use crate::socket_poller::SocketPoller;
use crate::task::start;

/// What a connection was ended for.
const CROWD: &str = "its guest asked more of its trees at once than it may";

/// Performs what one guest asks of the trees that are served into its sandbox.
#[derive(Debug)]
pub struct TreeServer {
    sandbox: SandboxId,
    trees: Arc<dyn Trees>,
    socket: Option<Arc<UnixStream>>,
    /// Twice what a guest may ask at once: it counts an operation until it has the answer,
    /// and this until the answer is on its way.
    room: Arc<Semaphore>,
}

impl TreeServer {
    /// For a connection that leads to this sandbox; `trees` is asked for each operation.
    #[must_use]
    pub fn new(sandbox: SandboxId, trees: Arc<dyn Trees>) -> Self {
        let room = Arc::new(Semaphore::new(2 * limits::TREE_OPS_MAX));
        Self { sandbox, trees, socket: None, room }
    }

    /// With the connection once more, which is a socket and does not block: questions that
    /// come one after the other are read from it without the runtime.
    #[must_use]
    pub fn with_socket(self, socket: UnixStream) -> Self {
        Self { socket: Some(Arc::new(socket)), ..self }
    }

    /// A way to read the next question without the runtime, if there is one.
    pub(crate) fn poller(&self) -> Option<SocketPoller> {
        self.socket.clone().map(SocketPoller::new)
    }

    /// Performs an operation: at once if it need not wait for anything, which saves the
    /// turn of another task and a timer, else beside the others. Gives whether it was at
    /// once. An error ends the connection.
    pub(crate) async fn hear(
        self: &Arc<Self>,
        outbox: &Arc<Outbox>,
        number: u64,
        op: TreeOp,
    ) -> Result<bool, &'static str> {
        let permit = Arc::clone(&self.room).try_acquire_owned().map_err(|_| CROWD)?;
        let path = op.path().to_owned();
        let server = Arc::clone(self);
        let mut work = Box::pin(async move { server.perform(op).await });
        match poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
            Poll::Ready(result) => {
                answer(outbox, number, &path, result).await;
                Ok(true)
            }
            Poll::Pending => {
                let outbox = Arc::clone(outbox);
                start(async move {
                    let limit = Duration::from_millis(limits::TREE_MS_MAX);
                    let late = |_| Err(failed(&path, "nobody answered for it in time"));
                    let result = tokio::time::timeout(limit, work).await.unwrap_or_else(late);
                    answer(&outbox, number, &path, result).await;
                    drop(permit);
                });
                Ok(false)
            }
        }
    }

    async fn perform(&self, op: TreeOp) -> Result<TreeReply, FileError> {
        op.check()?;
        match self.trees.of(&self.sandbox) {
            Some(tree) => tree.perform(op).await,
            None => Err(failed(op.path(), "nobody serves it here")),
        }
    }
}

async fn answer(outbox: &Outbox, number: u64, path: &str, result: Result<TreeReply, FileError>) {
    let result = result.and_then(|reply| fits(reply, path));
    let frame = wire::encode(&ToGuest { request: 0, ask: GuestRequest::Tree { number, result } });
    let frame = frame.or_else(|error| {
        let result = Err(failed(path, &error.to_string()));
        wire::encode(&ToGuest { request: 0, ask: GuestRequest::Tree { number, result } })
    });
    if let Ok(frame) = frame {
        outbox.send(frame).await;
    }
}

fn failed(path: &str, detail: &str) -> FileError {
    FileError { kind: FileErrorKind::Io, path: path.to_owned(), detail: detail.to_owned() }
}

/// Refuses what is above the limits of an answer: a bug of the tree, which the guest
/// would take for a broken host.
fn fits(reply: TreeReply, path: &str) -> Result<TreeReply, FileError> {
    let fits = match &reply {
        TreeReply::Listed { entries, .. } => entries.len() <= limits::TREE_PAGE_ENTRIES_MAX,
        TreeReply::Contents { contents, .. } => contents.len() <= limits::TREE_FILE_BYTES_MAX,
        TreeReply::Node(_) | TreeReply::Done => true,
    };
    if fits { Ok(reply) } else { Err(failed(path, "the answer is too large")) }
}
