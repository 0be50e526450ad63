//! What was written into a session's directory: it is no change of the person's, whichever process
//! comes to write there next.

use outrigger_agent::SessionId;
use outrigger_repository::{Change, read_changes, write_changes};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::PathBuf;

use super::durable::write;
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;

/// What was written back of a session: each path as it was before that, and as it was left.
#[derive(Debug)]
pub(crate) struct WrittenChanges {
    path: PathBuf,
    scratch: PathBuf,
    changes: BTreeMap<String, Change>,
}

impl WrittenChanges {
    pub(crate) fn load(paths: &Paths, session: &SessionId) -> Outcome<Self> {
        let (path, scratch) = (paths.written(session.as_str()), paths.scratch());
        let changes = match File::open(&path) {
            Ok(file) => read_changes(file).map_err(|error| {
                let text = format!("{}: {error}", path.display());
                Failure::new(Kind::Storage, text)
                    .hint("Without that file it is as if nothing had been written back yet.")
            })?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                return Err(Failure::new(Kind::Storage, format!("{}: {error}", path.display())));
            }
        };
        let changes = changes.into_iter().map(|change| (change.path.clone(), change)).collect();
        Ok(Self { path, scratch, changes })
    }

    /// All of it.
    pub(crate) fn changes(&self) -> Vec<Change> {
        self.changes.values().cloned().collect()
    }

    /// Something more was written.
    pub(crate) fn add(&mut self, more: &[Change]) -> Outcome {
        for change in more {
            let known = self.changes.get(&change.path).map(|known| &known.before);
            let before = known.unwrap_or(&change.before).clone();
            self.changes.insert(change.path.clone(), Change { before, ..change.clone() });
        }
        self.changes.retain(|_, change| change.before != change.after);
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Kind::Storage, format!("{}: {error}", self.path.display()))
                .hint("The files of the directory were written; what is noted of that is not.")
        };
        fs::create_dir_all(&self.scratch).map_err(|error| failed(&error))?;
        let mut archive =
            write_changes(&self.changes(), &self.scratch).map_err(|error| failed(&error))?;
        let mut bytes = Vec::new();
        archive.read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        write(&self.path, &bytes).map_err(|error| failed(&error))
    }

    /// A copy of a session goes on from the same directory.
    pub(crate) fn copy(paths: &Paths, from: &SessionId, to: &SessionId) -> Outcome {
        let (from, to) = (paths.written(from.as_str()), paths.written(to.as_str()));
        let copied = match fs::read(&from) {
            Ok(bytes) => write(&to, &bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        };
        copied.map_err(|error: io::Error| {
            Failure::new(Kind::Storage, format!("{}: {error}", to.display()))
        })
    }
}
