//! The repository's own instructions to agents, as untrusted input.

use outrigger_agent::{Author, Message};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::limits;

/// AGENTS.md at the root, or CLAUDE.md where there is none: what the repository's
/// authors say to any agent. It informs the model and gives it no rights.
pub(crate) fn guides(dir: &Path) -> Vec<Message> {
    let read = |name: &str| {
        let path = dir.join(name);
        // Not through a link: it could name any file of the user's.
        let meta = std::fs::symlink_metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
        let mut bytes = Vec::new();
        let file = File::open(&path).ok()?;
        file.take(limits::GUIDE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if meta.len() > limits::GUIDE_BYTES_MAX {
            text.push_str("\n[cut here: the rest is in the file]\n");
        }
        Some(Message { author: Author::Untrusted(name.to_owned()), text })
    };
    ["AGENTS.md", "CLAUDE.md"].into_iter().find_map(read).into_iter().collect()
}
