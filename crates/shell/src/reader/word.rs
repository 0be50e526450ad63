//! Words: quotes removed, expansions named.

use super::arithmetic::arithmetic;
use super::cursor::{Cursor, Unread};
use super::{Reader, quote};
use crate::syntax::{Atom, Command, Kind, Word};

/// Expansions of these come to digits.
const NUMBERS: &str = "?#$!";

impl Reader<'_> {
    /// The word that begins here.
    pub(super) fn word(&mut self) -> Result<Word, Unread> {
        let word = self.pieces(false)?;
        if word.span.0 == word.span.1 { Err(Unread) } else { Ok(word) }
    }

    /// A word that may be empty. In an assignment a tilde stands for a home after each
    /// colon.
    pub(super) fn pieces(&mut self, assigned: bool) -> Result<Word, Unread> {
        self.commands.count_word()?;
        let start = self.cursor.at();
        let mut atoms = Vec::new();
        while let Some(c) = self.cursor.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' => break,
                '<' | '>' => {
                    if self.cursor.at() != start || !self.cursor.rest()[1..].starts_with('(') {
                        break;
                    }
                    self.cursor.skip(2);
                    self.statements(&[")"])?;
                    // A pipe of the shell's; what runs at its other end was read.
                    atoms.push(Atom::Matched);
                }
                '(' => {
                    // An extended pattern, or something that is none of ours.
                    if self.cursor.before().ends_with(['?', '*', '+', '@', '!', '=', '$']) {
                        return Err(Unread);
                    }
                    break;
                }
                '\\' => {
                    self.cursor.skip(1);
                    let c = self.cursor.take_char()?;
                    if c != '\n' {
                        atoms.push(Atom::Char { c, quoted: true });
                    }
                }
                '\'' => quote::single(&mut self.cursor, &mut atoms)?,
                '"' => self.double(&mut atoms)?,
                '$' => self.dollar(&mut atoms, false)?,
                '`' => self.backquoted(&mut atoms, false)?,
                '~' if self.cursor.at() == start
                    || (assigned && self.cursor.before().ends_with(':')) =>
                {
                    self.cursor.skip(1);
                    let user = self.cursor.peek().is_some_and(|c| !" \t\n;&|)/:".contains(c));
                    atoms.push(if user { Atom::Any { quoted: true } } else { Atom::Home });
                }
                c => {
                    self.cursor.skip(c.len_utf8());
                    atoms.push(Atom::Char { c, quoted: false });
                }
            }
        }
        Ok(Word { span: (start, self.cursor.at()), atoms })
    }

    /// `"..."`: what begins with a dollar or a backquote is expanded.
    fn double(&mut self, atoms: &mut Vec<Atom>) -> Result<(), Unread> {
        self.cursor.need("\"")?;
        self.deeper(|reader| {
            loop {
                match reader.cursor.peek().ok_or(Unread)? {
                    '"' => {
                        reader.cursor.skip(1);
                        return Ok(());
                    }
                    '$' => reader.dollar(atoms, true)?,
                    '`' => reader.backquoted(atoms, true)?,
                    '\\' => {
                        reader.cursor.skip(1);
                        let c = reader.cursor.take_char()?;
                        if !"$`\"\\\n".contains(c) {
                            atoms.push(Atom::Char { c: '\\', quoted: true });
                        }
                        if c != '\n' {
                            atoms.push(Atom::Char { c, quoted: true });
                        }
                    }
                    c => {
                        reader.cursor.skip(c.len_utf8());
                        atoms.push(Atom::Char { c, quoted: true });
                    }
                }
            }
        })
    }

    /// What begins with a dollar.
    fn dollar(&mut self, atoms: &mut Vec<Atom>, quoted: bool) -> Result<(), Unread> {
        self.cursor.need("$")?;
        if self.cursor.eat("((") {
            let text = arithmetic(&mut self.cursor)?;
            self.commands.push(Command { kind: Kind::Arithmetic(text), ..Command::default() })?;
            atoms.push(Atom::Digits);
            return Ok(());
        }
        if self.cursor.eat("(") {
            self.statements(&[")"])?;
            atoms.push(Atom::Any { quoted });
            return Ok(());
        }
        let Some(c) = self.cursor.peek() else {
            atoms.push(Atom::Char { c: '$', quoted: true });
            return Ok(());
        };
        match c {
            '{' => return braced(&mut self.cursor, atoms, quoted),
            '\'' if !quoted => return quote::ansi(&mut self.cursor, atoms),
            '"' if !quoted => return self.double(atoms),
            '[' => return Err(Unread),
            c if c.is_ascii_alphabetic() || c == '_' => {
                let rest = self.cursor.rest();
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                let name = rest[..end.unwrap_or(rest.len())].to_owned();
                self.cursor.skip(name.len());
                atoms.push(Atom::Var { name, quoted });
            }
            c if NUMBERS.contains(c) => {
                self.cursor.skip(1);
                atoms.push(Atom::Digits);
            }
            c if c.is_ascii_digit() || "@*-".contains(c) => {
                self.cursor.skip(1);
                atoms.push(Atom::Any { quoted });
            }
            _ => atoms.push(Atom::Char { c: '$', quoted: true }),
        }
        Ok(())
    }

    /// A command between backquotes, if nothing in it is escaped.
    fn backquoted(&mut self, atoms: &mut Vec<Atom>, quoted: bool) -> Result<(), Unread> {
        self.cursor.need("`")?;
        let end = self.cursor.rest().find('`').ok_or(Unread)?;
        if self.cursor.rest()[..end].contains(['\\', '"', '\'', '\n', '#', '<']) {
            return Err(Unread);
        }
        // The text up to there is read as one of its own, at the same places.
        let whole = self.cursor.end_after(end);
        let read = self.statements(&[]);
        self.cursor.restore(whole);
        read?;
        self.cursor.need("`")?;
        atoms.push(Atom::Any { quoted });
        Ok(())
    }
}

/// `${name}`, and of the longer forms those that run nothing and assign nothing.
fn braced(cursor: &mut Cursor<'_>, atoms: &mut Vec<Atom>, quoted: bool) -> Result<(), Unread> {
    cursor.need("{")?;
    let length = cursor.eat("#");
    let rest = cursor.rest();
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).ok_or(Unread)?;
    let name = &rest[..end];
    cursor.skip(end);
    if name.is_empty() {
        return Err(Unread);
    }
    if cursor.eat("}") {
        atoms.push(if length {
            Atom::Digits
        } else if name.starts_with(|c: char| c.is_ascii_digit()) {
            Atom::Any { quoted }
        } else {
            Atom::Var { name: name.to_owned(), quoted }
        });
        return Ok(());
    }
    let operators = [":-", ":+", "-", "+", "##", "#", "%%", "%"];
    if length || !operators.into_iter().any(|operator| cursor.eat(operator)) {
        return Err(Unread);
    }
    let end = cursor.rest().find('}').ok_or(Unread)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || " ._-/*?:,+@".contains(c);
    if !cursor.rest()[..end].chars().all(plain) {
        return Err(Unread);
    }
    cursor.skip(end + 1);
    atoms.push(Atom::Any { quoted });
    Ok(())
}
