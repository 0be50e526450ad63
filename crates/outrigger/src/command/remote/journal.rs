//! Journals of a server's sessions, read over its API.

use async_trait::async_trait;
use outrigger_agent::{Event, FORMAT, Record, Seq, SessionId};
use outrigger_api::limits::PAGE_SESSIONS_MAX;
use outrigger_api::{JournalPage, ProblemCode, SessionInfo, SessionList};
use outrigger_client::{Error as ClientError, ServerClient};
use outrigger_store::{
    Before, CachedSnapshot, Error, Journal, Page, SessionRow, SessionSnapshot, SessionSummary,
    VerifiedSession,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// What is done while something goes wrong.
const DOING: &str = "asking the server";

/// Journals of a server's sessions. What was read once is not asked for again.
#[derive(Debug)]
pub(super) struct RemoteJournal {
    client: ServerClient,
    known: Mutex<HashMap<SessionId, Vec<Record>>>,
}

impl RemoteJournal {
    pub(super) fn new(client: ServerClient) -> Self {
        Self { client, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<Record>>> {
        self.known.lock().expect("nobody panics while they hold the table")
    }
}

/// As a row of a list.
pub(super) fn row(info: &SessionInfo) -> Result<SessionRow, Error> {
    let damaged = || Error::Damaged {
        place: "the server's list".to_owned(),
        what: "it has a broken name".to_owned(),
    };
    Ok(SessionRow {
        session: SessionId::new(info.id.as_str()).ok_or_else(damaged)?,
        created_at_ms: info.created_at_ms,
        last_at_ms: info.last_at_ms,
        head: Seq(info.head),
        title: info.title.clone(),
        status: info.status.clone(),
    })
}

fn failed(error: ClientError) -> Error {
    match error {
        ClientError::Problem(problem) if problem.code == ProblemCode::NotFound => {
            Error::NotFound { what: problem.detail.trim_start_matches("there is no ").to_owned() }
        }
        error => Error::Io { doing: DOING, source: Arc::new(error) },
    }
}

fn read_only<T>() -> Result<T, Error> {
    let source = std::io::Error::from(std::io::ErrorKind::ReadOnlyFilesystem);
    Err(Error::Io { doing: DOING, source: Arc::new(source) })
}

#[async_trait]
impl Journal for RemoteJournal {
    async fn append(
        &self,
        _session: &SessionId,
        _after: Seq,
        _at_ms: u64,
        _events: &[Event],
        _summary: SessionSummary,
    ) -> Result<Seq, Error> {
        read_only()
    }

    async fn load(&self, session: &SessionId, after: Seq) -> Result<Page, Error> {
        let place = usize::try_from(after.0).unwrap_or(usize::MAX);
        if let Some(known) = self.known().get(session)
            && let Some(records) = known.get(place..).filter(|left| !left.is_empty())
        {
            let more_after = known.last().map(|last| last.seq);
            return Ok(Page { records: records.to_vec(), more_after });
        }
        let path = format!("/v1/sessions/{session}/journal?after={after}");
        let page: JournalPage = self.client.get(&path).await.map_err(failed)?;
        if page.format > FORMAT {
            return Err(Error::Newer {
                place: format!("the journal of {}", self.client.server()),
                found: page.format.into(),
                known: FORMAT.into(),
            });
        }
        let read = |text: &str| {
            serde_json::from_str::<Record>(text).map_err(|error| Error::Damaged {
                place: format!("the journal of session {session}"),
                what: error.to_string(),
            })
        };
        let records: Vec<Record> =
            page.data.iter().map(|raw| read(raw.get())).collect::<Result<_, _>>()?;
        let more_after = records.last().map(|last| last.seq).filter(|_| page.more);
        let mut all = self.known();
        let known = all.entry(session.clone()).or_default();
        if known.len() == place {
            known.extend(records.iter().cloned());
        }
        Ok(Page { records, more_after })
    }

    async fn head(&self, session: &SessionId) -> Result<Seq, Error> {
        Ok(self.session(session).await?.map_or(Seq::default(), |row| row.head))
    }

    async fn sessions(
        &self,
        before: Option<Before>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Error> {
        let limit = limit.min(PAGE_SESSIONS_MAX as usize);
        let cursor = before.map_or_else(String::new, |Before { created_at_ms, session }| {
            format!("&cursor={created_at_ms}.{session}")
        });
        let path = format!("/v1/sessions?limit={limit}{cursor}");
        let page: SessionList = self.client.get(&path).await.map_err(failed)?;
        page.data.iter().map(row).collect()
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, Error> {
        let found: Result<SessionInfo, _> =
            self.client.get(&format!("/v1/sessions/{session}")).await;
        match found.map_err(failed) {
            Ok(info) => row(&info).map(Some),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn keep_snapshot(
        &self,
        _session: &SessionId,
        _snapshot: SessionSnapshot,
    ) -> Result<(), Error> {
        read_only()
    }

    async fn snapshot(&self, _session: &SessionId, _version: u32) -> Result<CachedSnapshot, Error> {
        Ok(CachedSnapshot::Missing)
    }

    async fn verify(&self, _session: &SessionId) -> Result<VerifiedSession, Error> {
        read_only()
    }
}
