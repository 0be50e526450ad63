//! Changes of memory that somebody else has to accept.

use axum::Json;
use axum::extract::State as Extract;
use outrigger_api::{
    AnswerProposal, CommentProposal, ProblemCode, ProposalAnswer, ProposalComment, ProposalDetails,
    ProposalInfo, ProposalList,
};
use outrigger_engine::path_of;
use outrigger_policy::{AccessAction, Scope};
use outrigger_store::entries::{
    Decision, EntryAddress, EntryPath, Error, ProposalFilter, ProposalId, base_of,
};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::input::{Body, Name, QueryParams};
use crate::login::Person;
use crate::memory::{failed, scope, told};
use crate::problems::{ChangeProblems, ReadProblems};
use crate::{RequestError, Server, convert};

/// Which proposals.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ProposalQuery {
    /// Also those that were decided.
    #[serde(default)]
    all: bool,
}

/// What is proposed for the memory that a person sees.
#[utoipa::path(get, path = "/v1/proposals",
    operation_id = "list_proposals", tag = "memory", params(ProposalQuery), responses(
    (status = 200, body = ProposalList),
    ReadProblems,
))]
pub(crate) async fn list(
    Extract(server): Extract<Server>,
    person: Person,
    QueryParams(query): QueryParams<ProposalQuery>,
) -> Result<Json<ProposalList>, RequestError> {
    let scope = scope(&server, &person)?;
    let asked = if query.all { ProposalFilter::All } else { ProposalFilter::Open };
    let mut found = Vec::new();
    for memory_scope in scope.all_memory_scopes() {
        let root = EntryAddress { memory_scope: memory_scope.clone(), path: EntryPath::ROOT };
        let page = server.parts.reviews.proposals(&scope, &memory_scope, asked, None).await;
        found.extend(page.map_err(|error| failed(&root, error))?);
    }
    found.sort_by_key(|proposal| proposal.id);
    Ok(Json(ProposalList { data: found.iter().map(convert::proposal).collect() }))
}

/// A proposal, with what it would change.
#[utoipa::path(get, path = "/v1/proposals/{number}",
    operation_id = "get_proposal", tag = "memory",
    params(("number" = u64, Path, description = "The proposal")),
    responses(
        (status = 200, body = ProposalDetails),
        ReadProblems,
    ))]
pub(crate) async fn one(
    Extract(server): Extract<Server>,
    person: Person,
    Name(number): Name,
) -> Result<Json<ProposalDetails>, RequestError> {
    details(&server, &scope(&server, &person)?, id(&number)?).await
}

async fn details(
    server: &Server,
    scope: &Scope,
    id: ProposalId,
) -> Result<Json<ProposalDetails>, RequestError> {
    let found = server.parts.reviews.proposal(scope, id).await;
    let (proposal, file, comments) = found.map_err(|error| about(id, error))?;
    let base = base_of(&*server.parts.entries, scope, &proposal).await;
    let base = base.map_err(|error| failed(&proposal.at, error))?;
    let names = [format!("{} r{}", path_of(&proposal.at), proposal.base), format!("proposal {id}")];
    let after = file.unwrap_or_default();
    let diff = outrigger_repository::diff(&base, &after, [&names[0], &names[1]]);
    let comments = comments
        .into_iter()
        .map(|it| ProposalComment { author: it.author.to_string(), at_ms: it.at_ms, text: it.text })
        .collect();
    let proposal = convert::proposal(&proposal);
    let diff = diff.unwrap_or_else(|| "the file is no text\n".to_owned());
    Ok(Json(ProposalDetails { proposal, diff, comments }))
}

/// Says something of a proposal, whatever became of it.
#[utoipa::path(post, path = "/v1/proposals/{number}/comments",
    operation_id = "comment_proposal", tag = "memory",
    params(("number" = u64, Path, description = "The proposal")), request_body = CommentProposal,
    responses(
        (status = 200, body = ProposalDetails),
        ChangeProblems,
    ))]
pub(crate) async fn comment(
    Extract(server): Extract<Server>,
    person: Person,
    Name(number): Name,
    Body(said): Body<CommentProposal>,
) -> Result<Json<ProposalDetails>, RequestError> {
    server.permit(&person, AccessAction::WriteMemory)?;
    if said.text.trim().is_empty() {
        let text = "`text` is empty: say something";
        return Err(RequestError::new(ProblemCode::InvalidRequest, text));
    }
    let (scope, id) = (scope(&server, &person)?, id(&number)?);
    let commented = server.parts.reviews.comment(&scope, id, said.text, server.now_ms()).await;
    commented.map_err(|error| about(id, error))?;
    details(&server, &scope, id).await
}

/// Accepts or rejects a proposal, or takes one's own back.
#[utoipa::path(post, path = "/v1/proposals/{number}",
    operation_id = "answer_proposal", tag = "memory",
    params(("number" = u64, Path, description = "The proposal")), request_body = AnswerProposal,
    responses(
        (status = 200, body = ProposalInfo),
        ChangeProblems,
    ))]
pub(crate) async fn answer(
    Extract(server): Extract<Server>,
    person: Person,
    Name(number): Name,
    Body(said): Body<AnswerProposal>,
) -> Result<Json<ProposalInfo>, RequestError> {
    server.permit(&person, AccessAction::WriteMemory)?;
    let (scope, id) = (scope(&server, &person)?, id(&number)?);
    let decision = match said.answer {
        ProposalAnswer::Accept => Decision::Accept,
        ProposalAnswer::Reject => Decision::Reject { reason: said.reason },
        ProposalAnswer::Withdraw => Decision::Withdraw,
    };
    let reviews = &server.parts.reviews;
    let decided = reviews.decide(&scope, id, decision, server.now_ms()).await;
    decided.map_err(|error| about(id, error))?;
    let (proposal, ..) = reviews.proposal(&scope, id).await.map_err(|error| about(id, error))?;
    Ok(Json(convert::proposal(&proposal)))
}

fn id(number: &str) -> Result<ProposalId, RequestError> {
    let unknown = || RequestError::not_found(format!("there is no proposal `{number}`"));
    number.parse().map(ProposalId).map_err(|_| unknown())
}

fn about(id: ProposalId, error: Error) -> RequestError {
    told(&format!("proposal {id}"), error)
}
