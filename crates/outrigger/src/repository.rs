//! The user's directory: what of it goes into a workspace, and how changes come back.

mod apply;
mod guide;
mod ignored;
mod pack;
mod patch;

pub(crate) use apply::apply;
pub(crate) use guide::guides;
pub(crate) use ignored::Ignored;
pub(crate) use pack::pack;
pub(crate) use patch::{one_file, patch};
