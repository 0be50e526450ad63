//! What a name means to git, and to file systems that fold names.

/// Whether git calls its own data so. Nothing of it goes into a workspace, and nothing that
/// a sandbox makes of it comes out: it has settings and hooks, which are programs.
#[must_use]
pub fn is_git(name: &str) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// Whether some file system takes a name for `.git`: those of macOS pass over characters
/// that nobody sees, those of Windows over what stands at the end, and have short names.
pub(crate) fn folds_to_git(name: &str) -> bool {
    is_spelling(name, ".git", "git~")
}

/// Whether some file system takes a name for `.gitmodules`, which says to git where a
/// submodule is fetched from.
pub(crate) fn folds_to_modules(name: &str) -> bool {
    is_spelling(name, ".gitmodules", "gitmod~")
}

/// Whether a name is a spelling of `whole`, or its short name on Windows.
fn is_spelling(name: &str, whole: &str, short: &str) -> bool {
    let visible: String = name.chars().filter(|char| (' '..='~').contains(char)).collect();
    let stem = visible.split(':').next().unwrap_or_default();
    let stem = stem.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    stem == whole || stem.strip_prefix(short).is_some_and(|rest| rest.parse::<u8>().is_ok())
}

/// Whether a path can stand in an index: relative, without dots, and nothing of git's own.
pub(crate) fn is_tracked_path(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/')
        .all(|part| !matches!(part, b"" | b"." | b"..") && !part.eq_ignore_ascii_case(b".git"))
}

#[cfg(test)]
mod tests {
    use super::folds_to_git;

    #[test]
    fn every_spelling_of_git_is_known_and_its_neighbours_are_not() {
        for name in [
            ".git",
            ".GIT",
            ".gIt",
            ".git ",
            ".git..",
            ".git. .",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".git::$INDEX_ALLOCATION",
            ".git:x",
            "git~1",
            "GIT~2",
        ] {
            assert!(folds_to_git(name), "{name:?}");
        }
        for name in [".gitignore", "git", ".gi", "x.git", ".git-like", "git~", "git~x", "", ".."] {
            assert!(!folds_to_git(name), "{name:?}");
        }
    }
}
