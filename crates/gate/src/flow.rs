//! What a sandbox reached and what it was refused, as data.
//!
//! Owns the words for each refusal. The table that flows are counted in is in `server`.

use serde::{Deserialize, Serialize};

/// What came of a sandbox since it was taken last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flows {
    /// Each is told once.
    pub flows: Vec<Flow>,
    /// Flows that found no room in the table.
    pub lost: u64,
}

/// All flows of a sandbox to one place under one grant, or refused for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// The host. Empty where what was asked for names none.
    pub host: String,
    /// The port. 0 where what was asked for names none.
    pub port: u16,
    /// The name of the grant. `None`: refused.
    pub grant: Option<String>,
    /// Why it was refused, or what failed.
    pub refusal: Option<Refusal>,
    /// Requests, and connections that were refused before any.
    pub requests: u64,
    /// Bytes to the outside: heads (about) and bodies.
    pub sent_bytes: u64,
    /// Bytes from the outside: heads (about) and bodies.
    pub received_bytes: u64,
    /// When the first began, in milliseconds since 1970.
    pub first_ms: u64,
    /// The path of the last request that was refused, or why its push was, or a rule forbids it; at
    /// most 200 bytes.
    pub path: Option<String>,
}

/// Why something was not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// No grant names the host and port.
    NotGranted,
    /// No grant names the host and port, and whoever was asked about it declined.
    Declined,
    /// The grants for the host don't have the method.
    Method,
    /// The grants for the host don't have the path, or not with this query.
    Path,
    /// The name leads to an address that is not public.
    Private,
    /// CONNECT, TLS and the request name different hosts.
    Mismatch,
    /// What came after CONNECT is not TLS.
    NotTls,
    /// The bytes that the sandbox may send are used up.
    Spent,
    /// TLS without CONNECT, and without the name of a host in it (SNI).
    Unnamed,
    /// The other side's certificate was not accepted.
    Certificate,
    /// The name leads nowhere.
    Unresolved,
    /// No connection, or it broke.
    Unreachable,
    /// Not a request that the gate passes on.
    Malformed,
    /// A limit of the sandbox.
    Limit,
    /// A placeholder where its secret is not sent.
    Secret,
    /// A push to what may not be pushed.
    Push,
    /// A rule that looks at methods or paths forbids it.
    Rule,
    /// The host sent a secret back. The sandbox got its placeholder.
    Echo,
}

impl Refusal {
    /// In plain words.
    pub fn words(self) -> &'static str {
        match self {
            Self::NotGranted => "not in the sandbox's network",
            Self::Declined => "the person declined it",
            Self::Method => "the method is not granted",
            Self::Path => "the path is not granted",
            Self::Private => "the name leads to an address that is not public",
            Self::Mismatch => "the request names another host than its connection",
            Self::NotTls => "not TLS",
            Self::Spent => "the session may send no more bytes (`--max-egress-bytes`)",
            Self::Unnamed => "TLS that does not say for which host it is (no SNI)",
            Self::Certificate => "the host's certificate is not valid",
            Self::Unresolved => "there is no such host",
            Self::Unreachable => "the host can't be reached",
            Self::Malformed => "not a request that is passed on",
            Self::Limit => "a limit of the sandbox's network",
            Self::Secret => "it has the placeholder of a secret that is not sent there",
            Self::Push => "the secret is not for a push to there",
            Self::Rule => "a rule forbids it",
            Self::Echo => "sent a secret back, which was replaced by its placeholder",
        }
    }

    /// As it is written in data.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::NotGranted => "not_granted",
            Self::Declined => "declined",
            Self::Method => "method",
            Self::Path => "path",
            Self::Private => "private",
            Self::Mismatch => "mismatch",
            Self::NotTls => "not_tls",
            Self::Spent => "spent",
            Self::Unnamed => "unnamed",
            Self::Certificate => "certificate",
            Self::Unresolved => "unresolved",
            Self::Unreachable => "unreachable",
            Self::Malformed => "malformed",
            Self::Limit => "limit",
            Self::Secret => "secret",
            Self::Push => "push",
            Self::Rule => "rule",
            Self::Echo => "echo",
        }
    }
}
