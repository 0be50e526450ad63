//! A server of PostgreSQL for a command that needs one.
//!
//! Owns how the server is made: in a directory of its own, away from any other. It may lose what it
//! was told when the machine dies, and nothing when a process does.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::child::Child;
use crate::service::{Error, Service, ServiceHome};

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

/// Runs a command with a server of its own.
pub(crate) fn run(command: &Child, out: &mut impl Write) -> Result<u8, Error> {
    let (service, address) = start(&programs().ok_or_else(missing)?)?;
    let name = format!("PostgreSQL at {address}");
    service.run(&name, &command.clone().with(VARIABLE, &address), out)
}

fn missing() -> Error {
    let package = "postgresql (Debian, Ubuntu) or postgresql-server";
    Error::Missing { program: "initdb".to_owned(), package }
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

fn start(programs: &Path) -> Result<(Service, String), Error> {
    // Short, because its socket is in it and paths of sockets have at most 107 bytes (unix(7)).
    let name = format!("outrigger-postgres-{}", std::process::id());
    let service = ServiceHome::new(std::env::temp_dir().join(name), [])?;
    let home = service.path();
    let address = format!("postgres:///postgres?host={}&user={ROLE}", home.display());
    if is_root() && !Child::new(["chown", USER, &home.display().to_string()]).succeeds() {
        return Err(missing());
    }
    let made = program(programs, "initdb")
        .arg("--pgdata")
        .arg(home.join("data"))
        .args(["--username", ROLE, "--auth", "trust", "--no-sync"])
        .args(["--encoding", "UTF8", "--locale", "C.UTF-8"])
        .stdin(Stdio::null())
        .stdout(service.log()?)
        .stderr(service.log()?)
        .status();
    if !made.map_err(Error::Start)?.success() {
        return Err(service.silent());
    }
    let mut server = program(programs, "postgres");
    server.arg("-D").arg(home.join("data")).arg("-k").arg(home);
    server.args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", CONNECTIONS]);
    let ready = programs.join("pg_isready").display().to_string();
    let answers = Child::new([ready.as_str(), "--host", &home.display().to_string()]);
    // At once, and in order: see postgres(1).
    Service::start(service, server, "-INT", &answers).map(|service| (service, address))
}
