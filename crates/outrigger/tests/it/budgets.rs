//! Budgets with the real binary: money that a person is asked about, that runs out, and
//! that goes on; accounts above the session; and the switch that stops what runs.

use crate::support::{Ran, Turn, World, is_alive, processes, shell, until};
use serde_json::Value;
use std::fs;

/// A dollar for a million tokens in and two out, and so small that a cent is much.
const PRICED: &str =
    "output_tokens_max = 1000\ncontext_tokens = 100000\nprice = { input = 1.0, output = 2.0 }\n";

/// Runs a priced script with these arguments and configuration.
fn world(turns: &[Turn<'_>], config: &str) -> (World, Vec<String>) {
    let world = World::new();
    if !config.is_empty() {
        world.configure(config);
    }
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let script = world.script(turns);
    let text = fs::read_to_string(&script).unwrap();
    fs::write(&script, format!("{PRICED}{text}")).unwrap();
    let args = ["run", "Do it.", "--dir", dir.to_str().unwrap(), "--script", &script, "--json"];
    (world, args.map(str::to_owned).to_vec())
}

impl World {
    /// The month that it is, as budgets have it.
    fn month(&self) -> String {
        Ran::of(self.command("date").args(["-u", "+%Y-%m"]).output().unwrap()).expect(0).stdout
    }

    fn stops_with(&self, code: i32, args: &[String]) -> Value {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        self.ran(code, &args).lines().remove(0)
    }

    fn account(&self, name: &str) -> Value {
        let shown = self.ran(0, &["budget", "show", "--json"]).json();
        let accounts = shown["accounts"].as_array().unwrap();
        accounts.iter().find(|account| account["account"] == name).unwrap().clone()
    }
}

fn nanos(amounts: &Value) -> u64 {
    amounts["money_nanos"].as_u64().unwrap_or(0)
}

#[test]
fn money_is_asked_about_runs_out_and_goes_on_when_it_is_raised() {
    let soft = "[budget]\nsession = { dollars = 0.02, soft_dollars = 0.001 }\n";
    let turns = [Turn(&[shell("echo one")]), Turn(&[shell("echo two")])];
    let (world, run) = world(&turns, soft);
    // Already the first model call could cost more than a tenth of a cent.
    let told = world.stops_with(10, &run);
    let id = told["waiting"][0].as_str().unwrap().to_owned();
    let inbox = world.ran(0, &["inbox", "--json"]).json();
    assert_eq!(inbox["waiting"][0]["rules"][0], "budget.soft");
    assert_eq!(inbox["waiting"][0]["tool"], "ask the model");
    assert!(inbox["waiting"][0]["budget"].as_str().unwrap().contains("soft limit"));
    let people = world.ran(0, &["inbox"]).stdout;
    assert!(people.contains("crosses the soft limit on the money of the session"), "{people}");
    // A yes to anything else that was asked about it is none to this.
    let other = id.strip_suffix(".budget").unwrap();
    let told = world.ran(5, &["approve", other]).stderr;
    assert!(told.contains("nobody is asked"), "{told}");
    // No ends the turn, and resumed it asks again.
    world.ran(11, &["deny", &id]);
    let session = world.session();
    world.ran(10, &["sessions", "resume", &session]);
    // Yes goes on, without a further question, to the end or to the hard limit.
    world.ran(0, &["approve", &id]);
    let spent = nanos(&world.ran(0, &["sessions", "show", &session, "--json"]).json()["spent"]);
    assert!(spent > 0 && spent <= 20_000_000, "{spent}");
    let org = world.account("org");
    assert_eq!((nanos(&org["spent"]), nanos(&org["reserved"])), (spent, 0));
    assert_eq!(nanos(&world.account("user:local")["spent"]), spent);
}

#[test]
fn a_hard_limit_stops_a_session_so_that_it_can_be_resumed() {
    let turns = [Turn(&[shell("echo one")]), Turn(&[shell("echo two")])];
    let (world, mut run) = world(&turns, "");
    run.extend(["--max-dollars".to_owned(), "0.000001".to_owned()]);
    let stopped = world.stops_with(11, &run);
    assert_eq!(stopped["status"], "out of budget");
    let session = world.session();
    let told = world.ran(11, &["sessions", "resume", &session]).stderr;
    let least = told.split("--max-dollars ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(told.contains("the next step needs at least $"), "{told}");
    assert!(told.contains("and $0.000001 of $0.000001 is left to the session"), "{told}");
    assert!(!world.events(&session).iter().any(|event| event["started"].is_object()));
    // What it says is enough for the next step.
    world.run(&["sessions", "resume", &session, "--max-dollars", least]);
    assert!(world.events(&session).iter().any(|event| event["started"].is_object()));
    world.ran(0, &["sessions", "resume", &session, "--max-dollars", "1"]);
}

/// Five cents are enough for a small task with a usual model: a reply is asked to be shorter.
#[test]
fn a_small_limit_of_money_is_worked_with() {
    let (world, mut run) = world(&[Turn(&[shell("echo one")])], "");
    let script = &run[5];
    let text = fs::read_to_string(script).unwrap();
    let usual = "output_tokens_max = 16000\ncontext_tokens = 200000\nprice = { input = 3.0, output = 15.0 }\n";
    fs::write(script, text.replace(PRICED, usual)).unwrap();
    run.extend(["--max-dollars".to_owned(), "0.05".to_owned()]);
    let args: Vec<&str> = run.iter().map(String::as_str).collect();
    let done = world.ran(0, &args).json();
    assert!(nanos(&done["spent"]) <= 50_000_000, "{done}");
    let whole = 16_000 * 15_000;
    for event in world.events(&world.session()) {
        assert!(nanos(&event["started"]["reserved"]) < whole, "{event}");
    }
}

/// A command has the time that is left, and its model is told why it was killed.
#[test]
fn a_command_is_killed_when_the_session_s_time_is_over() {
    let (world, mut run) = world(&[Turn(&[shell("sleep 100000")])], "");
    run.extend(["--max-seconds".to_owned(), "5".to_owned()]);
    let args: Vec<&str> = run.iter().map(String::as_str).collect();
    world.run(&args);
    let events = world.events(&world.session());
    let told = events.iter().find_map(|event| {
        event["settled"]["outcome"]["done"]["output"]["text"].as_str().map(str::to_owned)
    });
    let told = told.unwrap();
    assert!(told.contains("the limits of this session leave no more"), "{told}");
}

/// What holds for a session's own limits holds for those above it.
#[test]
fn a_reply_is_as_long_as_an_account_has_room_for() {
    let (world, run) = world(&[Turn(&[shell("echo one")])], "");
    let script = &run[5];
    let text = fs::read_to_string(script).unwrap();
    let usual = "output_tokens_max = 16000\ncontext_tokens = 200000\nprice = { input = 3.0, output = 15.0 }\n";
    fs::write(script, text.replace(PRICED, usual)).unwrap();
    world.ran(0, &["budget", "set", "org", "--tokens", "20000"]);
    world.ran(0, &["budget", "set", "user:local", "--dollars", "0.05"]);
    let args: Vec<&str> = run.iter().map(String::as_str).collect();
    let done = world.ran(0, &args).json();
    assert!(nanos(&done["spent"]) <= 50_000_000, "{done}");
    let events = world.events(&world.session());
    assert!(!events.iter().any(|event| event["withheld"].is_object()), "{events:?}");
    let asked = events.iter().map(|event| &event["started"]["reserved"]);
    let asked: Vec<&Value> = asked.filter(|reserved| nanos(reserved) > 0).collect();
    assert_eq!(asked.len(), 2, "{events:?}");
    for reserved in asked {
        assert!(nanos(reserved) <= 50_000_000, "{reserved}");
        assert!(reserved["tokens"].as_u64() <= Some(20_000), "{reserved}");
    }
    // What the least does not fit into is refused as ever.
    world.ran(0, &["budget", "set", "user:local", "--dollars", "0.001"]);
    let told = world.ran(11, &args).stderr;
    assert!(told.contains("would exceed the limit on the money of `user:local`"), "{told}");
}

#[test]
fn a_command_is_killed_when_an_account_s_time_is_over() {
    let (world, run) = world(&[Turn(&[shell("sleep 100000")])], "");
    world.ran(0, &["budget", "set", "org", "--seconds", "5"]);
    let args: Vec<&str> = run.iter().map(String::as_str).collect();
    world.run(&args);
    let events = world.events(&world.session());
    let told = events.iter().find_map(|event| {
        event["settled"]["outcome"]["done"]["output"]["text"].as_str().map(str::to_owned)
    });
    let told = told.unwrap();
    assert!(told.contains("the limits of this session leave no more"), "{told}");
    let account = world.account("org");
    assert!(account["spent"]["wall_ms"].as_u64().unwrap() <= 5_000, "{account}");
}

#[test]
fn a_model_is_not_waited_for_when_an_account_s_time_is_over() {
    let (world, run) = world(&[], "");
    let script = &run[5];
    let text = fs::read_to_string(script).unwrap();
    fs::write(script, text.replace("[[turn]]\n", "[[turn]]\ndelay_ms = 60000\n")).unwrap();
    world.ran(0, &["budget", "set", "org", "--seconds", "1"]);
    let args: Vec<&str> = run.iter().map(String::as_str).collect();
    let told = world.ran(11, &args).stderr;
    assert!(told.contains("of the session or of an account was too little"), "{told}");
    assert!(told.contains("or `outrigger budget set` for an account"), "{told}");
}

#[test]
fn an_account_is_shared_by_sessions_and_raised_for_all() {
    let (world, run) = world(&[Turn(&[shell("echo one")])], "");
    world.ran(0, &["budget", "set", "user:local", "--dollars", "0.000001"]);
    let stopped = world.stops_with(11, &run);
    assert_eq!(stopped["status"], "out of budget");
    let args: Vec<&str> = run.iter().map(String::as_str).collect();
    let other = world.ran(11, &args);
    assert!(
        other.stderr.contains("would exceed the limit on the money of `user:local`"),
        "{other:?}"
    );
    world.ran(0, &["budget", "set", "user:local", "--dollars", "1", "--per", "month"]);
    // Once more if meanwhile a month ended, after which nothing is spent.
    let (account, again) = loop {
        let month = world.month();
        world.ran(0, &args);
        let account = world.account("user:local");
        // Counting everything anew from the journals finds the same.
        let again = world.ran(0, &["budget", "show", "--recount", "--json"]).json();
        if month == world.month() {
            break (account, again);
        }
    };
    assert!(nanos(&account["spent"]) > 0 && account["per"] == "month", "{account}");
    let again = again["accounts"].as_array().unwrap();
    assert!(again.contains(&account), "{account} in {again:?}");
}

#[test]
fn money_is_not_limited_without_a_price() {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let dir = dir.to_str().unwrap();
    let script = world.script(&[Turn(&[shell("true")])]);
    let run = ["run", "Do it.", "--dir", dir, "--max-dollars", "1"];
    let told = world.ran(2, &[&run[..], &["--script", &script]].concat()).stderr;
    assert!(told.contains("nobody said what the model"), "{told}");
    let mut asked = world.outrigger(&run);
    asked.args(["--model", "gpt-unheard-of"]).env("OPENAI_API_KEY", "sk-test-0123456789");
    let told = crate::support::Ran::of(asked.output().unwrap()).expect(2).stderr;
    assert!(told.contains("[[price]]") && told.contains("budget.prices"), "{told}");
    assert!(world.sessions().is_empty());
}

#[test]
fn the_switch_stops_what_runs_and_lets_nothing_further_start() {
    // Known by its length among those of other tests.
    let seconds = (100_000 + std::process::id()).to_string();
    let (world, run) = world(&[Turn(&[shell(&format!("sleep {seconds}"))])], "");
    let args: Vec<&str> = run.iter().map(String::as_str).collect();
    let mut running = world.start(&args);
    let session = world.await_command();
    let sleeps = || {
        let is = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).eq(["sleep", &seconds, ""].map(str::as_bytes))
        };
        processes().into_iter().filter(is).collect::<Vec<_>>()
    };
    let pids = until("the command runs", || Some(sleeps()).filter(|pids| !pids.is_empty()));
    let stopped = world.ran(0, &["budget", "stop", "org", "-m", "enough", "--json"]).json();
    assert_eq!(stopped["sessions"][0], session.as_str());
    until("the command is dead", || pids.iter().all(|pid| !is_alive(*pid)).then_some(()));
    until("the run ends", || running.has_ended().then_some(()));
    // In another process, and in a session of before.
    let refused = world.ran(11, &args);
    assert!(refused.stderr.contains("`org` was stopped: enough"), "{refused:?}");
    world.ran(11, &["sessions", "resume", &session]);
    world.ran(0, &["budget", "allow", "org"]);
    let shown = world.ran(0, &["budget", "show"]).stdout;
    assert!(shown.contains("org\n") && shown.contains("tokens"), "{shown}");
}

#[test]
fn a_name_that_nothing_is_charged_to_is_warned_of() {
    let world = World::new();
    let set = |account: &str| world.ran(0, &["budget", "set", account, "--dollars", "20"]).stderr;
    let warned = set("user:ada");
    let says = "nothing was ever charged to user:ada; sessions are charged to org and user:local";
    assert!(warned.contains(says), "{warned}");
    assert!(!set("user:local").contains("ever charged") && !set("org").contains("ever charged"));
}

#[test]
fn what_a_killed_process_reserved_is_shown_and_released_by_who_drives_next() {
    let (world, run) = world(&[Turn(&[shell("sleep 100000")])], "");
    let args: Vec<&str> = run.iter().map(String::as_str).collect();
    let running = world.start(&args);
    let session = world.await_command();
    let left = || world.ran(0, &["budget", "show", "--json"]).json()["left_behind"].clone();
    assert_eq!(left(), serde_json::json!([]), "somebody drives it");
    running.kill();
    let reserved = || world.account("org")["reserved"]["steps"].as_u64().unwrap();
    // Not by counting anew: the command may still run.
    world.ran(0, &["budget", "show", "--recount"]);
    assert_eq!((left(), reserved()), (serde_json::json!([session]), 1));
    let told = world.ran(0, &["budget", "show"]).stderr;
    assert!(told.contains(&format!("outrigger sessions cancel {session}")), "{told}");
    world.ran(0, &["sessions", "cancel", &session]);
    assert_eq!((left(), reserved()), (serde_json::json!([]), 0));
}

/// Nobody can be charged for it any more: it does not stand in the way of others for ever.
#[test]
fn what_a_killed_process_reserved_for_its_model_is_given_back() {
    let (world, run) = world(&[], "");
    let script = run[5].clone();
    let text = fs::read_to_string(&script).unwrap();
    fs::write(&script, text.replace("[[turn]]\n", "[[turn]]\ndelay_ms = 60000\n")).unwrap();
    world.ran(0, &["budget", "set", "org", "--steps", "3"]);
    let args: Vec<&str> = run.iter().map(String::as_str).collect();
    let account = || world.account("org");
    for session in 1..=3 {
        let running = world.start(&args);
        let reserved = || account()["reserved"]["steps"].as_u64().unwrap();
        until("the model is asked", || (reserved() == 1).then_some(()));
        running.kill();
        let account = account();
        assert_eq!(account["reserved"]["steps"], 0, "{session}: {account}");
        assert_eq!(account["spent"]["steps"], session, "the lost call stays charged");
        assert!(nanos(&account["spent"]) > 0, "as an estimate: {account}");
        let wall_ms = account["spent"]["wall_ms"].as_u64().unwrap();
        assert!(wall_ms < 300_000, "of time no more than went by: {wall_ms}");
    }
    let left = world.ran(0, &["budget", "show", "--json"]).json()["left_behind"].clone();
    assert_eq!(left, serde_json::json!([]));
}
