//! The files of a skill, and the digest that pins them.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::limits::{PATH_BYTES_MAX, PATH_NAME_BYTES_MAX, PATH_NAMES_MAX};
use crate::problem::Reason;

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";
/// The file with the signature, at the top of the skill: 128 hexadecimal digits and a
/// line feed.
pub const SIGNATURE_FILE: &str = "SKILL.sig";

/// A file of a skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillFile {
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether it may be run.
    pub executable: bool,
}

/// The files of a skill by their paths in it, with `/` between names.
pub type SkillFiles = BTreeMap<String, SkillFile>;

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
/// [`SIGNATURE_FILE`] at the top is left out, since it signs the rest.
#[must_use]
pub fn digest(files: &SkillFiles) -> [u8; 32] {
    let length = |bytes: &[u8]| u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes();
    let mut hash = Sha256::new();
    hash.update(b"outrigger skill 1\n");
    for (path, file) in files.iter().filter(|(path, _)| *path != SIGNATURE_FILE) {
        hash.update(length(path.as_bytes()));
        hash.update(path.as_bytes());
        hash.update([u8::from(file.executable)]);
        hash.update(length(&file.bytes));
        hash.update(&file.bytes);
    }
    hash.finalize().into()
}
