//! Whole calls against a fake provider that is not ours: `@copilotkit/aimock`,
//! which speaks all three wires and can misbehave on each.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread;

use outrigger_agent::{Item, ModelFault, Reply, Status, Stop};
use outrigger_model::{Api, Error, Purpose, RetryPolicy};

use crate::kit::{Recorder, ask, client_of, endpoint, hasty, result, says};
use crate::npm;

const FIXTURES: &str = r#"{ "fixtures": [
  { "match": { "userMessage": "greet", "hasToolResult": false },
    "response": { "reasoning": "A command will do.", "content": "I run it.",
      "toolCalls": [{ "name": "execute", "arguments": { "command": "echo hi" } }] } },
  { "match": { "userMessage": "greet", "hasToolResult": true, "toolResultContains": "hi" },
    "response": { "content": "It greets with hi." } },
  { "match": { "userMessage": "limited", "sequenceIndex": 0 },
    "response": { "error": { "message": "slow down", "type": "rate_limit_error" }, "status": 429, "retryAfter": 1 } },
  { "match": { "userMessage": "limited", "sequenceIndex": 1 }, "response": { "content": "Whole." } },
  { "match": { "userMessage": "wrong" },
    "response": { "error": { "message": "what is this", "type": "invalid_request_error" }, "status": 400 } },
  { "match": { "userMessage": "too long" },
    "response": { "error": { "message": "prompt is too long", "type": "invalid_request_error", "code": "context_length_exceeded" }, "status": 400 } },
  { "match": { "userMessage": "down" },
    "response": { "error": { "message": "out of order", "type": "server_error" }, "status": 503 } },
  { "match": { "userMessage": "truncated", "sequenceIndex": 0 }, "chunkSize": 4, "truncateAfterChunks": 3,
    "response": { "content": "This answer is cut before its end." } },
  { "match": { "userMessage": "truncated", "sequenceIndex": 1 }, "response": { "content": "Whole." } },
  { "match": { "userMessage": "hang up", "sequenceIndex": 0 }, "chunkSize": 4, "latency": 20, "disconnectAfterMs": 60,
    "response": { "content": "This answer is cut before its end, by a connection that is gone." } },
  { "match": { "userMessage": "hang up", "sequenceIndex": 1 }, "response": { "content": "Whole." } },
  { "match": { "userMessage": "slow" }, "chunkSize": 4, "latency": 60000,
    "response": { "content": "This answer takes its time." } },
  { "match": { "userMessage": "chaos" }, "response": { "content": "Whole." } }
] }"#;

/// A server that runs until it is dropped.
struct Aimock {
    child: Child,
    url: String,
}

/// The program, installed if it is not there.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| npm::installed("@copilotkit/aimock", "1.43.0", "dist/cli.js"))
}

impl Aimock {
    fn start(name: &str) -> Self {
        let fixtures = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("aimock-{name}.json"));
        std::fs::write(&fixtures, FIXTURES).unwrap();
        let mut child = Command::new("node")
            .arg(program())
            .args(["--strict", "-p", "0", "-f"])
            .arg(&fixtures)
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test needs `node`, to run @copilotkit/aimock");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.find_map(|line| {
            line.unwrap().split_once("listening on ").map(|(_, url)| url.trim().to_owned())
        });
        // What it says later must not fill its pipe.
        thread::spawn(move || lines.for_each(drop));
        Self { child, url: url.expect("aimock says where it listens before it ends") }
    }

    async fn call(&self, api: Api, task: &str, chaos: Option<&str>, policy: RetryPolicy) -> Ended {
        let mut endpoint = endpoint(api, &format!("{}/v1", self.url));
        // It counts requests per test.
        endpoint.headers = vec![("x-test-id".into(), format!("{api} {task} {chaos:?}"))];
        endpoint.headers.extend(chaos.map(|kind| (format!("x-aimock-chaos-{kind}"), "1".into())));
        let frames = Recorder::default();
        let model = client_of(endpoint, policy);
        let outcome = ask(&model, &[says(task)], Purpose::Turn, &frames).await;
        Ended { outcome, waits: frames.waits() }
    }
}

impl Drop for Aimock {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// How a call ended.
struct Ended {
    outcome: Result<Reply, Error>,
    waits: Vec<(u64, String)>,
}

/// The wires that it plays with the fixtures of these tests.
const PLAYED: [Api; 3] = [Api::AnthropicMessages, Api::OpenAiResponses, Api::OpenAiChat];

#[tokio::test]
async fn a_turn_with_a_tool_call_and_an_answer() {
    let aimock = Aimock::start("turn");
    for api in PLAYED {
        let endpoint = endpoint(api, &format!("{}/v1", aimock.url));
        let model = client_of(endpoint, hasty());
        let mut items = vec![says("Please greet.")];
        let frames = Recorder::default();
        let reply = ask(&model, &items, Purpose::Turn, &frames).await.unwrap();
        assert!(frames.all().len() > 3, "{api}: it streams");
        assert_eq!(reply.text(), "I run it.", "{api}");
        let calls: Vec<_> = reply.calls().cloned().collect();
        assert_eq!((calls.len(), calls[0].name.as_str()), (1, "execute"), "{api}");
        assert_eq!(calls[0].arguments, r#"{"command":"echo hi"}"#, "{api}");
        let text = serde_json::to_string(&reply).unwrap();
        items.push(Item::Reply(Arc::new(serde_json::from_str(&text).unwrap())));
        items.push(result(&calls[0].id, Status::Ok, "hi\n"));
        let reply = ask(&model, &items, Purpose::Turn, &frames).await.unwrap();
        assert_eq!((reply.text().as_str(), reply.stop), ("It greets with hi.", Stop::End), "{api}");
    }
}

#[tokio::test]
async fn a_rate_limit_is_waited_out() {
    let aimock = Aimock::start("limited");
    for api in PLAYED {
        let ended = aimock.call(api, "limited", None, hasty()).await;
        assert_eq!(ended.outcome.unwrap().text(), "Whole.", "{api}");
        let [(wait_ms, reason)] = &ended.waits[..] else { panic!("{api}: {:?}", ended.waits) };
        assert!((1_000..=1_250).contains(wait_ms), "{api}: {wait_ms}");
        assert_eq!(reason, "slow down", "{api}");
    }
}

#[tokio::test]
async fn broken_streams_are_retried() {
    let aimock = Aimock::start("broken");
    for api in PLAYED {
        for task in ["truncated", "hang up"] {
            let ended = aimock.call(api, task, None, hasty()).await;
            assert_eq!(ended.outcome.unwrap().text(), "Whole.", "{api} {task}");
            assert_eq!(ended.waits.len(), 1, "{api} {task}: {:?}", ended.waits);
        }
    }
}

#[tokio::test]
async fn errors_end_as_their_status_says() {
    let aimock = Aimock::start("errors");
    for api in PLAYED {
        for (task, fault, retries) in [
            ("wrong", ModelFault::Invalid, 0),
            ("too long", ModelFault::ContextTooLong, 0),
            ("down", ModelFault::RateLimited, 5),
        ] {
            let ended = aimock.call(api, task, None, hasty()).await;
            let error = ended.outcome.unwrap_err();
            assert_eq!((error.fault(), ended.waits.len()), (fault, retries), "{api}: {error}");
        }
    }
}

#[tokio::test]
async fn a_silent_stream_times_out() {
    let aimock = Aimock::start("silent");
    for api in PLAYED {
        let policy = RetryPolicy { idle_ms: 300, first_byte_ms: 300, attempts_max: 2, ..hasty() };
        let ended = aimock.call(api, "slow", None, policy).await;
        let error = ended.outcome.unwrap_err();
        assert_eq!(
            (error.fault(), ended.waits.len()),
            (ModelFault::Unavailable, 1),
            "{api}: {error}"
        );
    }
}

#[tokio::test]
async fn chaos_ends_after_every_attempt() {
    let aimock = Aimock::start("chaos");
    for api in PLAYED {
        for (chaos, fault, attempts_max) in [
            // It asks for a second each time, which is waited: two attempts will do.
            ("ratelimit", ModelFault::RateLimited, 2),
            ("malformed", ModelFault::Garbled, 6),
            ("disconnect", ModelFault::Unavailable, 6),
            ("drop", ModelFault::Unavailable, 6),
        ] {
            let policy = RetryPolicy { attempts_max, ..hasty() };
            let ended = aimock.call(api, "chaos", Some(chaos), policy).await;
            let error = ended.outcome.unwrap_err();
            let waits = attempts_max as usize - 1;
            assert_eq!((error.fault(), ended.waits.len()), (fault, waits), "{api}: {error}");
        }
    }
}
