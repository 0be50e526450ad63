//! What a person keeps at a server, from the command line: memory, skills, agents, secrets, budgets.
//! The same verbs and the same `--json` as on one machine.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::serve_remote::{Laptop, asking, begun, laptop};
use crate::support::{Ran, World, until};

/// Runs a command that reads this from its standard input.
fn fed(laptop: &Laptop, args: &[&str], text: &str) -> Ran {
    let file = laptop.world.path("input");
    fs::write(&file, text).unwrap();
    let mut command = laptop.world.outrigger(args);
    Ran::of(command.stdin(Stdio::from(fs::File::open(file).unwrap())).output().unwrap())
}

#[test]
fn memory_is_read_and_changed() {
    let laptop = laptop(&["true"]);
    let ran = |code, args: &[&str]| laptop.world.ran(code, &[&["memory"], args].concat());
    let told = fed(&laptop, &["memory", "put", "notes.md", "-m", "why"], "one\n").expect(0);
    assert!(told.stderr.contains("/memory/user/notes.md is at revision 1"), "{}", told.stderr);
    // What is there is replaced at the revision that is named, and no other.
    let refused = fed(&laptop, &["memory", "put", "notes.md"], "two\n").expect(5);
    assert!(refused.stderr.contains("notes.md"), "{}", refused.stderr);
    let made =
        fed(&laptop, &["memory", "put", "notes.md", "--replaces", "1", "--json"], "one\ntwo\n");
    assert_eq!(made.expect(0).json()["versions"][0]["revision"], 2);
    assert_eq!(ran(0, &["cat", "notes.md"]).stdout, "one\ntwo\n");
    assert_eq!(ran(0, &["cat", "notes.md", "--revision", "1"]).stdout, "one\n");
    let listed = ran(0, &["ls", "/memory/user", "--json"]).json();
    assert_eq!(listed["entries"][0]["path"], "/memory/user/notes.md");
    assert!(ran(0, &["ls", "notes.md"]).stdout.contains("r2"), "a file lists itself");
    assert!(ran(0, &["search", "two"]).stdout.contains("/memory/user/notes.md"));
    let history = ran(0, &["history", "notes.md"]).stdout;
    assert!(history.contains("person:ada") && history.contains("why"), "{history}");
    let blamed = ran(0, &["blame", "notes.md", "--json"]).json();
    assert_eq!(blamed["lines"][1]["revision"], 2);
    assert!(ran(0, &["diff", "notes.md"]).stdout.contains("+two"));
    ran(0, &["revert", "notes.md", "--to", "1"]);
    assert_eq!(ran(0, &["cat", "notes.md"]).stdout, "one\n");
    let editor = laptop.world.path("editor");
    fs::write(&editor, "echo mine >> \"$1\"\n").unwrap();
    let mut edit = laptop.world.outrigger(&["memory", "edit", "notes.md"]);
    edit.env("EDITOR", format!("sh {}", editor.display()));
    assert!(Ran::of(edit.output().unwrap()).expect(0).stderr.contains("is at revision 4"));
    assert_eq!(ran(0, &["cat", "notes.md"]).stdout, "one\nmine\n");
    ran(0, &["rm", "notes.md"]);
    ran(4, &["cat", "notes.md"]);
    // What is the organisation's waits for somebody else.
    let proposed = fed(&laptop, &["memory", "put", "/memory/organisation/a.md"], "all\n").expect(0);
    assert!(proposed.stderr.contains("proposed as 1"), "{}", proposed.stderr);
    assert!(ran(0, &["proposals", "ls"]).stdout.contains("/memory/organisation/a.md"));
    assert!(ran(0, &["proposals", "show", "1"]).stdout.contains("+all"));
    ran(0, &["proposals", "comment", "1", "Soon, please."]);
    assert!(ran(0, &["proposals", "show", "1"]).stdout.contains("Soon, please."));
    ran(12, &["proposals", "accept", "1"]);
    ran(0, &["proposals", "withdraw", "1"]);
    assert!(ran(0, &["proposals", "ls"]).stdout.is_empty());
    assert!(ran(2, &["stale"]).stderr.contains("--server local"));
    // None of it is on this machine.
    let here = laptop.world.ran(0, &["--server", "local", "memory", "ls"]).stdout;
    assert!(!here.contains("notes.md"), "{here}");
}

#[test]
fn what_was_written_to_memory_is_destroyed() {
    let laptop = laptop(&["true"]);
    let ran = |code, args: &[&str]| laptop.world.ran(code, &[&["memory"], args].concat());
    let key = "the key of the till is zqxjkvbpyyw-0123456789-abcdefghijklmnopqrstuvwxyz\n";
    fed(&laptop, &["memory", "put", "till.md"], key).expect(0);
    let more = format!("{key}and it is kept in the drawer\n");
    fed(&laptop, &["memory", "put", "till.md", "--replaces", "1"], &more).expect(0);
    let redact = ["redact", "till.md", "--revision", "1", "-m", "a key was in it"];
    let refused = ran(5, &redact).stderr;
    let wanted = ["nothing was destroyed", "/memory/user/till.md r2", "`destroy` or `leave`"];
    assert!(wanted.iter().all(|part| refused.contains(part)), "{refused}");
    assert_eq!(ran(0, &["cat", "till.md", "--revision", "1"]).stdout, key);
    let json = [&redact[..], &["--derived", "destroy", "--json"]].concat();
    let made = ran(0, &json).json();
    assert_eq!((made["type"].as_str(), made["unseen"].as_u64()), (Some("changed"), Some(0)));
    let mut revisions: Vec<_> = made["versions"].as_array().unwrap().iter().collect();
    revisions.sort_by_key(|it| it["revision"].as_u64());
    assert_eq!((&revisions[0]["revision"], &revisions[1]["revision"]), (&json!(1), &json!(2)));
    ran(4, &["cat", "till.md", "--revision", "1"]);
    let history = ran(0, &["history", "till.md"]).stdout;
    assert!(history.contains("redacted by person:ada: a key was in it"), "{history}");
    let database = fs::read(laptop.served.world.harness().join("journal.db")).unwrap();
    assert!(!String::from_utf8_lossy(&database).contains("zqxjkvbpyyw"));
    assert!(
        laptop.world.ran(4, &["memory", "redact", "none.md", "-m", "x"]).stderr.contains("none.md")
    );
}

const SKILL: &[u8] = b"---\nname: greet\ndescription: Says hello.\n---\n# Greet\n";

/// The folder of a skill with a program.
fn greet(world: &World) -> String {
    let files = [("SKILL.md", SKILL), ("scripts/hi.sh", b"#!/bin/sh\necho hello\n")];
    let dir = world.dir("given/greet", &files);
    fs::set_permissions(dir.join("scripts/hi.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    dir.display().to_string()
}

#[test]
fn a_skill_goes_in_and_out_as_it_was() {
    let laptop = laptop(&["/skills/user/greet/scripts/hi.sh > said"]);
    let ran = |code, args: &[&str]| laptop.world.ran(code, &[&["skills"], args].concat());
    let folder = greet(&laptop.world);
    let digest = ran(0, &["validate", &folder, "--json"]).json()["digest"].clone();
    assert!(ran(0, &["ls"]).stderr.contains("there are no skills yet"));
    let made = ran(0, &["import", &folder, "--json"]).json();
    assert_eq!((&made["path"], &made["digest"]), (&json!("/skills/user/greet"), &digest));
    let again = ran(5, &["import", &folder]).stderr;
    assert!(again.contains("/skills/user/greet is there already"), "{again}");
    let skill = ran(0, &["ls", "--json"]).json()["skills"][0].clone();
    assert_eq!((&skill["digest"], &skill["files"]), (&digest, &json!(2)), "{skill}");
    assert_eq!(
        (&skill["standing"], &skill["description"]),
        (&json!("offered"), &json!("Says hello."))
    );
    let shown = ran(0, &["ls"]).stdout;
    assert!(shown.starts_with("/skills/user/greet  offered\n    Says hello.\n"), "{shown}");
    // What may be executed stays so, there and back.
    laptop.world.ran(0, &["run", "--dir", laptop.dir(), "--apply", "Greet."]);
    assert_eq!(fs::read_to_string(laptop.dir.join("said")).unwrap(), "hello\n");
    let events = serde_json::to_string(&laptop.world.events(&laptop.session())).unwrap();
    assert!(events.contains("/skills/user/greet/SKILL.md"), "{events}");
    let out = laptop.world.path("greet");
    ran(0, &["export", "greet", out.to_str().unwrap()]);
    assert_eq!(ran(0, &["validate", out.to_str().unwrap(), "--json"]).json()["digest"], digest);
    ran(5, &["export", "greet", out.parent().unwrap().to_str().unwrap()]);
    ran(4, &["export", "none"]);
    // Another version of it: what did not change is not written again, what is gone is removed.
    fs::remove_dir_all(format!("{folder}/scripts")).unwrap();
    fs::write(format!("{folder}/more.md"), "more\n").unwrap();
    ran(0, &["import", "--replace", &folder]);
    let listed =
        laptop.world.ran(0, &["memory", "ls", "-r", "/skills/user/greet", "--json"]).json();
    let files = listed["entries"].as_array().unwrap().iter().filter(|it| it["folder"] != true);
    let files: Vec<_> = files.map(|it| (it["path"].as_str().unwrap(), &it["revision"])).collect();
    let (more, skill) = ("/skills/user/greet/more.md", "/skills/user/greet/SKILL.md");
    assert_eq!(files, [(skill, &json!(1)), (more, &json!(1))], "{listed}");
    // None of it is on this machine.
    assert_eq!(laptop.world.ran(0, &["--server", "local", "skills", "ls"]).stdout, "");
}

#[test]
fn what_is_no_skill_for_a_server_is_refused_whole() {
    let laptop = laptop(&["true"]);
    let ran = |code, args: &[&str]| laptop.world.ran(code, &[&["skills"], args].concat());
    let folder = greet(&laptop.world);
    let nowhere = ran(4, &["import", &folder, "--to", "nobody"]).stderr;
    assert!(nowhere.contains("there is no memory scope `nobody` for you"), "{nowhere}");
    // What has to be reviewed is proposed.
    let proposed = ran(0, &["import", &folder, "--to", "organisation", "--json"]).json();
    assert_eq!(proposed["proposals"].as_array().unwrap().len(), 2, "{proposed}");
    fs::write(format!("{folder}/a.bin"), b"\xff\x00").unwrap();
    let refused = ran(2, &["import", &folder]).stderr;
    assert!(refused.contains("a.bin: it is no text"), "{refused}");
    assert_eq!(ran(0, &["ls"]).stdout, "");
}

#[test]
fn a_server_says_whose_skills_are_taken_in_and_which_are_pinned() {
    let world = World::new();
    let key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    world.configure(&format!(
        "[skills]\ntrusted_keys = [\"{key}\"]\npins = {{ \"/skills/user/greet\" = \"{key}\" }}\n"
    ));
    let laptop = begun(world, &["true"]);
    let folder = greet(&laptop.world);
    let refused = laptop.world.ran(12, &["skills", "import", &folder]).stderr;
    assert!(refused.contains("it is not signed"), "{refused}");
    let put = ["memory", "put", "/skills/user/greet/SKILL.md", &format!("{folder}/SKILL.md")];
    laptop.world.ran(0, &put);
    let listed = laptop.world.ran(0, &["skills", "ls", "--json"]).json();
    assert_eq!(listed["skills"][0]["standing"], "not_pinned", "{listed}");
}

#[test]
fn an_agent_is_kept_and_started() {
    let laptop = laptop(&["true"]);
    let definition = "description = \"Sweeps.\"\ntask = \"Sweep.\"\n";
    let kept = fed(&laptop, &["agents", "set", "sweeper", "-"], definition).expect(0);
    assert!(kept.stderr.contains("sweeper is kept as /agents/user/sweeper.toml (r1)"));
    let agents = laptop.world.ran(0, &["agents", "ls", "--json"]).json();
    assert_eq!(agents["agents"][0]["description"], "Sweeps.");
    fed(&laptop, &["agents", "set", "sweeper", "-"], "nonsense = 1\n").expect(2);
    laptop.world.ran(0, &["run", "--agent", "sweeper", "--dir", laptop.dir()]);
    let opened = laptop.world.events(&laptop.session())[0]["opened"].clone();
    assert_eq!(opened["role"]["agent"], "sweeper", "{opened}");
}

#[test]
fn secrets_are_set_and_their_values_never_shown() {
    let laptop = laptop(&["true"]);
    let set = ["secrets", "set", "TOKEN", "--for", "api.example.com", "--method", "GET"];
    let refused = fed(&laptop, &set, "ghp_0123456789abcdef").expect(12);
    assert!(refused.stderr.contains("you may not administer"), "{}", refused.stderr);
    laptop.login("local", "administrator").expect(0);
    let ran = |code, args: &[&str]| laptop.world.ran(code, &[&["secrets"], args].concat());
    let value = "ghp_0123456789abcdef";
    let told = fed(&laptop, &set, &format!("{value}\n")).expect(0).stderr;
    assert!(told.contains("TOKEN is kept, and sent to api.example.com alone"), "{told}");
    fed(&laptop, &["secrets", "set", "TOKEN"], value).expect(2);
    let listed = ran(0, &["ls", "--json"]).json();
    let secret = &listed["secrets"][0];
    assert_eq!((&secret["name"], &secret["set_by"]), (&json!("TOKEN"), &json!("person:local")));
    assert_eq!(secret["grants"][0]["methods"], json!(["GET"]));
    assert!(ran(0, &["grants", "TOKEN"]).stdout.contains("api.example.com:443  GET"));
    fed(&laptop, &["secrets", "rotate", "TOKEN"], "ghp_fedcba9876543210").expect(0);
    ran(0, &["revoke", "TOKEN"]);
    ran(4, &["revoke", "TOKEN"]);
    let everything = fs::read(laptop.served.world.harness().join("journal.db")).unwrap();
    assert!(!everything.windows(value.len()).any(|part| part == value.as_bytes()));
}

#[test]
fn what_may_be_spent_is_said_and_stopped() {
    let laptop = laptop(&["sleep 600", "true"]);
    laptop.login("local", "administrator").expect(0);
    laptop.world.ran(0, &["context", "use", "team"]);
    let set = ["budget", "set", "user:ada", "--steps", "100", "--per", "month", "--json"];
    laptop.world.ran(12, &set);
    let ran = |args: &[&str]| {
        laptop.world.ran(0, &[&["--server", "administrator", "budget"], args].concat())
    };
    let account = ran(&set[1..]).json();
    assert_eq!((&account["limit"]["steps"], &account["per"]), (&json!(100), &json!("month")));
    let run =
        |text: &str| laptop.world.outrigger(&["run", "--detach", text, "--dir", laptop.dir()]);
    Ran::of(run("Sleep.").output().unwrap()).expect(0);
    let session = laptop.session();
    until("it runs", || {
        let events = laptop.world.ran(0, &["sessions", "logs", &session, "--json"]).stdout;
        events.contains("sleep 600").then_some(())
    });
    let stopped = ran(&["stop", "user:ada", "-m", "enough", "--json"]).json();
    assert_eq!(stopped["sessions"], json!([session]));
    let shown = ran(&["show"]).stdout;
    assert!(shown.contains("stopped by person:local") && shown.contains("enough"), "{shown}");
    let own = laptop.world.ran(0, &["budget", "show"]).stdout;
    assert!(own.contains("enough") && own.contains(&session), "{own}");
    until("it waits", || {
        let stands = laptop.world.ran(0, &["sessions", "ls", "--json"]).json();
        (stands["sessions"][0]["status"] == "interrupted").then_some(())
    });
    // Nothing starts until it is allowed again.
    let refused =
        Ran::of(laptop.world.outrigger(&["sessions", "say", &session, "Again."]).output().unwrap());
    assert!(refused.code != Some(0) && refused.stderr.contains("enough"), "{refused:?}");
    for new in [&["run", "Go.", "--dir", laptop.dir()][..], &["sandbox", "create", "none"]] {
        let refused = laptop.world.ran(11, new);
        assert!(refused.stderr.contains("`user:ada` was stopped: enough"), "{refused:?}");
    }
    ran(&["allow", "user:ada"]);
    let accounts = ran(&["show", "--json"]).json();
    let ada = accounts["accounts"].as_array().unwrap().iter();
    let ada: Vec<&Value> = ada.filter(|it| it["account"] == "user:ada").collect();
    assert!(ada.len() == 1 && ada[0]["stopped"].is_null(), "{accounts}");
    laptop.world.ran(0, &["sessions", "say", &session, "Again."]);
}

#[test]
fn what_waits_for_a_person_waits_on_where_its_account_is_stopped() {
    let laptop = asking(&["echo two >> file"]);
    laptop.login("local", "administrator").expect(0);
    laptop.world.ran(0, &["context", "use", "team"]);
    laptop.world.ran(0, &["run", "--detach", "Add a line.", "--dir", laptop.dir()]);
    let id = until("it waits", || {
        let inbox = laptop.world.ran(0, &["inbox", "--json"]).json();
        Some(inbox["waiting"][0]["id"].as_str()?.to_owned())
    });
    let budget = |args: &[&str]| {
        laptop.world.ran(0, &[&["--server", "administrator", "budget"], args].concat())
    };
    assert_eq!(budget(&["stop", "user:ada", "--json"]).json()["sessions"], json!([]));
    budget(&["allow", "user:ada"]);
    laptop.world.ran(0, &["approve", &id]);
}

#[test]
fn a_session_that_used_up_what_it_may_goes_on_with_more() {
    let laptop = laptop(&["true"]);
    let dir = laptop.world.dir("repo", &[("file", b"one\n")]).display().to_string();
    let run = ["run", "Go.", "--dir", &dir, "--max-tokens", "9", "--json"];
    let session = laptop.world.ran(11, &run).json()["session"].as_str().unwrap().to_owned();
    laptop.world.ran(11, &["sessions", "resume", &session]);
    let more = ["sessions", "resume", &session, "--max-tokens", "100000", "--json"];
    assert_eq!(laptop.world.ran(0, &more).json()["answer"], "[scripted] Done.");
    let refused = laptop.world.ran(2, &["sessions", "resume", &session, "--model", "other"]);
    assert!(refused.stderr.contains("works on this machine alone"), "{}", refused.stderr);
}

#[test]
fn a_session_is_removed_for_good_and_whoever_looks_is_told() {
    let laptop = laptop(&["echo zqxjkvbpyyw > new; if grep slow file; then sleep 600; fi"]);
    let run =
        |text: &str| laptop.world.outrigger(&["run", "--detach", text, "--dir", laptop.dir()]);
    laptop.world.ran(0, &["run", "Make one.", "--dir", laptop.dir()]);
    let done = laptop.session();
    let patch = laptop.served.world.harness().join(format!("patches/{done}.patch"));
    until("its changes are kept", || patch.exists().then_some(()));
    // What goes on is ended first.
    fs::write(laptop.dir.join("file"), "slow\n").unwrap();
    Ran::of(run("Sleep.").output().unwrap()).expect(0);
    let listed = laptop.world.ran(0, &["sessions", "ls", "--json"]).json();
    let mut listed = listed["sessions"].as_array().unwrap().iter();
    let busy = listed.find(|it| it["title"] == "Sleep.").unwrap()["session"].as_str().unwrap();
    let refused = laptop.world.ran(5, &["sessions", "rm", busy]).stderr;
    assert!(refused.contains("has something to do yet"), "{refused}");
    laptop.login("bob", "bobs").expect(0);
    laptop.world.ran(4, &["--server", "bobs", "sessions", "rm", &done]);
    laptop.world.ran(0, &["context", "use", "team"]);
    let key = laptop.served.key("ada");
    let follow = |path: &str| {
        let url = format!("{}{path}", laptop.served.url);
        let mut curl = laptop.world.command("curl");
        curl.args(["--silent", "--no-buffer", "--max-time", "60", "--oauth2-bearer", &key, &url]);
        let output = fs::File::create(laptop.world.path(&path.replace('/', "-"))).unwrap();
        (curl.stdout(output).spawn().unwrap(), laptop.world.path(&path.replace('/', "-")))
    };
    let (mut all, told) = follow("/v1/updates");
    let (mut one, heard) = follow(&format!("/v1/sessions/{done}/stream"));
    until("it is followed", || {
        fs::read_to_string(&heard).unwrap().contains("turn_ended").then_some(())
    });
    let removed = laptop.world.ran(0, &["sessions", "rm", &done, "--json"]).json();
    assert_eq!(removed["sessions"], json!([done]));
    let text = format!("event: removed\ndata: {{\"session\":\"{done}\"}}");
    until("it is told", || fs::read_to_string(&told).unwrap().contains(&text).then_some(()));
    // There is nothing to follow any more.
    assert!(one.wait().unwrap().success());
    all.kill().unwrap();
    all.wait().unwrap();
    laptop.world.ran(4, &["sessions", "show", &done]);
    assert!(!patch.exists());
    laptop.world.ran(0, &["sessions", "cancel", busy]);
    laptop.world.ran(0, &["rm", busy]);
    assert_eq!(laptop.world.ran(0, &["sessions", "ls", "--json"]).json()["sessions"], json!([]));
    let report = laptop.served.world.ran(0, &["audit", "verify", "--json"]).json();
    assert_eq!((&report["removed"], &report["sessions"]), (&json!(2), &json!(0)));
    let sandboxes = laptop.served.world.data().join("native/sandboxes");
    assert_eq!(fs::read_dir(sandboxes).unwrap().count(), 0);
}

#[test]
fn rules_of_access_may_keep_every_session() {
    let world = World::new();
    let rules = world.path("access.cedar");
    let text = r#"@id("kept") forbid (principal, action == Action::"remove", resource);"#;
    fs::write(&rules, text).unwrap();
    world.configure(&format!("[policy]\naccess = [{:?}]\n", rules.display().to_string()));
    let laptop = begun(world, &["true"]);
    laptop.world.ran(0, &["run", "Look.", "--dir", laptop.dir()]);
    let refused = laptop.world.ran(12, &["sessions", "rm", &laptop.session()]).stderr;
    assert!(refused.contains("you may not remove this session"), "{refused}");
    laptop.world.ran(0, &["sessions", "show", &laptop.session()]);
}
