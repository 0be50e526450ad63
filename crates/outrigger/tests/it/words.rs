//! What models and strangers write, with the real binary: nothing of it makes a reader
//! fail, is taken for an answer when it is none, or reads otherwise than it is.

use crate::provider::Provider;
use crate::support::{Ran, Turn, World, shell};
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;

/// What runs against a provider, with its events as JSON.
fn ask(world: &World, url: &str, provider: &str, more: &[&str]) -> Ran {
    let dir = world.dir("repo", &[("plain", b"x")]);
    let dir = dir.to_str().unwrap();
    let args = ["run", "Do it.", "--dir", dir, "--model", "m", "--provider", provider];
    world.run(&[&args[..], &["--base-url", url, "--json=events"], more].concat())
}

fn streamed(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// A reply on the wire of chat, of one delta.
fn chat(delta: &Value, finish: &str) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    streamed(&[json!({ "choices": [choice] })]) + "data: [DONE]\n\n"
}

fn called(arguments: &str) -> Value {
    let function = json!({ "name": "execute", "arguments": arguments });
    json!({ "tool_calls": [{ "index": 0, "id": "t", "function": function }] })
}

/// A reply of Anthropic with one call, whose arguments come as they are.
fn messages(arguments: &str) -> String {
    streamed(&[
        json!({ "type": "message_start", "message": { "id": "m", "usage": {} } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "tool_use", "id": "t", "name": "execute", "input": {} } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": arguments } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
        json!({ "type": "message_stop" }),
    ])
}

fn spoken(text: &str) -> String {
    streamed(&[
        json!({ "type": "message_start", "message": { "id": "m", "usage": {} } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": text } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
        json!({ "type": "message_stop" }),
    ])
}

/// Every reader of the session goes through, and so does what its provider was asked.
#[track_caller]
fn reads(world: &World, ran: &Ran, fake: &Provider) {
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    let session = world.session();
    for args in [&["logs", &session, "--json"][..], &["logs", &session], &["show", &session]] {
        let read = world.ran(0, &[&["sessions"], args].concat());
        assert!(!read.stderr.contains("panicked"), "{}", read.stderr);
    }
    world.ran(0, &["sessions", "logs", &session, "--json"]).lines();
    for request in fake.heard() {
        serde_json::from_str::<Value>(&request).unwrap();
    }
}

#[test]
fn a_character_that_comes_in_two_halves_is_one() {
    let halves = "data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"a\\ud83d\"}}]}\n\n\
        data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"\\ude00b \\ud83d\"}}]}\n\n\
        data: {\"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": \"stop\"}]}\n\n";
    let (world, fake) = (World::new(), Provider::streaming(vec![halves.to_owned()]));
    let ran = ask(&world, &fake.url, "openai-chat", &[]).expect(0);
    assert_eq!(ran.lines().pop().unwrap()["answer"], "a\u{1f600}b \u{fffd}");
    reads(&world, &ran, &fake);
}

#[test]
fn arguments_that_readers_fail_on_are_refused_and_stay_nowhere() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    for (arguments, told) in [
        ("{\"command\":\"echo \\ud800 > half\"}", "exit code 0"),
        (deep.as_str(), "nested more than 64 deep"),
        ("{\"command\":\"true\",\"command\":\"echo > twice\"}", "stands there twice"),
    ] {
        for provider in ["anthropic", "openai-chat"] {
            let replies = match provider {
                "anthropic" => vec![messages(arguments), spoken("Done.")],
                _ => vec![
                    chat(&called(arguments), "tool_calls"),
                    chat(&json!({ "content": "Done." }), "stop"),
                ],
            };
            let (world, fake) = (World::new(), Provider::streaming(replies));
            let ran = ask(&world, &fake.url, provider, &[]);
            let ran = ran.expect(0);
            reads(&world, &ran, &fake);
            let heard = fake.heard();
            assert_eq!(heard.len(), 2, "{provider}");
            if told != "exit code 0" {
                assert!(heard[1].contains(told), "{provider}: {}", heard[1]);
            }
            assert!(!heard[1].contains("\\ud800"), "{provider}: {}", heard[1]);
        }
    }
}

#[test]
fn nothing_is_no_answer_and_is_asked_about_once() {
    let empty = chat(&json!({ "content": " \n" }), "stop");
    let (world, fake) = (World::new(), Provider::streaming(vec![empty.clone()]));
    let ran = ask(&world, &fake.url, "openai-chat", &[]).expect(1);
    assert!(ran.stderr.contains("the model said nothing"), "{}", ran.stderr);
    assert_eq!(fake.asked(), 2);
    assert!(fake.heard()[1].contains("Your last reply was empty."));
    assert_eq!(world.sessions()[0]["status"], "said nothing");
    let full = chat(&json!({ "content": "Here." }), "stop");
    let (world, fake) = (World::new(), Provider::streaming(vec![empty, full]));
    let ran = ask(&world, &fake.url, "openai-chat", &[]).expect(0);
    assert_eq!((ran.lines().pop().unwrap()["answer"].clone(), fake.asked()), (json!("Here."), 2));
}

#[test]
fn time_that_runs_out_while_the_model_thinks_is_a_budget_that_is_reached() {
    // It takes what it is asked, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (world, url) = (World::new(), format!("http://{}", silent.local_addr().unwrap()));
    let ran = ask(&world, &url, "openai-chat", &["--max-seconds", "1"]).expect(11);
    assert!(ran.stderr.contains("was too little; used are"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--max-seconds 2 or above"), "{}", ran.stderr);
    assert_eq!(world.sessions()[0]["status"], "out of budget");
}

#[test]
fn a_call_that_was_cut_off_is_told_as_that() {
    let cut = chat(&called("{\"command\": \"echo > cut; echo a ve"), "length");
    let full = chat(&json!({ "content": "Done." }), "stop");
    let (world, fake) = (World::new(), Provider::streaming(vec![cut, full]));
    ask(&world, &fake.url, "openai-chat", &[]).expect(0);
    let heard = &fake.heard()[1];
    assert!(heard.contains("your output reached its limit within this call"), "{heard}");
    // Servers that render it into a prompt fail on null.
    assert!(heard.contains(r#""content":"""#) && !heard.contains("null"), "{heard}");
}

#[test]
fn a_key_goes_over_plain_http_only_where_the_configuration_says_so() {
    let reply = chat(&json!({ "content": "Here." }), "stop");
    let (world, fake) = (World::new(), Provider::streaming(vec![reply]));
    // Another name of this machine, which a program can't know for one.
    let url = fake.url.replace("127.0.0.1", "0.0.0.0");
    let keyed = |world: &World| {
        let dir = world.dir("repo", &[]);
        let mut command = world.outrigger(&["run", "Do it.", "--model", "m", "--base-url", &url]);
        command.args(["--provider", "openai-chat", "--dir"]).arg(dir);
        Ran::of(command.env("OPENAI_API_KEY", "sk-canary").output().unwrap())
    };
    let refused = keyed(&world).expect(2);
    assert!(refused.stderr.contains("0.0.0.0 over plain http"), "{}", refused.stderr);
    assert!(refused.stderr.contains("model.http_hosts"), "{}", refused.stderr);
    assert_eq!(fake.asked(), 0);
    world.configure("[model]\nhttp_hosts = [\"0.0.0.0\"]\n");
    assert_eq!(keyed(&world).expect(0).stdout, "Here.\n");
}

#[test]
fn an_editor_gets_no_key() {
    let world = World::new();
    world.configure("[model]\napi_key_env = \"MY_KEY\"\n\n[tools.a]\nurl = \"https://x.test\"\ntoken_env = \"MY_TOKEN\"\n");
    let editor = world.path("editor");
    fs::write(&editor, "env > \"$SEEN\"; echo edited > \"$1\"\n").unwrap();
    let seen = world.path("seen");
    let mut command = world.outrigger(&["memory", "edit", "notes.md"]);
    for key in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "MY_KEY", "MY_TOKEN"] {
        command.env(key, "sk-canary");
    }
    command.env("SEEN", &seen).env("EDITOR", format!("sh {}", editor.display()));
    Ran::of(command.output().unwrap()).expect(0);
    let seen = fs::read_to_string(&seen).unwrap();
    assert!(seen.contains("EDITOR=") && !seen.contains("sk-canary"), "{seen}");
    assert_eq!(world.ran(0, &["memory", "cat", "notes.md"]).stdout, "edited\n");
}

#[test]
fn what_others_wrote_does_not_write_to_a_terminal_or_into_a_prompt() {
    let world = World::new();
    let hostile = "a\u{1b}]0;title\u{7}\u{202e}b\u{e0041}\n";
    let file = world.path("hostile");
    fs::write(&file, hostile).unwrap();
    world.ran(0, &["memory", "put", "notes.md", file.to_str().unwrap()]);
    assert_eq!(world.ran(0, &["memory", "cat", "notes.md"]).stdout, hostile, "for a program");
    let shown = world.on_terminal(&["memory", "cat", "notes.md"]).expect(0).stdout;
    assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{e0041}']), "{shown:?}");

    let skill = "---\nname: greet\ndescription: Says hello\u{e0041}\u{e0042}.\u{202e} \u{fe00}\u{fe01}Use it.\n---\n# Greet\n";
    let folder = world.dir("given/greet", &[("SKILL.md", skill.as_bytes())]);
    world.ran(0, &["skills", "import", folder.to_str().unwrap()]);
    let dir = world.dir("repo", &[("AGENTS.md", "Be\u{200b} nice\u{e0043}.".as_bytes())]);
    let script = world.script(&[]);
    world.ran(0, &["run", "Do it.", "--dir", dir.to_str().unwrap(), "--script", &script]);
    let opened = world.events(&world.session())[0]["opened"]["system"].to_string();
    assert!(opened.contains("Says hello. Use it."), "{opened}");
}

#[test]
fn what_waits_is_shown_decoded_whole_and_with_what_nobody_sees() {
    let world = World::new();
    let rules = world.path("careful.cedar");
    let text = "@id(\"ask\")\n@approvable(\"anyone\")\nforbid (principal, action == Action::\"execute\", resource);\n";
    fs::write(&rules, text).unwrap();
    world.configure(&format!("[policy]\nfiles = [{:?}]\n", rules.display().to_string()));
    let command = "echo '\u{202e}'\u{e0041}\n└ end of the arguments\nrm -rf build";
    let script = world.script(&[Turn(&[shell(command)])]);
    let dir = world.dir("repo", &[]);
    let args = ["run", "Do it.", "--dir", dir.to_str().unwrap(), "--script", &script, "--json"];
    let id = world.ran(10, &args).json()["waiting"][0].as_str().unwrap().to_owned();
    let shown = "    command\n    │ echo '\\u{202e}'\\u{e0041}\n    │ └ end of the arguments\n    \
        │ rm -rf build\n    └ end of the arguments\n";
    let one = world.ran(0, &["inbox", &id]).stdout;
    assert!(one.ends_with(shown), "{one}");
    let approved = world.ran(0, &["approve", &id]).stderr;
    assert!(approved.contains("│ echo '\\u{202e}'\\u{e0041}\n"), "{approved}");
}
