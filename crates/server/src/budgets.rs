//! What accounts may spend, and have spent.

use axum::Json;
use axum::extract::State as Extract;
use outrigger_agent::{AccountId, Cause, Shortfall, State};
use outrigger_api::limits::ACCOUNT_LIMIT_MAX;
use outrigger_api::{
    AccountInfo, AccountLimits, AccountList, ChangedAccount, ProblemCode, SetAccount,
};
use outrigger_engine::{Error, is_under_way};
use outrigger_policy::AccessAction;
use outrigger_store::{Account, AccountStop, Before, Terms, TermsChange};

use crate::input::{Body, Name};
use crate::limits::{STOP_PAGE_SESSIONS, STOP_REASON_CHARS_MAX};
use crate::login::Person;
use crate::problems::{ChangeProblems, ReadProblems};
use crate::{RequestError, Server, convert};

/// The accounts that one's sessions are charged to: the organisation's, and one's own. Who
/// administers the organisation sees all.
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
    let sees_all = server.permit(&person, AccessAction::Administer).is_ok();
    let accounts = server.parts.accounts.accounts().await?;
    let seen = accounts.iter().filter(|it| sees_all || theirs.contains(&it.account));
    Ok(Json(AccountList { data: seen.map(|account| told(&server, account)).collect() }))
}

fn told(server: &Server, account: &Account) -> AccountInfo {
    let terms = account.terms.or(server.parts.usual.of(&account.account));
    convert::account(account, &terms, server.now_ms())
}

/// Refuses what begins for somebody while their account, or the organisation's, is stopped.
pub(crate) async fn check_stopped(server: &Server, person: &Person) -> Result<(), RequestError> {
    match account_stop(server.parts.accounts.accounts().await?, &person.name) {
        None => Ok(()),
        Some(stop) => Err(RequestError::new(ProblemCode::BudgetExhausted, stop.to_string())
            .hint("Who administers the organisation lets it start again.")),
    }
}

/// Why nothing begins for somebody: their account, or the organisation's, is stopped.
#[must_use]
pub fn account_stop(accounts: Vec<Account>, person: &str) -> Option<Shortfall> {
    let theirs = [AccountId::organisation(), AccountId::user(person)];
    let mut theirs = accounts.into_iter().filter(|it| theirs.contains(&it.account));
    theirs.find_map(|Account { account, terms, .. }| {
        let AccountStop { reason, .. } = terms.stopped?;
        Some(Shortfall { account: Some(account), cause: Cause::Stopped { reason } })
    })
}

/// Says what an account may spend, and whether anything starts for it.
#[utoipa::path(put, path = "/v1/budgets/{account}",
    operation_id = "set_account", tag = "budgets", request_body = SetAccount,
    params(("account" = String, Path, example = "org", description = "`org`, or `user:NAME`")),
    responses(
        (status = 200, body = ChangedAccount),
        ChangeProblems,
    ))]
pub(crate) async fn set(
    Extract(server): Extract<Server>,
    person: Person,
    Name(name): Name,
    Body(said): Body<SetAccount>,
) -> Result<Json<ChangedAccount>, RequestError> {
    server.permit(&person, AccessAction::Administer)?;
    let account = AccountId::parse(&name).ok_or_else(|| {
        RequestError::not_found(format!("there is no account `{name}`"))
            .hint("An account is `org` or `user:NAME`.")
    })?;
    let changes = changes(&said, &person.name, server.now_ms())?;
    let mut set = None;
    for change in changes {
        set = Some(server.parts.accounts.set_terms(&account, change).await?);
    }
    let set = set.ok_or_else(|| {
        RequestError::new(ProblemCode::InvalidRequest, "nothing was said that could be set")
    })?;
    // Nothing starts from here on, so that what is found now is all that runs.
    let interrupted = match said.stopped {
        Some(true) => interrupted(&server, &account, &person.name).await?,
        Some(false) | None => Vec::new(),
    };
    Ok(Json(ChangedAccount { account: told(&server, &set), interrupted }))
}

/// What is changed, in order.
fn changes(said: &SetAccount, by: &str, at_ms: u64) -> Result<Vec<TermsChange>, RequestError> {
    let wrong = |text: String| RequestError::new(ProblemCode::InvalidRequest, text);
    for limits in [said.limit, said.soft] {
        let AccountLimits { steps, tokens, money_nanos, wall_ms, cpu_ms, egress_bytes } = limits;
        let all = [steps, tokens, money_nanos, wall_ms, cpu_ms, egress_bytes];
        if all.iter().flatten().any(|limit| *limit > ACCOUNT_LIMIT_MAX) {
            return Err(wrong(format!("a limit is at most {ACCOUNT_LIMIT_MAX}")));
        }
    }
    if said.reason.chars().count() > STOP_REASON_CHARS_MAX {
        return Err(wrong(format!("`reason` has at most {STOP_REASON_CHARS_MAX} characters")));
    }
    let terms = Terms {
        limit: convert::limit(said.limit),
        soft: convert::limit(said.soft),
        period: said.period.map(convert::period),
        stopped: None,
    };
    if let Some(why) = terms.limit.hides(terms.soft) {
        return Err(wrong(why));
    }
    let mut changes = Vec::new();
    if said.clear {
        changes.push(TermsChange::Clear);
    }
    if terms != Terms::default() {
        changes.push(TermsChange::Set(terms));
    }
    changes.extend(said.stopped.map(|stops| match stops {
        true => {
            let (by, reason) = (by.to_owned(), said.reason.clone());
            TermsChange::Stop(AccountStop { by, reason, at_ms })
        }
        false => TermsChange::Allow,
    }));
    Ok(changes)
}

/// Interrupts the sessions of an account in which something is under way.
async fn interrupted(
    server: &Server,
    account: &AccountId,
    by: &str,
) -> Result<Vec<String>, RequestError> {
    let (engine, mut stopped, mut before) = (&server.parts.engine, Vec::new(), None);
    loop {
        let page = server.parts.journal.sessions(before.take(), STOP_PAGE_SESSIONS).await?;
        let Some(last) = page.last() else { return Ok(stopped) };
        before = Some(Before::from(last));
        for row in page.iter().filter(|row| row.status == "running" || row.status == State::WAITS) {
            let session = &row.session;
            if !is_under_way(&engine.state(session).await?, account) {
                continue;
            }
            match engine.interrupt(session, by).await {
                Ok(()) => {}
                // It ended meanwhile.
                Err(Error::Ended(_)) => continue,
                Err(error) => return Err(error.into()),
            }
            server.parts.host.wake(&session.root()).await?;
            stopped.push(session.to_string());
        }
    }
}
