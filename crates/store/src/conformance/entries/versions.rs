//! What every home of entries must do with versions that are not the newest: keep them,
//! compare them, find none of their words, and destroy them for good.

use outrigger_agent::{Seq, SessionId};
use outrigger_policy::{MemoryKind, MemoryScope, Principal};

use super::fixture::{Fixture, by, group, name, on, own, scope};
use crate::entries::{
    Attribution, ChangeRequest, ContentState, DerivativePolicy, EntryAddress, EntryFile, EntryPath,
    EntryPrecondition, Error, Reach, Search, Settings, Which, blame,
};

pub(super) async fn reverts_and_blames(fixture: &Fixture<'_>) {
    let (ada, bob, at) = (scope("ada"), scope("bob"), on(&group("ops"), "poem"));
    fixture.put(&ada, &at, "roses\nviolets\n").await;
    fixture.set_text(&bob, &at, 1, "roses\ntulips\nviolets\n").await;
    fixture.set_text(&ada, &at, 2, "tulips\nviolets\nlilies").await;
    let to = on(&group("ops"), "moved/poem");
    let change = ChangeRequest::Move {
        from: at.clone(),
        revision: Some(3),
        to: to.clone(),
        expected: EntryPrecondition::Absent,
    };
    fixture.change(&bob, change).await.expect("nothing is there");
    let lines = blame(fixture.entries, &ada, &to).await.expect("it is text");
    let told: Vec<_> = lines
        .iter()
        .map(|line| {
            format!("{}@{} {} {:?}", line.place.path, line.revision, line.author, line.line)
        })
        .collect();
    assert_eq!(
        told,
        [
            "poem@2 person:bob \"tulips\\n\"",
            "poem@1 person:ada \"violets\\n\"",
            "poem@3 person:ada \"lilies\""
        ]
    );

    let back = |expected| ChangeRequest::Revert { at: at.clone(), to: 1, expected };
    let early = fixture.change(&bob, back(EntryPrecondition::Revision(3))).await;
    assert_eq!(name(&early), "Conflict");
    let reverted = fixture.change(&bob, back(EntryPrecondition::Absent)).await.expect("it is gone");
    let version = reverted.version().expect("one was made");
    assert_eq!((version.revision, &version.derived_from), (5, &Some((at.clone(), 1))));
    assert_eq!(fixture.text(&ada, &at).await.expect("it is back"), "roses\nviolets\n");
    let wrong =
        ChangeRequest::Revert { at: at.clone(), to: 4, expected: EntryPrecondition::Revision(5) };
    assert_eq!(name(&fixture.change(&bob, wrong).await), "Absent");
}

pub(super) async fn words(fixture: &Fixture<'_>) {
    let (ada, memory_scope) = (scope("ada"), own("ada"));
    let at = |path| on(&memory_scope, path);
    fixture.put(&ada, &at("w/Zebra-facts.md"), "Stripes are \u{c9}t\u{e9} black").await;
    fixture.put(&ada, &at("w/other.md"), "the zebras eat grass, black and white").await;
    let both = ["memory/person:ada/w/Zebra-facts.md", "memory/person:ada/w/other.md"];
    for (words, expected) in [
        ("zebra", &both[..1]),
        ("zebra*", &both),
        ("ETE stripes", &both[..1]),
        ("\"black and\"", &both[1..]),
        ("\"and black\"", &[]),
        ("black NOT grass", &[]),
        ("w/other.md", &both[1..]),
    ] {
        assert_eq!(fixture.found(&ada, words).await, expected, "{words}");
    }
    for words in ["", "  ", "*", "\"\"", "( ) : - ^"] {
        let search = Search { words: words.to_owned(), memory_scopes: Vec::new(), limit: 9 };
        assert_eq!(name(&fixture.entries.search(&ada, &search).await), "Words", "{words}");
    }
    fixture.set_text(&ada, &at("w/other.md"), 1, "only lions now").await;
    assert_eq!(fixture.found(&ada, "zebra*").await, both[..1], "only newest versions are found");
    let remove = ChangeRequest::Remove { at: at("w/Zebra-facts.md"), revision: 1 };
    fixture.change(&ada, remove).await.expect("it is there");
    assert_eq!(fixture.found(&ada, "zebra*").await, [""; 0]);
    let search =
        Search { words: "lions".to_owned(), memory_scopes: vec![memory_scope.clone()], limit: 1 };
    let hits = fixture.entries.search(&ada, &search).await.expect("there is a word");
    assert_eq!(hits.len(), 1);
    assert_eq!((hits[0].snippet.as_str(), hits[0].node.revision), ("only lions now", 2));
}

/// A text, its copies by every way, and the same text that somebody else wrote.
pub(super) async fn redactions(fixture: &Fixture<'_>) {
    let (ada, bob, eve) = (scope("ada"), scope("bob"), scope("eve"));
    let secret = "the password is xyzzyplugh";
    let at = on(&group("ops"), "red/secret");
    fixture.put(&ada, &at, secret).await;
    fixture.set_text(&ada, &at, 1, "nothing here").await;
    let copy = on(&own("bob"), "red/copy");
    let file =
        EntryFile { derived_from: Some((at.clone(), 1)), ..EntryFile::of("it was xyzzyplugh") };
    let change =
        ChangeRequest::Write { at: copy.clone(), expected: EntryPrecondition::Absent, file };
    fixture.change(&bob, change).await.expect("nothing is there");
    let second = on(&own("bob"), "red/second");
    let (from, to) = (copy.clone(), second.clone());
    let change =
        ChangeRequest::Move { from, revision: Some(1), to, expected: EntryPrecondition::Absent };
    fixture.change(&bob, change).await.expect("it is there");
    let equal = on(&own("ada"), "red/equal");
    fixture.put(&ada, &equal, secret).await;
    let foreign = on(&own("eve"), "red/equal");
    fixture.put(&eve, &foreign, secret).await;

    let redact = |which, reach| ChangeRequest::Redact {
        at: at.clone(),
        which,
        reach,
        derived: DerivativePolicy::Leave,
        why: "a leak".to_owned(),
    };
    let missing = fixture.change(&bob, redact(Which::Revision(7), Reach::Named)).await;
    assert_eq!(name(&missing), "Absent");
    let done = fixture.change(&ada, redact(Which::Revision(1), Reach::Copies)).await;
    let done = done.expect("it is there");
    let told: Vec<_> = done.versions.iter().map(|version| version.place.to_string()).collect();
    assert_eq!(told, ["memory/person:ada/red/equal", "memory/group:ops/red/secret"]);
    assert_eq!(done.unseen, 2, "of Bob's own memory scope Ada learns no names");
    for (who, place, revision) in
        [(&ada, &at, Some(1)), (&bob, &copy, Some(1)), (&bob, &second, None), (&ada, &equal, None)]
    {
        let read = fixture.entries.read(who, place, revision).await;
        let Err(Error::Redacted(told)) = read else { panic!("{place}: {read:?}") };
        assert_eq!((told.why.as_str(), told.at_ms), ("a leak", 2_000));
    }
    assert_eq!(fixture.text(&eve, &foreign).await.expect("it is hers"), secret);
    assert_eq!(fixture.text(&ada, &at).await.expect("the newest is another"), "nothing here");
    assert_eq!(fixture.found(&bob, "xyzzyplugh").await, [""; 0]);
    assert_eq!(fixture.found(&eve, "xyzzyplugh").await.len(), 1);
    let versions = fixture.entries.history(&ada, &at, None).await.expect("the row stays");
    assert!(matches!(versions[1].kept, ContentState::Redacted(_)), "{versions:?}");
    assert_eq!(versions[1].author, Principal::Person("ada".to_owned()));
    let stat = fixture.entries.stat(&ada, &equal).await.expect("it is listed");
    assert!(stat.redacted && stat.revision == 1, "{stat:?}");

    fixture.change(&bob, redact(Which::All, Reach::Everywhere)).await.expect("it is there");
    assert_eq!(name(&fixture.text(&ada, &at).await), "Redacted");
    let versions = fixture.entries.history(&ada, &at, None).await.expect("the row stays");
    let by = versions.iter().map(|version| match &version.kept {
        ContentState::Redacted(redaction) => redaction.by.to_string(),
        kept => format!("{kept:?}"),
    });
    let by: Vec<_> = by.collect();
    assert_eq!(by, ["person:bob", "person:ada"], "who did it first did it");
    assert_eq!(name(&fixture.text(&eve, &foreign).await), "Redacted");
    what_is_redacted_can_be_replaced(fixture, &equal).await;
}

async fn what_is_redacted_can_be_replaced(fixture: &Fixture<'_>, equal: &EntryAddress) {
    let ada = scope("ada");
    let again = ChangeRequest::Move {
        from: equal.clone(),
        revision: Some(1),
        to: on(&own("ada"), "red/moved"),
        expected: EntryPrecondition::Absent,
    };
    fixture.change(&ada, again).await.expect("what is redacted can be moved");
    let moved = on(&own("ada"), "red/moved");
    assert_eq!(name(&fixture.text(&ada, &moved).await), "Redacted");
    fixture.set_text(&ada, &moved, 1, "and written anew").await;
    assert_eq!(fixture.text(&ada, &moved).await.expect("it is new"), "and written anew");
}

pub(super) async fn retention(fixture: &Fixture<'_>) {
    let ada = scope("ada");
    let memory_scope = MemoryScope { kind: MemoryKind::Skills, ..own("ada") };
    let at = on(&memory_scope, "kept");
    fixture.put(&ada, &at, "1").await;
    for revision in 1..5 {
        fixture.set_text(&ada, &at, revision, &format!("{}", revision + 1)).await;
    }
    let root = EntryAddress { memory_scope: memory_scope.clone(), path: EntryPath::ROOT };
    let prune = || fixture.change(&ada, ChangeRequest::Prune { at: root.clone(), keep: None });
    assert_eq!(prune().await.expect("nothing is set").versions, []);
    let mut settings = Settings::usual(&memory_scope);
    settings.keep_versions = Some(2);
    fixture.reviews.set(&ada, &memory_scope, settings.clone(), 1).await.expect("it is hers");
    let pruned = prune().await.expect("it is hers");
    let mut revisions: Vec<_> = pruned.versions.iter().map(|v| v.revision).collect();
    revisions.sort_unstable();
    assert_eq!(revisions, [1, 2, 3]);
    assert_eq!(name(&fixture.entries.read(&ada, &at, Some(3)).await), "Pruned");
    assert_eq!(fixture.entries.history(&ada, &at, None).await.expect("rows stay").len(), 5);
    settings.keep_ms = Some(100);
    fixture.reviews.set(&ada, &memory_scope, settings, 1).await.expect("it is hers");
    assert_eq!(prune().await.expect("it is hers").versions.len(), 1);
    assert_eq!(fixture.text(&ada, &at).await.expect("the newest stays"), "5");
    assert_eq!(prune().await.expect("it is hers").versions, []);
}

pub(super) async fn what_is_stale(fixture: &Fixture<'_>) {
    let (zoe, memory_scope) = (scope("zoe"), own("zoe"));
    for (path, review_by_ms) in [("b", Some(10)), ("a", Some(20)), ("c", None), ("d", Some(99))] {
        let file = EntryFile { review_by_ms, ..EntryFile::of("x") };
        let (at, expected) = (on(&memory_scope, path), EntryPrecondition::Absent);
        fixture.change(&zoe, ChangeRequest::Write { at, expected, file }).await.expect("it is new");
    }
    let stale = fixture.entries.stale(&zoe, &memory_scope, 20).await.expect("it is hers");
    let paths: Vec<_> = stale.entries.iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(paths, ["b", "a"]);
}

pub(super) async fn audits(fixture: &Fixture<'_>) {
    let (ada, session) = (scope("ada"), SessionId::new("audited").expect("plain"));
    let mut last = 0;
    for (seq, path) in (1..).zip(["audit/a", "audit/b"]) {
        let (at, expected) = (on(&own("ada"), path), EntryPrecondition::Absent);
        let change = ChangeRequest::Write { at, expected, file: EntryFile::of("x") };
        let by = Attribution { session: Some(session.clone()), seq: Some(Seq(seq)), ..by(1) };
        let changed = fixture.entries.change(&ada, change, by).await.expect("it is new");
        last = changed.version().expect("one was made").number;
    }
    let all = fixture.entries.changes_of(&session, 0).await.expect("there are some");
    let told: Vec<_> = all
        .iter()
        .map(|version| (version.place.path.to_string(), version.by.seq.map(|seq| seq.0)))
        .collect();
    let expected = [("audit", 1), ("audit/a", 1), ("audit/b", 2)];
    assert_eq!(told, expected.map(|(path, seq)| (path.to_owned(), Some(seq))));
    assert_eq!(fixture.entries.changes_of(&session, last).await.expect("none").len(), 0);
}
