//! The store in a database of PostgreSQL, with the real binary: everything is there, and nothing
//! of it in the directory.

use crate::serve::served_in;
use crate::support::{Ran, Turn, World, shell, until};
use serde_json::json;
use std::fs;

#[test]
fn what_a_server_keeps_is_in_the_database() {
    let turn = Turn(&[shell("echo two >> file")]);
    let (mut served, _) = served_in(World::on_postgres(), &[turn]);
    let session = served.create("Add a line.");
    served.await_status(&session, "answered");
    let harness = served.world.harness();
    assert!(!harness.join("journal.db").exists());
    // The files of blobs are copies: another server has none of them.
    fs::remove_dir_all(harness.join("blobs")).unwrap();
    served.restart();
    let path = format!("/v1/sessions/{session}");
    assert_eq!(served.get(&path).1["status"], "answered");
    let changes = until("the changes are taken out", || {
        let (status, changed) = served.get(&format!("{path}/changes"));
        (status == 200 && changed["files"] != json!([])).then_some(changed)
    });
    assert!(changes["patch"].as_str().unwrap().contains("\n+two\n"), "{changes}");
    let report = served.world.ran(0, &["audit", "verify", "--json"]).json();
    assert_eq!((&report["ok"], &report["sessions"]), (&json!(true), &json!(1)), "{report}");
    // A copy of the store is made by what PostgreSQL has for it.
    let file = served.world.path("backup").display().to_string();
    let refused = served.world.run(&["backup", &file]);
    assert!(refused.stderr.contains("pg_dump"), "{refused:?}");
}

#[test]
fn another_directory_needs_the_key_that_signs_the_log() {
    let world = World::on_postgres();
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let script = world.script(&[Turn(&[shell("echo hi")])]);
    let dir = dir.display().to_string();
    world.ran(0, &["run", "--script", &script, "--dir", &dir, "Say it."]);
    let elsewhere = world.path("elsewhere");
    let ls = |data: &std::path::Path| {
        let mut ls = world.command(crate::support::OUTRIGGER);
        Ran::of(ls.arg("--data-dir").arg(data).args(["sessions", "ls"]).output().unwrap())
    };
    let refused = ls(&elsewhere);
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("copy key and key.pub"), "{refused:?}");
    for name in ["key", "key.pub"] {
        let own = world.harness().join("audit").join(name);
        fs::copy(own, elsewhere.join("harness/audit").join(name)).unwrap();
    }
    assert_eq!(ls(&elsewhere).code, Some(0));
}

#[test]
fn an_address_has_no_password() {
    let world = World::new();
    let address = "postgres://ada:secret@%2Frun%2Fpostgresql/outrigger";
    let refused = world.ran(2, &["--database", address, "sessions", "ls"]);
    assert!(refused.stderr.contains("it has a password"), "{refused:?}");
    assert!(!refused.stderr.contains("secret"), "{refused:?}");
}
