//! Two organisations beside each other, each with a server, a role and a database of its own at one
//! PostgreSQL, and twenty people: every operation of the contract is asked by each of them about
//! what their own organisation has, and about what the other one has. What comes of it is what the
//! rules of access say, and what isn't theirs is answered as what never was.

use crate::serve::Served;
use crate::support::{Ran, Turn, World, shell, until};
use outrigger_policy::{AccessAction, AccessRules, Directory, SessionStanding};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

pub(crate) const GROUPS: &str = r#"
[groups]
viewer = ["person:vic", "person:vera"]
approver = ["person:ann", "person:art"]
auditor = ["person:abe", "person:amy"]
admin = ["person:lea", "person:leo"]
ops = ["person:uli"]
"#;

/// Of the same names in both organisations, who are different people. Ada has what there is, and
/// comes last, because each of them logs out at the end.
pub(crate) const NAMES: [&str; 10] =
    ["uli", "vic", "vera", "ann", "art", "abe", "amy", "lea", "leo", "ada"];
pub(crate) const OWNER: &str = "ada";

const ASKS: &str = r#"@id("ask") @approvable("anyone")
forbid (principal, action == Action::"execute", resource);"#;

const NOTES: &str = "/memory/user/notes.md";

/// Ends each answer of several.
const END: &str = "\n%{http_code}\n= the end of an answer =";
const MARK_OF_END: &str = "\n= the end of an answer =";

/// What somebody needs to be served by an operation. Who does not have it is refused, or told that
/// there is nothing.
#[derive(Clone, Copy)]
enum Need {
    /// Being somebody. It has only what is theirs to see.
    Nothing,
    /// To be a person in a browser, which no key is.
    Browser,
    /// A right that belongs to no session.
    Anywhere(AccessAction),
    /// A right in the session.
    Session(AccessAction),
    /// To answer in the session that asks.
    Question,
    /// A right in a sandbox; who administers may take it away.
    Sandbox(AccessAction, Administrator),
    Snapshot,
}

/// Whether who administers the organisation may do it too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Administrator {
    May,
    MayNot,
}

/// What each operation needs. One that is not here fails the test.
fn need(operation: &str) -> Need {
    use AccessAction::{Administer, Manage, Remove, Speak, Start, View, WriteMemory};
    match operation {
        "get_metrics" | "list_agents" | "list_approvals" | "list_accounts" | "list_egress"
        | "get_device_login" | "log_out" | "list_entries" | "get_entry_blame" | "get_entry"
        | "get_entry_diff" | "get_entry_history" | "search_entries" | "list_people"
        | "list_proposals" | "get_proposal" | "list_rules" | "explain_rules" | "list_sandboxes"
        | "list_secrets" | "get_server" | "list_sessions" | "list_skills" | "list_snapshots"
        | "list_templates" | "follow_updates" => Need::Nothing,
        "answer_device_login" => Need::Browser,
        "create_sandbox" | "create_session" | "upload_workspace" => Need::Anywhere(Start),
        "write_agent" | "write_entry" | "remove_entry" | "revert_entry" | "redact_entry"
        | "answer_proposal" | "comment_proposal" => Need::Anywhere(WriteMemory),
        "set_account" | "set_secret" | "revoke_secret" | "rotate_secret" => {
            Need::Anywhere(Administer)
        }
        "get_session" | "audit_session" | "get_changes" | "get_patch" | "get_change_archive"
        | "list_checkpoints" | "explain_effect" | "list_events" | "list_files" | "get_file"
        | "get_picture" | "read_journal" | "read_objects" | "follow_session" => Need::Session(View),
        "send_message" | "interrupt_session" | "resume_session" | "compact_session" => {
            Need::Session(Speak)
        }
        "apply_changes" | "cancel_session" | "fork_session" | "rewind_session"
        | "share_session" => Need::Session(Manage),
        "remove_session" => Need::Session(Remove),
        "get_approval" | "answer_approval" => Need::Question,
        "get_sandbox" => Need::Sandbox(View, Administrator::May),
        "read_sandbox_archive"
        | "get_command"
        | "follow_command"
        | "list_sandbox_egress"
        | "list_sandbox_files"
        | "get_sandbox_file"
        | "read_sandbox_file" => Need::Sandbox(View, Administrator::MayNot),
        "remove_sandbox" | "suspend_sandbox" => Need::Sandbox(Manage, Administrator::May),
        "write_sandbox_archive"
        | "run_command"
        | "type_to_command"
        | "kill_command"
        | "make_sandbox_folder"
        | "move_sandbox_file"
        | "remove_sandbox_file"
        | "write_sandbox_file"
        | "fork_sandbox"
        | "set_sandbox_network"
        | "take_snapshot"
        | "open_terminal" => Need::Sandbox(Manage, Administrator::MayNot),
        "remove_snapshot" => Need::Snapshot,
        unknown => panic!("what does `{unknown}` need?"),
    }
}

/// A body that is taken, of each operation that takes one.
fn body(operation: &str) -> Option<Value> {
    Some(match operation {
        "answer_approval" => json!({ "answer": "deny" }),
        "answer_device_login" => json!({ "answer": "refuse" }),
        "answer_proposal" => json!({ "answer": "withdraw" }),
        "comment_proposal" => json!({ "text": "none" }),
        "cancel_session" => json!({ "reason": "none" }),
        "create_session" | "send_message" => json!({ "text": "Hello" }),
        "explain_rules" => json!({ "action": "execute", "resource": "sandbox" }),
        "move_sandbox_file" => json!({ "from": "marked", "to": "marked" }),
        "redact_entry" => json!({ "path": NOTES, "why": "none" }),
        "revert_entry" => json!({ "path": NOTES, "to": 1 }),
        "rotate_secret" => json!({ "value": "another-value" }),
        "run_command" => json!({ "shell": "true" }),
        "set_account" => json!({ "limit": { "steps": 1_000_000_000 } }),
        "set_sandbox_network" => json!({ "network": ["none"] }),
        "set_secret" => json!({ "value": "another-value", "for": ["api.example.com"] }),
        "share_session" => json!({ "with": "person:uli", "access": "none" }),
        "type_to_command" => json!({ "text": "none" }),
        "write_agent" => json!({ "task": "none" }),
        "write_entry" | "write_sandbox_file" => json!({ "text": "none" }),
        "apply_changes"
        | "create_sandbox"
        | "fork_sandbox"
        | "fork_session"
        | "read_objects"
        | "rewind_session"
        | "suspend_sandbox"
        | "take_snapshot"
        | "upload_workspace"
        | "write_sandbox_archive" => json!({}),
        _ => return None,
    })
}

/// Whether an operation lists all of a kind that somebody sees.
fn lists(operation: &str, kind: &str) -> bool {
    match kind {
        "session" => operation == "list_sessions",
        "sandbox" => ["list_sandboxes", "list_snapshots"].contains(&operation),
        "memory" => operation == "get_entry",
        unknown => panic!("what lists `{unknown}`?"),
    }
}

/// An operation of the contract.
struct Operation {
    name: String,
    method: String,
    path: String,
    /// What has to be in the query.
    query: String,
}

impl Operation {
    /// Its address, about what somebody has.
    fn at(&self, about: &Owned) -> String {
        let path = about.fill(&self.path);
        if self.query.is_empty() { path } else { format!("{path}?{}", self.query) }
    }

    /// Whether it is about something that somebody has, by its name.
    fn is_about_something(&self) -> bool {
        !matches!(need(&self.name), Need::Nothing | Need::Browser | Need::Anywhere(_))
    }
}

/// All for which one has to be somebody, the one that ends a key last.
fn operations(served: &Served) -> Vec<Operation> {
    let (_, document) = served.curl(&[], "/openapi.json");
    let document: Value = serde_json::from_str(&document).unwrap();
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            if operation["security"] == json!([{}]) {
                continue;
            }
            let given = operation["parameters"].as_array().into_iter().flatten();
            let given = given.filter(|it| it["in"] == "query" && it["required"] == json!(true));
            let given = given.map(|it| {
                let value = it["example"].as_str().unwrap_or("1");
                format!("{}={value}", it["name"].as_str().unwrap())
            });
            all.push(Operation {
                name: operation["operationId"].as_str().unwrap().to_owned(),
                method: method.to_uppercase(),
                path: path.clone(),
                query: given.collect::<Vec<_>>().join("&"),
            });
        }
    }
    all.sort_by_key(|operation| operation.name == "log_out");
    all
}

/// The head of a picture of two pixels by three.
const PNG_BASE64: &str = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAIAAAA=";

/// What somebody has, by its names.
#[derive(Clone)]
struct Owned {
    session: String,
    effect: u64,
    /// The event that says something with pictures.
    said: u64,
    sandbox: String,
    snapshot: String,
}

impl Owned {
    /// A session that asks, a sandbox with a command, a snapshot, and memory.
    fn make(served: &Served, key: &str, mark: &str) -> Self {
        let done = |path: &str, body: Value| -> Value {
            let body = body.to_string();
            let (status, told) = served.with_key(key, &["--json", &body], path);
            assert!(status < 300, "{path}: {status} {told}");
            told
        };
        let name = |made: Value| made["id"].as_str().unwrap().to_owned();
        let notes = format!("/v1/memory/content?path={NOTES}");
        let text = json!({ "text": format!("{mark}memory") }).to_string();
        // Once: the next time it is there.
        let put = ["--request", "PUT", "--header", "If-None-Match: *", "--json", &text];
        let (status, told) = served.with_key(key, &put, &notes);
        assert!([200, 201, 412].contains(&status), "{told}");
        let picture = json!({ "name": "shot.png", "content": PNG_BASE64 });
        let asked = json!({ "text": format!("{mark}session"), "pictures": [picture, picture] });
        let session = name(done("/v1/sessions", asked));
        let label = format!("{mark}sandbox");
        let sandbox = name(done("/v1/sandboxes", json!({ "label": label })));
        let at = format!("/v1/sandboxes/{sandbox}");
        let command = json!({ "id": "mark", "shell": format!("touch marked; echo {label}") });
        done(&format!("{at}/execs"), command);
        let snapshot = name(done(&format!("{at}/snapshots"), json!({ "label": label })));
        let effect = until("it asks", || {
            let (_, waiting) = served.with_key(key, &[], "/v1/approvals");
            let mut all = waiting["data"].as_array()?.iter();
            all.find(|asked| asked["session"] == session.as_str())?["effect"].as_u64()
        });
        let (_, events) = served.with_key(key, &[], &format!("/v1/sessions/{session}/events"));
        let mut events = events["data"].as_array().unwrap().iter();
        let said = events.find(|event| event["pictures"].is_array()).unwrap();
        let said = said["seq"].as_u64().unwrap();
        Self { session, effect, said, sandbox, snapshot }
    }

    fn fill(&self, path: &str) -> String {
        let id = if path.starts_with("/v1/approvals/") {
            format!("{}.{}", self.session, self.effect)
        } else if path.starts_with("/v1/sandboxes/") {
            self.sandbox.clone()
        } else if path.starts_with("/v1/snapshots/") {
            self.snapshot.clone()
        } else {
            self.session.clone()
        };
        let (effect, said) = (self.effect.to_string(), self.said.to_string());
        let known = [
            ("{id}", id.as_str()),
            ("{effect}", &effect),
            ("{seq}", &said),
            ("{exec}", "mark"),
            ("{name}", "api-token"),
            ("{number}", "1"),
            ("{code}", "BBBB-BBBB"),
        ];
        known.iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value))
    }

    /// Names of their kind that nobody ever had.
    fn never(&self) -> Self {
        let other = |name: &str| {
            let mut name = name.to_owned();
            let last = if name.pop() == Some('7') { '6' } else { '7' };
            name + &last.to_string()
        };
        Self {
            session: other(&self.session),
            effect: self.effect,
            said: self.said,
            sandbox: other(&self.sandbox),
            snapshot: other(&self.snapshot),
        }
    }

    /// An answer without these names, and without its own.
    fn neutral(&self, answer: &str) -> String {
        let answer = match serde_json::from_str(answer) {
            Ok(Value::Object(mut problem)) => {
                problem.remove("request_id");
                Value::Object(problem).to_string()
            }
            Ok(_) | Err(_) => answer.to_owned(),
        };
        let names = [&self.session, &self.sandbox, &self.snapshot];
        names.iter().fold(answer, |answer, name| answer.replace(name.as_str(), "…"))
    }
}

/// A server of an organisation, on which its people have a key each.
struct Organisation {
    served: Served,
    keys: BTreeMap<&'static str, String>,
    rules: AccessRules,
    owned: Owned,
    /// It stands in what its owner has, so that it is found wherever it comes out.
    mark: String,
}

impl Organisation {
    fn new(name: &str) -> Self {
        let world = World::on_postgres().with_own_role();
        let people = format!("organisation = \"{name}\"\n{GROUPS}");
        let directory: Directory = toml::from_str(&people).unwrap();
        let (file, rules) = (world.path("people.toml"), world.path("rules.cedar"));
        fs::write(&file, people).unwrap();
        fs::write(&rules, ASKS).unwrap();
        let [file, rules] = [file, rules].map(|path| path.display().to_string());
        world.configure(&format!("[policy]\npeople = {file:?}\nfiles = [{rules:?}]\n"));
        let dir = world.dir("repo", &[("file", b"one\n")]);
        let script = world.script(&[Turn(&[shell("true")])]);
        let served = Served::new(world, &dir, &script);
        let keys: BTreeMap<_, _> = NAMES.map(|name| (name, served.key(name))).into();
        let rules = AccessRules::new(&[], &directory).unwrap();
        let mark = format!("mark-of-{name}-");
        let owned = Owned::make(&served, &keys[OWNER], &mark);
        Self { served, keys, rules, owned, mark }
    }

    /// What comes of all these operations about something, asked over one connection.
    fn answers(&self, key: &str, all: &[&Operation], about: &Owned) -> Vec<(u16, String)> {
        let mut curl = self.served.world.command("curl");
        for operation in all {
            // What is followed does not end.
            let at = operation.at(about);
            let wait = if operation.name.starts_with("follow_") { "0.2" } else { "30" };
            curl.args(["--silent", "--max-time", wait, "--write-out", END, "--oauth2-bearer", key]);
            curl.args(["--request", &operation.method]);
            if let Some(body) = body(&operation.name) {
                curl.args(["--json", &body.to_string()]);
            }
            curl.arg(format!("{}{at}", self.served.url)).arg("--next");
        }
        // After a `--next` there has to be one more.
        let ran = Ran::of(curl.args(["--silent", &self.served.url]).output().unwrap());
        let (answers, _) = ran.stdout.rsplit_once(MARK_OF_END).unwrap_or_else(|| panic!("{ran:?}"));
        let answers = answers.split(MARK_OF_END).map(|answer| {
            let (body, status) = answer.rsplit_once('\n').unwrap_or_else(|| panic!("{answer}"));
            (status.parse().unwrap(), body.to_owned())
        });
        let answers: Vec<_> = answers.collect();
        assert_eq!(answers.len(), all.len(), "{ran:?}");
        answers
    }

    /// Whether the rules let somebody do it with what the owner has, and whether they see that it
    /// is there.
    fn expected(&self, name: &str, need: Need) -> (bool, bool) {
        let rights = self.rules.rights(&format!("person:{name}"));
        let standing = rights.standing(&format!("person:{OWNER}"), []);
        let may = |action| rights.permit(action, standing);
        let sees = may(AccessAction::View);
        let administers = rights.permit(AccessAction::Administer, SessionStanding::None);
        match need {
            Need::Nothing => (true, true),
            Need::Browser => (false, true),
            Need::Anywhere(action) => (rights.permit(action, SessionStanding::None), true),
            Need::Session(action) => (sees && may(action), sees),
            Need::Question => (may(AccessAction::Answer), may(AccessAction::Answer)),
            Need::Sandbox(action, administrator) => {
                let they = administers && administrator == Administrator::May;
                (may(action) || they, sees || administers)
            }
            Need::Snapshot => (may(AccessAction::Manage) || administers, sees || administers),
        }
    }

    /// What the owner has, and whether somebody may come upon it.
    fn seen(&self, name: &str) -> [(&'static str, bool); 3] {
        let (_, session) = self.expected(name, Need::Session(AccessAction::View));
        let (question, _) = self.expected(name, Need::Question);
        let (_, sandbox) = self.expected(name, Need::Snapshot);
        [("session", session || question), ("memory", name == OWNER), ("sandbox", sandbox)]
    }

    /// Asks every operation as somebody, about what the owner has, what the other organisation has,
    /// and what never was: how many the rules let them, and what is wrong with the answers.
    fn judge(&self, name: &str, all: &[Operation], other: &Self) -> (usize, Vec<String>) {
        let key = &self.keys[name];
        let never = other.owned.never();
        // What is changed or ended is there for nobody else afterwards.
        let apart = |it: &&Operation| {
            let (may, _) = self.expected(name, need(&it.name));
            may && it.is_about_something() && it.method != "GET"
        };
        let (alone, together): (Vec<_>, Vec<_>) = all.iter().partition(apart);
        let mut answers: Vec<_> = (alone.iter())
            .map(|operation| {
                let own = Owned::make(&self.served, &self.keys[OWNER], &self.mark);
                let answer = self.answers(key, &[operation], &own).remove(0);
                (*operation, own, answer)
            })
            .collect();
        let asked: Vec<_> = all.iter().filter(|it| it.is_about_something()).collect();
        let nothing = self.answers(key, &asked, &never);
        let theirs = self.answers(key, &asked, &other.owned);
        let mut wrong = Vec::new();
        let mut nowhere = BTreeMap::new();
        for ((operation, nothing), theirs) in asked.iter().zip(nothing).zip(theirs) {
            let nothing = (nothing.0, never.neutral(&nothing.1));
            let theirs = (theirs.0, other.owned.neutral(&theirs.1));
            if theirs != nothing {
                let both = format!("{theirs:?}\n  of none: {nothing:?}");
                wrong.push(format!("{name} {} of the other: {both}", operation.name));
            }
            nowhere.insert(&operation.name, nothing);
        }
        // The one that ends the key is last.
        let rest = self.answers(key, &together, &self.owned);
        let rest = together.iter().zip(rest);
        answers.extend(rest.map(|(operation, answer)| (*operation, self.owned.clone(), answer)));
        let mut served = 0;
        for (operation, about, (status, answer)) in answers {
            let (may, sees) = self.expected(name, need(&operation.name));
            served += usize::from(may);
            let mut check = |holds: bool, why: &str| {
                if !holds {
                    wrong.push(format!("{name} {}, {why}: {status} {answer}", operation.name));
                }
            };
            check(status < 500 && status != 401, "an error, or nobody");
            check(!answer.contains(&other.mark), "has what is the other organisation's");
            for (kind, may_see) in self.seen(name) {
                let has = answer.contains(&format!("{}{kind}", self.mark));
                check(may_see || !has, "has what they may not see");
                check(has || !may_see || !lists(&operation.name, kind), "lacks what they may see");
            }
            if let Some(nothing) = nowhere.get(&operation.name) {
                let as_nothing = (status, about.neutral(&answer)) == *nothing;
                check(as_nothing != sees, &format!("where there is nothing: {nothing:?}"));
            }
            // Who reviews a proposal is said where memory is, and not by the rules of access.
            if sees && operation.name != "answer_proposal" {
                let denied = answer.contains(r#""code":"denied""#);
                check(denied != may, "not what the rules say");
            }
            if may && matches!(need(&operation.name), Need::Sandbox(..)) {
                check(status != 404, "not found where it is");
            }
        }
        (served, wrong)
    }
}

#[test]
fn twenty_people_of_two_organisations_get_what_the_rules_say() {
    let both = [Organisation::new("acme"), Organisation::new("bolt")];
    let operations = operations(&both[0].served);
    let (mut asked, mut served) = (0, 0);
    let mut wrong = Vec::new();
    let every: Vec<_> = operations.iter().collect();
    for (mine, other) in [(&both[0], &both[1]), (&both[1], &both[0])] {
        for name in NAMES {
            // A key of one is none at the other.
            let answers = other.answers(&mine.keys[name], &every, &other.owned);
            let let_in = answers.iter().zip(&every).filter(|((status, _), _)| *status != 401);
            wrong.extend(let_in.map(|((status, _), operation)| {
                format!("{name} {} elsewhere: {status}", operation.name)
            }));
            let (may, found) = mine.judge(name, &operations, other);
            wrong.extend(found);
            (asked, served) = (asked + every.len(), served + may);
        }
    }
    let [acme, bolt] = both;
    let entered = bolt.served.world.psql_at(&acme.served.world, "SELECT session FROM sessions");
    assert!(entered.stderr.contains("permission denied for database"), "{entered:?}");
    println!("{asked} asked of the own organisation, of them {served} permitted by the rules");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(served > 800 && asked - served > 600, "{asked} {served}");
}
