//! The suite sees faults: a backend with one of them fails it.

use async_trait::async_trait;
use outrigger_sandbox::fake::Fake;
use outrigger_sandbox::{
    Backend, Began, Capabilities, End, Error, ExecId, Execute, Executed, FileErrorKind, FileOp,
    FileReply, Generation, Input, Listed, Occurrences, OutputSink, Precondition, Sandbox,
    SandboxId, Snapshots, Spec, Streams, Suspend, conformance,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a backend does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    RunsRepeatedIds,
    PerformsRepeatedIds,
    IgnoresKill,
    LosesTheLastByte,
    CountsNoDroppedBytes,
    SplitsMergedStreams,
    InventsAnExitCode,
    IgnoresDeadlines,
    IgnoresStdin,
    IgnoresVariables,
    IgnoresDirectories,
    SpillsNothing,
    EditsEveryPlace,
    IgnoresPreconditions,
    SaysIoForEveryError,
    ReversesLists,
    NeverTruncates,
    DestroysNothing,
    ListsNothing,
    FindsNothing,
}

/// Each fault with cases that must notice it.
const FAULTS: [(Fault, &str); 20] = [
    (Fault::RunsRepeatedIds, "ids/"),
    (Fault::PerformsRepeatedIds, "write/repeated"),
    (Fault::IgnoresKill, "ids/kill"),
    (Fault::LosesTheLastByte, "exec/"),
    (Fault::CountsNoDroppedBytes, "output/cap"),
    (Fault::SplitsMergedStreams, "output/streams"),
    (Fault::InventsAnExitCode, "ids/kill"),
    (Fault::IgnoresDeadlines, "limits/deadline"),
    (Fault::IgnoresStdin, "exec/stdin"),
    (Fault::IgnoresVariables, "exec/environment"),
    (Fault::IgnoresDirectories, "exec/directory"),
    (Fault::SpillsNothing, "output/spilled"),
    (Fault::EditsEveryPlace, "errors/edit"),
    (Fault::IgnoresPreconditions, "errors/precondition"),
    (Fault::SaysIoForEveryError, "errors/"),
    (Fault::ReversesLists, "read/list"),
    (Fault::NeverTruncates, "search/glob"),
    (Fault::DestroysNothing, "lifecycle/destroyed"),
    (Fault::ListsNothing, "lifecycle/"),
    (Fault::FindsNothing, "lifecycle/"),
];

#[derive(Debug)]
struct Faulty {
    fake: Fake,
    fault: Fault,
}

#[derive(Debug)]
struct FaultySandbox {
    sound: Arc<dyn Sandbox>,
    fault: Fault,
    repeats: AtomicU64,
}

impl Faulty {
    fn wrap(&self, sound: Arc<dyn Sandbox>) -> Arc<dyn Sandbox> {
        Arc::new(FaultySandbox { sound, fault: self.fault, repeats: AtomicU64::new(0) })
    }
}

#[async_trait]
impl Backend for Faulty {
    fn capabilities(&self) -> &Capabilities {
        self.fake.capabilities()
    }

    async fn create(&self, id: &SandboxId, spec: &Spec) -> Result<Arc<dyn Sandbox>, Error> {
        Ok(self.wrap(self.fake.create(id, spec).await?))
    }

    async fn find(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>, Error> {
        let found = self.fake.find(id).await?;
        Ok(found.filter(|_| self.fault != Fault::FindsNothing).map(|sound| self.wrap(sound)))
    }

    async fn suspend(&self, id: &SandboxId, how: Suspend) -> Result<(), Error> {
        self.fake.suspend(id, how).await
    }

    fn snapshots(&self) -> Result<&dyn Snapshots, Error> {
        self.fake.snapshots()
    }

    async fn list(&self) -> Result<Vec<Listed>, Error> {
        if self.fault == Fault::ListsNothing { Ok(Vec::new()) } else { Backend::list(&self.fake).await }
    }

    async fn destroy(&self, id: &SandboxId) -> Result<(), Error> {
        if self.fault == Fault::DestroysNothing { Ok(()) } else { self.fake.destroy(id).await }
    }
}

impl FaultySandbox {
    /// Another id at each call.
    fn fresh(&self, id: &ExecId) -> ExecId {
        let number = self.repeats.fetch_add(1, Ordering::Relaxed);
        let name: String = id.as_str().chars().take(100).collect();
        ExecId::new(format!("{name}.{number}")).expect("a valid id made longer")
    }

    fn spoil_request(&self, request: &mut Execute) {
        match self.fault {
            Fault::RunsRepeatedIds => request.id = self.fresh(&request.id),
            Fault::SplitsMergedStreams => request.streams = Streams::Separate,
            Fault::IgnoresDeadlines => request.deadline_ms = request.deadline_ms.max(3_000_000),
            Fault::IgnoresStdin => request.stdin.clear(),
            Fault::IgnoresVariables => request.env.clear(),
            Fault::IgnoresDirectories => request.cwd = None,
            Fault::SpillsNothing => request.spill_after_bytes = None,
            _ => {}
        }
    }

    fn spoil_outcome(&self, done: &mut Executed) {
        match (self.fault, done.end) {
            (Fault::LosesTheLastByte, _) => drop(done.stdout.pop()),
            (Fault::CountsNoDroppedBytes, _) => done.stdout_dropped_bytes = 0,
            (Fault::InventsAnExitCode, End::Killed | End::Deadline | End::Signalled(_)) => {
                done.end = End::Exited(1);
            }
            _ => {}
        }
    }

    fn spoil_operation(&self, op: &mut FileOp) {
        match (self.fault, op) {
            (Fault::PerformsRepeatedIds, FileOp::Write { id, .. } | FileOp::Edit { id, .. }) => {
                *id = self.fresh(id);
            }
            (Fault::EditsEveryPlace, FileOp::Edit { occurrences, .. }) => {
                *occurrences = Occurrences::All;
            }
            (Fault::IgnoresPreconditions, FileOp::Write { precondition, .. }) => {
                *precondition = Precondition::None;
            }
            _ => {}
        }
    }

    fn spoil_reply(&self, reply: &mut Result<FileReply, Error>) {
        match (self.fault, reply) {
            (Fault::SaysIoForEveryError, Err(Error::File(error))) => {
                error.kind = FileErrorKind::Io;
            }
            (Fault::ReversesLists, Ok(FileReply::Entries { entries, .. })) => entries.reverse(),
            (
                Fault::NeverTruncates,
                Ok(FileReply::Entries { truncated, .. } | FileReply::Paths { truncated, .. }),
            ) => *truncated = false,
            _ => {}
        }
    }
}

#[async_trait]
impl Sandbox for FaultySandbox {
    fn id(&self) -> &SandboxId {
        self.sound.id()
    }

    fn generation(&self) -> &Generation {
        self.sound.generation()
    }

    fn began(&self) -> Began {
        self.sound.began()
    }

    fn is_alive(&self) -> bool {
        self.sound.is_alive()
    }

    async fn input(&self, id: &ExecId, input: Input) -> Result<(), Error> {
        self.sound.input(id, input).await
    }

    async fn execute(
        &self,
        mut request: Execute,
        sink: &dyn OutputSink,
    ) -> Result<Executed, Error> {
        self.spoil_request(&mut request);
        let mut done = self.sound.execute(request, sink).await?;
        self.spoil_outcome(&mut done);
        Ok(done)
    }

    async fn kill(&self, id: &ExecId) -> Result<(), Error> {
        if self.fault == Fault::IgnoresKill { Ok(()) } else { self.sound.kill(id).await }
    }

    async fn files(&self, mut op: FileOp) -> Result<FileReply, Error> {
        self.spoil_operation(&mut op);
        let mut reply = self.sound.files(op).await;
        self.spoil_reply(&mut reply);
        reply
    }
}

#[tokio::test(start_paused = true)]
async fn every_fault_fails_the_suite() {
    for (fault, cases) in FAULTS {
        let backend = Arc::new(Faulty { fake: Fake::new(), fault });
        let report = conformance::run(backend, Some(cases)).await;
        assert!(report.failed().next().is_some(), "{fault:?} passes {cases}");
    }
}
