//! Whether a text has a long run of bytes of another one: what is left of a text that was
//! edited.
//!
//! Every fourth block of twelve bytes of the one is looked for at every place of the other,
//! so that a run of [`crate::limits::RUN_BYTES_MIN`] is always found.

use std::collections::{BTreeSet, HashSet};

use crate::limits;

const BLOCK_BYTES: usize = 12;
const STEP_BYTES: usize = limits::RUN_BYTES_MIN - BLOCK_BYTES;

/// Texts whose runs are looked for.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    blocks: HashSet<[u8; BLOCK_BYTES]>,
    /// Texts that are shorter than a run, whole.
    short: BTreeSet<Vec<u8>>,
    bytes: usize,
    /// There were more texts than are kept: anything may have a run of theirs.
    is_full: bool,
}

impl Runs {
    /// Looks also for those of this text.
    pub(crate) fn add(&mut self, text: &[u8]) {
        self.bytes += text.len();
        self.is_full |= self.bytes > limits::RUNS_BYTES_MAX;
        if self.is_full {
            return;
        }
        let short = text.trim_ascii();
        if text.len() < limits::RUN_BYTES_MIN && !short.is_empty() {
            self.short.insert(short.to_owned());
        }
        for at in (0..text.len()).step_by(STEP_BYTES) {
            let block = text.get(at..at + BLOCK_BYTES).and_then(|bytes| bytes.try_into().ok());
            self.blocks.extend(block.filter(tells_something));
        }
    }

    /// Whether a text has one of them, or nobody can say.
    pub(crate) fn are_in(&self, text: &[u8]) -> bool {
        let has = |short: &Vec<u8>| text.windows(short.len()).any(|part| part == short);
        let mut blocks = text.windows(BLOCK_BYTES).filter_map(|part| part.try_into().ok());
        self.is_full
            || self.short.iter().any(has)
            || blocks.any(|block: [u8; BLOCK_BYTES]| self.blocks.contains(&block))
    }
}

/// Lines of dashes and blanks are in everything.
fn tells_something(block: &[u8; BLOCK_BYTES]) -> bool {
    block.iter().collect::<BTreeSet<_>>().len() > 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_wherever_they_are() {
        let mut runs = Runs::default();
        runs.add(b"notes\n--------------------------------\nkey = AKIAQX7ZJ2WVPL9TM3RD\n");
        runs.add(b" hunter2\n");
        for (text, found) in [
            ("", false),
            ("nothing of it: a plain text that somebody wrote", false),
            ("------------------------------------------------", false),
            ("the AKIAQX7ZJ2WVPL9TM3RD", true),
            ("AKIAQX7ZJ2WVPL9 and what else", true),
            ("AKIAQX7 is the beginning of one", false),
            ("it was hunter2!", true),
        ] {
            assert_eq!(runs.are_in(text.as_bytes()), found, "{text}");
        }
        let secret = b"0123456789abcdefghijklmnop";
        let mut runs = Runs::default();
        runs.add(secret);
        for at in 0..=secret.len() - limits::RUN_BYTES_MIN {
            assert!(runs.are_in(&secret[at..at + limits::RUN_BYTES_MIN]), "{at}");
        }
        let mut full = Runs::default();
        full.add(&vec![b'x'; limits::RUNS_BYTES_MAX + 1]);
        assert!(full.are_in(b"y"));
    }
}
