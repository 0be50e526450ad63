//! Several people on one server: what each may do is what the rules of access say, for every
//! address there is; what a turn does needs the leave of everybody who spoke in it.

use crate::serve::Served;
use crate::support::{Turn, World, shell, until};
use outrigger_policy::{AccessAction, AccessRights, AccessRules, Directory, SessionStanding};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const PEOPLE: &str = r#"
organisation = "acme"
[groups]
viewer = ["person:vic"]
approver = ["person:ann"]
auditor = ["person:abe"]
admin = ["person:lea"]
ops = ["person:uli", "group:night"]
night = ["person:noa"]
"#;

const NAMES: [&str; 8] = ["ada", "bob", "vic", "ann", "abe", "lea", "uli", "noa"];

/// What each address of a session is for. One that is not here fails the test.
const ACTIONS: [(&str, &str, AccessAction); 24] = [
    ("get", "", AccessAction::View),
    ("get", "/audit", AccessAction::View),
    ("get", "/changes", AccessAction::View),
    ("get", "/changes.patch", AccessAction::View),
    ("get", "/changes.tar", AccessAction::View),
    ("get", "/checkpoints", AccessAction::View),
    ("get", "/effects/{effect}/rules", AccessAction::View),
    ("get", "/events", AccessAction::View),
    ("get", "/events/{seq}/pictures/{number}", AccessAction::View),
    ("get", "/files", AccessAction::View),
    ("get", "/files/content", AccessAction::View),
    ("get", "/journal", AccessAction::View),
    ("get", "/stream", AccessAction::View),
    ("post", "/objects", AccessAction::View),
    ("post", "/messages", AccessAction::Speak),
    ("post", "/compact", AccessAction::Speak),
    ("post", "/interrupt", AccessAction::Speak),
    ("post", "/resume", AccessAction::Speak),
    ("post", "/apply", AccessAction::Manage),
    ("post", "/cancel", AccessAction::Manage),
    ("post", "/fork", AccessAction::Manage),
    ("post", "/rewind", AccessAction::Manage),
    ("put", "/shares", AccessAction::Manage),
    ("delete", "", AccessAction::Remove),
];

/// A server on which these people have a key each.
struct Team {
    served: Served,
    keys: BTreeMap<&'static str, String>,
}

impl Team {
    /// `commands`: of each turn, after which the model says that it is done.
    fn new(rules: &str, commands: &[&str]) -> Self {
        let world = World::new();
        let (people, file) = (world.path("people.toml"), world.path("rules.cedar"));
        fs::write(&people, PEOPLE).unwrap();
        fs::write(&file, rules).unwrap();
        let [people, file] = [people, file].map(|path| path.display().to_string());
        world.configure(&format!("[policy]\npeople = {people:?}\nfiles = [{file:?}]\n"));
        let dir = world.dir("repo", &[("file", b"one\n")]);
        let turn = |command: &&str| Turn(&[shell(command)]).text() + "[[turn]]\ntext = \"Done.\"\n";
        let script = world.path("script.toml");
        fs::write(&script, commands.iter().map(turn).collect::<String>()).unwrap();
        let served = Served::new(world, &dir, &script.display().to_string());
        let keys = NAMES.into_iter().map(|name| (name, served.key(name))).collect();
        Self { served, keys }
    }

    fn ask(&self, name: &str, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let body = body.map(ToString::to_string);
        let mut args = vec!["--request", method];
        args.extend(body.iter().flat_map(|body| ["--json", body.as_str()]));
        self.served.with_key(&self.keys[name], &args, path)
    }

    fn get(&self, name: &str, path: &str) -> (u16, Value) {
        self.ask(name, "GET", path, None)
    }

    fn begin(&self, name: &str) -> String {
        let (status, made) =
            self.ask(name, "POST", "/v1/sessions", Some(&json!({ "text": "Begin." })));
        assert_eq!(status, 201, "{made}");
        made["id"].as_str().unwrap().to_owned()
    }

    fn say(&self, name: &str, session: &str) {
        let (path, said) = (format!("/v1/sessions/{session}/messages"), json!({ "text": "Go." }));
        let (status, problem) = self.ask(name, "POST", &path, Some(&said));
        assert_eq!(status, 202, "{problem}");
    }

    fn share(&self, session: &str, with: &str, access: &str) -> Value {
        let body = json!({ "with": with, "access": access });
        let path = format!("/v1/sessions/{session}/shares");
        let (status, info) = self.ask("ada", "PUT", &path, Some(&body));
        assert_eq!(status, 200, "{info}");
        info
    }

    fn await_status(&self, session: &str, wanted: &str) {
        until(wanted, || {
            let (_, info) = self.get("ada", &format!("/v1/sessions/{session}"));
            (info["status"] == wanted).then_some(())
        });
    }
}

const ASKS: &str = r#"@id("ask") @approvable("anyone")
forbid (principal, action == Action::"execute", resource);"#;

/// Every address of a session, as the contract has it.
fn addresses(served: &Served) -> BTreeSet<(String, String)> {
    let (_, document) = served.curl(&[], "/openapi.json");
    let document: Value = serde_json::from_str(&document).unwrap();
    let of_sessions = document["paths"].as_object().unwrap().iter().filter_map(|(path, item)| {
        Some((path.strip_prefix("/v1/sessions/{id}")?, item.as_object()?))
    });
    of_sessions
        .flat_map(|(path, item)| item.keys().map(move |method| (method.clone(), path.to_owned())))
        .collect()
}

/// What one asks of an address that does not say what it wants.
fn body(method: &str, path: &str) -> Option<Value> {
    match path {
        "/messages" => Some(json!({ "text": "hello" })),
        "/shares" => Some(json!({ "with": "org:acme", "access": "read" })),
        "/interrupt" | "/resume" => None,
        _ => (method != "get").then(|| json!({})),
    }
}

impl Team {
    /// Asks every address of a session for what somebody may, looking, and may not. Gives how
    /// many were asked, and how many of those refused it.
    fn try_all(
        &self,
        (name, rights, standing): (&str, &AccessRights, SessionStanding),
        (session, effect): (&str, &str),
    ) -> (u32, u32) {
        let (mut asked, mut denied) = (0, 0);
        let sees = rights.permit(AccessAction::View, standing);
        let none = format!("there is no session `{session}`");
        for (method, path, action) in ACTIONS {
            let may = sees && rights.permit(action, standing);
            if path == "/stream" || (may && method != "get") {
                continue;
            }
            let query = if path.starts_with("/files") { "?path=/workspace" } else { "" };
            let body = body(method, path);
            let path = path.replace("{effect}", effect);
            let path = path.replace("{seq}", "2").replace("{number}", "0");
            let at = format!("/v1/sessions/{session}{path}{query}");
            let (status, answer) = self.ask(name, &method.to_uppercase(), &at, body.as_ref());
            let is_none = answer["detail"] == none;
            let wanted = match (sees, may) {
                (false, _) => status == 404 && is_none,
                (true, false) => status == 403,
                (true, true) => ![401, 403, 500].contains(&status) && !is_none,
            };
            assert!(wanted, "{name} {method} {path}, {standing:?}: {status} {answer}");
            (asked, denied) = (asked + 1, denied + u32::from(!may));
        }
        (asked, denied)
    }

    /// What waits is for those who may answer it, and lists have what one sees.
    fn try_lists(&self, name: &str, rights: &AccessRights, standing: SessionStanding) {
        let may = |action| rights.permit(action, standing);
        let (_, waiting) = self.get(name, "/v1/approvals");
        let has = !waiting["data"].as_array().unwrap().is_empty();
        assert_eq!(has, may(AccessAction::Answer), "{name}: {waiting}");
        let (_, all) = self.get(name, "/v1/sessions");
        let all = all["data"].as_array().unwrap();
        assert_eq!(all.len(), usize::from(may(AccessAction::View)), "{name}: {all:?}");
        let may_start = rights.permit_anywhere(AccessAction::Start);
        let (_, server) = self.get(name, "/v1/server");
        assert_eq!(server["rights"]["start"], may_start, "{name}: {server}");
    }
}

#[test]
fn who_may_do_what_is_what_the_rules_of_access_say() {
    let team = Team::new(ASKS, &["true"]);
    let session = team.begin("ada");
    team.await_status(&session, "waits for approval");
    let known = ACTIONS.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned()));
    assert_eq!(addresses(&team.served), known.collect());
    let (_, waiting) = team.get("ada", "/v1/approvals");
    let effect = waiting["data"][0]["effect"].to_string();
    let directory: Directory = toml::from_str(PEOPLE).unwrap();
    let rules = AccessRules::new(&[], &directory).unwrap();
    let shares: [&[(&str, &str, SessionStanding)]; 3] = [
        &[],
        &[("org:acme", "read", SessionStanding::Read)],
        &[
            ("org:acme", "none", SessionStanding::None),
            ("group:ops", "take_part", SessionStanding::TakePart),
        ],
    ];
    let (mut asked, mut denied) = (0, 0);
    for shares in shares {
        for (with, access, _) in shares {
            let info = team.share(&session, with, access);
            assert_eq!(
                info["rights"],
                json!({ "speak": true, "manage": true, "remove": true, "answer": true })
            );
        }
        for name in NAMES {
            let rights = rules.rights(&format!("person:{name}"));
            let shares = shares.iter().map(|(with, _, standing)| (*with, *standing));
            let standing = rights.standing("person:ada", shares);
            let tried = team.try_all((name, &rights, standing), (&session, &effect));
            (asked, denied) = (asked + tried.0, denied + tried.1);
            team.try_lists(name, &rights, standing);
        }
    }
    assert!(asked > 200 && denied > 100, "{asked} {denied}");
    let new = json!({ "text": "Begin." });
    assert_eq!(team.ask("vic", "POST", "/v1/sessions", Some(&new)).0, 403);
    // Who takes part answers, and who may not is told that there is nothing.
    let (_, waiting) = team.get("noa", "/v1/approvals");
    let at = format!("/v1/approvals/{}", waiting["data"][0]["id"].as_str().unwrap());
    let yes = json!({ "answer": "approve" });
    assert_eq!(team.ask("bob", "POST", &at, Some(&yes)).0, 404);
    assert_eq!(team.ask("noa", "POST", &at, Some(&yes)).0, 202);
    team.await_status(&session, "answered");
    for (with, status) in [("person:", 400), ("agent:default", 400), ("ops", 400)] {
        let body = json!({ "with": with, "access": "read" });
        let path = format!("/v1/sessions/{session}/shares");
        assert_eq!(team.ask("ada", "PUT", &path, Some(&body)).0, status, "{with}");
    }
    let (_, people) = team.get("noa", "/v1/people");
    assert_eq!((&people["organisation"], &people["you"]), (&json!("acme"), &json!("person:noa")));
    let noa = people["data"].as_array().unwrap().iter().find(|it| it["name"] == "person:noa");
    assert_eq!(noa.unwrap()["groups"], json!(["night", "ops"]));
    // Ada is in no group, and has a key.
    assert!(people["data"].to_string().contains("person:ada"), "{people}");
}

#[test]
fn a_step_needs_the_leave_of_everybody_who_spoke_in_the_turn() {
    let rules = r#"@id("not-bob") @reason("Bob runs nothing.")
        forbid (principal == Person::"bob", action == Action::"execute", resource);"#;
    let team = Team::new(rules, &["echo ran-begun", "echo ran-of-bob", "echo ran-of-ada"]);
    let session = team.begin("ada");
    team.await_status(&session, "answered");
    team.share(&session, "person:bob", "take_part");
    let turns = |events: &Value| {
        events["data"].as_array().unwrap().iter().filter(|it| it["type"] == "turn_ended").count()
    };
    let mut events = Value::Null;
    for (name, ended) in [("bob", 2), ("ada", 3)] {
        team.say(name, &session);
        events = until("the turn is over", || {
            let (_, events) = team.get("bob", &format!("/v1/sessions/{session}/events"));
            (turns(&events) == ended).then_some(events)
        });
    }
    let events = events["data"].as_array().unwrap();
    let outputs =
        events.iter().filter(|event| event["type"] == "settled" && event["text"] != Value::Null);
    let outputs: Vec<_> = outputs.map(|event| event["text"].as_str().unwrap()).collect();
    let has = |text: &str| outputs.iter().any(|output| output.contains(text));
    assert!(has("ran-begun") && has("ran-of-ada"), "{outputs:?}");
    assert!(!has("ran-of-bob"), "{outputs:?}");
    assert!(events.iter().any(|event| event["verdict"] == "forbid"), "{events:?}");
    let authors: Vec<_> = events.iter().filter(|event| event["type"] == "said").collect();
    assert!(authors.iter().any(|event| event.to_string().contains("person:bob")), "{authors:?}");
}

#[test]
fn who_is_there_is_told_and_who_may_not_look_any_more_is_sent_away() {
    let team = Team::new("", &["true"]);
    let session = team.begin("ada");
    team.await_status(&session, "answered");
    team.share(&session, "org:acme", "read");
    let at = format!("/v1/sessions/{session}/stream");
    let url = format!("{}{at}", team.served.url);
    let follow = |name: &str| {
        let mut curl = team.served.world.command("curl");
        let own = ["--silent", "--no-buffer", "--max-time", "30", "--oauth2-bearer"];
        curl.args(own).args([&team.keys[name], &url]);
        curl.stdout(fs::File::create(team.served.world.path(name)).unwrap());
        curl.spawn().unwrap()
    };
    let seen = |name: &str| fs::read_to_string(team.served.world.path(name)).unwrap();
    let (mut ada, mut bob) = (follow("ada"), follow("bob"));
    let both = r#"data: {"people":["person:ada","person:bob"]}"#;
    until("both see both", || {
        (seen("ada").contains(both) && seen("bob").contains(both)).then_some(())
    });
    let elsewhere = json!({ "with": "org:other", "access": "read" });
    let path = format!("/v1/sessions/{session}/shares");
    assert_eq!(team.ask("ada", "PUT", &path, Some(&elsewhere)).0, 400);
    team.share(&session, "org:acme", "none");
    assert!(bob.wait().unwrap().success(), "his stream ended");
    assert_eq!(team.get("bob", &at).0, 404);
    let alone = r#"data: {"people":["person:ada"]}"#;
    until("ada is alone", || seen("ada").rsplit_once(both)?.1.contains(alone).then_some(()));
    assert!(seen("ada").contains(r#""type":"shared""#), "{}", seen("ada"));
    ada.kill().unwrap();
    ada.wait().unwrap();
    // The command line shares, too, and says with whom.
    team.served
        .world
        .ran(0, &["sessions", "share", &session, "--with", "group:ops", "--take-part"]);
    let shown = team.served.world.ran(0, &["sessions", "share", &session]);
    assert!(shown.stdout.contains("group:ops  to take part"), "{shown:?}");
    assert_eq!(team.get("uli", &format!("/v1/sessions/{session}")).0, 200);
    team.served.world.ran(0, &["sessions", "share", &session, "--with", "group:ops", "--revoke"]);
    assert_eq!(team.get("uli", &format!("/v1/sessions/{session}")).0, 404);
}

#[test]
fn rules_say_why_and_secrets_are_set_by_who_may_and_never_come_back() {
    let team = Team::new(ASKS, &["true"]);
    let (status, rules) = team.get("bob", "/v1/rules");
    let ask = rules["data"].as_array().unwrap().iter().find(|rule| rule["id"] == "ask").unwrap();
    assert_eq!((status, &ask["says"]), (200, &json!("ask")), "{rules}");
    assert!(ask["text"].as_str().unwrap().starts_with("@id(\"ask\")"), "{ask}");
    let asked = json!({ "action": "execute", "resource": "main", "speakers": ["person:eve"] });
    let (status, said) = team.ask("bob", "POST", "/v1/rules/explain", Some(&asked));
    assert_eq!((status, &said["ruling"]), (200, &json!("ask")), "{said}");
    let who: Vec<_> = said["subjects"].as_array().unwrap().iter().map(|it| &it["who"]).collect();
    assert_eq!(who, ["agent:default", "person:bob", "person:eve", "org:acme"]);
    for wrong in [json!({ "action": "fly" }), json!({ "action": "egress", "trigger": "moon" })] {
        assert_eq!(team.ask("bob", "POST", "/v1/rules/explain", Some(&wrong)).0, 400, "{wrong}");
    }
    let session = team.begin("ada");
    team.await_status(&session, "waits for approval");
    let (_, waiting) = team.get("ada", "/v1/approvals");
    let effect = &waiting["data"][0]["effect"];
    let (status, why) = team.get("ada", &format!("/v1/sessions/{session}/effects/{effect}/rules"));
    assert_eq!((status, &why["then"]["rules"]), (200, &json!(["ask"])), "{why}");
    assert_eq!(why["situation"]["action"], "execute", "{why}");
    assert_eq!(team.get("ada", &format!("/v1/sessions/{session}/effects/1/rules")).0, 404);

    let secret = json!({ "value": "hunter2-hunter2", "for": ["api.example.com"], "days": 9 });
    let at = "/v1/secrets/API_TOKEN";
    assert_eq!(team.ask("bob", "PUT", at, Some(&secret)).0, 403);
    let (status, set) = team.ask("lea", "PUT", at, Some(&secret));
    assert_eq!((status, &set["set_by"]), (200, &json!("person:lea")), "{set}");
    assert_eq!(set["places"], json!(["api.example.com"]), "{set}");
    let other = json!({ "value": "hunter3-hunter3" });
    assert_eq!(team.ask("bob", "POST", &format!("{at}/rotate"), Some(&other)).0, 403);
    assert_eq!(team.ask("lea", "POST", &format!("{at}/rotate"), Some(&other)).0, 200);
    for (wrong, name) in [
        (json!({ "value": "x-x-x-x-x" }), "A"),
        (json!({ "value": "x-x-x-x-x", "for": ["a.example"] }), "no%20name"),
        (json!({ "value": "", "for": ["a.example"] }), "A"),
        (json!({ "value": "x-x-x-x-x", "for": ["http://a.example"] }), "A"),
        (json!({ "value": "x-x-x-x-x", "git": ["a.example"] }), "A"),
        (json!({ "value": "x-x-x-x-x", "for": ["a.example"], "days": 0 }), "A"),
    ] {
        let (status, problem) =
            team.ask("lea", "PUT", &format!("/v1/secrets/{name}"), Some(&wrong));
        assert_eq!(status, 400, "{wrong}: {problem}");
    }
    let (_, all) = team.get("bob", "/v1/secrets");
    assert_eq!(all["data"][0]["name"], "API_TOKEN", "{all}");
    assert!(!all.to_string().contains("hunter"), "{all}");
    assert_eq!(team.ask("bob", "DELETE", at, None).0, 403);
    assert_eq!(team.ask("lea", "DELETE", at, None).0, 204);
    assert_eq!(team.ask("lea", "DELETE", at, None).0, 404);
}

#[test]
fn rules_of_access_of_ones_own_hold_from_when_they_are_written() {
    let world = World::new();
    let file = world.path("access.cedar");
    let rule = |reason: &str| {
        let rule = r#"forbid (principal, action == Action::"start", resource);"#;
        fs::write(&file, format!("@id(\"closed\") @reason({reason:?}) {rule}")).unwrap();
    };
    rule("Nobody begins anything.");
    world.configure(&format!("[policy]\naccess = [{:?}]\n", file.display().to_string()));
    let dir = world.dir("repo", &[]);
    let script = world.script(&[]);
    let served = Served::new(world, &dir, &script);
    let begin = || served.post("/v1/sessions", &json!({ "text": "Begin." }));
    assert_eq!(begin().0, 403);
    served.world.ran(0, &["policy", "check"]);
    // One that can't be read closes everything, and says so; to mend it is enough.
    fs::write(&file, "permit (").unwrap();
    let (status, problem) = begin();
    assert_eq!((status, &problem["code"]), (500, &json!("internal")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().ends_with("its log says why"), "{problem}");
    let checked = served.world.ran(2, &["policy", "check"]);
    assert!(checked.stdout.contains("access.cedar"), "{checked:?}");
    fs::write(&file, "").unwrap();
    assert_eq!(begin().0, 201);
}
