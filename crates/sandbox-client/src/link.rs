//! One connection to a guest, shared by all who use a sandbox.
//!
//! Owns the numbers of requests and who waits for which. Everything that comes is
//! checked for form by [`wire`] and for length here; an answer to nobody is dropped,
//! and one that can't be an answer ends the connection. When it ends everybody who
//! waits is told why.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::mpsc;

use outrigger_sandbox::wire::{
    self, FrameBuffer, FromGuest, GuestReply, GuestRequest, Stream, ToGuest,
};
use outrigger_sandbox::{Error, Generation, limits};

use crate::limits::HELLO_MS_MAX;
use crate::outbox::Outbox;
use crate::task::start;
use crate::tree_server::TreeServer;

/// Bytes read from the socket at once.
const PIECE_BYTES: usize = 64 << 10;

/// Who waits for answers.
#[derive(Debug)]
enum Waiters {
    Open(HashMap<u64, Waiter>),
    /// The connection is over, and why.
    Over(&'static str),
}

/// Where the answers to a request go, and how much output it may still be sent, in bytes.
#[derive(Debug)]
struct Waiter {
    replies: mpsc::UnboundedSender<GuestReply>,
    stdout: u64,
    stderr: u64,
}

type WaiterTable = Arc<Mutex<Waiters>>;

/// Why a connection ended that nothing was wrong with.
const ENDED: &str = "its guest ended";
/// Why a connection was ended.
const MALFORMED: &str = "its guest sent what is no answer";
const EXCESS: &str = "its guest sent more output than it was asked for";

/// A connection to a guest, shared by all who use its sandbox.
#[derive(Debug)]
pub struct Link {
    generation: Generation,
    waiting: WaiterTable,
    outbox: Arc<Outbox>,
    next: AtomicU64,
}

/// A request that waits for its answers; dropping it tells the guest that nobody does.
#[derive(Debug)]
pub struct PendingRequest<'a> {
    link: &'a Link,
    request: u64,
    /// Bounded in bytes: one answer, and before it the output that was asked for. A
    /// guest that sends more loses the connection.
    replies: mpsc::UnboundedReceiver<GuestReply>,
    over: bool,
}

pub(crate) fn lost(reason: &str) -> Error {
    Error::Lost { reason: reason.to_owned() }
}

impl Link {
    /// Takes a connection over and reads the guest's greeting, which says which life
    /// of the sandbox it is.
    ///
    /// # Errors
    /// [`Error::Lost`] if no guest of this version greets within
    /// [`HELLO_MS_MAX`].
    pub async fn open(
        reads: impl AsyncRead + Send + Unpin + 'static,
        writes: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Self, Error> {
        Self::open_serving(reads, writes, None).await
    }

    /// As [`Link::open`]. As long as it is open it answers for the trees that are served
    /// into the sandbox, if there are any.
    ///
    /// # Errors
    /// Those of [`Link::open`].
    pub async fn open_serving(
        mut reads: impl AsyncRead + Send + Unpin + 'static,
        writes: impl AsyncWrite + Send + Unpin + 'static,
        server: Option<TreeServer>,
    ) -> Result<Self, Error> {
        let mut frames = FrameBuffer::default();
        let generation = greeted(&mut reads, &mut frames).await?;
        let waiting: WaiterTable = Arc::new(Mutex::new(Waiters::Open(HashMap::new())));
        let outbox = Arc::new(Outbox::new(writes));
        let server = server.map(Arc::new);
        if server.is_some() {
            let frame = wire::encode(&ToGuest { request: 0, ask: GuestRequest::Serve })
                .map_err(|error| Error::Invalid(error.to_string()))?;
            outbox.send(frame).await;
        }
        start(read(reads, frames, Arc::clone(&waiting), Arc::clone(&outbox), server));
        let works = Arc::clone(&outbox);
        start(async move { works.work().await });
        Ok(Self { generation, waiting, outbox, next: AtomicU64::new(1) })
    }

    /// Which life of the sandbox it leads to.
    #[must_use]
    pub fn generation(&self) -> &Generation {
        &self.generation
    }

    /// Sends a request.
    ///
    /// # Errors
    /// [`Error::Lost`] if the connection is over, [`Error::Invalid`] if the request
    /// does not fit into a frame.
    pub async fn ask(&self, ask: GuestRequest) -> Result<PendingRequest<'_>, Error> {
        let request = self.next.fetch_add(1, Ordering::Relaxed);
        let (stdout, stderr) = allowance(&ask);
        let frame = wire::encode(&ToGuest { request, ask })
            .map_err(|error| Error::Invalid(error.to_string()))?;
        let (sender, replies) = mpsc::unbounded_channel();
        match &mut *locked(&self.waiting) {
            Waiters::Open(waiters) => {
                waiters.insert(request, Waiter { replies: sender, stdout, stderr })
            }
            Waiters::Over(why) => return Err(lost(why)),
        };
        let pending = PendingRequest { link: self, request, replies, over: false };
        self.outbox.send(frame).await;
        Ok(pending)
    }

    /// Whether its guest may still be there.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(*locked(&self.waiting), Waiters::Open(_))
    }

    fn why(&self) -> &'static str {
        match *locked(&self.waiting) {
            Waiters::Open(_) => ENDED,
            Waiters::Over(why) => why,
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

impl PendingRequest<'_> {
    /// The next answer.
    ///
    /// # Errors
    /// [`Error::Lost`] if the connection ended before it came.
    pub async fn next(&mut self) -> Result<GuestReply, Error> {
        let reply = self.replies.recv().await.ok_or_else(|| lost(self.link.why()))?;
        self.over = !matches!(reply, GuestReply::Output { .. });
        Ok(reply)
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if let Waiters::Open(waiters) = &mut *locked(&self.link.waiting) {
            waiters.remove(&self.request);
        }
        if self.over {
            return;
        }
        // If there is no room for it now, its answers come and are dropped.
        if let Ok(frame) =
            wire::encode(&ToGuest { request: self.request, ask: GuestRequest::Forget })
        {
            let _ = self.link.outbox.try_send(frame);
        }
    }
}

/// The life that the guest's greeting speaks of.
pub(crate) async fn greeted(
    reads: &mut (impl AsyncRead + Unpin),
    frames: &mut FrameBuffer,
) -> Result<Generation, Error> {
    let limit = Duration::from_millis(HELLO_MS_MAX);
    let hello = tokio::time::timeout(limit, greeting(reads, frames)).await;
    match hello.map_err(|_| lost("its guest does not answer"))?? {
        FromGuest::Hello { version: wire::VERSION, generation } => Ok(generation),
        FromGuest::Hello { version, .. } => {
            Err(Error::Lost { reason: format!("its guest speaks version {version} of the wire") })
        }
        FromGuest::Reply { .. } | FromGuest::Tree { .. } | FromGuest::Relayed { .. } => {
            Err(lost("its guest did not greet"))
        }
    }
}

async fn greeting(
    reads: &mut (impl AsyncRead + Unpin),
    frames: &mut FrameBuffer,
) -> Result<FromGuest, Error> {
    let mut piece = [0; 512];
    loop {
        if let Some(message) = frames.take().map_err(|error| lost(&error.to_string()))? {
            return Ok(message);
        }
        match reads.read(&mut piece).await {
            Ok(length) if length > 0 => frames.push(&piece[..length]),
            Ok(_) | Err(_) => return Err(lost(ENDED)),
        }
    }
}

async fn read(
    mut reads: impl AsyncRead + Unpin,
    mut frames: FrameBuffer,
    waiting: WaiterTable,
    outbox: Arc<Outbox>,
    server: Option<Arc<TreeServer>>,
) {
    let mut piece = vec![0; PIECE_BYTES];
    let mut poller = server.as_ref().and_then(|server| server.poller());
    loop {
        let answered = match deliver(&mut frames, &waiting, &outbox, server.as_ref()).await {
            Ok(answered) => answered,
            Err(why) => {
                // Dropping the senders ends every wait.
                *locked(&waiting) = Waiters::Over(why);
                break;
            }
        };
        let soon = match &mut poller {
            Some(poller) if answered => poller.read(&mut piece).await,
            Some(_) | None => None,
        };
        let read = match soon {
            Some(read) => read,
            None => reads.read(&mut piece).await,
        };
        match read {
            Ok(length) if length > 0 => frames.push(&piece[..length]),
            Ok(_) | Err(_) => {
                *locked(&waiting) = Waiters::Over(ENDED);
                break;
            }
        }
    }
    // The other half of the stream goes too, which tells the guest.
    outbox.close();
}

/// Gives every whole answer to whom it is for. Gives whether the last question about a tree
/// was answered at once; an error says why this guest is not to be listened to any longer.
async fn deliver(
    frames: &mut FrameBuffer,
    waiting: &WaiterTable,
    outbox: &Arc<Outbox>,
    server: Option<&Arc<TreeServer>>,
) -> Result<bool, &'static str> {
    let mut answered = false;
    loop {
        let (request, reply) = match frames.take() {
            Ok(Some(FromGuest::Reply { request, reply })) => (request, reply),
            Ok(Some(FromGuest::Tree { number, op })) => {
                answered = server.ok_or(MALFORMED)?.hear(outbox, number, op).await?;
                continue;
            }
            Ok(None) => return Ok(answered),
            Ok(Some(FromGuest::Hello { .. } | FromGuest::Relayed { .. })) | Err(_) => {
                return Err(MALFORMED);
            }
        };
        let mut waiting = locked(waiting);
        let Waiters::Open(waiters) = &mut *waiting else { return Ok(answered) };
        let Some(waiter) = waiters.get_mut(&request) else { continue };
        if let GuestReply::Output { stream, bytes } = &reply {
            let left = match stream {
                Stream::Stdout => &mut waiter.stdout,
                Stream::Stderr => &mut waiter.stderr,
            };
            // An empty piece takes memory too.
            *left = left.checked_sub((bytes.len() as u64).max(1)).ok_or(EXCESS)?;
            let _ = waiter.replies.send(reply);
        } else if let Some(waiter) = waiters.remove(&request) {
            let _ = waiter.replies.send(reply);
        }
    }
}

/// Bytes of output that may come before the answer, per stream. One frame more than
/// was asked for, because a command that is only attached to keeps the caps that it
/// was started with.
fn allowance(ask: &GuestRequest) -> (u64, u64) {
    let more = |bytes: u64| bytes.saturating_add(limits::FRAME_BYTES_MAX as u64);
    match ask {
        GuestRequest::Execute(request) => {
            (more(request.stdout_bytes_max), more(request.stderr_bytes_max))
        }
        GuestRequest::Kill(_)
        | GuestRequest::Files(_)
        | GuestRequest::Input { .. }
        | GuestRequest::Freeze
        | GuestRequest::Thaw
        | GuestRequest::Forget
        | GuestRequest::Serve
        | GuestRequest::Tree { .. }
        | GuestRequest::Listen(_)
        | GuestRequest::Relay(_)
        | GuestRequest::Relayed { .. } => (0, 0),
    }
}

fn locked(waiting: &WaiterTable) -> MutexGuard<'_, Waiters> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_sandbox::{Command, ExecId, Execute};
    use tokio::io::AsyncWriteExt;

    fn reply(reply: GuestReply) -> Vec<u8> {
        wire::encode(&FromGuest::Reply { request: 1, reply }).unwrap()
    }

    fn output(bytes: usize) -> Vec<u8> {
        reply(GuestReply::Output { stream: Stream::Stdout, bytes: vec![b'x'; bytes] })
    }

    /// What a caller of `ask` learns from a guest that greets and sends these frames.
    async fn learns(ask: GuestRequest, frames: Vec<Vec<u8>>) -> String {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let generation = Generation::new("g1").unwrap();
        let hello = FromGuest::Hello { version: wire::VERSION, generation };
        theirs.write_all(&wire::encode(&hello).unwrap()).await.unwrap();
        let (reads, writes) = tokio::io::split(ours);
        let link = Link::open(reads, writes).await.unwrap();
        let mut pending = link.ask(ask).await.unwrap();
        let guest = async {
            for frame in frames {
                // It may be cut off on the way.
                let _ = theirs.write_all(&frame).await;
            }
        };
        let answer = async {
            loop {
                match pending.next().await {
                    Ok(GuestReply::Output { .. }) => {}
                    Ok(other) => break format!("{other:?}"),
                    Err(error) => break error.to_string(),
                }
            }
        };
        tokio::join!(guest, answer).1
    }

    #[tokio::test]
    async fn a_guest_that_sends_no_answers_is_cut_off_and_those_who_wait_are_told() {
        let execute = || {
            let id = ExecId::new("e").unwrap();
            let mut request = Execute::new(id, Command::Shell(String::new()));
            request.stdout_bytes_max = 10;
            GuestRequest::Execute(request)
        };
        let kill = || GuestRequest::Kill(ExecId::new("e").unwrap());
        let full = limits::FRAME_BYTES_MAX - 64;
        let table = [
            (kill(), vec![reply(GuestReply::Killed(Ok(())))], "Killed(Ok(()))"),
            (kill(), vec![vec![2, 0, 0, 0, 255, 255]], MALFORMED),
            (kill(), vec![u32::MAX.to_le_bytes().to_vec()], MALFORMED),
            (kill(), vec![output(1)], EXCESS),
            (execute(), vec![output(10), reply(GuestReply::Killed(Ok(())))], "Killed(Ok(()))"),
            (execute(), vec![output(full), output(100)], EXCESS),
        ];
        for (ask, frames, expected) in table {
            let learnt = learns(ask, frames).await;
            assert!(learnt.ends_with(expected), "{learnt}, not {expected}");
        }
    }
}
