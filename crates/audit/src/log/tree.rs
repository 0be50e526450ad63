//! The whole tree in memory, for proofs.

use tlog_tiles::{Hash, HashReader, RecordProof, prove_record, stored_hashes_for_record_hash};

/// Every hash of a log, in the order in which `tlog_tiles` numbers them.
#[derive(Debug, Default)]
pub struct MerkleTree {
    size: u64,
    hashes: Hashes,
}

#[derive(Debug, Default)]
struct Hashes(Vec<Hash>);

impl HashReader for Hashes {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<Hash>, tlog_tiles::Error> {
        let hash = |index: &u64| {
            let found = usize::try_from(*index).ok().and_then(|index| self.0.get(index));
            found.copied().ok_or_else(|| tlog_tiles::Error::InvalidInput("no such hash".into()))
        };
        indexes.iter().map(hash).collect()
    }
}

impl MerkleTree {
    /// Appends an entry.
    pub fn push(&mut self, hash: Hash) {
        let new = stored_hashes_for_record_hash(self.size, hash, &self.hashes);
        self.hashes.0.extend(new.expect("every hash before it is in memory"));
        self.size += 1;
    }

    /// That the log of the first `size` entries has this one; nothing if it has not.
    #[must_use]
    pub fn prove(&self, size: u64, entry: u64) -> Option<RecordProof> {
        (size <= self.size).then(|| prove_record(size, entry, &self.hashes).ok()).flatten()
    }

    /// The root of the whole.
    #[cfg(test)]
    pub(crate) fn root(&self) -> Hash {
        tlog_tiles::tree_hash(self.size, &self.hashes).expect("every hash is in memory")
    }
}
