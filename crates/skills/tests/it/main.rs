//! The crate from outside: the rules one by one, the reference implementation as the
//! judge of the same texts, folders on a disk, signatures.

mod folders;
mod generated;
mod pip;
mod reference;
mod signatures;
mod table;

use outrigger_skills::{SkillFile, SkillFiles};

/// A folder with nothing but a SKILL.md.
fn only(text: &str) -> SkillFiles {
    let file = SkillFile { bytes: text.as_bytes().to_vec(), executable: false };
    SkillFiles::from([("SKILL.md".to_owned(), file)])
}
