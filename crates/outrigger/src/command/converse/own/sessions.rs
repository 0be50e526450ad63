//! Sessions of this machine, and what the next of them begins with.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use crate::abandoned;
use crate::command::converse::source::ListedSession;
use crate::compose::Store;
use crate::config::{Config, ModelChoice};
use crate::exit::Outcome;
use crate::network::Words;
use crate::paths::Paths;
use crate::{models, session};

/// Sessions of this machine. Cheap to copy.
#[derive(Debug, Clone)]
pub(crate) struct OwnSessions {
    pub(super) paths: Paths,
    pub(super) config: Arc<Config>,
    pub(super) dir: PathBuf,
    pub(super) next: Rc<RefCell<NextSession>>,
}

/// What the next session begins with.
#[derive(Debug, Clone)]
pub(super) struct NextSession {
    pub(super) model: ModelChoice,
    pub(super) network: Words,
}

impl OwnSessions {
    pub(crate) fn new(paths: &Paths, config: Config, model: ModelChoice, dir: &Path) -> Self {
        let network = config.sandboxes.first().map(|first| first.network.clone());
        let next = NextSession { model, network: network.unwrap_or_default() };
        let (paths, config, dir) = (paths.clone(), Arc::new(config), dir.to_owned());
        Self { paths, config, dir, next: Rc::new(RefCell::new(next)) }
    }

    /// An error where no model is chosen: nothing could be said.
    pub(crate) fn has_model(&self) -> Outcome {
        match self.next.borrow().model {
            ModelChoice::Unset => Err(models::unset()),
            _ => Ok(()),
        }
    }

    pub(super) fn paths(&self) -> &Paths {
        &self.paths
    }

    pub(super) fn model(&self) -> ModelChoice {
        self.next.borrow().model.clone()
    }

    pub(super) async fn newest(&self, store: &Store, count: usize) -> Outcome<Vec<ListedSession>> {
        let mut rows = Vec::new();
        session::walk(&*store.journal, |row| {
            if !session::is_below(&row.session) {
                rows.push(row);
            }
            if rows.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .await?;
        let mut listed = Vec::new();
        for row in rows {
            listed.push(self.listed(store, row).await?);
        }
        Ok(listed)
    }

    pub(super) async fn listed(
        &self,
        store: &Store,
        row: outrigger_store::SessionRow,
    ) -> Outcome<ListedSession> {
        let standing = abandoned::standing(store, &row).await?;
        let is_held = standing == "running";
        let outrigger_store::SessionRow { session, last_at_ms, title, .. } = row;
        Ok(ListedSession { session, last_at_ms, standing, title, is_held })
    }
}
