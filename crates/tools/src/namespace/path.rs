//! The one spelling of a path, and which of them are mounted.

use outrigger_agent::{HiddenCharPolicy, visible};
use outrigger_sandbox::{FileError, FileErrorKind, is_within, limits, text};
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// Where the rows of memory and of skills are mounted.
pub const MOUNTS: [&str; 2] = ["/memory", "/skills"];

/// Where a call looks that names no directory.
pub(crate) const WORKSPACE: &str = "/workspace";

/// The absolute path that a caller means, by its text alone: a relative one begins at the
/// workspace, `.` and empty parts are nothing, `..` is the part before, and letters are
/// composed (NFC), so that what looks the same is the same. Upper and lower case differ.
///
/// # Errors
/// `invalid_path` for one that is empty, has a NUL byte or is above
/// [`limits::PATH_BYTES_MAX`]; where a tree is served also for one with a control character
/// or a name above [`limits::TREE_NAME_BYTES_MAX`].
pub fn canonical(given: &str) -> Result<String, FileError> {
    text::check_path(given)?;
    let mut parts: Vec<&str> = Vec::new();
    let base = if given.starts_with('/') { "" } else { WORKSPACE };
    for part in base.split('/').chain(given.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let path = format!("/{}", parts.join("/"));
    let path = if is_nfc(&path) { path } else { path.nfc().collect() };
    let longest = path.split('/').map(str::len).max().unwrap_or_default();
    let detail = if !is_mounted(&path) {
        return Ok(path);
    } else if path.chars().any(char::is_control) {
        "the path has a control character".to_owned()
    } else if longest > limits::TREE_NAME_BYTES_MAX {
        format!("a name of {longest} bytes; {} is the most", limits::TREE_NAME_BYTES_MAX)
    } else {
        return Ok(path);
    };
    Err(FileError { kind: FileErrorKind::InvalidPath, path: shown(given), detail })
}

/// Whether a canonical path is one of a served tree.
pub(super) fn is_mounted(path: &str) -> bool {
    MOUNTS.iter().any(|mount| is_within(path, mount))
}

/// A path in an error: its controls would act on who reads it.
fn shown(path: &str) -> String {
    visible(path, HiddenCharPolicy::Marked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_spelling() {
        for (given, expected) in [
            ("notes.md", "/workspace/notes.md"),
            ("/memory/user/a.md", "/memory/user/a.md"),
            ("//memory///user//a.md", "/memory/user/a.md"),
            ("/memory/./user/./a.md", "/memory/user/a.md"),
            ("/memory/user/../user/a.md", "/memory/user/a.md"),
            ("/memory/user/a.md/", "/memory/user/a.md"),
            ("/memory/", "/memory"),
            ("../memory/user", "/memory/user"),
            ("../../../memory", "/memory"),
            ("/workspace/../memory/user", "/memory/user"),
            ("/..", "/"),
            (".", "/workspace"),
            ("/Memory/user", "/Memory/user"),
            ("/memory/user/cafe\u{301}", "/memory/user/caf\u{e9}"),
            ("/memory/user/caf\u{e9}", "/memory/user/caf\u{e9}"),
            ("/memory/user/\u{212b}", "/memory/user/\u{c5}"),
            ("/memory/user/a b", "/memory/user/a b"),
            ("/memory/user/%2e%2e", "/memory/user/%2e%2e"),
            ("/memory\\user", "/memory\\user"),
            ("/memory\u{2215}user", "/memory\u{2215}user"),
        ] {
            assert_eq!(canonical(given).as_deref(), Ok(expected), "{given}");
        }
    }

    #[test]
    fn what_has_no_spelling_is_refused() {
        let long_name = format!("/memory/{}", "n".repeat(256));
        let long_path = format!("/memory/{}", "n/".repeat(2_100));
        for given in ["", "/memory/a\0b", "/memory/a\nb", "/memory/\u{9b}x", &long_name, &long_path]
        {
            let refused = canonical(given).map_err(|error| error.kind);
            assert_eq!(refused, Err(FileErrorKind::InvalidPath), "{given:?}");
        }
    }

    #[test]
    fn a_mount_is_a_whole_name() {
        assert!(is_mounted("/memory") && is_mounted("/memory/user") && is_mounted("/skills/user"));
        assert!(!is_mounted("/memory2") && !is_mounted("/mem") && !is_mounted("/Skills"));
        assert!(!is_mounted("/"));
    }

    #[test]
    fn what_a_disk_may_be_called_is_for_its_sandbox_to_say() {
        assert_eq!(canonical("a\nb").as_deref(), Ok("/workspace/a\nb"));
    }
}
