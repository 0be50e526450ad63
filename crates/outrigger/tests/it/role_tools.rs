//! Every tool is called by everybody: two organisations, whose rules let each role have other
//! tools, and ten people in each. What comes of a call is what the rules say of that person and
//! that tool, whichever way it comes: in a session of their own, or in one that is shared.

use crate::organisations::{GROUPS, NAMES, OWNER};
use crate::outside::wiki;
use crate::serve::Served;
use crate::support::{Turn, World, until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The people of each role.
fn roles() -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, BTreeMap<_, _>> = toml::from_str(GROUPS).unwrap();
    groups.remove("groups").unwrap()
}

/// What is called, as what, and of what: a tool that a session has and that is not here fails.
fn calls() -> Vec<(&'static str, Value, &'static str, &'static str)> {
    let file = "/workspace/file";
    vec![
        ("execute", json!({ "command": "true" }), "execute", "sandbox"),
        ("ls", json!({ "path": "/workspace" }), "read_files", "/workspace"),
        ("read_file", json!({ "file_path": file }), "read_files", file),
        ("glob", json!({ "pattern": "*" }), "read_files", "/workspace"),
        ("grep", json!({ "pattern": "one" }), "read_files", "/workspace"),
        (
            "write_file",
            json!({ "file_path": "/workspace/new", "content": "new\n" }),
            "write_files",
            "/workspace/new",
        ),
        (
            "edit_file",
            json!({ "file_path": file, "old_string": "one", "new_string": "two" }),
            "write_files",
            file,
        ),
        (
            "task",
            json!({ "task": "Say nothing.", "agent": "quiet" }),
            "start_subagent",
            "agent:quiet",
        ),
        ("mcp__wiki__look", json!({ "text": "a" }), "call_outside_tool", "wiki/look"),
        ("mcp__wiki__note", json!({ "text": "a" }), "call_outside_tool", "wiki/note"),
        ("mcp__wiki__put", json!({ "text": "a" }), "call_outside_tool", "wiki/put"),
    ]
}

/// Rules of an organisation: every role is refused a third of the tools, and asked about another.
fn rules(shift: usize) -> String {
    let mut text = "@id(\"all\") permit (principal, action, resource);\n".to_owned();
    for (row, role) in roles().keys().enumerate() {
        for (column, (tool, ..)) in calls().iter().enumerate() {
            let approvable = match (row * 2 + column + shift) % 3 {
                0 => continue,
                1 => "",
                _ => "@approvable(\"anyone\") ",
            };
            text += &format!(
                "@id(\"{role}-{tool}\") {approvable}forbid (principal in Group::\"{role}\", action, resource) when {{ context has tool && context.tool == \"{tool}\" }};\n"
            );
        }
    }
    text
}

fn is_viewer(person: &str) -> bool {
    roles()["viewer"].contains(&format!("person:{person}"))
}

struct Organisation {
    served: Served,
    keys: BTreeMap<&'static str, String>,
}

impl Organisation {
    fn new(wiki: &str, shift: usize) -> Self {
        let world = World::new();
        let (people, file) = (world.path("people.toml"), world.path("rules.cedar"));
        fs::write(&people, GROUPS).unwrap();
        fs::write(&file, rules(shift)).unwrap();
        world.configure(&format!(
            "[policy]\ndefaults = false\npeople = {people:?}\nfiles = [{file:?}]\n\
             [agents.quiet]\ntools = []\n[tools.wiki]\nurl = {wiki:?}\nread_only = [\"look\"]\n"
        ));
        let dir = world.dir("repo", &[("file", b"one\n")]);
        let calls: Vec<_> = calls().into_iter().map(|(tool, given, ..)| (tool, given)).collect();
        // A turn of all of them, and another one.
        let turn = Turn(&calls).text() + "[[turn]]\ntext = \"That is all.\"\n";
        let script = world.path("script.toml").display().to_string();
        fs::write(&script, turn.repeat(2)).unwrap();
        let served = Served::new(world, &dir, &script);
        let keys = NAMES.map(|name| (name, served.key(name))).into();
        Self { served, keys }
    }

    fn post(&self, name: &str, path: &str, body: &Value) -> (u16, Value) {
        self.served.with_key(&self.keys[name], &["--json", &body.to_string()], path)
    }

    /// A session of somebody, unless they may begin none.
    fn begin(&self, name: &str) -> Option<String> {
        let (status, begun) = self.post(name, "/v1/sessions", &json!({ "text": "Go." }));
        assert!([201, 403].contains(&status), "{name}: {begun}");
        begun["id"].as_str().map(str::to_owned)
    }

    /// What the rules themselves say of a tool that somebody calls, in a session of `owner`.
    fn ruling(
        &self,
        owner: &str,
        name: &str,
        (tool, action, resource): (&str, &str, &str),
    ) -> Value {
        let speakers: Vec<_> =
            [name].iter().filter(|name| **name != owner).map(|it| format!("person:{it}")).collect();
        let asked = json!({ "action": action, "resource": resource, "tool": tool,
            "person": format!("person:{owner}"), "speakers": speakers });
        let (status, said) = self.post(OWNER, "/v1/rules/explain", &asked);
        assert_eq!(status, 200, "{asked}: {said}");
        said["ruling"].clone()
    }

    /// The tools that a session has.
    fn tools(&self, owner: &str, session: &str) -> BTreeSet<String> {
        let path = format!("/v1/sessions/{session}/events");
        let (_, page) = self.served.with_key(&self.keys[owner], &[], &path);
        let tools = page["data"][0]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool.as_str().unwrap().to_owned()).collect()
    }

    /// What became of each tool in the newest turn of a session: what was asked is denied.
    fn became(&self, owner: &str, session: &str) -> BTreeMap<String, Value> {
        let path = format!("/v1/sessions/{session}/events");
        let turn = || {
            let (_, page) = self.served.with_key(&self.keys[owner], &[], &path);
            let events = page["data"].as_array()?;
            let last = events.iter().rposition(|event| event["type"] == "said")?;
            Some(events[last..].to_vec())
        };
        let about = |turn: &[Value], kind: &str, seq: &Value| {
            turn.iter().find(|it| it["type"] == *kind && it["effect"] == *seq).cloned()
        };
        let of_calls = |turn: &[Value]| {
            let calls = turn.iter().filter(|it| it["call"].is_string());
            calls
                .map(|it| (it["seq"].clone(), it["name"].as_str().unwrap_or_default().to_owned()))
                .collect::<Vec<_>>()
        };
        let count = calls().len();
        let judged = until("every call is judged", || {
            let turn = turn()?;
            let decided = of_calls(&turn).into_iter().map(|(seq, name)| {
                let verdict = about(&turn, "decided", &seq)?["verdict"].clone();
                Some((seq, (name, verdict)))
            });
            let decided = decided.collect::<Option<Vec<_>>>()?;
            (decided.len() == count).then_some(decided)
        });
        for (seq, _) in judged.iter().filter(|(_, (_, verdict))| *verdict == "ask") {
            let path = format!("/v1/approvals/{session}.{seq}");
            let (status, told) = self.post(owner, &path, &json!({ "answer": "deny" }));
            assert_eq!(status, 202, "{told}");
        }
        let over = until("the turn is over", || {
            let turn = turn()?;
            turn.iter().any(|it| it["type"] == "turn_ended").then_some(turn)
        });
        for (seq, (name, verdict)) in &judged {
            // What is not permitted is never begun.
            let ran = about(&over, "started", seq).is_some();
            assert_eq!(ran, *verdict == "permit", "{session} {name} {verdict}: {over:#?}");
        }
        judged.into_iter().map(|(_, of_name)| of_name).collect()
    }

    /// What is wrong with what became of somebody's calls.
    fn judge(
        &self,
        (owner, name): (&str, &str),
        session: &str,
        tally: &mut BTreeMap<String, usize>,
    ) -> Vec<String> {
        let became = self.became(owner, session);
        let wrong = calls().into_iter().filter_map(|(tool, _, action, resource)| {
            let ruling = self.ruling(owner, name, (tool, action, resource));
            *tally.entry(ruling.to_string()).or_default() += 1;
            let came = &became[tool];
            (*came != ruling)
                .then(|| format!("{name} {tool} with {owner}: {came}, rules say {ruling}"))
        });
        wrong.collect()
    }
}

#[test]
fn every_tool_is_performed_for_whom_the_rules_let() {
    let wiki = wiki();
    let both = [Organisation::new(&wiki.url, 0), Organisation::new(&wiki.url, 1)];
    let every: BTreeSet<_> = calls().iter().map(|(tool, ..)| (*tool).to_owned()).collect();
    let (mut wrong, mut tally) = (Vec::new(), BTreeMap::new());
    for organisation in &both {
        for name in NAMES.into_iter().filter(|name| *name != OWNER) {
            // In a session of their own, where they may begin one.
            let own = organisation.begin(name);
            assert_eq!(own.is_some(), !is_viewer(name), "{name}");
            if let Some(session) = own {
                wrong.extend(organisation.judge((name, name), &session, &mut tally));
            }
            // In one that is shared with them, where they may speak in it.
            let shared = organisation.begin(OWNER).expect("users begin sessions");
            assert_eq!(organisation.tools(OWNER, &shared), every, "each tool is called");
            organisation.became(OWNER, &shared);
            let share = json!({ "with": format!("person:{name}"), "access": "take_part" });
            let (share, path) = (share.to_string(), format!("/v1/sessions/{shared}"));
            let args = ["--request", "PUT", "--json", &share];
            let owner = &organisation.keys[OWNER];
            assert_eq!(
                organisation.served.with_key(owner, &args, &format!("{path}/shares")).0,
                200
            );
            let said = json!({ "text": "Again." });
            let (status, told) = organisation.post(name, &format!("{path}/messages"), &said);
            assert_eq!(status == 403, is_viewer(name), "{name}: {told}");
            if status != 403 {
                wrong.extend(organisation.judge((OWNER, name), &shared, &mut tally));
            }
        }
    }
    println!("{tally:?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tally.values().all(|count| *count > 40) && tally.len() == 3, "{tally:?}");
}
