//! Whether a session's journal is as it was written.

use axum::Json;
use axum::extract::State as Extract;
use outrigger_api::{AuditReport, ProblemCode};
use outrigger_policy::AccessAction;
use outrigger_store::{Audit, AuditRequest};
use std::sync::Arc;
use tokio::runtime::Handle;

use crate::input::Name;
use crate::login::Person;
use crate::problems::ReadProblems;
use crate::{RequestError, Server};

/// Checks the events of a session against their hashes and the signed log.
#[utoipa::path(get, path = "/v1/sessions/{id}/audit",
    operation_id = "audit_session", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, body = AuditReport),
        ReadProblems,
    ))]
pub(crate) async fn verify(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
) -> Result<Json<AuditReport>, RequestError> {
    let session = server.session(&person, &session, AccessAction::View).await?;
    let (store, database) = (server.parts.store.clone(), server.parts.database.clone());
    let runtime = Handle::current();
    let asked = AuditRequest { session: Some(session), ..AuditRequest::default() };
    // Hashing is work for a processor.
    let verified = tokio::task::spawn_blocking(move || {
        runtime.block_on(async {
            let audit = Audit::open(&store, &database).await?;
            audit.verify(&asked, &Arc::default()).await
        })
    });
    let report = verified.await.map_err(|it| RequestError::of(ProblemCode::Internal, &it))??;
    Ok(Json(AuditReport {
        clean: report.is_clean(),
        events: report.events,
        uncovered: report.uncovered,
        faults: report.faults.iter().map(ToString::to_string).collect(),
        checkpoint: report.checkpoint,
    }))
}
