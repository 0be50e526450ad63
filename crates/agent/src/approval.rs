//! What people are asked when the rules ask, and what they answer.
//!
//! Owns what an approval is bound to: one effect, by the digest of its arguments, under
//! the rules that asked.

use serde::{Deserialize, Serialize};

use outrigger_policy::RuleSetHash;

use crate::{Digest, Seq, Shortfall};

/// How people are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Approvals {
    /// What nobody answered for so long is denied, in milliseconds. `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire_ms: Option<u64>,
    /// What nobody answered for so long may be approved also by those to whom the rules
    /// escalate, in milliseconds. `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate_ms: Option<u64>,
}

impl Approvals {
    /// Whether nothing was set.
    pub(crate) fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// A verdict of `ask` that stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// The rules that ask.
    pub rules: Vec<String>,
    /// Who may approve; empty: whoever may speak in the session.
    pub approvers: Vec<String>,
    /// Who may too once it escalates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalates: Vec<String>,
    /// Which rules were in force.
    pub rule_set: RuleSetHash,
    /// Since when.
    pub since_ms: u64,
    /// It is not the rules that ask, but a soft limit of a budget.
    #[serde(default)]
    pub budget: Option<Shortfall>,
}

/// A person's answer to a verdict of `ask`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It may be done, once, if the rules still only ask.
    Approved {
        /// The rules that were in force when the person looked.
        rule_set: RuleSetHash,
        /// What the file that it changes was then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seen: Option<FileBaseline>,
        /// The effect about which the person answered the same question before, and said that
        /// it holds as long as they sit there. Nothing where they looked at this one itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        standing: Option<Seq>,
    },
    /// It may not as it is: a new effect with other arguments takes its place, which the
    /// rules are asked about like any other.
    Amended {
        /// The arguments, a JSON object.
        arguments: String,
    },
    /// It may not; the model is told why.
    Denied {
        /// The reason.
        reason: String,
    },
}

/// What a file was when somebody approved a change of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileBaseline {
    /// There was none.
    Absent,
    /// One with this content.
    File(Digest),
}

/// Why an answer changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswerable {
    /// There is no such effect, or it is over.
    #[error("there is nothing of that name that is still to be done")]
    Over,
    /// Nobody is asked about it: it was answered, or never had to be.
    #[error("nobody is asked about it any more")]
    NotAsked,
    /// It was asked about something else.
    #[error("its arguments are not those that were looked at")]
    OtherArguments,
    /// Something else is asked about it by now.
    #[error("something else is asked about it than what was answered")]
    OtherQuestion,
    /// It came too late.
    #[error("it was not answered in time, so it is denied")]
    Expired,
    /// Only a tool call has arguments, and they are a JSON object.
    #[error("the changed arguments are no JSON object: {0}")]
    Malformed(String),
}
