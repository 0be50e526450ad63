//! A directory whose copy is in the store, as templates are made for it.

use outrigger_agent::Workspace;
use outrigger_repository::WorkTree;

use crate::compose::Store;

/// The user of commands in a layer.
pub(crate) const AGENT: u64 = 1_000;

/// What a directory's files are called in a sandbox.
pub(crate) const WORKSPACE: &str = "workspace";

/// A directory, and its copy.
#[derive(Clone, Copy)]
pub(crate) struct ProjectContent<'a> {
    pub(crate) store: &'a Store,
    pub(crate) tree: &'a WorkTree,
    pub(crate) workspace: &'a Workspace,
}
