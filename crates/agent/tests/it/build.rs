//! Short ways to write down specs, replies and events.

use outrigger_agent::{
    Amounts, Answer, Approvals, Author, Call, Concurrency, Deadline, Digest, Event, Limit, Loss,
    Message, ModelSpec, Origin, Outcome, Part, Product, Raw, Recovery, Reply, Role, SandboxReady,
    Seq, SessionId, Spec, Status, Stop, ToolKind, ToolOutput, ToolSpec, TurnLimits, Usage,
    WhenBusy,
};
use outrigger_policy::{RuleSetHash, Verdict};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) const MODEL_OUTPUT_TOKENS: u64 = 100;

pub(crate) fn session() -> SessionId {
    SessionId::new("s1").unwrap()
}

pub(crate) fn rule_set() -> RuleSetHash {
    RuleSetHash::try_from("00".repeat(32)).unwrap()
}

fn tool(name: &str, kind: ToolKind, concurrency: Concurrency, recovery: Recovery) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("The tool {name}."),
        schema: Raw::new(r#"{"type":"object"}"#.to_owned()).unwrap(),
        kind,
        concurrency,
        recovery,
        sandbox: Some("work".to_owned()),
        served: None,
        built_in: None,
        directory: None,
        deadline: None,
        outside: None,
    }
}

/// Four tools: `read` and `recall` run beside each other, `write` and `bash` alone;
/// all but `recall` need the sandbox `work`.
pub(crate) fn spec() -> Spec {
    let recall = ToolSpec {
        sandbox: None,
        ..tool("recall", ToolKind::ReadFiles, Concurrency::Shared, Recovery::Repeat)
    };
    Spec {
        principal: "person:local".to_owned(),
        model: ModelSpec {
            name: "m".to_owned(),
            provider: "wire".to_owned(),
            address: None,
            context_tokens: 1_000,
            output_tokens_max: MODEL_OUTPUT_TOKENS,
            scripted: false,
            price: None,
        },
        system: "Be useful.".to_owned(),
        tools: vec![
            tool("read", ToolKind::ReadFiles, Concurrency::Shared, Recovery::Repeat),
            recall,
            tool("write", ToolKind::WriteFiles, Concurrency::Exclusive, Recovery::Reattach),
            tool("bash", ToolKind::Execute, Concurrency::Exclusive, Recovery::Reattach),
        ],
        budget: Limit { steps: Some(1_000), tokens: Some(1_000_000), ..Limit::NONE },
        soft: Limit::NONE,
        turn: TurnLimits { steps_max: 100, wall_ms_max: 60_000 },
        approvals: Approvals::default(),
        when_busy: WhenBusy::default(),
        workspace: None,
        sandboxes: Vec::new(),
        role: Role::default(),
    }
}

/// A command that is killed after a second, with half a processor.
pub(crate) fn deadline() -> Deadline {
    let argument = "timeout".to_owned();
    Deadline { argument, usual_ms: 1_000, most_ms: 10_000, cpu_millis: 500 }
}

pub(crate) fn said(text: &str) -> Event {
    let author = Author::Person("person:local".to_owned());
    Event::Said(Arc::new(Message::new(author, text.to_owned())))
}

/// Said for when the turn is over.
pub(crate) fn said_after_turn(text: &str) -> Event {
    let author = Author::Person("person:local".to_owned());
    Event::Said(Arc::new(Message { after_turn: true, ..Message::new(author, text.to_owned()) }))
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::Call(Call { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() })
}

/// A reply of these parts that takes a tenth of the context.
pub(crate) fn reply(parts: Vec<Part>) -> Reply {
    let usage = Usage { input_tokens: 90, output_tokens: 10, ..Usage::default() };
    let origin = Origin {
        api: "wire".to_owned(),
        provider: "host".to_owned(),
        model: "m".to_owned(),
        response_id: None,
    };
    let fingerprint = Reply::fingerprint_of(&parts);
    Reply { origin, parts, native: Vec::new(), fingerprint, stop: Stop::End, usage }
}

pub(crate) fn answer(text: &str) -> Reply {
    reply(vec![Part::Text(text.to_owned())])
}

pub(crate) fn done(reply: Reply) -> Outcome {
    Outcome::Done(Product::Reply(Arc::new(reply)))
}

pub(crate) fn output(text: &str) -> Outcome {
    let (exit_code, text) = (None, text.to_owned());
    Outcome::Done(Product::Output(ToolOutput {
        status: Status::Ok,
        text,
        exit_code,
        hidden_bytes: 0,
        labels: BTreeSet::new(),
    }))
}

pub(crate) fn sandbox(generation: &str) -> Outcome {
    Outcome::Done(Product::Sandbox(SandboxReady {
        id: "box".to_owned(),
        generation: generation.to_owned(),
        backend: "fake".to_owned(),
        isolation: "none".to_owned(),
        disk_made_at_ms: None,
        replaces: None,
    }))
}

pub(crate) fn settled(effect: Seq, outcome: Outcome, tokens: u64) -> Event {
    let spent = Amounts { steps: 1, tokens, ..Amounts::default() };
    Event::Settled { effect, outcome, spent, estimated: false }
}

pub(crate) fn lost(generation: &str) -> Event {
    Event::SandboxLost {
        sandbox: "work".to_owned(),
        generation: generation.to_owned(),
        loss: Loss::Gone,
    }
}

pub(crate) fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

/// A verdict that anybody may turn.
pub(crate) fn ask(rule: &str) -> Verdict {
    Verdict::Ask { rules: vec![rule.to_owned()], approvers: Vec::new(), escalates: Vec::new() }
}

pub(crate) fn approved() -> Answer {
    Answer::Approved { rule_set: rule_set(), seen: None, standing: None }
}

pub(crate) fn answered(effect: Seq, answer: Answer) -> Event {
    Event::Answered { effect, by: "person:local".to_owned(), arguments: None, answer }
}
