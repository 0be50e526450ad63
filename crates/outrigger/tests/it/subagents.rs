//! Subagents of a session, from the command line.

use serde_json::{Value, json};

use crate::support::{Turn, World};

/// What a subagent does and then its session, in which two of them are started.
const SCRIPT: &str = r#"
[[turn]]
when = { turn = 1, message_contains = "review" }
calls = [{ name = "execute", arguments = { command = "cat note; echo child >> note" } }]
[[turn]]
when = { turn = 2, message_contains = "review" }
text = "Reviewed."
[[turn]]
when = { turn = 1 }
calls = [{ name = "execute", arguments = { command = "echo parent > note" } }]
[[turn]]
when = { turn = 2 }
calls = [
  { name = "task", arguments = { task = "review this" } },
  { name = "task", arguments = { task = "review that", agent = "reader" } },
]
[[turn]]
when = { turn = 3 }
calls = [{ name = "execute", arguments = { command = "cat note" } }]
[[turn]]
when = { turn = 4 }
text = "That is all."
"#;

/// A machine with a second agent, and if so with a rule that asks about what subagents run.
fn script(world: &World, asks: bool) -> String {
    let mut config = String::from(
        "[agents.reader]\ndescription = \"reads\"\ntools = [\"execute\", \"read_file\"]\nsteps = 5\n",
    );
    if asks {
        let rules = world.path("below.cedar");
        let text = "@id(\"below\") @approvable(\"anyone\")\nforbid (principal, action == Action::\"execute\", resource) when { context.depth > 0 };\n";
        std::fs::write(&rules, text).unwrap();
        config.push_str(&format!("[policy]\nfiles = [{:?}]\n", rules.display().to_string()));
    }
    world.dir("config", &[("outrigger/config.toml", config.as_bytes())]);
    world.dir("repo", &[("file", b"one\n")]);
    let path = world.path("script.toml");
    std::fs::write(&path, SCRIPT).unwrap();
    path.display().to_string()
}

fn run(world: &World, script: &str, code: i32) -> String {
    let dir = world.path("repo").display().to_string();
    world.ran(code, &["run", "Do it.", "--dir", &dir, "--script", script]).stderr
}

fn results(world: &World) -> Vec<Value> {
    let events = world.events(&world.session());
    let outputs = events.iter().map(|event| event["settled"]["outcome"]["done"]["output"].clone());
    outputs.filter(Value::is_object).collect()
}

#[test]
fn they_are_started_shown_and_charged_to_the_session() {
    let world = World::new();
    let script = script(&world, false);
    let shown = run(&world, &script, 0);
    assert!(shown.contains("▸ task  review this"), "{shown}");
    assert!(shown.contains("▸ task  reader  review that"), "{shown}");
    assert_eq!(shown.matches("⎿ default: ▸ execute  cat note").count(), 1, "{shown}");
    assert_eq!(shown.matches("⎿ reader: ▸ execute  cat note").count(), 1, "{shown}");
    let gave = results(&world);
    assert_eq!(gave[1]["text"], "[scripted] Reviewed.");
    assert_eq!(gave[2]["text"], "[scripted] Reviewed.");
    assert!(gave[3]["text"].as_str().unwrap().starts_with("parent\n[exit"), "{gave:?}");
    let listed = |args: &[&str]| world.ran(0, args).json()["sessions"].as_array().unwrap().clone();
    assert_eq!(listed(&["sessions", "ls", "--json"]).len(), 1);
    let all = listed(&["sessions", "ls", "--all", "--json"]);
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(!shown.contains("cancelled"), "{shown}");
    for row in &all {
        let logs = world.ran(0, &["sessions", "logs", row["session"].as_str().unwrap()]);
        assert!(!logs.stdout.contains("cancelled"), "{}", logs.stdout);
    }
    let session = world.session();
    let whole = world.ran(0, &["sessions", "show", &session[..4], "--json"]).json();
    assert_eq!(whole["session"], json!(session), "the beginning of a name means the session");
    let mut steps = 0;
    for row in all.iter().filter(|row| row["session"] != json!(session)) {
        assert_eq!(row["status"], "done", "{row}");
        let name = row["session"].as_str().unwrap();
        let shown = world.ran(0, &["sessions", "show", name, "--json"]).json();
        assert_eq!(shown["parent"], json!(session));
        assert!(["agent:default", "agent:reader"].contains(&shown["agent"].as_str().unwrap()));
        steps += shown["steps"].as_u64().unwrap();
    }
    // Four replies and four calls of its own.
    assert_eq!(whole["steps"].as_u64().unwrap(), 8 + steps);
    assert_eq!(world.ran(0, &["audit", "verify", "--json"]).json()["sessions"], 3);
}

#[test]
fn what_one_of_them_asks_is_answered_and_the_session_goes_on() {
    let world = World::new();
    let script = script(&world, true);
    let told = run(&world, &script, 10);
    assert!(told.contains("and 1 more wait for approval"), "{told}");
    let session = world.session();
    let row = &world.ran(0, &["sessions", "ls", "--json"]).json()["sessions"][0];
    assert_eq!(row["status"], "waits for approval");
    let budget = world.ran(0, &["budget", "show", "--json"]).json();
    assert_eq!(budget["left_behind"], json!([session]), "what they reserve is reserved above");
    let inbox = || world.ran(0, &["inbox", "--json"]).json()["waiting"].as_array().unwrap().clone();
    let waiting = inbox();
    assert_eq!(waiting.len(), 2, "{waiting:?}");
    assert!(waiting[0]["session"].as_str().unwrap().starts_with(&format!("{session}-")));
    assert_eq!(waiting[0]["rules"], json!(["below"]));
    world.ran(10, &["approve", waiting[0]["id"].as_str().unwrap()]);
    assert_eq!(inbox().len(), 1);
    world.ran(0, &["deny", waiting[1]["id"].as_str().unwrap(), "--reason", "no"]);
    let gave = results(&world);
    assert_eq!(gave.len(), 4, "{gave:?}");
    assert!(gave[3]["text"].as_str().unwrap().starts_with("parent\n[exit"), "{gave:?}");
    let all = world.ran(0, &["sessions", "ls", "--all", "--json"]).json();
    let all = all["sessions"].as_array().unwrap();
    assert!(all.iter().filter(|row| row["status"] == "done").count() == 2, "{all:?}");
}

#[test]
fn who_is_cancelled_takes_them_along() {
    let world = World::new();
    let script = script(&world, true);
    run(&world, &script, 10);
    let session = world.session();
    world.ran(0, &["sessions", "cancel", &session]);
    let all = world.ran(0, &["sessions", "ls", "--all", "--json"]).json();
    let all = all["sessions"].as_array().unwrap();
    assert_eq!(all.iter().filter(|row| row["status"] == "cancelled").count(), 3, "{all:?}");
    assert_eq!(world.ran(0, &["sandbox", "ls", "--all", "--json"]).json()["sandboxes"], json!([]));
}

#[test]
fn a_configuration_can_have_none_and_names_only_tools_that_there_are() {
    let world = World::new();
    let script = world.script(&[Turn(&[("task", json!({ "task": "x" }))])]);
    world.dir("repo", &[("file", b"one\n")]);
    world.dir("config", &[("outrigger/config.toml", b"[limits]\nsubagents_deep = 0\n")]);
    run(&world, &script, 0);
    let events = world.events(&world.session());
    let unknown = events.iter().find_map(|event| {
        event["settled"]["outcome"]["failed"]["call"]["unknown"]["available"].as_array().cloned()
    });
    assert!(unknown.is_some_and(|tools| !tools.contains(&json!("task"))), "{events:?}");
    let wrong = b"[agents.a]\ntools = [\"read_files\"]\n";
    world.dir("config", &[("outrigger/config.toml", wrong)]);
    let told = run(&world, &script, 2);
    assert!(told.contains("the agent a names the tool `read_files`, and there is none"), "{told}");
    assert!(told.contains("The tools are execute,"), "{told}");
}
