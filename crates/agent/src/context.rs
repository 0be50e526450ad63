//! How full the model's context is, as far as it was counted.

use serde::{Deserialize, Serialize};

use crate::{Cut, Reply, limits};

/// How full the model's context is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Context {
    /// As the provider counted it at the last reply.
    pub(crate) tokens: u64,
    /// Added since then and not counted yet.
    pub(crate) bytes: u64,
    /// Replies since the last compaction: without one there is nothing to compact.
    pub(crate) replies: u64,
    /// The provider said that it is too long.
    pub(crate) overflowed: bool,
    /// A person asked for a compaction, and there was none since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) requested: bool,
    /// How often in a row it was to be made shorter, in vain.
    #[serde(default)]
    pub(crate) attempts: u32,
}

impl Context {
    /// So many bytes more that nobody counted.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// As a session has it that begins with a cut, or goes back to one.
    pub(crate) fn of_cut(cut: &Cut) -> Self {
        Self {
            tokens: cut.counted_tokens,
            bytes: cut.uncounted_bytes,
            replies: cut.replies,
            overflowed: false,
            requested: false,
            attempts: 0,
        }
    }

    /// A reply came while so many bytes were queued, which were not in its request.
    pub(crate) fn count_reply(&mut self, reply: &Reply, queued_bytes: u64) {
        let usage = &reply.usage;
        if usage.input_tokens == 0 {
            // Not counted by the provider, as some do: the estimate goes on.
            self.add(reply.bytes());
        } else {
            self.tokens = usage.input_tokens.saturating_add(usage.output_tokens);
            self.bytes = queued_bytes;
        }
        self.replies = self.replies.saturating_add(1);
        self.overflowed = false;
        self.attempts = 0;
    }

    /// It was replaced by a shorter one of so many bytes, of which nothing was counted.
    pub(crate) fn shorten(&mut self, bytes: u64) {
        *self = Self { bytes, attempts: self.attempts, ..Self::default() };
    }

    /// Tokens that it will take as input: what the provider counted, and an estimate on the
    /// safe side of what came since.
    pub(crate) fn input_tokens(&self) -> u64 {
        self.tokens.saturating_add(self.bytes.div_ceil(limits::BYTES_PER_TOKEN))
    }
}
