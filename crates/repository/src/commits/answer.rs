//! Objects as a sandbox gave them.
//!
//! Owns reading what `git cat-file --batch` prints, of which nothing is believed: an object is
//! what its contents say, and there are only so many bytes of them.

use std::collections::{BTreeSet, HashMap};

use super::object::{CommitHeader, Object, ObjectId, ObjectKind};
use super::problem::CommitProblem;
use crate::limits;

/// Objects of a sandbox, by the names that they have by their contents.
#[derive(Debug)]
pub struct ObjectSet {
    /// Where the sandbox says that it stands.
    pub(super) head: ObjectId,
    /// The commits that it says are new.
    pub(super) offered: BTreeSet<ObjectId>,
    objects: HashMap<ObjectId, Object>,
    /// What it said that it has not.
    missing: BTreeSet<ObjectId>,
    bytes: u64,
}

impl ObjectSet {
    /// Of the first answer: a line with the commit that HEAD is, then objects.
    ///
    /// # Errors
    /// If it is something else, or too much.
    pub fn first(output: &[u8]) -> Result<Self, CommitProblem> {
        let (line, rest) = line(output).ok_or(CommitProblem::Protocol)?;
        let head = ObjectId::parse(line).ok_or(CommitProblem::Protocol)?;
        let (offered, missing) = (BTreeSet::new(), BTreeSet::new());
        let mut set = Self { head, offered, objects: HashMap::new(), missing, bytes: 0 };
        set.add(rest)?;
        let commits = set.objects.iter().filter(|(_, it)| it.kind == ObjectKind::Commit);
        set.offered = commits.map(|(id, _)| *id).collect();
        Ok(set)
    }

    /// Takes in more of them.
    ///
    /// # Errors
    /// If it is something else, or too much.
    pub fn add(&mut self, mut output: &[u8]) -> Result<(), CommitProblem> {
        while !output.is_empty() {
            let (header, rest) = line(output).ok_or(CommitProblem::Protocol)?;
            let mut words = header.split(|byte| *byte == b' ');
            let id = words.next().and_then(ObjectId::parse).ok_or(CommitProblem::Protocol)?;
            let (kind, size) = match (words.next(), words.next(), words.next()) {
                (Some(b"missing"), None, None) => {
                    self.missing.insert(id);
                    output = rest;
                    continue;
                }
                (Some(kind), Some(size), None) => (ObjectKind::parse(kind), number(size)),
                _ => (None, None),
            };
            let (kind, size) = kind.zip(size).ok_or(CommitProblem::Protocol)?;
            let (contents, rest) = rest.split_at_checked(size).ok_or(CommitProblem::Protocol)?;
            output = rest.strip_prefix(b"\n").ok_or(CommitProblem::Protocol)?;
            if ObjectId::of(kind, contents) != id {
                return Err(CommitProblem::Forged(id));
            }
            self.bytes += size as u64;
            if self.bytes > limits::COMMITS_BYTES_MAX {
                let most = limits::COMMITS_BYTES_MAX >> 20;
                return Err(CommitProblem::TooMuch { most, what: "MiB" });
            }
            self.objects.insert(id, Object { kind, contents: contents.to_vec() });
        }
        Ok(())
    }

    pub(super) fn get(&self, id: &ObjectId) -> Option<&Object> {
        self.objects.get(id)
    }

    /// A commit. An error for what is something else.
    pub(super) fn commit(&self, id: &ObjectId) -> Result<Option<CommitHeader>, CommitProblem> {
        let Some(object) = self.get(id) else { return Ok(None) };
        let commit = Some(object).filter(|it| it.kind == ObjectKind::Commit);
        let commit = commit.and_then(|it| CommitHeader::parse(&it.contents));
        commit.map(Some).ok_or(CommitProblem::Commit(*id))
    }

    /// An error for what the sandbox was asked for already, and has not.
    pub(super) fn can_be_asked(&self, id: &ObjectId) -> Result<(), CommitProblem> {
        if self.missing.contains(id) { Err(CommitProblem::Missing(*id)) } else { Ok(()) }
    }
}

/// The first line of it, and the rest.
fn line(output: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = output.iter().position(|byte| *byte == b'\n')?;
    Some((&output[..end], &output[end + 1..]))
}

fn number(digits: &[u8]) -> Option<usize> {
    let plain = digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(contents: &[u8]) -> (ObjectId, Vec<u8>) {
        let id = ObjectId::of(ObjectKind::Blob, contents);
        let header = format!("{id} blob {}\n", contents.len());
        (id, [header.as_bytes(), contents, b"\n"].concat())
    }

    #[test]
    fn an_object_is_what_its_contents_say() {
        let (id, text) = blob(b"hello\n");
        assert_eq!(id.to_string(), "ce013625030ba8dba906f756967f9e9ca394464a");
        let first = [format!("{id}\n").as_bytes(), &text].concat();
        let mut set = ObjectSet::first(&first).unwrap();
        assert_eq!(set.get(&id).unwrap().contents, b"hello\n");
        let (other, _) = blob(b"x");
        set.add(format!("{other} missing\n").as_bytes()).unwrap();
        assert_eq!(set.can_be_asked(&other), Err(CommitProblem::Missing(other)));
        let forged = format!("{id} blob 1\nx\n");
        assert_eq!(set.add(forged.as_bytes()), Err(CommitProblem::Forged(id)));
        for wrong in [
            format!("{id} blob 9\nx\n"),
            format!("{id} blob -1\nx\n"),
            format!("{id} tag 1\nx\n"),
            format!("{id} blob 1\nxy"),
            format!("{id} blob"),
            "y\n".repeat(9),
        ] {
            assert_eq!(set.add(wrong.as_bytes()), Err(CommitProblem::Protocol), "{wrong}");
        }
    }
}
