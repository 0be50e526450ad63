//! Hosts that are not in the network: on a terminal, a person is asked about them.

use crate::support::{Ran, Turn, World, shell};
use crate::tmux::Tmux;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

/// A proxy of the machine's that answers every request itself: so names can be reached that
/// are nobody's.
pub(crate) fn proxy() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if !matches!(stream.read_line(&mut head), Ok(length) if length > 0) {
                        return;
                    }
                }
                let body = format!("here is {}\n", head.split(' ').nth(1).unwrap());
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                // Whoever left is not told.
                drop(stream.get_mut().write_all(format!("{head}{body}").as_bytes()));
            });
        }
    });
    port
}

#[test]
fn a_person_is_asked_about_a_host_and_their_answer_is_acted_on() {
    let world = World::new();
    let get = |host: &str| shell(&format!("curl -sS http://{host}/{host}"));
    let lines = [
        get("once.test"),
        get("once.test"),
        get("session.test"),
        get("session.test"),
        get("no.test"),
        get("no.test"),
        get("rule.test"),
    ];
    let turns = lines.each_ref().map(std::slice::from_ref).map(Turn);
    let script = world.script(&turns);
    // No network is granted: it is asked about all the same.
    world.configure("[sandbox] # mine\n");
    let line = format!("https_proxy=http://127.0.0.1:{} $O --script {script}", proxy());
    let tmux = Tmux::new(&world, (120, 60), &line);
    tmux.until("/help");
    tmux.say("Go.", "? once.test is to be reached: execute  curl");
    tmux.until("o once · s in this session · r always, as a rule · n no");
    tmux.press("o", "once.test may be reached by this command");
    // It was for that command alone.
    tmux.press("n", "once.test stays out of reach");
    tmux.until("? session.test is to be reached");
    tmux.press("s", "session.test may be reached in this session");
    tmux.until("? no.test is to be reached");
    tmux.press("n", "no.test stays out of reach");
    tmux.until("? rule.test is to be reached");
    tmux.press("r", "rule.test may be reached, and stands in");
    tmux.until("commands may reach: rule.test, session.test");
    tmux.keys(&["C-d"]);
    assert_eq!(tmux.ended(), 0);
    let text = fs::read_to_string(world.path("config/outrigger/config.toml")).unwrap();
    assert_eq!(text, "[sandbox] # mine\nnetwork = [\"rule.test\"]\n");
    let session = world.session();
    let shown = world.ran(0, &["sessions", "show", &session, "--json"]).json();
    let network = serde_json::json!(["rule.test", "session.test"]);
    assert_eq!(shown["network"], network);
    let events: Vec<String> =
        world.events(&session).iter().map(|event| event.to_string()).collect();
    let told = |text: &str| events.iter().filter(|event| event.contains(text)).count();
    assert_eq!(told("[the person allowed once.test for this command alone]"), 1);
    assert_eq!(told("[once.test was not reached: the person declined it]"), 1);
    assert_eq!(told("[the person allowed session.test for this session]"), 1);
    assert_eq!(told("[no.test was not reached: the person declined it]"), 2);
    assert!(told("\"grant\":\"once.test, once\"") == 1, "{events:#?}");
    assert_eq!(told("\"grant\":\"session.test\""), 2);
    assert_eq!(told("here is http://session.test/session.test"), 2);
}

#[test]
fn a_run_on_a_terminal_asks_line_by_line_and_keeps_what_holds_for_the_session() {
    let world = World::new();
    let get = |host: &str| shell(&format!("curl -sS http://{host}/{host}"));
    let lines = [get("deb.debian.org"), get("security.debian.org"), get("no.test")];
    let script = world.script(&lines.each_ref().map(std::slice::from_ref).map(Turn));
    let proxy = proxy();
    let line = format!("https_proxy=http://127.0.0.1:{proxy} $O run --script {script} Go.");
    let tmux = Tmux::new(&world, (120, 60), &line);
    tmux.until("? deb.debian.org is to be reached");
    tmux.say("what", "p all of `packages`");
    tmux.say("p", "`packages` may be reached in this session");
    tmux.until("? no.test is to be reached");
    tmux.say("n", "no.test stays out of reach");
    assert_eq!(tmux.ended(), 0);
    tmux.until("commands may reach: packages");
    let session = world.session();
    let shown = world.ran(0, &["sessions", "show", &session, "--json"]).json();
    assert_eq!(shown["network"], serde_json::json!(["packages"]));
    let events: Vec<String> =
        world.events(&session).iter().map(|event| event.to_string()).collect();
    let told = |text: &str| events.iter().filter(|event| event.contains(text)).count();
    assert_eq!(told("[the person allowed packages for this session]"), 1, "{events:#?}");
    assert_eq!(told("[no.test was not reached: the person declined it]"), 1);
}

#[test]
fn nobody_is_asked_where_there_is_to_be_no_network() {
    let world = World::new();
    let script = world.script(&[Turn(&[shell("env | grep -c _proxy; curl -sS http://no.test/")])]);
    let line = format!("$O run --net none --script {script} Go.");
    let tmux = Tmux::new(&world, (120, 60), &line);
    assert_eq!(tmux.ended(), 0);
    assert!(!tmux.shown().contains("is to be reached"));
    let session = world.session();
    let events = world.events(&session).iter().map(|event| event.to_string()).collect::<String>();
    assert!(events.contains("Could not resolve host: no.test"), "{events}");
    assert!(!world.path("data/gate").exists(), "no gate was started");
}

#[test]
fn rules_permit_and_forbid_hosts_before_a_person_is_asked() {
    let world = World::new();
    let get = |host: &str| shell(&format!("curl -sS http://{host}/{host}"));
    let lines = [get("good.test"), get("bad.test"), get("named.bad.test"), get("named.test")];
    let script = world.script(&lines.each_ref().map(std::slice::from_ref).map(Turn));
    let rules = r#"
        @id("good") permit (principal, action == Action::"egress", resource == Host::"good.test");
        @id("outside") permit (principal, action in Action::"outside", resource);
        @id("inside") permit (principal, action in Action::"inside", resource);
        @id("model") permit (principal, action == Action::"ask_model", resource);
        @id("approvals") permit (principal, action == Action::"approve", resource);
        @id("asks") @approvable("anyone")
        forbid (principal, action == Action::"egress", resource)
        unless { resource == Host::"good.test" };
        @id("not-there") @reason("It belongs to others.")
        forbid (principal, action == Action::"egress", resource in Host::"bad.test");
    "#;
    fs::write(world.path("rules.cedar"), rules).unwrap();
    let place = world.path("rules.cedar");
    world.configure(&format!(
        "[sandbox]\nnetwork = [\"named.test\", \"named.bad.test\"]\n\
         [policy]\ndefaults = false\nfiles = [{place:?}]\n"
    ));
    let proxy = proxy();
    let line = format!("https_proxy=http://127.0.0.1:{proxy} $O run --script {script} Go.");
    let tmux = Tmux::new(&world, (120, 60), &line);
    assert_eq!(tmux.ended(), 0, "{}", tmux.shown());
    assert!(!tmux.shown().contains("is to be reached"), "{}", tmux.shown());
    let session = world.session();
    let events: Vec<String> =
        world.events(&session).iter().map(|event| event.to_string()).collect();
    let told = |text: &str| events.iter().filter(|event| event.contains(text)).count();
    let no = "was not reached. It is forbidden by: not-there. It belongs to others.";
    assert_eq!(told("here is http://good.test/good.test"), 1, "{events:#?}");
    assert_eq!(told("here is http://named.test/named.test"), 1);
    assert_eq!(told(&format!("[bad.test {no}]")), 1);
    assert_eq!(told(&format!("[named.bad.test {no}]")), 1);
    assert_eq!(told("\"grant\":\"good.test, by rule\""), 1);
}

#[test]
fn rules_forbid_requests_by_their_method_and_path() {
    let world = World::new();
    let ask = |method: &str, path: &str| {
        shell(&format!("curl -sS --path-as-is -X {method} http://named.test{path}"))
    };
    let lines = [ask("GET", "/repos/a"), ask("DELETE", "/repos/a"), ask("DELETE", "/%72epos/b")];
    let lines = [&lines[..], &[ask("DELETE", "/gists/a"), ask("GET", "/a/../repos")]].concat();
    let turns: Vec<_> = lines.iter().map(std::slice::from_ref).map(Turn).collect();
    let script = world.script(&turns);
    let rules = r#"
        @id("keep-repositories") @reason("They are not for agents to delete.")
        forbid (principal, action == Action::"egress", resource == Host::"named.test")
        when { context has method && context.method == "DELETE"
               && context has path && context.path like "/repos/*" };
    "#;
    fs::write(world.path("rules.cedar"), rules).unwrap();
    let place = world.path("rules.cedar");
    world.configure(&format!(
        "[sandbox]\nnetwork = [\"named.test\"]\n[policy]\nfiles = [{place:?}]\n"
    ));
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let args = ["run", "Go.", "--dir", dir.to_str().unwrap(), "--script", &script, "--name", "n"];
    let mut command = world.outrigger(&args);
    let proxied = format!("http://127.0.0.1:{}", proxy());
    Ran::of(command.env("https_proxy", proxied).output().unwrap()).expect(0);
    let events: String = world.events("n").iter().map(|event| format!("{event}\n")).collect();
    for (text, times) in [
        ("here is http://named.test/repos/a", 1),
        ("here is http://named.test/gists/a", 1),
        ("here is http", 2),
        ("outrigger: DELETE /repos/a is not allowed there. It is forbidden by: keep-rep", 1),
        ("outrigger: DELETE /%72epos/b is not allowed there. It is forbidden by: keep-rep", 1),
        ("outrigger: GET /a/../repos is not allowed there. Its path can be read in two ways", 1),
        ("[named.test was not reached: DELETE /repos/a is not allowed there. It is", 1),
        ("[named.test was not reached: DELETE /%72epos/b is not allowed there. It is", 1),
    ] {
        assert_eq!(events.matches(text).count(), times, "{text}\n{events}");
    }
}

#[test]
fn a_rule_is_written_where_no_configuration_was_and_holds_at_once() {
    let world = World::new();
    let script =
        world.script(&[Turn(&[shell("curl -sS http://rule.test/x")]), Turn(&[shell("true")])]);
    let line = format!("https_proxy=http://127.0.0.1:{} $O --script {script}", proxy());
    let tmux = Tmux::new(&world, (120, 40), &line);
    tmux.until("/help");
    tmux.say("Go.", "? rule.test is to be reached");
    tmux.press("r", "rule.test may be reached, and stands in");
    tmux.until("[scripted] That is all.");
    tmux.keys(&["C-d"]);
    assert_eq!(tmux.ended(), 0);
    let text = fs::read_to_string(world.path("config/outrigger/config.toml")).unwrap();
    assert!(text.contains("network = [\"rule.test\"]"), "{text}");
}
