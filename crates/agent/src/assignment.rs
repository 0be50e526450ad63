//! The text of a call that starts a subagent.
//!
//! Owns how it is read and what is wrong with it.

use serde::{Deserialize, Serialize};

use crate::{Call, DEFAULT_AGENT, Delegate, Measure, limits};

/// What a model asks for when it starts a subagent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// Which agent.
    #[serde(default = "default_agent")]
    pub agent: String,
    /// What it is to do.
    pub task: String,
    /// What files it has.
    #[serde(default)]
    pub files: Files,
    /// Tokens that it may spend, if not a part of what is left.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// Steps that it may take.
    #[serde(default)]
    pub max_steps: Option<u64>,
    /// US dollars that it may spend.
    #[serde(default)]
    pub max_dollars: Option<f64>,
}

fn default_agent() -> String {
    DEFAULT_AGENT.to_owned()
}

/// What files a subagent has in its sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// A copy of those that the session above has now.
    #[default]
    Copy,
    /// Those that the session above began with.
    Start,
}

impl Assignment {
    /// The amount of a measure that is asked for, if one is.
    pub(crate) fn asked(&self, measure: Measure) -> Option<u64> {
        match measure {
            Measure::Steps => self.max_steps,
            Measure::Tokens => self.max_tokens,
            Measure::Money => self.max_dollars.map(nanos),
            Measure::Wall | Measure::Cpu | Measure::Egress => None,
        }
    }
}

/// What a call asks for, and the agent that it means.
pub(crate) fn assignment<'a>(
    call: &Call,
    agents: &'a [Delegate],
) -> Result<(Assignment, &'a Delegate), String> {
    let read: Assignment = serde_json::from_str(call.given()).map_err(|error| error.to_string())?;
    if read.task.trim().is_empty() {
        return Err("`task` is empty: say what is to be done".to_owned());
    }
    if read.task.len() > limits::MESSAGE_BYTES_MAX {
        let max = limits::MESSAGE_BYTES_MAX;
        return Err(format!("`task` has more than {max} bytes: put it into a file"));
    }
    match agents.iter().find(|agent| agent.name == read.agent) {
        Some(agent) => Ok((read, agent)),
        None => {
            let names: Vec<_> = agents.iter().map(|agent| agent.name.as_str()).collect();
            Err(format!("there is no agent `{}`, only {}", read.agent, names.join(", ")))
        }
    }
}

/// Rounded down; nothing that is no amount of money is one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float becomes the nearest number that there is: below zero 0, above all the largest"
)]
fn nanos(dollars: f64) -> u64 {
    (dollars * 1e9) as u64
}
