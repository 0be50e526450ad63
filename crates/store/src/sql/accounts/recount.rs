//! Reads all accounts and charges to count them anew, also those that can't be read.
//!
//! Owns what becomes of those: a name that is none is removed, and so is a charge, which
//! its session says again; an account whose terms are lost is stopped, so that nothing is
//! spent beyond limits that nobody knows. The caller holds the write lock.

use crate::sql;
use crate::sql::connection::DatabaseConnection;
use outrigger_agent::{AccountId, SessionId};
use serde::de::DeserializeOwned;

use super::{Columns, parse};
use crate::book::Book;
use crate::sql::fault;
use crate::{Account, AccountStop, Error, Terms};

const CHARGES: &str = "SELECT session, charged FROM charges";
const ACCOUNTS: &str = "SELECT account, terms, spent, reserved, before, since_ms FROM accounts";
const LOST: &str = "its limits could not be read: set them anew, and allow it";

/// Everything that can be read.
pub(crate) async fn read(connection: &mut DatabaseConnection) -> Result<Book, Error> {
    let wrong = |e| fault::of("reading accounts", e);
    let mut book = Book::default();
    let rows: Vec<(String, String)> =
        sql::query_as(CHARGES).fetch_all(&mut *connection).await.map_err(wrong)?;
    for (name, text) in rows {
        let (session, charged) = (SessionId::new(name.clone()), parse(&text).ok());
        if let (Some(session), Some(charged)) = (session, charged) {
            book.sessions.insert(session, charged);
            continue;
        }
        let gone = sql::query("DELETE FROM charges WHERE session = $1").bind(name);
        gone.execute(&mut *connection).await.map_err(wrong)?;
    }
    let rows: Vec<Columns> =
        sql::query_as(ACCOUNTS).fetch_all(&mut *connection).await.map_err(wrong)?;
    for (name, terms, _, _, before, since_ms) in rows {
        if let Some(account) = AccountId::parse(&name) {
            let since_ms = u64::try_from(since_ms).unwrap_or(0);
            let terms = parse(&terms).unwrap_or_else(|_| lost());
            let before = or_default(&before);
            let account = Account { terms, before, since_ms, ..Account::new(account) };
            book.accounts.insert(account.account.clone(), account);
            continue;
        }
        let gone = sql::query("DELETE FROM accounts WHERE account = $1").bind(name);
        gone.execute(&mut *connection).await.map_err(wrong)?;
    }
    Ok(book)
}

fn lost() -> Terms {
    let stopped = AccountStop { by: "recount".to_owned(), reason: LOST.to_owned(), at_ms: 0 };
    Terms { stopped: Some(stopped), ..Terms::default() }
}

fn or_default<T: DeserializeOwned + Default>(text: &str) -> T {
    parse(text).unwrap_or_default()
}
