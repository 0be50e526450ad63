//! What a session, a person and the organisation may keep, and how history makes room.

use std::num::NonZeroU32;

use outrigger_policy::Owner;
use outrigger_store::entries::{
    Attribution, ChangeRequest, Entries, EntryAddress, EntryFile, EntryPath, EntryPrecondition,
    Error, NewProposal, Quota, QuotaMeasure, Quotas, Reviews, Settings as Held, Via,
};
use outrigger_store::{Database, Settings};

use super::{at, fits_together, member, memory_scope, put};
use crate::support::{Home, address, session};

fn quota(bytes: u64, entries: u64, versions: u64) -> Quota {
    let max = Some;
    Quota { bytes_max: max(bytes), entries_max: max(entries), versions_max: max(versions) }
}

const NONE: Quota = Quota { bytes_max: None, entries_max: None, versions_max: None };

async fn open(directory: &Home, quotas: Quotas) -> Database {
    let settings = Settings { quotas, ..Settings::default() };
    Database::open(directory.path(), &address(directory.path()), settings).await.unwrap()
}

fn own(path: &str) -> EntryAddress {
    let memory_scope = memory_scope(Owner::Person("ada".to_owned()));
    EntryAddress { memory_scope, path: EntryPath::parse(path).unwrap() }
}

fn write(at: EntryAddress, expected: EntryPrecondition, bytes: usize) -> ChangeRequest {
    ChangeRequest::Write { at, expected, file: EntryFile::of(vec![b'x'; bytes]) }
}

/// Whose quota has no room, of what, with how much used.
fn refused<T: std::fmt::Debug>(done: Result<T, Error>) -> (String, QuotaMeasure, u64) {
    match done {
        Err(Error::Quota(exceeded)) => (exceeded.holder, exceeded.measure, exceeded.used),
        other => panic!("it had room: {other:?}"),
    }
}

on_both!(an_owner_has_room_again_when_history_goes);

async fn an_owner_has_room_again_when_history_goes(directory: Home) {
    let store = open(&directory, Quotas { owner: quota(1_000, 3, 4), ..Quotas::default() }).await;
    let who = member("ada");
    let make = |change| store.change(&who, change, Attribution::person(1));
    make(write(own("a"), EntryPrecondition::Absent, 400)).await.unwrap();
    make(write(own("a"), EntryPrecondition::Revision(1), 400)).await.unwrap();
    let more = refused(make(write(own("a"), EntryPrecondition::Revision(2), 400)).await);
    assert_eq!(more, ("person:ada".to_owned(), QuotaMeasure::Bytes, 800));
    // Others have their own.
    put(&store, &who, &at("group"), &"x".repeat(900)).await;

    let keep = NonZeroU32::new(1);
    let pruned = make(ChangeRequest::Prune { at: own("a"), keep }).await.unwrap();
    assert_eq!(pruned.versions.len(), 1);
    let gone = store.read(&who, &own("a"), Some(1)).await;
    assert!(matches!(gone, Err(Error::Pruned)), "{gone:?}");
    assert_eq!(store.history(&who, &own("a"), None).await.unwrap().len(), 2);
    make(write(own("a"), EntryPrecondition::Revision(2), 400)).await.unwrap();

    // Two files and a folder are all that there may be, also of what moves in.
    make(write(own("f/b"), EntryPrecondition::Absent, 1)).await.unwrap();
    let more = refused(make(write(own("c"), EntryPrecondition::Absent, 1)).await);
    assert_eq!(more, ("person:ada".to_owned(), QuotaMeasure::Entries, 3));
    let (from, to) = (at("group"), own("moved"));
    let revision = Some(1);
    let change = ChangeRequest::Move { from, revision, to, expected: EntryPrecondition::Absent };
    assert_eq!(refused(make(change).await).0, "person:ada");
    make(write(own("f/b"), EntryPrecondition::Revision(1), 1)).await.unwrap();
    let more = refused(make(write(own("f/b"), EntryPrecondition::Revision(2), 1)).await);
    assert_eq!(more, ("person:ada".to_owned(), QuotaMeasure::Versions, 4));
    make(ChangeRequest::Remove { at: own("f/b"), revision: 2 }).await.unwrap();
    let pruned = make(ChangeRequest::Prune { at: own(""), keep }).await.unwrap();
    assert_eq!(pruned.versions.len(), 3);
    make(write(own("c"), EntryPrecondition::Absent, 1)).await.unwrap();
    store.close().await;
    fits_together(directory.path()).await;
}

on_both!(what_a_session_wrote_is_never_given_back);

async fn what_a_session_wrote_is_never_given_back(directory: Home) {
    let quotas = Quotas { session: quota(1_000, 10, 3), ..Quotas::default() };
    let store = open(&directory, quotas).await;
    let who = member("ada");
    let by = |name: &str| Attribution {
        via: Via::Tool,
        session: Some(session(name)),
        ..Attribution::person(1)
    };
    let make = |change, by| store.change(&who, change, by);
    make(write(own("a"), EntryPrecondition::Absent, 10), by("one")).await.unwrap();
    make(ChangeRequest::Remove { at: own("a"), revision: 1 }, by("one")).await.unwrap();
    make(write(own("a"), EntryPrecondition::Absent, 10), by("one")).await.unwrap();
    let more = refused(make(write(own("b"), EntryPrecondition::Absent, 10), by("one")).await);
    assert_eq!(more, ("session:one".to_owned(), QuotaMeasure::Versions, 3));
    let large = refused(make(write(own("b"), EntryPrecondition::Absent, 1_001), by("two")).await);
    assert_eq!(large, ("session:two".to_owned(), QuotaMeasure::Bytes, 0));
    make(write(own("b"), EntryPrecondition::Absent, 10), by("two")).await.unwrap();
    make(write(own("c"), EntryPrecondition::Absent, 2_000), Attribution::person(1)).await.unwrap();
}

on_both!(the_organisation_counts_everything_and_proposals_too);

async fn the_organisation_counts_everything_and_proposals_too(directory: Home) {
    let quotas =
        Quotas { organisation: Quota { bytes_max: Some(1_000), ..NONE }, ..Quotas::default() };
    let store = open(&directory, quotas).await;
    let who = member("ada");
    let make = |change| store.change(&who, change, Attribution::person(1));
    make(write(own("a"), EntryPrecondition::Absent, 600)).await.unwrap();
    let common = EntryAddress {
        memory_scope: memory_scope(Owner::Organisation("acme".to_owned())),
        ..own("p")
    };
    let propose = |bytes| {
        let file = Some(EntryFile::of(vec![b'y'; bytes]));
        store.propose(
            &who,
            NewProposal { at: common.clone(), base: 0, file },
            Attribution::person(1),
        )
    };
    propose(300).await.unwrap();
    let more = refused(propose(300).await);
    assert_eq!(more, ("organisation".to_owned(), QuotaMeasure::Bytes, 900));
    let more = refused(make(write(at("g"), EntryPrecondition::Absent, 200)).await);
    assert_eq!(more, ("organisation".to_owned(), QuotaMeasure::Bytes, 900));
    let said = make(write(at("g"), EntryPrecondition::Absent, 200)).await.unwrap_err().to_string();
    assert!(said.contains("900 of 1000 bytes used") && said.contains("memory prune"), "{said}");
    store.close().await;
    fits_together(directory.path()).await;

    // One that was lowered since refuses only what takes more.
    let quotas = Quotas { organisation: quota(100, 100, 100), ..quotas };
    let store = open(&directory, quotas).await;
    let make = |change| store.change(&who, change, Attribution::person(1));
    make(ChangeRequest::Remove { at: own("a"), revision: 1 }).await.unwrap();
    make(ChangeRequest::Prune { at: own(""), keep: NonZeroU32::new(1) }).await.unwrap();
    let held = Held::usual(&own("").memory_scope);
    store.set(&who, &own("").memory_scope, held, 1).await.unwrap();
    fits_together(directory.path()).await;
}

on_both!(what_is_refused_takes_nothing);

/// A change that is refused for something else, in one commit with others, is not counted.
async fn what_is_refused_takes_nothing(directory: Home) {
    let store = open(&directory, Quotas::default()).await;
    let who = member("ada");
    let by = |name: &str| {
        let labels = (0..200).map(|number| format!("{name}{number}")).collect();
        Attribution { labels, ..Attribution::person(1) }
    };
    let first = store.change(&who, write(own("a"), EntryPrecondition::Absent, 10), by("x"));
    first.await.unwrap();
    // It would have the labels of both.
    let refused = store.change(&who, write(own("a"), EntryPrecondition::Revision(1), 10), by("y"));
    let other =
        store.change(&who, write(own("b"), EntryPrecondition::Absent, 10), Attribution::person(1));
    let (refused, other) = tokio::join!(refused, other);
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
    other.unwrap();
    store.close().await;
    fits_together(directory.path()).await;
}
