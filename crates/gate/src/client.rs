//! The caller's side: reaching the gate of a directory, starting one where there is none.
//!
//! Owns the repeat of a request that met a gate on its way out. It must never hold a thread of
//! the caller's runtime.

mod caller;
mod launch;

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::error::Error;
use crate::flow::Flows;
use crate::network::{Destination, Network};
use crate::protocol::{self, Answer, OpenedNetwork, Request};
use crate::secret::{SealedSecret, SecretTerms, SecretValue};
use crate::{limits, passing};

pub use caller::CallerSocket;
pub(crate) use launch::FROM_STDIN;
pub use launch::{MASTER_KEY, ServerLaunch, ServerLauncher};

/// A gate that can be asked. It is started when it is needed first.
#[derive(Debug, Clone)]
pub struct NetworkClient {
    place: Arc<Place>,
}

#[derive(Debug)]
struct Place {
    dir: PathBuf,
    launcher: Box<dyn ServerLauncher>,
}

/// What came of starting a gate.
enum StartResult {
    Started,
    Busy,
    /// It ended before it said anything, as one does that is killed.
    Died,
}

impl NetworkClient {
    /// A gate for a directory, which is its own. Nothing is started yet.
    pub fn new(dir: PathBuf, launcher: impl ServerLauncher + 'static) -> Self {
        Self { place: Arc::new(Place { dir, launcher: Box::new(launcher) }) }
    }

    /// Opens a sandbox's network or changes it. Repeating it is harmless. What is not granted
    /// any more ends, also where it is under way. `secrets`: those that its programs may use,
    /// each where its terms say, which is granted by them. `listeners`: the TCP listeners
    /// inside, at most 20; without any the last stay. One at `127.0.0.1` is the proxy, or one where
    /// a program says by its first bytes whether it takes it for a proxy or for the host that it
    /// names. To one at another address a name leads: its port says which host of
    /// [`crate::Scheme::Tcp`] is meant, but for 443 and 80.
    ///
    /// # Errors
    /// [`Error::Refused`] for a name, a grant or a secret that can't be, otherwise as the
    /// system says.
    pub async fn open(
        &self,
        sandbox: &str,
        network: &Network,
        secrets: &[SealedSecret],
        listeners: impl IntoIterator<Item = OwnedFd> + Send,
    ) -> Result<OpenedNetwork, Error> {
        let listeners = listeners.into_iter().collect();
        self.open_with(sandbox, network, secrets, None, listeners).await
    }

    /// Opens as [`Self::open`] does, and lets somebody be asked about public hosts that no grant
    /// names. What asks for one of them is held until another opening grants or declines it, for
    /// at most a minute: then it is refused as ever. `declined`: those that are refused at once.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_asking(
        &self,
        sandbox: &str,
        network: &Network,
        secrets: &[SealedSecret],
        declined: &[Destination],
        listeners: impl IntoIterator<Item = OwnedFd> + Send,
    ) -> Result<OpenedNetwork, Error> {
        let (listeners, declined) = (listeners.into_iter().collect(), Some(declined.to_vec()));
        self.open_with(sandbox, network, secrets, declined, listeners).await
    }

    async fn open_with(
        &self,
        sandbox: &str,
        network: &Network,
        secrets: &[SealedSecret],
        declined: Option<Vec<Destination>>,
        listeners: Vec<OwnedFd>,
    ) -> Result<OpenedNetwork, Error> {
        let (sandbox, network, secrets) = (sandbox.to_owned(), network.clone(), secrets.to_vec());
        let request = Request::Open { sandbox, network, secrets, declined };
        let ask = move |place: &Place| place.ask(&request, &listeners);
        match self.with(ask).await? {
            Answer::Opened(opened) => Ok(opened),
            other => Err(failure(other)),
        }
    }

    /// Seals a value with its terms: what is given back can be stored. `id`: of the secret
    /// whose value is rotated, which keeps its placeholders.
    ///
    /// # Errors
    /// [`Error::Refused`] for terms that can't be, otherwise as the system says.
    pub async fn seal(
        &self,
        id: Option<&str>,
        terms: SecretTerms,
        value: SecretValue,
    ) -> Result<SealedSecret, Error> {
        let request = Request::Seal { id: id.map(str::to_owned), terms, value };
        match self.with(move |place: &Place| place.ask(&request, &[])).await? {
            Answer::Sealed(sealed) => Ok(sealed),
            other => Err(failure(other)),
        }
    }

    /// Whether a message was signed (HMAC with SHA-256) with a secret whose terms say that it
    /// verifies. A value `whsec_...` is the key in base64, as Standard Webhooks has it; any other
    /// is the key itself.
    ///
    /// # Errors
    /// [`Error::Refused`] for a secret that does not verify, or a message that is too long,
    /// otherwise as the system says.
    pub async fn verify(
        &self,
        secret: &SealedSecret,
        message: &[u8],
        signature: &[u8],
    ) -> Result<bool, Error> {
        if message.len() > limits::VERIFIED_BYTES_MAX {
            let most = limits::VERIFIED_BYTES_MAX;
            return Err(Error::Refused(format!("the message has more than {most} bytes")));
        }
        let (message, signature) = (STANDARD.encode(message), STANDARD.encode(signature));
        let request = Request::Verify { secret: secret.clone(), message, signature };
        match self.with(move |place: &Place| place.ask(&request, &[])).await? {
            Answer::Verified(verified) => Ok(verified),
            other => Err(failure(other)),
        }
    }

    /// Takes a secret from every sandbox that is open, and ends what is under way with it.
    /// Starts no gate: what is not there has nothing.
    ///
    /// # Errors
    /// As the system says.
    pub async fn revoke(&self, secret: &str) -> Result<(), Error> {
        let request = Request::Revoke { secret: secret.to_owned() };
        match self.with(move |place: &Place| place.ask_if_there(&request, &[])).await? {
            Some(Answer::Taken) | None => Ok(()),
            Some(other) => Err(failure(other)),
        }
    }

    /// Gives one connection of a sandbox whose listener can't be handed out. `captured`: the port
    /// to which a name led it; `None`: it came to the proxy.
    ///
    /// # Errors
    /// [`Error::Unknown`] where the sandbox has to be opened first, [`Error::Refused`] where
    /// it has all the connections that it may have.
    pub async fn connection(
        &self,
        sandbox: &str,
        captured: Option<u16>,
        connection: OwnedFd,
    ) -> Result<(), Error> {
        let request = Request::Connection { sandbox: sandbox.to_owned(), captured };
        let ask =
            move |place: &Place| place.ask_if_there(&request, std::slice::from_ref(&connection));
        match self.with(ask).await? {
            Some(Answer::Taken) => Ok(()),
            Some(other) => Err(failure(other)),
            None => Err(Error::Unknown),
        }
    }

    /// Whether a gate is there in which a sandbox is open as it was opened last: not where a
    /// secret was revoked since. Starts none.
    ///
    /// # Errors
    /// As the system says.
    pub async fn is_open(&self, sandbox: &str) -> Result<bool, Error> {
        let request = Request::Look { sandbox: sandbox.to_owned() };
        let answer = self.with(move |place: &Place| place.ask_if_there(&request, &[])).await?;
        Ok(matches!(answer, Some(Answer::Taken)))
    }

    /// Waits until no gate is there in which a sandbox is open as it was opened last: until it
    /// ends, mostly. Starts none.
    ///
    /// # Errors
    /// As the system says.
    pub async fn gone(&self, sandbox: &str) -> Result<(), Error> {
        let request = Request::Look { sandbox: sandbox.to_owned() };
        let held = self.with(move |place: &Place| place.hold_if_there(&request, &[])).await?;
        let Some((Answer::Taken, stream)) = held else { return Ok(()) };
        let waiting = stream.set_nonblocking(true).and_then(|()| stream.try_into());
        let stream: tokio::net::UnixStream = waiting.map_err(Error::io("watch the gate"))?;
        // It says nothing more until its end.
        let _ = stream.readable().await;
        Ok(())
    }

    /// Takes what came since it was taken last: each flow is told once.
    ///
    /// # Errors
    /// [`Error::Unknown`] where the gate was started again and the sandbox is not open in it.
    pub async fn flows(&self, sandbox: &str) -> Result<Flows, Error> {
        self.told(Request::Flows { sandbox: sandbox.to_owned() }).await
    }

    /// What a sandbox asks for now that nobody granted or declined, each host and port once,
    /// at most 16. To be asked again and again while somebody is there to answer. Starts no gate.
    ///
    /// # Errors
    /// [`Error::Unknown`] where it is not open.
    pub async fn questions(&self, sandbox: &str) -> Result<Vec<Destination>, Error> {
        let request = Request::Questions { sandbox: sandbox.to_owned() };
        match self.with(move |place: &Place| place.ask_if_there(&request, &[])).await? {
            Some(Answer::Questions(questions)) => Ok(questions),
            Some(other) => Err(failure(other)),
            None => Err(Error::Unknown),
        }
    }

    /// Forgets a sandbox: its listener is closed, what is under way ends, and its authority is
    /// deleted. Gives the last flows.
    ///
    /// # Errors
    /// [`Error::Unknown`] where it is not open, as after a gate that was started again.
    pub async fn close(&self, sandbox: &str) -> Result<Flows, Error> {
        self.told(Request::Close { sandbox: sandbox.to_owned() }).await
    }

    async fn told(&self, request: Request) -> Result<Flows, Error> {
        match self.with(move |place: &Place| place.ask_if_there(&request, &[])).await? {
            Some(Answer::Flows(flows)) => Ok(flows),
            Some(other) => Err(failure(other)),
            None => Ok(Flows::default()),
        }
    }

    async fn with<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Place) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let place = Arc::clone(&self.place);
        let asked = tokio::task::spawn_blocking(move || ask(&place)).await;
        asked.map_err(io::Error::other).map_err(Error::io("ask the gate"))?
    }
}

fn failure(answer: Answer) -> Error {
    match answer {
        Answer::Unknown => Error::Unknown,
        Answer::Refused(sentence) => Error::Refused(sentence),
        Answer::Opened(_)
        | Answer::Sealed(_)
        | Answer::Taken
        | Answer::Flows(_)
        | Answer::Verified(_)
        | Answer::Questions(_) => Error::Protocol,
    }
}

/// Whether the other side was not there, or left before it answered. Every request can be
/// repeated.
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

impl Place {
    /// Asks, starting a gate if there is none.
    fn ask(&self, request: &Request, fds: &[OwnedFd]) -> Result<Answer, Error> {
        Ok(self.hold(request, fds)?.0)
    }

    /// As [`Place::ask`], with the connection, which ends when it is dropped.
    fn hold(&self, request: &Request, fds: &[OwnedFd]) -> Result<(Answer, UnixStream), Error> {
        let (mut started, mut busy) = (0, 0);
        loop {
            if let Some(held) = self.hold_if_there(request, fds)? {
                return Ok(held);
            }
            match self.start()? {
                StartResult::Started | StartResult::Died
                    if started < limits::START_ATTEMPTS_MAX =>
                {
                    started += 1;
                }
                StartResult::Busy if busy < limits::BUSY_ATTEMPTS_MAX => {
                    busy += 1;
                    std::thread::sleep(Duration::from_millis(limits::BUSY_PAUSE_MS));
                }
                StartResult::Started => {
                    return Err(Error::Start("it ends as soon as it is started".to_owned()));
                }
                StartResult::Died => {
                    let said = "the program ended without becoming a gate";
                    return Err(Error::Start(said.to_owned()));
                }
                StartResult::Busy => return Err(Error::Busy),
            }
        }
    }

    /// Asks only a gate that is there.
    fn ask_if_there(&self, request: &Request, fds: &[OwnedFd]) -> Result<Option<Answer>, Error> {
        Ok(self.hold_if_there(request, fds)?.map(|(answer, _)| answer))
    }

    fn hold_if_there(
        &self,
        request: &Request,
        fds: &[OwnedFd],
    ) -> Result<Option<(Answer, UnixStream)>, Error> {
        // Only one that is too large can't be written.
        let bytes = protocol::encode(request, limits::REQUEST_BYTES_MAX)
            .map_err(|error| Error::Refused(format!("the gate can't be asked that: {error}")))?;
        match self.try_ask(&bytes, fds) {
            Ok(held) => Ok(Some(held)),
            Err(error) if left(&error) => Ok(None),
            Err(error) => Err(Error::io("ask the gate")(error)),
        }
    }

    fn try_ask(&self, bytes: &[u8], fds: &[OwnedFd]) -> io::Result<(Answer, UnixStream)> {
        let mut stream = self.connect()?;
        let limit = Some(Duration::from_millis(limits::REQUEST_MS_MAX));
        stream.set_read_timeout(limit)?;
        stream.set_write_timeout(limit)?;
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        let sent = passing::send(&stream, bytes, &fds)?;
        stream.write_all(&bytes[sent..])?;
        let mut prefix = [0; protocol::LENGTH_BYTES];
        stream.read_exact(&mut prefix)?;
        let mut answer = vec![0; protocol::length(prefix, limits::ANSWER_BYTES_MAX)?];
        stream.read_exact(&mut answer)?;
        Ok((protocol::decode(&answer)?, stream))
    }

    fn open_dir(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.dir, flags, Mode::empty())?)
    }

    fn connect(&self) -> io::Result<UnixStream> {
        let dir = self.open_dir()?;
        // The name of a socket has room for 107 bytes, a path has not.
        let place = format!("/proc/self/fd/{}/{}", dir.as_raw_fd(), protocol::SOCKET);
        let kind = (AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC);
        let socket = socket_with(kind.0, kind.1, kind.2, None)?;
        connect(&socket, &SocketAddrUnix::new(place)?)?;
        Ok(UnixStream::from(socket))
    }

    /// Starts a gate and waits until it, or another one, serves.
    fn start(&self) -> Result<StartResult, Error> {
        let (status, theirs) = UnixStream::pair().map_err(Error::io("start the gate"))?;
        self.launcher.launch(&self.dir, OwnedFd::from(theirs))?;
        let limit = Some(Duration::from_millis(limits::START_MS_MAX));
        status.set_read_timeout(limit).map_err(Error::io("start the gate"))?;
        let mut said = String::new();
        let heard = status.take(limits::START_BYTES_MAX).read_to_string(&mut said);
        if let Err(error) = heard {
            return Err(Error::io("hear from the gate that it serves")(error));
        }
        let failed = said.lines().find_map(|line| line.strip_prefix(protocol::FAILED));
        match failed {
            Some(reason) => Err(Error::Start(reason.to_owned())),
            None if said.lines().any(|line| line == protocol::READY) => Ok(StartResult::Started),
            None if said.lines().any(|line| line == protocol::BUSY) => Ok(StartResult::Busy),
            None => Ok(StartResult::Died),
        }
    }
}
