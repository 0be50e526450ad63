//! The port to tools of other people's servers.
//!
//! Owns what is asked of such a server and how it can fail: what never arrived is kept
//! apart from what may have happened. Must never take a server's word for what a tool
//! does, nor hand its text on with terminal control in it.

use async_trait::async_trait;
use outrigger_agent::Digest;
use outrigger_sandbox::Sandbox;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

mod description;
mod offer;
mod shown;

pub use description::{ToolDescription, clean};
pub use offer::{DeclaredEffect, Offer, OfferError, is_name, label, name};
pub use shown::shown;

/// The names of what an attempt at a call may run in a sandbox longer than anybody waits for it:
/// what reads the answer, and what begins the server. Whoever gives an attempt up kills both.
#[must_use]
pub fn execs_of(exec: &str) -> [String; 2] {
    [exec.to_owned(), format!("{exec}.{BEGIN}")]
}

/// What the name ends in of what begins a server.
pub const BEGIN: &str = "begin";

/// What tools a server has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolListing {
    /// In its order, each name once.
    pub tools: Vec<ToolDescription>,
    /// How many more it has whose names are none ([`is_name`]). They are not told on: such a
    /// name could be a command for whoever pastes it.
    pub left_out: usize,
}

/// A call of a tool outside.
#[derive(Debug, Clone)]
pub struct OutsideCall<'a> {
    /// The tool, as its server names it.
    pub tool: &'a str,
    /// What the server must still say of it.
    pub held_to: &'a Digest,
    /// A JSON object.
    pub arguments: &'a str,
    /// An idempotency key: every attempt at one effect has the same, and no other effect has it.
    pub key: &'a str,
    /// From the start to giving up, in milliseconds.
    pub timeout_ms: u64,
    /// A name for what this attempt runs in a sandbox, and no other attempt.
    pub exec: &'a str,
    /// Whose call it is: the session. A program that lives from call to call is that session's.
    pub holder: &'a str,
    /// Where the server runs, if it runs in a sandbox of the session.
    pub sandbox: Option<&'a Arc<dyn Sandbox>>,
    /// How often the arguments were sent; counted right before each time, of which there are
    /// no more than [`SENDS_MAX`](outrigger_agent::limits::SENDS_MAX).
    pub sends: &'a AtomicU64,
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAnswer {
    /// Its content, in its order.
    pub blocks: Vec<Block>,
    /// Whether the server says that the call failed.
    pub failed: bool,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// Text.
    Text(String),
    /// Something that we say beside it, for example that the server was begun anew.
    Notice(String),
    /// Something that is named and not shown.
    Other {
        /// What it is, for example `image/png`.
        what: String,
        /// How large it is, in bytes.
        bytes: u64,
    },
}

/// Why there is no answer. What it says is ours, never the server's, but in [`Outside::list`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The server was not asked to do anything: it may be tried again.
    NotAsked {
        /// Why, and what to do.
        detail: String,
    },
    /// The server describes the tool otherwise than it has to, or has it no more: it was not
    /// asked to do anything.
    Changed {
        /// What it says now, if it still has the tool.
        now: Option<Digest>,
    },
    /// The server was asked, and what became of it is not known.
    MayHaveHappened {
        /// What is known.
        detail: String,
    },
}

/// A server outside that has tools.
///
/// Both methods may be called at once from many tasks. Neither repeats anything that may
/// have happened; dropping a future stops the waiting, and not what was asked for. An
/// implementation bounds what it reads, and gives up at its timeouts.
#[async_trait]
pub trait Outside: Send + Sync + Debug {
    /// What tools it has now, at most [`crate::limits::OUTSIDE_TOOLS_MAX`]. A fault may quote
    /// the last line that a program complained of, made harmless for a terminal: it is for
    /// people, and must not reach a model.
    async fn list(&self, sandbox: Option<&Arc<dyn Sandbox>>) -> Result<ToolListing, Fault>;

    /// Calls one, if the server still describes it as it has to.
    async fn call(&self, call: &OutsideCall<'_>) -> Result<ToolAnswer, Fault>;
}
