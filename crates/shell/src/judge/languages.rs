//! Programs whose arguments are programs: shells, interpreters, git, find, sed, awk.

use super::Judge;
use crate::programs::{FIND_NEVER, GIT_NEVER, GIT_PLAIN, GIT_RUNS, MODULES, has, is_option};
use crate::syntax::Word;

impl Judge<'_> {
    /// `sh -c 'text'` is read as well; `sh file` runs a file of the work.
    pub(super) fn shell(&mut self, words: &[Word]) {
        let Some((first, rest)) = words.split_first() else { return self.opaque() };
        let Some(first_text) = first.literal() else { return self.opaque() };
        if matches!(first_text.as_str(), "-c" | "-ec" | "-lc" | "-xc" | "-exc" | "-euc") {
            let Some(text) = rest.first().and_then(Word::literal) else { return self.opaque() };
            // A login shell reads files first, which are not ours to know, as any script.
            self.script(&text);
            return rest[1..].iter().for_each(|word| drop(self.argument(word)));
        }
        self.ran = true;
        let mut words = words;
        while let Some((word, rest)) = words.split_first() {
            let Some(text) = word.literal() else { return self.opaque() };
            if !text.starts_with('-') {
                return words.iter().for_each(|word| drop(self.argument(word)));
            }
            if !matches!(text.as_str(), "-e" | "-x" | "-u" | "-n" | "-ex" | "-eu" | "-eux") {
                return self.opaque();
            }
            words = rest;
        }
        self.opaque();
    }

    /// An interpreter with a script of the work, or with a module that is known.
    pub(super) fn interpreter(&mut self, name: &str, words: &[Word]) {
        self.ran = true;
        let first = words.first().and_then(Word::literal).unwrap_or_default();
        let python = name.starts_with("python");
        if matches!(first.as_str(), "--version" | "-V") && words.len() == 1 {
            return;
        }
        let module = python && first == "-m";
        let known = words.get(1).and_then(Word::literal).is_some_and(|name| has(MODULES, &name));
        let script = !first.is_empty() && !first.starts_with('-');
        if !(script || (module && known)) {
            self.opaque();
        }
        let texts: Vec<String> = words.iter().flat_map(|word| self.argument(word)).collect();
        // Before its script, or instead of one.
        if !module && !script && texts.iter().any(|text| text.starts_with('-')) {
            self.opaque();
        }
    }

    pub(super) fn git(&mut self, words: &[Word]) {
        let texts: Vec<String> = words.iter().flat_map(|word| self.argument(word)).collect();
        let Some(part) = words.first().and_then(Word::literal) else { return self.opaque() };
        if part == "--version" {
            return;
        }
        let commit = part == "commit";
        for text in &texts {
            let message = commit && text.starts_with("-m");
            let branch = matches!(part.as_str(), "branch" | "switch") && text == "-c";
            let upstream = part == "push" && text == "-u";
            if !message && !branch && !upstream && is_option(text, GIT_NEVER)
                || text.contains("::")
                || text.to_ascii_lowercase().contains("file:")
            {
                self.opaque();
            }
        }
        if has(GIT_RUNS, &part) {
            self.ran = true;
        } else if !has(GIT_PLAIN, &part) {
            self.opaque();
        }
    }

    pub(super) fn find(&mut self, words: &[Word]) {
        let texts: Vec<String> = words.iter().flat_map(|word| self.argument(word)).collect();
        if texts.iter().any(|text| FIND_NEVER.split(' ').any(|never| text.starts_with(never))) {
            self.opaque();
        }
    }

    /// Scripts that print, delete and replace; what reads, writes or runs is opaque.
    pub(super) fn sed(&mut self, words: &[Word]) {
        let mut scripted = false;
        let mut expects = false;
        for word in words {
            let Some(text) = word.literal() else {
                if !scripted {
                    self.opaque();
                }
                drop(self.argument(word));
                continue;
            };
            if expects || (!scripted && !text.starts_with('-')) {
                (expects, scripted) = (false, true);
                self.mention(&word.atoms);
                if !is_simple_sed(&text) {
                    self.opaque();
                }
            } else if let "-e" | "-ne" = text.as_str() {
                expects = true;
            } else if text == "-i" || (text.starts_with("-i") && !text.contains('/')) {
                self.wrote = true;
            } else if text.starts_with('-') {
                if !matches!(text.as_str(), "-n" | "-E" | "-r" | "-nE" | "-z" | "-u" | "-s") {
                    self.opaque();
                }
            } else {
                drop(self.argument(word));
            }
        }
        if expects {
            self.opaque();
        }
    }

    /// Programs that neither open nor run anything themselves.
    pub(super) fn awk(&mut self, words: &[Word]) {
        let mut rest = words;
        while let Some((word, others)) = rest.split_first() {
            let Some(text) = word.literal() else { return self.opaque() };
            match text.as_str() {
                "-F" if !others.is_empty() => {
                    rest = &others[1..];
                    continue;
                }
                text if text.starts_with("-F") => {
                    rest = others;
                    continue;
                }
                text if text.starts_with('-') => return self.opaque(),
                text => {
                    self.mention(&word.atoms);
                    let runs = [
                        "getline", "system", "|", ">", "ARG", "@", "SYMTAB", "PROCINFO", "FUNCTAB",
                        "close", "include", "load",
                    ];
                    if runs.iter().any(|run| text.contains(run)) {
                        self.opaque();
                    }
                }
            }
            return others.iter().for_each(|word| drop(self.argument(word)));
        }
        self.opaque();
    }
}

/// Addresses of numbers, `$` and `/text/`, with `p`, `d`, `q`, `=`; and `s`.
fn is_simple_sed(script: &str) -> bool {
    script.split([';', '\n']).all(|one| {
        let one = one.trim();
        one.is_empty() || is_replacement(one) || is_addressed(one)
    })
}

fn is_replacement(one: &str) -> bool {
    let Some(rest) = one.strip_prefix('s') else { return false };
    let Some(by) = rest.chars().next().filter(char::is_ascii_punctuation) else { return false };
    let parts: Vec<&str> = rest[1..].split(by).collect();
    by != '\\'
        && !rest.contains('\\')
        && parts.len() == 3
        && parts[2].chars().all(|c| c.is_ascii_digit() || "gpI".contains(c))
}

fn is_addressed(one: &str) -> bool {
    let Some(front) = one.strip_suffix(['p', 'd', 'q', '=']) else { return false };
    front.split(',').all(|address| {
        let address = address.trim();
        let pattern = address.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        pattern.is_some_and(|text| !text.contains(['/', '\\']))
            || address.is_empty()
            || address == "$"
            || address.chars().all(|c| c.is_ascii_digit())
    })
}
