//! What accounts may spend, and have spent.

use axum::Json;
use axum::extract::State as Extract;
use outrigger_agent::AccountId;
use outrigger_api::AccountList;

use crate::login::Person;
use crate::problems::ReadProblems;
use crate::{RequestError, Server, convert};

/// The accounts that one's sessions are charged to: the organisation's, and one's own.
#[utoipa::path(get, path = "/v1/budgets",
    operation_id = "list_accounts", tag = "budgets", responses(
    (status = 200, body = AccountList),
    ReadProblems,
))]
pub(crate) async fn list(
    Extract(server): Extract<Server>,
    person: Person,
) -> Result<Json<AccountList>, RequestError> {
    let theirs = [AccountId::organisation(), AccountId::user(&person.name)];
    let accounts = server.parts.accounts.accounts().await?;
    let accounts = accounts.iter().filter(|account| theirs.contains(&account.account));
    let now_ms = server.now_ms();
    let data = accounts
        .map(|account| {
            let terms = account.terms.or(server.parts.usual.of(&account.account));
            convert::account(account, &terms, now_ms)
        })
        .collect();
    Ok(Json(AccountList { data }))
}
