//! Objects as git keeps them, and the names that they have by their contents.
//!
//! Owns reading a commit and a folder, byte for byte as `git fsck --strict` wants them. Must
//! never believe a name: it is worked out. <https://git-scm.com/book/en/v2/Git-Internals-Git-Objects>

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;

use sha1::{Digest, Sha1};

/// The name of an object in a repository of SHA-1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub(super) [u8; 20]);

/// What an object is. A tag is none that comes out of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Commit,
    Tree,
    Blob,
}

/// One object.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) kind: ObjectKind,
    pub(super) contents: Vec<u8>,
}

/// What a commit is made of, as far as others stand on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommitHeader {
    pub(super) tree: ObjectId,
    pub(super) parents: Vec<ObjectId>,
    /// Whether the rest of its header is an author, a committer and at most an encoding.
    pub(super) is_plain: bool,
}

/// One name in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GitTreeEntry<'a> {
    pub(super) mode: u32,
    pub(super) name: &'a [u8],
    pub(super) id: ObjectId,
}

/// The modes that git writes.
pub(super) mod mode {
    pub(crate) const FOLDER: u32 = 0o040_000;
    pub(crate) const FILE: u32 = 0o100_644;
    pub(crate) const PROGRAM: u32 = 0o100_755;
    pub(crate) const LINK: u32 = 0o120_000;
    pub(crate) const SUBMODULE: u32 = 0o160_000;
}

impl ObjectId {
    /// The name of an object.
    pub(super) fn of(kind: ObjectKind, contents: &[u8]) -> Self {
        let hasher = Sha1::new().chain_update(format!("{} {}\0", kind.word(), contents.len()));
        Self(hasher.chain_update(contents).finalize().into())
    }

    /// The name of a file with these contents.
    pub(crate) fn of_blob(contents: &[u8]) -> Self {
        Self::of(ObjectKind::Blob, contents)
    }

    /// From 40 hexadecimal digits. Nothing for anything else.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 20];
        if text.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl ObjectKind {
    fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
        }
    }

    pub(super) fn parse(word: &[u8]) -> Option<Self> {
        [Self::Commit, Self::Tree, Self::Blob].into_iter().find(|it| it.word().as_bytes() == word)
    }

    /// Its number in a pack.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Commit => 1,
            Self::Tree => 2,
            Self::Blob => 3,
        }
    }
}

impl CommitHeader {
    /// Reads one. Nothing for what has no tree.
    pub(super) fn parse(contents: &[u8]) -> Option<Self> {
        let end = contents.windows(2).position(|two| two == b"\n\n")?;
        let mut lines = contents[..end].split(|byte| *byte == b'\n').peekable();
        let tree = ObjectId::parse(lines.next()?.strip_prefix(b"tree ")?)?;
        let mut parents = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with(b"parent ")) {
            parents.push(ObjectId::parse(&line[b"parent ".len()..])?);
        }
        let mut named = |title: &[u8]| lines.next().and_then(|line| line.strip_prefix(title));
        let (author, committer) = (named(b"author "), named(b"committer "));
        let is_signed_by = |line: Option<&[u8]>| line.is_some_and(is_signature);
        let no_more = match lines.next() {
            None => true,
            Some(line) => line.starts_with(b"encoding ") && lines.next().is_none(),
        };
        let is_plain =
            is_signed_by(author) && is_signed_by(committer) && no_more && !contents.contains(&0);
        Some(Self { tree, parents, is_plain })
    }
}

/// Whether a line says who and when: `NAME <ADDRESS> SECONDS +HHMM`.
fn is_signature(line: &[u8]) -> bool {
    let is_bracket = |byte: &u8| matches!(*byte, b'<' | b'>');
    let mut parts = line.split(is_bracket);
    let (Some(name), Some(_), Some(when), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let brackets: Vec<u8> = line.iter().copied().filter(is_bracket).collect();
    let mut words = when.split(|byte| *byte == b' ');
    let (Some(b""), Some(seconds), Some(zone), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return false;
    };
    let digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    brackets == b"<>"
        && name.ends_with(b" ")
        && (1..=12).contains(&seconds.len())
        && digits(seconds)
        && (seconds == b"0" || !seconds.starts_with(b"0"))
        && zone.len() == 5
        && matches!(zone[0], b'+' | b'-')
        && digits(&zone[1..])
}

/// What is in a folder. Nothing for what is none.
pub(super) fn entries(mut contents: &[u8]) -> Option<Vec<GitTreeEntry<'_>>> {
    let mut entries = Vec::new();
    while !contents.is_empty() {
        let space = contents.iter().position(|byte| *byte == b' ')?;
        let digits = std::str::from_utf8(&contents[..space]).ok()?;
        let is_octal = digits.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
        let mode = u32::from_str_radix(digits, 8).ok().filter(|_| is_octal && space <= 6)?;
        if digits.starts_with('0') {
            return None;
        }
        let rest = &contents[space + 1..];
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (name, rest) = (&rest[..end], &rest[end + 1..]);
        let (id, rest) = rest.split_first_chunk::<20>()?;
        entries.push(GitTreeEntry { mode, name, id: ObjectId(*id) });
        contents = rest;
    }
    Some(entries)
}

/// Whether a folder is as git writes one: each name once, in git's order, and none that means
/// another place.
pub(super) fn is_plain_folder(entries: &[GitTreeEntry<'_>]) -> bool {
    let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/');
    let names: BTreeSet<&[u8]> = entries.iter().map(|entry| entry.name).collect();
    entries.iter().all(|entry| is_name(entry.name))
        && names.len() == entries.len()
        && entries.windows(2).all(|two| order(&two[0], &two[1]) == Ordering::Less)
}

/// Git sorts a folder as if its name ended in a slash.
fn order(one: &GitTreeEntry<'_>, other: &GitTreeEntry<'_>) -> Ordering {
    let key = |entry: &GitTreeEntry<'_>| {
        let slash = (entry.mode == mode::FOLDER).then_some(b'/');
        entry.name.iter().copied().chain(slash).collect::<Vec<u8>>()
    };
    key(one).cmp(&key(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904";
    const WHO: &str = "A U Thor <a@example.org> 1700000000 +0100";

    fn is_plain(text: &str) -> Option<bool> {
        CommitHeader::parse(text.as_bytes()).map(|commit| commit.is_plain)
    }

    #[test]
    fn a_commit_has_an_author_and_a_committer_and_nothing_else() {
        let head = format!("{TREE}\nauthor {WHO}\ncommitter {WHO}");
        assert_eq!(is_plain(&format!("{head}\n\nx")), Some(true));
        assert_eq!(is_plain(&format!("{head}\nencoding latin-1\n\n")), Some(true));
        for wrong in [
            format!("{head}\ngpgsig x\n\nx"),
            format!("{head}\nencoding x\nmergetag y\n\nx"),
            format!("{head}\n\nx\0y"),
            format!("{TREE}\nauthor {WHO}\n\nx"),
            format!("{TREE}\nauthor {WHO}\ncommitter a <b> 01 +0000\n\nx"),
            format!("{TREE}\nauthor {WHO}\ncommitter a<b> 1 +0000\n\nx"),
            format!("{TREE}\nauthor {WHO}\ncommitter a >b< 1 +0000\n\nx"),
            format!("{TREE}\nauthor {WHO}\ncommitter a <b> 1 +000\n\nx"),
            format!("{TREE}\nauthor {WHO}\ncommitter a <b> 1 +0000 x\n\nx"),
        ] {
            assert_eq!(is_plain(&wrong), Some(false), "{wrong:?}");
        }
        assert_eq!(is_plain("tree x\n\n"), None);
        assert_eq!(is_plain(TREE), None);
    }

    #[test]
    fn a_folder_has_each_name_once_and_in_order() {
        let folder = |names: &[(&str, &str)]| -> Vec<u8> {
            let entry = |(mode, name): &(&str, &str)| {
                [format!("{mode} {name}\0").as_bytes(), &[7; 20]].concat()
            };
            names.iter().flat_map(entry).collect()
        };
        let plain = |names: &[(&str, &str)]| {
            entries(&folder(names)).is_some_and(|entries| is_plain_folder(&entries))
        };
        assert!(plain(&[]));
        assert!(plain(&[("100644", "a.b"), ("40000", "a"), ("100644", "a0")]));
        for wrong in [
            &[("100644", "b"), ("100644", "a")][..],
            &[("100644", "a"), ("100644", "a")],
            &[("100644", "a"), ("100644", "a.b"), ("40000", "a")],
            &[("40000", "..")],
            &[("40000", ".")],
            &[("100644", "a/b")],
            &[("100644", "")],
            &[("100648", "a")],
            &[("+10064", "a")],
            &[("1006440", "a")],
            &[("040000", "a")],
        ] {
            assert!(!plain(wrong), "{wrong:?}");
        }
        assert!(entries(b"100644 a\0short").is_none());
    }
}
