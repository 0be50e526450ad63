//! Commands: starting them, keeping what they say, ending them.

pub(crate) mod caller;
pub(crate) mod commands;
mod freezer;
pub(crate) mod handover;
pub(crate) mod output;
pub(crate) mod process_group;
mod report;
pub(crate) mod running;
pub(crate) mod spawn;
pub(crate) mod table;
mod terminal;
pub(crate) mod tree;
pub(crate) mod vfork;

pub(crate) use commands::Commands;
pub(crate) use output::SpillDir;
pub(crate) use process_group::{CgroupHierarchy, Cgroups};
