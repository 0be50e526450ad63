//! The way out of the sandbox: one listener on its own loopback.
//!
//! Owns the listener, for as long as the guest lives. Who accepts on it is somebody outside,
//! who is handed the descriptor, or the [`relay`], which carries each connection. Nothing here
//! reaches anything.

pub(crate) mod relay;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, OwnedFd};

use outrigger_sandbox::Error;
use outrigger_sandbox::wire::RelayPiece;

use crate::connection::Connections;
use crate::scratch::Scratch;
use relay::Relay;

/// The listener, once somebody asked for it.
#[derive(Debug, Default)]
pub(crate) struct Network {
    listener: Option<TcpListener>,
    relay: Relay,
}

impl Network {
    /// Listens, and gives the port and a descriptor to hand out.
    pub(crate) fn listen(&mut self) -> Result<(u16, OwnedFd), Error> {
        let failed = |error: io::Error| Error::Backend(format!("the guest can't listen: {error}"));
        let listener = self.listener().map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok((port, listener.try_clone().map_err(failed)?.into()))
    }

    /// Listens, and has a connection carry what connects.
    pub(crate) fn carry_by(&mut self, connection: u64) -> Result<u16, Error> {
        let (port, _) = self.listen()?;
        self.relay.carry_by(connection);
        Ok(port)
    }

    fn listener(&mut self) -> io::Result<&TcpListener> {
        if self.listener.is_none() {
            let listener = TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
            // Whoever accepts waits by polling.
            listener.set_nonblocking(true)?;
            self.listener = Some(listener);
        }
        Ok(self.listener.as_ref().expect("it was made just now"))
    }

    /// Takes what the host sends for a connection that is carried.
    pub(crate) fn hear(
        &mut self,
        connection: u64,
        flow: u64,
        piece: RelayPiece,
        to: &mut Connections,
    ) {
        self.relay.hear(connection, flow, piece, to);
    }

    /// Adds what to wait for; `None` stands for the listener.
    pub(crate) fn poll(&self, to: &Connections, mut add: impl FnMut(libc::pollfd, Option<u64>)) {
        if let Some(listener) = &self.listener
            && self.relay.has_room(to)
        {
            add(crate::sys::pollfd(listener, libc::POLLIN), None);
        }
        self.relay.poll(to, |fd, flow| add(fd, Some(flow)));
    }

    /// Moves one thing.
    pub(crate) fn ready(&mut self, flow: Option<u64>, scratch: &mut Scratch, to: &mut Connections) {
        match (flow, &self.listener) {
            (Some(flow), _) => self.relay.ready(flow, scratch, to),
            (None, Some(listener)) => self.relay.accept(listener.as_fd(), to),
            (None, None) => {}
        }
    }

    /// Lets go of what was carried by a connection that is gone.
    pub(crate) fn step(&mut self, to: &Connections) {
        self.relay.step(to);
    }
}
