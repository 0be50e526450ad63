//! The socket to the spawner: one message each way at a time, its first byte says what.
//!
//! Owns the bytes and what they mean. From the spawner: `c` and a descriptor, a new
//! connection; `h` and a descriptor, hand over to the next life; `q`, the disk is over
//! its limit; `i`, is anything going on? From here: `w`, waiting for the rest of its
//! command line, which comes next, at most once; `r`, ready; `a`, something was
//! asked for; `b`, busy; `n`, idle; `k`, handed over; `f`, handing over failed and
//! this life goes on. A message that is none of these means nothing.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, send, sendmsg,
};

use crate::limits;

/// What came.
#[derive(Debug)]
pub(crate) enum ControlMessage {
    Connection(OwnedFd),
    HandOver(OwnedFd),
    DiskFull,
    Idle,
    Nothing,
    Closed,
}

/// What the spawner is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpawnerMessage {
    Waiting,
    Ready,
    Activity,
    Busy,
    Idle,
    Kept,
    Failed,
}

/// Takes bytes, and the descriptors that come with them.
pub(crate) fn take(
    control: impl AsFd,
    bytes: &mut [u8],
    flags: RecvFlags,
) -> rustix::io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(limits::REST_FDS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [io::IoSliceMut::new(bytes)];
    let length = recvmsg(control, &mut parts, &mut ancillary, flags | RecvFlags::CMSG_CLOEXEC)?;
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            fds.extend(passed);
        }
    }
    Ok((length.bytes, fds))
}

/// Sends bytes, and descriptors with the first of them.
pub(crate) fn pass(
    socket: impl AsFd,
    bytes: &[u8],
    passed: &[OwnedFd],
) -> rustix::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(limits::PASSED_FDS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let passed: Vec<_> = passed.iter().map(AsFd::as_fd).collect();
    if !ancillary.push(SendAncillaryMessage::ScmRights(&passed)) {
        return Err(Errno::NOBUFS);
    }
    sendmsg(socket, &[io::IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)
}

/// Waits for the rest of the command line. `None`: the spawner has no use for this guest.
pub(crate) fn await_the_rest(
    control: BorrowedFd<'_>,
) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    tell(control, SpawnerMessage::Waiting)?;
    let mut rest = vec![0; limits::REST_BYTES_MAX];
    let (length, fds) = retry_on_intr(|| take(control, &mut rest, RecvFlags::empty()))?;
    rest.truncate(length);
    Ok((length > 0).then_some((rest, fds)))
}

/// Takes one message.
pub(crate) fn receive(control: BorrowedFd<'_>) -> io::Result<ControlMessage> {
    let mut byte = [0; 1];
    let passed = match take(control, &mut byte, RecvFlags::DONTWAIT) {
        Ok((0, _)) => return Ok(ControlMessage::Closed),
        Ok((_, fds)) => fds.into_iter().next(),
        Err(Errno::AGAIN | Errno::INTR) => return Ok(ControlMessage::Nothing),
        Err(error) => return Err(error.into()),
    };
    Ok(match (byte[0], passed) {
        (b'c', Some(fd)) => ControlMessage::Connection(fd),
        (b'h', Some(fd)) => ControlMessage::HandOver(fd),
        (b'q', None) => ControlMessage::DiskFull,
        (b'i', None) => ControlMessage::Idle,
        _ => ControlMessage::Nothing,
    })
}

/// Sends one message. A spawner that does not take it must not hold the guest, so
/// one without room for it is not told.
pub(crate) fn tell(control: impl AsFd, what: SpawnerMessage) -> io::Result<()> {
    let byte = match what {
        SpawnerMessage::Waiting => b"w",
        SpawnerMessage::Ready => b"r",
        SpawnerMessage::Activity => b"a",
        SpawnerMessage::Busy => b"b",
        SpawnerMessage::Idle => b"n",
        SpawnerMessage::Kept => b"k",
        SpawnerMessage::Failed => b"f",
    };
    send(control, byte, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    Ok(())
}
