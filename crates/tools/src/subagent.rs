//! The tool by which a model starts a subagent, and what it sees of one that ended.
//!
//! Owns the words. What a subagent is, the turn machine says; the engine runs it.

use outrigger_agent::{
    Concurrency, Delegate, Raw, Recovery, State, Status, ToolKind, ToolOutput, ToolSpec, TurnEnd,
};
use serde_json::json;
use std::collections::BTreeSet;

use crate::{cut, limits, output};

/// Its name.
pub const NAME: &str = "task";

const DESCRIPTION: &str = "Starts a subagent: another agent with a conversation of its own, which \
    does one task and gives back its last message as the result of this call. It sees nothing of \
    this conversation, so write into `task` everything that it has to know, and what its answer \
    is to contain. By default it works on a copy of the files as they are now: what it changes \
    there stays in its copy, so have it answer with what you need, for example a patch. Calls in \
    the same reply run beside each other. Use it for work that can be described in full, such as \
    searching through much, reviewing, or trying several ways at once; not for what takes you a \
    call or two.";

/// The tool, for these agents.
#[must_use]
pub fn spec(agents: &[Delegate]) -> ToolSpec {
    let mut description = DESCRIPTION.to_owned();
    description.push_str("\n\nThe agents:");
    for agent in agents {
        description.push_str(&format!("\n- {}: {}", agent.name, agent.description));
    }
    let names: Vec<_> = agents.iter().map(|agent| agent.name.as_str()).collect();
    let amount = |what: &str, kind: &str| {
        json!({
            "type": kind,
            "description": format!("{what} that it may spend. Without: a part of what you have left."),
        })
    };
    let schema = json!({
        "type": "object",
        "properties": {
            "task": { "type": "string", "description": "What it is to do, with all that it has to know." },
            "agent": { "type": "string", "enum": names, "description": "Which agent." },
            "files": {
                "type": "string",
                "enum": ["copy", "start"],
                "description": "`copy`: a copy of the files as they are now, the default. `start`: the files that you began with.",
            },
            "max_tokens": amount("Tokens", "integer"),
            "max_steps": amount("Model calls and tool calls", "integer"),
            "max_dollars": amount("US dollars", "number"),
        },
        "required": ["task"],
        "additionalProperties": false,
    });
    ToolSpec {
        name: NAME.to_owned(),
        description,
        schema: Raw::new(schema.to_string()).expect("a JSON value is written as JSON"),
        kind: ToolKind::Subagent,
        concurrency: Concurrency::Shared,
        recovery: Recovery::Reattach,
        sandbox: None,
        served: None,
        built_in: None,
        directory: None,
        deadline: None,
        outside: None,
    }
}

/// What the model sees of a subagent that will say no more: its last words, and if those are
/// no answer, why not.
#[must_use]
pub fn shown(state: &State) -> ToolOutput {
    let said = outrigger_agent::answer(state.conversation());
    let (said, hidden_bytes) = cut::middle(&said, limits::ANSWER_BYTES_MAX, "");
    let (status, text) = match why(state) {
        None if said.is_empty() => (Status::Error, "The subagent ended without a word.".to_owned()),
        None => (Status::Ok, said),
        Some(why) if said.is_empty() => (Status::Error, format!("No answer: {why}.")),
        Some(why) => (Status::Error, format!("No answer: {why}. It had said:\n{said}")),
    };
    let labels: BTreeSet<String> = state.labels().clone();
    ToolOutput { status, hidden_bytes, labels, ..output::ok(text) }
}

/// Why a subagent's last words are no answer.
fn why(state: &State) -> Option<String> {
    let why = match state.ended() {
        Some(TurnEnd::Answered) => return None,
        Some(TurnEnd::Refused { reason }) => format!("its model refused: {reason}"),
        Some(TurnEnd::OutputLimit) => "it was cut at the limit of its model's output".to_owned(),
        Some(TurnEnd::Empty) => "its model said nothing".to_owned(),
        Some(TurnEnd::StepsExhausted) => "it has no steps left".to_owned(),
        Some(TurnEnd::TimeExhausted) => "it has no time left".to_owned(),
        Some(TurnEnd::BudgetExhausted) => {
            let (spent, may) = (state.spent(), state.budget());
            let of = |limit: Option<u64>| limit.map_or("any".to_owned(), |limit| limit.to_string());
            format!(
                "what comes next does not fit into what it may spend: it spent {} of {} tokens, \
                 {} of {} steps, and {} of {} ms",
                spent.tokens,
                of(may.tokens),
                spent.steps,
                of(may.steps),
                spent.wall_ms,
                of(may.wall_ms),
            )
        }
        Some(TurnEnd::OutOfBudget(shortfall)) => shortfall.to_string(),
        Some(TurnEnd::ModelFailed { detail, .. }) => format!("its model failed: {detail}"),
        Some(TurnEnd::SandboxFailed { detail }) => format!("it has no sandbox: {detail}"),
        Some(TurnEnd::Interrupted | TurnEnd::Cancelled) | None => {
            "a person stopped the subagent".to_owned()
        }
    };
    Some(why.trim_end_matches('.').to_owned())
}
