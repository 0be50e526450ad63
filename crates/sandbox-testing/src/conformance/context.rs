//! What the cases are made with: short ways to ask the sandbox for something, and
//! words for what was not as it must be.

use std::fmt::{self, Debug, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

use crate::FakeTrees;
use crate::limits::SHOWN_CHARS_MAX;
use outrigger_sandbox::{
    Backend, Command, CreateSpec, Error, ExecId, ExecOutcome, Execute, FileErrorKind, FileOp,
    FileReply, Networks, Occurrences, Output, OutputSink, Precondition, Sandbox, SandboxId,
    WriteMode,
};

/// How long a case waits for something that must happen soon. What must not be waited
/// for instead takes longer: commands of the cases sleep for 50 s.
const SOON: Duration = Duration::from_secs(40);

/// Nothing, or what was not as it must be.
pub(super) type Outcome = Result<(), String>;

/// A backend and a fresh sandbox of it.
#[derive(Debug, Clone)]
pub(super) struct Context {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) sandbox: Arc<dyn Sandbox>,
    pub(super) spec: CreateSpec,
    pub(super) trees: Option<Arc<FakeTrees>>,
    pub(super) networks: Option<Arc<dyn Networks>>,
}

/// A valid exec id.
pub(super) fn id(name: &str) -> ExecId {
    ExecId::new(name).expect("the cases use plain names")
}

/// A request for the sandbox's shell.
pub(super) fn shell(name: &str, line: &str) -> Execute {
    Execute::new(id(name), Command::Shell(line.to_owned()))
}

/// A request for a program with arguments.
pub(super) fn argv(name: &str, words: &[&str]) -> Execute {
    let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    Execute::new(id(name), Command::Argv(words))
}

/// Compares two values, long ones shown in part.
pub(super) fn same<T: PartialEq + Debug>(what: &str, got: T, expected: T) -> Outcome {
    if got == expected {
        return Ok(());
    }
    Err(format!("{what}: got {}, expected {}", start(&got), start(&expected)))
}

/// How a value begins when it is shown. No more of it is written than that: with megabytes in
/// it the whole takes seconds.
pub(super) fn start(value: &impl Debug) -> String {
    struct Start {
        text: String,
        left: usize,
    }

    impl fmt::Write for Start {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.text.extend(text.chars().take(self.left));
            self.left = self.left.saturating_sub(text.chars().count());
            if self.left == 0 { Err(fmt::Error) } else { Ok(()) }
        }
    }

    let mut start = Start { text: String::new(), left: SHOWN_CHARS_MAX };
    // It ends with an error where it is cut.
    let _ = write!(start, "{value:?}");
    start.text
}

/// Demands that something holds.
pub(super) fn ensure(what: &str, holds: bool) -> Outcome {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

/// Waits for something that must happen soon.
pub(super) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> Result<T, String> {
    within(SOON, what, future).await
}

/// Waits for something for at most so long.
pub(super) async fn within<T>(
    limit: Duration,
    what: &str,
    future: impl Future<Output = T>,
) -> Result<T, String> {
    tokio::time::timeout(limit, future).await.map_err(|_| format!("{what}: it did not happen"))
}

/// Output as text, for comparisons.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A write with everything at its default.
pub(super) fn write_op(name: &str, path: &str, contents: &[u8], mode: WriteMode) -> FileOp {
    FileOp::Write {
        id: id(name),
        path: path.to_owned(),
        contents: contents.to_vec(),
        mode,
        executable: None,
        modified_ns: None,
        precondition: Precondition::None,
    }
}

/// An edit.
pub(super) fn edit_op(name: &str, path: &str, old: &str, new: &str, all: Occurrences) -> FileOp {
    FileOp::Edit {
        id: id(name),
        path: path.to_owned(),
        old: old.as_bytes().to_vec(),
        new: new.as_bytes().to_vec(),
        occurrences: all,
        precondition: Precondition::None,
    }
}

/// An edit of `two` in a file that must have been like that.
pub(super) fn expecting(name: &str, before: &[u8]) -> FileOp {
    FileOp::Edit {
        id: id(name),
        path: "f".to_owned(),
        old: if before == b"two" { b"o".to_vec() } else { b"changed".to_vec() },
        new: b"ice".to_vec(),
        occurrences: Occurrences::One,
        precondition: Precondition::Digest(outrigger_sandbox::text::digest(before)),
    }
}

/// A read of a file's first chunk.
pub(super) fn read_op(path: &str) -> FileOp {
    FileOp::Read {
        path: path.to_owned(),
        offset: 0,
        bytes_max: outrigger_sandbox::limits::FILE_CHUNK_BYTES_MAX,
    }
}

impl Context {
    /// Runs a request.
    pub(super) async fn run(&self, request: Execute) -> Result<ExecOutcome, String> {
        let done = self.sandbox.execute(request, &()).await;
        done.map_err(|error| format!("execute: {error}"))
    }

    /// Runs a line and gives its outcome.
    pub(super) async fn shell(&self, name: &str, line: &str) -> Result<ExecOutcome, String> {
        self.run(shell(name, line)).await
    }

    /// Runs a line that must print this and exit with 0.
    pub(super) async fn prints(&self, name: &str, line: &str, expected: &str) -> Outcome {
        let done = self.shell(name, line).await?;
        let got = (text(&done.stdout), text(&done.stderr), done.exit_code());
        same(line, got, (expected.to_owned(), String::new(), Some(0)))
    }

    /// Runs a request that must be refused.
    pub(super) async fn refused(&self, request: Execute) -> Result<Error, String> {
        match self.sandbox.execute(request, &()).await {
            Ok(done) => Err(format!("it ran: {:?}", done.end)),
            Err(error) => Ok(error),
        }
    }

    /// Performs a file operation.
    pub(super) async fn files(&self, op: FileOp) -> Result<FileReply, String> {
        let shown = start(&op);
        self.sandbox.files(op).await.map_err(|error| format!("{shown}: {error}"))
    }

    /// Writes a small file whatever is there.
    pub(super) async fn write(&self, name: &str, path: &str, contents: &[u8]) -> Outcome {
        self.files(write_op(name, path, contents, WriteMode::Replace)).await.map(drop)
    }

    /// The contents of a small file.
    pub(super) async fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match self.files(read_op(path)).await? {
            FileReply::Bytes { bytes, .. } => Ok(bytes),
            other => Err(format!("read {path}: answered {other:?}")),
        }
    }

    /// Demands a small file's contents.
    pub(super) async fn holds(&self, path: &str, expected: &[u8]) -> Outcome {
        same(path, text(&self.read(path).await?), text(expected))
    }

    /// Performs an operation that must fail with a typed error.
    pub(super) async fn fails(&self, op: FileOp, expected: FileErrorKind) -> Outcome {
        let shown = start(&op);
        match soon(&shown, self.sandbox.files(op)).await? {
            Err(Error::File(error)) if error.kind == expected => Ok(()),
            Err(error) => Err(format!("{shown}: got `{error}`, expected {expected}")),
            Ok(_) => Err(format!("{shown}: it was done, expected {expected}")),
        }
    }

    /// Another sandbox, named after this one; its case ends it with [`Context::end`].
    pub(super) async fn sibling(&self, suffix: &str) -> Result<Self, String> {
        let name = format!("{}-{suffix}", self.sandbox.id());
        let name = SandboxId::new(name).map_err(|error| error.to_string())?;
        self.backend.destroy(&name).await.map_err(|error| error.to_string())?;
        let made = self.backend.create(&name, &self.spec).await;
        let sandbox = made.map_err(|error| format!("create: {error}"))?;
        Ok(Self { sandbox, ..self.clone() })
    }

    /// Destroys the sandbox.
    pub(super) async fn end(&self) -> Outcome {
        let destroyed = self.backend.destroy(self.sandbox.id()).await;
        destroyed.map_err(|error| format!("destroy: {error}"))
    }

    /// Demands that there is nothing at a path.
    pub(super) async fn absent(&self, path: &str) -> Outcome {
        self.fails(FileOp::Stat { path: path.to_owned() }, FileErrorKind::FileNotFound).await
    }
}

/// Keeps what a command prints, and lets a case wait for it.
#[derive(Debug, Default)]
pub(super) struct Listener {
    heard: Mutex<(Vec<u8>, Vec<u8>)>,
    news: Notify,
}

impl Listener {
    /// What came so far, stdout and stderr.
    pub(super) fn heard(&self) -> (Vec<u8>, Vec<u8>) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until stdout contains something.
    pub(super) async fn hears(&self, wanted: &str) {
        loop {
            let news = self.news.notified();
            if text(&self.heard().0).contains(wanted) {
                return;
            }
            news.await;
        }
    }
}

impl OutputSink for Listener {
    fn output(&self, output: Output<'_>) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        match output {
            Output::Stdout(piece) => heard.0.extend_from_slice(piece),
            Output::Stderr(piece) => heard.1.extend_from_slice(piece),
        }
        drop(heard);
        self.news.notify_waiters();
    }
}
