//! Sessions: opened, listed, spoken to.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::object;
use crate::{SentWorkspace, ServerRights, SessionRights, ShareInfo};

/// Opens a session with what is said first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSession {
    /// What the agent is to do; its own task if absent, where it has one.
    #[serde(default)]
    pub text: String,
    /// Which agent it is, by name; the usual one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What commands may reach, in the words of `--net`; what the configuration says if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<String>,
    /// The model, by name; the server's own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What its first sandbox stands on, by its name among the templates; what the agent or the
    /// configuration says if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The directory that it begins with, where it was sent; the server's own if absent.
    #[serde(default, deserialize_with = "object::maybe", skip_serializing_if = "Option::is_none")]
    pub workspace: Option<SentWorkspace>,
    /// What the agent is told beside it, as data that nobody vouches for.
    #[serde(default, deserialize_with = "object::all", skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<AttachedText>,
    /// What the model is shown with it: at most 10.
    #[serde(default, deserialize_with = "object::all", skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<AttachedPicture>,
    /// Limits that are narrower than the server's own; wider ones change nothing.
    #[serde(default, deserialize_with = "object::one")]
    pub limits: SessionLimits,
    /// What becomes of what is said while a turn runs, where a message says nothing else.
    #[serde(default)]
    pub when_busy: BusyAction,
}

/// What becomes of what is said while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BusyAction {
    /// The turn reads it before its next step.
    #[default]
    Steer,
    /// It begins another turn once this one is over, together with all else that waits by then.
    Queue,
    /// The turn is stopped, and it begins another one.
    Interrupt,
    /// It is not taken: `conflict`.
    Refuse,
}

/// A picture that comes along: PNG, JPEG, GIF or WebP, which its first bytes say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachedPicture {
    /// Its name, for people, for example that of its file.
    #[schema(max_length = 255)]
    pub name: String,
    /// Its bytes in base64: at most 3,932,160 of them, and no side of more than 8,000 pixels.
    #[schema(content_encoding = "base64")]
    pub content: String,
}

/// A text that comes along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachedText {
    /// Where it comes from, for example `stdin`.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// What a session may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SessionLimits {
    /// Model calls and tool calls of a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_max: Option<u64>,
    /// Tokens of the session, read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<u64>,
    /// What the session costs, in billionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money_nanos_max: Option<u64>,
    /// The time of its model calls and tool calls, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_ms_max: Option<u64>,
    /// The processor time of its commands, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms_max: Option<u64>,
    /// Bytes that it sends to tools outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_bytes_max: Option<u64>,
}

/// With what a session goes on that stopped before its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResumeSession {
    /// What it may use from now on, as far as the server lets any session: `steps_max` is of the
    /// turn, all else of the session with what it used already. What is not said stays.
    #[serde(deserialize_with = "object::one")]
    pub limits: SessionLimits,
}

/// Says something to the agent: it begins a turn, or steers the one that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendMessage {
    /// What is said.
    #[schema(pattern = r"\S")]
    pub text: String,
    /// What the agent is told beside it, as data that nobody vouches for.
    #[serde(default, deserialize_with = "object::all", skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<AttachedText>,
    /// What the model is shown with it: at most 10.
    #[serde(default, deserialize_with = "object::all", skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<AttachedPicture>,
    /// What becomes of it where a turn runs; what the session says if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_busy: Option<BusyAction>,
}

impl SendMessage {
    /// Words alone.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self { text, data: Vec::new(), pictures: Vec::new(), when_busy: None }
    }
}

/// Ends a session for good.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelSession {
    /// Why, for who reads it later.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// How a session stands, as people look for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionGroup {
    /// A person is asked something, or it stopped before its answer and can go on.
    NeedsYou,
    /// It works.
    Running,
    /// It answered, or was ended.
    Done,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionInfo {
    /// Its name.
    pub id: String,
    /// Whose it is, for example `person:ada`.
    pub person: String,
    /// With whom it is shared.
    pub shares: Vec<ShareInfo>,
    /// What the person who asks may do in it.
    pub rights: SessionRights,
    /// What was said first, cut.
    pub title: String,
    /// How it stands, in a word or two: `running`, `waits for approval`, `answered`...
    pub status: String,
    /// How it stands, as people look for it.
    pub group: SessionGroup,
    /// The place of its last event.
    pub head: u64,
    /// When it was opened.
    pub created_at_ms: u64,
    /// When its last event was.
    pub last_at_ms: u64,
    /// The session that it is a subagent of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Which agent it is, where it is not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What opened it, where no person did: `schedule`, `webhook` or `agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// The model.
    pub model: String,
    /// Whether no model is asked, but a script plays one.
    pub scripted: bool,
    /// The directory that it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// What its commands may reach, in the words of `--net`.
    pub network: Vec<String>,
    /// What it was labelled with, for example `untrusted`.
    pub labels: Vec<String>,
    /// What it spent.
    pub usage: UsageInfo,
    /// How many questions wait in it.
    pub approvals: u32,
    /// Whether it was ended for good.
    pub cancelled: bool,
    /// What becomes of what is said while a turn runs, where a message says nothing else.
    pub when_busy: BusyAction,
}

/// What was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct UsageInfo {
    /// Steps: model calls and calls of tools.
    pub steps: u64,
    /// Tokens, read and written.
    pub tokens: u64,
    /// Money, in billionths of a dollar; nothing where the price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money_nanos: Option<u64>,
    /// Time in turns, in milliseconds.
    pub wall_ms: u64,
    /// The limit of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<u64>,
    /// The limit of money, in billionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money_nanos_max: Option<u64>,
}

/// Some sessions, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    /// The sessions.
    pub data: Vec<SessionInfo>,
    /// What continues the list, given as `cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What the server is, for who begins to talk with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerInfo {
    /// The version of the program.
    pub version: String,
    /// The person who asks.
    pub person: String,
    /// What they may do.
    pub rights: ServerRights,
    /// The directory that sessions begin with.
    pub directory: String,
    /// The model that is asked where nobody names one; nothing where none is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What commands may reach where nobody says it.
    pub network: Vec<String>,
}
