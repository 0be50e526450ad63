//! Conversations with the real binary on a real terminal, and what is left of them on it.

use expect_test::expect_file;
use std::fs;
use std::time::{Duration, Instant};

use crate::support::{World, until};
use crate::tmux::Tmux;

/// A script that runs a command and then answers at length.
const TURNS: &str = r###"
name = "demo"
[[turn]]
text = "I look at **what is here**."
calls = [{ name = "execute", arguments = { command = "seq 1 30; cp file copy" } }]

[[turn]]
when = { result_contains = "30" }
text = """

## What I found

1. There is *one* file.
2. It has `one` line; see [the manual](https://example.org/manual), which says at some length what such files are for and why they are kept.

```sh
wc -l file
```

| file | lines |
|---|---|
| file | 1 |
"""

[[turn]]
when = { message_contains = "again" }
text = "Once more: one file."
"###;

/// Rules that ask about commands.
const RULES: &str = r#"
@id("commands-ask")
@reason("Commands are looked at here.")
@approvable("anyone")
forbid (principal, action == Action::"execute", resource);
"#;

/// A world with a directory and a script.
fn world(turns: &str) -> World {
    let world = World::new();
    world.dir("repo", &[("file", b"one\n"), ("src/main.rs", b"fn main() {}\n")]);
    fs::write(world.path("turns.toml"), turns).unwrap();
    world
}

const CONVERSE: &str = "$O --script ../turns.toml";

/// One turn, from the prompt to the prompt.
fn one_turn(tmux: &Tmux<'_>) {
    tmux.until("/help");
    tmux.say("What is here?", "/apply writes back");
}

#[test]
fn a_turn_at_80_and_at_200_columns() {
    std::thread::scope(|scope| {
        for columns in [80, 200] {
            scope.spawn(move || {
                let world = world(TURNS);
                let tmux = Tmux::new(&world, (columns, 40), CONVERSE);
                one_turn(&tmux);
                expect_file![format!("conversation/{columns}.txt")].assert_eq(&tmux.shown());
                tmux.keys(&["C-d"]);
                assert_eq!(tmux.ended(), 0);
                let left = tmux.shown();
                assert!(left.contains("session SESSION stays; `outrigger --continue`"), "{left}");
                assert!(!left.contains("/help\n"), "the region is gone: {left}");
            });
        }
    });
}

#[test]
fn without_colours_nothing_is_coloured() {
    let world = world(TURNS);
    let tmux = Tmux::new(&world, (80, 40), &format!("NO_COLOR=1 {CONVERSE}"));
    one_turn(&tmux);
    expect_file!["conversation/80.txt"].assert_eq(&tmux.shown());
    let coloured = tmux.coloured();
    assert!(!coloured.contains("\x1b["), "{coloured:?}");
    let coloured = {
        let world = self::world(TURNS);
        let tmux = Tmux::new(&world, (80, 40), CONVERSE);
        one_turn(&tmux);
        tmux.coloured()
    };
    assert!(coloured.contains("\x1b[1m"), "{coloured:?}");
}

#[test]
fn a_dumb_terminal_and_pipes_get_lines() {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let world = world(TURNS);
            let tmux = Tmux::new(&world, (80, 60), &format!("TERM=dumb {CONVERSE}"));
            tmux.until("›");
            tmux.say("What is here?", "/apply writes back");
            tmux.say("/diff", "+one");
            tmux.keys(&["C-d"]);
            assert_eq!(tmux.ended(), 0);
            expect_file!["conversation/dumb.txt"].assert_eq(&tmux.shown());
            assert!(!tmux.coloured().contains("\x1b[?"), "{}", tmux.coloured());
        });
        // Byte by byte.
        scope.spawn(|| {
            let world = world(TURNS);
            let line = format!("{CONVERSE} | dd ibs=1 obs=1 2>/dev/null");
            let tmux = Tmux::new(&world, (80, 60), &line);
            tmux.until("›");
            tmux.say("What is here?", "/apply writes back");
            tmux.keys(&["C-d"]);
            assert_eq!(tmux.ended(), 0);
            expect_file!["conversation/slow_pipe.txt"].assert_eq(&tmux.shown());
        });
        // Whoever read it has gone after the first line.
        scope.spawn(|| {
            let world = world(TURNS);
            let line = format!("({CONVERSE}; echo \"ended with $?\" >&2) | head -1");
            let tmux = Tmux::new(&world, (80, 60), &line);
            tmux.until("● outrigger");
            tmux.say("What is here?", "ended with 0");
        });
    });
}

#[test]
fn a_terminal_that_is_resized_in_mid_stream_shows_all_of_it_once() {
    let turns = r#"
name = "demo"
[[turn]]
text = "I wait."
calls = [{ name = "execute", arguments = { command = "seq -f 'line %g of a text that is wide enough to be broken by a terminal' 1 20; while ! test -e done; do sleep 0.1; done; echo end" } }]
"#;
    let world = world(&format!("{turns}[[turn]]\ntext = \"That is all.\"\n"));
    // So low that the rows of the conversation fill it.
    let tmux = Tmux::new(&world, (100, 24), CONVERSE);
    tmux.until("/help");
    tmux.say("Wait.", "line 20 of");
    tmux.types("a text that is written meanwhile");
    for columns in [60, 90, 50] {
        tmux.resize(columns);
        until("the last row is no longer than the terminal is wide", || {
            let shown = tmux.shown();
            shown.trim_end().lines().last()?.starts_with("  Enter").then_some(())
        });
    }
    world.beside(&world.session(), &["touch", "done"]);
    tmux.until("That is all.");
    tmux.until("changed file");
    let shown = tmux.shown();
    // What stood there before the last resize was moved by the terminal, and not by us.
    let (_, last) = shown.split_once("  ✓ execute").expect("the command ended");
    expect_file!["conversation/resized.txt"].assert_eq(last);
}

#[test]
fn questions_are_answered_where_they_are_asked() {
    let turns = r#"
name = "demo"
[[turn]]
text = "First."
calls = [{ name = "execute", arguments = { command = "echo one" } }]
[[turn]]
text = "The same again."
calls = [{ name = "execute", arguments = { command = "echo one" } }]
[[turn]]
text = "Then something else."
calls = [{ name = "execute", arguments = { command = "echo two" } }]
[[turn]]
text = "That is all."
"#;
    let world = world(turns);
    fs::write(world.path("careful.cedar"), RULES).unwrap();
    let rules = world.path("careful.cedar").display().to_string();
    world.configure(&format!("[policy]\nfiles = [{rules:?}]\n"));
    let tmux = Tmux::new(&world, (80, 40), CONVERSE);
    tmux.until("/help");
    tmux.say("Do it.", "y yes · n no · a always");
    tmux.press("w", "action == Action::\"execute\"");
    tmux.press("a", "│ echo two");
    tmux.press("n", "no; why?");
    tmux.say("one is enough", "● done\n  ");
    expect_file!["conversation/questions.txt"].assert_eq(&tmux.shown());
    let events = world.events(&world.session());
    let answers: Vec<_> = events.iter().filter(|event| event["answered"].is_object()).collect();
    assert_eq!(answers.len(), 3, "{answers:?}");
    let first = &answers[0]["answered"];
    assert!(first["answer"]["approved"]["standing"].is_null(), "{first}");
    // Each answer is an event of its own, and this one names the one that it repeats.
    let second = &answers[1]["answered"];
    assert_eq!(second["answer"]["approved"]["standing"], first["effect"], "{second}");
    assert_ne!(second["effect"], first["effect"]);
    assert_eq!(answers[2]["answered"]["answer"]["denied"]["reason"], "one is enough");
}

#[test]
fn run_asks_on_a_terminal_and_stops_without_an_error_where_nobody_answers() {
    let turns = r#"
name = "demo"
[[turn]]
calls = [{ name = "execute", arguments = { command = "echo one" } }]
[[turn]]
calls = [{ name = "edit_file", arguments = { file_path = "/workspace/file", old_string = "one", new_string = "two" } }]
[[turn]]
text = "That is all."
"#;
    let world = world(turns);
    let rules = world.path("careful.cedar").display().to_string();
    world.configure(&format!("[policy]\nfiles = [{rules:?}]\n"));
    let narrow = RULES.to_owned()
        + "@id(\"changes-ask\")\n@approvable(\"anyone\")\nforbid (principal, action == Action::\"write_files\", resource);\n";
    fs::write(world.path("careful.cedar"), narrow).unwrap();
    // What is typed ahead is no answer.
    let tmux = Tmux::new(&world, (80, 60), "$O run --script ../turns.toml 'Do it.'");
    tmux.say("x", "y yes · n no · a always");
    tmux.keys(&["y", "Enter"]);
    tmux.until("+two");
    assert_eq!(tmux.ended_by(&["C-d"]), 10);
    // Where the letter stands that was typed ahead is for the terminal to say.
    let shown = tmux.shown();
    let (_, asked) = shown.split_once("› Do it.").expect("the task is shown");
    expect_file!["conversation/run.txt"].assert_eq(asked);
    assert!(!tmux.shown().contains("error"), "{}", tmux.shown());
    drop(tmux);
    let tmux = Tmux::new(&world, (80, 60), &format!("$O sessions resume {}", world.session()));
    tmux.until("y yes · n no · e edit");
    assert_eq!(tmux.ended_by(&["y", "Enter"]), 0, "{}", tmux.shown());
    let shown = tmux.shown();
    assert_eq!(shown.matches("That is all.").count(), 1, "{shown}");
    assert!(shown.contains("+two"), "{shown}");
}

#[test]
fn changes_go_back_in_steps_and_are_taken_back() {
    let turns = r#"
name = "demo"
[[turn]]
when = { turn = 1 }
calls = [{ name = "execute", arguments = { command = "echo two > file" } }]
[[turn]]
when = { turn = 2 }
text = "Two."
[[turn]]
when = { turn = 3 }
calls = [{ name = "execute", arguments = { command = "echo three > file; while ! test -e /tmp/go; do sleep 0.1; done" } }]
[[turn]]
when = { turn = 4 }
text = "Three."
"#;
    let world = world(turns);
    let file = world.path("repo/file");
    let holds = |text: &str| assert_eq!(fs::read_to_string(&file).unwrap(), text);
    let tmux = Tmux::new(&world, (80, 50), CONVERSE);
    tmux.until("/help");
    tmux.paste("Two,\nplease.");
    tmux.until("  please.");
    tmux.say("", "/apply writes back");
    tmux.say("/apply", "1 file written back to");
    holds("two\n");
    tmux.say("Three.", "echo three");
    // Said while it works, it is done after the turn.
    tmux.say("/apply", "that follows when the turn is over");
    world.beside(&world.session(), &["touch", "/tmp/go"]);
    tmux.until("[scripted] Three.");
    tmux.say("/cost", "tokens");
    let written = || fs::read_to_string(&file).is_ok_and(|text| text == "three\n").then_some(());
    until("it is written back", written);
    tmux.say("/undo", "1 file as before");
    holds("two\n");
    tmux.say("/undo", "");
    let back = || fs::read_to_string(&file).is_ok_and(|text| text == "one\n").then_some(());
    until("it is taken back", back);
    tmux.say("/rewind", "back to where this was answered: Two,");
    // Nothing ran since: the files are as they were then.
    tmux.say("/diff", "+two");
    tmux.say("/apply", "");
    let applied = || fs::read_to_string(&file).is_ok_and(|text| text == "two\n").then_some(());
    until("it is written back again", applied);
    tmux.say("/sessions", "/sessions NAME goes on with one");
}

#[test]
fn a_conversation_is_summarised_when_a_person_asks_for_it() {
    let turns = r#"
name = "demo"
[[turn]]
text = "First."
[[turn]]
text = "What was said so far."
"#;
    let world = world(turns);
    let tmux = Tmux::new(&world, (80, 40), CONVERSE);
    tmux.until("/help");
    for (text, then) in [
        ("/compact", "say something first"),
        ("One.", "[scripted] First."),
        ("/compact", "to be summarised before the next answer"),
        ("Two.", "● done\n  3 steps"),
    ] {
        tmux.say(text, then);
    }
    // A script counts the replies of the conversation, which has none any more.
    let shown = tmux.shown();
    let (_, after) = shown.split_once("▸ summarising").expect("a summary is asked for");
    assert!(after.contains("[scripted] First."), "{shown}");
}

#[test]
fn commits_become_a_branch_when_that_is_said() {
    let turns = r#"
name = "demo"
[[turn]]
calls = [{ name = "execute", arguments = { command = "git commit -q --allow-empty -m empty; echo two > file" } }]
[[turn]]
text = "Two."
"#;
    let world = world(turns);
    let dir = world.path("repo");
    world.git(&dir, &["init", "-q"]);
    world.git(&dir, &["add", "."]);
    world.git(&dir, &["commit", "-qm", "first"]);
    let tmux = Tmux::new(&world, (80, 50), CONVERSE);
    tmux.until("/help");
    tmux.say("Two, please.", "/apply writes back");
    tmux.say("/branch", "1 commit on the new branch outrigger/");
    tmux.until("1 file is not committed as it stands");
    let branches = world.git(&dir, &["branch", "--list", "outrigger/*", "--format=%(subject)"]);
    assert_eq!(branches, "empty\n");
}

#[test]
fn whoever_comes_back_is_told_what_was_going_on() {
    let turns = r#"
name = "demo"
[[turn]]
text = "I wait."
calls = [{ name = "execute", arguments = { command = "while ! test -e done; do sleep 0.1; done; echo end" } }]
[[turn]]
text = "That is all."
"#;
    let world = world(turns);
    {
        let tmux = Tmux::new(&world, (80, 30), CONVERSE);
        tmux.until("/help");
        tmux.say("Wait.", "… execute");
        world.await_command();
    }
    let session = world.session();
    until("its process has gone", || {
        let listed = world.sessions();
        (listed[0]["status"] == "interrupted").then_some(())
    });
    let tmux = Tmux::new(&world, (80, 30), CONVERSE);
    tmux.until("(interrupted,");
    tmux.until("goes on with it");
    assert_eq!(tmux.ended_by(&["C-c"]), 0);
    drop(tmux);
    let tmux = Tmux::new(&world, (80, 30), "$O --continue");
    tmux.until("… execute");
    world.beside(&session, &["touch", "done"]);
    tmux.until("That is all.");
    let shown = tmux.shown();
    assert!(shown.contains("› Wait."), "{shown}");
}

#[test]
fn what_is_said_elsewhere_is_heard_where_nothing_runs() {
    let world = world(TURNS);
    let tmux = Tmux::new(&world, (80, 40), CONVERSE);
    one_turn(&tmux);
    let session = world.session();
    let told = world.ran(0, &["stop", &session]).stderr;
    assert!(told.contains("does not run"), "{told}");
    world.ran(0, &["sessions", "say", &session, "And again?"]);
    tmux.until("Once more: one file.");
    tmux.keys(&["C-d"]);
    assert_eq!(tmux.ended(), 0);
}

/// From what is typed to what is shown, and five megabytes of output in between. The figures are
/// for a debug build on a loaded machine; docs/design/026-a-conversation.md has the others.
#[test]
fn a_prompt_comes_at_once_and_keys_are_heard_while_much_is_printed() {
    let turns = r#"
name = "demo"
[[turn]]
text = "Much."
calls = [{ name = "execute", arguments = { command = "while ! test -e done; do seq 1000000 1100000; done | head -c 5000000; while ! test -e done; do sleep 0.1; done" } }]
[[turn]]
text = "That is all."
"#;
    let world = world(turns);
    let begun = Instant::now();
    let tmux = Tmux::new(&world, (80, 30), CONVERSE);
    tmux.until("›");
    let prompt = begun.elapsed();
    tmux.say("Print.", "… execute");
    let begun = Instant::now();
    tmux.types("heard");
    tmux.until("› heard");
    let key = begun.elapsed();
    tmux.until("before");
    world.beside(&world.session(), &["touch", "done"]);
    tmux.until("That is all.");
    assert!(prompt < Duration::from_secs(5), "{prompt:?}");
    assert!(key < Duration::from_secs(5), "{key:?}");
}

/// A first turn that lasts until the file `go` is there.
const SLOW: &str = r#"
[[turn]]
calls = [{ name = "execute", arguments = { command = "echo begun; until test -e go; do sleep 0.1; done" } }]

[[turn]]
text = "Done."
"#;

#[test]
fn what_was_not_done_is_told_to_who_leaves() {
    let world = world(SLOW);
    let tmux = Tmux::new(&world, (100, 40), CONVERSE);
    tmux.until("/help");
    tmux.say("Begin.", "begun");
    // A command that is done at once leaves what works as it was.
    tmux.say("/diff", "nothing changed in the sandbox");
    tmux.until("Esc stops it");
    tmux.say("/new", "that follows when the turn is over");
    tmux.say("/apply", "that follows when the turn is over");
    tmux.types("Then look again.");
    tmux.keys(&["Tab"]);
    assert_eq!(tmux.ended_by(&["/quit", "Enter"]), 0);
    let left = tmux.shown();
    assert!(left.contains("SESSION stays, its turn cut off; `outrigger --continue`"), "{left}");
    assert!(left.contains("! not sent: Then look again."), "{left}");
    assert!(left.contains("! not done: /apply"), "{left}");
}

#[test]
fn a_session_of_another_directory_is_written_back_elsewhere() {
    let world = world(TURNS);
    world.dir("other", &[("file", b"one\n")]);
    let dir = world.path("other").display().to_string();
    let script = world.path("turns.toml").display().to_string();
    world.ran(0, &["run", "Look.", "--dir", &dir, "--script", &script, "--name", "its"]);
    let tmux = Tmux::new(&world, (120, 40), CONVERSE);
    tmux.until("/help");
    tmux.say("/sessions its", "they can't from here");
    tmux.say("/apply", "`outrigger sessions apply its` writes it back");
    assert_eq!(tmux.ended_by(&["C-d"]), 0);
    let left = tmux.shown();
    assert!(left.contains("session its stays; `outrigger sessions say its"), "{left}");
}
