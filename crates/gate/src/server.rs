//! The gate's process.
//!
//! Owns its start: the directory, the lock, the roots, the confinement, and that all of it
//! stands before the first request is read. What requests do is in `control`.

mod confinement;
mod control;
mod directory;
mod listener;
mod registry;
mod vault;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::error::Error;
use crate::limits;
use crate::outside::Outside;
use crate::protocol::{BUSY, FAILED, LOCK, READY, SOCKET};

/// Becomes the gate of a directory and serves until nobody needs it any more. The
/// directory is made if it is not there. To be called first of all in a process of its own,
/// with the pipe of [`crate::NetworkClient`] as its standard output.
///
/// # Errors
/// [`Error::Busy`] where another gate has the directory, [`Error::Start`] where something
/// keeps it from starting, for example a directory that others may write in.
pub fn serve(dir: &Path) -> Result<(), Error> {
    // Before nothing can be opened any more.
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let null = null.map_err(io::Error::from).map_err(Error::io("open /dev/null"))?;
    let prepared = match prepare(dir) {
        Ok(prepared) => prepared,
        Err(error) => {
            match &error {
                Error::Busy => say(BUSY, null),
                other => say(&format!("{FAILED}{}", chain(other)), null),
            }
            return Err(error);
        }
    };
    say(READY, null);
    prepared.run().map_err(Error::io("serve"))
}

/// Says what comes of the start. Whoever started us reads until the end of it.
fn say(words: &str, null: OwnedFd) {
    let mut out = io::stdout();
    let _ = writeln!(out, "\n{words}").and_then(|()| out.flush());
    let _ = rustix::stdio::dup2_stdout(null);
}

fn chain(error: &Error) -> String {
    let mut words = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        words.push_str(": ");
        words.push_str(&cause.to_string());
        source = cause.source();
    }
    words
}

/// All that is there before a request is.
struct Server {
    socket: UnixListener,
    registry: registry::Registry,
    /// Says that the directory is ours, until we end.
    _lock: File,
    dir: OwnedFd,
}

fn prepare(dir: &Path) -> Result<Server, Error> {
    let owned = directory::own(dir).map_err(Error::io("take the gate's directory"))?;
    let lock = lock(dir)?;
    directory::sweep(&owned).map_err(Error::io("sweep the gate's directory"))?;
    let socket =
        directory::listen(&owned, SOCKET).map_err(Error::io("listen in the gate's directory"))?;
    let outside = Outside::new().map_err(|error| Error::Start(error.to_string()))?;
    let vault = vault::Vault::open(&owned).map_err(Error::io("read the master key"))?;
    let registry = registry::Registry::new(&owned, Arc::new(outside), vault);
    let registry = registry.map_err(Error::io("keep authorities"))?;
    confinement::enter(&owned).map_err(Error::io("confine the gate"))?;
    Ok(Server { socket, registry, _lock: lock, dir: owned })
}

fn lock(dir: &Path) -> Result<File, Error> {
    let failed = Error::io("lock the gate's directory");
    let path = dir.join(LOCK);
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) => return Err(failed(error)),
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(error) if error == rustix::io::Errno::WOULDBLOCK => Err(Error::Busy),
        Err(error) => Err(failed(error.into())),
    }
}

impl Server {
    fn run(self) -> io::Result<()> {
        // One thread: a request passes from one task to another and back without a wake-up
        // of another processor. Names are resolved and listeners accepted on others.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(limits::BLOCKING_THREADS_MAX)
            .build()?;
        let socket = self.socket;
        let registry = Arc::new(self.registry);
        let served = runtime.block_on(control::serve(socket, registry));
        // Who connects from now on finds nobody, and starts another gate.
        directory::remove_socket(&self.dir, SOCKET);
        runtime.shutdown_background();
        served
    }
}
