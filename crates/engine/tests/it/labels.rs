//! Labels of memory: they go with a text wherever it goes, and no crash parts the two.

use outrigger_agent::{Item, SessionId};
use outrigger_engine::{Engine, ServedTrees};
use outrigger_policy::{RuleSet, UNTRUSTED};
use outrigger_sandbox::{ExpectedRevision, FileError, Tree, TreeOp, TreeReply, Trees};
use outrigger_store::entries::{
    Attribution, ChangeRequest, Entries, EntryFile, Version, Via, list_all,
};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

use crate::memory::{MemoryWorld, at, edit, scope, write};
use crate::model::{Step, call, done, run};
use crate::world::{drive, results, work};

const WEB: &str = "/memory/user/web.md";

fn from_web() -> Attribution {
    let labels = BTreeSet::from([UNTRUSTED.to_owned(), "from:web".to_owned()]);
    Attribution { labels, ..Attribution::person(1) }
}

async fn with_web() -> MemoryWorld {
    let memory = MemoryWorld::new().await;
    memory.put(WEB, "from the web\n", "person:test", from_web()).await;
    memory
}

fn read(path: &str) -> Step {
    call("read_file", json!({ "file_path": path }))
}

/// What programs in the sandbox of a session meet.
fn tree(memory: &MemoryWorld, session: &SessionId) -> Option<Arc<dyn Tree>> {
    memory.world.memory.as_ref().unwrap().served.of(&work(session))
}

/// Waits until a command of the session runs, and gives the tree that its programs meet.
async fn serving(memory: &MemoryWorld, session: &SessionId) -> Arc<dyn Tree> {
    for _ in 0..30_000 {
        if let Some(tree) = tree(memory, session) {
            return tree;
        }
        tokio::time::sleep(Duration::from_millis(1)).await; // poll: nothing tells that a command began
    }
    panic!("no command ran within 30 s")
}

/// A session of which a command has run: programs that it left behind go on.
async fn left_behind(memory: &MemoryWorld, name: &str) -> (Engine, SessionId, Arc<dyn Tree>) {
    let (engine, session) = told(memory, name, &[run("true"), done()]).await;
    let tree = tree(memory, &session).unwrap();
    (engine, session, tree)
}

async fn told(memory: &MemoryWorld, name: &str, steps: &[Step]) -> (Engine, SessionId) {
    let engine = memory.world.engine(steps);
    let session = memory.world.open(&engine, name).await;
    drive(&engine, &session).await;
    (engine, session)
}

async fn labels(engine: &Engine, session: &SessionId) -> String {
    let state = engine.state(session).await.unwrap();
    state.labels().iter().cloned().collect::<Vec<_>>().join(" ")
}

fn carried(versions: &[Version]) -> String {
    versions[0].by.labels.iter().cloned().collect::<Vec<_>>().join(" ")
}

async fn look(tree: &dyn Tree, path: &str) -> Result<String, FileError> {
    match tree.perform(TreeOp::Read { path: path.to_owned() }).await? {
        TreeReply::Contents { contents, .. } => Ok(String::from_utf8(contents).unwrap()),
        other => panic!("{other:?}"),
    }
}

async fn revision(tree: &dyn Tree, path: &str) -> Option<u64> {
    match tree.perform(TreeOp::Stat { path: path.to_owned() }).await {
        Ok(TreeReply::Node(node)) => Some(node.revision),
        _ => None,
    }
}

async fn put(tree: &dyn Tree, path: &str, text: &str) -> Result<TreeReply, FileError> {
    let expected =
        revision(tree, path).await.map_or(ExpectedRevision::Absent, ExpectedRevision::Revision);
    let (path, contents) = (path.to_owned(), text.as_bytes().to_vec());
    tree.perform(TreeOp::Write { path, expected, contents }).await
}

async fn rename(tree: &dyn Tree, from: &str, to: &str) -> Result<TreeReply, FileError> {
    let revision = revision(tree, from).await.unwrap();
    let (from, to, expected) = (from.to_owned(), to.to_owned(), ExpectedRevision::Absent);
    tree.perform(TreeOp::Rename { from, revision, to, expected }).await
}

const BOTH: &str = "from:web untrusted";

#[tokio::test]
async fn what_a_program_read_is_in_the_journal_before_it_has_the_text() {
    let memory = with_web().await;
    let steps = [run("sleep 60"), done()];
    let engine = memory.world.engine(&steps);
    let session = memory.world.open(&engine, "s1").await;
    let poke = Notify::new();
    let program = async {
        let tree = serving(&memory, &session).await;
        look(&*tree, WEB).await.unwrap();
        // In the same command, and before anything is settled.
        put(&*tree, "/memory/user/copy.md", "a copy").await.unwrap();
    };
    tokio::select! {
        park = outrigger_engine::drive(&engine, &session, &poke) => panic!("it ended: {park:?}"),
        () = program => {}
    }
    // Everything that the harness held in memory is gone now.
    let engine = memory.world.engine(&steps);
    assert_eq!(labels(&engine, &session).await, BOTH);
    assert_eq!(carried(&memory.history("/memory/user/copy.md").await), BOTH);
}

#[tokio::test]
async fn a_driver_goes_on_over_a_label_that_came_meanwhile() {
    let memory = with_web().await;
    let engine = memory.world.engine(&[run("sleep 1"), done()]);
    let session = memory.world.open(&engine, "s1").await;
    let program = async {
        let tree = serving(&memory, &session).await;
        look(&*tree, WEB).await.unwrap();
    };
    let ((), ()) = tokio::join!(drive(&engine, &session), program);
    assert_eq!(labels(&engine, &session).await, BOTH);
}

#[tokio::test]
async fn no_way_of_a_tool_or_a_program_washes_a_label_off() {
    // An edit of what was never shown.
    let memory = with_web().await;
    let (engine, session) = told(&memory, "s1", &[edit(WEB, "web", "net"), done()]).await;
    assert_eq!(carried(&memory.history(WEB).await), BOTH);
    assert_eq!(labels(&engine, &session).await, BOTH);

    // A move labels the mover, and what is moved keeps what it carries.
    let memory = with_web().await;
    let (engine, session, tree) = left_behind(&memory, "s2").await;
    rename(&*tree, WEB, "/memory/user/moved.md").await.unwrap();
    assert_eq!(carried(&memory.history("/memory/user/moved.md").await), BOTH);
    assert_eq!(labels(&engine, &session).await, BOTH);

    // A program that writes over it without a look.
    let memory = with_web().await;
    let (_, _, tree) = left_behind(&memory, "s3").await;
    put(&*tree, WEB, "mine").await.unwrap();
    assert_eq!(carried(&memory.history(WEB).await), BOTH);
}

#[tokio::test]
async fn names_are_texts_and_what_is_not_shown_labels_nothing() {
    let memory = with_web().await;
    memory.put("/memory/user/own.md", "mine\n", "person:test", Attribution::person(1)).await;
    let list = |path: &str| call("ls", json!({ "path": path }));
    let glob = |pattern: &str| call("glob", json!({ "pattern": pattern }));
    let grep = |pattern: &str| call("grep", json!({ "pattern": pattern, "path": "/memory" }));
    for (number, (step, expected)) in [
        (list("/memory/user"), BOTH),
        (list("/memory"), ""),
        (list("/"), ""),
        (glob("/memory/user/w*"), BOTH),
        (glob("/memory/user/o*"), ""),
        (glob("/**/w*.md"), BOTH),
        (grep("mine"), ""),
        (grep("the web"), BOTH),
        (read("/memory/user/own.md"), ""),
    ]
    .into_iter()
    .enumerate()
    {
        let (engine, session) = told(&memory, &format!("s{number}"), &[step, done()]).await;
        assert_eq!(labels(&engine, &session).await, expected, "{number}");
    }
    // A program has the names that it lists.
    let (engine, session, tree) = left_behind(&memory, "p").await;
    assert_eq!(revision(&*tree, WEB).await, Some(1));
    assert_eq!(labels(&engine, &session).await, "");
    let list = TreeOp::List { path: "/memory/user".to_owned(), after: None };
    tree.perform(list).await.unwrap();
    assert_eq!(labels(&engine, &session).await, BOTH);
}

fn ruled(text: &str) -> RuleSet {
    RuleSet::from_cedar(&format!("@id(\"all\") permit (principal, action, resource);\n{text}"))
        .unwrap()
}

#[tokio::test]
async fn tools_and_programs_are_judged_by_the_facts_of_their_effect() {
    let rules = r#"
        @id("only-write-file") forbid (principal, action == Action::"write_shared_memory",
            resource in Memory::"memory/user/a")
        unless { context has tool && context.tool == "write_file" };
        @id("no-cp") forbid (principal, action == Action::"write_shared_memory",
            resource in Memory::"memory/user/b")
        when { context has shell && context.shell.programs.contains("cp") };
        @id("while-there-is-much") forbid (principal, action == Action::"write_shared_memory",
            resource in Memory::"memory/user/c")
        unless { context.left has tokens && context.left.tokens > 10 };
    "#;
    let mut memory = MemoryWorld::new().await;
    memory.world.rules = ruled(rules);
    memory.world.budget.tokens = Some(1_000_000);
    let steps = [
        write("/memory/user/a/x.md", "one\n"),
        edit("/memory/user/a/x.md", "one", "two"),
        write("/memory/user/c/x.md", "one\n"),
        run("true"),
        done(),
    ];
    let (engine, session) = told(&memory, "s1", &steps).await;
    let shown = results(&engine.state(&session).await.unwrap());
    assert!(shown[0].starts_with("Made"), "{shown:?}");
    assert!(shown[1].contains("only-write-file"), "{shown:?}");
    assert!(shown[2].starts_with("Made"), "{shown:?}");
    let programs = tree(&memory, &session).unwrap();
    let refused = put(&*programs, "/memory/user/a/y.md", "x").await.unwrap_err();
    assert!(refused.detail.contains("only-write-file"), "{refused:?}");
    let folder = TreeOp::MakeFolder { path: "/memory/user/b".to_owned() };
    programs.perform(folder).await.unwrap();
    put(&*programs, "/memory/user/b/y.md", "x").await.unwrap();
    let (_, session) = told(&memory, "s2", &[run("cp x y"), done()]).await;
    let programs = tree(&memory, &session).unwrap();
    let refused = put(&*programs, "/memory/user/b/z.md", "x").await.unwrap_err();
    assert!(refused.detail.contains("no-cp"), "{refused:?}");
}

#[tokio::test]
async fn what_a_program_may_not_read_is_journalled_and_not_told() {
    let rules = r#"
        @id("finance") @reason("not for agents") forbid (principal is Agent,
            action == Action::"read_files", resource in Path::"/memory/user/finance");
    "#;
    let mut memory = MemoryWorld::new().await;
    memory.world.rules = ruled(rules);
    memory.put("/memory/user/finance/x.md", "x\n", "person:test", Attribution::person(1)).await;
    let engine = memory.world.engine(&[run("true"), done(), run("true"), done()]);
    let session = memory.world.open(&engine, "s1").await;
    drive(&engine, &session).await;
    let tree = tree(&memory, &session).unwrap();
    for path in ["/memory/user/finance", "/memory/group/law/x", "/memory/user/none"] {
        for _ in 0..3 {
            assert_eq!(revision(&*tree, path).await, None);
        }
        assert_eq!(look(&*tree, path).await.unwrap_err().kind.to_string(), "file_not_found");
    }
    crate::world::next_turn(&engine, &session).await;
    let touched = memory.touched(&session).await;
    let reached: Vec<_> = touched
        .iter()
        .flat_map(|it| &it.refused)
        .map(|it| format!("{} {}: {}", it.kind, it.path, it.reason))
        .collect();
    assert_eq!(
        reached,
        [
            "file_not_found /memory/user/finance: the rules forbid to read it. not for agents",
            "file_not_found /memory/group/law/x: it is in no memory scope of this person's",
        ]
    );
    let shown = results(&engine.state(&session).await.unwrap()).concat();
    assert!(!shown.contains("finance"), "{shown}");
}

#[tokio::test]
async fn a_folder_moves_with_what_may_move() {
    let rules = r#"
        @id("hidden") forbid (principal, action == Action::"read_files",
            resource in Path::"/memory/user/h/hidden");
        @id("kept") forbid (principal, action == Action::"write_shared_memory",
            resource == Memory::"memory/user/k/kept/x.md");
        @id("closed") forbid (principal, action == Action::"write_shared_memory",
            resource == Memory::"memory/user/closed/sub/x.md");
    "#;
    let mut memory = MemoryWorld::new().await;
    memory.world.rules = ruled(rules);
    for path in ["a/sub/x.md", "h/hidden/x.md", "k/kept/x.md"] {
        memory.put(&format!("/memory/user/{path}"), "x\n", "person:test", from_web()).await;
    }
    let (engine, session, tree) = left_behind(&memory, "s1").await;
    for (from, to) in [("h", "free"), ("k", "free"), ("a", "closed")] {
        let [from, to] = [from, to].map(|name| format!("/memory/user/{name}"));
        let refused = rename(&*tree, &from, &to).await.unwrap_err();
        assert_eq!(refused.kind.to_string(), "permission_denied", "{from} to {to}");
    }
    assert_eq!(labels(&engine, &session).await, "");
    rename(&*tree, "/memory/user/a", "/memory/user/free").await.unwrap();
    // Before anybody looks at what moved.
    assert_eq!(labels(&engine, &session).await, BOTH);
    assert_eq!(look(&*tree, "/memory/user/free/sub/x.md").await.unwrap(), "x\n");
    assert_eq!(carried(&memory.history("/memory/user/free/sub/x.md").await), BOTH);
}

#[tokio::test]
async fn every_change_of_an_effect_is_journalled() {
    let memory = MemoryWorld::new().await;
    let (engine, id, _) = left_behind(&memory, "s1").await;
    let by =
        || Attribution { via: Via::Sandbox, session: Some(id.clone()), ..Attribution::person(7) };
    let scope = scope("person:test");
    let mut writes = Vec::new();
    for number in 0..2_300 {
        let place = at(&format!("/memory/user/m/{number}.md"), "person:test");
        let expected = outrigger_store::entries::EntryPrecondition::Absent;
        let change = ChangeRequest::Write { at: place, expected, file: EntryFile::of("x") };
        writes.push(memory.store.inner.change(&scope, change, by()));
    }
    for written in futures_util::future::join_all(writes).await {
        written.unwrap();
    }
    crate::world::next_turn(&engine, &id).await;
    let touched = memory.touched(&id).await;
    // One of them is the folder.
    assert_eq!(touched.iter().map(|it| it.changes.len()).sum::<usize>(), 2_301);
    assert!(touched.iter().all(|it| it.changes.len() <= 1_000));
}

/// A small generator: the worlds are many, and the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

const TAGS: u64 = 3;
const PLACES: u64 = 8;

fn place(dice: &mut Dice) -> String {
    format!("/memory/user/{}", dice.below(PLACES))
}

/// A session, and what its programs have on their disk.
struct Someone {
    id: SessionId,
    tree: Arc<dyn Tree>,
    disk: String,
}

impl Someone {
    async fn new(memory: &MemoryWorld, name: &str) -> Self {
        let (_, id, tree) = left_behind(memory, name).await;
        Self { id, tree, disk: String::new() }
    }

    /// A program does something; most of it may be refused.
    async fn act(&mut self, dice: &mut Dice) {
        let (here, there) = (place(dice), place(dice));
        match dice.below(4) {
            0 => {
                if let Ok(text) = look(&*self.tree, &here).await {
                    self.disk.push_str(&text);
                }
            }
            1 => drop(put(&*self.tree, &here, &format!("{}{}", self.disk, dice.below(9))).await),
            2 => {
                if revision(&*self.tree, &here).await.is_some() {
                    drop(rename(&*self.tree, &here, &there).await);
                }
            }
            _ => {
                if let Some(expected) = revision(&*self.tree, &here).await {
                    drop(self.tree.perform(TreeOp::Remove { path: here, expected }).await);
                }
            }
        }
    }

    /// The model does something. What it writes is what it was told.
    async fn turn(&self, memory: &MemoryWorld, dice: &mut Dice, heard: &str) {
        let path = place(dice);
        let step = match dice.below(5) {
            0 => read(&path),
            1 => write(&path, &format!("{heard}{}", dice.below(9))),
            2 => edit(&path, "tag", "Tag"),
            3 => call("grep", json!({ "pattern": "tag", "path": "/memory" })),
            _ => call("ls", json!({ "path": "/memory/user" })),
        };
        let journal = Arc::new(memory.world.journal.clone());
        let engine = memory.world.engine_on(journal, Arc::new(crate::model::FakeModel::next(step)));
        engine.say(&self.id, crate::world::said("go on")).await.unwrap();
        drive(&engine, &self.id).await;
    }
}

/// Which tags a text is made of.
fn tags(text: &str) -> impl Iterator<Item = String> {
    let text = text.to_lowercase();
    (0..TAGS)
        .filter(move |tag| text.contains(&format!("tag{tag};")))
        .map(|tag| format!("from:{tag}"))
}

fn heard(items: &[Item]) -> String {
    let text = |item: &Item| match item {
        Item::Result(result) => Some(result.text.clone()),
        _ => None,
    };
    items.iter().filter_map(text).collect()
}

/// Everything that carries a tag's text carries its label, wherever it stands.
async fn witness(memory: &MemoryWorld, everybody: &[Someone], world: u64) {
    let (entries, scope) = (&memory.store.inner, scope("person:test"));
    let root = at("/memory/user", "person:test");
    for (path, _) in list_all(&**entries, &scope, &root, true).await.unwrap() {
        let at = outrigger_store::entries::EntryAddress { path, ..root.clone() };
        let Ok(read) = entries.read(&scope, &at, None).await else { continue };
        for tag in tags(&String::from_utf8(read.bytes).unwrap()) {
            assert!(read.version.by.labels.contains(&tag), "world {world}: {at} without {tag}");
        }
    }
    let engine = memory.world.engine(&[done()]);
    for someone in everybody {
        let state = engine.state(&someone.id).await.unwrap();
        let all = heard(state.conversation()) + &someone.disk;
        for tag in tags(&all) {
            let id = &someone.id;
            assert!(state.labels().contains(&tag), "world {world}: {id} without {tag}");
        }
    }
}

#[tokio::test]
async fn in_any_world_a_label_is_where_its_text_is() {
    let worlds = std::env::var("OUTRIGGER_TEST_LABELS").ok().and_then(|it| it.parse().ok());
    for world in 0..worlds.unwrap_or(12) {
        let mut dice = Dice(world);
        let mut memory = MemoryWorld::new().await;
        for tag in 0..TAGS {
            let labels = BTreeSet::from([UNTRUSTED.to_owned(), format!("from:{tag}")]);
            let (path, by) =
                (format!("/memory/user/{tag}"), Attribution { labels, ..Attribution::person(1) });
            memory.put(&path, &format!("tag{tag};"), "person:test", by).await;
        }
        let mut everybody = Vec::new();
        for name in ["a", "b"] {
            everybody.push(Someone::new(&memory, name).await);
        }
        for _ in 0..30 {
            let which = usize::try_from(dice.below(2)).unwrap();
            match dice.below(8) {
                0 => {
                    // The harness dies, with all that it has in memory.
                    memory.world.memory.as_mut().unwrap().served = ServedTrees::default();
                    for someone in &mut everybody {
                        let step = Arc::new(crate::model::FakeModel::next(run("true")));
                        let journal = Arc::new(memory.world.journal.clone());
                        let engine = memory.world.engine_on(journal, step);
                        engine.say(&someone.id, crate::world::said("go on")).await.unwrap();
                        drive(&engine, &someone.id).await;
                        someone.tree = tree(&memory, &someone.id).unwrap();
                    }
                }
                1 | 2 => {
                    let state = memory.world.engine(&[done()]);
                    let state = state.state(&everybody[which].id).await.unwrap();
                    let heard = heard(state.conversation());
                    everybody[which].turn(&memory, &mut dice, &heard).await;
                }
                _ => everybody[which].act(&mut dice).await,
            }
            witness(&memory, &everybody, world).await;
        }
    }
}
