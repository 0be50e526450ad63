//! Accounts in the database: read and written inside the transaction of a commit.

pub(crate) mod recount;

use crate::sql::connection::DatabaseConnection;
use crate::sql::{self, Query};
use outrigger_agent::{AccountId, Amounts, SessionId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fault;
use super::integer::number;
use super::journal::statements::Texts;
use crate::book::Book;
use crate::{Account, Error, SessionCharge, Terms, limits};

const CHARGED: &str = "SELECT charged FROM charges WHERE session = $1";
const ALL: &str = "SELECT account, terms, spent, reserved, before, since_ms FROM accounts \
    ORDER BY account LIMIT $1";

pub(crate) type Columns = (String, String, String, String, String, i64);

fn wrong(error: sqlx::Error) -> Error {
    fault::of("reading accounts", error)
}

/// Reads what charges of these sessions to these accounts have to do with: also the
/// accounts that the sessions were charged to before.
pub(crate) async fn read(
    connection: &mut DatabaseConnection,
    texts: &mut Texts,
    sessions: &[&SessionId],
    accounts: impl Iterator<Item = &AccountId>,
) -> Result<Book, Error> {
    let mut book = Book::default();
    let names: Vec<AccountId> = accounts.cloned().collect();
    for some in sessions.chunks(limits::HEADS_MAX) {
        let (text, places) = texts.charges(some.len());
        let mut query = sql::query_as(text);
        for place in 0..places {
            query = query.bind(some[place.min(some.len() - 1)].to_string());
        }
        let rows: Vec<(String, String)> = query.fetch_all(&mut *connection).await.map_err(wrong)?;
        for (session, charged) in rows {
            book.sessions
                .extend(SessionId::new(session).zip(Some(parse::<SessionCharge>(&charged)?)));
        }
    }
    read_accounts(connection, texts, names, &mut book).await?;
    Ok(book)
}

/// Reads accounts into a book, with those that its sessions were charged to before. What
/// it has of them is not read again.
pub(crate) async fn read_accounts(
    connection: &mut DatabaseConnection,
    texts: &mut Texts,
    mut names: Vec<AccountId>,
    book: &mut Book,
) -> Result<(), Error> {
    let before = book.sessions.values().flat_map(|charged| &charged.accounts);
    names.extend(before.filter(|name| !book.accounts.contains_key(*name)).cloned());
    names.sort();
    names.dedup();
    for some in names.chunks(limits::HEADS_MAX) {
        let (text, places) = texts.accounts(some.len());
        let mut query = sql::query_as(text);
        for place in 0..places {
            query = query.bind(some[place.min(some.len() - 1)].as_str().to_owned());
        }
        let rows: Vec<Columns> = query.fetch_all(&mut *connection).await.map_err(wrong)?;
        for row in rows {
            let account = of_row(row)?;
            book.accounts.insert(account.account.clone(), account);
        }
    }
    Ok(())
}

/// What a session is charged.
pub(crate) async fn charged(
    connection: &mut DatabaseConnection,
    session: &SessionId,
) -> Result<Option<SessionCharge>, Error> {
    let row: Option<(String,)> = sql::query_as(CHARGED)
        .bind(session.to_string())
        .fetch_optional(connection)
        .await
        .map_err(wrong)?;
    row.map(|(text,)| parse(&text)).transpose()
}

/// All accounts, by name.
pub(crate) async fn all(connection: &mut DatabaseConnection) -> Result<Vec<Account>, Error> {
    let rows: Vec<Columns> =
        sql::query_as(ALL).bind(limits::ACCOUNTS_MAX).fetch_all(connection).await.map_err(wrong)?;
    rows.into_iter().map(of_row).collect()
}

/// Writes what was changed in a book.
pub(crate) async fn write(
    connection: &mut DatabaseConnection,
    texts: &mut Texts,
    book: &Book,
) -> Result<(), Error> {
    let wrong = |e| fault::of("writing accounts", e);
    let BookChanges { accounts, charges } = BookChanges::of(book);
    for some in accounts.chunks(limits::STATEMENT_ROWS_MAX) {
        let query = sql::query(texts.set_accounts(some.len()));
        bind_accounts(query, some).execute(&mut *connection).await.map_err(wrong)?;
    }
    for some in charges.chunks(limits::STATEMENT_ROWS_MAX) {
        let query = sql::query(texts.set_charges(some.len()));
        bind_charges(query, some).execute(&mut *connection).await.map_err(wrong)?;
    }
    Ok(())
}

/// What was changed in a book.
#[derive(Default)]
pub(crate) struct BookChanges<'a> {
    pub(crate) accounts: Vec<&'a Account>,
    pub(crate) charges: Vec<(&'a SessionId, &'a SessionCharge)>,
}

impl<'a> BookChanges<'a> {
    pub(crate) fn of(book: &'a Book) -> Self {
        let accounts = book.changed_accounts.iter().filter_map(|name| book.accounts.get(name));
        let charges = book.changed_sessions.iter();
        let charges = charges.filter_map(|session| Some((session, book.sessions.get(session)?)));
        Self { accounts: accounts.collect(), charges: charges.collect() }
    }
}

pub(crate) fn bind_accounts(mut query: Query, accounts: &[&Account]) -> Query {
    for account in accounts {
        query = query.bind(account.account.as_str().to_owned()).bind(text(&account.terms));
        query = query.bind(text(&account.spent)).bind(text(&account.reserved));
        query = query.bind(text(&account.before)).bind(number(account.since_ms));
    }
    query
}

pub(crate) fn bind_charges(mut query: Query, charges: &[(&SessionId, &SessionCharge)]) -> Query {
    for (session, charged) in charges {
        query = query.bind(session.to_string()).bind(text(*charged));
    }
    query
}

pub(crate) fn of_row(row: Columns) -> Result<Account, Error> {
    let (name, terms, spent, reserved, before, since_ms) = row;
    let broken = || Error::damaged(fault::DATABASE, "an account has an impossible name");
    Ok(Account {
        account: AccountId::parse(&name).ok_or_else(broken)?,
        terms: parse::<Terms>(&terms)?,
        spent: parse::<Amounts>(&spent)?,
        reserved: parse(&reserved)?,
        before: parse(&before)?,
        since_ms: u64::try_from(since_ms).unwrap_or(0),
    })
}

pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text)
        .map_err(|e| Error::damaged(fault::DATABASE, format!("an account can't be read: {e}")))
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("amounts and terms are plain data with text keys")
}
