//! What a session changed: shown and written back later, and what is remembered of that.

use crate::support::{Ran, Turn, World, shell};
use serde_json::json;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

const RULES: &str = "@id(\"ask\")\n@approvable(\"anyone\")\n\
    forbid (principal, action == Action::\"execute\", resource);\n";

fn repo(world: &World) -> PathBuf {
    world.dir("repo", &[("file", b"one\n")])
}

fn run(world: &World, command: &str, more: &[&str]) -> Ran {
    let script = world.script(&[Turn(&[shell(command)])]);
    let dir = repo(world).display().to_string();
    let args = ["run", "Do it.", "--dir", &dir, "--script", &script, "--name", "it"];
    world.run(&[&args[..], more].concat())
}

#[test]
fn what_was_changed_is_shown_and_applied_later() {
    let world = World::new();
    run(&world, "echo two >> file; head -c 4000 /dev/zero > blob", &[]).expect(0);
    let patch = world.ran(0, &["sessions", "diff", "it"]).stdout;
    assert!(patch.contains("\n one\n+two\n") && patch.contains("\nliteral 4000\n"), "{patch}");
    assert_eq!(world.ran(0, &["sessions", "diff"]).stdout, patch, "the newest one");
    let told = world.ran(0, &["sessions", "diff", "it", "--json"]).json();
    assert_eq!(told["patch"], json!(patch));
    let shown = world.on_terminal(&["sessions", "diff", "it"]).expect(0).stdout;
    assert!(shown.contains("[no text: ") && !shown.contains("literal"), "{shown:?}");
    let object = world.ran(0, &["sessions", "apply", "it", "--json"]).json();
    assert_eq!((&object["applied"], &object["type"]), (&json!(true), &json!("result")));
    assert_eq!(fs::read_to_string(world.path("repo/file")).unwrap(), "one\ntwo\n");
    assert_eq!(fs::read(world.path("repo/blob")).unwrap(), [0; 4000]);
    // Once more changes nothing, and a file that is not as it was is a conflict.
    let written = || fs::metadata(world.path("repo/file")).unwrap().ino();
    let before = written();
    let told = world.ran(0, &["sessions", "apply", "it"]).stderr;
    assert!(told.contains("has all of it already"), "{told}");
    let told = world.run(&["sessions", "say", "it", "More."]).stderr;
    assert!(told.contains("has all of it already") && !told.contains("git -C"), "{told}");
    assert_eq!(written(), before, "it is not even touched");
    fs::write(world.path("repo/file"), "three\n").unwrap();
    let conflict = world.ran(5, &["sessions", "apply", "it", "--json"]).json();
    assert_eq!(conflict["error"]["code"], "conflict");
    let quiet = World::new();
    run(&quiet, "true", &[]).expect(0);
    let none = quiet.ran(0, &["sessions", "diff", "it"]);
    assert!(none.stdout.is_empty() && none.stderr.contains("changed nothing"), "{none:?}");
}

#[test]
fn what_is_too_large_to_be_taken_out_is_told_and_hides_nothing() {
    let world = World::new();
    run(&world, "echo two >> file; truncate -s 300M big", &[]).expect(5);
    let told = world.ran(5, &["sessions", "diff", "it"]).stderr;
    assert!(told.contains("could not be taken out: the changed files have more than"), "{told}");
    world.beside(&world.session(), &["rm", "big"]);
    world.ran(0, &["sessions", "apply", "it"]);
    assert!(world.ran(0, &["sessions", "diff", "it"]).stdout.contains("+two"));
    assert_eq!(fs::read_to_string(world.path("repo/file")).unwrap(), "one\ntwo\n");
}

#[test]
fn applying_is_done_once_and_says_where_it_was_not() {
    let world = World::new();
    let file = || fs::read_to_string(world.path("repo/file")).unwrap();
    let turn = |command: &str| Turn(&[shell(command)]).text() + "[[turn]]\ntext = \"Done.\"\n";
    let script = world.path("script.toml");
    let first = [Turn(&[shell("echo two >> file")]).text(), turn("true")].concat();
    fs::write(&script, first + &turn("echo three >> file")).unwrap();
    let (dir, script) = (repo(&world).display().to_string(), script.display().to_string());
    // Who asks for it gets it although the work is not done.
    let run = ["run", "Do it.", "--dir", &dir, "--script", &script, "--name", "it"];
    world.run(&[&run[..], &["--max-steps", "2", "--apply"]].concat()).expect(11);
    assert_eq!(file(), "one\n");
    world.ran(0, &["sessions", "apply", "it", "--all"]);
    assert_eq!(file(), "one\ntwo\n");
    world.ran(0, &["sessions", "resume", "it", "--max-steps", "9", "--apply=no"]);
    // What comes next is not written back for that.
    world.ran(0, &["sessions", "say", "it", "More."]);
    assert_eq!(file(), "one\ntwo\n");
    world.ran(0, &["sandbox", "rm", "it.work"]);
    let refused = world.ran(5, &["sessions", "apply", "it"]).stderr;
    assert!(refused.contains("there is no sandbox to take it from"), "{refused}");
    assert!(!refused.contains("outrigger sessions apply"), "{refused}");
    assert_eq!(file(), "one\ntwo\n");
    // A name that is wrong takes none of the others with it.
    world.ran(4, &["rm", "it", "other"]);
    assert_eq!(world.sessions().len(), 1);
}

#[test]
fn what_is_no_text_floods_no_screen() {
    let world = World::new();
    let ran = run(&world, "head -c 300000 /dev/zero > blob; yes | head -c 200000 > text", &[]);
    let told = ran.expect(0).stderr;
    assert!(told.contains("[no text: 292."), "{told}");
    assert!(told.contains(" more lines in the patch, "), "{told}");
    assert!(told.len() < 20_000, "{}", told.len());
}

#[test]
fn a_generated_tree_is_warned_of() {
    let world = World::new();
    let make = "mkdir -p app/node_modules/a build; echo x | tee app/node_modules/a/b \
        app/node_modules/c build/out > src";
    world.dir("repo", &[("build/kept", b"kept\n")]);
    let told = run(&world, make, &["--apply"]).expect(0).stderr;
    let warned = "! app/node_modules/ looks generated, and is in the changes with 2 files, 1 KiB";
    assert!(told.contains(warned), "{told}");
    assert!(!told.contains("! build/"), "it was there before: {told}");
}

/// What a person said of the changes holds when an approval goes on with the session.
#[test]
fn an_approval_applies_what_the_run_was_to_apply() {
    for (flags, applied) in [(&["--apply"][..], true), (&[], false)] {
        let world = World::new();
        let rules = world.path("careful.cedar");
        fs::write(&rules, RULES).unwrap();
        world.configure(&format!("[policy]\nfiles = [{:?}]\n", rules.display().to_string()));
        let asked = run(&world, "echo two >> file", &[flags, &["--json"]].concat()).expect(10);
        let id = asked.json()["waiting"][0].as_str().unwrap().to_owned();
        let object = world.ran(0, &["approve", &id, "--json"]).json();
        assert_eq!(object["applied"], json!(applied));
        let text = fs::read_to_string(world.path("repo/file")).unwrap();
        assert_eq!(text.contains("two"), applied);
    }
}

#[test]
fn a_session_forgets_to_apply_when_it_is_told_so() {
    let world = World::new();
    run(&world, "echo two >> file", &["--apply", "--max-steps", "1"]).expect(11);
    let resume = ["sessions", "resume", "it", "--max-steps", "9", "--json"];
    let object = world.ran(0, &[&resume[..], &["--apply=no"]].concat()).json();
    assert_eq!(object["applied"], json!(false));
    assert_eq!(world.ran(0, &resume[..3]).stdout, "[scripted] That is all.\n");
    assert_eq!(fs::read_to_string(world.path("repo/file")).unwrap(), "one\n");
}

#[test]
fn without_a_name_it_is_the_newest_of_the_directory() {
    let world = World::new();
    let script = world.script(&[Turn(&[shell("echo two >> file")])]);
    for dir in ["one", "two"] {
        let dir = world.dir(dir, &[("file", b"one\n")]).display().to_string();
        world.ran(0, &["run", "Do it.", "--dir", &dir, "--script", &script]);
    }
    let file = |dir: &str| fs::read_to_string(world.path(dir).join("file")).unwrap();
    let in_one = |args: &[&str]| {
        let mut command = world.outrigger(args);
        Ran::of(command.current_dir(world.path("one")).output().unwrap()).expect(0)
    };
    in_one(&["sessions", "apply"]);
    assert_eq!((file("one"), file("two")), ("one\ntwo\n".into(), "one\n".into()));
    let attached = in_one(&["attach", "--json"]).lines();
    let sessions = world.sessions();
    let older = &sessions.last().unwrap()["session"];
    assert_eq!(&attached.last().unwrap()["session"], older, "{sessions:?}");
    // A cancelled one is still the newest there, and where there is none it is the newest of all.
    world.ran(0, &["sessions", "cancel", older.as_str().unwrap()]);
    assert!(in_one(&["sessions", "diff"]).stdout.contains("+two"));
    world.ran(0, &["sessions", "apply"]);
    assert_eq!(file("two"), "one\ntwo\n");
}

#[test]
fn what_was_written_back_before_is_no_change_of_the_person() {
    let world = World::new();
    let file = || fs::read_to_string(world.path("repo/file")).unwrap();
    let turn = |command: &str| Turn(&[shell(command)]).text() + "[[turn]]\ntext = \"Done.\"\n";
    let script = world.path("script.toml");
    let turns = ["two", "three", "four", "five"].map(|it| turn(&format!("echo {it} >> file")));
    fs::write(&script, turns.concat()).unwrap();
    let (dir, script) = (repo(&world).display().to_string(), script.display().to_string());
    let run = ["run", "Do it.", "--dir", &dir, "--script", &script, "--name", "it", "--apply"];
    world.ran(0, &run);
    assert_eq!(file(), "one\ntwo\n");
    // Another process goes on with it, then one of a copy.
    let told = world.ran(0, &["sessions", "say", "it", "More."]).stderr;
    assert!(told.contains("1 file written back"), "{told}");
    assert_eq!(file(), "one\ntwo\nthree\n");
    let fork = world.ran(0, &["sessions", "fork", "it", "--json"]).json();
    let fork = fork["session"].as_str().unwrap();
    let told = world.ran(0, &["sessions", "say", fork, "More."]).stderr;
    let rest = format!("the rest comes with: outrigger sessions apply {fork}");
    assert!(told.contains(&rest) && !told.contains("git -C"), "{told}");
    world.ran(0, &["sessions", "apply", fork]);
    assert_eq!(file(), "one\ntwo\nthree\nfour\n");
    // Whoever takes it out of the directory gets it again.
    fs::write(world.path("repo/file"), "one\n").unwrap();
    world.ran(0, &["sessions", "apply", fork]);
    assert_eq!(file(), "one\ntwo\nthree\nfour\n");
    // What was changed back in the session is changed back here.
    world.beside(fork, &["sh", "-c", "echo one > file"]);
    world.ran(0, &["sessions", "apply", fork]);
    assert_eq!(file(), "one\n");
    // What somebody else wrote stays.
    fs::write(world.path("repo/file"), "mine\n").unwrap();
    let conflict = world.ran(5, &["sessions", "say", "it", "More."]).stderr;
    assert!(conflict.contains("changed meanwhile: file"), "{conflict}");
    assert_eq!(file(), "mine\n");
}
