//! A living sandbox over its link.

use std::sync::Arc;

use async_trait::async_trait;
use outrigger_sandbox::wire::{Ask, Reply, Stream};
use outrigger_sandbox::{
    Error, ExecId, Execute, Executed, FileOp, FileReply, Generation, Output, OutputSink, Sandbox,
    SandboxId,
};

use super::link::Link;

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

    async fn kill(&self, id: &ExecId) -> Result<(), Error> {
        match self.link.ask(Ask::Kill(id.clone())).await?.next().await? {
            Reply::Killed(result) => result,
            Reply::Output { .. } | Reply::Executed(_) | Reply::Files(_) => Err(astray()),
        }
    }

    async fn files(&self, op: FileOp) -> Result<FileReply, Error> {
        match self.link.ask(Ask::Files(op)).await?.next().await? {
            Reply::Files(result) => result,
            Reply::Output { .. } | Reply::Executed(_) | Reply::Killed(_) => Err(astray()),
        }
    }
}
