//! What every home of a journal and of blobs must do. Each implementation runs
//! it against an empty store; a failure panics with what was expected.
//!
//! Must never look behind the ports.

mod accounts;
mod entries;
mod keys;
mod secrets;

use std::io::{Cursor, Read};
use std::sync::Arc;

use futures_util::future::join_all;
use outrigger_agent::{Author, Digest, Event, Message, Record, Seq, SessionId, TurnEnd};

use crate::{
    Before, Blobs, CachedSnapshot, Error, Journal, SessionSnapshot, SessionSummary, StoredBlob,
    limits, load_all,
};

pub use accounts::accounts;
pub use entries::entries;
pub use keys::keys;
pub use secrets::secrets;

/// Appenders that run at the same time.
const APPENDERS: usize = 50;

/// Runs all checks of the journal port.
///
/// # Panics
/// Where the journal does not conform.
pub async fn journal(journal: &dyn Journal) {
    round_trip(journal).await;
    fence(journal).await;
    one_winner(journal).await;
    appenders_in_one_session(journal).await;
    appenders_in_many_sessions(journal).await;
    pages(journal).await;
    large_events(journal).await;
    unknown_session(journal).await;
    snapshots(journal).await;
    listing(journal).await;
}

/// Runs all checks of the blob port.
///
/// # Panics
/// Where the blobs do not conform.
pub async fn blobs(blobs: &dyn Blobs) {
    let small = b"small".to_vec();
    let digest = blobs.put(small.clone()).await.expect("a blob is stored");
    assert_eq!(digest, Digest::of(&small), "a blob's name is its SHA-256");
    assert_eq!(blobs.put(small.clone()).await.expect("stored again"), digest);
    assert_eq!(blobs.get(&digest).await.expect("it is there"), small);
    let empty = blobs.put(Vec::new()).await.expect("an empty blob is one too");
    assert_eq!(blobs.get(&empty).await.expect("it is there"), b"");

    let large: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    let stored = blobs.put_from(Box::new(Cursor::new(large.clone()))).await.expect("stored");
    assert_eq!(stored, StoredBlob { digest: Digest::of(&large), bytes: large.len() as u64 });
    let mut reader = blobs.open(&stored.digest).await.expect("it is there");
    let mut read = Vec::new();
    reader.read_to_end(&mut read).expect("it is whole");
    assert!(read == large, "a streamed blob comes back as it was");

    let missing = Digest::of(b"never stored");
    let got = blobs.get(&missing).await;
    assert!(matches!(got, Err(Error::NotFound { .. })), "a missing blob is not found: {got:?}");
    let opened = blobs.open(&missing).await.map(drop);
    assert!(matches!(opened, Err(Error::NotFound { .. })), "nor opened: {opened:?}");
}

fn session(name: &str) -> SessionId {
    SessionId::new(name).expect("the suite's names are plain")
}

fn said(text: impl Into<String>) -> Event {
    let author = Author::Person("person:conformance".to_owned());
    Event::Said(Arc::new(Message::new(author, text.into())))
}

async fn append(
    journal: &dyn Journal,
    session: &SessionId,
    after: u64,
    events: Vec<Event>,
) -> Result<Seq, Error> {
    journal
        .append(session, Seq(after), 1_000 + after.min(10_000), &events, SessionSummary::default())
        .await
}

async fn everything(journal: &dyn Journal, session: &SessionId) -> Vec<Record> {
    let mut records = Vec::new();
    let loaded = load_all(journal, session, Seq(0), |record| records.push(record)).await;
    loaded.expect("what was appended can be loaded");
    records
}

async fn round_trip(journal: &dyn Journal) {
    let session = session("round-trip");
    let events = vec![said("quotes \" and \u{1f6f6} and \0"), Event::TurnEnded(TurnEnd::Answered)];
    let last = append(journal, &session, 0, events.clone()).await.expect("a new session");
    assert_eq!(last, Seq(2), "append gives the place of the last event");
    let last = append(journal, &session, 2, vec![said("more")]).await.expect("it goes on");
    assert_eq!(last, Seq(3));
    assert_eq!(journal.head(&session).await.expect("it has a head"), Seq(3));

    let record = |seq, at_ms, event| Record { seq: Seq(seq), at_ms, event };
    let [first, second] = <[Event; 2]>::try_from(events).expect("there are two");
    let expected =
        [record(1, 1_000, first), record(2, 1_000, second), record(3, 1_002, said("more"))];
    assert_eq!(everything(journal, &session).await, expected);
    let page = journal.load(&session, Seq(2)).await.expect("from the middle");
    assert_eq!((page.records.as_slice(), page.more_after), (&expected[2..], None));
    for after in [3, 4, u64::MAX] {
        let page = journal.load(&session, Seq(after)).await.expect("nothing is new");
        assert_eq!((page.records.len(), page.more_after), (0, None));
    }
    let verified = journal.verify(&session).await.expect("it is untouched");
    assert_eq!(verified.head, Seq(3));
}

async fn fence(journal: &dyn Journal) {
    let session = session("fence");
    append(journal, &session, 0, vec![said("1"), said("2")]).await.expect("a new session");
    for (after, count) in [(0, 1), (1, 1), (3, 1), (u64::MAX, 1), (1, 0)] {
        let refused = append(journal, &session, after, vec![said("late"); count]).await;
        match refused {
            Err(Error::Conflict { expected, found, .. }) => {
                assert_eq!((expected, found), (Seq(after), Seq(2)));
            }
            other => panic!("an append after {after} must conflict, and was {other:?}"),
        }
    }
    assert_eq!(append(journal, &session, 2, Vec::new()).await.expect("in place"), Seq(2));
    let many = vec![said("x"); limits::APPEND_EVENTS_MAX + 1];
    let refused = append(journal, &session, 2, many).await;
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "a limit holds: {refused:?}");
    assert_eq!(everything(journal, &session).await.len(), 2, "a refused append changes nothing");
}

async fn one_winner(journal: &dyn Journal) {
    let session = session("one-winner");
    let attempt = |n: usize| append(journal, &session, 0, vec![said(format!("{n}")), said("b")]);
    let session = &session;
    let results = join_all((0..APPENDERS).map(attempt)).await;
    let won: Vec<usize> = (0..APPENDERS).filter(|&n| results[n].is_ok()).collect();
    assert_eq!(won.len(), 1, "exactly one append of a place wins");
    let records = everything(journal, session).await;
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].event, said(format!("{}", won[0])));
}

async fn appenders_in_one_session(journal: &dyn Journal) {
    let session = session("one-session");
    let insist = async |n: usize| {
        let mut after = 0;
        loop {
            match append(journal, &session, after, vec![said(format!("{n}"))]).await {
                Ok(seq) => return seq,
                Err(Error::Conflict { found, .. }) => after = found.0,
                Err(other) => panic!("appender {n} failed: {other:?}"),
            }
        }
    };
    let places = join_all((0..APPENDERS).map(insist)).await;
    let records = everything(journal, &session).await;
    assert_eq!(records.len(), APPENDERS);
    for (n, place) in places.into_iter().enumerate() {
        let index = usize::try_from(place.0 - 1).expect("it is a small number");
        assert_eq!(records[index].event, said(format!("{n}")), "each event is where it was told");
    }
    journal.verify(&session).await.expect("the chain holds");
}

async fn appenders_in_many_sessions(journal: &dyn Journal) {
    let work = async |n: usize| {
        let session = session(&format!("many-{n}"));
        for after in 0..4 {
            let events = vec![said(format!("{n}: {after}"))];
            append(journal, &session, after, events).await.expect("nobody else is in it");
        }
        journal.verify(&session).await.expect("the chain holds").head
    };
    let heads = join_all((0..APPENDERS).map(work)).await;
    assert!(heads.iter().all(|head| *head == Seq(4)));
}

async fn pages(journal: &dyn Journal) {
    let session = session("pages");
    let total = 2 * limits::PAGE_EVENTS_MAX + 100;
    for after in (0..total).step_by(limits::APPEND_EVENTS_MAX) {
        let until = total.min(after + limits::APPEND_EVENTS_MAX);
        let events = (after..until).map(|n| said(format!("{n}"))).collect();
        append(journal, &session, after as u64, events).await.expect("it goes on");
    }
    let first = journal.load(&session, Seq(0)).await.expect("a page");
    assert_eq!(first.records.len(), limits::PAGE_EVENTS_MAX, "a page has a limit");
    assert_eq!(first.more_after, Some(Seq(limits::PAGE_EVENTS_MAX as u64)));
    let records = everything(journal, &session).await;
    assert_eq!(records.len(), total);
    for (n, record) in records.iter().enumerate() {
        assert_eq!(record.seq, Seq(n as u64 + 1));
        assert_eq!(record.event, said(format!("{n}")));
    }
}

async fn large_events(journal: &dyn Journal) {
    let session = session("large");
    let sizes = [limits::PAYLOAD_INLINE_BYTES_MAX - 200, limits::PAYLOAD_INLINE_BYTES_MAX, 1 << 20];
    let events: Vec<Event> = sizes.iter().map(|&size| said("x".repeat(size))).collect();
    append(journal, &session, 0, events.clone()).await.expect("large events are possible");
    let loaded: Vec<Event> =
        everything(journal, &session).await.into_iter().map(|r| r.event).collect();
    assert!(loaded == events, "large events come back as they were");
    journal.verify(&session).await.expect("the chain holds");
}

async fn unknown_session(journal: &dyn Journal) {
    let nobody = session("nobody");
    assert_eq!(journal.head(&nobody).await.expect("asking is no error"), Seq(0));
    let loaded = journal.load(&nobody, Seq(0)).await;
    assert!(matches!(loaded, Err(Error::NotFound { .. })), "it is not found: {loaded:?}");
    let verified = journal.verify(&nobody).await;
    assert!(matches!(verified, Err(Error::NotFound { .. })), "it is not found: {verified:?}");
    let refused = append(journal, &nobody, 7, vec![said("x")]).await;
    assert!(matches!(refused, Err(Error::Conflict { found: Seq(0), .. })), "{refused:?}");
    assert_eq!(journal.snapshot(&nobody, 1).await.expect("no error"), CachedSnapshot::Missing);
}

async fn snapshots(journal: &dyn Journal) {
    let session = session("snapshots");
    let make =
        |seq, version| SessionSnapshot { seq: Seq(seq), version, state: vec![b'{', 0, 255, b'}'] };
    let refused = journal.keep_snapshot(&session, make(1, 1)).await;
    assert!(matches!(refused, Err(Error::NotFound { .. })), "no event is there: {refused:?}");
    append(journal, &session, 0, vec![said("1"), said("2"), said("3")]).await.expect("new");
    assert_eq!(journal.snapshot(&session, 1).await.expect("no error"), CachedSnapshot::Missing);
    for place in [0, 4] {
        let refused = journal.keep_snapshot(&session, make(place, 1)).await;
        assert!(matches!(refused, Err(Error::NotFound { .. })), "no event {place}: {refused:?}");
    }
    journal.keep_snapshot(&session, make(2, 1)).await.expect("it is kept");
    let found = journal.snapshot(&session, 1).await.expect("no error");
    assert_eq!(found.usable(), Some(make(2, 1)));
    let found = journal.snapshot(&session, 2).await.expect("no error");
    assert_eq!(found, CachedSnapshot::OtherVersion { found: 1 });
    journal.keep_snapshot(&session, make(1, 1)).await.expect("an older one is no error");
    let found = journal.snapshot(&session, 1).await.expect("no error");
    assert_eq!(found.usable(), Some(make(2, 1)), "the newest stays");
    journal.keep_snapshot(&session, make(3, 2)).await.expect("it is kept");
    let found = journal.snapshot(&session, 2).await.expect("no error");
    assert_eq!(found.usable(), Some(make(3, 2)));
}

async fn listing(journal: &dyn Journal) {
    // Later than every other session of the suite, so that these come first.
    let start = 1 << 40;
    let title = |text: &str| SessionSummary {
        title: Some(text.to_owned()),
        status: None,
        ..SessionSummary::default()
    };
    for (n, name) in [(0, "list-a"), (1, "list-b"), (1, "list-c")] {
        let summary = title(&format!("about {name}"));
        let (session, events) = (session(name), vec![said("x")]);
        let appended = journal.append(&session, Seq(0), start + n, &events, summary).await;
        appended.expect("a new session");
    }
    let status =
        SessionSummary { status: Some("answered".to_owned()), ..SessionSummary::default() };
    let first = session("list-a");
    journal.append(&first, Seq(1), start + 9, &[said("y")], status).await.expect("it goes on");
    let rows = journal.sessions(None, 2).await.expect("a listing");
    for row in &rows {
        let one = journal.session(&row.session).await.expect("one of them");
        assert_eq!(one.as_ref(), Some(row));
    }
    let nobody = SessionId::new("nobody").expect("a name");
    assert_eq!(journal.session(&nobody).await.expect("none"), None);
    let names: Vec<_> = rows.iter().map(|row| row.session.as_str()).collect();
    assert_eq!(names, ["list-c", "list-b"], "newest first, then by name");
    let before = Before::from(&rows[1]);
    let rows = journal.sessions(Some(before), 1).await.expect("the next page");
    let row = rows.first().expect("the listing goes on");
    assert_eq!((row.session.as_str(), row.head), ("list-a", Seq(2)));
    assert_eq!((row.created_at_ms, row.last_at_ms), (start, start + 9));
    assert_eq!((row.title.as_str(), row.status.as_str()), ("about list-a", "answered"));
    let cut = title(&"\u{e9}".repeat(limits::TITLE_BYTES_MAX));
    journal.append(&first, Seq(2), start, &[said("z")], cut).await.expect("it goes on");
    let rows = journal.sessions(None, 3).await.expect("a listing");
    assert_eq!(rows[2].title, "\u{e9}".repeat(limits::TITLE_BYTES_MAX / 2));
}
