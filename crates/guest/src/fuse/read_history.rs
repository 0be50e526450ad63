//! What processes read.

use std::collections::{HashMap, VecDeque};

use crate::limits;

/// Which revision of a file a process read last, the oldest note forgotten first.
#[derive(Debug, Default)]
pub(super) struct ReadHistory {
    last: HashMap<(u32, u64), u64>,
    order: VecDeque<(u32, u64)>,
}

impl ReadHistory {
    pub(super) fn note(&mut self, pid: u32, node: u64, revision: u64) {
        if self.last.insert((pid, node), revision).is_none() {
            self.order.push_back((pid, node));
        }
        if self.order.len() > limits::READS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.last.remove(&oldest);
        }
    }

    pub(super) fn get(&self, pid: u32, node: u64) -> Option<u64> {
        self.last.get(&(pid, node)).copied()
    }
}
