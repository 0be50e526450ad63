//! What a patch of ours changes, file by file.

use outrigger_api::{ChangedFile, FileChangeKind};

/// The files of a patch that this program made, in its order.
pub(super) fn files(patch: &[u8]) -> Vec<ChangedFile> {
    let text = String::from_utf8_lossy(patch);
    let mut files: Vec<ChangedFile> = Vec::new();
    // Lines of a file's content begin with a sign or `\`, so that none looks like these.
    for line in text.lines() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            let path = second(names);
            files.push(ChangedFile { path, change: FileChangeKind::Modified });
        } else if let Some(last) = files.last_mut() {
            if line.starts_with("new file mode ") {
                last.change = FileChangeKind::Added;
            } else if line.starts_with("deleted file mode ") {
                last.change = FileChangeKind::Removed;
            }
        }
    }
    files
}

/// The second of two equal names, `a/NAME b/NAME`, perhaps in quotes.
fn second(names: &str) -> String {
    let half = names.get(names.len() / 2 + 1..).unwrap_or(names);
    let plain = half.strip_prefix('"').and_then(|half| half.strip_suffix('"')).unwrap_or(half);
    plain.strip_prefix("b/").unwrap_or(plain).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_repository::{Change, patch};

    #[test]
    fn the_files_of_a_patch_are_told_with_how_they_changed() {
        let text = "diff --git a/src/a b.rs b/src/a b.rs\n--- a/x\n+++ b/x\n-new file mode 1\n\
            diff --git a/n b/n\nnew file mode 100644\n\
            diff --git \"a/\\303\\251\" \"b/\\303\\251\"\ndeleted file mode 100644\n";
        let found = files(text.as_bytes());
        let shown: Vec<_> = found.iter().map(|it| (it.path.as_str(), it.change)).collect();
        assert_eq!(
            shown,
            [
                ("src/a b.rs", FileChangeKind::Modified),
                ("n", FileChangeKind::Added),
                ("\\303\\251", FileChangeKind::Removed),
            ]
        );
        let none: [Change; 0] = [];
        assert_eq!(files(&patch(&none, &[])), []);
    }
}
