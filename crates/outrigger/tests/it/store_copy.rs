//! `outrigger store copy` with the real binary: whoever began with SQLite goes on in PostgreSQL.

use crate::secrets::{Forge, set};
use crate::support::{Ran, Turn, World, shell};
use serde_json::json;
use std::fs;

const RULES: &str = r#"
@id("commands-ask")
@approvable("anyone")
forbid (principal, action == Action::"execute", resource);
"#;

#[test]
fn what_waits_in_sqlite_goes_on_in_postgresql() {
    let mut world = World::on_postgres();
    let to = world.database.take().unwrap();
    let forge = Forge::start(&world);
    let rules = world.path("careful.cedar");
    fs::write(&rules, RULES).unwrap();
    world.configure(&format!("[policy]\nfiles = [{:?}]\n", rules.display().to_string()));
    fs::write(world.path("given"), "the harbour is closed").unwrap();
    let given = world.path("given").display().to_string();
    world.ran(0, &["memory", "put", "note.md", &given]);
    set(&world, &forge, &["TOKEN", "--for", &forge.tls.word()]);
    let url = forge.tls.url("/");
    let line = shell(&format!("curl -sS -o /dev/null {url} -H \"X-Api-Key: $TOKEN\""));
    let script = world.script(&[Turn(std::slice::from_ref(&line))]);
    let dir = world.dir("repo", &[("file", b"one\n")]).display().to_string();
    let run = ["run", "Go.", "--dir", &dir, "--script", &script, "--secret", "TOKEN", "--json"];
    let told = Ran::of(forge.tls.trusting(&world, &run).output().unwrap()).expect(10).lines();
    let id = told[0]["waiting"][0].as_str().unwrap().to_owned();

    let copied = world.ran(0, &["store", "copy", &to, "--json"]).json();
    assert_eq!((&copied["ok"], &copied["rows"]["sessions"]), (&json!(true), &json!(1)), "{copied}");
    let full = world.ran(5, &["store", "copy", &to]);
    assert!(full.stderr.contains("is not empty"), "{full:?}");
    assert!(full.stderr.contains("Make an empty one"), "{full:?}");

    // Nobody goes on in the old one.
    fs::remove_file(world.harness().join("journal.db")).unwrap();
    let there = |words: &[&'static str]| world.ran(0, &[&["--database", &to], words].concat());
    let found = there(&["memory", "search", "harbour"]);
    assert!(found.stdout.contains("note.md"), "{found:?}");
    let approve = forge.tls.trusting(&world, &["--database", &to, "approve", &id]).output();
    Ran::of(approve.unwrap()).expect(0);
    // What was sealed before was opened for the command.
    assert_eq!(forge.with_secret(), ["/"]);
    let report = there(&["audit", "verify", "--json"]).json();
    assert_eq!((&report["ok"], &report["sessions"]), (&json!(true), &json!(1)), "{report}");
}

#[test]
fn one_that_cannot_be_copied_says_what_to_do() {
    let world = World::on_postgres();
    let to = world.database.clone().unwrap();
    let refused = world.ran(2, &["store", "copy", &to]);
    assert!(refused.stderr.contains("Leave --database and OUTRIGGER_DATABASE away"), "{refused:?}");
    let none = World::new().ran(4, &["store", "copy", &to]);
    assert!(none.stderr.contains("there is no journal"), "{none:?}");
}
