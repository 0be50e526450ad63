//! Keys of providers: with the provider, and nowhere in the harness.

use crate::canary::{hits, holds, memory_of, secret};
use crate::support::{Ran, World};
use crate::tls_host::{HostRequest, NAME, TlsHost, answer_all};
use serde_json::json;
use std::fs;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// A provider that answers what it is told, when it is told.
struct WaitingProvider {
    tls: TlsHost,
    requests: Receiver<HostRequest>,
    texts: Sender<String>,
}

impl WaitingProvider {
    fn start(world: &World) -> Self {
        let ((heard, requests), (texts, said)) = (channel(), channel::<String>());
        let said = Arc::new(Mutex::new(said));
        let tls = TlsHost::start(world, move |stream| {
            answer_all(stream, |request| {
                heard.send(request.clone()).unwrap();
                let text = said.lock().unwrap().recv().unwrap_or_default();
                let headers = "content-type: text/event-stream\r\n".to_owned();
                (200, headers, messages(&text).into_bytes())
            });
        });
        Self { tls, requests, texts }
    }

    /// The key of the next request.
    fn key(&self) -> Option<String> {
        self.requests.recv().unwrap().header("x-api-key").map(str::to_owned)
    }
}

/// A stream of Anthropic's that says this and ends.
fn messages(text: &str) -> String {
    let events = [
        json!({ "type": "message_start", "message": { "id": "m", "role": "assistant", "content": [], "usage": { "input_tokens": 1, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 2 } }),
        json!({ "type": "message_stop" }),
    ];
    let events = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    events.collect()
}

#[test]
fn a_key_is_with_its_provider_and_nowhere_in_the_harness() {
    let (world, key) = (World::new(), format!("sk-ant-{}", secret()));
    let provider = WaitingProvider::start(&world);
    let dir = world.dir("repo", &[("plain", b"x")]);
    let args = ["run", "Do it.", "--dir", dir.to_str().unwrap()];
    let mut command = provider.tls.trusting(&world, &args);
    command.env("ANTHROPIC_API_KEY", &key).env("ANTHROPIC_BASE_URL", provider.tls.url(""));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The harness waits for the model now.
    assert_eq!(provider.key().as_deref(), Some(key.as_str()));
    // As another user nobody looks into it.
    if rustix::process::geteuid().is_root() {
        let environ = fs::read(format!("/proc/{}/environ", child.id())).unwrap();
        assert!(holds(&environ, "OUTRIGGER_SEALED_KEYS") && holds(&environ, "SSL_CERT_FILE"));
        assert!(!holds(&environ, &key) && !holds(&environ, "ANTHROPIC_API_KEY="));
        let memory = memory_of(child.id()).unwrap();
        assert!(holds(&memory, "Do it."), "the memory could be read");
        assert!(!holds(&memory, &key), "the key is in the memory of the harness");
    }
    // Nor does it come back, where the provider repeats it.
    provider.texts.send(format!("You sent {key}.")).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap()).expect(0);
    assert!(ran.stdout.starts_with("You sent sk-ant-"), "{}", ran.stdout);
    assert!(!ran.stdout.contains(&key) && !ran.stderr.contains(&key), "{}", ran.stderr);
    let mut searched = 0;
    assert_eq!(hits(&world.data(), &key, &mut searched), Vec::<String>::new());
    assert!(searched > 5, "{searched} files: the journal is among them");
}

#[test]
fn a_key_goes_only_where_the_person_says() {
    let world = World::new();
    let provider = WaitingProvider::start(&world);
    let dir = world.dir("repo", &[("plain", b"x")]);
    let run = |variables: &[(&str, &str)], code: i32, args: &[&str]| {
        let mut command = provider.tls.trusting(&world, args);
        command.envs(variables.iter().copied());
        Ran::of(command.output().unwrap()).expect(code)
    };
    let (key, url) = (("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef"), provider.tls.url(""));
    let url = url.as_str();
    provider.texts.send("One.".to_owned()).unwrap();
    let dir = dir.to_str().unwrap();
    run(&[key], 0, &["run", "Do it.", "--dir", dir, "--provider", "anthropic", "--base-url", url]);
    assert_eq!(provider.key().as_deref(), Some(key.1));
    // What the session says of the address is not the person's word.
    let say = ["sessions", "say", &world.session(), "and?"];
    let told = run(&[key], 3, &say).stderr;
    assert!(told.contains("is not sent to 127.0.0.2") && told.contains("OUTRIGGER_BASE_URL"));
    provider.texts.send("Two.".to_owned()).unwrap();
    run(&[key, ("OUTRIGGER_BASE_URL", url)], 0, &say);
    assert_eq!(provider.key().as_deref(), Some(key.1));
}

/// As sandboxes reach others: a name that only the proxy knows.
#[test]
fn a_provider_is_reached_through_the_operators_proxy() {
    let world = World::new();
    let provider = WaitingProvider::start(&world);
    provider.texts.send("Through it.".to_owned()).unwrap();
    let dir = world.dir("repo", &[("plain", b"x")]);
    let args = ["run", "Do it.", "--dir", dir.to_str().unwrap()];
    let mut command = provider.tls.trusting(&world, &args);
    let url = format!("https://{NAME}:{}", provider.tls.port);
    command.env("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef").env("ANTHROPIC_BASE_URL", url);
    let ran = Ran::of(command.env("https_proxy", provider.tls.proxy()).output().unwrap()).expect(0);
    assert!(ran.stdout.starts_with("Through it."), "{}", ran.stdout);
}

#[test]
fn without_a_gate_it_is_said() {
    let world = World::new();
    fs::create_dir_all(world.data()).unwrap();
    fs::write(world.data().join("gate"), "in the way").unwrap();
    let dir = world.dir("repo", &[("plain", b"x")]);
    let mut command = world.outrigger(&["run", "Do it.", "--dir", dir.to_str().unwrap()]);
    command.env("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef");
    let ran = Ran::of(command.output().unwrap()).expect(14);
    assert!(
        ran.stderr.contains("the gate, through which the outside is reached"),
        "{}",
        ran.stderr
    );
}
