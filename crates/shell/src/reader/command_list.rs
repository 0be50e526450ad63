//! The commands that were read, and how many words they have.
//!
//! Owns the limit of words.

use super::cursor::Unread;
use crate::limits::WORDS_MAX;
use crate::syntax::Command;

/// Commands in the order in which they were read.
#[derive(Default)]
pub(super) struct CommandList {
    commands: Vec<Command>,
    /// Words that were begun, and those of the commands once more.
    words: usize,
}

impl CommandList {
    /// Counts a word that begins.
    pub(super) fn count_word(&mut self) -> Result<(), Unread> {
        self.count(1)
    }

    /// Keeps a command.
    pub(super) fn push(&mut self, command: Command) -> Result<(), Unread> {
        self.count(1 + command.words.len())?;
        self.commands.push(command);
        Ok(())
    }

    fn count(&mut self, words: usize) -> Result<(), Unread> {
        self.words += words;
        if self.words > WORDS_MAX { Err(Unread) } else { Ok(()) }
    }

    /// All of them.
    pub(super) fn into_commands(self) -> Vec<Command> {
        self.commands
    }
}
