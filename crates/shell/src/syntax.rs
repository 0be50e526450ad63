//! What the reader makes of a command: the simple commands in order, with their
//! words in pieces.
//!
//! Owns the types and nothing else. They are flat on purpose: what runs before what,
//! and whether at all, is not asked.

/// Where something stands, in bytes of the whole text.
pub(crate) type Span = (usize, usize);

/// A piece of a word.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Atom {
    /// A character; what is not quoted may be part of a pattern or of braces.
    Char { c: char, quoted: bool },
    /// A variable, by its name alone.
    Var { name: String, quoted: bool },
    /// The digits that arithmetic or a number of the shell's own comes to.
    Digits,
    /// What a pattern matched: no `/`, and no dot in front.
    Matched,
    /// The home directory.
    Home,
    /// What can't be known.
    Any { quoted: bool },
}

/// A word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) span: Span,
    pub(crate) atoms: Vec<Atom>,
}

impl Word {
    /// Its text, if every piece of it is known and no part of it is a pattern.
    pub(crate) fn literal(&self) -> Option<String> {
        literal(&self.atoms)
    }
}

/// The text of pieces, if all of it is known and no part of it is a pattern.
pub(crate) fn literal(atoms: &[Atom]) -> Option<String> {
    atoms
        .iter()
        .map(|atom| match atom {
            Atom::Char { c, quoted } if *quoted || !is_pattern(*c) => Some(*c),
            _ => None,
        })
        .collect()
}

/// Whether a character is part of a pattern where it is not quoted.
pub(crate) fn is_pattern(c: char) -> bool {
    matches!(c, '*' | '?' | '[')
}

/// `name=value`, or `name+=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    /// Nothing where it is appended to or has several values.
    pub(crate) value: Option<Word>,
}

/// Where a descriptor is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) way: Way,
    pub(crate) word: Word,
}

/// How.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// A file is read.
    Read,
    /// A file is written, or both.
    Write,
    /// A descriptor becomes another.
    Duplicate,
    /// Text of the command itself is read.
    Text,
}

/// What a command is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Assignments, words and redirections.
    #[default]
    Simple,
    /// `[[ ... ]]`; its words are the operands and operators.
    Test,
    /// The text inside `(( ... ))`, `$(( ... ))` and the head of `for ((`.
    Arithmetic(String),
    /// A loop over its words.
    For(String),
    /// A function of this name is defined; its commands follow.
    Function(String),
}

/// One command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) kind: Kind,
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirects: Vec<Redirect>,
}
