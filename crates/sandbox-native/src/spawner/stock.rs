//! Blanks that are made ahead.
//!
//! Owns the process that makes them while the spawner does other things, and the
//! pipe of those that wait to be taken. Where it has none, or is gone, the spawner
//! makes one itself: the stock saves time and nothing else.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use rustix::process::{Signal, pidfd_send_signal};

use super::blank::{Blank, Mould, Parent};
use super::random_name;
use super::root::Ground;
use super::sys::{self, Fork};
use crate::{limits, passing};

/// From spawner to maker: one is wanted.
const WANTED: &[u8] = b"w";

/// The blanks of a spawner.
#[derive(Debug)]
pub(super) struct Stock {
    pub(super) mould: Mould,
    maker: Option<Maker>,
}

/// The process that makes them.
#[derive(Debug)]
struct Maker {
    pid: i32,
    pidfd: OwnedFd,
    socket: OwnedFd,
    /// What they are put on.
    ground: Rc<Ground>,
}

impl Stock {
    pub(super) fn new(mould: Mould) -> Self {
        Self { mould, maker: None }
    }

    /// A blank on this ground, if one waits.
    pub(super) fn take(&mut self, ground: &Rc<Ground>) -> Option<Blank> {
        if let Some(maker) = self.maker.take_if(|maker| !Rc::ptr_eq(&maker.ground, ground)) {
            maker.dismiss(&self.mould);
        }
        loop {
            match self.maker.as_ref()?.take(&self.mould) {
                Ok(Some(blank)) if blank.has_ended() => blank.discard(),
                Ok(blank) => return blank,
                Err(_) => self.close(),
            }
        }
    }

    /// Makes a blank at once. To be called by a process with one thread.
    pub(super) fn make(&self, ground: &Rc<Ground>) -> io::Result<Blank> {
        self.mould.cast(ground, &name()?, Parent::This)
    }

    /// Has what was taken made up for.
    pub(super) fn refill(&mut self, ground: &Rc<Ground>) {
        if self.maker.as_ref().is_some_and(|maker| !maker.want()) {
            self.close();
        } else if self.maker.is_some() {
            return;
        }
        // Without one there is no stock, which is slower and no failure.
        self.maker = Maker::start(&self.mould, ground).ok();
        for maker in std::iter::repeat_n(&self.maker, limits::STOCK_MAX).flatten() {
            maker.want();
        }
    }

    /// Ends all that wait.
    pub(super) fn close(&mut self) {
        if let Some(maker) = self.maker.take() {
            maker.dismiss(&self.mould);
        }
    }
}

fn name() -> io::Result<String> {
    Ok(format!("s-{}", random_name()?))
}

impl Maker {
    fn start(mould: &Mould, ground: &Rc<Ground>) -> io::Result<Self> {
        let spawner = rustix::process::getpid().as_raw_nonzero().get();
        let (socket, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        // SAFETY: the caller has one thread.
        match unsafe { sys::fork(0) }? {
            Fork::Parent { pid, pidfd } => {
                Ok(Self { pid, pidfd, socket, ground: Rc::clone(ground) })
            }
            Fork::Child => {
                let mut kept = vec![theirs.as_fd(), mould.program.as_fd()];
                if let Ground::Apart(prepared) = &**ground {
                    kept.push(prepared.as_fd());
                }
                let ready = sys::die_with(spawner).and_then(|()| sys::keep_only(&kept));
                let done = ready.and_then(|()| serve(&theirs, mould, ground));
                sys::leave(i32::from(done.is_err()))
            }
        }
    }

    /// Asks for one more. `false`: it is gone, and with it nothing but time.
    fn want(&self) -> bool {
        let sent = send(&self.socket, WANTED, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        matches!(sent, Ok(_) | Err(Errno::AGAIN))
    }

    /// One that is there already.
    fn take(&self, mould: &Mould) -> io::Result<Option<Blank>> {
        let mut said = [0; limits::BLANK_BYTES_MAX];
        let (length, fds) = match passing::receive(&self.socket, &mut said, RecvFlags::DONTWAIT) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            got => got?,
        };
        let nonsense = || io::Error::other("the maker of blanks is broken");
        let (pid, name) =
            postcard::from_bytes::<(i32, String)>(&said[..length]).map_err(|_| nonsense())?;
        let [pidfd, control] = <[OwnedFd; 2]>::try_from(fds).map_err(|_| nonsense())?;
        Ok(Some(Blank { pid, pidfd, control, group: mould.groups.at(&name) }))
    }

    /// Ends it, and those of its blanks that nobody took.
    fn dismiss(self, mould: &Mould) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        sys::wait(self.pid);
        while let Ok(Some(blank)) = self.take(mould) {
            blank.discard();
        }
    }
}

/// Makes one for each word, until the spawner is gone. As long as some are left it waits
/// for a moment in which none is taken, because who takes one is in a hurry.
fn serve(socket: &OwnedFd, mould: &Mould, ground: &Rc<Ground>) -> io::Result<()> {
    let mut wanted = 0;
    loop {
        let patience_ms = match wanted {
            0 => -1,
            few if few <= limits::STOCK_MAX / 2 => limits::STOCK_REST_MS,
            _ => 0,
        };
        let mut fds = [sys::pollfd(socket)];
        sys::poll(&mut fds, patience_ms)?;
        if fds[0].revents != 0 {
            if recv(socket, &mut [0; 1], RecvFlags::empty())?.1 != 1 {
                return Ok(());
            }
            wanted += 1;
            continue;
        }
        let name = name()?;
        let blank = mould.cast(ground, &name, Parent::Above)?;
        let said = postcard::to_allocvec(&(blank.pid, name)).map_err(io::Error::other)?;
        let fds = [blank.pidfd.as_fd(), blank.control.as_fd()];
        passing::send(socket, &said, &fds, SendFlags::empty())?;
        wanted -= 1;
    }
}
