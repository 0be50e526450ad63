//! Whether what rests is as it was left.
//!
//! Owns the comparison, and who makes it: small trees are looked at at once, large
//! ones by a process of their own, so that the spawner goes on serving.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use outrigger_sandbox::limits::HANDED_OVER_BYTES_MAX;
use outrigger_sandbox::{Error, SandboxId, each_piece};
use sha2::{Digest, Sha256};

use crate::limits;
use crate::spawner::event_loop::task::Task;
use crate::spawner::store::DiskDir;
use crate::spawner::tree::fingerprint::{self, Fingerprint};

/// One thing to compare.
#[derive(Debug, Clone)]
pub(crate) enum Check {
    /// A tree.
    Tree { tree: PathBuf, expected: Fingerprint },
    /// A file's contents.
    File { path: PathBuf, expected: [u8; 32] },
}

/// What is not as it was left, or that all is.
pub(crate) type Verdict = Result<(), PathBuf>;

/// The answer, or who is looking for it.
#[derive(Debug)]
pub(crate) enum Inspection<T> {
    Done(T),
    Task(Task),
}

/// How much the caller has time for.
#[derive(Debug, Clone, Copy)]
struct Budget {
    entries: u64,
    bytes: u64,
}

const INLINE: Budget =
    Budget { entries: limits::INLINE_ENTRIES_MAX, bytes: limits::INLINE_BYTES_MAX };
const WHOLE: Budget = Budget { entries: u64::MAX, bytes: HANDED_OVER_BYTES_MAX };

/// SHA-256 of a file. `None`: it is longer than that.
fn digest(path: &Path, bytes_max: u64) -> io::Result<Option<[u8; 32]>> {
    let mut file = fs::File::open(path)?;
    if file.metadata()?.len() > bytes_max {
        return Ok(None);
    }
    let mut hash = Sha256::new();
    each_piece(&mut file, |piece| hash.update(piece))?;
    Ok(Some(hash.finalize().into()))
}

impl Check {
    /// Whether it is as expected. `None`: it is more than the budget allows.
    fn holds(&self, budget: Budget) -> io::Result<Option<bool>> {
        let absent = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        };
        let held = match self {
            Self::Tree { tree, expected } => fingerprint::take(tree, budget.entries)
                .map(|found| found.map(|found| found == *expected)),
            Self::File { path, expected } => {
                digest(path, budget.bytes).map(|found| found.map(|found| found == *expected))
            }
        };
        match held {
            Err(error) if absent(&error) => Ok(Some(false)),
            held => held,
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Tree { tree: path, .. } | Self::File { path, .. } => path,
        }
    }
}

/// The number of the first check that fails. `None` inside: none does.
fn first_failing(checks: &[Check], budget: Budget) -> io::Result<Option<Option<usize>>> {
    for (number, check) in checks.iter().enumerate() {
        match check.holds(budget)? {
            Some(true) => {}
            Some(false) => return Ok(Some(Some(number))),
            None => return Ok(None),
        }
    }
    Ok(Some(None))
}

fn verdict(checks: &[Check], failing: Option<usize>) -> Verdict {
    match failing.map(|number| checks.get(number)) {
        None => Ok(()),
        Some(check) => Err(check.map(|check| check.path().to_owned()).unwrap_or_default()),
    }
}

/// Refuses a sandbox of which something is not as it was left.
pub(crate) fn as_left(id: &SandboxId, disk_dir: &DiskDir, verdict: Verdict) -> Result<(), Error> {
    let Err(path) = verdict else { return Ok(()) };
    let detail = if path.starts_with(disk_dir.path()) {
        "its tree is not as it was when it was suspended; it was left as it is: destroy the \
         sandbox, or make another one from a snapshot of it"
            .to_owned()
    } else {
        let layer = path.parent().and_then(|dir| dir.file_name()).unwrap_or_default();
        format!(
            "the layer `{}` that it stands on is not as it was sealed; what stands on it can \
             be destroyed and not started",
            layer.to_string_lossy()
        )
    };
    Err(Error::Altered { name: id.to_string(), detail })
}

/// Begins to compare.
pub(crate) fn begin(checks: &[Check]) -> io::Result<Inspection<Verdict>> {
    if let Some(failing) = first_failing(checks, INLINE)? {
        return Ok(Inspection::Done(verdict(checks, failing)));
    }
    let work = || {
        let failing = first_failing(checks, WHOLE)?
            .ok_or_else(|| io::Error::other("what a guest handed over has grown"))?;
        Ok(failing.map_or_else(Vec::new, |number| (number as u64).to_le_bytes().to_vec()))
    };
    Task::start(work).map(Inspection::Task)
}

/// What a task that compares told.
pub(crate) fn told(checks: &[Check], result: &[u8]) -> Verdict {
    let number = <[u8; 8]>::try_from(result).map(|bytes| u64::from_le_bytes(bytes) as usize);
    if result.is_empty() { Ok(()) } else { verdict(checks, Some(number.unwrap_or(usize::MAX))) }
}

/// What a disk looks like that nothing runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Measure {
    pub(crate) tree: Fingerprint,
    /// Of what its guest handed over, where it did.
    pub(crate) kept: Option<[u8; 32]>,
}

fn measure(tree: &Path, kept: Option<&Path>, budget: Budget) -> io::Result<Option<Measure>> {
    let Some(found) = fingerprint::take(tree, budget.entries)? else { return Ok(None) };
    let kept = match kept {
        None => None,
        Some(kept) => match digest(kept, budget.bytes)? {
            Some(found) => Some(found),
            None => return Ok(None),
        },
    };
    Ok(Some(Measure { tree: found, kept }))
}

impl Measure {
    /// Begins to look.
    pub(crate) fn begin(tree: &Path, kept: Option<&Path>) -> io::Result<Inspection<Self>> {
        if let Some(found) = measure(tree, kept, INLINE)? {
            return Ok(Inspection::Done(found));
        }
        let work = || {
            let found = measure(tree, kept, WHOLE)?
                .ok_or_else(|| io::Error::other("the guest handed over too much"))?;
            let kept = found.kept.map_or_else(Vec::new, |kept| kept.to_vec());
            Ok([found.tree.as_bytes(), &kept].concat())
        };
        Task::start(work).map(Inspection::Task)
    }

    /// What a task that looks told.
    pub(crate) fn told(result: &[u8]) -> io::Result<Self> {
        let parts = || {
            let (tree, kept) = result.split_at_checked(32)?;
            let kept = if kept.is_empty() { None } else { Some(kept.try_into().ok()?) };
            Some(Self { tree: Fingerprint::from_bytes(tree)?, kept })
        };
        parts().ok_or_else(|| io::Error::other("a process of the spawner told nonsense"))
    }
}
