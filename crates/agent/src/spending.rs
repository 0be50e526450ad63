//! What an effect may cost at most, and what stands against it although the rules permit it.
//!
//! Owns the worst case of every kind of work. Accounts above the session are looked at
//! where all sessions are known, which is the store; what it says comes back as an event.

use serde_json::value::RawValue;
use std::collections::BTreeMap;

use crate::state::Phase;
use crate::{
    AccountId, Amounts, Asked, Call, Cause, Limit, Measure, Seq, Shortfall, Spec, State, ToolCall,
    ToolSpec, TurnEnd, Work, limits,
};

impl State {
    /// The worst case of an effect.
    pub(crate) fn reservation(&self, work: &Work, spec: &Spec) -> Amounts {
        match work {
            Work::AskModel | Work::Compact => self.worst_model_call(spec),
            Work::CallTool(call) if self.starts_subagent(work) => self.worst_subagent(call, spec),
            Work::CallTool(call) => self.worst_tool_call(call),
            Work::Provision { .. } => Amounts::default(),
        }
    }

    /// Its input, all of its output, and an hour, or the time that is left if that is less:
    /// the call is given up when that is over.
    fn worst_model_call(&self, spec: &Spec) -> Amounts {
        let output = spec.model.output_tokens_max;
        let price = spec.model.price.unwrap_or_default();
        let left = self.budget.left(self.spent.plus(self.reserved())).of(Measure::Wall);
        Amounts {
            steps: 1,
            tokens: self.whole_call_tokens(spec),
            money_nanos: price.worst_nanos(self.input_tokens_estimate(), output),
            wall_ms: left.unwrap_or(u64::MAX).clamp(1, limits::MODEL_MS_MAX),
            cpu_ms: 0,
            egress_bytes: 0,
        }
    }

    /// A command has the deadline that its arguments or its tool say, until it is dead. Of
    /// what is sent out the model has the arguments in its hand.
    fn worst_tool_call(&self, call: &ToolCall) -> Amounts {
        let leaves = self.tool(&call.tool).is_some_and(ToolSpec::leaves);
        let given = self.call(call).filter(|_| leaves).map_or("", Call::given);
        let step =
            Amounts { egress_bytes: egress_bytes(given, limits::SENDS_MAX), ..Amounts::STEP };
        let Some(deadline) = self.tool(&call.tool).and_then(|tool| tool.deadline.as_ref()) else {
            return Amounts { wall_ms: limits::CALL_MS_MAX, ..step };
        };
        let arguments = self.call(call).map_or("", |call| call.arguments.as_str());
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
    pub(crate) fn shortfall(&self, work: &Work, reserved: Amounts) -> Option<Shortfall> {
        let spec = self.spec.as_ref()?;
        let asks_model = matches!(work, Work::AskModel | Work::Compact);
        let money = self.budget.of(Measure::Money).or(spec.soft.of(Measure::Money));
        if asks_model && money.is_some() && spec.model.price.is_none() {
            return Some(Shortfall::of_session(Cause::Unpriced));
        }
        if self.soft_lifted_ms("session").is_some() || reserved == Amounts::default() {
            return None;
        }
        let after = self.spent.plus(self.reserved()).plus(reserved);
        after.over(spec.soft).map(|measure| Shortfall::of_session(Cause::Soft(measure)))
    }

    /// Takes in that an effect was not started. A soft limit asks a person, anything else
    /// ends the turn when what runs has come to its end.
    pub(crate) fn withheld(&mut self, id: Seq, shortfall: &Shortfall, at_ms: u64) {
        let below = self.is_subagent(id);
        self.lose(id, at_ms);
        let Some(effect) = self.effects.get_mut(&id) else { return };
        if effect.phase != Phase::Permitted {
            return;
        }
        match (&shortfall.cause, effect.judged) {
            (Cause::Soft(_), Some(rule_set)) => {
                effect.asked = Some(Asked {
                    rules: vec![Shortfall::RULE.to_owned()],
                    approvers: Vec::new(),
                    escalates: Vec::new(),
                    rule_set,
                    since_ms: at_ms,
                    budget: Some(shortfall.clone()),
                });
                effect.phase = Phase::Asked;
            }
            // The model chose how much, and can choose otherwise.
            (Cause::Limit(_), _) if below => {
                let hint = "Ask for less, with `max_tokens` or `max_dollars`.";
                effect.phase = Phase::Refused { reason: format!("{shortfall}. {hint}") };
            }
            _ => self.stick(TurnEnd::OutOfBudget(shortfall.clone())),
        }
    }

    /// A person lets the session go on beyond a soft limit: to the hard one.
    pub(crate) fn lift_soft(&mut self, level: &str, at_ms: u64) {
        self.soft_lifted.insert(level.to_owned(), at_ms);
        for effect in self.effects.values_mut() {
            let asked = effect.asked.as_ref().and_then(|asked| asked.budget.as_ref());
            if effect.phase == Phase::Asked && asked.is_some_and(|asked| asked.level() == level) {
                effect.phase = Phase::Permitted;
                effect.asked = None;
            }
        }
    }

    /// A person does not: the turn ends, and asks again when it is resumed.
    pub(crate) fn keep_soft(&mut self, id: Seq, shortfall: Shortfall) {
        if let Some(effect) = self.effects.get_mut(&id) {
            effect.phase = Phase::Permitted;
            effect.asked = None;
        }
        self.stick(TurnEnd::OutOfBudget(shortfall));
    }

    /// When a person let the session go on beyond the soft limit of a level, an account or
    /// `session`, in milliseconds since 1970. Nothing if nobody did.
    #[must_use]
    pub fn soft_lifted_ms(&self, level: &str) -> Option<u64> {
        self.soft_lifted.get(level).copied()
    }

    /// The soft limit of the session's own budget.
    #[must_use]
    pub fn soft(&self) -> Limit {
        self.spec.as_ref().map_or(Limit::NONE, |spec| spec.soft)
    }

    /// The accounts above the session that it is charged to.
    #[must_use]
    pub fn accounts(&self) -> Vec<AccountId> {
        let Some(spec) = &self.spec else { return Vec::new() };
        vec![AccountId::organisation(), AccountId::user(&spec.principal)]
    }

    /// What stands against the turn's going on, from the budget of the session itself or
    /// from an account.
    #[must_use]
    pub fn out_of_budget(&self) -> Option<&Shortfall> {
        match &self.ended {
            Some(TurnEnd::OutOfBudget(shortfall)) => Some(shortfall),
            _ => None,
        }
    }
}

/// The bytes of arguments that are sent so often.
#[must_use]
pub fn egress_bytes(arguments: &str, sends: u64) -> u64 {
    (arguments.len() as u64).saturating_mul(sends)
}

/// What every request carries beside the conversation: system prompt and tools.
pub(crate) fn fixed_bytes<'a>(system: &str, tools: impl Iterator<Item = &'a ToolSpec>) -> u64 {
    let tools = tools.map(|tool| tool.description.len() + tool.schema.as_str().len());
    (system.len() + tools.sum::<usize>()) as u64
}

/// One of a call's arguments as it is written, without reading the others. Nothing if it
/// is left out.
fn asked_ms(arguments: &str, name: &str) -> Option<String> {
    let mut all: BTreeMap<String, &RawValue> = serde_json::from_str(arguments).ok()?;
    let asked = all.remove(name)?.get();
    (asked != "null").then(|| asked.to_owned())
}
