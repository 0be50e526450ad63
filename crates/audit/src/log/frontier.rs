//! The right edge of the tree: the roots of its full subtrees, which is all that
//! is needed to append.

use outrigger_agent::Digest;
use tlog_tiles::{EMPTY_HASH, Hash, node_hash};

/// The roots of the full subtrees of a log, largest first.
#[derive(Debug, Clone, Default)]
pub struct Frontier {
    size: u64,
    roots: Vec<Hash>,
}

impl Frontier {
    /// How many entries there are.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends an entry.
    pub fn push(&mut self, mut hash: Hash) {
        // Each trailing one of the size is a full subtree that the new one completes.
        for _ in 0..self.size.trailing_ones() {
            let left = self.roots.pop().expect("a full subtree for each one of the size");
            hash = node_hash(left, hash);
        }
        self.roots.push(hash);
        self.size += 1;
    }

    /// The root of the whole.
    #[must_use]
    pub fn root(&self) -> Hash {
        let mut roots = self.roots.iter().rev().copied();
        let Some(last) = roots.next() else { return EMPTY_HASH };
        roots.fold(last, |right, left| node_hash(left, right))
    }

    /// As text, to be kept.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.roots.iter().map(|hash| Digest::from_sha256(hash.0).to_string()).collect()
    }

    /// Out of that text; nothing if it is no frontier of so many entries.
    #[must_use]
    pub fn parse(size: u64, text: &str) -> Option<Self> {
        if !text.is_ascii() || text.len() != 64 * size.count_ones() as usize {
            return None;
        }
        let roots = (0..text.len()).step_by(64).map(|at| parse_hash(&text[at..at + 64]));
        Some(Self { size, roots: roots.collect::<Option<_>>()? })
    }
}

/// Out of 64 hexadecimal digits.
pub(crate) fn parse_hash(text: &str) -> Option<Hash> {
    let digest = Digest::parse(text)?;
    let mut hash = [0; 32];
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digest.as_str()[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(Hash(hash))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::MerkleTree;

    #[test]
    fn it_agrees_with_the_whole_tree() {
        let (mut frontier, mut tree) = (Frontier::default(), MerkleTree::default());
        for number in 0..300u64 {
            assert_eq!(Digest::from_sha256(frontier.root().0), Digest::from_sha256(tree.root().0));
            let hash = tlog_tiles::record_hash(&number.to_be_bytes());
            frontier = Frontier::parse(number, &frontier.to_text()).unwrap();
            frontier.push(hash);
            tree.push(hash);
        }
        for (size, text) in [(1, ""), (2, "zz"), (3, &"a".repeat(64)), (1, &"é".repeat(32))] {
            assert!(Frontier::parse(size, text).is_none(), "{size} {text}");
        }
    }
}
