//! Where an entry is: a memory scope, and a canonical path on it.

use std::fmt;

use outrigger_policy::MemoryScope;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::limits;

/// A path in a memory scope, in the one spelling that it has: names with `/` between them, in
/// Unicode's form NFC, none of them empty, `.` or `..`, without control characters. The
/// empty path is the root. At most [`limits::PATH_BYTES_MAX`], names
/// [`limits::NAME_BYTES_MAX`], and [`limits::DEPTH_MAX`] names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryPath(String);

/// Why a text is no path of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// It begins or ends with a slash, or two follow one another.
    #[error("a name in it is empty")]
    Empty,
    /// It has a name that is `.` or `..`.
    #[error("`.` and `..` are no names")]
    Dots,
    /// It has a control character, for example NUL.
    #[error("a name in it has a control character")]
    Control,
    /// It is not in the form NFC.
    #[error("it is not in Unicode's form NFC")]
    Form,
    /// One of its names is longer than [`limits::NAME_BYTES_MAX`].
    #[error("a name in it has more than {} bytes", limits::NAME_BYTES_MAX)]
    LongName,
    /// It is longer than [`limits::PATH_BYTES_MAX`].
    #[error("it has more than {} bytes", limits::PATH_BYTES_MAX)]
    Long,
    /// It has more than [`limits::DEPTH_MAX`] names.
    #[error("it has more than {} names", limits::DEPTH_MAX)]
    Deep,
}

impl EntryPath {
    /// The root of a memory scope.
    pub const ROOT: Self = Self(String::new());

    /// Reads a path that is canonical already.
    ///
    /// # Errors
    /// What keeps it from being one.
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        if text.is_empty() {
            return Ok(Self::ROOT);
        }
        if text.len() > limits::PATH_BYTES_MAX {
            return Err(PathFault::Long);
        }
        let mut depth = 0;
        for name in text.split('/') {
            depth += 1;
            match name {
                "" => return Err(PathFault::Empty),
                "." | ".." => return Err(PathFault::Dots),
                name if name.len() > limits::NAME_BYTES_MAX => return Err(PathFault::LongName),
                name if name.chars().any(char::is_control) => return Err(PathFault::Control),
                _ => {}
            }
        }
        if depth > limits::DEPTH_MAX {
            return Err(PathFault::Deep);
        }
        let is_normal = match is_nfc_quick(text.chars()) {
            IsNormalized::Yes => true,
            IsNormalized::No => false,
            IsNormalized::Maybe => text.nfc().eq(text.chars()),
        };
        if is_normal { Ok(Self(text.to_owned())) } else { Err(PathFault::Form) }
    }

    /// Reads a path in whatever form of Unicode it is.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn normalise(text: &str) -> Result<Self, PathFault> {
        // Composing makes a text at most three times as long, so what is longer stays so.
        if text.len() > 3 * limits::PATH_BYTES_MAX {
            return Err(PathFault::Long);
        }
        Self::parse(&text.nfc().collect::<String>())
    }

    /// The path as text; empty for the root.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The folder that it is in; nothing for the root.
    #[must_use]
    pub fn folder(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        Some(Self(self.0.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned()))
    }

    /// Its last name; empty for the root.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// Whether it is below another one.
    #[must_use]
    pub fn is_below(&self, folder: &Self) -> bool {
        let rest = self.0.strip_prefix(folder.as_str());
        rest.is_some_and(
            |rest| if folder.is_root() { !rest.is_empty() } else { rest.starts_with('/') },
        )
    }

    /// This path, which is below `from`, moved to the same place below `to`.
    ///
    /// # Errors
    /// Where the outcome is too long or too deep.
    pub(crate) fn moved(&self, from: &Self, to: &Self) -> Result<Self, PathFault> {
        let rest = self.0.strip_prefix(from.as_str()).unwrap_or(&self.0);
        Self::parse(&format!("{to}{rest}"))
    }
}

impl fmt::Display for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where an entry is, or may be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryAddress {
    /// In which memory scope.
    pub memory_scope: MemoryScope,
    /// Where on it.
    pub path: EntryPath,
}

impl fmt::Display for EntryAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.memory_scope, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn one_spelling() {
        let long = "x".repeat(256);
        let deep = format!("{}d", "d/".repeat(limits::DEPTH_MAX));
        let longest = format!("{}x", "abcdefghijklmnopqrstuvwxyz/".repeat(38));
        let texts = [
            "",
            "a",
            "a/b",
            "a/b.md",
            "...",
            "a b",
            "\u{e9}",
            "e\u{301}",
            "/",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "a/../b",
            "a/.",
            "a\0b",
            "a\nb",
            "a\u{7f}",
            "a\u{9b}b",
            &long,
            &longest,
            &deep,
            "\u{1112}\u{1161}\u{11ab}",
        ];
        let mut shown = String::new();
        for text in texts {
            let read = EntryPath::parse(text).map(|path| (path.folder(), path.name().to_owned()));
            let short: String = text.chars().take(12).collect();
            shown += &match read {
                Ok((folder, name)) => {
                    let folder = folder.map_or("-".to_owned(), |folder| format!("{folder:?}"));
                    format!("{short:?}: {folder} {name:?}\n")
                }
                Err(fault) => format!("{short:?}: {fault}\n"),
            };
        }
        expect![[r#"
            "": - ""
            "a": EntryPath("") "a"
            "a/b": EntryPath("a") "b"
            "a/b.md": EntryPath("a") "b.md"
            "...": EntryPath("") "..."
            "a b": EntryPath("") "a b"
            "é": EntryPath("") "é"
            "e\u{301}": it is not in Unicode's form NFC
            "/": a name in it is empty
            "/a": a name in it is empty
            "a/": a name in it is empty
            "a//b": a name in it is empty
            ".": `.` and `..` are no names
            "..": `.` and `..` are no names
            "a/../b": `.` and `..` are no names
            "a/.": `.` and `..` are no names
            "a\0b": a name in it has a control character
            "a\nb": a name in it has a control character
            "a\u{7f}": a name in it has a control character
            "a\u{9b}b": a name in it has a control character
            "xxxxxxxxxxxx": a name in it has more than 255 bytes
            "abcdefghijkl": it has more than 1024 bytes
            "d/d/d/d/d/d/": it has more than 48 names
            "한": it is not in Unicode's form NFC
        "#]]
        .assert_eq(&shown);
    }

    #[test]
    fn every_form_becomes_one() {
        let composed = EntryPath::parse("caf\u{e9}").unwrap();
        assert_eq!(EntryPath::normalise("cafe\u{301}").unwrap(), composed);
        assert_eq!(EntryPath::normalise("caf\u{e9}").unwrap(), composed);
        assert_eq!(EntryPath::normalise(&"a".repeat(4_000)), Err(PathFault::Long));
    }

    #[test]
    fn what_is_below() {
        let path = |text| EntryPath::parse(text).unwrap();
        for (above, below, expected) in [
            ("", "a", true),
            ("", "", false),
            ("a", "a/b", true),
            ("a", "ab", false),
            ("a", "a", false),
            ("a/b", "a", false),
            ("a", "a/b/c", true),
        ] {
            assert_eq!(path(below).is_below(&path(above)), expected, "{below} below {above}");
        }
        assert_eq!(path("a/b/c").moved(&path("a"), &path("x/y")), Ok(path("x/y/b/c")));
    }
}
