//! `sessions`: looking at them, going on with them, ending them.

use crate::support::{Ran, Running, Turn, World, is_alive, parent_of, processes, shell, until};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

/// A world with a session whose command runs until it is stopped or told to end.
struct Busy {
    world: World,
    running: Running,
    session: String,
}

/// Ends when a file `go` appears. Its shell can be found from outside by its last word.
const ENDLESS: &str = "trap '' INT TERM HUP; echo begun >> log; \
    (setsid sh -c 'trap \"\" INT TERM HUP; while [ ! -e go ]; do sleep 0.01; done' own-session &) ; \
    while [ ! -e go ]; do sleep 0.01; done; echo went >> log";

fn busy(flags: &[&str]) -> Busy {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let script = world.script(&[Turn(&[shell(ENDLESS)]), Turn(&[shell("echo after >> log")])]);
    let mut args =
        vec!["run", "Wait.", "--dir", dir.to_str().unwrap(), "--script", &script, "--json"];
    args.extend(flags);
    let running = world.start(&args);
    let session = world.await_command();
    let log = world.upper(&session).join("log");
    until("the command has begun", || log.exists().then_some(()));
    let is_named_so = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.ends_with(b"\0own-session\0")
    };
    until("its child has begun", || world.commands().iter().any(is_named_so).then_some(()));
    Busy { world, running, session }
}

impl World {
    /// A sandbox's workspace as the host has it.
    fn upper(&self, session: &str) -> std::path::PathBuf {
        self.data().join(format!("native/sandboxes/{session}.work/upper/workspace"))
    }

    fn status(&self, session: &str) -> Value {
        self.ran(0, &["sessions", "show", session, "--json"]).json()["status"].clone()
    }

    /// Processes of this world's sandboxes, but for their guests: those of its spawner's tree.
    fn commands(&self) -> Vec<u32> {
        let Some(spawner) = self.spawner() else { return Vec::new() };
        let parents: BTreeMap<u32, u32> =
            processes().into_iter().filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
        let depth = |pid: u32| {
            let mut line = std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
            line.position(|pid| pid == spawner)
        };
        let inside = parents.keys().filter(|pid| depth(**pid).is_some_and(|depth| depth > 1));
        inside.copied().filter(|pid| is_alive(*pid)).collect()
    }

    fn sandboxes(&self) -> usize {
        fs::read_dir(self.data().join("native/sandboxes")).unwrap().count()
    }
}

#[test]
fn sessions_are_listed_shown_and_named_by_their_beginning() {
    let world = World::new();
    assert_eq!(world.ran(0, &["sessions", "ls"]).stdout, "");
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let script = world.script(&[]);
    let mut by_first: BTreeMap<char, Vec<String>> = BTreeMap::new();
    // Names begin with one of 32 characters, so that by the 33rd two begin alike.
    let twice = (0..33).find_map(|number| {
        let task = format!("Task {number}\nwith a second line");
        let target = dir.to_str().unwrap();
        world.ran(0, &["run", &task, "--dir", target, "--script", &script, "--quiet"]);
        let newest = world.sessions()[0].clone();
        assert_eq!(newest["title"], format!("Task {number}"));
        let name = newest["session"].as_str().unwrap().to_owned();
        let first = name.chars().next().unwrap();
        let alike = by_first.entry(first).or_default();
        alike.push(name);
        (alike.len() > 1).then_some(first)
    });
    let first = twice.expect("there are only 32 first characters").to_string();
    let names = &by_first[&first.chars().next().unwrap()];
    let common = names[0].chars().zip(names[1].chars()).take_while(|(a, b)| a == b).count();
    let shortest = &names[0][..=common];
    let count: usize = by_first.values().map(Vec::len).sum();

    let listed = world.ran(0, &["sessions", "ls"]).stdout;
    assert_eq!(listed.lines().count(), count.min(20));
    assert!(listed.lines().all(|line| line.contains("  answered  ")), "{listed}");
    assert_eq!(world.ran(0, &["sessions", "ls", "-n", "1"]).stdout.lines().count(), 1);

    for command in ["show", "logs", "resume", "cancel"] {
        let refused = |name: &str, code: i32| {
            let ran = world.ran(code, &["sessions", command, name, "--json"]);
            assert_eq!(ran.json()["error"]["exit_code"], code, "{command} {name}");
        };
        refused(&first, 2);
        refused("", 2);
        refused("UNKNOWN", 4);
    }
    let answer = world.ran(0, &["sessions", "show", shortest, "--quiet"]);
    assert_eq!(answer.stdout, "[scripted] That is all.\n");
    let Ran { stdout, stderr, .. } = world.ran(0, &["sessions", "show", shortest]);
    assert!(stdout.contains(&names[0]) && stdout.contains("› Task"), "{stdout}");
    assert!(stdout.contains("That is all.") && stderr.is_empty(), "{stdout} {stderr}");
    let object = world.ran(0, &["sessions", "show", &names[1], "--json"]).json();
    assert_eq!(
        (&object["session"], &object["scripted"]),
        (&names[1].as_str().into(), &true.into())
    );

    let logs = world.ran(0, &["sessions", "logs", shortest]);
    assert!(logs.stdout.contains("› Task") && logs.stdout.contains("● done"), "{logs:?}");
    assert_eq!(logs.stderr, "");
    let whole = world.ran(0, &["sessions", "logs", shortest, "--json"]).lines();
    let rest = world.ran(0, &["sessions", "logs", shortest, "--json", "--since", "2"]).lines();
    assert_eq!(whole[2..], rest);
}

#[test]
fn a_running_session_is_followed_until_it_waits() {
    let Busy { world, running, session } = busy(&[]);
    let path = world.path("followed");
    let mut follow = world.outrigger(&["sessions", "logs", "-f", &session, "--json"]);
    let followed = fs::File::create(&path).unwrap();
    let mut follow = follow.stdout(followed).stderr(Stdio::inherit()).spawn().unwrap();
    until("the listener is at the command", || {
        fs::read_to_string(&path).unwrap().contains("own-session").then_some(())
    });
    world.beside(&session, &["touch", "go"]);
    running.end().expect(0);
    assert!(follow.wait().unwrap().success());
    let logs = world.ran(0, &["sessions", "logs", &session, "--json"]);
    // The disk is kept when the session waits already.
    let followed = fs::read_to_string(&path).unwrap();
    let rest = logs.stdout.strip_prefix(&followed).expect("what was followed comes first");
    let mut rest = rest.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let kept = |line: Value| line["record"]["event"]["sandbox_kept"].is_object();
    assert!(followed.contains("turn_ended") && rest.all(kept), "{followed}");
}

#[test]
fn one_process_at_a_time_drives_a_session() {
    let Busy { world, running, session } = busy(&[]);
    let refused = world.ran(5, &["sessions", "resume", &session, "--json"]);
    assert_eq!(refused.json()["error"]["code"], "conflict");
    assert!(refused.stderr.contains("outrigger attach"), "{}", refused.stderr);
    world.beside(&session, &["touch", "go"]);
    running.end().expect(0);
}

#[test]
fn cancelling_a_session_of_another_process_kills_its_command() {
    let Busy { world, running, session } = busy(&["--apply"]);
    let commands = world.commands();
    assert!(commands.len() >= 2, "{commands:?}");
    let cancelled = world.ran(0, &["sessions", "cancel", &session, "--json"]);
    assert_eq!(cancelled.json()["type"], "cancelled");
    assert!(!commands.into_iter().any(is_alive), "it outlived the cancel");
    assert_eq!(world.sandboxes(), 0);
    let driver = running.end().expect(1);
    assert_eq!(driver.json()["status"], "cancelled");
    // Who drove it does not bring the sandbox back, nor write half of the work.
    assert_eq!(world.sandboxes(), 0);
    assert!(!world.path("repo/log").exists());
    assert_eq!(world.status(&session), "cancelled");
    assert_eq!(
        world.ran(5, &["sessions", "resume", &session, "--json"]).json()["error"]["code"],
        "conflict"
    );
    world.ran(0, &["sessions", "cancel", &session]);
}

#[test]
fn cancelling_does_not_depend_on_who_drives() {
    let Busy { world, mut running, session } = busy(&[]);
    let commands = world.commands();
    running.signal(Signal::STOP);
    world.ran(0, &["sessions", "cancel", &session]);
    assert!(!commands.into_iter().any(is_alive), "it outlived the cancel");
    assert_eq!(world.sandboxes(), 0);
    running.signal(Signal::CONT);
    running.end().expect(1);
    assert_eq!((world.sandboxes(), world.status(&session)), (0, "cancelled".into()));
}

#[test]
fn a_crashed_session_can_be_cancelled() {
    let Busy { world, running, session } = busy(&[]);
    let commands = world.commands();
    running.kill();
    assert!(commands.iter().any(|pid| is_alive(*pid)), "commands outlive who asked for them");
    assert_eq!(world.status(&session), "interrupted");
    world.ran(0, &["sessions", "cancel", &session]);
    assert!(!commands.into_iter().any(is_alive));
    assert_eq!((world.sandboxes(), world.status(&session)), (0, "cancelled".into()));
}

#[test]
fn a_crashed_session_waits_for_its_command() {
    let Busy { world, running, session } = busy(&[]);
    running.kill();
    let resumed = world.start(&["sessions", "resume", &session, "--json"]);
    world.beside(&session, &["touch", "go"]);
    let object = resumed.end().expect(0).json();
    let patch = fs::read_to_string(object["patch"].as_str().unwrap()).unwrap();
    assert!(patch.contains("+begun\n+went\n+after\n"), "{patch}");
}

#[test]
fn a_command_that_died_with_its_sandbox_is_unknown_and_not_repeated() {
    let Busy { world, running, session } = busy(&[]);
    let (commands, spawner) = (world.commands(), world.spawner().unwrap());
    running.kill();
    let spawner = rustix::process::Pid::from_raw(i32::try_from(spawner).unwrap()).unwrap();
    rustix::process::kill_process(spawner, Signal::KILL).unwrap();
    until("every process of the sandbox ends with its spawner", || {
        (!commands.iter().any(|pid| is_alive(*pid))).then_some(())
    });
    let object = world.ran(0, &["sessions", "resume", &session, "--json"]).json();
    let events = world.events(&session);
    let count = |name: &str| events.iter().filter(|event| event.get(name).is_some()).count();
    assert_eq!((count("sandbox_lost"), object["status"].as_str()), (1, Some("answered")));
    let unknown = |event: &&Value| !event["settled"]["outcome"]["unknown"].is_null();
    assert_eq!(events.iter().filter(unknown).count(), 1);
    let patch = fs::read_to_string(object["patch"].as_str().unwrap()).unwrap();
    assert!(patch.contains("+begun\n+after\n"), "{patch}");
}

/// Nobody waits for a driver that is gone.
#[test]
fn a_session_whose_driver_was_killed_is_told_as_interrupted() {
    let Busy { world, running, session } = busy(&[]);
    assert_eq!(world.sessions()[0]["status"], "running");
    let path = world.path("followed");
    let mut follow = world.outrigger(&["sessions", "logs", "-f", &session]);
    let followed = fs::File::create(&path).unwrap();
    let mut follow = follow.stdout(followed).spawn().unwrap();
    until("the listener is at the command", || {
        fs::read_to_string(&path).unwrap().contains("execute").then_some(())
    });
    running.kill();
    until("the listener ends", || follow.try_wait().unwrap());
    let followed = fs::read_to_string(&path).unwrap();
    assert!(followed.contains(&format!("sessions resume {session}")), "{followed}");
    assert_eq!(world.sessions()[0]["status"], "interrupted");
    assert!(world.ran(0, &["sessions", "ls"]).stdout.contains("  interrupted  "));
    let resumed = world.start(&["sessions", "resume", &session]);
    until("somebody drives it again", || {
        (world.sessions()[0]["status"] == "running").then_some(())
    });
    world.beside(&session, &["touch", "go"]);
    resumed.end().expect(0);
}

#[test]
fn an_interrupt_stops_the_turn_and_keeps_the_session() {
    for signal in [Signal::INT, Signal::TERM] {
        interrupted_by(signal);
    }
}

fn interrupted_by(signal: Signal) {
    let Busy { world, mut running, session } = busy(&[]);
    let commands = world.commands();
    running.signal(signal);
    let ran = running.end().expect(130);
    assert_eq!(ran.json()["status"], "interrupted");
    assert!(ran.stderr.contains(&format!("sessions resume {session}")), "{}", ran.stderr);
    assert!(!commands.into_iter().any(is_alive), "it outlived the interrupt");
    assert_eq!(world.sandboxes(), 1);
    let object = world.ran(0, &["sessions", "resume", &session, "--json"]).json();
    let patch = fs::read_to_string(object["patch"].as_str().unwrap()).unwrap();
    assert!(patch.contains("+begun\n+after\n"), "{patch}");
    assert_eq!(world.sandboxes(), 1, "more may be said");
}

#[test]
fn a_limit_that_was_reached_can_be_raised() {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let turns: Vec<_> = (0..6).map(|n| [shell(&format!("echo {n} >> log"))]).collect();
    let turns: Vec<_> = turns.iter().map(|calls| Turn(calls)).collect();
    let script = world.script(&turns);
    let target = dir.to_str().unwrap();
    let args =
        ["run", "Count.", "--dir", target, "--script", &script, "--max-steps", "4", "--json"];
    let ran = world.ran(11, &args);
    assert_eq!(ran.json()["error"]["code"], "budget_exhausted");
    let session = world.session();
    assert_eq!(world.status(&session), "out of steps");
    let raised = ["sessions", "resume", &session, "--max-steps", "100", "--json"];
    let object = world.ran(0, &raised).json();
    let patch = fs::read_to_string(object["patch"].as_str().unwrap()).unwrap();
    assert!(patch.contains("+0\n+1\n+2\n+3\n+4\n+5\n"), "{patch}");
}
