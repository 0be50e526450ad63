//! Sessions that a session starts by a tool call: which agent each is, what it may spend,
//! and how it begins.
//!
//! Owns that all of it follows from the journal of the session above, so that a crash
//! finds the same one again; that what it may spend is reserved there, whole; and that it
//! has no tool and no label fewer than that one would have it. Must never let a model choose
//! rights.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::spending::fixed_bytes;
use crate::{
    Amounts, Author, Call, Cut, Digest, Effect, Limit, Measure, Message, Phase, Seq, SessionId,
    Spec, State, ToolCall, ToolKind, ToolSpec, TurnLimits, Work, limits,
};

/// Who acts where nobody said so.
pub const DEFAULT_AGENT: &str = "default";

/// Which agent a session is, who started it, and whom it may start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Role {
    /// The agent's name; nothing for the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The names of the agents above, the nearest first: those that started it, or what it
    /// is a fork of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<String>,
    /// The tool call that started it, if it is a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The agents that it may start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Delegate>,
    /// How many agents deep those that it starts may start others: 1 is no deeper.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deep: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The tool call that started a subagent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The session above.
    pub session: SessionId,
    /// The effect in it.
    pub effect: Seq,
}

impl Role {
    /// Whether nothing was said of it.
    pub(crate) fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// The agent, as rules name it: `agent:reviewer`.
    #[must_use]
    pub fn acting(&self) -> String {
        rule_name(self.name())
    }

    /// The agents above it, as rules name them, the nearest first.
    #[must_use]
    pub fn above(&self) -> Vec<String> {
        self.above.iter().map(|name| rule_name(name)).collect()
    }

    fn name(&self) -> &str {
        self.agent.as_deref().unwrap_or(DEFAULT_AGENT)
    }
}

fn rule_name(name: &str) -> String {
    format!("agent:{name}")
}

/// An agent that can be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegate {
    /// Its name, of `[a-z0-9-]`.
    pub name: String,
    /// What the model that may start it is told of it.
    pub description: String,
    /// Its system prompt; nothing for that of the session that starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Names of the tools that it has, if not all. One that the session that starts it
    /// has not, it has not either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The most that one of them may spend.
    #[serde(default, skip_serializing_if = "Limit::is_none")]
    pub limit: Limit,
}

impl Delegate {
    /// Its system prompt.
    fn system<'a>(&'a self, ours: &'a Spec) -> &'a str {
        self.system.as_deref().unwrap_or(&ours.system)
    }

    /// Its tools, of those of the session that starts it. Without the one that starts
    /// others where it is to start none.
    fn tools<'a>(&'a self, ours: &'a Spec) -> impl Iterator<Item = &'a ToolSpec> {
        ours.tools.iter().filter(|tool| {
            let listed = self.tools.as_ref().is_none_or(|tools| tools.contains(&tool.name));
            listed && (ours.role.deep > 1 || tool.kind != ToolKind::Subagent)
        })
    }
}

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
    fn asked(&self, measure: Measure) -> Option<u64> {
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

/// What the first question of a subagent to the model may cost.
fn first_call(assignment: &Assignment, agent: &Delegate, ours: &Spec) -> Amounts {
    let fixed = fixed_bytes(agent.system(ours), agent.tools(ours));
    let bytes = fixed.saturating_add(assignment.task.len() as u64);
    let (input, output) = (bytes.div_ceil(limits::BYTES_PER_TOKEN), ours.model.output_tokens_max);
    let price = ours.model.price.unwrap_or_default();
    let (tokens, money_nanos) = (input.saturating_add(output), price.worst_nanos(input, output));
    Amounts { tokens, money_nanos, ..Amounts::STEP }
}

/// What a model may ask for, and by which argument.
const ASKED: [(Measure, &str); 3] = [
    (Measure::Tokens, "max_tokens"),
    (Measure::Steps, "max_steps"),
    (Measure::Money, "max_dollars"),
];

/// An amount as the model asks for it.
fn shown(measure: Measure, amount: u64) -> String {
    match measure {
        Measure::Money => format!("{}.{:09}", amount / 1_000_000_000, amount % 1_000_000_000),
        Measure::Steps | Measure::Tokens | Measure::Wall | Measure::Cpu | Measure::Egress => {
            amount.to_string()
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

/// How a subagent begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Child {
    /// Its session: the same for the same tool call.
    pub session: SessionId,
    /// What it is opened with.
    pub spec: Spec,
    /// How it stands then: it has read nothing, and carries the labels of who wrote its task.
    /// Its sandboxes are for the engine to say.
    pub cut: Cut,
    /// Its task.
    pub task: Message,
    /// What files it has.
    pub files: Files,
}

impl SessionId {
    /// The subagent that an effect of this session is.
    #[must_use]
    pub fn child(&self, effect: Seq) -> Self {
        let name = format!("{self}-{effect}");
        // Deep below, names get long: the rest of it is a digest, so that it stays its own.
        let digest = || Digest::of(name.as_bytes()).as_str().chars().take(32).collect::<String>();
        Self::new(name.as_str()).or_else(|| Self::new(digest())).expect("a digest is a plain name")
    }
}

impl State {
    /// Whether an effect is a subagent.
    #[must_use]
    pub fn is_subagent(&self, id: Seq) -> bool {
        self.effect(id).is_some_and(|effect| self.starts_subagent(&effect.work))
    }

    /// Whether work is to start a subagent.
    pub(crate) fn starts_subagent(&self, work: &Work) -> bool {
        let Work::CallTool(call) = work else { return false };
        self.tool(&call.tool).is_some_and(|tool| tool.kind == ToolKind::Subagent)
    }

    /// The subagents that were started and gave no result yet. One of them may not be
    /// opened yet.
    pub fn subagents(&self, session: &SessionId) -> impl Iterator<Item = SessionId> {
        let started = |(id, effect): (&Seq, &Effect)| {
            let started = matches!(effect.phase, Phase::Started { .. });
            (started && self.starts_subagent(&effect.work)).then(|| session.child(*id))
        };
        self.effects.iter().filter_map(started)
    }

    /// What the model asks of a subagent.
    ///
    /// # Errors
    /// What is wrong with it, for the model.
    pub fn assignment(&self, call: &ToolCall) -> Result<(Assignment, &Delegate), String> {
        let genuine = self.call(call).ok_or("no reply of the model contains this call")?;
        assignment(genuine, self.spec().map_or(&[], |spec| &spec.role.agents))
    }

    /// How the subagent begins that a call which was started is.
    ///
    /// # Errors
    /// What is wrong with the call, for the model.
    pub fn child(&self, session: &SessionId, id: Seq, call: &ToolCall) -> Result<Child, String> {
        let (assignment, agent) = self.assignment(call)?;
        let ours = self.spec().ok_or("the session was never opened")?;
        let budget = Self::endowment_of(self.reserved_for(id), ours);
        if !first_call(&assignment, agent, ours).fits(budget) {
            return Err("what it may spend does not cover its first question to the model".into());
        }
        let name = ours.role.name().to_owned();
        let above = std::iter::once(&name).chain(&ours.role.above).cloned().collect();
        let parent = Parent { session: session.clone(), effect: id };
        let deep = ours.role.deep.saturating_sub(1);
        let spec = Spec {
            system: agent.system(ours).to_owned(),
            tools: agent.tools(ours).cloned().collect(),
            budget,
            soft: Limit::NONE,
            turn: TurnLimits {
                steps_max: budget.steps.unwrap_or(u64::MAX),
                wall_ms_max: self.limits.map_or(u64::MAX, |limits| limits.wall_ms_max),
            },
            role: Role {
                agent: Some(agent.name.clone()),
                above,
                parent: Some(parent),
                agents: if deep > 0 { ours.role.agents.clone() } else { Vec::new() },
                deep,
            },
            ..(**ours).clone()
        };
        let cut = Cut {
            session: session.clone(),
            at: id,
            conversation: Vec::new(),
            queued: Vec::new(),
            waiting: None,
            ended: None,
            spent: Amounts::default(),
            labels: self.labels().clone(),
            counted_tokens: 0,
            uncounted_bytes: fixed_bytes(&spec.system, spec.tools.iter()),
            replies: 0,
            sandboxes: BTreeMap::new(),
        };
        let task = Message { author: Author::Agent(name), text: assignment.task };
        Ok(Child { session: session.child(id), spec, cut, task, files: assignment.files })
    }

    /// What is reserved for a subagent: all that it may spend, and the step of starting it.
    pub(crate) fn worst_subagent(&self, call: &ToolCall, spec: &Spec) -> Amounts {
        match self.assignment(call) {
            Ok((assignment, agent)) => self.endowment(&assignment, agent, spec).plus(Amounts::STEP),
            // It is told what is wrong, and nothing is started.
            Err(_) => Amounts::STEP,
        }
    }

    /// Whether a subagent could not ask the model once if it were started now.
    pub(crate) fn is_starved(&self, call: &ToolCall, spec: &Spec) -> bool {
        self.assignment(call).is_ok_and(|(assignment, agent)| {
            let budget = self.endowment(&assignment, agent, spec);
            !first_call(&assignment, agent, spec).fits(Limit::from(budget))
        })
    }

    /// Why a subagent is not started with what was asked for it: more than the session has
    /// left, or than such an agent may spend, is refused and not made less.
    pub(crate) fn asks_too_much(&self, call: &ToolCall) -> Option<String> {
        let (assignment, agent) = self.assignment(call).ok()?;
        let too_much = |(measure, name): (Measure, &str)| {
            let asked = assignment.asked(measure)?;
            let left = self.left_for_child(measure).filter(|left| asked > *left);
            let most = agent.limit.of(measure).filter(|most| asked > *most);
            let (limit, whose) = match (left, most) {
                (Some(left), most) if most.is_none_or(|most| left <= most) => {
                    (left, "are left to the session that starts it".to_owned())
                }
                (_, Some(most)) => (most, format!("are the most for the agent `{}`", agent.name)),
                (_, None) => return None,
            };
            let (asked, limit) = (shown(measure, asked), shown(measure, limit));
            Some(format!(
                "`{name}` asks for {asked}, and {limit} {whose}. Ask for less, or leave it out."
            ))
        };
        ASKED.into_iter().find_map(too_much)
    }

    /// What of a measure a subagent may have, if that is limited.
    fn left_for_child(&self, measure: Measure) -> Option<u64> {
        let left = self.budget().left(self.spent().plus(self.reserved()));
        match measure {
            // Starting it is a step too, and it has no more than its parent's turn.
            Measure::Steps => {
                let left = left.of(measure).map(|left| left.saturating_sub(1));
                Some(left.unwrap_or(u64::MAX).min(self.steps_of_turn()))
            }
            Measure::Tokens | Measure::Money | Measure::Wall | Measure::Cpu | Measure::Egress => {
                left.of(measure)
            }
        }
    }

    /// What a subagent may spend: what was asked for, or else a part of what is left, but
    /// what a few questions to the model may cost if there is that much; never
    /// more than is left, nor than such an agent may. Of what nobody limits it has its
    /// fill, or some times that: accounts above count on the number.
    fn endowment(&self, assignment: &Assignment, agent: &Delegate, spec: &Spec) -> Amounts {
        let first = first_call(assignment, agent, spec);
        let of = |measure: Measure, fill: u64| {
            let left = self.left_for_child(measure);
            let floor = first.of(measure).saturating_mul(limits::CHILD_CALLS);
            let share = |left: u64| (left / limits::CHILD_SHARES).max(floor).min(left);
            let part = left.map_or(fill.max(floor), |left| fill.max(floor).min(share(left)));
            let wanted = assignment.asked(measure).unwrap_or(part);
            let most = left.unwrap_or(fill.saturating_mul(limits::CHILD_ASKS_TIMES));
            wanted.min(most).min(agent.limit.of(measure).unwrap_or(most))
        };
        let tokens = of(Measure::Tokens, limits::CHILD_TOKENS);
        let price = spec.price_of_input(tokens);
        Amounts {
            steps: of(Measure::Steps, limits::CHILD_STEPS),
            tokens,
            money_nanos: of(Measure::Money, price),
            wall_ms: of(Measure::Wall, limits::CHILD_MS),
            cpu_ms: of(Measure::Cpu, limits::CHILD_MS),
            egress_bytes: of(Measure::Egress, limits::CHILD_EGRESS_BYTES),
        }
    }

    /// Steps that the running turn has left after starting one more effect.
    fn steps_of_turn(&self) -> u64 {
        let most = self.limits.map_or(u64::MAX, |limits| limits.steps_max);
        most.saturating_sub(self.turn.as_ref().map_or(0, |turn| turn.steps.saturating_add(1)))
    }

    /// The budget of a subagent, by what was reserved for it. Where neither money is limited
    /// nor a price known, its money is not limited either: there is none.
    fn endowment_of(reserved: Amounts, spec: &Spec) -> Limit {
        let all = Limit::from(reserved.minus(Amounts::STEP));
        match spec.model.price {
            Some(_) => all,
            None => Limit { money_nanos: None, ..all },
        }
    }
}

impl Spec {
    /// What so many tokens cost, most of which are input.
    fn price_of_input(&self, tokens: u64) -> u64 {
        self.model.price.map_or(0, |price| price.worst_nanos(tokens, 0))
    }

    /// Whether it is a subagent's: its parent is charged for it, and answers for it.
    #[must_use]
    pub fn parent(&self) -> Option<&Parent> {
        self.role.parent.as_ref()
    }

    /// The same for a session of its own, that nobody started.
    #[must_use]
    pub fn on_its_own(&self) -> Self {
        Self { role: Role { parent: None, ..self.role.clone() }, ..self.clone() }
    }
}
