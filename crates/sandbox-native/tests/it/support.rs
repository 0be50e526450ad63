//! A backend on a state directory of its own, and short ways to ask it things.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_sandbox::{
    Backend, Command, CreateSpec, Error, ExecId, ExecOutcome, Execute, FileError, FileOp,
    FileReply, Sandbox, SandboxId, SnapshotId,
};
use outrigger_sandbox_native::{Config, Launch, Native};

/// The example program `name`, which cargo builds beside the tests.
pub(crate) fn example(name: &str) -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let path = exe.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is missing: run through `cargo test`", path.display());
    path
}

/// How the spawner of the tests is started.
pub(crate) fn launch() -> Launch {
    Launch { program: example("spawner"), args: Vec::new() }
}

pub(crate) fn config(state: &Path) -> Config {
    Config {
        // Made by the backend, with the mode that it demands.
        state_dir: state.join("state"),
        scratch: state.to_owned(),
        launcher: Arc::new(launch()),
        guest: outrigger_guest::PROGRAM,
        read_only: Vec::new(),
        trees: None,
    }
}

/// A backend whose state, and with it its spawner, goes away at the end.
pub(crate) struct World {
    pub(crate) native: Native,
    pub(crate) state: tempfile::TempDir,
}

pub(crate) async fn world() -> World {
    world_with(|_| {}).await
}

pub(crate) async fn world_with(adjust: impl FnOnce(&mut Config)) -> World {
    let state = tempfile::Builder::new().prefix("outrigger-test-").tempdir().unwrap();
    let mut config = config(state.path());
    adjust(&mut config);
    World { native: Native::open(config).await.unwrap(), state }
}

impl World {
    /// Another instance on the same state, as another process would have it.
    pub(crate) async fn again(&self) -> Native {
        Native::open(config(self.state.path())).await.unwrap()
    }

    /// A sandbox with default limits.
    pub(crate) async fn sandbox(&self, name: &str) -> Arc<dyn Sandbox> {
        self.native.create(&sandbox_id(name), &CreateSpec::default()).await.unwrap()
    }
}

/// One sandbox in a world of its own.
pub(crate) struct Single {
    pub(crate) world: World,
    pub(crate) sandbox: Arc<dyn Sandbox>,
}

impl Deref for Single {
    type Target = dyn Sandbox;
    fn deref(&self) -> &Self::Target {
        &*self.sandbox
    }
}

pub(crate) async fn single() -> Single {
    let world = world().await;
    let sandbox = world.sandbox("one").await;
    Single { world, sandbox }
}

impl Drop for World {
    fn drop(&mut self) {
        // A spawner ends by itself, guests and all, when it sees its socket gone;
        // to be sure of the disks it is told to destroy them first.
        let state = self.state.path().to_owned();
        let done = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let Ok(native) = Native::open(config(&state)).await else { return };
                let snapshots = native.snapshots().ok();
                for snapshot in match snapshots {
                    Some(snapshots) => snapshots.list().await.unwrap_or_default(),
                    None => Vec::new(),
                } {
                    let _ = match snapshots {
                        Some(snapshots) => snapshots.remove(&snapshot.name).await,
                        None => Ok(()),
                    };
                }
                for listed in native.list().await.unwrap_or_default() {
                    let _ = native.destroy(&listed.id).await;
                }
            });
        });
        let _ = done.join();
    }
}

/// Ends the spawner of a world, and waits until nobody holds its state directory.
pub(crate) fn kill_spawner(world: &World) {
    let spawner = rustix::process::Pid::from_raw(spawner_of(world.state.path())).unwrap();
    rustix::process::kill_process(spawner, rustix::process::Signal::KILL).unwrap();
}

pub(crate) fn snapshot_id(name: &str) -> SnapshotId {
    SnapshotId::new(name).unwrap()
}

pub(crate) fn sandbox_id(name: &str) -> SandboxId {
    SandboxId::new(name).unwrap()
}

/// An id that no other call in this process has.
pub(crate) fn fresh() -> ExecId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    ExecId::new(format!("e{}", NEXT.fetch_add(1, Ordering::Relaxed))).unwrap()
}

pub(crate) fn shell(line: &str) -> Execute {
    Execute::new(fresh(), Command::Shell(line.to_owned()))
}

pub(crate) fn argv(words: &[&str]) -> Execute {
    Execute::new(
        fresh(),
        Command::Argv(words.iter().map(|word| word.as_bytes().to_vec()).collect()),
    )
}

/// What a line prints on both streams, with how it ended where that is not code 0.
pub(crate) async fn says(sandbox: &dyn Sandbox, line: &str) -> String {
    let mut request = shell(line);
    request.streams = outrigger_sandbox::Streams::Merged;
    let executed = sandbox.execute(request, &()).await.unwrap();
    let mut text = String::from_utf8_lossy(&executed.stdout).into_owned();
    if executed.exit_code() != Some(0) {
        text.push_str(&format!("[{:?}]", executed.end));
    }
    text
}

pub(crate) async fn run(sandbox: &dyn Sandbox, request: Execute) -> ExecOutcome {
    sandbox.execute(request, &()).await.unwrap()
}

pub(crate) async fn files(sandbox: &dyn Sandbox, op: FileOp) -> Result<FileReply, FileError> {
    match sandbox.files(op).await {
        Ok(reply) => Ok(reply),
        Err(Error::File(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

/// The process that holds the lock of a state directory.
pub(crate) fn spawner_of(state: &Path) -> i32 {
    let wanted = state.join("state");
    let is_named_so = |pid: i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.next().is_some_and(|program| program.ends_with(b"spawner"))
            && words.next() == Some(std::os::unix::ffi::OsStrExt::as_bytes(wanted.as_os_str()))
    };
    // What it forks is named like it until it executes something else, and may have a
    // lower number: they begin again after the highest.
    let mut found = processes().into_iter().filter(|(pid, _)| is_named_so(*pid));
    let (pid, _) =
        found.find(|(_, parent)| !is_named_so(*parent)).expect("a spawner of this state directory");
    pid
}

/// The processes that a spawner started, as the host sees them.
pub(crate) fn children_of(state: &Path) -> Vec<rustix::process::Pid> {
    let spawner = spawner_of(state);
    let children = processes().into_iter().filter(|(_, parent)| *parent == spawner);
    children.map(|(pid, _)| rustix::process::Pid::from_raw(pid).unwrap()).collect()
}

/// The number of each process of this machine and that of its parent. Not by
/// `/proc/PID/task/TID/children`, which may leave out some while others end, see proc(5).
fn processes() -> Vec<(i32, i32)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(") ")?;
        Some((pid, rest.split(' ').nth(1)?.parse().ok()?))
    })
    .collect()
}

/// The only guest of a state directory, as the host sees it.
pub(crate) fn guest_of(state: &Path) -> rustix::process::Pid {
    let of =
        |pid: &rustix::process::Pid, file: &str| format!("/proc/{}/{file}", pid.as_raw_nonzero());
    let serves = |pid: &rustix::process::Pid| {
        let program = std::fs::read_link(of(pid, "exe")).unwrap_or_default();
        let read = |file: &str| std::fs::read_to_string(of(pid, file)).unwrap_or_default();
        // That of which all are cloned has one number, here and for itself.
        let inner =
            read("status").lines().any(|line| line.starts_with("NSpid:") && line.ends_with("\t1"));
        // Others wait to become one, and have no ids yet.
        program.to_string_lossy().contains("outrigger-guest")
            && inner
            && !read("uid_map").is_empty()
    };
    children_of(state).into_iter().find(serves).expect("a guest")
}
