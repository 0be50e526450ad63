//! Changes of memory and skills that somebody else has to accept.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A change that was proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProposalInfo {
    /// Its number.
    pub number: u64,
    /// The file.
    pub path: String,
    /// The version that it was made from; 0 if the file is new.
    pub base: u64,
    /// Whether it removes the file.
    pub removes: bool,
    /// For whom it was proposed.
    pub author: String,
    /// The agent that proposed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// In which session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// When.
    pub at_ms: u64,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What became of it.
    pub standing: ProposalStanding,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// Why it was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The version that it became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// What became of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProposalStanding {
    /// It waits.
    Open,
    /// It was accepted.
    Accepted,
    /// It was rejected.
    Rejected,
    /// Its author took it back.
    Withdrawn,
}

/// Proposals.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ProposalList {
    /// By their numbers.
    pub data: Vec<ProposalInfo>,
}

/// A proposal with what it would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProposalDetails {
    /// The proposal.
    pub proposal: ProposalInfo,
    /// A unified diff against the version that it was made from.
    pub diff: String,
    /// What was said of it.
    pub comments: Vec<ProposalComment>,
}

/// What somebody said of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProposalComment {
    /// Who.
    pub author: String,
    /// When.
    pub at_ms: u64,
    /// What.
    pub text: String,
}

/// Says something of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommentProposal {
    /// What, up to 4 KiB.
    #[schema(min_length = 1, max_length = 4_096)]
    pub text: String,
}

/// Decides a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerProposal {
    /// What becomes of it.
    pub answer: ProposalAnswer,
    /// Why it is rejected, for its author.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What becomes of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProposalAnswer {
    /// The change is made.
    Accept,
    /// It is not made.
    Reject,
    /// Its author takes it back.
    Withdraw,
}
