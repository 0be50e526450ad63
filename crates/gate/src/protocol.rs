//! What a gate is asked and what it answers, as bytes.
//!
//! Owns the form: four bytes of length, little end first, then JSON. One request and one
//! answer to a connection; descriptors come with the first byte of a request.

use std::collections::BTreeMap;
use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::flow::Flows;
use crate::network::{Destination, Network};
use crate::secret::{SealedSecret, SecretTerms, SecretValue};

/// Where a gate that speaks this form is asked, in its directory. A change of the form changes
/// the name, so that a gate of an older program is left alone and ends by itself.
pub(crate) const SOCKET: &str = "gate-7.sock";
/// What the name of each caller begins with, which is that of its socket beside it.
pub(crate) const CALLER: &str = "caller-";
/// What such a gate holds.
pub(crate) const LOCK: &str = "gate-7.lock";

/// What is asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Opens or changes a network. The descriptors, if any, are its listeners.
    Open {
        sandbox: String,
        network: Network,
        secrets: Vec<SealedSecret>,
        /// That somebody is asked about hosts that no grant names, and which of them they
        /// declined. `None`: nobody is asked.
        declined: Option<Vec<Destination>>,
    },
    /// Opens a caller, for as long as the connection of this request stays.
    Call { caller: String, network: Network, secrets: Vec<SealedSecret> },
    /// Seals a value, under an id that it has or a new one.
    Seal { id: Option<String>, terms: SecretTerms, value: SecretValue },
    /// Whether a message was signed with a secret. Both in base64.
    Verify { secret: SealedSecret, message: String, signature: String },
    /// Takes a secret from every sandbox, and ends what is under way with it.
    Revoke { secret: String },
    /// Takes one connection: the descriptor.
    Connection { sandbox: String, captured: Option<u16> },
    /// Whether it is open. The connection stays for as long as the gate does.
    Look { sandbox: String },
    /// Takes what came since it was taken last.
    Flows { sandbox: String },
    /// What its connections wait for.
    Questions { sandbox: String },
    /// Forgets the sandbox.
    Close { sandbox: String },
}

/// What programs in a sandbox are told of its network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedNetwork {
    /// The certificate of the sandbox's own authority, PEM, which they have to trust.
    pub authority: String,
    /// What they have instead of secrets, by the names of those.
    pub placeholders: BTreeMap<String, String>,
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Opened(OpenedNetwork),
    Sealed(SealedSecret),
    Taken,
    Verified(bool),
    Flows(Flows),
    Questions(Vec<Destination>),
    /// The sandbox is not open here.
    Unknown,
    /// It can't be; a sentence.
    Refused(String),
}

/// What a gate says at its start.
pub(crate) const READY: &str = "outrigger gate: ready";
/// What it says when another one has the directory.
pub(crate) const BUSY: &str = "outrigger gate: busy";
/// What a reason begins with that kept it from starting.
pub(crate) const FAILED: &str = "outrigger gate: cannot start: ";

/// Bytes that most messages fit into, those with a value among them.
const ROOM_BYTES: usize = 32 << 10;
/// The length before a message.
pub(crate) const LENGTH_BYTES: usize = 4;

/// A message as bytes.
pub(crate) fn encode(message: &impl Serialize, bytes_max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    // Wiped where it is dropped: a value may be in it, and it is not copied while it grows.
    let mut bytes = Zeroizing::new(Vec::with_capacity(ROOM_BYTES));
    bytes.resize(LENGTH_BYTES, 0);
    serde_json::to_writer(&mut *bytes, message)?;
    let length = bytes.len() - LENGTH_BYTES;
    let prefix = u32::try_from(length).ok().filter(|_| length <= bytes_max);
    let prefix = prefix.ok_or_else(|| io::Error::other("the message is too long"))?;
    bytes[..LENGTH_BYTES].copy_from_slice(&prefix.to_le_bytes());
    Ok(bytes)
}

/// How many bytes follow a length.
pub(crate) fn length(prefix: [u8; LENGTH_BYTES], bytes_max: usize) -> io::Result<usize> {
    let length = usize::try_from(u32::from_le_bytes(prefix)).ok();
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "the message is too long");
    length.filter(|length| *length <= bytes_max).ok_or_else(invalid)
}

/// A message from its bytes.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(bytes)?)
}
