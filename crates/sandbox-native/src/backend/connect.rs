//! Reaching the spawner of a state directory, starting one where there is none.
//!
//! Owns the socket's place, the start with nothing of ours but the guest program,
//! and the repeat of a request that met a spawner on its way out. Blocks, where it is
//! not said otherwise; callers are on threads that may.

use std::ffi::OsString;
use std::fmt::Debug;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use outrigger_sandbox::{Capabilities, Error};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::limits;
use crate::protocol::{self, Answer, Request};
use crate::spawner::{BUSY, READY};

/// Who starts a spawner.
pub trait SpawnerLauncher: Debug + Send + Sync {
    /// Starts the spawner of a state directory, which has the `guest` program as its standard
    /// input and says on `out` what comes of it. May block until it has begun.
    ///
    /// # Errors
    /// If the program can't be started.
    fn launch(&self, state: &Path, guest: OwnedFd, out: OwnedFd) -> Result<(), Error>;

    /// Does what [`prepare`] does. May block.
    ///
    /// # Errors
    /// As [`prepare`].
    fn prepare(&self, state: &Path) -> Result<Capabilities, Error> {
        prepare(state)
    }
}

/// Probes the host, makes the state directory, and refuses one that others can enter.
///
/// # Errors
/// [`Error::Unavailable`] where no sandbox can be made, with what would fix it;
/// [`Error::Backend`] if the state directory can't be used.
pub fn prepare(state: &Path) -> Result<Capabilities, Error> {
    let capabilities = crate::probe::probe(state)?;
    let at = state.display();
    if !state.is_absolute() {
        return Err(Error::Invalid(format!("the state directory `{at}` is not absolute")));
    }
    let failed = |error: std::io::Error| {
        Error::Backend(format!("cannot use the state directory `{at}`: {error}"))
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(failed)?;
    let found = fs::metadata(state).map_err(failed)?;
    if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o077 != 0 {
        return Err(Error::Backend(format!(
            "the state directory `{at}` is not this user's alone; give it to this user with mode 0700"
        )));
    }
    Ok(capabilities)
}

/// How the spawner is started: a program that calls [`crate::spawner::main`] with
/// the arguments after those given here, before it does anything else.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// What makes it a spawner, for example a hidden subcommand. The state directory is added.
    pub args: Vec<OsString>,
}

impl SpawnerLauncher for Launch {
    fn launch(&self, state: &Path, guest: OwnedFd, out: OwnedFd) -> Result<(), Error> {
        let started = Command::new(&self.program)
            .args(&self.args)
            .arg(state)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(guest))
            .stdout(Stdio::from(out))
            .stderr(Stdio::null())
            .spawn();
        let failed = |error| backend(&format!("cannot start {}", self.program.display()), &error);
        // It forks at once and leaves the spawner to itself, so this does not wait for that.
        let _ = started.map_err(failed)?.wait();
        Ok(())
    }
}

/// A spawner that can be asked.
#[derive(Debug)]
pub(super) struct SpawnerClient {
    pub(super) state: PathBuf,
    pub(super) launcher: Arc<dyn SpawnerLauncher>,
    pub(super) guest: &'static [u8],
}

/// What came of starting a spawner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartResult {
    /// It serves.
    Started,
    /// Another one holds the state directory.
    Busy,
    /// It did not say in time what it does. It may serve a moment later.
    Slow,
}

fn backend(what: &str, error: &io::Error) -> Error {
    Error::Backend(format!("{what}: {error}"))
}

/// Whether the other side was not there, or left before it answered. Every request
/// can be repeated.
fn left(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::NotFound
            | Kind::ConnectionRefused
            | Kind::ConnectionReset
            | Kind::BrokenPipe
            | Kind::UnexpectedEof
    )
}

/// Whether nothing was said in time.
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl SpawnerClient {
    /// Asks, starting a spawner if there is none.
    pub(super) fn ask(&self, request: &Request) -> Result<(Answer, Option<OwnedFd>), Error> {
        self.ask_with(request, None)
    }

    /// Asks, giving a descriptor along.
    pub(super) fn ask_with(
        &self,
        request: &Request,
        fd: Option<&OwnedFd>,
    ) -> Result<(Answer, Option<OwnedFd>), Error> {
        let (mut started, mut busy, mut slow) = (0, 0, 0);
        loop {
            match self.try_ask(request, fd) {
                Ok((Answer::Failed(error), _)) => return Err(error),
                Ok(answer) => return Ok(answer),
                Err(error) if left(&error) => {}
                Err(error) => return Err(backend("the spawner does not answer", &error)),
            }
            let reason = match self.start()? {
                StartResult::Started if started < limits::SPAWNER_ATTEMPTS_MAX => {
                    started += 1;
                    continue;
                }
                StartResult::Busy if busy < limits::SPAWNER_BUSY_ATTEMPTS_MAX => {
                    busy += 1;
                    std::thread::sleep(Duration::from_millis(limits::SPAWNER_BUSY_PAUSE_MS));
                    continue;
                }
                StartResult::Slow if slow < limits::SPAWNER_SLOW_ATTEMPTS_MAX => {
                    slow += 1;
                    continue;
                }
                StartResult::Started => "the spawner ends as soon as it is started",
                StartResult::Slow => "the spawner does not start in time",
                StartResult::Busy => "a spawner holds the state directory and does not serve it",
            };
            return Err(Error::Backend(reason.to_owned()));
        }
    }

    /// Asks only a spawner that is there.
    pub(super) fn ask_if_there(
        &self,
        request: &Request,
    ) -> Result<Option<(Answer, Option<OwnedFd>)>, Error> {
        match self.try_ask(request, None) {
            Ok((Answer::Failed(error), _)) => Err(error),
            Ok(answer) => Ok(Some(answer)),
            Err(error) if left(&error) => Ok(None),
            Err(error) => Err(backend("the spawner does not answer", &error)),
        }
    }

    /// Asks a spawner that is there and has time, without holding a thread: that takes two
    /// wakings less. `None`: ask it in the other way, because it isn't or hasn't. For
    /// requests whose answer is one small message.
    pub(super) async fn ask_soon(
        &self,
        request: &Request,
    ) -> Option<Result<(Answer, Option<OwnedFd>), Error>> {
        let stream = self.call(request, None, SocketFlags::NONBLOCK).ok()?;
        let stream = tokio::net::UnixStream::from_std(stream).ok()?;
        let limit = Duration::from_millis(limits::SPAWNER_ANSWER_MS_MAX);
        let answered = match tokio::time::timeout(limit, stream.readable()).await {
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
            Ok(answered) => answered,
        };
        // If there is anything of it there is all, because it was sent at once.
        let answer = answered.and_then(|()| protocol::receive(&stream.into_std()?));
        match answer {
            Ok((Answer::Failed(error), _)) => Some(Err(error)),
            Ok(answer) => Some(Ok(answer)),
            Err(error) if left(&error) => None,
            Err(error) => Some(Err(backend("the spawner does not answer", &error))),
        }
    }

    fn try_ask(
        &self,
        request: &Request,
        fd: Option<&OwnedFd>,
    ) -> io::Result<(Answer, Option<OwnedFd>)> {
        let answer_ms_max = match request {
            Request::Image(_) => limits::LAYER_MS_MAX + limits::SPAWNER_ANSWER_MS_MAX,
            _ => limits::SPAWNER_ANSWER_MS_MAX,
        };
        let stream = self.call(request, fd, SocketFlags::empty())?;
        stream.set_read_timeout(Some(Duration::from_millis(answer_ms_max)))?;
        protocol::receive(&stream)
    }

    /// Connects, and sends a request.
    fn call(
        &self,
        request: &Request,
        fd: Option<&OwnedFd>,
        flags: SocketFlags,
    ) -> io::Result<UnixStream> {
        let dir = open_dir(&self.state)?;
        let place = format!("/proc/self/fd/{}/spawner.sock", dir.as_raw_fd());
        let flags = flags | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(place)?)?;
        let stream = UnixStream::from(socket);
        stream.set_write_timeout(Some(Duration::from_millis(limits::SPAWNER_PEER_MS_MAX)))?;
        protocol::send(&stream, request, fd.map(AsFd::as_fd))?;
        Ok(stream)
    }

    /// Starts a spawner and waits until it, or another one, serves.
    fn start(&self) -> Result<StartResult, Error> {
        let guest = sealed(self.guest)
            .map_err(|error| backend("cannot keep the guest program in memory", &error))?;
        let (mut status, theirs) =
            UnixStream::pair().map_err(|error| backend("no socket", &error))?;
        self.launcher.launch(&self.state, guest, OwnedFd::from(theirs))?;
        let mut said = String::new();
        let limit = Some(Duration::from_millis(limits::SPAWNER_START_MS_MAX));
        let heard = status.set_read_timeout(limit).and_then(|()| status.read_to_string(&mut said));
        match (heard, said.as_str()) {
            (Ok(_), READY) => Ok(StartResult::Started),
            (Ok(_), BUSY) => Ok(StartResult::Busy),
            (Ok(_), "") => {
                Err(Error::Backend("the program ended without becoming a spawner".to_owned()))
            }
            (Ok(_), reason) => Err(Error::Unavailable {
                reason: format!("the spawner could not start: {reason}"),
                advice: crate::probe::advice(),
            }),
            (Err(error), _) if is_late(&error) => Ok(StartResult::Slow),
            (Err(error), _) => Err(backend("the spawner does not start", &error)),
        }
    }
}

fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// The guest program in a memory file that can't be changed any more.
fn sealed(program: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 don't know that it is to be executed, and allow it anyway.
    let fd = memfd_create("outrigger-guest", flags | MemfdFlags::EXEC)
        .or_else(|_| memfd_create("outrigger-guest", flags))?;
    let mut file = fs::File::from(fd);
    file.write_all(program)?;
    let fd = OwnedFd::from(file);
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    // The kernel refuses as long as anything of its own holds a page of the file, and waits
    // for that only some 70 ms (`memfd_wait_for_pins`).
    for _ in 1..limits::SEAL_ATTEMPTS_MAX {
        match fcntl_add_seals(&fd, seals) {
            Err(Errno::BUSY) => {}
            sealed => return Ok(sealed.map(|()| fd)?),
        }
    }
    fcntl_add_seals(&fd, seals)?;
    Ok(fd)
}
