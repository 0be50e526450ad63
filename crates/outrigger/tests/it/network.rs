//! Sandboxes that may reach something: through the real gate, to a host of this test.

use crate::daemon::{self, Daemon};
use crate::serve_egress::host as plain_host;
use crate::support::{OUTRIGGER, Ran, Turn, World, shell, until};
use crate::tls_host::{ADDRESS, TlsHost, gates, kill_gates};
use crate::tmux::Tmux;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// What a download has, in two halves.
const HALF_BYTES: usize = 300_000;

/// A host that answers with the path of each request.
struct Host {
    tls: TlsHost,
    asked: Arc<Mutex<Vec<String>>>,
    /// Whether the second half of a download may go.
    goes_on: Arc<AtomicBool>,
}

impl Host {
    fn start(world: &World) -> Self {
        let (asked, goes_on) = <(Arc<Mutex<Vec<String>>>, Arc<AtomicBool>)>::default();
        let (seen, open) = (Arc::clone(&asked), Arc::clone(&goes_on));
        let tls = TlsHost::start(world, move |stream| serve(stream, &seen, &open));
        Self { tls, asked, goes_on }
    }

    fn url(&self, path: &str) -> String {
        self.tls.url(path)
    }

    fn word(&self) -> String {
        self.tls.word()
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(stream: impl Read + Write, seen: &Mutex<Vec<String>>, open: &AtomicBool) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            // A program that left, or does not trust us.
            if !matches!(stream.read_line(&mut head), Ok(length) if length > 0) {
                return;
            }
        }
        let path = head.split(' ').nth(1).unwrap().to_owned();
        seen.lock().unwrap().push(format!("{} {path}", head.split(' ').next().unwrap()));
        let stream = stream.get_mut();
        let body =
            if path == "/large" { vec![b'x'; HALF_BYTES] } else { path.clone().into_bytes() };
        let length = if path == "/large" { 2 * HALF_BYTES } else { body.len() };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        if sent.and_then(|()| stream.flush()).is_err() {
            return;
        }
        if path == "/large" {
            until("the second half may go", || open.load(Ordering::SeqCst).then_some(()));
            if stream.write_all(&body).and_then(|()| stream.flush()).is_err() {
                return;
            }
        }
    }
}

fn run(world: &World, host: &Host, code: i32, args: &[&str]) -> Ran {
    Ran::of(host.tls.trusting(world, args).output().unwrap()).expect(code)
}

/// What a session's sandbox reached and was refused, as its journal has it.
fn flows(world: &World, session: &str) -> Vec<Value> {
    let reports = world.events(session).into_iter().filter_map(|event| {
        let flows = event.get("reached")?["flows"].as_array()?.clone();
        Some(flows)
    });
    reports.flatten().collect()
}

#[test]
fn a_sandbox_reaches_what_it_may_and_nothing_else() {
    let world = World::new();
    let host = Host::start(&world);
    let python = format!(
        "python3 -c \"import urllib.request as r; print(r.urlopen('{}').read().decode())\"",
        host.url("/python")
    );
    let lines = [
        shell(&format!("curl -sS {}", host.url("/curl"))),
        shell(&python),
        shell("curl -sS https://example.com/; curl -sS http://169.254.169.254/latest"),
    ];
    let turns = lines.each_ref().map(std::slice::from_ref).map(Turn);
    let script = world.script(&turns);
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let dir = dir.to_str().unwrap();
    let word = host.word();
    let args = ["run", "Go.", "--dir", dir, "--script", &script, "--net", &word, "--name", "n"];
    let ran = run(&world, &host, 0, &args);
    assert_eq!(host.asked(), ["GET /curl", "GET /python"], "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("  reached {word} ")), "{}", ran.stderr);
    let refused = "example.com was not reached: it is not in the network of this sandbox; the person can allow it with `--net example.com`";
    assert!(ran.stderr.contains(refused), "{}", ran.stderr);
    let flows = flows(&world, "n");
    let of = |name: &str| flows.iter().filter(|flow| flow["host"] == name).collect::<Vec<_>>();
    assert_eq!(of(ADDRESS).len(), 2);
    assert!(of(ADDRESS).iter().all(|flow| flow["grant"] == *word && flow["received_bytes"] != 0));
    for host in ["example.com", "169.254.169.254"] {
        assert!(of(host).iter().all(|flow| flow["grant"].is_null()) && !of(host).is_empty());
    }
    let listed = world.ran(0, &["egress", "ls"]).stdout;
    assert!(listed.contains(&format!("{word}  by {word}  1 request")), "{listed}");
    let listed = world.ran(0, &["egress", "ls", "n", "--refused", "--json"]).lines();
    assert!(listed.iter().all(|line| line["flow"]["refusal"].is_string()) && !listed.is_empty());
    // The model is told too, and what came from there labels the session.
    let shown = world.ran(0, &["sessions", "show", "n", "--json"]).stdout;
    assert!(shown.contains("untrusted"), "{shown}");
    assert!(
        world
            .events("n")
            .iter()
            .any(|event| event.to_string().contains("[example.com was not reached"))
    );
}

#[test]
fn a_sandbox_reaches_nothing_by_itself_and_what_was_given_is_taken_back() {
    let world = World::new();
    let host = Host::start(&world);
    let line = shell(&format!("curl -sS -m 10 {} || echo not reached", host.url("/")));
    let turn = || Turn(std::slice::from_ref(&line));
    let path = world.path("script.toml");
    let text = |turn: Turn<'_>| turn.text() + "[[turn]]\ntext = \"Done.\"\n";
    fs::write(&path, text(turn()) + &text(turn()) + &text(turn())).unwrap();
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let (dir, script) = (dir.to_str().unwrap(), path.to_str().unwrap());
    let go = ["run", "Go.", "--dir", dir, "--script", script, "--name"];
    let none = run(&world, &host, 0, &[&go[..], &["none", "--net", "none"]].concat()).stderr;
    assert!(!none.contains("was not reached") && gates(&world).is_empty(), "{none}");
    let told = run(&world, &host, 0, &[&go[..], &["n"]].concat()).stderr;
    assert!(told.contains(&format!("{} was not reached", host.word())), "{told}");
    assert!(host.asked().is_empty());
    run(&world, &host, 0, &["sessions", "say", "n", "Again.", "--net", &host.word()]);
    assert_eq!(host.asked(), ["GET /"]);
    let ran = run(&world, &host, 0, &["sessions", "say", "n", "Again.", "--net", "none"]);
    assert_eq!(host.asked(), ["GET /"], "{}", ran.stderr);
    let ran =
        run(&world, &host, 2, &["run", "Go.", "--dir", dir, "--script", script, "--net", "git"]);
    assert!(ran.stderr.contains("`git` means the remotes of the repository"), "{}", ran.stderr);
}

/// `--continue` has the session as it is, and what is said with it beside that.
#[test]
fn a_conversation_that_goes_on_may_reach_more_and_a_shared_sandbox_nothing() {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let path = world.path("script.toml");
    fs::write(&path, "[[turn]]\ntext = \"Done.\"\n").unwrap();
    let (dir, script) = (fs::canonicalize(dir).unwrap(), path.to_str().unwrap());
    let run = ["run", "Go.", "--dir", dir.to_str().unwrap(), "--script", script];
    world.ran(0, &[&run[..], &["--name", "n", "--net", "a.example"]].concat());
    let tmux = Tmux::new(&world, (120, 40), "$O --continue --net b.example");
    tmux.until("commands may reach: a.example, b.example");
    tmux.keys(&["C-d"]);
    let shown = world.ran(0, &["sessions", "show", "n", "--json"]).json();
    assert_eq!(shown["network"], serde_json::json!(["a.example", "b.example"]));
    world.configure("[sandbox]\nscope = \"assistant\"\n");
    let ran = world.ran(2, &[&run[..], &["--net", "a.example"]].concat());
    assert!(ran.stderr.contains("it can have no network"), "{}", ran.stderr);
}

/// Kills an engine whose session `n` is half way through a download, of two commands the first.
/// Gives the gates that there were.
#[test]
fn a_sandbox_made_by_hand_reaches_what_it_may() {
    let world = World::new();
    let (host, other) = (Host::start(&world), plain_host());
    let ran = |args: &[&str]| {
        Ran::of(host.tls.trusting(&world, &[&["sandbox"], args].concat()).output().unwrap())
    };
    let sandbox = |args: &[&str]| ran(args).expect(0);
    let curl = |name: &str, url: &str| ran(&["exec", name, "--", "curl", "-sSf", url]);
    // What can't be meant makes none.
    ran(&["create", "none", "--secret", "MISSING"]).expect(4);
    assert_eq!(sandbox(&["ls"]).stdout, "");
    sandbox(&["create", "work", "--net", &host.word()]);
    assert_eq!(curl("work", &host.url("/it")).expect(0).stdout, "/it");
    let refused = curl("work", &other).expect(22).stderr;
    let place = other.strip_prefix("http://").unwrap();
    let advice = format!("`outrigger sandbox create NAME --net {place}` allows it");
    assert!(refused.contains(&advice), "{refused}");
    // As that says, beside what there was: over the death of the gate, and in a fork.
    kill_gates(&world);
    let attached = sandbox(&["create", "work", "--net", place]).stderr;
    assert!(attached.contains("it was there already"), "{attached}");
    sandbox(&["create", "work"]);
    sandbox(&["fork", "work", "fork"]);
    for name in ["work", "fork"] {
        assert_eq!(curl(name, &host.url("/it")).expect(0).stdout, "/it");
        assert_eq!(curl(name, &other).expect(0).stdout, "hello");
    }
    // What is left running has it, until it is taken back.
    let again = host.url("/again");
    let line = format!(
        "(while curl -sSf -m 5 {again}; do sleep 0.05; done; curl -m 60 {again}; echo $? > over) \
         > log 2>&1 &"
    );
    sandbox(&["exec", "work", "-c", &line]);
    let asked = || host.asked().iter().filter(|it| *it == "GET /again").count();
    until("it goes on without a command", || (asked() > 3).then_some(()));
    sandbox(&["create", "work", "--net", "none"]);
    until("it is over", || (ran(&["exec", "work", "test", "-s", "over"]).code? == 0).then_some(()));
    // It hears so at once: what connects is refused (7), and does not wait (28).
    assert_eq!(sandbox(&["exec", "work", "cat", "over"]).stdout, "7\n");
    assert_ne!(curl("work", &host.url("/it")).code, Some(0));
    sandbox(&["create", "work", "--net", &host.word()]);
    assert_eq!(curl("work", &host.url("/it")).expect(0).stdout, "/it");
    sandbox(&["create", "work", "--net", "none"]);
    assert_eq!(curl("fork", &host.url("/it")).expect(0).stdout, "/it");
    // A new one of that name begins anew.
    sandbox(&["rm", "fork"]);
    sandbox(&["create", "fork"]);
    assert_ne!(curl("fork", &host.url("/it")).code, Some(0));
}

fn killed_while_it_downloads(world: &World, host: &Host, line: &str) -> Vec<u32> {
    let line = shell(line);
    let again = shell(&format!("curl -sS {}", host.url("/again")));
    let turns = [Turn(std::slice::from_ref(&line)), Turn(std::slice::from_ref(&again))];
    let script = world.script(&turns);
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let (dir, word) = (dir.to_str().unwrap(), host.word());
    let args = ["run", "Go.", "--dir", dir, "--script", &script, "--net", &word, "--name", "n"];
    let mut engine = host.tls.trusting(world, &args).spawn().unwrap();
    until("the download began", || host.asked().contains(&"GET /large".to_owned()).then_some(()));
    let gates = gates(world);
    engine.kill().unwrap();
    engine.wait().unwrap();
    gates
}

#[test]
fn a_download_goes_on_without_the_engine_and_a_gate_that_died_is_replaced() {
    let world = World::new();
    let host = Host::start(&world);
    let line = format!(
        "curl -sS {} > got; wc -c < got; curl -sS {}",
        host.url("/large"),
        host.url("/after")
    );
    killed_while_it_downloads(&world, &host, &line);
    host.goes_on.store(true, Ordering::SeqCst);
    until("what follows it was asked for", || (host.asked().len() > 1).then_some(()));
    kill_gates(&world);
    let ran = run(&world, &host, 0, &["sessions", "resume", "n"]);
    let asked = ["GET /large", "GET /after", "GET /again"];
    assert_eq!(host.asked(), asked, "{}", ran.stderr);
    assert!(ran.stderr.contains(&(2 * HALF_BYTES).to_string()), "{}", ran.stderr);
    assert_eq!(gates(&world).len(), 1, "{OUTRIGGER} started another one");
}

#[test]
fn a_download_goes_on_where_another_engine_takes_over() {
    let world = World::new();
    let host = Host::start(&world);
    let fetched = format!("curl -sS {} > got; wc -c < got", host.url("/large"));
    let gate = killed_while_it_downloads(&world, &host, &fetched);
    let mut other = host.tls.trusting(&world, &["sessions", "resume", "n"]);
    let other = other.stderr(Stdio::piped()).spawn().unwrap();
    let lock = world.data().join(format!("harness/locks/{}.lock", world.session()));
    let taken = || fs::read_to_string(&lock).is_ok_and(|pid| pid == other.id().to_string());
    until("another engine drives it", || taken().then_some(()));
    host.goes_on.store(true, Ordering::SeqCst);
    let ran = Ran::of(other.wait_with_output().unwrap()).expect(0);
    assert_eq!(host.asked(), ["GET /large", "GET /again"], "{}", ran.stderr);
    assert!(ran.stderr.contains(&(2 * HALF_BYTES).to_string()), "{}", ran.stderr);
    assert_eq!(gates(&world), gate);
}

/// An image with one program, which is a shell too.
pub(crate) fn small_image(world: &World, daemon: &Daemon) -> &'static str {
    let name = "outrigger-network:1";
    let root = world.dir("image/bin", &[]);
    fs::copy("/bin/busybox", root.join("busybox")).expect("busybox-static is installed");
    std::os::unix::fs::symlink("busybox", root.join("sh")).unwrap();
    let archive = world.path("image.tar");
    let mut tar = world.command("tar");
    tar.arg("-cf").arg(&archive).arg("-C").arg(world.path("image")).arg(".");
    Ran::of(tar.output().unwrap()).expect(0);
    daemon.docker(&["import", archive.to_str().unwrap(), name]);
    name
}

#[test]
fn a_container_has_the_same_way_out() {
    let daemon = daemon::shared();
    let world = World::new();
    let host = Host::start(&world);
    let image = small_image(&world, &daemon);
    let config = format!(
        "[sandbox]\nbackend = \"docker\"\n[docker]\nsocket = {:?}\nimage = {:?}\n",
        daemon.socket.display().to_string(),
        image
    );
    world.configure(&config);
    // As curl does it, by hand: the image has hardly any program.
    let line = format!(
        "printf 'CONNECT {word} HTTP/1.1\\r\\nHost: {word}\\r\\n\\r\\n' | busybox nc -w 10 127.0.0.1 ${{https_proxy##*:}} | busybox head -n 1",
        word = host.word()
    );
    let line = shell(&line);
    let script = world.script(&[Turn(std::slice::from_ref(&line))]);
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let (dir, word) = (dir.to_str().unwrap(), host.word());
    let args = ["run", "Go.", "--dir", dir, "--script", &script, "--net", &word, "--name", "n"];
    let ran = run(&world, &host, 0, &args);
    assert!(ran.stderr.contains("HTTP/1.1 200"), "{}", ran.stderr);
}
