//! What a journal has, as the wire says it.

mod account;
mod approval;
pub mod entry;
mod event;
mod session;
mod share;

pub(crate) use account::{account, limit, measure, period};
pub use approval::{OF_BUDGET, approval, approval_id};
pub(crate) use approval::{approvals, changes_file};
pub(crate) use entry::{entry, line, proposal, version};
pub(crate) use event::{event, flow, flow_verdict};
pub(crate) use session::session;
pub use session::when_busy;
pub(crate) use share::{shared, standing_in, standing_of};
