//! Every limit of this crate, with its unit in its name.

/// Text of one file of rules.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;
/// Rules of a set. A decision looks at those of one action only.
pub const RULES_MAX: usize = 10_000;
/// A name of a rule, of somebody or of something that is acted on.
pub const NAME_BYTES_MAX: usize = 4_096;
/// A name of a rule, which journals and screens show.
pub const RULE_ID_BYTES_MAX: usize = 64;
/// Folders of a path and domains of a host: each is looked at by the rules.
pub const DEPTH_MAX: usize = 64;
/// Groups and members of a directory together.
pub const MEMBERSHIPS_MAX: usize = 100_000;
/// People who spoke in one turn, beside the one whose session it is.
pub const SPEAKERS_MAX: usize = 64;
/// Agents that started one another, above the one that acts.
pub const AGENTS_ABOVE_MAX: usize = 16;
/// Problems that are told of one set of files; the rest is counted.
pub const PROBLEMS_MAX: usize = 100;
