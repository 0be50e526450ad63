//! What a conversation has wherever it goes on: the directory, what was written back into it, and
//! where its sessions are.

use outrigger_agent::SessionId;
use outrigger_repository::Change;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::source::SessionSource;
use crate::exit::{Failure, Kind};
use crate::paths::Paths;
use crate::show::inert;

/// What was written into a directory at once.
#[derive(Debug, Clone)]
pub(super) struct AppliedChanges {
    pub(super) dir: PathBuf,
    pub(super) changes: Vec<Change>,
}

/// Cheap to copy: what takes long has one of its own.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) paths: Paths,
    pub(super) dir: PathBuf,
    /// Files of a directory that are listed at most.
    pub(super) files_max: u64,
    pub(super) sessions: Rc<dyn SessionSource>,
    /// What was written back, the newest last. Shared by all copies: a job knows what those
    /// before it wrote.
    pub(super) applied: Rc<RefCell<Vec<AppliedChanges>>>,
}

impl Context {
    /// What the last row says.
    pub(super) fn footer(&self, session: Option<&SessionId>) -> String {
        let dir = short(&self.dir);
        let name = self.sessions.name();
        match session {
            Some(session) => format!("session {session} · {name} · {dir}"),
            None => format!("{name} · {dir} · /help"),
        }
    }

    pub(super) fn not_open() -> Failure {
        Failure::new(Kind::NotFound, "there is no session yet: say something first")
    }
}

/// A directory as people write it.
pub(super) fn short(dir: &Path) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let below = home.as_ref().and_then(|home| dir.strip_prefix(home).ok());
    match below {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => inert(&format!("~/{}", below.display())),
        None => inert(&dir.display().to_string()),
    }
}
