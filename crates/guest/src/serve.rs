//! The serving loop: one thread that waits for everything at once.
//!
//! Owns the order of things: what is ready is moved, the clock is looked at, those
//! who wait are told. Where connections come from is a [`ConnectionSource`].

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use outrigger_sandbox::End;
use outrigger_sandbox::wire::{GuestReply, GuestRequest, ToGuest};

use crate::connection::Connections;
use crate::control::SpawnerMessage;
use crate::exec::Commands;
use crate::exec::caller::Caller;
use crate::exec::running::Pipe;
use crate::files::Files;
use crate::fuse::FuseServer;
use crate::network::{Network, NetworkToken};
use crate::scratch::Scratch;
use crate::sleep::Sleep;
use crate::{control, limits, listen, sys};

/// Where connections come from.
#[derive(Debug)]
pub(crate) enum ConnectionSource {
    /// A socket on which the spawner passes them in; the guest ends with it.
    Control(Control),
    /// A socket that it listens on; the guest does not end with its connections.
    Listen(OwnedFd),
    /// One connection that was there from the start; the guest ends with it.
    Single,
}

/// The spawner's socket, and what it was told last.
#[derive(Debug)]
pub(crate) struct Control {
    socket: OwnedFd,
    /// Whether something was asked for that the spawner was not told of.
    untold: bool,
    told: Option<Instant>,
}

impl Control {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket, untold: false, told: None }
    }

    /// When the spawner is to be told that something was asked for.
    fn wake(&self, now: Instant) -> Option<Duration> {
        let pause = Duration::from_millis(limits::ACTIVITY_MS_MIN);
        self.untold.then(|| {
            self.told.map_or(Duration::ZERO, |told| (told + pause).saturating_duration_since(now))
        })
    }

    fn step(&mut self, now: Instant) {
        if self.wake(now) == Some(Duration::ZERO) {
            (self.untold, self.told) = (false, Some(now));
            self.tell(SpawnerMessage::Activity);
        }
    }

    fn tell(&self, what: SpawnerMessage) {
        // One that has no room reads nothing either: it is told again, or has ended.
        let _ = control::tell(&self.socket, what);
    }
}

/// All that the loop moves.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) source: ConnectionSource,
    pub(crate) signals: OwnedFd,
    pub(crate) connections: Connections,
    pub(crate) commands: Commands,
    pub(crate) files: Files,
    pub(crate) fuse: FuseServer,
    pub(crate) network: Network,
    pub(crate) sleep: Sleep,
}

#[derive(Debug, Clone, Copy)]
enum Token {
    Door,
    Signals,
    Files,
    Served(usize),
    Connection(u64),
    Network(NetworkToken),
    Pipe(i32, Pipe),
    Drain,
}

impl Guest {
    /// Serves until no connection can come any more.
    ///
    /// # Errors
    /// When the kernel refuses to wait, which leaves nothing to do but end.
    pub(crate) fn serve(mut self) -> io::Result<()> {
        let mut scratch = Scratch::new();
        let (mut fds, mut tokens) = (Vec::new(), Vec::new());
        loop {
            self.gather(&mut fds, &mut tokens);
            let told = match &self.source {
                ConnectionSource::Control(control) => control.wake(Instant::now()),
                ConnectionSource::Listen(_) | ConnectionSource::Single => None,
            };
            let wake = self.commands.wake(self.fuse.is_releasing());
            let wake = wake.into_iter().chain(told).chain(self.fuse.wake()).min();
            let timeout = wake.map_or(-1, |wait| {
                // Rounded up, so that the loop does not spin through the last millisecond.
                i32::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(i32::MAX)
            });
            match self.sleep.poll(&mut fds, timeout) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                Ok(()) | Err(_) => {}
            }
            for (fd, token) in fds.iter().zip(&tokens) {
                if fd.revents != 0 && !self.ready(*token, &mut scratch)? {
                    return Ok(());
                }
            }
            self.commands.step(&mut self.connections, self.fuse.is_releasing());
            self.commands.pump(&mut self.connections);
            self.connections.flush();
            self.network.step(&self.connections);
            self.fuse.step(&mut self.connections, self.commands.is_killing());
            self.sleep.asked = self.fuse.was_asked();
            if let ConnectionSource::Control(control) = &mut self.source {
                control.step(Instant::now());
            }
            if matches!(self.source, ConnectionSource::Single) && self.connections.is_empty() {
                return Ok(());
            }
        }
    }

    fn gather(&mut self, fds: &mut Vec<libc::pollfd>, tokens: &mut Vec<Token>) {
        fds.clear();
        tokens.clear();
        let mut add = |fd, token| {
            fds.push(fd);
            tokens.push(token);
        };
        match &self.source {
            ConnectionSource::Control(Control { socket, .. })
            | ConnectionSource::Listen(socket) => {
                add(sys::pollfd(socket, libc::POLLIN), Token::Door);
            }
            ConnectionSource::Single => {}
        }
        self.commands.poll(|fd, pipe| match pipe {
            Some((pid, pipe)) => add(fd, Token::Pipe(pid, pipe)),
            None => add(fd, Token::Drain),
        });
        // After the pipes: the last output of a command is read before its end is noted.
        add(sys::pollfd(&self.signals, libc::POLLIN), Token::Signals);
        add(sys::pollfd(&self.files.wake, libc::POLLIN), Token::Files);
        self.fuse.poll(|fd, number| add(fd, Token::Served(number)));
        self.connections.poll(|fd, number| add(fd, Token::Connection(number)));
        self.network.poll(&self.connections, |fd, token| add(fd, Token::Network(token)));
    }

    /// Moves one thing; says whether to go on.
    fn ready(&mut self, token: Token, scratch: &mut Scratch) -> io::Result<bool> {
        match token {
            Token::Door => return self.admit(),
            Token::Signals => {
                let _ = scratch.read(&self.signals);
                // What an ended process closed comes before its end.
                self.fuse.drain();
                self.commands.reap();
            }
            Token::Files => self.files.collect(&mut self.commands.table, &mut self.connections),
            Token::Served(number) => self.fuse.ready(number),
            Token::Connection(number) => {
                for request in self.connections.read(number, scratch) {
                    self.perform(number, request);
                }
            }
            Token::Network(token) => self.network.ready(token, scratch, &mut self.connections),
            Token::Pipe(pid, pipe) => self.commands.ready(pid, pipe, &mut self.connections),
            Token::Drain => self.commands.drain(),
        }
        Ok(true)
    }

    fn admit(&mut self) -> io::Result<bool> {
        let control = match &self.source {
            ConnectionSource::Control(control) => control,
            ConnectionSource::Listen(listener) => {
                if let Some(fd) = listen::accept(listener) {
                    self.connections.open(fd, None)?;
                }
                return Ok(true);
            }
            ConnectionSource::Single => return Ok(true),
        };
        match control::receive(control.socket.as_fd())? {
            control::ControlMessage::Connection(fd) => self.connections.open(fd, None)?,
            control::ControlMessage::HandOver(to) => return self.hand_over(to),
            control::ControlMessage::DiskFull => {
                self.files.disk_full();
                self.commands.kill_all(End::DiskFull);
            }
            control::ControlMessage::Idle => {
                control.tell(if self.is_busy() {
                    SpawnerMessage::Busy
                } else {
                    SpawnerMessage::Idle
                });
            }
            control::ControlMessage::Nothing => {}
            control::ControlMessage::Closed => return Ok(false),
        }
        Ok(true)
    }

    fn is_busy(&self) -> bool {
        self.commands.is_busy() || self.files.is_busy() || self.fuse.is_releasing()
    }

    /// Writes what the next life is to know and then waits for the end of this one.
    /// Says whether this life goes on instead.
    fn hand_over(&mut self, to: OwnedFd) -> io::Result<bool> {
        let ConnectionSource::Control(control) = &self.source else { return Ok(true) };
        if self.is_busy() {
            control.tell(SpawnerMessage::Busy);
            return Ok(true);
        }
        if self.commands.hand_over(to, &mut self.connections).is_err() {
            control.tell(SpawnerMessage::Failed);
            return Ok(true);
        }
        // What is asked for from here on would be known to no life: it is not read.
        // Whoever asked is told by the end of its connection and asks the next one.
        self.connections.flush();
        control.tell(SpawnerMessage::Kept);
        loop {
            let mut fds = [
                sys::pollfd(&control.socket, libc::POLLIN),
                sys::pollfd(&self.signals, libc::POLLIN),
            ];
            match sys::poll(&mut fds, -1) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                Ok(()) | Err(_) => {}
            }
            if fds[1].revents != 0 {
                let _ = rustix::io::read(&self.signals, &mut [0; 128]);
                self.commands.reap();
            }
            if fds[0].revents != 0
                && matches!(
                    control::receive(control.socket.as_fd())?,
                    control::ControlMessage::Closed
                )
            {
                return Ok(false);
            }
        }
    }

    fn perform(&mut self, connection: u64, ToGuest { request, ask }: ToGuest) {
        let caller = Caller { connection, request };
        self.fuse.hear();
        let asks_for_it = !matches!(
            ask,
            GuestRequest::Serve | GuestRequest::Tree { .. } | GuestRequest::Relayed { .. }
        );
        if asks_for_it && let ConnectionSource::Control(control) = &mut self.source {
            control.untold = true;
        }
        match ask {
            GuestRequest::Execute(request) => {
                self.commands.execute(request, caller, &mut self.connections)
            }
            GuestRequest::Kill(id) => self.commands.kill(&id, caller, &mut self.connections),
            GuestRequest::Input { id, input } => {
                self.commands.input(&id, input, caller, &mut self.connections);
            }
            GuestRequest::Freeze => self.commands.freeze(caller, &mut self.connections),
            GuestRequest::Thaw => self.commands.thaw(caller, &mut self.connections),
            GuestRequest::Forget => self.commands.forget(caller),
            GuestRequest::Serve => self.fuse.serve(connection),
            GuestRequest::Tree { number, result } => self.fuse.answer(connection, number, result),
            GuestRequest::Listen(ports) => match self.network.listen(&ports) {
                Ok((port, listeners)) => {
                    let reply = GuestReply::Listening(Ok(port));
                    self.connections.reply_passing(caller, reply, listeners);
                }
                Err(error) => {
                    self.connections.reply(caller, GuestReply::Listening(Err(error)));
                }
            },
            GuestRequest::Relay(ports) => {
                let port = self.network.carry_by(connection, &ports);
                self.connections.reply(caller, GuestReply::Listening(port));
            }
            GuestRequest::Relayed { flow, piece } => {
                self.network.hear(connection, flow, piece, &mut self.connections);
            }
            GuestRequest::Files(op) => {
                let answer = self.files.perform(op, caller, &mut self.commands.table);
                if let Some(answer) = answer {
                    self.connections.reply(caller, GuestReply::Files(answer));
                }
            }
        }
    }
}
