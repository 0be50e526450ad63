//! Which sessions this server drives now: a mark for each, which stays where the server dies.
//! What another process began and left is not taken up: nobody asked for that.

use outrigger_agent::SessionId;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;

/// A folder with a file for each.
#[derive(Debug)]
pub(super) struct Marks {
    dir: PathBuf,
}

impl Marks {
    pub(super) fn new(paths: &Paths) -> Self {
        Self { dir: paths.harness().join("served") }
    }

    /// It is driven from here on.
    pub(super) fn set(&self, session: &SessionId) -> Outcome {
        let file = self.dir.join(session.as_str());
        let made = fs::create_dir_all(&self.dir).and_then(|()| fs::write(&file, b""));
        made.map_err(|error| Failure::new(Kind::Storage, format!("{}: {error}", file.display())))
    }

    /// It waits, or is over. A mark that can't be removed only has it looked at once more.
    pub(super) fn clear(&self, session: &SessionId) {
        drop(fs::remove_file(self.dir.join(session.as_str())));
    }

    /// Those that a server left in the middle of their work.
    pub(super) fn left(&self) -> Outcome<Vec<SessionId>> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| {
                Failure::new(Kind::Storage, format!("{}: {error}", self.dir.display()))
            })?,
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.filter_map(SessionId::new).collect())
    }
}
