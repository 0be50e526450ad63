//! A fake sandbox as its user holds it: a name and a life, looked up on each call.

use async_trait::async_trait;
use std::sync::Arc;
use tokio::time::{Instant, sleep_until};

use super::life::Life;
use super::run;
use super::sandbox::FakeSandbox;
use super::tree::Tree;
use super::world::{ExecStart, FakeState, World};
use outrigger_sandbox::{
    CreateOutcome, Error, ExecId, ExecOutcome, Execute, FileOp, FileReply, Generation, Input,
    OutputSink, Sandbox, SandboxId,
};

/// A sandbox as its user holds it.
#[derive(Debug)]
pub(super) struct Handle {
    shared: Arc<FakeState>,
    id: SandboxId,
    generation: Generation,
    colds: u64,
    outcome: CreateOutcome,
}

fn lost() -> Error {
    Error::Lost { reason: "the fake sandbox is gone".to_owned() }
}

impl Handle {
    /// A handle to what lives there, if it does.
    pub(super) fn new(
        shared: &Arc<FakeState>,
        id: &SandboxId,
        fake: &FakeSandbox,
        outcome: CreateOutcome,
    ) -> Option<Self> {
        let (generation, colds) = fake.handle()?;
        let (shared, id, generation) = (Arc::clone(shared), id.clone(), generation.clone());
        Some(Self { shared, id, generation, colds, outcome })
    }

    /// Acts on the place of the life that this handle stands for.
    fn at<T>(
        &self,
        act: impl FnOnce(&mut FakeSandbox, &mut Vec<ExecStart>) -> T,
    ) -> Result<T, Error> {
        let mut world = self.shared.world();
        let World { boxes, starts, .. } = &mut *world;
        let fake = boxes.get_mut(&self.id).ok_or_else(lost)?;
        fake.living(&self.generation, self.colds).ok_or_else(lost)?;
        fake.ask(Instant::now());
        Ok(act(fake, starts))
    }

    /// Acts on that life.
    fn with<T>(
        &self,
        act: impl FnOnce(&mut Life, &mut Tree, &mut Vec<ExecStart>) -> T,
    ) -> Result<T, Error> {
        self.at(|fake, starts| {
            let (life, tree) = fake.living_mut(&self.generation, self.colds).ok_or_else(lost)?;
            Ok(act(life, tree, starts))
        })?
    }

    fn start(&self, exec: &ExecId) -> ExecStart {
        let (sandbox, generation) = (self.id.clone(), self.generation.clone());
        ExecStart { sandbox, generation, exec: exec.clone() }
    }

    /// Gives a command's new output to the sink; its outcome, or when to look again.
    fn follow(
        &self,
        id: &ExecId,
        given: &mut usize,
        sink: &dyn OutputSink,
    ) -> Result<Result<ExecOutcome, Instant>, Error> {
        let expires = self.at(|fake, _| fake.expires())?;
        self.with(|life, _, _| {
            let run = match life.watch(id) {
                Ok(run) => run,
                Err(outcome) => return outcome.map(Ok),
            };
            for piece in run.pieces(*given) {
                sink.output(run::shown(piece));
                *given += 1;
            }
            match (run.outcome(), run.due()) {
                (Some(executed), _) => Ok(Ok(executed.clone())),
                (None, due) => {
                    let due = due.unwrap_or_else(Instant::now);
                    Ok(Err(expires.map_or(due, |expires| expires.min(due))))
                }
            }
        })?
    }
}

#[async_trait]
impl Sandbox for Handle {
    fn id(&self) -> &SandboxId {
        &self.id
    }

    fn generation(&self) -> &Generation {
        &self.generation
    }

    fn outcome(&self) -> CreateOutcome {
        self.outcome
    }

    fn is_alive(&self) -> bool {
        let world = self.shared.world();
        let fake = world.boxes.get(&self.id);
        fake.is_some_and(|fake| fake.living(&self.generation, self.colds).is_some())
    }

    async fn execute(&self, request: Execute, sink: &dyn OutputSink) -> Result<ExecOutcome, Error> {
        self.at(|fake, _| fake.thaw())?;
        self.with(|life, tree, starts| {
            let now = Instant::now();
            if life.start(&request, tree, now)? {
                starts.push(self.start(&request.id));
                life.advance(tree, now);
            }
            Ok::<_, Error>(())
        })??;
        let mut given = 0;
        loop {
            let changed = self.shared.changed.notified();
            match self.follow(&request.id, &mut given, sink)? {
                Ok(executed) => return Ok(executed),
                Err(due) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(due) => {}
                },
            }
        }
    }

    async fn kill(&self, id: &ExecId) -> Result<(), Error> {
        self.with(|life, tree, _| life.kill(id, tree, Instant::now()))?;
        self.shared.changed.notify_waiters();
        Ok(())
    }

    async fn input(&self, _: &ExecId, _: Input) -> Result<(), Error> {
        self.with(|_, _, _| ())?;
        Err(Error::Unsupported {
            what: "a terminal".to_owned(),
            reason: "the fake backend runs no real programs".to_owned(),
        })
    }

    async fn files(&self, op: FileOp) -> Result<FileReply, Error> {
        self.with(|life, tree, starts| {
            let id = op.id().cloned();
            let (reply, performed) = life.files(op, tree);
            if let (Some(id), true) = (id, performed) {
                starts.push(self.start(&id));
            }
            reply
        })?
    }
}
