//! A backend with an owner and an image of its own, and short ways to ask it things.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_sandbox::{
    Backend, Command, CreateSpec, ExecId, ExecOutcome, Execute, Sandbox, SandboxId, SnapshotId,
    Streams,
};
use outrigger_sandbox_docker::{Config, Docker};

use crate::daemon::{self, Daemon};

/// The image of the tests: a shell and the usual programs.
pub(crate) const IMAGE: &str = "outrigger-docker-test:1";
/// The usual programs of the image, in one.
const BUSYBOX: &str = "/bin/busybox";
/// Its shell, which is not of them: theirs has programs that are no files.
const BASH: &str = "/bin/bash";

/// A backend on a daemon. What it made goes away at the end.
pub(crate) struct World {
    pub(crate) docker: Docker,
    pub(crate) config: Config,
    pub(crate) daemon: Arc<Daemon>,
}

fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The runtime that the tests are run with: the daemon's own, or the one that the
/// environment names. Tests fail where the daemon does not have it.
pub(crate) fn runtime() -> Option<String> {
    std::env::var("OUTRIGGER_TEST_RUNTIME").ok()
}

/// A configuration with an owner that nobody else has.
pub(crate) fn config(socket: &Path) -> Config {
    Config {
        socket: Some(socket.to_owned()),
        owner: format!("test-{}-{}", std::process::id(), next()),
        runtime: runtime(),
        guest: outrigger_guest::PROGRAM,
        images: BTreeMap::new(),
        default_image: Some(IMAGE.to_owned()),
    }
}

/// One more of the usual programs, which not every build of those has.
const PRINTENV: &str = "/usr/bin/printenv";

/// Imports an image, unless it is there.
fn import(daemon: &Daemon, name: &str, archive: fn() -> Vec<u8>) {
    if !daemon.docker(&["images", "-q", name]).is_empty() {
        return;
    }
    let host = format!("--host=unix://{}", daemon.socket.display());
    let mut child = Program::new("docker")
        .args([&host, "import", "-", name])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, &archive()).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// The usual programs in one, and a shell.
fn usual() -> Vec<u8> {
    let names = Program::new(BUSYBOX).arg("--list").output();
    let names = names.expect("/bin/busybox is missing: install the package busybox-static").stdout;
    let mut archive = tar::Builder::new(Vec::new());
    let libraries = Program::new("ldd").arg(BASH).output().unwrap().stdout;
    let libraries = String::from_utf8(libraries).unwrap();
    let libraries = libraries.split_whitespace().filter(|word| word.starts_with('/'));
    let places = [
        ("bin/busybox", BUSYBOX),
        ("bin/bash", BASH),
        ("bin/sh", BASH),
        ("bin/printenv", PRINTENV),
    ];
    for (place, file) in places.into_iter().chain(libraries.map(|file| (&file[1..], file))) {
        let program = std::fs::read(file).unwrap();
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_size(program.len() as u64);
        archive.append_data(&mut header, place, &program[..]).unwrap();
    }
    let files = ["busybox", "bash", "sh", "printenv"];
    for name in String::from_utf8(names).unwrap().lines().filter(|name| !files.contains(name)) {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        archive.append_link(&mut header, format!("bin/{name}"), "busybox").unwrap();
    }
    archive.into_inner().unwrap()
}

pub(crate) async fn world() -> World {
    world_on(tokio::task::spawn_blocking(daemon::shared).await.unwrap()).await
}

pub(crate) async fn world_on(daemon: Arc<Daemon>) -> World {
    import(&daemon, IMAGE, usual);
    let config = config(&daemon.socket);
    World { docker: Docker::open(config.clone()).await.unwrap(), config, daemon }
}

impl World {
    /// Another value for the same owner, as another process would have it.
    pub(crate) async fn again(&self) -> Docker {
        Docker::open(self.config.clone()).await.unwrap()
    }

    /// Another value for the same owner, which reaches the daemon at this socket.
    pub(crate) async fn on(&self, socket: &Path) -> Docker {
        let socket = Some(socket.to_owned());
        Docker::open(Config { socket, ..self.config.clone() }).await.unwrap()
    }

    /// A sandbox with default limits.
    pub(crate) async fn sandbox(&self, name: &str) -> Arc<dyn Sandbox> {
        self.docker.create(&sandbox_id(name), &CreateSpec::default()).await.unwrap()
    }

    /// The name of a sandbox's container.
    pub(crate) fn container(&self, name: &str) -> String {
        format!("outrigger.{}.sandbox.{name}", self.config.owner)
    }

    /// What of a kind (`container` or `volume`) carries the owner's label.
    pub(crate) fn owned(&self, kind: &str) -> Vec<String> {
        let filter = format!("label=outrigger.owner={}", self.config.owner);
        let mut words = vec![kind, "ls", "-q", "--filter", &filter];
        if kind == "container" {
            words.push("-a");
        }
        self.daemon.docker(&words).lines().map(str::to_owned).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for (kind, words) in [("container", ["rm", "-f"]), ("volume", ["volume", "rm"])] {
            let owned = self.owned(kind);
            if owned.is_empty() {
                continue;
            }
            let words: Vec<&str> =
                words.into_iter().chain(owned.iter().map(String::as_str)).collect();
            self.daemon.docker(&words);
        }
    }
}

/// One sandbox in a world of its own.
pub(crate) struct Single {
    pub(crate) sandbox: Arc<dyn Sandbox>,
    pub(crate) world: World,
}

impl Deref for Single {
    type Target = dyn Sandbox;
    fn deref(&self) -> &Self::Target {
        &*self.sandbox
    }
}

pub(crate) async fn single() -> Single {
    let world = world().await;
    Single { sandbox: world.sandbox("one").await, world }
}

pub(crate) fn sandbox_id(name: &str) -> SandboxId {
    SandboxId::new(name).unwrap()
}

pub(crate) fn snapshot_id(name: &str) -> SnapshotId {
    SnapshotId::new(name).unwrap()
}

/// An id that no other call in this process has.
pub(crate) fn fresh() -> ExecId {
    ExecId::new(format!("e{}", next())).unwrap()
}

pub(crate) fn shell(line: &str) -> Execute {
    Execute::new(fresh(), Command::Shell(line.to_owned()))
}

/// What a line prints on both streams, with how it ended where that is not code 0.
pub(crate) async fn says(sandbox: &dyn Sandbox, line: &str) -> String {
    let mut request = shell(line);
    request.streams = Streams::Merged;
    let executed: ExecOutcome = sandbox.execute(request, &()).await.unwrap();
    let mut text = String::from_utf8_lossy(&executed.stdout).into_owned();
    if executed.exit_code() != Some(0) {
        text.push_str(&format!("[{:?}]", executed.end));
    }
    text
}
