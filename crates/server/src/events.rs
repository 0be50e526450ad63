//! Events of sessions: in pages, awaited, and as streams.

use axum::Json;
use axum::extract::State as Extract;
use axum::http::HeaderMap;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use futures_util::{Stream, StreamExt, stream};
use outrigger_agent::Seq;
use outrigger_api::limits::{LAST_EVENTS_MAX, WAIT_SECONDS_MAX};
use outrigger_api::{EventList, PresenceFrame, RemovedFrame, SessionEvent};
use outrigger_policy::AccessAction;
use serde::Deserialize;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;
use utoipa::IntoParams;

use crate::admission::{Admission, AdmittedTo};
use crate::approvals::waiting;
use crate::follow::{Followed, Follower, named};
use crate::headers::{LastEvent, last_event};
use crate::input::{Name, QueryParams};
use crate::listing::Update;
use crate::login::Person;
use crate::problems::ReadProblems;
use crate::server::ended;
use crate::{RequestError, Server, convert, limits};

/// From where on.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventQuery {
    /// The place of the last event that is known; all of them if absent.
    #[serde(default)]
    after: u64,
    /// Where there is none yet, wait so many seconds for one, at most 30.
    #[serde(default)]
    wait: u32,
    /// Only so many of the newest events, at most 200: nothing else is looked at then.
    last: Option<u32>,
}

/// From where on a stream goes.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StreamQuery {
    /// The place of the last event that is known; all of them if absent.
    #[serde(default)]
    after: u64,
}

/// The events of a session after a place, a page at a time.
#[utoipa::path(get, path = "/v1/sessions/{id}/events",
    operation_id = "list_events", tag = "sessions",
    params(("id" = String, Path, description = "The session"), EventQuery),
    responses(
        (status = 200, body = EventList),
        ReadProblems,
    ))]
pub(crate) async fn list(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
    QueryParams(query): QueryParams<EventQuery>,
) -> Result<Json<EventList>, RequestError> {
    let session = server.session(&person, &session, AccessAction::View).await?;
    let after = match query.last {
        // Places are dense.
        Some(last) => {
            let head = server.parts.journal.head(&session).await?;
            Seq(head.0.saturating_sub(last.min(LAST_EVENTS_MAX).into()))
        }
        None => Seq(query.after),
    };
    let wait = query.wait.min(WAIT_SECONDS_MAX);
    let mut page = server.parts.journal.load(&session, after).await?;
    if page.records.is_empty() && wait > 0 {
        let mut follower = Follower::new(&server, session.clone(), after);
        let first = async {
            while let Followed::Live(_) = follower.next().await? {}
            Ok::<(), RequestError>(())
        };
        // Where nothing came in time, the page is empty.
        if let Ok(came) = timeout(Duration::from_secs(wait.into()), first).await {
            came?;
        }
        page = server.parts.journal.load(&session, after).await?;
    }
    let data: Vec<SessionEvent> = page.records.iter().map(convert::event).collect();
    Ok(Json(EventList { data, more: page.more_after.is_some() }))
}

pub(crate) type Frames = Sse<axum::response::sse::KeepAliveStream<FrameStream>>;
pub(crate) type FrameStream =
    std::pin::Pin<Box<dyn Stream<Item = Result<Frame, Infallible>> + Send>>;

/// As long as there are frames, and who follows them may.
pub(crate) fn sse(
    frames: impl Stream<Item = Frame> + Send + 'static,
    admission: Admission,
) -> Frames {
    let frames = frames.map(Ok).take_until(admission.until_dismissed());
    let frames: FrameStream = Box::pin(frames);
    let every = Duration::from_millis(limits::KEEP_ALIVE_MS);
    Sse::new(frames).keep_alive(KeepAlive::new().interval(every))
}

/// Follows a session: `event: event` has a `SessionEvent` with its `seq` as `id`, `event: live`
/// a `LiveFrame` of an effect that is under way, `event: session` a `SessionInfo`, `event:
/// presence` a `PresenceFrame`.
#[utoipa::path(get, path = "/v1/sessions/{id}/stream",
    operation_id = "follow_session", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session"),
        StreamQuery,
        LastEvent,
    ),
    responses(
        (status = 200, body = String, content_type = "text/event-stream"),
        ReadProblems,
    ))]
pub(crate) async fn follow(
    Extract(server): Extract<Server>,
    person: Person,
    Name(name): Name,
    QueryParams(query): QueryParams<StreamQuery>,
    headers: HeaderMap,
) -> Result<Frames, RequestError> {
    let session = server.session(&person, &name, AccessAction::View).await?;
    let admission = Admission::new(&server, &headers, AdmittedTo::Session(name.clone()));
    let standing_now = server.shown(&person, &session).await?;
    let last = last_event(&headers, |id| id.parse().ok())?;
    let present = server.presence.enter(&session, &person.name);
    let events = Follower::new(&server, session.clone(), Seq(last.unwrap_or(query.after)));
    let admitted = (server.clone(), person.clone(), name);
    let events = stream::unfold((events, admitted), async |(mut follower, admitted)| {
        // What can't be read now is read when the client comes again.
        let came = follower.next().await.ok()?;
        let (server, person, name) = &admitted;
        if came.may_end_access(name) {
            server.session(person, name, AccessAction::View).await.ok()?;
        }
        Some((came.frame()?, (follower, admitted)))
    });
    let (told, ours) = ((server.clone(), person), session.to_string());
    let standing = updates(&server).await?.filter_map(move |update| {
        // Everybody hears of every session.
        let info = match update {
            Update::Session(info) if info.id == ours => Some(Some(info)),
            Update::Removed(info) if info.id == ours => Some(None),
            Update::Session(_) | Update::Removed(_) | Update::Approvals => None,
        };
        let told = info.is_some().then(|| told.clone());
        async move {
            let ((server, person), info) = (told?, info?);
            // It ends when there is no such session any more.
            let Some(info) = info else { return Some(None) };
            let told = server.told(&*server.rights(&person).ok()?, &info).await.ok()??;
            Some(Some(named("session", &told)))
        }
    });
    let presence = stream::unfold(present, async |mut present| {
        let people = present.next().await?;
        Some((Some(named("presence", &PresenceFrame { people })), present))
    });
    // It ends when there are no more events.
    let events = events.map(Some).chain(stream::iter([None]));
    let first = stream::iter([Some(named("session", &standing_now))]);
    let beside = stream::select(standing, presence);
    let all = first.chain(stream::select(events, beside));
    let frames = all.take_while(|frame| std::future::ready(frame.is_some()));
    Ok(sse(frames.filter_map(async |it| it), admission))
}

/// What is told of all sessions.
async fn updates(
    server: &Server,
) -> Result<impl Stream<Item = Update> + Send + use<>, RequestError> {
    let updates = server.listing.listen(&server.parts).await?;
    Ok(stream::unfold((updates, server.ends.clone()), async |(mut updates, ends)| {
        loop {
            let came = tokio::select! {
                () = ended(ends.clone()) => return None,
                came = updates.recv() => came,
            };
            match came {
                Ok(update) => return Some((update, (updates, ends))),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }))
}

/// Follows all sessions: `event: session` has a `SessionInfo` that stands otherwise than before,
/// `event: removed` the name of one that is no more, `event: approvals` an `ApprovalList` where
/// what waits may be otherwise.
#[utoipa::path(get, path = "/v1/updates",
    operation_id = "follow_updates", tag = "sessions", responses(
    (status = 200, body = String, content_type = "text/event-stream"),
    ReadProblems,
))]
pub(crate) async fn all(
    Extract(server): Extract<Server>,
    person: Person,
    headers: HeaderMap,
) -> Result<Frames, RequestError> {
    let admission = Admission::new(&server, &headers, AdmittedTo::Server);
    let frames = updates(&server).await?.filter_map(move |update| {
        let (server, person) = (server.clone(), person.clone());
        async move {
            match update {
                Update::Session(info) => {
                    let told = server.told(&*server.rights(&person).ok()?, &info).await.ok()??;
                    Some(named("session", &told))
                }
                Update::Removed(info) => {
                    server.told(&*server.rights(&person).ok()?, &info).await.ok()??;
                    Some(named("removed", &RemovedFrame { session: info.id.clone() }))
                }
                Update::Approvals => {
                    let waiting = waiting(&server, &person).await.ok()?;
                    Some(named("approvals", &waiting))
                }
            }
        }
    });
    Ok(sse(frames, admission))
}
