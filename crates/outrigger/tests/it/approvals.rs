//! What waits for a person, with the real binary: nothing runs meanwhile, the answer is
//! about what was looked at, and it is done once.

use crate::support::{Ran, Turn, World, shell};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

const RULES: &str = r#"
@id("commands-ask")
@approvable("anyone")
forbid (principal, action == Action::"execute", resource);

@id("changes-ask")
@approvable("anyone")
forbid (principal, action == Action::"write_files", resource);
"#;

/// A world with rules, and a session that waits for its first call.
fn waiting(turns: &[Turn<'_>]) -> (World, String) {
    let world = World::new();
    let rules = world.path("careful.cedar");
    fs::write(&rules, RULES).unwrap();
    let file = format!("[policy]\nfiles = [{:?}]\n", rules.display().to_string());
    world.configure(&file);
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let script = world.script(turns);
    let args = ["run", "Do it.", "--dir", dir.to_str().unwrap(), "--script", &script, "--json"];
    let told = world.stops(&args);
    assert_eq!(told["status"], "waits for approval");
    let id = told["waiting"][0].as_str().unwrap().to_owned();
    (world, id)
}

impl World {
    /// Runs the binary until the session waits again; what it told of that.
    fn stops(&self, args: &[&str]) -> Value {
        self.ran(10, args).lines().remove(0)
    }

    fn inbox(&self) -> Vec<Value> {
        self.ran(0, &["inbox", "--json"]).json()["waiting"].as_array().unwrap().clone()
    }

    pub(crate) fn results(&self) -> String {
        let events = self.events(&self.session());
        let settled = events.iter().filter_map(|event| event["settled"]["outcome"].as_object());
        settled.map(|outcome| serde_json::to_string(outcome).unwrap() + "\n").collect()
    }
}

#[test]
fn what_waits_is_shown_exactly_and_done_once() {
    let command = "echo ran >> log; echo 'a \"b\"'";
    let (world, id) = waiting(&[Turn(&[shell(command)])]);
    let inbox = world.inbox();
    assert_eq!(inbox.len(), 1);
    let arguments: Value = serde_json::from_str(inbox[0]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({ "command": command }));
    assert_eq!(inbox[0]["rules"], json!(["commands-ask"]));
    let people = world.ran(0, &["inbox"]).stdout;
    assert!(people.contains(&id) && people.contains("echo ran >> log"), "{people}");
    // Whoever knows only the session is told what in it waits.
    let session = world.session();
    let shown = world.ran(0, &["sessions", "show", &session]).stdout;
    assert!(shown.contains(&format!("asks       outrigger inbox {id}\n")), "{shown}");
    let unnamed = world.ran(4, &["approve", &session]).stderr;
    assert!(unnamed.contains(&format!("In session {session}: {id}.")), "{unnamed}");
    let approved = world.ran(0, &["approve", &id]);
    // A process that did not see the beginning still says what is done.
    assert!(approved.stderr.contains("✓ execute"), "{}", approved.stderr);
    assert!(world.inbox().is_empty());
    // A double click comes too late.
    let late = world.ran(5, &["approve", &id]);
    assert!(late.stderr.contains("nobody is asked about"), "{}", late.stderr);
    let starts = world
        .events(&world.session())
        .iter()
        .filter(|event| event["started"]["place"].is_object())
        .count();
    assert_eq!(starts, 1);
}

#[test]
fn a_denial_reaches_the_model_and_changed_arguments_are_asked_about_again() {
    let (world, id) = waiting(&[Turn(&[shell("echo no")]), Turn(&[shell("echo yes")])]);
    let next = world.stops(&["deny", &id, "-m", "too loud", "--json"]);
    assert!(world.results().contains("A person denied it: too loud"));
    let id = next["waiting"][0].as_str().unwrap();
    let args = ["approve", id, "--arguments", r#"{"command":"echo other"}"#, "--json"];
    let next = world.stops(&args);
    let id = next["waiting"][0].as_str().unwrap();
    assert!(world.inbox()[0]["arguments"].as_str().unwrap().contains("echo other"));
    world.ran(0, &["approve", id]);
    let results = world.results();
    assert!(results.contains("other") && !results.contains("\"yes"), "{results}");
    let shown = world.ran(0, &["sessions", "logs", "@last"]).stdout;
    assert!(
        shown.contains("✗ execute  echo yes") && shown.contains("▸ execute  echo other"),
        "{shown}"
    );
}

#[test]
fn a_change_is_approved_as_it_was_seen_or_not_at_all() {
    let arguments = json!({ "file_path": "file", "old_string": "one", "new_string": "two" });
    let edit = ("edit_file", arguments);
    let (world, id) = waiting(&[Turn(&[shell("true")]), Turn(&[edit])]);
    let next = world.stops(&["approve", &id, "--json"]);
    let id = next["waiting"][0].as_str().unwrap();
    let shown = world.ran(0, &["inbox", id, "--json"]).json();
    let diff = shown["diff"].as_str().unwrap();
    assert!(diff.contains("-one\n+two\n"), "{diff}");
    let unseen = world.ran(2, &["approve", id]);
    assert!(unseen.stderr.contains("nobody said that they looked"), "{}", unseen.stderr);
    let seen = shown["seen"].as_str().unwrap();
    world.beside(&world.session(), &["sh", "-c", "echo more >> file"]);
    let changed = world.ran(5, &["approve", id, "--seen", seen]);
    assert!(changed.stderr.contains("it changed since"), "{}", changed.stderr);
    let shown = world.ran(0, &["inbox", id, "--json"]).json();
    world.ran(0, &["approve", id, "--seen", shown["seen"].as_str().unwrap()]);
    assert!(world.results().contains("Edited file"), "{}", world.results());
}

/// An approval that is stored, and a person who is no longer in the group when it would be
/// used, or when somebody answers.
#[test]
fn who_lost_the_role_has_approved_nothing() {
    for approved_before in [true, false] {
        let world = World::new();
        let config = world.path("config/outrigger");
        fs::create_dir_all(&config).unwrap();
        let write = |name: &str, text: &str| fs::write(config.join(name), text).unwrap();
        write("rules.cedar", &RULES.replace("\"anyone\"", "\"group:ops\""));
        write("config.toml", "[policy]\nfiles = [\"rules.cedar\"]\npeople = \"people.toml\"\n");
        write("people.toml", "[groups]\nops = [\"person:local\"]\n");
        let dir = world.dir("repo", &[("file", b"one\n")]);
        let script = world.script(&[Turn(&[shell("echo ran")])]);
        let dir = dir.to_str().unwrap();
        let told = world.stops(&["run", "Do it.", "--dir", dir, "--script", &script, "--json"]);
        let id = told["waiting"][0].as_str().unwrap();
        if approved_before {
            world.ran(0, &["approve", id, "--later"]);
        }
        write("people.toml", "[groups]\nops = [\"person:ada\"]\n");
        let session = world.session();
        if approved_before {
            world.ran(10, &["sessions", "resume", &session]);
        }
        let refused = world.ran(12, &["approve", id]);
        assert!(refused.stderr.contains("person:local"), "{}", refused.stderr);
        assert!(!world.results().contains("\"output\""), "{}", world.results());
        assert_eq!(world.inbox()[0]["approvers"], json!(["group:ops"]));
    }
}

#[test]
fn a_command_and_a_webhook_are_told_that_something_waits() {
    let world = World::new();
    let (rules, told) = (world.path("careful.cedar"), world.path("told"));
    fs::write(&rules, RULES).unwrap();
    let hook = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = world.path("config/outrigger");
    fs::create_dir_all(&config).unwrap();
    let script =
        format!("echo $OPENAI_API_KEY $WIKI_TOKEN $OTHER >> {0}.keys; cat >> {0}", told.display());
    let text = format!(
        "[tools.wiki]\nurl = \"http://127.0.0.1:1/\"\ntoken_env = \"WIKI_TOKEN\"\n[policy]\nfiles = [{:?}]\n[notify]\ncommand = [\"sh\", \"-c\", {script:?}]\nwebhook = \"http://{}/hook\"\n",
        rules.display().to_string(),
        hook.local_addr().unwrap(),
    );
    fs::write(config.join("config.toml"), text).unwrap();
    let served = std::thread::spawn(move || {
        let (mut call, _) = hook.accept().unwrap();
        let (mut seen, mut piece) = (Vec::new(), [0; 4_096]);
        while !seen.ends_with(b"]}") {
            let length = call.read(&mut piece).unwrap();
            assert_ne!(length, 0, "{}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&piece[..length]);
        }
        call.write_all(b"HTTP/1.1 500 Oh no\r\ncontent-length: 0\r\n\r\n").unwrap();
        String::from_utf8(seen).unwrap()
    });
    let dir = world.dir("repo", &[("file", b"one\n")]);
    let script = world.script(&[Turn(&[shell("echo ran")])]);
    let args = ["run", "Do it.", "--dir", dir.to_str().unwrap(), "--script", &script];
    let mut run = world.outrigger(&args);
    run.envs([("OPENAI_API_KEY", "key-1"), ("WIKI_TOKEN", "key-2"), ("OTHER", "other")]);
    let ran = Ran::of(run.output().unwrap()).expect(10);
    assert_eq!(fs::read_to_string(world.path("told.keys")).unwrap(), "other\n");
    assert!(
        ran.stderr.contains("nobody was told by the webhook: it answered 500"),
        "{}",
        ran.stderr
    );
    let posted = served.join().unwrap();
    let (head, body) = posted.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /hook HTTP/1.1"), "{head}");
    let piped: Value = serde_json::from_str(&fs::read_to_string(told).unwrap()).unwrap();
    assert_eq!(piped, serde_json::from_str::<Value>(body).unwrap());
    assert_eq!(piped["waiting"], json!(world.inbox()));
    let id = world.inbox()[0]["id"].as_str().unwrap().to_owned();
    let text = format!("Outrigger waits for an answer:\nexecute: `outrigger approve {id}`");
    assert_eq!(piped["text"], text);
}

/// Whom a rule escalates to is told when; before that their answer is refused, and nobody
/// is reminded.
#[test]
fn who_comes_second_waits_for_the_first_and_reminders_do_too() {
    let (world, id) = waiting(&[Turn(&[shell("echo ran")]), Turn(&[shell("echo more")])]);
    let (told, rules) = (world.path("told"), world.path("careful.cedar"));
    let file = world.path("config/outrigger/config.toml");
    let config = fs::read_to_string(&file).unwrap();
    let none = world.ran(2, &["inbox", "--remind"]);
    assert!(none.stderr.contains("names nobody who could be told"), "{}", none.stderr);
    let more = |program: &str| {
        format!(
            "{config}[notify]\ncommand = [\"sh\", \"-c\", {program:?}]\n[limits]\napproval_escalate_hours = 1\n"
        )
    };
    fs::write(&file, more("exit 3")).unwrap();
    let failed = world.ran(2, &["inbox", "--remind"]);
    assert!(
        failed.stderr.contains(&format!("not everybody was told of {id}")),
        "{}",
        failed.stderr
    );
    fs::write(&file, more(&format!("cat > {}", told.display()))).unwrap();
    // It was asked where nothing escalates: whoever is asked is reminded.
    let reminded = world.ran(0, &["inbox", "--remind", "--json"]).json();
    assert_eq!(reminded, json!({ "type": "reminded", "of": [id] }));
    let heard: Value = serde_json::from_str(&fs::read_to_string(&told).unwrap()).unwrap();
    let text = format!("Outrigger waits for an answer:\nexecute: `outrigger approve {id}`");
    assert_eq!(heard, json!({ "type": "inbox", "text": text, "waiting": world.inbox() }));
    world.ran(0, &["deny", &id, "--later"]);

    fs::remove_file(&told).unwrap();
    let text = RULES.replace("(\"anyone\")", "(\"person:ada\")\n@escalates(\"person:local\")");
    fs::write(&rules, text).unwrap();
    let (script, dir) = (world.script(&[Turn(&[shell("echo ran")])]), world.path("repo"));
    let args = ["run", "Do it.", "--dir", dir.to_str().unwrap(), "--script", &script, "--json"];
    let id = world.stops(&args)["waiting"][0].as_str().unwrap().to_owned();
    let one = world.ran(0, &["inbox", &id, "--json"]).json();
    assert_eq!(one["escalates_to"], json!(["person:local"]));
    let after = one["escalates_ms"].as_u64().unwrap() - one["since_ms"].as_u64().unwrap();
    assert_eq!(after, 3_600_000);
    let shown = world.ran(0, &["inbox", &id]).stdout;
    assert!(
        shown.contains("for person:ada") && shown.contains("escalates to person:local"),
        "{shown}"
    );
    let early = world.ran(12, &["approve", &id]);
    let said = "person:local may not approve this; the rules ask person:ada";
    assert!(early.stderr.contains(said), "{}", early.stderr);
    fs::remove_file(&told).unwrap();
    let reminded = world.ran(0, &["inbox", "--remind"]);
    assert!(reminded.stderr.contains("nothing waits that anybody"), "{}", reminded.stderr);
    assert!(!told.exists());
}

/// What is approved is what was shown: a terminal cuts nothing of it, and no question is
/// asked that nobody is shown.
#[test]
fn a_terminal_is_shown_all_of_what_it_answers_for() {
    let command = format!("echo {} >> log; rm -rf ./last", "x".repeat(300));
    let lines: Vec<_> = (0..500).map(|line| format!("line {line}")).collect();
    let text = lines.join("\n");
    let write = ("write_file", json!({ "file_path": "file", "content": text }));
    let (world, id) = waiting(&[Turn(&[shell(&command)]), Turn(&[write])]);
    let list = world.on_terminal(&["inbox"]).expect(0).stdout;
    assert!(list.contains("more characters") && !list.contains("rm -rf ./last"), "{list}");
    let one = world.on_terminal(&["inbox", &id]).expect(0).stdout;
    assert!(one.contains(&command), "{one}");
    let approved = world.on_terminal(&["approve", &id, "--later"]).expect(0).stdout;
    assert!(approved.contains(&command), "{approved}");
    world.ran(10, &["sessions", "resume", &world.session()]);

    let id = world.inbox()[0]["id"].as_str().unwrap().to_owned();
    let one = world.on_terminal(&["inbox", &id]).expect(0).stdout;
    assert!(one.contains("+line 499") && !one.contains("more lines"), "{one}");
    for silent in ["--quiet", "--json"] {
        let asked = world.on_terminal(&["approve", &id, silent]).expect(2).stdout;
        assert!(asked.contains("nobody said that they looked"), "{asked}");
    }
}

/// A server that can't be spoken to is no reason to leave a question open.
#[test]
fn a_server_with_a_wrong_header_keeps_nobody_from_answering() {
    let (world, id) = waiting(&[Turn(&[shell("echo no")])]);
    let config = world.path("config/outrigger/config.toml");
    let more =
        "[tools.odd]\nurl = \"https://odd.example\"\nheaders_env = { \"no header\" = \"PATH\" }\n";
    fs::write(&config, fs::read_to_string(&config).unwrap() + more).unwrap();
    world.ran(0, &["inbox", &id]);
    world.ran(0, &["deny", &id, "--later"]);
    world.ran(0, &["sessions", "cancel", &world.session()]);
}

/// The switches hold also where no sandbox can be reached, and say what they could not do.
#[test]
fn what_is_cancelled_or_stopped_is_so_without_sandboxes() {
    let (world, _) = waiting(&[Turn(&[shell("echo no")])]);
    let config = world.path("config/outrigger/config.toml");
    let more = "[[sandbox]]\nname = \"work\"\nbackend = \"docker\"\n[docker]\nsocket = \"/nowhere.sock\"\n";
    fs::write(&config, fs::read_to_string(&config).unwrap() + more).unwrap();
    let stopped = world.ran(13, &["budget", "stop", "org", "-m", "enough"]);
    assert!(stopped.stderr.contains("org is stopped: nothing is started"), "{}", stopped.stderr);
    let shown = world.ran(0, &["budget", "show", "--json"]).json();
    assert!(shown["accounts"].to_string().contains("enough"), "{shown}");
    let cancelled = world.ran(13, &["sessions", "cancel", &world.session()]);
    assert!(cancelled.stderr.contains("is cancelled: nothing is started"), "{}", cancelled.stderr);
    let ended = |event: &Value| event["cancelled"].is_object();
    assert!(world.events(&world.session()).iter().any(ended));
}

/// A yes that could never be acted on is none.
#[test]
fn what_the_rules_forbid_by_now_can_t_be_approved() {
    let (world, id) = waiting(&[Turn(&[shell("echo ran >> log")])]);
    let hard = "@id(\"frozen\") @reason(\"We are in a freeze.\")\nforbid (principal, action == Action::\"execute\", resource);";
    fs::write(world.path("careful.cedar"), hard).unwrap();
    let refused = world.ran(12, &["approve", &id]);
    assert!(refused.stderr.contains("frozen"), "{}", refused.stderr);
    assert!(refused.stderr.contains("We are in a freeze."), "{}", refused.stderr);
    let answered = |event: &Value| event["answered"].is_object();
    assert!(!world.events(&world.session()).iter().any(answered), "nothing was answered");
    fs::write(world.path("careful.cedar"), RULES).unwrap();
    world.ran(0, &["approve", &id]);
}
