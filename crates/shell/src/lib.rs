//! What can be said of a shell command from its text: the programs that it names, the
//! guarded paths that it names, and whether it does what its text does not say.
//!
//! The answer is a label for rules and for the audit, never a boundary: what a program
//! does with a word is its own affair, and only what is mounted decides what it meets.
//! So the one promise is to be careful: a text is taken for known only if the reader knows
//! every construction in it, and if every program in it is one whose arguments are
//! understood.

mod expand;
mod judge;
pub mod limits;
mod paths;
mod programs;
mod reader;
mod syntax;
mod variables;

use std::collections::BTreeSet;

/// What is known of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The programs that it names, without their directories.
    pub programs: BTreeSet<String>,
    /// The guarded paths that it names, as they were given.
    pub touches: BTreeSet<String>,
    /// Whether it does what can't be known from its text.
    pub opaque: bool,
}

impl Facts {
    /// Whether all of it is known, and none of it is near what is guarded.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        !self.opaque && self.touches.is_empty()
    }
}

/// Labels a command by its text. `guarded` are absolute paths; what lies below them is
/// guarded too. The command is taken to begin in a directory that is neither guarded nor
/// above what is.
///
/// Never panics, and takes time and stack that [`limits`] bound.
#[must_use]
pub fn label(command: &str, guarded: &[&str]) -> Facts {
    let guards = paths::Guards::new(guarded);
    let mut facts = Facts { touches: guards.mentioned(command), ..Facts::default() };
    match read(command) {
        Some(reading) => drop(judge::Judge::new(&guards, &mut facts, 0).all(&reading)),
        None => facts.opaque = true,
    }
    facts
}

/// The commands of a text, if all of it is understood.
fn read(text: &str) -> Option<Vec<syntax::Command>> {
    let odd = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || (c.is_whitespace() && !c.is_ascii())
    };
    if text.len() > limits::COMMAND_BYTES_MAX || text.contains(odd) {
        return None;
    }
    reader::read(text).ok()
}
