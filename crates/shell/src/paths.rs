//! Which words lead to what is guarded.
//!
//! Owns the comparison of paths with the guarded ones, by their text. Must never look at
//! a file: a link made elsewhere is not seen here.

use std::collections::BTreeSet;

use crate::limits::DIRECTORIES_MAX;
use crate::syntax::{Atom, is_pattern};

/// What a word may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// To nothing that is guarded.
    No,
    /// To what can't be known, or to a directory above something guarded.
    Perhaps,
    /// To this guarded path.
    Yes(usize),
}

/// A directory: below the root, or below one that nobody named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Directory {
    rooted: bool,
    parts: Vec<Part>,
}

/// One name of a path: its characters, nothing for what can't be known of it.
type Part = Vec<Option<char>>;

/// The guarded paths.
#[derive(Debug)]
pub(crate) struct Guards {
    names: Vec<String>,
    parts: Vec<Vec<String>>,
}

/// The directories that a command may be in, of which one is never named.
#[derive(Debug, Clone)]
pub(crate) struct Places(Vec<Directory>);

impl Default for Places {
    fn default() -> Self {
        Self(vec![Directory::default()])
    }
}

/// Between these a path may stand inside a word.
const EDGES: &str = " \t\n=:,;@\"'`()<>|&{}[]#!?+%^$~";

impl Guards {
    pub(crate) fn new(guarded: &[&str]) -> Self {
        let parts = |path: &&str| -> Vec<String> {
            path.split('/')
                .filter(|part| !part.is_empty() && *part != ".")
                .map(str::to_owned)
                .collect()
        };
        let guarded: Vec<&str> =
            guarded.iter().filter(|path| !parts(path).is_empty()).copied().collect();
        Self {
            names: guarded.iter().map(|path| (*path).to_owned()).collect(),
            parts: guarded.iter().map(parts).collect(),
        }
    }

    pub(crate) fn name(&self, index: usize) -> &str {
        &self.names[index]
    }

    /// The guarded paths that stand in a text, wherever and as whatever.
    pub(crate) fn mentioned(&self, text: &str) -> BTreeSet<String> {
        let named = |candidate: &str| match self.reach(&plain(candidate), &Places::default()) {
            Reach::Yes(index) => Some(self.names[index].clone()),
            Reach::No | Reach::Perhaps => None,
        };
        let pieces = text.split(|c| EDGES.contains(c)).filter(|piece| piece.contains('/'));
        // `-C/memory`, and of sed `r/memory`.
        let attached = |piece: &'_ str| -> Option<usize> {
            let slash = piece.find('/')?;
            let command = matches!(&piece[..slash], "r" | "R" | "w" | "W");
            (command || (slash > 0 && piece.starts_with('-'))).then_some(slash)
        };
        pieces
            .flat_map(|piece| {
                [named(piece), attached(piece).and_then(|slash| named(&piece[slash..]))]
            })
            .flatten()
            .collect()
    }

    /// What a word leads to as a path, from any of these places.
    pub(crate) fn reach(&self, atoms: &[Atom], places: &Places) -> Reach {
        let places = places.0.iter().map(|place| self.from(atoms, place));
        places.max().unwrap_or(Reach::No)
    }

    fn from(&self, atoms: &[Atom], place: &Directory) -> Reach {
        match resolve(atoms, place) {
            Some((path, climbed)) => self.judge(&path, climbed),
            None => Reach::Perhaps,
        }
    }

    fn judge(&self, path: &Directory, climbed: bool) -> Reach {
        if !path.rooted && !climbed {
            return Reach::No;
        }
        let of = self.parts.iter().enumerate().map(|(index, guard)| {
            let pairs = || guard.iter().zip(&path.parts);
            if !pairs().all(|(name, part)| may_be(part, name)) {
                Reach::No
            } else if path.parts.len() < guard.len() || !pairs().all(|(_, part)| known(part)) {
                Reach::Perhaps
            } else {
                Reach::Yes(index)
            }
        });
        of.max().unwrap_or(Reach::No).max(magic(&path.parts))
    }

    /// Adds the directory that a word names. False if from there on nothing can be known.
    pub(crate) fn enter(&self, atoms: &[Atom], places: &mut Places) -> bool {
        for place in places.0.clone() {
            let Some((path, climbed)) = resolve(atoms, &place) else { return false };
            if self.judge(&path, climbed) == Reach::Perhaps || !path.parts.iter().all(known) {
                return false;
            }
            // What was climbed out of is not known, so it may be the root.
            let path = Directory { rooted: path.rooted || climbed, ..path };
            if !places.0.contains(&path) {
                if places.0.len() == DIRECTORIES_MAX {
                    return false;
                }
                places.0.push(path);
            }
        }
        true
    }
}

/// Directories of the kernel whose entries lead anywhere.
fn magic(parts: &[Part]) -> Reach {
    let is = |at: usize, name: &str| parts.get(at).is_some_and(|part| may_be(part, name));
    let process = parts.get(1).is_some_and(|part| {
        ["self", "thread-self"].iter().any(|name| may_be(part, name))
            || part.iter().all(|c| c.is_none_or(|c| c.is_ascii_digit()))
    });
    if (is(0, "proc") && process) || (is(0, "dev") && is(1, "fd")) {
        Reach::Perhaps
    } else {
        Reach::No
    }
}

fn known(part: &Part) -> bool {
    part.iter().all(Option::is_some)
}

/// Whether a name with holes may be this one. Only what stands before the first hole
/// and behind the last one is compared.
fn may_be(part: &Part, name: &str) -> bool {
    let front = part.iter().take_while(|c| c.is_some()).flatten();
    if known(part) {
        return front.copied().eq(name.chars());
    }
    let front: String = front.collect();
    let back: String = part.iter().rev().take_while(|c| c.is_some()).flatten().collect();
    let back: String = back.chars().rev().collect();
    name.starts_with(&front) && name.ends_with(&back)
}

/// The path that a word names, from a place, and whether it climbed above where it
/// began. Nothing if it may be anything.
fn resolve(atoms: &[Atom], place: &Directory) -> Option<(Directory, bool)> {
    let (mut path, mut climbed) = (place.clone(), false);
    let atoms = match atoms {
        [Atom::Home, rest @ ..] => {
            path = Directory::default();
            rest
        }
        [Atom::Char { c: '/', .. }, ..] => {
            path = Directory { rooted: true, parts: Vec::new() };
            atoms
        }
        _ => atoms,
    };
    let (mut part, mut part_lists) = (Part::new(), false);
    let mut parts = Vec::new();
    for atom in atoms {
        match atom {
            Atom::Char { c: '/', .. } => {
                parts.push(std::mem::take(&mut part));
                part_lists = false;
            }
            Atom::Char { c, quoted } => {
                // What stands in brackets is not looked at, nor is what follows.
                let listed = part.last() == Some(&None) && part_lists;
                let pattern = !quoted && is_pattern(*c);
                part_lists = listed || (pattern && *c == '[');
                part.push((!listed && !pattern).then_some(*c));
            }
            Atom::Digits | Atom::Matched => part.push(None),
            Atom::Var { .. } | Atom::Home | Atom::Any { .. } => return None,
        }
    }
    parts.push(part);
    for part in parts {
        let text: String = part.iter().flatten().collect();
        match (known(&part), text.as_str()) {
            (true, "" | ".") => {}
            (true, "..") => {
                if path.parts.pop().is_none() && !path.rooted {
                    climbed = true;
                }
            }
            // `.*` is also `..`.
            (false, _) if part.first() == Some(&Some('.')) => return None,
            _ => path.parts.push(part),
        }
    }
    Some((path, climbed))
}

/// The pieces of a text without quotes in it.
pub(crate) fn plain(text: &str) -> Vec<Atom> {
    text.chars().map(|c| Atom::Char { c, quoted: true }).collect()
}
