//! Programs that know no proxy: in a sandbox names lead them to the gate.

use crate::daemon;
use crate::held_hosts::proxy;
use crate::network::small_image;
use crate::support::{Ran, Turn, World, shell};
use crate::tls_host::{NAME, TlsHost, answer_all};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A host whose name is known to the operator's proxy alone, and what it was asked.
fn host(world: &World) -> (TlsHost, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&asked);
    let tls = TlsHost::start(world, move |stream| {
        answer_all(stream, |request| {
            seen.lock().unwrap().push(request.path.clone());
            (200, String::new(), format!("here is {}\n", request.path).into_bytes())
        });
    });
    (tls, asked)
}

/// Runs commands in a sandbox that may reach one name, which is known to an operator's proxy
/// alone. Gives what came of it.
fn run(world: &World, tls: &TlsHost, proxy: &str, lines: &[String]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| shell(line)).collect();
    let turns: Vec<_> = lines.iter().map(std::slice::from_ref).map(Turn).collect();
    let script = world.script(&turns);
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let dir = dir.to_str().unwrap();
    let args = ["run", "Go.", "--dir", dir, "--script", &script, "--net", NAME, "--name", "n"];
    let mut command = tls.trusting(world, &args);
    Ran::of(command.env("https_proxy", proxy).output().unwrap()).expect(0);
    world.events("n").iter().map(|event| format!("{event}\n")).collect()
}

/// No variable of a proxy.
const WITHOUT: &str =
    "env -u http_proxy -u https_proxy -u HTTP_PROXY -u HTTPS_PROXY -u NODE_USE_ENV_PROXY";

#[test]
fn programs_without_a_proxy_reach_what_is_granted_and_nothing_else() {
    let world = World::new();
    let (tls, asked) = host(&world);
    let python = "import http.client as h, sys\n\
                  c = h.HTTPSConnection(sys.argv[1])\n\
                  c.request(\"GET\", sys.argv[2])\n\
                  r = c.getresponse()\n\
                  print(r.status, r.read().decode())";
    let node = "const [host, path] = process.argv.slice(1);\
                require(\"https\").get({ host, path }, r => r.pipe(process.stdout))";
    let all = vec![
        format!("{WITHOUT} curl -sS --noproxy '*' https://{NAME}/curl"),
        format!("{WITHOUT} python3 -c '{python}' {NAME} /python"),
        format!("{WITHOUT} node -e '{node}' {NAME} /node"),
        format!("{WITHOUT} python3 -c '{python}' other.example /"),
        format!("{WITHOUT} curl -sS --noproxy '*' http://plain.example/"),
        "getent ahosts nobody.invalid || echo no such name".to_owned(),
    ];
    let events = run(&world, &tls, &tls.proxy(), &all);
    assert_eq!(*asked.lock().unwrap(), ["/curl", "/python", "/node"], "{events}");
    for text in [
        "here is /curl",
        "200 here is /python",
        "here is /node",
        // The answer itself, and what stands behind the output.
        "403 outrigger: the network of this sandbox does not include other.example:443",
        "`--net other.example` would allow it.",
        "[other.example was not reached: it is not in the network of this sandbox",
        "the network of this sandbox does not include plain.example:80",
        "no such name",
    ] {
        assert!(events.contains(text), "{text}\n{events}");
    }
}

#[test]
fn programs_of_a_container_without_a_proxy_do_so_too() {
    let daemon = daemon::shared();
    let world = World::new();
    let (tls, _) = host(&world);
    let image = small_image(&world, &daemon);
    let socket = daemon.socket.display().to_string();
    world.configure(&format!(
        "[sandbox]\nbackend = \"docker\"\n[docker]\nsocket = {socket:?}\nimage = {image:?}\n"
    ));
    // Its TLS is too old for anybody.
    let get = |host: &str| {
        format!("busybox env -u http_proxy busybox wget -q -O - http://{host}/wget 2>&1")
    };
    let proxy = format!("http://127.0.0.1:{}", proxy());
    let events = run(&world, &tls, &proxy, &[get(NAME), get("other.example")]);
    assert!(events.contains(&format!("here is http://{NAME}/wget")), "{events}");
    assert!(events.contains("403 Forbidden") && !events.contains("here is http://other"));
    assert!(events.contains("[other.example was not reached"), "{events}");
}

/// A host of no protocol that anybody knows, which speaks first. Gives its port.
fn greeter() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut heard = String::new();
            let _ = stream.write_all(b"greetings\n");
            let _ = stream.read_to_string(&mut heard);
            let _ = stream.write_all(format!("heard {}\n", heard.trim()).as_bytes());
        }
    });
    port
}

/// Commands that may reach such a host, and one whose port is named later.
fn greeted(world: &World, talk: impl Fn(&str, u16) -> String) {
    let (port, other) = (greeter(), greeter());
    let words = [port, other].map(|port| format!("tcp:localhost:{port}"));
    let lines = [talk("db.example.com", port), talk("127.64.0.1", port), talk("a.example", other)];
    let lines = lines.map(|line| shell(&line));
    let script = world.script(&lines.each_ref().map(std::slice::from_ref).map(Turn));
    let again = Turn(std::slice::from_ref(&lines[2])).text() + "[[turn]]\ntext = \"Done.\"\n";
    fs::write(&script, fs::read_to_string(&script).unwrap() + &again).unwrap();
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let dir = dir.to_str().unwrap();
    let heard = |times: usize, port: u16, word: &str| {
        let events: String = world.events("n").iter().map(|event| format!("{event}\n")).collect();
        assert_eq!(events.matches("heard by name").count(), times, "{events}");
        let flow = format!("\"host\":\"localhost\",\"port\":{port},\"grant\":\"{word}\"");
        assert!(events.contains(&flow), "{events}");
    };
    let args = ["run", "Go.", "--dir", dir, "--script", &script, "--net", &words[0]];
    world.ran(0, &[&args[..], &["--name", "n"]].concat());
    heard(2, port, &words[0]);
    world.ran(0, &["sessions", "say", "n", "Again.", "--net", &words[1]]);
    heard(3, other, &words[1]);
}

#[test]
fn what_is_passed_on_unread_needs_no_proxy() {
    let python = "import socket, sys\n\
                  s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n\
                  s.recv(99)\n\
                  s.sendall(b\"by name\")\n\
                  s.shutdown(socket.SHUT_WR)\n\
                  print(s.recv(99).decode())";
    let world = World::new();
    greeted(&world, |host, port| format!("python3 -c '{python}' {host} {port}"));
    let dir = world.dir("other", &[("file", b"file\n")]);
    let (dir, script) = (dir.to_str().unwrap(), world.script(&[Turn(&[shell("true")])]));
    let two = "tcp:a.example:22,tcp:b.example:22";
    let ran = world.ran(2, &["run", "Go.", "--dir", dir, "--script", &script, "--net", two]);
    let why = "a.example and b.example can't both be passed on unread at port 22";
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
}

#[test]
fn what_is_passed_on_unread_gets_out_of_a_container_too() {
    let daemon = daemon::shared();
    let world = World::new();
    let image = small_image(&world, &daemon);
    let socket = daemon.socket.display().to_string();
    world.configure(&format!(
        "[sandbox]\nbackend = \"docker\"\n[docker]\nsocket = {socket:?}\nimage = {image:?}\n"
    ));
    greeted(&world, |host, port| format!("echo by name | busybox nc {host} {port}"));
}
