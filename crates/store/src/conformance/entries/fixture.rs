//! What the checks of entries stand on: the two ports, short ways to use them, and the
//! people and places of the suite.
//!
//! Owns no check.

use outrigger_policy::{Directory, MemoryKind, MemoryScope, Owner, Principal, Scope};

use crate::entries::{
    Attribution, ChangeOutcome, ChangeRequest, Contents, Entries, EntryAddress, EntryFile,
    EntryPath, EntryPrecondition, Error, Reviews, Search,
};

/// The ports that are checked.
pub(super) struct Fixture<'a> {
    pub(super) entries: &'a dyn Entries,
    pub(super) reviews: &'a dyn Reviews,
}

impl Fixture<'_> {
    /// Writes a text.
    pub(super) async fn write(
        &self,
        who: &Scope,
        at: &EntryAddress,
        expected: EntryPrecondition,
        text: &str,
    ) -> Result<ChangeOutcome, Error> {
        let change = ChangeRequest::Write { at: at.clone(), expected, file: EntryFile::of(text) };
        self.entries.change(who, change, by(1_000)).await
    }

    /// Writes a text where nothing is, and gives its revision.
    pub(super) async fn put(&self, who: &Scope, at: &EntryAddress, text: &str) -> u64 {
        let written =
            self.write(who, at, EntryPrecondition::Absent, text).await.expect("nothing is there");
        written.version().expect("a write makes a version").revision
    }

    /// Replaces the text of a revision, and gives the next one.
    pub(super) async fn set_text(
        &self,
        who: &Scope,
        at: &EntryAddress,
        revision: u64,
        text: &str,
    ) -> u64 {
        let written = self.write(who, at, EntryPrecondition::Revision(revision), text).await;
        written.expect("it is there").version().expect("a write makes a version").revision
    }

    /// The newest text of a place.
    pub(super) async fn text(&self, who: &Scope, at: &EntryAddress) -> Result<String, Error> {
        let Contents { bytes, .. } = self.entries.read(who, at, None).await?;
        Ok(String::from_utf8(bytes).expect("the suite writes text"))
    }

    /// Makes a change, later than [`Fixture::write`] does.
    pub(super) async fn change(
        &self,
        who: &Scope,
        change: ChangeRequest,
    ) -> Result<ChangeOutcome, Error> {
        self.entries.change(who, change, by(2_000)).await
    }

    /// The paths in a folder; `deep`, also in those below it.
    pub(super) async fn names(&self, who: &Scope, at: &EntryAddress, deep: bool) -> Vec<String> {
        let listed = self.entries.list(who, at, deep, None).await.expect("it is a folder");
        listed.entries.into_iter().map(|(path, _)| path.to_string()).collect()
    }

    /// The places whose texts have the words, in the order of their names.
    pub(super) async fn found(&self, who: &Scope, words: &str) -> Vec<String> {
        let search = Search { words: words.to_owned(), memory_scopes: Vec::new(), limit: 100 };
        let hits = self.entries.search(who, &search).await.expect("there are words");
        let mut places: Vec<String> = hits.iter().map(|hit| hit.place.to_string()).collect();
        places.sort();
        places
    }
}

/// Ada and Bob are in `ops`, Eve is in no group.
pub(super) fn scope(person: &str) -> Scope {
    let member = |name: &str| Principal::Person(name.to_owned());
    let members = [member("ada"), member("bob")];
    let groups = [("ops".to_owned(), members.into()), ("law".to_owned(), [member("zoe")].into())];
    let directory = Directory { organisation: "acme".to_owned(), groups: groups.into() };
    directory.authenticate(&member(person)).expect("a person has a scope")
}

/// A person's memory.
pub(super) fn own(person: &str) -> MemoryScope {
    MemoryScope { kind: MemoryKind::Memory, owner: Owner::Person(person.to_owned()) }
}

/// A group's memory.
pub(super) fn group(name: &str) -> MemoryScope {
    MemoryScope { kind: MemoryKind::Memory, owner: Owner::Group(name.to_owned()) }
}

/// The organisation's skills.
pub(super) fn organisation() -> MemoryScope {
    MemoryScope { kind: MemoryKind::Skills, owner: Owner::Organisation("acme".to_owned()) }
}

/// A path in a memory scope.
pub(super) fn on(memory_scope: &MemoryScope, path: &str) -> EntryAddress {
    let path = EntryPath::parse(path).expect("the suite's paths are canonical");
    EntryAddress { memory_scope: memory_scope.clone(), path }
}

/// What a person did at a time, in milliseconds since 1970.
pub(super) fn by(at_ms: u64) -> Attribution {
    Attribution::person(at_ms)
}

/// The name of an answer, without what it holds.
pub(super) fn name<T>(answer: &Result<T, Error>) -> String {
    match answer {
        Ok(_) => "Ok".to_owned(),
        Err(error) => {
            let text = format!("{error:?}");
            text.split(['(', ' ', '{']).next().unwrap_or_default().to_owned()
        }
    }
}
