//! Our native backend, one sample of each figure at a time.

use outrigger_sandbox::{
    Backend, Command, CreateSpec, DiskOrigin, End, ExecId, Execute, FileOp, FileReply,
    Precondition, Sandbox, SandboxId, SnapshotId, Suspend, WriteMode,
};
use outrigger_sandbox_native::{Config, Launch, Native};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use super::Samples;
use crate::error::{Error, ErrorContext, Outcome};
use crate::harness::SPAWNER_MODE;
use crate::home::Home;
use crate::sizes;
use crate::spawner::Spawner;

/// A backend of its own.
#[derive(Debug)]
pub(super) struct Ours(BenchBackend);

/// A backend and where it is.
#[derive(Debug)]
pub(super) struct BenchBackend {
    pub(super) native: Arc<Native>,
    state: PathBuf,
}

impl BenchBackend {
    /// In a directory of its own.
    pub(super) async fn new(home: &Home, name: &str) -> Outcome<Self> {
        let state = home.path().join(name);
        let program = std::env::current_exe().doing("finding this program")?;
        let config = Config {
            state_dir: state.clone(),
            scratch: home.path().to_owned(),
            launcher: Arc::new(Launch { program, args: vec![OsString::from(SPAWNER_MODE)] }),
            guest: outrigger_guest::PROGRAM,
            read_only: Vec::new(),
            trees: None,
        };
        let native = Native::open(config).await.doing("opening the native sandboxes")?;
        Ok(Self { native: Arc::new(native), state })
    }

    /// Ends the spawner and all that it made.
    pub(super) async fn close(self) -> Outcome<()> {
        let spawner = Spawner::of(&self.state)?;
        drop(self.native);
        tokio::task::spawn_blocking(|| spawner.end()).await.doing("ending the spawner")?
    }
}

/// The id of a sandbox.
pub(super) fn name(text: &str) -> SandboxId {
    SandboxId::new(text).expect("a word and digits are plain")
}

/// Runs the host's `true`, and sees that it did.
pub(super) async fn run_true(sandbox: &dyn Sandbox, id: &str) -> Outcome<()> {
    run_true_at(sandbox, "/usr/bin/true", id).await
}

/// Runs a `true`, and sees that it did.
pub(super) async fn run_true_at(sandbox: &dyn Sandbox, path: &str, id: &str) -> Outcome<()> {
    let id = ExecId::new(id).expect("letters, digits and dashes are plain");
    let request = Execute::new(id, Command::Argv(vec![path.as_bytes().to_vec()]));
    let done = sandbox.execute(request, &()).await.doing("running true")?;
    match done.end {
        End::Exited(0) => Ok(()),
        other => Err(Error::Astray(format!("`true` ended with {other:?}"))),
    }
}

async fn write(sandbox: &dyn Sandbox, path: String, bytes: usize) -> Outcome<()> {
    let id = ExecId::new(path.replace('/', "-")).expect("a word and digits are plain");
    let contents = vec![b'x'; bytes];
    let (mode, executable, precondition) = (WriteMode::Replace, None, Precondition::None);
    let op =
        FileOp::Write { id, path, contents, mode, executable, modified_ns: None, precondition };
    sandbox.files(op).await.map(drop).doing("writing a file")
}

async fn read_4k(sandbox: &dyn Sandbox) -> Outcome<()> {
    let op = FileOp::Read { path: "file-0".to_owned(), offset: 0, bytes_max: 1 << 20 };
    match sandbox.files(op).await.doing("reading a file")? {
        FileReply::Bytes { bytes, .. } if bytes.len() == 4096 => Ok(()),
        other => Err(Error::Astray(format!("the file has {other:?}"))),
    }
}

impl Ours {
    pub(super) async fn open(home: &Home) -> Outcome<Self> {
        let opened = BenchBackend::new(home, "native").await?;
        // The spawner starts at the first request, which is not what is measured.
        let first = name("first");
        opened.native.create(&first, &CreateSpec::default()).await.doing("making a sandbox")?;
        opened.native.destroy(&first).await.doing("destroying a sandbox")?;
        Ok(Self(opened))
    }

    /// One sample of each figure.
    pub(super) async fn round(&mut self, round: usize, samples: &mut Samples) -> Outcome<()> {
        let (native, spec) = (&self.0.native, CreateSpec::default());
        let id = name(&format!("s{round}"));
        let create = async { native.create(&id, &spec).await.doing("making a sandbox") };
        let sandbox = samples.time("native/create", create).await?;
        for file in 0..sizes::SANDBOX_FILES {
            write(&*sandbox, format!("file-{file}"), 4096).await?;
        }
        for time in 0..sizes::SANDBOX_EXECS {
            let id = format!("e{time}");
            samples.time("native/exec_true", run_true(&*sandbox, &id)).await?;
            samples.time("native/read_4k", read_4k(&*sandbox)).await?;
        }
        let freeze = async { native.suspend(&id, Suspend::Frozen).await.doing("freezing") };
        samples.time("native/freeze", freeze).await?;
        let thaw = async { native.thaw(&id).await.doing("thawing") };
        samples.time("native/thaw", thaw).await?;
        let suspend = async { native.suspend(&id, Suspend::Cold).await.doing("suspending") };
        samples.time("native/suspend_cold", suspend).await?;
        let resume = async {
            let sandbox = native.create(&id, &spec).await.doing("resuming a sandbox")?;
            run_true(&*sandbox, "resumed").await
        };
        samples.time("native/cold_resume_exec", resume).await?;
        self.keep_and_fork(round, samples).await?;
        let destroy = async { self.0.native.destroy(&id).await.doing("destroying a sandbox") };
        samples.time("native/destroy", destroy).await
    }

    async fn keep_and_fork(&self, round: usize, samples: &mut Samples) -> Outcome<()> {
        let native = &self.0.native;
        let id = name(&format!("s{round}"));
        let kept = SnapshotId::new(format!("k{round}")).expect("a letter and digits are plain");
        let snapshots = native.snapshots().doing("finding the snapshots")?;
        let take = async { snapshots.take(&id, &kept).await.doing("taking a snapshot") };
        samples.time("native/snapshot", take).await?;
        let forked = name(&format!("f{round}"));
        let spec =
            CreateSpec { origin: DiskOrigin::Snapshot(kept.clone()), ..CreateSpec::default() };
        let fork = async { native.create(&forked, &spec).await.doing("forking a sandbox") };
        let sandbox = samples.time("native/fork", fork).await?;
        read_4k(&*sandbox).await?;
        native.destroy(&forked).await.doing("destroying a fork")?;
        snapshots.remove(&kept).await.doing("removing a snapshot")
    }

    pub(super) async fn close(self) -> Outcome<()> {
        self.0.close().await
    }
}
