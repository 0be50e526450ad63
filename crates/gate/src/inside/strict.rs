//! A stream that gives only heads that were looked at.
//!
//! Owns where heads end and bodies begin, so that a parser behind it never sees a byte of a
//! head that is not strict. A head that isn't is replaced by a harmless one, for which the
//! service finds the fault and says it; nothing of the connection is read after it.

mod chunks;
mod head;

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use chunks::Chunks;
use head::{Fault, Framing};

use super::activity::Activity;
use crate::limits;

/// What a service is given instead of a head that is not strict.
const INSTEAD: &[u8] = b"GET / HTTP/1.1\r\nhost: invalid\r\nconnection: close\r\n\r\n";

/// The first fault of a connection.
pub(super) type FaultCell = Arc<OnceLock<Fault>>;

/// A stream of strict requests.
#[derive(Debug)]
pub(super) struct Strict<S> {
    stream: S,
    activity: Arc<Activity>,
    fault: FaultCell,
    /// Read and not given yet.
    held: Vec<u8>,
    /// How much of it has no end of a head.
    searched: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Head,
    /// So many bytes of a head are to be given, and then what follows it.
    Giving(usize, Framing),
    Sized(u64),
    Chunked(Chunks),
    /// Nothing is given before [`Strict::open`]: what comes is not HTTP, or not any more.
    Waiting,
    Open,
    /// Behind a head that was replaced.
    Ended,
}

impl<S> Strict<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> Self {
        let (fault, held) = (FaultCell::default(), Vec::new());
        Self { stream, activity, fault, held, searched: 0, state: State::Head }
    }

    pub(super) fn fault(&self) -> FaultCell {
        Arc::clone(&self.fault)
    }

    /// The stream as it is, from behind the head of a request for something else.
    pub(super) fn open(mut self) -> Self {
        self.activity.head_ended();
        self.state = State::Open;
        self
    }

    /// The stream with bytes that were read of it, which are to be read again.
    pub(super) fn unread(mut self, bytes: Vec<u8>) -> Self {
        self.held.splice(..0, bytes);
        self
    }

    /// Gives a head that is whole, or the one that stands for it.
    fn judge(&mut self, end: usize) {
        self.activity.head_ended();
        self.state = match head::check(&self.held[..end]) {
            Ok(framing) => State::Giving(end, framing),
            Err(fault) => self.refuse(fault),
        };
    }

    fn refuse(&mut self, fault: Fault) -> State {
        let _ = self.fault.set(fault);
        self.held = INSTEAD.to_vec();
        State::Giving(INSTEAD.len(), Framing::Sized(0))
    }

    /// Gives what is held, at most so much.
    fn give(&mut self, most: usize, buffer: &mut ReadBuf<'_>) -> usize {
        let length = most.min(self.held.len()).min(buffer.remaining());
        buffer.put_slice(&self.held[..length]);
        self.held.drain(..length);
        length
    }

    /// The length of what a body takes of these bytes.
    fn advance(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        match &mut self.state {
            State::Sized(left) => {
                let length = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= length as u64;
                if *left == 0 {
                    self.state = State::Head;
                }
                Ok(length)
            }
            State::Chunked(chunks) => {
                let length = chunks.advance(bytes)?;
                if chunks.is_done() {
                    self.state = State::Head;
                }
                Ok(length)
            }
            _ => Ok(bytes.len()),
        }
    }
}

impl<S: AsyncRead + Unpin> Strict<S> {
    /// Reads more of a head. `false`: there is no more.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut space = [0; limits::READ_BYTES];
        let mut buffer = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        self.held.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(!buffer.filled().is_empty()))
    }

    /// Gives bytes of a body, and keeps what is behind it.
    fn poll_body(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if self.held.is_empty() {
            ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        } else {
            self.give(usize::MAX, buffer);
        }
        let bytes = &buffer.filled()[before..];
        let taken = self.advance(bytes);
        let taken = taken.map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))?;
        let behind = &bytes[taken..];
        if !behind.is_empty() {
            self.held.splice(..0, behind.iter().copied());
            self.searched = 0;
        }
        buffer.set_filled(before + taken);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Strict<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match this.state {
                State::Head => {
                    if let Some(end) = head::end(&this.held, this.searched) {
                        this.searched = 0;
                        if end > limits::HEAD_BYTES_MAX {
                            this.state = this.refuse("its head is too long");
                        } else {
                            this.judge(end);
                        }
                        continue;
                    }
                    this.searched = this.held.len();
                    if this.held.len() > limits::HEAD_BYTES_MAX {
                        this.activity.head_ended();
                        this.state = this.refuse("its head is too long");
                        continue;
                    }
                    if !this.held.is_empty() {
                        this.activity.head_began();
                    }
                    if !ready!(this.poll_more(context))? {
                        return Poll::Ready(Ok(()));
                    }
                }
                State::Giving(left, framing) => {
                    let left = left - this.give(left, buffer);
                    this.state = match framing {
                        _ if left > 0 => State::Giving(left, framing),
                        _ if this.fault.get().is_some() => State::Ended,
                        Framing::Sized(0) => State::Head,
                        Framing::Sized(length) => State::Sized(length),
                        Framing::Chunked => State::Chunked(Chunks::default()),
                        Framing::Tunnel => State::Waiting,
                    };
                    return Poll::Ready(Ok(()));
                }
                State::Sized(_) | State::Chunked(_) => return this.poll_body(context, buffer),
                // Whoever has the parser's answer opens it or drops it; nobody is to be woken. An
                // end of the stream would end a parser before it gave the answer.
                State::Waiting | State::Ended => return Poll::Pending,
                State::Open if this.held.is_empty() => {
                    return Pin::new(&mut this.stream).poll_read(context, buffer);
                }
                State::Open => {
                    this.give(usize::MAX, buffer);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Strict<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
