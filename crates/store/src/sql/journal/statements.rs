//! The texts of the writer's statements, by how many rows they take.
//!
//! A text is made once and prepared once by the connection, which knows it
//! again by its wording: so there must be few different ones. Each holds only
//! placeholders, never a value.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::limits;

/// How many rows a writing statement takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Statements {
    pub(crate) events: usize,
    pub(crate) sessions: usize,
    pub(crate) charges: usize,
    pub(crate) accounts: usize,
}

/// The texts that were needed so far.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    heads: BTreeMap<(usize, bool), Arc<str>>,
    charged_heads: BTreeMap<(usize, usize), Arc<str>>,
    inserts: BTreeMap<Statements, Arc<str>>,
    log: BTreeMap<usize, Arc<str>>,
    charges: BTreeMap<usize, Arc<str>>,
    accounts: BTreeMap<usize, Arc<str>>,
    set_charges: BTreeMap<usize, Arc<str>>,
    set_accounts: BTreeMap<usize, Arc<str>>,
}

const EVENTS: &str =
    "INSERT INTO events (session, seq, at_ms, format, payload, blob, link) VALUES ";
const SESSIONS: &str = "INSERT INTO sessions \
    (session, created_at_ms, last_at_ms, head_seq, head_link, title, status) VALUES ";
const SESSIONS_KNOWN: &str = " ON CONFLICT (session) DO UPDATE SET \
    last_at_ms = excluded.last_at_ms, head_seq = excluded.head_seq, \
    head_link = excluded.head_link, title = COALESCE(excluded.title, sessions.title), \
    status = COALESCE(excluded.status, sessions.status)";
const COLUMNS: usize = 7;
const LOG: &str = "INSERT INTO log (entry, session, seq, link) VALUES ";
const LOG_COLUMNS: usize = 4;
const CHARGED_HEADS: &str = "BEGIN IMMEDIATE; \
    SELECT 0, sessions.session, head_seq, head_link, charged, '', '' FROM sessions \
    LEFT JOIN charges ON charges.session = sessions.session WHERE sessions.session IN ";
const AND_ACCOUNTS: &str = " UNION ALL \
    SELECT 1, account, since_ms, terms, spent, reserved, before FROM accounts WHERE account IN ";
const CHARGES: &str = "SELECT session, charged FROM charges WHERE session IN ";
const ACCOUNTS: &str =
    "SELECT account, terms, spent, reserved, before, since_ms FROM accounts WHERE account IN ";
const SET_CHARGES: [&str; 2] = [
    "INSERT INTO charges (session, charged) VALUES ",
    " ON CONFLICT (session) DO UPDATE SET charged = excluded.charged",
];
const CHARGES_COLUMNS: usize = 2;
const SET_ACCOUNTS: [&str; 2] = [
    "INSERT INTO accounts (account, terms, spent, reserved, before, since_ms) VALUES ",
    " ON CONFLICT (account) DO UPDATE SET terms = excluded.terms, spent = excluded.spent, \
     reserved = excluded.reserved, before = excluded.before, since_ms = excluded.since_ms",
];
const ACCOUNTS_COLUMNS: usize = 6;

impl Texts {
    /// Reads heads, after taking the write lock if it is the first. Gives the
    /// number of its places too, which are to be filled by repeating a name.
    pub(crate) fn heads(&mut self, count: usize, first: bool) -> (Arc<str>, usize) {
        let places = places(count);
        let make = || {
            let begin = if first { "BEGIN IMMEDIATE; " } else { "" };
            let mut text = format!(
                "{begin}SELECT session, head_seq, head_link FROM sessions WHERE session IN "
            );
            tuple(&mut text, 1, places);
            text.into()
        };
        (self.heads.entry((places, first)).or_insert_with(make).clone(), places)
    }

    /// Takes the write lock, and reads heads with what their sessions are charged, and
    /// accounts. Gives the numbers of places of both, as of [`Self::heads`].
    pub(crate) fn charged_heads(
        &mut self,
        count: usize,
        accounts: usize,
    ) -> (Arc<str>, usize, usize) {
        let (count, accounts) = (places(count), places(accounts));
        let make = || {
            let mut text = CHARGED_HEADS.to_owned();
            let place = tuple(&mut text, 1, count);
            text.push_str(AND_ACCOUNTS);
            tuple(&mut text, place, accounts);
            text.into()
        };
        (self.charged_heads.entry((count, accounts)).or_insert_with(make).clone(), count, accounts)
    }

    /// Writes events, then where their sessions stand, and then what is charged.
    pub(crate) fn insert(&mut self, rows: Statements) -> Arc<str> {
        let make = || {
            let mut text = String::new();
            let mut place = 1;
            if rows.events > 0 {
                text.push_str(EVENTS);
                place = tuples(&mut text, place, rows.events, COLUMNS);
            }
            if rows.sessions > 0 {
                text.push_str(if rows.events > 0 { "; " } else { "" });
                text.push_str(SESSIONS);
                place = tuples(&mut text, place, rows.sessions, COLUMNS);
                text.push_str(SESSIONS_KNOWN);
            }
            if rows.charges > 0 {
                text.push_str("; ");
                text.push_str(SET_CHARGES[0]);
                place = tuples(&mut text, place, rows.charges, CHARGES_COLUMNS);
                text.push_str(SET_CHARGES[1]);
            }
            if rows.accounts > 0 {
                text.push_str("; ");
                text.push_str(SET_ACCOUNTS[0]);
                tuples(&mut text, place, rows.accounts, ACCOUNTS_COLUMNS);
                text.push_str(SET_ACCOUNTS[1]);
            }
            text.into()
        };
        self.inserts.entry(rows).or_insert_with(make).clone()
    }

    /// Writes entries of the log.
    pub(crate) fn log(&mut self, entries: usize) -> Arc<str> {
        let make = || {
            let mut text = String::from(LOG);
            tuples(&mut text, 1, entries, LOG_COLUMNS);
            text.into()
        };
        self.log.entry(entries).or_insert_with(make).clone()
    }
}

impl Texts {
    /// Reads what sessions are charged; with the number of its places, as of [`Self::heads`].
    pub(crate) fn charges(&mut self, count: usize) -> (Arc<str>, usize) {
        among(&mut self.charges, CHARGES, count)
    }

    /// Reads accounts; with the number of its places, as of [`Self::heads`].
    pub(crate) fn accounts(&mut self, count: usize) -> (Arc<str>, usize) {
        among(&mut self.accounts, ACCOUNTS, count)
    }

    /// Writes what sessions are charged.
    pub(crate) fn set_charges(&mut self, rows: usize) -> Arc<str> {
        upsert(&mut self.set_charges, SET_CHARGES, rows, CHARGES_COLUMNS)
    }

    /// Writes accounts.
    pub(crate) fn set_accounts(&mut self, rows: usize) -> Arc<str> {
        upsert(&mut self.set_accounts, SET_ACCOUNTS, rows, ACCOUNTS_COLUMNS)
    }
}

/// For how many names a reading statement has places.
fn places(count: usize) -> usize {
    match count {
        0..=1 => 1,
        2 => 2,
        3..=8 => 8,
        _ => limits::HEADS_MAX,
    }
}

fn among(known: &mut BTreeMap<usize, Arc<str>>, begin: &str, count: usize) -> (Arc<str>, usize) {
    let places = places(count);
    let make = || {
        let mut text = begin.to_owned();
        tuple(&mut text, 1, places);
        text.into()
    };
    (known.entry(places).or_insert_with(make).clone(), places)
}

fn upsert(
    known: &mut BTreeMap<usize, Arc<str>>,
    [begin, end]: [&str; 2],
    rows: usize,
    columns: usize,
) -> Arc<str> {
    let make = || {
        let mut text = begin.to_owned();
        tuples(&mut text, 1, rows, columns);
        text.push_str(end);
        text.into()
    };
    known.entry(rows).or_insert_with(make).clone()
}

/// `($1, $2), ($3, $4)`; gives the next place.
pub(crate) fn tuples(text: &mut String, mut place: usize, count: usize, columns: usize) -> usize {
    for index in 0..count {
        text.push_str(if index > 0 { ", " } else { "" });
        place = tuple(text, place, columns);
    }
    place
}

/// `($1, $2, $3)`; gives the next place.
fn tuple(text: &mut String, place: usize, count: usize) -> usize {
    for index in 0..count {
        let before = if index == 0 { "(" } else { ", " };
        write!(text, "{before}${}", place + index).expect("a String takes everything");
    }
    text.push(')');
    place + count
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn texts() {
        let mut texts = Texts::default();
        let (heads, places) = texts.heads(3, true);
        let rows = Statements { events: 2, sessions: 1, charges: 0, accounts: 0 };
        let one = texts.insert(rows);
        let (charged, ..) = texts.charged_heads(1, 2);
        let all = texts.insert(Statements { events: 1, sessions: 1, charges: 1, accounts: 1 });
        expect![[r#"
            8
            BEGIN IMMEDIATE; SELECT session, head_seq, head_link FROM sessions WHERE session IN ($1, $2, $3, $4, $5, $6, $7, $8)
            INSERT INTO events (session, seq, at_ms, format, payload, blob, link) VALUES ($1, $2, $3, $4, $5, $6, $7), ($8, $9, $10, $11, $12, $13, $14); INSERT INTO sessions (session, created_at_ms, last_at_ms, head_seq, head_link, title, status) VALUES ($15, $16, $17, $18, $19, $20, $21) ON CONFLICT (session) DO UPDATE SET last_at_ms = excluded.last_at_ms, head_seq = excluded.head_seq, head_link = excluded.head_link, title = COALESCE(excluded.title, sessions.title), status = COALESCE(excluded.status, sessions.status)
            BEGIN IMMEDIATE; SELECT 0, sessions.session, head_seq, head_link, charged, '', '' FROM sessions LEFT JOIN charges ON charges.session = sessions.session WHERE sessions.session IN ($1) UNION ALL SELECT 1, account, since_ms, terms, spent, reserved, before FROM accounts WHERE account IN ($2, $3)
            INSERT INTO events (session, seq, at_ms, format, payload, blob, link) VALUES ($1, $2, $3, $4, $5, $6, $7); INSERT INTO sessions (session, created_at_ms, last_at_ms, head_seq, head_link, title, status) VALUES ($8, $9, $10, $11, $12, $13, $14) ON CONFLICT (session) DO UPDATE SET last_at_ms = excluded.last_at_ms, head_seq = excluded.head_seq, head_link = excluded.head_link, title = COALESCE(excluded.title, sessions.title), status = COALESCE(excluded.status, sessions.status); INSERT INTO charges (session, charged) VALUES ($15, $16) ON CONFLICT (session) DO UPDATE SET charged = excluded.charged; INSERT INTO accounts (account, terms, spent, reserved, before, since_ms) VALUES ($17, $18, $19, $20, $21, $22) ON CONFLICT (account) DO UPDATE SET terms = excluded.terms, spent = excluded.spent, reserved = excluded.reserved, before = excluded.before, since_ms = excluded.since_ms
        "#]].assert_eq(&format!("{places}\n{heads}\n{one}\n{charged}\n{all}\n"));
    }
}
