//! For which files contents are kept.
//!
//! Owns how much they take together. The contents themselves lie with the files that they
//! are of, where they may be replaced or dropped meanwhile: what is noted here says by its
//! time of use whether it still is of what lies there.

use std::collections::VecDeque;

use super::file::Contents;
use super::nodes::{Entry, Nodes};
use crate::limits;

/// Contents that are kept, by the order in which they were used.
#[derive(Debug, Default)]
pub(super) struct ContentsCache {
    /// When each was used, of which node it is, and how many bytes it takes.
    order: VecDeque<(u64, u64, usize)>,
    bytes: usize,
}

impl ContentsCache {
    /// Keeps contents for as long as there is room.
    pub(super) fn keep(&mut self, nodes: &mut Nodes, id: u64, contents: Contents) {
        let tick = contents.tick;
        let took = contents.bytes.len() + limits::CONTENTS_OVERHEAD_BYTES;
        if let Ok(file) = nodes.get(id).and_then(Entry::file) {
            file.contents = Some(contents);
            self.order.push_back((tick, id, took));
            self.bytes += took;
        }
        let mut spared = 0;
        while self.bytes > limits::CONTENTS_BYTES_MAX
            && let Some((tick, id, took)) = self.order.pop_front()
        {
            let file = nodes.get(id).and_then(Entry::file);
            let file =
                file.ok().filter(|file| file.contents.as_ref().is_some_and(|c| c.tick == tick));
            if let Some(file) = file {
                // What is open is read on, if it is not too much.
                let open = file.handles > 0 && self.bytes <= limits::CONTENTS_OPEN_BYTES_MAX;
                if open && spared < self.order.len() {
                    spared += 1;
                    self.order.push_back((tick, id, took));
                    continue;
                }
                file.contents = None;
            }
            self.bytes -= took;
        }
    }
}
