//! The engine and everybody around it, played in memory from a tape.

use outrigger_agent::{
    AccountId, Amounts, Answer, Cause, Event, Failure, Limit, Measure, ModelFault, Next, Outcome,
    Park, Part, Price, Product, Record, Recover, Reply, Seq, Shortfall, Spec, State, Status, Stop,
    ToolOutput, TurnLimits, Usage, Work, labels_of,
};
use outrigger_policy::Verdict;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::build::{self, rule_set, session};
use crate::ledger::{Ledger, check_request};
use crate::tape::Tape;

/// What the model's tokens cost.
const PRICE: Price = Price { input: 3_000, output: 15_000, cache_read: 300, cache_write: 3_750 };

/// Rounds of the driver after the tape's end within which it must have parked.
const TAIL_MAX: usize = 700;

/// A played session.
#[derive(Debug)]
pub(crate) struct World {
    tape: Tape,
    pub(crate) journal: Vec<Record>,
    pub(crate) state: State,
    now_ms: u64,
    flying: BTreeSet<Seq>,
    lives: u32,
    ledger: Ledger,
}

impl World {
    /// Plays a session until the tape is over and nothing is left to do.
    pub(crate) fn play(bytes: Vec<u8>) -> Self {
        let mut world = Self {
            tape: Tape::new(bytes),
            journal: Vec::new(),
            state: State::default(),
            now_ms: 1_000,
            flying: BTreeSet::new(),
            lives: 0,
            ledger: Ledger::default(),
        };
        let mut tail = 0;
        loop {
            if world.tape.is_over() {
                tail += 1;
                assert!(tail < TAIL_MAX, "does not come to rest: {:?}", world.state);
            }
            if world.tape.rarely(30) {
                world.intervene();
            }
            if world.step() && world.tape.is_over() {
                return world;
            }
        }
    }

    fn append(&mut self, event: Event) {
        self.now_ms += u64::from(self.tape.below(8)) * 20;
        self.append_now(event);
    }

    fn append_now(&mut self, event: Event) {
        let seq = Seq(self.journal.len() as u64 + 1);
        let record = Record { seq, at_ms: self.now_ms, event };
        let labels = self.state.labels().clone();
        self.state = std::mem::take(&mut self.state).apply(&record);
        assert!(self.state.labels().is_superset(&labels), "{labels:?} after {record:?}");
        self.ledger.check(&record, &self.state);
        if let Event::Started { effect, .. } = &record.event {
            self.ledger.check_overlap(&self.state);
            let work = &self.state.effect(*effect).expect("just started").work;
            if matches!(work, Work::AskModel | Work::Compact) {
                check_request(self.state.conversation());
                check_request(&self.state.request_items(work));
            }
        }
        self.journal.push(record);
    }

    /// True if parked.
    fn step(&mut self) -> bool {
        match self.state.decide(&session(), self.now_ms) {
            Next::Record(event) => self.append(event),
            Next::Judge(id) => {
                let verdict = self.verdict();
                self.append(Event::Decided { effect: id, verdict, rule_set: rule_set() });
            }
            Next::Start(id, started) => self.start(id, started),
            Next::Perform(ids) => self.settle_one(&ids, false),
            Next::Stop(ids) => self.settle_one(&ids, true),
            Next::Wait(until_ms) => {
                assert!(self.now_ms < until_ms, "there is nothing to wait for");
                assert!(self.state.in_flight().is_empty(), "it waits beside what is under way");
                self.now_ms = until_ms;
            }
            Next::Park(park) => {
                if !self.tape.is_over() {
                    self.unpark(&park);
                }
                return true;
            }
        }
        false
    }

    fn verdict(&mut self) -> Verdict {
        let rules = vec!["r".to_owned()];
        match self.tape.byte() {
            0..200 => Verdict::Permit { rules },
            200..240 => Verdict::Ask { rules, approvers: Vec::new(), escalates: Vec::new() },
            240.. => Verdict::forbid(rules),
        }
    }

    fn start(&mut self, id: Seq, started: Event) {
        // The rules are asked once more, and may have changed.
        if self.tape.rarely(10) {
            let rules = vec!["changed".to_owned()];
            let ask = self.tape.rarely(128);
            let (approvers, escalates) = (Vec::new(), Vec::new());
            let verdict = match ask {
                true => Verdict::Ask { rules, approvers, escalates },
                false => Verdict::forbid(rules),
            };
            return self.append(Event::Decided { effect: id, verdict, rule_set: rule_set() });
        }
        // An account above the session may have no room.
        if self.tape.rarely(8) {
            let cause = match self.tape.below(3) {
                0 => Cause::Limit(Measure::Money),
                1 => Cause::Stopped { reason: "enough".to_owned() },
                _ => Cause::Soft(Measure::Tokens),
            };
            let account = Some(AccountId::organisation());
            let shortfall = Shortfall { account, cause };
            return self.append(Event::Withheld { effect: id, shortfall });
        }
        self.append(started);
        assert!(self.flying.insert(id), "started twice");
    }

    fn settle_one(&mut self, ids: &[Seq], stop: bool) {
        assert!(!ids.is_empty());
        let flying: Vec<Seq> = self.flying.iter().copied().collect();
        assert_eq!(flying, ids, "what is to be performed is what was started");
        let id = ids[usize::from(self.tape.byte()) % ids.len()];
        let work = self.state.effect(id).expect("in flight").work.clone();
        let outcome =
            if stop && !self.tape.rarely(60) { Outcome::Cancelled } else { self.outcome(&work) };
        let reserved = self.state.reserved_for(id);
        let quarters = u64::from(self.tape.below(5));
        let part = |reserved: u64| reserved * quarters / 4;
        self.flying.remove(&id);
        self.append(Event::Settled {
            effect: id,
            outcome,
            spent: Amounts {
                steps: reserved.steps,
                tokens: part(reserved.tokens),
                money_nanos: part(reserved.money_nanos),
                wall_ms: part(reserved.wall_ms),
                cpu_ms: part(reserved.cpu_ms),
                egress_bytes: part(reserved.egress_bytes),
            },
            estimated: stop,
        });
    }

    fn outcome(&mut self, work: &Work) -> Outcome {
        match work {
            Work::AskModel | Work::Compact => match self.tape.byte() {
                0..225 => build::done(self.reply()),
                225..250 => {
                    let fault = [
                        ModelFault::Auth,
                        ModelFault::Invalid,
                        ModelFault::ContextTooLong,
                        ModelFault::RateLimited,
                        ModelFault::Unavailable,
                        ModelFault::Garbled,
                        ModelFault::Script,
                    ][usize::from(self.tape.below(7))];
                    let asked_ms = u64::from(self.tape.below(4)) * 1_000;
                    let retry_at_ms = (fault == ModelFault::RateLimited)
                        .then(|| self.state.retry_at_ms(asked_ms, self.now_ms))
                        .flatten();
                    Outcome::Failed(Failure::Model {
                        fault,
                        detail: "detail".to_owned(),
                        retry_at_ms,
                    })
                }
                250..253 => Outcome::Unknown { evidence: "lost".to_owned() },
                253.. => build::output("not a reply"),
            },
            Work::Provision { .. } => match self.tape.byte() {
                0..220 => {
                    self.lives += 1;
                    build::sandbox(&format!("g{}", self.lives))
                }
                220..245 => Outcome::Failed(Failure::Sandbox { detail: "no disk".to_owned() }),
                245..250 => Outcome::Unknown { evidence: "lost".to_owned() },
                250.. => build::output("not a sandbox"),
            },
            Work::CallTool(call) => {
                assert!(self.state.call(call).is_some(), "performed without provenance");
                match self.tape.byte() {
                    0..160 => build::output("fine"),
                    160..200 => Outcome::Done(Product::Output(ToolOutput {
                        status: Status::Error,
                        text: "x".repeat(300),
                        exit_code: Some(1),
                        hidden_bytes: 0,
                        labels: labels_of(["mcp:wiki", "web"][usize::from(self.tape.rarely(128))]),
                    })),
                    200..225 => Outcome::Unknown { evidence: "maybe".to_owned() },
                    225..245 => Outcome::Failed(Failure::Sandbox { detail: "gone".to_owned() }),
                    245.. => build::done(build::answer("not an output")),
                }
            }
        }
    }

    fn reply(&mut self) -> Reply {
        let mut parts = Vec::new();
        if self.tape.rarely(240) {
            parts.push(Part::Text("I do this.".to_owned()));
        }
        let calls = match self.tape.byte() {
            0..60 => 0,
            60..250 => self.tape.below(4) + 1,
            250.. => 130,
        };
        for index in 0..calls {
            let id = if self.tape.rarely(20) { "again".to_owned() } else { format!("c{index}") };
            let name = self.tape.pick(&["read", "recall", "write", "bash", "read", "nosuch"]);
            let arguments =
                self.tape.pick(&["{}", r#"{"a":1}"#, r#"{"b":2}"#, "", "[1]", r#"{"a":"#, "nul"]);
            parts.push(build::call(&id, name, arguments));
        }
        let stop = match self.tape.byte() {
            0..230 => Stop::End,
            230..240 => Stop::OutputLimit,
            240..248 => Stop::Refused("no".to_owned()),
            248.. => Stop::Paused,
        };
        let tokens = u64::from(self.tape.byte()) * 4;
        let usage = Usage { input_tokens: tokens, output_tokens: 10, ..Usage::default() };
        Reply { stop, usage, ..build::reply(parts) }
    }

    /// Somebody does something that nobody waited for.
    fn intervene(&mut self) {
        match self.tape.below(16) {
            0..2 => self.append(build::said("and this")),
            2..4 => self.append(build::said_after_turn("and then this")),
            4..6 => {
                self.append(Event::Interrupted { by: "p".to_owned() });
                if self.tape.rarely(100) {
                    self.crash();
                }
            }
            6 if self.tape.rarely(64) => {
                self.append(Event::Cancelled { by: "p".to_owned(), reason: "r".to_owned() });
            }
            6..8 => self.resume(),
            8..11 => {
                let life = self.lives.saturating_sub(u32::from(self.tape.below(2)));
                self.append(build::lost(&format!("g{life}")));
            }
            11 => {
                let effect = Seq(u64::from(self.tape.byte()) % (self.journal.len() as u64 + 1));
                if self.state.effect(effect).is_some() {
                    self.answer(effect);
                }
            }
            12.. => {
                self.crash();
                while self.tape.rarely(100) {
                    self.crash();
                }
            }
        }
    }

    fn unpark(&mut self, park: &Park) {
        match park {
            Park::Unopened => {
                let mut plain = build::spec();
                plain.model.price = (!self.tape.rarely(30)).then_some(PRICE);
                plain.tools[3].deadline = Some(build::deadline());
                let (budget, soft) = (self.allowance(), self.soft());
                // In the longer one it waits for a provider that takes no requests.
                let wall_ms_max = [5_000, 600_000][usize::from(self.tape.rarely(64))];
                let spec =
                    Spec { budget, soft, turn: TurnLimits { steps_max: 12, wall_ms_max }, ..plain };
                self.append(Event::Opened(Arc::new(spec)));
            }
            Park::Message if self.tape.rarely(80) => self.resume(),
            Park::Message => self.append(build::said("do it")),
            Park::Answers(ids) => {
                let id = ids[usize::from(self.tape.byte()) % ids.len()];
                self.answer(id);
            }
            Park::Cancelled => {
                self.tape.byte();
            }
        }
    }

    fn allowance(&mut self) -> Limit {
        let (steps, tokens) = (self.tape.byte(), self.tape.byte());
        let mut limit = crate::limits::limit(10 + u64::from(steps), 500 + u64::from(tokens) * 50);
        limit.money_nanos = self.tape.rarely(120).then(|| u64::from(self.tape.byte()) * 2_000);
        limit.wall_ms = self.tape.rarely(60).then(|| u64::from(self.tape.byte()) * 10_000);
        limit.cpu_ms = self.tape.rarely(60).then(|| u64::from(self.tape.byte()) * 10_000);
        limit
    }

    fn soft(&mut self) -> Limit {
        if !self.tape.rarely(80) {
            return Limit::NONE;
        }
        let tokens = Some(u64::from(self.tape.byte()) * 50);
        Limit { tokens, money_nanos: Some(u64::from(self.tape.byte()) * 2_000), ..Limit::NONE }
    }

    fn answer(&mut self, effect: Seq) {
        let answer = match self.tape.byte() {
            0..80 => Answer::Denied { reason: "no".to_owned() },
            80..130 => Answer::Amended { arguments: r#"{"changed":true}"#.to_owned() },
            130.. => build::approved(),
        };
        self.append(build::answered(effect, answer));
    }

    fn resume(&mut self) {
        let more = |n: u8| Limit {
            money_nanos: Some(u64::from(n) * 5_000),
            ..crate::limits::limit(u64::from(n), u64::from(n) * 200)
        };
        let budget = self.tape.rarely(100).then(|| more(self.tape.byte()));
        let turn = self.tape.rarely(60).then(|| TurnLimits {
            steps_max: u64::from(self.tape.below(10)),
            wall_ms_max: u64::from(self.tape.byte()) * 100,
        });
        self.append(Event::Resumed {
            by: "p".to_owned(),
            budget,
            turn,
            model: None,
            network: None,
        });
    }

    /// The harness dies, and another one folds the journal and takes over.
    fn crash(&mut self) {
        let fold = |state: State, record: &Record| state.apply(record);
        self.state = self.journal.iter().fold(State::default(), fold);
        for id in std::mem::take(&mut self.flying) {
            let stopping = matches!(self.state.decide(&session(), self.now_ms), Next::Stop(_));
            match Recover::of(&self.state, id, self.now_ms).expect("it is started") {
                Recover::Again(started) => {
                    assert!(!stopping, "begun anew while being stopped");
                    self.append_now(started);
                    self.flying.insert(id);
                }
                Recover::Over(settled) => self.append_now(settled),
                Recover::Reattach => {
                    self.flying.insert(id);
                }
            }
        }
    }
}
