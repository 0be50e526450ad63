//! Events in orders that can't be: neither function may panic over them.

use outrigger_agent::{
    AccountId, Amounts, Answer, Call, CallFault, Cause, Cut, CutSandbox, EntryChange, Event,
    Failure, Item, Limit, Loss, Measure, ModelFault, Outcome, Part, Place, Product, Record, Reply,
    Seq, SessionId, SharedAccess, Shortfall, SnapshotRef, Spec, State, Status, ToolCall,
    ToolResult, Touched, TurnEnd, TurnLimits, Usage, Work,
};
use outrigger_policy::Verdict;
use proptest::prelude::*;
use std::sync::Arc;

use crate::build::{self, rule_set};
use crate::properties::{cases, question};
use crate::tape::Tape;

/// Anything from nothing to more than fits anywhere.
fn number(tape: &mut Tape) -> u64 {
    match tape.below(4) {
        0 => u64::from(tape.byte()),
        1 => u64::MAX - u64::from(tape.byte()),
        2 => 0,
        _ => u64::from(tape.byte()) << 32,
    }
}

fn amounts(tape: &mut Tape) -> Amounts {
    Amounts {
        steps: number(tape),
        tokens: number(tape),
        money_nanos: number(tape),
        wall_ms: number(tape),
        cpu_ms: number(tape),
        egress_bytes: number(tape),
    }
}

fn limit(tape: &mut Tape) -> Limit {
    Limit { wall_ms: None, cpu_ms: None, ..amounts(tape).into() }
}

fn shortfall(tape: &mut Tape) -> Shortfall {
    let cause = match tape.below(4) {
        0 => Cause::Limit(Measure::Money),
        1 => Cause::Soft(Measure::Tokens),
        2 => Cause::Unpriced,
        _ => Cause::Stopped { reason: text(tape) },
    };
    Shortfall { account: tape.rarely(128).then(AccountId::organisation), cause }
}

fn shared(tape: &mut Tape) -> SharedAccess {
    match tape.below(3) {
        0 => SharedAccess::None,
        1 => SharedAccess::Read,
        _ => SharedAccess::TakePart,
    }
}

fn effect(tape: &mut Tape) -> Seq {
    if tape.rarely(8) { Seq(number(tape)) } else { Seq(u64::from(tape.below(12))) }
}

fn text(tape: &mut Tape) -> String {
    tape.pick(&["", "a", "read", "bash", "work", "ü\u{0}", "c0", "{}"]).to_owned()
}

fn limits(tape: &mut Tape) -> TurnLimits {
    TurnLimits { steps_max: number(tape), wall_ms_max: number(tape) }
}

/// A cut that no session can have had.
fn cut(tape: &mut Tape) -> Cut {
    let parts = (0..tape.below(3)).map(|_| {
        let (id, name, arguments) = (text(tape), text(tape), text(tape));
        Part::Call(Call { id, name, arguments })
    });
    let parts = parts.collect();
    let mut conversation = vec![Item::Notice("n".into())];
    if tape.rarely(200) {
        conversation.push(Item::Reply(Arc::new(build::reply(parts))));
    }
    let waiting = tape.rarely(128).then(|| {
        let result = ToolResult {
            effect: effect(tape),
            call: text(tape),
            tool: text(tape),
            status: Status::Ok,
            text: text(tape),
            labels: Default::default(),
        };
        [(u32::from(tape.below(4)), Arc::new(result))].into()
    });
    let Outcome::Done(Product::Sandbox(ready)) = build::sandbox("g1") else { unreachable!() };
    let kept = tape.rarely(128).then(|| SnapshotRef { snapshot: text(tape), at_ms: number(tape) });
    Cut {
        session: SessionId::new("s1").unwrap(),
        at: effect(tape),
        conversation,
        queued: Vec::new(),
        waiting,
        ended: None,
        spent: amounts(tape),
        labels: [text(tape)].into(),
        counted_tokens: number(tape),
        uncounted_bytes: number(tape),
        replies: number(tape),
        sandboxes: [(text(tape), CutSandbox { ready, kept })].into(),
    }
}

fn spec(tape: &mut Tape) -> Spec {
    let mut spec = build::spec();
    spec.budget = limit(tape);
    spec.soft = limit(tape);
    spec.turn = limits(tape);
    spec.model.context_tokens = number(tape);
    spec.model.output_tokens_max = number(tape);
    spec.tools.truncate(usize::from(tape.below(5)));
    spec
}

fn work(tape: &mut Tape) -> Work {
    match tape.below(5) {
        0 => Work::AskModel,
        1 => Work::Compact,
        2 => Work::Provision { sandbox: text(tape) },
        _ => {
            let arguments = text(tape);
            Work::CallTool(ToolCall {
                reply: effect(tape),
                index: tape.below(4).into(),
                call: text(tape),
                tool: text(tape),
                arguments: build::digest(&arguments),
                amends: tape.rarely(60).then(|| effect(tape)),
            })
        }
    }
}

fn reply(tape: &mut Tape) -> Reply {
    let calls = 0..tape.below(4);
    let parts = calls.map(|_| build::call(&text(tape), &text(tape), &text(tape))).collect();
    let usage =
        Usage { input_tokens: number(tape), output_tokens: number(tape), ..Usage::default() };
    Reply { usage, ..build::reply(parts) }
}

fn outcome(tape: &mut Tape) -> Outcome {
    let detail = text(tape);
    match tape.below(10) {
        0..3 => build::done(reply(tape)),
        3 => build::output(&detail),
        4 => build::sandbox(&detail),
        5 => Outcome::Cancelled,
        6 => Outcome::Unknown { evidence: detail },
        7 => Outcome::Failed(Failure::Model {
            fault: ModelFault::ContextTooLong,
            detail,
            retry_at_ms: tape.rarely(128).then(|| number(tape)),
        }),
        8 => Outcome::Failed(Failure::Call(CallFault::Duplicated)),
        _ => Outcome::Failed(
            [Failure::Budget, Failure::Sandbox { detail }][usize::from(tape.below(2))].clone(),
        ),
    }
}

fn touched(tape: &mut Tape) -> Touched {
    let change = EntryChange {
        number: u64::MAX - u64::from(tape.byte()),
        path: text(tape),
        revision: u64::from(tape.byte()),
        digest: None,
        removed: true,
        via: text(tape),
    };
    let labels = [text(tape)].into();
    Touched { changes: vec![change.clone(), change], labels, ..Touched::default() }
}

fn verdict(tape: &mut Tape) -> Verdict {
    let rules = vec![text(tape)];
    match tape.below(3) {
        0 => Verdict::Permit { rules },
        1 => Verdict::Ask { rules, approvers: vec![text(tape)], escalates: vec![text(tape)] },
        _ => Verdict::forbid(rules),
    }
}

fn event(tape: &mut Tape) -> Event {
    let by = "p".to_owned();
    let effect = effect(tape);
    match tape.below(16) {
        0 => Event::Opened(Arc::new(spec(tape))),
        1 => build::said(&text(tape)),
        2..5 => Event::Proposed(work(tape)),
        5..7 => Event::Decided { effect, verdict: verdict(tape), rule_set: rule_set() },
        7 => {
            let arguments = tape.rarely(60).then(|| build::digest(&text(tape)));
            let answer = match tape.below(3) {
                0 => build::approved(),
                1 => Answer::Amended { arguments: text(tape) },
                _ => Answer::Denied { reason: text(tape) },
            };
            Event::Answered { effect, by, arguments, answer }
        }
        9..11 => {
            let place = tape.rarely(128).then(|| Place {
                sandbox: text(tape),
                generation: text(tape),
                exec: text(tape),
            });
            let attempt = u32::MAX - u32::from(tape.byte());
            Event::Started { effect, attempt, reserved: amounts(tape), place }
        }
        11..13 => Event::Settled {
            effect,
            outcome: outcome(tape),
            spent: amounts(tape),
            estimated: tape.byte() > 127,
        },
        13 => match tape.below(6) {
            0 if tape.rarely(128) => Event::CompactionRequested { by },
            0 if tape.rarely(64) => Event::Shared { with: text(tape), access: shared(tape), by },
            0 => Event::Interrupted { by },
            4 if tape.rarely(128) => Event::Touched(Arc::new(touched(tape))),
            5 => Event::Withheld { effect, shortfall: shortfall(tape) },
            1 => build::lost(&text(tape)),
            2 if tape.rarely(40) => Event::Cancelled { by, reason: text(tape) },
            2 => Event::SandboxLost {
                sandbox: text(tape),
                generation: text(tape),
                loss: Loss::Altered(text(tape)),
            },
            _ => {
                let kept = SnapshotRef { snapshot: text(tape), at_ms: u64::from(tape.byte()) };
                let (sandbox, dropped) = (text(tape), vec![text(tape)]);
                Event::SandboxKept { sandbox, kept, dropped }
            }
        },
        14 if tape.rarely(100) => {
            let cut = Arc::new(cut(tape));
            let forked = tape.rarely(128);
            if forked { Event::Forked { by, cut } } else { Event::Rewound { by, cut } }
        }
        14 => {
            let budget = tape.rarely(128).then(|| limit(tape));
            let turn = tape.rarely(128).then(|| limits(tape));
            Event::Resumed { by, budget, turn, model: None, network: None }
        }
        _ => Event::TurnEnded(
            [TurnEnd::Answered, TurnEnd::Interrupted, TurnEnd::Cancelled, TurnEnd::StepsExhausted]
                [usize::from(tape.below(4))]
            .clone(),
        ),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(1_500), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_in_impossible_orders_are_folded_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400)
    ) {
        let mut tape = Tape::new(bytes);
        let mut state = State::default();
        let mut at = 0;
        while !tape.is_over() {
            at += 1;
            // Places repeat and jump, so that effects take each other's place.
            let seq = if tape.rarely(10) { Seq(number(&mut tape)) } else { Seq(at % 12) };
            let record = Record { seq, at_ms: number(&mut tape), event: event(&mut tape) };
            state = state.apply(&record);
            let now_ms = number(&mut tape);
            question(&state, now_ms);
        }
        let text = serde_json::to_string(&state).unwrap();
        let read: State = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), text);
        prop_assert_eq!(read, state);
    }
}
