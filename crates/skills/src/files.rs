//! A whole skill: its files, what is wrong with them, and the digest that pins them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::limits::{
    FILE_BYTES_MAX, FILES_MAX, PATH_BYTES_MAX, PATH_NAME_BYTES_MAX, PATH_NAMES_MAX, TOTAL_BYTES_MAX,
};
use crate::problem::{Problem, Reason};
use crate::rules;
use crate::skill::{self, Skill, parse};

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";
/// Taken where the first one is not there.
const SMALL_SKILL_FILE: &str = "skill.md";

/// A file of a skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct File {
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether it may be run.
    pub executable: bool,
}

/// The files of a skill by their paths in it, with `/` between names.
pub type Files = BTreeMap<String, File>;

/// All that is wrong with a skill; nothing if it is valid. `folder` is the name of the
/// folder that it lies in.
#[must_use]
pub fn validate(files: &Files, folder: &str) -> Vec<Problem> {
    let mut out = outside(files);
    let Some((path, file)) = skill_file(files) else {
        out.push(Problem::at(".", Reason::NoSkillFile));
        return out;
    };
    let read = match std::str::from_utf8(&file.bytes) {
        Err(_) => Err(Problem::at(path, Reason::NotText)),
        Ok(text) => skill::read(text, path),
    };
    match read {
        Err(problem) => out.push(problem),
        Ok((fields, _)) => {
            let reasons = rules::check(&fields, Some(folder));
            out.extend(reasons.into_iter().map(|reason| Problem::at(path, reason)));
        }
    }
    out
}

/// The skill that files are.
///
/// # Errors
///
/// The first of the problems that [`validate`] finds.
pub fn skill_of(files: &Files, folder: &str) -> Result<Skill, Problem> {
    if let Some(problem) = validate(files, folder).into_iter().next() {
        return Err(problem);
    }
    let none = || Problem::at(".", Reason::NoSkillFile);
    let (path, file) = skill_file(files).ok_or_else(none)?;
    let text = std::str::from_utf8(&file.bytes);
    parse(text.map_err(|_| Problem::at(path, Reason::NotText))?)
}

fn skill_file(files: &Files) -> Option<(&'static str, &File)> {
    [SKILL_FILE, SMALL_SKILL_FILE].into_iter().find_map(|name| Some((name, files.get(name)?)))
}

/// What is wrong with the paths and sizes, whatever they hold.
fn outside(files: &Files) -> Vec<Problem> {
    let mut out = Vec::new();
    let much = |what, max| Reason::TooMuch { what, max };
    if files.len() > FILES_MAX {
        out.push(Problem::at(".", much("files of a skill", FILES_MAX)));
    }
    let total = files.values().map(|file| file.bytes.len()).fold(0, usize::saturating_add);
    if total > TOTAL_BYTES_MAX {
        out.push(Problem::at(".", much("bytes of a skill", TOTAL_BYTES_MAX)));
    }
    for (path, file) in files {
        if file.bytes.len() > FILE_BYTES_MAX {
            out.push(Problem::at(path, much("bytes of a file", FILE_BYTES_MAX)));
        }
        if let Some(reason) = bad_path(path) {
            out.push(Problem::at(path, reason));
        }
        let below = format!("{path}/");
        if files.range(below.clone()..).next().is_some_and(|(next, _)| next.starts_with(&below)) {
            out.push(Problem::at(path, Reason::FileAndFolder));
        }
    }
    out
}

/// Why a path can't be one of a skill.
pub(crate) fn bad_path(path: &str) -> Option<Reason> {
    let names = || path.split('/');
    let fine = |name: &str| {
        !matches!(name, "" | "." | "..")
            && name.len() <= PATH_NAME_BYTES_MAX
            && !name.contains(|c: char| c.is_control() || c == '\\')
    };
    if path.len() > PATH_BYTES_MAX {
        return Some(Reason::TooMuch { what: "bytes of a path", max: PATH_BYTES_MAX });
    }
    if names().count() > PATH_NAMES_MAX {
        return Some(Reason::TooMuch { what: "names in a path", max: PATH_NAMES_MAX });
    }
    (!names().all(fine)).then_some(Reason::BadPath)
}

/// The digest of a whole skill, for pins and signatures.
///
/// SHA-256 over `outrigger skill 1` and a line feed, and then for each file, in the order of
/// the bytes of their paths: the length of the path in bytes as 8 bytes, highest first; the path; 1 or
/// 0 for whether it may be run; the length of the content as 8 bytes; the content. A
/// [`crate::SIGNATURE_FILE`] at the top is left out, since it signs the rest.
#[must_use]
pub fn digest(files: &Files) -> [u8; 32] {
    let length = |bytes: &[u8]| u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes();
    let mut hash = Sha256::new();
    hash.update(b"outrigger skill 1\n");
    for (path, file) in files.iter().filter(|(path, _)| *path != crate::SIGNATURE_FILE) {
        hash.update(length(path.as_bytes()));
        hash.update(path.as_bytes());
        hash.update([u8::from(file.executable)]);
        hash.update(length(&file.bytes));
        hash.update(&file.bytes);
    }
    hash.finalize().into()
}

/// A text with one kind of line break, as the reference reads it.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}
