//! Statements about entries: what stands where, what a change makes of it, and proposals.
//!
//! Must never look for a memory scope by another name than that which a scope gives it.

mod draft;
mod erasure;
mod labels;
pub(crate) mod look;
mod moves;
mod plan;
pub(crate) mod proposals;
mod put;
pub(crate) mod read;
pub(crate) mod rows;
mod usage;
mod write_request;

pub(crate) use write_request::{Answer, Order, Request, WriteRequest};
