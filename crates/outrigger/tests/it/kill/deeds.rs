//! What a session does that is killed, and what of it has to be found afterwards: what
//! acts was begun once, under one key, and each subagent is one session.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::record::{Effect, Struck, effects, under_way};
use crate::support::{Turn, World, shell};
use crate::toolserver;

/// How long the model thinks before each reply, so that some kills come meanwhile.
const THINKS_MS: u32 = 30;
/// How long a subagent's model thinks before each reply: long enough that there are kills
/// after it was seen to begin.
const BELOW_THINKS_MS: u32 = 150;

/// It leaves a line for each call that it begins: the tool, the argument and the key under
/// which the call was asked for.
const CALL: &str = r#"
argument, key = params["arguments"]["text"], params["_meta"]["outrigger/idempotency-key"]
with open("/home/agent/calls", "a") as log:
    log.write("mcp__ours__%s %s %s\n" % (name, argument, key))
time.sleep(0.03)
text = "did " + argument
"#;

/// Permits everything, so that nobody has to be asked about tools outside.
const RULES: &str = "@id(\"all\")\npermit (principal, action, resource);\n";

/// For each subagent, in the order in which they are asked for: how many commands the
/// session had run before, whose lines it finds.
pub(super) const BEFORE: [u32; 3] = [3, 3, 7];

/// What a subagent does. It answers only if its log holds what it began with and its own
/// two lines, once.
const BELOW: &str = r#"
[[turn]]
when = { turn = 1, message_contains = "below" }
delay_ms = THINKS
calls = [{ name = "execute", arguments = { command = "echo begin below >> log; sleep 0.15; echo end below >> log; cat log" } }]
[[turn]]
when = { turn = 2, message_contains = "below", result_matches = '\A(begin \d\nend \d\n)+begin below\nend below\n\[exit' }
delay_ms = THINKS
text = "Counted once."
[[turn]]
when = { message_contains = "below" }
text = "Not once."
"#;

/// Leaves a line when it begins and one when it ends: twice is seen, half is seen.
fn count(number: u32) -> (&'static str, Value) {
    shell(&format!("echo begin {number} >> log; sleep 0.03; echo end {number} >> log"))
}

fn counted(numbers: std::ops::RangeInclusive<u32>) -> String {
    numbers.map(|n| format!("begin {n}\nend {n}\n")).collect()
}

/// What the session leaves in its files.
pub(super) fn expected() -> String {
    counted(1..=9) + "one two\n"
}

fn file(name: &'static str, mut arguments: Value) -> (&'static str, Value) {
    arguments["file_path"] = json!("/workspace/notes");
    (name, arguments)
}

/// Configures a world for it, and gives its script.
pub(super) fn configure(world: &World) -> String {
    let rules = world.path("all.cedar");
    fs::write(&rules, RULES).unwrap();
    let server = toolserver::python(&["look", "note", "put"], CALL);
    let config = format!(
        "[[sandbox]]\nname = \"work\"\n[[sandbox]]\nname = \"aside\"\n\
         [policy]\ndefaults = false\nfiles = [{rules:?}]\n\
         [tools.ours]\ncommand = [\"python3\", \"-c\", {server:?}]\nsandbox = \"aside\"\n\
         read_only = [\"look\"]\nidempotent = [\"put\"]\n"
    );
    world.dir("config", &[("outrigger/config.toml", config.as_bytes())]);
    let outside = |tool: &'static str, text: &str| (tool, json!({ "text": text }));
    let below = |which: &str| ("task", json!({ "task": format!("below, {which}") }));
    let path = world.script(&[
        Turn(&[count(1)]),
        Turn(&[file("write_file", json!({ "content": "one\n" }))]),
        Turn(&[count(2), count(3)]),
        Turn(&[outside("mcp__ours__note", "a"), outside("mcp__ours__look", "b")]),
        Turn(&[file("edit_file", json!({ "old_string": "one", "new_string": "one two" }))]),
        Turn(&[below("first"), below("second")]),
        Turn(&[count(4)]),
        Turn(&[file("read_file", json!({}))]),
        Turn(&[outside("mcp__ours__put", "c"), outside("mcp__ours__note", "d")]),
        Turn(&[count(5), count(6)]),
        Turn(&[("grep", json!({ "pattern": "end", "path": "/workspace/log" }))]),
        Turn(&[outside("mcp__ours__note", "e"), count(7)]),
        Turn(&[below("third")]),
        Turn(&[count(8), count(9)]),
    ]);
    let text = fs::read_to_string(&path).unwrap();
    let turns = text.split("[[turn]]\n").skip(1).enumerate().map(|(at, turn)| {
        // By number: those of subagents stand before them.
        format!("[[turn]]\nwhen = {{ turn = {} }}\ndelay_ms = {THINKS_MS}\n{turn}", at + 1)
    });
    let below = BELOW.replace("THINKS", &BELOW_THINKS_MS.to_string());
    fs::write(&path, below + &turns.collect::<String>()).unwrap();
    path
}

/// Checks what a session that came to its end had done outside, and what below it.
pub(super) fn check(world: &World, session: &str, title: &str) {
    let events = world.events(session);
    let effects = effects(&events);
    check_outside(world, session, &effects, title);
    let below: Vec<_> = effects.iter().filter(|effect| effect.tool == "task").collect();
    assert_eq!(below.len(), BEFORE.len(), "{title}");
    for effect in &below {
        let output = &effect.outcome["done"]["output"];
        assert_eq!(output["text"], "[scripted] Counted once.", "{title}: {output}");
    }
    let wanted: Vec<_> = below.iter().map(|effect| format!("{session}-{}", effect.seq)).collect();
    let there = subagents(world, session);
    assert_eq!(there, wanted.iter().cloned().collect(), "{title}: one session for each call");
    for (child, before) in wanted.iter().zip(BEFORE) {
        let done = self::effects(&world.events(child));
        let commands: Vec<_> = done.iter().filter(|effect| effect.tool == "execute").collect();
        assert_eq!(commands.len(), 1, "{child}");
        let shown = commands[0].outcome["done"]["output"]["text"].as_str().unwrap();
        let once = counted(1..=before) + "begin below\nend below\n";
        assert!(shown.starts_with(&format!("{once}[exit")), "{child}: {shown}");
    }
}

fn check_outside(world: &World, session: &str, effects: &[Effect], title: &str) {
    // A sandbox that rests is resumed for it: what is read is what the programs wrote.
    let sandbox = format!("{session}.aside");
    let args = ["sandbox", "exec", &sandbox, "--", "cat", "/home/agent/calls"];
    let log = world.ran(0, &args).stdout;
    let mut begun: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for line in log.lines() {
        let [tool, text, key] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{log}") };
        begun.entry((tool, text)).or_default().push(key);
    }
    let calls: Vec<_> = effects.iter().filter(|effect| effect.tool.starts_with("mcp__")).collect();
    assert_eq!(calls.len(), 5, "{title}");
    let mut keys = BTreeSet::new();
    for call in calls {
        let text = call.arguments["text"].as_str().unwrap();
        let begun = begun.remove(&(call.tool.as_str(), text)).unwrap_or_default();
        let told = format!("{title}, {} {text}, begun {begun:?}: {}", call.tool, call.outcome);
        assert!(begun.len() <= call.attempts, "without an intent: {told}");
        assert!(begun.windows(2).all(|pair| pair[0] == pair[1]), "one key: {told}");
        keys.extend(begun.first().copied());
        // After a kill it is another program, which is said before its answer.
        let said = call.outcome["done"]["output"]["text"].as_str().unwrap_or_default();
        let done = said.lines().last() == Some(&*format!("did {text}"));
        if done {
            assert!(!begun.is_empty(), "{told}");
        }
        if call.tool == "mcp__ours__note" {
            assert!(begun.len() <= 1, "twice: {told}");
            let evidence = call.outcome["unknown"]["evidence"].as_str().unwrap_or_default();
            assert!(done || evidence.contains("It is not repeated"), "{told}");
        } else {
            assert!(done, "{told}");
        }
    }
    assert!(begun.is_empty(), "{title}: nobody asked for {begun:?}");
    assert!(keys.len() >= 2, "{title}: a key for each call: {keys:?}");
}

/// The sessions below one. Each came to its end, and its sandboxes are gone.
fn subagents(world: &World, session: &str) -> BTreeSet<String> {
    let listed = world.ran(0, &["sessions", "ls", "--all", "--json", "-n", "100000"]).json();
    let prefix = format!("{session}-");
    let name = |row: &Value| row["session"].as_str().unwrap().to_owned();
    let mut rows = listed["sessions"].as_array().unwrap().clone();
    rows.retain(|row| name(row).starts_with(&prefix));
    for row in &rows {
        assert_eq!(row["status"], "done", "{row}");
    }
    rows.iter().map(name).collect()
}

/// Whether this line of what is told asks for a subagent.
pub(super) fn asks_below(line: &str) -> bool {
    line.contains(r#""tool":"task""#)
}

/// Whether all subagents that a session asked for are opened.
pub(super) fn have_begun(world: &World, session: &str) -> bool {
    let mut asked =
        effects(&world.events(session)).into_iter().filter(|effect| effect.tool == "task");
    let started = asked.all(|effect| effect.attempts > 0);
    started && below(world, session).iter().all(|struck| *struck != Struck::Opening)
}

/// What is under way in the subagents of a session that are under way.
pub(super) fn below(world: &World, session: &str) -> Vec<Struck> {
    let events = world.events(session);
    let effects = effects(&events);
    let running = effects
        .iter()
        .filter(|effect| effect.tool == "task" && effect.attempts > 0 && effect.outcome.is_null());
    let children = running.map(|effect| format!("{session}-{}", effect.seq));
    let struck = children.map(|child| match world.run(&["sessions", "logs", &child, "--json"]) {
        ran if ran.code == Some(0) => {
            let events: Vec<_> =
                ran.lines().iter().map(|it| it["record"]["event"].clone()).collect();
            under_way(&events)
        }
        _ => Struck::Opening,
    });
    struck.collect()
}
