//! What a word may become: braces, and the values of variables.

use crate::limits::ALTERNATIVES_MAX;
use crate::syntax::Atom;
use crate::variables::Variables;

type Atoms = Vec<Atom>;

/// Everything that a word may become, in pieces without a variable; nothing if that is
/// too much.
pub(crate) fn word(atoms: &[Atom], variables: &Variables) -> Option<Vec<Atoms>> {
    let mut out = Vec::new();
    for word in braces(atoms, variables)? {
        for word in variables.expand(&word)? {
            out.push(word);
            if out.len() > ALTERNATIVES_MAX {
                return None;
            }
        }
    }
    Some(out)
}

fn bare(atom: &Atom, which: char) -> bool {
    matches!(atom, Atom::Char { c, quoted: false } if *c == which)
}

/// Braces, the leftmost first. Braces that hold neither a comma nor two dots stay, as do
/// those without an end; a sequence of numbers is taken for digits.
fn braces(atoms: &[Atom], variables: &Variables) -> Option<Vec<Atoms>> {
    let mut due = vec![(atoms.to_vec(), 0)];
    let mut out = Vec::new();
    let mut steps = 0;
    while let Some((word, from)) = due.pop() {
        // A brace that stays is a step as well, and so is its search for an end.
        steps += 1;
        if steps > ALTERNATIVES_MAX * 4
            || !variables.spend(word.len())
            || out.len() + due.len() > ALTERNATIVES_MAX
        {
            return None;
        }
        let Some(open) = (from..word.len()).find(|at| bare(&word[*at], '{')) else {
            out.push(word);
            continue;
        };
        let Some((commas, close)) = group(&word, open) else {
            due.push((word, open + 1));
            continue;
        };
        let inside = &word[open + 1..close];
        let dots = inside.windows(2).any(|two| bare(&two[0], '.') && bare(&two[1], '.'));
        let joined = |middle: &[Atom]| [&word[..open], middle, &word[close + 1..]].concat();
        if commas.is_empty() {
            if !dots {
                due.push((word, open + 1));
                continue;
            }
            let digits = |atom: &Atom| matches!(atom, Atom::Char { c, quoted: false } if c.is_ascii_digit() || *c == '.');
            if !inside.iter().all(digits) {
                return None;
            }
            due.push((joined(&[Atom::Digits]), open));
            continue;
        }
        let mut start = open + 1;
        for end in commas.into_iter().chain([close]) {
            due.push((joined(&word[start..end]), open));
            start = end + 1;
        }
    }
    Some(out)
}

/// Where the commas and the end of a brace are.
fn group(word: &[Atom], open: usize) -> Option<(Vec<usize>, usize)> {
    let (mut depth, mut commas) = (0_usize, Vec::new());
    for (at, atom) in word.iter().enumerate().skip(open + 1) {
        if bare(atom, '{') {
            depth += 1;
        } else if bare(atom, '}') {
            if depth == 0 {
                return Some((commas, at));
            }
            depth -= 1;
        } else if bare(atom, ',') && depth == 0 {
            commas.push(at);
        }
    }
    None
}
