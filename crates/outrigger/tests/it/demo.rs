//! `demo`: the main job, without a key and a network.

use crate::support::{Ran, World};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The patch takes: on a copy of the example that git keeps, and its own tests pass then.
fn takes(world: &World, example: &Path, patch: &str) {
    let copy = world.path(&format!("copy-{}", patch.rsplit('/').next().unwrap()));
    let mut cp = world.command("cp");
    Ran::of(cp.arg("-r").arg(example).arg(&copy).output().unwrap()).expect(0);
    world.git(&copy, &["init", "-q"]);
    let before = Ran::of(world.command("./test.sh").current_dir(&copy).output().unwrap());
    assert!(before.stdout.contains("9 tests, 2 failed"), "{before:?}");
    world.git(&copy, &["apply", "--check", patch]);
    world.git(&copy, &["apply", patch]);
    let after = Ran::of(world.command("./test.sh").current_dir(&copy).output().unwrap());
    assert!(after.expect(0).stdout.contains("9 tests, 0 failed"));
}

#[test]
fn the_answer_alone_is_on_stdout_and_the_patch_takes() {
    let world = World::new();
    let ran = world.ran(0, &["demo"]);
    assert!(ran.stdout.starts_with("[scripted] All 9 tests pass now"), "{}", ran.stdout);
    assert_eq!(ran.stdout.lines().filter(|line| !line.is_empty()).count(), 2, "{}", ran.stdout);
    for said in
        ["scripted: no model is asked", "AGENTS.md", "9 tests, 2 failed", "9 tests, 0 failed"]
    {
        assert!(ran.stderr.contains(said), "{said} in {}", ran.stderr);
    }
    let patch = world.harness().join(format!("patches/{}.patch", world.session()));
    takes(&world, &world.harness().join("demo"), patch.to_str().unwrap());
    let quiet = world.ran(0, &["demo", "--quiet"]);
    assert_eq!((quiet.stdout, quiet.stderr.as_str()), (ran.stdout, ""));
}

fn result(object: &Value, session: &str) {
    assert_eq!(object["type"], "result");
    assert_eq!(
        (&object["scripted"], &object["applied"]),
        (&Value::Bool(true), &Value::Bool(false))
    );
    assert_eq!((&object["session"], &object["status"]), (&session.into(), &"answered".into()));
    assert!(object["answer"].as_str().unwrap().starts_with("[scripted] "));
    assert!(Path::new(object["patch"].as_str().unwrap()).exists());
}

#[test]
fn programs_are_told_in_json() {
    let world = World::new();
    let ran = world.ran(0, &["demo", "--json"]);
    assert_eq!(ran.stderr, "");
    result(&ran.json(), &world.session());

    let world = World::new();
    let ran = world.ran(0, &["demo", "--json=events"]);
    assert_eq!(ran.stderr, "");
    let lines = ran.lines();
    let (last, events) = lines.split_last().unwrap();
    result(last, &world.session());
    for (seq, event) in (1..).zip(events) {
        assert_eq!((&event["type"], &event["record"]["seq"]), (&"event".into(), &seq.into()));
    }
    let journal = world.events(&world.session());
    let told: Vec<Value> = events.iter().map(|event| event["record"]["event"].clone()).collect();
    let (live, after) = journal.split_at(told.len());
    assert_eq!(told, live);
    // The disk is kept when the answer was given.
    assert!(after.iter().all(|event| event["sandbox_kept"].is_object()), "{after:?}");
}

#[test]
fn the_repaired_example_is_kept_on_request_in_a_new_directory_only() {
    let world = World::new();
    let kept = world.path("kept");
    let flag = format!("--keep={}", kept.display());
    let object = world.ran(0, &["demo", "--json", &flag]).json();
    assert_eq!(object["applied"], true);
    let tested = Ran::of(world.command("./test.sh").current_dir(&kept).output().unwrap());
    assert!(tested.expect(0).stdout.contains("9 tests, 0 failed"));
    fs::write(kept.join("mine"), "mine").unwrap();
    let refused = world.ran(5, &["demo", "--json", &flag]);
    assert_eq!(refused.json()["error"]["code"], "conflict");
    assert_eq!(world.sessions().len(), 1);
}

#[test]
fn two_at_once_do_not_disturb_each_other() {
    let world = World::new();
    let running: Vec<_> = (0..4).map(|_| world.start(&["demo", "--json"])).collect();
    for one in running {
        let object = one.end().expect(0).json();
        takes(&world, &world.harness().join("demo"), object["patch"].as_str().unwrap());
    }
    assert_eq!(world.sessions().len(), 4);
}
