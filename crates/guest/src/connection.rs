//! Connections from hosts: frames in, frames out, nothing waited for.
//!
//! Owns the bytes in flight. Does not know how a connection came to be: it has one
//! descriptor to read and one to write, which may be a socket or a container's
//! standard streams. A connection that breaks a rule ends; the others go on.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use outrigger_sandbox::wire::{self, FrameBuffer, FromGuest, GuestReply, RelayPiece, ToGuest};
use outrigger_sandbox::{Error, Generation, TreeOp};
use rustix::io::Errno;

use crate::exec::caller::Caller;
use crate::scratch::Scratch;
use crate::{control, limits, sys};

/// One host that is connected.
#[derive(Debug)]
struct Connection {
    input: OwnedFd,
    /// Where answers go if not to `input`.
    output: Option<OwnedFd>,
    frames: FrameBuffer,
    outbox: VecDeque<Frame>,
    /// Bytes of the first frame in the outbox that are written already.
    written: usize,
    outbox_bytes: usize,
    broken: bool,
}

/// What waits to be written.
#[derive(Debug)]
struct Frame {
    bytes: Vec<u8>,
    /// Goes with its first byte.
    passed: Vec<OwnedFd>,
}

/// All hosts that are connected.
#[derive(Debug)]
pub(crate) struct Connections {
    hello: FromGuest,
    all: BTreeMap<u64, Connection>,
    opened: u64,
}

impl Connections {
    pub(crate) fn new(generation: Generation) -> Self {
        let hello = FromGuest::Hello { version: wire::VERSION, generation };
        Self { hello, all: BTreeMap::new(), opened: 0 }
    }

    /// Takes a connection and greets it. Above the limit it is closed.
    pub(crate) fn open(&mut self, input: OwnedFd, output: Option<OwnedFd>) -> io::Result<()> {
        if self.all.len() >= limits::CONNECTIONS_MAX {
            return Ok(());
        }
        sys::set_nonblocking(input.as_fd())?;
        if let Some(output) = &output {
            sys::set_nonblocking(output.as_fd())?;
        }
        let mut connection = Connection {
            input,
            output,
            frames: FrameBuffer::default(),
            outbox: VecDeque::new(),
            written: 0,
            outbox_bytes: 0,
            broken: false,
        };
        connection.send(&self.hello, Vec::new());
        self.opened += 1;
        self.all.insert(self.opened, connection);
        Ok(())
    }

    /// Whether any host is connected.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Sends an answer; to a connection that is gone it is dropped.
    pub(crate) fn reply(&mut self, caller: Caller, reply: GuestReply) {
        if let Some(connection) = self.all.get_mut(&caller.connection) {
            connection.send(&FromGuest::Reply { request: caller.request, reply }, Vec::new());
        }
    }

    /// Sends an answer with descriptors, to a connection that is a socket.
    pub(crate) fn reply_passing(
        &mut self,
        caller: Caller,
        reply: GuestReply,
        passed: Vec<OwnedFd>,
    ) {
        if let Some(connection) = self.all.get_mut(&caller.connection) {
            let message = FromGuest::Reply { request: caller.request, reply };
            // Standard streams take none.
            let passed = if connection.output.is_none() { passed } else { Vec::new() };
            connection.send(&message, passed);
        }
    }

    /// Sends a piece of a connection that is carried.
    pub(crate) fn relay(&mut self, connection: u64, flow: u64, piece: RelayPiece) {
        if let Some(connection) = self.all.get_mut(&connection) {
            connection.send(&FromGuest::Relayed { flow, piece }, Vec::new());
        }
    }

    /// Whether it is there.
    pub(crate) fn is_open(&self, connection: u64) -> bool {
        self.all.contains_key(&connection)
    }

    /// Has a host perform an operation on a served tree.
    pub(crate) fn ask_tree(&mut self, connection: u64, number: u64, op: TreeOp) {
        if let Some(connection) = self.all.get_mut(&connection) {
            connection.send(&FromGuest::Tree { number, op }, Vec::new());
        }
    }

    /// Whether more may be sent there; `None` if it is gone.
    pub(crate) fn has_room(&self, connection: u64) -> Option<bool> {
        self.all.get(&connection).map(Connection::has_room)
    }

    /// Adds every connection to wait for.
    pub(crate) fn poll(&self, mut add: impl FnMut(libc::pollfd, u64)) {
        for (number, connection) in &self.all {
            let reads = if connection.has_room() { libc::POLLIN } else { 0 };
            let writes = if connection.outbox.is_empty() { 0 } else { libc::POLLOUT };
            match &connection.output {
                None => add(sys::pollfd(&connection.input, reads | writes), *number),
                Some(output) => {
                    add(sys::pollfd(&connection.input, reads), *number);
                    add(sys::pollfd(output, writes), *number);
                }
            }
        }
    }

    /// Reads what a connection has and gives its requests.
    pub(crate) fn read(&mut self, number: u64, scratch: &mut Scratch) -> Vec<ToGuest> {
        let mut requests = Vec::new();
        if let Some(connection) = self.all.get_mut(&number) {
            connection.read(scratch, &mut requests);
        }
        requests
    }

    /// Writes what can be written, and closes what is broken.
    pub(crate) fn flush(&mut self) {
        self.all.retain(|_, connection| {
            connection.flush();
            !connection.broken
        });
    }
}

impl Connection {
    fn has_room(&self) -> bool {
        self.outbox_bytes < limits::OUTBOX_BYTES_MAX
    }

    fn send(&mut self, message: &FromGuest, passed: Vec<OwnedFd>) {
        let frame = wire::encode(message).or_else(|error| match message {
            // Better a typed refusal than silence.
            FromGuest::Reply { request, reply: GuestReply::Files(_) } => {
                let reply = GuestReply::Files(Err(Error::Backend(error.to_string())));
                wire::encode(&FromGuest::Reply { request: *request, reply })
            }
            FromGuest::Reply { .. }
            | FromGuest::Hello { .. }
            | FromGuest::Tree { .. }
            | FromGuest::Relayed { .. } => Err(error),
        });
        match frame {
            Ok(bytes) => {
                self.outbox_bytes += bytes.len();
                self.outbox.push_back(Frame { bytes, passed });
            }
            Err(_) => self.broken = true,
        }
    }

    fn read(&mut self, scratch: &mut Scratch, requests: &mut Vec<ToGuest>) {
        match scratch.read(&self.input) {
            Ok([]) => self.broken = true,
            Ok(piece) => self.frames.push(piece),
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => self.broken = true,
        }
        loop {
            match self.frames.take() {
                Ok(Some(request)) => requests.push(request),
                Ok(None) => return,
                Err(_) => {
                    self.broken = true;
                    return;
                }
            }
        }
    }

    fn flush(&mut self) {
        let output = self.output.as_ref().unwrap_or(&self.input);
        while let Some(frame) = self.outbox.front_mut() {
            let rest = &frame.bytes[self.written..];
            let sent = match frame.passed.is_empty() {
                true => rustix::io::write(output, rest),
                false => control::pass(output, rest, &frame.passed),
            };
            match sent {
                Ok(length) => {
                    frame.passed.clear();
                    self.written += length;
                    self.outbox_bytes -= length;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    self.broken = true;
                    return;
                }
            }
            if self.written == frame.bytes.len() {
                self.outbox.pop_front();
                self.written = 0;
            }
        }
    }
}
