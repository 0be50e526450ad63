//! One life of a fake sandbox: what runs in it, what ran, and in which order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tokio::time::Instant;

use super::files;
use super::run::FakeCommand;
use super::tree::Tree;
use outrigger_sandbox::{
    Error, ExecId, ExecOutcome, Execute, FileError, FileOp, FileReply, Generation, limits,
};

/// What an exec id stands for.
#[derive(Debug)]
pub(super) enum ExecRecord {
    Command(Box<FakeCommand>),
    Operation(Result<FileReply, FileError>),
    /// Killed before it was ever asked for.
    Killed,
    Forgotten,
}

/// What runs and ran since the guest started.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) generation: Generation,
    known: BTreeMap<ExecId, ExecRecord>,
    order: VecDeque<ExecId>,
    running: BTreeSet<ExecId>,
    /// When the last command ended, or it began.
    rested: Instant,
}

impl Life {
    pub(super) fn new(generation: Generation, now: Instant) -> Self {
        Self {
            generation,
            known: BTreeMap::new(),
            order: VecDeque::new(),
            running: BTreeSet::new(),
            rested: now,
        }
    }

    /// Does everything that is due by now, in order of time.
    pub(super) fn advance(&mut self, tree: &mut Tree, now: Instant) {
        while let Some((due, id)) = self.next() {
            if due > now {
                break;
            }
            if let Some(ExecRecord::Command(run)) = self.known.get_mut(&id) {
                run.step(tree);
                if run.due().is_none() {
                    self.running.remove(&id);
                    self.rested = self.rested.max(due);
                }
            }
        }
    }

    /// Which command does something next, and when.
    fn next(&self) -> Option<(Instant, ExecId)> {
        let due = self.running.iter().filter_map(|id| match self.known.get(id) {
            Some(ExecRecord::Command(run)) => run.due().map(|due| (due, id.clone())),
            Some(ExecRecord::Operation(_) | ExecRecord::Killed | ExecRecord::Forgotten) | None => {
                None
            }
        });
        due.min()
    }

    /// Starts a command unless its id is known. Says whether it did.
    pub(super) fn start(
        &mut self,
        request: &Execute,
        tree: &Tree,
        now: Instant,
    ) -> Result<bool, Error> {
        if self.known.contains_key(&request.id) {
            return Ok(false);
        }
        request.check()?;
        if request.terminal.is_some() {
            return Err(Error::Unsupported {
                what: "a terminal".to_owned(),
                reason: "the fake backend runs no real programs".to_owned(),
            });
        }
        if self.running() >= limits::RUNNING_EXECS_MAX {
            let max = limits::RUNNING_EXECS_MAX;
            return Err(Error::Busy { reason: format!("{max} commands run, which is the most") });
        }
        let run = FakeCommand::new(request, tree, now)?;
        self.running.insert(request.id.clone());
        self.remember(&request.id, ExecRecord::Command(Box::new(run)));
        Ok(true)
    }

    /// How many commands run.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// Since when no command runs, while none does.
    pub(super) fn rested(&self) -> Instant {
        self.rested
    }

    /// The command of an id, if it is one that can be watched; its outcome if it never ran.
    pub(super) fn watch(&self, id: &ExecId) -> Result<&FakeCommand, Result<ExecOutcome, Error>> {
        match self.known.get(id) {
            Some(ExecRecord::Command(run)) => Ok(run),
            Some(ExecRecord::Killed) => Err(Ok(ExecOutcome::never_ran())),
            Some(ExecRecord::Forgotten) | None => {
                Err(Err(Error::Forgotten { id: id.as_str().to_owned() }))
            }
            Some(ExecRecord::Operation(_)) => {
                Err(Err(Error::Invalid(format!("`{id}` names a file operation"))))
            }
        }
    }

    /// Kills the command of an id, or refuses the id from now on.
    pub(super) fn kill(&mut self, id: &ExecId, tree: &mut Tree, now: Instant) {
        match self.known.get_mut(id) {
            Some(ExecRecord::Command(run)) => {
                run.kill(now, tree);
                if self.running.remove(id) {
                    self.rested = self.rested.max(now);
                }
            }
            Some(ExecRecord::Operation(_) | ExecRecord::Killed | ExecRecord::Forgotten) => {}
            None => self.remember(id, ExecRecord::Killed),
        }
    }

    /// Performs a file operation, a changing one once per id. Says whether it did.
    pub(super) fn files(
        &mut self,
        op: FileOp,
        tree: &mut Tree,
    ) -> (Result<FileReply, Error>, bool) {
        let Some(id) = op.id().cloned() else {
            return (files::perform(tree, op).map_err(Error::from), true);
        };
        match self.known.get(&id) {
            Some(ExecRecord::Operation(reply)) => (reply.clone().map_err(Error::from), false),
            Some(ExecRecord::Command(_)) => {
                (Err(Error::Invalid(format!("`{id}` names a command"))), false)
            }
            Some(ExecRecord::Killed | ExecRecord::Forgotten) => {
                (Err(Error::Forgotten { id: id.as_str().to_owned() }), false)
            }
            None => {
                let reply = files::perform(tree, op);
                self.remember(&id, ExecRecord::Operation(reply.clone()));
                (reply.map_err(Error::from), true)
            }
        }
    }

    fn remember(&mut self, id: &ExecId, known: ExecRecord) {
        self.known.insert(id.clone(), known);
        self.order.push_back(id.clone());
        if self.order.len() <= limits::FINISHED_EXECS_MAX {
            return;
        }
        let ended = |id: &ExecId| match self.known.get(id) {
            Some(ExecRecord::Command(run)) => run.due().is_none(),
            Some(ExecRecord::Operation(_) | ExecRecord::Killed | ExecRecord::Forgotten) | None => {
                true
            }
        };
        if let Some(at) = self.order.iter().position(ended)
            && let Some(oldest) = self.order.remove(at)
        {
            self.known.insert(oldest, ExecRecord::Forgotten);
        }
    }
}
