//! A place in the text, and the steps forward from it that need nothing but the text.
//!
//! Owns the text and the place, which is always between two characters of it. Never goes
//! back.

use crate::syntax::Span;

/// The text holds something that this reader does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unread;

/// What ends a word or a reserved word.
const SEPARATORS: &str = " \t\n;&|()<>";

/// A text that is read, and how far.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The begin of a text.
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// How many bytes were read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Whether everything was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// What was read.
    pub(super) fn before(&self) -> &'a str {
        &self.text[..self.at]
    }

    /// What is left.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// What stands between two places of the text.
    pub(super) fn slice(&self, (from, to): Span) -> &'a str {
        &self.text[from..to]
    }

    /// The next character.
    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes the next character, which must be there.
    pub(super) fn take_char(&mut self) -> Result<char, Unread> {
        let c = self.peek().ok_or(Unread)?;
        self.at += c.len_utf8();
        Ok(c)
    }

    /// Takes so many bytes, which [`Cursor::rest`] showed.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Takes a text if it stands here.
    pub(super) fn eat(&mut self, what: &str) -> bool {
        let found = self.rest().starts_with(what);
        if found {
            self.at += what.len();
        }
        found
    }

    /// Takes a text, which must stand here.
    pub(super) fn need(&mut self, what: &str) -> Result<(), Unread> {
        if self.eat(what) { Ok(()) } else { Err(Unread) }
    }

    /// Blanks, continued lines and comments.
    pub(super) fn blanks(&mut self) {
        loop {
            if self.eat(" ") || self.eat("\t") || self.eat("\\\n") {
                continue;
            }
            if self.peek() == Some('#') && self.begins_word() {
                let line = self.rest().find('\n').unwrap_or(self.rest().len());
                self.at += line;
            }
            return;
        }
    }

    /// Whether a word would begin here, by what stands before.
    fn begins_word(&self) -> bool {
        self.before().chars().next_back().is_none_or(|c| SEPARATORS.contains(c))
    }

    /// The reserved word that stands here, if one does.
    pub(super) fn reserved(&self, words: &[&'static str]) -> Option<&'static str> {
        words.iter().copied().find(|word| {
            self.rest().strip_prefix(word).is_some_and(|after| {
                matches!(*word, ")" | ";;")
                    || after.chars().next().is_none_or(|c| SEPARATORS.contains(c))
            })
        })
    }

    /// The name of a variable that is assigned to here.
    pub(super) fn assigned(&self) -> Option<String> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
        let named = end > 0 && !rest.starts_with(|c: char| c.is_ascii_digit());
        let equals = rest[end..].starts_with('=') || rest[end..].starts_with("+=");
        (named && equals).then(|| rest[..end].to_owned())
    }

    /// Takes the name of a variable, which must stand here.
    pub(super) fn name(&mut self) -> Result<String, Unread> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .filter(|end| *end > 0 && !rest.starts_with(|c: char| c.is_ascii_digit()))
            .ok_or(Unread)?;
        self.at += end;
        Ok(rest[..end].to_owned())
    }

    /// Has the text end so many bytes behind this place, until [`Cursor::restore`] is given
    /// what this returns: the text as it was.
    pub(super) fn end_after(&mut self, bytes: usize) -> &'a str {
        let whole = self.text;
        self.text = &whole[..self.at + bytes];
        whole
    }

    /// Goes on in the text that [`Cursor::end_after`] cut.
    pub(super) fn restore(&mut self, whole: &'a str) {
        self.text = whole;
    }
}
