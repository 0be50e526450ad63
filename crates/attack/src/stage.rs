//! Where attacks are made: sandboxes with small limits, with the evil program in them.
//!
//! Owns the making and destroying of sandboxes, so that none is left whatever an
//! attack comes to, and short ways to ask one for something.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use outrigger_sandbox::{
    Backend, Command, CreateSpec, End, Error, ExecId, ExecOutcome, Execute, FileOp, FileReply,
    Lifetime, Precondition, Sandbox, SandboxId, WriteMode, limits as door,
};
use serde::Deserialize;

use crate::limits;
use crate::target::{Images, Target};

/// Where the evil program is put.
pub(crate) const EVIL: &str = "/workspace/evil";

/// How much of an attack that could go on for ever is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Enough to see a sandbox that does not hold at all: for every change.
    Fast,
    /// Enough to lose rare races too.
    Whole,
}

/// A backend under attack.
#[derive(Debug)]
pub struct Stage {
    target: Target,
    scale: Scale,
    made: Mutex<BTreeSet<SandboxId>>,
    next: AtomicU64,
}

/// A sandbox with the evil program in it.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    pub(crate) stage: Arc<Stage>,
    pub(crate) id: SandboxId,
    pub(crate) spec: CreateSpec,
    pub(crate) sandbox: Arc<dyn Sandbox>,
}

/// What a command of the evil program said, and how it ended.
#[derive(Debug)]
pub(crate) struct GuestReport {
    /// Attempt and outcome.
    pub(crate) lines: BTreeMap<String, String>,
    /// Its end in a word or two.
    pub(crate) end: String,
}

/// A line of the evil program.
#[derive(Debug, Deserialize)]
struct Line {
    probe: String,
    saw: String,
}

impl Stage {
    /// A stage on a backend.
    #[must_use]
    pub fn new(target: Target, scale: Scale) -> Self {
        Self { target, scale, made: Mutex::default(), next: AtomicU64::new(0) }
    }

    /// The backend itself.
    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.target.backend
    }

    /// Where it takes images.
    pub(crate) fn images(&self) -> &dyn Images {
        &*self.target.images
    }

    /// All of it.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// The one or the other.
    pub(crate) fn scaled<T>(&self, fast: T, whole: T) -> T {
        match self.scale {
            Scale::Fast => fast,
            Scale::Whole => whole,
        }
    }

    /// An id that nothing else here has.
    pub(crate) fn exec_id(&self) -> ExecId {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        ExecId::new(format!("a{number}")).expect("letters and digits")
    }

    /// A new sandbox with small limits.
    pub(crate) async fn room(
        self: &Arc<Self>,
        what: &str,
        adjust: impl FnOnce(&mut CreateSpec),
    ) -> Result<Room, String> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("attack-{what}-{}-{number}", std::process::id());
        let id = SandboxId::new(name).map_err(|error| error.to_string())?;
        let mut spec = CreateSpec {
            memory_bytes_max: limits::MEMORY_BYTES_MAX,
            pids_max: limits::PIDS_MAX,
            cpu_millis_max: limits::CPU_MILLIS_MAX,
            disk_bytes_max: limits::DISK_BYTES_MAX,
            disk_inodes_max: limits::DISK_INODES_MAX,
            // Gone by itself where whoever made it was interrupted.
            lifetime: Lifetime { idle_ms_max: None, age_ms_max: Some(limits::AGE_MS_MAX) },
            ..CreateSpec::default()
        };
        adjust(&mut spec);
        self.room_of(id, spec).await
    }

    /// A sandbox of that name, new or not.
    pub(crate) async fn room_of(
        self: &Arc<Self>,
        id: SandboxId,
        spec: CreateSpec,
    ) -> Result<Room, String> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        let made = self.backend().create(&id, &spec).await;
        let sandbox = made.map_err(|error| format!("create: {error}"))?;
        let room = Room { stage: Arc::clone(self), id, spec, sandbox };
        room.arm().await?;
        Ok(room)
    }

    /// Destroys what is left of all sandboxes.
    pub(crate) async fn clear(&self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        for id in made {
            // It was attacked: that it does not go is told by the row that made it.
            drop(self.backend().destroy(&id).await);
        }
    }
}

impl Room {
    /// Puts the evil program in, by file operations.
    async fn arm(&self) -> Result<(), String> {
        let piece = usize::try_from(door::FILE_CHUNK_BYTES_MAX).unwrap_or(usize::MAX);
        for (index, contents) in outrigger_evil::PROGRAM.chunks(piece).enumerate() {
            let mode = if index == 0 { WriteMode::Replace } else { WriteMode::Append };
            let op = FileOp::Write {
                id: self.stage.exec_id(),
                path: EVIL.to_owned(),
                contents: contents.to_vec(),
                mode,
                executable: Some(true),
                modified_ns: None,
                precondition: Precondition::None,
            };
            self.sandbox.files(op).await.map_err(|error| format!("put evil in: {error}"))?;
        }
        Ok(())
    }

    /// A request for any program.
    pub(crate) fn request(&self, words: &[&str]) -> Execute {
        let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        Execute::new(self.stage.exec_id(), Command::Argv(words))
    }

    /// Runs the evil program.
    pub(crate) async fn evil(
        &self,
        words: &[&str],
        adjust: impl FnOnce(&mut Execute),
    ) -> Result<GuestReport, String> {
        let words: Vec<&str> = [EVIL].iter().chain(words).copied().collect();
        let mut request = self.request(&words);
        adjust(&mut request);
        let done = self.sandbox.execute(request, &()).await;
        let executed = done.map_err(|error| format!("execute {}: {error}", words.join(" ")))?;
        Ok(GuestReport { lines: lines(&executed.stdout), end: end(&executed) })
    }

    /// Runs the evil program and gives its one outcome.
    pub(crate) async fn word(&self, words: &[&str]) -> Result<String, String> {
        let said = self.evil(words, |_| {}).await?;
        said.lines.into_values().next().ok_or(format!("it said nothing and {}", said.end))
    }

    /// Performs a file operation; the outcome in a word, its reply where there is one.
    pub(crate) async fn files(&self, op: FileOp) -> (String, Option<FileReply>) {
        match self.sandbox.files(op).await {
            Ok(reply) => ("done".to_owned(), Some(reply)),
            Err(error) => (refusal(&error), None),
        }
    }

    /// Whether it still serves, after whatever it went through.
    pub(crate) async fn alive(&self) -> &'static str {
        if self.evil(&["bomb", "nothing"], |_| {}).await.is_ok_and(|said| said.end == "ended") {
            return "alive";
        }
        let Ok(sandbox) = self.stage.backend().create(&self.id, &self.spec).await else {
            return "lost";
        };
        let again = Room { sandbox, ..self.clone() };
        match again.evil(&["bomb", "nothing"], |_| {}).await {
            Ok(said) if said.end == "ended" => "restarted",
            Ok(_) | Err(_) => "lost",
        }
    }

    /// Destroys it.
    pub(crate) async fn end(self) -> Result<(), String> {
        self.stage.made.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
        self.stage.backend().destroy(&self.id).await.map_err(|error| format!("destroy: {error}"))
    }
}

/// What the evil program printed.
pub(crate) fn lines(stdout: &[u8]) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(stdout);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.map(|line| (line.probe, line.saw)).collect()
}

/// How a command ended, in a word or two.
fn end(executed: &ExecOutcome) -> String {
    match executed.end {
        End::Exited(0) => "ended".to_owned(),
        End::Exited(code) => format!("exit {code}"),
        End::Signalled(signal) => format!("signal {signal}"),
        End::OutOfMemory => "out of memory".to_owned(),
        End::Deadline => "deadline".to_owned(),
        End::Killed => "killed".to_owned(),
        End::DiskFull => "disk full".to_owned(),
    }
}

/// Which error it is, in a word.
pub(crate) fn refusal(error: &Error) -> String {
    match error {
        Error::File(error) => error.kind.as_str(),
        Error::Invalid(_) => "invalid",
        Error::CannotStart { .. } => "cannot_start",
        Error::Forgotten { .. } => "forgotten",
        Error::Lost { .. } => "lost",
        Error::Busy { .. } => "busy",
        Error::Absent { .. } => "absent",
        Error::Altered { .. } => "altered",
        Error::Unsupported { .. } => "unsupported",
        Error::Unavailable { .. } => "unavailable",
        Error::Backend(_) => "backend",
    }
    .to_owned()
}

/// The stage, as attacks are handed it.
pub(crate) type OnStage = Arc<Stage>;

/// Memory that this process holds, in bytes; see proc_pid_statm(5).
pub(crate) fn own_memory() -> Result<u64, String> {
    memory_of("self")
}

/// Memory that a process holds, in bytes, by what stands for it in `/proc`.
pub(crate) fn memory_of(process: &str) -> Result<u64, String> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status"));
    let text = text.map_err(|error| error.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    number.map(|kibibytes| kibibytes << 10).ok_or(format!("no VmRSS of {process}"))
}
