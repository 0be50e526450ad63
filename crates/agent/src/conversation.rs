//! The conversation as models see it: canonical parts, and beside them each
//! provider's own items, verbatim.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::{Digest, Picture, Seq, limits};

/// A piece of JSON kept byte for byte.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Raw(Arc<RawValue>);

impl Raw {
    /// Keeps a text, if it is JSON.
    ///
    /// # Errors
    /// Where and why it is none.
    pub fn new(text: String) -> Result<Self, serde_json::Error> {
        Ok(Self(Arc::from(RawValue::from_string(text)?)))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Raw {}

/// One entry of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// Something said to the agent.
    Message(Arc<Message>),
    /// What the model answered.
    Reply(Arc<Reply>),
    /// What a tool call of the last reply gave. Results follow in call order.
    Result(Arc<ToolResult>),
    /// What stands for everything before it, after a compaction.
    Summary(Arc<Summary>),
    /// Something that the harness tells the model, for example that a sandbox was lost.
    Notice(Arc<str>),
}

/// What stands for a conversation after a compaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SummaryForm", into = "SummaryForm")]
pub struct Summary {
    /// The model's words, or ours where it found none.
    pub text: Arc<str>,
    /// Where the conversation came from that it was made of, as far as that was outside.
    pub labels: BTreeSet<String>,
    /// Files that tools wrote, at most [`limits::SUMMARY_FILES_MAX`].
    pub files: BTreeSet<String>,
}

/// A summary as journals have it: older ones have the text alone.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum SummaryForm {
    Text(Arc<str>),
    Whole {
        text: Arc<str>,
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        labels: BTreeSet<String>,
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        files: BTreeSet<String>,
    },
}

impl From<SummaryForm> for Summary {
    fn from(form: SummaryForm) -> Self {
        match form {
            SummaryForm::Text(text) => Self::from(&*text),
            SummaryForm::Whole { text, labels, files } => Self { text, labels, files },
        }
    }
}

impl From<Summary> for SummaryForm {
    fn from(Summary { text, labels, files }: Summary) -> Self {
        if labels.is_empty() && files.is_empty() {
            return Self::Text(text);
        }
        Self::Whole { text, labels, files }
    }
}

/// Of a conversation in which nothing came from outside and no file was written.
impl From<&str> for Summary {
    fn from(text: &str) -> Self {
        Self { text: text.into(), labels: BTreeSet::new(), files: BTreeSet::new() }
    }
}

impl Summary {
    /// Whether it was made of what nobody vouches for, so that it is data and no instruction.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.labels.contains(outrigger_policy::UNTRUSTED)
    }

    /// Bytes of what a model is shown of it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.text.len() + self.files.iter().map(|file| file.len() + 1).sum::<usize>()) as u64
    }
}

/// Who said something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// A person, by principal name, for example `person:local`.
    Person(String),
    /// The agent that started this one, by its name. What it was made of labels the session.
    Agent(String),
    /// Content from outside that nobody vouches for, by where it came from, for
    /// example `AGENTS.md` or `stdin`. Shown to the model as data, with that name.
    Untrusted(String),
    /// A file of the repository that a person trusts as it is. Shown to the model as what
    /// guides it, and no source of a label for that person.
    Trusted(TrustedFile),
}

/// A file that a person trusts, and as what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFile {
    /// Its name, for example `AGENTS.md`.
    pub name: String,
    /// Of the contents that were trusted.
    pub digest: Digest,
    /// Who trusts it, by principal name.
    pub by: String,
}

/// Something said to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who said it.
    pub author: Author,
    /// What was said; at most [`limits::MESSAGE_BYTES_MAX`].
    pub text: String,
    /// What was shown with it, to be looked at before the text; at most
    /// [`limits::PICTURES_PER_MESSAGE_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    /// Whether it begins a turn of its own where one runs, instead of steering that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_turn: bool,
    /// The request that it came with, where that has a name: what comes again under the same one
    /// was said before ([`State::has_heard`](crate::State::has_heard)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Digest>,
}

impl Message {
    /// One without pictures, of no request that has a name.
    #[must_use]
    pub fn new(author: Author, text: String) -> Self {
        let (pictures, after_turn, request) = (Vec::new(), false, None);
        Self { author, text, pictures, after_turn, request }
    }

    /// Bytes of text that take as many tokens as all of it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let tokens: u64 = self.pictures.iter().map(Picture::tokens).sum();
        tokens.saturating_mul(limits::BYTES_PER_TOKEN).saturating_add(self.text.len() as u64)
    }
}

/// Which wire, provider and model a reply came from. A provider's own items are
/// given back only to the same one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The wire, for example `anthropic-messages`.
    pub api: String,
    /// The provider, by the host of its base URL.
    pub provider: String,
    /// The model, as the provider named it.
    pub model: String,
    /// The provider's id of the response.
    pub response_id: Option<String>,
}

/// What the model answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// Where it came from.
    pub origin: Origin,
    /// What it says, in the order in which it was said.
    pub parts: Vec<Part>,
    /// The provider's own items, verbatim and in order; empty where it has none.
    pub native: Vec<Raw>,
    /// [`Reply::fingerprint_of`] the parts when `native` was taken. If the parts
    /// were changed since (a redaction), `native` is no longer given back.
    pub fingerprint: Digest,
    /// Why it ended.
    pub stop: Stop,
    /// What it cost.
    pub usage: Usage,
}

impl Reply {
    /// Fingerprint of canonical parts.
    #[must_use]
    pub fn fingerprint_of(parts: &[Part]) -> Digest {
        let text = serde_json::to_vec(parts).expect("parts are plain data and always serialise");
        Digest::of(&text)
    }

    /// The native items, if there are any and they came from this very model. That
    /// they still stand for the parts was checked when the reply was folded into
    /// the state, so that asking costs nothing.
    #[must_use]
    pub fn native_for(&self, api: &str, provider: &str, model: &str) -> Option<&[Raw]> {
        let same = self.origin.api == api
            && self.origin.provider == provider
            && self.origin.model == model
            && !self.native.is_empty();
        same.then_some(&self.native)
    }

    /// Whether the native items still stand for the parts.
    #[must_use]
    pub fn native_is_current(&self) -> bool {
        Self::fingerprint_of(&self.parts) == self.fingerprint
    }

    /// The tool calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            Part::Text(_) | Part::Thinking(_) | Part::Opaque(_) => None,
        })
    }

    /// Whether it came to its end and says nothing: no text, and no call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stop == Stop::End && self.calls().next().is_none() && self.text().trim().is_empty()
    }

    /// Bytes of its canonical parts, for where no provider counted tokens.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = |part: &Part| match part {
            Part::Text(text) | Part::Thinking(text) | Part::Opaque(text) => text.len(),
            Part::Call(call) => call.id.len() + call.name.len() + call.arguments.len(),
        };
        self.parts.iter().map(bytes).sum::<usize>() as u64
    }

    /// All text parts, joined.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Thinking(_) | Part::Call(_) | Part::Opaque(_) => None,
        });
        texts.collect()
    }
}

/// A part of a reply, in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text for the reader.
    Text(String),
    /// Reasoning, as far as the provider shows it; may be empty.
    Thinking(String),
    /// A wish to call a tool.
    Call(Call),
    /// Something that only the provider understands, by its type name.
    Opaque(String),
}

/// A wish to call a tool, exactly as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The provider's id of the call.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// The raw text of its arguments: JSON, if the model behaved.
    pub arguments: String,
}

impl Call {
    /// Its arguments as a tool takes them: models write nothing at all for one that has none.
    #[must_use]
    pub fn given(&self) -> &str {
        match self.arguments.trim() {
            "" => "{}",
            text => text,
        }
    }
}

/// The pictures of a conversation, in order.
pub fn pictures(conversation: &[Item]) -> impl Iterator<Item = &Picture> {
    conversation.iter().flat_map(|item| match item {
        Item::Message(message) => message.pictures.as_slice(),
        Item::Reply(_) | Item::Result(_) | Item::Summary(_) | Item::Notice(_) => &[],
    })
}

/// The last words of the model. Nothing if it said none.
#[must_use]
pub fn answer(conversation: &[Item]) -> String {
    let reply = conversation.iter().rev().find_map(|item| match item {
        Item::Reply(reply) => Some(reply.text()).filter(|text| !text.trim().is_empty()),
        Item::Message(_) | Item::Result(_) | Item::Summary(_) | Item::Notice(_) => None,
    });
    reply.unwrap_or_default()
}

/// Why a reply ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model is done, or waits for its tool calls.
    End,
    /// The limit of output tokens cut it.
    OutputLimit,
    /// The model or its provider refused, with the reason if one was given.
    Refused(String),
    /// The provider paused a long turn and wants the same conversation again.
    Paused,
}

/// Tokens of one model call, as the provider counted them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// All input, cached or not.
    pub input_tokens: u64,
    /// All output, reasoning included.
    pub output_tokens: u64,
    /// Input that was read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Input that was written to the provider's cache.
    pub cache_write_tokens: u64,
    /// Output that was reasoning.
    pub reasoning_tokens: u64,
    /// The provider's own account, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<Raw>,
}

/// How a tool call went, as the model is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It did what it was asked.
    Ok,
    /// It failed; the text says why and what to change.
    Error,
    /// It was not performed: forbidden, or denied by a person.
    Denied,
    /// It may have happened fully, partly or not at all.
    Unknown,
}

/// What a tool call gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The effect that gave it.
    pub effect: Seq,
    /// The provider's id of the call.
    pub call: String,
    /// Name of the tool.
    pub tool: String,
    /// How it went.
    pub status: Status,
    /// What the model sees.
    pub text: String,
    /// Where that came from, if it was outside.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<String>,
}
