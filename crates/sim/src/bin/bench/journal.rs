//! How many steps a second the journal takes from many writers at once.
//!
//! A step is what every effect costs the journal: its `Started` on disk, and then
//! its `Settled` on disk, each an append that is waited for.

use outrigger_agent::{
    Amounts, Event, Outcome as Effect, Place, Product, Seq, SessionId, Status, ToolOutput,
};
use outrigger_store::{Database, DatabaseAddress, Journal, SessionSummary, Settings};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::JoinSet;

use crate::error::{ErrorContext, Outcome};
use crate::figure::Figure;
use crate::home::{self, Home};
use crate::sizes;

/// One sample a batch.
pub(crate) async fn measure() -> Outcome<Figure> {
    let home = Home::new()?;
    let opened =
        Database::open(&home::store(home.path()), &DatabaseAddress::Sqlite, Settings::default())
            .await;
    let store = Arc::new(opened.doing("opening the store")?);
    let mut samples = Vec::with_capacity(sizes::BATCHES);
    for batch in 0..sizes::BATCHES {
        let begun = Instant::now();
        let mut writers = JoinSet::new();
        for writer in 0..sizes::WRITERS {
            writers.spawn(write(Arc::clone(&store), writer, batch as u64));
        }
        while let Some(written) = writers.join_next().await {
            written.doing("writing the journal")??;
        }
        let steps = sizes::WRITERS * sizes::STEPS_PER_BATCH;
        samples.push(steps as f64 / begun.elapsed().as_secs_f64());
    }
    store.close().await;
    Ok(Figure::of("journal/steps_per_s", "1/s", samples))
}

/// The steps of one writer in one batch, each at its place in the session.
async fn write(store: Arc<Database>, writer: u64, batch: u64) -> Outcome<()> {
    let session = SessionId::new(format!("writer-{writer}")).expect("digits are plain");
    let mut after = Seq(batch * sizes::STEPS_PER_BATCH * 2);
    for _ in 0..sizes::STEPS_PER_BATCH {
        let effect = after.next();
        for event in [[started(&session, effect)], [settled(effect)]] {
            let status = Some("running".to_owned());
            let summary = SessionSummary { status, ..SessionSummary::default() };
            let appended = store.append(&session, after, 1_700_000_000_000, &event, summary);
            after = appended.await.doing("appending to the journal")?;
        }
    }
    Ok(())
}

pub(crate) fn started(session: &SessionId, effect: Seq) -> Event {
    let place = Place {
        sandbox: "work".to_owned(),
        generation: "0123456789abcdef0123456789abcdef".to_owned(),
        exec: session.effect(effect),
    };
    let reserved = Amounts { steps: 1, ..Amounts::default() };
    Event::Started { effect, attempt: 1, reserved, place: Some(place) }
}

pub(crate) fn settled(effect: Seq) -> Event {
    let text = format!("step {effect}\n[exit code 0]");
    let output = ToolOutput {
        status: Status::Ok,
        text,
        exit_code: Some(0),
        hidden_bytes: 0,
        labels: BTreeSet::new(),
    };
    let outcome = Effect::Done(Product::Output(output));
    let spent = Amounts { steps: 1, ..Amounts::default() };
    Event::Settled { effect, outcome, spent, estimated: false }
}
