//! What crossterm reads as the keys that mean something.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::conversation::Key;

/// The key, if it means anything.
pub(super) fn key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    let alt = event.modifiers.contains(KeyModifiers::ALT);
    let shift = event.modifiers.contains(KeyModifiers::SHIFT);
    Some(match event.code {
        KeyCode::Char(char) if control => return controlled(char),
        KeyCode::Char('b') if alt => Key::WordLeft,
        KeyCode::Char('f') if alt => Key::WordRight,
        KeyCode::Char('d') if alt => Key::DeleteToEnd,
        KeyCode::Char(_) if alt => return None,
        KeyCode::Char(char) => Key::Char(char),
        KeyCode::Enter if alt || shift || control => Key::Newline,
        KeyCode::Enter => Key::Enter,
        KeyCode::Tab => Key::Tab,
        KeyCode::Backspace if alt || control => Key::DeleteWord,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        KeyCode::Left if alt || control => Key::WordLeft,
        KeyCode::Right if alt || control => Key::WordRight,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Esc => Key::Escape,
        _ => return None,
    })
}

/// As in every shell.
fn controlled(char: char) -> Option<Key> {
    Some(match char {
        'a' => Key::Home,
        'b' => Key::Left,
        'c' => Key::Interrupt,
        'd' => Key::EndOfInput,
        'e' => Key::End,
        'f' => Key::Right,
        'h' => Key::Backspace,
        'j' => Key::Newline,
        'k' => Key::DeleteToEnd,
        'l' => Key::Redraw,
        'n' => Key::Down,
        'o' => Key::Expand,
        'p' => Key::Up,
        'u' => Key::DeleteToStart,
        'w' => Key::DeleteWord,
        _ => return None,
    })
}
