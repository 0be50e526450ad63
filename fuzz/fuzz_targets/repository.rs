//! What is made of a directory in which anything stands that git or an ignore file would be:
//! an archive of what is in it, or a refusal; and nothing from beside it.

#![no_main]

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use outrigger_beneath::{Dir, Draft};
use outrigger_fuzz::{Records, seeds, stage};
use outrigger_repository::{DependencyPolicy, Limits, Rules, pack};

/// Where a part of the input stands. Settings and attributes are never read, so that what
/// they say makes no difference.
const PLACES: [&str; 12] = [
    ".git/index",
    ".git/info/exclude",
    ".gitignore",
    "b/.gitignore",
    ".git",
    ".git/commondir",
    ".git/config",
    ".gitattributes",
    "b/.git",
    "b/c",
    "l/id",
    ".git/HEAD",
];

/// Puts the parts of an input in their places, and through no link that an earlier one made.
fn plant(tree: &Path, bytes: &[u8]) -> Result<(), outrigger_beneath::Error> {
    let dir = Dir::open(tree)?;
    for (place, contents) in Records(bytes) {
        let path = Path::new(PLACES[usize::from(place & 0x7f) % PLACES.len()]);
        if place & 0x80 != 0 {
            dir.link(Path::new(OsStr::from_bytes(contents)), path)?;
            continue;
        }
        let mut draft = Draft::begin(&dir, path, false)?;
        draft.file().write_all(contents).expect("there is room in memory");
        draft.put()?;
    }
    Ok(())
}

fuzz_target!(init: seeds::repositories(), |bytes: &[u8]| {
    let Some((mode, bytes)) = bytes.split_first() else { return };
    let stage = stage(&["tree/b", "scratch", "kept/info"]);
    let tree = stage.join("tree");
    for path in ["tree/a", "tree/b/c", "tree/b/d.log", "kept/HEAD"] {
        fs::write(stage.join(path), "x").expect("it can be written");
    }
    std::os::unix::fs::symlink("../beside", tree.join("l")).expect("it can be made");
    if mode % 2 == 0 {
        fs::rename(stage.join("kept"), tree.join(".git")).expect("nothing is there");
    }
    let _ = plant(&tree, bytes);
    let limits = Limits { bytes_max: 1 << 20, files_max: 100 };
    if let Ok(packed) = pack(&tree, &stage.join("scratch"), &Rules::default(), limits, DependencyPolicy::Apart(&[])) {
        let mut archive = tar::Archive::new(packed.archive);
        for entry in archive.entries().expect("it was just written") {
            let entry = entry.expect("it was just written");
            let path = tree.join(entry.path().expect("it has a path"));
            let found = fs::symlink_metadata(&path).expect("it names what is there");
            assert_eq!(found.is_symlink(), entry.header().entry_type().is_symlink());
            let real = fs::canonicalize(path.parent().expect("it is in the tree"));
            assert!(real.expect("it is there").starts_with(&tree), "{}", path.display());
            assert!(path.components().all(|part| part.as_os_str() != ".git"));
        }
    }
});
