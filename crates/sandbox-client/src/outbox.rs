//! Frames on their way to a guest.
//!
//! Owns their order and their number. Who asks writes its frame itself, as far as the
//! stream takes it at once, which saves the turn of another task; what is left is
//! written by the one task that waits for the stream. No frame is ever cut short by
//! somebody who stops waiting.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::AsyncWrite;
use tokio::sync::Notify;

use crate::limits::GUEST_INBOX_FRAMES_MAX;

/// The frames of one connection that are not written yet.
pub(super) struct Outbox {
    state: Mutex<State>,
    /// Somebody left something to write, or it is over.
    work: Notify,
    /// There is room again, or it is over.
    room: Notify,
}

struct State {
    /// `None`: over.
    writes: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    frames: VecDeque<Vec<u8>>,
    /// Bytes of the first frame that are written.
    written: usize,
    /// Whether the stream still holds something of its own to be flushed.
    unflushed: bool,
}

impl fmt::Debug for Outbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Outbox").finish_non_exhaustive()
    }
}

impl State {
    /// Writes what the stream takes. Ready: all of it, or there is an error.
    fn write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(writes) = &mut self.writes else { return Poll::Ready(Ok(())) };
        while let Some(frame) = self.frames.front() {
            match writes.as_mut().poll_write(context, &frame[self.written..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(length)) => self.written += length,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
            self.unflushed = true;
            if self.written == frame.len() {
                self.frames.pop_front();
                self.written = 0;
            }
        }
        if self.unflushed {
            std::task::ready!(writes.as_mut().poll_flush(context))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }
}

impl Outbox {
    pub(super) fn new(writes: impl AsyncWrite + Send + 'static) -> Self {
        let state = State {
            writes: Some(Box::pin(writes)),
            frames: VecDeque::new(),
            written: 0,
            unflushed: false,
        };
        Self { state: Mutex::new(state), work: Notify::new(), room: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a frame; gives it back if there is no room. What comes after the end is
    /// dropped: who sent it is told by the end itself.
    pub(super) fn try_send(&self, frame: Vec<u8>) -> Result<(), Vec<u8>> {
        let mut state = self.state();
        if state.writes.is_none() {
            return Ok(());
        }
        if state.frames.len() >= GUEST_INBOX_FRAMES_MAX {
            return Err(frame);
        }
        let waits = !state.frames.is_empty() || state.unflushed;
        state.frames.push_back(frame);
        // What waits already has its task, which this must not take the waking from.
        if waits {
            return Ok(());
        }
        match state.write(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) | Poll::Pending => self.work.notify_one(),
        }
        Ok(())
    }

    /// Takes a frame when there is room for it.
    pub(super) async fn send(&self, mut frame: Vec<u8>) {
        loop {
            let mut room = std::pin::pin!(self.room.notified());
            // Before the look, so that room that is made after it is not missed.
            room.as_mut().enable();
            match self.try_send(frame) {
                Ok(()) => return,
                Err(back) => frame = back,
            }
            room.await;
        }
    }

    /// Ends it; the stream is closed, which tells the guest.
    pub(super) fn close(&self) {
        let mut state = self.state();
        (state.writes, state.frames) = (None, VecDeque::new());
        drop(state);
        self.work.notify_one();
        self.room.notify_waiters();
    }

    /// Writes what those who ask leave, until it is over.
    pub(super) async fn work(&self) {
        loop {
            let written = poll_fn(|context| {
                let written = self.state().write(context);
                // Each frame that went is room for another.
                self.room.notify_waiters();
                written
            });
            if written.await.is_err() {
                self.close();
            }
            if self.state().writes.is_none() {
                return;
            }
            self.work.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn frames_arrive_whole_and_in_order_through_a_stream_that_is_slow() {
        let (ours, mut theirs) = tokio::io::duplex(7);
        let outbox = Arc::new(Outbox::new(ours));
        let frames: Vec<Vec<u8>> = (0..200_u8).map(|number| vec![number; 20]).collect();
        let send = async {
            for frame in frames.clone() {
                outbox.send(frame).await;
            }
        };
        let read = async {
            let mut seen = vec![0; frames.len() * 20];
            theirs.read_exact(&mut seen).await.unwrap();
            outbox.close();
            assert_eq!(theirs.read(&mut [0; 1]).await.unwrap(), 0);
            seen
        };
        let ((), (), seen) = tokio::join!(outbox.work(), send, read);
        assert_eq!(seen, frames.concat());
    }

    #[tokio::test]
    async fn there_is_room_for_so_many_and_who_waits_longer_learns_of_the_end() {
        let (ours, _theirs) = tokio::io::duplex(1);
        let outbox = Outbox::new(ours);
        for _ in 0..GUEST_INBOX_FRAMES_MAX {
            assert_eq!(outbox.try_send(vec![1, 2]), Ok(()));
        }
        assert_eq!(outbox.try_send(vec![1, 2]), Err(vec![1, 2]));
        let close = async { outbox.close() };
        tokio::join!(outbox.send(vec![3]), close);
        outbox.work().await;
    }
}
