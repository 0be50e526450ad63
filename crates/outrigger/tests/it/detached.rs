//! Sessions that a process of their own drives: left to it, watched and stopped.

use crate::support::{Ran, Turn, World, fed, shell, until};
use serde_json::json;
use std::fs;

/// Ends when a file `go` appears.
const UNTIL_TOLD: &str = "echo begun; while [ ! -e go ]; do sleep 0.01; done; echo went > file";

/// A world with a session of its own process, whose command runs until it is told to end.
fn left(name: &str) -> World {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let script = world.script(&[Turn(&[shell(UNTIL_TOLD)])]);
    let args = ["run", "-d", "Wait.", "--dir", dir.to_str().unwrap(), "--script", &script];
    let ran = world.ran(0, &[&args[..], &["--name", name, "--apply"]].concat());
    assert_eq!(ran.stdout, format!("{name}\n"));
    assert!(ran.stderr.contains(&format!("outrigger attach {name}")), "{}", ran.stderr);
    world
}

impl World {
    /// Until nobody holds a session.
    fn await_end(&self, session: &str) {
        until("the process of the session ends", || {
            let lock =
                fs::File::open(self.harness().join(format!("locks/{session}.lock"))).unwrap();
            let how = rustix::fs::FlockOperation::NonBlockingLockExclusive;
            rustix::fs::flock(&lock, how).ok()
        });
    }
}

#[test]
fn a_session_is_left_to_a_process_of_its_own_and_watched() {
    let world = left("far");
    assert_eq!(world.sessions()[0]["status"], "running");
    let log = fs::File::create(world.path("attached")).unwrap();
    let mut attach = world.outrigger(&["attach", "far"]);
    let attached = attach.stdout(std::process::Stdio::piped()).stderr(log).spawn().unwrap();
    until("what it does is shown", || {
        let told = fs::read_to_string(world.path("attached")).unwrap();
        told.contains("▸ execute").then_some(())
    });
    world.beside("far", &["touch", "go"]);
    let ran = Ran::of(attached.wait_with_output().unwrap()).expect(0);
    assert_eq!(ran.stdout, "[scripted] That is all.\n");
    let told = fs::read_to_string(world.path("attached")).unwrap();
    assert!(told.contains("● session far · answered · 3 steps"), "{told}");
    world.await_end("far");
    // It applied what it was told to apply.
    assert_eq!(fs::read_to_string(world.path("repo/file")).unwrap(), "went\n");
}

#[test]
fn a_session_that_is_left_is_stopped_and_goes_on_later() {
    let world = left("far");
    let stopped = world.ran(0, &["stop", "far", "--json"]).json();
    assert_eq!(stopped["sessions"], json!(["far"]));
    assert_eq!(world.sessions()[0]["status"], "interrupted");
    assert_eq!(fs::read_to_string(world.path("repo/file")).unwrap(), "file\n");
    let ran = world.ran(130, &["attach", "far", "--json"]);
    assert_eq!(ran.json()["error"]["code"], "interrupted");
    // One that does not run is none to stop.
    let again = world.ran(0, &["stop", "far"]);
    assert!(again.stderr.contains("does not run: it is `interrupted`"), "{}", again.stderr);
    let script = world.script(&[]);
    let taken = world.ran(5, &["run", "x", "--name", "far", "--script", &script, "--dir", "repo"]);
    assert!(taken.stderr.contains("there is a session `far` already"), "{}", taken.stderr);
    // What was said of the changes holds when it goes on: the command was killed.
    let object = world.ran(0, &["sessions", "resume", "far", "--json"]).json();
    assert_eq!((&object["status"], &object["applied"]), (&json!("answered"), &json!(true)));
    world.ran(0, &["rm", "far"]);
    assert!(world.sessions().is_empty());
    for folder in ["logs", "apply", "locks"] {
        assert_eq!(fs::read_dir(world.harness().join(folder)).unwrap().count(), 0, "{folder}");
    }
}

#[test]
fn what_is_wrong_with_a_task_is_told_at_once() {
    let world = World::new();
    let dir = world.dir("repo", &[]);
    let args = ["run", "-d", "x", "--model", "m", "--provider", "anthropic", "--dir"];
    let ran = world.ran(3, &[&args[..], &[dir.to_str().unwrap()]].concat());
    assert!(ran.stderr.contains("ANTHROPIC_API_KEY"), "{}", ran.stderr);
    assert!(world.sessions().is_empty());
}

#[test]
fn a_message_of_a_detached_session_has_its_context() {
    let world = World::new();
    let dir = world.dir("repo", &[]);
    let path = world.path("twice.toml");
    fs::write(&path, "[[turn]]\ntext = \"First.\"\n[[turn]]\ntext = \"Second.\"\n").unwrap();
    let target = dir.to_str().unwrap();
    let script = path.display().to_string();
    world.ran(0, &["run", "x", "--dir", target, "--script", &script, "--name", "far"]);
    let more = world.outrigger(&["run", "-c", "-d", "More.", "--dir", target]);
    assert_eq!(fed(more, b"context\n").expect(0).stdout, "far\n");
    let answer = world.ran(0, &["attach"]).stdout;
    assert_eq!(answer, "[scripted] Second.\n");
    world.await_end("far");
    let said: Vec<_> = world
        .events("far")
        .iter()
        .filter_map(|event| event["said"]["text"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(said, ["x", "context\n", "More."]);
}
