//! Memory in sessions: what crashes do to it, what its content labels, and that rules hold
//! for each path of it.

use async_trait::async_trait;
use outrigger_agent::{Event, SessionId, Touched, Work};
use outrigger_engine::{MemoryService, ServedTrees};
use outrigger_policy::{Action, Directory, Facts, MemoryScope, RuleSet, Scope, Verdict};
use outrigger_store::entries::{
    Attribution, ChangeOutcome, ChangeRequest, Contents, Entries, EntryAddress, EntryFile,
    EntryListing, EntryPath, EntryPrecondition, EntryStat, Error, Hit, Reviews, Search, Settings,
    Version, Via,
};
use outrigger_store::{Database, Journal, load_all};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

use crate::model::{Step, call, done, run};
use crate::world::{World, drive, results};

/// Entries whose next change is made and never answered, as if its caller had died.
#[derive(Debug)]
pub(crate) struct Dying {
    pub(crate) inner: Arc<Database>,
    armed: AtomicBool,
    made: Notify,
}

#[async_trait]
impl Entries for Dying {
    async fn stat(&self, scope: &Scope, at: &EntryAddress) -> Result<EntryStat, Error> {
        self.inner.stat(scope, at).await
    }

    async fn list(
        &self,
        scope: &Scope,
        folder: &EntryAddress,
        deep: bool,
        after: Option<&EntryPath>,
    ) -> Result<EntryListing, Error> {
        self.inner.list(scope, folder, deep, after).await
    }

    async fn read(
        &self,
        scope: &Scope,
        at: &EntryAddress,
        revision: Option<u64>,
    ) -> Result<Contents, Error> {
        self.inner.read(scope, at, revision).await
    }

    async fn change(
        &self,
        scope: &Scope,
        change: ChangeRequest,
        by: Attribution,
    ) -> Result<ChangeOutcome, Error> {
        let made = self.inner.change(scope, change, by).await;
        if self.armed.swap(false, Ordering::SeqCst) {
            self.made.notify_one();
            std::future::pending::<()>().await;
        }
        made
    }

    async fn history(
        &self,
        scope: &Scope,
        at: &EntryAddress,
        before: Option<u64>,
    ) -> Result<Vec<Version>, Error> {
        self.inner.history(scope, at, before).await
    }

    async fn search(&self, scope: &Scope, search: &Search) -> Result<Vec<Hit>, Error> {
        self.inner.search(scope, search).await
    }

    async fn changes_of(&self, session: &SessionId, after: u64) -> Result<Vec<Version>, Error> {
        self.inner.changes_of(session, after).await
    }

    async fn stale(
        &self,
        scope: &Scope,
        memory_scope: &MemoryScope,
        at_ms: u64,
    ) -> Result<EntryListing, Error> {
        self.inner.stale(scope, memory_scope, at_ms).await
    }
}

/// A world whose sessions have memory.
pub(crate) struct MemoryWorld {
    pub(crate) world: World,
    pub(crate) store: Arc<Dying>,
    _place: tempfile::TempDir,
}

const PEOPLE: &str =
    r#"{"organisation": "acme", "groups": {"ops": ["person:test", "person:bob"]}}"#;

fn people() -> Directory {
    serde_json::from_str(PEOPLE).unwrap()
}

pub(crate) fn scope(person: &str) -> Scope {
    people().authenticate(&person.parse().unwrap()).unwrap()
}

pub(crate) fn at(path: &str, person: &str) -> EntryAddress {
    outrigger_engine::place_of(path, &scope(person)).unwrap()
}

impl MemoryWorld {
    pub(crate) async fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let inner = Arc::new(
            Database::open(
                place.path(),
                &outrigger_store::DatabaseAddress::Sqlite,
                outrigger_store::Settings::default(),
            )
            .await
            .unwrap(),
        );
        let reviews = Arc::clone(&inner) as _;
        let store = Arc::new(Dying { inner, armed: AtomicBool::new(false), made: Notify::new() });
        let mut world = World::new().await;
        world.memory = Some(MemoryService {
            entries: Arc::clone(&store) as _,
            reviews,
            people: people(),
            served: ServedTrees::default(),
        });
        Self { world, store, _place: place }
    }

    pub(crate) async fn put(&self, path: &str, text: &str, person: &str, by: Attribution) {
        let change = ChangeRequest::Write {
            at: at(path, person),
            expected: EntryPrecondition::Absent,
            file: EntryFile::of(text),
        };
        self.store.inner.change(&scope(person), change, by).await.unwrap();
    }

    pub(crate) async fn history(&self, path: &str) -> Vec<Version> {
        let place = at(path, "person:test");
        self.store.inner.history(&scope("person:test"), &place, None).await.unwrap()
    }

    pub(crate) async fn touched(&self, session: &SessionId) -> Vec<Touched> {
        let mut touched = Vec::new();
        let journal: &dyn Journal = &self.world.journal;
        load_all(journal, session, outrigger_agent::Seq(0), |record| {
            if let Event::Touched(it) = record.event {
                touched.push((*it).clone());
            }
        })
        .await
        .unwrap();
        touched
    }
}

pub(crate) fn write(path: &str, content: &str) -> Step {
    call("write_file", json!({ "file_path": path, "content": content }))
}

pub(crate) fn edit(path: &str, old: &str, new: &str) -> Step {
    let arguments = json!({ "file_path": path, "old_string": old, "new_string": new });
    call("edit_file", arguments)
}

#[tokio::test]
async fn a_change_whose_outcome_a_crash_hid_is_made_once() {
    for step in [write("/memory/user/a.md", "one\ntwo\n"), edit("/memory/user/b.md", "old", "new")]
    {
        let memory = MemoryWorld::new().await;
        let by = Attribution::person(1);
        memory.put("/memory/user/b.md", "old\n", "person:test", by).await;
        memory.store.armed.store(true, Ordering::SeqCst);
        let steps = [step, done()];
        let engine = memory.world.engine(&steps);
        let session = memory.world.open(&engine, "s1").await;
        let poke = Notify::new();
        tokio::select! {
            park = outrigger_engine::drive(&engine, &session, &poke) => panic!("it ended: {park:?}"),
            () = memory.store.made.notified() => {}
        }
        // Another driver finds the effect started and not settled.
        let engine = memory.world.engine(&steps);
        drive(&engine, &session).await;
        let results = results(&engine.state(&session).await.unwrap());
        assert!(results[0].contains("was changed by this call"), "{results:?}");
        let versions = [memory.history("/memory/user/b.md").await.len(), 1];
        let touched = memory.touched(&session).await;
        let changes: Vec<_> = touched.iter().flat_map(|it| &it.changes).collect();
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert!(versions[0] <= 2);
    }
}

/// Whether the journal has that a sandbox was asked for.
async fn provisions(memory: &MemoryWorld, session: &SessionId) -> bool {
    let mut found = false;
    let journal: &dyn Journal = &memory.world.journal;
    load_all(journal, session, outrigger_agent::Seq(0), |record| {
        found |= matches!(record.event, Event::Proposed(Work::Provision { .. }));
    })
    .await
    .unwrap();
    found
}

#[tokio::test]
async fn what_is_about_memory_alone_makes_no_sandbox() {
    let memory = MemoryWorld::new().await;
    let at = |tool: &str, path: &str| call(tool, json!({ "path": path }));
    let glob = |pattern: &str| call("glob", json!({ "pattern": pattern }));
    let grep = call("grep", json!({ "pattern": "t", "path": "/memory/user" }));
    let steps = [
        write("/memory/user/a.md", "one\n"),
        edit("/memory/user/a.md", "one", "two"),
        call("read_file", json!({ "file_path": "/memory/user/a.md" })),
        at("ls", "/skills"),
        glob("/memory/**/*.md"),
        grep,
        done(),
    ];
    let (engine, id) = memory.world.played(&steps).await;
    let shown = results(&engine.state(&id).await.unwrap());
    assert!(shown[2].contains("two") && shown[4].contains("/memory/user/a.md"), "{shown:?}");
    assert!(shown[5].contains("/memory/user/a.md:1:two"), "{shown:?}");
    assert_eq!(memory.history("/memory/user/a.md").await.len(), 2);
    assert!(!provisions(&memory, &id).await);
    // What is spelled in a roundabout way means the same, and is sure of its place only there.
    for (at, step) in
        [at("ls", "/memory/../memory/user"), at("ls", "/"), glob("/*/x")].into_iter().enumerate()
    {
        let engine = memory.world.engine(&[step, done()]);
        let session = memory.world.open(&engine, &format!("r{at}")).await;
        drive(&engine, &session).await;
        assert!(provisions(&memory, &session).await);
    }
}

#[tokio::test]
async fn a_change_that_was_not_waited_for_is_not_called_stopped() {
    let memory = MemoryWorld::new().await;
    memory.store.armed.store(true, Ordering::SeqCst);
    let engine = memory.world.engine(&[write("/memory/user/a.md", "one\n"), done()]);
    let session = memory.world.open(&engine, "s1").await;
    let poke = Notify::new();
    let stop = async {
        memory.store.made.notified().await;
        engine.interrupt(&session, "person:test").await.unwrap();
        poke.notify_one();
    };
    let (driven, ()) = tokio::join!(outrigger_engine::drive(&engine, &session, &poke), stop);
    driven.unwrap();
    assert_eq!(memory.history("/memory/user/a.md").await.len(), 1);
    let shown = results(&engine.state(&session).await.unwrap());
    assert!(shown[0].starts_with("Outcome unknown"), "{shown:?}");
}

#[tokio::test]
async fn what_a_crash_left_untold_is_told_once() {
    let memory = MemoryWorld::new().await;
    let steps = [run("true"), done(), done()];
    let (engine, id) = memory.world.played(&steps).await;
    assert!(memory.touched(&id).await.is_empty());
    let by = Attribution { via: Via::Sandbox, session: Some(id.clone()), ..Attribution::person(7) };
    memory.put("/memory/user/late.md", "late\n", "person:test", by).await;
    crate::world::next_turn(&engine, &id).await;
    outrigger_engine::suspend(&engine, &id).await.unwrap();
    drive(&engine, &id).await;
    let touched = memory.touched(&id).await;
    let paths: Vec<_> = touched
        .iter()
        .flat_map(|it| &it.changes)
        .map(|it| (it.path.as_str(), it.revision))
        .collect();
    assert_eq!(paths, [("/memory/user/late.md", 1)]);
}

#[tokio::test]
async fn what_was_read_labels_the_session() {
    let memory = MemoryWorld::new().await;
    let labels = BTreeSet::from(["untrusted".to_owned(), "from:web".to_owned()]);
    let by = Attribution { labels, ..Attribution::person(1) };
    memory.put("/memory/user/own.md", "own\n", "person:test", Attribution::person(1)).await;
    memory.put("/memory/user/web.md", "web\n", "person:test", by).await;
    memory
        .put("/memory/group/ops/theirs.md", "theirs\n", "person:bob", Attribution::person(1))
        .await;
    let read = |path: &str| call("read_file", json!({ "file_path": path }));
    let expected: [(&str, &[&str]); 3] = [
        ("/memory/user/own.md", &[]),
        ("/memory/group/ops/theirs.md", &["from:person:bob", "others"]),
        ("/memory/user/web.md", &["from:person:bob", "from:web", "others", "untrusted"]),
    ];
    for (at, (_, labels)) in expected.iter().enumerate() {
        let steps: Vec<_> = expected[..=at].iter().map(|(path, _)| read(path)).collect();
        let engine = memory.world.engine(&[&steps[..], &[done()]].concat());
        let session = memory.world.open(&engine, &format!("s{at}")).await;
        drive(&engine, &session).await;
        let state = engine.state(&session).await.unwrap();
        let found: Vec<_> = state.labels().iter().map(String::as_str).collect();
        assert_eq!(&found, labels);
    }
    // And what such a session writes carries them on.
    let steps = [read("/memory/user/web.md"), write("/memory/user/new.md", "x"), done()];
    let engine = memory.world.engine(&steps);
    let session = memory.world.open(&engine, "s9").await;
    drive(&engine, &session).await;
    let written = &memory.history("/memory/user/new.md").await[0];
    assert_eq!(written.by.session, Some(session));
    assert!(written.by.labels.contains("untrusted"), "{written:?}");
}

#[tokio::test]
async fn a_command_is_told_what_its_sandbox_has_not() {
    let memory = MemoryWorld::new().await;
    let steps = [run("echo /memory/user"), run("echo plain"), done()];
    let (engine, id) = memory.world.played(&steps).await;
    let results = results(&engine.state(&id).await.unwrap());
    assert!(results[0].contains("use read_file"), "{results:?}");
    assert!(!results[1].contains("use read_file"), "{results:?}");
}

/// A small generator: the worlds are many, and the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

const FOLDERS: [&str; 4] =
    ["/memory/user", "/memory/group/ops", "/memory/organisation", "/skills/user"];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Rules that forbid reading here and there, with exceptions.
fn rules(dice: &mut Dice) -> String {
    let mut text = "@id(\"all\") permit (principal, action, resource);\n".to_owned();
    for number in 0..dice.below(4) {
        let folder = dice.of(&FOLDERS);
        let deep = match dice.below(3) {
            0 => folder.to_owned(),
            1 => format!("{folder}/{}", dice.of(&NAMES)),
            _ => format!("{folder}/{}/{}", dice.of(&NAMES), dice.of(&NAMES)),
        };
        let whose = dice.of(&["principal", "principal is Agent", "principal is Person"]);
        let scope = dice.of(&["==", "in"]);
        let unless = match dice.below(3) {
            0 => format!("unless {{ resource in Path::\"{deep}/{}\" }}", dice.of(&NAMES)),
            _ => String::new(),
        };
        text += &format!(
            "@id(\"r{number}\") forbid ({whose}, action == Action::\"read_files\", resource {scope} Path::\"{deep}\") {unless};\n"
        );
    }
    text
}

/// Files here and there, by two people.
async fn scattered(dice: &mut Dice, memory: &MemoryWorld) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for _ in 0..60 {
        let folder = dice.of(&FOLDERS);
        let path = match dice.below(2) {
            0 => format!("{folder}/{}/{}.md", dice.of(&NAMES), dice.of(&NAMES)),
            _ => format!("{folder}/{}/{}/{}.md", dice.of(&NAMES), dice.of(&NAMES), dice.of(&NAMES)),
        };
        if !all.insert(path.clone()) {
            continue;
        }
        let shared = path.starts_with("/memory/organisation");
        let owner = if shared { "person:bob" } else { "person:test" };
        let place = at(&path, owner);
        // The organisation's memory scope is written by its settings' leave.
        let settings = Settings { review: false, ..Settings::usual(&place.memory_scope) };
        let who = scope(owner);
        memory.store.inner.set(&who, &place.memory_scope, settings, 1).await.unwrap();
        memory.put(&path, "needle\n", owner, Attribution::person(1)).await;
    }
    all
}

fn permitted(rules: &RuleSet, path: &str) -> bool {
    let all = Facts::new("person:test", Action::ReadFiles, path);
    matches!(rules.judge(&Facts { sandbox: Some("work"), ..all }), Verdict::Permit { .. })
}

/// A search goes through folders: what is below a hidden one is not come upon.
fn reachable(rules: &RuleSet, path: &str) -> bool {
    let mut ends = path.match_indices('/').map(|(at, _)| at).skip(1);
    permitted(rules, path) && ends.all(|end| permitted(rules, &path[..end]))
}

/// What a session is told under these rules.
async fn told(world: &World, name: &str, steps: &[Step]) -> Vec<String> {
    let engine = world.engine(steps);
    let id = world.open(&engine, name).await;
    drive(&engine, &id).await;
    results(&engine.state(&id).await.unwrap())
}

#[tokio::test]
async fn tools_find_just_what_the_rules_permit() {
    let mut dice = Dice(7);
    let memory = MemoryWorld::new().await;
    let all = scattered(&mut dice, &memory).await;
    for number in 0..40 {
        let text = rules(&mut dice);
        let mut world = memory.world.clone();
        world.rules = RuleSet::from_cedar(&text).unwrap();
        let steps = [
            call("glob", json!({ "pattern": "/memory/**/*.md" })),
            call("grep", json!({ "pattern": "needle", "path": "/memory" })),
            call("glob", json!({ "pattern": "/skills/**/*.md" })),
            done(),
        ];
        let found = told(&world, &format!("w{number}"), &steps).await;
        for (index, mount) in [(0, "/memory"), (1, "/memory"), (2, "/skills")] {
            let lines = found[index].lines().filter(|line| line.starts_with('/'));
            let lines: BTreeSet<_> = lines.map(|line| line.split(':').next().unwrap()).collect();
            let these = all.iter().filter(|path| path.starts_with(mount));
            let these = these.filter(|path| reachable(&world.rules, path));
            let expected: BTreeSet<_> = these.map(String::as_str).collect();
            assert_eq!(lines, expected, "world {number}:\n{text}");
        }
        // By name, also what no search comes upon.
        for path in all.iter().filter(|_| number % 20 == 0) {
            let steps = [call("read_file", json!({ "file_path": path })), done()];
            let name = format!("w{number}-{}", path.replace(['/', '.'], "-"));
            let found = told(&world, &name, &steps).await;
            let expected = permitted(&world.rules, path);
            assert_eq!(found[0].contains("needle"), expected, "{path} in {number}:\n{text}");
        }
    }
}
