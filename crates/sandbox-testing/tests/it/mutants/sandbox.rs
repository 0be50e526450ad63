//! A sandbox with a fault: requests are spoilt on their way in, answers on their way out.

use async_trait::async_trait;
use outrigger_sandbox::{
    Backend, Command, CreateOutcome, End, Error, ExecId, ExecOutcome, Execute, FileErrorKind,
    FileOp, FileReply, Generation, Input, Occurrences, OutputSink, Precondition, Sandbox,
    SandboxId, Streams,
};
use outrigger_sandbox_testing::fake::Fake;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Fault;

/// A sandbox that passes everything on to a sound one, but for its fault.
#[derive(Debug)]
pub(super) struct FaultySandbox {
    pub(super) fake: Fake,
    pub(super) sound: Arc<dyn Sandbox>,
    pub(super) generation: Generation,
    pub(super) fault: Fault,
    /// How often it went cold before this handle was given.
    pub(super) colds: u64,
    pub(super) repeats: AtomicU64,
}

impl FaultySandbox {
    /// Another id at each call.
    fn fresh(&self, id: &ExecId) -> ExecId {
        let number = self.repeats.fetch_add(1, Ordering::Relaxed);
        let name: String = id.as_str().chars().take(100).collect();
        ExecId::new(format!("{name}.{number}")).expect("a valid id made longer")
    }

    /// Another id in each time between two cold ones.
    fn forgotten(&self, id: &ExecId) -> ExecId {
        let name: String = id.as_str().chars().take(100).collect();
        ExecId::new(format!("{name}.cold{}", self.colds)).expect("a valid id made longer")
    }

    fn spoil_request(&self, request: &mut Execute) {
        match self.fault {
            Fault::DropsTheTableOverCold => request.id = self.forgotten(&request.id),
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

    fn spoil_outcome(&self, done: &mut ExecOutcome) {
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
            (Fault::DropsTheTableOverCold, FileOp::Write { id, .. }) => *id = self.forgotten(id),
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
        &self.generation
    }

    fn outcome(&self) -> CreateOutcome {
        if self.fault == Fault::SaysAttachedAlways {
            CreateOutcome::Attached
        } else {
            self.sound.outcome()
        }
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
    ) -> Result<ExecOutcome, Error> {
        self.spoil_request(&mut request);
        let mut done = match self.sound.execute(request.clone(), sink).await {
            Err(Error::Lost { .. }) if self.fault == Fault::OldHandlesLiveOn => {
                let again = self.fake.create(self.sound.id(), &Fake::spec()).await?;
                again.execute(request, sink).await?
            }
            done => done?,
        };
        self.spoil_outcome(&mut done);
        Ok(done)
    }

    async fn kill(&self, id: &ExecId) -> Result<(), Error> {
        if self.fault == Fault::IgnoresKill { Ok(()) } else { self.sound.kill(id).await }
    }

    async fn files(&self, mut op: FileOp) -> Result<FileReply, Error> {
        self.spoil_operation(&mut op);
        if self.fault == Fault::FilesThaw {
            let thaw = Execute::new(
                self.fresh(&ExecId::new("thaw").expect("a valid id")),
                Command::Shell("true".to_owned()),
            );
            self.sound.execute(thaw, &()).await?;
        }
        let mut reply = self.sound.files(op).await;
        self.spoil_reply(&mut reply);
        reply
    }
}
