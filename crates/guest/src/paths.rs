//! Paths that every sandbox has.

/// Where relative paths start.
pub(crate) const WORKSPACE: &str = "/workspace";
/// The home of the sandbox's user.
pub(crate) const HOME: &str = "/home/agent";
/// For what is soon forgotten.
pub(crate) const TMP: &str = "/tmp";
/// Where whole outputs are, which commands can read and not change.
pub(crate) const OUTPUT: &str = "/var/outrigger/output";
