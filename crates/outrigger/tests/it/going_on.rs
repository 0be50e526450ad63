//! Going on: how a run ends, how sessions are named, and which one is meant.

use crate::support::{Turn, World, shell};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A script for a session in which something is said twice.
fn twice(world: &World) -> String {
    let path = world.path("twice.toml");
    fs::write(&path, "[[turn]]\ntext = \"First.\"\n[[turn]]\ntext = \"Second.\"\n").unwrap();
    path.display().to_string()
}

fn repo(world: &World, name: &str) -> PathBuf {
    fs::canonicalize(world.dir(name, &[("file", b"file\n")])).unwrap()
}

fn run<'a>(dir: &'a Path, script: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let args = ["run", "Do it.", "--dir", dir.to_str().unwrap(), "--script", script];
    [&args[..], more].concat()
}

#[test]
fn a_run_ends_with_what_it_took_and_how_it_goes_on() {
    let world = World::new();
    let (dir, script) = (repo(&world, "repo"), world.script(&[Turn(&[shell("echo b > file")])]));
    let ran = world.ran(0, &run(&dir, &script, &["--name", "till"]));
    let last = ran.stderr.lines().last().unwrap();
    assert!(last.starts_with("● session till · 3 steps · "), "{last}");
    assert!(last.contains(" tokens · ") && !last.contains('$'), "{last}");
    assert!(last.ends_with(" · go on: outrigger sessions say till \"...\""), "{last}");
    assert_eq!(ran.stdout, "[scripted] That is all.\n");
    // In the directory itself the short way is told.
    let mut here = world.outrigger(&["run", "Do it.", "--script", &script]);
    let ran = crate::support::Ran::of(here.current_dir(&dir).output().unwrap()).expect(0);
    let last = ran.stderr.lines().last().unwrap();
    assert!(last.ends_with(" · go on: outrigger run --continue \"...\""), "{last}");
    // One that stopped says so before its error.
    let ran = world.ran(11, &run(&dir, &script, &["--name", "short", "--max-steps", "1"]));
    let line = ran.stderr.lines().find(|line| line.starts_with("● session short")).unwrap();
    assert!(line.contains(" · 1 step · "), "{line}");
    assert!(line.ends_with(" · go on: outrigger sessions resume short"), "{line}");
    assert_eq!(world.ran(0, &run(&dir, &script, &["--quiet"])).stderr, "");
}

#[test]
fn a_failed_run_is_one_object() {
    let world = World::new();
    let (dir, script) = (repo(&world, "repo"), world.script(&[Turn(&[shell("true")])]));
    let object = world.ran(11, &run(&dir, &script, &["--max-steps", "1", "--json"])).json();
    let error = &object["error"];
    assert_eq!(object["type"], "result");
    assert_eq!((&error["code"], &error["exit_code"]), (&json!("budget_exhausted"), &json!(11)));
    assert!(!error["hints"].as_array().unwrap().is_empty());
    // What fails before there is a result is one object too.
    let object = world.ran(4, &["run", "x", "--dir", "nowhere", "--json"]).json();
    assert_eq!((&object["type"], &object["error"]["exit_code"]), (&json!("error"), &json!(4)));
}

#[test]
fn a_message_goes_to_the_newest_session_of_its_directory() {
    let world = World::new();
    let (one, two) = (repo(&world, "one"), repo(&world, "two"));
    let script = twice(&world);
    let of_one = world.ran(0, &run(&one, &script, &["--json"])).json()["session"].clone();
    let of_two = world.ran(0, &run(&two, &script, &["--json"])).json()["session"].clone();
    let said = |dir: &Path| {
        let args = ["run", "-c", "More.", "--dir", dir.to_str().unwrap(), "--json"];
        world.ran(0, &args).json()
    };
    let object = said(&one);
    assert_eq!((&object["session"], &object["answer"]), (&of_one, &json!("[scripted] Second.")));
    assert_eq!(said(&two)["session"], of_two);
    assert_eq!(world.sessions().len(), 2);
    let three = repo(&world, "three");
    let none = world.ran(4, &["run", "-c", "x", "--dir", three.to_str().unwrap()]);
    assert!(none.stderr.contains("there is no session of "), "{}", none.stderr);
    world.ran(2, &["run", "-c", "x", "--name", "y"]);
    world.ran(2, &["run", "-c", "x", "--max-steps", "3"]);
    // The newest one of all has a name of its own.
    for args in [&["sessions", "show", "@last", "--json"][..], &["attach", "--json"]] {
        assert_eq!(world.ran(0, args).json()["session"], of_two, "{args:?}");
    }
}

#[test]
fn sessions_are_called_as_a_person_says() {
    let world = World::new();
    let (dir, script) = (repo(&world, "repo"), twice(&world));
    world.ran(0, &run(&dir, &script, &["--name", "fix"]));
    world.ran(0, &run(&dir, &script, &["--name", "fix-login"]));
    let named = |name: &str| {
        let args = ["sessions", "show", name, "--json"];
        world.ran(0, &args).json()["session"].clone()
    };
    assert_eq!((named("fix"), named("fix-l")), (json!("fix"), json!("fix-login")));
    let refused = world.ran(2, &["sessions", "show", "fi"]);
    assert!(refused.stderr.contains("several sessions begin with `fi`"), "{}", refused.stderr);
    let taken = world.ran(5, &run(&dir, &script, &["--name", "fix"]));
    assert!(taken.stderr.contains("there is a session `fix` already"), "{}", taken.stderr);
    for wrong in ["Fix", "2fix", "fix-2", "@last", "a/b"] {
        world.ran(2, &run(&dir, &script, &["--name", wrong]));
    }
    // The one is not below the other because its name goes on from it.
    let gone = world.ran(0, &["rm", "fix", "--json"]).json();
    assert_eq!(gone["sessions"], json!(["fix"]));
    assert_eq!(named("fix"), json!("fix-login"));
    assert_eq!(world.ran(0, &["audit", "verify", "--json"]).json()["sessions"], 1);
    // A name that is free again can be given again.
    world.ran(0, &run(&dir, &script, &["--name", "fix"]));
    world.ran(0, &["audit", "verify"]);
}

#[test]
fn a_list_says_what_each_session_works_on_and_took() {
    let world = World::new();
    let (one, two) = (repo(&world, "one"), repo(&world, "two"));
    let script = world.path("script.toml");
    let text = "price = { input = 1000.0, output = 1000.0 }\n[[turn]]\ntext = \"Done.\"\n";
    fs::write(&script, text).unwrap();
    let script = script.display().to_string();
    world.ran(0, &run(&one, &script, &["--name", "a"]));
    let plain = twice(&world);
    world.ran(0, &run(&two, &plain, &["--name", "b"]));
    let rows = world.sessions();
    assert_eq!((&rows[0]["session"], &rows[1]["session"]), (&json!("b"), &json!("a")));
    assert_eq!(rows[1]["dir"], json!(one.to_str().unwrap()));
    assert_eq!((&rows[0]["cost"], &rows[0]["model"]), (&Value::Null, &json!("script")));
    let cost = rows[1]["cost"].as_str().unwrap().to_owned();
    assert!(cost.starts_with('$') && rows[1]["spent"]["steps"] == 1, "{}", rows[1]);
    let listed = world.ran(0, &["sessions", "ls", "--dir", one.to_str().unwrap()]).stdout;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    for part in ["a  ", " answered ", &cost, " script ", "/one  Do it."] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let shown = world.ran(0, &["sessions", "show", "a"]).stdout;
    for part in ["● session a · answered · 1 step · ", &cost, "model      script", "/one"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // On a terminal the columns have titles.
    let shown = world.on_terminal(&["sessions", "ls"]).expect(0).stdout;
    assert!(shown.starts_with("SESSION  BEGUN "), "{shown}");
    let dry = ["prune", "--older-than", "0m", "--dir", one.to_str().unwrap(), "--dry-run"];
    world.ran(0, &dry);
    assert_eq!(world.sessions().len(), 2);
    world.ran(0, &dry[..5]);
    assert_eq!(world.sessions().len(), 1);
    assert_eq!(world.session(), "b");
}

#[test]
fn what_tools_put_out_is_shown_in_full_where_that_is_asked_for() {
    let world = World::new();
    let (dir, script) = (repo(&world, "repo"), world.script(&[Turn(&[shell("seq 40")])]));
    world.ran(0, &run(&dir, &script, &[]));
    let cut = world.ran(0, &["sessions", "show", "@last"]).stdout;
    assert!(cut.contains("│ 40\n") && !cut.contains("│ 12\n"), "{cut}");
    let full = world.ran(0, &["sessions", "show", "@last", "--full"]).stdout;
    assert!(full.contains("│ 1\n") && !full.contains(" before"), "{full}");
}
