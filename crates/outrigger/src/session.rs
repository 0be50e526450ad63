//! Names of sessions: made, looked up by their beginning, and held by one process at a time.

mod lookup;

use outrigger_agent::{Author, Message, Record, Seq, SessionId, State};
use outrigger_engine::{Clock, SystemClock};
use outrigger_store::{Before, Journal, SessionRow, load_all};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use crate::exit::{Failure, Kind, Outcome};
use crate::limits;

pub(crate) use lookup::{
    LAST, find, is_below, is_of, last, last_in, name, none, opening, root, several,
};

/// On whose behalf everything happens on this machine, as long as there is one person.
pub(crate) const WHO: &str = "person:local";

/// What that person says.
pub(crate) fn said(text: String) -> Message {
    Message::new(Author::Person(WHO.to_owned()), text)
}

/// Now, in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    SystemClock.now_ms()
}

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

/// Shows sessions, newest first, until that is enough.
pub(crate) async fn walk(
    journal: &dyn Journal,
    mut each: impl FnMut(SessionRow) -> ControlFlow<()>,
) -> Outcome {
    let mut before: Option<Before> = None;
    let mut searched = 0;
    loop {
        let page = journal.sessions(before.take(), 1_000).await?;
        before = page.last().map(Before::from);
        searched += page.len();
        let enough = page.into_iter().try_for_each(&mut each).is_break();
        if enough || before.is_none() || searched >= limits::SESSIONS_SEARCHED_MAX {
            return Ok(());
        }
    }
}

/// Held while this process drives a session; the kernel lets go when it dies.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

/// Takes the lock, and says so in it. `None` if another process drives the session; one that
/// only looks is waited for.
pub(crate) fn lock(path: &Path) -> Outcome<Option<Lock>> {
    let failed = unusable(path);
    let Some(lock) = lock_briefly(path)? else { return Ok(None) };
    lock.file.set_len(0).map_err(&failed)?;
    (&lock.file).write_all(std::process::id().to_string().as_bytes()).map_err(&failed)?;
    Ok(Some(lock))
}

/// Takes the lock for as long as something is looked at. `None` if a process drives the
/// session.
pub(crate) fn lock_briefly(path: &Path) -> Outcome<Option<Lock>> {
    let failed = unusable(path);
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(&failed)?;
    }
    let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path);
    let file = file.map_err(&failed)?;
    for look in 0..limits::LOCK_LOOKS_MAX {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(Lock { file })),
            Err(rustix::io::Errno::WOULDBLOCK) if look > 0 && is_driven(path) => return Ok(None),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                std::thread::sleep(Duration::from_millis(limits::LOCK_PAUSE_MS));
            }
            Err(error) => return Err(failed(error.into())),
        }
    }
    Ok(None)
}

fn unusable(path: &Path) -> impl Fn(io::Error) -> Failure {
    let path = path.display().to_string();
    move |error| Failure::new(Kind::Storage, format!("{path}: {error}"))
}

/// Whether the process lives that took the lock to drive. Otherwise one holds it that looks.
fn is_driven(path: &Path) -> bool {
    let process = fs::read_to_string(path).unwrap_or_default();
    !process.is_empty() && Path::new("/proc").join(process).exists()
}

/// The error for who needs the lock and can't have it.
pub(crate) fn held(session: &SessionId) -> Failure {
    Failure::new(Kind::Conflict, format!("session {session} is in use by another process"))
        .hint(format!("Watch it with `outrigger attach {session}`."))
}

/// The state of a session, from its journal alone.
pub(crate) async fn fold(journal: &dyn Journal, session: &SessionId) -> Outcome<State> {
    let mut state = State::default();
    load_all(journal, session, Seq::default(), |record: Record| {
        state = std::mem::take(&mut state).apply(&record);
    })
    .await?;
    Ok(state)
}

/// A session, and with it the subagents that it waits for, those above first. One that is
/// not opened yet is left out.
pub(crate) async fn tree(
    journal: &dyn Journal,
    session: &SessionId,
) -> Outcome<Vec<(SessionId, State)>> {
    let mut all = vec![(session.clone(), fold(journal, session).await?)];
    let mut place = 0;
    while let Some((above, state)) = all.get(place) {
        let below: Vec<_> = state.subagents(above).collect();
        for session in below {
            match fold(journal, &session).await {
                Err(failure) if failure.kind == Kind::NotFound => {}
                state => all.push((session, state?)),
            }
        }
        place += 1;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looks_at_a_session_is_waited_for_and_who_drives_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let look = lock_briefly(&path).unwrap().unwrap();
        let waits = std::thread::spawn({
            let path = path.clone();
            move || lock(&path).unwrap()
        });
        // poll: what is looked at takes this long.
        std::thread::sleep(Duration::from_millis(10 * limits::LOCK_PAUSE_MS));
        drop(look);
        let drives = waits.join().unwrap();
        assert!(drives.is_some());
        assert!(lock(&path).unwrap().is_none() && lock_briefly(&path).unwrap().is_none());
        drop(drives);
        assert!(lock(&path).unwrap().is_some());
    }
}
