//! Names of sessions: made, looked up by their beginning, and held by one process at a time.

use outrigger_agent::SessionId;
use outrigger_store::{Before, Journal, SessionRow};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use crate::exit::{Failure, Kind, Outcome};
use crate::limits;

/// A new name: twelve characters that are easy to read out, 60 bits of chance.
pub(crate) fn new_id() -> SessionId {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut bits = uuid::Uuid::new_v4().as_u128() >> 64 ^ uuid::Uuid::new_v4().as_u128();
    let mut name = String::new();
    for _ in 0..12 {
        name.push(char::from(ALPHABET[(bits & 31) as usize]));
        bits >>= 5;
    }
    SessionId::new(name).expect("the alphabet has only plain characters")
}

/// The one session whose name begins like that.
pub(crate) async fn find(journal: &dyn Journal, beginning: &str) -> Outcome<SessionRow> {
    let mut found: Vec<SessionRow> = Vec::new();
    let mut before: Option<Before> = None;
    let mut searched = 0;
    loop {
        let page = journal.sessions(before.take(), 1_000).await?;
        let last = page.last().map(Before::from);
        searched += page.len();
        for row in page {
            if row.session.as_str() == beginning {
                return Ok(row);
            }
            if row.session.as_str().starts_with(beginning) {
                found.push(row);
            }
        }
        before = last;
        if before.is_none() || searched >= limits::SESSIONS_SEARCHED_MAX {
            break;
        }
    }
    let several = found.len() > 1;
    match found.pop() {
        Some(row) if !several && !beginning.is_empty() => Ok(row),
        Some(_) => {
            Err(Failure::new(Kind::Usage, format!("several sessions begin with `{beginning}`"))
                .hint("Write more of the name."))
        }
        None => Err(Failure::new(Kind::NotFound, format!("no session begins with `{beginning}`"))
            .hint("`outrigger sessions ls` lists the sessions.")),
    }
}

/// Held while this process drives a session; the kernel lets go when it dies.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Takes the lock. `None` if another process drives the session.
pub(crate) fn lock(path: &Path) -> Outcome<Option<Lock>> {
    let failed =
        |error: io::Error| Failure::new(Kind::Storage, format!("{}: {error}", path.display()));
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(failed)?;
    }
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Lock { _file: file })),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(failed(error.into())),
    }
}

/// The error for who needs the lock and can't have it.
pub(crate) fn held(session: &SessionId) -> Failure {
    Failure::new(Kind::Conflict, format!("session {session} is being driven by another process"))
        .hint(format!("Watch it with `outrigger sessions logs -f {session}`."))
}
