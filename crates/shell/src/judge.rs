//! What commands come to: program by program, word by word.
//!
//! Owns the walk over the commands of one reading. Whatever it is not sure of it calls
//! opaque; it must never take that back.

mod arguments;
mod languages;

use std::collections::BTreeSet;

use crate::expand;
use crate::facts::CommandFacts;
use crate::limits::NESTED_SCRIPTS_MAX;
use crate::paths::{Guards, Places, Reach, plain};
use crate::programs::{self, Form};
use crate::reader;
use crate::syntax::{Atom, Command, Kind, Redirect, Way, Word, is_pattern, literal};
use crate::variables::Variables;

/// Judges the commands of one text.
pub(crate) struct Judge<'a> {
    guards: &'a Guards,
    facts: &'a mut CommandFacts,
    depth: usize,
    places: Places,
    variables: Variables,
    functions: BTreeSet<String>,
    /// Something was written that may be run, and something was run.
    wrote: bool,
    ran: bool,
}

/// Ends of the names of files that nothing runs.
const DATA: [&str; 5] = [".log", ".out", ".err", ".csv", ".tmp"];

impl<'a> Judge<'a> {
    pub(crate) fn new(guards: &'a Guards, facts: &'a mut CommandFacts, depth: usize) -> Self {
        Self {
            guards,
            facts,
            depth,
            places: Places::default(),
            variables: Variables::default(),
            functions: BTreeSet::new(),
            wrote: false,
            ran: false,
        }
    }

    /// Judges all of them. Says whether something was written, and something was run.
    pub(crate) fn all(mut self, commands: &[Command]) -> (bool, bool) {
        self.variables = Variables::of(commands);
        for command in commands {
            if let Kind::Function(name) = &command.kind {
                self.functions.insert(name.clone());
            }
        }
        for command in commands {
            self.command(command);
        }
        if self.wrote && self.ran {
            self.opaque();
        }
        (self.wrote, self.ran)
    }

    fn opaque(&mut self) {
        self.facts.opaque = true;
    }

    fn command(&mut self, command: &Command) {
        for assignment in &command.assignments {
            if programs::is_fateful(&assignment.name) {
                self.opaque();
            }
            if let Some(value) = &assignment.value {
                self.mention(&value.atoms);
                let plain = |c: char| c.is_ascii_alphanumeric() || "_.,+-*".contains(c);
                let simple = value.literal().is_some_and(|text| text.chars().all(plain));
                // What a program is handed in its environment may be anything to it.
                if !simple && !command.words.is_empty() {
                    self.opaque();
                }
            }
        }
        for redirect in &command.redirects {
            self.redirect(redirect);
        }
        match &command.kind {
            Kind::Simple => self.simple(&command.words),
            Kind::Test => self.test(&command.words, true),
            Kind::Arithmetic(text) => self.arithmetic(text),
            Kind::For(name) => {
                if programs::is_fateful(name) {
                    self.opaque();
                }
                command.words.iter().for_each(|word| self.quiet(word));
            }
            // A program of this name is another from here on.
            Kind::Function(name) => {
                if programs::form(name).is_some() || name.contains('/') {
                    self.opaque();
                }
            }
        }
    }

    fn redirect(&mut self, redirect: &Redirect) {
        match redirect.way {
            Way::Text => self.mention(&redirect.word.atoms),
            Way::Duplicate => {
                let number = |text: String| text.chars().all(|c| c.is_ascii_digit());
                if !redirect.word.literal().is_some_and(number) {
                    self.opaque();
                }
            }
            Way::Read => self.path(&redirect.word),
            Way::Write => {
                self.path(&redirect.word);
                let name = redirect.word.literal().unwrap_or_default();
                self.writes(&name);
            }
        }
    }

    fn writes(&mut self, name: &str) {
        if name != "/dev/null" && !DATA.iter().any(|end| name.ends_with(end)) {
            self.wrote = true;
        }
    }

    /// A word that is opened.
    fn path(&mut self, word: &Word) {
        match expand::word(&word.atoms, &self.variables) {
            Some(words) => words.iter().for_each(|atoms| self.opened(atoms)),
            None => self.opaque(),
        }
    }

    fn opened(&mut self, atoms: &[Atom]) {
        match self.guards.reach(atoms, &self.places) {
            Reach::No => {}
            Reach::Perhaps => self.opaque(),
            Reach::Yes(index) => self.touch(index),
        }
    }

    fn touch(&mut self, index: usize) {
        self.facts.touches.insert(self.guards.name(index).to_owned());
    }

    /// A text that holds a guarded path somewhere.
    fn mention(&mut self, atoms: &[Atom]) {
        for atoms in expand::word(atoms, &self.variables).unwrap_or_default() {
            let text: String = atoms
                .iter()
                .map(|atom| if let Atom::Char { c, .. } = atom { *c } else { '\n' })
                .collect();
            self.facts.touches.extend(self.guards.mentioned(&text));
        }
    }

    /// An argument that is not opened: only a pattern in it reads directories.
    fn quiet(&mut self, word: &Word) {
        self.mention(&word.atoms);
        let Some(words) = expand::word(&word.atoms, &self.variables) else {
            return self.opaque();
        };
        for atoms in words {
            let open = |atom: &Atom| match atom {
                Atom::Char { c, quoted } => !quoted && is_pattern(*c),
                Atom::Any { quoted } => !quoted,
                _ => false,
            };
            if atoms.iter().any(open) {
                self.opened(&atoms);
            }
        }
    }

    /// An argument that may be a path, or hold one. Gives the texts that it may be.
    fn argument(&mut self, word: &Word) -> Vec<String> {
        let Some(words) = expand::word(&word.atoms, &self.variables) else {
            self.opaque();
            return Vec::new();
        };
        let mut texts = Vec::new();
        for atoms in words {
            self.opened(&atoms);
            let text: String = atoms
                .iter()
                .map(|atom| if let Atom::Char { c, .. } = atom { *c } else { '?' })
                .collect();
            let option = text.starts_with('-');
            self.facts.touches.extend(self.guards.mentioned(&text));
            // `--opt=../memory`, `-C../memory`, `if=../memory`.
            let values = [text.find('=').map(|at| at + 1), (option && text.len() > 2).then_some(2)];
            for at in values.into_iter().flatten().filter(|at| text.is_char_boundary(*at)) {
                let skip = text[..at].chars().count();
                self.opened(&atoms[skip..]);
            }
            // What a pattern matches begins as the pattern does.
            let named = text.find(['=', '?']).is_some_and(|at| text[at..].starts_with('='));
            if literal(&atoms).is_some() || !option || named {
                texts.push(text);
            } else {
                self.opaque();
            }
        }
        texts
    }

    fn simple(&mut self, words: &[Word]) {
        let Some((name, arguments)) = words.split_first() else { return };
        let open = matches!(name.atoms.as_slice(), [Atom::Char { c: '[', .. }]);
        let text = if open { Some("[".to_owned()) } else { name.literal() };
        let Some(name) = text.filter(|name| !name.is_empty()) else {
            arguments.iter().for_each(|word| self.mention(&word.atoms));
            return self.opaque();
        };
        self.mention(&plain(&name));
        let base = name.rsplit('/').next().unwrap_or_default().to_owned();
        self.facts.programs.insert(base.clone());
        if name.contains('/') {
            self.opened(&plain(&name));
            let system = ["", "/usr", "/usr/local"]
                .iter()
                .any(|front| name == format!("{front}/bin/{base}"));
            let work = !name.starts_with('/') && name.split('/').all(|part| part != "..");
            if !system && !work {
                self.opaque();
            }
            // A program of the work itself, whose name may be that of another.
            self.ran |= work;
            if programs::form(&base).is_none() {
                if !work {
                    self.opaque();
                }
                return arguments.iter().for_each(|word| drop(self.argument(word)));
            }
        }
        if self.functions.contains(&name) {
            return arguments.iter().for_each(|word| drop(self.argument(word)));
        }
        match programs::form(&base) {
            Some((form, never)) => self.program(&base, form, never, arguments),
            None => {
                arguments.iter().for_each(|word| self.mention(&word.atoms));
                self.opaque();
            }
        }
    }

    /// The script of `sh -c`.
    fn script(&mut self, text: &str) {
        if self.depth == NESTED_SCRIPTS_MAX {
            return self.opaque();
        }
        match reader::read(text) {
            Ok(commands) => {
                let mut inner = Judge::new(self.guards, self.facts, self.depth + 1);
                inner.places = self.places.clone();
                // What is written inside may be run outside, and the other way.
                let (wrote, ran) = inner.all(&commands);
                self.wrote |= wrote;
                self.ran |= ran;
            }
            Err(reader::Unread) => self.opaque(),
        }
    }

    fn program(&mut self, name: &str, form: Form, never: &str, words: &[Word]) {
        match form {
            Form::Quiet => {
                let options = words.iter().filter_map(Word::literal);
                if options.into_iter().any(|text| programs::is_option(&text, never)) {
                    self.opaque();
                }
                if !never.is_empty() && words.first().is_some_and(|word| word.literal().is_none()) {
                    self.opaque();
                }
                words.iter().for_each(|word| self.quiet(word));
            }
            Form::Plain => drop(self.plain(words, never)),
            Form::Writes => {
                let texts = self.plain(words, never);
                let target = texts.iter().rfind(|text| !text.starts_with('-')).cloned();
                self.writes(&target.unwrap_or_default());
            }
            Form::Runs => {
                self.ran = true;
                drop(self.plain(words, never));
            }
            Form::Tests => self.test(words, false),
            Form::Enters => self.enters(name, words),
            Form::Declares => self.declares(name, words),
            Form::Sets => self.sets(words),
            Form::Wraps => self.wraps(name, words),
            Form::Shell => self.shell(words),
            Form::Script => self.interpreter(name, words),
            Form::Git => self.git(words),
            Form::Find => self.find(words),
            Form::Sed => self.sed(words),
            Form::Awk => self.awk(words),
        }
    }

    fn plain(&mut self, words: &[Word], never: &str) -> Vec<String> {
        let texts: Vec<String> = words.iter().flat_map(|word| self.argument(word)).collect();
        if texts.iter().any(|text| programs::is_option(text, never) || text.starts_with('@')) {
            self.opaque();
        }
        // Addresses have quotes and patterns of their own.
        if texts.iter().any(|text| text.to_ascii_lowercase().contains("file:")) {
            self.opaque();
        }
        texts
    }
}
