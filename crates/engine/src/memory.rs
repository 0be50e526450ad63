//! Memory and skills in sessions: rows of the store as the files of a tree, for tools and
//! for programs in sandboxes alike.
//!
//! Owns the way from a path to a memory scope, that rules are asked about each file however it is
//! reached, and that every change is told to the journal of its session. Knows no file
//! system and no tool: both come as operations on a [`Tree`](outrigger_sandbox::Tree).

mod error;
mod labels;
mod moves;
mod recorder;
mod rights;
mod scope;
mod served;
mod session;
mod tree;

use outrigger_agent::{Role, SessionId};
use outrigger_policy::{Action, Directory, RuleSet, Situation};
use outrigger_sandbox::Tree;
use outrigger_store::entries::{Entries, Reviews};
use std::sync::Arc;

use crate::Clock;

pub use scope::{path_of, place_of};
pub use served::ServedTrees;

use labels::SessionLabels;
use rights::Judgement;
pub(crate) use session::{SessionMemory, note, note_left_over, of_effect, preview, serve, tree_of};
pub(crate) use tree::{MemoryTree, Origin};

/// Where memory and skills are, and who there is.
#[derive(Debug, Clone)]
pub struct MemoryService {
    /// The entries.
    pub entries: Arc<dyn Entries>,
    /// What is proposed for memory scopes that need reviews.
    pub reviews: Arc<dyn Reviews>,
    /// Who is in which group: the people of sessions were authenticated when these were
    /// opened.
    pub people: Directory,
    /// What sandboxes are served; the backends ask it.
    pub served: ServedTrees,
}

impl MemoryService {
    /// What programs meet in a sandbox of a session of somebody's, under these rules, for who
    /// serves a sandbox without driving a session. Nothing for whoever is not a person.
    #[must_use]
    pub fn tree(
        &self,
        rules: &Arc<RuleSet>,
        clock: &Arc<dyn Clock>,
        session: &SessionId,
        principal: &str,
    ) -> Option<Arc<dyn Tree>> {
        let labels = SessionLabels::new(clock, session, None);
        let tree = Arc::new(self.session_tree(principal, labels)?);
        let (person, agent) = (principal.to_owned(), Role::default().acting());
        let facts = Situation { person, agent, ..Situation::new(Action::ReadFiles, "") };
        let judgement = Judgement::new((**rules).clone(), facts, Vec::new());
        Some(Arc::new(tree.view(Origin::Sandbox, judgement)))
    }

    /// The tree of a session, unless its principal is no person.
    fn session_tree(&self, principal: &str, labels: SessionLabels) -> Option<MemoryTree> {
        let scope = self.people.authenticate(&principal.parse().ok()?)?;
        Some(MemoryTree::new(&self.entries, &self.reviews, scope, labels))
    }
}
