//! An event as it is stored: its text, the digest of the text, and its format.
//!
//! The one place where events become text and text becomes events; both homes
//! of the journal go through it, so that they can't differ.

use outrigger_agent::{Digest, Event, FORMAT, Record, Seq, SessionId};
use outrigger_audit::chain::Linked;

use crate::{Error, limits};

/// The text of an event, ready to be stored.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) text: String,
    pub(crate) digest: Digest,
    pub(crate) format: u32,
}

impl Entry {
    pub(crate) fn encode(event: &Event) -> Result<Self, Error> {
        let text = serde_json::to_string(event)
            .expect("events are plain data with text keys and always serialise");
        Error::within("an event (bytes)", text.len() as u64, limits::EVENT_BYTES_MAX as u64)?;
        Ok(Self { digest: Digest::of(text.as_bytes()), text, format: FORMAT })
    }
}

/// Encodes the events of one append.
pub(crate) fn encode_all(at_ms: u64, events: &[Event]) -> Result<Vec<Entry>, Error> {
    // Databases have no larger numbers.
    Error::within("a time (ms)", at_ms, i64::MAX as u64)?;
    let (count, count_max) = (events.len() as u64, limits::APPEND_EVENTS_MAX as u64);
    Error::within("an append (events)", count, count_max)?;
    events.iter().map(Entry::encode).collect()
}

/// An event as it was found, with its text at hand.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) seq: Seq,
    pub(crate) at_ms: u64,
    pub(crate) format: u32,
    pub(crate) text: String,
    /// The link that is stored with it, whatever it is.
    pub(crate) link: String,
}

/// Walks along the chain: what must come next, and after which link.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) seq: Seq,
    pub(crate) link: Digest,
}

impl Walk<'_> {
    /// Checks that `found` is the next event, untouched, and takes it apart.
    pub(crate) fn step(&mut self, found: Found) -> Result<Record, Error> {
        let (session, expected) = (self.session, self.seq.next());
        if found.seq != expected {
            return Err(Error::damaged_event(session, expected, "it is missing"));
        }
        if found.format > FORMAT {
            return Err(Error::Newer {
                place: format!("event {expected} of session {session}"),
                found: u64::from(found.format),
                known: u64::from(FORMAT),
            });
        }
        let text = Digest::of(found.text.as_bytes());
        let Found { seq, at_ms, format, .. } = found;
        let link = Linked { session, seq, at_ms, format, text: &text }.after(&self.link);
        if link.as_str() != found.link {
            let what = "its content or its place was changed: the hash does not fit";
            return Err(Error::damaged_event(session, expected, what));
        }
        let event = serde_json::from_str(&found.text)
            .map_err(|e| Error::damaged_event(session, expected, format!("it is no event: {e}")))?;
        (self.seq, self.link) = (seq, link);
        Ok(Record { seq, at_ms, event })
    }

    /// Checks where the chain ends against the head that is kept beside it.
    pub(crate) fn end(&self, head: Seq, link: &str) -> Result<(), Error> {
        if self.seq < head {
            return Err(Error::damaged_event(self.session, self.seq.next(), "it is missing"));
        }
        if self.seq == head && self.link.as_str() != link {
            let what = "it is not the event that was last appended";
            return Err(Error::damaged_event(self.session, head, what));
        }
        Ok(())
    }
}

/// Cuts a text at a limit, between characters.
pub(crate) fn cut(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}
