//! Sessions whose driver died.
//!
//! Owns that nobody is told that a session runs when nothing drives it, and that what it
//! reserved does not stand in the way of others for ever. A driver holds a lease that ends
//! with its process: that is how it is known.

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use outrigger_agent::{Amounts, SessionId, State};
use outrigger_engine::Engine;
use outrigger_store::{LeasePurpose, SessionRow};
use std::ops::ControlFlow;

use crate::compose::Store;
use crate::exit::{Failure, Kind, Outcome};
use crate::{limits, session};

/// How a session stands whose turn was cut off: `outrigger sessions resume` goes on with it.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// How a session stands, in a word or two: as its journal says, unless its driver died.
pub(crate) async fn standing(store: &Store, row: &SessionRow) -> Outcome<String> {
    if row.status != "running" {
        return Ok(row.status.clone());
    }
    let root = if session::is_below(&row.session) {
        match session::root(&*store.journal, &row.session).await {
            Err(failure) if failure.kind == Kind::NotFound => row.session.clone(),
            root => root?,
        }
    } else {
        row.session.clone()
    };
    let driven = store.database.is_leased(&root).await?;
    Ok(if driven { row.status.clone() } else { INTERRUPTED.to_owned() })
}

/// Gives back what sessions keep reserved in accounts whose driver died, as far as it is
/// certain that nothing of it can be spent any more. Gives those that still keep some: a
/// command of theirs may run until its deadline.
pub(crate) async fn release(store: &Store, engine: &Engine) -> Outcome<Vec<SessionId>> {
    let all = stream::iter(in_turn(store).await?);
    let all = all.map(|row| async move {
        let keeps = keeps(store, engine, &row).await?;
        Ok(keeps.then_some(row.session))
    });
    // Each of them waits for the disk.
    let kept = all.buffer_unordered(limits::SERVE_BEGIN_AT_ONCE);
    kept.try_filter_map(async |kept| Ok(kept)).try_collect().await
}

/// Gives back what one of them keeps, and gives whether it still keeps some.
async fn keeps(store: &Store, engine: &Engine, row: &SessionRow) -> Outcome<bool> {
    // Held while it is looked at, so that nobody begins to drive it meanwhile.
    let Some(_lease) = store.database.lease(&row.session, LeasePurpose::Look).await? else {
        return Ok(false);
    };
    let charged = store.accounts.charged(&row.session).await?;
    if charged.is_none_or(|charged| charged.reserved == Amounts::default()) {
        return Ok(false);
    }
    // What waits for a person goes on with what it has.
    if row.status == State::WAITS {
        return Ok(true);
    }
    outrigger_engine::release(engine, &row.session).await.map_err(Failure::from)
}

/// Sessions in the middle of a turn.
pub(crate) async fn in_turn(store: &Store) -> Outcome<Vec<SessionRow>> {
    let mut rows = Vec::new();
    session::walk(&*store.journal, |row| {
        if row.status == "running" || row.status == State::WAITS {
            rows.push(row);
        }
        ControlFlow::Continue(())
    })
    .await?;
    Ok(rows)
}
