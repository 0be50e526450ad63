//! The text of arithmetic, up to its end.

use super::{Reader, Unread};

impl Reader<'_> {
    /// Up to `))`. What could run something, an index or a substitution, is not read.
    pub(super) fn arithmetic(&mut self) -> Result<String, Unread> {
        let start = self.at;
        let mut open = 0_usize;
        loop {
            match self.peek().ok_or(Unread)? {
                ')' if open == 0 => {
                    let text = self.text[start..self.at].to_owned();
                    self.need("))")?;
                    return Ok(text);
                }
                ')' => open -= 1,
                '(' => open += 1,
                c if c.is_ascii_alphanumeric() || " \t\n_+-*/%<>=!&|?:,;^~$".contains(c) => {
                    if c == '$'
                        && !self.rest()[1..]
                            .starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    {
                        return Err(Unread);
                    }
                }
                _ => return Err(Unread),
            }
            self.at += 1;
        }
    }
}
