//! One message with a few descriptors (`SCM_RIGHTS`, see unix(7)).
//!
//! Owns how it is sent and taken in one call. What it says is for `protocol`.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::limits;

/// Sends bytes, and descriptors with the first of them. Gives how many of the bytes went.
pub fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(limits::LISTENERS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other("too many descriptors"));
    }
    let parts = [IoSlice::new(bytes)];
    let sent = retry_on_intr(|| sendmsg(&socket, &parts, &mut ancillary, SendFlags::NOSIGNAL))?;
    Ok(sent)
}

/// Takes bytes, and the descriptors that come with them. More than there may be are closed.
pub fn receive(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(limits::LISTENERS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(bytes)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = retry_on_intr(|| recvmsg(&socket, &mut parts, &mut ancillary, flags))?.bytes;
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            fds.extend(passed);
        }
    }
    Ok((got, fds))
}
