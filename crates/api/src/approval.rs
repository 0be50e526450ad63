//! What waits for a person, and the person's answer.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An effect that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalInfo {
    /// Its name: `SESSION.EFFECT`, and `.budget` behind it where it is a budget that asks.
    pub id: String,
    /// The session.
    pub session: String,
    /// What the session is about.
    pub title: String,
    /// The effect.
    pub effect: u64,
    /// The tool, or what else would be done.
    pub tool: String,
    /// The exact arguments: a JSON object, unless the model wrote something else.
    pub arguments: String,
    /// SHA-256 of the arguments as the model wrote them, if it is a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_sha256: Option<String>,
    /// Whose tool it is, if it is none of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<OutsideToolInfo>,
    /// The rules that ask.
    pub rules: Vec<String>,
    /// Who may answer; anybody who may approve, if empty.
    pub approvers: Vec<String>,
    /// Who may answer too once it escalates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalates_to: Vec<String>,
    /// When it escalates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalates_ms: Option<u64>,
    /// What of a budget is asked about, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// Since when.
    pub since_ms: u64,
    /// When it is denied by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// Whether it changes a file, so that what it would change has to be looked at first.
    pub changes_file: bool,
    /// What it would change, if that was asked for and it changes a file. Nothing where the session
    /// has no sandbox yet, or its file is not as the call needs it: then the arguments are all that
    /// there is to look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<ApprovalPreview>,
}

/// A tool of a server outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutsideToolInfo {
    /// The server, as the configuration names it.
    pub server: String,
    /// The tool, as the server names it.
    pub tool: String,
    /// Whether the server says something else of it now than what a person trusts.
    pub changed: bool,
}

/// What an effect would make of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalPreview {
    /// A unified diff.
    pub diff: String,
    /// What was looked at: it is given back with the answer.
    pub seen: String,
}

/// Everything that waits, newest sessions first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ApprovalList {
    /// The questions.
    pub data: Vec<ApprovalInfo>,
}

/// Answers a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerApproval {
    /// Yes or no.
    pub answer: ApprovalAnswer,
    /// `seen` of the preview, where it changes a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// With a yes: the arguments with which it is done instead, a JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// With a no: why, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalAnswer {
    /// It may be done, once.
    Approve,
    /// It may not.
    Deny,
}
