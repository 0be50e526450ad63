//! The values that the variables of a text are ever given in it.
//!
//! When a value is given is not asked: a variable has all of its values, and none, at
//! every place. Must never know the environment; of it only the home is taken to be
//! where homes are.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use crate::limits::{ALTERNATIVES_MAX, EXPANDED_CHARS_MAX, VALUES_DEEP_MAX};
use crate::syntax::{Atom, Command, Kind, is_pattern};

/// Each variable with its values; nothing for one that can't be known.
#[derive(Debug)]
pub(crate) struct Variables {
    values: BTreeMap<String, Vec<Option<Vec<Atom>>>>,
    /// How many pieces may yet be made.
    left: Cell<usize>,
}

impl Default for Variables {
    fn default() -> Self {
        Self { values: BTreeMap::new(), left: Cell::new(EXPANDED_CHARS_MAX) }
    }
}

impl Variables {
    pub(crate) fn of(commands: &[Command]) -> Self {
        let mut out = Self::default();
        for command in commands {
            for assignment in &command.assignments {
                let value = assignment.value.as_ref().map(|word| word.atoms.clone());
                out.give(&assignment.name, value);
            }
            if let Kind::Arithmetic(text) = &command.kind {
                for name in counted(text) {
                    out.give(name, Some(vec![Atom::Digits]));
                }
            }
            if let Kind::For(name) = &command.kind {
                for word in &command.words {
                    out.give(name, Some(settled(&word.atoms)));
                }
            }
            let words = command.words.iter().map(|word| word.literal());
            let mut words = words.map(Option::unwrap_or_default);
            if matches!(
                words.next().as_deref(),
                Some("read" | "declare" | "local" | "export" | "readonly" | "typeset")
            ) {
                for name in words {
                    out.give(name.split(['=', '+']).next().unwrap_or_default(), None);
                }
            }
        }
        out
    }

    fn give(&mut self, name: &str, value: Option<Vec<Atom>>) {
        let values = self.values.entry(name.to_owned()).or_default();
        if values.len() == ALTERNATIVES_MAX {
            *values = vec![None];
        } else if !values.contains(&None) && !values.contains(&value) {
            values.push(value);
        }
    }

    /// Takes so many pieces from what may yet be made. False if they are too many.
    pub(crate) fn spend(&self, pieces: usize) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(pieces));
        pieces <= left
    }

    /// Whether the text gives it a value.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Whether all that a variable is ever given are numbers.
    pub(crate) fn is_number(&self, name: &str) -> bool {
        self.values.get(name).is_none_or(|values| {
            values.iter().all(|value| {
                value.as_ref().is_some_and(|atoms| {
                    atoms.iter().all(|atom| match atom {
                        Atom::Digits => true,
                        Atom::Char { c, .. } => c.is_ascii_digit(),
                        _ => false,
                    })
                })
            })
        })
    }

    /// A word with every value of every variable in it; nothing if they are too many.
    pub(crate) fn expand(&self, atoms: &[Atom]) -> Option<Vec<Vec<Atom>>> {
        let mut out = BTreeSet::new();
        let mut due = vec![(atoms.to_vec(), VALUES_DEEP_MAX * ALTERNATIVES_MAX)];
        while let Some((word, left)) = due.pop() {
            if !self.spend(1 + word.len()) || left == 0 || out.len() + due.len() > ALTERNATIVES_MAX
            {
                return None;
            }
            let place = word.iter().position(|atom| matches!(atom, Atom::Var { .. }));
            let Some((at, name, quoted)) = place.and_then(|at| match &word[at] {
                Atom::Var { name, quoted } => Some((at, name.clone(), *quoted)),
                _ => None,
            }) else {
                out.insert(word);
                continue;
            };
            for value in self.values(&name, at == 0) {
                let value =
                    if quoted { value.into_iter().map(quote).collect() } else { split(value) };
                if !self.spend(value.len()) {
                    return None;
                }
                due.push(([&word[..at], &value, &word[at + 1..]].concat(), left - 1));
            }
        }
        Some(out.into_iter().collect())
    }

    fn values(&self, name: &str, first: bool) -> Vec<Vec<Atom>> {
        let unknown = || vec![Atom::Any { quoted: false }];
        let Some(values) = self.values.get(name) else {
            return vec![if name == "HOME" && first { vec![Atom::Home] } else { unknown() }];
        };
        let values = values.iter().map(|value| value.clone().unwrap_or_else(unknown));
        // It may not have been given any.
        values.chain([Vec::new()]).collect()
    }
}

/// What a loop's variable is given: the matches of a pattern, not the pattern.
fn settled(atoms: &[Atom]) -> Vec<Atom> {
    let settle = |atom: &Atom| match atom {
        Atom::Char { c, quoted: false } if is_pattern(*c) => Atom::Matched,
        // Braces in a loop are several values.
        Atom::Char { c: '{', quoted: false } => Atom::Any { quoted: false },
        other => other.clone(),
    };
    atoms.iter().map(settle).collect()
}

/// The names that arithmetic assigns to.
fn counted(text: &str) -> impl Iterator<Item = &str> {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(move |c| !name(c)).filter(|word| !word.is_empty());
    words.filter(move |word| {
        let end = word.as_ptr() as usize - text.as_ptr() as usize + word.len();
        let rest = text[end..].trim_start();
        let operator = rest.trim_start_matches(['+', '-', '*', '/', '%', '&', '|', '^']);
        let equals = operator.starts_with('=') && !operator.starts_with("==");
        equals || rest.starts_with("++") || rest.starts_with("--")
    })
}

fn quote(atom: Atom) -> Atom {
    match atom {
        Atom::Char { c, .. } => Atom::Char { c, quoted: true },
        Atom::Any { .. } => Atom::Any { quoted: true },
        Atom::Var { name, .. } => Atom::Var { name, quoted: true },
        other => other,
    }
}

/// What is not quoted is taken apart at blanks, and may be a pattern.
fn split(value: Vec<Atom>) -> Vec<Atom> {
    let apart = value.iter().any(|atom| {
        matches!(atom, Atom::Matched) || matches!(atom, Atom::Char { c, .. } if c.is_whitespace())
    });
    if apart {
        return vec![Atom::Any { quoted: false }];
    }
    let open = |atom| match atom {
        Atom::Char { c, .. } => Atom::Char { c, quoted: !is_pattern(c) },
        Atom::Var { name, .. } => Atom::Var { name, quoted: false },
        other => other,
    };
    value.into_iter().map(open).collect()
}
