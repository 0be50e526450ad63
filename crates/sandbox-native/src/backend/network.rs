//! The way out of native sandboxes: the guest's listeners, handed out.
//!
//! Must never accept on them.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outrigger_sandbox::wire::{
    self, FrameBuffer, FromGuest, GuestReply, GuestRequest, ToGuest, WireError,
};
use outrigger_sandbox::{ConnectionSink, Error, Listener, Networks, SandboxId};
use rustix::net::RecvFlags;

use super::native::{Native, astray, blocking};
use crate::protocol::{Answer, Request};
use crate::{limits, passing};

#[async_trait]
impl Networks for Native {
    async fn listen(
        &self,
        id: &SandboxId,
        ports: &[u16],
        _: Arc<dyn ConnectionSink>,
    ) -> Result<Listener, Error> {
        let listen = GuestRequest::Listen(ports.to_vec());
        let absent = || Error::Absent { what: "living sandbox".to_owned(), name: id.to_string() };
        match self.ask(Request::Find(id.clone())).await? {
            (Answer::Attached { .. }, Some(socket)) => {
                blocking(move || ask(socket.into(), listen)).await
            }
            (Answer::Absent { .. }, _) => Err(absent()),
            _ => Err(astray()),
        }
    }
}

/// Asks the guest at the other end of a new connection.
fn ask(mut socket: UnixStream, ask: GuestRequest) -> Result<Listener, Error> {
    let lost = |error: io::Error| Error::Lost { reason: format!("its guest: {error}") };
    let broken = |error: WireError| Error::Lost { reason: error.to_string() };
    socket.set_nonblocking(false).map_err(lost)?;
    let limit = Some(Duration::from_millis(limits::SPAWNER_PEER_MS_MAX));
    socket.set_read_timeout(limit).and_then(|()| socket.set_write_timeout(limit)).map_err(lost)?;
    let request = wire::encode(&ToGuest { request: 1, ask });
    socket.write_all(&request.map_err(broken)?).map_err(lost)?;
    let (mut frames, mut descriptors) = (FrameBuffer::default(), Vec::<OwnedFd>::new());
    let mut bytes = [0; 512];
    loop {
        match frames.take().map_err(broken)? {
            Some(FromGuest::Hello { .. }) => continue,
            Some(FromGuest::Reply { reply: GuestReply::Listening(port), .. }) => {
                let port = port?;
                if descriptors.is_empty() {
                    return Err(astray());
                }
                return Ok(Listener { port, descriptors });
            }
            Some(_) => return Err(astray()),
            None => {}
        }
        let (length, fds) =
            passing::receive(&socket, &mut bytes, RecvFlags::empty()).map_err(lost)?;
        if length == 0 {
            return Err(Error::Lost { reason: "its guest ended".to_owned() });
        }
        frames.push(&bytes[..length]);
        descriptors.extend(fds);
    }
}
