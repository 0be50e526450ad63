//! What a client of `outrigger serve` sees beside the conversation: the files of a sandbox,
//! memory with its versions and proposals, budgets.

use crate::serve::{Served, served};
use crate::support::{Turn, World, shell, until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Changes memory, naming the version that was looked at.
fn change(served: &Served, method: &str, path: &str, head: &str, body: &Value) -> (u16, Value) {
    served.post_with(path, body, &["--request", method, "--header", head])
}

#[test]
fn files_of_a_sandbox_are_looked_at_while_it_waits() {
    let command =
        "mkdir d; printf 'a\\0b' > d/data; ln -s file link; yes long | head -c 600000 > long";
    let (served, _) = served(&[Turn(&[shell(command)])]);
    let session = served.create("Make files.");
    served.await_status(&session, "answered");
    let files = format!("/v1/sessions/{session}/files");
    let (status, listed) = served.get(&format!("{files}?path=/workspace"));
    assert_eq!((status, &listed["more"]), (200, &json!(false)), "{listed}");
    let names: Vec<_> = listed["data"].as_array().unwrap().iter().collect();
    let kinds: Vec<_> = names.iter().map(|it| format!("{} {}", it["kind"], it["name"])).collect();
    let wanted = [r#""folder" "d""#, r#""file" "file""#, r#""link" "link""#, r#""file" "long""#];
    assert_eq!(kinds, wanted);
    let read = |path: &str| served.get(&format!("{files}/content?path=/workspace/{path}"));
    let (_, file) = read("file");
    assert_eq!((&file["text"], &file["hidden_bytes"]), (&json!("one\n"), &json!(0)));
    let (_, data) = read("d/data");
    assert_eq!((&data["text"], &data["bytes"]), (&Value::Null, &json!(3)));
    let (_, long) = read("long");
    assert_eq!((&long["bytes"], &long["hidden_bytes"]), (&json!(600_000), &json!(75_712)));
    for (path, status) in [("none", 404), ("d", 400), ("../etc/shadow", 400)] {
        let (found, problem) = read(path);
        assert_eq!(found, status, "{path}: {problem}");
    }
    assert_eq!(served.get(&format!("{files}?path=/workspace/none")).0, 404);
    assert_eq!(served.get(&files).0, 400);
    // Its journal is as it was written, until somebody takes a part of it away.
    let audit = format!("/v1/sessions/{session}/audit");
    let (status, report) = served.get(&audit);
    assert_eq!((status, &report["clean"]), (200, &json!(true)), "{report}");
    assert_eq!(report["events"], served.events(&session).len());
    fs::remove_file(served.world.harness().join("audit").join("log")).unwrap();
    let (_, report) = served.get(&audit);
    assert_eq!(
        (&report["clean"], report["faults"].to_string().contains("audit/log")),
        (&json!(false), true),
        "{report}"
    );
    // The newest events alone.
    let events = served.events(&session);
    let (_, last) = served.get(&format!("/v1/sessions/{session}/events?last=2"));
    let last = last["data"].as_array().unwrap();
    assert_eq!((last.len(), last.last()), (2, events.last()));
    // What was removed is not there any more.
    served.world.ran(0, &["rm", &session]);
    for path in ["", "/events", "/files?path=/workspace", "/audit"] {
        assert_eq!(served.get(&format!("/v1/sessions/{session}{path}")).0, 404, "{path}");
    }
}

#[test]
fn a_file_of_memory_is_written_by_who_saw_its_newest_version() {
    let (served, _) = served(&[]);
    let at = "/v1/memory/content?path=/memory/user/notes.md";
    let text = |text: &str| json!({ "text": text, "message": "why" });
    let put = |head: &str, body: &Value| change(&served, "PUT", at, head, body);
    assert_eq!(served.get(at).0, 404);
    let (status, unsaid) = put("X: y", &text("one\n"));
    assert_eq!((status, &unsaid["code"]), (428, &json!("precondition_required")), "{unsaid}");
    let (status, made) = put("If-None-Match: *", &text("one\n"));
    assert_eq!((status, &made["revision"]), (200, &json!(1)), "{made}");
    let (status, twice) = put("If-None-Match: *", &text("other\n"));
    assert_eq!((status, &twice["code"]), (412, &json!("precondition_failed")), "{twice}");
    let jar = served.jar();
    let (_, shown) = served.curl(&["--cookie", &jar, "--include"], at);
    assert!(shown.contains("etag: \"1\"\r\n"), "{shown}");
    assert_eq!(put("If-Match: \"1\"", &text("one\ntwo\n")).1["revision"], 2);
    assert_eq!(put("If-Match: \"1\"", &text("lost\n")).0, 412);
    assert_eq!(put("If-Match: 1", &text("lost\n")).0, 400);
    let (_, now) = served.get(at);
    assert_eq!((&now["text"], &now["version"]["message"]), (&json!("one\ntwo\n"), &json!("why")));
    assert_eq!(now["version"]["author"], "person:local");
    assert_eq!(served.get(&format!("{at}&revision=1")).1["text"], "one\n");

    // A program stays one when its text is another.
    let skill = served.world.path("skill");
    fs::create_dir_all(skill.join("scripts")).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: skill\ndescription: d\n---\n").unwrap();
    fs::write(skill.join("scripts/run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(skill.join("scripts/run"), fs::Permissions::from_mode(0o755)).unwrap();
    served.world.ran(0, &["skills", "import", skill.to_str().unwrap()]);
    let script = "/v1/memory/content?path=/skills/user/skill/scripts/run";
    let other = change(&served, "PUT", script, "If-Match: \"1\"", &text("#!/bin/sh\ntrue\n"));
    assert_eq!(other.0, 200, "{other:?}");
    let (_, listed) = served.get("/v1/memory?path=/skills/user/skill/scripts");
    assert_eq!(listed["data"][0]["executable"], true, "{listed}");

    let about = |what: &str| served.get(&format!("/v1/memory/{what}path=/memory/user/notes.md")).1;
    let blame = about("blame?");
    let blame: Vec<_> = blame["lines"].as_array().unwrap().iter().collect();
    assert_eq!((&blame[0]["revision"], &blame[1]["line"]), (&json!(1), &json!("two\n")));
    let diff = about("diff?");
    assert!(diff["diff"].as_str().unwrap().contains("\n+two\n"), "{diff}");
    let (_, found) = served.get("/v1/memory/search?words=two");
    assert_eq!(found["data"][0]["entry"]["path"], "/memory/user/notes.md", "{found}");
    let (_, listed) = served.get("/v1/memory?recursive=true");
    assert_eq!(listed["data"][0]["path"], "/memory/user/notes.md", "{listed}");

    let back = json!({ "path": "/memory/user/notes.md", "to": 1 });
    let back = change(&served, "POST", "/v1/memory/revert", "If-Match: \"2\"", &back);
    assert_eq!((back.0, &back.1["revision"]), (200, &json!(3)), "{back:?}");
    assert_eq!(change(&served, "DELETE", at, "If-Match: \"2\"", &json!({})).0, 412);
    assert_eq!(change(&served, "DELETE", at, "If-Match: \"3\"", &json!({})).0, 200);
    assert_eq!(served.get(at).0, 404);
    let history = about("history?");
    let states: Vec<_> =
        history["data"].as_array().unwrap().iter().map(|it| &it["state"]).collect();
    assert_eq!(states, ["removed", "file", "file", "file"]);
    for (path, status) in [("/memory", 400), ("/memory/group/none/a", 404), ("/workspace/a", 404)] {
        let (found, problem) = served.get(&format!("/v1/memory/history?path={path}"));
        assert!(found == status || found == 404, "{path}: {found} {problem}");
    }
    assert_eq!(served.get("/v1/memory/search?words=").0, 400);
}

const PEOPLE: &str = r#"
organisation = "acme"
[groups]
team = ["person:ada", "person:bob"]
"#;

#[test]
fn what_others_will_read_is_proposed_and_accepted_by_somebody_else() {
    let world = World::new();
    let people = world.path("people.toml");
    fs::write(&people, PEOPLE).unwrap();
    world.configure(&format!("[policy]\npeople = {:?}\n", people.display().to_string()));
    let dir = world.dir("repo", &[]);
    let script = world.script(&[]);
    let served = Served::new(world, &dir, &script);
    let [ada, bob, eve] = ["ada", "bob", "eve"].map(|name| served.key(name));
    let as_person = |key: &str, args: &[&str], path: &str| served.with_key(key, args, path);
    let shared = "/v1/memory/content?path=/memory/organisation/rules.md";
    let body = json!({ "text": "Be kind.\n" }).to_string();
    let new = ["--request", "PUT", "--header", "If-None-Match: *", "--json", &body];
    let (status, made) = as_person(&ada, &new, shared);
    assert_eq!((status, &made["proposal"]), (200, &json!(1)), "{made}");
    assert_eq!(as_person(&bob, &[], shared).0, 404);
    let (_, waiting) = as_person(&bob, &[], "/v1/proposals");
    assert_eq!(waiting["data"][0]["author"], "person:ada", "{waiting}");
    let (_, one) = as_person(&bob, &[], "/v1/proposals/1");
    assert!(one["diff"].as_str().unwrap().contains("+Be kind."), "{one}");
    let remark = ["--json", r#"{"text":"Why now?"}"#];
    let (status, one) = as_person(&bob, &remark, "/v1/proposals/1/comments");
    let said = &one["comments"][0];
    assert_eq!(
        (status, &said["author"], &said["text"]),
        (200, &json!("person:bob"), &json!("Why now?"))
    );
    // One's own is not one's to accept.
    let yes = ["--json", r#"{"answer":"accept"}"#];
    assert_eq!(as_person(&ada, &yes, "/v1/proposals/1").0, 403);
    let (status, decided) = as_person(&bob, &yes, "/v1/proposals/1");
    assert_eq!((status, &decided["standing"]), (200, &json!("accepted")), "{decided}");
    assert_eq!(as_person(&bob, &yes, "/v1/proposals/1").0, 409);
    assert_eq!(as_person(&ada, &[], shared).1["text"], "Be kind.\n");
    // What is a person's own or a group's is not there for others.
    let own = "/v1/memory/content?path=/memory/user/own.md";
    let team = "/v1/memory/content?path=/memory/group/team/plan.md";
    assert_eq!((as_person(&ada, &new, own).0, as_person(&ada, &new, team).0), (200, 200));
    assert_eq!((as_person(&bob, &[], own).0, as_person(&bob, &[], team).0), (404, 200));
    assert_eq!((as_person(&eve, &[], own).0, as_person(&eve, &[], team).0), (404, 404));
    assert!(!as_person(&eve, &[], "/v1/memory?recursive=true").1.to_string().contains("plan.md"));
}

#[test]
fn what_sessions_took_stands_in_the_accounts_of_their_person() {
    let world = World::new();
    world.configure("[budget.user]\ntokens = 100000\nper = \"day\"\n");
    let dir = world.dir("repo", &[]);
    let script = world.script(&[Turn(&[shell("true")])]);
    let served = Served::new(world, &dir, &script);
    let session = served.create("Do it.");
    served.await_status(&session, "answered");
    let accounts = until("nothing is reserved any more", || {
        let (status, accounts) = served.get("/v1/budgets");
        assert_eq!(status, 200, "{accounts}");
        let own = accounts["data"].as_array()?.iter().find(|it| it["account"] != "org")?.clone();
        (own["measures"][1]["reserved"] == 0).then_some((accounts, own))
    });
    let (all, own) = accounts;
    assert_eq!(own["account"], "user:local", "{all}");
    assert_eq!(own["period"], "day", "{own}");
    let tokens = &own["measures"][1];
    assert_eq!((&tokens["measure"], &tokens["limit"]), (&json!("tokens"), &json!(100_000)));
    assert!(tokens["spent"].as_u64().unwrap() > 0, "{tokens}");
    let jar = served.jar();
    let (status, metrics) = served.curl(&["--cookie", &jar], "/metrics");
    let spent = format!("outrigger_spent_total{{measure=\"tokens\"}} {}\n", tokens["spent"]);
    let route =
        r#"outrigger_http_requests_total{method="GET",route="/v1/sessions/{id}",status="200"}"#;
    for line in [&spent, route, "outrigger_sessions{group=\"done\"} 1\n", "outrigger_approvals 0\n"]
    {
        assert!(status == 200 && metrics.contains(line), "{line}\n{metrics}");
    }
    assert_eq!(served.curl(&[], "/metrics").0, 401);
    served.world.ran(0, &["budget", "stop", "user:local", "-m", "enough"]);
    let (_, stopped) = served.get("/v1/budgets");
    assert!(stopped.to_string().contains("enough"), "{stopped}");
}
