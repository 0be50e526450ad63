//! The reader: the part of the shell's language that a label can be made from.
//!
//! It reads from left to right, never goes back, and stops with [`Unread`] at whatever
//! it does not know, so its time is linear and its depth is counted. It must never
//! guess: what it gives up on is opaque.

mod arithmetic;
mod compound;
mod quote;
mod word;

use crate::limits::{COMMAND_BYTES_MAX, DEPTH_MAX, DOCUMENTS_MAX, WORDS_MAX};
use crate::syntax::{Assignment, Command, Redirect, Way, Word};

/// The text holds something that this reader does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unread;

/// The commands of a whole text, in the order in which they stand; those inside a word
/// before the word's own.
pub(crate) fn read(text: &str) -> Result<Vec<Command>, Unread> {
    let odd = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || (c.is_whitespace() && !c.is_ascii())
    };
    if text.len() > COMMAND_BYTES_MAX || text.contains(odd) {
        return Err(Unread);
    }
    let mut reader =
        Reader { text, at: 0, depth: 0, words: 0, due: Vec::new(), commands: Vec::new() };
    reader.statements(&[])?;
    if reader.at < text.len() || !reader.due.is_empty() {
        return Err(Unread);
    }
    Ok(reader.commands)
}

/// A here-document whose text begins after the next line break.
struct Due {
    end: String,
    tabs: bool,
    quoted: bool,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    words: usize,
    due: Vec<Due>,
    commands: Vec<Command>,
}

/// The programs whose arguments may be assignments.
const DECLARING: [&str; 5] = ["declare", "typeset", "export", "readonly", "local"];

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, what: &str) -> bool {
        let found = self.rest().starts_with(what);
        if found {
            self.at += what.len();
        }
        found
    }

    fn need(&mut self, what: &str) -> Result<(), Unread> {
        if self.eat(what) { Ok(()) } else { Err(Unread) }
    }

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

    /// Blanks, continued lines and comments.
    fn blanks(&mut self) {
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
        self.text[..self.at].chars().next_back().is_none_or(|c| " \t\n;&|()<>".contains(c))
    }

    fn blanks_and_lines(&mut self) -> Result<(), Unread> {
        loop {
            self.blanks();
            if !self.eat("\n") {
                return Ok(());
            }
            self.documents()?;
        }
    }

    /// The texts of here-documents, after a line break.
    fn documents(&mut self) -> Result<(), Unread> {
        for due in std::mem::take(&mut self.due) {
            loop {
                let rest = self.rest();
                let (line, next) = match rest.find('\n') {
                    Some(end) => (&rest[..end], end + 1),
                    None => (rest, rest.len()),
                };
                if line == due.end || (due.tabs && line.trim_start_matches('\t') == due.end) {
                    // The line break is the separator of what follows.
                    self.at += line.len();
                    break;
                }
                // What runs inside of it is not followed.
                if !due.quoted
                    && (line.contains("$(")
                        || line.contains('`')
                        || line.contains("${")
                        || line.contains("$[")
                        || line.ends_with('\\'))
                {
                    return Err(Unread);
                }
                if rest.is_empty() {
                    return Err(Unread);
                }
                self.at += next;
            }
        }
        Ok(())
    }

    /// The reserved word that stands here, if one does.
    fn reserved(&self, words: &[&'static str]) -> Option<&'static str> {
        words.iter().copied().find(|word| {
            self.rest().strip_prefix(word).is_some_and(|after| {
                matches!(*word, ")" | ";;")
                    || after.chars().next().is_none_or(|c| " \t\n;&|()<>".contains(c))
            })
        })
    }

    /// Commands until one of these words, which is taken; at the end of the text if
    /// there are none.
    fn statements(&mut self, until: &[&'static str]) -> Result<&'static str, Unread> {
        self.deeper(|reader| {
            loop {
                reader.blanks_and_lines()?;
                if let Some(word) = reader.reserved(until) {
                    reader.at += word.len();
                    return Ok(word);
                }
                if reader.at == reader.text.len() {
                    return if until.is_empty() { Ok("") } else { Err(Unread) };
                }
                reader.command()?;
                reader.blanks();
                if let Some(word) =
                    reader.reserved(until).filter(|word| matches!(*word, ")" | ";;"))
                {
                    reader.at += word.len();
                    return Ok(word);
                }
                if reader.at == reader.text.len() {
                    continue;
                }
                let split = reader.rest().starts_with('\n')
                    || (!reader.rest().starts_with(";;")
                        && ["&&", "||", "|&", "|", ";", "&"].into_iter().any(|by| reader.eat(by)));
                if !split {
                    return Err(Unread);
                }
            }
        })
    }

    /// Assignments, words and redirections up to the end of a command.
    fn simple(&mut self) -> Result<(), Unread> {
        let mut command = Command::default();
        let begin = self.at;
        let mut declares = false;
        loop {
            self.blanks();
            if self.redirect(&mut command)? {
                continue;
            }
            if self.peek().is_none_or(|c| "\n;&|)".contains(c)) {
                break;
            }
            if command.words.is_empty()
                && let Some(name) = self.assigned()
            {
                let assignment = self.assignment(name)?;
                command.assignments.push(assignment);
                continue;
            }
            if declares && let Some(name) = self.assigned() {
                let assignment = self.assignment(name)?;
                command.assignments.push(assignment);
                continue;
            }
            let word = self.word()?;
            if command.words.is_empty() {
                if self.peek() == Some('(') {
                    return self.function(word);
                }
                declares = DECLARING.contains(&&self.text[word.span.0..word.span.1]);
            }
            if self.peek() == Some('(') {
                return Err(Unread);
            }
            command.words.push(word);
        }
        if self.at == begin {
            return Err(Unread);
        }
        self.close(command)
    }

    /// Keeps a simple command.
    fn close(&mut self, command: Command) -> Result<(), Unread> {
        let first = command.words.first().map(|word| word.span);
        let of = |(from, to): (usize, usize)| &self.text[from..to];
        if first.is_some_and(|span| of(span) == "[") {
            let last = command.words.last().map_or((0, 0), |word| word.span);
            if of(last) != "]" || command.words.len() < 2 {
                return Err(Unread);
            }
        }
        self.keep(command)
    }

    fn keep(&mut self, command: Command) -> Result<(), Unread> {
        self.words += 1 + command.words.len();
        if self.words > WORDS_MAX {
            return Err(Unread);
        }
        self.commands.push(command);
        Ok(())
    }

    /// The name of a variable that is assigned to here.
    fn assigned(&self) -> Option<String> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
        let named = end > 0 && !rest.starts_with(|c: char| c.is_ascii_digit());
        let equals = rest[end..].starts_with('=') || rest[end..].starts_with("+=");
        (named && equals).then(|| rest[..end].to_owned())
    }

    fn assignment(&mut self, name: String) -> Result<Assignment, Unread> {
        self.at += name.len();
        let appended = self.eat("+");
        self.need("=")?;
        let value = if self.eat("(") {
            loop {
                self.blanks_and_lines()?;
                if self.eat(")") {
                    break None;
                }
                let word = self.word()?;
                if self.text[word.span.0..].starts_with('[') {
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
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let operator = &self.rest()[digits..];
        if digits > 2
            || !(operator.starts_with(['<', '>']) || (digits == 0 && operator.starts_with("&>")))
        {
            return Ok(false);
        }
        // A word that begins with a command: `<(...)`.
        if digits == 0 && (operator.starts_with("<(") || operator.starts_with(">(")) {
            return Ok(false);
        }
        self.at += digits;
        if self.rest().starts_with("<<") && !self.rest().starts_with("<<<") {
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
        let Some((_, way)) = ways.into_iter().find(|(operator, _)| self.eat(operator)) else {
            return Err(Unread);
        };
        if way == Way::Duplicate && self.eat("-") {
            return Ok(true);
        }
        self.blanks();
        let word = self.word()?;
        command.redirects.push(Redirect { way, word });
        Ok(true)
    }

    /// `<<END`: its text is read after the line.
    fn document(&mut self) -> Result<(), Unread> {
        self.need("<<")?;
        if self.due.len() == DOCUMENTS_MAX {
            return Err(Unread);
        }
        let tabs = self.eat("-");
        self.blanks();
        let word = self.word()?;
        let raw = &self.text[word.span.0..word.span.1];
        let end = word.literal().ok_or(Unread)?;
        if end.is_empty() || !end.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(Unread);
        }
        self.due.push(Due { quoted: raw != end, end, tabs });
        Ok(())
    }
}
