//! `audit`: what is stored is checked, signed and proved by the real binary.

use crate::support::{Turn, World, shell};
use serde_json::Value;
use std::fs;

/// A world with one session that is over, and nothing in the log of its database.
fn world() -> (World, String) {
    let world = World::new();
    run(&world);
    let session = world.session();
    (world, session)
}

fn run(world: &World) {
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let script = world.script(&[Turn(&[shell("echo hello > greeting")])]);
    world.ran(0, &["run", "Greet.", "--dir", dir.to_str().unwrap(), "--script", &script]);
}

fn path(world: &World, name: &str) -> String {
    world.path(name).display().to_string()
}

#[test]
fn a_session_that_rests_is_covered_and_can_be_proved() {
    let (world, session) = world();
    let report = world.ran(0, &["audit", "verify", "--json"]).json();
    assert_eq!((&report["ok"], &report["uncovered"]), (&Value::from(true), &Value::from(0)));
    let shown = world.ran(0, &["audit", "verify", "--session", &session[..6]]);
    assert!(shown.stdout.starts_with("1 session with "), "{shown:?}");

    let (proof, kept) = (path(&world, "proof"), path(&world, "kept"));
    world.ran(0, &["audit", "prove", &session[..6], "2", "--out", &proof]);
    let key = world.ran(0, &["audit", "checkpoint", "--out", &kept, "--key"]).stdout;
    let key = key.trim();
    // Nothing of this installation is needed to check it.
    let elsewhere = World::new();
    let checked = elsewhere.ran(0, &["audit", "verify", "--proof", &proof, "--key", key, "--json"]);
    assert_eq!(checked.json()["proved"]["session"], session.as_str());
    assert!(!elsewhere.data().exists());
    let shown = elsewhere.ran(0, &["audit", "verify", "--proof", &proof]).stdout;
    assert!(shown.contains(key) && shown.contains("compare it with the one"), "{shown}");
    let changed = fs::read_to_string(&proof).unwrap().replace("\"seq\":2", "\"seq\":3");
    fs::write(&proof, changed).unwrap();
    let refused = elsewhere.ran(16, &["audit", "verify", "--proof", &proof, "--json"]);
    assert_eq!(refused.lines()[0]["error"]["code"], "audit_failed");
    world.ran(0, &["audit", "verify", "--against", &kept, "--key", key]);
}

#[test]
fn a_database_that_was_put_back_is_named() {
    let (world, _) = world();
    // It also folds the write-ahead log into the one file.
    world.ran(0, &["audit", "checkpoint"]);
    let (database, old) = (world.harness().join("journal.db"), world.path("old"));
    fs::copy(&database, &old).unwrap();
    run(&world);
    let second = world.sessions()[0]["session"].as_str().unwrap().to_owned();
    let kept = path(&world, "kept");
    world.ran(0, &["audit", "checkpoint", "--out", &kept]);
    fs::copy(&old, &database).unwrap();
    let ran = world.ran(16, &["audit", "verify", "--json"]);
    let report = ran.json();
    assert_eq!(report["ok"], false);
    let named =
        |fault: &&Value| fault["place"]["session"] == second.as_str() && fault["place"]["seq"] == 1;
    assert!(report["faults"].as_array().unwrap().iter().any(|fault| named(&fault)), "{report}");
    let shown = world.ran(16, &["audit", "verify"]);
    assert!(shown.stdout.contains(&format!("event 1 of session {second}")), "{shown:?}");
    // That what lies beside the database is missing is told, and by the kept checkpoint
    // what it was.
    for name in ["log", "checkpoint"] {
        fs::remove_file(world.harness().join("audit").join(name)).unwrap();
    }
    let missing = world.ran(16, &["audit", "verify"]).stdout;
    assert!(missing.contains("audit/log: it is missing"), "{missing}");
    let told = world.ran(16, &["audit", "verify", "--against", &kept]);
    assert!(told.stdout.contains("an older database was put in place"), "{told:?}");
}

#[test]
fn a_checkpoint_that_is_kept_is_replaced_only_by_one_that_continues_it() {
    let (world, _) = world();
    let kept = path(&world, "kept");
    world.ran(0, &["audit", "checkpoint", "--to", &kept]);
    let first = fs::read_to_string(&kept).unwrap();
    run(&world);
    world.ran(0, &["audit", "checkpoint", "--to", &kept]);
    let second = fs::read_to_string(&kept).unwrap();
    assert_ne!(first, second);
    // A log that does not continue it, of another installation for example.
    let other = World::new();
    run(&other);
    let refused = other.ran(16, &["audit", "checkpoint", "--to", &kept]);
    assert!(refused.stderr.contains("not signed with the key of this log"), "{refused:?}");
    assert_eq!(fs::read_to_string(&kept).unwrap(), second);
}

#[test]
fn what_is_not_there() {
    let world = World::new();
    for args in [
        &["audit", "verify"][..],
        &["audit", "checkpoint"],
        &["audit", "prove", "x"],
        &["audit", "verify", "--proof", "nowhere"],
    ] {
        world.ran(4, args);
        assert!(!world.data().exists(), "{args:?} made something");
    }
    world.ran(2, &["audit", "verify", "--proof", "x", "--session", "y"]);
    let text = path(&world, "text");
    fs::write(&text, "no proof, no key").unwrap();
    world.ran(16, &["audit", "verify", "--proof", &text]);
    world.ran(2, &["audit", "verify", "--proof", &text, "--key", &text]);
}
