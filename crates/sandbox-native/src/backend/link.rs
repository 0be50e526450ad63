//! One connection to a guest, shared by all who use a sandbox.
//!
//! Owns the numbers of requests and who waits for which. Everything that comes is
//! checked for form by [`wire`]; an answer to nobody is dropped. When the connection
//! ends everybody who waits is told so.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outrigger_sandbox::wire::{self, Ask, FromGuest, Gather, Reply, ToGuest};
use outrigger_sandbox::{Error, Generation};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use crate::limits;

/// Bytes read from the socket at once.
const PIECE_BYTES: usize = 64 << 10;

/// Those who wait. `None`: the connection is over.
type Waiting = Arc<Mutex<Option<HashMap<u64, mpsc::UnboundedSender<Reply>>>>>;

/// See the module.
#[derive(Debug)]
pub(super) struct Link {
    waiting: Waiting,
    frames: mpsc::Sender<Vec<u8>>,
    next: AtomicU64,
}

/// A request that waits for its answers; dropping it tells the guest that nobody does.
#[derive(Debug)]
pub(super) struct Pending<'a> {
    link: &'a Link,
    request: u64,
    /// Unbounded in messages and bounded in bytes: a guest answers what was asked
    /// for, and every answer has a limit.
    replies: mpsc::UnboundedReceiver<Reply>,
    over: bool,
}

fn lost(reason: &str) -> Error {
    Error::Lost { reason: reason.to_owned() }
}

impl Link {
    /// Takes a connection over and reads the guest's greeting.
    pub(super) async fn open(socket: OwnedFd, generation: &Generation) -> Result<Self, Error> {
        let failed =
            |error: std::io::Error| Error::Backend(format!("cannot use the connection: {error}"));
        let socket = StdStream::from(socket);
        socket.set_nonblocking(true).map_err(failed)?;
        let (mut reads, writes) = UnixStream::from_std(socket).map_err(failed)?.into_split();
        let mut gather = Gather::default();
        let limit = Duration::from_millis(limits::GUEST_HELLO_MS_MAX);
        let hello = tokio::time::timeout(limit, greeting(&mut reads, &mut gather)).await;
        match hello.map_err(|_| lost("its guest does not answer"))?? {
            FromGuest::Hello { version: wire::VERSION, generation: theirs }
                if theirs == *generation => {}
            FromGuest::Hello { version, .. } => {
                return Err(Error::Lost {
                    reason: format!("its guest speaks version {version} and is another life"),
                });
            }
            FromGuest::Reply { .. } => return Err(lost("its guest did not greet")),
        }
        let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        let (frames, outbox) = mpsc::channel(limits::GUEST_INBOX_FRAMES_MAX);
        start(read(reads, gather, Arc::clone(&waiting)));
        start(write(writes, outbox));
        Ok(Self { waiting, frames, next: AtomicU64::new(1) })
    }

    /// Sends a request.
    pub(super) async fn ask(&self, ask: Ask) -> Result<Pending<'_>, Error> {
        let request = self.next.fetch_add(1, Ordering::Relaxed);
        let frame = wire::encode(&ToGuest { request, ask })
            .map_err(|error| Error::Invalid(error.to_string()))?;
        let (sender, replies) = mpsc::unbounded_channel();
        let gone = || lost("its guest ended");
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_mut()
            .ok_or_else(gone)?
            .insert(request, sender);
        let pending = Pending { link: self, request, replies, over: false };
        self.frames.send(frame).await.map_err(|_| gone())?;
        Ok(pending)
    }

    /// Whether its guest may still be there.
    pub(super) fn is_open(&self) -> bool {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl Pending<'_> {
    /// The next answer.
    pub(super) async fn next(&mut self) -> Result<Reply, Error> {
        let reply = self.replies.recv().await.ok_or_else(|| lost("its guest ended"))?;
        self.over = !matches!(reply, Reply::Output { .. });
        Ok(reply)
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(waiting) =
            self.link.waiting.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
        {
            waiting.remove(&self.request);
        }
        if self.over {
            return;
        }
        // If there is no room for it now, its answers come and are dropped.
        if let Ok(frame) = wire::encode(&ToGuest { request: self.request, ask: Ask::Forget }) {
            let _ = self.link.frames.try_send(frame);
        }
    }
}

async fn greeting(reads: &mut OwnedReadHalf, gather: &mut Gather) -> Result<FromGuest, Error> {
    let mut piece = [0; 512];
    loop {
        if let Some(message) = gather.take().map_err(|error| lost(&error.to_string()))? {
            return Ok(message);
        }
        match reads.read(&mut piece).await {
            Ok(length) if length > 0 => gather.push(&piece[..length]),
            Ok(_) | Err(_) => return Err(lost("its guest ended")),
        }
    }
}

/// The two tasks of a connection end with it and touch nothing else.
#[expect(
    clippy::disallowed_methods,
    reason = "a backend stands below the engine and its registry of tasks; these end with their socket"
)]
fn start(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}

async fn read(mut reads: OwnedReadHalf, mut gather: Gather, waiting: Waiting) {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        while let Ok(Some(FromGuest::Reply { request, reply })) = gather.take() {
            if let Some(waiting) = waiting.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
                && let Some(sender) = waiting.get(&request)
            {
                let _ = sender.send(reply);
            }
        }
        match reads.read(&mut piece).await {
            Ok(length) if length > 0 => gather.push(&piece[..length]),
            Ok(_) | Err(_) => break,
        }
    }
    // Dropping the senders ends every wait.
    waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
}

async fn write(mut writes: OwnedWriteHalf, mut outbox: mpsc::Receiver<Vec<u8>>) {
    while let Some(frame) = outbox.recv().await {
        if writes.write_all(&frame).await.is_err() {
            return;
        }
    }
}
