//! The Merkle tree: its entries, its frontier for appending, and all of it for proofs.
//!
//! Must never change what an entry is hashed as.

mod entry;
mod frontier;
mod tree;

pub use entry::LogEntry;
pub use frontier::Frontier;
pub(crate) use frontier::parse_hash;
pub use tree::MerkleTree;
