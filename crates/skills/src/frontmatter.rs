//! The frontmatter: YAML without what surprises. Values are texts, lists and mappings;
//! there are no types, no references, no tags, no brackets.
//!
//! The parser is a library's, and gives events. What is refused here is what the
//! reference refuses (`strictyaml`), for the same texts. Nothing is ever expanded, so the
//! result is never larger than the text.

use std::collections::BTreeSet;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use crate::limits::{FRONTMATTER_BYTES_MAX, FRONTMATTER_DEPTH_MAX};
use crate::problem::{Reason, SkillProblem};

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

/// The frontmatter of a SKILL.md, and the text behind it.
pub(crate) fn split(text: &str) -> Result<(&str, &str), Reason> {
    let rest = text.strip_prefix("---").ok_or(Reason::NoFrontmatter)?;
    // Wherever it stands: also inside of a line, as the reference has it.
    rest.split_once("---").ok_or(Reason::OpenFrontmatter)
}

/// What the frontmatter says.
pub(crate) fn read(text: &str, path: &str) -> Result<Vec<(String, Value)>, SkillProblem> {
    let whole = |reason| SkillProblem::at(path, reason);
    if text.len() > FRONTMATTER_BYTES_MAX {
        let what = "bytes of frontmatter";
        return Err(whole(Reason::TooMuch { what, max: FRONTMATTER_BYTES_MAX }));
    }
    if text.contains(|c| !is_printable(c)) {
        return Err(whole(Reason::Refused("characters that can't be printed")));
    }
    // The library refuses a byte order mark inside of a text, where it is a character like
    // others: another one that the text does not have stands in for it.
    let mut free = ('\u{e000}'..='\u{f8ff}').filter(|c| !text.contains(*c));
    let stand_in = if text.contains(MARK) { free.next().unwrap_or(MARK) } else { MARK };
    // Another one is a line break to the reference, which it folds into a blank.
    let text = text.replace(MARK, &stand_in.to_string()).replace('\u{85}', " ");
    let events = Parser::new_from_str(&text);
    let mut reader =
        Reader { chars: text.chars().collect(), stand_in, quoted: Vec::new(), path, events };
    let value = reader.document()?;
    if let Some(line) = reader.loose_tab() {
        return Err(reader.problem(line, Reason::Refused("a tab outside of quotes")));
    }
    match value {
        Some(Value::Map(fields)) => Ok(fields),
        Some(Value::Text(_) | Value::List(_)) | None => Err(whole(Reason::NoMapping)),
    }
}

const MARK: char = '\u{feff}';

/// As YAML has it, without what stands outside of the first plane's text.
fn is_printable(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}'
        | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

struct Reader<'a, E> {
    chars: Vec<char>,
    stand_in: char,
    /// Where quoted and block texts stand, in characters.
    quoted: Vec<(usize, usize)>,
    path: &'a str,
    events: E,
}

impl<'a, E: Iterator<Item = Result<(Event<'a>, Span), ScanError>>> Reader<'_, E> {
    fn next(&mut self) -> Result<(Event<'a>, Span), SkillProblem> {
        match self.events.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let line = error.marker().line();
                Err(self.problem(line, Reason::NotYaml(error.info().to_owned())))
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn problem(&self, line: usize, reason: Reason) -> SkillProblem {
        SkillProblem { path: self.path.to_owned(), line: Some(line.max(1)), reason }
    }

    /// The only document.
    fn document(&mut self) -> Result<Option<Value>, SkillProblem> {
        let mut value = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(value),
                Event::Nothing | Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(_) if value.is_none() => {
                    let (event, span) = self.next()?;
                    value = Some(self.value(event, span, 0)?);
                }
                _ => {
                    return Err(
                        self.problem(span.start.line(), Reason::Refused("a second document"))
                    );
                }
            }
        }
    }

    fn value(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Value, SkillProblem> {
        let line = span.start.line();
        let refused = |what| self.problem(line, Reason::Refused(what));
        if depth > FRONTMATTER_DEPTH_MAX {
            let what = "lists and mappings inside each other";
            return Err(self.problem(line, Reason::TooMuch { what, max: FRONTMATTER_DEPTH_MAX }));
        }
        let (anchor, tagged) = match &event {
            Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some()),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
                if matches!(self.chars.get(span.start.index()), Some('{' | '[')) {
                    return Err(refused("brackets or braces around a value"));
                }
                (*anchor, tag.is_some())
            }
            Event::Alias(_) => return Err(refused("a reference (`*`)")),
            _ => return Err(refused("no value")),
        };
        if anchor > 0 {
            return Err(refused("an anchor (`&`)"));
        }
        if tagged {
            return Err(refused("a tag (`!`)"));
        }
        match event {
            Event::SequenceStart(..) => self.list(depth),
            Event::MappingStart(..) => self.map(depth),
            // Types of their own in YAML 1.1, of which the reference makes nothing.
            Event::Scalar(text, ScalarStyle::Plain, ..) if matches!(&*text, "=" | "<<") => {
                Ok(Value::Text(String::new()))
            }
            Event::Scalar(text, style, ..) => {
                if style != ScalarStyle::Plain {
                    self.quoted.push((span.start.index(), span.end.index()));
                }
                Ok(Value::Text(text.replace(self.stand_in, &MARK.to_string())))
            }
            _ => Err(self.problem(line, Reason::Refused("no value"))),
        }
    }

    /// The line of a tab that is no part of a quoted or block text, nor of a comment.
    fn loose_tab(&self) -> Option<usize> {
        let (mut at, mut line, mut quoted) = (0, 1, self.quoted.iter().peekable());
        let mut comment = false;
        while let Some(c) = self.chars.get(at) {
            if let Some((_, end)) = quoted.next_if(|(start, _)| *start <= at && !comment) {
                let end = (*end).clamp(at, self.chars.len());
                line += self.chars[at..end].iter().filter(|c| **c == '\n').count();
                at = end;
                continue;
            }
            let blank = at.checked_sub(1).is_none_or(|last| self.chars[last].is_whitespace());
            match c {
                '\n' => (line, comment) = (line + 1, false),
                '#' if blank => comment = true,
                '\t' if !comment => return Some(line),
                _ => {}
            }
            at += 1;
        }
        None
    }

    fn list(&mut self, depth: usize) -> Result<Value, SkillProblem> {
        let mut list = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(Value::List(list));
            }
            list.push(self.value(event, span, depth + 1)?);
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, SkillProblem> {
        let mut map: Vec<(String, Value)> = Vec::new();
        let mut seen = BTreeSet::new();
        let mut column = None;
        let mut merged: Option<Vec<(String, Value)>> = None;
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                // At the top the reference leaves it out.
                let more = merged.filter(|_| depth > 0).unwrap_or_default().into_iter();
                map.extend(more.filter(|(key, _)| seen.insert(key.clone())));
                return Ok(Value::Map(map));
            }
            let line = span.start.line();
            let merges =
                matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<");
            let Value::Text(key) = self.value(event, span, depth + 1)? else {
                return Err(self.problem(line, Reason::Refused("a key that is no text")));
            };
            if merges {
                let (event, span) = self.next()?;
                let more = merge(self.value(event, span, depth + 1)?);
                if merged.is_some() || more.is_none() {
                    return Err(self.problem(line, Reason::Refused("a merge (`<<`) of no mapping")));
                }
                merged = more;
                continue;
            }
            if !seen.insert(key.clone()) {
                return Err(self.problem(line, Reason::Twice(key)));
            }
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingStart(..)) {
                // Mappings of one mapping stand at one indentation.
                let own = span.start.col();
                if *column.get_or_insert(own) != own {
                    let what = "mappings of one level at two indentations";
                    return Err(self.problem(span.start.line(), Reason::Refused(what)));
                }
            }
            let value = self.value(event, span, depth + 1)?;
            map.push((key, value));
        }
    }
}

/// What `<<` brings in: a mapping, or several.
fn merge(value: Value) -> Option<Vec<(String, Value)>> {
    match value {
        Value::Text(_) => None,
        Value::Map(map) => Some(map),
        Value::List(list) => {
            let maps = list.into_iter().map(|one| match one {
                Value::Map(map) => Some(map),
                Value::Text(_) | Value::List(_) => None,
            });
            maps.collect::<Option<Vec<_>>>().map(|maps| maps.concat())
        }
    }
}
