//! Blanks that are made ahead.
//!
//! Owns who makes them. Whoever needs one takes one that waits, else the next.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::net::{RecvFlags, SendFlags};

use super::blank::{Blank, Mould};
use super::maker::Maker;
use super::random_name;
use super::zygote::Zygote;
use crate::{limits, passing};

/// See the module.
#[derive(Debug)]
pub(super) struct Stock {
    pub(super) mould: Mould,
    blanks: Option<Blanks>,
}

/// Blanks for one prepared root.
#[derive(Debug)]
struct Blanks {
    maker: Maker,
    zygote: Zygote,
    /// The mount namespace of that root.
    prepared: Rc<OwnedFd>,
}

/// A blank, or why there is none.
type Made = Result<Blank, String>;
/// What is said of each: its process and its name, or the same.
type Said = Result<(i32, String), String>;

impl Stock {
    pub(super) fn new(mould: Mould) -> Self {
        Self { mould, blanks: None }
    }

    /// A blank for this prepared root; one that was waited for may have ended. To be called by
    /// a process with one thread.
    pub(super) fn take(&mut self, prepared: &Rc<OwnedFd>) -> io::Result<Blank> {
        let mut taken = self.try_take(prepared);
        if let Err(error) = &taken
            // Who is slow once is not waited for twice.
            && error.kind() != io::ErrorKind::WouldBlock
        {
            // Who makes them may have been killed.
            self.close();
            taken = self.try_take(prepared);
        }
        if taken.is_err() {
            self.close();
        }
        taken?.map_err(io::Error::other)
    }

    fn try_take(&mut self, prepared: &Rc<OwnedFd>) -> io::Result<Made> {
        Blanks::on(prepared, &mut self.blanks, &self.mould)?.take(&self.mould)
    }

    /// Has what was taken made up for. Without a stock whoever needs something waits longer,
    /// and is told of what fails.
    pub(super) fn refill(&mut self, prepared: &Rc<OwnedFd>) {
        let blanks = Blanks::on(prepared, &mut self.blanks, &self.mould);
        if blanks.and_then(|blanks| blanks.maker.refill()).is_err() {
            self.close();
        }
    }

    /// Ends all that wait.
    pub(super) fn close(&mut self) {
        if let Some(blanks) = self.blanks.take() {
            blanks.dismiss(&self.mould);
        }
    }
}

impl Blanks {
    /// Those for this prepared root, in place of those for another.
    fn on<'a>(
        prepared: &Rc<OwnedFd>,
        place: &'a mut Option<Self>,
        mould: &Mould,
    ) -> io::Result<&'a mut Self> {
        if let Some(others) = place.take_if(|blanks| !Rc::ptr_eq(&blanks.prepared, prepared)) {
            others.dismiss(mould);
        }
        let blanks = match place.take() {
            Some(blanks) => blanks,
            None => Self::start(mould, prepared)?,
        };
        Ok(place.insert(blanks))
    }

    fn start(mould: &Mould, prepared: &Rc<OwnedFd>) -> io::Result<Self> {
        let zygote = Zygote::start(mould, prepared)?;
        let made = Maker::start(&[zygote.socket.as_fd()], |socket| cast(mould, &zygote, socket));
        match made {
            Ok(maker) => Ok(Self { maker, zygote, prepared: Rc::clone(prepared) }),
            Err(error) => {
                zygote.dismiss();
                Err(error)
            }
        }
    }

    /// One that waits and can be used, else the next. An error says that none comes any more.
    fn take(&mut self, mould: &Mould) -> io::Result<Made> {
        loop {
            match self.receive(mould, RecvFlags::DONTWAIT) {
                Ok(Ok(blank)) if !blank.has_ended() => return Ok(Ok(blank)),
                Ok(Ok(blank)) => blank.discard(),
                // What failed then may go well now.
                Ok(Err(_)) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.maker.refill()?;
        self.receive(mould, RecvFlags::empty())
    }

    fn receive(&mut self, mould: &Mould, flags: RecvFlags) -> io::Result<Made> {
        let mut said = [0; limits::BLANK_BYTES_MAX];
        let (length, fds) = passing::receive(&self.maker.socket, &mut said, flags)?;
        let nonsense = || io::Error::other("the maker of blanks is broken");
        let said = postcard::from_bytes::<Said>(&said[..length]).map_err(|_| nonsense())?;
        self.maker.took();
        let (pid, name) = match said {
            Ok(said) => said,
            Err(why) => return Ok(Err(why)),
        };
        let [pidfd, control] = <[OwnedFd; 2]>::try_from(fds).map_err(|_| nonsense())?;
        Ok(Ok(Blank { pid, pidfd, control, group: mould.groups.at(&name) }))
    }

    /// Ends those that nobody took, and who makes them.
    fn dismiss(mut self, mould: &Mould) {
        self.maker.end();
        while let Ok(made) = self.receive(mould, RecvFlags::DONTWAIT) {
            if let Ok(blank) = made {
                blank.discard();
            }
        }
        self.zygote.dismiss();
    }
}

/// In the maker: makes one and says so. An error ends the maker.
fn cast(mould: &Mould, zygote: &Zygote, socket: &OwnedFd) -> io::Result<()> {
    let name = format!("s-{}", random_name()?);
    match mould.cast(zygote, &name)? {
        Ok(blank) => {
            let fds = [blank.pidfd.as_fd(), blank.control.as_fd()];
            tell(socket, &Ok((blank.pid, name)), &fds)
        }
        Err(mut why) => {
            why.truncate(why.floor_char_boundary(limits::BLANK_BYTES_MAX / 2));
            tell(socket, &Err(why), &[])
        }
    }
}

fn tell(socket: &OwnedFd, said: &Said, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let said = postcard::to_allocvec(said).map_err(io::Error::other)?;
    passing::send(socket, &said, fds, SendFlags::empty()).map(drop)
}
