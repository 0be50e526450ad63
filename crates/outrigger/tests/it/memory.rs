//! Memory with the real binary: people by hand and sessions by file tools meet the same
//! files under the same rules, and nothing is written over unseen.

use serde_json::{Value, json};
use std::fs;

use crate::support::{Turn, World, shell};

fn read(path: &str) -> (&'static str, Value) {
    ("read_file", json!({ "file_path": path }))
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write_file", json!({ "file_path": path, "content": content }))
}

fn edit(path: &str, old: &str, new: &str) -> (&'static str, Value) {
    ("edit_file", json!({ "file_path": path, "old_string": old, "new_string": new }))
}

impl World {
    /// Writes a file by hand.
    fn put(&self, path: &str, text: &str) {
        fs::write(self.path("given"), text).unwrap();
        let given = self.path("given");
        self.ran(0, &["memory", "put", path, given.to_str().unwrap()]);
    }

    fn cat(&self, path: &str) -> String {
        self.ran(0, &["memory", "cat", path]).stdout
    }

    fn play(&self, code: i32, turns: &[Turn<'_>]) {
        let dir = self.dir("repo", &[("file", b"one\n")]);
        let script = self.script(turns);
        self.ran(code, &["run", "Do it.", "--dir", dir.to_str().unwrap(), "--script", &script]);
    }

    /// The texts of all results of tool calls, in order.
    fn shown(&self) -> Vec<String> {
        let events = self.events(&self.session());
        let texts = events.iter().filter_map(|event| {
            event["settled"]["outcome"]["done"]["output"]["text"].as_str().map(str::to_owned)
        });
        texts.collect()
    }

    /// What its journal says that the session changed, and was refused.
    fn touched(&self, what: &str) -> Vec<String> {
        let events = self.events(&self.session());
        let all = events.iter().filter_map(|event| event["touched"][what].as_array());
        let line = |it: &Value| match it["revision"].as_u64() {
            Some(revision) => format!("{} r{revision}", it["path"].as_str().unwrap()),
            None => format!("{} {}", it["path"].as_str().unwrap(), it["kind"].as_str().unwrap()),
        };
        all.flatten().map(line).collect()
    }
}

#[test]
fn people_write_read_compare_and_bring_back() {
    let world = World::new();
    world.put("notes.md", "one\ntwo\n");
    let again = world.path("given");
    fs::write(&again, "one\nTWO\n").unwrap();
    let again = again.to_str().unwrap();
    // What is there is replaced only by who says which revision they looked at.
    let refused = world.ran(5, &["memory", "put", "notes.md", again]);
    assert!(refused.stderr.contains("it is at revision 1"), "{}", refused.stderr);
    world.ran(0, &["memory", "put", "notes.md", again, "--replaces", "1", "-m", "louder"]);
    assert_eq!(world.cat("/memory/user/notes.md"), "one\nTWO\n");
    assert!(world.ran(0, &["memory", "diff", "notes.md"]).stdout.contains("-two\n+TWO\n"));
    let blame = world.ran(0, &["memory", "blame", "notes.md", "--json"]).json();
    let revisions: Vec<_> =
        blame["lines"].as_array().unwrap().iter().map(|l| &l["revision"]).collect();
    assert_eq!(revisions, [&json!(1), &json!(2)]);
    let history = world.ran(0, &["memory", "history", "notes.md"]).stdout;
    assert!(history.contains("r2") && history.contains("louder"), "{history}");
    world.ran(0, &["memory", "rm", "notes.md"]);
    world.ran(4, &["memory", "cat", "notes.md"]);
    world.ran(0, &["memory", "revert", "notes.md", "--to", "1"]);
    assert_eq!(world.cat("notes.md"), "one\ntwo\n");
    let found = world.ran(0, &["memory", "search", "two", "--json"]).json();
    assert_eq!(found["entries"][0]["path"], "/memory/user/notes.md");
    world.ran(0, &["memory", "redact", "notes.md", "-m", "a key"]);
    let gone = world.ran(4, &["memory", "cat", "notes.md"]);
    assert!(gone.stderr.contains("redacted by person:local: a key"), "{}", gone.stderr);
    // What is not there and what is not yours to see are told alike.
    let (absent, foreign) = ("/memory/user/none", "/memory/group/none/x");
    let told = [absent, foreign].map(|path| world.ran(4, &["memory", "cat", path]).stderr);
    assert!(told.iter().all(|told| told.contains("nothing is there")), "{told:?}");
}

#[test]
fn an_editor_that_was_overtaken_loses_nothing() {
    let world = World::new();
    world.put("notes.md", "one\n");
    let given = world.path("other");
    fs::write(&given, "theirs\n").unwrap();
    let data = world.data();
    // While the editor is open, somebody else writes.
    let editor = world.path("editor.sh");
    let script = format!(
        "#!/bin/sh\n{} --data-dir {} memory put notes.md {} --replaces 1 >&2\necho mine >> \"$1\"\n",
        crate::support::OUTRIGGER,
        data.display(),
        given.display()
    );
    fs::write(&editor, script).unwrap();
    let mut edit = world.outrigger(&["memory", "edit", "notes.md"]);
    edit.env("EDITOR", format!("sh {}", editor.display())).env("TMPDIR", world.path("state"));
    let ran = crate::support::Ran::of(edit.output().unwrap()).expect(5);
    assert!(ran.stderr.contains("was changed meanwhile"), "{}", ran.stderr);
    assert_eq!(world.cat("notes.md"), "theirs\n");
    let kept = ran.stderr.split("What you wrote is in ").nth(1).unwrap();
    let kept = kept.trim().trim_end_matches('.');
    assert_eq!(fs::read_to_string(kept).unwrap(), "one\nmine\n");
}

#[test]
fn without_a_terminal_and_without_an_editor_nothing_is_opened() {
    let world = World::new();
    world.put("notes.md", "one\n");
    let ran = world.ran(2, &["memory", "edit", "notes.md"]);
    assert!(ran.stderr.contains("EDITOR is not set"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("outrigger memory put /memory/user/notes.md FILE"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.stdout, "");
}

#[test]
fn an_agents_line_is_the_agents() {
    let world = World::new();
    world.put("notes.md", "mine\n");
    let path = "/memory/user/notes.md";
    world.play(0, &[Turn(&[read(path)]), Turn(&[edit(path, "mine", "mine\ntheirs")])]);
    let shown = world.ran(0, &["memory", "blame", "notes.md"]).stdout;
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].contains(" person:local ") && lines[0].ends_with("  mine"), "{shown}");
    assert!(lines[1].contains(" agent:default for person:local "), "{shown}");
    let told = world.ran(0, &["memory", "blame", "notes.md", "--json"]).json();
    let agents: Vec<_> = told["lines"].as_array().unwrap().iter().map(|it| &it["agent"]).collect();
    assert_eq!(agents, [&Value::Null, &json!("agent:default")]);
    let past = world.ran(0, &["memory", "history", "notes.md"]).stdout;
    assert!(past.contains("agent:default for person:local in session"), "{past}");
}

#[test]
fn tools_write_what_they_have_read_and_nothing_else() {
    let world = World::new();
    world.put("notes.md", "one\n");
    world.play(
        0,
        &[
            Turn(&[write("/memory/user/notes.md", "blind\n")]),
            Turn(&[read("/workspace/../memory//user/./notes.md")]),
            Turn(&[write("/memory/user/notes.md", "seen\n")]),
            Turn(&[edit("/memory/user/notes.md", "seen", "edited")]),
            Turn(&[edit("/memory/user/notes.md", "not there", "x")]),
            Turn(&[write("/memory/user/deep/er/new.md", "new\n")]),
            Turn(&[("ls", json!({ "path": "/" }))]),
            Turn(&[("ls", json!({ "path": "/memory" }))]),
            Turn(&[("glob", json!({ "pattern": "/memory/**/*.md" }))]),
            Turn(&[("grep", json!({ "pattern": "edited", "path": "/memory" }))]),
            Turn(&[read("/memory/group/none/x")]),
            Turn(&[read("/Memory/user/notes.md")]),
        ],
    );
    let shown = world.shown();
    let has = |at: usize, text: &str| assert!(shown[at].contains(text), "{at}: {}", shown[at]);
    has(0, "conflict: /memory/user/notes.md");
    has(0, "At revision 1 it says:\none\n");
    has(1, "1\tone");
    has(2, "Replaced /memory/user/notes.md");
    has(3, "Edited /memory/user/notes.md at line 1");
    has(4, "edited");
    has(5, "Made /memory/user/deep/er/new.md");
    has(6, "memory/\n");
    has(6, "skills/");
    has(7, "organisation/\nuser/");
    has(8, "/memory/user/deep/er/new.md\n/memory/user/notes.md");
    has(9, "/memory/user/notes.md:1:edited");
    has(10, "file_not_found: /memory/group/none/x");
    has(11, "file_not_found: /Memory/user/notes.md");
    assert_eq!(world.cat("notes.md"), "edited\n");
    let touched = world.touched("changes");
    let expected = ["notes.md r2", "notes.md r3", "deep r1", "deep/er r1", "deep/er/new.md r1"];
    assert_eq!(touched, expected.map(|path| format!("/memory/user/{path}")));
    let session = world.session();
    let history = world.ran(0, &["memory", "history", "notes.md", "--json"]).json();
    assert_eq!(history["versions"][0]["session"], session.as_str());
    assert_eq!(history["versions"][0]["via"], "tool");
}

#[test]
fn what_others_will_read_is_asked_about_and_reviewed() {
    let world = World::new();
    let path = "/memory/organisation/rules.md";
    world.play(10, &[Turn(&[write(path, "be kind\n")])]);
    let waiting = world.ran(0, &["inbox", "--json"]).json();
    assert_eq!(waiting["waiting"][0]["rules"], json!(["shared-memory-asks"]));
    let id = waiting["waiting"][0]["id"].as_str().unwrap().to_owned();
    // Nobody says yes to a change that they did not look at, though no sandbox is there yet.
    world.ran(2, &["approve", &id]);
    let shown = world.ran(0, &["inbox", &id, "--json"]).json();
    world.ran(0, &["approve", &id, "--seen", shown["seen"].as_str().unwrap()]);
    let events = serde_json::to_string(&world.events(&world.session())).unwrap();
    assert!(!events.contains("provision"), "memory alone makes no sandbox");
    assert!(world.shown()[0].contains("waits as proposal 1"), "{:?}", world.shown());
    world.ran(4, &["memory", "cat", path]);
    let proposals = world.ran(0, &["memory", "proposals", "ls", "--json"]).json();
    assert_eq!(proposals["proposals"][0]["path"], path);
    let proposal = world.ran(0, &["memory", "proposals", "show", "1"]).stdout;
    assert!(proposal.contains("+be kind"), "{proposal}");
    world.ran(0, &["memory", "proposals", "accept", "1"]);
    assert_eq!(world.cat(path), "be kind\n");
    world.ran(5, &["memory", "proposals", "accept", "1"]);
}

#[test]
fn rules_hide_files_from_tools_however_they_are_asked_for() {
    let world = World::new();
    let rules = world.path("hidden.cedar");
    let text = r#"
        @id("hidden")
        forbid (principal, action == Action::"read_files", resource in Path::"/memory/user/private");
    "#;
    fs::write(&rules, text).unwrap();
    let file = format!("[policy]\nfiles = [{:?}]\n", rules.display().to_string());
    world.configure(&file);
    world.put("private/key.md", "SECRET\n");
    world.put("open.md", "open\n");
    world.play(
        0,
        &[
            Turn(&[("ls", json!({ "path": "/memory/user" }))]),
            Turn(&[("glob", json!({ "pattern": "/memory/**" }))]),
            Turn(&[("grep", json!({ "pattern": "SECRET", "path": "/memory" }))]),
            Turn(&[read("/memory/user/none/../private/key.md")]),
            Turn(&[edit("/memory/user/private/key.md", "SECRET", "x")]),
        ],
    );
    let shown = world.shown().join("\n");
    let private = shown.lines().filter(|line| line.contains("private") && !line.contains("forbid"));
    let private: Vec<_> = private.filter(|line| !line.contains("file_not_found")).collect();
    assert!(!shown.contains("SECRET\n") && !shown.contains("1\tSECRET"), "{shown}");
    assert_eq!(private, Vec::<&str>::new(), "{shown}");
    assert_eq!(world.cat("private/key.md"), "SECRET\n");
}

#[test]
fn rules_may_look_at_what_a_command_says_of_itself() {
    let world = World::new();
    let rules = world.path("labels.cedar");
    let text = r#"
        @id("by-tools")
        @reason("Use the file tools for memory.")
        forbid (principal, action == Action::"execute", resource)
        when { context has shell && context.shell.touches.contains("/memory") };
        @id("unclear")
        @reason("Say it plainly.")
        forbid (principal, action == Action::"execute", resource)
        when { context has shell && context.shell.opaque };
    "#;
    fs::write(&rules, text).unwrap();
    let file = format!("[policy]\nfiles = [{:?}]\n", rules.display().to_string());
    world.configure(&file);
    let run = |command: &str| ("execute", json!({ "command": command }));
    world.play(
        0,
        &[
            Turn(&[run("echo plain")]),
            Turn(&[run("ls /memory/user")]),
            Turn(&[run("eval \"ec\"ho hidden")]),
        ],
    );
    let results = serde_json::to_string(&world.events(&world.session())).unwrap();
    assert!(results.contains("plain\\n"), "{results}");
    assert!(results.contains("Use the file tools for memory."), "{results}");
    assert!(results.contains("Say it plainly."), "{results}");
}

#[test]
fn a_shell_renames_a_folder_and_leaves_a_trace_of_what_it_may_not_read() {
    let world = World::new();
    let rules = world.path("hidden.cedar");
    let text = "@id(\"hidden\") forbid (principal is Agent, action == Action::\"read_files\", \
                resource in Path::\"/memory/user/hidden\");\n";
    fs::write(&rules, text).unwrap();
    world.configure(&format!("[policy]\nfiles = [{:?}]\n", rules.display().to_string()));
    world.put("hidden/x.md", "SECRET\n");
    world.put("a/b/c.md", "text\n");
    world.put("mixed/hidden.md", "text\n");
    world.play(
        0,
        &[
            Turn(&[shell("mv /memory/user/a /memory/user/z && cat /memory/user/z/b/c.md; ls /memory/user")]),
            Turn(&[shell("cat /memory/user/hidden/x.md; mkdir /memory/user/z/d && mv /memory/user/z/b /memory/user/z/d && find /memory/user/z")]),
        ],
    );
    let shown = world.shown();
    assert!(shown[0].contains("text\nmixed\nz\n"), "{shown:?}");
    assert!(shown[1].contains("/memory/user/z/d/b/c.md"), "{shown:?}");
    assert!(!shown.concat().contains("SECRET") && !shown[1].contains("rules"), "{shown:?}");
    assert_eq!(world.touched("refused"), ["/memory/user/hidden file_not_found"]);
    assert_eq!(world.cat("z/d/b/c.md"), "text\n");
}
