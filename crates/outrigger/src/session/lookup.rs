//! Which session a person means: by its name, by the beginning of it, or the newest one.

use outrigger_agent::{Event, SessionId, Spec};
use outrigger_store::{Before, Journal, SessionRow};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{fold, walk};
use crate::compose::Store;
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;

/// What stands for the newest session wherever one is named.
pub(crate) const LAST: &str = "@last";

/// A name that a person gives to a session.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn name(text: &str) -> Result<SessionId, String> {
    let max = limits::SESSION_NAME_CHARS_MAX;
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    let begins = text.bytes().next().is_some_and(|first| first.is_ascii_lowercase());
    if !begins || text.len() > max || !text.bytes().all(plain) {
        return Err(format!("a name has 1 to {max} characters of a-z 0-9 _ -, the first of a-z"));
    }
    let session = SessionId::new(text).ok_or_else(|| "it can't be a name".to_owned())?;
    if session.root() != session {
        let said = "no digit may follow a hyphen: subagents of a session are called like that";
        return Err(said.to_owned());
    }
    Ok(session)
}

/// The session that is called like that, else the only one whose name begins like that;
/// `@last` is the newest one.
pub(crate) async fn find(journal: &dyn Journal, said: &str) -> Outcome<SessionRow> {
    if said == LAST {
        return last(journal).await;
    }
    if let Some(id) = SessionId::new(said)
        && let Some(row) = journal.session(&id).await?
    {
        return Ok(row);
    }
    let mut found: Vec<SessionRow> = Vec::new();
    walk(journal, |row| {
        if row.session.as_str().starts_with(said) {
            found.push(row);
        }
        ControlFlow::Continue(())
    })
    .await?;
    // Its subagents' names begin with a session's.
    let whole =
        |row: &SessionRow| found.iter().all(|it| it == row || it.session.is_below(&row.session));
    if let Some(only) = found.iter().position(whole) {
        found = vec![found.swap_remove(only)];
    }
    match (found.len(), found.pop()) {
        (1, Some(row)) if !said.is_empty() => Ok(row),
        (_, Some(_)) => Err(several(said)),
        (_, None) => Err(none(said)),
    }
}

/// The session that a person names, else the newest of the directory that they stand in, else
/// the newest of all.
pub(crate) async fn named_or_newest(store: &Store, said: Option<&str>) -> Outcome<SessionId> {
    let newest_here = match (said, here()) {
        (None, Some(dir)) => newest_in(store, &dir, |_| true).await?,
        (Some(_), _) | (None, None) => None,
    };
    match newest_here {
        Some(row) => Ok(row.session),
        None => Ok(find(&*store.journal, said.unwrap_or(LAST)).await?.session),
    }
}

/// The directory in which the command was begun, if there still is one.
pub(crate) fn here() -> Option<PathBuf> {
    std::env::current_dir().and_then(fs::canonicalize).ok()
}

/// The newest session that no session started.
pub(crate) async fn last(journal: &dyn Journal) -> Outcome<SessionRow> {
    let mut newest = None;
    walk(journal, |row| {
        if is_below(&row.session) {
            return ControlFlow::Continue(());
        }
        newest = Some(row);
        ControlFlow::Break(())
    })
    .await?;
    newest.ok_or_else(|| {
        Failure::new(Kind::NotFound, "there are no sessions yet")
            .hint("`outrigger run \"...\"` begins one.")
    })
}

/// The newest session of a directory that was not cancelled.
pub(crate) async fn last_in(store: &Store, dir: &Path) -> Outcome<Option<SessionRow>> {
    newest_in(store, dir, |row| row.status != "cancelled").await
}

// A few are looked at at a time: most often it is one of the first.
async fn newest_in(
    store: &Store,
    dir: &Path,
    is_wanted: impl Fn(&SessionRow) -> bool,
) -> Outcome<Option<SessionRow>> {
    let mut before: Option<Before> = None;
    let mut searched = 0;
    while searched < limits::SESSIONS_SEARCHED_MAX {
        let page = store.journal.sessions(before.take(), limits::SESSIONS_PAGE).await?;
        before = page.last().map(Before::from);
        searched += page.len();
        for row in page.into_iter().filter(|row| !is_below(&row.session) && is_wanted(row)) {
            if opening(store, &row.session).await?.is_some_and(|spec| is_of(&spec, dir)) {
                return Ok(Some(row));
            }
        }
        if before.is_none() {
            break;
        }
    }
    Ok(None)
}

/// What a session was opened with.
pub(crate) async fn opening(store: &Store, session: &SessionId) -> Outcome<Option<Arc<Spec>>> {
    Ok(match store.database.opening(session).await?.map(|record| record.event) {
        Some(Event::Opened(spec)) => Some(spec),
        Some(_) | None => None,
    })
}

/// Whether a session was begun in a directory.
pub(crate) fn is_of(spec: &Spec, dir: &Path) -> bool {
    spec.workspace.as_ref().is_some_and(|it| Path::new(&it.begun_in()) == dir)
}

/// The error for a beginning that several sessions have.
pub(crate) fn several(said: &str) -> Failure {
    Failure::new(Kind::Usage, format!("several sessions begin with `{said}`"))
        .hint("Write more of the name.")
}

/// The error for a name that no session has.
pub(crate) fn none(said: &str) -> Failure {
    Failure::new(Kind::NotFound, format!("no session begins with `{said}`"))
        .hint("`outrigger sessions ls` lists the sessions.")
}

/// Whether it is a subagent's, by its name.
pub(crate) fn is_below(session: &SessionId) -> bool {
    session.root() != *session
}

/// The session that a person goes on with when this one has more to do: of a subagent,
/// the one that nobody started.
pub(crate) async fn root(journal: &dyn Journal, session: &SessionId) -> Outcome<SessionId> {
    let mut root = session.clone();
    while let Some(parent) = fold(journal, &root).await?.spec().and_then(|spec| spec.parent()) {
        root = parent.session.clone();
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn names() {
        for good in ["fix", "fix-login", "a_1", "x2"] {
            assert_eq!(name(good).unwrap().as_str(), good);
        }
        for bad in ["", "2x", "-a", "Fix", "a b", "a-2", "a.b", "@last", "a/b", &"x".repeat(33)] {
            assert!(name(bad).is_err(), "{bad}");
        }
    }
}
