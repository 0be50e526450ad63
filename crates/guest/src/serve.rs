//! The serving loop: one thread that waits for everything at once.
//!
//! Owns the order of things: what is ready is moved, the clock is looked at, those
//! who wait are told. Where connections come from is a [`Door`].

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use outrigger_sandbox::wire::{Ask, Reply, ToGuest};

use crate::connection::Connections;
use crate::exec::Commands;
use crate::exec::running::Pipe;
use crate::exec::table::Caller;
use crate::files::Files;
use crate::{control, limits, sys};

/// Where connections come from.
#[derive(Debug)]
pub(crate) enum Door {
    /// A socket on which the spawner passes them in; the guest ends with it.
    Control(OwnedFd),
    /// One connection that was there from the start; the guest ends with it.
    Single,
}

/// All that the loop moves.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) door: Door,
    pub(crate) signals: OwnedFd,
    pub(crate) connections: Connections,
    pub(crate) commands: Commands,
    pub(crate) files: Files,
}

#[derive(Debug, Clone, Copy)]
enum Token {
    Door,
    Signals,
    Files,
    Connection(u64),
    Pipe(i32, Pipe),
    Drain,
}

impl Guest {
    /// Serves until the door closes.
    ///
    /// # Errors
    /// When the kernel refuses to wait, which leaves nothing to do but end.
    pub(crate) fn serve(mut self) -> io::Result<()> {
        let mut scratch = vec![0; limits::PIECE_BYTES];
        let (mut fds, mut tokens) = (Vec::new(), Vec::new());
        loop {
            self.gather(&mut fds, &mut tokens);
            let timeout = self.commands.wake().map_or(-1, |wait| {
                // Rounded up, so that the loop does not spin through the last millisecond.
                i32::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(i32::MAX)
            });
            match sys::poll(&mut fds, timeout) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                Ok(()) | Err(_) => {}
            }
            for (fd, token) in fds.iter().zip(&tokens) {
                if fd.revents != 0 && !self.ready(*token, &mut scratch)? {
                    return Ok(());
                }
            }
            self.commands.step(&mut self.connections);
            self.commands.pump(&mut self.connections);
            self.connections.flush();
            if matches!(self.door, Door::Single) && self.connections.is_empty() {
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
        if let Door::Control(control) = &self.door {
            add(sys::pollfd(control, libc::POLLIN), Token::Door);
        }
        self.commands.poll(|fd, pipe| match pipe {
            Some((pid, pipe)) => add(fd, Token::Pipe(pid, pipe)),
            None => add(fd, Token::Drain),
        });
        // After the pipes: the last output of a command is read before its end is noted.
        add(sys::pollfd(&self.signals, libc::POLLIN), Token::Signals);
        add(sys::pollfd(&self.files.wake, libc::POLLIN), Token::Files);
        self.connections.poll(|fd, number| add(fd, Token::Connection(number)));
    }

    /// Moves one thing; says whether to go on.
    fn ready(&mut self, token: Token, scratch: &mut [u8]) -> io::Result<bool> {
        match token {
            Token::Door => return self.admit(),
            Token::Signals => {
                let _ = rustix::io::read(&self.signals, &mut *scratch);
                self.commands.reap();
            }
            Token::Files => self.files.collect(&mut self.commands.table, &mut self.connections),
            Token::Connection(number) => {
                for request in self.connections.read(number, scratch) {
                    self.perform(number, request);
                }
            }
            Token::Pipe(pid, pipe) => self.commands.ready(pid, pipe),
            Token::Drain => self.commands.drain(),
        }
        Ok(true)
    }

    fn admit(&mut self) -> io::Result<bool> {
        let Door::Control(control) = &self.door else { return Ok(true) };
        match control::receive(control.as_fd())? {
            control::Received::Connection(fd) => self.connections.open(fd, None)?,
            control::Received::Nothing => {}
            control::Received::Closed => return Ok(false),
        }
        Ok(true)
    }

    fn perform(&mut self, connection: u64, ToGuest { request, ask }: ToGuest) {
        let caller = Caller { connection, request };
        match ask {
            Ask::Execute(request) => self.commands.execute(request, caller, &mut self.connections),
            Ask::Kill(id) => self.commands.kill(&id, caller, &mut self.connections),
            Ask::Input { .. } => {
                self.connections.reply(caller, Reply::Taken(Err(lacking("a terminal"))));
            }
            Ask::Freeze => {
                self.connections.reply(caller, Reply::Frozen(Err(lacking("freezing"))));
            }
            Ask::Thaw => self.connections.reply(caller, Reply::Thawed(Ok(()))),
            Ask::Forget => self.commands.forget(caller),
            Ask::Files(op) => {
                let answer = self.files.perform(op, caller, &mut self.commands.table);
                if let Some(answer) = answer {
                    self.connections.reply(caller, Reply::Files(answer));
                }
            }
        }
    }
}

fn lacking(what: &str) -> outrigger_sandbox::Error {
    let reason = "this guest has no means for it".to_owned();
    outrigger_sandbox::Error::Unsupported { what: what.to_owned(), reason }
}
