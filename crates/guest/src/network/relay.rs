//! Carries connections of programs over a host's connection.
//!
//! Owns what is in flight of each, never more than a window in either direction: a program or
//! a host that does not read holds up its own flow and nothing else.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{BorrowedFd, OwnedFd};

use outrigger_sandbox::limits::{RELAY_FLOWS_MAX, RELAY_PIECE_BYTES, RELAY_WINDOW_BYTES};
use outrigger_sandbox::wire::RelayPiece;
use rustix::io::Errno;
use rustix::net::{Shutdown, SocketFlags};

use crate::connection::Connections;
use crate::scratch::Scratch;
use crate::sys;

/// What a side may send before it is given more room.
const WINDOW: i64 = RELAY_WINDOW_BYTES as i64;

/// All connections that are carried.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    /// The host's connection that carries them.
    carrier: Option<u64>,
    flows: BTreeMap<u64, Flow>,
    opened: u64,
}

/// One connection of a program.
#[derive(Debug)]
struct Flow {
    socket: OwnedFd,
    /// What may be sent to the host before it gives more room. A read may pass it by less
    /// than its own length.
    room: i64,
    /// What the program is to be given, and how much of the first piece it has.
    inbox: VecDeque<Vec<u8>>,
    written: usize,
    inbox_bytes: usize,
    /// What the program took since the host was told.
    taken: usize,
    /// The program sends no more.
    read_over: bool,
    /// The host sends no more.
    write_over: bool,
}

/// What came of moving a flow.
enum FlowState {
    Open,
    /// Both sides ended.
    Over,
    Broken,
}

impl Relay {
    /// From now on that connection carries them; those of another one are over.
    pub(crate) fn carry_by(&mut self, connection: u64) {
        if self.carrier != Some(connection) {
            self.flows.clear();
            self.carrier = Some(connection);
        }
    }

    /// Whether another connection can be taken.
    pub(crate) fn has_room(&self, to: &Connections) -> bool {
        self.flows.len() < RELAY_FLOWS_MAX && self.carrier_has_room(to)
    }

    fn carrier_has_room(&self, to: &Connections) -> bool {
        self.carrier.is_some_and(|carrier| to.has_room(carrier) == Some(true))
    }

    pub(crate) fn step(&mut self, to: &Connections) {
        if self.carrier.is_some_and(|carrier| !to.is_open(carrier)) {
            self.flows.clear();
            self.carrier = None;
        }
    }

    pub(crate) fn poll(&self, to: &Connections, mut add: impl FnMut(libc::pollfd, u64)) {
        let has_room = self.carrier_has_room(to);
        for (number, flow) in &self.flows {
            let reads = has_room && flow.room > 0 && !flow.read_over;
            let writes = !flow.inbox.is_empty();
            let events =
                if reads { libc::POLLIN } else { 0 } | if writes { libc::POLLOUT } else { 0 };
            // One that waits for nothing would be told of a hang-up again and again.
            if events != 0 {
                add(sys::pollfd(&flow.socket, events), *number);
            }
        }
    }

    /// Takes what connected to a listener, which is at this captured port.
    pub(crate) fn accept(
        &mut self,
        listener: BorrowedFd<'_>,
        captured: Option<u16>,
        to: &mut Connections,
    ) {
        let Some(carrier) = self.carrier else { return };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Whatever is wrong with one connection is over with it.
        let Ok(socket) = rustix::net::accept_with(listener, flags) else { return };
        self.opened += 1;
        self.flows.insert(self.opened, Flow::new(socket));
        to.relay(carrier, self.opened, RelayPiece::Opened(captured));
    }

    pub(crate) fn hear(
        &mut self,
        connection: u64,
        number: u64,
        piece: RelayPiece,
        to: &mut Connections,
    ) {
        if self.carrier != Some(connection) {
            return;
        }
        let Some(flow) = self.flows.get_mut(&number) else { return };
        let state = flow.hear(piece, |piece| to.relay(connection, number, piece));
        self.end(number, state, to);
    }

    pub(crate) fn ready(&mut self, number: u64, scratch: &mut Scratch, to: &mut Connections) {
        let (Some(carrier), Some(flow)) = (self.carrier, self.flows.get_mut(&number)) else {
            return;
        };
        let state = flow.ready(scratch, |piece| to.relay(carrier, number, piece));
        self.end(number, state, to);
    }

    fn end(&mut self, number: u64, state: FlowState, to: &mut Connections) {
        match (state, self.carrier) {
            (FlowState::Open, _) => return,
            (FlowState::Broken, Some(carrier)) => to.relay(carrier, number, RelayPiece::Broken),
            (FlowState::Broken, None) | (FlowState::Over, _) => {}
        }
        self.flows.remove(&number);
    }
}

impl Flow {
    fn new(socket: OwnedFd) -> Self {
        // What is small is not to wait for more.
        let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
        Self {
            socket,
            room: WINDOW,
            inbox: VecDeque::new(),
            written: 0,
            inbox_bytes: 0,
            taken: 0,
            read_over: false,
            write_over: false,
        }
    }

    fn hear(&mut self, piece: RelayPiece, send: impl FnMut(RelayPiece)) -> FlowState {
        match piece {
            RelayPiece::Bytes(bytes) => {
                self.inbox_bytes += bytes.len();
                if self.write_over || self.inbox_bytes > RELAY_WINDOW_BYTES {
                    return FlowState::Broken;
                }
                self.inbox.push_back(bytes);
            }
            RelayPiece::Ended => self.write_over = true,
            RelayPiece::Room(bytes) => {
                self.room += i64::from(bytes);
                if self.room > WINDOW {
                    return FlowState::Broken;
                }
            }
            RelayPiece::Broken => return FlowState::Over,
            RelayPiece::Opened(_) => return FlowState::Broken,
        }
        self.write(send)
    }

    fn ready(&mut self, scratch: &mut Scratch, mut send: impl FnMut(RelayPiece)) -> FlowState {
        if self.room > 0 && !self.read_over {
            match scratch.read(&self.socket) {
                Ok([]) => {
                    self.read_over = true;
                    send(RelayPiece::Ended);
                }
                Ok(bytes) => {
                    self.room -= i64::try_from(bytes.len()).expect("a piece is small");
                    for piece in bytes.chunks(RELAY_PIECE_BYTES) {
                        send(RelayPiece::Bytes(piece.to_vec()));
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return FlowState::Broken,
            }
        }
        self.write(send)
    }

    /// Gives the program what it takes.
    fn write(&mut self, mut send: impl FnMut(RelayPiece)) -> FlowState {
        while let Some(piece) = self.inbox.front() {
            match rustix::io::write(&self.socket, &piece[self.written..]) {
                Ok(length) => {
                    self.written += length;
                    self.taken += length;
                    self.inbox_bytes -= length;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return FlowState::Broken,
            }
            if self.written == piece.len() {
                self.inbox.pop_front();
                self.written = 0;
            }
        }
        if self.taken >= RELAY_WINDOW_BYTES / 2 {
            let taken = u32::try_from(self.taken).expect("a window is smaller than that");
            self.taken = 0;
            send(RelayPiece::Room(taken));
        }
        if !self.write_over || !self.inbox.is_empty() {
            return FlowState::Open;
        }
        if self.read_over {
            return FlowState::Over;
        }
        // Saying so again does no harm.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Write);
        FlowState::Open
    }
}
