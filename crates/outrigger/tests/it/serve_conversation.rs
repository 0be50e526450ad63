//! A conversation on a terminal in a session of a server: as on one machine, and while the server
//! comes and goes.

use rustix::process::Signal;
use serde_json::Value;
use std::fs;

use crate::serve_remote::{Laptop, asking, laptop};
use crate::support::{World, until};
use crate::tmux::Tmux;

/// A command that waits for a file of the workspace.
const WAITS: &str = "echo begun; while ! test -e go; do sleep 0.1; done; echo two >> file";

/// A conversation about the directory.
fn converse<'a>(world: &'a World, dir: &str, args: &str) -> Tmux<'a> {
    Tmux::new(world, (100, 50), &format!("cd {dir} && $O {args}"))
}

/// One that begins; what AGENTS.md says is trusted.
fn begin<'a>(world: &'a World, dir: &str) -> Tmux<'a> {
    let tmux = converse(world, dir, "");
    tmux.until("y trust it as it is");
    tmux.keys(&["y", "Enter"]);
    tmux.until("/help");
    tmux
}

/// What a person said in a session, in order.
fn said(laptop: &Laptop, session: &str) -> Vec<String> {
    let events = laptop.world.events(session);
    let by_person = |event: &&Value| event["said"]["author"]["person"].is_string();
    let text = |event: &Value| event["said"]["text"].as_str().unwrap().to_owned();
    events.iter().filter(by_person).map(text).collect()
}

#[test]
fn a_conversation_is_as_on_one_machine() {
    let laptop = asking(&["echo two >> file", "echo begun; sleep 600", "echo three >> file"]);
    let tmux = begin(&laptop.world, laptop.dir());
    tmux.say("Add a line.", "y yes · n no · a always");
    tmux.press("y", "[scripted] Done.");
    tmux.until("1 changed file in the sandbox");
    tmux.say("/diff", "+two");
    tmux.say("/apply", "1 file written back to");
    assert_eq!(laptop.file(), "one\ntwo\n");
    tmux.say("/undo", "1 file as before");
    assert_eq!(laptop.file(), "one\n");
    let session = laptop.session();
    let by = laptop.world.events(&session)[0]["opened"]["principal"].clone();
    assert_eq!(by, "person:ada", "it is a session of the server");

    // What is put out is shown as it comes, and Esc stops it.
    tmux.say("Sleep.", "│ echo begun; sleep 600");
    tmux.press("y", "│ begun");
    tmux.keys(&["Escape"]);
    tmux.until("interrupted");
    tmux.until("\n›\n");
    tmux.keys(&["C-d"]);
    assert_eq!(tmux.ended(), 0);
    assert!(tmux.shown().contains("session SESSION stays"), "{}", tmux.shown());
    drop(tmux);

    let tmux = converse(&laptop.world, laptop.dir(), "--continue");
    tmux.until("● session SESSION: interrupted");
    tmux.say("More.", "[scripted] Done.");
    tmux.say("Again.", "│ echo three >> file");
    tmux.press("n", "no; why?");
    tmux.say("two is enough", "● done");
    assert_eq!(said(&laptop, &session), ["Add a line.", "Sleep.", "More.", "Again."]);
    let denied = laptop.world.events(&session);
    let reasons: Vec<_> = denied
        .iter()
        .filter_map(|it| it["answered"]["answer"]["denied"]["reason"].as_str())
        .collect();
    assert_eq!(reasons, ["two is enough"]);
    tmux.say("/apply", "1 file written back to");
    assert_eq!(laptop.file(), "one\ntwo\n");
    tmux.say("/fork", "goes on where SESSION stands");
    tmux.say("/sessions", "/sessions NAME goes on with one");
    assert_eq!(laptop.world.sessions().len(), 2);
    tmux.say("/branch", "no branch was made: it has no commit yet");
    tmux.say("/compact", "to be summarised before the next answer");
    let sessions = laptop.world.sessions();
    let asked = |session: &Value| {
        let events = laptop.world.events(session["session"].as_str().unwrap());
        events.iter().any(|event| event["compaction_requested"]["by"] == "person:ada")
    };
    assert_eq!(sessions.iter().filter(|session| asked(session)).count(), 1);
    tmux.say("/new", "the next message begins another session");
}

#[test]
fn nothing_is_lost_or_said_twice_when_the_server_begins_anew() {
    let mut laptop = laptop(&[WAITS, "true"]);
    let tmux = begin(&laptop.world, laptop.dir());
    tmux.say("Wait.", "│ begun");
    let session = laptop.session();
    laptop.served.process.signal(Signal::KILL);
    tmux.until("! the server is away; it is asked again");
    // Said while nobody hears it.
    tmux.say("And this.", "› And this.");
    laptop.served.restart();
    until("it is heard", || (said(&laptop, &session).len() == 2).then_some(()));
    laptop.served.world.beside(&session, &["touch", "go"]);
    tmux.until("[scripted] Done.");
    tmux.until("2 changed files in the sandbox");
    let shown = tmux.shown();
    assert_eq!(shown.matches("› And this.").count(), 1, "{shown}");
    assert!(!shown.contains("the server is away"), "{shown}");
    assert_eq!(said(&laptop, &session), ["Wait.", "And this."]);
    tmux.say("/apply", "2 files written back to");
    assert_eq!(fs::read_to_string(laptop.dir.join("file")).unwrap(), "one\ntwo\n");
    // Whoever leaves meanwhile is told what nobody heard.
    laptop.served.process.signal(Signal::KILL);
    tmux.until("! the server is away; it is asked again");
    tmux.say("Too late.", "› Too late.");
    tmux.keys(&["C-c", "C-c"]);
    assert_eq!(tmux.ended(), 0);
    assert!(tmux.shown().contains("may not have heard: Too late."), "{}", tmux.shown());
}
