//! Secrets: used by the programs of a sandbox, and seen by nothing but the gate and the host
//! that they are for.

use crate::canary::{hits, holds, memory_of};
use crate::support::{Ran, Turn, World, fed, processes, shell, until};
use crate::tls_host::{
    ADDRESS, HostRequest, HostStream, NAME, TlsHost, answer_all, gates, kill_gates,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// In two parts, so that this program's own text does not have it.
pub(crate) fn canary() -> String {
    ["ghp_canaryCANARY0123", "456789abcdefghijklmn"].concat()
}

/// A place where packages and repositories are, for whoever has the secret.
pub(crate) struct Forge {
    pub(crate) tls: TlsHost,
    seen: Arc<Mutex<Vec<HostRequest>>>,
    /// Whether what waits there may go on.
    goes_on: Arc<AtomicBool>,
    root: PathBuf,
}

impl Forge {
    pub(crate) fn start(world: &World) -> Self {
        let root = world.dir("forge", &[]);
        let (seen, goes_on) = <(Arc<Mutex<Vec<HostRequest>>>, Arc<AtomicBool>)>::default();
        let serving = (root.clone(), Arc::clone(&seen), Arc::clone(&goes_on));
        let tls = TlsHost::start(world, move |stream: HostStream| {
            let (root, seen, goes_on) = &serving;
            answer_all(stream, |request| {
                seen.lock().unwrap().push(request.clone());
                if request.path == "/wait" {
                    until("it may go on", || goes_on.load(Ordering::SeqCst).then_some(()));
                }
                answer(root, request)
            });
        });
        Self { tls, seen, goes_on, root }
    }

    /// What was asked with the secret, each once.
    pub(crate) fn with_secret(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let mut all: Vec<_> = seen
            .iter()
            .filter(|request| is_known(request))
            .map(|request| request.path.split('?').next().unwrap().to_owned())
            .collect();
        all.sort();
        all.dedup();
        all
    }
}

fn is_known(request: &HostRequest) -> bool {
    let secret = canary();
    let authorization = request.header("authorization").unwrap_or_default();
    let basic = authorization.strip_prefix("Basic ").and_then(|text| STANDARD.decode(text).ok());
    let basic = basic.is_some_and(|said| said.ends_with(format!(":{secret}").as_bytes()));
    basic
        || authorization == format!("Bearer {secret}")
        || request.header("x-api-key") == Some(&secret)
}

fn answer(root: &Path, request: &HostRequest) -> (u16, String, Vec<u8>) {
    if !is_known(request) {
        return (401, "www-authenticate: Basic realm=\"forge\"\r\n".to_owned(), Vec::new());
    }
    let path = request.path.as_str();
    if path.starts_with("/o/") {
        return git(root, request);
    }
    let kind = |kind: &str| format!("content-type: {kind}\r\n");
    match path {
        "/simple/small/" => {
            let link = b"<a href=\"/small-1.0-py3-none-any.whl\">small-1.0-py3-none-any.whl</a>";
            (200, kind("text/html"), link.to_vec())
        }
        "/small-1.0-py3-none-any.whl" => {
            (200, kind("application/octet-stream"), fs::read(root.join("wheel")).unwrap())
        }
        "/npm/small" => {
            let text = "{\"name\": \"small\", \"dist-tags\": {\"latest\": \"1.2.3\"}, \"versions\": {\"1.2.3\": {\"name\": \"small\", \"version\": \"1.2.3\"}}}";
            (200, kind("application/json"), text.into())
        }
        // Some send back all that they were sent.
        _ => (200, String::new(), request.head.clone().into_bytes()),
    }
}

/// git's own server (git-http-backend(1)).
fn git(root: &Path, request: &HostRequest) -> (u16, String, Vec<u8>) {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let mut command = Command::new("git");
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "somebody")
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", &request.method)
        .env("CONTENT_TYPE", request.header("content-type").unwrap_or_default())
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", request.header("content-encoding").unwrap_or_default())
        .env("HTTP_GIT_PROTOCOL", request.header("git-protocol").unwrap_or_default());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git is installed");
    let (mut input, body) = (child.stdin.take().unwrap(), request.body.clone());
    let feeding = std::thread::spawn(move || input.write_all(&body));
    let output = child.wait_with_output().unwrap().stdout;
    // It may have had enough before the end.
    let _ = feeding.join().unwrap();
    let end = output.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 2;
    let mut status = 200;
    let mut headers = String::new();
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        match line.strip_prefix("Status: ") {
            Some(text) => status = text[..3].parse().unwrap(),
            None => headers.push_str(&format!("{line}\r\n")),
        }
    }
    (status, headers, output[end + 2..].to_vec())
}

/// Keeps a secret.
pub(crate) fn set(world: &World, forge: &Forge, args: &[&str]) {
    let args = [&["secrets", "set"], args].concat();
    fed(forge.tls.trusting(world, &args), format!("{}\n", canary()).as_bytes()).expect(0);
}

/// A repository with one commit, and a wheel.
fn fill(world: &World, forge: &Forge) {
    let repository = forge.root.join("o/app.git");
    let path = repository.to_str().unwrap();
    let work = world.dir("work", &[("file", b"file\n")]);
    world.git(&work, &["init", "-q", "--bare", "-b", "main", path]);
    world.git(&work, &["-C", path, "config", "http.receivepack", "true"]);
    world.git(&work, &["init", "-q", "-b", "main"]);
    world.git(&work, &["add", "."]);
    world.git(&work, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]);
    world.git(&work, &["push", "-q", path, "main"]);
    let wheel = "import sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w') as z:\n  z.writestr('small.py', '')\n  d = 'small-1.0.dist-info/'\n  z.writestr(d + 'METADATA', 'Metadata-Version: 2.1\\nName: small\\nVersion: 1.0\\n')\n  z.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n  z.writestr(d + 'RECORD', '')\n";
    let mut python = world.command("python3");
    python.args(["-c", wheel]).arg(forge.root.join("wheel"));
    Ran::of(python.output().expect("python3 is installed")).expect(0);
}

/// Node has no proxy of its own before version 24.
const NODE: &str = "const http = require('http'), tls = require('tls'), url = new URL(process.env.https_proxy); \
    http.request({ host: url.hostname, port: url.port, method: 'CONNECT', path: process.argv[1], headers: { host: process.argv[1] } }) \
    .on('connect', (_, socket) => { const t = tls.connect({ socket, servername: process.argv[1].split(':')[0] }, () => { \
    t.write('GET /node HTTP/1.1\\r\\nHost: ' + process.argv[1] + '\\r\\nConnection: close\\r\\nAuthorization: Bearer ' + process.env.TOKEN + '\\r\\n\\r\\n'); }); \
    t.on('data', data => { console.log(String(data)); process.exit(); }); }).end();";

/// What everybody's programs do with a token, each in its own way.
fn programs(word: &str, url: &str) -> Vec<String> {
    vec![
        "set -e".to_owned(),
        format!("curl -sS {url}/curl -H \"Authorization: Bearer $TOKEN\""),
        format!("curl -sS {url}/key -H \"X-Api-Key: $TOKEN\""),
        format!(
            "python3 -c \"import os, urllib.request as r; print(r.urlopen(r.Request('{url}/python', headers={{'Authorization': 'Bearer ' + os.environ['TOKEN']}})).read().decode())\""
        ),
        format!("node -e \"$(cat node.js)\" {word}"),
        "python3 -m venv /tmp/venv".to_owned(),
        format!(
            "/tmp/venv/bin/pip download -q --no-deps -d /tmp -i https://somebody:$TOKEN@{word}/simple/ small"
        ),
        format!(
            "printf 'registry=%s\\n//%s/npm/:_authToken=${{TOKEN}}\\n' {url}/npm/ {word} > .npmrc"
        ),
        "npm view small version".to_owned(),
        format!("git clone -q {url}/o/app.git app && cd app && git checkout -q -b agent/x"),
        "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m two".to_owned(),
        "git push -q origin agent/x".to_owned(),
        "git push origin agent/x:main 2>&1 | grep 'remote rejected.*would change refs/heads/main'"
            .to_owned(),
        "env > /tmp/environment && cp /tmp/environment .".to_owned(),
        format!("curl -sS {url}/wait -H \"X-Api-Key: $TOKEN\" && echo all of it"),
    ]
}

#[test]
fn a_secret_is_used_by_everybodys_programs_and_found_nowhere() {
    let world = World::new();
    let forge = Forge::start(&world);
    // The engine, the spawner, the guest, the shell and curl.
    used_and_found_nowhere(&world, &forge, |engine| memory_has_it_nowhere(&world, engine, 4));
}

/// Lets everybody's programs use a secret in a sandbox, and searches afterwards. `meanwhile`:
/// while one of them waits for its answer; given the engine's id.
pub(crate) fn used_and_found_nowhere(world: &World, forge: &Forge, meanwhile: impl FnOnce(u32)) {
    fill(world, forge);
    // npm takes the address of a host behind a proxy for `localhost`: it needs a name.
    let word = format!("{NAME}:{}", forge.tls.port);
    let url = format!("https://{word}");
    set(world, forge, &["TOKEN", "--for", &word, "--git", &format!("{url}/o/app")]);
    fs::write(world.dir("repo", &[("file", b"file\n")]).join("node.js"), NODE).unwrap();
    let lines = programs(&word, &url);
    let line = shell(&lines.join("\n"));
    let script = world.script(&[Turn(std::slice::from_ref(&line))]);
    let repo = world.path("repo");
    let dir = repo.to_str().unwrap();
    let args = ["run", "Go.", "--dir", dir, "--script", &script, "--name", "n"];
    let args = [&args[..], &["--secret", "TOKEN"]].concat();
    let mut engine = forge.tls.trusting(world, &args);
    let engine = engine.env("https_proxy", forge.tls.proxy()).stderr(Stdio::piped());
    let engine = engine.stdout(Stdio::piped()).spawn().unwrap();
    let mut engine = Some(engine);
    for path in ["/curl", "/node", "/npm/small", "/wait"] {
        until(path, || {
            if let Some(ended) = engine.as_mut().unwrap().try_wait().unwrap() {
                let output = engine.take().unwrap().wait_with_output().unwrap();
                panic!("it ended with {ended}: {}", String::from_utf8_lossy(&output.stderr));
            }
            let arrived = |request: &HostRequest| request.path == path;
            forge.seen.lock().unwrap().iter().any(arrived).then_some(())
        });
    }
    meanwhile(engine.as_ref().unwrap().id());
    forge.goes_on.store(true, Ordering::SeqCst);
    let ran = Ran::of(engine.unwrap().wait_with_output().unwrap()).expect(0);
    assert!(ran.stderr.contains("all of it"), "{}", ran.stderr);
    let used = forge.with_secret();
    for path in ["/curl", "/key", "/python", "/node", "/simple/small/", "/npm/small", "/wait"] {
        assert!(used.contains(&path.to_owned()), "{path}: {used:?}");
    }
    let branches = world.git(&forge.root.join("o/app.git"), &["branch", "--list"]);
    assert!(branches.contains("agent/x"), "{branches}");
    let main = world.git(&forge.root.join("o/app.git"), &["log", "--format=%s", "main"]);
    assert_eq!(main.trim(), "one");
    let secret = canary();
    // The disks of sandboxes, the journal, what was printed and what is kept in all.
    let mut searched = 0;
    for text in [secret.clone(), STANDARD.encode(format!("x-access-token:{secret}"))] {
        assert_eq!(hits(&world.path(""), &text, &mut searched), [""; 0]);
    }
    assert!(searched > 0);
    assert!(!ran.stdout.contains(&secret) && !ran.stderr.contains(&secret));
    let shown = world.ran(0, &["sessions", "show", "n"]);
    assert!(!shown.stdout.contains(&secret));
}

/// No process that has to do with it has the secret in its memory, but for the gate. `least`: how
/// many there are.
pub(crate) fn memory_has_it_nowhere(world: &World, engine: u32, least: usize) {
    let has = |text: &[u8], word: &[u8]| text.windows(word.len()).any(|window| window == word);
    let data = world.data();
    let is_ours = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        *pid == engine
            || has(&line, data.as_os_str().as_encoded_bytes())
            || has(&environ, b"GIT_CONFIG_KEY_0=credential.")
    };
    let (own, gates) = (std::process::id(), gates(world));
    assert_eq!(gates.len(), 1);
    let mut processes = processes();
    processes.retain(|pid| *pid != own && !gates.contains(pid) && is_ours(pid));
    // Some end meanwhile, as what a daemon of a program does on the side.
    let memory = processes.iter().filter_map(|pid| Some((pid, memory_of(*pid)?)));
    let memory: Vec<_> = memory.collect();
    assert!(memory.len() >= least, "{processes:?}");
    for (pid, memory) in memory {
        assert!(!holds(&memory, &canary()), "process {pid} has the secret");
    }
}

#[test]
fn secrets_are_kept_listed_rotated_and_revoked() {
    let world = World::new();
    let forge = Forge::start(&world);
    let ran = world.ran(2, &["secrets", "set", "TOKEN"]);
    assert!(ran.stderr.contains("has to be sent somewhere"), "{}", ran.stderr);
    let short =
        fed(forge.tls.trusting(&world, &["secrets", "set", "T", "--for", "a.example"]), b"x");
    assert!(short.expect(2).stderr.contains("at least 8 characters"));
    set(&world, &forge, &["TOKEN", "--for", &forge.tls.word(), "--days", "9"]);
    let listed = world.ran(0, &["secrets", "ls"]).stdout;
    assert!(listed.contains("TOKEN") && listed.contains(ADDRESS) && listed.contains("until"));
    let all = world.ran(0, &["secrets", "ls", "--json"]).stdout;
    assert!(!all.contains(&canary()) && !all.contains("sealed"), "{all}");

    let line = shell(&format!(
        "curl -sS -o /dev/null -w '%{{http_code}} ' {} -H \"X-Api-Key: $TOKEN\"",
        forge.tls.url("/")
    ));
    let turn = Turn(std::slice::from_ref(&line)).text() + "[[turn]]\ntext = \"Done.\"\n";
    let script = world.path("script.toml");
    fs::write(&script, turn.repeat(3)).unwrap();
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let (dir, script) = (dir.to_str().unwrap(), script.to_str().unwrap());
    let args = ["run", "Go.", "--dir", dir, "--script", script, "--name", "n"];
    let missing = world.ran(4, &[&args[..], &["--secret", "OTHER"]].concat());
    assert!(missing.stderr.contains("there is no secret OTHER"), "{}", missing.stderr);
    let run = |args: &[&str]| Ran::of(forge.tls.trusting(&world, args).output().unwrap()).expect(0);
    run(&[&args[..], &["--secret", "TOKEN"]].concat());
    assert_eq!(forge.with_secret(), ["/"]);
    let asked = || forge.seen.lock().unwrap().len();
    let key = || forge.seen.lock().unwrap().last().unwrap().header("x-api-key").map(str::to_owned);

    let next = "ghp_rotatedROTATED0123456789abcdefghijkl";
    fed(forge.tls.trusting(&world, &["secrets", "rotate", "TOKEN"]), next.as_bytes()).expect(0);
    run(&["sessions", "say", "n", "Again."]);
    assert_eq!(key().as_deref(), Some(next));
    let before = asked();
    run(&["secrets", "revoke", "TOKEN"]);
    run(&["sessions", "say", "n", "Again."]);
    assert_eq!(asked(), before, "{:?}", key());
    assert!(world.ran(0, &["secrets", "ls"]).stdout.is_empty());
    world.ran(4, &["secrets", "revoke", "TOKEN"]);
}

#[test]
fn a_secret_that_a_rule_forbids_is_not_sent() {
    let world = World::new();
    let forge = Forge::start(&world);
    for name in ["TOKEN", "ROOT_KEY"] {
        set(&world, &forge, &[name, "--for", &forge.tls.word()]);
    }
    let rules = world.path("rules.cedar");
    let text = "@id(\"no-root-key\") @reason(\"It is for people.\")
        forbid (principal, action == Action::\"use_secret\", resource == Secret::\"ROOT_KEY\");
        @id(\"once\")
        forbid (principal, action == Action::\"use_secret\", resource == Secret::\"TOKEN\")
        when { context.labels.contains(\"untrusted\") };";
    fs::write(&rules, text).unwrap();
    world.configure(&format!("[policy]\nfiles = [{rules:?}]\n"));
    let url = forge.tls.url("/");
    let line = shell(&format!(
        "echo key ${{ROOT_KEY:-none}}; curl -sS -o /dev/null -w '%{{http_code}} ' {url} -H \"X-Api-Key: $TOKEN\""
    ));
    let script =
        world.script(&[Turn(std::slice::from_ref(&line)), Turn(std::slice::from_ref(&line))]);
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let args = ["run", "Go.", "--dir", dir.to_str().unwrap(), "--script", &script, "--name", "n"];
    let both = ["--secret", "TOKEN", "--secret", "ROOT_KEY", "--net", &forge.tls.word()];
    let args = [&args[..], &both].concat();
    Ran::of(forge.tls.trusting(&world, &args).output().unwrap()).expect(0);
    assert_eq!(forge.with_secret(), ["/"]);
    let events: String = world.events("n").iter().map(|event| format!("{event}\n")).collect();
    for text in [
        "key none\\n200 ",
        "[ROOT_KEY is not sent anywhere. It is forbidden by: no-root-key. It is for people.]",
        // What the host answered nobody vouches for.
        "key none\\n401 ",
        "[TOKEN is not sent anywhere. It is forbidden by: once.]",
    ] {
        assert!(events.contains(text), "{text}\n{events}");
    }
}

/// As a keyring gives it: no file has it, and the next gate opens what the one before sealed.
#[test]
fn the_master_key_comes_from_a_command() {
    let world = World::new();
    let forge = Forge::start(&world);
    let of = |argv: &str| world.configure(&format!("[gate]\nmaster_key_command = {argv}\n"));
    let args = ["secrets", "set", "TOKEN", "--for", &forge.tls.word()];
    for (argv, said) in [
        ("[\"false\"]", "its command does not print 32 bytes in base64"),
        ("[\"no-such-program\"]", "no-such-program, which gives the master key"),
    ] {
        of(argv);
        let ran = fed(forge.tls.trusting(&world, &args), canary().as_bytes()).expect(13);
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    of(&format!("[\"echo\", \"{}\"]", STANDARD.encode([7; 32])));
    set(&world, &forge, &args[2..]);
    let key = world.data().join("gate/master.key");
    assert!(!key.exists());
    kill_gates(&world);
    let line = shell(&format!("curl -sS {} -H \"X-Api-Key: $TOKEN\"", forge.tls.url("/")));
    let script = world.script(&[Turn(std::slice::from_ref(&line))]);
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let run = ["run", "Go.", "--dir", dir.to_str().unwrap(), "--script", &script];
    let run = [&run[..], &["--secret", "TOKEN"]].concat();
    Ran::of(forge.tls.trusting(&world, &run).output().unwrap()).expect(0);
    assert_eq!(forge.with_secret(), ["/"]);
    assert!(!key.exists());
}
