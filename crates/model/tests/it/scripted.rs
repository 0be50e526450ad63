//! The scripted model.

use std::sync::Arc;

use expect_test::expect;
use outrigger_agent::{Item, ModelFault, Status, Stop};
use outrigger_model::{Error, Model, NoFrames, Purpose, ScriptedModel};

use crate::kit::{Kept, Recorder, ask, result, says};

const SCRIPT: &str = r#"
name = "demo"

[[turn]]
thinking = "Where to begin?"
text = "I run the tests."
calls = [{ name = "execute", arguments = { command = "cargo test", timeout = 1.5 } }]
usage = { input_tokens = 900, output_tokens = 20 }

[[turn]]
when = { result_contains = "FAILED" }
calls = [{ name = "execute", arguments = '{"broken' }]

[[turn]]
when = { result_matches = '(?m)^test result: ok', turn = 3 }
text = "The tests pass now."
"#;

#[tokio::test]
async fn turns_follow_what_the_tools_gave() {
    let model = ScriptedModel::parse(SCRIPT).unwrap();
    assert!(model.describe().scripted);
    let mut items = vec![says("Go.")];
    let mut shown = String::new();
    for output in ["x\ntest FAILED\n", "a\ntest result: ok. 1 passed", ""] {
        let reply = ask(&model, &items, Purpose::Turn, &NoFrames).await.unwrap();
        assert_eq!((reply.origin.api.as_str(), &reply.stop), ("scripted", &Stop::End));
        assert!(reply.text().starts_with("[scripted]"));
        shown.push_str(&format!("{:?} {}\n", reply.parts, reply.usage.output_tokens > 0));
        let calls: Vec<String> = reply.calls().map(|call| call.id.clone()).collect();
        items.push(Item::Reply(Arc::new(reply)));
        items.extend(calls.iter().map(|call| result(call, Status::Ok, output)));
    }
    expect![[r#"
        [Thinking("Where to begin?"), Text("[scripted] I run the tests."), Call(Call { id: "call_1_0", name: "execute", arguments: "{\"command\":\"cargo test\",\"timeout\":1.5}" })] true
        [Text("[scripted]"), Call(Call { id: "call_2_0", name: "execute", arguments: "{\"broken" })] true
        [Text("[scripted] The tests pass now.")] true
    "#]].assert_eq(&shown);
}

#[tokio::test]
async fn a_script_without_a_fitting_turn_says_what_it_saw() {
    let model = ScriptedModel::parse(SCRIPT).unwrap();
    let first = ask(&model, &[says("Go.")], Purpose::Turn, &NoFrames).await.unwrap();
    let id = first.calls().next().unwrap().id.clone();
    let items = [says("Go."), Item::Reply(Arc::new(first)), result(&id, Status::Ok, "all is well")];
    let error = ask(&model, &items, Purpose::Turn, &NoFrames).await.unwrap_err();
    assert_eq!(error.fault(), ModelFault::Script);
    expect![[r#"the script "demo" has no turn for reply 2 to the results ["all is well"]; add a turn to the script whose `when` fits"#]].assert_eq(&error.detail());
}

#[tokio::test]
async fn a_summary_and_frames_say_that_they_are_scripted() {
    let model = ScriptedModel::parse(SCRIPT).unwrap();
    let reply = ask(&model, &[says("Go.")], Purpose::Compact, &NoFrames).await.unwrap();
    expect!["[scripted] The conversation so far went as the script wanted."]
        .assert_eq(&reply.text());
    let frames = Recorder::default();
    ask(&model, &[says("Go.")], Purpose::Turn, &frames).await.unwrap();
    let piece = Kept::Piece { attempt: 1 };
    assert_eq!(frames.all(), [Kept::Started(1), piece.clone(), piece.clone(), piece]);
}

#[test]
fn a_bad_script_is_refused_with_its_place() {
    let shown: Vec<String> = [
        "",
        "[[turn]]\ntext = 1",
        "[[turn]]\ntext = \"a\"\nwen = { turn = 1 }",
        "[[turn]]\nthinking = \"a\"",
        "[[turn]]\ntext = \"a\"\n[[turn]]\ntext = \"a\"\nwhen = { result_matches = \"(\" }",
        "[[turn]]\ntext = \"a\"\ndelay_ms = 99999999",
    ]
    .into_iter()
    .map(|script| {
        let error = ScriptedModel::parse(script).unwrap_err();
        let cause = std::error::Error::source(&error).map(|cause| format!("\n{cause}"));
        format!("{error}{}", cause.unwrap_or_default())
    })
    .collect();
    expect![[r#"
        the script has 0 turns; it needs 1 to 10000
        ---
        the script cannot be read
        TOML parse error at line 2, column 8
          |
        2 | text = 1
          |        ^
        invalid type: integer `1`, expected a string

        ---
        the script cannot be read
        TOML parse error at line 3, column 1
          |
        3 | wen = { turn = 1 }
          | ^^^
        unknown field `wen`, expected one of `when`, `text`, `thinking`, `calls`, `delay_ms`, `usage`

        ---
        turn 1 has neither text nor calls
        ---
        turn 2: `result_matches` is no regular expression
        regex parse error:
            (
            ^
        error: unclosed group
        ---
        turn 1: `delay_ms` is above 60000"#]].assert_eq(&shown.join("\n---\n"));
}

#[test]
fn its_errors_are_errors_of_the_port() {
    let error = Error::from(outrigger_model::scripted::UnmatchedRequest {
        script: "demo".into(),
        turn: 2,
        message: "Go.".into(),
        results: Vec::new(),
    });
    expect![[r#"the script "demo" has no turn for reply 2 to the message "Go.""#]]
        .assert_eq(&error.to_string());
}
