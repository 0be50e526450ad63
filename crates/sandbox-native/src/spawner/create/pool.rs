//! Preforked guests that are made ahead.
//!
//! Owns who makes them. Whoever needs one takes one that waits, else the next.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::net::{RecvFlags, SendFlags};

use super::prefork::{GuestTemplate, PreforkedGuest};
use super::worker::Worker;
use super::zygote::Zygote;
use crate::spawner::names::random_name;
use crate::{limits, passing};

/// Preforked guests, for whichever sandbox needs one next.
#[derive(Debug)]
pub(crate) struct PreforkPool {
    pub(crate) template: GuestTemplate,
    pool: Option<ZygotePool>,
}

/// Preforked guests of one prepared root, and who makes them.
#[derive(Debug)]
struct ZygotePool {
    worker: Worker,
    zygote: Zygote,
    /// The mount namespace of that root.
    prepared: Rc<OwnedFd>,
}

/// A preforked guest, or why there is none.
type PreforkResult = Result<PreforkedGuest, String>;
/// What a worker says of each: its process and its name, or why there is none.
type PreforkReply = Result<(i32, String), String>;

impl PreforkPool {
    pub(crate) fn new(template: GuestTemplate) -> Self {
        Self { template, pool: None }
    }

    /// One for this prepared root; one that was waited for may have ended. To be called by
    /// a process with one thread.
    pub(crate) fn take(&mut self, prepared: &Rc<OwnedFd>) -> io::Result<PreforkedGuest> {
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

    fn try_take(&mut self, prepared: &Rc<OwnedFd>) -> io::Result<PreforkResult> {
        ZygotePool::on(prepared, &mut self.pool, &self.template)?.take(&self.template)
    }

    /// Has what was taken made up for. Without a pool whoever needs one waits longer,
    /// and is told of what fails.
    pub(crate) fn refill(&mut self, prepared: &Rc<OwnedFd>) {
        let pool = ZygotePool::on(prepared, &mut self.pool, &self.template);
        if pool.and_then(|pool| pool.worker.refill()).is_err() {
            self.close();
        }
    }

    /// Ends all that wait.
    pub(crate) fn close(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.dismiss(&self.template);
        }
    }
}

impl ZygotePool {
    /// Those for this prepared root, in place of those for another.
    fn on<'a>(
        prepared: &Rc<OwnedFd>,
        place: &'a mut Option<Self>,
        template: &GuestTemplate,
    ) -> io::Result<&'a mut Self> {
        if let Some(others) = place.take_if(|pool| !Rc::ptr_eq(&pool.prepared, prepared)) {
            others.dismiss(template);
        }
        let pool = match place.take() {
            Some(pool) => pool,
            None => Self::start(template, prepared)?,
        };
        Ok(place.insert(pool))
    }

    fn start(template: &GuestTemplate, prepared: &Rc<OwnedFd>) -> io::Result<Self> {
        let zygote = Zygote::start(&template.program, template.capabilities, prepared)?;
        let made =
            Worker::start(&[zygote.socket.as_fd()], |socket| prefork(template, &zygote, socket));
        match made {
            Ok(worker) => Ok(Self { worker, zygote, prepared: Rc::clone(prepared) }),
            Err(error) => {
                zygote.dismiss();
                Err(error)
            }
        }
    }

    /// One that waits and can be used, else the next. An error says that none comes any more.
    fn take(&mut self, template: &GuestTemplate) -> io::Result<PreforkResult> {
        loop {
            match self.receive(template, RecvFlags::DONTWAIT) {
                Ok(Ok(guest)) if !guest.has_ended() => return Ok(Ok(guest)),
                Ok(Ok(guest)) => guest.discard(),
                // What failed then may go well now.
                Ok(Err(_)) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.worker.refill()?;
        self.receive(template, RecvFlags::empty())
    }

    fn receive(&mut self, template: &GuestTemplate, flags: RecvFlags) -> io::Result<PreforkResult> {
        let mut reply = [0; limits::PREFORK_REPLY_BYTES_MAX];
        let (length, fds) = passing::receive(&self.worker.socket, &mut reply, flags)?;
        let nonsense = || io::Error::other("the maker of guests is broken");
        let reply =
            postcard::from_bytes::<PreforkReply>(&reply[..length]).map_err(|_| nonsense())?;
        self.worker.took();
        let (pid, name) = match reply {
            Ok(reply) => reply,
            Err(why) => return Ok(Err(why)),
        };
        let [pidfd, control] = <[OwnedFd; 2]>::try_from(fds).map_err(|_| nonsense())?;
        Ok(Ok(PreforkedGuest { pid, pidfd, control, group: template.groups.at(&name) }))
    }

    /// Ends those that nobody took, and who makes them.
    fn dismiss(mut self, template: &GuestTemplate) {
        self.worker.end();
        while let Ok(made) = self.receive(template, RecvFlags::DONTWAIT) {
            if let Ok(guest) = made {
                guest.discard();
            }
        }
        self.zygote.dismiss();
    }
}

/// In the worker: makes one and says so. An error ends the worker.
fn prefork(template: &GuestTemplate, zygote: &Zygote, socket: &OwnedFd) -> io::Result<()> {
    let name = format!("s-{}", random_name()?);
    match template.prefork(zygote, &name)? {
        Ok(guest) => {
            let fds = [guest.pidfd.as_fd(), guest.control.as_fd()];
            tell(socket, &Ok((guest.pid, name)), &fds)
        }
        Err(mut why) => {
            why.truncate(why.floor_char_boundary(limits::PREFORK_REPLY_BYTES_MAX / 2));
            tell(socket, &Err(why), &[])
        }
    }
}

fn tell(socket: &OwnedFd, reply: &PreforkReply, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let reply = postcard::to_allocvec(reply).map_err(io::Error::other)?;
    passing::send(socket, &reply, fds, SendFlags::empty()).map(drop)
}
