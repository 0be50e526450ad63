//! `outrigger sandbox`: the verbs, as a person and as a program use them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::support::{OUTRIGGER, Ran, World};

fn created(world: &World, args: &[&str]) -> String {
    let name = world.ran(0, &[&["sandbox", "create"], args].concat()).stdout;
    name.trim().to_owned()
}

#[test]
fn a_sandbox_lives_from_create_to_rm() {
    let world = World::new();
    let made = world.ran(0, &["sandbox", "create", "work", "--json"]).json();
    assert_eq!((&made["sandbox"], &made["began"]), (&"work".into(), &"made".into()));
    let again = world.ran(0, &["sandbox", "create", "work", "--json"]).json();
    assert_eq!(again["began"], "attached");
    assert_eq!(again["generation"], made["generation"]);
    let listed = world.ran(0, &["sandbox", "ls", "--json"]).json();
    assert_eq!(listed["sandboxes"][0]["id"], "work");
    assert_eq!(listed["sandboxes"][0]["state"], "running");
    assert!(world.ran(0, &["sandbox", "ls"]).stdout.starts_with("work  running "));
    world.ran(0, &["sandbox", "suspend", "work"]);
    let listed = world.ran(0, &["sandbox", "ls", "--json"]).json();
    assert_eq!(listed["sandboxes"][0]["state"], "cold");
    let resumed = world.ran(0, &["sandbox", "create", "work", "--json"]).json();
    assert_eq!(resumed["began"], "resumed");
    assert_eq!(resumed["generation"], made["generation"]);
    world.ran(0, &["sandbox", "rm", "work"]);
    assert_eq!(world.ran(0, &["sandbox", "ls"]).stdout, "");
    let named = created(&world, &[]);
    assert!(named.starts_with("sandbox-"), "{named}");
}

#[test]
fn a_command_gives_its_output_and_its_code() {
    let world = World::new();
    created(&world, &["work"]);
    let table: [(&[&str], i32, &str, &str); 8] = [
        (&["work", "--", "echo", "a b"], 0, "a b\n", ""),
        (&["work", "echo", "-n", "--json", "a"], 0, "--json a", ""),
        (&["work", "-C", "/tmp", "sh", "-c", "pwd"], 0, "/tmp\n", ""),
        (&["work", "-c", "echo out; echo err >&2; exit 7"], 7, "out\n", "err\n"),
        (&["work", "-C", "/tmp", "-e", "A=1", "-c", "pwd; echo $A"], 0, "/tmp\n1\n", ""),
        (&["work", "-c", "kill -9 $$"], 137, "", "ended by signal 9\n"),
        (
            &["work", "--timeout", "1", "--", "sleep", "30"],
            124,
            "",
            "killed: still running after 1 s\n",
        ),
        (&["work", "--stdin", "note", "--", "cat"], 0, "from a file\n", ""),
    ];
    fs::write(world.path("note"), "from a file\n").unwrap();
    for (args, code, stdout, stderr) in table {
        let ran = world.ran(code, &[&["sandbox", "exec"], args].concat());
        assert_eq!((&*ran.stdout, &*ran.stderr), (stdout, stderr), "{args:?}");
    }
    let once =
        ["sandbox", "exec", "work", "--id", "once", "--json", "-c", "echo x >> f; wc -l < f"];
    let first = world.ran(0, &once).json();
    assert_eq!(world.ran(0, &once).json(), first);
    assert_eq!((&first["stdout"], &first["exit_code"]), (&"1\n".into(), &0.into()));
}

#[test]
fn what_is_not_there_or_wrong_is_said() {
    let world = World::new();
    created(&world, &["work"]);
    let table: [(&[&str], i32, &str); 8] = [
        (&["exec", "nobody", "--", "true"], 4, "there is no sandbox `nobody`"),
        (&["exec", "../x", "--", "true"], 2, "is not a valid sandbox id"),
        (&["exec", "work", "--", "no-such-program"], 2, "no such program"),
        (&["exec", "work", "echo hi; true"], 2, "sandbox exec work -c 'echo hi; true'"),
        (&["cp", "work:absent", "here"], 4, "there is nothing at absent"),
        (&["cp", "a", "b"], 2, "exactly one side must be in a sandbox"),
        (&["snapshot", "nobody"], 4, "there is no sandbox `nobody`"),
        (&["create", "new", "--from", "nothing"], 4, "there is no snapshot `nothing`"),
    ];
    for (args, code, said) in table {
        let ran = world.ran(code, &[&["sandbox"], args].concat());
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
    let shell = world.ran(2, &["sandbox", "shell", "work"]);
    assert!(shell.stderr.contains("a shell needs a terminal"), "{}", shell.stderr);
}

#[test]
fn signals_that_whoever_started_it_ignores_are_not_ignored_in_a_sandbox() {
    let world = World::new();
    let mut shell = world.command("sh");
    let line = "trap '' HUP INT QUIT TERM TSTP CHLD
        outrigger() { \"$BINARY\" --data-dir \"$DATA\" sandbox \"$@\"; }
        outrigger create work && outrigger exec work grep SigIgn /proc/self/status";
    shell.args(["-c", line]).env("BINARY", OUTRIGGER).env("DATA", world.data());
    let told = Ran::of(shell.output().unwrap()).expect(0).stdout;
    let ignored = told.trim().rsplit('\t').next().unwrap();
    let ignored = u64::from_str_radix(ignored, 16).unwrap() & 0x7fff_ffff;
    assert_eq!(ignored, 0, "{told}");
}

#[test]
fn files_go_in_and_come_out_as_they_were() {
    let world = World::new();
    created(&world, &["work"]);
    are_copied_both_ways(&world);
}

/// Files into a sandbox `work`, and out of it.
pub(crate) fn are_copied_both_ways(world: &World) {
    let large = vec![7; 9 << 20];
    let dir =
        world.dir("tree", &[("a/b.txt", b"text"), ("large", &large), ("run.sh", b"#!/bin/sh\n")]);
    fs::set_permissions(dir.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(dir.join("empty")).unwrap();
    std::os::unix::fs::symlink("a/b.txt", dir.join("link")).unwrap();
    let copied = world.ran(0, &["sandbox", "cp", "tree", "work:", "--json"]).json();
    assert_eq!((&copied["files"], &copied["bytes"]), (&4.into(), &(large.len() + 14).into()));
    world.ran(0, &["sandbox", "cp", "work:tree", "back"]);
    let back = world.path("back");
    assert_eq!(fs::read(back.join("a/b.txt")).unwrap(), b"text");
    assert_eq!(fs::read(back.join("large")).unwrap(), large);
    assert_eq!(fs::read_link(back.join("link")).unwrap().to_str(), Some("a/b.txt"));
    assert!(back.join("empty").is_dir());
    let mode = |name: &str| fs::metadata(back.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("run.sh"), mode("large")), (0o755, 0o644));
    // One that is there already is not written into.
    let refused = world.ran(5, &["sandbox", "cp", "work:tree/a", "back"]);
    assert!(refused.stderr.contains("exists"), "{refused:?}");
    world.ran(0, &["sandbox", "cp", "work:tree/run.sh", "one"]);
    assert_eq!(fs::read(world.path("one")).unwrap(), b"#!/bin/sh\n");
    assert_eq!(fs::metadata(world.path("one")).unwrap().permissions().mode() & 0o777, 0o755);
    world.ran(0, &["sandbox", "cp", "one", "work:/tmp/new/other"]);
    assert_eq!(world.ran(0, &["sandbox", "exec", "work", "/tmp/new/other"]).code, Some(0));
    // Standard input and output are files, too.
    let mut cp = world.outrigger(&["sandbox", "cp", "-", "work:tree/typed"]);
    let mut cp = cp.stdin(Stdio::piped()).spawn().unwrap();
    cp.stdin.take().unwrap().write_all(b"typed").unwrap();
    assert!(cp.wait().unwrap().success());
    assert_eq!(world.ran(0, &["sandbox", "cp", "work:tree/typed", "-"]).stdout, "typed");
    // What can't be is said, and a link that leads out stays where it is.
    for (code, args, wanted) in [
        (4, ["work:none", "here"], "nothing at none"),
        (4, ["none", "work:"], "nothing at none"),
        (2, ["one", "two"], "exactly one side"),
        (2, ["-", "work:tree"], "name the file that standard input is to be"),
        (2, ["work:tree", "-"], "is a directory"),
    ] {
        let said = world.ran(code, &[&["sandbox", "cp"][..], &args].concat()).stderr;
        assert!(said.contains(wanted), "{args:?}: {said}");
    }
    world.ran(0, &["sandbox", "exec", "work", "ln", "-s", "/etc/passwd", "tree/a/out"]);
    let copied = world.ran(0, &["sandbox", "cp", "work:tree/a", "partly"]).stderr;
    assert!(copied.contains("tree/a/out: a link to /etc/passwd, which leads out"), "{copied}");
    assert!(!world.path("partly/out").exists() && world.path("partly/b.txt").exists());
}

#[test]
fn a_fork_and_a_restored_snapshot_go_their_own_ways() {
    let world = World::new();
    created(&world, &["work"]);
    let exec = |name: &str, line: &str| world.ran(0, &["sandbox", "exec", name, "-c", line]).stdout;
    exec("work", "echo one > f");
    assert_eq!(world.ran(0, &["sandbox", "snapshot", "work", "kept"]).stdout, "kept\n");
    exec("work", "echo two > f");
    world.ran(0, &["sandbox", "fork", "work", "forked"]);
    exec("forked", "echo three >> f");
    created(&world, &["restored", "--from", "kept"]);
    world.ran(0, &["sandbox", "rm", "work"]);
    assert_eq!(exec("forked", "cat f"), "two\nthree\n");
    assert_eq!(exec("restored", "cat f"), "one\n");
    let kept = world.ran(0, &["sandbox", "snapshots", "ls", "--json"]).json();
    assert_eq!(kept["snapshots"].as_array().unwrap().len(), 1, "{kept}");
    world.ran(0, &["sandbox", "snapshots", "rm", "kept"]);
    assert_eq!(world.ran(0, &["sandbox", "snapshots", "ls"]).stdout, "");
    assert_eq!(exec("restored", "cat f"), "one\n");
}

#[test]
fn a_shell_is_a_terminal() {
    let world = World::new();
    created(&world, &["work"]);
    has_a_terminal(&world);
}

/// A shell in a sandbox `work`, and its exit code.
pub(crate) fn has_a_terminal(world: &World) {
    let mut terminal = world.command("script");
    let line = "stty rows 31 cols 97; exec \"$BINARY\" --data-dir \"$DATA\" sandbox shell work";
    terminal.args(["--quiet", "--return", "--command", line, "/dev/null"]);
    terminal.env("TERM", "xterm").env("SHELL", "/bin/sh");
    terminal.env("BINARY", OUTRIGGER).env("DATA", world.data());
    terminal.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = terminal.spawn().expect("`script` of util-linux can be run");
    let mut keyboard = shell.stdin.take().unwrap();
    keyboard.write_all(b"tty; stty size; echo $TERM; exit 3\n").unwrap();
    let ran = Ran::of(shell.wait_with_output().unwrap());
    drop(keyboard);
    let text = &ran.stdout;
    assert!(
        text.contains("/dev/pts/") && text.contains("31 97") && text.contains("xterm"),
        "{text}"
    );
    assert_eq!(ran.code, Some(3), "{text}");
}
