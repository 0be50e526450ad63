//! How long an audit of a large store takes: every event's hash, every link, every
//! entry and checkpoint of the log.

use outrigger_agent::{Seq, SessionId};
use outrigger_store::{
    Audit, AuditRequest, Cover, Database, DatabaseAddress, EventText, Journal, SessionSummary,
    Settings,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::JoinSet;

use crate::error::{Error, ErrorContext, Outcome};
use crate::figure::Figure;
use crate::home::{self, Home};
use crate::{journal, sizes};

/// Fills a store and audits it.
pub(crate) async fn measure(progress: impl Fn(&str)) -> Outcome<Vec<Figure>> {
    let home = Home::new()?;
    let directory = home::store(home.path());
    let events = sizes::AUDIT_SESSIONS * sizes::AUDIT_TURNS * sizes::AUDIT_TURN_EVENTS;
    progress(&format!("{events} events of {} sessions are written", sizes::AUDIT_SESSIONS));
    fill(&directory).await?;
    let (mut whole, mut proofs) = (Vec::new(), Vec::new());
    for _ in 0..sizes::AUDIT_TIMES {
        progress("the audit of all of it");
        let audit = Audit::open(&directory, &DatabaseAddress::Sqlite)
            .await
            .doing("opening the store for the audit")?;
        let begun = Instant::now();
        let report =
            audit.verify(&AuditRequest::default(), &Arc::default()).await.doing("the audit")?;
        whole.push(begun.elapsed().as_secs_f64());
        if report.events != events || !report.is_clean() {
            return Err(Error::Astray(format!("the audit says {report:?}")));
        }
        let begun = Instant::now();
        let proof = audit.prove(&session(0), Some(Seq(1)), EventText::Included).await;
        proof.doing("a proof")?;
        proofs.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let per_s = whole.iter().map(|seconds| events as f64 / seconds).collect();
    Ok(vec![
        Figure::of("audit/all", "s", whole),
        Figure::of("audit/events_per_s", "1/s", per_s),
        Figure::of("audit/proof", "ms", proofs),
    ])
}

/// Turns of all sessions in turn, so that the rows of a session lie far apart.
async fn fill(directory: &Path) -> Outcome<()> {
    let opened = Database::open(directory, &DatabaseAddress::Sqlite, Settings::default()).await;
    let store = Arc::new(opened.doing("opening the store")?);
    let mut writers = JoinSet::new();
    for writer in 0..sizes::AUDIT_WRITERS {
        let store = Arc::clone(&store);
        writers.spawn(async move {
            for turn in 0..sizes::AUDIT_TURNS {
                for number in (writer..sizes::AUDIT_SESSIONS).step_by(sizes::AUDIT_WRITERS as usize)
                {
                    write(&store, &session(number), turn).await?;
                }
            }
            Ok(())
        });
    }
    while let Some(written) = writers.join_next().await {
        written.doing("writing the journal")??;
    }
    store.close().await;
    Ok(())
}

/// A turn in a few appends, the last of which lets the session rest.
async fn write(store: &Database, session: &SessionId, turn: u64) -> Outcome<()> {
    let mut after = Seq(turn * sizes::AUDIT_TURN_EVENTS);
    let end = after.0 + sizes::AUDIT_TURN_EVENTS;
    while after.0 < end {
        let pair =
            |effect: u64| [journal::started(session, Seq(effect)), journal::settled(Seq(effect))];
        let count = sizes::AUDIT_APPEND_EVENTS.min(end - after.0);
        let events: Vec<_> = (after.0..).flat_map(pair).take(count as usize).collect();
        let cover = if after.0 + count == end { Cover::Now } else { Cover::Soon };
        let summary = SessionSummary { cover, ..SessionSummary::default() };
        let appended = store.append(session, after, 1_700_000_000_000, &events, summary);
        after = appended.await.doing("appending to the journal")?;
    }
    Ok(())
}

fn session(number: u64) -> SessionId {
    SessionId::new(format!("session-{number}")).expect("digits are plain")
}
