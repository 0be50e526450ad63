//! SIGKILL at random moments: a session goes on as if nothing had been.

use crate::support::{Running, Turn, World, shell, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Kills in all, over as many sessions as they take; `OUTRIGGER_TEST_KILLS` asks for more.
const KILLS: usize = 100;
/// Sessions that are killed at the same time.
const AT_ONCE: usize = 2;
/// Events that a process tells of before it is killed, at most: each session has more, so
/// that kills come at all of its moments however fast the machine is.
const EVENTS_MAX: u64 = 24;
/// From the last of them to the kill, at most: about as long as the model thinks, or a
/// command runs.
const DELAY_US_MAX: u64 = 40_000;
/// From a start to its kill, at most, where no event is waited for: the session may not
/// even be opened.
const EARLY_US_MAX: u64 = 60_000;
/// How long the model thinks before each reply, so that some kills come meanwhile.
const THINKS_MS: u32 = 30;

/// Splitmix64, by Sebastiano Vigna (public domain).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Leaves a line when it begins and one when it ends: twice is seen, half is seen.
fn count(number: u32) -> (&'static str, Value) {
    shell(&format!("echo begin {number} >> log; sleep 0.03; echo end {number} >> log"))
}

const COUNTED: u32 = 9;

fn script(world: &World) -> String {
    let file = |name: &'static str, rest: Value| {
        let mut arguments = rest;
        arguments["file_path"] = json!("/workspace/notes");
        (name, arguments)
    };
    let path = world.script(&[
        Turn(&[count(1)]),
        Turn(&[file("write_file", json!({ "content": "one\n" }))]),
        Turn(&[count(2), count(3)]),
        Turn(&[file("edit_file", json!({ "old_string": "one", "new_string": "one two" }))]),
        Turn(&[count(4)]),
        Turn(&[file("read_file", json!({}))]),
        Turn(&[count(5), count(6)]),
        Turn(&[("grep", json!({ "pattern": "end", "path": "/workspace/log" }))]),
        Turn(&[count(7)]),
        Turn(&[count(8), count(9)]),
    ]);
    let text = fs::read_to_string(&path).unwrap();
    let slow = format!("[[turn]]\ndelay_ms = {THINKS_MS}\n");
    fs::write(&path, text.replace("[[turn]]\n", &slow)).unwrap();
    path
}

/// What happened, without the times, the costs, the names of this very run, and
/// further attempts at what a crash cut off.
fn shape(events: &[Value]) -> Vec<String> {
    let text = |event: &Value| {
        let (kind, body) = event.as_object()?.iter().next()?;
        let detail = match kind.as_str() {
            "proposed" => match body.get("call_tool") {
                Some(call) => format!("{} {}", call["tool"], call["call"]),
                None => body.to_string(),
            },
            "decided" => body["verdict"].to_string(),
            "started" if body["attempt"] != 1 => return None,
            "started" => format!("in {}", body["place"]["sandbox"]),
            "settled" => match &body["outcome"]["done"] {
                Value::Null => body["outcome"].to_string(),
                done if !done["sandbox"].is_null() => {
                    format!("sandbox {}", done["sandbox"]["replaces"])
                }
                done if !done["reply"].is_null() => done["reply"]["parts"].to_string(),
                done => done.to_string(),
            },
            "sandbox_kept" => body["sandbox"].to_string(),
            "opened" | "said" => String::new(),
            _ => body.to_string(),
        };
        Some(format!("{kind} {detail}"))
    };
    events.iter().filter_map(text).collect()
}

/// What a patch adds.
fn added(patch: &str) -> String {
    let patch = fs::read_to_string(patch).unwrap();
    let lines = patch.lines().filter(|line| !line.starts_with("+++"));
    lines.filter_map(|line| line.strip_prefix('+')).map(|line| format!("{line}\n")).collect()
}

fn expected() -> String {
    let counted: String = (1..=COUNTED).map(|n| format!("begin {n}\nend {n}\n")).collect();
    counted + "one two\n"
}

/// A process that tells what happens, and what it has told.
struct Told {
    running: Running,
    more: Receiver<String>,
    lines: Vec<String>,
}

impl Told {
    fn by(mut running: Running) -> Self {
        let (stdout, (tell, more)) = (running.stdout(), channel());
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).split(b'\n').map_while(Result::ok);
            // Nobody listens any more: fine.
            lines.for_each(|line| drop(tell.send(String::from_utf8_lossy(&line).into_owned())));
        });
        Self { running, more, lines: Vec::new() }
    }

    /// Waits for so many lines, or the last.
    fn wait_for(&mut self, lines: usize) {
        while self.lines.len() < lines {
            let Ok(line) = self.more.recv() else { return };
            self.lines.push(line);
        }
    }

    /// The last thing it tells: what it came to.
    fn end(mut self) -> Value {
        self.wait_for(usize::MAX);
        let ran = self.running.end();
        assert_eq!(ran.code, Some(0), "{ran:?}\n{:?}", self.lines);
        serde_json::from_str(self.lines.last().unwrap()).unwrap()
    }

    /// Kills it. Gives the events that it had said were durable.
    fn killed(mut self) -> Vec<Value> {
        self.running.kill();
        self.lines.extend(self.more.iter());
        // The last line may be cut.
        let lines = self.lines.iter().filter_map(|line| serde_json::from_str(line).ok());
        let events = lines.filter(|line: &Value| line["type"] == "event");
        events.map(|line| line["record"].clone()).collect()
    }
}

/// What was under way when a session's driver was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Struck {
    /// The session was not there yet.
    Opening,
    Model,
    Provision,
    Command,
    /// A file operation.
    Files,
    /// Nothing was.
    Between,
}

/// What the journal has begun and not ended.
fn under_way(events: &[Value]) -> Struck {
    // An effect is named by its place, from 1.
    let work = |effect: &Value| {
        let place = usize::try_from(effect.as_u64().unwrap()).unwrap();
        &events[place - 1]["proposed"]
    };
    let settled = |effect: &Value| events.iter().any(|event| event["settled"]["effect"] == *effect);
    let begun = events.iter().filter_map(|event| event["started"].get("effect"));
    match begun.rev().find(|effect| !settled(effect)).map(work) {
        None => Struck::Between,
        Some(work) if work == "ask_model" => Struck::Model,
        Some(work) if !work["provision"].is_null() => Struck::Provision,
        Some(work) if work["call_tool"]["tool"] == "execute" => Struck::Command,
        Some(_) => Struck::Files,
    }
}

struct Killing<'a> {
    world: &'a World,
    script: &'a str,
    most: usize,
    kills: &'a AtomicUsize,
    struck: &'a Mutex<BTreeMap<Struck, usize>>,
}

impl Killing<'_> {
    fn named(&self, title: &str) -> Option<String> {
        let sessions = self.world.sessions();
        let found = sessions.iter().find(|session| session["title"] == title)?;
        Some(found["session"].as_str().unwrap().to_owned())
    }

    /// Begins, or goes on where the last one was killed.
    fn start(&self, title: &str, session: Option<&str>) -> Running {
        let dir = self.world.dir(title, &[("file", b"file\n")]);
        let dir = dir.to_str().unwrap();
        match session {
            Some(session) => {
                self.world.start(&["sessions", "resume", session, "--apply", "--json=events"])
            }
            None => {
                let flags = ["--script", self.script, "--apply", "--json=events"];
                self.world.start(&[&["run", title, "--dir", dir], &flags[..]].concat())
            }
        }
    }

    /// Starts a session and kills who drives it until it comes to its end. Whatever any
    /// of them said had happened stays as it was said.
    fn session(&self, title: &str, random: &mut Random) -> Value {
        let mut said: Vec<Value> = Vec::new();
        loop {
            let session = self.named(title);
            let events = session.as_ref().map(|session| self.world.records(session));
            let events = events.unwrap_or_default();
            for record in &said {
                assert!(events.contains(record), "{title} lost what was acknowledged: {record}");
            }
            let mut told = Told::by(self.start(title, session.as_deref()));
            if self.kills.load(Ordering::Relaxed) >= self.most {
                return told.end();
            }
            let events =
                if random.next().is_multiple_of(4) { 0 } else { random.next() % EVENTS_MAX };
            told.wait_for(usize::try_from(events).unwrap());
            let most = if events == 0 { EARLY_US_MAX } else { DELAY_US_MAX };
            let delay = Duration::from_micros(random.next() % most);
            std::thread::sleep(delay); // poll: not a wait for anything, the random moment itself
            if told.running.has_ended() {
                return told.end();
            }
            said.extend(told.killed());
            self.kills.fetch_add(1, Ordering::Relaxed);
            self.note(title);
        }
    }

    /// Notes what a kill hit.
    fn note(&self, title: &str) {
        let struck = match self.named(title) {
            None => Struck::Opening,
            Some(session) => under_way(&self.world.events(&session)),
        };
        *self.struck.lock().unwrap().entry(struck).or_default() += 1;
    }

    /// The session came to the same end as one that nobody killed.
    fn check(&self, title: &str, object: &Value, wanted: &[String]) {
        let session = self.named(title).unwrap();
        assert_eq!(object["status"], "answered");
        assert_eq!(added(object["patch"].as_str().unwrap()), expected(), "{title}");
        let written = ["log", "notes"].map(|name| self.world.path(title).join(name));
        let written = written.map(|path| fs::read_to_string(path).unwrap()).concat();
        assert_eq!(written, expected(), "{title}");
        assert_eq!(shape(&self.world.events(&session)), wanted, "{title}");
        let shown = self.world.ran(0, &["sessions", "show", &session, "--json"]);
        assert_eq!(shown.json()["status"], "answered");
    }
}

fn killed_at(seed: u64, most: usize) {
    let world = World::new();
    let script = script(&world);
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let target = dir.to_str().unwrap();
    let whole = world.ran(0, &["run", "whole", "--dir", target, "--script", &script, "--json"]);
    assert_eq!(added(whole.json()["patch"].as_str().unwrap()), expected());
    let wanted = shape(&world.events(&world.session()));
    let kills = AtomicUsize::new(0);
    let struck = Mutex::default();
    let killing = Killing { world: &world, script: &script, most, kills: &kills, struck: &struck };
    std::thread::scope(|threads| {
        for thread in 0..AT_ONCE {
            let (killing, wanted) = (&killing, &wanted);
            threads.spawn(move || {
                let mut random = Random(seed.wrapping_add(thread as u64));
                for number in 0.. {
                    if killing.kills.load(Ordering::Relaxed) >= most {
                        break;
                    }
                    let title = format!("killed {thread}.{number}");
                    let object = killing.session(&title, &mut random);
                    killing.check(&title, &object, wanted);
                }
            });
        }
    });
    assert!(kills.load(Ordering::Relaxed) >= most);
    let struck = struck.into_inner().unwrap();
    println!("{} kills: {struck:?}", kills.load(Ordering::Relaxed));
    for wanted in [Struck::Model, Struck::Command] {
        assert!(struck.contains_key(&wanted), "no kill came while one was under way: {wanted:?}");
    }
    let sandboxes = fs::read_dir(world.data().join("native/sandboxes")).unwrap().count();
    assert_eq!(sandboxes, world.sessions().len(), "one for each session and none beside");
}

#[test]
fn a_session_killed_at_any_moment_goes_on_and_does_nothing_twice() {
    let seed = match std::env::var("OUTRIGGER_TEST_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => u64::from(std::process::id()),
    };
    // Shown if this fails. The moments are drawn from it; what they hit is up to the machine.
    println!("OUTRIGGER_TEST_SEED={seed}");
    let most = match std::env::var("OUTRIGGER_TEST_KILLS") {
        Ok(most) => most.parse().unwrap(),
        Err(_) => KILLS,
    };
    killed_at(seed, most);
}

/// More than a guest remembers of changing operations: an attempt at filling a
/// workspace must not depend on what it remembers of the one before.
const MANY: usize = 6_000;

#[test]
fn a_large_directory_is_copied_although_its_copying_was_killed() {
    let world = World::new();
    let dir = world.dir("many", &[]);
    for number in 0..MANY {
        fs::write(dir.join(format!("f{number}")), format!("{number}\n")).unwrap();
    }
    let script = world.script(&[Turn(&[shell("cat f* | cksum")])]);
    let target = dir.to_str().unwrap();
    let args = ["run", "Sum.", "--dir", target, "--script", &script];
    let filled = |count: usize| {
        let upper =
            || Some(fs::read_dir(world.data().join("native/sandboxes")).ok()?.next()?.ok()?.path());
        let files = || Some(fs::read_dir(upper()?.join("upper/workspace")).ok()?.count());
        (files() >= Some(count)).then_some(())
    };
    let running = world.start(&args);
    until("most files are copied", || filled(MANY - 500));
    running.kill();
    let session = world.session();
    let ran = world.ran(0, &["sessions", "resume", &session, "--json"]);
    assert_eq!(ran.json()["status"], "answered");
}
