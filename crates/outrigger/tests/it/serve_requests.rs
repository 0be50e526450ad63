//! What a program is told that asks a server wrongly.

use crate::serve::Served;
use crate::support::{Turn, World, shell, until};
use serde_json::{Value, json};
use std::process::Stdio;

fn served() -> (Served, String) {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let script = world.script(&[Turn(&[shell("true")])]);
    let served = Served::new(world, &dir, &script);
    let key = served.key("local");
    (served, key)
}

#[test]
fn a_key_is_that_of_one_request() {
    let (served, key) = served();
    let ask = |path: &str, name: &str, body: &Value| {
        // As curl wants one without a value.
        let header = match name {
            "" => "Idempotency-Key;".to_owned(),
            name => format!("Idempotency-Key: {name}"),
        };
        let body = body.to_string();
        served.with_key(&key, &["--header", &header, "--json", &body], path)
    };
    let other = |path: &str, name: &str, body: &Value| {
        let (status, told) = ask(path, name, body);
        let detail = told["detail"].as_str().unwrap_or_default().to_owned();
        assert!(status == 409 && detail.contains(&format!("`{name}`")), "{path}: {status} {told}");
    };
    let hello = json!({ "text": "Hello" });
    let (status, session) = ask("/v1/sessions", "a", &hello);
    assert_eq!(status, 201, "{session}");
    assert_eq!(ask("/v1/sessions", "a", &hello).1["id"], session["id"]);
    other("/v1/sessions", "a", &json!({ "text": "Goodbye" }));
    let at = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
    served.await_status(session["id"].as_str().unwrap(), "answered");
    // What nobody serves in the sandbox of a fork is no fault of the server.
    let (_, fork) = ask(&format!("{at}/fork"), "fork", &json!({}));
    let memory = format!("/v1/sessions/{}/files?path=/memory", fork["id"].as_str().unwrap());
    let (status, told) = served.with_key(&key, &[], &memory);
    assert!(status == 409 && told["hints"].to_string().contains("/v1/memory"), "{status} {told}");
    // A fork would have the name of the session.
    other(&format!("{at}/fork"), "a", &json!({}));
    let messages = format!("{at}/messages");
    assert_eq!(ask(&messages, "b", &hello).0, 202);
    assert_eq!(ask(&messages, "b", &hello).0, 202);
    other(&messages, "b", &json!({ "text": "Goodbye" }));
    // What was refused takes no key.
    assert_eq!(ask("/v1/sandboxes", "c", &json!({ "label": "x".repeat(1_000) })).0, 400);
    let (status, sandbox) = ask("/v1/sandboxes", "c", &json!({ "label": "work" }));
    assert_eq!(status, 201, "{sandbox}");
    other("/v1/sandboxes", "c", &json!({ "label": "other" }));
    let at = format!("/v1/sandboxes/{}", sandbox["id"].as_str().unwrap());
    let execs = format!("{at}/execs");
    let count = json!({ "shell": "echo x >> count; wc -l < count" });
    for _ in 0..2 {
        let (status, ended) = ask(&execs, "once", &count);
        assert_eq!((status, &ended["id"], &ended["stdout"]), (200, &json!("once"), &json!("1\n")));
    }
    other(&execs, "once", &json!({ "shell": "true" }));
    let (status, told) = ask(&execs, "", &count);
    assert!(status == 400 && told["detail"] == "`Idempotency-Key` is empty", "{status} {told}");
}

#[test]
fn what_is_wrong_is_said_in_words_of_the_contract() {
    let (served, key) = served();
    let told = |args: &[&str], path: &str| {
        let (status, told) = served.with_key(&key, args, path);
        (status, told["detail"].as_str().unwrap_or_default().to_owned())
    };
    let (status, detail) = told(&["--request", "POST"], "/v1/sandboxes");
    assert!(status == 400 && detail.contains("it is empty") && detail.contains("`{}`"), "{detail}");
    let (status, detail) = told(&["--data", "{}"], "/v1/sandboxes");
    assert!(status == 400 && detail.contains("say that it is JSON"), "{detail}");
    let (status, detail) = told(&["--json", r#"{"idle_seconds": "a"}"#], "/v1/sandboxes");
    assert!(status == 400 && detail.starts_with("the body: idle_seconds: "), "{detail}");
    assert!(detail.contains("expected a whole number"), "{detail}");
    let (status, detail) = told(&[], "/v1/sessions?limit=many");
    assert!(status == 400 && !detail.contains("deserialize"), "{detail}");
    let (_, session) = served.with_key(&key, &["--json", r#"{"text": "Hello"}"#], "/v1/sessions");
    let stream = format!("/v1/sessions/{}/stream", session["id"].as_str().unwrap());
    let (status, detail) = told(&["--header", "Last-Event-ID: newest"], &stream);
    assert!(status == 400 && detail.contains("`Last-Event-ID`"), "{status} {detail}");
    let large = served.world.path("large");
    std::fs::write(&large, format!("{{\"label\": \"{}\"}}", "x".repeat(3 << 20))).unwrap();
    let (status, detail) = told(&["--json", &format!("@{}", large.display())], "/v1/sandboxes");
    assert!(status == 413 && detail.contains("2 MiB"), "{status} {detail}");
}

#[test]
fn who_waits_for_a_command_is_told_that_its_sandbox_was_removed() {
    let (served, key) = served();
    let json = |body: &Value| ["--json".to_owned(), body.to_string()];
    let ask = |body: &Value, path: &str| {
        let args = json(body);
        served.with_key(&key, &[&args[0], &args[1]], path)
    };
    let (_, sandbox) = ask(&json!({}), "/v1/sandboxes");
    let at = format!("/v1/sandboxes/{}", sandbox["id"].as_str().unwrap());
    let sleep = json!({ "id": "long", "shell": "sleep 60" });
    let mut waits = served.world.command("curl");
    waits.args(["--silent", "--max-time", "30", "--oauth2-bearer", &key]).args(json(&sleep));
    let waits = waits.arg(format!("{}{at}/execs", served.url)).stdout(Stdio::piped()).spawn();
    let waits = waits.unwrap();
    until("it runs", || {
        (served.with_key(&key, &[], &format!("{at}/execs/long")).0 == 200).then_some(())
    });
    assert_eq!(served.with_key(&key, &["--request", "DELETE"], &at).0, 204);
    let told = String::from_utf8(waits.wait_with_output().unwrap().stdout).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    let detail = told["detail"].as_str().unwrap_or_default();
    assert!(told["status"] == 404 && detail.ends_with("was removed"), "{told}");
    assert_eq!(told["retryable"], false);
}

#[test]
fn what_is_asked_twice_at_once_keeps_one_disk() {
    let (served, key) = served();
    let (_, sandbox) = served.with_key(&key, &["--json", "{}"], "/v1/sandboxes");
    let path = format!("/v1/sandboxes/{}/snapshots", sandbox["id"].as_str().unwrap());
    let args = ["--header", "Idempotency-Key: nightly", "--json", "{}"];
    let taken: Vec<_> = std::thread::scope(|threads| {
        let ask = || served.with_key(&key, &args, &path);
        let asked: Vec<_> = (0..8).map(|_| threads.spawn(ask)).collect();
        asked.into_iter().map(|it| it.join().unwrap()).collect()
    });
    for (status, told) in &taken {
        assert_eq!((*status, &told["id"]), (201, &taken[0].1["id"]), "{told}");
    }
    let (_, all) = served.with_key(&key, &[], "/v1/snapshots");
    assert_eq!(all["data"].as_array().unwrap().len(), 1, "{all}");
}

#[test]
fn a_script_that_cannot_be_read_is_told_whoever_begins_the_server() {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"one\n")]).display().to_string();
    let absent = world.path("absent.toml").display().to_string();
    let args = ["serve", "--listen", "127.0.0.1:0", "--dir", &dir, "--script", &absent];
    let told = world.ran(2, &args).stderr;
    assert!(told.contains("absent.toml can't be read"), "{told}");
}
