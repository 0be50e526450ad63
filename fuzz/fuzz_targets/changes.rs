//! What is made of any changes for `--apply`: they are written into the directory and nowhere
//! else, and make no repository of it; or they are refused.

#![no_main]

use std::fs;
use std::path::{Component, Path};

use libfuzzer_sys::fuzz_target;
use outrigger_fuzz::{Records, seeds, stage};
use outrigger_repository::{Accept, Change, File, apply, hazards, patch};
use outrigger_sandbox::EntryKind;

/// What a change does, by the first bits of its number.
fn change(tree: &Path, number: u8, bytes: &[u8]) -> Change {
    let (path, contents) = bytes.split_at(usize::from(number >> 3).min(bytes.len()));
    let path = String::from_utf8_lossy(path).into_owned();
    let before = fs::symlink_metadata(tree.join(&path)).ok().filter(fs::Metadata::is_file);
    let file = |contents: Vec<u8>, kind, executable| File { kind, executable, contents };
    let before = before.and_then(|_| fs::read(tree.join(&path)).ok());
    let before = before.map(|contents| file(contents, EntryKind::File, false));
    let after = match number & 7 {
        0 | 1 => None,
        2 | 3 => Some(file(contents.to_vec(), EntryKind::Link, false)),
        number => Some(file(contents.to_vec(), EntryKind::File, number == 7)),
    };
    Change { path, before, after }
}

/// Looks at everything that stands there now, in another way than what is tested does.
fn inspect(dir: &Path, depth: usize, accept: Accept) {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).expect("it is a directory") {
        let entry = entry.expect("it can be read");
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().to_lowercase());
        let kind = entry.file_type().expect("it has a kind");
        let seen: String = name.chars().filter(char::is_ascii_graphic).collect();
        assert_ne!(seen.trim_end_matches('.'), ".git");
        assert_ne!((accept, name.as_str()), (Accept::Nothing, ".envrc"));
        if kind.is_symlink() && name != "under" {
            let target = fs::read_link(&path).expect("it is a link");
            let mut deep = depth;
            for part in target.components() {
                match part {
                    Component::Normal(_) => deep += 1,
                    Component::CurDir => {}
                    _ => deep = deep.checked_sub(1).expect("it leads up no further than the top"),
                }
            }
        } else if kind.is_dir() {
            inspect(&path, depth + 1, accept);
        }
        names.push(name);
    }
    let has = |name: &str| names.iter().any(|it| it == name);
    let shape = has("head") && (has("commondir") || has("objects") && has("refs"));
    assert!(!shape, "{} is a repository", dir.display());
}

fuzz_target!(init: seeds::changes(), |bytes: &[u8]| {
    let stage = stage(&["tree/half/objects", "tree/half/refs", "tree/sub"]);
    let tree = stage.join("tree");
    for path in ["file", "sub/file", "half/file"] {
        fs::write(tree.join(path), "x").expect("it can be written");
    }
    std::os::unix::fs::symlink("../beside", tree.join("under")).expect("it can be made");
    let Some((mode, bytes)) = bytes.split_first() else { return };
    let accept = if mode % 2 == 0 { Accept::Nothing } else { Accept::Named };
    let changes: Vec<_> = Records(bytes).map(|(it, bytes)| change(&tree, it, bytes)).collect();
    let text = patch(&changes, &hazards(None, &changes));
    assert!(text.is_empty() || text.starts_with(b"# ") || text.starts_with(b"diff --git "));
    let _ = apply(&tree, &changes, accept);
    inspect(&tree, 0, accept);
});
