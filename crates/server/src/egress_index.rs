//! Where in the journals it stands what sandboxes reached: kept as long as nothing is appended,
//! so that a session that reached nothing costs nothing the next time.

use outrigger_agent::{EgressReport, Event, Seq, SessionId};
use outrigger_store::{Journal, SessionRow};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::{RequestError, limits};

/// The reports of a session, by their places.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReportPlaces {
    head: Seq,
    /// Whose session it is.
    pub(crate) person: String,
    /// In order.
    pub(crate) places: Vec<Seq>,
}

/// A report, where and when it was noted.
pub(crate) struct PlacedReport {
    pub(crate) seq: Seq,
    pub(crate) at_ms: u64,
    pub(crate) report: Arc<EgressReport>,
}

/// The reports of sessions that were looked at.
#[derive(Debug, Default)]
pub(crate) struct EgressIndex {
    known: Mutex<HashMap<SessionId, ReportPlaces>>,
}

impl EgressIndex {
    fn table(&self) -> MutexGuard<'_, HashMap<SessionId, ReportPlaces>> {
        self.known.lock().expect("nobody panics while they hold the table")
    }

    /// Those of a session, if nothing was appended since they were looked at.
    pub(crate) fn known(&self, row: &SessionRow) -> Option<ReportPlaces> {
        self.table().get(&row.session).filter(|known| known.head >= row.head).cloned()
    }

    /// Those of a session, read where they are not known.
    pub(crate) async fn read(
        &self,
        journal: &dyn Journal,
        session: &SessionId,
    ) -> Result<ReportPlaces, RequestError> {
        let mut all = self.table().get(session).cloned().unwrap_or_default();
        loop {
            let page = journal.load(session, all.head).await?;
            for record in &page.records {
                all.head = record.seq;
                match &record.event {
                    Event::Opened(spec) => all.person.clone_from(&spec.principal),
                    Event::Reached(_) => all.places.push(record.seq),
                    _ => {}
                }
            }
            if page.more_after.is_none() {
                break;
            }
        }
        let mut known = self.table();
        if known.len() >= limits::LISTED_MAX {
            known.clear();
        }
        known.insert(session.clone(), all.clone());
        Ok(all)
    }
}

/// The reports of these places, which are in order, the newest first.
pub(crate) async fn reports(
    journal: &dyn Journal,
    session: &SessionId,
    places: &[Seq],
) -> Result<Vec<PlacedReport>, RequestError> {
    let mut found = Vec::new();
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return Ok(found) };
    let mut after = Some(Seq(first.0.saturating_sub(1)));
    while let Some(from) = after.filter(|after| after < last) {
        let page = journal.load(session, from).await?;
        after = page.more_after;
        for record in page.records.into_iter().filter(|record| record.seq <= *last) {
            if let Event::Reached(report) = record.event {
                found.push(PlacedReport { seq: record.seq, at_ms: record.at_ms, report });
            }
        }
    }
    found.reverse();
    Ok(found)
}
