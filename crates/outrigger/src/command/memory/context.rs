//! What the verbs of `outrigger memory` and `outrigger skills` work with.

use outrigger_engine::{path_of, place_of};
use outrigger_policy::Scope;
use outrigger_store::entries::{
    Attribution, ChangeRequest, Contents, Entries, EntryAddress, Error, Reviews, Submission, submit,
};
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::compose;
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::session;
use crate::show::Screen;

/// The memory scopes, and who looks at them.
pub(crate) struct MemoryContext {
    pub(crate) entries: Arc<dyn Entries>,
    pub(crate) reviews: Arc<dyn Reviews>,
    pub(crate) scope: Scope,
    pub(crate) screen: Screen,
    pub(crate) output: Output,
    pub(crate) json: bool,
    /// The variables that hold keys, which are nobody's whom we start.
    pub(crate) keys: BTreeSet<String>,
}

impl MemoryContext {
    pub(crate) async fn open(paths: &Paths, output: Output) -> Outcome<Self> {
        let config = Config::of_files(paths.configs())?;
        let scope = compose::scope(paths, &config, session::WHO)?
            .expect("the person of this machine is one");
        let store = compose::store(paths).await?;
        let screen = Screen::new(output);
        let json = output.json.is_some();
        let (entries, reviews) = (store.entries, store.reviews);
        let keys = config.notify.keys;
        Ok(Self { entries, reviews, scope, screen, output, json, keys })
    }

    /// Where a path leads. One without a slash before it is one of the person's own.
    pub(crate) fn place(&self, path: &str) -> Outcome<EntryAddress> {
        let path =
            if path.starts_with('/') { path.to_owned() } else { format!("/memory/user/{path}") };
        place_of(&path, &self.scope).ok_or_else(|| {
            Failure::new(Kind::NotFound, format!("{path}: nothing is there"))
                .hint("`outrigger memory ls` lists what is yours to see.")
        })
    }

    /// An error about a place.
    pub(crate) fn failed(&self, at: &EntryAddress, error: Error) -> Failure {
        let kind = match &error {
            Error::Absent | Error::Pruned | Error::Redacted(_) => Kind::NotFound,
            Error::Conflict(_) | Error::Exists | Error::NotEmpty | Error::Decided { .. } => {
                Kind::Conflict
            }
            Error::Related(_) => Kind::Denied,
            Error::Quota(_) => Kind::Storage,
            Error::NeedsReview | Error::NotReviewer | Error::NotAuthor | Error::Root => {
                Kind::Denied
            }
            Error::Store(source) => return Failure::from(source),
            _ => Kind::Usage,
        };
        let failure = Failure::new(kind, format!("{}: {error}", path_of(at)));
        match error {
            Error::Conflict(current) => failure.hint(format!(
                "`outrigger memory cat {1}` shows it; `put --replaces {0}` writes over it.",
                current.revision,
                path_of(at)
            )),
            _ => failure,
        }
    }

    /// Makes a change, or proposes it where it has to be reviewed.
    pub(crate) async fn submit(
        &self,
        change: ChangeRequest,
        by: Attribution,
    ) -> Result<Submission, Error> {
        submit(&*self.entries, &*self.reviews, &self.scope, change, by).await
    }

    pub(super) async fn read(&self, at: &EntryAddress, revision: Option<u64>) -> Outcome<Contents> {
        let read = self.entries.read(&self.scope, at, revision).await;
        read.map_err(|error| self.failed(at, error))
    }
}
