//! Random worlds of people, groups in groups, and memory scopes: what the store gives somebody
//! is what the policy permits, worked out another way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;
use outrigger_policy::{Directory, MemoryKind, MemoryScope, Owner, Principal, Scope};
use outrigger_store::Database;
use outrigger_store::entries::{
    Attribution, ChangeRequest, Entries, EntryAddress, EntryFile, EntryPath, EntryPrecondition,
    Error, Reviews, Search, Settings,
};
use tokio::task::JoinSet;

use crate::support::{Home, open};

/// How many worlds, unless the environment names another number: `OUTRIGGER_TEST_WORLDS=10000`
/// takes a minute.
const WORLDS: u64 = 1_000;
const TASKS: u64 = 64;
const PEOPLE: u64 = 4;
const GROUPS: u64 = 4;

/// Numbers that look random and are always the same (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

struct World {
    number: u64,
    directory: Directory,
    /// What is in which memory scope, by memory scope and path.
    entries: BTreeSet<(MemoryScope, String)>,
}

impl World {
    fn new(number: u64) -> Self {
        let mut random = Random(number);
        let name = |what: &str, which: u64| format!("w{number}{what}{which}");
        let mut groups: BTreeMap<String, BTreeSet<Principal>> = BTreeMap::new();
        for group in 0..GROUPS {
            let members = groups.entry(name("g", group)).or_default();
            for _ in 0..random.below(3) {
                // Groups are in groups, also in a ring.
                members.insert(match random.below(5) {
                    0..3 => Principal::Person(name("p", random.below(PEOPLE))),
                    _ => Principal::Group(name("g", random.below(GROUPS))),
                });
            }
        }
        let organisation = name("o", 0);
        let directory = Directory { organisation, groups };
        let mut entries = BTreeSet::new();
        for _ in 0..2 + random.below(5) {
            let owner = match random.below(6) {
                0..2 => Owner::Person(name("p", random.below(PEOPLE))),
                2..5 => Owner::Group(name("g", random.below(GROUPS))),
                _ => Owner::Organisation(name("o", random.below(2))),
            };
            let kind = MemoryKind::ALL[random.below(2) as usize];
            let path = ["a", "a.md", "d/a", "d/e/f"][random.below(4) as usize];
            entries.insert((MemoryScope { kind, owner }, path.to_owned()));
        }
        // A path can't be a file and a folder.
        let clash = |(_, path): &(MemoryScope, String)| path != "d";
        entries.retain(clash);
        Self { number, directory, entries }
    }

    /// Somebody who sees a memory scope, to write on it: by a directory of their own.
    fn owner(memory_scope: &MemoryScope) -> Scope {
        let person = match &memory_scope.owner {
            Owner::Person(name) => name.clone(),
            Owner::Group(_) | Owner::Organisation(_) => "librarian".to_owned(),
        };
        let person = Principal::Person(person);
        let mut directory = Directory::default();
        match &memory_scope.owner {
            Owner::Person(_) => {}
            Owner::Group(name) => {
                directory.groups.insert(name.clone(), [person.clone()].into());
            }
            Owner::Organisation(name) => directory.organisation = name.clone(),
        }
        directory.authenticate(&person).unwrap()
    }

    /// Everybody in a group, by asking every member: the other way round than the policy.
    fn is_in(&self, person: &Principal, group: &str, seen: &mut BTreeSet<String>) -> bool {
        let first = seen.insert(group.to_owned());
        let members = self.directory.groups.get(group);
        first
            && members.into_iter().flatten().any(|member| match member {
                Principal::Group(name) => self.is_in(person, name, seen),
                other => other == person,
            })
    }

    fn permits(&self, person: &Principal, memory_scope: &MemoryScope) -> bool {
        match &memory_scope.owner {
            Owner::Person(name) => *person == Principal::Person(name.clone()),
            Owner::Group(name) => self.is_in(person, name, &mut BTreeSet::new()),
            Owner::Organisation(name) => *name == self.directory.organisation,
        }
    }

    async fn fill(&self, store: &Database) {
        let word = format!("w{}", self.number);
        let write = |(memory_scope, path): &(MemoryScope, String)| {
            let at = EntryAddress {
                memory_scope: memory_scope.clone(),
                path: EntryPath::parse(path).unwrap(),
            };
            let (scope, file) = (Self::owner(memory_scope), EntryFile::of(word.clone()));
            let change = ChangeRequest::Write { at, expected: EntryPrecondition::Absent, file };
            let memory_scope = memory_scope.clone();
            async move {
                if matches!(memory_scope.owner, Owner::Organisation(_)) {
                    let settings = Settings { review: false, ..Settings::usual(&memory_scope) };
                    store.set(&scope, &memory_scope, settings, 1).await.unwrap();
                }
                store.change(&scope, change, Attribution::person(1)).await.unwrap();
            }
        };
        join_all(self.entries.iter().map(write)).await;
    }

    /// What one person gets is what they may have.
    async fn check(&self, store: &Database, which: u64) {
        let person = Principal::Person(format!("w{}p{which}", self.number));
        let scope = self.directory.authenticate(&person).unwrap();
        let word = format!("w{}", self.number);
        let shown = format!("world {} for {person}: {:?}", self.number, self.directory);
        let (mut permitted, mut listed) = (BTreeSet::new(), BTreeSet::new());
        for (memory_scope, path) in &self.entries {
            let at = EntryAddress {
                memory_scope: memory_scope.clone(),
                path: EntryPath::parse(path).unwrap(),
            };
            let expected = self.permits(&person, memory_scope);
            if expected {
                permitted.insert(at.clone());
            }
            assert_eq!(expected, scope.sees(memory_scope), "{shown}");
            for revision in [None, Some(1)] {
                match store.read(&scope, &at, revision).await {
                    Ok(read) => assert!(expected && read.bytes == word.as_bytes(), "{shown} {at}"),
                    Err(Error::Absent) => assert!(!expected, "{shown} {at}"),
                    Err(other) => panic!("{shown} {at}: {other:?}"),
                }
            }
            let root = EntryAddress { memory_scope: memory_scope.clone(), path: EntryPath::ROOT };
            match store.list(&scope, &root, true, None).await {
                Ok(found) => {
                    assert!(scope.sees(memory_scope), "{shown} {memory_scope}");
                    let files = found.entries.into_iter().filter(|(_, node)| !node.folder);
                    let memory_scope = || memory_scope.clone();
                    listed.extend(
                        files.map(|(path, _)| EntryAddress { memory_scope: memory_scope(), path }),
                    );
                }
                Err(Error::Absent) => assert!(!scope.sees(memory_scope), "{shown} {memory_scope}"),
                Err(other) => panic!("{shown} {memory_scope}: {other:?}"),
            }
        }
        assert_eq!(listed, permitted, "{shown}");
        // Asked for everything, and for memory scopes by name, also those of others.
        let all: Vec<MemoryScope> =
            self.entries.iter().map(|(memory_scope, _)| memory_scope.clone()).collect();
        for memory_scopes in [Vec::new(), all] {
            let search = Search { words: word.clone(), memory_scopes, limit: 100 };
            let hits = store.search(&scope, &search).await.unwrap();
            let found: BTreeSet<EntryAddress> = hits.into_iter().map(|hit| hit.place).collect();
            assert_eq!(found, permitted, "{shown}");
        }
    }
}

on_both!(rows_are_what_the_policy_permits, threads);

async fn rows_are_what_the_policy_permits(directory: Home) {
    let asked = std::env::var("OUTRIGGER_TEST_WORLDS");
    let worlds = asked.map_or(WORLDS, |text| text.parse().unwrap());
    let store = Arc::new(open(directory.path()).await);
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            for number in (task..worlds).step_by(TASKS as usize) {
                let world = World::new(number);
                world.fill(&store).await;
                world.check(&store, number % PEOPLE).await;
            }
        });
    }
    tasks.join_all().await;
}
