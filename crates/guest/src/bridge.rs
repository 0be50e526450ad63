//! A way from the standard streams to the guest that listens at a path: what is
//! started into a container from outside, as often as a host needs it.
//!
//! Owns no state: when it ends, by whatever end, the guest and its commands go on.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::{limits, sys};

/// Copies both ways until either ends.
pub(crate) fn run(path: &Path) -> io::Result<()> {
    // Commands are of the same user, and must not reach into this process.
    sys::hide()?;
    let socket = connect(path)?;
    let (input, output) = (File::from(sys::inherited(0)?), File::from(sys::inherited(1)?));
    let answers = socket.try_clone()?;
    let (over, ended) = channel();
    let also_over = over.clone();
    let spawn = |work: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new().stack_size(limits::BRIDGE_STACK_BYTES).spawn(work)
    };
    spawn(Box::new(move || drop(over.send(copy(input, socket)))))?;
    spawn(Box::new(move || drop(also_over.send(copy(answers, output)))))?;
    // The other thread, which may wait for what never comes, ends with this process.
    ended.recv().map_err(io::Error::other)?
}

/// The guest may be starting at this moment too.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let until = Instant::now() + Duration::from_millis(limits::BRIDGE_CONNECT_MS_MAX);
    loop {
        match UnixStream::connect(path) {
            Err(_) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(limits::BRIDGE_POLL_MS));
            }
            connected => return connected,
        }
    }
}

fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut piece = vec![0; limits::PIECE_BYTES];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => to.write_all(&piece[..length])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
