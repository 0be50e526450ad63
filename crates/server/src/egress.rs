//! What sandboxes reached and what was refused to them, over all sessions that somebody sees.

use axum::Json;
use axum::extract::State as Extract;
use outrigger_agent::{Seq, SessionId};
use outrigger_api::limits::{PAGE_FLOWS_DEFAULT, PAGE_FLOWS_MAX};
use outrigger_api::{EgressInfo, EgressList, ProblemCode, VerdictKind};
use outrigger_policy::{AccessAction, AccessRights, SessionStanding};
use outrigger_store::Before;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::egress_index::{PlacedReport, ReportPlaces, reports};
use crate::input::QueryParams;
use crate::login::Person;
use crate::problems::ReadProblems;
use crate::{RequestError, Server, convert, limits};

/// Which of it.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EgressQuery {
    /// Of this session alone.
    session: Option<String>,
    /// Of this host, and of those whose names end with it.
    host: Option<String>,
    /// `permit`: only what passed; `forbid`: only what was refused.
    verdict: Option<VerdictKind>,
    /// How many, at most 200. There may be a few more, which were noted together.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Where a list goes on: in a session, before a place; then with the sessions before it.
struct Cursor {
    session: Before,
    seq: Seq,
}

impl Cursor {
    fn read(text: &str) -> Result<Self, RequestError> {
        let read = || {
            let mut parts = text.splitn(3, '.');
            let created_at_ms = parts.next()?.parse().ok()?;
            let session = SessionId::new(parts.next()?)?;
            let seq = Seq(parts.next()?.parse().ok()?);
            Some(Self { session: Before { created_at_ms, session }, seq })
        };
        read().ok_or_else(|| {
            let text = "`cursor` is none: give `next_cursor` of the page before, unchanged";
            RequestError::new(ProblemCode::InvalidRequest, text)
        })
    }

    fn write(&self) -> String {
        let Self { session: Before { created_at_ms, session }, seq } = self;
        format!("{created_at_ms}.{session}.{seq}")
    }
}

impl EgressQuery {
    fn wants(&self, info: &EgressInfo) -> bool {
        let host = info.flow.host.to_ascii_lowercase();
        let is_host = self.host.as_deref().is_none_or(|wanted| {
            let wanted = wanted.trim().trim_end_matches('.').to_ascii_lowercase();
            let above = host.strip_suffix(&wanted);
            above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
        });
        is_host && self.verdict.is_none_or(|verdict| verdict == info.verdict)
    }
}

/// What commands in sandboxes reached and what was refused to them, of all sessions that you see.
#[utoipa::path(get, path = "/v1/egress",
    operation_id = "list_egress", tag = "rules", params(EgressQuery), responses(
    (status = 200, body = EgressList),
    ReadProblems,
))]
pub(crate) async fn list(
    Extract(server): Extract<Server>,
    person: Person,
    QueryParams(query): QueryParams<EgressQuery>,
) -> Result<Json<EgressList>, RequestError> {
    let limit = query.limit.unwrap_or(PAGE_FLOWS_DEFAULT).clamp(1, PAGE_FLOWS_MAX) as usize;
    let cursor = query.cursor.as_deref().map(Cursor::read).transpose()?;
    let rights = server.rights(&person)?;
    let (data, reads) = (Vec::new(), 0);
    let mut page = EgressPage { server: &server, query: &query, limit, data, reads };
    let next = match &query.session {
        Some(name) => {
            let session = server.session(&person, name, AccessAction::View).await?;
            page.add_named(session, cursor).await?
        }
        None => page.add_all(&rights, cursor).await?,
    };
    Ok(Json(EgressList { data: page.data, next_cursor: next.as_ref().map(Cursor::write) }))
}

/// A page that is filled.
struct EgressPage<'a> {
    server: &'a Server,
    query: &'a EgressQuery,
    limit: usize,
    data: Vec<EgressInfo>,
    /// Journals that were read for it.
    reads: usize,
}

impl EgressPage<'_> {
    /// What there is of one session.
    async fn add_named(
        &mut self,
        session: SessionId,
        cursor: Option<Cursor>,
    ) -> Result<Option<Cursor>, RequestError> {
        let places = self.server.egress.read(&*self.server.parts.journal, &session).await?;
        let at = Before { created_at_ms: 0, session };
        let before = cursor.map_or(Seq(u64::MAX), |cursor| cursor.seq);
        let seq = self.add(&at.session, &places, before).await?;
        Ok(seq.map(|seq| Cursor { session: at, seq }))
    }

    /// What there is of all sessions that somebody sees, until the page is full or enough was
    /// read for it.
    async fn add_all(
        &mut self,
        rights: &AccessRights,
        cursor: Option<Cursor>,
    ) -> Result<Option<Cursor>, RequestError> {
        let Server { parts, egress, .. } = self.server;
        let mut last = match cursor {
            None => None,
            Some(Cursor { session: at, seq }) => {
                let known = parts.journal.session(&at.session).await?.is_some();
                if known && seq > Seq(0) && self.sees(rights, &at.session).await? {
                    let places = egress.read(&*parts.journal, &at.session).await?;
                    if let Some(seq) = self.add(&at.session, &places, seq).await? {
                        return Ok(Some(Cursor { session: at, seq }));
                    }
                }
                Some(at)
            }
        };
        loop {
            let rows = parts.journal.sessions(last, limits::LISTING_SESSIONS_MAX).await?;
            let is_last = rows.len() < limits::LISTING_SESSIONS_MAX;
            last = rows.last().map(Before::from);
            for row in &rows {
                let at = Before::from(row);
                let places = match egress.known(row) {
                    Some(places) => places,
                    None => {
                        self.reads += 1;
                        egress.read(&*parts.journal, &row.session).await?
                    }
                };
                if !places.places.is_empty() && self.sees(rights, &row.session).await? {
                    let seq = self.add(&row.session, &places, Seq(u64::MAX)).await?;
                    if let Some(seq) = seq {
                        return Ok(Some(Cursor { session: at, seq }));
                    }
                }
                if self.data.len() >= self.limit || self.reads >= limits::EGRESS_READS_MAX {
                    return Ok(Some(Cursor { session: at, seq: Seq(0) }));
                }
            }
            if is_last {
                return Ok(None);
            }
        }
    }

    async fn sees(&self, rights: &AccessRights, session: &SessionId) -> Result<bool, RequestError> {
        // Who sees all sessions need not be looked up.
        if rights.permit(AccessAction::View, SessionStanding::None) {
            return Ok(true);
        }
        let standing = self.server.standing(rights, session).await?;
        Ok(standing.is_some_and(|standing| rights.permit(AccessAction::View, standing)))
    }

    /// Adds what a session reached before a place; the place where it goes on, if the page is
    /// full before all of it is there.
    async fn add(
        &mut self,
        session: &SessionId,
        all: &ReportPlaces,
        before: Seq,
    ) -> Result<Option<Seq>, RequestError> {
        let mut places = &all.places[..all.places.partition_point(|place| *place < before)];
        while !places.is_empty() {
            if self.data.len() >= self.limit {
                return Ok(places.last().map(|place| place.next()));
            }
            // A report has a flow at least.
            let from = places.len().saturating_sub(self.limit - self.data.len());
            let journal = &*self.server.parts.journal;
            self.reads += 1;
            for report in reports(journal, session, &places[from..]).await? {
                self.data.extend(
                    infos(session, &all.person, &report).filter(|info| self.query.wants(info)),
                );
                if self.data.len() >= self.limit {
                    let is_first = all.places.first() == Some(&report.seq);
                    return Ok((!is_first).then_some(report.seq));
                }
            }
            places = &places[..from];
        }
        Ok(None)
    }
}

fn infos<'a>(
    session: &'a SessionId,
    person: &'a str,
    placed: &'a PlacedReport,
) -> impl Iterator<Item = EgressInfo> + 'a {
    let PlacedReport { seq, at_ms, report } = placed;
    report.flows.iter().map(|flow| EgressInfo {
        session: session.to_string(),
        seq: seq.0,
        at_ms: *at_ms,
        person: person.to_owned(),
        sandbox: report.sandbox.clone(),
        effect: report.effect.0,
        verdict: convert::flow_verdict(flow),
        flow: convert::flow(flow),
    })
}
