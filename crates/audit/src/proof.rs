//! A proof that an event is in a log, which is checked with nothing else at hand.
//!
//! It carries the event itself, of each event between it and the entry that covers
//! it the digest of the text and no text, the way from that entry up to the root, and
//! the signed root. Whose log it is, only the key says: compare it with the one that
//! you know.

use outrigger_agent::{Digest, Seq, SessionId};
use serde::{Deserialize, Serialize};
use tlog_tiles::Hash;

use crate::chain::{self, ChainLink};
use crate::checkpoint::{NoteFault, VerifyingKey};
use crate::limits;
use crate::log::{LogEntry, parse_hash};

/// What a proof calls itself.
pub const FORMAT: &str = "outrigger audit proof 1";

/// A proof that an event is in a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// Its format.
    pub format: String,
    /// The session.
    pub session: SessionId,
    /// The link before the event.
    pub before: Digest,
    /// The event.
    pub event: ProvenEvent,
    /// What comes after it, up to the entry of the log.
    pub after: Vec<InterveningEvent>,
    /// The number of the entry that covers it.
    pub entry: u64,
    /// The hashes beside the way from that entry up to the root.
    pub inclusion: Vec<Digest>,
    /// The signed checkpoint of the root.
    pub checkpoint: String,
    /// The key that signed it.
    pub key: String,
}

/// The event that is proved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvenEvent {
    /// Its place.
    pub seq: Seq,
    /// Its time, milliseconds since 1970.
    pub at_ms: u64,
    /// Its format.
    pub format: u32,
    /// Digest of its text.
    pub sha256: Digest,
    /// Its text; nothing if it is kept as a blob, or was left out on purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// An event between the one that is proved and the entry, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterveningEvent {
    /// Its time, milliseconds since 1970.
    pub at_ms: u64,
    /// Its format.
    pub format: u32,
    /// Digest of its text.
    pub sha256: Digest,
}

/// What a proof that holds says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProofStatement {
    /// The session.
    pub session: SessionId,
    /// The place of the event.
    pub seq: Seq,
    /// The time of the event, milliseconds since 1970, as the harness's clock had it.
    pub at_ms: u64,
    /// Digest of the event's text.
    pub sha256: Digest,
    /// How many entries the log had.
    pub size: u64,
    /// The key that signed.
    pub key: String,
}

/// Why a proof does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofFault {
    /// It is not in the form of a proof.
    #[error("it is no proof: {0}")]
    Form(String),
    /// It is of another key than the one that was expected.
    #[error("it is signed with another key: {0}")]
    Key(String),
    /// Its checkpoint is none.
    #[error("its checkpoint can't be used")]
    Checkpoint(#[source] NoteFault),
    /// The text is not the one that was recorded.
    #[error("the text of the event is another one")]
    Text,
    /// The event, or one after it, leads to no entry of the signed log.
    #[error("the log that was signed does not have this event")]
    Inclusion,
}

impl Proof {
    /// Reads a proof.
    ///
    /// # Errors
    /// [`ProofFault::Form`].
    pub fn parse(text: &str) -> Result<Self, ProofFault> {
        let proof: Self =
            serde_json::from_str(text).map_err(|error| ProofFault::Form(error.to_string()))?;
        if proof.format != FORMAT {
            return Err(ProofFault::Form(format!("its format is {:?}", proof.format)));
        }
        Ok(proof)
    }

    /// As text, one line and its end.
    #[must_use]
    pub fn to_text(&self) -> String {
        let text = serde_json::to_string(self);
        text.expect("a proof is plain data with text keys and always serialises") + "\n"
    }

    /// Checks it, against the key that is known if there is one.
    ///
    /// # Errors
    /// [`ProofFault`] with the first thing that does not fit.
    pub fn check(&self, known: Option<&VerifyingKey>) -> Result<ProofStatement, ProofFault> {
        let form = |what: &str| ProofFault::Form(what.to_owned());
        let key = VerifyingKey::parse(&self.key).ok_or_else(|| form("its key is none"))?;
        if known.is_some_and(|known| *known != key) {
            return Err(ProofFault::Key(key.as_str().to_owned()));
        }
        let signed = key.open(&self.checkpoint).map_err(ProofFault::Checkpoint)?.checkpoint;
        let (entry, event) = (self.entry()?, &self.event);
        if event.text.as_ref().is_some_and(|text| Digest::of(text.as_bytes()) != event.sha256) {
            return Err(ProofFault::Text);
        }
        let inclusion: Option<Vec<Hash>> =
            self.inclusion.iter().map(|hash| parse_hash(hash.as_str())).collect();
        let inclusion = inclusion.ok_or_else(|| form("a hash of the way is none"))?;
        tlog_tiles::check_record(&inclusion, signed.size, signed.root, self.entry, entry.hash())
            .map_err(|_| ProofFault::Inclusion)?;
        Ok(ProofStatement {
            session: self.session.clone(),
            seq: event.seq,
            at_ms: event.at_ms,
            sha256: event.sha256.clone(),
            size: signed.size,
            key: key.as_str().to_owned(),
        })
    }

    /// The entry of the log that the events lead to.
    fn entry(&self) -> Result<LogEntry, ProofFault> {
        let form = |what: &str| ProofFault::Form(what.to_owned());
        let session = SessionId::new(self.session.as_str());
        let session = session.ok_or_else(|| form("its session has an impossible name"))?;
        let digests = self.after.iter().map(|after| &after.sha256);
        let mut digests = digests.chain([&self.before, &self.event.sha256]);
        if !digests.all(|digest| Digest::parse(digest.as_str()).is_some()) {
            return Err(form("a digest is none"));
        }
        let first = self.event.seq == Seq(1) && self.before != chain::origin(&session);
        if first || self.event.seq == Seq(0) || self.after.len() > limits::PROOF_LINKS_MAX {
            return Err(form("the event has an impossible place"));
        }
        let ProvenEvent { at_ms, format, sha256, .. } = &self.event;
        let mut seq = self.event.seq;
        let event =
            ChainLink { session: &session, seq, at_ms: *at_ms, format: *format, text: sha256 };
        let mut link = event.after(&self.before);
        for InterveningEvent { at_ms, format, sha256 } in &self.after {
            seq = seq.next();
            let next = ChainLink { seq, at_ms: *at_ms, format: *format, text: sha256, ..event };
            link = next.after(&link);
        }
        Ok(LogEntry { session, seq, link })
    }
}
