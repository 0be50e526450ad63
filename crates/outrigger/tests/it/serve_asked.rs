//! What waits at a server, answered from a terminal by whoever is asked.

use crate::serve::LEADS;
use crate::serve_remote::{begun, ruled};
use crate::support::{World, until};
use std::fs;

#[test]
fn whoever_a_rule_names_answers_without_seeing_the_session() {
    let laptop = ruled(LEADS, &["echo two >> file"]);
    let stopped = laptop.world.ran(10, &["run", "--dir", laptop.dir(), "--json", "Do it."]).json();
    let (session, id) =
        (stopped["session"].as_str().unwrap(), stopped["waiting"][0].as_str().unwrap());
    // Whose session it is sees it, and may not approve it.
    let refused = laptop.world.ran(12, &["approve", id]).stderr;
    assert!(refused.contains("person:lea"), "{refused}");

    laptop.login("lea", "leas").expect(0);
    laptop.world.ran(0, &["context", "use", "leas"]);
    assert!(laptop.world.sessions().is_empty());
    let inbox = laptop.world.ran(0, &["inbox"]).stdout;
    assert!(inbox.contains(id) && inbox.contains("echo two >> file"), "{inbox}");
    let one = laptop.world.ran(0, &["inbox", id, "--json"]).json();
    assert_eq!((&one["tool"], &one["type"]), (&"execute".into(), &"waiting".into()), "{one}");
    assert_eq!(one["arguments_sha256"].as_str().unwrap().len(), 64, "{one}");
    // Its session may be named by its beginning.
    let short = format!("{}.{}", &session[..4], id.rsplit_once('.').unwrap().1);
    let approved = laptop.world.ran(0, &["approve", &short]).stderr;
    assert!(approved.contains("the server goes on with the session"), "{approved}");
    laptop.world.ran(5, &["approve", id]);

    laptop.world.ran(0, &["context", "use", "team"]);
    until("it is done", || (laptop.world.sessions()[0]["status"] == "answered").then_some(()));
    let events = laptop.world.events(session);
    let answers: Vec<_> = events.iter().filter_map(|it| it["answered"]["by"].as_str()).collect();
    assert_eq!(answers, ["person:lea"], "one yes is enough");
}

#[test]
fn what_a_budget_asks_is_named_and_answered() {
    let laptop = begun(World::new(), &["true"]);
    laptop.served.world.ran(0, &["budget", "set", "person:ada", "--soft-tokens", "1"]);
    let asked = ["run", "--dir", laptop.dir(), "--json", "Do it."];
    let stopped = laptop.world.ran(10, &asked).json();
    let id = stopped["waiting"][0].as_str().unwrap();
    assert!(id.ends_with(".budget"), "{id}");
    let inbox = laptop.world.ran(0, &["inbox"]);
    assert!(inbox.stdout.contains(id) && inbox.stdout.contains("soft limit"), "{inbox:?}");
    assert!(inbox.stderr.contains(&format!("outrigger approve {id}")), "{inbox:?}");
    let plain = id.strip_suffix(".budget").unwrap();
    laptop.world.ran(5, &["approve", plain]);
    laptop.world.ran(0, &["approve", id]);
}

#[test]
fn of_whoever_may_begin_nothing_nothing_is_packed() {
    let world = World::new();
    let people = world.path("people.toml");
    fs::write(&people, "[groups]\nviewer = [\"person:ada\"]\n").unwrap();
    world.configure(&format!("[policy]\npeople = {:?}\n", people.display().to_string()));
    let laptop = begun(world, &["true"]);
    let refused = laptop.world.ran(12, &["run", "--dir", laptop.dir(), "Do it."]).stderr;
    assert!(refused.contains("you may not begin sessions at this server"), "{refused}");
    assert!(!refused.contains("git history") && !refused.contains("sent from"), "{refused}");
}
