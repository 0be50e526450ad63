//! Paths that every sandbox has.

/// Where relative paths start.
pub(crate) const WORKSPACE: &str = "/workspace";
/// The home of the sandbox's user.
pub(crate) const HOME: &str = "/home/agent";
/// For what is soon forgotten.
pub(crate) const TMP: &str = "/tmp";
/// Where whole outputs are, which commands can read and not change.
pub(crate) const OUTPUT: &str = "/var/outrigger/output";

/// Whether `path` is `root` or beneath it.
pub(crate) fn is_within(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
