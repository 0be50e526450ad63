//! Connections that are passed on unread, to a host and port that a person named so.
//!
//! Owns that one is granted, counted and dialled before a byte of it leaves, and that it is
//! written down where it ends because nothing more may be sent. Nothing in it is looked at: no
//! placeholder is swapped, and no other grant is of any use to it.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OwnedSemaphorePermit;

use super::activity::UnderWay;
use super::answer::Denial;
use super::session::Session;
use super::stream;
use crate::flow::Refusal;
use crate::host::Target;
use crate::network::Scheme;
use crate::outside::{Dialled, Failure, dial};
use crate::rule::RequestLine;
use crate::sandbox::Row;

/// A host that was reached for a connection.
pub(super) struct Opaque {
    target: Target,
    outside: Dialled,
    row: Arc<Row>,
    /// The connection is no idle one while this goes on.
    under_way: UnderWay,
    /// Its place among the connections to the outside.
    room: OwnedSemaphorePermit,
}

/// The same host and port, if what goes there is passed on unread.
pub(super) fn granted(session: &Session, target: &Target) -> Option<Target> {
    let stream = Target { scheme: Scheme::Tcp, ..target.clone() };
    session.sandbox.rules().is_some_and(|rules| rules.knows(&stream)).then_some(stream)
}

/// Serves what came at a port where no byte says for which host it is.
pub(super) async fn serve_port(session: &Session, port: u16, inside: impl AsyncRead + AsyncWrite) {
    let target = session.sandbox.rules().and_then(|rules| rules.captured(port));
    match target {
        Some(target) => serve(session, target, inside).await,
        None => session.refused_at(port),
    }
}

/// Serves one from its beginning, where a refusal can't be answered.
pub(super) async fn serve(session: &Session, target: Target, inside: impl AsyncRead + AsyncWrite) {
    match Opaque::open(session, &target).await {
        Ok(opaque) => opaque.pass(session, inside).await,
        Err(denial) => session.refused(Some(&target), denial.refusal, None),
    }
}

impl Opaque {
    /// Reaches the host.
    ///
    /// # Errors
    /// With what is answered instead, where something can be.
    pub(super) async fn open(session: &Session, target: &Target) -> Result<Self, Denial> {
        session.count();
        let under_way = session.activity.begin();
        session.sandbox.requests.turn().await;
        let asked = RequestLine { method: "CONNECT", path: "", query: None };
        let permission = session.ask_request(target, asked)?;
        let room = session.sandbox.outside_room_now().ok_or_else(Failure::crowded)?;
        let (outside, rules) = (&session.sandbox.outside, &permission.rules);
        let outside = Box::pin(dial(outside, rules, target, permission.private, false)).await?;
        let row = session.row(target, &permission)?;
        Ok(Self { target: target.clone(), outside, row, under_way, room })
    }

    /// Passes it on to its end.
    pub(super) async fn pass(self, session: &Session, inside: impl AsyncRead + AsyncWrite) {
        let Self { target, outside, row, under_way, room } = self;
        let passed = stream::pass(inside, outside.stream, &row).await;
        if passed.is_err() && row.is_spent() {
            session.refused(Some(&target), Refusal::Spent, None);
        }
        drop((under_way, room));
    }
}
