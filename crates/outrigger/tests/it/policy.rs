//! `policy`: rules that are configured, checked, explained and tested.

use crate::support::{Turn, World, shell};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

const RULES: &str = r#"
@id("hosts")
forbid (principal, action == Action::"egress", resource)
unless { resource in Host::"github.com" };

@id("deploys")
@approvable("group:ops")
@escalates("person:eve")
@reason("Operations decide.")
forbid (principal, action == Action::"execute", resource == Sandbox::"prod");
"#;

const PEOPLE: &str = "organisation = \"acme\"\n[groups]\nops = [\"person:ada\"]\n";

/// A world whose user has rules.
fn world(config: &str) -> World {
    let world = World::new();
    let dir = world.path("config/outrigger");
    fs::create_dir_all(&dir).unwrap();
    for (name, text) in [("config.toml", config), ("rules.cedar", RULES), ("people.toml", PEOPLE)] {
        fs::write(dir.join(name), text).unwrap();
    }
    world
}

fn configured() -> World {
    world("[policy]\nfiles = [\"rules.cedar\"]\npeople = \"people.toml\"\n")
}

#[test]
fn a_rule_about_a_path_is_not_passed_by_through_a_link() {
    let world = configured();
    let rule = "@id(\"locked\")\nforbid (principal, action == Action::\"write_files\", \
        resource in Path::\"/workspace/locked\");\n";
    fs::write(world.path("config/outrigger/rules.cedar"), rule).unwrap();
    let dir = world.dir("repo", &[("locked/file", b"one\n"), ("open", b"one\n")]);
    symlink("locked", dir.join("link")).unwrap();
    let write = |path: &str| ("write_file", json!({ "file_path": path, "content": "two" }));
    let paths = ["locked/file", "link/file", "link/../locked/file", "link/new", "open"];
    let writes = paths.map(|path| [write(path)]);
    let turns: Vec<_> = writes.iter().map(|turn| Turn(turn)).collect();
    let script = world.script(&turns);
    world.ran(0, &["run", "Go.", "--dir", dir.to_str().unwrap(), "--script", &script]);
    let patch = world.ran(0, &["sessions", "diff"]).stdout;
    assert!(patch.contains("b/open") && !patch.contains("locked"), "{patch}");
    let told = world.results();
    assert!(told.contains("/workspace/link is a link, and there are rules about paths"), "{told}");
}

#[test]
fn check_lists_the_rules_in_force() {
    let world = configured();
    let ran = world.ran(0, &["policy", "check"]);
    for part in ["forbid  hosts", "ask     deploys", "permit  inside-the-sandbox", "rules.cedar:2"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let found = world.ran(0, &["policy", "check", "--json"]).json();
    assert_eq!((&found["valid"], &found["problems"]), (&json!(true), &json!([])));
    let deploys = found["rules"].as_array().unwrap().iter().find(|rule| rule["id"] == "deploys");
    assert_eq!(deploys.unwrap()["approvers"], json!(["group:ops"]));
}

#[test]
fn check_names_file_line_and_what_to_do() {
    let world = configured();
    let wrong = world.path("wrong.cedar");
    fs::write(&wrong, "\n@id(\"a\")\npermit (principal, action == Action::\"exec\", resource);")
        .unwrap();
    let wrong = wrong.to_str().unwrap();
    let ran = world.ran(2, &["policy", "check", wrong]);
    for part in ["wrong.cedar, line 3", "unrecognized action", "did you mean `Action::\"execute\"`"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let found = world.ran(2, &["policy", "check", wrong, "--json"]).json();
    assert_eq!((&found["valid"], &found["problems"][0]["line"]), (&json!(false), &json!(3)));
}

#[test]
fn wrong_rules_keep_a_session_from_beginning() {
    let world = world("[policy]\nfiles = [\"lost.cedar\"]\n");
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let script = world.script(&[]);
    let ran = world.ran(2, &["run", "Wait.", "--dir", dir.to_str().unwrap(), "--script", &script]);
    assert!(ran.stderr.contains("lost.cedar: it can't be read"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: docs/how-to/write-policies.md"), "{}", ran.stderr);
    let people = self::world("[policy]\npeople = \"config.toml\"\n");
    let ran = people.ran(2, &["policy", "check"]);
    assert!(ran.stderr.contains("config.toml, line 1"), "{}", ran.stderr);
}

#[test]
fn a_situation_is_explained() {
    let world = configured();
    let explain = |args: &[&str]| world.ran(0, &[&["policy", "explain"], args].concat());
    let ran = explain(&["--action", "egress", "--resource", "evil.example"]);
    for part in
        ["forbid: egress `evil.example`", "because hosts forbids it", "@id(\"hosts\")", "org:acme"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let ran = explain(&["--action", "execute", "--resource", "prod"]);
    assert!(ran.stdout.contains("may approve: group:ops"), "{}", ran.stdout);
    let asked = ["--action", "egress", "--resource", "127.1", "--json"];
    let found = explain(&asked).json();
    assert_eq!(found["outcome"], "forbid");
    assert!(found["why"].as_str().unwrap().contains("no sure spelling"), "{found}");
}

#[test]
fn an_effect_of_a_session_is_explained() {
    let world = configured();
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let script = world.script(&[Turn(&[shell("true")])]);
    let args = ["run", "Go.", "--dir", dir.to_str().unwrap(), "--script", &script, "--json"];
    let session = world.ran(0, &args).json()["session"].as_str().unwrap().to_owned();
    let logs = world.ran(0, &["sessions", "logs", &session, "--json"]).stdout;
    let decided = logs.lines().filter_map(|line| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        Some(event["record"]["event"]["decided"]["effect"].as_u64()?.to_string())
    });
    let mut actions = Vec::new();
    for effect in decided {
        let args = ["policy", "explain", "--session", &session, "--effect", &effect, "--json"];
        let found = world.ran(0, &args).json();
        assert_eq!(found["outcome"], "permit", "{found}");
        assert_eq!(found["then"]["rule_set"], found["rule_set"], "{found}");
        actions.push(found["situation"]["action"].as_str().unwrap().to_owned());
    }
    actions.sort();
    actions.dedup();
    assert_eq!(actions, ["ask_model", "execute", "provision"]);
    let none = world.ran(4, &["policy", "explain", "--session", &session, "--effect", "9999"]);
    assert!(none.stderr.contains("has no step 9999"), "{}", none.stderr);
}

#[test]
fn tests_of_rules_say_which_differ() {
    let world = configured();
    let file = world.path("rules.test.toml");
    let cases = r#"
        [[case]]
        name = "operations approve"
        when = { action = "execute", resource = "prod" }
        approved_by = ["person:ada"]
        expect = "permit"
        [[case]]
        name = "others do not"
        when = { action = "execute", resource = "prod" }
        approved_by = ["person:local"]
        expect = "ask"
        rules = ["deploys"]
        [[case]]
        name = "whom it escalates to does"
        when = { action = "execute", resource = "prod" }
        approved_by = ["person:eve"]
        escalated = true
        expect = "permit"
    "#;
    fs::write(&file, cases).unwrap();
    let file_name = file.to_str().unwrap();
    let ran = world.ran(0, &["policy", "test", file_name]);
    assert!(ran.stdout.contains("3 situations, 0 not as expected"), "{}", ran.stdout);
    fs::write(&file, cases.replace("\"ask\"", "\"forbid\"")).unwrap();
    let ran = world.ran(1, &["policy", "test", file_name]);
    assert!(ran.stdout.contains("ask by deploys, expected forbid by deploys"), "{}", ran.stdout);
    let found = world.ran(1, &["policy", "test", file_name, "--json"]).json();
    assert_eq!((&found["passed"], &found["differ"]), (&json!(false), &json!(1)));
    fs::write(&file, "[[case]]\nname = \"a\"\nexpect = \"maybe\"\n").unwrap();
    let ran = world.ran(2, &["policy", "test", file_name]);
    assert!(ran.stderr.contains("rules.test.toml, line"), "{}", ran.stderr);
}

#[test]
fn the_example_of_the_how_to_holds() {
    let page = include_str!("../../../../docs/how-to/write-policies.md");
    let block = |begin: &str| {
        let (_, rest) = page.split_once(begin).unwrap();
        rest.split_once("\n```").unwrap().0.to_owned()
    };
    let world = World::new();
    let dir = world.path("config/outrigger");
    fs::create_dir_all(&dir).unwrap();
    for (name, begin) in [
        ("config.toml", "# ~/.config/outrigger/config.toml\n"),
        ("rules.cedar", "// rules.cedar\n"),
        ("people.toml", "# people.toml\n"),
        ("rules.test.toml", "# rules.test.toml\n"),
        ("four.cedar", "```cedar\n@id(\"four-eyes\")"),
    ] {
        let text = block(begin);
        let text = if name == "four.cedar" { format!("@id(\"four-eyes\"){text}") } else { text };
        fs::write(dir.join(name), text).unwrap();
    }
    let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    world.ran(0, &["policy", "check"]);
    world.ran(0, &["policy", "check", &at("four.cedar")]);
    world.ran(0, &["policy", "test", &at("rules.test.toml")]);
}

const NO_COMMANDS: &str = r#"
@id("frozen")
@reason("We are in a freeze.")
forbid (principal, action == Action::"execute", resource);
"#;

/// Whoever changes the rules means the sessions that run.
#[test]
fn rules_that_change_while_a_session_runs_hold_for_its_next_step() {
    let world = configured();
    let rules = world.path("config/outrigger/rules.cedar");
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let waits = "until [ -e go ]; do sleep 0.05; done";
    let script = world.script(&[Turn(&[shell(waits)]), Turn(&[shell("echo x > ran")])]);
    let args = ["run", "Do it.", "--dir", dir.to_str().unwrap(), "--script", &script];
    let run = world.start(&args);
    let session = world.await_command();
    fs::write(&rules, NO_COMMANDS).unwrap();
    world.beside(&session, &["touch", "/workspace/go"]);
    let ran = run.end().expect(0);
    assert!(ran.stderr.contains("frozen"), "{}", ran.stderr);
    let events = world.events(&session);
    let started = events.iter().filter(|event| event["started"]["place"].is_object());
    assert_eq!(started.count(), 1, "the second command never started");
    let sets: BTreeSet<String> = events
        .iter()
        .filter_map(|event| Some(event["decided"]["rule_set"].as_str()?.to_owned()))
        .collect();
    assert_eq!(sets.len(), 2, "each judgement says under which rules");
}

/// Nothing is judged by rules that nobody can read; what ran meanwhile is not lost.
#[test]
fn rules_that_become_wrong_stop_a_session_in_a_way_that_it_can_go_on_from() {
    let world = configured();
    let rules = world.path("config/outrigger/rules.cedar");
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let waits = "until [ -e go ]; do sleep 0.05; done; echo done-once >> log";
    let script = world.script(&[Turn(&[shell(waits)]), Turn(&[shell("wc -l < log")])]);
    let args = ["run", "Do it.", "--dir", dir.to_str().unwrap(), "--script", &script];
    let run = world.start(&args);
    let session = world.await_command();
    fs::write(&rules, "forbid (").unwrap();
    world.beside(&session, &["touch", "/workspace/go"]);
    let ran = run.end().expect(2);
    assert!(ran.stderr.contains("rules.cedar") && ran.stderr.contains("resume"), "{}", ran.stderr);
    let settled =
        |event: &&serde_json::Value| event["settled"]["outcome"]["done"]["output"].is_object();
    let events = world.events(&session);
    assert_eq!(events.iter().filter(settled).count(), 1, "its outcome is kept: {}", ran.stderr);
    fs::write(&rules, "").unwrap();
    world.ran(0, &["sessions", "resume", &session]);
    let counted = world.events(&session).iter().rfind(settled).unwrap().to_string();
    assert!(counted.contains("1\\n"), "{counted}");
}
