//! `/net` in a conversation.

use super::context::Context;
use super::talk::Parts;
use crate::exit::Outcome;
use crate::network::{self, Words};
use crate::show::row::Row;
use crate::show::{Tone, inert};

/// Lets the session reach more, or nothing.
pub(super) async fn widen(parts: Option<Parts>, words: Words) -> Outcome<Vec<Row>> {
    let Parts { store, engine, session, .. } = parts.ok_or_else(Context::not_open)?;
    let wanted = network::of_session(&engine.state(&session).await?, &words)?;
    network::secrets_are_there(&*store.database, &wanted).await?;
    let network = network::widen(&engine, &session, &words).await?;
    Ok(vec![row(&network::shown(&network))])
}

pub(super) fn row(words: &str) -> Row {
    Row::note(Tone::Good, &format!("● commands may reach: {}", inert(words)))
}
