//! A Docker engine for a command that needs one.
//!
//! Owns the engine that it starts where none answers, or where one with a runtime is asked
//! for: its own directories, socket and process, away from any other engine's, and all
//! of it gone at the end. Must never touch an engine that was there before.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, Stdio};
use std::time::{Duration, Instant};

use crate::child::{self, Child, code};
use crate::limits::{DOCKER_END_MS_MAX, DOCKER_PAUSE_MS, DOCKER_START_MS_MAX};

/// Where the client and the tests look for an engine; see docker(1).
const VARIABLE: &str = "DOCKER_HOST";
/// Which runtime the tests of the backend are to use.
const RUNTIME_VARIABLE: &str = "OUTRIGGER_TEST_RUNTIME";
/// gVisor's runtime.
const GVISOR: &str = "runsc";

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A program is not there.
    #[error("`{0}` is missing: install the package docker.io (Debian, Ubuntu) or docker-ce")]
    Missing(&'static str),
    /// A program of another package is not there.
    #[error("`{0}` is missing: install the package of that name")]
    MissingPackage(String),
    /// Its directories or process could not be made.
    #[error("cannot start the engine")]
    Start(#[source] std::io::Error),
    /// It ended, or does not answer.
    #[error("the engine did not come up; the end of its log:\n{log}")]
    Silent {
        /// What it wrote last.
        log: String,
    },
    /// The command could not be run.
    #[error(transparent)]
    Child(#[from] child::Error),
    /// Our own output is gone.
    #[error("cannot write the progress")]
    Write(#[source] std::io::Error),
}

/// An engine of ours. Dropping it ends it and deletes what it had.
struct Engine {
    process: Process,
    home: PathBuf,
}

/// Runs a command with an engine: the one that answers, or one of its own.
pub(crate) fn run(command: &Child, out: &mut impl Write) -> Result<u8, Error> {
    run_with(None, command, out)
}

/// Runs a command with an engine that has this runtime: the one that answers, or one of
/// its own.
pub(crate) fn run_with(
    runtime: Option<&str>,
    command: &Child,
    out: &mut impl Write,
) -> Result<u8, Error> {
    if !Child::new(["docker", "--version"]).succeeds() {
        return Err(Error::Missing("docker"));
    }
    if runtime.is_none() && Child::new(["docker", "version"]).succeeds() {
        return Ok(code(command.run()?));
    }
    let engine = Engine::start(runtime)?;
    let host = engine.host();
    writeln!(out, "== started an engine at {host} for this command")
        .and_then(|()| out.flush())
        .map_err(Error::Write)?;
    let mut command = command.clone().with(VARIABLE, &host);
    if let Some(runtime) = runtime {
        command = command.with(RUNTIME_VARIABLE, runtime);
    }
    let status = command.run();
    drop(engine);
    writeln!(out, "== ended that engine").map_err(Error::Write)?;
    Ok(code(status?))
}

/// The path of a program.
pub(crate) fn found(program: &str) -> Result<PathBuf, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&path).map(|dir| dir.join(program));
    files.find(|file| file.is_file()).ok_or_else(|| Error::MissingPackage(program.to_owned()))
}

/// Docker's engine.
fn dockerd(home: &Path, runtime: Option<&str>) -> Result<Command, Error> {
    let settings = match runtime {
        None => String::new(),
        Some(name) => {
            let path = found(name)?;
            // A sandbox has no network, and gVisor's own would want that of the host.
            let arguments =
                if name == GVISOR { r#", "runtimeArgs": ["--network=none"]"# } else { "" };
            format!(r#""runtimes": {{"{name}": {{"path": "{}"{arguments}}}}}"#, path.display())
        }
    };
    let file = home.join("daemon.json");
    std::fs::write(&file, format!("{{{settings}}}")).map_err(Error::Start)?;
    let mut command = Command::new("dockerd");
    command
        .args(["--bridge", "none", "--iptables=false", "--ip-masq=false"])
        .arg("--config-file")
        .arg(file)
        .arg("--data-root")
        .arg(data(home))
        .arg("--exec-root")
        .arg(home.join("exec"))
        .arg("--pidfile")
        .arg(home.join("pid"))
        .arg("--host")
        .arg(format!("unix://{}", home.join("docker.sock").display()));
    Ok(command)
}

impl Engine {
    fn start(runtime: Option<&str>) -> Result<Self, Error> {
        // Short, because its sockets are beneath it and their paths are at most 107 bytes (unix(7)).
        let home = PathBuf::from(format!("/run/outrigger-docker-{}", std::process::id()));
        std::fs::create_dir_all(&home).map_err(Error::Start)?;
        let started = Self::spawn(runtime, &home);
        let process = started.inspect_err(|_| drop(std::fs::remove_dir_all(&home)))?;
        let mut engine = Self { process, home };
        let answers = Child::new(["docker", "version"]).with(VARIABLE, &engine.host());
        let begin = Instant::now();
        while !answers.succeeds() {
            let ended = engine.process.try_wait().map_err(Error::Start)?.is_some();
            if ended || begin.elapsed() > Duration::from_millis(DOCKER_START_MS_MAX) {
                let log = std::fs::read_to_string(engine.home.join("log")).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let log = lines[lines.len().saturating_sub(5)..].join("\n");
                return Err(Error::Silent { log });
            }
            std::thread::sleep(Duration::from_millis(DOCKER_PAUSE_MS));
        }
        Ok(engine)
    }

    fn spawn(runtime: Option<&str>, home: &Path) -> Result<Process, Error> {
        let log = std::fs::File::create(home.join("log")).map_err(Error::Start)?;
        let mut command = dockerd(home, runtime)?;
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::Missing("dockerd"),
            _ => Error::Start(error),
        })
    }

    fn host(&self) -> String {
        format!("unix://{}", self.home.join("docker.sock").display())
    }
}

/// On a disk: layers in memory would be another engine than people have.
fn data(home: &Path) -> PathBuf {
    let name = home.file_name().expect("the directory was just named");
    Path::new("/var/tmp").join(name)
}

impl Drop for Engine {
    fn drop(&mut self) {
        // It ends its own children when it is asked to, and not when it is killed.
        let _ = Child::new(["kill".to_owned(), self.process.id().to_string()]).succeeds();
        let begin = Instant::now();
        while self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            if begin.elapsed() > Duration::from_millis(DOCKER_END_MS_MAX) {
                drop(self.process.kill());
                drop(self.process.wait());
                break;
            }
            std::thread::sleep(Duration::from_millis(DOCKER_PAUSE_MS));
        }
        for dir in [&data(&self.home), &self.home] {
            drop(std::fs::remove_dir_all(dir));
        }
    }
}
