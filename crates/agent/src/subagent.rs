//! Sessions that a session starts by a tool call: what each may spend, and how it begins.
//!
//! Owns that all of it follows from the journal of the session above, so that a crash
//! finds the same one again; that what it may spend is reserved there, whole; and that it
//! has no tool and no label fewer than that one would have it. Must never let a model choose
//! rights.

use std::collections::BTreeMap;

use crate::spec::fixed_bytes;
use crate::{
    Amounts, Assignment, Author, Cut, Delegate, Digest, Files, Limit, Measure, Message, Parent,
    Role, Seq, SessionId, Spec, State, ToolCall, ToolKind, ToolSpec, TurnLimits, limits,
};

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

/// What the first question of a subagent to the model may cost, with so much output.
fn first_call(assignment: &Assignment, agent: &Delegate, ours: &Spec, output: u64) -> Amounts {
    let fixed = fixed_bytes(agent.system(ours), agent.tools(ours));
    let bytes = fixed.saturating_add(assignment.task.len() as u64);
    let input = bytes.div_ceil(limits::BYTES_PER_TOKEN);
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

impl Child {
    /// How the subagent begins that a call of `state` which was started is.
    ///
    /// # Errors
    /// What is wrong with the call, for the model.
    pub fn of(
        state: &State,
        session: &SessionId,
        id: Seq,
        call: &ToolCall,
    ) -> Result<Self, String> {
        let (assignment, agent) = state.assignment(call)?;
        let ours = state.spec().ok_or("the session was never opened")?;
        let budget = endowment_of(state.reserved_for(id), ours);
        let least = ours.model.output_tokens_max.min(limits::OUTPUT_TOKENS_MIN);
        if !first_call(&assignment, agent, ours, least).fits(budget) {
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
                wall_ms_max: state.limits.map_or(u64::MAX, |limits| limits.wall_ms_max),
            },
            role: Role {
                agent: Some(agent.name.clone()),
                definition: None,
                trigger: None,
                above,
                speakers: state.speakers().iter().cloned().collect(),
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
            labels: state.labels().clone(),
            counted_tokens: 0,
            uncounted_bytes: fixed_bytes(&spec.system, spec.tools.iter()),
            replies: 0,
            sandboxes: BTreeMap::new(),
        };
        let task = Message::new(Author::Agent(name), assignment.task);
        Ok(Self { session: session.child(id), spec, cut, task, files: assignment.files })
    }
}

/// What is reserved for a subagent: all that it may spend, and the step of starting it.
pub(crate) fn worst_subagent(state: &State, call: &ToolCall, spec: &Spec) -> Amounts {
    match state.assignment(call) {
        Ok((assignment, agent)) => endowment(state, &assignment, agent, spec).plus(Amounts::STEP),
        // It is told what is wrong, and nothing is started.
        Err(_) => Amounts::STEP,
    }
}

/// Whether a subagent could not ask the model once if it were started now.
pub(crate) fn is_starved(state: &State, call: &ToolCall, spec: &Spec) -> bool {
    state.assignment(call).is_ok_and(|(assignment, agent)| {
        let budget = endowment(state, &assignment, agent, spec);
        let whole = spec.model.output_tokens_max;
        !first_call(&assignment, agent, spec, whole).fits(Limit::from(budget))
    })
}

/// Why a subagent is not started with what was asked for it: more than the session has
/// left, or than such an agent may spend, is refused and not made less.
pub(crate) fn asks_too_much(state: &State, call: &ToolCall) -> Option<String> {
    let (assignment, agent) = state.assignment(call).ok()?;
    let too_much = |(measure, name): (Measure, &str)| {
        let asked = assignment.asked(measure)?;
        let left = left_for_child(state, measure).filter(|left| asked > *left);
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
fn left_for_child(state: &State, measure: Measure) -> Option<u64> {
    let left = state.budget().left(state.spent().plus(state.reserved()));
    match measure {
        // Starting it is a step too, and it has no more than its parent's turn.
        Measure::Steps => {
            let left = left.of(measure).map(|left| left.saturating_sub(1));
            Some(left.unwrap_or(u64::MAX).min(steps_of_turn(state)))
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
fn endowment(state: &State, assignment: &Assignment, agent: &Delegate, spec: &Spec) -> Amounts {
    let first = first_call(assignment, agent, spec, spec.model.output_tokens_max);
    let of = |measure: Measure, fill: u64| {
        let left = left_for_child(state, measure);
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
fn steps_of_turn(state: &State) -> u64 {
    let most = state.limits.map_or(u64::MAX, |limits| limits.steps_max);
    most.saturating_sub(state.turn.as_ref().map_or(0, |turn| turn.steps.saturating_add(1)))
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

    /// What this would be for a session of its own, which has no parent.
    #[must_use]
    pub fn on_its_own(&self) -> Self {
        Self { role: Role { parent: None, trigger: None, ..self.role.clone() }, ..self.clone() }
    }
}
