//! The terminal of a command.
//!
//! Owns our end of it and the input that waits for the command to read. The guest
//! must never get a terminal of its own: it opens both ends so that neither becomes
//! that, and only a command, which leads a session, takes one.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use outrigger_sandbox::{Error, TerminalSize};
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use crate::exec::caller::Caller;
use crate::{limits, sys};

/// Both ends of a new terminal.
#[derive(Debug)]
pub(crate) struct TerminalPair {
    pub(crate) parent: OwnedFd,
    pub(crate) child: OwnedFd,
}

/// Input on its way into the terminal, and who is told when it took it.
#[derive(Debug)]
struct PendingInput {
    caller: Option<Caller>,
    bytes: Vec<u8>,
    written: usize,
}

/// Our end.
#[derive(Debug)]
pub(crate) struct Terminal {
    pub(crate) fd: OwnedFd,
    waiting: VecDeque<PendingInput>,
    waiting_bytes: usize,
    taken: Vec<Caller>,
}

/// Makes a terminal that belongs to the sandbox's user.
pub(crate) fn open(size: TerminalSize) -> io::Result<TerminalPair> {
    // It belongs to whoever opens it, and a thread can be that user for good, where
    // the guest could not change back without losing its tie to its parent (prctl(2)).
    let work = || -> io::Result<OwnedFd> {
        sys::become_user(sys::agent_id())?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        Ok(rustix::pty::openpt(flags)?)
    };
    let thread =
        std::thread::Builder::new().stack_size(limits::TERMINAL_STACK_BYTES).spawn(work)?;
    let parent = thread.join().map_err(|_| io::Error::other("its thread failed"))??;
    rustix::pty::unlockpt(&parent)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    // Not by its name, which would be one in a directory that commands see.
    let child = rustix::pty::ioctl_tiocgptpeer(&parent, flags)?;
    sys::set_nonblocking(parent.as_fd())?;
    resize(&parent, size)?;
    Ok(TerminalPair { parent, child })
}

fn resize(fd: &OwnedFd, size: TerminalSize) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(rustix::termios::tcsetwinsize(fd, size)?)
}

impl Terminal {
    /// With input that comes before all other.
    pub(crate) fn new(fd: OwnedFd, first: Vec<u8>) -> Self {
        let waiting_bytes = first.len();
        let first = PendingInput { caller: None, bytes: first, written: 0 };
        let waiting = if first.bytes.is_empty() { VecDeque::new() } else { [first].into() };
        Self { fd, waiting, waiting_bytes, taken: Vec::new() }
    }

    /// Whether input waits for the command to read.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes input, to be written as the command reads. Who waits is among
    /// [`Terminal::taken`] then.
    pub(crate) fn push(&mut self, caller: Caller, bytes: Vec<u8>) -> Result<(), Error> {
        if self.waiting_bytes.saturating_add(bytes.len()) > limits::INPUT_WAITING_BYTES_MAX
            || self.waiting.len() >= limits::INPUTS_WAITING_MAX
        {
            return Err(Error::Backend("too much input waits for the command already".to_owned()));
        }
        self.waiting_bytes += bytes.len();
        self.waiting.push_back(PendingInput { caller: Some(caller), bytes, written: 0 });
        self.feed();
        Ok(())
    }

    /// Writes what the terminal takes.
    pub(crate) fn feed(&mut self) {
        while let Some(first) = self.waiting.front_mut() {
            if first.written < first.bytes.len() {
                match rustix::io::write(&self.fd, &first.bytes[first.written..]) {
                    Ok(length) => first.written += length,
                    Err(Errno::INTR) => {}
                    // Full, or nobody has it open: then reading tells of its end.
                    Err(_) => return,
                }
                continue;
            }
            self.waiting_bytes -= first.bytes.len();
            self.taken.extend(first.caller);
            self.waiting.pop_front();
        }
    }

    /// Those whose input the terminal took since this was asked before.
    pub(crate) fn taken(&mut self) -> impl Iterator<Item = Caller> {
        self.taken.drain(..)
    }

    /// Those whose input it never took.
    pub(crate) fn owed(&self) -> impl Iterator<Item = Caller> {
        self.waiting.iter().filter_map(|waiting| waiting.caller)
    }

    /// Changes its size; the kernel tells the command.
    pub(crate) fn resize(&self, size: TerminalSize) -> Result<(), Error> {
        if size.rows == 0 || size.columns == 0 {
            return Err(Error::Invalid("a terminal without a line or a column".to_owned()));
        }
        resize(&self.fd, size)
            .map_err(|error| Error::Backend(format!("the terminal keeps its size: {error}")))
    }
}
