//! How sessions stand, as a list shows them: kept as long as nothing is appended to them.

use outrigger_agent::{Seq, SessionId, State};
use outrigger_api::{SessionGroup, SessionInfo};
use outrigger_policy::{AccessAction, AccessRights};
use outrigger_store::{Before, SessionRow};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::broadcast;

use crate::{RequestError, Services, convert, limits};

/// How a row stands whose turn runs.
const RUNNING: &str = "running";

/// Whether somebody drives a session whose turn runs. Of one that does not run nobody asks.
async fn drives(parts: &Services, row: &SessionRow) -> bool {
    row.status != RUNNING || parts.host.is_driven(&row.session.root()).await
}

/// How the newest sessions stand.
async fn look(parts: &Services) -> Result<Vec<(SessionRow, Look)>, RequestError> {
    let rows = parts.journal.sessions(None, limits::LISTING_SESSIONS_MAX).await?;
    let mut looked = Vec::with_capacity(rows.len());
    for row in rows {
        let (driven, waits) = (drives(parts, &row).await, row.status == State::WAITS);
        let now = Look { head: row.head, driven, waits };
        looked.push((row, now));
    }
    Ok(looked)
}

/// What is told to those who look at all sessions.
#[derive(Debug, Clone)]
pub(crate) enum Update {
    /// A session stands otherwise.
    Session(Arc<SessionInfo>),
    /// A session was removed; this is how it stood.
    Removed(Arc<SessionInfo>),
    /// What waits is otherwise. Everybody looks what of it is for them.
    Approvals,
}

/// A session as it was last looked at.
#[derive(Debug, Clone)]
struct ListedSession {
    head: Seq,
    /// Whether somebody drove it then, which no event says.
    driven: bool,
    info: Arc<SessionInfo>,
}

/// How a session stood when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    head: Seq,
    driven: bool,
    waits: bool,
}

/// The sessions that were looked at.
#[derive(Debug)]
pub(crate) struct Listing {
    known: Mutex<HashMap<SessionId, ListedSession>>,
    updates: broadcast::Sender<Update>,
    /// How the newest stood when they were looked at last, while anybody wants to know.
    looked: tokio::sync::Mutex<Option<HashMap<SessionId, Look>>>,
}

impl Default for Listing {
    fn default() -> Self {
        let (updates, _) = broadcast::channel(limits::NOTICES_MAX);
        Self { known: Mutex::default(), updates, looked: tokio::sync::Mutex::default() }
    }
}

impl Listing {
    /// What is told from now on: whatever is otherwise than it stands now.
    pub(crate) async fn listen(
        &self,
        parts: &Services,
    ) -> Result<broadcast::Receiver<Update>, RequestError> {
        let updates = self.updates.subscribe();
        let mut looked = self.looked.lock().await;
        if looked.is_none() {
            *looked =
                Some(look(parts).await?.into_iter().map(|(row, now)| (row.session, now)).collect());
        }
        Ok(updates)
    }

    /// A session of a row.
    async fn listed(
        &self,
        parts: &Services,
        row: &SessionRow,
    ) -> Result<ListedSession, RequestError> {
        let driven = drives(parts, row).await;
        let known = self.known().get(&row.session).cloned();
        if let Some(known) = known.filter(|it| it.head == row.head && it.driven == driven) {
            return Ok(known);
        }
        let state = parts.engine.state(&row.session).await?;
        let info = Arc::new(convert::session(row, &state, driven));
        let listed = ListedSession { head: row.head, driven, info };
        let mut all = self.known();
        if all.len() >= limits::LISTED_MAX {
            all.clear();
        }
        all.insert(row.session.clone(), listed.clone());
        Ok(listed)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, ListedSession>> {
        self.known.lock().expect("nobody panics while they hold the table")
    }

    /// Whose a session is, which never changes, if it is known.
    pub(crate) fn owner(&self, session: &SessionId) -> Option<String> {
        self.known().get(session).map(|listed| listed.info.person.clone())
    }

    /// Where a session ended when the newest were looked at last; nothing where it was none of
    /// them, or where they are being looked at.
    pub(crate) fn looked_head(&self, session: &SessionId) -> Option<Seq> {
        // Who waited for it would be told later what comes meanwhile.
        self.looked.try_lock().ok()?.as_ref()?.get(session).map(|look| look.head)
    }

    /// How the newest sessions stand, without subagents, and how many questions wait in all.
    pub(crate) async fn counts(
        &self,
        parts: &Services,
    ) -> Result<(Vec<SessionGroup>, u32), RequestError> {
        let rows = parts.journal.sessions(None, limits::LISTING_SESSIONS_MAX).await?;
        let (mut groups, mut approvals) = (Vec::new(), 0);
        for row in &rows {
            let ListedSession { info, .. } = self.listed(parts, row).await?;
            approvals += info.approvals;
            groups.extend(info.parent.is_none().then_some(info.group));
        }
        Ok((groups, approvals))
    }

    /// A page of the sessions that a person sees, and where the next one begins.
    pub(crate) async fn page(
        &self,
        parts: &Services,
        rights: &AccessRights,
        mut before: Option<Before>,
        limit: usize,
    ) -> Result<(Vec<Arc<SessionInfo>>, Option<Before>), RequestError> {
        let mut page = Vec::new();
        loop {
            let rows = parts.journal.sessions(before, limits::LISTING_SESSIONS_MAX).await?;
            before = rows.last().map(Before::from);
            let is_last = rows.len() < limits::LISTING_SESSIONS_MAX;
            for row in rows.iter().filter(|row| row.session.root() == row.session) {
                let listed = self.listed(parts, row).await?;
                if !rights.permit(AccessAction::View, convert::standing_of(rights, &listed.info)) {
                    continue;
                }
                page.push(listed.info);
                if page.len() == limit {
                    return Ok((page, Some(Before::from(row))));
                }
            }
            if is_last {
                return Ok((page, None));
            }
        }
    }

    /// One session of a person's, subagents too.
    pub(crate) async fn one(
        &self,
        parts: &Services,
        session: &SessionId,
    ) -> Result<Arc<SessionInfo>, RequestError> {
        let row =
            parts.journal.session(session).await?.ok_or_else(|| {
                RequestError::not_found(format!("there is no session `{session}`"))
            })?;
        self.listed(parts, &row).await.map(|listed| listed.info)
    }

    /// Looks again and again, while anybody wants to know. What can't be read now is looked
    /// at the next time.
    pub(crate) async fn watch(self: Arc<Self>, parts: &Services) {
        loop {
            tokio::time::sleep(Duration::from_millis(limits::LISTING_POLL_MS)).await;
            let mut looked = self.looked.lock().await;
            if self.updates.receiver_count() == 0 {
                *looked = None;
            }
            let Some(looked) = &mut *looked else { continue };
            let Ok(rows) = look(parts).await else { continue };
            let now = rows.iter().map(|(row, now)| (row.session.clone(), *now)).collect();
            let before: HashMap<SessionId, Look> = std::mem::replace(looked, now);
            self.tell_removed(parts, before.keys().filter(|was| !looked.contains_key(was))).await;
            let mut asks = false;
            for (row, now) in rows {
                let before = before.get(&row.session);
                if before == Some(&now) {
                    continue;
                }
                asks |= now.waits || before.is_some_and(|before| before.waits);
                if let Ok(listed) = self.listed(parts, &row).await {
                    // Nobody listening is fine.
                    drop(self.updates.send(Update::Session(listed.info)));
                }
            }
            if asks {
                drop(self.updates.send(Update::Approvals));
            }
        }
    }

    /// Tells which of these are no more. The others are only none of the newest.
    async fn tell_removed(&self, parts: &Services, missed: impl Iterator<Item = &SessionId>) {
        for session in missed {
            if let Ok(None) = parts.journal.session(session).await {
                self.removed(session);
            }
        }
    }

    /// A session was removed: nothing of it is kept, and who saw it is told.
    pub(crate) fn removed(&self, session: &SessionId) {
        let was = self.known().remove(session);
        if let Some(ListedSession { info, .. }) = was {
            drop(self.updates.send(Update::Removed(info)));
        }
    }

    /// Sessions in which something waits for a person, newest first.
    pub(crate) async fn waiting(&self, parts: &Services) -> Result<Vec<SessionRow>, RequestError> {
        let (mut waiting, mut before) = (Vec::new(), None);
        // All of them: what waits may have waited for long.
        loop {
            let rows = parts.journal.sessions(before, limits::LISTING_SESSIONS_MAX).await?;
            before = rows.last().map(Before::from);
            for row in rows.into_iter().filter(|row| row.status == State::WAITS) {
                if self.listed(parts, &row).await?.info.approvals > 0 {
                    waiting.push(row);
                }
            }
            if before.is_none() {
                return Ok(waiting);
            }
        }
    }
}
