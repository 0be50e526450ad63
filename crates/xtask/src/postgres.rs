//! A server of PostgreSQL for a command that needs one.
//!
//! Owns the server that it starts: its own directory, socket and process, away from any other,
//! and all of it gone at the end. It may lose what it was told when the machine dies, and nothing
//! when a process does. Must never touch a server that was there before.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, Stdio};
use std::time::{Duration, Instant};

use crate::child::{self, Child, code};
use crate::limits::{POSTGRES_END_MS_MAX, POSTGRES_PAUSE_MS, POSTGRES_START_MS_MAX};

/// Where the tests look for a server.
const VARIABLE: &str = "OUTRIGGER_TEST_POSTGRES";
/// Where Debian puts the programs of each version, because no path has them.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Who runs a server where we are root: PostgreSQL refuses to be.
const USER: &str = "postgres";
/// Whom the server knows.
const ROLE: &str = "outrigger";
/// How many connections tests have at once, each several.
const CONNECTIONS: &str = "max_connections=400";

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A program is not there.
    #[error(
        "`initdb` is missing: install the package postgresql (Debian, Ubuntu) or postgresql-server"
    )]
    Missing,
    /// Its directory or process could not be made.
    #[error("cannot start the server")]
    Start(#[source] std::io::Error),
    /// It ended, or does not answer.
    #[error("the server did not come up; the end of its log:\n{log}")]
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

/// A server of ours. Dropping it ends it and deletes what it had.
struct Server {
    process: Process,
    home: PathBuf,
}

/// Runs a command with a server of its own.
pub(crate) fn run(command: &Child, out: &mut impl Write) -> Result<u8, Error> {
    let server = Server::start(&programs().ok_or(Error::Missing)?)?;
    writeln!(out, "== started PostgreSQL at {} for this command", server.home.display())
        .and_then(|()| out.flush())
        .map_err(Error::Write)?;
    let status = command.clone().with(VARIABLE, &server.address()).run();
    drop(server);
    writeln!(out, "== ended it").map_err(Error::Write)?;
    Ok(code(status?))
}

/// Where the programs of the newest version are.
pub(crate) fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let versions = versions.map(|version| version.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = versions.chain(std::env::split_paths(&path)).collect();
    places.retain(|place| place.join("initdb").is_file());
    places.into_iter().max_by_key(|place| {
        let version = place.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        version.and_then(|version| version.parse::<u32>().ok())
    })
}

fn is_root() -> bool {
    Child::new(["sh", "-c", "[ $(id -u) = 0 ]"]).succeeds()
}

/// A program of the server's, as who may run it.
fn program(programs: &Path, name: &str) -> Command {
    let program = programs.join(name);
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).arg(program);
    command
}

impl Server {
    fn start(programs: &Path) -> Result<Self, Error> {
        // Short, because its socket is in it and paths of sockets have at most 107 bytes (unix(7)).
        let name = format!("outrigger-postgres-{}", std::process::id());
        let home = std::env::temp_dir().join(name);
        std::fs::create_dir(&home).map_err(Error::Start)?;
        let started = Self::spawn(programs, &home);
        let process = started.inspect_err(|_| drop(std::fs::remove_dir_all(&home)))?;
        let mut server = Self { process, home };
        let host = server.home.display().to_string();
        let ready = programs.join("pg_isready").display().to_string();
        let answers = Child::new([ready.as_str(), "--host", host.as_str()]);
        let begin = Instant::now();
        while !answers.succeeds() {
            let ended = server.process.try_wait().map_err(Error::Start)?.is_some();
            if ended || begin.elapsed() > Duration::from_millis(POSTGRES_START_MS_MAX) {
                let log = std::fs::read_to_string(server.home.join("log")).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let log = lines[lines.len().saturating_sub(5)..].join("\n");
                return Err(Error::Silent { log });
            }
            std::thread::sleep(Duration::from_millis(POSTGRES_PAUSE_MS));
        }
        Ok(server)
    }

    fn spawn(programs: &Path, home: &Path) -> Result<Process, Error> {
        if is_root() {
            let owner =
                Child::new(["chown".to_owned(), USER.to_owned(), home.display().to_string()]);
            if !owner.succeeds() {
                return Err(Error::Missing);
            }
        }
        let log = std::fs::File::create(home.join("log")).map_err(Error::Start)?;
        let log_too = log.try_clone().map_err(Error::Start)?;
        let made = program(programs, "initdb")
            .arg("--pgdata")
            .arg(home.join("data"))
            .args(["--username", ROLE, "--auth", "trust", "--no-sync"])
            .args(["--encoding", "UTF8", "--locale", "C.UTF-8"])
            .stdin(Stdio::null())
            .stdout(log_too)
            .stderr(log.try_clone().map_err(Error::Start)?)
            .status();
        if !made.map_err(Error::Start)?.success() {
            let log = std::fs::read_to_string(home.join("log")).unwrap_or_default();
            return Err(Error::Silent { log });
        }
        let mut server = program(programs, "postgres");
        server.arg("-D").arg(home.join("data")).arg("-k").arg(home);
        server.args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", CONNECTIONS]);
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().map_err(Error::Start)
    }

    fn address(&self) -> String {
        format!("postgres:///postgres?host={}&user={ROLE}", self.home.display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // At once, and in order: see postgres(1).
        let _ = Child::new(["kill", "-INT", &self.process.id().to_string()]).succeeds();
        let begin = Instant::now();
        while self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            if begin.elapsed() > Duration::from_millis(POSTGRES_END_MS_MAX) {
                drop(self.process.kill());
                drop(self.process.wait());
                break;
            }
            std::thread::sleep(Duration::from_millis(POSTGRES_PAUSE_MS));
        }
        drop(std::fs::remove_dir_all(&self.home));
    }
}
