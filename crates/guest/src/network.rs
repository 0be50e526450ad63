//! The way out of the sandbox: listeners on its own loopback.
//!
//! Owns the listeners, for as long as the guest lives: the one that programs know as their
//! proxy, and those at the address to which every name leads ([`names`]), for programs that
//! know of none. Who accepts on them is somebody outside, who is handed the descriptors, or the
//! [`relay`], which carries each connection. Nothing here reaches anything.

mod names;
pub(crate) mod relay;

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

use outrigger_sandbox::limits::CAPTURED_PORTS_MAX;
use outrigger_sandbox::wire::RelayPiece;
use outrigger_sandbox::{Error, capture};

use crate::connection::Connections;
use crate::limits;
use crate::scratch::Scratch;
use crate::sys;
use relay::Relay;

/// The listeners, once somebody asked for them.
#[derive(Debug, Default)]
pub(crate) struct Network {
    /// That of the proxy is the first.
    listeners: Vec<TcpListener>,
    names: Option<UdpSocket>,
    relay: Relay,
}

/// What of it is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NetworkToken {
    /// By its place among the listeners.
    Listener(usize),
    Names,
    Flow(u64),
}

impl Network {
    /// Listens, at these captured ports as well and at no others, and gives the port of the proxy
    /// and descriptors to hand out.
    pub(crate) fn listen(&mut self, ports: &[u16]) -> Result<(u16, Vec<OwnedFd>), Error> {
        let failed = |error: io::Error| Error::Backend(format!("the guest can't listen: {error}"));
        // Who accepted on them may have shut them down: they take up again what they were, unless
        // somebody else has their port by now.
        self.listeners.retain(|it| rustix::net::listen(it, limits::LISTENER_BACKLOG).is_ok());
        if self.listeners.first().is_none_or(|first| captured(first).is_some()) {
            self.listeners.insert(0, listener(Ipv4Addr::LOCALHOST, 0).map_err(failed)?);
        }
        self.capture(ports);
        let port = self.listeners[0].local_addr().map_err(failed)?.port();
        let handed = self.listeners.iter().map(|it| Ok(it.try_clone()?.into()));
        Ok((port, handed.collect::<io::Result<_>>().map_err(failed)?))
    }

    /// Listens where names lead. A port that a program has for all addresses stays its own, and
    /// a kernel that keeps low ports to itself takes none of this: there is the proxy still.
    fn capture(&mut self, ports: &[u16]) {
        let ports = ports.iter().take(CAPTURED_PORTS_MAX).copied();
        let ports: BTreeSet<u16> = ports.chain(capture::PORTS).collect();
        self.listeners.retain(|it| captured(it).is_none_or(|port| ports.contains(&port)));
        let known: Vec<_> = self.listeners.iter().filter_map(captured).collect();
        let missing = ports.into_iter().filter(|port| !known.contains(port));
        let made = missing.filter_map(|port| listener(capture::ADDRESS, port).ok());
        let made: Vec<_> = made.collect();
        self.listeners.extend(made);
        // No name leads to where nobody listens.
        if self.names.is_none() && self.listeners.len() > 1 {
            self.names = names_socket().ok();
        }
    }

    /// Listens, and has a connection carry what connects.
    pub(crate) fn carry_by(&mut self, connection: u64, ports: &[u16]) -> Result<u16, Error> {
        let (port, _) = self.listen(ports)?;
        self.relay.carry_by(connection);
        Ok(port)
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

    /// Adds what to wait for.
    pub(crate) fn poll(&self, to: &Connections, mut add: impl FnMut(libc::pollfd, NetworkToken)) {
        if let Some(names) = &self.names {
            add(sys::pollfd(names, libc::POLLIN), NetworkToken::Names);
        }
        if self.relay.has_room(to) {
            for (place, listener) in self.listeners.iter().enumerate() {
                add(sys::pollfd(listener, libc::POLLIN), NetworkToken::Listener(place));
            }
        }
        self.relay.poll(to, |fd, flow| add(fd, NetworkToken::Flow(flow)));
    }

    /// Moves one thing.
    pub(crate) fn ready(
        &mut self,
        token: NetworkToken,
        scratch: &mut Scratch,
        to: &mut Connections,
    ) {
        match token {
            NetworkToken::Flow(flow) => self.relay.ready(flow, scratch, to),
            // Room that was there for each of them may have been for one.
            NetworkToken::Listener(place) if self.relay.has_room(to) => {
                // There may be fewer since it was waited for.
                if let Some(listener) = self.listeners.get(place) {
                    self.relay.accept(listener.as_fd(), captured(listener), to);
                }
            }
            NetworkToken::Listener(_) => {}
            NetworkToken::Names => self.names.iter().for_each(answer),
        }
    }

    /// Lets go of what was carried by a connection that is gone.
    pub(crate) fn step(&mut self, to: &Connections) {
        self.relay.step(to);
    }
}

/// The port to which names lead, if it is that of such a listener.
fn captured(listener: &TcpListener) -> Option<u16> {
    listener.local_addr().ok().filter(|at| at.ip() == capture::ADDRESS).map(|at| at.port())
}

fn listener(address: Ipv4Addr, port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(SocketAddrV4::new(address, port))?;
    // Whoever accepts waits by polling.
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn names_socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddrV4::new(capture::ADDRESS, capture::NAMES_PORT))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Answers one question, so that who asks many holds up nothing else.
fn answer(socket: &UdpSocket) {
    let mut question = [0; limits::NAME_QUESTION_BYTES_MAX];
    let Ok((length, from)) = socket.recv_from(&mut question) else { return };
    if let Some(answer) = names::answer(&question[..length]) {
        // Who does not hear it asks again.
        let _ = socket.send_to(&answer, from);
    }
}
