//! What waits for a person, and the answers.

use axum::Json;
use axum::extract::State as Extract;
use axum::http::StatusCode;
use outrigger_agent::{Answer, ApprovalRequest, Digest, Seq, SessionId, State, Work};
use outrigger_api::{
    AnswerApproval, ApprovalAnswer, ApprovalInfo, ApprovalList, ApprovalPreview, ProblemCode,
};
use outrigger_engine::AnswerRequest;
use outrigger_policy::AccessAction;

use crate::input::{Body, Name};
use crate::login::Person;
use crate::problems::{ChangeProblems, ReadProblems};
use crate::{RequestError, Server, convert, sessions};

/// Everything that waits, newest sessions first.
#[utoipa::path(get, path = "/v1/approvals",
    operation_id = "list_approvals", tag = "approvals", responses(
    (status = 200, body = ApprovalList),
    ReadProblems,
))]
pub(crate) async fn list(
    Extract(server): Extract<Server>,
    person: Person,
) -> Result<Json<ApprovalList>, RequestError> {
    waiting(&server, &person).await.map(Json)
}

/// What waits for a person, newest sessions first: in sessions in which they may answer, and in
/// others what the rules ask them about.
pub(crate) async fn waiting(
    server: &Server,
    person: &Person,
) -> Result<ApprovalList, RequestError> {
    let rights = server.rights(person)?;
    let mut data = Vec::new();
    for row in server.listing.waiting(&server.parts).await? {
        let Some(standing) = server.standing(&rights, &row.session).await? else { continue };
        let state = server.parts.engine.state(&row.session).await?;
        let may = rights.permit(AccessAction::Answer, standing);
        let asks = |effect| server.parts.engine.asks(&state, Seq(effect), &person.name);
        let all = convert::approvals(&row, &state);
        data.extend(all.filter(|asked| may || asks(asked.effect)));
    }
    Ok(ApprovalList { data })
}

/// A question that waits.
struct Question {
    session: SessionId,
    state: State,
    effect: Seq,
    asked: ApprovalRequest,
}

impl Question {
    async fn find(server: &Server, person: &Person, id: &str) -> Result<Self, RequestError> {
        let unknown = || RequestError::not_found(format!("nothing that waits is called `{id}`"));
        let (plain, of_budget) = match id.strip_suffix(convert::OF_BUDGET) {
            Some(plain) => (plain, true),
            None => (id, false),
        };
        let (name, effect) = plain.rsplit_once('.').ok_or_else(unknown)?;
        let effect = Seq(effect.parse().map_err(|_| unknown())?);
        let session = SessionId::new(name).ok_or_else(unknown)?;
        let engine = &server.parts.engine;
        let rights = server.rights(person)?;
        let standing = server.standing(&rights, &session).await?.ok_or_else(unknown)?;
        let state = engine.state(&session).await.map_err(|_| unknown())?;
        let may = rights.permit(AccessAction::Answer, standing);
        if !may && !engine.asks(&state, effect, &person.name) {
            return Err(unknown());
        }
        let asked = state
            .asked()
            .find(|(known, _, asked)| *known == effect && asked.budget.is_some() == of_budget);
        let asked = asked.map(|(_, _, asked)| asked.clone()).ok_or_else(|| {
            let text = format!("nobody is asked about {id} any more");
            RequestError::new(ProblemCode::Conflict, text)
        })?;
        Ok(Self { session, state, effect, asked })
    }

    fn changes_file(&self) -> bool {
        self.asked.budget.is_none() && convert::changes_file(&self.state, self.effect)
    }

    fn arguments(&self) -> Option<Digest> {
        match &self.state.effect(self.effect)?.work {
            Work::CallTool(call) => Some(call.arguments.clone()),
            Work::AskModel | Work::Compact | Work::Provision { .. } => None,
        }
    }
}

/// One question, with what it would make of a file.
#[utoipa::path(get, path = "/v1/approvals/{id}",
    operation_id = "get_approval", tag = "approvals",
    params(("id" = String, Path, description = "The question")),
    responses(
        (status = 200, body = ApprovalInfo),
        ReadProblems,
    ))]
pub(crate) async fn one(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
) -> Result<Json<ApprovalInfo>, RequestError> {
    let question = Question::find(&server, &person, &id).await?;
    let title = server.listing.one(&server.parts, &question.session).await?.title.clone();
    let Question { session, state, effect, asked } = &question;
    let mut info = convert::approval(session, &title, state, (*effect, asked));
    if question.changes_file() {
        let preview = server.parts.disks.preview(session, *effect).await?;
        info.preview = preview.map(|it| ApprovalPreview { diff: it.diff, seen: it.name });
    }
    Ok(Json(info))
}

/// Answers a question, once. What changes a file is approved as it was looked at.
#[utoipa::path(post, path = "/v1/approvals/{id}",
    operation_id = "answer_approval", tag = "approvals",
    params(("id" = String, Path, description = "The question")), request_body = AnswerApproval,
    responses(
        (status = 202, description = "It is written down, and the session goes on"),
        ChangeProblems,
    ))]
pub(crate) async fn answer(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
    Body(given): Body<AnswerApproval>,
) -> Result<StatusCode, RequestError> {
    let question = Question::find(&server, &person, &id).await?;
    let answer = match (given.answer, given.arguments) {
        (ApprovalAnswer::Deny, _) => {
            let reason = given.reason.filter(|reason| !reason.trim().is_empty());
            Answer::Denied { reason: reason.unwrap_or_else(|| "no reason was given".to_owned()) }
        }
        (ApprovalAnswer::Approve, Some(arguments)) => {
            if let Err(error) = serde_json::from_str::<serde_json::Value>(&arguments) {
                let text = format!("`arguments`: they are no JSON: {error}");
                return Err(RequestError::new(ProblemCode::InvalidRequest, text));
            }
            Answer::Amended { arguments }
        }
        (ApprovalAnswer::Approve, None) => {
            let seen = looked_at(&server, &question, given.seen).await?;
            Answer::Approved { rule_set: question.asked.rule_set, seen, standing: None }
        }
    };
    let arguments = question.arguments();
    let Question { session, effect, asked, .. } = question;
    let request = AnswerRequest { effect, by: person.name, arguments, asked: Some(asked), answer };
    server.parts.engine.answer(&session, request).await?;
    sessions::woken(&server, &session).await
}

/// The file that was looked at; nothing where no file is changed.
async fn looked_at(
    server: &Server,
    question: &Question,
    seen: Option<String>,
) -> Result<Option<outrigger_agent::FileBaseline>, RequestError> {
    if !question.changes_file() {
        return Ok(None);
    }
    let Some(now) = server.parts.disks.preview(&question.session, question.effect).await? else {
        return Ok(None);
    };
    match seen {
        Some(seen) if seen == now.name => Ok(Some(now.seen)),
        Some(_) => {
            let text = "the file is not the one that was looked at: it changed since";
            Err(RequestError::new(ProblemCode::Conflict, text).hint("Look at it again."))
        }
        None => {
            let text = "`seen` is missing: this changes a file, which has to be looked at first";
            Err(RequestError::new(ProblemCode::InvalidRequest, text)
                .hint("GET of the same address gives `preview.seen`."))
        }
    }
}
