//! What can be said of a shell command from its text: the programs that it names, the
//! guarded paths that it names, and whether it does what its text does not say.
//!
//! The answer is a label for rules and for the audit, never a boundary: what a program
//! does with a word is its own affair, and only what is mounted decides what it meets.
//! So the one promise is to be careful: a text is taken for known only if the reader knows
//! every construction in it, and if every program in it is one whose arguments are
//! understood.

mod expand;
mod facts;
mod judge;
pub mod limits;
mod paths;
mod programs;
mod reader;
mod syntax;
mod variables;

pub use facts::CommandFacts;

/// Labels a command by its text. `guarded` are absolute paths; what lies below them is
/// guarded too. The command is taken to begin in a directory that is neither guarded nor
/// above what is.
///
/// Never panics, and takes time and stack that [`limits`] bound.
#[must_use]
pub fn label(command: &str, guarded: &[&str]) -> CommandFacts {
    let guards = paths::Guards::new(guarded);
    let mut facts = CommandFacts { touches: guards.mentioned(command), ..CommandFacts::default() };
    match reader::read(command) {
        Ok(commands) => drop(judge::Judge::new(&guards, &mut facts, 0).all(&commands)),
        Err(reader::Unread) => facts.opaque = true,
    }
    facts
}
