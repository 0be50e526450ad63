//! The reader: the part of the shell's language that a label can be made from.
//!
//! It reads from left to right, never goes back, and stops with [`Unread`] at whatever
//! it does not know, so its time is linear and its depth is counted. It must never
//! guess: what it gives up on is opaque.

mod arithmetic;
mod command_list;
mod compound;
mod cursor;
mod here_documents;
mod quote;
mod word;

use crate::limits::{COMMAND_BYTES_MAX, DEPTH_MAX};
use crate::syntax::{Assignment, Command, Redirect, Way, Word};

use command_list::CommandList;
use cursor::Cursor;
pub(crate) use cursor::Unread;
use here_documents::{HereDocument, HereDocuments};

/// The commands of a whole text, in the order in which they stand; those inside a word
/// before the word's own.
pub(crate) fn read(text: &str) -> Result<Vec<Command>, Unread> {
    let odd = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || (c.is_whitespace() && !c.is_ascii())
    };
    if text.len() > COMMAND_BYTES_MAX || text.contains(odd) {
        return Err(Unread);
    }
    let mut reader = Reader {
        cursor: Cursor::new(text),
        depth: 0,
        documents: HereDocuments::default(),
        commands: CommandList::default(),
    };
    reader.statements(&[])?;
    if !reader.cursor.is_at_end() || !reader.documents.is_empty() {
        return Err(Unread);
    }
    Ok(reader.commands.into_commands())
}

/// What is read, and what was read of it.
struct Reader<'a> {
    cursor: Cursor<'a>,
    depth: usize,
    documents: HereDocuments,
    commands: CommandList,
}

/// The programs whose arguments may be assignments.
const DECLARING: [&str; 5] = ["declare", "typeset", "export", "readonly", "local"];

impl Reader<'_> {
    /// Goes one level deeper for as long as something is read.
    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Unread>,
    ) -> Result<T, Unread> {
        if self.depth == DEPTH_MAX {
            return Err(Unread);
        }
        self.depth += 1;
        let out = read(self);
        self.depth -= 1;
        out
    }

    fn blanks_and_lines(&mut self) -> Result<(), Unread> {
        loop {
            self.cursor.blanks();
            if !self.cursor.eat("\n") {
                return Ok(());
            }
            self.documents.read(&mut self.cursor)?;
        }
    }

    /// Commands until one of these words, which is taken; at the end of the text if
    /// there are none.
    fn statements(&mut self, until: &[&'static str]) -> Result<&'static str, Unread> {
        self.deeper(|reader| {
            loop {
                reader.blanks_and_lines()?;
                if let Some(word) = reader.cursor.reserved(until) {
                    reader.cursor.skip(word.len());
                    return Ok(word);
                }
                if reader.cursor.is_at_end() {
                    return if until.is_empty() { Ok("") } else { Err(Unread) };
                }
                reader.command()?;
                reader.cursor.blanks();
                if let Some(word) =
                    reader.cursor.reserved(until).filter(|word| matches!(*word, ")" | ";;"))
                {
                    reader.cursor.skip(word.len());
                    return Ok(word);
                }
                if reader.cursor.is_at_end() {
                    continue;
                }
                let split = reader.cursor.rest().starts_with('\n')
                    || (!reader.cursor.rest().starts_with(";;")
                        && ["&&", "||", "|&", "|", ";", "&"]
                            .into_iter()
                            .any(|by| reader.cursor.eat(by)));
                if !split {
                    return Err(Unread);
                }
            }
        })
    }

    /// Assignments, words and redirections up to the end of a command.
    fn simple(&mut self) -> Result<(), Unread> {
        let mut command = Command::default();
        let begin = self.cursor.at();
        let mut declares = false;
        loop {
            self.cursor.blanks();
            if self.redirect(&mut command)? {
                continue;
            }
            if self.cursor.peek().is_none_or(|c| "\n;&|)".contains(c)) {
                break;
            }
            if command.words.is_empty()
                && let Some(name) = self.cursor.assigned()
            {
                let assignment = self.assignment(name)?;
                command.assignments.push(assignment);
                continue;
            }
            if declares && let Some(name) = self.cursor.assigned() {
                let assignment = self.assignment(name)?;
                command.assignments.push(assignment);
                continue;
            }
            let word = self.word()?;
            if command.words.is_empty() {
                if self.cursor.peek() == Some('(') {
                    return self.function(word);
                }
                declares = DECLARING.contains(&self.cursor.slice(word.span));
            }
            if self.cursor.peek() == Some('(') {
                return Err(Unread);
            }
            command.words.push(word);
        }
        if self.cursor.at() == begin {
            return Err(Unread);
        }
        self.close(command)
    }

    /// Keeps a simple command.
    fn close(&mut self, command: Command) -> Result<(), Unread> {
        let first = command.words.first().map(|word| word.span);
        if first.is_some_and(|span| self.cursor.slice(span) == "[") {
            let last = command.words.last().map_or((0, 0), |word| word.span);
            if self.cursor.slice(last) != "]" || command.words.len() < 2 {
                return Err(Unread);
            }
        }
        self.commands.push(command)
    }

    fn assignment(&mut self, name: String) -> Result<Assignment, Unread> {
        self.cursor.skip(name.len());
        let appended = self.cursor.eat("+");
        self.cursor.need("=")?;
        let value = if self.cursor.eat("(") {
            loop {
                self.blanks_and_lines()?;
                if self.cursor.eat(")") {
                    break None;
                }
                let word = self.word()?;
                if self.cursor.slice(word.span).starts_with('[') {
                    return Err(Unread);
                }
            }
        } else {
            Some(self.pieces(true)?)
        };
        Ok(Assignment { name, value: value.filter(|_| !appended) })
    }

    /// A redirection, if one stands here.
    fn redirect(&mut self, command: &mut Command) -> Result<bool, Unread> {
        let digits = self.cursor.rest().bytes().take_while(u8::is_ascii_digit).count();
        let operator = &self.cursor.rest()[digits..];
        if digits > 2
            || !(operator.starts_with(['<', '>']) || (digits == 0 && operator.starts_with("&>")))
        {
            return Ok(false);
        }
        // A word that begins with a command: `<(...)`.
        if digits == 0 && (operator.starts_with("<(") || operator.starts_with(">(")) {
            return Ok(false);
        }
        self.cursor.skip(digits);
        if self.cursor.rest().starts_with("<<") && !self.cursor.rest().starts_with("<<<") {
            self.document()?;
            command.redirects.push(Redirect { way: Way::Text, word: Word::default() });
            return Ok(true);
        }
        let ways = [
            ("<<<", Way::Text),
            ("&>>", Way::Write),
            ("&>", Way::Write),
            ("<>", Way::Write),
            ("<&", Way::Duplicate),
            (">&", Way::Duplicate),
            (">>", Way::Write),
            (">|", Way::Write),
            (">", Way::Write),
            ("<", Way::Read),
        ];
        let Some((_, way)) = ways.into_iter().find(|(operator, _)| self.cursor.eat(operator))
        else {
            return Err(Unread);
        };
        if way == Way::Duplicate && self.cursor.eat("-") {
            return Ok(true);
        }
        self.cursor.blanks();
        let word = self.word()?;
        command.redirects.push(Redirect { way, word });
        Ok(true)
    }

    /// `<<END`: its text is read after the line.
    fn document(&mut self) -> Result<(), Unread> {
        self.cursor.need("<<")?;
        let tabs = self.cursor.eat("-");
        self.cursor.blanks();
        let word = self.word()?;
        let raw = self.cursor.slice(word.span);
        let end = word.literal().ok_or(Unread)?;
        if end.is_empty() || !end.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(Unread);
        }
        self.documents.announce(HereDocument { quoted: raw != end, end, tabs })
    }
}
