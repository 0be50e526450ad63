//! Trees that are served into containers of a daemon on this host.
//!
//! Owns the way of their file systems: made here, their devices given to the guest and to
//! nobody else, then mounted in the container. The container itself is given nothing for
//! it, neither a device nor a right. All of that is over before the guest runs a command;
//! what is found in a container that did is hostile and only looked at.

mod fuse;
mod host;
mod init;

use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use outrigger_sandbox::Error;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

pub(crate) use self::host::why_not;
use self::init::Init;
use crate::engine::Engine;
use crate::{container, limits, live};

/// What the guest answers when it has the devices.
const KEPT: u8 = b'k';
/// What it is told when all are mounted.
const MOUNTED: &[u8] = b"m";

/// Where a guest stands.
enum Stands {
    /// It is not up yet.
    Coming,
    /// It waits for its devices.
    Waits(OwnedFd),
    /// It has what it is going to have.
    Serves,
}

/// Gives the guest of a container what it waits for, if it still does.
///
/// # Errors
/// [`Error::Lost`] if it ended; [`Error::Backend`] if something can't be made or mounted,
/// after which the guest ends by itself.
pub(crate) async fn hand_over(
    engine: &Engine,
    container: &str,
    served: &[String],
) -> Result<(), Error> {
    let ended = || live::lost("its container does not run");
    let found = engine.container(container).await?.ok_or_else(ended)?;
    let pid = found.state.and_then(|state| state.pid).unwrap_or(0);
    let (container, served) = (container.to_owned(), served.to_vec());
    let work = move || match Init::of(&container, pid)? {
        Some(init) => give(&init, &served),
        None => Ok(false),
    };
    let done = tokio::task::spawn_blocking(work).await;
    let failed = |error| Error::Backend(format!("serving trees into a container: {error}"));
    match done.map_err(|error| failed(io::Error::other(error)))? {
        Ok(true) => Ok(()),
        Ok(false) => Err(ended()),
        Err(error) => Err(failed(error)),
    }
}

/// Whether the guest has what it waited for; else it ended.
fn give(init: &Init, served: &[String]) -> io::Result<bool> {
    let begun = Instant::now();
    let limit = Duration::from_millis(limits::GREET_MS_MAX);
    loop {
        match stands(init) {
            Ok(Stands::Serves) => return Ok(true),
            Ok(Stands::Waits(door)) => {
                // One that stopped to wait in this moment is looked at again.
                if let Some(socket) = init.connect(&door)? {
                    hand(init, socket, served)?;
                    return Ok(true);
                }
            }
            Ok(Stands::Coming) => {}
            Err(error) if init.is_alive() => return Err(error),
            Err(_) => {}
        }
        if !init.is_alive() {
            return Ok(false);
        }
        if begun.elapsed() > limit {
            return Err(io::Error::other("its guest does not come up"));
        }
        std::thread::sleep(Duration::from_millis(limits::DEVICES_PAUSE_MS));
    }
}

fn stands(init: &Init) -> io::Result<Stands> {
    let root = init.root()?;
    if init::beneath(&root, container::SOCKET)?.is_some() {
        return Ok(Stands::Serves);
    }
    let door = init::beneath(&root, container::DEVICES)?;
    Ok(door.map_or(Stands::Coming, Stands::Waits))
}

/// Makes the file systems, gives their devices away and mounts them.
fn hand(init: &Init, mut socket: UnixStream, served: &[String]) -> io::Result<()> {
    let limit = Some(Duration::from_millis(limits::GREET_MS_MAX));
    socket.set_read_timeout(limit)?;
    socket.set_write_timeout(limit)?;
    let owner = u32::try_from(container::USER).map_err(io::Error::other)?;
    let mut mounts = Vec::new();
    let mut devices = Vec::new();
    for path in served {
        let made = fuse::make(owner)?;
        mounts.push((path.clone(), made.mount));
        devices.push(made.device);
    }
    pass(&socket, &served.join("\0"), &devices)?;
    // With the last of its descriptors all requests fail: none may stay here.
    drop(devices);
    let mut answer = [0; 1];
    socket.read_exact(&mut answer)?;
    if answer[0] != KEPT {
        return Err(io::Error::other("its guest does not take its devices"));
    }
    init.mount(mounts)?;
    socket.write_all(MOUNTED)
}

fn pass(socket: &UnixStream, text: &str, devices: &[OwnedFd]) -> io::Result<()> {
    const MAX: usize = outrigger_sandbox::limits::SERVED_MAX;
    let passed: Vec<_> = devices.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&passed)) {
        return Err(io::Error::other("there are too many devices for one message"));
    }
    let bytes = [IoSlice::new(text.as_bytes())];
    let sent = sendmsg(socket, &bytes, &mut ancillary, SendFlags::NOSIGNAL)?;
    if sent == text.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}
