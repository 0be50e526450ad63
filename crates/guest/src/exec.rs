//! Commands: starting them, keeping what they say, ending them.

pub(crate) mod child;
pub(crate) mod commands;
pub(crate) mod group;
pub(crate) mod kept;
pub(crate) mod output;
pub(crate) mod running;
pub(crate) mod table;
mod tree;

pub(crate) use commands::Commands;
pub(crate) use group::Cgroups;
pub(crate) use output::Spills;
