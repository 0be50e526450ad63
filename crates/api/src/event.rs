//! The events of a session, as a client reads them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ShareAccess, UsageInfo};

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionEvent {
    /// Its place in the session, from 1, without a gap.
    pub seq: u64,
    /// When it was appended.
    pub at_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Some events of a session, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct EventList {
    /// The events.
    pub data: Vec<SessionEvent>,
    /// Whether there were more when this was answered: ask again with `after` of the last one.
    pub more: bool,
}

/// What happened. An effect is named by the place of the event that proposed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventKind {
    /// The session was opened.
    Opened {
        /// On whose behalf.
        principal: String,
        /// The model.
        model: String,
        /// The tools that it has.
        tools: Vec<String>,
    },
    /// Something was said to the agent.
    Said {
        /// By whom.
        author: MessageAuthor,
        /// Their name, or where it came from.
        name: String,
        /// What.
        text: String,
        /// The pictures that came with it. `/v1/sessions/{id}/events/{seq}/pictures/{number}`
        /// shows one, counted from 0.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pictures: Vec<PictureInfo>,
    },
    /// An effect was proposed: `seq` names it from now on.
    Proposed {
        /// What it is.
        effect_kind: EffectKind,
        /// The tool, or the sandbox.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The id of the call in the reply that asked for it; its arguments are there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// The effect whose reply that is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply: Option<u64>,
        /// The effect whose arguments a person replaced by these.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        amends: Option<u64>,
    },
    /// The rules were asked about an effect.
    Decided {
        /// The effect.
        effect: u64,
        /// What they said.
        verdict: VerdictKind,
        /// Those that said so.
        rules: Vec<String>,
        /// Who may approve it, where they ask.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        approvers: Vec<String>,
        /// Why, where they forbid.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person answered.
    Answered {
        /// The effect.
        effect: u64,
        /// Who.
        by: String,
        /// What.
        answer: ApprovalKind,
        /// Why not, or the arguments that are taken instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// An effect is about to be performed.
    Started {
        /// The effect.
        effect: u64,
        /// Which attempt, from 1.
        attempt: u32,
        /// The sandbox in which it runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox: Option<String>,
    },
    /// An effect was not started, because of what it may cost.
    Withheld {
        /// The effect.
        effect: u64,
        /// What stands against it.
        reason: String,
    },
    /// An effect is over.
    Settled {
        /// The effect.
        effect: u64,
        /// What became of it.
        outcome: EffectOutcome,
        /// What the model said, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<ReplyPart>,
        /// What a tool gave, as the model sees it; or what went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The exit code of a command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Bytes of the output that the model does not see.
        #[serde(default)]
        hidden_bytes: u64,
        /// When the model's provider is asked again, which takes no more requests now, in
        /// milliseconds since 1970. The turn waits until then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at_ms: Option<u64>,
        /// What it cost.
        usage: UsageInfo,
    },
    /// Something became of a sandbox.
    Sandbox {
        /// Which.
        name: String,
        /// What, in words.
        text: String,
        /// Whether it is gone, with what its processes held. Else its disk was kept, so that
        /// another one can begin with it.
        lost: bool,
    },
    /// A person stopped the turn.
    Interrupted {
        /// Who.
        by: String,
    },
    /// The session is shared with somebody, or not any more.
    Shared {
        /// With whom: `person:bob`, `group:ops`, `org:acme`.
        with: String,
        /// What they may do from now on.
        access: ShareAccess,
        /// Who.
        by: String,
    },
    /// The conversation is summarised before the model is asked again.
    CompactionRequested {
        /// Who.
        by: String,
    },
    /// The session was ended for good.
    Cancelled {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// A turn that had stopped goes on.
    Resumed {
        /// Who.
        by: String,
        /// What is otherwise from here on, in words.
        changes: Vec<String>,
    },
    /// The turn is over.
    TurnEnded {
        /// Whether it came to an answer.
        answered: bool,
        /// How it ended, in words.
        text: String,
    },
    /// The session begins as another one stood, or went back to where it stood.
    Forked {
        /// Who.
        by: String,
        /// The session that was cut.
        session: String,
        /// Where.
        at: u64,
    },
    /// Files of memory or of skills were changed or read.
    Touched {
        /// Paths that were changed.
        changed: Vec<String>,
        /// Paths that were refused.
        refused: Vec<String>,
        /// What the session is labelled with since.
        labels: Vec<String>,
    },
    /// Commands reached something outside, or tried to.
    Reached {
        /// The effect.
        effect: u64,
        /// Where to.
        flows: Vec<HostFlow>,
        /// How many more there were.
        more: u64,
    },
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageAuthor {
    /// A person.
    Person,
    /// Another agent.
    Agent,
    /// A source that nobody vouches for.
    Untrusted,
    /// A file of the directory that a person trusts.
    File,
}

/// What an effect is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// The model is asked.
    Model,
    /// The conversation is summarised by the model.
    Compaction,
    /// A sandbox is made.
    Sandbox,
    /// A tool is called.
    Tool,
}

/// What the rules say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// It may be done.
    Permit,
    /// A person is asked.
    Ask,
    /// It may not be done.
    Forbid,
}

/// What a person answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// Yes.
    Approved,
    /// Yes, with other arguments.
    Amended,
    /// No.
    Denied,
}

/// What became of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectOutcome {
    /// It was done.
    Done,
    /// It was done, and what was asked for failed: a command's exit code is not 0.
    Error,
    /// It could not be done.
    Failed,
    /// It was stopped.
    Cancelled,
    /// Nobody knows whether it was done.
    Unknown,
}

/// A part of what a model said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReplyPart {
    /// Text, in Markdown.
    Text {
        /// The text.
        text: String,
    },
    /// Reasoning.
    Thinking {
        /// The text.
        text: String,
    },
    /// A call of a tool.
    Call {
        /// Its id, by which an effect names it.
        id: String,
        /// The tool.
        tool: String,
        /// Its arguments: a JSON object, unless the model wrote something else.
        arguments: String,
    },
}

/// A host that was reached, or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostFlow {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What let it pass, for example `packages` or a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// Why it was refused, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// How many requests.
    pub requests: u64,
    /// Bytes that went out.
    pub sent_bytes: u64,
    /// Bytes that came in.
    pub received_bytes: u64,
}

/// A picture of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PictureInfo {
    /// Its name, as whoever sent it says.
    pub name: String,
    /// What it is, for example `image/png`.
    pub media_type: String,
    /// Its size.
    pub bytes: u64,
    /// Its columns of pixels.
    pub width: u32,
    /// Its rows of pixels.
    pub height: u32,
}
