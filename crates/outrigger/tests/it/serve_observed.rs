//! What a server tells of itself: traces, metrics, and a log in JSON.

use crate::otlp_collector::{Answer, Collector, attribute};
use crate::serve::Served;
use crate::support::{Turn, World, shell, until};
use opentelemetry_proto::tonic::trace::v1::Span;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Of the key that the collector wants.
const KEY: &str = "otlp-k3y-0123456789-abcdefghij";
const VARIABLES: &[(&str, &str)] = &[("OTLP_AUTH", "Bearer otlp-k3y-0123456789-abcdefghij")];
const SAID: [&str; 3] = ["canary-of-the-prompt", "canary-of-the-command", "canary-of-the-output"];

fn observed(collector: &Collector, more: &str, turns: &[Turn<'_>]) -> Served {
    let world = World::new();
    world.configure(&format!(
        "[telemetry]\nendpoint = '{}'\nheaders_env = {{ authorization = 'OTLP_AUTH' }}\n{more}\n",
        collector.url
    ));
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let script = world.script(turns);
    Served::with(world, &dir, &script, VARIABLES)
}

/// Says what nobody else is to know.
fn telling() -> Turn<'static> {
    // The output is not the text of the command.
    Turn(Box::leak(Box::new([shell("echo canary-of-the-command | sed s/command/output/; exit 3")])))
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name.starts_with(name)).collect()
}

fn turn_is_there(collector: &Collector) -> Vec<Span> {
    until("the turn's span is there", || {
        let spans = collector.spans();
        (!named(&spans, "invoke_agent").is_empty()).then_some(spans)
    })
}

fn metric(served: &Served, line: &str) -> f64 {
    let (status, text) = served.curl(&["--cookie", &served.jar()], "/metrics");
    assert_eq!(status, 200, "{text}");
    let value = text.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(' '));
    value.map_or(0.0, |value| value.parse().unwrap())
}

#[test]
fn a_turn_is_a_trace_that_others_read_and_that_tells_nothing_that_was_said() {
    let collector = Collector::new(Answer::Takes);
    let served = observed(&collector, "", &[telling()]);
    let session = served.create(SAID[0]);
    served.await_status(&session, "answered");
    let spans = turn_is_there(&collector);
    let (turns, chats) = (named(&spans, "invoke_agent default"), named(&spans, "chat "));
    let tools = named(&spans, "execute_tool execute");
    assert_eq!((turns.len(), chats.len(), tools.len()), (1, 2, 1), "{spans:#?}");
    for span in &spans {
        assert_eq!(span.trace_id, turns[0].trace_id);
        let parent = if span.name.starts_with("invoke") { &[][..] } else { &turns[0].span_id };
        assert_eq!(span.parent_span_id, parent, "{}", span.name);
        let of = attribute(&span.attributes, "gen_ai.conversation.id");
        assert_eq!(of.as_deref(), Some(&*session));
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        assert!(turns[0].start_time_unix_nano <= span.start_time_unix_nano);
    }
    let tool = |name| attribute(&tools[0].attributes, name);
    assert_eq!(tool("gen_ai.operation.name").as_deref(), Some("execute_tool"));
    assert_eq!(tool("process.exit.code").as_deref(), Some("3"));
    let exec = format!("{session}.{}", tool("outrigger.seq").unwrap());
    assert_eq!(tool("outrigger.exec.id").as_deref(), Some(&*exec));
    let chat = |name| attribute(&chats[0].attributes, name);
    assert_eq!(chat("gen_ai.provider.name").as_deref(), Some("script"));
    assert!(chat("gen_ai.usage.input_tokens").is_some(), "{:?}", chats[0]);

    for received in collector.received() {
        let text = String::from_utf8(received.body).unwrap();
        for said in SAID {
            assert!(!text.contains(said), "{said} is told: {text}");
        }
        let head = received.head.to_ascii_lowercase();
        assert!(head.starts_with("post /v1/traces "), "{head}");
        assert!(head.contains(&format!("authorization: bearer {KEY}\r\n")), "{head}");
    }
    let sent = until("they are counted", || {
        let sent = metric(&served, "outrigger_spans_total{outcome=\"exported\"}");
        (sent >= spans.len() as f64).then_some(sent)
    });
    assert_eq!(sent, collector.spans().len() as f64);
    let tool =
        "gen_ai_execute_tool_duration_seconds_count{gen_ai_tool_name=\"execute\",error_type=\"\"}";
    assert_eq!(metric(&served, tool), 1.0);
    let (_, text) = served.curl(&["--cookie", &served.jar()], "/metrics");
    for name in ["gen_ai_client_operation_duration_seconds_count", "gen_ai_client_token_usage_sum"]
    {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        assert!(line.contains("gen_ai_operation_name=\"chat\""), "{name}: {text}");
    }
    assert!(text.contains("outrigger_http_request_duration_seconds_bucket{"), "{text}");
}

#[test]
fn what_was_said_is_told_where_that_is_wanted() {
    let collector = Collector::new(Answer::Takes);
    let served = observed(&collector, "content = true", &[telling()]);
    served.create(SAID[0]);
    let spans = turn_is_there(&collector);
    let has = |name: &str, key: &str, said: &str| {
        let all = named(&spans, name);
        let texts: Vec<_> = all.iter().filter_map(|it| attribute(&it.attributes, key)).collect();
        assert!(texts.iter().any(|text| text.contains(said)), "{name} {key}: {texts:?}");
    };
    has("invoke_agent", "gen_ai.input.messages", SAID[0]);
    has("chat", "gen_ai.output.messages", SAID[1]);
    has("execute_tool", "gen_ai.tool.call.arguments", SAID[1]);
    has("execute_tool", "gen_ai.tool.call.result", SAID[2]);
    has("invoke_agent", "gen_ai.output.messages", "That is all.");
}

#[test]
fn a_collector_that_takes_nothing_holds_nobody_up() {
    for answer in [Answer::Fails, Answer::Nonsense, Answer::Rejects, Answer::Busy, Answer::Hangs] {
        let collector = Collector::new(answer);
        let served = observed(&collector, "", &[]);
        let session = served.create("Say something.");
        served.await_status(&session, "answered");
        until("it was asked", || (!collector.received().is_empty()).then_some(()));
        let counts = || {
            let dropped = metric(&served, "outrigger_spans_total{outcome=\"dropped\"}");
            let exported = metric(&served, "outrigger_spans_total{outcome=\"exported\"}");
            (dropped, exported, metric(&served, "outrigger_spans_waiting"))
        };
        match answer {
            Answer::Fails => until("they are dropped", || (counts().0 > 0.0).then_some(())),
            Answer::Rejects => until("one is dropped", || (counts().0 == 1.0).then_some(())),
            Answer::Nonsense => until("they are taken", || (counts().1 > 0.0).then_some(())),
            Answer::Takes | Answer::Busy | Answer::Hangs => {
                until("they wait", || (counts().2 > 0.0).then_some(()));
            }
        }
        // Another turn goes on as if nothing were.
        let path = format!("/v1/sessions/{session}/messages");
        assert_eq!(served.post(&path, &json!({ "text": "And?" })).0, 202);
        until("it answers again", || {
            let ends = served.events(&session).into_iter().filter(|it| it["type"] == "turn_ended");
            (ends.count() == 2).then_some(())
        });
        if answer == Answer::Busy {
            // What waited comes when the collector takes it.
            collector.set(Answer::Takes);
            until("both turns are there", || {
                let spans = collector.spans();
                let mut turns: Vec<_> =
                    named(&spans, "invoke_agent").iter().map(|it| it.span_id.clone()).collect();
                turns.sort();
                turns.dedup();
                (turns.len() == 2 && counts().2 == 0.0).then_some(())
            });
            assert_eq!(counts().0, 0.0, "none is lost");
        }
    }
}

#[test]
fn what_runs_when_the_server_dies_has_the_same_trace_afterwards() {
    let collector = Collector::new(Answer::Takes);
    let wait = Turn(&[("execute", json!({ "command": "sleep 5; echo over" }))]);
    let mut served = observed(&collector, "", &[wait]);
    let session = served.create("Wait.");
    let first = until("the model's answer is there", || {
        let spans = collector.spans();
        named(&spans, "chat").first().map(|it| (it.trace_id.clone(), it.span_id.clone()))
    });
    served.restart();
    served.await_status(&session, "answered");
    let spans = turn_is_there(&collector);
    assert!(spans.iter().all(|span| span.trace_id == first.0), "{spans:#?}");
    let again = named(&spans, "chat").iter().filter(|it| it.span_id == first.1).count();
    assert_eq!(again, 2, "what the turn had done before comes again, by the same id");
    assert_eq!(named(&spans, "execute_tool").len(), 1);
    assert_eq!(named(&spans, "invoke_agent").len(), 1);
}

/// A server that logs in JSON.
struct Logging {
    world: World,
    process: crate::support::Running,
    url: String,
    key: String,
}

impl Logging {
    fn new(dir: &Path, world: World, script: &str) -> Self {
        let made = world.ran(0, &["keys", "create", "ci", "--json"]).json();
        let key = made["secret"].as_str().unwrap().to_owned();
        let dir = dir.display().to_string();
        let at = ["serve", "--listen", "127.0.0.1:0", "--dir", &dir, "--script", script];
        let mut process = world.start(&[&at[..], &["--json", "--log-format", "json"]].concat());
        let mut first = String::new();
        use std::io::{BufRead as _, BufReader};
        BufReader::new(process.stdout()).read_line(&mut first).unwrap();
        let said: Value = serde_json::from_str(&first).unwrap();
        Self { world, process, url: said["url"].as_str().unwrap().to_owned(), key }
    }

    fn curl(&self, args: &[&str], path: &str) -> String {
        let mut curl = self.world.command("curl");
        curl.args(["--silent", "--max-time", "30", "--include", "--oauth2-bearer", &self.key]);
        let out = curl.args(args).arg(format!("{}{path}", self.url)).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    }
}

#[test]
fn each_line_of_the_log_is_an_object_and_a_request_is_known_by_its_id() {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let script = world.script(&[telling()]);
    let logging = Logging::new(&dir, world, &script);
    let body = json!({ "text": SAID[0] }).to_string();
    let made = logging.curl(&["--header", "X-Request-Id: req-1", "--json", &body], "/v1/sessions");
    assert!(made.contains("x-request-id: req-1\r\n"), "{made}");
    let info: Value = serde_json::from_str(made.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let session = info["id"].as_str().unwrap();
    let place = format!("/v1/sessions/{session}");
    until("it answers", || {
        logging.curl(&[], &place).contains("\"status\":\"answered\"").then_some(())
    });
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("traceparent: 00-{trace}-00f067aa0ba902b7-01");
    let absent = logging.curl(&["--header", &parent], "/v1/sessions/absent");
    assert!(absent.contains(&format!("x-request-id: {trace}\r\n")), "{absent}");
    assert!(absent.contains(&format!("\"request_id\":\"{trace}\"")), "{absent}");
    let forged = logging.curl(&["--header", "X-Request-Id: a\"b"], "/v1/nowhere?token=secret");
    assert!(!forged.contains("a\"b"), "{forged}");

    let Logging { mut process, .. } = logging;
    process.signal(rustix::process::Signal::TERM);
    let log = process.end().stderr;
    let lines: Vec<Value> =
        log.lines().map(|it| serde_json::from_str(it).unwrap_or_else(|_| panic!("{it}"))).collect();
    for line in &lines {
        for field in ["time", "level", "message"] {
            assert!(line[field].is_string(), "{line}");
        }
    }
    let of = |id: &str| lines.iter().find(|line| line["request_id"] == id).unwrap();
    let created = of("req-1");
    assert_eq!(created["session"], session);
    assert_eq!((&created["method"], &created["route"]), (&json!("POST"), &json!("/v1/sessions")));
    assert_eq!((&created["status"], &created["principal"]), (&json!(201), &json!("person:local")));
    assert_eq!(of(trace)["status"], 404);
    let tool = lines.iter().find(|line| line["message"] == "execute_tool execute").unwrap();
    assert_eq!((&tool["session"], &tool["exit_code"]), (&json!(session), &json!(3)));
    let exec = tool["exec_id"].as_str().unwrap();
    assert_eq!(exec, format!("{session}.{}", tool["seq"]));
    for said in SAID.iter().chain(&["token=secret"]) {
        assert!(!log.contains(said), "{said} is in the log: {log}");
    }
}

#[test]
fn a_service_manager_is_told_when_it_serves_and_when_it_ends() {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let script = world.script(&[]);
    let path: &'static str = world.path("notify").display().to_string().leak();
    let manager = UnixDatagram::bind(path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let told = || {
        let mut state = [0; 64];
        let length = manager.recv(&mut state).unwrap();
        String::from_utf8_lossy(&state[..length]).into_owned()
    };
    let mut served = Served::with(world, &dir, &script, vec![("NOTIFY_SOCKET", path)].leak());
    assert_eq!(told(), "READY=1");
    served.stop();
    assert_eq!(told(), "STOPPING=1");
}

#[test]
fn where_nobody_reads_it_no_link_is_made_and_a_hangup_ends_it() {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"one\n")]).display().to_string();
    let script = world.script(&[]);
    let args = ["serve", "--listen", "127.0.0.1:0", "--dir", &dir, "--script", &script];
    let mut server = world.outrigger(&args);
    let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = server.spawn().unwrap();
    let mut told = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(told.any(|line| line.contains("`outrigger keys link`")));
    assert!(!world.ran(0, &["keys", "ls"]).stdout.contains("link"));
    kill_process(Pid::from_child(&server), Signal::HUP).unwrap();
    let rest: Vec<_> = told.collect();
    assert!(server.wait().unwrap().success(), "{rest:?}");
}
