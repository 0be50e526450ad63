//! What every home of entries must do with labels: wash none off.

use std::collections::BTreeSet;

use outrigger_policy::Scope;

use super::fixture::{Fixture, by, group, name, on, own, scope};
use crate::entries::{
    Attribution, ChangeRequest, Contents, Entries, EntryAddress, EntryFile, EntryPrecondition,
    Error,
};
use crate::limits;

fn labelled(labels: &[&str]) -> Attribution {
    Attribution { labels: labels.iter().map(|label| (*label).to_owned()).collect(), ..by(3_000) }
}

/// A text with labels goes every way that there is.
pub(super) async fn labels_are_kept(fixture: &Fixture<'_>) {
    let (ada, bob) = (scope("ada"), scope("bob"));
    let (own, ops) = (own("ada"), group("ops"));
    let at = |path| on(&own, path);
    let write = |path, expected, text: &str| ChangeRequest::Write {
        at: at(path),
        expected,
        file: EntryFile::of(text),
    };
    let moved = |from, to, expected| ChangeRequest::Move { from, revision: Some(1), to, expected };
    let web = labelled(&["from:web", "untrusted"]);
    let first = write("lab/web", EntryPrecondition::Absent, "from the web");
    fixture.entries.change(&ada, first, web.clone()).await.expect("nothing is there");
    for (change, path) in [
        (write("lab/web", EntryPrecondition::Revision(1), "replaced"), "lab/web"),
        (ChangeRequest::Edit { at: at("lab/web"), old: "repl".into(), new: "p".into() }, "lab/web"),
        (
            ChangeRequest::Revert {
                at: at("lab/web"),
                to: 1,
                expected: EntryPrecondition::Revision(3),
            },
            "lab/web",
        ),
    ] {
        fixture.change(&ada, change).await.expect("it is as expected");
        assert_eq!(carried(fixture.entries, &ada, &at(path)).await, "from:web untrusted");
    }
    // What is made from it elsewhere, what is moved over something else, and in a folder.
    let derived_from = Some((at("lab/web"), 1));
    let file = EntryFile { derived_from, ..EntryFile::of("a copy") };
    let change =
        ChangeRequest::Write { at: at("lab/copy"), expected: EntryPrecondition::Absent, file };
    fixture.change(&ada, change).await.expect("nothing is there");
    fixture.put(&ada, &at("lab/clean"), "clean").await;
    let over = moved(at("lab/copy"), at("lab/clean"), EntryPrecondition::Revision(1));
    fixture.change(&ada, over).await.expect("both are as expected");
    assert_eq!(carried(fixture.entries, &ada, &at("lab/clean")).await, "from:web untrusted");
    fixture.put(&ada, &at("lab/plain"), "plain").await;
    let onto = moved(at("lab/plain"), at("lab/web"), EntryPrecondition::Revision(4));
    fixture.change(&ada, onto).await.expect("both are as expected");
    assert_eq!(carried(fixture.entries, &ada, &at("lab/web")).await, "from:web untrusted");
    let (from, to) = (at("lab"), at("bal"));
    let change =
        ChangeRequest::Move { from, revision: None, to, expected: EntryPrecondition::Absent };
    fixture.change(&ada, change).await.expect("nothing is there");
    assert_eq!(carried(fixture.entries, &ada, &at("bal/web")).await, "from:web untrusted");

    // What was removed is gone: a text begins anew.
    fixture
        .change(&ada, ChangeRequest::Remove { at: at("bal/web"), revision: 1 })
        .await
        .expect("there");
    fixture.put(&ada, &at("bal/web"), "mine").await;
    assert_eq!(carried(fixture.entries, &ada, &at("bal/web")).await, "");

    // Whose text it was stays known when another one goes on with it.
    let shared = on(&ops, "lab/shared");
    fixture.put(&bob, &shared, "bob\n").await;
    let edit =
        ChangeRequest::Edit { at: shared.clone(), old: "bob".into(), new: "bob, ada".into() };
    fixture.change(&ada, edit).await.expect("it is there once");
    assert_eq!(carried(fixture.entries, &ada, &shared).await, "from:person:bob others");

    // A listing says what it brings, to whom it brings it.
    let listed = async |who| {
        let listed = fixture.entries.list(who, &on(&ops, "lab"), false, None).await;
        let labels = listed.expect("it is a folder").labels;
        labels.values().flatten().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(listed(&ada).await, "from:person:bob others");
    assert_eq!(listed(&bob).await, "from:person:ada from:person:bob others");
}

/// What would carry more than a version may is refused, and nothing is left of it.
pub(super) async fn labels_have_a_limit(fixture: &Fixture<'_>) {
    let (ada, at) = (scope("ada"), on(&own("ada"), "new/many"));
    let write = |expected, text: &str| ChangeRequest::Write {
        at: at.clone(),
        expected,
        file: EntryFile::of(text),
    };
    let many = |from: usize, to: usize| Attribution {
        labels: (from..to).map(|number| format!("from:{number}")).collect::<BTreeSet<_>>(),
        ..by(3_000)
    };
    let most = limits::LABELS_MAX;
    let first = write(EntryPrecondition::Absent, "many");
    fixture.entries.change(&ada, first, many(0, most)).await.expect("just so many");
    let more = write(EntryPrecondition::Revision(1), "more");
    let refused = fixture.entries.change(&ada, more, many(most, most + 1)).await;
    assert_eq!(name(&refused), "TooLarge");
    assert!(matches!(refused, Err(Error::TooLarge { .. })));
    assert_eq!(fixture.text(&ada, &at).await.expect("it stays"), "many");
}

/// The labels of what stands at a place.
async fn carried(entries: &dyn Entries, who: &Scope, at: &EntryAddress) -> String {
    let Contents { version, .. } = entries.read(who, at, None).await.expect("it is there");
    version.by.labels.into_iter().collect::<Vec<_>>().join(" ")
}
