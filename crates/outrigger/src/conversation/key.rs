//! The keys that mean something, whatever a terminal sends for them.

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    /// Sends, or chooses.
    Enter,
    /// Begins a line.
    Newline,
    Tab,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    WordLeft,
    WordRight,
    DeleteWord,
    DeleteToStart,
    DeleteToEnd,
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    /// Ctrl-O.
    Expand,
    /// Ctrl-L.
    Redraw,
}
