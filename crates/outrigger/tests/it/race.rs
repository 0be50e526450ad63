//! Many sessions and shells that write the same files at once, with the real binary: nothing
//! that somebody was told is written is lost, and every version is somebody's.
//!
//! `OUTRIGGER_TEST_RACE_SECONDS=60` lets them go on for a minute.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Turn, World, shell};

const SESSIONS: usize = 50;
const SHELLS: usize = 8;
const ENTRIES: usize = 20;
/// From the start until everybody has to be done.
const PATIENCE: Duration = Duration::from_secs(600);

fn seconds() -> u64 {
    std::env::var("OUTRIGGER_TEST_RACE_SECONDS").map_or(5, |text| text.parse().expect("seconds"))
}

fn entry(number: usize) -> String {
    format!("/memory/user/e{}.md", number % ENTRIES)
}

/// A session that edits one file after the other, each edit with a mark of its own.
fn editing(world: &World, name: usize, edits: usize) -> String {
    let edit = |at: usize| {
        let arguments = json!({
            "file_path": entry(name + at),
            "old_string": "## end",
            "new_string": format!("mark-t{name}-{at}\n## end"),
        });
        [("edit_file", arguments)]
    };
    let calls: Vec<_> = (0..edits).map(edit).collect();
    world.script(&calls.iter().map(|call| Turn(call)).collect::<Vec<_>>())
}

/// A session whose one command writes until its time is over, by appending or by replacing
/// the file, and says what was written.
fn looping(world: &World, name: usize, seconds: u64) -> String {
    let how = if name.is_multiple_of(2) {
        r#"echo "$mark" | tee -a "$f" > /dev/null"#
    } else {
        r#"sed -i "s/## end/$mark\n## end/" "$f""#
    };
    let command = format!(
        r#"end=$((SECONDS + {seconds})); i=0
while [ $SECONDS -lt $end ]; do
  i=$((i + 1)); mark=mark-s{name}-$i; f=/memory/user/e$((({name} * 7 + i) % {ENTRIES})).md
  {how} 2> /dev/null && echo "ok $mark"
done"#
    );
    world.script(&[Turn(&[shell(&command)])])
}

fn start(world: &World, script: &str, dir: &str) -> Child {
    let args = ["run", "Write.", "--dir", dir, "--script", script, "--max-steps", "100000"];
    let mut command = world.outrigger(&args);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn wait(children: Vec<Child>) {
    let since = Instant::now();
    for mut child in children {
        while child.try_wait().unwrap().is_none() {
            assert!(since.elapsed() < PATIENCE, "they did not come to an end");
            std::thread::sleep(Duration::from_millis(20)); // poll: many children, one deadline
        }
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
    }
}

/// The marks that sessions were told are written.
fn told(world: &World) -> (BTreeSet<String>, BTreeMap<String, u64>) {
    let (mut marks, mut refused) = (BTreeSet::new(), BTreeMap::new());
    for row in world.sessions() {
        let events = world.events(row["session"].as_str().unwrap());
        let mut asked = Vec::new();
        for event in &events {
            let parts = &event["settled"]["outcome"]["done"]["reply"]["parts"];
            for part in parts.as_array().into_iter().flatten() {
                if let Some(arguments) = part["call"]["arguments"].as_str() {
                    let given: Value = serde_json::from_str(arguments).unwrap();
                    let new = given["new_string"].as_str().unwrap_or_default();
                    asked.push(new.lines().next().unwrap_or_default().to_owned());
                }
            }
            let Some(text) = event["settled"]["outcome"]["done"]["output"]["text"].as_str() else {
                continue;
            };
            if text.starts_with("Edited ") {
                marks.insert(asked.last().unwrap().clone());
            } else if text.starts_with("conflict") {
                *refused.entry("edits".to_owned()).or_default() += 1;
            }
            let said = text.lines().filter_map(|line| line.strip_prefix("ok "));
            marks.extend(said.map(str::to_owned));
        }
    }
    (marks, refused)
}

#[test]
fn fifty_sessions_and_eight_shells_lose_nothing() {
    let world = World::new();
    let given = world.path("given");
    fs::write(&given, "# begin\n## end\n").unwrap();
    for number in 0..ENTRIES {
        world.ran(0, &["memory", "put", &entry(number), given.to_str().unwrap()]);
    }
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let dir = dir.to_str().unwrap();
    let seconds = seconds();
    let edits = usize::try_from(seconds).unwrap() * 3;
    let shells = (0..SHELLS).map(|name| looping(&world, name, seconds));
    let shells: Vec<_> = shells.collect();
    let sessions: Vec<_> = (0..SESSIONS).map(|name| editing(&world, name, edits)).collect();
    let all = shells.iter().chain(&sessions);
    wait(all.map(|script| start(&world, script, dir)).collect());

    let (marks, refused) = told(&world);
    let mut text = String::new();
    let mut versions = 0;
    for number in 0..ENTRIES {
        let path = entry(number);
        text.push_str(&world.ran(0, &["memory", "cat", &path]).stdout);
        let history = world.ran(0, &["memory", "history", &path, "--json"]).json();
        let history = history["versions"].as_array().unwrap().clone();
        versions += history.len();
        // Complete: from the newest to the first, none left out, each somebody's.
        for (at, version) in history.iter().enumerate() {
            assert_eq!(version["revision"].as_u64().unwrap() as usize, history.len() - at);
            assert_eq!(version["author"], "person:local");
            assert!(version["session"].is_string() || version["revision"] == 1, "{version}");
        }
    }
    let mut times = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("mark-")) {
        *times.entry(line.to_owned()).or_insert(0) += 1;
    }
    let mut wrong = String::new();
    for mark in &marks {
        if times.get(mark) != Some(&1) {
            writeln!(wrong, "{mark}: {:?} times", times.get(mark)).unwrap();
        }
    }
    assert!(wrong.is_empty(), "told to be written:\n{wrong}");
    let by_tools = marks.iter().filter(|mark| mark.starts_with("mark-t")).count();
    let by_shells = marks.len() - by_tools;
    println!(
        "{by_tools} edits by tools, {by_shells} by shells, {versions} versions, refused {refused:?}"
    );
    assert!(by_tools >= SESSIONS * edits / 2 && by_shells >= SHELLS, "{by_tools} {by_shells}");
}
