//! A guest that serves.
//!
//! Owns the spawner's side of its control socket: connections handed in, and what
//! both say to each other in messages of one byte. Nothing here waits for a guest.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use outrigger_sandbox::{Error, Generation, SandboxId};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, socketpair};
use rustix::process::{Signal, pidfd_send_signal};

use super::request::CreateRequest;
use super::spec::PreviousGuest;
use crate::spawner::event_loop::poll::{Key, Poller, Source};
use crate::spawner::quota::cgroup::Group;
use crate::spawner::quota::ids::IdRange;
use crate::spawner::quota::quota_state::QuotaState;
use crate::spawner::sys;
use crate::{limits, passing};

/// Why a guest takes no connection. One that closed its end is ending, which its
/// process descriptor tells a moment later: the caller asks again.
pub(crate) fn unreached(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            Error::Lost { reason: "its guest is ending".to_owned() }
        }
        _ => Error::Backend(format!("the guest takes no connection: {error}")),
    }
}

/// An open way to a guest.
pub(crate) type GuestConnection = (Generation, OwnedFd);

/// What a guest says by itself or in answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuestMessage {
    /// A request was handled since it last said so.
    Active,
    /// It can't hand over: a command runs.
    Busy,
    /// It handed over and waits for its end.
    HandedOver,
    /// It could not hand over, and goes on.
    Failed,
    /// It closed its side, or speaks another language.
    Nonsense,
}

/// Passes a guest one end of a new socket and gives the other.
pub(crate) fn new_connection(control: &OwnedFd) -> io::Result<OwnedFd> {
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // A guest that listens no more must not hold the spawner.
    passing::send(control, b"c", &[theirs.as_fd()], SendFlags::DONTWAIT)?;
    Ok(ours)
}

/// A guest that serves.
#[derive(Debug)]
pub(crate) struct RunningGuest {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    /// Over which it is spoken to.
    pub(crate) control: OwnedFd,
    /// A connection that it takes as soon as it serves, for whoever asks for one first.
    pub(crate) connection: Option<OwnedFd>,
    /// Numbers of the file systems that it serves itself, of which nobody else may ask
    /// anything: the answer would be its own.
    pub(crate) serves: Vec<u64>,
    pub(crate) generation: Generation,
    pub(crate) group: Group,
    pub(crate) request: CreateRequest,
    /// When a request was last handled, or tried to be handed over.
    pub(crate) active: Instant,
    /// What is known of its disk.
    pub(crate) quota: QuotaState,
    /// Held for as long as the guest lives.
    pub(crate) ids: IdRange,
    pub(crate) poll_keys: Option<(Key, Key)>,
}

impl RunningGuest {
    /// Has its end and its words waited for.
    pub(crate) fn await_by(&mut self, poller: &mut Poller, id: &SandboxId) -> io::Result<()> {
        let end = poller.add(&self.pidfd, Source::Ended(id.clone()))?;
        let words = poller.add(&self.control, Source::Message(id.clone()))?;
        self.poll_keys = Some((end, words));
        Ok(())
    }

    /// A way to the guest: the one that was made at its start, or another one.
    pub(crate) fn connect(&mut self) -> io::Result<GuestConnection> {
        let first = self.connection.take().map(Ok);
        let connection = first.unwrap_or_else(|| new_connection(&self.control))?;
        Ok((self.generation.clone(), connection))
    }

    /// Asks it to write what it keeps to a file and to do nothing more.
    pub(crate) fn ask_to_hand_over(&self, kept: &fs::File) -> io::Result<()> {
        self.say(b"h", Some(kept.as_fd()))
    }

    /// Tells it that its disk is over the limit: every running command is killed.
    pub(crate) fn tell_disk_full(&self) -> io::Result<()> {
        self.say(b"q", None)
    }

    fn say(&self, word: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
        // A guest that listens no more must not hold the spawner.
        passing::send(&self.control, word, &fds, SendFlags::DONTWAIT).map(drop)
    }

    /// What it said since the last time, as far as one turn goes.
    pub(crate) fn hear(&self) -> Vec<GuestMessage> {
        let mut all = Vec::new();
        while all.len() < limits::GUEST_MESSAGES_MAX && !all.ends_with(&[GuestMessage::Nonsense]) {
            let mut word = [0; 8];
            match recv(&self.control, &mut word, RecvFlags::DONTWAIT) {
                Ok((_, length)) => all.push(match &word[..length] {
                    b"a" => GuestMessage::Active,
                    b"b" => GuestMessage::Busy,
                    b"k" => GuestMessage::HandedOver,
                    b"f" => GuestMessage::Failed,
                    _ => GuestMessage::Nonsense,
                }),
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        all
    }

    /// Has its words waited for no more: there are none, and the end of them is told for ever.
    pub(crate) fn stop_hearing(&self, poller: &mut Poller) {
        if let Some((_, words)) = self.poll_keys {
            poller.remove(words, &self.control);
        }
    }

    /// When it was idle for as long as it may be, whatever it has not said yet.
    pub(crate) fn idle_at(&self) -> Option<Instant> {
        let idle_ms =
            self.request.spec.lifetime.idle_ms_max?.saturating_add(limits::ACTIVITY_LATE_MS);
        self.active.checked_add(Duration::from_millis(idle_ms))
    }

    /// Whether it ended already.
    pub(crate) fn has_ended(&self) -> bool {
        sys::is_readable(&self.pidfd)
    }

    /// Tells it to end. It is to be reaped when it has.
    pub(crate) fn kill(&self) {
        // In version 1 what is frozen does not die.
        self.group.thaw();
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Tells it to end although it may have been stopped since it was told before.
    pub(crate) fn kill_again(&self) {
        self.group.release(self.pid);
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Waits for its end, but not for ever.
    fn await_end(&self) -> bool {
        let until = Instant::now() + Duration::from_millis(limits::REAP_MS_MAX);
        let mut fds = [sys::pollfd(&self.pidfd)];
        while sys::poll(&mut fds, limits::KILL_AGAIN_MS as i32).is_err() || fds[0].revents == 0 {
            if Instant::now() >= until {
                return false;
            }
            self.kill_again();
        }
        sys::wait(self.pid);
        true
    }

    /// Ends it, if it has not ended, and clears what the host had of it. Of one that the
    /// kernel can't end, the ids stay taken for as long as this spawner lives. Gives which
    /// life it was.
    pub(crate) fn reap(self, poller: &mut Poller) -> PreviousGuest {
        self.kill();
        let ended = self.await_end();
        if let Some((end, words)) = self.poll_keys {
            poller.remove(end, &self.pidfd);
            poller.remove(words, &self.control);
        }
        self.group.remove();
        if !ended {
            std::mem::forget(self.ids);
        }
        PreviousGuest { generation: self.generation, request: self.request }
    }
}
