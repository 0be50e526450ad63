//! Agent Skills: folders with a SKILL.md, as <https://agentskills.io/specification> has
//! them and as its reference implementation, `skills-ref` 0.1.1, judges them.
//!
//! Owns the format: reading it, saying what is wrong, the digest that pins a folder, the
//! signature over it, and what a model is shown. Only [`disk`] touches files. Must know
//! nothing of who may see a skill or where it is kept.

pub mod disk;
mod files;
mod frontmatter;
pub mod limits;
mod problem;
mod prompt;
mod rules;
mod signature;
mod skill;
mod validate;

pub use files::{SIGNATURE_FILE, SKILL_FILE, SkillFile, SkillFiles, digest};
pub use problem::{Reason, SkillProblem};
pub use prompt::prompt;
pub use signature::{SignatureError, sign, verify};
pub use skill::{Skill, parse};
pub use validate::{skill_of, validate};
