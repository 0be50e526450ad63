//! What can be said of a path by its text alone.

use crate::limits;

/// Whether a path is absolute, canonical and of a length that is served.
pub(crate) fn is_canonical(path: &str) -> bool {
    let part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && part.len() <= limits::TREE_NAME_BYTES_MAX
            && !part.contains('\0')
    };
    path.len() <= limits::PATH_BYTES_MAX
        && path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(part))
}

/// Whether a path is `root` or beneath it; both are absolute and canonical.
#[must_use]
pub fn is_within(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
