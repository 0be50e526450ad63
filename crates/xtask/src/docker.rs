//! A Docker engine for a command that needs one.
//!
//! Owns when one is started, where none answers or one with a runtime is asked for, and how: in
//! directories of its own, away from any other engine's.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::child::{Child, code};
use crate::service::{Error, Service, ServiceHome};

/// Where the client and the tests look for an engine; see docker(1).
const VARIABLE: &str = "DOCKER_HOST";
/// Which runtime the tests of the backend are to use.
const RUNTIME_VARIABLE: &str = "OUTRIGGER_TEST_RUNTIME";
/// gVisor's runtime.
const GVISOR: &str = "runsc";

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
        return Err(missing("docker"));
    }
    if runtime.is_none() && Child::new(["docker", "version"]).succeeds() {
        return Ok(code(command.run()?));
    }
    let (service, host) = start(runtime)?;
    let mut command = command.clone().with(VARIABLE, &host);
    if let Some(runtime) = runtime {
        command = command.with(RUNTIME_VARIABLE, runtime);
    }
    service.run(&format!("an engine at {host}"), &command, out)
}

fn missing(program: &str) -> Error {
    let package = "docker.io (Debian, Ubuntu) or docker-ce";
    Error::Missing { program: program.to_owned(), package }
}

/// The path of a program.
pub(crate) fn found(program: &str) -> Result<PathBuf, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&path).map(|dir| dir.join(program));
    let missing = || Error::Missing { program: program.to_owned(), package: "of that name" };
    files.find(|file| file.is_file()).ok_or_else(missing)
}

/// Docker's engine.
fn dockerd(home: &Path, data: &Path, runtime: Option<&str>) -> Result<Command, Error> {
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
        .arg(data)
        .arg("--exec-root")
        .arg(home.join("exec"))
        .arg("--pidfile")
        .arg(home.join("pid"))
        .arg("--host")
        .arg(format!("unix://{}", home.join("docker.sock").display()));
    Ok(command)
}

fn start(runtime: Option<&str>) -> Result<(Service, String), Error> {
    found("dockerd").map_err(|_| missing("dockerd"))?;
    // Short, because its sockets are beneath it and their paths are at most 107 bytes (unix(7)).
    let name = format!("outrigger-docker-{}", std::process::id());
    // On a disk: layers in memory would be another engine than people have.
    let data = Path::new("/var/tmp").join(&name);
    let home = ServiceHome::new(Path::new("/run").join(name), [data.clone()])?;
    let host = format!("unix://{}", home.path().join("docker.sock").display());
    let command = dockerd(home.path(), &data, runtime)?;
    let answers = Child::new(["docker", "version"]).with(VARIABLE, &host);
    // It ends its own children when it is asked to, and not when it is killed.
    Service::start(home, command, "-TERM", &answers).map(|service| (service, host))
}
