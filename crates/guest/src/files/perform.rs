//! One operation, with the rights of the calling thread.

use outrigger_sandbox::{Error, FileOp, FileReply};

use super::{read, remove, search, write};

/// Performs one operation with the rights of the calling thread.
pub(super) fn perform(op: FileOp) -> Result<FileReply, Error> {
    let reply = match op {
        FileOp::List { path, entries_max } => read::list(&path, entries_max),
        FileOp::Stat { path } => read::stat(&path),
        FileOp::Read { path, offset, bytes_max } => read::read(&path, offset, bytes_max),
        FileOp::ReadLines { path, first, lines_max, bytes_max } => {
            read::read_lines(&path, first, lines_max, bytes_max)
        }
        FileOp::Write { id: _, path, contents, mode, executable, modified_ns, precondition } => {
            write::FileWrite { contents, mode, executable, modified_ns, precondition }
                .perform(&path)
        }
        FileOp::Edit { id: _, path, old, new, occurrences, precondition } => {
            write::edit(&path, (&old, &new), occurrences, precondition)
        }
        FileOp::Link { id: _, path, target } => write::link(&path, &target),
        FileOp::MakeDir { id: _, path } => write::make_dir(&path),
        FileOp::Remove { id: _, path } => remove::remove(&path),
        FileOp::Move { id: _, path, to } => write::rename(&path, &to),
        FileOp::Glob { root, pattern, paths_max } => search::glob(&root, &pattern, paths_max),
        FileOp::Grep { root, pattern, glob, matches_max } => {
            search::grep(&root, &pattern, glob.as_deref(), matches_max)
        }
        FileOp::Manifest { root, after, skip, entries_max } => {
            search::manifest(&root, after.as_deref(), &skip, entries_max)
        }
    };
    reply.map_err(Error::File)
}
