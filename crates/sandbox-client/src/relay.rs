//! The host's end of connections that a guest carries over a stream.
//!
//! Owns the pairs of sockets: one end of each goes to a [`ConnectionSink`], the other is pumped
//! from and to the guest, never more than a window ahead of who reads. A guest that breaks the
//! rules loses the stream, and every connection with it.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outrigger_sandbox::limits::{RELAY_FLOWS_MAX, RELAY_PIECE_BYTES, RELAY_WINDOW_BYTES};
use outrigger_sandbox::wire::{
    self, FrameBuffer, FromGuest, GuestReply, GuestRequest, RelayPiece, ToGuest,
};
use outrigger_sandbox::{ConnectionSink, Error, Generation};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, mpsc};

use crate::limits::RELAY_INBOX_BYTES_MAX;
use crate::link::{greeted, lost};
use crate::outbox::Outbox;
use crate::task::start;

/// Bytes read from the stream at once.
const READ_BYTES: usize = 64 << 10;

/// A stream that carries connections; they end when it is dropped.
#[derive(Debug)]
pub struct CarriedConnections {
    /// The port inside.
    pub port: u16,
    /// Those that are captured beside it.
    pub captured: Vec<u16>,
    /// The life of the sandbox that they belong to.
    pub generation: Generation,
    outbox: Arc<Outbox>,
    open: Arc<AtomicBool>,
}

impl CarriedConnections {
    /// Whether connections may still come.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }
}

impl Drop for CarriedConnections {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

/// Has a guest listen, at these captured ports as well, and carry what connects over this stream,
/// which is used for nothing else.
///
/// # Errors
/// [`Error::Lost`] if no guest of this version answers, and what it says.
pub async fn carry(
    mut reads: impl AsyncRead + Send + Unpin + 'static,
    writes: impl AsyncWrite + Send + Unpin + 'static,
    captured: &[u16],
    sink: Arc<dyn ConnectionSink>,
) -> Result<CarriedConnections, Error> {
    let mut frames = FrameBuffer::default();
    let generation = greeted(&mut reads, &mut frames).await?;
    let outbox = Arc::new(Outbox::new(writes));
    let works = Arc::clone(&outbox);
    start(async move { works.work().await });
    let ask = ToGuest { request: 1, ask: GuestRequest::Relay(captured.to_vec()) };
    outbox.send(frame(&ask)).await;
    let mut piece = vec![0; READ_BYTES];
    let port = loop {
        match frames.take().map_err(|error| lost(&error.to_string()))? {
            Some(FromGuest::Reply { reply: GuestReply::Listening(port), .. }) => break port?,
            Some(_) => return Err(lost("its guest did not listen")),
            None => {}
        }
        match reads.read(&mut piece).await {
            Ok(length) if length > 0 => frames.push(&piece[..length]),
            Ok(_) | Err(_) => return Err(lost("its guest ended")),
        }
    };
    let open = Arc::new(AtomicBool::new(true));
    let carrier = Carrier { outbox: Arc::clone(&outbox), sink, flows: HashMap::new() };
    let is_open = Arc::clone(&open);
    start(async move {
        carrier.run(reads, frames, piece).await;
        is_open.store(false, Ordering::SeqCst);
    });
    Ok(CarriedConnections { port, captured: captured.to_vec(), generation, outbox, open })
}

fn frame(message: &ToGuest) -> Vec<u8> {
    wire::encode(message).expect("pieces are far below the limit of a frame")
}

fn relayed(flow: u64, piece: RelayPiece) -> Vec<u8> {
    frame(&ToGuest { request: 0, ask: GuestRequest::Relayed { flow, piece } })
}

/// One connection, as the stream's reader knows it.
struct Flow {
    /// What the guest sent. `None`: it sends no more.
    inbox: Option<mpsc::UnboundedSender<Vec<u8>>>,
    /// Bytes in the inbox.
    held: Arc<Semaphore>,
    /// Bytes that may be sent to the guest.
    room: Arc<Semaphore>,
}

struct Carrier {
    outbox: Arc<Outbox>,
    sink: Arc<dyn ConnectionSink>,
    flows: HashMap<u64, Flow>,
}

impl Carrier {
    /// Until the stream ends, or the guest breaks a rule.
    async fn run(
        mut self,
        mut reads: impl AsyncRead + Unpin,
        mut frames: FrameBuffer,
        mut piece: Vec<u8>,
    ) {
        'stream: loop {
            loop {
                match frames.take() {
                    Ok(Some(FromGuest::Relayed { flow, piece })) => {
                        if self.hear(flow, piece).is_none() {
                            break 'stream;
                        }
                    }
                    Ok(None) => break,
                    Ok(Some(_)) | Err(_) => break 'stream,
                }
            }
            match reads.read(&mut piece).await {
                Ok(length) if length > 0 => frames.push(&piece[..length]),
                Ok(_) | Err(_) => break,
            }
        }
        self.outbox.close();
        for flow in self.flows.values() {
            flow.room.close();
        }
    }

    /// `None`: that is against the rules.
    fn hear(&mut self, number: u64, piece: RelayPiece) -> Option<()> {
        if let RelayPiece::Opened(captured) = piece {
            return self.open(number, captured);
        }
        // One that is over here may be spoken of for a while.
        let Some(flow) = self.flows.get_mut(&number) else { return Some(()) };
        match piece {
            RelayPiece::Bytes(bytes) => {
                // Taken by the pump when they are written, and given back then.
                flow.held.try_acquire_many(u32::try_from(bytes.len()).ok()?).ok()?.forget();
                if let Some(inbox) = &flow.inbox {
                    // A pump that ended said so to the guest.
                    let _ = inbox.send(bytes);
                }
            }
            RelayPiece::Ended => flow.inbox = None,
            RelayPiece::Room(bytes) => {
                let bytes = usize::try_from(bytes).ok()?;
                if flow.room.available_permits() + bytes > RELAY_WINDOW_BYTES {
                    return None;
                }
                flow.room.add_permits(bytes);
            }
            RelayPiece::Broken => {
                flow.room.close();
                self.flows.remove(&number);
            }
            RelayPiece::Opened(_) => return None,
        }
        Some(())
    }

    fn open(&mut self, number: u64, captured: Option<u16>) -> Option<()> {
        // Those whose pumps both ended are over on both sides.
        self.flows.retain(|_, flow| Arc::strong_count(&flow.room) > 1 || flow.inbox.is_some());
        if self.flows.len() >= 2 * RELAY_FLOWS_MAX || self.flows.contains_key(&number) {
            return None;
        }
        let Ok((ours, theirs)) = UnixStream::pair() else {
            return self.refuse(number);
        };
        let Ok(theirs) = theirs.into_std() else { return self.refuse(number) };
        self.sink.connection(OwnedFd::from(theirs), captured);
        let (reads, writes) = ours.into_split();
        let (inbox, pieces) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(RELAY_WINDOW_BYTES));
        let held = Arc::new(Semaphore::new(RELAY_INBOX_BYTES_MAX));
        let outbox = Arc::clone(&self.outbox);
        start(give(number, pieces, writes, Arc::clone(&held), outbox));
        start(take(number, reads, Arc::clone(&room), Arc::clone(&self.outbox)));
        self.flows.insert(number, Flow { inbox: Some(inbox), held, room });
        Some(())
    }

    fn refuse(&self, number: u64) -> Option<()> {
        // Without room for that much the guest reads nothing, and is not to be helped.
        self.outbox.try_send(relayed(number, RelayPiece::Broken)).ok()
    }
}

/// Pumps what the guest sends to whoever has the other end.
async fn give(
    number: u64,
    mut pieces: mpsc::UnboundedReceiver<Vec<u8>>,
    mut writes: OwnedWriteHalf,
    held: Arc<Semaphore>,
    outbox: Arc<Outbox>,
) {
    let mut taken = 0;
    while let Some(bytes) = pieces.recv().await {
        if writes.write_all(&bytes).await.is_err() {
            outbox.send(relayed(number, RelayPiece::Broken)).await;
            return;
        }
        held.add_permits(bytes.len());
        taken += bytes.len();
        if taken >= RELAY_WINDOW_BYTES / 2 {
            let room = u32::try_from(taken).expect("a window is smaller than that");
            outbox.send(relayed(number, RelayPiece::Room(room))).await;
            taken = 0;
        }
    }
    // Dropped, it is shut down for writing.
}

/// Pumps what whoever has the other end sends to the guest, as far as that has room.
async fn take(number: u64, mut reads: OwnedReadHalf, room: Arc<Semaphore>, outbox: Arc<Outbox>) {
    let mut piece = vec![0; RELAY_PIECE_BYTES];
    loop {
        let Ok(first) = room.acquire().await else { return };
        let most = piece.len().min(1 + room.available_permits());
        let length = match reads.read(&mut piece[..most]).await {
            Ok(0) => break,
            Ok(length) => length,
            Err(_) => {
                outbox.send(relayed(number, RelayPiece::Broken)).await;
                return;
            }
        };
        first.forget();
        let rest = u32::try_from(length - 1).expect("a piece is smaller than that");
        // Nobody else takes of it, so it is there.
        if let Ok(rest) = room.try_acquire_many(rest) {
            rest.forget();
        }
        outbox.send(relayed(number, RelayPiece::Bytes(piece[..length].to_vec()))).await;
    }
    outbox.send(relayed(number, RelayPiece::Ended)).await;
}
