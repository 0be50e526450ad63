//! A service of somebody else's that a command needs: Docker's engine, PostgreSQL's server.
//!
//! Owns its process and its directories from its start to its end: all of it is gone then. Must
//! never touch one that was there before.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, Stdio};
use std::time::{Duration, Instant};

use crate::child::{self, Child, code};
use crate::limits::{SERVICE_END_MS_MAX, SERVICE_PAUSE_MS, SERVICE_START_MS_MAX};

/// Why there is none, or why its command could not be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A program is not there.
    #[error("`{program}` is missing: install the package {package}")]
    Missing {
        /// The program.
        program: String,
        /// What has it.
        package: &'static str,
    },
    /// Its directories or process could not be made.
    #[error("cannot start the service")]
    Start(#[source] io::Error),
    /// It ended, or does not answer.
    #[error("the service did not come up; the end of its log:\n{log}")]
    Silent {
        /// What it wrote last.
        log: String,
    },
    /// The command could not be run.
    #[error(transparent)]
    Child(#[from] child::Error),
    /// Our own output is gone.
    #[error("cannot write the progress")]
    Write(#[source] io::Error),
}

/// Where a service is, before it is started. Dropping it deletes what is there.
pub(crate) struct ServiceHome(Vec<PathBuf>);

impl ServiceHome {
    /// A directory for its log and its sockets, and others that it makes.
    pub(crate) fn new(
        home: PathBuf,
        others: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self, Error> {
        std::fs::create_dir(&home).map_err(Error::Start)?;
        Ok(Self(std::iter::once(home).chain(others).collect()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0[0]
    }

    /// Where it writes what it does.
    pub(crate) fn log(&self) -> Result<File, Error> {
        let log = File::options().create(true).append(true).open(self.path().join("log"));
        log.map_err(Error::Start)
    }

    /// That it did not come up.
    pub(crate) fn silent(&self) -> Error {
        let log = std::fs::read_to_string(self.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        Error::Silent { log: lines[lines.len().saturating_sub(5)..].join("\n") }
    }
}

impl Drop for ServiceHome {
    fn drop(&mut self) {
        for dir in &self.0 {
            drop(std::fs::remove_dir_all(dir));
        }
    }
}

/// A service that answers. Dropping it ends it and deletes what it had.
pub(crate) struct Service {
    process: Process,
    signal: &'static str,
    home: ServiceHome,
}

impl Service {
    /// Starts it and waits until it answers. `signal`: what it ends by, with its own children.
    pub(crate) fn start(
        home: ServiceHome,
        mut command: Command,
        signal: &'static str,
        answers: &Child,
    ) -> Result<Self, Error> {
        let log = home.log()?;
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let mut service = Self { process: started.map_err(Error::Start)?, signal, home };
        let begin = Instant::now();
        while !answers.succeeds() {
            let ended = service.process.try_wait().map_err(Error::Start)?.is_some();
            if ended || begin.elapsed() > Duration::from_millis(SERVICE_START_MS_MAX) {
                return Err(service.home.silent());
            }
            std::thread::sleep(Duration::from_millis(SERVICE_PAUSE_MS));
        }
        Ok(service)
    }

    /// Runs a command that is told of it, and ends it.
    pub(crate) fn run(
        self,
        name: &str,
        command: &Child,
        out: &mut impl Write,
    ) -> Result<u8, Error> {
        writeln!(out, "== started {name} for this command")
            .and_then(|()| out.flush())
            .map_err(Error::Write)?;
        let status = command.run();
        drop(self);
        writeln!(out, "== ended it").map_err(Error::Write)?;
        Ok(code(status?))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = Child::new(["kill", self.signal, &self.process.id().to_string()]).succeeds();
        let begin = Instant::now();
        while self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            if begin.elapsed() > Duration::from_millis(SERVICE_END_MS_MAX) {
                drop(self.process.kill());
                drop(self.process.wait());
                break;
            }
            std::thread::sleep(Duration::from_millis(SERVICE_PAUSE_MS));
        }
    }
}
