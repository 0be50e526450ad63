//! Files that follow the one that was read last, for a program that reads a folder through.
//!
//! Owns what was read before it was asked for: little, for one reader at a time, and given
//! away at most once, as long as nothing was changed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use outrigger_policy::Scope;

use super::known::{Known, Since, key};
use crate::entries::{Contents, Place};

/// See the module.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct ReadAhead(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    since: Option<Since>,
    contents: HashMap<String, Contents>,
    /// What was read last.
    last: Option<Place>,
}

/// A file that is asked for.
#[derive(Debug)]
pub(super) enum Ahead {
    /// It was read.
    Here(Box<Contents>),
    /// It comes after the one that was read last.
    Next,
    Elsewhere,
}

impl ReadAhead {
    /// Looks for the newest version of a file.
    pub(super) fn take(&self, known: &Known, scope: &Scope, at: &Place) -> Ahead {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = state.last.replace(at.clone());
        let found = state.contents.remove(&key(scope, at));
        match found.filter(|_| state.since.is_some_and(|since| known.holds(since))) {
            Some(contents) => Ahead::Here(Box::new(contents)),
            None => match last {
                Some(last)
                    if last.shelf == at.shelf
                        && last.path.folder() == at.path.folder()
                        && last.path < at.path =>
                {
                    Ahead::Next
                }
                Some(_) | None => Ahead::Elsewhere,
            },
        }
    }

    /// Keeps what was read beside what was asked for, in place of what was kept before.
    pub(super) fn note(&self, known: &Known, since: Since, scope: &Scope, found: Vec<Contents>) {
        if !known.holds(since) {
            return;
        }
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.since = Some(since);
        state.contents =
            found.into_iter().map(|found| (key(scope, &found.version.place), found)).collect();
    }
}
