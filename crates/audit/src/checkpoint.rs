//! Signed checkpoints: the size and the root of the log, under our key.

use std::fmt;

use signed_note::{Note, StandardVerifier, Verifier, VerifierList};
use tlog_tiles::Hash;

/// What a checkpoint says, once its signature was checked.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// How many entries the log has.
    pub size: u64,
    /// The root over all of them.
    pub root: Hash,
}

/// A checkpoint and the text that it was read from.
#[derive(Debug, Clone)]
pub struct SignedCheckpoint {
    /// What it says.
    pub checkpoint: Checkpoint,
    /// The signed note.
    pub note: String,
}

/// A checkpoint that is kept somewhere else than in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalCheckpoint {
    /// What it is called where it is told of.
    pub name: String,
    /// The signed note.
    pub note: String,
}

/// Why a text is no checkpoint of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoteFault {
    /// It is not in the form of a signed note.
    #[error("it is no signed note")]
    Form,
    /// The note is signed, and says something else.
    #[error("it is no checkpoint of this log")]
    Content,
    /// No signature is of the key, or the one that is does not fit.
    #[error("it is not signed with the key of this log")]
    Signature,
}

/// The public half of a log's key, as c2sp.org/signed-note writes it:
/// `<name>+<id>+<key>`. The name is the origin of the log's checkpoints.
#[derive(Clone)]
pub struct VerifyingKey {
    text: String,
    verifier: StandardVerifier,
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VerifyingKey").field(&self.text).finish()
    }
}

impl PartialEq for VerifyingKey {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl VerifyingKey {
    /// Out of its text; nothing if it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_ascii();
        let verifier = StandardVerifier::new(text).ok()?;
        Some(Self { text: text.to_owned(), verifier })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name of the log.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.verifier.name()
    }

    /// Reads a checkpoint and checks its signature. Signatures of others, such as
    /// witnesses, may stand beside ours.
    ///
    /// # Errors
    /// [`NoteFault`].
    pub fn open(&self, note: &str) -> Result<SignedCheckpoint, NoteFault> {
        let parsed = Note::from_bytes(note.as_bytes()).map_err(|_| NoteFault::Form)?;
        let known = VerifierList::new(vec![Box::new(self.verifier.clone())]);
        parsed.verify(&known).map_err(|_| NoteFault::Signature)?;
        let said = tlog_tiles::Checkpoint::from_bytes(parsed.text());
        let said = said.map_err(|_| NoteFault::Content)?;
        if said.origin() != self.origin() || !said.extension().is_empty() {
            return Err(NoteFault::Content);
        }
        let checkpoint = Checkpoint { size: said.size(), root: *said.hash() };
        Ok(SignedCheckpoint { checkpoint, note: note.to_owned() })
    }

    /// Reads a checkpoint that we wrote ourselves: nothing may stand beside our signature.
    ///
    /// # Errors
    /// [`NoteFault`].
    pub fn open_own(&self, note: &str) -> Result<SignedCheckpoint, NoteFault> {
        // A line before the signature, an empty one, and a line of signature.
        let lines = note.lines().count();
        if lines != 5 || !note.ends_with('\n') {
            return Err(NoteFault::Form);
        }
        self.open(note)
    }
}
