//! Patterns over paths and lines: globs and grep.
//!
//! Both take time that is linear in what they look at, whatever the pattern.

use globset::GlobBuilder;
use regex::bytes::{Regex, RegexBuilder};
use std::path::{Component, Path};

use crate::{FileError, FileErrorKind, GrepPattern, limits};

/// Bytes at the start of a file in which a NUL makes it binary.
const BINARY_PROBE_BYTES: usize = 8 << 10;

fn invalid(pattern: &str, detail: String) -> FileError {
    let path = pattern.chars().take(80).collect();
    FileError { kind: FileErrorKind::InvalidArgument, path, detail }
}

fn check_length(pattern: &str) -> Result<(), FileError> {
    if pattern.is_empty() {
        return Err(invalid(pattern, "the pattern is empty".to_owned()));
    }
    if pattern.len() > limits::PATTERN_BYTES_MAX {
        let (bytes, max) = (pattern.len(), limits::PATTERN_BYTES_MAX);
        let detail = format!("the pattern has {bytes} bytes; {max} is the most");
        return Err(invalid(pattern, detail));
    }
    Ok(())
}

/// Whether contents are no text, by their first bytes.
#[must_use]
pub fn is_binary(contents: &[u8]) -> bool {
    memchr::memchr(0, &contents[..contents.len().min(BINARY_PROBE_BYTES)]).is_some()
}

/// A pattern over paths: `*`, `?` and `[..]` within one name, `**` over any number
/// of directories, `{a,b}` for either. One without `/` matches at any depth. `?` and
/// `[..]` stand for one byte.
#[derive(Debug, Clone)]
pub struct Glob {
    matcher: Regex,
    skips: SkipList,
}

/// Folders that a search passes over unless it names them: what git keeps for itself, and
/// what a package manager fills.
const SKIPPED: [&str; 4] = [".git", "node_modules", ".venv", "__pycache__"];

/// Which of those folders one search passes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkipList([bool; SKIPPED.len()]);

impl SkipList {
    /// Of a search without a glob beneath `root`: all that the root does not name.
    #[must_use]
    pub fn beneath(root: impl AsRef<Path>) -> Self {
        let names = |name: &str| {
            root.as_ref().components().any(|part| part == Component::Normal(name.as_ref()))
        };
        Self(SKIPPED.map(|name| !names(name)))
    }

    /// Whether it passes over a folder of that name.
    #[must_use]
    pub fn skips(self, name: &str) -> bool {
        SKIPPED.iter().zip(self.0).any(|(skipped, skips)| skips && *skipped == name)
    }

    /// Whether it passes over one of the folders in which a path lies.
    #[must_use]
    pub fn hides(self, relative: &str) -> bool {
        relative.split('/').any(|part| self.skips(part))
    }
}

impl Glob {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// `invalid_argument` says what is wrong with it.
    pub fn new(pattern: &str) -> Result<Self, FileError> {
        check_length(pattern)?;
        let relative = pattern.trim_start_matches("./");
        if relative.starts_with('/') {
            let detail = "the pattern is matched against paths relative to the root of the \
                          search: give it without a leading `/`";
            return Err(invalid(pattern, detail.to_owned()));
        }
        let anywhere = if relative.contains('/') { "" } else { "**/" };
        let glob = GlobBuilder::new(&format!("{anywhere}{relative}"))
            .literal_separator(true)
            .backslash_escape(true)
            .empty_alternates(true)
            .build()
            .map_err(|error| invalid(pattern, error.kind().to_string()))?;
        let skips = SkipList(SKIPPED.map(|name| !relative.split('/').any(|part| part == name)));
        // Not by `Glob::compile_matcher`, which panics on what nests too deep for the
        // regular expression that it becomes.
        let matcher = RegexBuilder::new(glob.regex())
            .dot_matches_new_line(true)
            .size_limit(limits::REGEX_BYTES_MAX)
            .dfa_size_limit(limits::REGEX_BYTES_MAX)
            .build()
            .map_err(|error| invalid(pattern, error.to_string()))?;
        Ok(Self { matcher, skips })
    }

    /// Whether a path, relative to the root of the search, matches.
    #[must_use]
    pub fn matches(&self, relative: impl AsRef<Path>) -> bool {
        self.matcher.is_match(relative.as_ref().as_os_str().as_encoded_bytes())
    }

    /// What a search beneath `root` passes over: what neither the pattern nor the root names.
    #[must_use]
    pub fn skip_list(&self, root: impl AsRef<Path>) -> SkipList {
        let (SkipList(pattern), SkipList(root)) = (self.skips, SkipList::beneath(root));
        SkipList(std::array::from_fn(|index| pattern[index] && root[index]))
    }
}

/// Finds lines that match a [`GrepPattern`].
#[derive(Debug, Clone)]
pub struct GrepMatcher {
    regex: Regex,
    /// Contents without this text have no match at all.
    needle: Option<Vec<u8>>,
}

impl GrepMatcher {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// `invalid_argument` says what is wrong with it.
    pub fn new(pattern: &GrepPattern) -> Result<Self, FileError> {
        let (GrepPattern::Literal(text)
        | GrepPattern::Regex(text)
        | GrepPattern::RegexIgnoreCase(text)) = pattern;
        check_length(text)?;
        let literal = matches!(pattern, GrepPattern::Literal(_));
        if literal && text.contains('\n') {
            let detail = "the text has a line break, and lines are searched one by one";
            return Err(invalid(text, detail.to_owned()));
        }
        let escaped = if literal { regex::escape(text) } else { text.clone() };
        let regex = RegexBuilder::new(&escaped)
            .case_insensitive(matches!(pattern, GrepPattern::RegexIgnoreCase(_)))
            .size_limit(limits::REGEX_BYTES_MAX)
            .dfa_size_limit(limits::REGEX_BYTES_MAX)
            .build()
            .map_err(|error| invalid(text, error.to_string()))?;
        let needle = literal.then(|| text.clone().into_bytes());
        Ok(Self { regex, needle })
    }

    /// The matching lines of contents, lazily: number from 1, and the text without
    /// its line end, invalid UTF-8 replaced, cut at [`limits::LINE_BYTES_MAX`].
    pub fn lines<'a>(&'a self, contents: &'a [u8]) -> impl Iterator<Item = (u64, String)> + 'a {
        let absent = |needle: &Vec<u8>| memchr::memmem::find(contents, needle).is_none();
        let searched = if self.needle.as_ref().is_some_and(absent) { &[] } else { contents };
        let lines = searched.split_inclusive(|byte| *byte == b'\n').zip(1..);
        lines.filter_map(|(line, number)| {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            self.regex.is_match(line).then(|| (number, shown(line)))
        })
    }
}

fn shown(line: &[u8]) -> String {
    if line.len() <= limits::LINE_BYTES_MAX {
        return String::from_utf8_lossy(line).into_owned();
    }
    let mut text = String::from_utf8_lossy(&line[..limits::LINE_BYTES_MAX]).into_owned();
    text.truncate(text.floor_char_boundary(limits::LINE_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[test]
    fn a_glob_that_nests_too_deep_is_refused() {
        let nested = format!("{}a{}", "{a,".repeat(500), "}".repeat(500));
        let error = Glob::new(&nested).unwrap_err();
        assert_eq!(error.kind, FileErrorKind::InvalidArgument);
        assert!(Glob::new(&"{a,b}".repeat(30)).unwrap().matches("ababababababababababababababab"));
    }

    #[test]
    fn globs() {
        let table = [
            ("*.py", "a.py", true),
            ("*.py", "x/y/a.py", true),
            ("**/*.py", "a.py", true),
            ("**/*.py", "x/.hidden/a.py", true),
            ("./*.py", "a.py", true),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/b/a.rs", false),
            ("src/**", "src/b/a.rs", true),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("[a-c].txt", "b.txt", true),
            ("[!a-c].txt", "b.txt", false),
            ("*.{rs,toml}", "x/Cargo.toml", true),
            ("*", ".hidden", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
        ];
        for (pattern, path, expected) in table {
            assert_eq!(Glob::new(pattern).unwrap().matches(path), expected, "{pattern} {path}");
        }
        let skips = [
            ("*", "/w", ".git", true),
            (".git/*", "/w", ".git", false),
            ("*", "/w/.git", ".git", false),
            ("*", "/w/.github", ".git", true),
            ("*", "/w", ".github", false),
            ("*", "/w/.git", "node_modules", true),
            ("node_modules/**", "/w", "node_modules", false),
        ];
        for (pattern, root, name, expected) in skips {
            let list = Glob::new(pattern).unwrap().skip_list(root);
            assert_eq!(list.skips(name), expected, "{pattern} {root} {name}");
        }
    }

    fn check(pattern: &GrepPattern, contents: &[u8], expected: Expect) {
        let shown = match GrepMatcher::new(pattern) {
            Ok(matcher) => format!("{:?}", matcher.lines(contents).collect::<Vec<_>>()),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn grep_finds_lines() {
        use GrepPattern::{Literal, Regex, RegexIgnoreCase};
        let text = b"one\r\nTwo (x)\n\xff two\n";
        check(&Literal("(x)".into()), text, expect![[r#"[(2, "Two (x)")]"#]]);
        check(&Literal("zz".into()), text, expect!["[]"]);
        check(&Regex("^one$".into()), text, expect![[r#"[(1, "one")]"#]]);
        check(&Regex("two".into()), text, expect![[r#"[(3, "� two")]"#]]);
        check(&RegexIgnoreCase("TWO".into()), text, expect![[r#"[(2, "Two (x)"), (3, "� two")]"#]]);
    }

    #[test]
    fn malformed_patterns_say_why() {
        use GrepPattern::{Literal, Regex};
        check(&Literal(String::new()), b"", expect!["invalid_argument: : the pattern is empty"]);
        check(
            &Literal("a\nb".into()),
            b"",
            expect![[r"
            invalid_argument: a
            b: the text has a line break, and lines are searched one by one"]],
        );
        check(
            &Regex("a(".into()),
            b"",
            expect![[r"
            invalid_argument: a(: regex parse error:
                a(
                 ^
            error: unclosed group"]],
        );
        check(
            &Regex("(a{1000}){1000}".into()),
            b"",
            expect![
                "invalid_argument: (a{1000}){1000}: Compiled regex exceeds size limit of 4194304 bytes."
            ],
        );
        for pattern in ["", "[", "a{b", "/etc/*", &"x".repeat(5_000)] {
            assert_eq!(Glob::new(pattern).unwrap_err().kind, FileErrorKind::InvalidArgument);
        }
    }

    #[test]
    fn a_hostile_pattern_takes_linear_time() {
        let pattern = GrepPattern::Regex("(a|a)*(a|a)*(a|a)*b$".into());
        let line = vec![b'a'; 200_000];
        let matcher = GrepMatcher::new(&pattern).unwrap();
        assert_eq!(matcher.lines(&line).count(), 0);
    }
}
