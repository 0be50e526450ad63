//! The last session of a directory: one that a person began there and that was not ended.

use outrigger_agent::{Event, Record, Seq};
use outrigger_store::{Journal, SessionRow};
use std::ops::ControlFlow;
use std::path::Path;

use crate::exit::Outcome;
use crate::{limits, session};

/// The newest one that began with that directory.
pub(super) async fn of(journal: &dyn Journal, dir: &Path) -> Outcome<Option<SessionRow>> {
    let mut rows = Vec::new();
    session::walk(journal, |row| {
        if !session::is_below(&row.session) {
            rows.push(row);
        }
        match rows.len() < limits::LAST_SEARCHED_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })
    .await?;
    for row in rows.into_iter().filter(|row| row.status != "cancelled") {
        let page = journal.load(&row.session, Seq::default()).await?;
        if page.records.first().is_some_and(|record| began_in(record, dir)) {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

fn began_in(first: &Record, dir: &Path) -> bool {
    match &first.event {
        Event::Opened(spec) => {
            spec.workspace.as_ref().is_some_and(|it| Path::new(&it.source) == dir)
        }
        _ => false,
    }
}
