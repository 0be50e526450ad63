//! A server, as commands use it, and what they ask of it most.

use outrigger_agent::{Seq, SessionId, State};
use outrigger_api::{SessionInfo, SessionList};
use outrigger_client::{Error, ServerClient};
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::attached::UnsentPictures;
use super::journal::RemoteJournal;
use crate::command::drive::resume_hint;
use crate::command::finish::{WrittenChanges, write};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::paths::Paths;
use crate::session;
use crate::waiting::PendingApproval;

/// A server, as commands use it.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) paths: Paths,
    /// For what is kept of its sessions.
    pub(super) kept: Paths,
    pub(super) client: ServerClient,
    pub(super) journal: RemoteJournal,
    pub(super) pictures: UnsentPictures,
}

/// The error for what can't be done to a server.
pub(crate) fn not_there(what: &str) -> Failure {
    Failure::new(Kind::Usage, format!("{what} works on this machine alone"))
        .hint("`--server local` means this machine; `outrigger context use local` always.")
}

/// The error of a session in whose turn nobody goes on.
pub(super) fn cut_off(session: &SessionId) -> Failure {
    let text = format!("session {session} stopped before its answer");
    Failure::new(Kind::Interrupted, text).hint(resume_hint(session))
}

impl Remote {
    pub(super) fn new(paths: &Paths, client: ServerClient) -> Self {
        let (kept, paths) = (paths.of_server(client.server()), paths.clone());
        let (journal, pictures) = (RemoteJournal::new(client.clone()), UnsentPictures::default());
        Self { paths, kept, client, journal, pictures }
    }

    /// The session that a person names.
    pub(super) async fn find(&self, name: &str) -> Outcome<SessionId> {
        Ok(session::find(&self.journal, name).await?.session)
    }

    /// The session that a person names, else the newest of the directory that they stand in,
    /// else the newest of all.
    pub(super) async fn named_or_newest(&self, name: Option<&str>) -> Outcome<SessionId> {
        let newest_here = match (name, session::here()) {
            (None, Some(dir)) => self.newest_in(&dir, |_| true).await?,
            (Some(_), _) | (None, None) => None,
        };
        let newest_here = newest_here.map(|info| info.id);
        self.find(newest_here.as_deref().or(name).unwrap_or(session::LAST)).await
    }

    /// The newest session of a directory of this machine that is wanted, if there is one.
    pub(super) async fn newest_in(
        &self,
        dir: &Path,
        is_wanted: impl Fn(&SessionInfo) -> bool,
    ) -> Outcome<Option<SessionInfo>> {
        let (source, mut newest) = (Some(source_of(dir)), None);
        let look = |info: SessionInfo| match is_wanted(&info) && info.directory == source {
            true => {
                newest = Some(info);
                ControlFlow::Break(())
            }
            false => ControlFlow::Continue(()),
        };
        self.walk(look).await?;
        Ok(newest)
    }

    /// Looks at the sessions that the person may see, newest first, until that breaks.
    pub(super) async fn walk(
        &self,
        mut look: impl FnMut(SessionInfo) -> ControlFlow<()>,
    ) -> Outcome {
        let mut cursor = String::new();
        loop {
            let path = format!("/v1/sessions?limit={}{cursor}", limits::REMOTE_SESSIONS_PAGE);
            let page: SessionList = self.client.get(&path).await?;
            if page.data.into_iter().try_for_each(&mut look).is_break() {
                return Ok(());
            }
            match page.next_cursor {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(()),
            }
        }
    }

    /// How a session stands now, as the server tells it.
    pub(super) async fn info(&self, session: &SessionId) -> Outcome<SessionInfo> {
        Ok(self.client.get(&format!("/v1/sessions/{session}")).await?)
    }

    /// The state of a session, from its journal.
    pub(super) async fn state(&self, session: &SessionId) -> Outcome<State> {
        session::fold(&self.journal, session).await
    }

    /// Where a session stands.
    pub(super) async fn head(&self, session: &SessionId) -> Outcome<Seq> {
        Ok(Seq(self.info(session).await?.head))
    }

    /// Remembers the directory that a session began with. What the server says of that may be
    /// made up, and changes are written there.
    pub(super) fn remember(&self, session: &SessionId, dir: &Path) -> Outcome {
        let path = self.kept.sent(session.as_str());
        write(&path, dir.as_os_str().as_bytes())
            .map_err(|error| Failure::new(Kind::Storage, format!("{}: {error}", path.display())))
    }

    /// The directory of this machine that a session began with, if it did.
    pub(super) fn source(&self, session: &SessionId) -> Option<PathBuf> {
        let dir = std::fs::read(self.kept.sent(session.as_str())).ok()?;
        Some(PathBuf::from(OsStr::from_bytes(&dir)))
    }

    /// A copy of a session goes on from the same directory.
    pub(super) fn remember_fork(&self, session: &SessionId, fork: &SessionId) -> Outcome {
        if let Some(dir) = self.source(session) {
            self.remember(fork, &dir)?;
        }
        WrittenChanges::copy(&self.kept, session, fork)
    }

    /// Where a question is answered.
    pub(super) fn approval(&self, waiting: &PendingApproval) -> String {
        format!("/v1/approvals/{}", waiting.id())
    }
}

/// What a directory of this machine is known by at a server.
pub(super) fn source_of(dir: &Path) -> String {
    let system = rustix::system::uname();
    format!("{}:{}", system.nodename().to_string_lossy(), dir.display())
}

/// A session as the server names it.
pub(super) fn named(id: &str) -> Outcome<SessionId> {
    let none = || Failure::new(Kind::ServerFailed, "the server gave a session no name");
    SessionId::new(id).ok_or_else(none)
}

/// Asks for something that is done once however often it is asked for, until the server answers.
pub(super) async fn persist<T>(ask: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
    for attempt in 1..=limits::RECONNECTS_MAX {
        match ask().await {
            Err(error) if error.is_retryable() => {
                let pause = limits::RECONNECT_MS << attempt.min(5);
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            done => return done,
        }
    }
    ask().await
}
