//! `outrigger sandbox` at a server: a person's sandboxes there, from the command line of another
//! machine.

use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::ChildStdout;

use crate::sandboxes::{are_copied_both_ways, has_a_terminal};
use crate::serve_egress::host;
use crate::serve_remote::{Laptop, laptop};
use crate::support::Ran;

impl Laptop {
    fn sandbox(&self, code: i32, args: &[&str]) -> Ran {
        self.world.ran(code, &[&["sandbox"], args].concat())
    }
}

fn line(from: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    line
}

#[test]
fn a_sandbox_is_made_used_and_removed() {
    let laptop = laptop(&["true"]);
    assert!(laptop.sandbox(0, &["ls"]).stderr.contains("no sandboxes"));
    let made = laptop.sandbox(0, &["create", "work", "--memory-mib", "128", "--pids", "64"]).stdout;
    let id = made.trim();
    assert!(id.starts_with("sandbox-"), "{id}");
    // One that is called so is not made again.
    let again = laptop.sandbox(0, &["create", "work"]);
    assert_eq!(again.stdout.trim(), id);
    assert!(again.stderr.contains("it was there already"), "{}", again.stderr);
    let told = laptop.sandbox(0, &["ls", "--json"]).json();
    let told = &told["sandboxes"][0];
    assert_eq!((&told["id"], &told["label"]), (&json!(id), &json!("work")), "{told}");
    assert_eq!((&told["state"], &told["person"]), (&json!("running"), &json!("person:ada")));
    assert_eq!(told["origin"]["template"], "host-tools", "{told}");
    let shown = laptop.sandbox(0, &["ls"]).stdout;
    assert!(shown.starts_with(id) && shown.ends_with("  work\n"), "{shown}");
    assert_eq!(laptop.sandbox(0, &["exec", id, "pwd"]).stdout, "/workspace\n");
    // It rests, and goes on with its disk; a copy of that goes its own way.
    laptop.sandbox(0, &["exec", "work", "-c", "echo one > file"]);
    laptop.sandbox(0, &["suspend", "work"]);
    assert_eq!(laptop.sandbox(0, &["ls", "--json"]).json()["sandboxes"][0]["state"], "cold");
    let kept = laptop.sandbox(0, &["snapshot", "work", "before"]).stdout;
    laptop.sandbox(0, &["exec", "work", "-c", "echo two >> file"]);
    laptop.sandbox(0, &["fork", "work", "other"]);
    laptop.sandbox(5, &["fork", "work", "other"]);
    assert_eq!(laptop.sandbox(0, &["exec", "other", "cat", "file"]).stdout, "one\ntwo\n");
    laptop.sandbox(0, &["create", "again", "--from", "before"]);
    assert_eq!(laptop.sandbox(0, &["exec", "again", "cat", "file"]).stdout, "one\n");
    let snapshots = laptop.sandbox(0, &["snapshots", "ls"]).stdout;
    assert!(snapshots.starts_with(kept.trim()) && snapshots.contains("before"), "{snapshots}");
    laptop.sandbox(0, &["snapshots", "rm", "before"]);
    assert!(laptop.sandbox(0, &["snapshots", "ls"]).stdout.is_empty());
    assert!(laptop.sandbox(0, &["templates", "ls"]).stdout.starts_with("host-tools"));
    // Two that are called alike are told apart by their names.
    let body = json!({ "label": "again" }).to_string();
    let asked = ["--json", body.as_str()];
    let key = laptop.served.key("ada");
    assert_eq!(laptop.served.with_key(&key, &asked, "/v1/sandboxes").0, 201);
    let unclear = laptop.sandbox(2, &["rm", "again"]).stderr;
    assert!(unclear.contains("2 of yours are called `again`"), "{unclear}");
    let gone = laptop.sandbox(0, &["rm", "work", "other", "--json"]).json();
    assert_eq!(gone["names"], json!(["work", "other"]));
    let missing = laptop.sandbox(4, &["exec", "work", "true"]).stderr;
    assert!(missing.contains("there is no sandbox `work`"), "{missing}");
}

#[test]
fn what_is_somebody_elses_or_of_this_machine_is_not_meant() {
    let laptop = laptop(&["true"]);
    laptop.sandbox(0, &["create", "work"]);
    laptop.login("bob", "bobs").expect(0);
    let bobs = |code, args: &[&str]| {
        laptop.world.ran(code, &[&["--server", "bobs", "sandbox"], args].concat())
    };
    assert_eq!(bobs(0, &["ls"]).stdout, "");
    bobs(4, &["exec", "work", "true"]);
    // Who administers sees that it is there, and what its maker calls it is no name for them.
    laptop.login("local", "administrator").expect(0);
    let theirs = |code, args: &[&str]| {
        laptop.world.ran(code, &[&["--server", "administrator", "sandbox"], args].concat())
    };
    let listed = theirs(0, &["ls"]).stdout;
    assert!(listed.contains("of person:ada  work"), "{listed}");
    theirs(4, &["rm", "work"]);
    assert_eq!(laptop.world.ran(0, &["--server", "local", "sandbox", "ls"]).stdout, "");
    laptop.world.ran(0, &["context", "use", "team"]);
    for args in [
        &["--like", "main", "ls"][..],
        &["create", "--isolation-min", "container"],
        &["templates", "rm", "host-tools"],
    ] {
        let refused = laptop.sandbox(2, args).stderr;
        assert!(refused.contains("on this machine alone"), "{args:?}: {refused}");
    }
}

#[test]
fn files_go_in_and_come_out_as_they_were() {
    let laptop = laptop(&["true"]);
    laptop.sandbox(0, &["create", "work"]);
    are_copied_both_ways(&laptop.world);
}

#[test]
fn a_shell_is_a_terminal() {
    let laptop = laptop(&["true"]);
    laptop.sandbox(0, &["create", "work"]);
    has_a_terminal(&laptop.world);
    let refused = laptop.sandbox(2, &["shell", "work"]).stderr;
    assert!(refused.contains("a shell needs a terminal"), "{refused}");
}

#[test]
fn a_sandbox_reaches_what_was_asked_for() {
    let laptop = laptop(&["true"]);
    // The server's own machine is for who administers.
    laptop.login("local", "administrator").expect(0);
    laptop.world.ran(0, &["context", "use", "administrator"]);
    let (word, other) = (host(), host());
    laptop.sandbox(0, &["create", "work", "--net", &word]);
    let curl =
        |code, url: &str| laptop.sandbox(code, &["exec", "work", "curl", "-sSf", url]).stdout;
    assert_eq!(curl(0, &word), "hello");
    curl(22, &other);
    laptop.sandbox(0, &["create", "work", "--net", &other]);
    laptop.sandbox(0, &["create", "work"]);
    assert_eq!((curl(0, &word), curl(0, &other)), ("hello".to_owned(), "hello".to_owned()));
    laptop.sandbox(0, &["create", "work", "--net", "none"]);
    curl(7, &word);
    let refused = laptop.sandbox(2, &["create", "more", "--net", "git"]).stderr;
    assert!(refused.contains("there is none here"), "{refused}");
    laptop.sandbox(4, &["create", "more", "--secret", "MISSING"]);
}

#[test]
fn a_command_ends_with_its_own_code_and_runs_once() {
    let laptop = laptop(&["true"]);
    laptop.sandbox(0, &["create", "work"]);
    let input = laptop.world.path("input");
    fs::write(&input, "in\n").unwrap();
    let input = input.to_str().unwrap();
    let line = "cat; echo err >&2; echo $A; exit 3";
    let args = ["exec", "work", "--stdin", input, "-e", "A=b c", "-C", "/tmp", "-c", line];
    let done = laptop.sandbox(3, &args);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("in\nb c\n", "err\n"));
    let told = laptop.sandbox(3, &[&args[..], &["--json"]].concat()).json();
    assert_eq!((&told["type"], &told["sandbox"]), (&json!("executed"), &json!("work")), "{told}");
    assert_eq!((&told["end"], &told["exit_code"]), (&json!("exited"), &json!(3)));
    assert_eq!((&told["stdout"], &told["stderr"]), (&json!("in\nb c\n"), &json!("err\n")));
    for _ in 0..2 {
        let once = ["exec", "work", "--id", "once", "-c", "echo x >> runs; wc -l < runs"];
        assert_eq!(laptop.sandbox(0, &once).stdout, "1\n");
    }
    let late = laptop.sandbox(124, &["exec", "work", "--timeout", "1", "sleep", "60"]).stderr;
    assert!(late.contains("killed: still running after 1 s"), "{late}");
    let killed = laptop.sandbox(137, &["exec", "work", "-c", "kill -9 $$"]).stderr;
    assert!(killed.contains("ended by signal 9"), "{killed}");
    let much = laptop.sandbox(0, &["exec", "work", "-c", "yes | head -c 5000000"]);
    assert!(
        much.stdout.len() == 4 << 20 && much.stderr.contains("are not shown"),
        "{}",
        much.stderr
    );
    let missing = laptop.sandbox(2, &["exec", "work", "no-such-program"]).stderr;
    assert!(missing.contains("no-such-program"), "{missing}");
    fs::write(input, b"\xff").unwrap();
    let refused = laptop.sandbox(2, &["exec", "work", "--stdin", input, "cat"]).stderr;
    assert!(refused.contains("standard input is no text"), "{refused}");
}

#[test]
fn output_comes_while_a_command_runs_also_over_the_death_of_the_server() {
    let mut laptop = laptop(&["true"]);
    laptop.sandbox(0, &["create", "work"]);
    let gate = "echo one; while [ ! -e first ]; do sleep 0.05; done; echo two; \
        while [ ! -e second ]; do sleep 0.05; done; echo three; exit 7";
    let mut running = laptop.world.start(&["sandbox", "exec", "work", "-c", gate]);
    let mut out = BufReader::new(running.stdout());
    assert_eq!(line(&mut out), "one\n");
    laptop.sandbox(0, &["exec", "work", "touch", "first"]);
    assert_eq!(line(&mut out), "two\n");
    // What came is not told again.
    laptop.served.restart();
    laptop.sandbox(0, &["exec", "work", "touch", "second"]);
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "three\n");
    running.end().expect(7);
}

#[test]
fn ctrl_c_kills_the_command() {
    let laptop = laptop(&["true"]);
    laptop.sandbox(0, &["create", "work"]);
    let tree = "(trap '' TERM; setsid sleep 300) & echo began; sleep 300";
    let mut running = laptop.world.start(&["sandbox", "exec", "work", "-c", tree]);
    let mut out = BufReader::new(running.stdout());
    assert_eq!(line(&mut out), "began\n");
    running.signal(Signal::INT);
    let ended = running.end().expect(130);
    assert!(ended.stderr.contains("the command was killed"), "{}", ended.stderr);
    let left =
        laptop.sandbox(0, &["exec", "work", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]);
    assert!(!left.stdout.contains("sleep 300"), "{}", left.stdout);
}
