//! Words: quotes removed, expansions named.

use super::{Reader, Unread};
use crate::syntax::{Atom, Command, Kind, Word};

/// Expansions of these come to digits.
const NUMBERS: &str = "?#$!";

impl Reader<'_> {
    /// The word that begins here.
    pub(super) fn word(&mut self) -> Result<Word, Unread> {
        let word = self.pieces(false)?;
        if word.span.0 == word.span.1 { Err(Unread) } else { Ok(word) }
    }

    /// The same; it may be empty, and in an assignment a tilde stands for a home after
    /// each colon.
    pub(super) fn pieces(&mut self, assigned: bool) -> Result<Word, Unread> {
        self.words += 1;
        if self.words > crate::limits::WORDS_MAX {
            return Err(Unread);
        }
        let start = self.at;
        let mut atoms = Vec::new();
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' => break,
                '<' | '>' => {
                    if self.at != start || !self.rest()[1..].starts_with('(') {
                        break;
                    }
                    self.at += 2;
                    self.statements(&[")"])?;
                    // A pipe of the shell's; what runs at its other end was read.
                    atoms.push(Atom::Matched);
                }
                '(' => {
                    // An extended pattern, or something that is none of ours.
                    if self.text[..self.at].ends_with(['?', '*', '+', '@', '!', '=', '$']) {
                        return Err(Unread);
                    }
                    break;
                }
                '\\' => {
                    self.at += 1;
                    let c = self.peek().ok_or(Unread)?;
                    self.at += c.len_utf8();
                    if c != '\n' {
                        atoms.push(Atom::Char { c, quoted: true });
                    }
                }
                '\'' => self.single(&mut atoms)?,
                '"' => self.double(&mut atoms)?,
                '$' => self.dollar(&mut atoms, false)?,
                '`' => self.backquoted(&mut atoms, false)?,
                '~' if self.at == start || (assigned && self.text[..self.at].ends_with(':')) => {
                    self.at += 1;
                    let user = self.peek().is_some_and(|c| !" \t\n;&|)/:".contains(c));
                    atoms.push(if user { Atom::Any { quoted: true } } else { Atom::Home });
                }
                c => {
                    self.at += c.len_utf8();
                    atoms.push(Atom::Char { c, quoted: false });
                }
            }
        }
        Ok(Word { span: (start, self.at), atoms })
    }

    /// What begins with a dollar.
    pub(super) fn dollar(&mut self, atoms: &mut Vec<Atom>, quoted: bool) -> Result<(), Unread> {
        self.need("$")?;
        if self.eat("((") {
            let text = self.arithmetic()?;
            self.keep(Command { kind: Kind::Arithmetic(text), ..Command::default() })?;
            atoms.push(Atom::Digits);
            return Ok(());
        }
        if self.eat("(") {
            self.statements(&[")"])?;
            atoms.push(Atom::Any { quoted });
            return Ok(());
        }
        let Some(c) = self.peek() else {
            atoms.push(Atom::Char { c: '$', quoted: true });
            return Ok(());
        };
        match c {
            '{' => return self.braced(atoms, quoted),
            '\'' if !quoted => return self.ansi(atoms),
            '"' if !quoted => return self.double(atoms),
            '[' => return Err(Unread),
            c if c.is_ascii_alphabetic() || c == '_' => {
                let rest = self.rest();
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                let name = rest[..end.unwrap_or(rest.len())].to_owned();
                self.at += name.len();
                atoms.push(Atom::Var { name, quoted });
            }
            c if NUMBERS.contains(c) => {
                self.at += 1;
                atoms.push(Atom::Digits);
            }
            c if c.is_ascii_digit() || "@*-".contains(c) => {
                self.at += 1;
                atoms.push(Atom::Any { quoted });
            }
            _ => atoms.push(Atom::Char { c: '$', quoted: true }),
        }
        Ok(())
    }

    /// `${name}`, and of the longer forms those that run nothing and assign nothing.
    fn braced(&mut self, atoms: &mut Vec<Atom>, quoted: bool) -> Result<(), Unread> {
        self.need("{")?;
        let length = self.eat("#");
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).ok_or(Unread)?;
        let name = &rest[..end];
        self.at += end;
        if name.is_empty() {
            return Err(Unread);
        }
        if self.eat("}") {
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
        if length || !operators.into_iter().any(|operator| self.eat(operator)) {
            return Err(Unread);
        }
        let end = self.rest().find('}').ok_or(Unread)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || " ._-/*?:,+@".contains(c);
        if !self.rest()[..end].chars().all(plain) {
            return Err(Unread);
        }
        self.at += end + 1;
        atoms.push(Atom::Any { quoted });
        Ok(())
    }

    /// A command between backquotes, if nothing in it is escaped.
    pub(super) fn backquoted(&mut self, atoms: &mut Vec<Atom>, quoted: bool) -> Result<(), Unread> {
        self.need("`")?;
        let end = self.rest().find('`').ok_or(Unread)?;
        if self.rest()[..end].contains(['\\', '"', '\'', '\n', '#', '<']) {
            return Err(Unread);
        }
        // The text up to there is read as one of its own, at the same places.
        let whole = self.text;
        self.text = &whole[..self.at + end];
        let read = self.statements(&[]);
        self.text = whole;
        read?;
        self.need("`")?;
        atoms.push(Atom::Any { quoted });
        Ok(())
    }
}
