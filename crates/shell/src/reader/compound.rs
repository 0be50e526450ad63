//! Commands made of commands: groups, conditions, loops, cases, functions.

use super::{Reader, Unread};
use crate::syntax::{Command, Kind, Word};

impl Reader<'_> {
    /// One command with the redirections behind it.
    pub(super) fn command(&mut self) -> Result<(), Unread> {
        let words = [
            "!", "{", "if", "while", "until", "for", "case", "function", "[[", "select", "coproc",
            "then", "do", "done", "fi", "elif", "else", "esac", "in", "}", "]]",
        ];
        if self.rest().starts_with("((") {
            self.at += 2;
            let text = self.arithmetic()?;
            self.keep(Command { kind: Kind::Arithmetic(text), ..Command::default() })?;
            return self.redirects();
        }
        if self.eat("(") {
            self.statements(&[")"])?;
            return self.redirects();
        }
        let Some(word) = self.reserved(&words) else { return self.simple() };
        self.at += word.len();
        match word {
            "!" => {
                self.blanks();
                if self.rest().starts_with('-') {
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
                    if self.text[..self.at].ends_with("elif") {
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
            self.blanks();
            if !self.redirect(&mut command)? {
                break;
            }
        }
        if command.redirects.is_empty() { Ok(()) } else { self.keep(command) }
    }

    fn name(&mut self) -> Result<String, Unread> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .filter(|end| *end > 0 && !rest.starts_with(|c: char| c.is_ascii_digit()))
            .ok_or(Unread)?;
        self.at += end;
        Ok(rest[..end].to_owned())
    }

    fn each(&mut self) -> Result<(), Unread> {
        self.blanks();
        if self.eat("((") {
            let text = self.arithmetic()?;
            self.keep(Command { kind: Kind::Arithmetic(text), ..Command::default() })?;
        } else {
            let name = self.name()?;
            self.blanks();
            let mut command = Command { kind: Kind::For(name), ..Command::default() };
            self.reserved(&["in"]).ok_or(Unread)?;
            self.at += 2;
            loop {
                self.blanks();
                if self.peek().is_none_or(|c| "\n;".contains(c)) {
                    break;
                }
                let word = self.word()?;
                command.words.push(word);
            }
            self.keep(command)?;
        }
        self.blanks();
        self.eat(";");
        self.blanks_and_lines()?;
        self.reserved(&["do"]).ok_or(Unread)?;
        self.at += 2;
        self.statements(&["done"]).map(drop)
    }

    fn case(&mut self) -> Result<(), Unread> {
        self.blanks();
        self.word()?;
        self.blanks_and_lines()?;
        self.reserved(&["in"]).ok_or(Unread)?;
        self.at += 2;
        loop {
            self.blanks_and_lines()?;
            if self.reserved(&["esac"]).is_some() {
                self.at += 4;
                return Ok(());
            }
            self.eat("(");
            loop {
                self.blanks();
                let pattern = self.word()?;
                // A pattern can run something only through what is read here as unknown.
                if pattern.atoms.is_empty() && pattern.span.0 == pattern.span.1 {
                    return Err(Unread);
                }
                self.blanks();
                if self.eat(")") {
                    break;
                }
                self.need("|")?;
            }
            if self.statements(&[";;", "esac"])? == "esac" {
                return Ok(());
            }
            if self.rest().starts_with('&') {
                return Err(Unread);
            }
        }
    }

    /// `[[ ... ]]`: its operands and operators as words.
    fn test(&mut self) -> Result<(), Unread> {
        let mut command = Command { kind: Kind::Test, ..Command::default() };
        loop {
            self.blanks_and_lines()?;
            if self.reserved(&["]]"]).is_some() {
                self.at += 2;
                break;
            }
            if ["&&", "||", "(", ")", "<", ">"].into_iter().any(|by| self.eat(by)) {
                continue;
            }
            let word = self.word()?;
            if word.span.0 == word.span.1 {
                return Err(Unread);
            }
            command.words.push(word);
        }
        self.keep(command)
    }

    /// `name() { ... }`, after the name.
    pub(super) fn function(&mut self, name: Word) -> Result<(), Unread> {
        self.need("()")?;
        let text = name.literal().ok_or(Unread)?;
        self.keep(Command { kind: Kind::Function(text), ..Command::default() })?;
        self.blanks_and_lines()?;
        self.reserved(&["{"]).ok_or(Unread)?;
        self.deeper(Self::command)
    }
}
