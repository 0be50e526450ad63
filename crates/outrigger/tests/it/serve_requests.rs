//! What a program is told that asks a server wrongly.

use crate::serve::Served;
use crate::support::{Turn, World, shell};
use serde_json::{Value, json};

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
    let large = served.world.path("large");
    std::fs::write(&large, format!("{{\"text\": \"{}\"}}", "x".repeat(3 << 20))).unwrap();
    let (status, detail) = told(&["--json", &format!("@{}", large.display())], "/v1/sessions");
    assert!(status == 413 && detail.contains("2 MiB"), "{status} {detail}");
}
