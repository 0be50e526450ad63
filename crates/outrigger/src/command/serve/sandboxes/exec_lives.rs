//! In which life of its sandbox each command was begun, so that none is run a second time in
//! another one.
//!
//! A line for each, appended before the command is asked for: a server that dies in between has the
//! name taken by a command that never ran, and never the other way round.

use outrigger_sandbox::{ExecId, Generation};
use std::collections::{HashMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use crate::exit::{Failure, Kind, Outcome};
use crate::limits::EXEC_LIVES_MAX;

/// The commands of a sandbox, of which the newest are known.
#[derive(Debug)]
pub(super) struct ExecLives {
    path: PathBuf,
    /// Nothing before anybody asked.
    file: Option<File>,
    lives: HashMap<ExecId, Generation>,
    order: VecDeque<ExecId>,
    /// Lines that were appended since the file had no others than these.
    appended: usize,
}

impl ExecLives {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None, lives: HashMap::new(), order: VecDeque::new(), appended: 0 }
    }

    /// In which life one was begun; nothing where none was. `begins`: now, unless it was before.
    pub(super) fn life(
        &mut self,
        exec: &ExecId,
        begins: Option<&Generation>,
    ) -> Outcome<Option<Generation>> {
        self.kept(|it| it.begun(exec, begins))
    }

    fn kept<T>(&mut self, act: impl FnOnce(&mut Self) -> std::io::Result<T>) -> Outcome<T> {
        let done = act(self);
        done.map_err(|error| {
            Failure::new(Kind::Storage, format!("{}: {error}", self.path.display()))
        })
    }

    fn begun(
        &mut self,
        exec: &ExecId,
        begins: Option<&Generation>,
    ) -> std::io::Result<Option<Generation>> {
        if self.file.is_none() {
            self.read()?;
        }
        if let Some(life) = self.lives.get(exec) {
            return Ok(Some(life.clone()));
        }
        let Some(life) = begins else { return Ok(None) };
        if let Some(file) = &mut self.file {
            file.write_all(format!("{exec} {life}\n").as_bytes())?;
        }
        self.know(exec.clone(), life.clone());
        self.appended += 1;
        if self.appended >= EXEC_LIVES_MAX {
            self.read()?;
        }
        Ok(Some(life.clone()))
    }

    fn know(&mut self, exec: ExecId, life: Generation) {
        if self.order.len() >= EXEC_LIVES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.lives.remove(&oldest);
        }
        self.order.push_back(exec.clone());
        self.lives.insert(exec, life);
    }

    /// Reads what was written, and keeps the newest of it.
    fn read(&mut self) -> std::io::Result<()> {
        (self.appended, self.order, self.lives) = Default::default();
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read?,
        };
        // The last one may have been cut off.
        let whole = text.lines().filter_map(|line| {
            let (exec, life) = line.split_once(' ')?;
            Some((ExecId::new(exec).ok()?, Generation::new(life).ok()?))
        });
        whole.for_each(|(exec, life)| self.know(exec, life));
        let known: String =
            self.order.iter().map(|exec| format!("{exec} {}\n", self.lives[exec])).collect();
        let temporary = self.path.with_extension("new");
        fs::write(&temporary, known)?;
        fs::rename(&temporary, &self.path)?;
        self.file = Some(OpenOptions::new().append(true).open(&self.path)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_keeps_the_life_that_it_was_begun_in() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.execs");
        let (exec, other) = (ExecId::new("e").unwrap(), ExecId::new("f").unwrap());
        let lives: Vec<_> = ["1", "2"].map(|life| Generation::new(life).unwrap()).into();
        let mut known = ExecLives::new(path.clone());
        assert_eq!(known.life(&exec, None).unwrap(), None);
        assert_eq!(known.life(&exec, Some(&lives[0])).unwrap().as_ref(), Some(&lives[0]));
        assert_eq!(known.life(&exec, Some(&lives[1])).unwrap().as_ref(), Some(&lives[0]));
        // A server that died in the middle of a line.
        fs::write(&path, fs::read_to_string(&path).unwrap() + "f").unwrap();
        let mut known = ExecLives::new(path);
        assert_eq!(known.life(&exec, None).unwrap().as_ref(), Some(&lives[0]));
        assert_eq!(known.life(&other, None).unwrap(), None);
        assert_eq!(known.life(&other, Some(&lives[1])).unwrap().as_ref(), Some(&lives[1]));
        // The file does not grow for good, and the newest stay known.
        for number in 0..3 * EXEC_LIVES_MAX {
            let exec = ExecId::new(format!("n{number}")).unwrap();
            known.life(&exec, Some(&lives[0])).unwrap();
        }
        assert!(fs::read_to_string(&known.path).unwrap().lines().count() <= 2 * EXEC_LIVES_MAX);
        let newest = ExecId::new(format!("n{}", 3 * EXEC_LIVES_MAX - 1)).unwrap();
        assert_eq!(known.life(&newest, None).unwrap().as_ref(), Some(&lives[0]));
        assert_eq!(known.life(&exec, None).unwrap(), None);
    }
}
