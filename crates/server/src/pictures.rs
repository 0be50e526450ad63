//! Pictures that come with what is said, and are shown again.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State as Extract};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use outrigger_agent::{Event, Picture, Seq};
use outrigger_api::{AttachedPicture, ProblemCode};
use outrigger_policy::AccessAction;

use crate::limits::PICTURE_NAME_CHARS_MAX;
use crate::login::Person;
use crate::problems::ReadProblems;
use crate::{RequestError, Server};

impl Server {
    /// Stores what came with a message, before it is said.
    pub(crate) async fn keep_pictures(
        &self,
        attached: Vec<AttachedPicture>,
    ) -> Result<Vec<Picture>, RequestError> {
        let shown = attached.into_iter().map(content).collect::<Result<Vec<_>, _>>()?;
        Ok(self.parts.engine.keep_pictures(shown).await?)
    }
}

fn content(attached: AttachedPicture) -> Result<(String, Vec<u8>), RequestError> {
    let AttachedPicture { name, content } = attached;
    let refused = |text| Err(RequestError::new(ProblemCode::InvalidRequest, text));
    if name.chars().count() > PICTURE_NAME_CHARS_MAX {
        return refused(format!("`name`: {PICTURE_NAME_CHARS_MAX} characters are the most"));
    }
    match BASE64_STANDARD.decode(content) {
        Ok(content) => Ok((name, content)),
        Err(error) => refused(format!("the content of {name:?} is no base64: {error}")),
    }
}

/// A picture that came with a message, as it came.
#[utoipa::path(get, path = "/v1/sessions/{id}/events/{seq}/pictures/{number}",
    operation_id = "get_picture", tag = "sessions",
    params(
        ("id" = String, Path, description = "The session"),
        ("seq" = u64, Path, description = "The event that says the message"),
        ("number" = usize, Path, description = "Which of its pictures, from 0"),
    ),
    responses(
        (status = 200, body = Vec<u8>, content_type = "image/*"),
        ReadProblems,
    ))]
pub(crate) async fn one(
    Extract(server): Extract<Server>,
    person: Person,
    path: Result<Path<(String, u64, usize)>, PathRejection>,
) -> Result<Response, RequestError> {
    let Path((name, seq, number)) = path.map_err(|it| RequestError::not_found(it.body_text()))?;
    let session = server.session(&person, &name, AccessAction::View).await?;
    let nothing = || RequestError::not_found(format!("event {seq} has no picture {number}"));
    let before = Seq(seq.checked_sub(1).ok_or_else(nothing)?);
    let page = server.parts.journal.load(&session, before).await?;
    let said = page.records.first().map(|record| &record.event);
    let Some(Event::Said(message)) = said else { return Err(nothing()) };
    let picture = message.pictures.get(number).ok_or_else(nothing)?;
    let bytes = server.parts.engine.picture_bytes(picture).await?;
    let headers = [
        (header::CONTENT_TYPE, picture.media_type.as_str()),
        // Who may see it changes.
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, bytes).into_response())
}
