//! Quotes: single, double, and those of ANSI C.

use super::{Reader, Unread};
use crate::syntax::Atom;

impl Reader<'_> {
    pub(super) fn single(&mut self, atoms: &mut Vec<Atom>) -> Result<(), Unread> {
        self.need("'")?;
        let end = self.rest().find('\'').ok_or(Unread)?;
        atoms.extend(self.rest()[..end].chars().map(|c| Atom::Char { c, quoted: true }));
        self.at += end + 1;
        Ok(())
    }

    pub(super) fn double(&mut self, atoms: &mut Vec<Atom>) -> Result<(), Unread> {
        self.need("\"")?;
        self.deeper(|reader| {
            loop {
                match reader.peek().ok_or(Unread)? {
                    '"' => {
                        reader.at += 1;
                        return Ok(());
                    }
                    '$' => reader.dollar(atoms, true)?,
                    '`' => reader.backquoted(atoms, true)?,
                    '\\' => {
                        reader.at += 1;
                        let c = reader.peek().ok_or(Unread)?;
                        reader.at += c.len_utf8();
                        if !"$`\"\\\n".contains(c) {
                            atoms.push(Atom::Char { c: '\\', quoted: true });
                        }
                        if c != '\n' {
                            atoms.push(Atom::Char { c, quoted: true });
                        }
                    }
                    c => {
                        reader.at += c.len_utf8();
                        atoms.push(Atom::Char { c, quoted: true });
                    }
                }
            }
        })
    }

    /// `$'...'`, after the dollar.
    pub(super) fn ansi(&mut self, atoms: &mut Vec<Atom>) -> Result<(), Unread> {
        self.need("'")?;
        loop {
            let c = self.peek().ok_or(Unread)?;
            self.at += c.len_utf8();
            let c = match c {
                '\'' => return Ok(()),
                '\\' => self.escaped()?,
                c => c,
            };
            atoms.push(Atom::Char { c, quoted: true });
        }
    }

    fn escaped(&mut self) -> Result<char, Unread> {
        let c = self.peek().ok_or(Unread)?;
        self.at += c.len_utf8();
        Ok(match c {
            'n' => '\n',
            't' => '\t',
            '\\' | '\'' | '"' | '?' => c,
            'x' => self.digits(16, 2, 0)?,
            'u' => self.digits(16, 4, 0)?,
            'U' => self.digits(16, 8, 0)?,
            c if c.is_digit(8) => self.digits(8, 2, c.to_digit(8).unwrap_or_default())?,
            _ => return Err(Unread),
        })
    }

    /// A character by its number. What is no ASCII depends on the locale, and a zero ends
    /// the word: neither is read.
    fn digits(&mut self, base: u32, most: usize, first: u32) -> Result<char, Unread> {
        let mut number = first;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(base)) else { break };
            number = number.saturating_mul(base).saturating_add(digit);
            self.at += 1;
        }
        char::from_u32(number).filter(|c| c.is_ascii() && *c != '\0').ok_or(Unread)
    }
}
