//! What is wrong with a skill, and where.

use std::fmt;

use crate::limits::{COMPATIBILITY_CHARS_MAX, DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX};

/// Something that makes a folder no skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct SkillProblem {
    /// The file, as a path in the skill; the folder itself is `.`.
    pub path: String,
    /// The line in it, from 1, if it is one line.
    pub line: Option<usize>,
    /// What is wrong.
    #[source]
    pub reason: Reason,
}

impl SkillProblem {
    pub(crate) fn at(path: &str, reason: Reason) -> Self {
        Self { path: path.to_owned(), line: None, reason }
    }
}

impl fmt::Display for SkillProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        match self.line {
            Some(line) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}

/// Why something is refused. The author of the skill can mend each of these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// There is no SKILL.md.
    #[error("a skill needs a file SKILL.md")]
    NoSkillFile,
    /// It is not UTF-8.
    #[error("it is not text in UTF-8")]
    NotText,
    /// It does not begin with `---`.
    #[error("it must begin with frontmatter, between two lines of `---`")]
    NoFrontmatter,
    /// The second `---` is missing.
    #[error("its frontmatter has no closing `---`")]
    OpenFrontmatter,
    /// It is not YAML.
    #[error("its frontmatter is not YAML: {0}")]
    NotYaml(String),
    /// It is YAML that the format leaves out.
    #[error("its frontmatter has {0}, which the format does not take")]
    Refused(&'static str),
    /// A key is there twice.
    #[error("its frontmatter has the key `{0}` twice")]
    Twice(String),
    /// It is not a mapping.
    #[error("its frontmatter must be a mapping of names to values")]
    NoMapping,
    /// A field that the specification does not have.
    #[error(
        "`{0}` is no field; there are name, description, license, compatibility, metadata and allowed-tools"
    )]
    UnknownField(String),
    /// A required field.
    #[error("the field `{0}` is missing")]
    Missing(&'static str),
    /// A required field without a text.
    #[error("the field `{0}` must be a text that is not empty")]
    Empty(&'static str),
    /// A list or a mapping instead of a text.
    #[error("the field `{0}` must be a text")]
    NoText(&'static str),
    /// The name is too long.
    #[error("the name has {0} characters, and {NAME_CHARS_MAX} are the most")]
    LongName(usize),
    /// The description is too long.
    #[error("the description has {0} characters, and {DESCRIPTION_CHARS_MAX} are the most")]
    LongDescription(usize),
    /// What it says of compatibility is too long.
    #[error(
        "the field `compatibility` has {0} characters, and {COMPATIBILITY_CHARS_MAX} are the most"
    )]
    LongCompatibility(usize),
    /// The name has capitals.
    #[error("the name `{0}` must be in lower case")]
    Capitals(String),
    /// The name begins or ends with a hyphen.
    #[error("the name begins or ends with a hyphen")]
    OuterHyphen,
    /// The name has two hyphens in a row.
    #[error("the name has two hyphens in a row")]
    DoubleHyphen,
    /// The name has other characters.
    #[error("the name `{0}` has other characters than letters, digits and hyphens")]
    Characters(String),
    /// The folder has another name.
    #[error("the folder is called `{folder}`, and the skill `{name}`: both must be the same")]
    OtherFolder {
        /// The folder's.
        folder: String,
        /// The skill's.
        name: String,
    },
    /// A path leads out of the folder, or is none.
    #[error("this is no path inside a skill")]
    BadPath,
    /// One path is a file and a folder.
    #[error("this is a file, and another file lies below it")]
    FileAndFolder,
    /// Neither a file nor a folder.
    #[error("this is neither a file nor a folder, and links are not followed")]
    NoFile,
    /// More than a limit of ours.
    #[error("{what}: {max} are the most")]
    TooMuch {
        /// What is.
        what: &'static str,
        /// The limit.
        max: usize,
    },
}
