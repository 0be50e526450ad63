//! The supervisor's own process.
//!
//! Owns which program each request starts, and that what the harness waits for ends with it.

use outrigger_gate::{ServerLauncher, passing};
use outrigger_sandbox::Capabilities;
use outrigger_sandbox_native::SpawnerLauncher;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};
use std::thread::JoinHandle;
use tempfile::NamedTempFile;

use super::request::{DockerBuild, Reply, StartRequest};
use crate::config::Config;
use crate::exit::Failure;
use crate::paths::Paths;
use crate::{compose, image, limits, network};

/// This program as a supervisor, until the harness on its standard input ends. `args`: the data
/// directory, the configuration if one was named, and the directories that are worked in.
pub(crate) fn serve(args: impl Iterator<Item = OsString>) -> ExitCode {
    let mut args = args.map(PathBuf::from);
    let data = args.next();
    let config = args.next().filter(|config| !config.as_os_str().is_empty());
    let Ok(paths) = Paths::resolve(data, config) else { return ExitCode::FAILURE };
    // As it is now, before the harness reads anything that could have it changed. What is wrong
    // with it is told by the harness.
    let config = Config::of_files(paths.configs()).unwrap_or_default();
    let (prepared, waiting) = (None, Vec::new());
    let mut service = Service { paths, config, works_in: args.collect(), prepared, waiting };
    let socket = rustix::stdio::stdin();
    let mut bytes = vec![0; limits::START_REQUEST_BYTES_MAX];
    while let Ok((length @ 1.., fds)) = passing::receive(socket, &mut bytes) {
        let Ok([reply, stdin, stdout, stderr]) = <[OwnedFd; 4]>::try_from(fds) else { continue };
        let mut reply = UnixStream::from(reply);
        let done = match serde_json::from_slice(&bytes[..length]) {
            Ok(request) => service.start(request, &reply, [stdin, stdout, stderr]),
            Err(error) => Err(io::Error::other(error)),
        };
        say(&mut reply, &done.unwrap_or_else(|error| Reply::Failed(error.to_string())));
    }
    for waiting in service.waiting {
        // What it waits for is killed, as the harness has ended.
        drop(waiting.join());
    }
    ExitCode::SUCCESS
}

/// Whoever has gone need not hear it.
fn say(reply: &mut UnixStream, what: &Reply) {
    let line = serde_json::to_string(what).unwrap_or_default() + "\n";
    drop(reply.write_all(line.as_bytes()));
}

#[derive(Debug)]
struct Service {
    paths: Paths,
    config: Config,
    works_in: Vec<PathBuf>,
    /// What sandboxes there can be, once it is known that there can be some.
    prepared: Option<Capabilities>,
    waiting: Vec<JoinHandle<()>>,
}

/// What becomes of a program when nobody waits for it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unwatched {
    Killed,
    LeftAlone,
}

impl Service {
    fn start(
        &mut self,
        request: StartRequest,
        reply: &UnixStream,
        [stdin, stdout, stderr]: [OwnedFd; 3],
    ) -> io::Result<Reply> {
        let failed = |failure: Failure| {
            let words: Vec<_> = std::iter::once(failure.message).chain(failure.hints).collect();
            io::Error::other(words.join(" "))
        };
        let (mut command, unwatched, written) = match request {
            StartRequest::Gate => {
                let launch = network::caller::launch(&self.config);
                launch.launch(&self.paths.gate(), stdout).map_err(io::Error::other)?;
                return Ok(Reply::Started);
            }
            StartRequest::Spawner => {
                let state = self.paths.sandboxes();
                compose::spawner().launch(&state, stdin, stdout).map_err(io::Error::other)?;
                return Ok(Reply::Started);
            }
            StartRequest::Prepare => {
                // It tries namespaces out, which takes longer than to open a session.
                let found = match &self.prepared {
                    Some(known) => Ok(known.clone()),
                    None => outrigger_sandbox_native::prepare(&self.paths.sandboxes()),
                };
                self.prepared = found.as_ref().ok().cloned();
                return Ok(Reply::Prepared(Box::new(found)));
            }
            StartRequest::AllowHost { host } => {
                return network::allow_host(&self.paths, &host).map(Reply::Written).map_err(failed);
            }
            StartRequest::Notify => {
                let (program, args) =
                    self.config.notify.command.split_first().ok_or_else(|| {
                        io::Error::other("the configuration has no command to notify by")
                    })?;
                let mut command = Command::new(program);
                command.args(args);
                (self.without_keys(command), Unwatched::Killed, None)
            }
            StartRequest::Build(build) => {
                let build = self.checked(build)?;
                // Where the harness writes nothing, so that it is this file that is written.
                let id = NamedTempFile::new()?;
                let command = image::docker_build(&self.config, &build, id.path());
                (self.without_keys(command), Unwatched::Killed, Some(id))
            }
            StartRequest::Save { image } => {
                let command = image::docker_save(&self.config, &image);
                (self.without_keys(command), Unwatched::Killed, None)
            }
            StartRequest::Detached { session } => {
                // Not where the session says, which the harness could have written.
                let dir = self.works_in.first();
                let dir = dir.ok_or_else(|| io::Error::other("no directory is worked in"))?;
                let mut command = self.paths.command(["detached", session.as_str()]);
                command.arg(dir);
                (command, Unwatched::LeftAlone, None)
            }
        };
        let child = command.stdin(stdin).stdout(stdout).stderr(stderr).spawn()?;
        let reply = reply.try_clone()?;
        let thread = std::thread::spawn(move || watch(child, reply, unwatched, written));
        if unwatched == Unwatched::Killed {
            self.waiting.push(thread);
        }
        Ok(Reply::Started)
    }

    /// Nobody whom we start has our keys.
    fn without_keys(&self, mut command: Command) -> Command {
        for variable in &self.config.notify.keys {
            command.env_remove(variable);
        }
        command
    }

    /// A build of what the harness works in, and of nothing beside it.
    fn checked(&self, build: DockerBuild) -> io::Result<DockerBuild> {
        let context = std::fs::canonicalize(&build.context)?;
        if !self.works_in.iter().any(|dir| context.starts_with(dir)) {
            let text = format!("{} is not worked in", context.display());
            return Err(io::Error::other(text));
        }
        Ok(DockerBuild { context, ..build })
    }
}

/// Waits for the end of a program, and says how it ended.
fn watch(
    mut child: Child,
    mut reply: UnixStream,
    unwatched: Unwatched,
    written: Option<NamedTempFile>,
) {
    if unwatched == Unwatched::Killed && is_left(&child, &reply) {
        // It may have ended meanwhile.
        drop(child.kill());
    }
    let Ok(status) = child.wait() else { return };
    let written = written.and_then(|file| std::fs::read_to_string(file.path()).ok());
    let (success, status) = (status.success(), status.to_string());
    let written = written.unwrap_or_default();
    say(&mut reply, &Reply::Ended { success, status, written });
}

/// Waits until either ends; whether it is the one who asked.
fn is_left(child: &Child, reply: &UnixStream) -> bool {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let Some(Ok(pidfd)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else {
        return false;
    };
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN), PollFd::new(reply, PollFlags::RDHUP)];
    let polled = rustix::io::retry_on_intr(|| poll(&mut fds, None));
    polled.is_ok() && fds[0].revents().is_empty()
}
