//! Random changes, made on the database and on a model that is nothing but lists of
//! versions: both must refuse the same and end the same.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use outrigger_policy::{Directory, MemoryKind, MemoryScope, Owner, Principal, Scope};
use outrigger_store::Database;
use outrigger_store::entries::{
    Attribution, ChangeRequest, Entries, EntryAddress, EntryFile, EntryPath, EntryPrecondition,
    EntryState, Error,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::fits_together;
use crate::support::open;

const PATHS: [&str; 6] = ["a", "b", "a/b", "a/b/d", "b/e", "f/g/h"];
const TEXTS: [&str; 5] = ["x", "xx", "x y", "", "y"];

/// A change of a small world, by numbers.
#[derive(Debug, Clone)]
enum Op {
    Write(usize, Guess, usize),
    Edit(usize, usize, usize),
    Remove(usize, Guess),
    Make(usize),
    Drop(usize),
    Move(usize, Guess, usize, Guess),
    Revert(usize, u64, Guess),
}

/// What somebody believes to be at a path.
#[derive(Debug, Clone, Copy)]
enum Guess {
    Right,
    Absent,
    Number(u64),
}

fn ops() -> impl Strategy<Value = Vec<(bool, Op)>> {
    let guess = || {
        prop_oneof![
            5 => Just(Guess::Right),
            1 => Just(Guess::Absent),
            2 => (1u64..6).prop_map(Guess::Number),
        ]
    };
    // Mostly in one memory scope, so that changes meet.
    let path = || prop_oneof![5 => 0..PATHS.len(), 1 => 0..PATHS.len() * 2];
    let text = || 0..TEXTS.len();
    let op = prop_oneof![
        6 => (path(), guess(), text()).prop_map(|(p, g, t)| Op::Write(p, g, t)),
        3 => (path(), text(), text()).prop_map(|(p, o, n)| Op::Edit(p, o, n)),
        3 => (path(), guess()).prop_map(|(p, g)| Op::Remove(p, g)),
        2 => path().prop_map(Op::Make),
        2 => path().prop_map(Op::Drop),
        4 => (path(), guess(), path(), guess()).prop_map(|(f, r, t, e)| Op::Move(f, r, t, e)),
        1 => (path(), 1u64..6, guess()).prop_map(|(p, n, g)| Op::Revert(p, n, g)),
    ];
    proptest::collection::vec((any::<bool>(), op), 1..80)
}

/// A path in one of two memory scopes.
type At = (usize, String);

#[derive(Debug, Clone, PartialEq)]
enum Stands {
    Nothing,
    Folder,
    File(String),
}

/// All versions of all paths: what stood there since, and who put it there.
#[derive(Debug, Default)]
struct Model {
    versions: BTreeMap<At, Vec<(Stands, usize)>>,
}

impl Model {
    fn revision(&self, at: &At) -> u64 {
        self.versions.get(at).map_or(0, |versions| versions.len() as u64)
    }

    fn stands(&self, at: &At) -> Stands {
        if at.1.is_empty() {
            return Stands::Folder;
        }
        let last = self.versions.get(at).and_then(|versions| versions.last());
        last.map_or(Stands::Nothing, |(stands, _)| stands.clone())
    }

    fn put(&mut self, at: &At, stands: Stands, who: usize) {
        self.versions.entry(at.clone()).or_default().push((stands, who));
    }

    fn above(at: &At) -> Vec<At> {
        let slashes = at.1.match_indices('/');
        slashes.map(|(index, _)| (at.0, at.1[..index].to_owned())).collect()
    }

    fn below(&self, at: &At) -> Vec<At> {
        let begin = format!("{}/", at.1);
        let all = self.versions.keys();
        let below = all.filter(|key| key.0 == at.0 && key.1.starts_with(&begin));
        below.filter(|key| self.stands(key) != Stands::Nothing).cloned().collect()
    }

    fn is_in_file(&self, at: &At) -> bool {
        Self::above(at).iter().any(|above| matches!(self.stands(above), Stands::File(_)))
    }

    fn make_above(&mut self, at: &At, who: usize) {
        for above in Self::above(at) {
            if self.stands(&above) == Stands::Nothing {
                self.put(&above, Stands::Folder, who);
            }
        }
    }

    /// Whether what is there is as expected.
    fn expect(&self, at: &At, expected: EntryPrecondition) -> Result<(), &'static str> {
        match (self.stands(at), expected) {
            (Stands::Folder, _) => Err("Folder"),
            (Stands::Nothing, EntryPrecondition::Absent) => Ok(()),
            (Stands::File(_), EntryPrecondition::Revision(n)) if n == self.revision(at) => Ok(()),
            _ => Err("Conflict"),
        }
    }

    fn place(&mut self, at: &At, stands: Stands, who: usize) -> Result<(), &'static str> {
        if self.is_in_file(at) {
            return Err("NotFolder");
        }
        self.make_above(at, who);
        self.put(at, stands, who);
        Ok(())
    }

    fn edit(&mut self, at: &At, (old, new): (&str, &str), who: usize) -> Result<(), &'static str> {
        match self.stands(at) {
            Stands::Nothing => Err("Absent"),
            Stands::Folder => Err("Folder"),
            Stands::File(text) => {
                let ends = (0..=text.len()).filter(|end| text[..*end].ends_with(old));
                if ends.filter(|end| *end >= old.len()).count() != 1 {
                    return Err("Conflict");
                }
                self.put(at, Stands::File(text.replacen(old, new, 1)), who);
                Ok(())
            }
        }
    }

    fn rename(
        &mut self,
        (from, revision): (&At, Option<u64>),
        (to, expected): (&At, EntryPrecondition),
        who: usize,
    ) -> Result<(), &'static str> {
        if from.1.is_empty() || to.1.is_empty() {
            return Err("Root");
        }
        match (self.stands(from), revision) {
            (Stands::Nothing, _) => Err("Absent"),
            (Stands::Folder, Some(_)) => Err("Folder"),
            (Stands::File(_), None) => Err("NotFolder"),
            (Stands::File(text), Some(revision)) => {
                self.expect(from, EntryPrecondition::Revision(revision))?;
                self.expect(to, expected)?;
                if from == to {
                    return Ok(());
                }
                if self.is_in_file(to) {
                    return Err("NotFolder");
                }
                self.put(from, Stands::Nothing, who);
                self.place(to, Stands::File(text), who)
            }
            (Stands::Folder, None) => {
                let inside = to.0 == from.0 && to.1.starts_with(&format!("{}/", from.1));
                if from == to || inside {
                    return Err("Inside");
                }
                match (self.stands(to), expected) {
                    (Stands::Folder | Stands::File(_), _) => return Err("Exists"),
                    (Stands::Nothing, EntryPrecondition::Revision(_)) => return Err("Conflict"),
                    (Stands::Nothing, EntryPrecondition::Absent) => {}
                }
                if self.is_in_file(to) {
                    return Err("NotFolder");
                }
                let below = self.below(from);
                self.place(to, Stands::Folder, who)?;
                self.put(from, Stands::Nothing, who);
                for here in below {
                    let there = (to.0, format!("{}{}", to.1, &here.1[from.1.len()..]));
                    let stands = self.stands(&here);
                    self.put(&there, stands, who);
                    self.put(&here, Stands::Nothing, who);
                }
                Ok(())
            }
        }
    }

    fn revert(
        &mut self,
        at: &At,
        to: u64,
        expected: EntryPrecondition,
        who: usize,
    ) -> Result<(), &'static str> {
        self.expect(at, expected)?;
        let versions = self.versions.get(at).map_or(&[][..], Vec::as_slice);
        let old = usize::try_from(to - 1).ok().and_then(|index| versions.get(index));
        match old.map(|(stands, _)| stands.clone()) {
            None | Some(Stands::Nothing) => Err("Absent"),
            Some(Stands::Folder) => Err("Folder"),
            Some(file @ Stands::File(_)) => self.place(at, file, who),
        }
    }
}

/// Both worlds of one case.
struct Worlds<'a> {
    store: &'a Database,
    model: Model,
    people: [Scope; 2],
    memory_scopes: [MemoryScope; 2],
}

impl<'a> Worlds<'a> {
    fn new(store: &'a Database, number: usize) -> Self {
        let names = ["x", "y"].map(|name| format!("p{number}{name}"));
        let people = names.map(Principal::Person);
        let groups = ["g", "h"].map(|name| format!("g{number}{name}"));
        let members = groups.clone().map(|name| (name, people.clone().into()));
        let directory = Directory { groups: members.into(), ..Directory::default() };
        let people = people.each_ref().map(|who| directory.authenticate(who).unwrap());
        let (kind, owners) = (MemoryKind::Skills, groups.map(Owner::Group));
        let memory_scopes = owners.map(|owner| MemoryScope { kind, owner });
        Self { store, model: Model::default(), people, memory_scopes }
    }

    fn place(&self, at: &At) -> EntryAddress {
        EntryAddress {
            memory_scope: self.memory_scopes[at.0].clone(),
            path: EntryPath::parse(&at.1).unwrap(),
        }
    }

    fn expected(&self, at: &At, guess: Guess) -> EntryPrecondition {
        match guess {
            Guess::Absent => EntryPrecondition::Absent,
            Guess::Number(number) => EntryPrecondition::Revision(number),
            Guess::Right => match self.model.stands(at) {
                Stands::File(_) => EntryPrecondition::Revision(self.model.revision(at)),
                Stands::Nothing | Stands::Folder => EntryPrecondition::Absent,
            },
        }
    }

    /// Of what is moved or removed: the revision of a file, nothing for a folder.
    fn revision(&self, at: &At, guess: Guess) -> Option<u64> {
        match self.expected(at, guess) {
            EntryPrecondition::Absent => None,
            EntryPrecondition::Revision(number) => Some(number),
        }
    }

    async fn step(&mut self, second: bool, op: Op) {
        let who = usize::from(second);
        let at = |number: usize| (number / PATHS.len(), PATHS[number % PATHS.len()].to_owned());
        let (change, expected) = match op {
            Op::Write(path, guess, text) => {
                let (at, text) = (at(path), TEXTS[text]);
                let expected = self.expected(&at, guess);
                let (place, file) = (self.place(&at), EntryFile::of(text));
                let change = ChangeRequest::Write { at: place, expected, file };
                let checked = self.model.expect(&at, expected);
                let file = Stands::File(text.to_owned());
                (change, checked.and_then(|()| self.model.place(&at, file, who)))
            }
            Op::Edit(path, old, new) => {
                let (at, old, new) = (at(path), TEXTS[old], TEXTS[new]);
                let place = self.place(&at);
                let change = ChangeRequest::Edit { at: place, old: old.into(), new: new.into() };
                (change, self.model.edit(&at, (old, new), who))
            }
            Op::Remove(path, guess) => {
                let at = at(path);
                let revision = self.revision(&at, guess).unwrap_or(1);
                let change = ChangeRequest::Remove { at: self.place(&at), revision };
                let checked = match self.model.stands(&at) {
                    Stands::Nothing => Err("Absent"),
                    _ => self.model.expect(&at, EntryPrecondition::Revision(revision)),
                };
                (change, checked.map(|()| self.model.put(&at, Stands::Nothing, who)))
            }
            Op::Make(path) => {
                let at = at(path);
                let outcome = match self.model.stands(&at) {
                    Stands::Nothing => self.model.place(&at, Stands::Folder, who),
                    Stands::Folder | Stands::File(_) => Err("Exists"),
                };
                (ChangeRequest::MakeFolder { at: self.place(&at) }, outcome)
            }
            Op::Drop(path) => {
                let at = at(path);
                let outcome = match self.model.stands(&at) {
                    Stands::Nothing => Err("Absent"),
                    Stands::File(_) => Err("NotFolder"),
                    Stands::Folder if !self.model.below(&at).is_empty() => Err("NotEmpty"),
                    Stands::Folder => {
                        self.model.put(&at, Stands::Nothing, who);
                        Ok(())
                    }
                };
                (ChangeRequest::RemoveFolder { at: self.place(&at) }, outcome)
            }
            Op::Move(from, revision, to, guess) => {
                let (from, to) = (at(from), at(to));
                let (revision, expected) =
                    (self.revision(&from, revision), self.expected(&to, guess));
                let (here, there) = (self.place(&from), self.place(&to));
                let change = ChangeRequest::Move { from: here, revision, to: there, expected };
                (change, self.model.rename((&from, revision), (&to, expected), who))
            }
            Op::Revert(path, to, guess) => {
                let at = at(path);
                let expected = self.expected(&at, guess);
                let change = ChangeRequest::Revert { at: self.place(&at), to, expected };
                (change, self.model.revert(&at, to, expected, who))
            }
        };
        let shown = format!("{change:?}");
        let made = self.store.change(&self.people[who], change, Attribution::person(1)).await;
        let made = made.map(drop).map_err(|error| name(&error));
        assert_eq!(made, expected.map_err(str::to_owned), "{shown}");
    }

    /// Every version of every path, and what is listed.
    async fn compare(&self) {
        for (at, versions) in &self.model.versions {
            let place = self.place(at);
            let mut history = self.store.history(&self.people[0], &place, None).await.unwrap();
            history.reverse();
            assert_eq!(history.len(), versions.len(), "{place}");
            for (version, (stands, who)) in history.iter().zip(versions) {
                assert_eq!(version.author, self.people[*who].person());
                let number = Some(version.revision);
                let read = self.store.read(&self.people[1], &place, number).await;
                let found = match (&version.state, read) {
                    (EntryState::Folder, Err(Error::Folder)) => Stands::Folder,
                    (EntryState::Gone, Err(Error::Absent)) => Stands::Nothing,
                    (EntryState::File { .. }, Ok(read)) => {
                        Stands::File(String::from_utf8(read.bytes).unwrap())
                    }
                    other => panic!("{place}: {other:?}"),
                };
                assert_eq!(found, *stands, "{place} at {}", version.revision);
            }
        }
        for (index, memory_scope) in self.memory_scopes.iter().enumerate() {
            let root = EntryAddress { memory_scope: memory_scope.clone(), path: EntryPath::ROOT };
            let listed = self.store.list(&self.people[0], &root, true, None).await.unwrap();
            let paths: Vec<_> = listed.entries.iter().map(|(path, _)| path.to_string()).collect();
            let known = self.model.versions.keys().filter(|at| at.0 == index);
            let there = known.filter(|at| self.model.stands(at) != Stands::Nothing);
            assert_eq!(paths, there.map(|at| at.1.clone()).collect::<Vec<_>>());
        }
    }
}

fn name(error: &Error) -> String {
    let text = format!("{error:?}");
    text.split(['(', ' ']).next().unwrap_or_default().to_owned()
}

#[test]
fn a_naive_model_agrees() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let store = runtime.block_on(open(directory.path()));
    // Each case has memory scopes of its own in the one store.
    let cases = AtomicUsize::new(0);
    let config = Config { cases: 96, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&ops(), |ops| {
            let number = cases.fetch_add(1, Ordering::Relaxed);
            runtime.block_on(async {
                let mut worlds = Worlds::new(&store, number);
                for (second, op) in ops {
                    worlds.step(second, op).await;
                }
                worlds.compare().await;
            });
            Ok(())
        })
        .unwrap();
    runtime.block_on(async {
        store.close().await;
        fits_together(directory.path()).await;
    });
}
