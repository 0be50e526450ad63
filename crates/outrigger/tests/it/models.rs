//! Models that nobody named: by a key, by an address that other programs know, and on a server
//! of this machine.

use crate::provider::{Nobody, Provider};
use crate::support::{Ran, World};
use serde_json::json;

const LIST: &str = r#"{"object": "list", "data": [{"id": "nomic-embed-text"}, {"id": "qwen3:8b", "max_model_len": 40000}]}"#;

/// A stream of Chat Completions that says this and ends.
fn answer(text: &str) -> String {
    let delta = json!({ "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": "stop" }] });
    format!("data: {delta}\n\ndata: [DONE]\n\n")
}

/// A run with these variables, and further arguments.
fn run(world: &World, variables: &[(&str, &str)], more: &[&str]) -> Ran {
    let dir = world.dir("repo", &[("plain", b"x")]);
    let args = [&["run", "--dir", dir.to_str().unwrap()], more, &["a task"]].concat();
    Ran::of(world.outrigger(&args).envs(variables.iter().copied()).output().unwrap())
}

#[test]
fn a_local_server_is_found_and_its_model_taken() {
    let world = World::new();
    let fake = Provider::streaming(vec![LIST.to_owned(), answer("From here.")]);
    let ran = run(&world, &[("OLLAMA_HOST", fake.url.as_str())], &[]).expect(0);
    assert_eq!(ran.stdout, "From here.\n");
    let told = "model qwen3:8b of ollama, because ollama answers on this machine";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert!(fake.heard()[1].contains("\"qwen3:8b\""));
    // The session is resumed with the same one at the same place.
    let opened = &world.events(&world.session())[0]["opened"]["model"];
    assert_eq!(opened["provider"], "ollama");
    assert_eq!(opened["address"], format!("{}/v1", fake.url));
    assert_eq!(opened["context_tokens"], 40_000);
}

#[test]
fn an_address_of_other_programs_is_honoured_with_and_without_a_key() {
    for (key, sent) in [(None, 0), (Some("sk-test-0123456789"), 1)] {
        let world = World::new();
        let fake = Provider::streaming(vec![LIST.to_owned(), answer("From there.")]);
        let mut variables = vec![("OPENAI_BASE_URL", fake.url.as_str())];
        variables.extend(key.map(|key| ("OPENAI_API_KEY", key)));
        let ran = run(&world, &variables, &[]).expect(0);
        assert_eq!((ran.stdout.as_str(), fake.asked()), ("From there.\n", 2), "{sent}");
    }
}

#[test]
fn a_named_server_that_is_not_there_is_told_with_its_address() {
    let (world, nobody) = (World::new(), Nobody::new());
    let variables = [("OLLAMA_HOST", nobody.url.as_str())];
    let told = run(&world, &variables, &["--provider", "ollama"]).expect(14).stderr;
    assert!(told.contains(&format!("ollama: {} does not answer", nobody.url)), "{told}");
    assert!(told.contains("--base-url") && !world.harness().join("journal.db").exists(), "{told}");
}

#[test]
fn a_provider_s_key_is_looked_for_under_its_own_name() {
    let world = World::new();
    let told = run(&world, &[("OPENAI_API_KEY", "k")], &["--provider", "groq"]).expect(3).stderr;
    assert!(told.contains("GROQ_API_KEY holds no key"), "{told}");
    let told = run(&world, &[], &["--model", "gemini-x"]).expect(3).stderr;
    assert!(told.contains("GEMINI_API_KEY holds no key"), "{told}");
}

/// A model that its provider does not know is not asked again behind anybody's back: the error
/// says how to name another, and the session goes on with that one, also when it is resumed.
#[test]
fn a_session_whose_model_is_not_there_goes_on_with_another() {
    let json = "404 Not Found\r\ncontent-type: application/json";
    let missing = Provider::new(json, r#"{"error": {"message": "no model claude-x"}}"#);
    let there = Provider::streaming(vec![answer("One."), answer("Two.")]);
    let world = World::new();
    let named = ["--provider", "openai-chat", "--model", "wrong", "--base-url", &missing.url];
    let told = run(&world, &[], &named).expect(14).stderr;
    let session = world.session();
    let hint = format!("`outrigger sessions resume {session} --model NAME`");
    assert!(told.contains("404") && told.contains(&hint), "{told}");
    let told = world.ran(14, &["sessions", "resume", &session]).stderr;
    assert!(told.contains("wrong refused this session before"), "{told}");
    let resume = ["sessions", "resume", &session, "--model", "right", "--base-url", &there.url];
    let ran = world.ran(0, &resume);
    assert_eq!(ran.stdout, "One.\n");
    assert!(ran.stderr.contains("with the model right of openai-chat"), "{}", ran.stderr);
    assert_eq!(world.ran(0, &["sessions", "say", &session, "and?"]).stdout, "Two.\n");
    assert!(there.heard().iter().all(|body| body.contains("\"right\"")));
}

#[test]
fn models_of_each_provider_are_listed_with_what_they_cost() {
    let world = World::new();
    let local = Provider::new("200 OK\r\ncontent-type: application/json", LIST);
    let list = r#"{"data": [{"id": "a/b", "context_length": 9, "pricing": {"prompt": "0.000003", "completion": "0.000015"}}]}"#;
    let there = Provider::new("200 OK\r\ncontent-type: application/json", list);
    let set = [("OLLAMA_HOST", local.url.as_str()), ("OPENAI_BASE_URL", there.url.as_str())];
    let ran = |args: &[&str]| {
        let mut command = world.outrigger(args);
        Ran::of(command.envs(set).output().unwrap()).expect(0)
    };
    let shown = ran(&["models"]).stdout;
    let lines: Vec<_> =
        shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert!(
        lines.contains(&"openai-chat a/b 9 tokens $3.00 in, $15.00 out for a million".into()),
        "{shown}"
    );
    assert!(lines.contains(&"ollama qwen3:8b 40000 tokens".into()), "{shown}");
    let json = ran(&["models", "--provider", "ollama", "--json"]).json();
    assert_eq!(json["providers"].as_array().unwrap().len(), 1);
    assert_eq!(json["providers"][0]["models"][1]["name"], "qwen3:8b");
    let nobody = Nobody::new();
    let told = world.ran(14, &["models", "--base-url", &nobody.url]).stderr;
    assert!(told.contains(&nobody.url), "{told}");
}

#[test]
fn init_writes_the_model_once_and_only_when_it_is_told_to() {
    let world = World::new();
    let local = Provider::new("200 OK\r\ncontent-type: application/json", LIST);
    let ran = |code: i32, args: &[&str]| {
        let mut command = world.outrigger(args);
        Ran::of(command.env("OLLAMA_HOST", &local.url).output().unwrap()).expect(code)
    };
    let file = world.path("config/outrigger/config.toml");
    let shown = ran(0, &["init"]);
    assert!(
        shown.stdout.starts_with("[model]\nprovider = \"ollama\"\nname = \"qwen3:8b\"\n"),
        "{}",
        shown.stdout
    );
    assert!(
        shown.stderr.contains("✓ ollama: ollama answers on this machine; 2 models at"),
        "{}",
        shown.stderr
    );
    assert!(shown.stderr.contains("--yes") && !file.exists(), "{}", shown.stderr);
    world.configure("# mine\n[limits]\nsteps_max = 9\n");
    let done = ran(0, &["init", "--yes", "--json"]).json();
    assert_eq!((&done["written"], &done["model"]), (&json!(true), &json!("qwen3:8b")));
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("# mine\n[limits]\nsteps_max = 9\n\n[model]\n"), "{written}");
    let refused = ran(5, &["init", "--yes"]).stderr;
    assert!(
        refused.contains("says already which model is asked") && refused.contains("--replace"),
        "{refused}"
    );
    ran(0, &["init", "--yes", "--replace", "--provider", "ollama", "--model", "other"]);
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains("name = \"other\"") && !written.contains("qwen3"), "{written}");
    let told = world.ran(2, &["init", "--config", "nowhere.toml"]).stderr;
    assert!(told.contains("nowhere.toml"), "{told}");
}
