//! `outrigger serve` with the real binary: who is let in, what an API client does with a
//! session, and that nothing is lost when the server dies.

use crate::plain;
use crate::support::{Ran, Running, Turn, World, shell, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A server of a world, and a browser that is logged in.
pub(crate) struct Served {
    /// Ends before its world does.
    pub(crate) process: Running,
    pub(crate) world: World,
    pub(crate) url: String,
    link: String,
    dir: PathBuf,
    script: String,
    variables: &'static [(&'static str, &'static str)],
}

impl Served {
    pub(crate) fn new(world: World, dir: &Path, script: &str) -> Self {
        Self::with(world, dir, script, &[])
    }

    /// One with these variables in its environment.
    pub(crate) fn with(
        world: World,
        dir: &Path,
        script: &str,
        variables: &'static [(&'static str, &'static str)],
    ) -> Self {
        let (process, url, link) = begin(&world, dir, script, ("127.0.0.1:0", variables));
        let (dir, script) = (dir.to_owned(), script.to_owned());
        let served = Self { world, process, url, link, dir, script, variables };
        served.login();
        served
    }

    /// Kills the server, and begins another one at the same address.
    pub(crate) fn restart(&mut self) {
        self.kill();
        let address = self.url.strip_prefix("http://").unwrap();
        let at = (address, self.variables);
        self.process = begin(&self.world, &self.dir, &self.script, at).0;
    }

    /// Kills the server with everything that it started.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        until("it is dead", || self.process.has_ended().then_some(()));
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Tells the server to end.
    pub(crate) fn stop(&mut self) {
        self.process.signal(Signal::TERM);
    }

    /// What a client of the system says and hears: status and body.
    pub(crate) fn curl(&self, args: &[&str], path: &str) -> (u16, String) {
        if let Some(heard) = plain::ask(&self.url, args, path) {
            return heard;
        }
        let mut curl = self.world.command("curl");
        curl.args(["--silent", "--max-time", "30", "--write-out", "\n%{http_code}"]);
        let ran = Ran::of(curl.args(args).arg(format!("{}{path}", self.url)).output().unwrap());
        let (body, status) = ran.stdout.rsplit_once('\n').unwrap_or_else(|| panic!("{ran:?}"));
        (status.parse().unwrap(), body.to_owned())
    }

    /// A key of somebody.
    pub(crate) fn key(&self, person: &str) -> String {
        let made = self.world.ran(0, &["keys", "create", person, "--person", person, "--json"]);
        made.json()["secret"].as_str().unwrap().to_owned()
    }

    /// What who has a key asks, with other arguments of curl, and hears.
    pub(crate) fn with_key(&self, key: &str, args: &[&str], path: &str) -> (u16, Value) {
        let (status, body) = self.curl(&[&["--oauth2-bearer", key], args].concat(), path);
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    pub(crate) fn jar(&self) -> String {
        self.world.path("cookies").display().to_string()
    }

    fn login(&self) {
        let path = self.link.strip_prefix(&self.url).unwrap();
        let (status, page) = self.curl(&["--cookie-jar", &self.jar()], path);
        assert_eq!((status, page.contains("url=/\"")), (200, true), "{page}");
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        let (status, body) = self.curl(&["--cookie", &self.jar()], path);
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.post_with(path, body, &[])
    }

    pub(crate) fn post_with(&self, path: &str, body: &Value, args: &[&str]) -> (u16, Value) {
        let (jar, body) = (self.jar(), body.to_string());
        let own = ["--cookie", &jar, "--json", &body];
        let (status, body) = self.curl(&[&own, args].concat(), path);
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    /// Begins a session; its name.
    pub(crate) fn create(&self, text: &str) -> String {
        let (status, made) = self.post("/v1/sessions", &json!({ "text": text }));
        assert_eq!(status, 201, "{made}");
        made["id"].as_str().unwrap().to_owned()
    }

    fn status(&self, session: &str) -> String {
        let (_, info) = self.get(&format!("/v1/sessions/{session}"));
        info["status"].as_str().unwrap_or_else(|| panic!("{info}")).to_owned()
    }

    pub(crate) fn await_status(&self, session: &str, wanted: &str) {
        until(wanted, || (self.status(session) == wanted).then_some(()));
    }

    pub(crate) fn events(&self, session: &str) -> Vec<Value> {
        let (status, events) = self.get(&format!("/v1/sessions/{session}/events"));
        assert_eq!((status, &events["more"]), (200, &json!(false)), "{events}");
        events["data"].as_array().unwrap().clone()
    }
}

fn begin(
    world: &World,
    dir: &Path,
    script: &str,
    (at, variables): (&str, &[(&str, &str)]),
) -> (Running, String, String) {
    let dir = dir.display().to_string();
    let args = ["serve", "--listen", at, "--dir", &dir, "--script", script, "--json"];
    let mut process = world.start_with(&args, variables);
    let mut first = String::new();
    BufReader::new(process.stdout()).read_line(&mut first).unwrap();
    let said: Value = serde_json::from_str(&first).unwrap_or_else(|_| {
        panic!(
            "it did not begin to serve: {:?}",
            std::mem::replace(&mut process, world.start(&["--version"])).end()
        )
    });
    let text = |name: &str| said[name].as_str().unwrap().to_owned();
    (process, text("url"), text("link"))
}

pub(crate) fn served(turns: &[Turn<'_>]) -> (Served, PathBuf) {
    served_in(World::new(), turns)
}

pub(crate) fn served_in(world: World, turns: &[Turn<'_>]) -> (Served, PathBuf) {
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let script = world.script(turns);
    (Served::new(world, &dir, &script), dir)
}

#[test]
fn a_session_is_begun_followed_and_written_back() {
    let (served, dir) = served(&[Turn(&[shell("echo two >> file; echo done")])]);
    let (_, server) = served.get("/v1/server");
    assert_eq!(server["person"], "person:local");
    let session = served.create("Add a line.");
    served.await_status(&session, "answered");
    let events = served.events(&session);
    let places: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(places, (1..=events.len() as u64).collect::<Vec<_>>());
    let output = events.iter().find(|event| event["exit_code"] == 0).unwrap();
    assert!(output["text"].as_str().unwrap().contains("done"), "{output}");

    // A stream has the same events, and goes on after the one that a client had last.
    let stream = format!("/v1/sessions/{session}/stream");
    let last = format!("Last-Event-ID: {}", events.len() - 2);
    let args = ["--cookie", &served.jar(), "--max-time", "2", "--header", &last];
    let (_, frames) = served.curl(&args, &stream);
    let ids = frames.lines().filter_map(|line| line.strip_prefix("id: "));
    let ids: Vec<u64> = ids.map(|id| id.parse().unwrap()).collect();
    // That the disk was kept may have come meanwhile.
    let from = events.len() as u64 - 1;
    assert!(ids.len() >= 2 && ids.iter().copied().eq(from..from + ids.len() as u64), "{frames}");
    assert!(frames.starts_with("event: session\n"), "{frames}");

    // What changed is a patch first, and then in the files, once and again.
    let changes = format!("/v1/sessions/{session}/changes");
    let (_, changed) = until("the changes are taken out", || {
        let (status, changed) = served.get(&changes);
        (changed["files"] != json!([])).then_some((status, changed))
    });
    assert_eq!(changed["files"], json!([{ "path": "file", "change": "modified" }]));
    assert!(changed["patch"].as_str().unwrap().contains("\n+two\n"), "{changed}");
    assert_eq!(fs::read_to_string(dir.join("file")).unwrap(), "one\n");
    for files in [1, 0] {
        let applied = served.post(&format!("/v1/sessions/{session}/apply"), &json!({}));
        assert_eq!((applied.0, &applied.1["files"]), (200, &json!(files)), "{applied:?}");
    }
    assert_eq!(fs::read_to_string(dir.join("file")).unwrap(), "one\ntwo\n");

    let said = served.post(&format!("/v1/sessions/{session}/messages"), &json!({ "text": "And?" }));
    assert_eq!(said.0, 202, "{said:?}");
    until("it answers again", || {
        let ends = served.events(&session).into_iter().filter(|it| it["type"] == "turn_ended");
        (ends.count() == 2).then_some(())
    });
    let (status, _) = served.post(&format!("/v1/sessions/{session}/cancel"), &json!({}));
    assert_eq!(status, 202);
    until("it is over", || served.get(&format!("/v1/sessions/{session}")).1["cancelled"].as_bool());
    let late = served.post(&format!("/v1/sessions/{session}/messages"), &json!({ "text": "?" }));
    assert_eq!((late.0, &late.1["code"]), (409, &json!("conflict")), "{late:?}");
}

#[test]
fn nobody_is_let_in_without_a_key_or_from_elsewhere() {
    let (served, _) = served(&[]);
    for path in
        ["/v1/server", "/v1/sessions", "/v1/approvals", "/v1/updates", "/v1/sessions/a/stream"]
    {
        let (status, body) = served.curl(&[], path);
        let problem: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &problem["code"]), (401, &json!("unauthenticated")), "{path}");
    }
    let (_, answer) = served.curl(&["--include"], "/v1/server");
    assert!(answer.contains("\r\nwww-authenticate: Bearer\r\n"), "{answer}");
    // What a page asks for first is named with it, to a browser that may have a key, and says
    // nothing of what there is.
    let named = |path: &str| served.curl(&["--include"], path).1.contains("\r\nlink: </v1/server>");
    assert_eq!(
        (named("/sessions/abcd"), named("/sessions/%22%3E"), named("/")),
        (true, false, false)
    );
    // A link is used up; what is made of it is not on its own a key of a program.
    let link = served.link.strip_prefix(&served.url).unwrap();
    assert_eq!(served.curl(&[], link).0, 401);
    let jar = fs::read_to_string(served.jar()).unwrap();
    let cookie = jar.split_whitespace().last().unwrap().to_owned();
    assert!(jar.contains("#HttpOnly_"), "{jar}");
    assert_eq!(served.curl(&["--oauth2-bearer", &cookie], "/v1/server").0, 401);

    // By another name, or from another page.
    let host = ["--cookie", &served.jar(), "--header", "Host: evil.example"];
    assert_eq!(served.curl(&host, "/v1/server").0, 403);
    assert_eq!(served.curl(&host, "/").0, 403);
    // A probe tells nothing, and no browser has the key of a program.
    let probe = ["--header", "Host: outrigger.default.svc"];
    assert_eq!((served.curl(&probe, "/readyz").0, served.curl(&probe, "/healthz").0), (200, 200));
    let origin = ["--header", "Origin: https://evil.example"];
    let (status, refused) = served.post_with("/v1/sessions", &json!({ "text": "x" }), &origin);
    assert_eq!((status, &refused["code"]), (403, &json!("wrong_origin")), "{refused}");

    // A program has a key of its own until it is revoked.
    let made = served.world.ran(0, &["keys", "create", "ci", "--json"]).json();
    let key = made["secret"].as_str().unwrap();
    assert_eq!(served.curl(&["--oauth2-bearer", key], "/v1/server").0, 200);
    let elsewhere = [&probe[..], &["--oauth2-bearer", key]].concat();
    assert_eq!(served.curl(&elsewhere, "/metrics").0, 200);
    let id = made["id"].as_str().unwrap();
    assert!(!served.world.ran(0, &["keys", "ls"]).stdout.contains(key));
    let session = served.create("Go.");
    let streams = ["/v1/updates".to_owned(), format!("/v1/sessions/{session}/stream")];
    let mut open = streams.map(|path| {
        let follow = ["--silent", "--no-buffer", "--max-time", "60", "--oauth2-bearer", key];
        let mut curl = served.world.command("curl");
        curl.args(follow).arg(format!("{}{path}", served.url)).stdout(Stdio::null());
        curl.spawn().unwrap()
    });
    served.world.ran(0, &["keys", "revoke", id]);
    // What was open ends, although nothing comes in it.
    open.iter_mut().for_each(|curl| assert_eq!(curl.wait().unwrap().code(), Some(0)));
    assert_eq!(served.curl(&["--oauth2-bearer", key], "/v1/server").0, 401);
    served.world.ran(4, &["keys", "revoke", id]);

    assert_eq!(served.post("/v1/logout", &json!({})).0, 204);
    assert_eq!(served.get("/v1/server").0, 401);
    for (path, status) in
        [("/healthz", 200), ("/readyz", 200), ("/openapi.json", 200), ("/", 200), ("/none", 404)]
    {
        assert_eq!(served.curl(&[], path).0, status, "{path}");
    }
}

#[test]
fn bad_requests_are_problems_that_name_what_was_wrong() {
    let (served, _) = served(&[]);
    for (path, body, status, words) in [
        ("/v1/sessions", json!({}), 400, "text"),
        ("/v1/sessions", json!({ "text": " " }), 400, "text"),
        ("/v1/sessions", json!({ "text": "x", "model": "y" }), 400, "model"),
        ("/v1/sessions", json!({ "text": "x", "network": ["http:/"] }), 400, "network"),
        ("/v1/sessions", json!({ "text": "x", "extra": 1 }), 400, "extra"),
        ("/v1/sessions", json!(["x", [], null]), 400, "list"),
        ("/v1/sessions/none/messages", json!({ "text": "x" }), 404, "none"),
        ("/v1/sessions/none/interrupt", json!({}), 404, "none"),
        ("/v1/approvals/none.1", json!({ "answer": "deny" }), 404, "none.1"),
        ("/v1/approvals/none.1", json!({ "answer": "maybe" }), 400, "maybe"),
    ] {
        let (found, problem) = served.post(path, &body);
        let detail = problem["detail"].as_str().unwrap_or_else(|| panic!("{path}: {problem}"));
        assert_eq!((found, detail.contains(words)), (status, true), "{path} {body}: {problem}");
    }
    let (status, problem) = served.get("/v1/sessions?cursor=x");
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")), "{problem}");
    assert_eq!(served.get("/v1/sessions?limit=x").0, 400);
    // More than a message may have, and more than a request may that has pictures beside it.
    for bytes in [5 << 20, 22 << 20] {
        let large = json!({ "text": "x".repeat(bytes) }).to_string();
        let file = served.world.path("large");
        fs::write(&file, large).unwrap();
        let (jar, named) = (served.jar(), format!("@{}", file.display()));
        let (status, _) = served.curl(&["--cookie", &jar, "--json", &named], "/v1/sessions");
        assert_eq!(status, 413);
    }
    assert_eq!(served.world.sessions(), Vec::<Value>::new());
}

const RULES: &str = r#"
@id("changes-ask")
@approvable("anyone")
forbid (principal, action == Action::"write_files", resource);
"#;

#[test]
fn a_change_of_a_file_is_approved_as_it_was_looked_at() {
    let world = World::new();
    let rules = world.path("careful.cedar");
    fs::write(&rules, RULES).unwrap();
    let told = world.path("told");
    world.configure(&format!(
        "[policy]\nfiles = [{:?}]\n[notify]\ncommand = [\"sh\", \"-c\", {:?}]\n",
        rules.display().to_string(),
        format!("cat >> {}", told.display()),
    ));
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let write = json!({ "file_path": "/workspace/file", "content": "new\n" });
    let script = world.script(&[
        // There is a sandbox to look into before it is asked.
        Turn(&[shell("true")]),
        Turn(&[("write_file", write.clone())]),
        Turn(&[("write_file", write)]),
    ]);
    let served = Served::new(world, &dir, &script);
    let body = json!({ "text": "Change it." });
    let first = served.post_with("/v1/sessions", &body, &KEY).1;
    let again = served.post_with("/v1/sessions", &body, &KEY);
    assert_eq!((again.0, &again.1["id"]), (201, &first["id"]));
    let session = first["id"].as_str().unwrap_or_else(|| panic!("{first}"));
    served.await_status(session, "waits for approval");
    let (_, inbox) = served.get("/v1/approvals");
    let (id, rules) = (inbox["data"][0]["id"].as_str().unwrap(), &inbox["data"][0]["rules"]);
    assert_eq!(rules, &json!(["changes-ask"]));
    let notice: Value = until("who is asked to be told", || {
        serde_json::from_str(fs::read_to_string(&told).ok()?.lines().next()?).ok()
    });
    let url = format!("{}/approvals/{id}", served.url);
    assert_eq!(notice["waiting"][0]["url"], url);
    assert_eq!(notice["text"], format!("Outrigger waits for an answer:\nwrite_file: {url}"));
    let path = format!("/v1/approvals/{id}");
    let (_, asked) = served.get(&path);
    let (diff, seen) = (&asked["preview"]["diff"], &asked["preview"]["seen"]);
    assert!(diff.as_str().is_some_and(|diff| diff.contains("-one\n+new")), "{asked}");

    let blind = served.post(&path, &json!({ "answer": "approve" }));
    assert_eq!((blind.0, &blind.1["code"]), (400, &json!("invalid_request")), "{blind:?}");
    let other = served.post(&path, &json!({ "answer": "approve", "seen": "absent" }));
    assert_eq!((other.0, &other.1["code"]), (409, &json!("conflict")), "{other:?}");
    let approved = served.post(&path, &json!({ "answer": "approve", "seen": seen }));
    assert_eq!(approved.0, 202, "{approved:?}");
    // Of two who answer one is told that it came too late.
    let late = served.post(&path, &json!({ "answer": "approve", "seen": seen }));
    assert_eq!(late.0, 409, "{late:?}");
    let next = until("the next question", || {
        let (_, inbox) = served.get("/v1/approvals");
        let next = inbox["data"][0]["id"].as_str()?.to_owned();
        (next != id).then_some(next)
    });
    let no = json!({ "answer": "deny", "reason": "Once is enough." });
    assert_eq!(served.post(&format!("/v1/approvals/{next}"), &no).0, 202);
    served.await_status(session, "answered");
    let denied = served.events(session).into_iter().find(|it| it["answer"] == "denied").unwrap();
    assert_eq!(
        (&denied["by"], &denied["text"]),
        (&json!("person:local"), &json!("Once is enough."))
    );
}

/// The kinds of what was said, stopped and answered in a session, in order.
fn course(events: &[Value]) -> Vec<String> {
    let word = |event: &Value| match event["type"].as_str()? {
        "said" if event["author"] == "person" => event["text"].as_str().map(str::to_owned),
        kind @ ("interrupted" | "turn_ended") => Some(kind.to_owned()),
        _ => None,
    };
    events.iter().filter_map(word).collect()
}

#[test]
fn what_is_said_while_a_turn_runs_waits_stops_it_or_is_refused() {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let script = world.script(&[Turn(&[shell("sleep 1; echo slept")])]);
    let served = Served::new(world, &dir, &script);
    let busy = |when_busy: &str| {
        let body = json!({ "text": "Sleep.", "when_busy": when_busy });
        let (status, made) = served.post("/v1/sessions", &body);
        assert_eq!((status, &made["when_busy"]), (201, &json!(when_busy)), "{made}");
        let session = made["id"].as_str().unwrap().to_owned();
        until("the command runs", || {
            let events = served.events(&session);
            events.iter().any(|it| it["type"] == "started" && it["sandbox"] == "work").then_some(())
        });
        session
    };
    let say = |session: &str, body: Value| {
        served.post(&format!("/v1/sessions/{session}/messages"), &body)
    };
    let over = |session: &str, turns: usize| {
        until("all turns are over", || {
            let course = course(&served.events(session));
            (course.iter().filter(|it| *it == "turn_ended").count() == turns).then_some(course)
        })
    };

    let queue = busy("queue");
    assert_eq!(say(&queue, json!({ "text": "Later." })).0, 202);
    assert_eq!(say(&queue, json!({ "text": "Now.", "when_busy": "steer" })).0, 202);
    assert_eq!(over(&queue, 2), ["Sleep.", "Later.", "Now.", "turn_ended", "turn_ended"]);

    let stop = busy("interrupt");
    assert_eq!(say(&stop, json!({ "text": "Something else." })).0, 202);
    let course = over(&stop, 2);
    assert_eq!(course, ["Sleep.", "interrupted", "Something else.", "turn_ended", "turn_ended"]);

    let refuse = busy("refuse");
    for body in [json!({ "text": "And?" }), json!({ "text": "And?", "when_busy": "steer" })] {
        let (status, problem) = say(&refuse, body);
        assert_eq!((status, &problem["code"]), (409, &json!("conflict")), "{problem}");
    }
    over(&refuse, 1);
    assert_eq!(say(&refuse, json!({ "text": "And now?" })).0, 202);
    assert_eq!(over(&refuse, 2), ["Sleep.", "turn_ended", "And now?", "turn_ended"]);
}

const KEY: [&str; 2] = ["--header", "Idempotency-Key: once"];

#[test]
fn a_killed_server_goes_on_where_it_was() {
    goes_on_where_it_was(World::new());
}

#[test]
fn a_killed_server_goes_on_where_it_was_on_postgres() {
    goes_on_where_it_was(World::on_postgres());
}

fn goes_on_where_it_was(world: World) {
    let gate = "while [ ! -e /workspace/go ]; do sleep 0.05; done; echo went on";
    let (served, dir) = served_in(world, &[Turn(&[shell(gate)])]);
    let made = served.post_with("/v1/sessions", &json!({ "text": "Wait." }), &KEY).1;
    let session = made["id"].as_str().unwrap().to_owned();
    until("the command runs", || {
        let events = served.events(&session);
        events.last().filter(|last| last["sandbox"] == "work").map(drop)
    });
    let said = json!({ "text": "And this.", "data": [{ "name": "log", "text": "x" }] });
    let say = |served: &Served| {
        served.post_with(&format!("/v1/sessions/{session}/messages"), &said, &KEY).0
    };
    assert_eq!((say(&served), say(&served)), (202, 202));
    let Served { world, mut process, .. } = served;
    process.signal(Signal::KILL);
    drop(process);
    assert_eq!(world.sessions()[0]["status"], "interrupted");
    // What no server left there, none takes up; who asks for it again has it go on.
    world.sql("UPDATE driven SET due_ms = NULL");
    let script = world.script(&[Turn(&[shell(gate)])]);
    let mut served = Served::new(world, &dir, &script);
    assert_eq!(served.status(&session), "interrupted");
    let again = served.post_with("/v1/sessions", &json!({ "text": "Wait." }), &KEY);
    assert_eq!((again.0, &again.1["id"]), (201, &json!(session)), "{again:?}");
    until("it is driven again", || (served.status(&session) == "running").then_some(()));
    served.process.signal(Signal::KILL);
    let Served { world, process, .. } = served;
    drop(process);
    // The command outlives both, and whoever comes next has its output.
    let script = world.script(&[Turn(&[shell(gate)])]);
    let served = Served::new(world, &dir, &script);
    until("it is driven again", || (served.status(&session) == "running").then_some(()));
    assert_eq!(say(&served), 202, "whoever heard no answer asks again");
    served.world.beside(&session, &["touch", "/workspace/go"]);
    served.await_status(&session, "answered");
    let events = served.events(&session);
    let outputs = events.iter().filter_map(|event| event["text"].as_str());
    assert_eq!(outputs.filter(|text| text.contains("went on")).count(), 1, "{events:#?}");
    let texts =
        ["And this.", "x"].map(|text| events.iter().filter(|it| it["text"] == text).count());
    assert_eq!(texts, [1, 1], "what was said once stands there once: {events:#?}");
}

#[test]
fn a_turn_is_stopped_and_a_server_ends_when_it_is_told() {
    let (mut served, _) = served(&[Turn(&[shell("sleep 600")])]);
    let session = served.create("Sleep.");
    until("the command runs", || {
        let events = served.events(&session);
        events.last().filter(|last| last["sandbox"] == "work").map(drop)
    });
    let idle = format!("/v1/sessions/{session}/resume");
    assert_eq!(served.post(&idle, &json!({})).0, 202);
    assert_eq!(served.post(&format!("/v1/sessions/{session}/interrupt"), &json!({})).0, 202);
    served.await_status(&session, "interrupted");
    let again = served.post(&format!("/v1/sessions/{session}/interrupt"), &json!({}));
    assert_eq!(again.0, 409, "{again:?}");
    served.process.signal(Signal::TERM);
    let Served { process, .. } = served;
    assert_eq!(process.end().code, Some(0));
}

pub(crate) const LEADS: &str = r#"
@id("commands-ask-leads")
@approvable("person:lea")
forbid (principal, action == Action::"execute", resource);
"#;

#[test]
fn what_is_somebody_elses_does_not_exist_but_for_what_they_are_asked() {
    let world = World::new();
    let rules = world.path("leads.cedar");
    fs::write(&rules, LEADS).unwrap();
    world.configure(&format!("[policy]\nfiles = [{:?}]\n", rules.display().to_string()));
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let script = world.script(&[Turn(&[shell("echo asked")])]);
    let served = Served::new(world, &dir, &script);
    let [ada, bob, lea] = ["ada", "bob", "lea"].map(|name| served.key(name));
    let as_person = |key: &str, args: &[&str], path: &str| served.with_key(key, args, path);
    let body = json!({ "text": "Do it." }).to_string();
    let (status, made) = as_person(&ada, &["--json", &body], "/v1/sessions");
    assert_eq!(status, 201, "{made}");
    let session = made["id"].as_str().unwrap();
    let own = format!("/v1/sessions/{session}");
    let question = until("it waits", || {
        let (_, inbox) = as_person(&lea, &[], "/v1/approvals");
        inbox["data"][0]["id"].as_str().map(|id| format!("/v1/approvals/{id}"))
    });
    // Nobody else's is listed, read, followed or spoken to.
    for other in [&bob, &lea] {
        assert_eq!(as_person(other, &[], "/v1/sessions").1["data"], json!([]));
        for path in ["", "/events", "/stream", "/changes", "/changes.patch"] {
            assert_eq!(as_person(other, &[], &format!("{own}{path}")).0, 404, "{path}");
        }
        for (path, body) in [("messages", "{\"text\":\"x\"}"), ("cancel", "{}"), ("apply", "{}")] {
            let (status, _) = as_person(other, &["--json", body], &format!("{own}/{path}"));
            assert_eq!(status, 404, "{path}");
        }
        for path in ["interrupt", "resume"] {
            let (status, _) = as_person(other, &["--request", "POST"], &format!("{own}/{path}"));
            assert_eq!(status, 404, "{path}");
        }
    }
    // Who began it sees what waits, and may not approve it; who is asked may.
    let yes = ["--json", "{\"answer\":\"approve\"}"];
    assert_eq!(as_person(&bob, &[], "/v1/approvals").1["data"], json!([]));
    assert_eq!(as_person(&bob, &[], &question).0, 404);
    assert_eq!(as_person(&bob, &yes, &question).0, 404);
    assert_eq!(as_person(&ada, &[], &question).0, 200);
    assert_eq!(as_person(&ada, &yes, &question).0, 403);
    assert_eq!(as_person(&lea, &yes, &question).0, 202);
    until("it is done", || (as_person(&ada, &[], &own).1["status"] == "answered").then_some(()));
    let (_, events) = as_person(&ada, &[], &format!("{own}/events"));
    let events = events["data"].as_array().unwrap();
    assert!(events.iter().any(|it| it["type"] == "answered" && it["by"] == "person:lea"));
    assert_eq!(events[0]["principal"], "person:ada");
}

#[test]
fn a_session_is_forked_and_taken_back_to_where_it_stood() {
    let (served, _) = served(&[Turn(&[shell("echo two >> file")])]);
    let session = served.create("Add a line.");
    served.await_status(&session, "answered");
    let own = format!("/v1/sessions/{session}");
    let checkpoint = until("there is a checkpoint", || {
        let (_, all) = served.get(&format!("{own}/checkpoints"));
        let last = all["data"].as_array()?.last()?.clone();
        // Before it was answered it stood at its beginning.
        (last["status"] == "answered").then_some(last)
    });
    assert_eq!((&checkpoint["said"], &checkpoint["kept"]), (&json!("Add a line."), &json!(true)));
    let key = ["--header", "Idempotency-Key: fork"];
    let at = json!({ "at": checkpoint["at"] });
    let (status, fork) = served.post_with(&format!("{own}/fork"), &at, &key);
    assert_eq!((status, &fork["status"]), (201, &json!("answered")), "{fork}");
    let again = served.post_with(&format!("{own}/fork"), &at, &key).1;
    assert_eq!(again["id"], fork["id"]);
    let forked = format!("/v1/sessions/{}", fork["id"].as_str().unwrap());
    let changed = |at: &str| served.get(&format!("{at}/changes")).1["patch"].to_string();
    // Nothing ran in it yet.
    assert_eq!(changed(&forked).matches("+two").count(), 1, "{}", changed(&forked));
    assert_eq!(served.post(&format!("{forked}/messages"), &json!({ "text": "More." })).0, 202);
    until("the fork answers", || {
        let (_, events) = served.get(&format!("{forked}/events"));
        events["data"].as_array()?.iter().any(|it| it["type"] == "turn_ended").then_some(())
    });

    assert_eq!(served.post(&format!("{own}/messages"), &json!({ "text": "And?" })).0, 202);
    until("it answers again", || {
        let ends = served.events(&session).into_iter().filter(|it| it["type"] == "turn_ended");
        (ends.count() == 2).then_some(())
    });
    let (status, back) = until("nothing runs any more", || {
        let (status, back) =
            served.post(&format!("{own}/rewind"), &json!({ "to": checkpoint["at"] }));
        (status != 409).then_some((status, back))
    });
    assert_eq!((status, &back["at"]), (200, &checkpoint["at"]), "{back}");
    assert_eq!(changed(&own).matches("+two").count(), 1, "{}", changed(&own));
    let (_, all) = served.get(&format!("{own}/checkpoints"));
    let first = json!({ "to": all["data"][0]["at"] });
    assert_eq!(served.post(&format!("{own}/rewind"), &first).0, 200);
    assert_eq!(changed(&own), "\"\"");
    let none = served.post(&format!("{own}/rewind"), &json!({ "to": 9999 }));
    assert_eq!((none.0, &none.1["code"]), (409, &json!("conflict")), "{none:?}");
}
