//! What a journal has, as the wire says it.

mod approval;
mod event;
mod session;

pub(crate) use approval::{approval, approvals, changes_file};
pub(crate) use event::event;
pub(crate) use session::session;
