//! The journals from which the golden ones of the current format are written:
//! a whole turn as it happens, and everything else that can be in a journal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outrigger_agent::{
    AccountId, Amounts, Answer, Approvals, Author, Call, CallFault, Cause, Concurrency, Cut,
    CutSandbox, Deadline, DefinitionRevision, Delegate, Digest, EgressFlow, EgressReport,
    EntryChange, EntryRefused, Event, Failure, FileBaseline, Item, Limit, Loss, Measure, MediaType,
    Message, ModelFault, ModelSpec, Origin, Outcome, OutsideTool, Parent, Part, Picture, Place,
    Price, Product, Raw, Recovery, Replacement, Reply, Role, SandboxReady, SandboxScope,
    SandboxSpec, Seq, SessionId, SharedAccess, Shortfall, SnapshotRef, Spec, Status, Stop, Summary,
    ToolCall, ToolKind, ToolOutput, ToolResult, ToolSpec, Touched, TrustedFile, TurnEnd,
    TurnLimits, Usage, WhenBusy, Work, Workspace, labels_of,
};
use outrigger_policy::{RuleSetHash, Trigger, Verdict};

/// The samples, by name of file.
pub(crate) fn journals() -> [(&'static str, Vec<Event>); 2] {
    [("turn", turn()), ("rest", rest())]
}

fn raw(text: &str) -> Raw {
    Raw::new(text.to_owned()).unwrap()
}

fn summary() -> Summary {
    let files = ["/workspace/a".to_owned()].into();
    Summary { text: "before".into(), labels: labels_of("web"), files }
}

fn rule_set() -> RuleSetHash {
    serde_json::from_value("5f".repeat(32).into()).unwrap()
}

fn tool(name: &str, kind: ToolKind, concurrency: Concurrency, recovery: Recovery) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("The tool {name}."),
        schema: raw(r#"{"type": "object",  "properties": {"b": {}, "a": {}}}"#),
        kind,
        concurrency,
        directory: None,
        recovery,
        sandbox: matches!(kind, ToolKind::Execute).then(|| "work".to_owned()),
        served: None,
        deadline: (name == "bash").then(|| Deadline {
            argument: "timeout".to_owned(),
            usual_ms: 1,
            most_ms: 2,
            cpu_millis: 3,
        }),
        built_in: (name == "bash").then(|| "execute".to_owned()),
        outside: None,
    }
}

fn sandbox(name: &str, workspace: bool, scope: SandboxScope) -> SandboxSpec {
    SandboxSpec {
        network: if workspace { vec!["packages".to_owned()] } else { Vec::new() },
        name: name.to_owned(),
        backend: "native".to_owned(),
        isolation_min: "rootless_single".to_owned(),
        workspace,
        template: None,
        scope,
    }
}

fn outside() -> OutsideTool {
    OutsideTool {
        server: "wiki".to_owned(),
        tool: "edit".to_owned(),
        digest: Digest::of(b"edit"),
        changed: Some(Digest::of(b"another")),
        read_only: true,
    }
}

fn model() -> ModelSpec {
    ModelSpec {
        name: "large".to_owned(),
        provider: "anthropic-messages".to_owned(),
        address: Some("https://models.example/v1".to_owned()),
        context_tokens: 200_000,
        output_tokens_max: 8_192,
        scripted: false,
        price: Some(Price { input: 3, output: 15, cache_read: 1, cache_write: 4 }),
    }
}

fn opened() -> Event {
    use {Concurrency::*, Recovery::*, ToolKind::*};
    Event::Opened(Arc::new(Spec {
        principal: "person:local".to_owned(),
        model: model(),
        system: "You help.".to_owned(),
        tools: vec![
            tool("bash", Execute, Exclusive, Reattach),
            tool("read", ReadFiles, Shared, Repeat),
            tool("write", WriteFiles, Exclusive, Repeat),
            ToolSpec { outside: Some(outside()), ..tool("edit", Outside, Exclusive, Unknown) },
            tool("task", Subagent, Shared, Reattach),
        ],
        budget: Limit { money_nanos: Some(7), ..amounts(100, u64::MAX).into() },
        soft: Limit { money_nanos: Some(5), ..Limit::NONE },
        turn: TurnLimits { steps_max: 50, wall_ms_max: 600_000 },
        approvals: Approvals { expire_ms: Some(86_400_000), escalate_ms: Some(3_600_000) },
        when_busy: WhenBusy::Queue,
        workspace: Some(Workspace {
            archive: Digest::of(b"archive"),
            bytes: 10_240,
            files: 3,
            source: "/home/me/project".to_owned(),
            dependencies: Vec::new(),
            prefix: String::new(),
        }),
        sandboxes: vec![
            sandbox("work", true, SandboxScope::Thread),
            sandbox("notes", false, SandboxScope::Assistant("anna".to_owned())),
        ],
        role: role(),
    }))
}

fn asks() -> Verdict {
    Verdict::Ask {
        rules: vec!["commands".to_owned()],
        approvers: Vec::new(),
        escalates: vec!["group:leads".to_owned()],
    }
}

fn role() -> Role {
    Role {
        agent: Some("reviewer".to_owned()),
        definition: Some(DefinitionRevision {
            path: "/agents/user/reviewer.toml".to_owned(),
            revision: 2,
        }),
        trigger: Some(Trigger::Schedule),
        parent: Some(Parent {
            session: SessionId::new("above").expect("a plain name"),
            effect: Seq(9),
        }),
        above: vec!["default".to_owned()],
        speakers: vec!["person:bob".to_owned()],
        agents: vec![Delegate {
            name: "reader".to_owned(),
            description: "Reads.".to_owned(),
            system: Some("You read.".to_owned()),
            tools: Some(vec!["read".to_owned()]),
            limit: Limit { tokens: Some(9), ..Limit::NONE },
        }],
        deep: 1,
    }
}

fn amounts(steps: u64, tokens: u64) -> Amounts {
    Amounts { steps, tokens, ..Amounts::default() }
}

/// Everything that can stand against an effect.
fn withheld() -> Vec<Event> {
    let causes = [
        Cause::Limit(Measure::Money),
        Cause::Soft(Measure::Cpu),
        Cause::Unpriced,
        Cause::Stopped { reason: "enough".to_owned() },
    ];
    let account = Some(AccountId::organisation());
    let shortfall = |cause| Shortfall { account: account.clone(), cause };
    let withheld = |cause| Event::Withheld { effect: Seq(7), shortfall: shortfall(cause) };
    causes.into_iter().map(withheld).collect()
}

fn trusted(name: &str) -> Author {
    let (digest, by) = (Digest::of(name.as_bytes()), "person:local".to_owned());
    Author::Trusted(TrustedFile { name: name.to_owned(), digest, by })
}

fn said(author: Author, text: &str) -> Event {
    Event::Said(Arc::new(Message::new(author, text.to_owned())))
}

/// Something said with pictures of each kind.
fn shown() -> Event {
    let kinds = [
        (MediaType::Png, "shot.png"),
        (MediaType::Jpeg, "photo.jpg"),
        (MediaType::Gif, "moves.gif"),
        (MediaType::WebP, "page.webp"),
    ];
    let pictures = kinds.map(|(media_type, name)| Picture {
        digest: Digest::of(name.as_bytes()),
        media_type,
        bytes: 86_016,
        width: 1_280,
        height: 720,
        name: name.to_owned(),
    });
    let message = Message::new(Author::Person("person:local".to_owned()), "Look.".to_owned());
    let request = Some(Digest::of(b"request"));
    let message = Message { pictures: pictures.into(), after_turn: true, request, ..message };
    Event::Said(Arc::new(message))
}

fn reply(parts: Vec<Part>, stop: Stop, usage: Usage) -> Arc<Reply> {
    Arc::new(Reply {
        origin: Origin {
            api: "anthropic-messages".to_owned(),
            provider: "api.anthropic.com".to_owned(),
            model: "large-1".to_owned(),
            response_id: Some("msg_1".to_owned()),
        },
        fingerprint: Reply::fingerprint_of(&parts),
        parts,
        native: vec![raw(r#"{"type":"thinking", "signature":"c2ln", "n":1.50}"#)],
        stop,
        usage,
    })
}

fn decided(effect: u64, verdict: Verdict) -> Event {
    Event::Decided { effect: Seq(effect), verdict, rule_set: rule_set() }
}

fn started(effect: u64, place: Option<Place>) -> Event {
    let reserved = Amounts { money_nanos: 5, wall_ms: 6, ..amounts(1, 9_000) };
    Event::Started { effect: Seq(effect), attempt: 1, reserved, place }
}

fn settled(effect: u64, outcome: Outcome) -> Event {
    let spent = Amounts { cpu_ms: 7, ..amounts(1, 120) };
    let estimated = matches!(outcome, Outcome::Cancelled | Outcome::Unknown { .. });
    Event::Settled { effect: Seq(effect), outcome, spent, estimated }
}

fn permit() -> Verdict {
    Verdict::Permit { rules: vec!["local".to_owned()] }
}

fn call_tool(reply: u64, index: u32, tool: &str) -> Work {
    Work::CallTool(ToolCall {
        reply: Seq(reply),
        index,
        call: format!("call_{index}"),
        tool: tool.to_owned(),
        arguments: Digest::of(br#"{"command":"make"}"#),
        amends: None,
    })
}

fn turn() -> Vec<Event> {
    let call = Call {
        id: "call_0".to_owned(),
        name: "bash".to_owned(),
        arguments: r#"{"command":"make"}"#.to_owned(),
    };
    let wish = vec![
        Part::Thinking("It has a Makefile.".to_owned()),
        Part::Text("I build it: \u{1f6f6}\n".to_owned()),
        Part::Call(call),
        Part::Opaque("server_tool".to_owned()),
    ];
    let usage = Usage {
        input_tokens: 100,
        output_tokens: 20,
        cache_read_tokens: 5,
        cache_write_tokens: 6,
        reasoning_tokens: 7,
        native: Some(raw(r#"{"input_tokens":  100}"#)),
    };
    let ready = SandboxReady {
        id: "sb-1".to_owned(),
        generation: "g-1".to_owned(),
        backend: "native".to_owned(),
        isolation: "root_range".to_owned(),
        disk_made_at_ms: Some(1_700_000_000_000),
        replaces: None,
    };
    let output = ToolOutput {
        status: Status::Ok,
        text: "cc -o a a.c\n".to_owned(),
        exit_code: Some(0),
        hidden_bytes: 12,
        labels: BTreeSet::new(),
    };
    let place = Place {
        sandbox: "work".to_owned(),
        generation: "g-1".to_owned(),
        exec: "golden-10".to_owned(),
    };
    let answer = Answer::Approved { rule_set: rule_set(), seen: None, standing: None };
    let done = vec![Part::Text("Built.".to_owned())];
    vec![
        opened(),
        said(Author::Untrusted("AGENTS.md".to_owned()), "Use make."),
        said(trusted("CONTRIBUTING.md"), "Use tabs."),
        said(Author::Person("person:local".to_owned()), "Build it, \"please\"."),
        said(Author::Agent("default".to_owned()), "Look at it."),
        Event::Proposed(Work::AskModel),
        decided(4, permit()),
        started(4, None),
        settled(4, Outcome::Done(Product::Reply(reply(wish, Stop::End, usage)))),
        Event::Proposed(call_tool(4, 0, "bash")),
        decided(8, asks()),
        Event::Answered { effect: Seq(8), by: "person:local".to_owned(), arguments: None, answer },
        Event::Proposed(Work::Provision { sandbox: "work".to_owned() }),
        decided(11, permit()),
        started(11, None),
        settled(11, Outcome::Done(Product::Sandbox(ready))),
        decided(8, permit()),
        started(8, Some(place)),
        settled(8, Outcome::Done(Product::Output(output))),
        Event::Proposed(Work::AskModel),
        decided(18, permit()),
        started(18, None),
        settled(18, Outcome::Done(Product::Reply(reply(done, Stop::End, Usage::default())))),
        Event::TurnEnded(TurnEnd::Answered),
    ]
}

fn failures() -> Vec<Failure> {
    let text = || "what to do".to_owned();
    let model = |fault| Failure::Model { fault, detail: text(), retry_at_ms: None };
    vec![
        model(ModelFault::Auth),
        model(ModelFault::Invalid),
        model(ModelFault::ContextTooLong),
        model(ModelFault::RateLimited),
        Failure::Model {
            fault: ModelFault::RateLimited,
            detail: text(),
            retry_at_ms: Some(1_700_000_060_000),
        },
        model(ModelFault::Unavailable),
        model(ModelFault::Garbled),
        model(ModelFault::Script),
        Failure::Call(CallFault::Malformed { detail: text() }),
        Failure::Call(CallFault::Duplicated),
        Failure::Call(CallFault::Unknown { available: vec!["bash".to_owned()] }),
        Failure::Call(CallFault::Oversized { bytes: 5 << 20 }),
        Failure::Call(CallFault::Cyclic { times: 5 }),
        Failure::Call(CallFault::TooMany),
        Failure::Call(CallFault::Cut),
        Failure::Denied { reason: text() },
        Failure::Sandbox { detail: text() },
        Failure::Budget,
    ]
}

fn turn_ends() -> Vec<TurnEnd> {
    let text = || "what to do".to_owned();
    vec![
        TurnEnd::Refused { reason: text() },
        TurnEnd::OutputLimit,
        TurnEnd::Empty,
        TurnEnd::StepsExhausted,
        TurnEnd::TimeExhausted,
        TurnEnd::BudgetExhausted,
        TurnEnd::OutOfBudget(Shortfall::of_session(Cause::Unpriced)),
        TurnEnd::ModelFailed { fault: ModelFault::Auth, detail: text() },
        TurnEnd::SandboxFailed { detail: text() },
        TurnEnd::Interrupted,
        TurnEnd::Cancelled,
    ]
}

/// Every way in which a sandbox is lost, and what takes its place.
fn lives() -> Vec<Event> {
    let kept = |at_ms: u64| SnapshotRef { snapshot: format!("s1.work.{at_ms}"), at_ms };
    let sandbox = || "work".to_owned();
    let text = || "what is known".to_owned();
    let mut events = vec![
        Event::SandboxKept { sandbox: sandbox(), kept: kept(7), dropped: Vec::new() },
        Event::SandboxKept { sandbox: sandbox(), kept: kept(8), dropped: vec![text()] },
    ];
    for loss in
        [Loss::Gone, Loss::Replaced, Loss::Died(text()), Loss::Altered(text()), Loss::SetBack]
    {
        let generation = "g-1".to_owned();
        events.push(Event::SandboxLost { sandbox: sandbox(), generation, loss });
    }
    for replaces in [Replacement::Disk, Replacement::Snapshot(kept(8)), Replacement::Start] {
        let ready = SandboxReady {
            id: "sb-1".to_owned(),
            generation: "g-2".to_owned(),
            backend: "native".to_owned(),
            isolation: "root_range".to_owned(),
            disk_made_at_ms: None,
            replaces: Some(replaces),
        };
        events.push(settled(7, Outcome::Done(Product::Sandbox(ready))));
    }
    events
}

/// A cut with everything that one can have.
fn cut(waiting: Option<BTreeMap<u32, Arc<ToolResult>>>) -> Cut {
    let ready = SandboxReady {
        id: "s1.work".to_owned(),
        generation: "g-1".to_owned(),
        backend: "native".to_owned(),
        isolation: "root_range".to_owned(),
        disk_made_at_ms: Some(7),
        replaces: None,
    };
    let kept = Some(SnapshotRef { snapshot: "s1.work.8".to_owned(), at_ms: 8 });
    let said = Message::new(Author::Person("person:local".to_owned()), "Go.".to_owned());
    Cut {
        session: SessionId::new("s1").unwrap(),
        at: Seq(9),
        conversation: vec![Item::Message(Arc::new(said)), Item::Summary(Arc::new(summary()))],
        queued: vec![Item::Notice("it was set back".into())],
        ended: waiting.is_none().then_some(TurnEnd::Answered),
        waiting,
        spent: amounts(3, 400),
        labels: labels_of("stdin"),
        counted_tokens: 300,
        uncounted_bytes: 20,
        replies: 2,
        sandboxes: BTreeMap::from([("work".to_owned(), CutSandbox { ready, kept })]),
    }
}

fn rest() -> Vec<Event> {
    let by = || "person:local".to_owned();
    let mut events = vec![opened(), said(Author::Person(by()), "Again.")];
    events.push(Event::Proposed(Work::Compact));
    for stop in [Stop::OutputLimit, Stop::Refused("unsafe".to_owned()), Stop::Paused] {
        let short = reply(Vec::new(), stop, Usage::default());
        events.push(settled(3, Outcome::Done(Product::Reply(short))));
    }
    events.push(Event::Proposed(call_tool(3, 1, "read")));
    events.push(decided(7, Verdict::forbid(Vec::new())));
    let (rules, reasons) = (vec!["never".to_owned()], vec!["It must not.".to_owned()]);
    events.push(decided(7, Verdict::Forbid { rules, reasons }));
    let answer = Answer::Denied { reason: "not now".to_owned() };
    events.push(Event::Answered { effect: Seq(7), by: by(), arguments: None, answer });
    let answer = Answer::Amended { arguments: r#"{"command":"make -n"}"#.to_owned() };
    let arguments = Some(Digest::of(br#"{"command":"make"}"#));
    events.push(Event::Answered { effect: Seq(7), by: by(), arguments, answer });
    let answer =
        Answer::Approved { rule_set: rule_set(), seen: Some(FileBaseline::Absent), standing: None };
    events.push(Event::Answered { effect: Seq(7), by: by(), arguments: None, answer });
    for status in [Status::Error, Status::Denied, Status::Unknown] {
        let text = "no such file".to_owned();
        let output = ToolOutput {
            status,
            text,
            exit_code: None,
            hidden_bytes: 0,
            labels: labels_of("mcp:wiki"),
        };
        events.push(settled(7, Outcome::Done(Product::Output(output))));
    }
    events.extend(failures().into_iter().map(|failure| settled(7, Outcome::Failed(failure))));
    events.push(settled(7, Outcome::Cancelled));
    let evidence = "it ran when the host was lost".to_owned();
    events.push(settled(7, Outcome::Unknown { evidence }));
    events.extend(lives());
    events.extend(withheld());
    events.push(Event::Interrupted { by: by() });
    events.push(Event::CompactionRequested { by: by() });
    for access in [SharedAccess::None, SharedAccess::Read, SharedAccess::TakePart] {
        events.push(Event::Shared { with: "group:ops".to_owned(), access, by: by() });
    }
    events.extend(turn_ends().into_iter().map(Event::TurnEnded));
    let turn = Some(TurnLimits { steps_max: 9, wall_ms_max: 1 });
    events.push(Event::Resumed {
        by: by(),
        budget: Some(Limit::NONE),
        turn,
        model: None,
        network: None,
    });
    events.push(Event::Resumed { by: by(), budget: None, turn: None, model: None, network: None });
    let (model, network) = (Some(Box::new(model())), Some(vec!["example.com".to_owned()]));
    events.push(Event::Resumed { by: by(), budget: None, turn: None, model, network });
    events.push(Event::Forked { by: by(), cut: Arc::new(cut(None)) });
    let result = ToolResult {
        effect: Seq(7),
        call: "call-1".to_owned(),
        tool: "read".to_owned(),
        status: Status::Ok,
        text: "text".to_owned(),
        labels: BTreeSet::new(),
    };
    let waiting = BTreeMap::from([(1, Arc::new(result))]);
    events.push(Event::Rewound { by: by(), cut: Arc::new(cut(Some(waiting))) });
    events.push(Event::Touched(Arc::new(touched())));
    events.push(Event::Reached(Arc::new(reached())));
    events.push(shown());
    events.push(Event::Cancelled { by: by(), reason: "done with it".to_owned() });
    events
}

fn reached() -> EgressReport {
    let passed = EgressFlow {
        host: "pypi.org".to_owned(),
        port: 443,
        grant: Some("packages".to_owned()),
        refusal: None,
        requests: 2,
        sent_bytes: 700,
        received_bytes: 90_000,
    };
    let refused = EgressFlow {
        host: "example.com".to_owned(),
        grant: None,
        refusal: Some("it is not in the network".to_owned()),
        requests: 1,
        sent_bytes: 0,
        received_bytes: 0,
        ..passed.clone()
    };
    let flows = vec![passed, refused];
    EgressReport { effect: Seq(7), sandbox: "work".to_owned(), flows, more: 3 }
}

fn touched() -> Touched {
    let path = |name: &str| format!("/memory/user/{name}");
    let written = EntryChange {
        number: 41,
        path: path("notes.md"),
        revision: 3,
        digest: Some(Digest::of(b"notes")),
        removed: false,
        via: "sandbox".to_owned(),
    };
    let removed = EntryChange {
        number: 42,
        path: path("old.md"),
        digest: None,
        removed: true,
        via: "tool".to_owned(),
        ..written.clone()
    };
    let refused = EntryRefused {
        path: "/memory/organisation/rules.md".to_owned(),
        kind: "permission_denied".to_owned(),
        reason: "others will read it".to_owned(),
    };
    let changes = vec![written, removed];
    Touched { changes, refused: vec![refused], refused_more: 7, ..Touched::default() }
}
