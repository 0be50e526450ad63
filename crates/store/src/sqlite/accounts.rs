//! Accounts in the database: read and written inside the transaction of a commit.

use outrigger_agent::{AccountId, Amounts, SessionId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteConnection;

use super::batch::number;
use super::fault;
use crate::accounts::{Account, Book, Charged, Terms};
use crate::{Error, limits};

const CHARGED: &str = "SELECT session, charged FROM charges WHERE session";
const ACCOUNT: &str = "SELECT account, terms, spent, reserved, before, since_ms FROM accounts";

type Columns = (String, String, String, String, String, i64);

fn wrong(error: sqlx::Error) -> Error {
    fault::of("reading accounts", error)
}

/// Reads what charges of these sessions to these accounts have to do with: also the
/// accounts that the sessions were charged to before.
pub(super) async fn read(
    connection: &mut SqliteConnection,
    sessions: &[&SessionId],
    accounts: impl Iterator<Item = &AccountId>,
) -> Result<Book, Error> {
    let mut book = Book::default();
    let mut names: Vec<AccountId> = accounts.cloned().collect();
    for some in sessions.chunks(limits::HEADS_MAX) {
        let text = format!("{CHARGED} IN {}", places(some.len()));
        let mut query = sqlx::query_as(AssertSqlSafe(text));
        for session in some {
            query = query.bind(session.to_string());
        }
        let rows: Vec<(String, String)> = query.fetch_all(&mut *connection).await.map_err(wrong)?;
        for (session, charged) in rows {
            let charged: Charged = parse(&charged)?;
            names.extend(charged.accounts.iter().cloned());
            book.sessions.extend(SessionId::new(session).map(|session| (session, charged)));
        }
    }
    names.sort();
    names.dedup();
    for some in names.chunks(limits::HEADS_MAX) {
        let text = format!("{ACCOUNT} WHERE account IN {}", places(some.len()));
        let mut query = sqlx::query_as(AssertSqlSafe(text));
        for name in some {
            query = query.bind(name.as_str().to_owned());
        }
        let rows: Vec<Columns> = query.fetch_all(&mut *connection).await.map_err(wrong)?;
        for row in rows {
            let account = of_row(row)?;
            book.accounts.insert(account.account.clone(), account);
        }
    }
    Ok(book)
}

/// `($1, $2)`. There are at most [`limits::HEADS_MAX`] such texts, so that the connection
/// knows most of them again.
fn places(count: usize) -> String {
    let all: Vec<String> = (1..=count).map(|place| format!("${place}")).collect();
    format!("({})", all.join(", "))
}

/// What a session is charged.
pub(super) async fn charged(
    connection: &mut SqliteConnection,
    session: &SessionId,
) -> Result<Option<Charged>, Error> {
    let row: Option<(String, String)> = sqlx::query_as(AssertSqlSafe(format!("{CHARGED} = $1")))
        .bind(session.to_string())
        .fetch_optional(connection)
        .await
        .map_err(wrong)?;
    row.map(|(_, text)| parse(&text)).transpose()
}

/// All accounts, by name.
pub(super) async fn all(connection: &mut SqliteConnection) -> Result<Vec<Account>, Error> {
    let text = format!("{ACCOUNT} ORDER BY account LIMIT $1");
    let rows: Vec<Columns> = sqlx::query_as(AssertSqlSafe(text))
        .bind(limits::ACCOUNTS_MAX)
        .fetch_all(connection)
        .await
        .map_err(wrong)?;
    rows.into_iter().map(of_row).collect()
}

/// Writes what was changed in a book.
pub(super) async fn write(connection: &mut SqliteConnection, book: &Book) -> Result<(), Error> {
    let wrong = |e| fault::of("writing accounts", e);
    let accounts = book.changed_accounts.iter().filter_map(|name| book.accounts.get(name));
    let accounts: Vec<&Account> = accounts.collect();
    for some in accounts.chunks(limits::STATEMENT_ROWS_MAX) {
        let mut query = sqlx::query(AssertSqlSafe(rows(ACCOUNTS, some.len(), 6)));
        for account in some {
            query = query.bind(account.account.as_str().to_owned()).bind(text(&account.terms));
            query = query.bind(text(&account.spent)).bind(text(&account.reserved));
            query = query.bind(text(&account.before)).bind(number(account.since_ms));
        }
        query.execute(&mut *connection).await.map_err(wrong)?;
    }
    let charges = book.changed_sessions.iter();
    let charges: Vec<_> =
        charges.filter_map(|session| Some((session, book.sessions.get(session)?))).collect();
    for some in charges.chunks(limits::STATEMENT_ROWS_MAX) {
        let mut query = sqlx::query(AssertSqlSafe(rows(CHARGES, some.len(), 2)));
        for (session, charged) in some {
            query = query.bind(session.to_string()).bind(text(charged));
        }
        query.execute(&mut *connection).await.map_err(wrong)?;
    }
    Ok(())
}

const ACCOUNTS: [&str; 2] = [
    "INSERT INTO accounts (account, terms, spent, reserved, before, since_ms) VALUES",
    "ON CONFLICT (account) DO UPDATE SET terms = excluded.terms, spent = excluded.spent, \
     reserved = excluded.reserved, before = excluded.before, since_ms = excluded.since_ms",
];
const CHARGES: [&str; 2] = [
    "INSERT INTO charges (session, charged) VALUES",
    "ON CONFLICT (session) DO UPDATE SET charged = excluded.charged",
];

/// A statement that writes so many rows.
fn rows([begin, end]: [&str; 2], count: usize, columns: usize) -> String {
    let place = |row: usize, column: usize| format!("${}", row * columns + column + 1);
    let row = |row| {
        let places: Vec<String> = (0..columns).map(|column| place(row, column)).collect();
        format!("({})", places.join(", "))
    };
    let all: Vec<String> = (0..count).map(row).collect();
    format!("{begin} {} {end}", all.join(", "))
}

fn of_row(row: Columns) -> Result<Account, Error> {
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

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text)
        .map_err(|e| Error::damaged(fault::DATABASE, format!("an account can't be read: {e}")))
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("amounts and terms are plain data with text keys")
}
