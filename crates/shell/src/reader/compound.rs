//! Commands made of commands: groups, conditions, loops, cases, functions.

use super::Reader;
use super::arithmetic::arithmetic;
use super::cursor::Unread;
use crate::syntax::{Command, Kind, Word};

impl Reader<'_> {
    /// One command with the redirections behind it.
    pub(super) fn command(&mut self) -> Result<(), Unread> {
        let words = [
            "!", "{", "if", "while", "until", "for", "case", "function", "[[", "select", "coproc",
            "then", "do", "done", "fi", "elif", "else", "esac", "in", "}", "]]",
        ];
        if self.cursor.rest().starts_with("((") {
            self.cursor.skip(2);
            let text = arithmetic(&mut self.cursor)?;
            self.commands.push(Command { kind: Kind::Arithmetic(text), ..Command::default() })?;
            return self.redirects();
        }
        if self.cursor.eat("(") {
            self.statements(&[")"])?;
            return self.redirects();
        }
        let Some(word) = self.cursor.reserved(&words) else { return self.simple() };
        self.cursor.skip(word.len());
        match word {
            "!" => {
                self.cursor.blanks();
                if self.cursor.rest().starts_with('-') {
                    return Err(Unread);
                }
                return self.deeper(Self::command);
            }
            "{" => {
                self.statements(&["}"])?;
            }
            "if" => {
                self.statements(&["then"])?;
                while let "elif" | "else" = self.statements(&["elif", "else", "fi"])? {
                    if self.cursor.before().ends_with("elif") {
                        self.statements(&["then"])?;
                    }
                }
            }
            "while" | "until" => {
                self.statements(&["do"])?;
                self.statements(&["done"])?;
            }
            "for" => self.each()?,
            "case" => self.case()?,
            "[[" => self.test()?,
            _ => return Err(Unread),
        }
        self.redirects()
    }

    /// Redirections of a compound command.
    fn redirects(&mut self) -> Result<(), Unread> {
        let mut command = Command::default();
        loop {
            self.cursor.blanks();
            if !self.redirect(&mut command)? {
                break;
            }
        }
        if command.redirects.is_empty() { Ok(()) } else { self.commands.push(command) }
    }

    fn each(&mut self) -> Result<(), Unread> {
        self.cursor.blanks();
        if self.cursor.eat("((") {
            let text = arithmetic(&mut self.cursor)?;
            self.commands.push(Command { kind: Kind::Arithmetic(text), ..Command::default() })?;
        } else {
            let name = self.cursor.name()?;
            self.cursor.blanks();
            let mut command = Command { kind: Kind::For(name), ..Command::default() };
            self.cursor.reserved(&["in"]).ok_or(Unread)?;
            self.cursor.skip(2);
            loop {
                self.cursor.blanks();
                if self.cursor.peek().is_none_or(|c| "\n;".contains(c)) {
                    break;
                }
                let word = self.word()?;
                command.words.push(word);
            }
            self.commands.push(command)?;
        }
        self.cursor.blanks();
        self.cursor.eat(";");
        self.blanks_and_lines()?;
        self.cursor.reserved(&["do"]).ok_or(Unread)?;
        self.cursor.skip(2);
        self.statements(&["done"]).map(drop)
    }

    fn case(&mut self) -> Result<(), Unread> {
        self.cursor.blanks();
        self.word()?;
        self.blanks_and_lines()?;
        self.cursor.reserved(&["in"]).ok_or(Unread)?;
        self.cursor.skip(2);
        loop {
            self.blanks_and_lines()?;
            if self.cursor.reserved(&["esac"]).is_some() {
                self.cursor.skip(4);
                return Ok(());
            }
            self.cursor.eat("(");
            loop {
                self.cursor.blanks();
                let pattern = self.word()?;
                // A pattern can run something only through what is read here as unknown.
                if pattern.atoms.is_empty() && pattern.span.0 == pattern.span.1 {
                    return Err(Unread);
                }
                self.cursor.blanks();
                if self.cursor.eat(")") {
                    break;
                }
                self.cursor.need("|")?;
            }
            if self.statements(&[";;", "esac"])? == "esac" {
                return Ok(());
            }
            if self.cursor.rest().starts_with('&') {
                return Err(Unread);
            }
        }
    }

    /// `[[ ... ]]`: its operands and operators as words.
    fn test(&mut self) -> Result<(), Unread> {
        let mut command = Command { kind: Kind::Test, ..Command::default() };
        loop {
            self.blanks_and_lines()?;
            if self.cursor.reserved(&["]]"]).is_some() {
                self.cursor.skip(2);
                break;
            }
            if ["&&", "||", "(", ")", "<", ">"].into_iter().any(|by| self.cursor.eat(by)) {
                continue;
            }
            let word = self.word()?;
            if word.span.0 == word.span.1 {
                return Err(Unread);
            }
            command.words.push(word);
        }
        self.commands.push(command)
    }

    /// `name() { ... }`, after the name.
    pub(super) fn function(&mut self, name: Word) -> Result<(), Unread> {
        self.cursor.need("()")?;
        let text = name.literal().ok_or(Unread)?;
        self.commands.push(Command { kind: Kind::Function(text), ..Command::default() })?;
        self.blanks_and_lines()?;
        self.cursor.reserved(&["{"]).ok_or(Unread)?;
        self.deeper(Self::command)
    }
}
