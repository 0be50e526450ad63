//! What becomes of a session's changes, and that the session remembers what a person said of
//! that, so that an approval, a crash or a second message asks for it no more.
//!
//! It is kept beside the journal and not in it: what a person allows to be written into a
//! directory of this machine goes nowhere with an exported session, and comes from nobody
//! else's.

use outrigger_agent::SessionId;
use outrigger_repository::Accept;
use std::fs;
use std::io::ErrorKind;

use super::durable::write;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::{AcceptPolicy, Apply};
use crate::paths::Paths;

/// What becomes of the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Back {
    /// They are left as a patch.
    Patch,
    /// They are written back as well, hazards as far as they are accepted.
    Apply(Accept),
    /// They are written back although it may be half of the work, and it is an error where they
    /// can't be.
    Now(Accept),
    /// What was committed becomes a branch.
    Branch,
}

/// What stands in the file for each of them.
const USUAL: &str = "usual";
const ALL: &str = "all";
const BRANCH: &str = "branch";

impl Back {
    /// What a person says now, from now on; where they say nothing, what they said before.
    pub(crate) fn settle(paths: &Paths, session: &SessionId, said: Apply) -> Outcome<Self> {
        let path = paths.apply(session.as_str());
        let failed = |error: std::io::Error| {
            Failure::new(Kind::Storage, format!("{}: {error}", path.display()))
        };
        let keep = |word: &str| write(&path, word.as_bytes()).map(|()| word.to_owned());
        let kept = match said.apply {
            _ if said.branch => keep(BRANCH),
            Some(AcceptPolicy::Usual) => keep(USUAL),
            Some(AcceptPolicy::All) => keep(ALL),
            Some(AcceptPolicy::No) => fs::remove_file(&path).map(|()| String::new()),
            None => fs::read_to_string(&path),
        };
        match kept.as_deref() {
            Ok(USUAL) => Ok(Self::Apply(Accept::Nothing)),
            Ok(ALL) => Ok(Self::Apply(Accept::Named)),
            Ok(BRANCH) => Ok(Self::Branch),
            Ok(_) => Ok(Self::Patch),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::Patch),
            Err(_) => kept.map(|_| Self::Patch).map_err(failed),
        }
    }
}
