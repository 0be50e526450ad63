//! With whom sessions are shared, and who there is.

use axum::Json;
use axum::extract::State as Extract;
use outrigger_api::{GroupInfo, PeopleList, PersonInfo, ProblemCode, SessionInfo, ShareInfo};
use outrigger_policy::{AccessAction, Principal};
use std::collections::BTreeSet;

use crate::input::{Body, Name};
use crate::login::Person;
use crate::problems::{ChangeProblems, ReadProblems};
use crate::{RequestError, Server, convert, limits};

/// What the built-in rules of access make of groups of these names.
const ROLES: [(&str, &str); 4] = [
    ("viewer", "A viewer sees what is shared with them, and changes nothing."),
    ("approver", "An approver sees every session, and answers what it asks."),
    ("auditor", "An auditor sees every session."),
    ("admin", "An admin sets secrets."),
];

/// Shares a session with a person, a group or everybody, or takes that back.
#[utoipa::path(put, path = "/v1/sessions/{id}/shares",
    operation_id = "share_session", tag = "sessions",
    params(("id" = String, Path, description = "The session")), request_body = ShareInfo,
    responses(
        (status = 200, body = SessionInfo),
        ChangeProblems,
    ))]
pub(crate) async fn share(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
    Body(asked): Body<ShareInfo>,
) -> Result<Json<SessionInfo>, RequestError> {
    let session = server.session(&person, &session, AccessAction::Manage).await?;
    let with = asked.with.parse::<Principal>().ok();
    let with = with.filter(|with| !matches!(with, Principal::Agent(_))).ok_or_else(|| {
        let text = format!("`with`: `{}` is not person:NAME, group:NAME or org:NAME", asked.with);
        RequestError::new(ProblemCode::InvalidRequest, text)
    })?;
    let ours = Principal::Organisation(server.parts.host.directory()?.organisation);
    let state = server.parts.engine.state(&session).await?;
    let is_elsewhere = matches!(with, Principal::Organisation(_)) && with != ours;
    if is_elsewhere && !state.shares().contains_key(&asked.with) {
        let text = format!("`with`: there is no `{with}` here: everybody is `{ours}`");
        return Err(RequestError::new(ProblemCode::InvalidRequest, text));
    }
    if state.shares().len() >= limits::SHARES_MAX && !state.shares().contains_key(&asked.with) {
        let text = format!("a session is shared with at most {} names", limits::SHARES_MAX);
        return Err(RequestError::new(ProblemCode::Conflict, text)
            .hint("Share it with a group: who is in one is said in `policy.people`."));
    }
    let access = convert::shared(asked.access);
    server.parts.engine.share(&session, &with, access, &person.name).await?;
    server.shown(&person, &session).await.map(Json)
}

/// Who there is: whoever is in a group, and whoever is let in; and in which groups they are.
#[utoipa::path(get, path = "/v1/people",
    operation_id = "list_people", tag = "server", responses(
    (status = 200, body = PeopleList),
    ReadProblems,
))]
pub(crate) async fn list(
    Extract(server): Extract<Server>,
    person: Person,
) -> Result<Json<PeopleList>, RequestError> {
    let directory = server.parts.host.directory()?;
    let named = directory.groups.values().flatten();
    let people = named.filter(|it| matches!(it, Principal::Person(_))).map(ToString::to_string);
    let keys = server.parts.keys.keys(server.now_ms()).await?;
    let people = people.chain(keys.into_iter().map(|key| key.person));
    let people: BTreeSet<String> = people.chain([person.name.clone()]).collect();
    let data = people.into_iter().map(|name| {
        let scope = name.parse().ok().and_then(|who| directory.authenticate(&who));
        let groups = scope.map(|scope| scope.groups().iter().cloned().collect());
        PersonInfo { name, groups: groups.unwrap_or_default() }
    });
    let groups = directory.groups.iter().map(|(name, members)| GroupInfo {
        name: name.clone(),
        members: members.iter().map(ToString::to_string).collect(),
        role: ROLES.iter().find(|(role, _)| role == name).map(|(_, text)| (*text).to_owned()),
    });
    Ok(Json(PeopleList {
        organisation: directory.organisation.clone(),
        you: person.name,
        data: data.collect(),
        groups: groups.collect(),
    }))
}
