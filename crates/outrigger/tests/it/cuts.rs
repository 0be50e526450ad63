//! `sessions say | checkpoints | fork | rewind`, with the real binary and real sandboxes.

use crate::support::{World, shell};
use serde_json::Value;
use std::fs;

const LOOK: &str = "echo x >> log; wc -l < log";

/// A session after one turn. Each of its turns adds a line to a file and counts them.
fn worked() -> (World, String) {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let script = world.path("script.toml");
    let (tool, arguments) = shell(LOOK);
    let arguments = toml::Value::String(arguments.to_string());
    let turn = format!(
        "[[turn]]\ncalls = [{{ name = \"{tool}\", arguments = {arguments} }}]\n[[turn]]\ntext = \"Counted.\"\n"
    );
    fs::write(&script, turn.repeat(4)).unwrap();
    let script = script.display().to_string();
    let args = ["run", "Count.", "--dir", dir.to_str().unwrap(), "--script", &script, "--json"];
    world.ran(0, &args);
    let session = world.session();
    (world, session)
}

impl World {
    /// What the last command of a session counted.
    fn counted(&self, session: &str) -> String {
        let events = self.events(session);
        let text = |event: &Value| {
            let output = &event["settled"]["outcome"]["done"]["output"]["text"];
            Some(output.as_str()?.lines().next()?.to_owned())
        };
        events.iter().rev().find_map(text).unwrap()
    }

    fn checkpoints(&self, session: &str) -> Vec<Value> {
        let told = self.ran(0, &["sessions", "checkpoints", session, "--json"]).json();
        told["checkpoints"].as_array().unwrap().clone()
    }
}

#[test]
fn a_fork_and_its_origin_go_their_own_ways() {
    let (world, one) = worked();
    let forked = world.ran(0, &["sessions", "fork", &one, "--json"]).json();
    let two = forked["session"].as_str().unwrap();
    assert_eq!(forked["from"], Value::String(one.clone()));
    world.ran(0, &["sessions", "say", &one, "Again."]);
    assert_eq!(world.counted(&one), "2");
    // The origin may end for good: the fork has disks of its own.
    world.ran(0, &["sessions", "cancel", &one]);
    let said = world.ran(0, &["sessions", "say", two, "Again.", "--json"]).json();
    assert_eq!(said["status"], "answered");
    assert_eq!(world.counted(two), "2");
    let patch = fs::read_to_string(said["patch"].as_str().unwrap()).unwrap();
    assert!(patch.contains("+x\n+x\n") && !patch.contains("+x\n+x\n+x"), "{patch}");
    world.ran(0, &["audit", "verify"]);
    let listed = world.sessions();
    assert_eq!(listed[0]["title"], "Count. (fork)");
}

#[test]
fn a_rewind_puts_conversation_and_files_back() {
    let (world, session) = worked();
    world.ran(0, &["sessions", "say", &session, "Again."]);
    assert_eq!(world.counted(&session), "2");
    let before = world.ran(0, &["sessions", "show", &session, "--json"]).json();
    let checkpoints = world.checkpoints(&session);
    let said: Vec<&str> =
        checkpoints.iter().map(|checkpoint| checkpoint["said"].as_str().unwrap()).collect();
    assert_eq!(said, ["", "Count.", "Again."]);
    let people = world.ran(0, &["sessions", "checkpoints", &session]).stdout;
    assert!(people.contains("Count.") && people.contains("before anything was said"), "{people}");
    let rewound = world.ran(0, &["sessions", "rewind", &session, "--json"]).json();
    assert_eq!(rewound["to"], checkpoints[1]["at"]);
    let now = world.ran(0, &["sessions", "show", &session, "--json"]).json();
    assert_eq!(now["tokens"], before["tokens"]);
    let patch = world.ran(0, &["sessions", "diff", &session]).stdout;
    assert_eq!(patch.matches("+x\n").count(), 1, "what stands now: {patch}");
    world.ran(0, &["sessions", "say", &session, "Otherwise."]);
    assert_eq!(world.counted(&session), "2", "the second line was taken back");
    let places: Vec<String> = world
        .checkpoints(&session)
        .iter()
        .map(|checkpoint| checkpoint["said"].to_string())
        .collect();
    assert_eq!(places, ["\"\"", "\"Count.\"", "\"Otherwise.\""]);
    let nowhere = world.ran(5, &["sessions", "rewind", &session, "--to", "3"]);
    assert!(nowhere.stderr.contains("its checkpoints are 1, "), "{}", nowhere.stderr);
    world.ran(0, &["audit", "verify"]);
}
