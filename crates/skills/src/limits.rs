//! Every limit of skills, with its unit in its name. The first three are the
//! specification's.

/// The name of a skill.
pub const NAME_CHARS_MAX: usize = 64;
/// What it says of itself.
pub const DESCRIPTION_CHARS_MAX: usize = 1_024;
/// What it needs.
pub const COMPATIBILITY_CHARS_MAX: usize = 500;

/// SKILL.md.
pub const SKILL_BYTES_MAX: usize = 256 << 10;
/// The part of it between the lines.
pub const FRONTMATTER_BYTES_MAX: usize = 64 << 10;
/// Lists and mappings inside each other.
pub const FRONTMATTER_DEPTH_MAX: usize = 16;
/// Files of a skill.
pub const FILES_MAX: usize = 1_000;
/// One of them.
pub const FILE_BYTES_MAX: usize = 8 << 20;
/// All of them.
pub const TOTAL_BYTES_MAX: usize = 16 << 20;
/// Names in the path of a file.
pub const PATH_NAMES_MAX: usize = 8;
/// That path.
pub const PATH_BYTES_MAX: usize = 512;
/// One name of it.
pub const PATH_NAME_BYTES_MAX: usize = 255;
/// A file with a signature.
pub const SIGNATURE_BYTES_MAX: usize = 256;
