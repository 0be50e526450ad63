//! A database that may not grow.

use outrigger_store::entries::{
    Attribution, ChangeRequest, Entries, EntryFile, EntryPrecondition, Error,
};
use outrigger_store::{Database, Error as StoreError, Settings};

use super::{at, fits_together, member, put};
use crate::support::{Home, address, open};

#[tokio::test]
async fn a_full_database() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings { database_bytes_max: Some(600_000), ..Settings::default() };
    let store =
        Database::open(directory.path(), &address(directory.path()), settings).await.unwrap();
    let who = member("ada");
    let text = |n: usize| format!("number {n} {}", "words and more words ".repeat(400));
    let mut count = 0;
    let error = loop {
        let expected = if count == 0 {
            EntryPrecondition::Absent
        } else {
            EntryPrecondition::Revision(count as u64)
        };
        let change =
            ChangeRequest::Write { at: at("full"), expected, file: EntryFile::of(text(count)) };
        match store.change(&who, change, Attribution::person(1)).await {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
        assert!(count < 500, "the limit holds at last");
    };
    assert!(matches!(error, Error::Store(StoreError::NoSpace { .. })), "{error:?}");
    assert!(count > 5, "there was space before");
    let read = store.read(&who, &at("full"), None).await.unwrap();
    assert_eq!((read.version.revision, read.bytes), (count as u64, text(count - 1).into_bytes()));
    store.close().await;
    fits_together(directory.path()).await;

    let store = open(directory.path()).await;
    assert_eq!(put(&store, &who, &at("full"), &text(count)).await, count as u64 + 1);
}

on_both!(a_search_on_thousands_of_memory_scopes);

/// Somebody in very many groups has as many memory scopes.
async fn a_search_on_thousands_of_memory_scopes(directory: Home) {
    use outrigger_policy::{Directory, Owner, Principal};
    use outrigger_store::entries::{EntryAddress, Search};
    let store = open(directory.path()).await;
    let ada = Principal::Person("ada".to_owned());
    let groups = (0..2_000).map(|number| (format!("g{number}"), [ada.clone()].into()));
    let people = Directory { groups: groups.collect(), ..Directory::default() };
    let who = people.authenticate(&ada).unwrap();
    for number in [0, 7, 1_999] {
        let memory_scope = super::memory_scope(Owner::Group(format!("g{number}")));
        let place = EntryAddress { memory_scope, path: at("x").path };
        put(&store, &who, &place, "needle").await;
    }
    let search =
        |words: &str| Search { words: words.to_owned(), memory_scopes: Vec::new(), limit: 9 };
    assert_eq!(store.search(&who, &search("needle")).await.unwrap().len(), 3);
    assert_eq!(store.search(&who, &search("hay")).await.unwrap().len(), 0);
    let long = store.search(&who, &search(&"x".repeat(2_000))).await;
    assert!(matches!(long, Err(Error::TooLarge { .. })), "{long:?}");
}
