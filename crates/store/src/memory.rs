//! A journal and blobs in memory, for simulations and tests.
//!
//! Keeps the same texts and links as the one on disk, and means the same by
//! every answer. Must never be offered as a place to keep anything.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use outrigger_agent::{AccountId, Digest, Event, Seq, SessionId};
use outrigger_audit::chain::{self, ChainLink};

use crate::book::Book;
use crate::event::{self, ChainWalk, EncodedEvent, StoredEvent};
use crate::{
    Account, Accounts, Before, Blobs, CachedSnapshot, Error, Journal, Keys, Page, Secrets,
    SessionCharge, SessionRow, SessionSnapshot, SessionSummary, StoredBlob, StoredKey,
    StoredSecret, TermsChange, VerifiedSession, limits,
};

/// A journal and blobs in memory. Clones share their content.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    content: Arc<Mutex<Content>>,
}

#[derive(Debug, Default)]
struct Content {
    sessions: BTreeMap<SessionId, Session>,
    blobs: BTreeMap<Digest, Arc<[u8]>>,
    book: Book,
    secrets: BTreeMap<(String, String), StoredSecret>,
    keys: BTreeMap<String, StoredKey>,
}

#[derive(Debug)]
struct Session {
    row: SessionRow,
    link: Digest,
    events: Vec<KeptEvent>,
    snapshot: Option<SessionSnapshot>,
}

#[derive(Debug)]
struct KeptEvent {
    at_ms: u64,
    format: u32,
    text: Arc<str>,
    link: Digest,
}

impl Session {
    fn new(session: &SessionId, at_ms: u64) -> Self {
        let row = SessionRow {
            session: session.clone(),
            created_at_ms: at_ms,
            last_at_ms: at_ms,
            head: Seq(0),
            title: String::new(),
            status: String::new(),
        };
        Self { row, link: chain::origin(session), events: Vec::new(), snapshot: None }
    }

    fn push(&mut self, at_ms: u64, entry: EncodedEvent) {
        let seq = self.row.head.next();
        let (session, format) = (&self.row.session, entry.format);
        let linked = ChainLink { session, seq, at_ms, format, text: &entry.digest };
        self.link = linked.after(&self.link);
        let link = self.link.clone();
        self.events.push(KeptEvent { at_ms, format, text: entry.text.into(), link });
        (self.row.head, self.row.last_at_ms) = (seq, at_ms);
    }
}

impl Memory {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().expect("no holder of this lock panics")
    }
}

#[async_trait]
impl Journal for Memory {
    async fn append(
        &self,
        session: &SessionId,
        after: Seq,
        at_ms: u64,
        events: &[Event],
        summary: SessionSummary,
    ) -> Result<Seq, Error> {
        let entries = event::encode_all(at_ms, events)?;
        let mut content = self.content();
        let found = content.sessions.get(session).map_or(Seq(0), |kept| kept.row.head);
        if found != after {
            return Err(Error::Conflict { session: session.clone(), expected: after, found });
        }
        if let Some(charge) = &summary.charge {
            content.book.charge(session, at_ms, charge)?;
        }
        if entries.is_empty() && (after == Seq(0) || summary.tells_nothing()) {
            return Ok(after);
        }
        let new = || Session::new(session, at_ms);
        let kept = content.sessions.entry(session.clone()).or_insert_with(new);
        entries.into_iter().for_each(|entry| kept.push(at_ms, entry));
        if let Some(title) = summary.title {
            kept.row.title = event::cut(title, limits::TITLE_BYTES_MAX);
        }
        if let Some(status) = summary.status {
            kept.row.status = event::cut(status, limits::STATUS_BYTES_MAX);
        }
        Ok(kept.row.head)
    }

    async fn load(&self, session: &SessionId, after: Seq) -> Result<Page, Error> {
        let content = self.content();
        let kept = content.sessions.get(session).ok_or_else(|| Error::no_session(session))?;
        let skip = usize::try_from(after.0.min(kept.row.head.0)).expect("events are in memory");
        let link = match skip.checked_sub(1) {
            Some(last) => kept.events[last].link.clone(),
            None => chain::origin(session),
        };
        let mut walk = ChainWalk { session, seq: Seq(skip as u64), link };
        let mut page = Page { records: Vec::new(), more_after: None };
        let mut bytes = 0;
        for event in &kept.events[skip..] {
            bytes += event.text.len();
            let full = page.records.len() == limits::PAGE_EVENTS_MAX;
            if full || (bytes > limits::PAGE_BYTES_MAX && !page.records.is_empty()) {
                page.more_after = Some(walk.seq);
                return Ok(page);
            }
            let KeptEvent { at_ms, format, .. } = *event;
            let (text, link) = (event.text.to_string(), event.link.to_string());
            page.records.push(walk.step(StoredEvent {
                seq: walk.seq.next(),
                at_ms,
                format,
                text,
                link,
            })?);
        }
        walk.end(kept.row.head, kept.link.as_str())?;
        Ok(page)
    }

    async fn head(&self, session: &SessionId) -> Result<Seq, Error> {
        Ok(self.content().sessions.get(session).map_or(Seq(0), |kept| kept.row.head))
    }

    async fn sessions(
        &self,
        before: Option<Before>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Error> {
        let content = self.content();
        let mut rows: Vec<&SessionRow> = content.sessions.values().map(|kept| &kept.row).collect();
        rows.retain(|row| before.as_ref().is_none_or(|before| Before::from(*row) < *before));
        rows.sort_by_cached_key(|row| std::cmp::Reverse(Before::from(*row)));
        Ok(rows.into_iter().take(limit.min(limits::PAGE_SESSIONS_MAX)).cloned().collect())
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, Error> {
        Ok(self.content().sessions.get(session).map(|kept| kept.row.clone()))
    }

    async fn keep_snapshot(
        &self,
        session: &SessionId,
        snapshot: SessionSnapshot,
    ) -> Result<(), Error> {
        let (size, size_max) = (snapshot.state.len(), limits::SNAPSHOT_BYTES_MAX);
        Error::within("a snapshot (bytes)", size as u64, size_max as u64)?;
        let mut content = self.content();
        let kept = content.sessions.get_mut(session).ok_or_else(|| Error::no_session(session))?;
        if snapshot.seq == Seq(0) || snapshot.seq > kept.row.head {
            let what = format!("event {} of session {session}", snapshot.seq);
            return Err(Error::NotFound { what });
        }
        if kept.snapshot.as_ref().is_none_or(|old| old.seq <= snapshot.seq) {
            kept.snapshot = Some(snapshot);
        }
        Ok(())
    }

    async fn snapshot(&self, session: &SessionId, version: u32) -> Result<CachedSnapshot, Error> {
        let content = self.content();
        let snapshot = content.sessions.get(session).and_then(|kept| kept.snapshot.as_ref());
        Ok(match snapshot {
            None => CachedSnapshot::Missing,
            Some(kept) if kept.version != version => {
                CachedSnapshot::OtherVersion { found: kept.version }
            }
            Some(kept) => CachedSnapshot::Usable(kept.clone()),
        })
    }

    async fn verify(&self, session: &SessionId) -> Result<VerifiedSession, Error> {
        crate::load_all(self, session, Seq(0), drop).await?;
        let content = self.content();
        let kept = content.sessions.get(session).ok_or_else(|| Error::no_session(session))?;
        Ok(VerifiedSession { head: kept.row.head, link: kept.link.clone() })
    }
}

#[async_trait]
impl Blobs for Memory {
    async fn put(&self, bytes: Vec<u8>) -> Result<Digest, Error> {
        Error::within("a blob (bytes)", bytes.len() as u64, limits::BLOB_MEMORY_BYTES_MAX)?;
        let digest = Digest::of(&bytes);
        self.content().blobs.insert(digest.clone(), bytes.into());
        Ok(digest)
    }

    async fn put_from(&self, mut reader: Box<dyn Read + Send>) -> Result<StoredBlob, Error> {
        let mut content = Vec::new();
        reader.read_to_end(&mut content).map_err(|e| Error::io("reading a new blob", e))?;
        let bytes = content.len() as u64;
        Ok(StoredBlob { digest: self.put(content).await?, bytes })
    }

    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let content = self.content();
        let blob = content.blobs.get(digest);
        blob.map(|bytes| bytes.to_vec())
            .ok_or_else(|| Error::NotFound { what: format!("blob {digest}") })
    }

    async fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, Error> {
        Ok(Box::new(Cursor::new(self.get(digest).await?)))
    }
}

#[async_trait]
impl Accounts for Memory {
    async fn accounts(&self) -> Result<Vec<Account>, Error> {
        Ok(self.content().book.accounts.values().cloned().collect())
    }

    async fn set_terms(&self, account: &AccountId, change: TermsChange) -> Result<Account, Error> {
        Ok(self.content().book.set_terms(account, change))
    }

    async fn recount(&self) -> Result<(), Error> {
        self.content().book.recount();
        Ok(())
    }

    async fn charged(&self, session: &SessionId) -> Result<Option<SessionCharge>, Error> {
        Ok(self.content().book.sessions.get(session).cloned())
    }
}

#[async_trait]
impl Secrets for Memory {
    async fn secrets(&self, organisation: &str) -> Result<Vec<StoredSecret>, Error> {
        let content = self.content();
        let own = content.secrets.values().filter(|secret| secret.organisation == organisation);
        Ok(own.cloned().collect())
    }

    async fn put_secret(&self, mut secret: StoredSecret) -> Result<(), Error> {
        let key = (secret.organisation.clone(), secret.name.clone());
        let secrets = &mut self.content().secrets;
        if let Some(before) = secrets.get(&key) {
            secret.created_ms = before.created_ms;
        }
        secrets.insert(key, secret);
        Ok(())
    }

    async fn remove_secret(&self, organisation: &str, name: &str) -> Result<bool, Error> {
        let key = (organisation.to_owned(), name.to_owned());
        Ok(self.content().secrets.remove(&key).is_some())
    }
}

#[async_trait]
impl Keys for Memory {
    async fn keys(&self, now_ms: u64) -> Result<Vec<StoredKey>, Error> {
        let keys = self.content().keys.clone().into_values();
        let mut living: Vec<_> = keys.filter(|key| key.expires_ms > now_ms).collect();
        living.sort_by(|one, other| (one.created_ms, &one.id).cmp(&(other.created_ms, &other.id)));
        Ok(living)
    }

    async fn key(&self, digest: &Digest, now_ms: u64) -> Result<Option<StoredKey>, Error> {
        let keys = self.keys(now_ms).await?;
        Ok(keys.into_iter().find(|key| key.digest == *digest))
    }

    async fn put_key(&self, key: StoredKey) -> Result<(), Error> {
        let keys = &mut self.content().keys;
        keys.retain(|_, kept| kept.expires_ms > key.created_ms);
        if keys.values().any(|kept| kept.id == key.id || kept.digest == key.digest) {
            return Err(Error::damaged("memory", "there is such a key already"));
        }
        keys.insert(key.id.clone(), key);
        Ok(())
    }

    async fn remove_key(&self, id: &str) -> Result<bool, Error> {
        Ok(self.content().keys.remove(id).is_some())
    }
}
