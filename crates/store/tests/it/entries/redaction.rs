//! After a redaction no byte of the text is on disk: not in the database, its log, or the
//! index of its words.

use std::path::Path;

use outrigger_policy::Owner;
use outrigger_store::entries::{
    Attribution, ChangeRequest, DerivativePolicy, Entries, EntryAddress, EntryFile, EntryPath,
    EntryPrecondition, Error, NewProposal, Reach, Reviews, Settings, Which,
};

use super::{at, fits_together, member, memory_scope, put};
use crate::support::{Home, address, contents, open};

/// Words that nothing else has. The index keeps them in lower case.
const SECRET: &str = "zqxjkvbpyyw";
const OTHER: &str = "wvvqjxkkzzu";

fn holders(directory: &Path, text: &str) -> Vec<String> {
    let has = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(text);
    let files = contents(directory).into_iter().filter(|(_, bytes)| has(bytes));
    files.map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

/// The secret in entries of many sizes, which are written over, moved and proposed, among
/// others that come and go, so that pages of all kinds are split and freed.
#[tokio::test]
async fn no_byte_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).await;
    let (ada, bob) = (member("ada"), member("bob"));
    let mut secrets = Vec::new();
    for round in 0..60usize {
        let filler = format!("{round} words of number {} ", round * 7919 % 1000);
        let secret = format!("{SECRET}{round:03}");
        let text = format!("{}{secret} {filler}", filler.repeat(1 + round * round % 170));
        let place = at(&format!("r/{}/{round}", round % 4));
        put(&store, &ada, &place, &filler).await;
        let revision = put(&store, &ada, &place, &text).await;
        if round % 3 > 0 {
            put(&store, &bob, &place, &filler.repeat(round)).await;
        }
        secrets.push((place, revision, secret));
        put(&store, &bob, &at(&format!("n/{}", round % 9)), &filler.repeat(40 + round)).await;
    }
    let reviewed = Settings { review: true, ..Settings::usual(&at("").memory_scope) };
    let file = Some(EntryFile {
        derived_from: Some((secrets[0].0.clone(), secrets[0].1)),
        ..EntryFile::of(SECRET)
    });
    store.set(&ada, &at("").memory_scope, reviewed, 1).await.unwrap();
    let proposed = NewProposal { at: at("proposed"), base: 0, file };
    let id = store.propose(&bob, proposed, Attribution::person(1)).await.unwrap();
    let usual = Settings::usual(&at("").memory_scope);
    store.set(&ada, &at("").memory_scope, usual, 1).await.unwrap();
    let moved = EntryAddress { path: EntryPath::parse("moved").unwrap(), ..at("r/0") };
    let (from, to) = (at("r/0"), moved);
    let change =
        ChangeRequest::Move { from, revision: None, to, expected: EntryPrecondition::Absent };
    store.change(&bob, change, Attribution::person(1)).await.unwrap();
    let (which, reach) = (Which::All, Reach::Copies);
    assert!(!holders(directory.path(), SECRET).is_empty(), "it can be found");

    for (place, _, secret) in &secrets {
        let (derived, why) = (DerivativePolicy::Leave, "leak".to_owned());
        let change = ChangeRequest::Redact { at: place.clone(), which, reach, derived, why };
        let changed = store.change(&ada, change, Attribution::person(9)).await.unwrap();
        assert!(!changed.lingers, "nobody reads meanwhile");
        assert_eq!(holders(directory.path(), secret), [""; 0]);
    }
    assert_eq!(holders(directory.path(), SECRET), [""; 0]);
    let read = store.proposal(&bob, id).await;
    assert!(matches!(read, Err(Error::Redacted(_))), "{read:?}");
    for (place, revision, _) in secrets {
        let read = store.read(&ada, &place, Some(revision)).await;
        assert!(matches!(read, Err(Error::Redacted(_))), "{read:?}");
    }
    store.close().await;
    assert_eq!(holders(directory.path(), SECRET), [""; 0]);
    fits_together(directory.path()).await;
}

/// A text whose words were in the index and left it with a newer version, and what is
/// pruned, are gone in the same way.
#[tokio::test]
async fn old_words_and_pruned_texts_too() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).await;
    let who = member("ada");
    let own = memory_scope(Owner::Person("ada".to_owned()));
    let place = EntryAddress { memory_scope: own.clone(), path: EntryPath::parse("p").unwrap() };
    put(&store, &who, &place, &format!("one {SECRET}")).await;
    for round in 0..40 {
        put(&store, &who, &place, &format!("number {round} {OTHER}")).await;
        put(&store, &who, &at(&format!("x/{round}")), &"some other words ".repeat(round)).await;
    }
    put(&store, &who, &place, "plain").await;
    let (which, reach, why) = (Which::Revision(1), Reach::Named, "leak".to_owned());
    let change = ChangeRequest::Redact {
        at: place.clone(),
        which,
        reach,
        derived: DerivativePolicy::Leave,
        why,
    };
    store.change(&who, change, Attribution::person(9)).await.unwrap();
    assert_eq!(holders(directory.path(), SECRET), [""; 0]);
    assert!(!holders(directory.path(), OTHER).is_empty(), "old versions are kept");
    let settings = Settings { keep_versions: Some(1), ..Settings::usual(&own) };
    store.set(&who, &own, settings, 1).await.unwrap();
    let change = ChangeRequest::Prune {
        at: EntryAddress { memory_scope: own, path: EntryPath::ROOT },
        keep: None,
    };
    let pruned = store.change(&who, change, Attribution::person(9)).await.unwrap();
    assert_eq!((pruned.versions.len(), pruned.lingers), (40, false));
    assert_eq!(holders(directory.path(), OTHER), [""; 0]);
}

/// Somebody else's reader keeps the log from being cleared; that is told, and made up for.
#[tokio::test]
async fn what_lingers_is_told() {
    use outrigger_store::{Database, Settings as Opened};
    use sqlx::ConnectOptions;
    let directory = tempfile::tempdir().unwrap();
    let settings = Opened { busy_wait_ms: 50, ..Opened::default() };
    let store =
        Database::open(directory.path(), &address(directory.path()), settings).await.unwrap();
    let who = member("ada");
    for name in ["one", "two"] {
        put(&store, &who, &at(name), &format!("{SECRET} {name}")).await;
    }
    let path = directory.path().join("journal.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut reader = options.connect().await.unwrap();
    let text = "BEGIN; SELECT COUNT(*) FROM contents";
    sqlx::raw_sql(text).execute(&mut reader).await.unwrap();
    let redact = |name| {
        let (which, reach, why) = (Which::All, Reach::Named, String::new());
        let change = ChangeRequest::Redact {
            at: at(name),
            which,
            reach,
            derived: DerivativePolicy::Leave,
            why,
        };
        store.change(&who, change, Attribution::person(1))
    };
    assert!(redact("one").await.unwrap().lingers);
    sqlx::raw_sql("COMMIT").execute(&mut reader).await.unwrap();
    drop(reader);
    assert!(!redact("two").await.unwrap().lingers);
    assert_eq!(holders(directory.path(), SECRET), [""; 0]);
}

on_both!(what_was_made_of_it_is_asked_about);

/// A secret that was moved and then edited around, edited around and then moved, and
/// proposed with something added: no copies of what is redacted, and still it is there.
async fn what_was_made_of_it_is_asked_about(directory: Home) {
    let store = open(directory.path()).await;
    let who = member("ada");
    put(&store, &who, &at("first"), "a plain beginning\n").await;
    put(&store, &who, &at("first"), &format!("a beginning\nkey = {SECRET}{SECRET}\n")).await;
    let edited = format!("another beginning\nkey = {SECRET}{SECRET}\n");
    let revision = put(&store, &who, &at("first"), &edited).await;
    let (from, to) = (at("first"), at("second"));
    let change = ChangeRequest::Move {
        from,
        revision: Some(revision),
        to,
        expected: EntryPrecondition::Absent,
    };
    store.change(&who, change, Attribution::person(1)).await.unwrap();
    put(&store, &who, &at("second"), &format!("{edited}and more of it\n")).await;
    put(&store, &who, &at("elsewhere"), &format!("{edited}and more of it\n")).await;
    put(&store, &who, &at("elsewhere"), &format!("key = {SECRET}{SECRET}\nand less\n")).await;
    put(&store, &who, &at("second"), "what has nothing of it\n").await;
    put(&store, &who, &at("other"), "what has nothing to do with it\n").await;

    let redact = |derived| {
        let (which, reach, why) = (Which::Revision(3), Reach::Copies, "leak".to_owned());
        let change = ChangeRequest::Redact { at: at("first"), which, reach, derived, why };
        store.change(&who, change, Attribution::person(9))
    };
    let asked = redact(DerivativePolicy::Ask).await.unwrap_err();
    let Error::Related(related) = asked else { panic!("{asked:?}") };
    let mut told: Vec<String> = related
        .versions
        .iter()
        .map(|(place, revision)| format!("{} {revision}", place.path))
        .collect();
    told.sort();
    assert_eq!(told, ["elsewhere 1", "elsewhere 2", "first 2", "second 2"]);
    let is_sqlite = address(directory.path()).is_sqlite();
    let held = |what| is_sqlite.then(|| holders(directory.path(), what).len());
    assert_ne!(held(SECRET), Some(0), "nothing was destroyed yet");
    assert!(store.read(&who, &at("first"), Some(3)).await.is_ok());

    let done = redact(DerivativePolicy::Destroy).await.unwrap();
    assert_eq!(done.versions.len(), 6);
    assert_eq!(holders(directory.path(), SECRET), [""; 0]);
    let read = store.read(&who, &at("elsewhere"), None).await;
    assert!(matches!(read, Err(Error::Redacted(_))), "{read:?}");
    assert!(store.read(&who, &at("second"), None).await.is_ok());
    store.close().await;
    assert_eq!(holders(directory.path(), SECRET), [""; 0]);
    fits_together(directory.path()).await;
}
