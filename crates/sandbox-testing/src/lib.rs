//! What a sandbox backend is tested with.
//!
//! Owns the conformance suite that every backend passes ([`conformance`]), a backend in
//! memory ([`fake`]) and a served tree in memory ([`FakeTree`]). Only tests and simulations
//! depend on it.

#![forbid(unsafe_code)]

pub mod conformance;
pub mod fake;
mod fake_tree;
mod limits;

pub use fake_tree::{FakeTree, FakeTrees};
