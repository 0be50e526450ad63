//! Accepting on a listener that lies inside a sandbox.
//!
//! The guest holds the same listener and may do with it what it likes: take connections
//! away, shut it down, or make it block (O_NONBLOCK is of the open file, which both have).
//! So accept(2) is called on a thread that may hang, for a limited time, and never on the
//! one that serves the other sandboxes.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{
    AddressFamily, Shutdown, SocketFlags, SocketType, accept_with, getsockname, sockopt,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::OwnedSemaphorePermit;

use crate::limits;
use crate::sandbox::{Arrival, Sandbox};

/// What a call came to.
enum Accepted {
    /// As many as there was room for.
    Full,
    /// All that were waiting.
    Drained,
    /// Nothing, for now.
    Failed,
    /// Nothing ever again.
    Broken,
}

/// Whether a descriptor is a socket that accepts streams. From here on it does not block, as
/// long as nobody else says so.
pub(super) fn check(fd: &OwnedFd) -> io::Result<()> {
    let domain = sockopt::socket_domain(fd)?;
    let known = [AddressFamily::INET, AddressFamily::INET6, AddressFamily::UNIX].contains(&domain);
    let stream = sockopt::socket_type(fd)? == SocketType::STREAM;
    if known && stream && sockopt::socket_acceptconn(fd)? {
        return Ok(rustix::io::ioctl_fionbio(fd, true)?);
    }
    Err(io::Error::other("it is not a listener"))
}

/// Whether a descriptor is a stream.
pub(super) fn check_stream(fd: &OwnedFd) -> io::Result<()> {
    let domain = sockopt::socket_domain(fd)?;
    let known = [AddressFamily::INET, AddressFamily::INET6, AddressFamily::UNIX].contains(&domain);
    let stream = sockopt::socket_type(fd)? == SocketType::STREAM;
    if known && stream && !sockopt::socket_acceptconn(fd)? {
        return Ok(());
    }
    Err(io::Error::other("it is not a connection"))
}

/// Accepts until the listener is of no use any more. Whoever replaces it drops this.
pub(super) async fn accept(
    listener: Arc<OwnedFd>,
    sandbox: Arc<Sandbox>,
    serve: impl Fn(Arrival) + Send,
) -> io::Result<()> {
    let captured = captured(&listener);
    #[expect(
        deprecated,
        reason = "what replaces it is unsafe, for descriptors that may go away: an Arc<OwnedFd> does not"
    )]
    let waiting = AsyncFd::with_interest(listener, Interest::READABLE)?;
    let mut failures = 0;
    loop {
        let Some(first) = sandbox.room().await else { return Ok(()) };
        let mut ready = waiting.readable().await?;
        let rooms = (1..limits::ACCEPTS_AT_ONCE_MAX).map_while(|_| sandbox.room_now());
        let rooms = std::iter::once(first).chain(rooms).collect();
        let listener = Arc::clone(waiting.get_ref());
        let mut call = tokio::task::spawn_blocking(move || accept_all(&listener, captured, rooms));
        let limit = Duration::from_millis(limits::ACCEPT_MS_MAX);
        let Ok(called) = tokio::time::timeout(limit, &mut call).await else {
            // It was made to block. This wakes the call, and ends the listener for good.
            let _ = rustix::net::shutdown(waiting.get_ref(), Shutdown::Both);
            let (arrivals, _) = call.await.map_err(io::Error::other)?;
            arrivals.into_iter().for_each(serve);
            return Err(io::Error::other("the listener blocks"));
        };
        let (arrivals, accepted) = called.map_err(io::Error::other)?;
        arrivals.into_iter().for_each(&serve);
        match accepted {
            Accepted::Full => failures = 0,
            Accepted::Drained => {
                failures = 0;
                ready.clear_ready();
            }
            Accepted::Failed if failures < limits::ACCEPT_FAILURES_MAX => {
                failures += 1;
                tokio::time::sleep(Duration::from_millis(limits::ACCEPT_PAUSE_MS)).await;
            }
            Accepted::Failed | Accepted::Broken => {
                return Err(io::Error::other("the listener is broken"));
            }
        }
    }
}

/// The port to which names lead, if it is such a listener: none of them leads to `127.0.0.1`.
fn captured(listener: &OwnedFd) -> Option<u16> {
    let at = SocketAddrV4::try_from(getsockname(listener).ok()?).ok()?;
    (*at.ip() != Ipv4Addr::LOCALHOST).then_some(at.port())
}

fn accept_all(
    listener: &OwnedFd,
    captured: Option<u16>,
    rooms: Vec<OwnedSemaphorePermit>,
) -> (Vec<Arrival>, Accepted) {
    use rustix::io::Errno;
    let mut arrivals = Vec::new();
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    for room in rooms {
        let fd = match accept_with(listener, flags) {
            Ok(fd) => fd,
            Err(Errno::AGAIN) => return (arrivals, Accepted::Drained),
            // What went wrong with a connection before it was accepted (accept(2)).
            Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => continue,
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                return (arrivals, Accepted::Failed);
            }
            Err(_) => return (arrivals, Accepted::Broken),
        };
        arrivals.push(Arrival { fd, captured, room });
    }
    (arrivals, Accepted::Full)
}
