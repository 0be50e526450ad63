//! Quotes that nothing is expanded in: single ones, and those of ANSI C.

use super::cursor::{Cursor, Unread};
use crate::syntax::Atom;

/// `'...'`: nothing in it means anything.
pub(super) fn single(cursor: &mut Cursor<'_>, atoms: &mut Vec<Atom>) -> Result<(), Unread> {
    cursor.need("'")?;
    let end = cursor.rest().find('\'').ok_or(Unread)?;
    atoms.extend(cursor.rest()[..end].chars().map(|c| Atom::Char { c, quoted: true }));
    cursor.skip(end + 1);
    Ok(())
}

/// `$'...'`, after the dollar.
pub(super) fn ansi(cursor: &mut Cursor<'_>, atoms: &mut Vec<Atom>) -> Result<(), Unread> {
    cursor.need("'")?;
    loop {
        let c = cursor.take_char()?;
        let c = match c {
            '\'' => return Ok(()),
            '\\' => escaped(cursor)?,
            c => c,
        };
        atoms.push(Atom::Char { c, quoted: true });
    }
}

fn escaped(cursor: &mut Cursor<'_>) -> Result<char, Unread> {
    let c = cursor.take_char()?;
    Ok(match c {
        'n' => '\n',
        't' => '\t',
        '\\' | '\'' | '"' | '?' => c,
        'x' => digits(cursor, 16, 2, 0)?,
        'u' => digits(cursor, 16, 4, 0)?,
        'U' => digits(cursor, 16, 8, 0)?,
        c if c.is_digit(8) => digits(cursor, 8, 2, c.to_digit(8).unwrap_or_default())?,
        _ => return Err(Unread),
    })
}

/// A character by its number. What is no ASCII depends on the locale, and a zero ends
/// the word: neither is read.
fn digits(cursor: &mut Cursor<'_>, base: u32, most: usize, first: u32) -> Result<char, Unread> {
    let mut number = first;
    for _ in 0..most {
        let Some(digit) = cursor.peek().and_then(|c| c.to_digit(base)) else { break };
        number = number.saturating_mul(base).saturating_add(digit);
        cursor.skip(1);
    }
    char::from_u32(number).filter(|c| c.is_ascii() && *c != '\0').ok_or(Unread)
}
