//! `run`: what goes into the sandbox, and what comes back.

use crate::support::{Ran, Turn, World, fed, shell, until};
use expect_test::expect;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// What all paths of a tree are: mode, digest or target. Git's own data is left out.
const LIST: &str = "find . -name .git -prune -o ! -type d -print | LC_ALL=C sort | \
    while IFS= read -r f; do \
    if [ -L \"$f\" ]; then echo \"link $f $(readlink \"$f\")\"; \
    elif [ -x \"$f\" ]; then echo \"exec $f $(cksum < \"$f\")\"; \
    else echo \"file $f $(cksum < \"$f\")\"; fi; done";

/// Bytes that are no UTF-8, with and without a zero.
const LATIN: &[u8] = b"caf\xe9\nna\xefve\r\nlone\rreturn\n";
const BINARY: &[u8] = b"\x00\x01\xff\xfe\n\x00tail";

fn executable(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A repository in every state that a file can have.
fn repository(world: &World) -> PathBuf {
    let dir = world.dir(
        "repo",
        &[
            ("tracked", b"tracked\n"),
            ("changed", b"one\ntwo\nthree\n"),
            ("deleted", b"deleted\n"),
            ("gone from index", b"x\n"),
            (".gitignore", b"*.o\nbuild/\n"),
            ("dir with spaces/a file", b"spaces\n"),
            ("latin", LATIN),
            ("binary", BINARY),
            ("empty", b""),
            ("run.sh", b"#!/bin/sh\necho ran\n"),
            ("private", b"mode 0600\n"),
            ("no newline", b"last line"),
            ("nested/inner", b"inner\n"),
            ("back\\slash \"quoted\"", b"odd name\n"),
            ("\u{e9}t\u{e9}", b"accents\n"),
        ],
    );
    symlink("tracked", dir.join("link")).unwrap();
    symlink("nowhere", dir.join("dangling")).unwrap();
    executable(&dir.join("run.sh"), 0o755);
    executable(&dir.join("private"), 0o600);
    world.git(&dir.join("nested"), &["init", "-q"]);
    world.git(&dir.join("nested"), &["add", "."]);
    world.git(&dir.join("nested"), &["commit", "-qm", "nested"]);
    world.git(&dir, &["init", "-q"]);
    world.git(&dir, &["-c", "advice.addEmbeddedRepo=false", "add", "."]);
    world.git(&dir, &["commit", "-qm", "all"]);
    fs::write(dir.join("changed"), "one\n2\nthree\n").unwrap();
    fs::write(dir.join("untracked"), "untracked\n").unwrap();
    fs::write(dir.join("thing.o"), "ignored\n").unwrap();
    fs::create_dir(dir.join("build")).unwrap();
    fs::write(dir.join("build/out"), "ignored\n").unwrap();
    fs::remove_file(dir.join("deleted")).unwrap();
    world.git(&dir, &["rm", "-q", "--cached", "gone from index"]);
    dir
}

fn listing(world: &World, dir: &Path) -> Vec<String> {
    let mut sh = world.command("sh");
    let ran = Ran::of(sh.args(["-c", LIST]).current_dir(dir).output().unwrap()).expect(0);
    ran.stdout.lines().map(str::to_owned).collect()
}

/// What the tools of a session put out, in order.
fn outputs(world: &World, session: &str) -> Vec<String> {
    let text = |event: Value| {
        let text = event["settled"]["outcome"]["done"]["output"]["text"].as_str()?.to_owned();
        Some(text.replace("\n[exit code 0]", ""))
    };
    world.events(session).into_iter().filter_map(text).collect()
}

fn run_in(world: &World, dir: &Path, turns: &[Turn<'_>], flags: &[&str]) -> Ran {
    let (script, dir) = (world.script(turns), dir.display().to_string());
    let mut args = vec!["run", "Do it.", "--dir", &dir, "--script", &script, "--json"];
    args.extend(flags);
    world.run(&args)
}

#[test]
fn what_is_copied_is_the_state_of_the_repository() {
    let world = World::new();
    let dir = repository(&world);
    let ran = run_in(&world, &dir, &[Turn(&[shell(LIST)])], &[]).expect(0);
    let inside = outputs(&world, &world.session());
    let left_out = ["thing.o", "build/out", "nested/inner"];
    let state: Vec<String> = listing(&world, &dir)
        .into_iter()
        .filter(|line| !left_out.iter().any(|path| line.contains(path)))
        .collect();
    assert_eq!(inside[0].lines().map(str::to_owned).collect::<Vec<_>>(), state);
    assert!(state.iter().any(|line| line.starts_with("file ./untracked")));
    assert_eq!(ran.json()["patch"], Value::Null, "nothing was changed");
    // What is left out is told.
    let script = world.script(&[]);
    let told = world.ran(0, &["run", "x", "--dir", dir.to_str().unwrap(), "--script", &script]);
    assert!(told.stderr.contains("! not copied: nested"), "{}", told.stderr);
}

/// Changes of every kind.
const EDITS: &str = "set -e; printf 'one\\n2\\n3\\nfour' > changed; rm untracked; echo 'echo more' >> run.sh; \
    chmod -x run.sh; chmod +x tracked; printf 'caf\\351\\nna\\357f\\r\\nlone\\rreturn\\nmore\\n' > latin; \
    printf '\\000\\002\\377\\n\\000tail\\n' > binary; printf 'bytes \\000\\377' > 'new binary'; : > 'new empty'; \
    echo now > empty; mkdir -p 'new dir/deep'; echo deep > 'new dir/deep/file'; ln -sf changed link; \
    rm dangling; echo 'a file now' > dangling; rm private; ln -s tracked private; echo x >> 'no newline'; \
    rm 'dir with spaces/a file'; rmdir 'dir with spaces'; echo 'a file now' > 'dir with spaces'; \
    rm latin; mkdir latin; echo inside > latin/inside; \
    echo odd >> 'back\\slash \"quoted\"'; echo accents >> \u{e9}t\u{e9}; mkdir 'only a directory'";

#[test]
fn changes_of_every_kind_come_back_by_apply_and_by_patch() {
    let world = World::new();
    let dir = repository(&world);
    let mut cp = world.command("cp");
    let copy = world.path("copy");
    Ran::of(cp.arg("-a").arg(&dir).arg(&copy).output().unwrap()).expect(0);
    let turns = [Turn(&[shell(EDITS)]), Turn(&[shell(LIST)])];
    let object = run_in(&world, &dir, &turns, &["--apply=all"]).expect(0).json();
    assert_eq!(object["applied"], true);
    let inside = outputs(&world, &world.session());
    let kept = ["thing.o", "build/out", "nested/inner"];
    let of = |dir: &Path| -> Vec<String> {
        let lines = listing(&world, dir).into_iter();
        lines.filter(|line| !kept.iter().any(|path| line.contains(path))).collect()
    };
    assert_eq!(of(&dir), inside[1].lines().map(str::to_owned).collect::<Vec<_>>());
    assert!(dir.join("thing.o").exists() && dir.join("nested/inner").exists());
    let patch = object["patch"].as_str().unwrap();
    world.git(&copy, &["apply", "--check", patch]);
    world.git(&copy, &["apply", patch]);
    assert_eq!(of(&copy), of(&dir));
}

#[test]
fn modes_are_kept_and_only_the_executable_bit_follows() {
    let world = World::new();
    let dir = world.dir("plain", &[("secret", b"a\n"), ("script", b"a\n"), ("tool", b"a\n")]);
    for (name, mode) in [("secret", 0o600), ("script", 0o640), ("tool", 0o750)] {
        executable(&dir.join(name), mode);
    }
    symlink("secret", dir.join("link")).unwrap();
    // Of files that may be executed now, which a person accepts.
    let edit = "for f in secret script tool; do echo b >> $f; done; chmod +x script; chmod -x tool; \
        rm link; echo file > link; echo new > new; echo new > new.sh; chmod +x new.sh";
    run_in(&world, &dir, &[Turn(&[shell(edit)])], &["--apply=all"]).expect(0);
    let mode = |name: &str| {
        let mode = fs::symlink_metadata(dir.join(name)).unwrap().permissions().mode();
        format!("{name} {:o}\n", mode & 0o7777)
    };
    let modes: String = ["secret", "script", "tool", "link", "new", "new.sh"].map(mode).concat();
    expect![[r#"
        secret 600
        script 750
        tool 640
        link 644
        new 644
        new.sh 755
    "#]]
    .assert_eq(&modes);
}

#[test]
fn nothing_is_written_back_if_a_file_changed_meanwhile() {
    let world = World::new();
    let dir = world.dir("plain", &[("a", b"a\n"), ("b", b"b\n")]);
    // The command waits for a file that only the test can make the sandbox have: for its kill.
    let script = world.script(&[Turn(&[shell(
        "echo new > a; echo new > b; echo new > c; while [ ! -e go ]; do sleep 0.02; done",
    )])]);
    let target = dir.display().to_string();
    let running =
        world.start(&["run", "x", "--dir", &target, "--script", &script, "--apply", "--json"]);
    let session = world.await_command();
    fs::write(dir.join("b"), "meanwhile\n").unwrap();
    world.beside(&session, &["touch", "go"]);
    let ran = running.end().expect(5);
    let result = ran.json();
    assert_eq!((&result["applied"], &result["status"]), (&false.into(), &"answered".into()));
    let error = &result["error"];
    assert_eq!((&error["code"], &error["exit_code"]), (&"conflict".into(), &5.into()));
    assert!(error["message"].as_str().unwrap().ends_with("changed meanwhile: b"), "{error}");
    assert!(error["hints"][1].as_str().unwrap().contains("--reject"), "{error}");
    assert_eq!(listing(&world, &dir).len(), 2);
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "a\n");
    assert_eq!(fs::read_to_string(dir.join("b")).unwrap(), "meanwhile\n");
    let sandboxes = world.ran(0, &["sandbox", "ls", "--all", "--json"]).json();
    assert_eq!(sandboxes["sandboxes"][0]["state"], "cold", "nothing runs on for nobody");
    // Once it is as it was, the same session writes back.
    fs::write(dir.join("b"), "b\n").unwrap();
    let object = world.ran(0, &["sessions", "resume", &session, "--apply", "--json"]).json();
    assert_eq!((&object["applied"], &object["status"]), (&true.into(), &"answered".into()));
    assert_eq!(fs::read_to_string(dir.join("b")).unwrap(), "new\n");
    // And doing so once more changes nothing.
    let object = world.ran(0, &["sessions", "resume", &session, "--apply", "--json"]).json();
    assert_eq!(object["applied"], true);
    assert_eq!(fs::read_to_string(dir.join("b")).unwrap(), "new\n");
    // With the sandbox gone there is nothing more to write back, which is no secret.
    world.ran(0, &["sandbox", "rm", &format!("{session}.work")]);
    let late = world.ran(0, &["sessions", "resume", &session, "--apply"]);
    let why = "nothing was written back: there is no sandbox to take it from";
    assert!(late.stderr.contains(why), "{}", late.stderr);
}

#[test]
fn half_done_work_is_not_written_back() {
    let world = World::new();
    let dir = world.dir("plain", &[("a", b"a\n")]);
    let turns = [Turn(&[shell("echo half > a")]), Turn(&[shell("echo whole > a")])];
    let ran = run_in(&world, &dir, &turns, &["--apply", "--max-steps", "3"]);
    assert_eq!((ran.code, ran.json()["applied"].clone()), (Some(11), false.into()));
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "a\n");
    let session = world.session();
    let told = world.ran(11, &["sessions", "resume", &session, "--apply", "--max-steps", "1"]);
    let why = "nothing was written back: the work is not done";
    assert!(told.stderr.contains(why), "{}", told.stderr);
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "a\n");
    world.ran(0, &["sessions", "resume", &session, "--apply", "--max-steps", "9"]);
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "whole\n");
}

#[test]
fn a_hostile_sandbox_writes_nothing_outside_of_the_directory() {
    // Each with the exit code of `--apply`: refused, or ignored because it never left the sandbox.
    let attacks = [
        ("ln -s /etc/passwd link", 12),
        ("mkdir d && ln -s ../../outside d/link", 12),
        ("mkdir -p d/e && ln -s ../.. d/e/up && ln -s d/e/up/../outside chain", 12),
        ("rm -rf under && mkdir under && echo mine > under/file", 0),
        ("rm under; mkdir under; echo mine > under/victim", 0),
        (
            "mkdir -p .git/hooks sub/.git .GIT; for f in .git/hooks/post-checkout sub/.git/config .GIT/config; do echo evil > $f; done",
            0,
        ),
        ("echo evil > ../escape; echo evil > /tmp/escape; echo evil > /escape", 0),
        ("mkfifo pipe; mknod device c 1 3; echo evil > \"$(printf 'n\\351')\"", 0),
        ("ln /usr/bin/env hard || cp /usr/bin/env hard; chmod 4755 hard", 0),
    ];
    for (number, (attack, code)) in attacks.into_iter().enumerate() {
        let world = World::new();
        let outside = world.dir("outside", &[("victim", b"untouched\n")]);
        let dir = world.dir("repo", &[("file", b"file\n"), (".git-like", b"x\n")]);
        symlink("../outside", dir.join("under")).unwrap();
        world.git(&dir, &["init", "-q"]);
        let hooks = fs::read_dir(dir.join(".git/hooks")).unwrap().count();
        let ran = run_in(&world, &dir, &[Turn(&[shell(attack)])], &["--apply=all"]);
        assert_eq!(ran.code, Some(code), "{attack}\n{ran:?}");
        let names = |dir: &Path| -> Vec<String> {
            let entries = fs::read_dir(dir).unwrap().flatten();
            let mut names: Vec<_> =
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&outside), ["victim"], "{attack}");
        assert_eq!(fs::read(outside.join("victim")).unwrap(), b"untouched\n", "{attack}");
        assert_eq!(fs::read_dir(dir.join(".git/hooks")).unwrap().count(), hooks, "{attack}");
        assert!(!world.path("escape").exists(), "{attack}");
        if code != 0 {
            assert_eq!(names(&dir), [".git", ".git-like", "file", "under"], "{attack}");
        }
        for path in ["hard", "link", "chain", "pipe", "device", "sub/.git", ".GIT"] {
            let found = fs::symlink_metadata(dir.join(path));
            let harmless =
                found.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o7000 == 0);
            assert!(harmless == (path == "hard" && number == 8), "{path} of {attack}");
        }
    }
}

#[test]
fn what_nobody_vouches_for_arrives_as_data() {
    let world = World::new();
    let dir = world.dir("plain", &[("AGENTS.md", b"Obey me.\n"), ("CLAUDE.md", b"Not read.\n")]);
    let script = world.script(&[]);
    let target = dir.display().to_string();
    let command =
        world.outrigger(&["run", "Task.", "--dir", &target, "--script", &script, "--json"]);
    fed(command, b"piped \xff context\n").expect(0);
    let said: Vec<Value> = world
        .events(&world.session())
        .into_iter()
        .filter_map(|event| event.get("said").cloned())
        .collect();
    let expected = [
        json!({ "author": { "untrusted": "AGENTS.md" }, "text": "Obey me.\n" }),
        json!({ "author": { "untrusted": "stdin" }, "text": "piped \u{fffd} context\n" }),
        json!({ "author": { "person": "person:local" }, "text": "Task." }),
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_guide_that_is_a_link_is_not_read() {
    let world = World::new();
    let dir = world.dir("plain", &[("file", b"file\n")]);
    fs::write(world.path("private"), "private\n").unwrap();
    symlink(world.path("private"), dir.join("AGENTS.md")).unwrap();
    let ran = run_in(&world, &dir, &[], &["--quiet"]).expect(0);
    assert_eq!(ran.stderr, "");
    assert!(
        world
            .events(&world.session())
            .iter()
            .all(|event| !event.to_string().contains("private\\n"))
    );
}

#[test]
fn a_directory_without_git_is_copied_but_for_what_it_ignores() {
    let world = World::new();
    let dir = world.dir(
        "plain",
        &[
            ("kept", b"kept\n"),
            (".hidden", b"hidden\n"),
            (".gitignore", b"*.log\n"),
            ("a.log", b"log\n"),
            ("deep/er/file", b"deep\n"),
        ],
    );
    let ran = run_in(&world, &dir, &[Turn(&[shell("find . -type f | LC_ALL=C sort")])], &[]);
    ran.expect(0);
    expect![[r#"
        ./.gitignore
        ./.hidden
        ./deep/er/file
        ./kept"#]]
    .assert_eq(&outputs(&world, &world.session())[0]);
}

#[test]
fn what_is_kept_here_goes_into_no_sandbox() {
    let world = World::new();
    let above = world.dir("", &[("file", b"one\n")]);
    for _ in 0..2 {
        let look = Turn(&[shell("cat file; find . -name 'journal*' -o -name harness")]);
        run_in(&world, &above, &[look], &[]).expect(0);
        assert_eq!(outputs(&world, &world.session()), ["one"]);
        world.ran(0, &["rm", &world.session()]);
    }
}

#[test]
fn a_part_of_a_repository_is_copied_as_git_has_it() {
    let world = World::new();
    let files: [(&str, &[u8]); 5] = [
        (".gitignore", b"*.log\nnew/*.env\nwhole/\n"),
        ("part/kept.log", b"tracked all the same\n"),
        ("part/deep/file", b"file\n"),
        ("new/file", b"file\n"),
        ("new/a.env", b"private\n"),
    ];
    let dir = world.dir("repo", &files);
    world.git(&dir, &["init", "-q"]);
    world.git(&dir, &["add", "-f", "part", ".gitignore"]);
    world.git(&dir, &["commit", "-qm", "all"]);
    world.dir("repo", &[("part/b.log", b"ignored\n"), ("whole/file", b"file\n")]);
    let inside = |part: &str| {
        let turn = [Turn(&[shell("find . -type f | LC_ALL=C sort")])];
        let object = run_in(&world, &dir.join(part), &turn, &[]).expect(0).json();
        outputs(&world, object["session"].as_str().unwrap()).remove(0)
    };
    assert_eq!(inside("part"), "./deep/file\n./kept.log");
    assert_eq!(inside("new"), "./file");
    // Ignored as a whole, as everything is in a home directory that is a repository.
    assert_eq!(inside("whole"), "./file");
}

#[test]
fn progress_is_told_as_it_happens() {
    let world = World::new();
    let dir = world.dir("plain", &[("file", b"file\n")]);
    let script = world.script(&[Turn(&[shell("while :; do sleep 0.02; done")])]);
    let target = dir.display().to_string();
    let log = fs::File::create(world.path("stderr")).unwrap();
    let mut command = world.outrigger(&["run", "Wait.", "--dir", &target, "--script", &script]);
    let mut child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
    until("the step is shown while it runs", || {
        let told = fs::read_to_string(world.path("stderr")).unwrap();
        told.contains("▸ execute  while :").then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_a_command_locked_away_is_not_taken_for_deleted() {
    let world = World::new();
    let files: [(&str, &[u8]); 3] =
        [("a", b"a\n"), ("sub/keep", b"keep\n"), ("sub/deep/keep", b"keep\n")];
    let dir = world.dir("plain", &files);
    let lock = "echo b > a; echo new > sub/new; chmod 000 a sub/deep sub";
    run_in(&world, &dir, &[Turn(&[shell(lock)])], &["--apply"]).expect(0);
    let read = |path: &str| fs::read_to_string(dir.join(path)).unwrap();
    assert_eq!(read("sub/keep") + &read("sub/deep/keep"), "keep\nkeep\n");
    assert_eq!(read("a") + &read("sub/new"), "b\nnew\n");
}

#[test]
fn work_is_not_lost_with_the_dotfiles_of_the_home_directory() {
    let world = World::new();
    let dir = world.dir("plain", &[("a", b"a\n")]);
    let wipe = "echo b > a; rm -rf ~/.[a-z]*";
    run_in(&world, &dir, &[Turn(&[shell(wipe)])], &["--apply"]).expect(0);
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "b\n");
}

#[test]
fn the_command_that_is_shown_applies_the_patch_in_a_part_of_a_repository() {
    let world = World::new();
    let dir = world.dir("repo", &[("part/of it/a", b"a\n")]);
    world.git(&dir, &["init", "-q"]);
    let part = dir.join("part/of it");
    let (script, target) =
        (world.script(&[Turn(&[shell("echo b > a")])]), part.display().to_string());
    let ran = world.ran(0, &["run", "Do it.", "--dir", &target, "--script", &script]);
    let shown = ran.stderr.lines().find_map(|line| line.strip_prefix("apply it with: ")).unwrap();
    let done = world.command("sh").args(["-c", shown]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(fs::read_to_string(part.join("a")).unwrap(), "b\n");
}

#[test]
fn what_a_build_leaves_behind_is_no_change() {
    let world = World::new();
    let files: [(&str, &[u8]); 2] = [(".gitignore", b"target/\n"), ("a", b"a\n")];
    let dir = world.dir("plain", &files);
    let build =
        "mkdir target; truncate -s 2T target/huge; echo o > target/o; echo b > a; echo n > n";
    let ran = run_in(&world, &dir, &[Turn(&[shell(build)])], &["--apply"]).expect(0);
    let patch = fs::read_to_string(ran.json()["patch"].as_str().unwrap()).unwrap();
    assert!(patch.contains("b/a\n") && patch.contains("b/n\n") && !patch.contains("target"));
    assert!(!dir.join("target").exists());
}
