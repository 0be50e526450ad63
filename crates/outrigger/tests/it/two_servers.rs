//! Two servers with directories of their own over one database of PostgreSQL: what one does is seen
//! at the other, what people do at either is acted on where the sandboxes are, and where one dies
//! the other goes on.

use crate::serve::Served;
use crate::support::{Turn, World, shell, until, until_within};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

const RULES: &str = r#"
@id("touching-asks")
@approvable("anyone")
forbid (principal, action == Action::"execute", resource)
when { context has shell && context.shell.programs.contains("touch") };
"#;

/// How long it may take on a busy machine until everything has ended.
const PATIENCE: Duration = Duration::from_secs(240);

/// Two servers over one database, which play the same script.
fn two(turns: &[Turn<'_>]) -> (Served, Served) {
    let first = World::on_postgres();
    // Its key is there before the other one is given it.
    first.ran(0, &["sessions", "ls"]);
    let second = first.beside_on_postgres();
    let rules = first.path("careful.cedar");
    fs::write(&rules, RULES).unwrap();
    let script = first.script(turns);
    let served = |world: World| {
        world.configure(&format!("[policy]\nfiles = [{:?}]\n", rules.display().to_string()));
        let dir = world.dir("repo", &[("file", b"one\n")]);
        Served::new(world, &dir, &script)
    };
    (served(first), served(second))
}

/// A turn that waits for a person.
fn asks() -> (&'static str, Value) {
    shell("touch /workspace/asked; echo asked")
}

/// Approves everything that waits for a person.
fn approve_all(served: &Served) {
    let (_, inbox) = served.get("/v1/approvals");
    for waiting in inbox["data"].as_array().unwrap_or_else(|| panic!("{inbox}")) {
        let path = format!("/v1/approvals/{}", waiting["id"].as_str().unwrap());
        let (status, told) = served.post(&path, &json!({ "answer": "approve" }));
        assert_eq!(status, 202, "{told}");
    }
}

/// Whether an event says that a sandbox was lost.
fn is_loss(event: &Value) -> bool {
    event["text"].as_str().is_some_and(|text| text.starts_with("the sandbox ended"))
}

/// How many commands were begun, as an API client sees it.
fn begun(served: &Served, session: &str) -> usize {
    let events = served.events(session);
    let begun = events.iter().filter(|it| it["type"] == "started" && !it["sandbox"].is_null());
    begun.count()
}

/// The events of a session are those of its journal, each once, and gives them.
fn gapless(world: &World, session: &str) -> Vec<Value> {
    let records = world.records(session);
    let places = records.iter().map(|record| record["seq"].as_u64().unwrap());
    assert!(places.eq(1..=records.len() as u64), "{records:?}");
    records.into_iter().map(|record| record["event"].clone()).collect()
}

/// Each effect is settled once; gives what became of them.
fn outcomes(events: &[Value]) -> BTreeMap<u64, Value> {
    let mut all = BTreeMap::new();
    for settled in events.iter().map(|event| &event["settled"]).filter(|it| !it.is_null()) {
        let effect = settled["effect"].as_u64().unwrap();
        assert_eq!(all.insert(effect, settled["outcome"].clone()), None, "{events:?}");
    }
    all
}

#[test]
fn where_a_server_dies_the_other_goes_on() {
    // Each command leaves a line, so that one that ran twice shows.
    let line =
        |n: u32| format!("echo line-{n} >> /workspace/lines; sleep 0.4; cat /workspace/lines");
    let commands: Vec<String> = (0..6).map(line).collect();
    let mut turns: Vec<Turn<'_>> = Vec::new();
    let calls: Vec<[(&str, Value); 1]> = commands.iter().map(|it| [shell(it)]).collect();
    turns.extend(calls.iter().map(|calls| Turn(calls)));
    let asked = [asks()];
    turns.push(Turn(&asked));
    let last = [shell("echo line-6 >> /workspace/lines; cat /workspace/lines")];
    turns.push(Turn(&last));
    let (mut first, second) = two(&turns);
    let sessions: Vec<String> = (0..20).map(|_| first.create("Do it.")).collect();
    until_within(PATIENCE, "many commands are under way", || {
        let many = sessions.iter().filter(|session| begun(&second, session) > 1).count();
        (many >= 10).then_some(())
    });
    first.kill();
    let killed = Instant::now();
    until_within(PATIENCE, "the other server goes on with one", || {
        sessions.iter().find(|session| second.events(session).iter().any(is_loss)).map(drop)
    });
    println!("the other server went on after {:?}", killed.elapsed());
    until_within(PATIENCE, "all sessions have ended", || {
        approve_all(&second);
        let (_, listed) = second.get("/v1/sessions?limit=100");
        let all = listed["data"].as_array().unwrap();
        let answered = all.iter().filter(|session| session["status"] == "answered").count();
        (answered == sessions.len()).then_some(())
    });
    let mut unknown = 0;
    for session in &sessions {
        let events = gapless(&second.world, session);
        for outcome in outcomes(&events).values() {
            unknown += usize::from(!outcome["unknown"].is_null());
            let text = outcome.to_string();
            for n in 0..=6 {
                // Never twice in one sandbox.
                assert!(text.matches(&format!("line-{n}")).count() <= 1, "{session}: {text}");
            }
        }
        let told = events.iter().filter(|event| !event["sandbox_lost"].is_null()).count();
        assert!(told <= 1, "{events:?}");
    }
    println!("{unknown} commands were under way, and are not known to have ended");
    let report = second.world.ran(0, &["audit", "verify", "--json"]).json();
    assert_eq!((&report["ok"], &report["sessions"]), (&json!(true), &json!(20)), "{report}");
}

#[test]
fn what_people_do_at_one_server_is_done_at_the_other() {
    let long = [shell("echo begun; sleep 100")];
    let asked = [asks()];
    let (first, second) = two(&[Turn(&asked), Turn(&[shell("ls /workspace")]), Turn(&long)]);
    let session = first.create("Ask me.");
    second.await_status(&session, "waits for approval");
    // The first one let it go long ago. It has the sandbox, and goes on.
    approve_all(&second);
    until("its long command runs", || (begun(&second, &session) == 3).then_some(()));
    let (status, told) = second.get(&format!("/v1/sessions/{session}/changes"));
    assert_eq!((status, &told["code"]), (409, &json!("conflict")), "{told}");
    let (status, told) = second.post(&format!("/v1/sessions/{session}/interrupt"), &json!({}));
    assert_eq!(status, 202, "{told}");
    until("it is interrupted", || {
        second.events(&session).iter().any(|event| event["type"] == "turn_ended").then_some(())
    });
    let (status, told) =
        second.post(&format!("/v1/sessions/{session}/messages"), &json!({ "text": "Go on." }));
    assert_eq!(status, 202, "{told}");
    until("it answers", || {
        let ends = second.events(&session).into_iter().filter(|it| it["type"] == "turn_ended");
        (ends.count() == 2).then_some(())
    });
    let events = gapless(&first.world, &session);
    assert!(events.iter().all(|event| event["sandbox_lost"].is_null()), "{events:?}");
}

#[test]
fn what_one_server_does_is_told_at_the_other() {
    let (first, second) = two(&[Turn(&[shell("true")])]);
    let session = first.create("Do it.");
    first.await_status(&session, "answered");
    let mut curl = second.world.command("curl");
    let url = format!("{}/v1/sessions/{session}/stream", second.url);
    curl.args(["--silent", "--no-buffer", "--max-time", "60", "--cookie", &second.jar(), &url]);
    let mut following = curl.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut text = "Again.".to_owned();
    let mut read = |wanted: &str| loop {
        let line = lines.next().expect("it goes on").unwrap();
        if line.contains(wanted) {
            return;
        }
    };
    read("turn_ended");
    let mut took = Vec::new();
    for n in 0..5 {
        // A script that has come to its end fails a turn, which ends it as well.
        text.push_str(&n.to_string());
        let begun = Instant::now();
        let body = json!({ "text": text });
        let (status, told) = first.post(&format!("/v1/sessions/{session}/messages"), &body);
        assert_eq!(status, 202, "{told}");
        read(&text);
        took.push(begun.elapsed());
        read("turn_ended");
    }
    println!("said at one server and seen at the other after {took:?}");
    following.kill().unwrap();
    following.wait().unwrap();
}

#[test]
fn a_server_that_stands_still_holds_nothing() {
    let (mut first, second) =
        two(&[Turn(&[shell("echo one; sleep 2")]), Turn(&[shell("echo two")])]);
    let sessions: Vec<String> = (0..6).map(|_| first.create("Do it.")).collect();
    until("a command runs", || {
        sessions.iter().any(|session| begun(&second, session) == 1).then_some(())
    });
    first.signal(Signal::STOP);
    let stopped = Instant::now();
    until_within(PATIENCE, "the other server goes on", || {
        sessions.iter().find(|session| second.events(session).iter().any(is_loss)).map(drop)
    });
    println!("the other server went on after {:?}", stopped.elapsed());
    sessions.iter().for_each(|session| second.await_status(session, "answered"));
    first.signal(Signal::CONT);
    for session in &sessions {
        // It sees what happened, and does nothing to it.
        first.await_status(session, "answered");
        let events = gapless(&first.world, session);
        outcomes(&events);
        let ends = events.iter().filter(|event| !event["turn_ended"].is_null());
        assert_eq!(ends.count(), 1, "{events:?}");
    }
}
