//! Reads one session from its first event to its last, and says what is wrong first.
//!
//! Checks what the hashes stand for and nothing more: whether a text is an event is
//! the loader's to say.

use crate::sql;
use crate::sql::connection::DatabaseConnection;
use futures_util::TryStreamExt;
use outrigger_agent::{Digest, Seq, SessionId};
use outrigger_audit::chain::{self, ChainLink};
use outrigger_audit::{Finding, SessionLinks, VerificationProgress};

use crate::sql::fault;
use crate::{Blobs, Error};

const CHANGED: &str = "its content or its place was changed: the hash does not fit";

/// What was found of a session.
#[derive(Debug, Default)]
pub(crate) struct WalkOutcome {
    pub(crate) events: u64,
    pub(crate) uncovered: u64,
    /// Whether it is gone, and was removed on purpose.
    pub(crate) is_removed: bool,
    pub(crate) fault: Option<Finding>,
}

/// Where a walk is.
struct Walk<'a> {
    session: &'a SessionId,
    blobs: &'a dyn Blobs,
    /// What the log has of the session.
    known: &'a SessionLinks,
    seq: Seq,
    link: Digest,
    /// The last event whose link the log has too.
    covered: Seq,
}

type Row = (i64, i64, i64, Option<String>, Option<String>, String);

/// Walks along a session.
pub(crate) async fn walk(
    connection: &mut DatabaseConnection,
    session: &SessionId,
    known: &SessionLinks,
    blobs: &dyn Blobs,
    progress: &VerificationProgress,
) -> Result<WalkOutcome, Error> {
    const ROWS: &str = "SELECT seq, at_ms, format, payload, blob, link FROM events \
        WHERE session = $1 ORDER BY seq";
    const HEAD: &str = "SELECT head_seq, head_link FROM sessions WHERE session = $1";
    let link = chain::origin(session);
    let mut walk = Walk { session, blobs, known, seq: Seq(0), link, covered: Seq(0) };
    let mut walked = WalkOutcome::default();
    let mut rows = sql::query_as(ROWS).bind(session.to_string()).fetch(&mut *connection);
    loop {
        let row: Option<Row> = match rows.try_next().await.map_err(wrong) {
            Ok(row) => row,
            Err(Error::Damaged { what, .. }) => {
                walked.fault =
                    Some(walk.fault(walk.seq.next(), format!("its row is none: {what}")));
                return Ok(walked);
            }
            Err(other) => return Err(other),
        };
        let Some(row) = row else { break };
        walked.events += 1;
        progress.finish_event();
        if let Err(fault) = walk.step(row).await {
            walked.fault = Some(fault);
            return Ok(walked);
        }
    }
    drop(rows);
    let head = sql::query_as(HEAD).bind(session.to_string()).fetch_optional(connection).await;
    walked.uncovered = walk.seq.0 - walk.covered.0;
    walked.fault = match head.map_err(wrong) {
        Ok(None) if walk.seq == Seq(0) && known.is_removed => {
            walked.is_removed = true;
            None
        }
        Ok(head) => walk.end(head).err(),
        Err(Error::Damaged { what, .. }) => {
            Some(walk.fault(walk.seq, format!("its session's row is none: {what}")))
        }
        Err(other) => return Err(other),
    };
    Ok(walked)
}

fn wrong(error: sqlx::Error) -> Error {
    fault::of("reading the journal", error)
}

impl Walk<'_> {
    fn fault(&self, seq: Seq, what: impl Into<String>) -> Finding {
        Finding::event(self.session, seq, what)
    }

    async fn step(
        &mut self,
        (seq, at_ms, format, payload, blob, link): Row,
    ) -> Result<(), Finding> {
        let expected = self.seq.next();
        let (Ok(seq), Ok(at_ms), Ok(format)) =
            (u64::try_from(seq), u64::try_from(at_ms), u32::try_from(format))
        else {
            return Err(self.fault(expected, "it has a number that none was given"));
        };
        let seq = Seq(seq);
        if seq < expected {
            return Err(self.fault(seq, "there is more than one of it"));
        }
        if seq > expected {
            return Err(self.fault(expected, "it is missing"));
        }
        let text = self.text(seq, payload, blob).await?;
        let linked = ChainLink { session: self.session, seq, at_ms, format, text: &text };
        let computed = linked.after(&self.link);
        if computed.as_str() != link {
            // Where the log has the event before, the fault is certainly here.
            let before = self.seq;
            let what = if before == self.covered {
                CHANGED.to_owned()
            } else {
                format!("{CHANGED}; or event {before} was changed together with its own hash")
            };
            return Err(self.fault(seq, what));
        }
        (self.seq, self.link) = (seq, computed);
        match self.known.links.get(&seq) {
            Some(known) if *known != self.link => {
                let first = self.covered.next();
                let what = if first == seq {
                    "it was changed together with its hash: the log has another one".to_owned()
                } else {
                    format!(
                        "it or one of the next up to event {seq} was changed together with all hashes after it: the log has another one for event {seq}"
                    )
                };
                Err(self.fault(first, what))
            }
            Some(_) => {
                self.covered = seq;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The digest of an event's text.
    async fn text(
        &self,
        seq: Seq,
        payload: Option<String>,
        blob: Option<String>,
    ) -> Result<Digest, Finding> {
        let name = match (payload, blob) {
            (Some(text), None) => return Ok(Digest::of(text.as_bytes())),
            (None, Some(name)) => name,
            (None, None) => return Err(self.fault(seq, "its text is missing")),
            (Some(_), Some(_)) => return Err(self.fault(seq, "it has two texts")),
        };
        let digest = Digest::parse(&name);
        let digest =
            digest.ok_or_else(|| self.fault(seq, "the digest of its text is no SHA-256"))?;
        match self.blobs.get(&digest).await {
            Ok(_) => Ok(digest),
            Err(Error::NotFound { what }) => {
                Err(self.fault(seq, format!("its text is missing: {what}")))
            }
            Err(error) => Err(self.fault(seq, format!("its text can't be read: {error}"))),
        }
    }

    /// The end of the session, against what else is known of it.
    fn end(&self, head: Option<(i64, String)>) -> Result<(), Finding> {
        let next = self.seq.next();
        let last = self.known.links.last_key_value();
        if let Some((last, _)) = last.filter(|(last, _)| **last > self.seq) {
            let what = if self.seq == Seq(0) {
                format!(
                    "it is missing: the whole session is gone, and the log has it up to event {last}"
                )
            } else {
                format!("it is missing: the log has the session up to event {last}")
            };
            return Err(self.fault(next, what));
        }
        let Some((seq, link)) = head else {
            return Err(self.fault(self.seq, "its session is missing in the table of sessions"));
        };
        let Ok(head) = u64::try_from(seq).map(Seq) else {
            return Err(self.fault(next, "its session's row has an impossible place"));
        };
        if self.seq < head {
            return Err(self.fault(next, "it is missing: its session's row tells of it"));
        }
        if self.seq > head {
            return Err(
                self.fault(head.next(), "it was never appended, or its session's row was put back")
            );
        }
        if self.link.as_str() != link {
            return Err(self.fault(head, "it is not the event that was last appended"));
        }
        Ok(())
    }
}
