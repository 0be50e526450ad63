//! The port of a living sandbox, over its link.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outrigger_sandbox::wire::{GuestReply, GuestRequest, Stream};
use outrigger_sandbox::{
    CreateOutcome, Error, ExecId, ExecOutcome, Execute, FileOp, FileReply, Generation, Input,
    Output, OutputSink, Sandbox, SandboxId, limits,
};

use crate::limits::GUEST_SLACK_MS;
use crate::link::Link;

/// A living sandbox, spoken to over its link.
#[derive(Debug)]
pub struct RemoteSandbox {
    id: SandboxId,
    outcome: CreateOutcome,
    link: Arc<Link>,
}

/// A guest that answers another question than was asked is broken.
fn astray() -> Error {
    Error::Backend("the guest's answer is not one to this request".to_owned())
}

#[async_trait]
impl Sandbox for RemoteSandbox {
    fn id(&self) -> &SandboxId {
        &self.id
    }

    fn generation(&self) -> &Generation {
        self.link.generation()
    }

    fn outcome(&self) -> CreateOutcome {
        self.outcome
    }

    fn is_alive(&self) -> bool {
        self.link.is_open()
    }

    async fn execute(&self, request: Execute, sink: &dyn OutputSink) -> Result<ExecOutcome, Error> {
        let most = request.deadline_ms.saturating_add(limits::KILL_MS_MAX + limits::DRAIN_MS_MAX);
        in_time(most, self.converse(request, sink)).await
    }

    async fn kill(&self, id: &ExecId) -> Result<(), Error> {
        match self.answer(GuestRequest::Kill(id.clone())).await? {
            GuestReply::Killed(result) => result,
            _ => Err(astray()),
        }
    }

    async fn input(&self, id: &ExecId, input: Input) -> Result<(), Error> {
        if let Input::Bytes(bytes) = &input
            && bytes.len() > limits::INPUT_BYTES_MAX
        {
            let (given, max) = (bytes.len(), limits::INPUT_BYTES_MAX);
            return Err(Error::Invalid(format!("an input of {given} bytes; {max} is the most")));
        }
        // A terminal takes what its command reads, whenever that is: the one request
        // that may wait for as long as its command runs.
        match self.link.ask(GuestRequest::Input { id: id.clone(), input }).await?.next().await? {
            GuestReply::Taken(result) => result,
            _ => Err(astray()),
        }
    }

    async fn files(&self, op: FileOp) -> Result<FileReply, Error> {
        match self.answer(GuestRequest::Files(op)).await? {
            GuestReply::Files(result) => result,
            _ => Err(astray()),
        }
    }
}

/// Waits for a guest that has this long and some slack. One that takes longer does
/// not keep its own limits any more.
async fn in_time<T>(
    most_ms: u64,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let limit = Duration::from_millis(most_ms.saturating_add(GUEST_SLACK_MS));
    let late = || Error::Lost { reason: "its guest did not answer in time".to_owned() };
    tokio::time::timeout(limit, answer).await.map_err(|_| late())?
}

impl RemoteSandbox {
    /// The sandbox behind a link.
    #[must_use]
    pub fn new(id: SandboxId, outcome: CreateOutcome, link: Arc<Link>) -> Self {
        Self { id, outcome, link }
    }

    /// Stops every process that commands left behind, until the next command.
    ///
    /// # Errors
    /// [`Error::Busy`] while a command runs; [`Error::Unsupported`] where the guest
    /// has no means for it.
    pub async fn freeze(&self) -> Result<(), Error> {
        match self.answer(GuestRequest::Freeze).await? {
            GuestReply::Frozen(result) => result,
            _ => Err(astray()),
        }
    }

    /// Lets them go on. Those that were not stopped are fine.
    ///
    /// # Errors
    /// [`Error::Lost`] if the connection ended.
    pub async fn thaw(&self) -> Result<(), Error> {
        match self.answer(GuestRequest::Thaw).await? {
            GuestReply::Thawed(result) => result,
            _ => Err(astray()),
        }
    }

    /// The one answer to a request without output.
    async fn answer(&self, ask: GuestRequest) -> Result<GuestReply, Error> {
        let asked = async { self.link.ask(ask).await?.next().await };
        in_time(limits::WALK_MS_MAX, asked).await
    }

    async fn converse(
        &self,
        request: Execute,
        sink: &dyn OutputSink,
    ) -> Result<ExecOutcome, Error> {
        let mut pending = self.link.ask(GuestRequest::Execute(request)).await?;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        loop {
            match pending.next().await? {
                GuestReply::Output { stream: Stream::Stdout, bytes } => {
                    sink.output(Output::Stdout(&bytes));
                    stdout.extend_from_slice(&bytes);
                }
                GuestReply::Output { stream: Stream::Stderr, bytes } => {
                    sink.output(Output::Stderr(&bytes));
                    stderr.extend_from_slice(&bytes);
                }
                GuestReply::Executed(result) => {
                    return result.map(|executed| ExecOutcome { stdout, stderr, ..executed });
                }
                _ => return Err(astray()),
            }
        }
    }
}
