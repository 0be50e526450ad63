//! The socket to the spawner, on which connections are passed in.
//!
//! Owns the receiving of descriptors. The byte that each comes with means nothing.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// What came.
#[derive(Debug)]
pub(crate) enum Received {
    Connection(OwnedFd),
    Nothing,
    Closed,
}

/// Takes one message.
pub(crate) fn receive(control: BorrowedFd<'_>) -> io::Result<Received> {
    let mut byte = [0; 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let mut parts = [io::IoSliceMut::new(&mut byte)];
    match recvmsg(control, &mut parts, &mut ancillary, flags) {
        Ok(message) if message.bytes == 0 => return Ok(Received::Closed),
        Ok(_) => {}
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Received::Nothing),
        Err(error) => return Err(error.into()),
    }
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(mut fds) = message
            && let Some(fd) = fds.next()
        {
            return Ok(Received::Connection(fd));
        }
    }
    Ok(Received::Nothing)
}
