//! The tool calls of one reply: which of them are sound, and their results in call order.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::assignment::assignment;
use crate::{
    Call, CallFault, Digest, Failure, Item, Outcome, Part, Phase, Product, Reply, Seq, Spec,
    Status, Stop, ToolCall, ToolKind, ToolResult, TurnEnd, json, limits,
};

/// What the model is told of a call that was not begun when a person stopped the turn.
pub(crate) const STOPPED: &str = "Not performed: a person stopped the turn.";

/// The tool calls of the last reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Round {
    /// The model effect whose reply this is.
    pub(crate) reply: Seq,
    pub(crate) source: Arc<Reply>,
    /// What is wrong with a call, by its index; one that is not here is sound.
    faults: BTreeMap<u32, CallFault>,
    /// Effects of the calls, by index.
    proposed: BTreeMap<u32, Seq>,
    results: BTreeMap<u32, Arc<ToolResult>>,
    /// Calls whose arguments a person changed, by index.
    #[serde(default)]
    amended: BTreeMap<u32, AmendedCall>,
    count: u32,
}

/// A call as a person changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct AmendedCall {
    /// The effect in whose place it comes.
    of: Seq,
    call: Call,
}

impl Round {
    /// Looks at every call of a reply. `repeated` is carried from round to round.
    pub(crate) fn new(
        reply: Seq,
        source: Arc<Reply>,
        spec: &Spec,
        repeated: &mut Option<(String, u32)>,
    ) -> Self {
        let mut faults = BTreeMap::new();
        let mut ids = BTreeSet::new();
        let mut count = 0;
        for (index, call) in (0u32..).zip(source.calls()) {
            count = index + 1;
            let fault = fault_of(call, index, spec, &mut ids).or_else(|| cycle(call, repeated));
            faults.extend(fault.map(|fault| (index, fault)));
        }
        if let Some(index) = cut_call(&source, &faults) {
            faults.insert(index, CallFault::Cut);
        }
        let (proposed, results, amended) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { reply, source, faults, proposed, results, amended, count }
    }

    /// A call as it stands in the reply, or in a person's answer about that one, if
    /// `work` names exactly that.
    pub(crate) fn genuine(&self, work: &ToolCall) -> Option<&Call> {
        let call = match work.amends {
            None => self.source.calls().nth(work.index as usize)?,
            Some(of) => {
                let amended = self.amended.get(&work.index);
                &amended.filter(|amended| amended.of == of)?.call
            }
        };
        let same = call.id == work.call
            && call.name == work.tool
            && Digest::of(call.arguments.as_bytes()) == work.arguments;
        same.then_some(call)
    }

    /// The next call that was not proposed yet.
    pub(crate) fn unproposed(&self) -> Option<ToolCall> {
        let amended = self.amended.iter();
        let mut amended =
            amended.filter(|(index, amended)| self.proposed.get(index) == Some(&amended.of));
        let (index, call, amends) = match amended.next() {
            Some((index, amended)) => (*index, &amended.call, Some(amended.of)),
            None => {
                let index = (0..self.count).find(|index| !self.proposed.contains_key(index))?;
                (index, self.source.calls().nth(index as usize)?, None)
            }
        };
        Some(ToolCall {
            reply: self.reply,
            index,
            amends,
            call: call.id.clone(),
            tool: call.name.clone(),
            arguments: Digest::of(call.arguments.as_bytes()),
        })
    }

    /// Takes note of a call's effect. False if this reply has no such call, or if
    /// it was proposed before.
    pub(crate) fn propose(&mut self, call: &ToolCall, effect: Seq) -> bool {
        let sound = call.reply == self.reply
            && self.proposed.get(&call.index).copied() == call.amends
            && self.genuine(call).is_some();
        if sound {
            self.proposed.insert(call.index, effect);
        }
        sound
    }

    /// Puts other arguments in the place of an effect's.
    pub(crate) fn amend(&mut self, call: &ToolCall, of: Seq, arguments: &str) {
        if self.proposed.get(&call.index) == Some(&of)
            && let Some(genuine) = self.genuine(call)
        {
            let call_now = Call { arguments: arguments.to_owned(), ..genuine.clone() };
            self.amended.insert(call.index, AmendedCall { of, call: call_now });
        }
    }

    /// Whether another effect comes in this one's place, so that it has no result.
    pub(crate) fn is_amended(&self, call: &ToolCall, effect: Seq) -> bool {
        self.amended.get(&call.index).is_some_and(|amended| amended.of == effect)
    }

    /// The results that there are, by index.
    pub(crate) fn results(&self) -> BTreeMap<u32, Arc<ToolResult>> {
        self.results.clone()
    }

    /// With results that calls have already: those are not proposed again.
    pub(crate) fn with_results(mut self, results: &BTreeMap<u32, Arc<ToolResult>>) -> Self {
        for (index, result) in results.range(..self.count) {
            self.proposed.insert(*index, result.effect);
            self.results.insert(*index, Arc::clone(result));
        }
        self
    }

    pub(crate) fn fault(&self, index: u32) -> Option<&CallFault> {
        self.faults.get(&index)
    }

    pub(crate) fn settle(&mut self, index: u32, result: ToolResult) {
        self.results.insert(index, Arc::new(result));
    }

    /// Gives every call that has none a result that says why it was not performed.
    /// Returns how many bytes of text that adds to the conversation.
    pub(crate) fn abandon(&mut self, status: Status, why: &str) -> u64 {
        let before = self.results.len();
        for (index, call) in (0u32..).zip(self.source.calls()) {
            let effect = self.proposed.get(&index).copied().unwrap_or_default();
            self.results.entry(index).or_insert_with(|| {
                let (call, tool) = (call.id.clone(), call.name.clone());
                Arc::new(ToolResult {
                    effect,
                    call,
                    tool,
                    status,
                    text: why.to_owned(),
                    labels: BTreeSet::new(),
                })
            });
        }
        ((self.results.len() - before) * why.len()) as u64
    }

    /// The results in call order, once every call has one.
    pub(crate) fn complete(&self) -> Option<Vec<Item>> {
        let all = self.results.len() == self.count as usize;
        all.then(|| self.results.values().map(|result| Item::Result(Arc::clone(result))).collect())
    }
}

fn fault_of(call: &Call, index: u32, spec: &Spec, ids: &mut BTreeSet<String>) -> Option<CallFault> {
    if index as usize >= limits::CALLS_PER_REPLY_MAX {
        return Some(CallFault::TooMany);
    }
    if !ids.insert(call.id.clone()) {
        return Some(CallFault::Duplicated);
    }
    let Some(tool) = spec.tools.iter().find(|tool| tool.name == call.name) else {
        let available = spec.tools.iter().map(|tool| tool.name.clone()).collect();
        return Some(CallFault::Unknown { available });
    };
    if call.arguments.len() > limits::ARGUMENT_BYTES_MAX {
        return Some(CallFault::Oversized { bytes: call.arguments.len() as u64 });
    }
    malformed(&call.arguments).or_else(|| {
        let agents = (tool.kind == ToolKind::Subagent).then_some(&spec.role.agents)?;
        let detail = assignment(call, agents).err()?;
        Some(CallFault::Malformed { detail })
    })
}

/// The call within which a reply was cut: its last part, if its arguments did not come to
/// their end, or had no beginning.
fn cut_call(source: &Reply, faults: &BTreeMap<u32, CallFault>) -> Option<u32> {
    let (Stop::OutputLimit, Some(Part::Call(call))) = (&source.stop, source.parts.last()) else {
        return None;
    };
    let index = u32::try_from(source.calls().count()).ok()?.checked_sub(1)?;
    let is_cut = match faults.get(&index) {
        Some(fault) => matches!(fault, CallFault::Malformed { .. }),
        None => call.given() == "{}",
    };
    is_cut.then_some(index)
}

/// Models write nothing at all for a tool without arguments; that stands for `{}`.
fn malformed(arguments: &str) -> Option<CallFault> {
    let text = arguments.trim_start();
    if text.is_empty() {
        return None;
    }
    json::arguments_fault(text).map(|detail| CallFault::Malformed { detail })
}

fn cycle(call: &Call, repeated: &mut Option<(String, u32)>) -> Option<CallFault> {
    let key = Digest::of(format!("{}\0{}", call.name, call.arguments).as_bytes()).to_string();
    let times = match repeated {
        Some((last, times)) if *last == key => times.saturating_add(1),
        _ => 1,
    };
    *repeated = Some((key, times));
    (times > limits::SAME_CALL_MAX).then_some(CallFault::Cyclic { times })
}

/// How a turn ends that such a failure leaves nothing else to do.
pub(crate) fn turn_end(failure: &Failure) -> TurnEnd {
    match failure {
        Failure::Model { fault, detail, .. } => {
            TurnEnd::ModelFailed { fault: *fault, detail: detail.clone() }
        }
        Failure::Sandbox { detail } => TurnEnd::SandboxFailed { detail: detail.clone() },
        Failure::Denied { reason } => TurnEnd::Refused { reason: reason.clone() },
        Failure::Budget => TurnEnd::BudgetExhausted,
        Failure::Call(fault) => TurnEnd::Refused { reason: explain(fault) },
    }
}

/// What the model is told of a malformed call: what was wrong and what to do.
fn explain(fault: &CallFault) -> String {
    match fault {
        CallFault::Malformed { detail } => format!(
            "The arguments of this call are not valid: {detail}. Send one JSON object that follows the tool's schema."
        ),
        CallFault::Cut => "Not performed: your output reached its limit within this call, and its arguments are cut off. Write less in one call: a long file in several smaller pieces.".to_owned(),
        CallFault::Duplicated => {
            "Another call of this reply has the same id; only the first was performed. Give every call its own id.".to_owned()
        }
        CallFault::Unknown { available } => {
            format!("There is no such tool. The tools are: {}.", available.join(", "))
        }
        CallFault::Oversized { bytes } => format!(
            "The arguments are {bytes} bytes; at most {} are accepted. Do it in smaller pieces.",
            limits::ARGUMENT_BYTES_MAX
        ),
        CallFault::Cyclic { times } => format!(
            "This is the same call, made {times} times in a row, so it was not performed again. Look at what the earlier ones returned and do something different."
        ),
        CallFault::TooMany => format!(
            "A reply may contain at most {} tool calls; this one came after them and was not performed.",
            limits::CALLS_PER_REPLY_MAX
        ),
    }
}

/// How a call went that came to its end, and what the model is told of it.
pub(crate) fn status_and_text(outcome: &Outcome, phase: &Phase) -> (Status, String) {
    match outcome {
        Outcome::Done(Product::Output(output)) => (output.status, output.text.clone()),
        Outcome::Done(Product::Reply(_) | Product::Sandbox(_)) => {
            (Status::Unknown, "The tool gave something that is no tool's output.".to_owned())
        }
        Outcome::Failed(Failure::Call(fault)) => (Status::Error, explain(fault)),
        Outcome::Failed(Failure::Denied { reason }) => {
            (Status::Denied, format!("Not performed. {reason}"))
        }
        Outcome::Failed(Failure::Sandbox { detail } | Failure::Model { detail, .. }) => {
            (Status::Error, detail.clone())
        }
        Outcome::Failed(Failure::Budget) => (
            Status::Unknown,
            "Lost in a crash, and doing it again does not fit into the budget.".to_owned(),
        ),
        Outcome::Cancelled if matches!(phase, Phase::Started { .. }) => {
            let text = "Stopped by a person while it ran. It may have happened fully, partly or not at all.";
            (Status::Unknown, text.to_owned())
        }
        Outcome::Cancelled => (Status::Denied, STOPPED.to_owned()),
        Outcome::Unknown { evidence } => (Status::Unknown, evidence.clone()),
    }
}

/// What the model is told before the result of a call that it did not write so.
pub(crate) fn amended(arguments: &str) -> String {
    let shown: String = arguments.chars().take(limits::AMENDED_CHARS_MAX).collect();
    let cut = if shown.len() < arguments.len() { " (cut)" } else { "" };
    format!(
        "A person changed the arguments of this call before it was performed, to: {shown}{cut}\n"
    )
}
