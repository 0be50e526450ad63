//! Which seeds have subagents, whom their sessions may start, and what their models call
//! what they ask for.
//!
//! Owns that a subagent's words follow from its task, and its task from the call that
//! started it: no crash changes them, whatever its session is called.

use outrigger_agent::{Author, Delegate, Item, Limit, Role, ToolSpec};

use crate::seed::{draws, is_one_of};
use crate::{limits, outside_tools};

/// Whether a seed's sessions may start others.
pub(crate) fn has(seed: u64) -> bool {
    is_one_of(seed, 57, limits::FAMILIES_OF_256)
}

/// Whether what is lost in a crash can be missing in the end: such a family's subagents
/// may spend so little that a death changes what becomes of them.
pub(crate) fn is_tight(seed: u64) -> bool {
    has(seed) && draws(seed, 51).u8(..3) == 0
}

/// Whom a seed's session may start.
pub(crate) fn role(seed: u64) -> Role {
    if !has(seed) {
        return Role::default();
    }
    let agent = |name: &str, tools: Option<&[&str]>| Delegate {
        name: name.to_owned(),
        description: format!("{name}s."),
        system: None,
        tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
        limit: Limit::NONE,
    };
    let reads = ["ls", "read_file", "task"];
    let agents = vec![agent("default", None), agent("helper", None), agent("reader", Some(&reads))];
    let deep = 1 + u32::from(draws(seed, 45).bool());
    Role { agents, deep, ..Role::default() }
}

/// The tools of a seed's session.
pub(crate) fn tools(seed: u64, sandbox: &str) -> Vec<ToolSpec> {
    let mut tools = outrigger_tools::specs(sandbox);
    tools.extend(outside_tools::tools(seed));
    let agents = role(seed).agents;
    if !agents.is_empty() {
        tools.push(outrigger_tools::subagent::spec(&agents));
    }
    tools
}

/// Who asks the model, as its conversation says.
#[derive(Debug, Default)]
pub(crate) struct Who {
    /// The words of the calls that led to it; empty for the session that people began.
    path: String,
}

impl Who {
    pub(crate) fn of(items: &[Item]) -> Self {
        let path = items.iter().find_map(|item| match item {
            Item::Message(message) if matches!(message.author, Author::Agent(_)) => {
                message.text.strip_prefix("do ").map(str::to_owned)
            }
            _ => None,
        });
        Self { path: path.unwrap_or_default() }
    }

    pub(crate) fn is_below(&self) -> bool {
        !self.path.is_empty()
    }

    /// A number of its own.
    pub(crate) fn number(&self) -> u64 {
        let add = |sum: u64, byte| sum.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte);
        self.path.bytes().fold(0, add)
    }

    /// A word for a call that no other call has, of whomever.
    pub(crate) fn word(&self, spoken: u64, index: u64) -> String {
        if self.is_below() {
            format!("{}-{spoken}.{index}", self.path)
        } else {
            format!("{spoken}.{index}")
        }
    }
}

/// What a model asks for that starts a subagent.
pub(crate) fn task(rng: &mut fastrand::Rng, seed: u64, word: &str) -> String {
    let agent = match rng.u8(..16) {
        0..8 => "helper",
        8..12 => "default",
        12..15 => "reader",
        _ => "nobody",
    };
    let files = if rng.u8(..4) == 0 { "start" } else { "copy" };
    let wants = match (is_tight(seed), rng.u8(..4)) {
        (true, 0) => format!(r#","max_tokens":{}"#, rng.u64(1_000..9_000)),
        (true, 1) => format!(r#","max_tokens":{}"#, rng.u64(9_000..40_000)),
        (true, 2) => format!(r#","max_steps":{}"#, rng.u64(1..6)),
        _ => String::new(),
    };
    format!(r#"{{"task":"do {word}","agent":"{agent}","files":"{files}"{wants}}}"#)
}
