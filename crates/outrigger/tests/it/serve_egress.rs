//! What sandboxes reached, as the server tells it: to whom, in which pages, which of it.

use crate::serve::Served;
use crate::support::{Turn, World, shell, until};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

/// The server's own machine is for who administers.
const PEOPLE: &str = "[groups]\nauditor = ['person:abe']\nadmin = ['person:ada']\n";

/// A host that answers everything, by its word.
pub(crate) fn host() -> String {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head = lines.map_while(Result::ok).take_while(|line| !line.is_empty());
            head.for_each(drop);
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
            drop(stream.write_all(answer));
        }
    });
    format!("http://127.0.0.2:{port}")
}

/// The people of a server, by their keys.
struct People {
    served: Served,
    keys: [(&'static str, String); 3],
}

impl People {
    fn new(turns: &[Turn<'_>]) -> Self {
        let world = World::new();
        let people = world.path("people.toml");
        fs::write(&people, PEOPLE).unwrap();
        world.configure(&format!("[policy]\npeople = {people:?}\n"));
        let dir = world.dir("repo", &[("file", b"one\n")]);
        let script = world.script(turns);
        let served = Served::new(world, &dir, &script);
        let keys = ["ada", "bob", "abe"].map(|name| (name, served.key(name)));
        Self { served, keys }
    }

    fn ask(&self, name: &str, args: &[&str], path: &str) -> (u16, Value) {
        let key = &self.keys.iter().find(|(known, _)| *known == name).unwrap().1;
        self.served.with_key(key, args, path)
    }

    /// A page of what somebody sees.
    fn egress(&self, name: &str, query: &str) -> Vec<Value> {
        let (status, page) = self.ask(name, &[], &format!("/v1/egress?{query}"));
        assert_eq!(status, 200, "{page}");
        page["data"].as_array().unwrap().clone()
    }

    fn begin(&self, name: &str, word: &str) -> String {
        let body = json!({ "text": "Go.", "network": [word] }).to_string();
        let (status, made) = self.ask(name, &["--json", &body], "/v1/sessions");
        assert_eq!(status, 201, "{made}");
        let session = made["id"].as_str().unwrap().to_owned();
        until("it is over", || {
            let (_, info) = self.ask(name, &[], &format!("/v1/sessions/{session}"));
            (info["status"] == "answered").then_some(())
        });
        session
    }
}

#[test]
fn who_sees_a_session_sees_what_it_reached() {
    let word = host();
    let commands = format!("curl -sS {word}/; curl -sS https://refused.example/; true");
    let people = People::new(&[Turn(&[shell(&commands)]), Turn(&[shell(&commands)])]);
    let first = people.begin("ada", &word);
    let all = until("it is noted", || {
        let all = people.egress("ada", "");
        // Two commands with two hosts each.
        (all.len() == 4).then_some(all)
    });
    let passed = all.iter().find(|it| it["verdict"] == "permit").unwrap();
    assert_eq!((&passed["host"], &passed["session"]), (&json!("127.0.0.2"), &json!(first)));
    assert_eq!((&passed["grant"], &passed["person"]), (&json!(word), &json!("person:ada")));
    assert!(passed["received_bytes"].as_u64() > Some(4), "{passed}");
    let refused = all.iter().find(|it| it["verdict"] == "forbid").unwrap();
    assert_eq!(refused["host"], "refused.example");
    assert!(refused["refusal"].as_str().unwrap().contains("refused.example"), "{refused}");

    // Whoever does not see the session sees nothing of it.
    assert_eq!(people.egress("bob", ""), Vec::<Value>::new());
    assert_eq!(people.ask("bob", &[], &format!("/v1/egress?session={first}")).0, 404);
    assert_eq!(people.egress("abe", ""), all);
    assert_eq!(people.served.curl(&[], "/v1/egress").0, 401);
    // A share counts.
    let share = json!({ "with": "person:bob", "access": "read" }).to_string();
    let path = format!("/v1/sessions/{first}/shares");
    assert_eq!(people.ask("ada", &["--request", "PUT", "--json", &share], &path).0, 200);
    assert_eq!(people.egress("bob", ""), all);

    // Which of it.
    let hosts = |query: &str| {
        let all = people.egress("abe", query);
        all.iter().map(|it| it["host"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(hosts("verdict=forbid"), ["refused.example"; 2]);
    assert_eq!(hosts("verdict=permit"), ["127.0.0.2"; 2]);
    assert_eq!(hosts("host=EXAMPLE"), ["refused.example"; 2]);
    assert_eq!(hosts("host=used.example"), Vec::<String>::new());
    assert_eq!(people.ask("abe", &[], "/v1/egress?verdict=maybe").0, 400);
    assert_eq!(people.ask("abe", &[], "/v1/egress?cursor=x").0, 400);

    // In pages, newest sessions first, each flow once.
    let second = people.begin("ada", &word);
    let whole = until("both are noted", || {
        let all = people.egress("abe", "");
        (all.len() == 8).then_some(all)
    });
    assert_eq!(
        (&whole[0]["session"], &whole.last().unwrap()["session"]),
        (&json!(second), &json!(first))
    );
    let (mut pages, mut cursor, mut asked) = (Vec::new(), String::new(), 0);
    loop {
        let (status, page) = people.ask("abe", &[], &format!("/v1/egress?limit=1{cursor}"));
        assert_eq!(status, 200, "{page}");
        pages.extend(page["data"].as_array().unwrap().clone());
        asked += 1;
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
        assert!(asked < 20, "it does not end: {cursor}");
    }
    assert_eq!(pages, whole);
}
