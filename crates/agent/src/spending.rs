//! What an effect may cost at most, and what stands against it although the rules permit it.
//!
//! Owns the worst case of every kind of work. Accounts above the session are looked at
//! where all sessions are known, which is the store; what it says comes back as an event.

use serde_json::value::RawValue;
use std::collections::BTreeMap;

use crate::subagent::worst_subagent;
use crate::{
    Amounts, Call, Cause, Measure, Shortfall, Spec, State, ToolCall, ToolSpec, Work, limits,
};

/// The worst case of an effect.
pub(crate) fn reservation(state: &State, work: &Work, spec: &Spec) -> Amounts {
    match work {
        Work::AskModel | Work::Compact => worst_model_call(state, spec),
        Work::CallTool(call) if state.starts_subagent(work) => worst_subagent(state, call, spec),
        Work::CallTool(call) => worst_tool_call(state, call),
        Work::Provision { .. } => Amounts::default(),
    }
}

/// Its input, all of its output, and an hour, or the time that is left if that is less:
/// the call is given up when that is over.
fn worst_model_call(state: &State, spec: &Spec) -> Amounts {
    let output = spec.model.output_tokens_max;
    let price = spec.model.price.unwrap_or_default();
    let left = state.budget.left(state.spent.plus(state.reserved())).of(Measure::Wall);
    Amounts {
        steps: 1,
        tokens: state.whole_call_tokens(spec),
        money_nanos: price.worst_nanos(state.input_tokens_estimate(), output),
        wall_ms: left.unwrap_or(u64::MAX).clamp(1, limits::MODEL_MS_MAX),
        cpu_ms: 0,
        egress_bytes: 0,
    }
}

/// A command has the deadline that its arguments or its tool say, until it is dead. Of
/// what is sent out the model has the arguments in its hand.
fn worst_tool_call(state: &State, call: &ToolCall) -> Amounts {
    let leaves = state.tool(&call.tool).is_some_and(ToolSpec::leaves);
    let given = state.call(call).filter(|_| leaves).map_or("", Call::given);
    let step = Amounts { egress_bytes: egress_bytes(given, limits::SENDS_MAX), ..Amounts::STEP };
    let Some(deadline) = state.tool(&call.tool).and_then(|tool| tool.deadline.as_ref()) else {
        return Amounts { wall_ms: limits::CALL_MS_MAX, ..step };
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
    let cpu_ms = wall_ms.saturating_mul(u64::from(deadline.cpu_millis)).div_ceil(1_000);
    Amounts { wall_ms, cpu_ms, ..step }
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
