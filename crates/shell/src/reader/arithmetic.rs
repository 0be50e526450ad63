//! The text of arithmetic, up to its end.

use super::cursor::{Cursor, Unread};

/// Up to `))`. What could run something, an index or a substitution, is not read.
pub(super) fn arithmetic(cursor: &mut Cursor<'_>) -> Result<String, Unread> {
    let start = cursor.at();
    let mut open = 0_usize;
    loop {
        match cursor.peek().ok_or(Unread)? {
            ')' if open == 0 => {
                let text = cursor.slice((start, cursor.at())).to_owned();
                cursor.need("))")?;
                return Ok(text);
            }
            ')' => open -= 1,
            '(' => open += 1,
            c if c.is_ascii_alphanumeric() || " \t\n_+-*/%<>=!&|?:,;^~$".contains(c) => {
                if c == '$'
                    && !cursor.rest()[1..]
                        .starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                {
                    return Err(Unread);
                }
            }
            _ => return Err(Unread),
        }
        cursor.skip(1);
    }
}
