//! Commands: starting them, keeping what they say, ending them.

pub(crate) mod child;
pub(crate) mod commands;
mod freezer;
pub(crate) mod group;
pub(crate) mod kept;
pub(crate) mod output;
mod report;
pub(crate) mod running;
pub(crate) mod table;
mod terminal;
pub(crate) mod tree;
pub(crate) mod vfork;

pub(crate) use commands::Commands;
pub(crate) use group::{Cgroups, Given};
pub(crate) use output::Spills;
