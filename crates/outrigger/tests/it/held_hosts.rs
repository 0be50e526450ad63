//! Hosts that are not in the network: in a conversation, a person is asked about them.

use crate::support::{Turn, World, shell};
use crate::tls_host::GateGuard;
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
    let _guard = GateGuard(&world);
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
    world.configure("[sandbox] # mine\nnetwork = [\"known.test\"]\n");
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
    tmux.until("commands may reach: known.test, rule.test, session.test");
    tmux.keys(&["C-d"]);
    assert_eq!(tmux.ended(), 0);
    let text = fs::read_to_string(world.path("config/outrigger/config.toml")).unwrap();
    assert_eq!(text, "[sandbox] # mine\nnetwork = [\"known.test\", \"rule.test\"]\n");
    let session = world.session();
    let shown = world.ran(0, &["sessions", "show", &session, "--json"]).json();
    let network = serde_json::json!(["known.test", "rule.test", "session.test"]);
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
