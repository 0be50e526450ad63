//! Sandboxes over HTTP: what an application does with one, without an agent, and that nothing of
//! it is lost or done twice when the server dies.

use crate::serve::{Served, served};
use crate::support::{World, until};
use serde_json::{Value, json};
use std::fs;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tungstenite::client::IntoClientRequest;
use tungstenite::http::HeaderValue;
use tungstenite::{Message, WebSocket};

impl Served {
    pub(crate) fn sandbox(&self, asked: &Value) -> String {
        let (status, made) = self.post("/v1/sandboxes", asked);
        assert_eq!(status, 201, "{made}");
        format!("/v1/sandboxes/{}", made["id"].as_str().unwrap())
    }

    pub(crate) fn run(&self, sandbox: &str, asked: &Value) -> (u16, Value) {
        self.post(&format!("{sandbox}/execs"), asked)
    }

    pub(crate) fn shell(&self, sandbox: &str, line: &str) -> Value {
        let (status, done) = self.run(sandbox, &json!({ "shell": line }));
        assert_eq!((status, &done["exit_code"]), (200, &json!(0)), "{done}");
        done
    }

    /// As who is logged in, with other arguments of curl.
    pub(crate) fn send(&self, args: &[&str], path: &str) -> (u16, String) {
        self.curl(&[&["--cookie", &self.jar()], args].concat(), path)
    }

    pub(crate) fn delete(&self, path: &str) -> u16 {
        self.send(&["--request", "DELETE"], path).0
    }

    pub(crate) fn problem(&self, args: &[&str], path: &str) -> (u16, Value) {
        let (status, body) = self.send(args, path);
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }
}

#[test]
fn a_sandbox_is_made_listed_used_and_removed() {
    let (served, _) = served(&[]);
    let (_, templates) = served.get("/v1/templates");
    assert_eq!(templates["data"][0]["name"], "host-tools", "{templates}");
    let most = templates["limits"]["memory_mib"].as_u64().unwrap();
    let once = ["--header", "Idempotency-Key: once"];
    let asked = json!({ "label": "tests", "limits": { "memory_mib": 128, "pids": 64 } });
    let (status, made) = served.post_with("/v1/sandboxes", &asked, &once);
    assert_eq!((status, &made["state"]), (201, &json!("running")), "{made}");
    assert_eq!((&made["label"], &made["person"]), (&json!("tests"), &json!("person:local")));
    assert_eq!((&made["limits"]["memory_mib"], &made["idle_seconds"]), (&json!(128), &json!(900)));
    assert_eq!((&made["template"], &made["may_drive"]), (&json!("host-tools"), &json!(true)));
    assert_eq!(served.post_with("/v1/sandboxes", &asked, &once).1["id"], made["id"]);
    let (_, all) = served.get("/v1/sandboxes");
    assert_eq!(all["data"].as_array().unwrap().len(), 1, "{all}");

    let own = format!("/v1/sandboxes/{}", made["id"].as_str().unwrap());
    let words = json!({ "argv": ["sh", "-c", "cat; echo err >&2; echo $A; pwd; exit 3"],
        "env": { "A": "b c" }, "cwd": "/tmp", "stdin": "in\n" });
    let (status, done) = served.run(&own, &words);
    assert_eq!((status, &done["state"], &done["end"]), (200, &json!("ended"), &json!("exited")));
    assert_eq!((&done["exit_code"], &done["stderr"]), (&json!(3), &json!("err\n")));
    assert_eq!(done["stdout"], "in\nb c\n/tmp\n");
    let merged = json!({ "shell": "echo a; echo b >&2; echo c", "merged": true });
    assert_eq!(served.run(&own, &merged).1["stdout"], "a\nb\nc\n");
    for (asked, words) in [
        (json!({}), "argv"),
        (json!({ "argv": [] }), "empty"),
        (json!({ "argv": ["no-such-program"] }), "no-such-program"),
        (json!({ "shell": "true", "id": "a/b" }), "a/b"),
        (json!({ "shell": "true", "deadline_ms": 0 }), "86400000"),
        (json!({ "shell": "true", "output_bytes_max": 5_000_000 }), "4194304"),
    ] {
        let (status, problem) = served.run(&own, &asked);
        let detail = problem["detail"].as_str().unwrap_or_else(|| panic!("{problem}"));
        assert_eq!((status, detail.contains(words)), (400, true), "{asked}: {problem}");
    }

    // What is above the ceiling is refused with what is allowed.
    let above = json!({ "limits": { "memory_mib": most + 1 } });
    let (status, refused) = served.post("/v1/sandboxes", &above);
    let allowed = format!("16 to {most} is allowed");
    assert_eq!(status, 400, "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains(&allowed), "{refused}");
    let unknown = served.post("/v1/sandboxes", &json!({ "template": "none" }));
    assert_eq!((unknown.0, &unknown.1["code"]), (404, &json!("not_found")), "{unknown:?}");
    let privileged = served.post("/v1/sandboxes", &json!({ "privileged": true }));
    assert_eq!(privileged.0, 400, "{privileged:?}");

    // It rests, and is used again; then it is gone.
    assert_eq!(served.post(&format!("{own}/suspend"), &json!({})).0, 204);
    assert_eq!(served.get(&own).1["state"], "cold");
    served.shell(&own, "echo kept > /workspace/file");
    assert_eq!(served.post(&format!("{own}/suspend"), &json!({ "how": "frozen" })).0, 204);
    assert_eq!(served.get(&own).1["state"], "frozen");
    assert_eq!(served.shell(&own, "cat file")["stdout"], "kept\n");
    assert_eq!(served.delete(&own), 204);
    for path in ["", "/files?path=/workspace", "/execs/none", "/terminal"] {
        assert_eq!(served.get(&format!("{own}{path}")).0, 404, "{path}");
    }
    assert_eq!(served.get("/v1/sandboxes").1["data"], json!([]));
    // What was made by hand is not a person's of this server.
    served.world.ran(0, &["sandbox", "create", "by-hand"]);
    assert_eq!(served.get("/v1/sandboxes/by-hand").0, 404);
    assert_eq!(served.get("/v1/sandboxes/..%2fby-hand").0, 404);
}

#[test]
fn one_id_runs_once_also_over_the_death_of_the_server() {
    let (mut served, _) = served(&[]);
    let own = served.sandbox(&json!({}));
    let once = json!({ "id": "once", "shell": "echo x >> runs; wc -l < runs" });
    let first = served.run(&own, &once);
    assert_eq!((first.0, &first.1["stdout"]), (200, &json!("1\n")), "{first:?}");
    assert_eq!(served.run(&own, &once), first);
    assert_eq!(served.get(&format!("{own}/execs/once")), first);
    assert_eq!(served.get(&format!("{own}/execs/other")).0, 404);

    // One that runs while its server is killed goes on, and the next server has all of it.
    let gate = "echo began; while [ ! -e go ]; do sleep 0.05; done; echo went on";
    let (status, begun) = served.run(&own, &json!({ "id": "long", "shell": gate, "wait": 0 }));
    assert_eq!((status, &begun["state"]), (202, &json!("running")), "{begun}");
    served.restart();
    let long = format!("{own}/execs/long");
    assert_eq!(served.get(&long).1["state"], "running");
    served.shell(&own, "touch go");
    let (_, done) = served.get(&format!("{long}?wait=30"));
    assert_eq!((&done["stdout"], &done["exit_code"]), (&json!("began\nwent on\n"), &json!(0)));
    assert_eq!(served.run(&own, &once).1["stdout"], "1\n");

    // In another life of the sandbox nobody runs it again.
    served.world.stop_spawner();
    let (status, lost) = served.run(&own, &once);
    assert_eq!((status, &lost["code"]), (409, &json!("conflict")), "{lost}");
    assert_eq!(served.get(&long).0, 409);
    assert_eq!(served.shell(&own, "wc -l < runs")["stdout"], "1\n");
}

#[test]
fn output_is_cut_followed_and_ends_with_the_deadline() {
    let (served, _) = served(&[]);
    let own = served.sandbox(&json!({}));
    let (_, cut) = served.run(&own, &json!({ "id": "much", "shell": "yes | head -c 5000000" }));
    let kept = cut["stdout"].as_str().unwrap().len();
    assert_eq!((kept, &cut["stdout_dropped_bytes"]), (1 << 20, &json!(5_000_000 - (1 << 20))));

    let line = "for n in 1 2 3; do echo out $n; echo err $n >&2; sleep 0.1; done";
    served.run(&own, &json!({ "id": "follow", "shell": line, "wait": 0 }));
    let stream = format!("{own}/execs/follow/stream");
    let (status, frames) = served.send(&[], &stream);
    assert_eq!(status, 200);
    let told = |frames: &str, name: &str| -> String {
        let frames =
            frames.split("\n\n").filter(|frame| frame.contains(&format!("event: {name}\n")));
        let data = frames.filter_map(|it| it.lines().find_map(|line| line.strip_prefix("data: ")));
        let texts = data.map(|it| serde_json::from_str::<Value>(it).unwrap()["text"].clone());
        texts.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(told(&frames, "stdout"), "out 1\nout 2\nout 3\n");
    assert_eq!(told(&frames, "stderr"), "err 1\nerr 2\nerr 3\n");
    assert!(frames.contains("event: end\n") && frames.contains("\"exit_code\":0"), "{frames}");
    let (_, rest) = served.send(&["--header", "Last-Event-ID: 12.18"], &stream);
    assert_eq!((told(&rest, "stdout"), told(&rest, "stderr")), ("out 3\n".into(), "".into()));

    // The whole tree is killed at the deadline, and where it is asked for.
    let began = Instant::now();
    let tree = "(trap '' TERM; setsid sleep 300) & sleep 300";
    let (_, late) = served.run(&own, &json!({ "shell": tree, "deadline_ms": 500 }));
    assert_eq!((&late["end"], &late["exit_code"]), (&json!("deadline"), &Value::Null), "{late}");
    assert!(began.elapsed() < Duration::from_secs(5), "{late}");
    served.run(&own, &json!({ "id": "killed", "shell": tree, "wait": 0 }));
    // What it does not take is told, and not passed over.
    let gently = served.post(&format!("{own}/execs/killed/kill"), &json!({ "signal": "TERM" }));
    assert!(
        gently.0 == 400 && gently.1["detail"].as_str().unwrap().contains("signal"),
        "{gently:?}"
    );
    assert_eq!(served.post(&format!("{own}/execs/killed/kill"), &json!({})).0, 204);
    assert_eq!(served.get(&format!("{own}/execs/killed?wait=5")).1["end"], "killed");
    let left = served.shell(&own, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
    assert!(!left["stdout"].as_str().unwrap().contains("sleep 300"), "{left}");

    // A command with a terminal is typed to.
    let cat =
        json!({ "id": "cat", "argv": ["cat"], "terminal": { "rows": 5, "cols": 40 }, "wait": 0 });
    assert_eq!(served.run(&own, &cat).0, 202);
    let typed = json!({ "text": "hello\n\u{4}", "size": { "rows": 6, "cols": 50 } });
    assert_eq!(served.post(&format!("{own}/execs/cat/input"), &typed).0, 204);
    let (_, done) = served.get(&format!("{own}/execs/cat?wait=10"));
    assert!(done["stdout"].as_str().unwrap().contains("hello\r\nhello\r\n"), "{done}");
    let late = served.post(&format!("{own}/execs/cat/input"), &typed);
    assert_eq!((late.0, &late.1["code"]), (409, &json!("conflict")), "{late:?}");

    // What did not begin is not there, and leaves its name free.
    let late = json!({ "id": "late", "argv": ["/workspace/late"] });
    assert_eq!(served.run(&own, &late).0, 400);
    assert_eq!(served.get(&format!("{own}/execs/late")).0, 404);
    served.shell(&own, "printf '#!/bin/sh\necho there\n' > late; chmod +x late");
    assert_eq!(served.run(&own, &late).1["stdout"], "there\n");
}

#[test]
fn a_snapshot_has_what_was_there_before() {
    let (served, _) = served(&[]);
    let own = served.sandbox(&json!({ "limits": { "memory_mib": 256 } }));
    served.shell(&own, "echo old > file");
    let (status, kept) = served.post(&format!("{own}/snapshots"), &json!({ "label": "before" }));
    assert_eq!((status, &kept["label"]), (201, &json!("before")), "{kept}");
    served.shell(&own, "echo new > file");
    let fork = |body: &Value| {
        let (status, made) = served.post(&format!("{own}/forks"), body);
        assert_eq!((status, &made["limits"]["memory_mib"]), (201, &json!(256)), "{made}");
        format!("/v1/sandboxes/{}", made["id"].as_str().unwrap())
    };
    let (before, now) = (fork(&json!({ "snapshot": kept["id"] })), fork(&json!({})));
    assert_eq!(served.shell(&before, "cat file")["stdout"], "old\n");
    assert_eq!(served.shell(&now, "cat file")["stdout"], "new\n");
    served.shell(&now, "echo other > file");
    assert_eq!(served.shell(&own, "cat file")["stdout"], "new\n");
    // It outlives its sandbox, and others are made from it.
    assert_eq!(served.delete(&own), 204);
    let (_, all) = served.get("/v1/snapshots");
    assert_eq!((all["data"].as_array().unwrap().len(), &all["data"][0]["id"]), (1, &kept["id"]));
    let another = served.sandbox(&json!({ "snapshot": kept["id"] }));
    assert_eq!(served.shell(&another, "cat file")["stdout"], "old\n");
    let at = format!("/v1/snapshots/{}", kept["id"].as_str().unwrap());
    assert_eq!((served.delete(&at), served.delete(&at)), (204, 404));
    assert_eq!(served.post("/v1/sandboxes", &json!({ "snapshot": kept["id"] })).0, 404);
}

const PEOPLE: &str = r#"
organisation = "acme"
[groups]
viewer = ["person:vic"]
auditor = ["person:abe"]
admin = ["person:lea"]
"#;

#[test]
fn what_is_somebody_elses_is_seen_and_taken_away_by_their_roles() {
    let world = World::new();
    let people = world.path("people.toml");
    fs::write(&people, PEOPLE).unwrap();
    world.configure(&format!("[policy]\npeople = {:?}\n", people.display().to_string()));
    let dir = world.dir("repo", &[]);
    let script = world.script(&[]);
    let served = Served::new(world, &dir, &script);
    let as_person = |key: &str, method: &str, path: &str, body: &str| -> (u16, Value) {
        served.with_key(key, &["--request", &method.to_uppercase(), "--json", body], path)
    };
    // While the people can't be read nobody may do anything, and who balances is told.
    fs::write(&people, "nonsense").unwrap();
    let (status, told) = served.curl(&[], "/readyz");
    assert!(status == 500 && told.contains("its log says why") && !told.contains("toml"), "{told}");
    fs::write(&people, PEOPLE).unwrap();
    assert_eq!(served.curl(&[], "/readyz").0, 200);
    let ada = served.key("ada");
    // The server's own machine is reached for who administers alone.
    for (person, exit_code) in [("ada", 22), ("lea", 0)] {
        let key = served.key(person);
        let asked = json!({ "network": [served.url] }).to_string();
        let (status, made) = as_person(&key, "post", "/v1/sandboxes", &asked);
        assert_eq!(status, 201, "{made}");
        let at = format!("/v1/sandboxes/{}", made["id"].as_str().unwrap());
        let line = format!("curl -sf --noproxy '' --max-time 10 {}/healthz", served.url);
        let line = json!({ "shell": line }).to_string();
        let ran = as_person(&key, "post", &format!("{at}/execs"), &line).1;
        assert_eq!(ran["exit_code"], exit_code, "{person}: {ran}");
        assert_eq!(as_person(&key, "delete", &at, "{}").0, 204);
    }
    let (status, made) = as_person(&ada, "post", "/v1/sandboxes", "{}");
    assert_eq!(status, 201, "{made}");
    let own = format!("/v1/sandboxes/{}", made["id"].as_str().unwrap());
    let ran = as_person(&ada, "post", &format!("{own}/execs"), r#"{"id":"e","shell":"true"}"#);
    assert_eq!(ran.0, 200, "{ran:?}");
    let (_, kept) = as_person(&ada, "post", &format!("{own}/snapshots"), "{}");
    let kept = format!("/v1/snapshots/{}", kept["id"].as_str().unwrap());

    // Each operation for each role: `organisations`.
    for (name, sees) in [("bob", false), ("vic", false), ("abe", true), ("lea", true)] {
        let other = served.key(name);
        for list in ["/v1/sandboxes", "/v1/snapshots"] {
            let (_, all) = as_person(&other, "get", list, "{}");
            assert_eq!(all["data"].as_array().unwrap().len(), usize::from(sees), "{name}: {all}");
        }
    }
    let viewer = served.key("vic");
    assert_eq!(as_person(&viewer, "post", "/v1/sandboxes", "{}").0, 403);
    // Who administers takes away what somebody left.
    let lea = served.key("lea");
    let rest = as_person(&lea, "post", &format!("{own}/suspend"), "{}");
    assert_eq!(rest.0, 204, "{rest:?}");
    assert_eq!(as_person(&lea, "delete", &own, "{}").0, 204);
    assert_eq!(as_person(&lea, "delete", &kept, "{}").0, 204);
    assert_eq!(as_person(&ada, "get", &own, "{}").0, 404);
}

type Terminal = WebSocket<TcpStream>;

/// Opens a terminal as a browser does, from a page of some origin.
fn terminal(served: &Served, path: &str, origin: &str) -> Result<Terminal, u16> {
    let host = served.url.strip_prefix("http://").unwrap();
    let mut request = format!("ws://{host}{path}").into_client_request().unwrap();
    let jar = fs::read_to_string(served.jar()).unwrap();
    let cookie = format!("outrigger={}", jar.split_whitespace().last().unwrap());
    let headers = request.headers_mut();
    headers.insert("cookie", HeaderValue::from_str(&cookie).unwrap());
    headers.insert("origin", HeaderValue::from_str(origin).unwrap());
    let stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    match tungstenite::client(request, stream) {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
            Err(response.status().as_u16())
        }
        Err(error) => panic!("{error}"),
    }
}

/// Reads until something is shown; all that was until then.
fn shown(socket: &mut Terminal, wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        match socket.read().unwrap_or_else(|error| panic!("{error} after {text:?}")) {
            Message::Binary(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
            Message::Ping(_) | Message::Pong(_) => {}
            other => panic!("{other:?} after {text:?}"),
        }
    }
    text
}

/// Reads until it is closed; with which words.
fn closed(socket: &mut Terminal) -> String {
    loop {
        match socket.read() {
            Ok(Message::Close(Some(frame))) => return frame.reason.to_string(),
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_terminal_is_typed_to_resized_and_ends() {
    let (mut served, _) = served(&[]);
    let own = served.sandbox(&json!({}));
    let at = format!("{own}/terminal?cols=100&rows=30");
    assert_eq!(served.get(&at).0, 400);
    let elsewhere = terminal(&served, &at, "https://evil.example");
    assert_eq!(elsewhere.err(), Some(403));
    let none = terminal(&served, "/v1/sandboxes/none/terminal", &served.url);
    assert_eq!(none.err(), Some(404));

    let mut open = terminal(&served, &at, &served.url).unwrap();
    let send = |socket: &mut Terminal, text: &str| {
        socket.send(Message::Binary(text.as_bytes().to_vec().into())).unwrap();
    };
    send(&mut open, "echo $((40 + 2)) on $TERM; stty size\n");
    let text = shown(&mut open, "30 100");
    assert!(text.contains("42 on xterm-256color"), "{text:?}");
    open.send(Message::Text(r#"{"cols":61,"rows":17}"#.into())).unwrap();
    send(&mut open, "stty size\n");
    shown(&mut open, "17 61");
    // More than its browser takes at once is not held for it.
    send(&mut open, "yes | head -c 9000000; echo; echo don\"\"e\n");
    let much = shown(&mut open, "done");
    assert!(much.len() > 1_000, "{}", much.len());
    send(&mut open, "exit 5\n");
    assert_eq!(closed(&mut open), "the shell ended with 5");

    // It ends with its connection, with its sandbox, and with the server.
    let mut left = terminal(&served, &at, &served.url).unwrap();
    send(&mut left, "sleep 301\n");
    shown(&mut left, "sleep 301");
    drop(left);
    until("its command is gone", || {
        let left = served.shell(&own, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
        (!left["stdout"].as_str().unwrap().contains("sleep 301")).then_some(())
    });
    let mut open = terminal(&served, &at, &served.url).unwrap();
    send(&mut open, "echo o\"\"n\n");
    shown(&mut open, "on");
    assert_eq!(served.delete(&own), 204);
    assert!(closed(&mut open).contains("lost"));
    let own = served.sandbox(&json!({}));
    let mut open = terminal(&served, &format!("{own}/terminal"), &served.url).unwrap();
    send(&mut open, "echo o\"\"n\n");
    shown(&mut open, "on");
    served.stop();
    assert_eq!(closed(&mut open), "the server ends");
}
