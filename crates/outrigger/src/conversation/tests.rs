//! Conversations played from data: what comes in, what is to be done, what is drawn.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use outrigger_engine::LiveOutput;
use std::sync::Arc;

use super::*;
use crate::question::tests::question;
use crate::show::row::Paint;

/// A conversation, and what came of it.
struct Play {
    conversation: Conversation,
    now_ms: u64,
    text: String,
}

impl Play {
    fn new() -> Self {
        let history = vec!["before".to_owned()];
        let conversation = Conversation::new(Size { columns: 60, rows: 16 }, history);
        let mut play = Self { conversation, now_ms: 10_000, text: String::new() };
        play.comes(Input::Footer("model · dir".to_owned()));
        play
    }

    /// Something comes in, a second after what came before it.
    fn comes(&mut self, input: Input) -> &mut Self {
        self.now_ms += 1_000;
        let actions = self.conversation.update(self.now_ms, input);
        self.done(&actions);
        self
    }

    fn done(&mut self, actions: &[Action]) {
        for action in actions {
            let text = match action {
                Action::Print(rows) => {
                    let rows = rows.iter().map(|row| format!("| {}\n", plain(row)));
                    rows.collect::<String>()
                }
                Action::Say(text) => format!("-> say {text:?}\n"),
                Action::Answer(question, decision, standing) => {
                    format!("-> answer {} {decision:?} {standing:?}\n", question.id)
                }
                other => format!("-> {other:?}\n"),
            };
            self.text.push_str(&text);
        }
    }

    fn types(&mut self, text: &str) -> &mut Self {
        for char in text.chars() {
            let actions = self.conversation.update(self.now_ms, Input::Key(Key::Char(char)));
            self.done(&actions);
        }
        self
    }

    fn key(&mut self, key: Key) -> &mut Self {
        self.comes(Input::Key(key))
    }

    fn event(&mut self, seq: u64, event: &Value) -> &mut Self {
        let record = json!({ "seq": seq, "at_ms": seq, "event": event });
        let record: Record = serde_json::from_value(record).unwrap();
        self.comes(Input::Event(Arc::new(record)))
    }

    /// What is drawn now, with a mark where the cursor stands.
    fn draws(&mut self) -> &mut Self {
        let settled = self.conversation.settled();
        self.done(&[Action::Print(settled)]);
        let view = self.conversation.view();
        for (index, row) in view.rows.iter().enumerate() {
            let mark = if view.cursor.0 == index { "~>" } else { "~ " };
            self.text.push_str(&format!("{mark}{}\n", plain(row)));
        }
        self
    }

    fn check(&mut self, expected: &Expect) {
        expected.assert_eq(&std::mem::take(&mut self.text));
    }
}

fn plain(row: &Row) -> String {
    row.painted(Paint::Plain).trim_end().to_owned()
}

fn started(effect: u64) -> Value {
    let reserved = json!({ "steps": 1, "tokens": 0 });
    json!({ "started": { "effect": effect, "attempt": 1, "reserved": reserved, "place": null } })
}

#[test]
fn a_turn_from_what_is_said_to_the_answer() {
    let mut play = Play::new();
    play.types("fix it").draws().key(Key::Enter).comes(Input::Working);
    play.event(2, &json!({ "said": { "author": { "person": "person:local" }, "text": "fix it" } }));
    play.event(3, &json!({ "proposed": "ask_model" })).event(4, &started(3));
    play.comes(Input::Live(Some(Seq(3)), LiveOutput::Text("I **look** at it.\n\nThen".to_owned())));
    play.draws();
    play.types("and the docs").key(Key::Tab).types("now").draws().key(Key::Enter);
    play.key(Key::Escape).draws().comes(Input::Idle);
    play.check(&expect![[r#"
        ~>› fix it
        ~   model · dir
        | 
        | › fix it
        -> say "fix it"
        | 
        | I look at it.
        ~ 
        ~ Then
        ~ … the model writes · 1 s · Esc stops it
        ~>›
        ~   model · dir
        ~ 
        ~ Then
        ~ … the model writes · 2 s · Esc stops it
        ~   then: and the docs
        ~>› now
        ~   Enter says it now · Tab says it after the turn · Esc sto…
        | 
        | › now
        |   (heard at the next step)
        -> say "now"
        | 
        -> Interrupt
        ~ 
        ~ Then
        ~ … the model writes · 4 s · Esc stops it
        ~>› and the docs
        ~   Enter says it now · Tab says it after the turn · Esc sto…
    "#]]);
}

#[test]
fn a_no_may_have_its_reason_on_the_same_line() {
    let mut play = Play::new();
    play.comes(Input::Working).comes(Input::Asked(vec![question(5, "make")]));
    play.now_ms += 2_000;
    play.types("n not now").draws().key(Key::Enter);
    play.check(&expect![[r#"
        | 
        | ? execute: the rule commands-ask asks
        |   execute
        |   │ make
        ~ … working · 3 s · Esc stops it
        ~ ? execute: the rule commands-ask asks
        ~   y yes · n no · a always in this session · e edit · w why…
        ~>› n not now
        ~   Enter answers
        -> answer s.5 No("not now") None
    "#]]);
}

#[test]
fn a_question_is_answered_by_a_line_that_was_meant_for_it() {
    let mut play = Play::new();
    play.comes(Input::Working).types("y");
    play.comes(Input::Asked(vec![question(5, "make"), question(6, "make install")]));
    play.types("es").draws().key(Key::Interrupt).draws();
    play.check(&expect![[r#"
        | 
        | ? execute: the rule commands-ask asks
        |   execute
        |   │ make
        ~ … working · 1 s · Esc stops it
        ~ ? execute: the rule commands-ask asks
        ~   y yes · n no · a always in this session · e edit · w why…
        ~   and 1 more question after it
        ~>› yes
        ~   Enter answers
        -> Interrupt
        ~ … working · 2 s · Esc stops it
        ~ ? execute: the rule commands-ask asks
        ~   y yes · n no · a always in this session · e edit · w why…
        ~   and 1 more question after it
        ~>›
        ~   Ctrl-C again leaves; the session stays
    "#]]);
    play.comes(Input::Tick).types("w").key(Key::Enter).types("n").draws().key(Key::Enter);
    play.types("too loud").draws().key(Key::Enter);
    play.comes(Input::Tick).types("e").key(Key::Enter).draws().key(Key::Enter);
    play.check(&expect![[r#"
        |   the rule commands-ask asks
        |     forbid (...)
        ~ … working · 4 s · Esc stops it
        ~ ? execute: the rule commands-ask asks
        ~   y yes · n no · a always in this session · e edit · w why…
        ~   and 1 more question after it
        ~>› n
        ~   Enter answers
        ~ … working · 5 s · Esc stops it
        ~ ? execute: the rule commands-ask asks
        ~   no; why? The model is told. Enter for no reason, Esc goe…
        ~   and 1 more question after it
        ~>› too loud
        ~   Enter answers
        -> answer s.5 No("too loud") None
        | 
        | ? execute: the rule commands-ask asks
        |   execute
        |   │ make
        ~ … working · 8 s · Esc stops it
        ~ ? execute: the rule commands-ask asks
        ~   what is to be done instead? Enter sends it, Esc goes back
        ~>› make install
        ~   Enter answers
        -> answer s.6 Instead("make install") None
    "#]]);
}

#[test]
fn an_answer_that_stands_is_given_by_itself() {
    let mut play = Play::new();
    play.comes(Input::Asked(vec![question(5, "make")]))
        .comes(Input::Tick)
        .types("a")
        .key(Key::Enter);
    play.comes(Input::Asked(Vec::new()));
    play.comes(Input::Asked(vec![question(9, "make"), question(10, "make install")]));
    play.check(&expect![[r#"
        | 
        | ? execute: the rule commands-ask asks
        |   execute
        |   │ make
        -> answer s.5 Always None
        |   ● approved as before: execute: the rule commands-ask asks
        -> answer s.9 Yes Some(Seq(5))
        | 
        | ? execute: the rule commands-ask asks
        |   execute
        |   │ make
    "#]]);
}

#[test]
fn what_nobody_answers_waits_in_the_inbox() {
    let mut play = Play::new();
    play.comes(Input::Asked(vec![question(5, "make")]));
    play.now_ms += limits::QUESTION_MS_MAX;
    play.comes(Input::Tick).draws().key(Key::Enter);
    play.conversation.reopen();
    play.draws();
    play.check(&expect![[r#"
        | 
        | ? execute: the rule commands-ask asks
        |   execute
        |   │ make
        | ! s.5 waits in the inbox; Enter asks again, `outrigger approve s.5` answers elsewhere
        ~>›
        ~   model · dir
        -> Look
        ~ ? execute: the rule commands-ask asks
        ~   y yes · n no · a always in this session · e edit · w why…
        ~>›
        ~   a letter and Enter answer
    "#]]);
}

#[test]
fn ctrl_c_twice_leaves() {
    let mut play = Play::new();
    play.types("text").key(Key::Interrupt).draws();
    play.now_ms += limits::LEAVE_MS_MAX;
    play.comes(Input::Working).key(Key::Interrupt).key(Key::Interrupt);
    play.check(&expect![[r#"
        ~>›
        ~   Ctrl-C again leaves; the session stays
        -> Interrupt
        -> Leave
    "#]]);
}

#[test]
fn commands_and_files_are_completed() {
    let mut play = Play::new();
    play.types("/d").draws().key(Key::Enter).types("see @ma");
    play.comes(Input::Files(vec!["src/main.rs".to_owned(), "man.md".to_owned()]));
    play.draws().key(Key::Down).key(Key::Tab).types("x").key(Key::Enter);
    play.types("/nothing").key(Key::Enter);
    play.check(&expect![[r#"
        ~>› /d
        ~   ▸ /diff  show what changed in the sandbox
        ~   model · dir
        | 
        | › /diff
        -> Command(Diff)
        -> ListFiles
        ~>› see @ma
        ~   ▸ @man.md
        ~     @src/main.rs
        ~   model · dir
        | 
        | › see @src/main.rs x
        -> say "see @src/main.rs x"
        | 
        | ! there is no /nothing; /help lists what there is
    "#]]);
}

#[test]
fn the_end_of_an_output_is_shown_and_all_of_it_on_a_key() {
    let mut play = Play::new();
    play.comes(Input::Working);
    let work = json!({ "reply": 1, "index": 0, "call": "c", "tool": "execute", "arguments": "0".repeat(64) });
    play.event(4, &json!({ "proposed": { "call_tool": work } })).event(5, &started(4));
    let lines: String = (1..=40).map(|line| format!("line {line}\n")).collect();
    play.comes(Input::Live(Some(Seq(4)), LiveOutput::Output(lines.clone().into_bytes()))).draws();
    let output = json!({ "status": "ok", "text": lines, "exit_code": 0, "hidden_bytes": 0 });
    let spent = json!({ "steps": 1, "tokens": 0 });
    let settled =
        json!({ "effect": 4, "outcome": { "done": { "output": output } }, "spent": spent });
    play.event(6, &json!({ "settled": settled })).key(Key::Expand);
    let text = std::mem::take(&mut play.text);
    let (_, all) = text.split_once("| ▸").expect("the command was shown");
    assert_eq!(all.matches("│ line 1\n").count(), 1, "{all}");
    assert_eq!(all.matches("│ line 40\n").count(), 3, "{all}");
}

#[test]
fn a_host_is_asked_about_and_answered_by_a_line_that_was_meant_for_it() {
    let asks = |hosts: &[&str]| {
        let host = |words: &&str| outrigger_engine::EgressQuestion {
            sandbox: outrigger_sandbox::SandboxId::new("s.main").unwrap(),
            words: (*words).to_owned(),
        };
        Input::Hosts(hosts.iter().map(host).collect())
    };
    let mut play = Play::new();
    play.comes(Input::Working).comes(asks(&["a.test", "b.test:8443"])).types("or").draws();
    play.check(&expect![[r#"
        | ? a.test is to be reached:
        | ? b.test:8443 is to be reached:
        ~ … working · 1 s · Esc stops it
        ~ ? a.test is to be reached:
        ~   o once · s in this session · r always, as a rule · n no
        ~>› or
        ~   Enter says it now · Tab says it after the turn · Esc sto…
    "#]]);
    play.key(Key::Backspace).draws().key(Key::Enter).comes(asks(&["b.test:8443"])).draws();
    play.check(&expect![[r#"
        ~ … working · 2 s · Esc stops it
        ~ ? a.test is to be reached:
        ~   o once · s in this session · r always, as a rule · n no
        ~>› o
        ~   Enter answers
        -> AnswerHost(EgressQuestion { sandbox: SandboxId("s.main"), words: "a.test" }, Once)
        ~ … working · 4 s · Esc stops it
        ~ ? b.test:8443 is to be reached:
        ~   o once · s in this session · r always, as a rule · n no
        ~>›
        ~   a letter and Enter answer
    "#]]);
    play.comes(Input::Tick).types("y").key(Key::Enter).types("n").key(Key::Enter);
    play.comes(asks(&[])).draws();
    play.check(&expect![[r#"
        | ! `y` is none of: o once · s in this session · r always, as a rule · n no
        -> AnswerHost(EgressQuestion { sandbox: SandboxId("s.main"), words: "b.test:8443" }, No)
        ~ … working · 8 s · Esc stops it
        ~>›
        ~   model · dir
    "#]]);
}
