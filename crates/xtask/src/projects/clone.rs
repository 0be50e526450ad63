//! Where a project of others lies, and that it is ready for its tests.
//!
//! Owns clones at one state, and what a person types in them once. Must never change a file
//! of a project itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::list::Project;
use super::person;
use super::write_error::WriteError;
use crate::child::{self, Child};
use crate::limits::PROJECT_ONCE_SECONDS_MAX;

/// Why a project is not ready.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file of its own could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Whoever runs it says that it is there.
    #[error("{path} is not there, and `--from` says that it is")]
    Missing {
        /// Where it would be.
        path: String,
    },
    /// What is done before the tests does not succeed: the network, or a tool that is missing.
    #[error("{name}: `{command}` ends with {code}")]
    Once {
        /// Whose.
        name: String,
        /// What was typed.
        command: String,
        /// How it ended.
        code: u8,
    },
    /// A program could not be run.
    #[error(transparent)]
    Child(#[from] child::Error),
}

/// Where clones lie.
#[derive(Debug, Clone)]
pub(crate) enum Clones {
    /// They are made here as they are needed.
    Made(PathBuf),
    /// They are there.
    There(PathBuf),
}

impl Clones {
    /// The directory of a project, at its state, with all done that is done once.
    pub(crate) fn ready(&self, project: &Project) -> Result<PathBuf, Error> {
        let (Self::Made(dir) | Self::There(dir)) = self;
        let clone = dir.join(project.folder());
        if !clone.is_dir() {
            self.fetch(dir, &clone, project)?;
        }
        let at = clone.to_string_lossy();
        let git = |words: &[&str]| Child::new(["git", "-C", &at].iter().chain(words).copied());
        let is_that = format!("test \"$(git rev-parse HEAD)\" = {}", project.commit);
        if !inside(&clone, &is_that).succeeds() {
            run(project, &git(&["checkout", "--quiet", &project.commit]))?;
        }
        let note = dir.join(format!("{}.once", project.folder()));
        let done = format!("{}\n{}\n", project.commit, project.once.join("\n"));
        if std::fs::read_to_string(&note).is_ok_and(|text| text == done) {
            return Ok(clone);
        }
        for command in &project.once {
            let done = inside(&clone, command).run_on_stderr()?;
            ended(project, command, child::code(done))?;
        }
        std::fs::write(&note, done).map_err(WriteError::at(&note))?;
        Ok(clone)
    }

    fn fetch(&self, dir: &Path, clone: &Path, project: &Project) -> Result<(), Error> {
        let path = clone.to_string_lossy().into_owned();
        match self {
            Self::There(_) => Err(Error::Missing { path }),
            Self::Made(_) => {
                std::fs::create_dir_all(dir).map_err(WriteError::at(dir))?;
                run(project, &Child::new(["git", "clone", "--quiet", &project.git, &path]))
            }
        }
    }
}

fn inside(dir: &Path, line: &str) -> Child {
    person::line(dir, Duration::from_secs(PROJECT_ONCE_SECONDS_MAX), line)
}

fn run(project: &Project, command: &Child) -> Result<(), Error> {
    ended(project, &command.typed(), child::code(command.run_on_stderr()?))
}

fn ended(project: &Project, command: &str, code: u8) -> Result<(), Error> {
    let (name, command) = (project.name.clone(), command.to_owned());
    if code == 0 { Ok(()) } else { Err(Error::Once { name, command, code }) }
}
