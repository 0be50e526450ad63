//! SIGKILL at random moments: a session goes on as if nothing had been.

mod deeds;
mod record;

use crate::support::{Random, Running, Turn, World, shell, until};
use deeds::expected;
use record::{Struck, shape, under_way};
use serde_json::Value;
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
/// From when its subagents are opened to the kill, at most: about as long as they work, of
/// which the session tells nothing.
const BELOW_US_MAX: u64 = 400_000;
/// From a start to its kill, at most, where no event is waited for: the session may not
/// even be opened.
const EARLY_US_MAX: u64 = 60_000;

/// What a patch adds.
fn added(patch: &str) -> String {
    let patch = fs::read_to_string(patch).unwrap();
    let lines = patch.lines().filter(|line| !line.starts_with("+++"));
    lines.filter_map(|line| line.strip_prefix('+')).map(|line| format!("{line}\n")).collect()
}

/// A process that tells what happens, and what it has told.
struct EventLines {
    running: Running,
    more: Receiver<String>,
    lines: Vec<String>,
}

impl EventLines {
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
        while self.lines.len() < lines && self.hears() {}
    }

    /// Waits for so many lines, the last, or one that asks for a subagent. Says whether it is
    /// one that asks.
    fn wait_for_below(&mut self, lines: usize) -> bool {
        let asked = |told: &Self| told.lines.last().is_some_and(|line| deeds::asks_below(line));
        while self.lines.len() < lines && !asked(self) && self.hears() {}
        asked(self)
    }

    /// Waits for a line. There may be none any more.
    fn hears(&mut self) -> bool {
        let line = self.more.recv().ok();
        self.lines.extend(line.clone());
        line.is_some()
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

struct Killing<'a> {
    world: &'a World,
    script: &'a str,
    most: usize,
    kills: &'a AtomicUsize,
    struck: &'a Mutex<BTreeMap<(Struck, Vec<Struck>), usize>>,
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
            let mut told = EventLines::by(self.start(title, session.as_deref()));
            if self.kills.load(Ordering::Relaxed) >= self.most {
                return told.end();
            }
            let events: Vec<_> = events.iter().map(|record| record["event"].clone()).collect();
            let most = self.wait(title, &mut told, &events, random);
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

    /// Waits for what precedes a kill. Gives the time in µs after which it comes, at most.
    fn wait(
        &self,
        title: &str,
        told: &mut EventLines,
        events: &[Value],
        random: &mut Random,
    ) -> u64 {
        let most = usize::try_from(random.next() % EVENTS_MAX).unwrap();
        let below = match random.next() % 4 {
            0 => return EARLY_US_MAX,
            _ if under_way(events) == Struck::Subagent => true,
            1 => {
                told.wait_for(most);
                false
            }
            _ => told.wait_for_below(most),
        };
        if !below {
            return DELAY_US_MAX;
        }
        let session = self.named(title).unwrap();
        until("the subagents are opened", || {
            let opened = deeds::have_begun(self.world, &session);
            (opened || told.running.has_ended()).then_some(())
        });
        BELOW_US_MAX
    }

    /// Notes what a kill hit.
    fn note(&self, title: &str) {
        let struck = match self.named(title) {
            None => (Struck::Opening, Vec::new()),
            Some(session) => match under_way(&self.world.events(&session)) {
                Struck::Subagent => (Struck::Subagent, deeds::below(self.world, &session)),
                struck => (struck, Vec::new()),
            },
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
        deeds::check(self.world, &session, title);
        let shown = self.world.ran(0, &["sessions", "show", &session, "--json"]);
        assert_eq!(shown.json()["status"], "answered");
    }
}

/// Kills as often as the environment says, else a few times.
fn killed(world: World) {
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
    killed_at(world, seed, most);
}

fn killed_at(world: World, seed: u64, most: usize) {
    let script = deeds::configure(&world);
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let target = dir.to_str().unwrap();
    let whole = world.ran(0, &["run", "whole", "--dir", target, "--script", &script, "--json"]);
    assert_eq!(added(whole.json()["patch"].as_str().unwrap()), expected());
    let session = world.session();
    let wanted = shape(&world.events(&session));
    deeds::check(&world, &session, "whole");
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
    println!("{} kills of {} sessions:", kills.load(Ordering::Relaxed), world.sessions().len());
    for ((at, below), times) in &struck {
        println!("{times:5} {at:?} {below:?}");
    }
    for wanted in [Struck::Model, Struck::Command, Struck::Outside, Struck::Subagent] {
        let struck = struck.keys().any(|(at, _)| *at == wanted);
        assert!(struck, "no kill came while one was under way: {wanted:?}");
    }
    let sandboxes = fs::read_dir(world.data().join("native/sandboxes")).unwrap();
    let names = sandboxes.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // Those in which a server was asked for its tools when it was killed end by their age.
    let (of_tools, names): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with("tools-"));
    println!("{} sandboxes of servers were left to their age", of_tools.len());
    let sessions = world.sessions().len();
    let below: Vec<_> = names.iter().filter(|name| name.contains('-')).collect();
    assert_eq!((names.len(), below.len()), (2 * sessions, 0), "two for each session: {below:?}");
    let audit = world.ran(0, &["audit", "verify", "--json"]).json();
    let all = sessions * (1 + deeds::BEFORE.len());
    assert_eq!(audit["sessions"], all, "with each session its subagents: {audit}");
}

#[test]
fn a_session_killed_at_any_moment_goes_on_and_does_nothing_twice() {
    killed(World::new());
}

#[test]
fn a_session_killed_at_any_moment_goes_on_in_a_database_of_postgresql() {
    killed(World::on_postgres());
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
