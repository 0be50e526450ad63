//! What a guest remembers by id: commands and changing file operations.
//!
//! Owns the promise that an id is performed once: what is finished is kept until
//! there is too much of it, then its output goes, then its outcome, and its name
//! stays, so that a late repeat is told so and never runs again.

use std::collections::{HashMap, HashSet, VecDeque};

use outrigger_sandbox::{Error, ExecId, ExecOutcome, FileError, FileReply, limits as door};
use sha2::{Digest as _, Sha256};

use crate::exec::caller::Caller;
use crate::exec::output::Output;
use crate::exec::running::RunningCommand;
use crate::limits;

/// A caller that wants output from the first byte, and how far it is.
#[derive(Debug)]
pub(crate) struct Watcher {
    pub(crate) caller: Caller,
    pub(crate) stdout: usize,
    pub(crate) stderr: usize,
}

impl Watcher {
    pub(crate) fn new(caller: Caller) -> Self {
        Self { caller, stdout: 0, stderr: 0 }
    }
}

/// A command, running or not.
#[derive(Debug)]
pub(crate) struct CommandEntry {
    pub(crate) output: Output,
    pub(crate) state: State,
    pub(crate) watchers: Vec<Watcher>,
    pub(crate) killers: Vec<Caller>,
}

/// Where a command is.
#[derive(Debug)]
pub(crate) enum State {
    Running(Box<RunningCommand>),
    Ended(Result<ExecOutcome, Error>),
}

/// Where a changing file operation is.
#[derive(Debug)]
pub(crate) enum FileEntry {
    Pending(Vec<Caller>),
    Done(Result<FileReply, Error>),
}

/// What an id names.
#[derive(Debug)]
pub(crate) enum Slot {
    Command(Box<CommandEntry>),
    File(FileEntry),
}

/// The answer to: what is this id?
#[derive(Debug)]
pub(crate) enum ExecLookup<'a> {
    Slot(&'a mut Slot),
    Forgotten,
    New,
}

/// All that is remembered.
#[derive(Debug, Default)]
pub(crate) struct Table {
    slots: HashMap<ExecId, Slot>,
    /// Finished ones, oldest first.
    finished: VecDeque<ExecId>,
    /// Finished ones that still have output, oldest first.
    with_output: VecDeque<(ExecId, usize)>,
    output_bytes: usize,
    forgotten: HashSet<u64>,
    forgotten_order: VecDeque<u64>,
}

/// What is left of an id whose outcome is forgotten: the same in every life, and
/// such that ids chosen to collide are not to be had.
fn mark(id: &ExecId) -> u64 {
    let digest: [u8; 32] = Sha256::digest(id.as_str()).into();
    let (first, _) = digest.split_first_chunk().expect("32 bytes begin with 8");
    u64::from_le_bytes(*first)
}

/// Cuts what an error says down to what is remembered of it: a request can name things
/// as long as itself, and thousands of outcomes are kept.
pub(crate) fn brief(error: Error) -> Error {
    let brief = |mut text: String| {
        text.truncate(text.floor_char_boundary(door::OUTCOME_TEXT_BYTES_MAX));
        text
    };
    match error {
        Error::File(FileError { kind, path, detail }) => {
            Error::File(FileError { kind, path: brief(path), detail: brief(detail) })
        }
        Error::CannotStart { program, reason } => {
            Error::CannotStart { program: brief(program), reason: brief(reason) }
        }
        Error::Invalid(what) => Error::Invalid(brief(what)),
        Error::Backend(what) => Error::Backend(brief(what)),
        // Names of a bounded length, and words of ours.
        other @ (Error::Forgotten { .. }
        | Error::Lost { .. }
        | Error::Busy { .. }
        | Error::Absent { .. }
        | Error::Altered { .. }
        | Error::Unsupported { .. }
        | Error::Unavailable { .. }) => other,
    }
}

impl Table {
    pub(crate) fn look(&mut self, id: &ExecId) -> ExecLookup<'_> {
        if !self.slots.contains_key(id) {
            let known = !self.forgotten.is_empty() && self.forgotten.contains(&mark(id));
            return if known { ExecLookup::Forgotten } else { ExecLookup::New };
        }
        self.slots.get_mut(id).map_or(ExecLookup::New, ExecLookup::Slot)
    }

    pub(crate) fn entry(&mut self, id: &ExecId) -> Option<&mut CommandEntry> {
        match self.slots.get_mut(id)? {
            Slot::Command(entry) => Some(entry),
            Slot::File(_) => None,
        }
    }

    pub(crate) fn insert(&mut self, id: ExecId, slot: Slot) {
        self.slots.insert(id, slot);
    }

    /// Frees the id of a command that never ran.
    pub(crate) fn remove(&mut self, id: &ExecId) {
        self.slots.remove(id);
    }

    /// Notes that an id is finished with so many bytes of output, and forgets what
    /// is too old.
    pub(crate) fn finish(&mut self, id: ExecId, bytes: usize) {
        if bytes > 0 {
            self.output_bytes += bytes;
            self.with_output.push_back((id.clone(), bytes));
        }
        self.finished.push_back(id);
        self.trim();
    }

    /// What is finished, oldest first.
    pub(crate) fn finished(&self) -> impl Iterator<Item = (&ExecId, &Slot)> {
        self.finished.iter().filter_map(|id| Some((id, self.slots.get(id)?)))
    }

    /// The marks of what is forgotten, oldest first.
    pub(crate) fn forgotten(&self) -> impl Iterator<Item = u64> {
        self.forgotten_order.iter().copied()
    }

    /// Drops outputs, then outcomes, oldest first, as far as nobody is reading them.
    pub(crate) fn trim(&mut self) {
        let mut turns = self.with_output.len();
        // The newest stays whatever its size: its caller may be about to ask for it again.
        while self.output_bytes > door::KEPT_OUTPUT_BYTES_MAX && turns > 1 {
            turns -= 1;
            let Some((id, bytes)) = self.with_output.pop_front() else { break };
            match self.slots.get_mut(&id) {
                Some(Slot::Command(entry)) if !entry.watchers.is_empty() => {
                    self.with_output.push_back((id, bytes));
                    continue;
                }
                Some(Slot::Command(entry)) => {
                    entry.output.stdout.discard();
                    entry.output.stderr.discard();
                }
                Some(Slot::File(_)) | None => {}
            }
            self.output_bytes -= bytes;
        }
        let mut turns = self.finished.len();
        while self.finished.len() > door::FINISHED_EXECS_MAX && turns > 0 {
            turns -= 1;
            let Some(id) = self.finished.pop_front() else { break };
            // Somebody is still owed its outcome.
            let watched = self.entry(&id).is_some_and(|entry| !entry.watchers.is_empty());
            if watched { self.finished.push_back(id) } else { self.forget(&id) }
        }
    }

    fn forget(&mut self, id: &ExecId) {
        self.slots.remove(id);
        if let Some(at) = self.with_output.iter().position(|(other, _)| other == id)
            && let Some((_, bytes)) = self.with_output.remove(at)
        {
            self.output_bytes -= bytes;
        }
        self.forget_mark(mark(id));
    }

    /// Notes that an id is forgotten.
    pub(crate) fn forget_mark(&mut self, mark: u64) {
        if self.forgotten.insert(mark) {
            self.forgotten_order.push_back(mark);
        }
        if self.forgotten_order.len() > limits::FORGOTTEN_IDS_MAX
            && let Some(oldest) = self.forgotten_order.pop_front()
        {
            self.forgotten.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_sandbox::Execute;

    fn id(number: usize) -> ExecId {
        ExecId::new(format!("f{number}")).unwrap()
    }

    #[test]
    fn what_somebody_waits_for_is_not_forgotten() {
        let mut table = Table::default();
        let request = Execute::new(id(0), outrigger_sandbox::Command::Shell("true".to_owned()));
        let watchers = vec![Watcher::new(Caller { connection: 1, request: 1 })];
        let state = State::Ended(Ok(ExecOutcome::never_ran()));
        let entry =
            CommandEntry { output: Output::new(&request), state, watchers, killers: Vec::new() };
        table.insert(id(0), Slot::Command(Box::new(entry)));
        table.finish(id(0), 0);
        for number in 1..=door::FINISHED_EXECS_MAX {
            table.insert(id(number), Slot::File(FileEntry::Done(Ok(FileReply::Done))));
            table.finish(id(number), 0);
        }
        assert!(matches!(table.look(&id(0)), ExecLookup::Slot(_)));
        assert!(matches!(table.look(&id(1)), ExecLookup::Forgotten));
        table.entry(&id(0)).unwrap().watchers.clear();
        for number in 1..=door::FINISHED_EXECS_MAX {
            let id = ExecId::new(format!("g{number}")).unwrap();
            table.insert(id.clone(), Slot::File(FileEntry::Done(Ok(FileReply::Done))));
            table.finish(id, 0);
        }
        assert!(matches!(table.look(&id(0)), ExecLookup::Forgotten));
    }

    #[test]
    fn what_is_forgotten_is_known_to_be_forgotten() {
        let mut table = Table::default();
        for number in 0..=door::FINISHED_EXECS_MAX {
            table.insert(id(number), Slot::File(FileEntry::Done(Ok(FileReply::Done))));
            table.finish(id(number), 0);
        }
        assert!(matches!(table.look(&id(0)), ExecLookup::Forgotten));
        assert!(matches!(table.look(&id(1)), ExecLookup::Slot(_)));
        assert!(matches!(table.look(&ExecId::new("new").unwrap()), ExecLookup::New));
    }
}
