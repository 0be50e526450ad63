//! Every limit of the conversation with a provider, with its unit in its name.

/// From a question to a provider to the end of its answer.
pub const ANSWER_MS_MAX: u64 = 10_000;
/// Of one answer of a provider.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;
/// How long what a provider says of itself, and its keys, are believed without asking again.
pub const METADATA_MS_MAX: u64 = 3_600_000;
/// How long a provider that could not be reached is not asked again.
pub const FAILURE_MS_MAX: u64 = 3_000;
/// Keys of a provider that are looked at.
pub const KEYS_MAX: usize = 64;
/// By how much the clocks of a provider and of this machine may differ.
pub const CLOCK_SECONDS_MAX: u64 = 60;
/// Values of a claim of groups that are looked at.
pub const GROUPS_MAX: usize = 2_000;
/// Characters of what a provider says that an error quotes.
pub const QUOTED_CHARS_MAX: usize = 200;
/// Of the name that a provider has for a person.
pub const NAME_BYTES_MAX: usize = 200;
