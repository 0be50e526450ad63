//! What is proposed for a memory scope: the proposal, how it stands, and what is said of it.
//!
//! Owns the values alone. Must never name the ports that pass them on.

use std::fmt;

use outrigger_agent::Digest;
use outrigger_policy::Principal;
use serde::{Deserialize, Serialize};

use crate::entries::{Attribution, ContentState, EntryAddress};

/// The number of a proposal in its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProposalId(pub u64);

impl fmt::Display for ProposalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Its number.
    pub id: ProposalId,
    /// Where.
    pub at: EntryAddress,
    /// The revision that it was made from.
    pub base: u64,
    /// Length and digest of the file that it proposes; nothing to have it removed.
    pub file: Option<(u64, Digest)>,
    /// Whether its file may be started.
    pub executable: bool,
    /// Who.
    pub author: Principal,
    /// How it came about; its message says why.
    pub by: Attribution,
    /// What is left of its file.
    pub kept: ContentState,
    /// What became of it.
    pub standing: Standing,
    /// Who decided, and when in milliseconds since 1970.
    pub decided: Option<(Principal, u64)>,
    /// What they said.
    pub reason: Option<String>,
    /// The revision that it became.
    pub revision: Option<u64>,
}

/// How a proposal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nobody decided yet.
    Open,
    /// It is what stands there, or did.
    Accepted,
    /// A reviewer did not want it.
    Rejected,
    /// Its author did not want it any more.
    Withdrawn,
}

impl Standing {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Open, Self::Accepted, Self::Rejected, Self::Withdrawn];
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Withdrawn => "withdrawn",
        })
    }
}

/// Which proposals are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProposalFilter {
    /// Those that wait for somebody.
    Open,
    /// All that there ever were.
    All,
}

/// What becomes of a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// A reviewer takes it.
    Accept,
    /// A reviewer does not.
    Reject {
        /// Why; may be empty.
        reason: String,
    },
    /// Its author takes it back.
    Withdraw,
}

/// Something that somebody said of a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// Who.
    pub author: Principal,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What.
    pub text: String,
}
