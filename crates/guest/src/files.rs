//! File operations, off the serving thread and with the rights of the sandbox's user.
//!
//! Owns the threads that perform them and the promise that a changing one is
//! performed once per id.

mod perform;
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
use std::time::{Duration, Instant};

use outrigger_sandbox::wire::GuestReply;
use outrigger_sandbox::{Error, FileError, FileErrorKind, FileOp, FileReply};

use crate::connection::Connections;
use crate::exec::caller::Caller;
use crate::exec::table::{ExecLookup, FileEntry, Slot, Table, brief};
use crate::limits;
use pool::{Pool, Ticket};

/// All file operations that are not answered yet.
#[derive(Debug)]
pub(crate) struct Files {
    /// Readable when an operation finished.
    pub(crate) wake: OwnedFd,
    pool: Pool,
    /// Until when nothing is written, because the disk is fuller than it may be.
    full_until: Option<Instant>,
}

impl Files {
    /// `apart`: its threads hold no descriptors of this one's.
    pub(crate) fn new(apart: bool) -> io::Result<Self> {
        let (pool, wake) = Pool::new(apart)?;
        Ok(Self { wake, pool, full_until: None })
    }

    /// The disk is fuller than it may be. Whoever looked at it looks again and says so again if
    /// it grows.
    pub(crate) fn disk_full(&mut self) {
        self.full_until = Some(Instant::now() + Duration::from_millis(limits::DISK_FULL_MS));
    }

    /// The error of an operation for which there is no room.
    fn no_space(&self, op: &FileOp) -> Option<Error> {
        let FileOp::Write { path, .. } = op else { return None };
        let is_full = self.full_until.is_some_and(|until| Instant::now() < until);
        is_full.then(|| {
            let detail = "the disk of the sandbox is full: remove something first".to_owned();
            FileError { kind: FileErrorKind::NoSpace, path: path.clone(), detail }.into()
        })
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
            ExecLookup::New => {
                // Not noted under its id: asked for again, it may be done.
                if let Some(error) = self.no_space(&op) {
                    return Some(Err(error));
                }
                if let Err(error) = self.pool.submit(op, Ticket::Id(id.clone())) {
                    return Some(Err(error));
                }
                table.insert(id, Slot::File(FileEntry::Pending(vec![caller])));
                None
            }
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
