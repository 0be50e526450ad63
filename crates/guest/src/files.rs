//! File operations, off the serving thread and with the rights of the sandbox's user.
//!
//! Owns the threads that perform them and the promise that a changing one is
//! performed once per id.

mod pool;
mod quick;
mod read;
mod remove;
mod resolve;
mod search;
mod walk;
mod write;

use std::io;
use std::os::fd::OwnedFd;

use outrigger_sandbox::wire::GuestReply;
use outrigger_sandbox::{Error, ExecId, FileOp, FileReply};

use crate::connection::Connections;
use crate::exec::table::{Caller, ExecLookup, FileEntry, Slot, Table, brief};
use pool::Pool;

/// Whom a finished operation concerns.
#[derive(Debug)]
pub(crate) enum Ticket {
    /// One that only read: its caller.
    Caller(Caller),
    /// One that changed something: its id, under which its callers stand.
    Id(ExecId),
}

/// All file operations that are not answered yet.
#[derive(Debug)]
pub(crate) struct Files {
    /// Readable when an operation finished.
    pub(crate) wake: OwnedFd,
    pool: Pool,
}

impl Files {
    /// `apart`: its threads hold no descriptors of this one's.
    pub(crate) fn new(apart: bool) -> io::Result<Self> {
        let (pool, wake) = Pool::new(apart)?;
        Ok(Self { wake, pool })
    }

    /// Whether any operation is still to be answered.
    pub(crate) fn is_busy(&self) -> bool {
        self.pool.due() > 0
    }

    /// Begins an operation, or attaches to the one of its id. An answer that is
    /// known at once is returned.
    pub(crate) fn perform(
        &mut self,
        op: FileOp,
        caller: Caller,
        table: &mut Table,
    ) -> Option<Result<FileReply, Error>> {
        if let FileOp::Read { path, offset, bytes_max } = &op
            && let Some(reply) = quick::read(path, *offset, *bytes_max)
        {
            return Some(Ok(reply));
        }
        let Some(id) = op.id().cloned() else {
            return self.pool.submit(op, Ticket::Caller(caller)).err().map(Err);
        };
        match table.look(&id) {
            ExecLookup::Slot(Slot::File(FileEntry::Done(answer))) => Some(answer.clone()),
            ExecLookup::Slot(Slot::File(FileEntry::Pending(callers))) => {
                callers.push(caller);
                None
            }
            ExecLookup::Slot(Slot::Command(_)) => {
                Some(Err(Error::Invalid(format!("`{id}` names a command"))))
            }
            ExecLookup::Forgotten => Some(Err(Error::Forgotten { id: id.to_string() })),
            ExecLookup::New => match self.pool.submit(op, Ticket::Id(id.clone())) {
                Ok(()) => {
                    table.insert(id, Slot::File(FileEntry::Pending(vec![caller])));
                    None
                }
                Err(error) => Some(Err(error)),
            },
        }
    }

    /// Answers those whose operations finished.
    pub(crate) fn collect(&mut self, table: &mut Table, out: &mut Connections) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.wake, &mut count);
        while let Some((ticket, answer)) = self.pool.finished() {
            match ticket {
                Ticket::Caller(caller) => out.reply(caller, GuestReply::Files(answer)),
                Ticket::Id(id) => {
                    let answer = answer.map_err(brief);
                    let done = Slot::File(FileEntry::Done(answer.clone()));
                    if let ExecLookup::Slot(slot) = table.look(&id)
                        && let Slot::File(FileEntry::Pending(callers)) =
                            std::mem::replace(slot, done)
                    {
                        for caller in callers {
                            out.reply(caller, GuestReply::Files(answer.clone()));
                        }
                    }
                    table.finish(id, 0);
                }
            }
        }
    }
}

/// Performs one operation with the rights of the calling thread.
fn perform(op: FileOp) -> Result<FileReply, Error> {
    let reply = match op {
        FileOp::List { path, entries_max } => read::list(&path, entries_max),
        FileOp::Stat { path } => read::stat(&path),
        FileOp::Read { path, offset, bytes_max } => read::read(&path, offset, bytes_max),
        FileOp::ReadLines { path, first, lines_max, bytes_max } => {
            read::read_lines(&path, first, lines_max, bytes_max)
        }
        FileOp::Write { id: _, path, contents, mode, executable, precondition } => {
            write::FileWrite { contents, mode, executable, precondition }.perform(&path)
        }
        FileOp::Edit { id: _, path, old, new, occurrences, precondition } => {
            write::edit(&path, (&old, &new), occurrences, precondition)
        }
        FileOp::Link { id: _, path, target } => write::link(&path, &target),
        FileOp::MakeDir { id: _, path } => write::make_dir(&path),
        FileOp::Remove { id: _, path } => remove::remove(&path),
        FileOp::Glob { root, pattern, paths_max } => search::glob(&root, &pattern, paths_max),
        FileOp::Grep { root, pattern, glob, matches_max } => {
            search::grep(&root, &pattern, glob.as_deref(), matches_max)
        }
        FileOp::Manifest { root, after, entries_max } => {
            search::manifest(&root, after.as_deref(), entries_max)
        }
    };
    reply.map_err(Error::File)
}
