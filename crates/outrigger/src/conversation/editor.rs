//! The text that a person writes: where the cursor stands in it, what was written before, and
//! how it looks.
//!
//! Pure. Owns that the cursor never stands within a character, and that what is pasted is text.

use anstyle::Style;

use super::key::Key;
use crate::limits;
use crate::show::row::{Row, columns_of};

/// Stands before the first row.
const PROMPT: &str = "› ";

/// The text, and what was written before.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// In bytes, between two characters.
    cursor: usize,
    /// The oldest first.
    history: Vec<String>,
    /// Which one of them is shown, and what was written instead of it.
    recalled: Option<(usize, String)>,
}

/// How the text looks.
#[derive(Debug)]
pub(crate) struct EditorView {
    pub(crate) rows: Vec<Row>,
    /// The row and the column of the cursor.
    pub(crate) cursor: (usize, usize),
}

impl Editor {
    /// One that remembers what was written before, the oldest first.
    pub(crate) fn new(history: Vec<String>) -> Self {
        Self { history, ..Self::default() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What stands before the cursor.
    pub(crate) fn before(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Puts another text in the place of this one.
    pub(crate) fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.cursor = self.text.len();
        self.recalled = None;
    }

    /// Takes the text away, and remembers it.
    pub(crate) fn submit(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        self.cursor = 0;
        self.recalled = None;
        if !text.trim().is_empty() && self.history.last() != Some(&text) {
            self.history.push(text.clone());
        }
        text
    }

    /// Takes in what was pasted: its line breaks begin lines, and send nothing.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let kept = text.chars().filter(|char| matches!(char, '\n' | '\t') || !char.is_control());
        let room = limits::INPUT_BYTES_MAX.saturating_sub(self.text.len());
        let mut pasted: String = kept.collect();
        pasted.truncate(pasted.floor_char_boundary(room));
        self.insert(&pasted);
    }

    /// Puts a text in the place of the end of what stands before the cursor.
    pub(crate) fn complete(&mut self, bytes: usize, with: &str) {
        let from = self.cursor.saturating_sub(bytes);
        self.text.replace_range(from..self.cursor, with);
        self.cursor = from + with.len();
    }

    /// Does what a key does to a text.
    pub(crate) fn press(&mut self, key: Key) {
        match key {
            Key::Char(char) if self.text.len() < limits::INPUT_BYTES_MAX => {
                self.insert(char.encode_utf8(&mut [0; 4]));
            }
            Key::Newline => self.insert("\n"),
            Key::Left => self.cursor = self.left(),
            Key::Right => self.cursor = self.right(),
            Key::WordLeft => self.cursor = self.word_left(),
            Key::WordRight => self.cursor = self.word_right(),
            Key::Home => self.cursor = self.line_start(),
            Key::End => self.cursor = self.line_end(),
            Key::Backspace => self.cut(self.left()),
            Key::Delete => {
                let (from, to) = (self.cursor, self.right());
                self.text.replace_range(from..to, "");
            }
            Key::DeleteWord => self.cut(self.word_left()),
            Key::DeleteToStart => self.cut(self.line_start()),
            Key::DeleteToEnd => {
                let (from, to) = (self.cursor, self.line_end());
                self.text.replace_range(from..to, "");
            }
            Key::Up => self.up(),
            Key::Down => self.down(),
            _ => {}
        }
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Removes from there to the cursor.
    fn cut(&mut self, from: usize) {
        self.text.replace_range(from..self.cursor, "");
        self.cursor = from;
    }

    /// What takes no column of its own belongs to what stands before it.
    fn left(&self) -> usize {
        let before = self.before().char_indices().rev();
        let mut found = before.skip_while(|(_, char)| columns_of(*char) == 0 && *char != '\n');
        found.next().map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        let mut after = self.text[self.cursor..].char_indices().skip(1);
        let end = after.find(|(_, char)| columns_of(*char) > 0 || *char == '\n');
        end.map_or(self.text.len(), |(at, _)| self.cursor + at)
    }

    fn word_left(&self) -> usize {
        let before = self.before().trim_end();
        before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8))
    }

    fn word_right(&self) -> usize {
        let after = &self.text[self.cursor..];
        let begun = after.find(|char: char| !char.is_whitespace()).unwrap_or(after.len());
        let end = after[begun..].find(char::is_whitespace).unwrap_or(after.len() - begun);
        self.cursor + begun + end
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// To the line above, or to what was written before.
    fn up(&mut self) {
        let start = self.line_start();
        if start > 0 {
            self.move_to_line(self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1));
            return;
        }
        let at = self.recalled.as_ref().map_or(self.history.len(), |(at, _)| *at);
        let Some(at) = at.checked_sub(1) else { return };
        let draft = match self.recalled.take() {
            Some((_, draft)) => draft,
            None => std::mem::take(&mut self.text),
        };
        self.recall(at, draft);
    }

    fn down(&mut self) {
        let end = self.line_end();
        if end < self.text.len() {
            self.move_to_line(end + 1);
            return;
        }
        let Some((at, draft)) = self.recalled.take() else { return };
        if at + 1 < self.history.len() {
            self.recall(at + 1, draft);
        } else {
            self.set(&draft);
        }
    }

    fn recall(&mut self, at: usize, draft: String) {
        let text = self.history[at].clone();
        self.set(&text);
        self.recalled = Some((at, draft));
    }

    /// Into the line that begins there, as far in as in this one.
    fn move_to_line(&mut self, start: usize) {
        let column = self.text[self.line_start()..self.cursor].chars().count();
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        let within = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
        self.cursor = start + within;
    }

    /// The rows around the cursor, at most so many.
    pub(crate) fn view(&self, columns: usize, rows_max: usize) -> EditorView {
        let room = columns.saturating_sub(PROMPT.chars().count() + 1).max(limits::COLUMNS_MIN);
        let (mut lines, mut cursor) = (vec![String::new()], (0, 0));
        let mut taken = 0;
        for (at, char) in self.text.char_indices().chain([(self.text.len(), '\n')]) {
            let shown = if char == '\t' { ' ' } else { char };
            let wide = if char == '\n' { 0 } else { columns_of(shown) };
            if taken + wide > room {
                lines.push(String::new());
                taken = 0;
            }
            if at == self.cursor {
                cursor = (lines.len() - 1, taken);
            }
            if char == '\n' {
                lines.push(String::new());
                taken = 0;
            } else if let Some(line) = lines.last_mut() {
                line.push(shown);
                taken += wide;
            }
        }
        // That of the line break behind the text.
        lines.pop();
        let first = (cursor.0 + 1).saturating_sub(rows_max.max(1));
        let shown = lines.iter().enumerate().skip(first).take(rows_max.max(1));
        let rows = shown.map(|(index, line)| {
            let prompt = if index == 0 { PROMPT } else { "  " };
            Row::new(Style::new().bold(), prompt).with(Style::new(), line)
        });
        let cursor = (cursor.0 - first, cursor.1 + PROMPT.chars().count());
        EditorView { rows: rows.collect(), cursor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::row::Paint;
    use expect_test::{Expect, expect};

    /// Shows the text with the cursor in it.
    fn shown(editor: &Editor) -> String {
        let (before, after) = editor.text.split_at(editor.cursor);
        format!("{before}|{after}")
    }

    fn check(text: &str, keys: &[Key], expected: &Expect) {
        let mut editor = Editor::default();
        editor.set(text);
        keys.iter().for_each(|key| editor.press(*key));
        expected.assert_eq(&shown(&editor));
    }

    #[test]
    fn keys_do_what_they_do_elsewhere() {
        check("one two", &[Key::WordLeft, Key::Char('x')], &expect!["one x|two"]);
        check("one two ", &[Key::DeleteWord], &expect!["one |"]);
        check("ab\ncd", &[Key::Up, Key::Newline, Key::Home], &expect!["ab\n|\ncd"]);
        check("ab\ncd", &[Key::DeleteToStart], &expect!["ab\n|"]);
        check("ab cd", &[Key::Home, Key::WordRight, Key::DeleteToEnd], &expect!["ab|"]);
        check("a👩\u{200d}💻b", &[Key::Left, Key::Backspace], &expect!["a👩\u{200d}|b"]);
        check("e\u{301}x", &[Key::Left, Key::Backspace], &expect!["|x"]);
        check("", &[Key::Left, Key::Right, Key::Backspace, Key::Delete, Key::Up], &expect!["|"]);
    }

    #[test]
    fn what_was_written_before_comes_back_and_the_draft_too() {
        let mut editor = Editor::new(vec!["first".to_owned(), "second\nline".to_owned()]);
        editor.paste("draft\r\nof\x1b[2J mine");
        let mut seen = vec![shown(&editor)];
        for key in [Key::Up, Key::Up, Key::Up, Key::Up, Key::Down, Key::Down] {
            editor.press(key);
            seen.push(shown(&editor));
        }
        expect![[r#"
            [
                "draft\nof[2J mine|",
                "draft|\nof[2J mine",
                "second\nline|",
                "seco|nd\nline",
                "first|",
                "second\nline|",
                "draft\nof[2J mine|",
            ]
        "#]]
        .assert_debug_eq(&seen);
        assert_eq!(editor.submit(), "draft\nof[2J mine");
        assert_eq!(editor.history.len(), 3);
    }

    #[test]
    fn the_rows_around_the_cursor_are_shown() {
        let mut editor = Editor::default();
        editor.set("0123456789abcdef\nsecond\nthird");
        let view = editor.view(13, 2);
        let rows: Vec<_> = view.rows.iter().map(|row| row.painted(Paint::Plain)).collect();
        assert_eq!(
            (rows, view.cursor),
            (vec!["  second".to_owned(), "  third".to_owned()], (1, 7))
        );
        let view = editor.view(13, 9);
        let rows: Vec<_> = view.rows.iter().map(|row| row.painted(Paint::Plain)).collect();
        assert_eq!(rows[..2], ["› 0123456789", "  abcdef"]);
    }
}
