//! An event of a journal, as clients read it. Each alone: what belongs together they find by
//! the places that events name.

use outrigger_agent::{
    Amounts, Answer, Author, CallFault, EgressFlow, Event, Failure, Message, Outcome, Part,
    Picture, Product, Record, Reply, Status, ToolOutput, TurnEnd, Work,
};
use outrigger_api::{
    ApprovalKind, EffectKind, EffectOutcome, EventKind, HostFlow, MessageAuthor, PictureInfo,
    ReplyPart, SessionEvent, UsageInfo, VerdictKind,
};
use outrigger_policy::Verdict;

use super::share::access_of;

/// An event.
pub(crate) fn event(record: &Record) -> SessionEvent {
    SessionEvent { seq: record.seq.0, at_ms: record.at_ms, kind: kind(&record.event) }
}

fn kind(event: &Event) -> EventKind {
    match event {
        Event::Opened(spec) => EventKind::Opened {
            principal: spec.principal.clone(),
            model: spec.model.name.clone(),
            tools: spec.tools.iter().map(|tool| tool.name.clone()).collect(),
        },
        Event::Said(message) => said(message),
        Event::Proposed(work) => proposed(work),
        Event::Decided { effect, verdict, .. } => decided(effect.0, verdict),
        Event::Answered { effect, by, answer, .. } => {
            let (answer, text) = answered(answer);
            EventKind::Answered { effect: effect.0, by: by.clone(), answer, text }
        }
        Event::Started { effect, attempt, place, .. } => EventKind::Started {
            effect: effect.0,
            attempt: *attempt,
            sandbox: place.as_ref().map(|place| place.sandbox.clone()),
        },
        Event::Withheld { effect, shortfall } => {
            EventKind::Withheld { effect: effect.0, reason: shortfall.to_string() }
        }
        Event::Settled { effect, outcome, spent, .. } => settled(effect.0, outcome, *spent),
        Event::SandboxLost { sandbox, loss, .. } => EventKind::Sandbox {
            name: sandbox.clone(),
            text: format!("the sandbox ended: {loss}"),
            lost: true,
        },
        Event::SandboxKept { sandbox, .. } => EventKind::Sandbox {
            name: sandbox.clone(),
            text: "its disk was kept".to_owned(),
            lost: false,
        },
        Event::Interrupted { by } => EventKind::Interrupted { by: by.clone() },
        Event::Shared { with, access, by } => {
            EventKind::Shared { with: with.clone(), access: access_of(*access), by: by.clone() }
        }
        Event::CompactionRequested { by } => EventKind::CompactionRequested { by: by.clone() },
        Event::Cancelled { by, reason } => {
            EventKind::Cancelled { by: by.clone(), reason: reason.clone() }
        }
        Event::Resumed { by, budget, turn, model, network } => {
            let mut changes = Vec::new();
            changes.extend(budget.is_some().then(|| "another budget".to_owned()));
            changes.extend(turn.is_some().then(|| "other limits of the turn".to_owned()));
            changes.extend(model.as_ref().map(|model| format!("the model {}", model.name)));
            changes.extend(network.as_ref().map(|words| format!("network: {}", words.join(", "))));
            EventKind::Resumed { by: by.clone(), changes }
        }
        Event::TurnEnded(end) => {
            EventKind::TurnEnded { answered: matches!(end, TurnEnd::Answered), text: turn_end(end) }
        }
        Event::Forked { by, cut } | Event::Rewound { by, cut } => {
            let (session, at) = (cut.session.to_string(), cut.at.0);
            EventKind::Forked { by: by.clone(), session, at }
        }
        Event::Touched(touched) => EventKind::Touched {
            changed: touched.changes.iter().map(|change| change.path.clone()).collect(),
            refused: touched.refused.iter().map(|refused| refused.path.clone()).collect(),
            labels: touched.labels.iter().cloned().collect(),
        },
        Event::Reached(report) => EventKind::Reached {
            effect: report.effect.0,
            flows: report.flows.iter().map(flow).collect(),
            more: report.more,
        },
    }
}

fn said(message: &Message) -> EventKind {
    let (author, name) = match &message.author {
        Author::Person(name) => (MessageAuthor::Person, name.clone()),
        Author::Agent(name) => (MessageAuthor::Agent, name.clone()),
        Author::Untrusted(name) => (MessageAuthor::Untrusted, name.clone()),
        Author::Trusted(file) => (MessageAuthor::File, file.name.clone()),
    };
    let pictures = message.pictures.iter().map(picture).collect();
    EventKind::Said { author, name, text: message.text.clone(), pictures }
}

fn picture(picture: &Picture) -> PictureInfo {
    PictureInfo {
        name: picture.name.clone(),
        media_type: picture.media_type.as_str().to_owned(),
        bytes: picture.bytes,
        width: picture.width,
        height: picture.height,
    }
}

fn proposed(work: &Work) -> EventKind {
    let of = |effect_kind, name| EventKind::Proposed {
        effect_kind,
        name,
        call: None,
        reply: None,
        amends: None,
    };
    match work {
        Work::AskModel => of(EffectKind::Model, None),
        Work::Compact => of(EffectKind::Compaction, None),
        Work::Provision { sandbox } => of(EffectKind::Sandbox, Some(sandbox.clone())),
        Work::CallTool(call) => EventKind::Proposed {
            effect_kind: EffectKind::Tool,
            name: Some(call.tool.clone()),
            call: Some(call.call.clone()),
            reply: Some(call.reply.0),
            amends: call.amends.map(|effect| effect.0),
        },
    }
}

fn decided(effect: u64, verdict: &Verdict) -> EventKind {
    let (kind, approvers) = match verdict {
        Verdict::Permit { .. } => (VerdictKind::Permit, Vec::new()),
        Verdict::Ask { approvers, .. } => (VerdictKind::Ask, approvers.clone()),
        Verdict::Forbid { .. } => (VerdictKind::Forbid, Vec::new()),
    };
    let (rules, reason) = (verdict.rules().to_vec(), verdict.refusal());
    EventKind::Decided { effect, verdict: kind, rules, approvers, reason }
}

fn answered(answer: &Answer) -> (ApprovalKind, Option<String>) {
    match answer {
        Answer::Approved { .. } => (ApprovalKind::Approved, None),
        Answer::Amended { arguments } => (ApprovalKind::Amended, Some(arguments.clone())),
        Answer::Denied { reason } => (ApprovalKind::Denied, Some(reason.clone())),
    }
}

fn settled(effect: u64, outcome: &Outcome, spent: Amounts) -> EventKind {
    let usage = UsageInfo {
        steps: spent.steps,
        tokens: spent.tokens,
        money_nanos: Some(spent.money_nanos),
        wall_ms: spent.wall_ms,
        tokens_max: None,
        money_nanos_max: None,
    };
    let ended = match outcome {
        Outcome::Done(Product::Reply(reply)) => Ended { parts: parts(reply), ..Ended::default() },
        Outcome::Done(Product::Sandbox(ready)) => {
            Ended::saying(format!("{}, {}", ready.backend, ready.isolation))
        }
        Outcome::Done(Product::Output(output)) => Ended {
            exit_code: output.exit_code,
            hidden_bytes: output.hidden_bytes,
            ..Ended::saying(output.text.clone())
        },
        Outcome::Failed(Failure::Model { detail, retry_at_ms, .. }) => {
            Ended { retry_at_ms: *retry_at_ms, ..Ended::saying(detail.clone()) }
        }
        Outcome::Failed(failure) => Ended::saying(failed(failure)),
        Outcome::Cancelled => Ended::default(),
        Outcome::Unknown { evidence } => Ended::saying(evidence.clone()),
    };
    let Ended { parts, text, exit_code, hidden_bytes, retry_at_ms } = ended;
    let outcome = kind_of(outcome);
    EventKind::Settled { effect, outcome, parts, text, exit_code, hidden_bytes, retry_at_ms, usage }
}

/// What an effect came to, but for its kind and what it cost.
#[derive(Default)]
struct Ended {
    parts: Vec<ReplyPart>,
    text: Option<String>,
    exit_code: Option<i32>,
    hidden_bytes: u64,
    retry_at_ms: Option<u64>,
}

impl Ended {
    fn saying(text: String) -> Self {
        Self { text: Some(text), ..Self::default() }
    }
}

fn kind_of(outcome: &Outcome) -> EffectOutcome {
    match outcome {
        Outcome::Done(Product::Output(output)) => of_output(output),
        Outcome::Done(Product::Reply(_) | Product::Sandbox(_)) => EffectOutcome::Done,
        Outcome::Failed(_) => EffectOutcome::Failed,
        Outcome::Cancelled => EffectOutcome::Cancelled,
        Outcome::Unknown { .. } => EffectOutcome::Unknown,
    }
}

fn of_output(output: &ToolOutput) -> EffectOutcome {
    match output.status {
        Status::Ok if output.exit_code.is_none_or(|code| code == 0) => EffectOutcome::Done,
        Status::Ok | Status::Error => EffectOutcome::Error,
        Status::Denied => EffectOutcome::Failed,
        Status::Unknown => EffectOutcome::Unknown,
    }
}

fn parts(reply: &Reply) -> Vec<ReplyPart> {
    let part = |part: &Part| match part {
        Part::Text(text) => Some(ReplyPart::Text { text: text.clone() }),
        Part::Thinking(text) => Some(ReplyPart::Thinking { text: text.clone() }),
        Part::Call(call) => Some(ReplyPart::Call {
            id: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.given().to_owned(),
        }),
        // A provider's own, which only it reads.
        Part::Opaque(_) => None,
    };
    reply.parts.iter().filter_map(part).collect()
}

fn failed(failure: &Failure) -> String {
    match failure {
        Failure::Model { detail, .. } | Failure::Sandbox { detail } => detail.clone(),
        Failure::Denied { reason } => reason.clone(),
        Failure::Budget => "no budget is left for it".to_owned(),
        Failure::Call(fault) => match fault {
            CallFault::Malformed { detail } => {
                format!("the arguments can't be read: {detail}")
            }
            CallFault::Cut => "the call was cut at the model's output limit".to_owned(),
            CallFault::Duplicated => "another call of the reply has the same id".to_owned(),
            CallFault::Unknown { .. } => "there is no such tool".to_owned(),
            CallFault::Oversized { bytes } => format!("the arguments have {bytes} bytes"),
            CallFault::Cyclic { times } => format!("the same call failed {times} times"),
            CallFault::TooMany => "the reply has too many calls".to_owned(),
        },
    }
}

fn turn_end(end: &TurnEnd) -> String {
    match end {
        TurnEnd::Answered => "answered".to_owned(),
        TurnEnd::Refused { reason } => format!("the model refused: {reason}"),
        TurnEnd::OutputLimit => "the answer was cut at the model's output limit".to_owned(),
        TurnEnd::Empty => "the model said nothing and called no tool".to_owned(),
        TurnEnd::StepsExhausted => "the limit of steps is reached".to_owned(),
        TurnEnd::TimeExhausted => "the limit of time is reached".to_owned(),
        TurnEnd::BudgetExhausted => "the session's budget is used up".to_owned(),
        TurnEnd::OutOfBudget(shortfall) => shortfall.to_string(),
        TurnEnd::ModelFailed { detail, .. } | TurnEnd::SandboxFailed { detail } => detail.clone(),
        TurnEnd::Interrupted => "a person stopped it".to_owned(),
        TurnEnd::Cancelled => "the session was ended".to_owned(),
    }
}

/// Whether something passed.
pub(crate) fn flow_verdict(flow: &EgressFlow) -> VerdictKind {
    if flow.refusal.is_none() { VerdictKind::Permit } else { VerdictKind::Forbid }
}

pub(crate) fn flow(flow: &EgressFlow) -> HostFlow {
    HostFlow {
        host: flow.host.clone(),
        port: flow.port,
        grant: flow.grant.clone(),
        refusal: flow.refusal.clone(),
        requests: flow.requests,
        sent_bytes: flow.sent_bytes,
        received_bytes: flow.received_bytes,
    }
}
