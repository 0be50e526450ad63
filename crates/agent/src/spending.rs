//! What an effect may cost at most, and what stands against it although the rules permit it.
//!
//! Owns the worst case of every kind of work, and how it is made less where less is left.
//! Accounts above the session are looked at where all sessions are known, which is the store;
//! what it says comes back as an event, or makes a start smaller.

use serde_json::value::RawValue;
use std::collections::BTreeMap;

use crate::subagent::worst_subagent;
use crate::{
    Amounts, Call, Cause, Event, Limit, Measure, Phase, Seq, Shortfall, Spec, State, ToolCall,
    ToolKind, ToolSpec, Work, limits,
};

/// The worst case of an effect. Where less is left than is usual, a reply and a command are
/// given less, down to the least that is of use.
pub(crate) fn reservation(state: &State, work: &Work, spec: &Spec, left: Limit) -> Amounts {
    match work {
        Work::AskModel | Work::Compact => model_call(state, spec, left),
        Work::CallTool(call) if state.starts_subagent(work) => worst_subagent(state, call, spec),
        Work::CallTool(call) => tool_call(state, call, left),
        Work::Provision { .. } => Amounts::default(),
    }
}

/// The worst case of an effect of which an attempt that had `before` was lost. Whoever began
/// that one may live and not know that others believe it lost: its reply counts if it comes
/// first, and is as long as it was let be then.
pub(crate) fn reservation_again(
    state: &State,
    work: &Work,
    spec: &Spec,
    left: Limit,
    before: Amounts,
) -> Amounts {
    let again = reservation(state, work, spec, left);
    Amounts {
        tokens: again.tokens.max(before.tokens),
        money_nanos: again.money_nanos.max(before.money_nanos),
        ..again
    }
}

/// A start that accounts above have no room for, with as much less reserved as they leave:
/// they let the session be charged `charged_max` in all. `now_ms` is the time that it carries.
/// Nothing if the least that is of use does not fit either, or if it can't be less.
#[must_use]
pub fn shrunk(state: &State, started: &Event, charged_max: Limit, now_ms: u64) -> Option<Event> {
    let Event::Started { effect: id, attempt, reserved, place } = started else { return None };
    let effect = state.effect(*id)?;
    let mut beside = state.clone();
    beside.lose(*id, now_ms);
    let charged = beside.charged().plus(beside.charged_reserved());
    let left = left(&beside).and(charged_max.left(charged));
    let before = effect.reserved();
    let less = reservation_again(&beside, &effect.work, state.spec()?, left, before);
    if less == *reserved || !less.fits(left) {
        return None;
    }
    let (attempt, place) = (*attempt, place.clone());
    Some(Event::Started { effect: *id, attempt, reserved: less, place })
}

/// What the session's own budget leaves.
pub(crate) fn left(state: &State) -> Limit {
    state.budget.left(state.spent.plus(state.reserved()))
}

/// Its input, as much output as there is room for, and an hour, or the time that is left if
/// that is less: the call is given up when that is over.
fn model_call(state: &State, spec: &Spec, left: Limit) -> Amounts {
    let input = state.input_tokens_estimate();
    let price = spec.model.price.unwrap_or_default();
    let by_tokens = left.of(Measure::Tokens).map(|left| left.saturating_sub(input));
    let by_money = left.of(Measure::Money).map(|left| price.output_tokens_within(left, input));
    let room = by_tokens.unwrap_or(u64::MAX).min(by_money.unwrap_or(u64::MAX));
    let most = spec.model.output_tokens_max;
    let output = most.min(room.max(limits::OUTPUT_TOKENS_MIN));
    Amounts {
        steps: 1,
        tokens: input.saturating_add(output),
        money_nanos: price.worst_nanos(input, output),
        wall_ms: left.of(Measure::Wall).unwrap_or(u64::MAX).clamp(1, limits::MODEL_MS_MAX),
        cpu_ms: 0,
        egress_bytes: 0,
    }
}

/// A command has the deadline that its arguments or its tool say, until it is dead. Of
/// what is sent out the model has the arguments in its hand.
fn tool_call(state: &State, call: &ToolCall, left: Limit) -> Amounts {
    let tool = state.tool(&call.tool);
    let given = state.call(call).filter(|_| tool.is_some_and(ToolSpec::leaves));
    let egress_bytes = egress_bytes(given.map_or("", Call::given), limits::SENDS_MAX);
    let step = Amounts { egress_bytes, ..Amounts::STEP };
    let wall_left = left.of(Measure::Wall).unwrap_or(u64::MAX);
    let Some((tool, deadline)) = tool.and_then(|tool| Some((tool, tool.deadline.as_ref()?))) else {
        let wall_ms = wall_left.clamp(limits::CALL_MS_MIN, limits::CALL_MS_MAX);
        return Amounts { wall_ms, ..step };
    };
    let arguments = state.call(call).map_or("", |call| call.arguments.as_str());
    let asked = match deadline.argument.as_str() {
        "" => None,
        name => asked_ms(arguments, name),
    };
    let wall_ms = asked.map_or(deadline.usual_ms, |asked| {
        // Anything but plain digits may mean a number to the tool: then it is the most.
        asked.parse().unwrap_or(deadline.most_ms).min(deadline.most_ms)
    });
    let wall_ms = wall_ms.saturating_add(limits::KILL_MS);
    let cpu_left = left.of(Measure::Cpu).filter(|_| deadline.cpu_millis > 0);
    let by_cpu = cpu_left
        .map_or(u64::MAX, |left| left.saturating_mul(1_000) / u64::from(deadline.cpu_millis));
    // A command of ours is killed when we say; a server outside keeps its own time.
    let wall_ms = match tool.kind {
        ToolKind::Execute => {
            let least = limits::CALL_MS_MIN + limits::KILL_MS;
            wall_ms.min(wall_left.min(by_cpu).max(least))
        }
        ToolKind::ReadFiles | ToolKind::WriteFiles | ToolKind::Outside | ToolKind::Subagent => {
            wall_ms
        }
    };
    let cpu_ms = wall_ms.saturating_mul(u64::from(deadline.cpu_millis)).div_ceil(1_000);
    Amounts { wall_ms, cpu_ms, ..step }
}

/// What an effect needs of the session's own budget, and what is left there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// Of what there is too little.
    pub measure: Measure,
    /// The least that it needs.
    pub needed: u64,
    /// What is left.
    pub left: u64,
}

impl Shortage {
    /// Why the effect that would be next does not fit into the session's own budget.
    #[must_use]
    pub fn of(state: &State) -> Option<Self> {
        let spec = state.spec.as_ref()?;
        let permitted = state.effects.in_phase(|phase| *phase == Phase::Permitted);
        let short = |id| {
            let left = left(state);
            let reserved = reservation(state, &state.effect(id)?.work, spec, left);
            let after = state.spent.plus(state.reserved()).plus(reserved);
            let measure = after.over(state.budget)?;
            Some(Self { measure, needed: reserved.of(measure), left: left.of(measure)? })
        };
        permitted.into_iter().find_map(short)
    }
}

/// How long the command of an effect may run, in milliseconds, by what was reserved for it.
/// Nothing for what is no command, or has no deadline.
#[must_use]
pub fn command_ms_max(state: &State, id: Seq) -> Option<u64> {
    let effect = state.effect(id)?;
    let Work::CallTool(call) = &effect.work else { return None };
    let tool = state.tool(&call.tool).filter(|tool| tool.kind == ToolKind::Execute)?;
    tool.deadline.as_ref()?;
    Some(effect.reserved().wall_ms.saturating_sub(limits::KILL_MS).max(1))
}

/// What of the session's own budget stands against starting an effect that fits into
/// its hard limit.
pub(crate) fn shortfall(state: &State, work: &Work, reserved: Amounts) -> Option<Shortfall> {
    let spec = state.spec.as_ref()?;
    let asks_model = matches!(work, Work::AskModel | Work::Compact);
    let money = state.budget.of(Measure::Money).or(spec.soft.of(Measure::Money));
    if asks_model && money.is_some() && spec.model.price.is_none() {
        return Some(Shortfall::of_session(Cause::Unpriced));
    }
    if state.soft_lifted_ms("session").is_some() || reserved == Amounts::default() {
        return None;
    }
    let after = state.spent.plus(state.reserved()).plus(reserved);
    after.over(spec.soft).map(|measure| Shortfall::of_session(Cause::Soft(measure)))
}

/// The bytes of arguments that are sent so often.
#[must_use]
pub fn egress_bytes(arguments: &str, sends: u64) -> u64 {
    (arguments.len() as u64).saturating_mul(sends)
}

/// One of a call's arguments as it is written, without reading the others. Nothing if it
/// is left out.
fn asked_ms(arguments: &str, name: &str) -> Option<String> {
    let mut all: BTreeMap<String, &RawValue> = serde_json::from_str(arguments).ok()?;
    let asked = all.remove(name)?.get();
    (asked != "null").then(|| asked.to_owned())
}
