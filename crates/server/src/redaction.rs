//! Content of memory that is destroyed for good.

use axum::Json;
use axum::extract::State as Extract;
use outrigger_api::{DerivedVersions, ProblemCode, RedactEntry, RedactedEntry};
use outrigger_engine::path_of;
use outrigger_policy::AccessAction;
use outrigger_store::entries::{
    Attribution, ChangeOutcome, ChangeRequest, DerivativePolicy, Derivatives, EntryAddress, Error,
    Reach, Submission, Which, submit,
};

use crate::input::Body;
use crate::login::Person;
use crate::memory::{failed, place, scope};
use crate::problems::ChangeProblems;
use crate::{RequestError, Server, Services, convert, limits};

/// Destroys the content of versions, and of every copy of it that the person may change. That it
/// was there, and who destroyed it and why, stays. Where other versions still have a part of it
/// nothing is destroyed unless `derived` says what becomes of those (409).
#[utoipa::path(post, path = "/v1/memory/redact",
    operation_id = "redact_entry", tag = "memory",
    request_body = RedactEntry,
    responses(
        (status = 200, body = RedactedEntry),
        ChangeProblems,
    ))]
pub(crate) async fn redact(
    Extract(server): Extract<Server>,
    person: Person,
    Body(asked): Body<RedactEntry>,
) -> Result<Json<RedactedEntry>, RequestError> {
    server.permit(&person, AccessAction::WriteMemory)?;
    let RedactEntry { path, revision, derived, why } = asked;
    let scope = scope(&server, &person)?;
    let at = place(&path, &scope)?;
    let derived = match derived {
        None => DerivativePolicy::Ask,
        Some(DerivedVersions::Leave) => DerivativePolicy::Leave,
        Some(DerivedVersions::Destroy) => DerivativePolicy::Destroy,
    };
    let which = revision.map_or(Which::All, Which::Revision);
    let change =
        ChangeRequest::Redact { at: at.clone(), which, reach: Reach::Copies, derived, why };
    let by = Attribution::person(server.now_ms());
    let Services { entries, reviews, .. } = &*server.parts;
    let done = submit(&**entries, &**reviews, &scope, change, by).await;
    let done = done.map_err(|error| match error {
        Error::Related(related) => shared(&at, &related),
        error => failed(&at, error),
    })?;
    Ok(Json(match done {
        Submission::Changed(ChangeOutcome { versions, unseen, lingers }) => {
            let data = versions.iter().map(convert::version).collect();
            RedactedEntry { data, unseen, lingers, proposal: None }
        }
        Submission::Proposed(id) => {
            let (data, unseen, lingers) = (Vec::new(), 0, false);
            RedactedEntry { data, unseen, lingers, proposal: Some(id.0) }
        }
    }))
}

/// The error where others have a part of it.
fn shared(at: &EntryAddress, related: &Derivatives) -> RequestError {
    let text =
        format!("{}: {related} still have a part of it, and nothing was destroyed", path_of(at));
    let named = related.versions.iter().take(limits::RELATED_NAMED_MAX);
    let named = named.map(|(place, revision)| format!("{} r{revision}", path_of(place)));
    let error = RequestError::new(ProblemCode::Conflict, text);
    named
        .fold(error, RequestError::hint)
        .hint("Say with `derived` what becomes of them: `destroy` or `leave`.")
}
