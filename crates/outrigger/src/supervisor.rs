//! The small process that starts others for the harness, which is confined and starts none.
//!
//! Owns what can be asked of it: the gate, the spawner and the programs that the configuration
//! names, each with arguments that were fixed before the harness read anything. It ends with the
//! harness. Must never read what a model or a sandbox wrote.

mod request;
pub(crate) mod serve;

use outrigger_gate::{ServerLauncher, passing};
use outrigger_sandbox::{Capabilities, Error as SandboxError};
use outrigger_sandbox_native::SpawnerLauncher;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, Chain};

use crate::exit::{Failure, Kind, Outcome};

use request::Reply;
pub(crate) use request::{DockerBuild, StartRequest};

/// The hidden mode in which this program is a supervisor.
pub(crate) const SUPERVISOR_MODE: &str = "supervisor";

/// The harness's way to its supervisor.
#[derive(Debug, Clone)]
pub(crate) struct Supervisor {
    socket: Arc<OwnedFd>,
}

/// What a program has for its standard input, output and errors.
#[derive(Debug)]
pub(crate) struct ProgramStreams {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

impl ProgramStreams {
    /// Nothing to read, and nobody who reads.
    pub(crate) fn null() -> io::Result<Self> {
        let null = || File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
        Ok(Self { stdin: null()?, stdout: null()?, stderr: null()? })
    }
}

/// A program that was started. It is killed when this is dropped, unless it was left to itself.
#[derive(Debug)]
pub(crate) struct StartedProgram {
    /// What was read already, and what comes.
    reply: tokio::io::BufReader<Chain<Cursor<Vec<u8>>, tokio::net::UnixStream>>,
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct ProgramEnd {
    pub(crate) success: bool,
    /// In words, for example `exit status: 1`.
    pub(crate) status: String,
    /// What it wrote into the file that it was given for that: the id of an image.
    pub(crate) written: String,
}

impl Supervisor {
    /// Starts one for a data directory, and the configuration if one was named. `works_in`: the
    /// directories that the harness works in.
    pub(crate) fn start(data: &Path, config: Option<&Path>, works_in: &[PathBuf]) -> Outcome<Self> {
        let start = || -> io::Result<Self> {
            let flags = SocketFlags::CLOEXEC;
            let (ours, theirs) =
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            Command::new("/proc/self/exe")
                .arg(SUPERVISOR_MODE)
                .arg(data)
                .arg(config.unwrap_or(Path::new("")))
                .args(works_in)
                .stdin(theirs)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                // So that what a terminal sends to its foreground does not end it.
                .process_group(0)
                .spawn()?;
            Ok(Self { socket: Arc::new(ours) })
        };
        start().map_err(|error| {
            Failure::new(Kind::Storage, format!("the supervisor can't be started: {error}"))
        })
    }

    /// Asks, and hears what comes of it first. Blocks, but not for long.
    fn ask(
        &self,
        request: &StartRequest,
        streams: ProgramStreams,
    ) -> io::Result<(Reply, BufReader<UnixStream>)> {
        let (ours, theirs) = UnixStream::pair()?;
        let ProgramStreams { stdin, stdout, stderr } = streams;
        let fds = [theirs.as_fd(), stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        passing::send(&self.socket, &serde_json::to_vec(request)?, &fds)?;
        drop(theirs);
        let mut reply = BufReader::new(ours);
        let mut line = String::new();
        if reply.read_line(&mut line)? == 0 {
            return Err(io::Error::other("the supervisor has ended"));
        }
        match serde_json::from_str(&line)? {
            Reply::Failed(why) => Err(io::Error::other(why)),
            answer => Ok((answer, reply)),
        }
    }

    /// Starts a program that is waited for, or left to itself.
    pub(crate) async fn start_program(
        &self,
        request: StartRequest,
        streams: ProgramStreams,
    ) -> io::Result<StartedProgram> {
        let supervisor = self.clone();
        let asked = tokio::task::spawn_blocking(move || supervisor.ask(&request, streams));
        let (_, reply) = asked.await.map_err(io::Error::other)??;
        let read = Cursor::new(reply.buffer().to_vec());
        let reply = reply.into_inner();
        reply.set_nonblocking(true)?;
        let reply = tokio::net::UnixStream::try_from(reply)?;
        Ok(StartedProgram { reply: tokio::io::BufReader::new(read.chain(reply)) })
    }

    /// Has a host written into the configuration as one that may be reached. Gives the file.
    pub(crate) fn allow_host(&self, host: &str) -> Outcome<PathBuf> {
        let request = StartRequest::AllowHost { host: host.to_owned() };
        let asked = ProgramStreams::null().and_then(|streams| self.ask(&request, streams));
        match asked {
            Ok((Reply::Written(place), _)) => Ok(place),
            Ok(_) => Err(Failure::new(Kind::Storage, "the supervisor did not understand")),
            Err(error) => Err(Failure::new(Kind::Usage, error.to_string())),
        }
    }
}

impl StartedProgram {
    /// Waits for its end.
    pub(crate) async fn wait(&mut self) -> io::Result<ProgramEnd> {
        let mut line = String::new();
        self.reply.read_line(&mut line).await?;
        match serde_json::from_str(&line) {
            Ok(Reply::Ended { success, status, written }) => {
                Ok(ProgramEnd { success, status, written })
            }
            Ok(_) | Err(_) => Err(io::Error::other("the supervisor has ended")),
        }
    }
}

impl ServerLauncher for Supervisor {
    fn launch(&self, _dir: &Path, out: OwnedFd) -> Result<(), outrigger_gate::Error> {
        let asked = ProgramStreams::null()
            .and_then(|null| self.ask(&StartRequest::Gate, ProgramStreams { stdout: out, ..null }));
        asked.map(drop).map_err(|error| outrigger_gate::Error::Start(error.to_string()))
    }
}

impl SpawnerLauncher for Supervisor {
    fn launch(&self, _state: &Path, guest: OwnedFd, out: OwnedFd) -> Result<(), SandboxError> {
        let asked = ProgramStreams::null().and_then(|null| {
            let streams = ProgramStreams { stdin: guest, stdout: out, ..null };
            self.ask(&StartRequest::Spawner, streams)
        });
        asked.map(drop).map_err(|error| SandboxError::Backend(error.to_string()))
    }

    fn prepare(&self, _state: &Path) -> Result<Capabilities, SandboxError> {
        let asked = ProgramStreams::null().and_then(|null| self.ask(&StartRequest::Prepare, null));
        match asked {
            Ok((Reply::Prepared(found), _)) => *found,
            Ok(_) => Err(SandboxError::Backend("the supervisor did not understand".to_owned())),
            Err(error) => Err(SandboxError::Backend(error.to_string())),
        }
    }
}
