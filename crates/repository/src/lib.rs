//! A directory of a person's: what of it goes into a workspace, and how what a session
//! changed comes back.
//!
//! Owns everything that reads what others wrote into a repository, and that writes what a
//! sandbox gave into one. Runs nothing: no git, no filter, no hook, no program that a
//! setting names; reads no setting of a repository at all. Must never open a path of the
//! directory but beneath its handle.

mod apply;
mod change;
mod change_archive;
mod commits;
mod dependencies;
mod error;
mod file_layer;
mod generated;
mod git;
mod hazard;
mod hex;
mod history;
mod hunks;
mod layer;
pub mod limits;
mod listing;
mod lock_files;
mod modified;
mod names;
mod pack;
mod patch;
mod rules;
mod scratch;
pub mod toolchain;
mod unpack;
mod work_tree;

pub use apply::{Accept, already_there, apply, since};
pub use change::{Change, File};
pub use change_archive::{read_changes, write_changes};
pub use commits::{
    Branch, BranchOutcome, CommitProblem, CommitReview, CommitTarget, NewCommits, ObjectId,
    ObjectSet, WorkFile,
};
pub use dependencies::{DependencyFolders, DependencyPolicy};
pub use error::{Error, TooLarge};
pub use file_layer::FileLayer;
pub use generated::{GeneratedTree, generated};
pub use git::IndexProblem;
pub use git::inside::{OBJECTS, SandboxRepository};
pub use git::remotes::{Remote, remotes};
pub use hazard::{Grade, Hazard, hazards, leads_out};
pub use history::History;
pub use hunks::diff;
pub use lock_files::lock_digest;
pub use modified::modified_ns;
pub use names::is_git;
pub use pack::{DirectoryArchive, Limits, files, pack};
pub use patch::{one_file, patch};
pub use rules::Rules;
pub use scratch::nameless;
pub use unpack::unpack;
pub use work_tree::WorkTree;
