//! The standard streams of a program inside as one stream of bytes.
//!
//! Owns the program at the inner end of a connection: the guest once more, which
//! carries bytes between its standard streams and the guest's socket. What it says on
//! standard error is dropped.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bollard::container::LogOutput;
use bollard::errors::Error as Failure;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use futures_util::Stream;
use outrigger_sandbox::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::container::{BRIDGE_USER, SOCKET};
use crate::engine::Engine;
use crate::{explain, guest};

type Frames = Pin<Box<dyn Stream<Item = Result<LogOutput, Failure>> + Send>>;

/// What comes from inside.
pub(crate) struct Reads {
    frames: Frames,
    /// What of the last frame is not read yet.
    rest: Option<(LogOutput, usize)>,
}

/// What goes inside.
pub(crate) type Writes = Pin<Box<dyn AsyncWrite + Send>>;

/// Starts the program and gives its streams. `None`: the container does not run.
pub(crate) async fn open(
    engine: &Engine,
    container: &str,
) -> Result<Option<(Reads, Writes)>, Error> {
    let config = ExecConfig {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(false),
        tty: Some(false),
        user: Some(BRIDGE_USER.to_owned()),
        cmd: Some([guest::PATH, "--bridge", SOCKET].map(str::to_owned).into()),
        ..Default::default()
    };
    let client = engine.client();
    let gone = |failure: &Failure| {
        matches!(explain::status(failure), Some(explain::NOT_FOUND | explain::CONFLICT))
    };
    let made = match client.create_exec(container, config).await {
        Ok(made) => made,
        Err(failure) if gone(&failure) => return Ok(None),
        Err(failure) => return Err(engine.failed("reaching into a container", &failure)),
    };
    let options = StartExecOptions { detach: false, tty: false, output_capacity: Some(64 << 10) };
    match client.start_exec(&made.id, Some(options)).await {
        Ok(StartExecResults::Attached { output, input }) => {
            Ok(Some((Reads { frames: output, rest: None }, input)))
        }
        Ok(StartExecResults::Detached) => {
            Err(Error::Backend("the daemon started a program without its streams".to_owned()))
        }
        Err(failure) if gone(&failure) => Ok(None),
        Err(failure) => Err(engine.failed("reaching into a container", &failure)),
    }
}

impl AsyncRead for Reads {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some((frame, read)) = &mut self.rest {
                let bytes = match &*frame {
                    LogOutput::StdOut { message } | LogOutput::Console { message } => &message[..],
                    LogOutput::StdErr { .. } | LogOutput::StdIn { .. } => &[],
                };
                let rest = &bytes[*read..];
                if !rest.is_empty() {
                    let length = rest.len().min(buffer.remaining());
                    buffer.put_slice(&rest[..length]);
                    *read += length;
                    return Poll::Ready(Ok(()));
                }
            }
            self.rest = match ready!(self.frames.as_mut().poll_next(context)) {
                Some(Ok(frame)) => Some((frame, 0)),
                Some(Err(failure)) => return Poll::Ready(Err(io::Error::other(failure))),
                None => return Poll::Ready(Ok(())),
            };
        }
    }
}
