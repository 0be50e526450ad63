//! A living sandbox over its link.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outrigger_sandbox::wire::{Ask, Reply, Stream};
use outrigger_sandbox::{
    Error, ExecId, Execute, Executed, FileOp, FileReply, Generation, Output, OutputSink, Sandbox,
    SandboxId, limits as door,
};

use super::link::Link;
use crate::limits;

/// See the module.
#[derive(Debug)]
pub(super) struct Living {
    pub(super) id: SandboxId,
    pub(super) generation: Generation,
    pub(super) link: Arc<Link>,
}

/// A guest that answers another question than was asked is broken.
fn astray() -> Error {
    Error::Backend("the guest's answer is not one to this request".to_owned())
}

#[async_trait]
impl Sandbox for Living {
    fn id(&self) -> &SandboxId {
        &self.id
    }

    fn generation(&self) -> &Generation {
        &self.generation
    }

    fn is_alive(&self) -> bool {
        self.link.is_open()
    }

    async fn execute(&self, request: Execute, sink: &dyn OutputSink) -> Result<Executed, Error> {
        let most = request.deadline_ms.saturating_add(door::KILL_MS_MAX + door::DRAIN_MS_MAX);
        in_time(most, self.converse(request, sink)).await
    }

    async fn kill(&self, id: &ExecId) -> Result<(), Error> {
        match in_time(door::WALK_MS_MAX, self.answer(Ask::Kill(id.clone()))).await? {
            Reply::Killed(result) => result,
            Reply::Output { .. } | Reply::Executed(_) | Reply::Files(_) => Err(astray()),
        }
    }

    async fn files(&self, op: FileOp) -> Result<FileReply, Error> {
        match in_time(door::WALK_MS_MAX, self.answer(Ask::Files(op))).await? {
            Reply::Files(result) => result,
            Reply::Output { .. } | Reply::Executed(_) | Reply::Killed(_) => Err(astray()),
        }
    }
}

/// Waits for a guest that has this long and some slack. One that takes longer does
/// not keep its own limits any more.
async fn in_time<T>(
    most_ms: u64,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let limit = Duration::from_millis(most_ms.saturating_add(limits::GUEST_SLACK_MS));
    let late = || Error::Lost { reason: "its guest did not answer in time".to_owned() };
    tokio::time::timeout(limit, answer).await.map_err(|_| late())?
}

impl Living {
    /// The one answer to a request without output.
    async fn answer(&self, ask: Ask) -> Result<Reply, Error> {
        self.link.ask(ask).await?.next().await
    }

    async fn converse(&self, request: Execute, sink: &dyn OutputSink) -> Result<Executed, Error> {
        let mut pending = self.link.ask(Ask::Execute(request)).await?;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        loop {
            match pending.next().await? {
                Reply::Output { stream: Stream::Stdout, bytes } => {
                    sink.output(Output::Stdout(&bytes));
                    stdout.extend_from_slice(&bytes);
                }
                Reply::Output { stream: Stream::Stderr, bytes } => {
                    sink.output(Output::Stderr(&bytes));
                    stderr.extend_from_slice(&bytes);
                }
                Reply::Executed(result) => {
                    return result.map(|executed| Executed { stdout, stderr, ..executed });
                }
                Reply::Killed(_) | Reply::Files(_) => return Err(astray()),
            }
        }
    }
}
