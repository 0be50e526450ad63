//! What every home of entries must do: lose no change, tell whoever is late what is there,
//! and answer for what is not seen as for what is not there.

mod fixture;
mod folders;
mod labels;
mod reviews;
mod versions;

use futures_util::future::join_all;
use outrigger_agent::{Digest, Seq, SessionId};
use outrigger_policy::Principal;

use crate::entries::{
    Attribution, ChangeRequest, Contents, DerivativePolicy, Entries, EntryFile, EntryPrecondition,
    EntryState, Error, Reach, Reviews, Search, Settings, Via, Which,
};
use crate::limits;

use fixture::{Fixture, by, group, name, on, own, scope};

/// Editors of one entry at the same time.
const EDITORS: u64 = 20;

/// Runs all checks of entries and reviews.
///
/// # Panics
/// Where they do not conform.
pub async fn entries(entries: &dyn Entries, reviews: &dyn Reviews) {
    let fixture = Fixture { entries, reviews };
    a_file_comes_and_goes(&fixture).await;
    whoever_is_late_is_told(&fixture).await;
    edits_hold_on_the_newest(&fixture).await;
    folders::folders(&fixture).await;
    folders::moves(&fixture).await;
    folders::pages(&fixture).await;
    what_is_not_seen_is_not_there(&fixture).await;
    versions::reverts_and_blames(&fixture).await;
    versions::words(&fixture).await;
    versions::redactions(&fixture).await;
    labels::labels_are_kept(&fixture).await;
    labels::labels_have_a_limit(&fixture).await;
    versions::retention(&fixture).await;
    versions::what_is_stale(&fixture).await;
    versions::audits(&fixture).await;
    one_winner(&fixture).await;
    limits_hold(&fixture).await;
    reviews::a_review(&fixture).await;
    reviews::what_is_refused_in_a_review(&fixture).await;
}

async fn a_file_comes_and_goes(fixture: &Fixture<'_>) {
    let (ada, at) = (scope("ada"), on(&own("ada"), "life/notes.md"));
    let absent = fixture.entries.read(&ada, &at, None).await;
    assert!(matches!(absent, Err(Error::Absent)), "{absent:?}");
    let session = SessionId::new("life").expect("plain");
    let how = Attribution {
        via: Via::Tool,
        agent: Some("agent:default".to_owned()),
        session: Some(session),
        seq: Some(Seq(7)),
        labels: ["untrusted".to_owned()].into(),
        message: Some("why".to_owned()),
        ..by(5_000)
    };
    let file = EntryFile { executable: true, review_by_ms: Some(9_000), ..EntryFile::of("text") };
    let change = ChangeRequest::Write { at: at.clone(), expected: EntryPrecondition::Absent, file };
    let changed = fixture.entries.change(&ada, change, how.clone()).await.expect("it is new");
    assert_eq!(changed.versions.len(), 2, "the folder above came along: {changed:?}");
    let version = changed.version().expect("one was made").clone();
    assert_eq!((version.revision, &version.by), (1, &how));
    assert_eq!(version.author, Principal::Person("ada".to_owned()));
    let digest = Digest::of(b"text");
    assert_eq!(version.state, EntryState::File { bytes: 4, digest, executable: true });
    let read = fixture.entries.read(&ada, &at, None).await.expect("it is there");
    assert_eq!(read, Contents { version, bytes: b"text".to_vec() });
    let node = fixture.entries.stat(&ada, &at).await.expect("it is there");
    assert_eq!((node.folder, node.bytes, node.revision, node.executable), (false, 4, 1, true));
    assert_eq!((node.modified_ms, node.review_by_ms), (5_000, Some(9_000)));

    assert_eq!(fixture.set_text(&ada, &at, 1, "").await, 2);
    let remove = ChangeRequest::Remove { at: at.clone(), revision: 2 };
    let gone = fixture.change(&ada, remove).await.expect("it was there");
    assert_eq!(gone.version().map(|version| version.state.clone()), Some(EntryState::Gone));
    assert_eq!(name(&fixture.entries.stat(&ada, &at).await), "Absent");
    assert_eq!(fixture.put(&ada, &at, "again").await, 4, "revisions grow for ever");
    let history = fixture.entries.history(&ada, &at, None).await.expect("there is one");
    let revisions: Vec<u64> = history.iter().map(|version| version.revision).collect();
    assert_eq!(revisions, [4, 3, 2, 1]);
    let old = fixture.entries.read(&ada, &at, Some(1)).await.expect("old versions stay");
    assert_eq!(old.bytes, b"text");
    assert_eq!(name(&fixture.entries.read(&ada, &at, Some(3)).await), "Absent");
    assert_eq!(name(&fixture.entries.read(&ada, &at, Some(9)).await), "Absent");
    let page = fixture.entries.history(&ada, &at, Some(3)).await.expect("there is more");
    assert_eq!(page.len(), 2);
}

async fn whoever_is_late_is_told(fixture: &Fixture<'_>) {
    let (ada, at) = (scope("ada"), on(&own("ada"), "late.md"));
    fixture.put(&ada, &at, "one").await;
    fixture.set_text(&ada, &at, 1, "two").await;
    let expectations =
        [EntryPrecondition::Absent, EntryPrecondition::Revision(1), EntryPrecondition::Revision(3)];
    for expected in expectations {
        let refused = fixture.write(&ada, &at, expected, "late").await;
        let Err(Error::Conflict(current)) = refused else { panic!("{refused:?}") };
        assert_eq!((current.revision, current.bytes), (2, Some(b"two".to_vec())));
    }
    let remove = |revision| ChangeRequest::Remove { at: at.clone(), revision };
    assert_eq!(name(&fixture.change(&ada, remove(1)).await), "Conflict");
    fixture.change(&ada, remove(2)).await.expect("it is at 2");
    let refused = fixture.write(&ada, &at, EntryPrecondition::Revision(2), "late").await;
    let Err(Error::Conflict(current)) = refused else { panic!("{refused:?}") };
    assert_eq!((current.revision, current.bytes), (3, None));
    assert_eq!(name(&fixture.change(&ada, remove(3)).await), "Absent");
    assert_eq!(fixture.entries.history(&ada, &at, None).await.expect("it was").len(), 3);
}

async fn edits_hold_on_the_newest(fixture: &Fixture<'_>) {
    let (ada, at) = (scope("ada"), on(&own("ada"), "edit.md"));
    let edit = |old: &str, new: &str| {
        let (old, new) = (old.to_owned(), new.to_owned());
        fixture.change(&ada, ChangeRequest::Edit { at: at.clone(), old, new })
    };
    assert_eq!(name(&edit("a", "b").await), "Absent");
    let file = EntryFile { executable: true, review_by_ms: Some(1), ..EntryFile::of("aab\nc\n") };
    let change = ChangeRequest::Write { at: at.clone(), expected: EntryPrecondition::Absent, file };
    fixture.change(&ada, change).await.expect("it is new");
    for (old, matches) in [("a", 2), ("x", 0)] {
        let refused = edit(old, "y").await;
        let Err(Error::Conflict(current)) = refused else { panic!("{refused:?}") };
        assert_eq!((current.revision, current.matches), (1, Some(matches)));
        assert_eq!(current.bytes, Some(b"aab\nc\n".to_vec()));
    }
    edit("b\nc", "B").await.expect("it is there once");
    assert_eq!(fixture.text(&ada, &at).await.expect("it is there"), "aaB\n");
    let node = fixture.entries.stat(&ada, &at).await.expect("it is there");
    assert_eq!((node.executable, node.review_by_ms), (true, Some(1)), "what it was, it stays");
    let change = ChangeRequest::Write {
        at: at.clone(),
        expected: EntryPrecondition::Revision(2),
        file: EntryFile::of([0xff, 0xfe]),
    };
    fixture.change(&ada, change).await.expect("bytes are bytes");
    assert_eq!(name(&edit("a", "b").await), "NotText");
}

async fn what_is_not_seen_is_not_there(fixture: &Fixture<'_>) {
    let (ada, eve) = (scope("ada"), scope("eve"));
    let (absent, first) = (EntryPrecondition::Absent, EntryPrecondition::Revision(1));
    let seen = on(&group("ops"), "secret/plan.md");
    fixture.put(&ada, &seen, "moonshine").await;
    assert_eq!(fixture.text(&scope("bob"), &seen).await.expect("Bob is in it"), "moonshine");
    let there = [seen.clone(), on(&group("ops"), "secret"), on(&group("ops"), "")];
    let nowhere = [on(&group("none"), "x"), on(&group("law"), ""), on(&own("ada"), "late.md")];
    for at in there.iter().chain(&nowhere) {
        let (entries, memory_scope) = (fixture.entries, &at.memory_scope);
        let answers = [
            name(&entries.stat(&eve, at).await),
            name(&entries.list(&eve, at, false, None).await),
            name(&entries.list(&eve, at, true, None).await),
            name(&entries.read(&eve, at, None).await),
            name(&entries.read(&eve, at, Some(1)).await),
            name(&entries.history(&eve, at, None).await),
            name(&entries.history(&eve, at, Some(2)).await),
            name(&fixture.reviews.settings(&eve, memory_scope).await),
        ];
        assert_eq!(answers, ["Absent"; 8], "{at}");
        assert_eq!(
            entries.stale(&eve, memory_scope, u64::MAX >> 1).await.expect("none").entries,
            []
        );
        let home = on(&own("eve"), "mine");
        let (at, edit) = (at.clone(), "x".to_owned());
        let (from, to, why) = (at.clone(), home.clone(), String::new());
        let theirs = (at.clone(), 1);
        let file = EntryFile { derived_from: Some(theirs), ..EntryFile::of("x") };
        let settings = Settings::usual(memory_scope);
        for change in [
            ChangeRequest::Write { at: at.clone(), expected: absent, file: EntryFile::of("x") },
            ChangeRequest::Write { at: at.clone(), expected: first, file: EntryFile::of("x") },
            ChangeRequest::Write { at: home, expected: absent, file },
            ChangeRequest::Edit { at: at.clone(), old: edit.clone(), new: edit },
            ChangeRequest::Remove { at: at.clone(), revision: 1 },
            ChangeRequest::MakeFolder { at: at.clone() },
            ChangeRequest::RemoveFolder { at: at.clone() },
            ChangeRequest::Move { from, revision: Some(1), to, expected: absent },
            ChangeRequest::Revert { at: at.clone(), to: 1, expected: first },
            ChangeRequest::Redact {
                at: at.clone(),
                which: Which::All,
                reach: Reach::Everywhere,
                derived: DerivativePolicy::Leave,
                why,
            },
            ChangeRequest::Prune { at: at.clone(), keep: None },
        ] {
            let shown = format!("{change:?}");
            assert_eq!(name(&fixture.change(&eve, change).await), "Absent", "{shown}");
        }
        let set = fixture.reviews.set(&eve, memory_scope, settings, 1).await;
        assert_eq!(name(&set), "Absent");
    }
    assert_eq!(fixture.found(&ada, "moonshine").await, ["memory/group:ops/secret/plan.md"]);
    assert_eq!(fixture.found(&eve, "moonshine").await, [""; 0]);
    let asked = vec![group("ops")];
    let search = Search { words: "moonshine".to_owned(), memory_scopes: asked, limit: 9 };
    assert_eq!(fixture.entries.search(&eve, &search).await.expect("there are words"), []);
    assert_eq!(fixture.text(&ada, &seen).await.expect("nothing happened to it"), "moonshine");
}

/// Everybody replaces the number by the next one: none is lost.
async fn one_winner(fixture: &Fixture<'_>) {
    let (ada, at) = (scope("ada"), on(&group("ops"), "counter"));
    fixture.put(&ada, &at, "0").await;
    let editors = (0..EDITORS).map(|_| async {
        loop {
            let read = fixture.entries.read(&ada, &at, None).await.expect("it is there");
            let number: u64 = String::from_utf8_lossy(&read.bytes).parse().expect("a number");
            let expected = EntryPrecondition::Revision(read.version.revision);
            match fixture.write(&ada, &at, expected, &format!("{}", number + 1)).await {
                Ok(_) => return,
                Err(Error::Conflict(_)) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
    });
    join_all(editors).await;
    assert_eq!(fixture.text(&ada, &at).await.expect("it is there"), EDITORS.to_string());
    let stat = fixture.entries.stat(&ada, &at).await.expect("it is there");
    assert_eq!(stat.revision, EDITORS + 1);
}

async fn limits_hold(fixture: &Fixture<'_>) {
    let (ada, at) = (scope("ada"), on(&own("ada"), "large"));
    let largest = "x".repeat(limits::ENTRY_BYTES_MAX);
    let over = format!("{largest}x");
    assert_eq!(name(&fixture.write(&ada, &at, EntryPrecondition::Absent, &over).await), "TooLarge");
    fixture.put(&ada, &at, &largest).await;
    assert_eq!(fixture.text(&ada, &at).await.expect("it is there").len(), largest.len());
    let edit = ChangeRequest::Edit { at: at.clone(), old: largest, new: over };
    assert_eq!(name(&fixture.change(&ada, edit).await), "TooLarge");
    let message = Some("x".repeat(limits::MESSAGE_BYTES_MAX + 1));
    let change = ChangeRequest::MakeFolder { at: on(&own("ada"), "talk") };
    let refused = fixture.entries.change(&ada, change, Attribution { message, ..by(1) }).await;
    assert_eq!(name(&refused), "TooLarge");
    let late = ChangeRequest::MakeFolder { at: on(&own("ada"), "late") };
    assert_eq!(name(&fixture.entries.change(&ada, late, by(u64::MAX)).await), "TooLarge");
}
