//! An event as it is stored: its text, the digest of the text, and its format.
//!
//! The one place where events become text and text becomes events; both homes
//! of the journal go through it, so that they can't differ.

use outrigger_agent::{Digest, Event, FORMAT, Record, Seq, SessionId};
use outrigger_audit::chain::ChainLink;

use crate::{Error, limits};

/// The text of an event, ready to be stored.
#[derive(Debug, Clone)]
pub(crate) struct EncodedEvent {
    pub(crate) text: String,
    pub(crate) digest: Digest,
    pub(crate) format: u32,
}

impl EncodedEvent {
    pub(crate) fn encode(event: &Event) -> Result<Self, Error> {
        let text = serde_json::to_string(event)
            .expect("events are plain data with text keys and always serialise");
        Error::within("an event (bytes)", text.len() as u64, limits::EVENT_BYTES_MAX as u64)?;
        Ok(Self { digest: Digest::of(text.as_bytes()), text, format: FORMAT })
    }
}

/// Encodes the events of one append.
pub(crate) fn encode_all(at_ms: u64, events: &[Event]) -> Result<Vec<EncodedEvent>, Error> {
    // Databases have no larger numbers.
    Error::within("a time (ms)", at_ms, i64::MAX as u64)?;
    let (count, count_max) = (events.len() as u64, limits::APPEND_EVENTS_MAX as u64);
    Error::within("an append (events)", count, count_max)?;
    events.iter().map(EncodedEvent::encode).collect()
}

/// An event as it was found, with its text at hand.
#[derive(Debug)]
pub(crate) struct StoredEvent {
    pub(crate) seq: Seq,
    pub(crate) at_ms: u64,
    pub(crate) format: u32,
    pub(crate) text: String,
    /// The link that is stored with it, whatever it is.
    pub(crate) link: String,
}

/// Walks along the chain: what must come next, and after which link.
#[derive(Debug)]
pub(crate) struct ChainWalk<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) seq: Seq,
    pub(crate) link: Digest,
}

impl ChainWalk<'_> {
    /// Checks that `found` is the next event, untouched, and takes it apart.
    pub(crate) fn step(&mut self, found: StoredEvent) -> Result<Record, Error> {
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
        let StoredEvent { seq, at_ms, format, .. } = found;
        let link = ChainLink { session, seq, at_ms, format, text: &text }.after(&self.link);
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

/// Every part of a text that could be the name of a blob.
pub(crate) fn blob_names(text: &[u8], mut each: impl FnMut(&str)) {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    for run in text.split(|byte| !is_digit(byte)) {
        run.windows(64).filter_map(|name| std::str::from_utf8(name).ok()).for_each(&mut each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_anywhere_in_a_text() {
        let [one, two] = [b"1", b"2"].map(|text| Digest::of(text).to_string());
        let text = format!("{{\"a\":\"{one}\",\"b\":\"x{two}x\",\"c\":\"{}\"}}", &one[1..]);
        let mut found = Vec::new();
        blob_names(text.as_bytes(), |name| found.push(name.to_owned()));
        assert_eq!(found, [one, two]);
    }
}
