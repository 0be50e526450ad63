//! Builtins of the shell, wrappers, tests, arithmetic.

use super::Judge;
use crate::programs;
use crate::syntax::{Atom, Word};

impl Judge<'_> {
    /// `cd`: only to what is named.
    pub(super) fn enters(&mut self, name: &str, words: &[Word]) {
        let [word] = words else { return self.opaque() };
        let texts = self.argument(word);
        let [text] = texts.as_slice() else { return self.opaque() };
        if name != "cd" || text.starts_with('-') || text.is_empty() {
            return self.opaque();
        }
        let Some(alternatives) = crate::expand::word(&word.atoms, &self.variables) else {
            return self.opaque();
        };
        for atoms in alternatives {
            if !self.guards.enter(&atoms, &mut self.places) {
                self.opaque();
            }
        }
    }

    /// `export` and its like; `read` takes names too.
    pub(super) fn declares(&mut self, program: &str, words: &[Word]) {
        let mut valued = false;
        for word in words {
            self.mention(&word.atoms);
            let Some(text) = word.literal() else { return self.opaque() };
            let option = text.starts_with('-');
            let fine = match program {
                "read" => "-rsest".contains(&text) || text == "-r" || valued,
                "unset" => text == "-v",
                _ => matches!(text.as_str(), "-x" | "-r" | "-g" | "-gx" | "-rx" | "-a" | "-A"),
            };
            valued = false;
            if option {
                if !fine {
                    return self.opaque();
                }
                continue;
            }
            let name = text.split('=').next().unwrap_or_default();
            let named =
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !named || (programs::is_fateful(name) && name != "REPLY") {
                self.opaque();
            }
        }
    }

    /// `set -euo pipefail`.
    pub(super) fn sets(&mut self, words: &[Word]) {
        const FINE: [&str; 4] = ["pipefail", "errexit", "nounset", "noglob"];
        let fine = |word: &Word| {
            word.literal().is_some_and(|text| {
                FINE.contains(&text.as_str())
                    || text.strip_prefix(['-', '+']).is_some_and(|flags| {
                        !flags.is_empty() && flags.chars().all(|c| "euoxf".contains(c))
                    })
            })
        };
        if words.is_empty() || !words.iter().all(fine) {
            self.opaque();
        }
    }

    /// A program in front of a program.
    pub(super) fn wraps(&mut self, name: &str, words: &[Word]) {
        let mut rest = words;
        if name == "timeout" {
            let Some((limit, others)) = rest.split_first() else { return self.opaque() };
            let duration = |text: String| text.starts_with(|c: char| c.is_ascii_digit());
            if !limit.literal().is_some_and(duration) {
                self.opaque();
            }
            rest = others;
        }
        if name == "command"
            && rest.first().and_then(Word::literal).is_some_and(|text| text == "-v")
        {
            return rest[1..].iter().for_each(|word| self.quiet(word));
        }
        if name == "env" {
            while let Some(text) = rest.first().and_then(Word::literal) {
                let Some((variable, value)) = text.split_once('=') else { break };
                let plain = |c: char| c.is_ascii_alphanumeric() || "_.,+-".contains(c);
                if programs::is_fateful(variable) || !value.chars().all(plain) {
                    self.opaque();
                }
                self.mention(&rest[0].atoms);
                rest = &rest[1..];
            }
        }
        let option = |word: &Word| word.literal().is_none_or(|text| text.starts_with('-'));
        if rest.first().is_some_and(option) {
            rest.iter().for_each(|word| self.mention(&word.atoms));
            return self.opaque();
        }
        self.simple(rest);
    }

    /// `[ ... ]` and `[[ ... ]]`. Beside comparisons of texts, only files that are named.
    pub(super) fn test(&mut self, words: &[Word], double: bool) {
        const TEXTS: [&str; 8] = ["-z", "-n", "=", "==", "!=", "!", "]", "&&"];
        const NUMBERS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
        const FILES: [&str; 11] =
            ["-e", "-f", "-d", "-s", "-r", "-w", "-x", "-L", "-h", "-nt", "-ot"];
        for word in words {
            match word.literal().as_deref() {
                Some(text) if TEXTS.contains(&text) || FILES.contains(&text) => {}
                // In double brackets a number may be an expression.
                Some(text) if NUMBERS.contains(&text) && !double => {}
                Some(text) if text.starts_with('-') => self.opaque(),
                Some(_) => drop(self.argument(word)),
                None => {
                    let reads = words
                        .iter()
                        .filter_map(Word::literal)
                        .any(|text| FILES.contains(&text.as_str()) || text == "-a" || text == "-o");
                    let quoted = word.atoms.iter().all(|atom| match atom {
                        Atom::Char { quoted, .. }
                        | Atom::Var { quoted, .. }
                        | Atom::Any { quoted } => *quoted || double,
                        _ => true,
                    });
                    if reads {
                        drop(self.argument(word));
                    } else if !quoted && !self.numeric(word) {
                        self.opaque();
                    }
                    self.mention(&word.atoms);
                }
            }
        }
    }

    fn numeric(&self, word: &Word) -> bool {
        word.atoms.iter().all(|atom| match atom {
            Atom::Digits => true,
            Atom::Var { name, .. } => self.variables.knows(name) && self.variables.is_number(name),
            _ => false,
        })
    }

    /// A name in arithmetic is evaluated again, as arithmetic that may run something.
    pub(super) fn arithmetic(&mut self, text: &str) {
        let names = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let names = names
            .filter(|name| !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()));
        for name in names.collect::<Vec<_>>() {
            if !self.variables.is_number(name) || programs::is_fateful(name) {
                self.opaque();
            }
        }
    }
}
