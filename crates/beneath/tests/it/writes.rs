//! Writing: whole or not at all, and what stood there.

use outrigger_beneath::{Dir, Draft, Error};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::names;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_draft_is_there_whole_or_not_at_all() {
    let root = tempfile::tempdir().unwrap();
    let dir = Dir::open(root.path()).unwrap();
    let mut draft = Draft::begin(&dir, Path::new("file"), false).unwrap();
    draft.file().write_all(b"half").unwrap();
    assert_eq!(dir.stat(Path::new("file")).unwrap(), None);
    drop(draft);
    assert_eq!(names(&dir), [""; 0]);
    let mut draft = Draft::begin(&dir, Path::new("file"), false).unwrap();
    draft.file().write_all(b"whole").unwrap();
    draft.put().unwrap();
    assert_eq!(names(&dir), ["file"]);
    assert_eq!(fs::read(root.path().join("file")).unwrap(), b"whole");
}

#[test]
fn a_link_is_replaced_and_what_it_leads_to_is_not() {
    let root = tempfile::tempdir().unwrap();
    let dir = Dir::open(root.path()).unwrap();
    fs::write(root.path().join("victim"), "untouched").unwrap();
    symlink("victim", root.path().join("link")).unwrap();
    Draft::begin(&dir, Path::new("link"), false).unwrap().put().unwrap();
    assert!(fs::symlink_metadata(root.path().join("link")).unwrap().is_file());
    dir.link(Path::new("elsewhere"), Path::new("link")).unwrap();
    assert_eq!(dir.read_link(Path::new("link")).unwrap(), Path::new("elsewhere"));
    assert_eq!(fs::read(root.path().join("victim")).unwrap(), b"untouched");
    assert_eq!(names(&dir), ["link", "victim"]);
}

#[test]
fn a_new_file_has_what_the_umask_leaves_and_another_what_it_had() {
    let root = tempfile::tempdir().unwrap();
    let dir = Dir::open(root.path()).unwrap();
    let put = |name: &str, executable| {
        Draft::begin(&dir, Path::new(name), executable).unwrap().put().unwrap();
        mode(&root.path().join(name))
    };
    // Tests run beside each other, so the umask of all of them is looked at and not set.
    fs::write(root.path().join("plain"), "").unwrap();
    fs::create_dir(root.path().join("folder")).unwrap();
    let (plain, folder) = (mode(&root.path().join("plain")), mode(&root.path().join("folder")));
    assert_eq!((put("new", false), put("tool", true)), (plain, folder));
    dir.make_dirs(Path::new("a/b"), 0o777).unwrap();
    assert_eq!((mode(&root.path().join("a")), mode(&root.path().join("a/b"))), (folder, folder));
    for (name, before, executable, after) in [
        ("secret", 0o600, false, 0o600),
        ("script", 0o640, true, 0o750),
        ("dropped", 0o755, false, 0o644),
        ("set", 0o4755, true, 0o755),
    ] {
        let path = root.path().join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(before)).unwrap();
        assert_eq!(put(name, executable), after, "{name}");
    }
}

#[test]
fn directories_are_made_removed_and_renamed_beneath() {
    let root = tempfile::tempdir().unwrap();
    let dir = Dir::open(root.path()).unwrap();
    let made = dir.make_dirs(Path::new("a/b/c"), 0o700).unwrap();
    assert_eq!(names(&made), [""; 0]);
    assert_eq!(mode(&root.path().join("a/b")), 0o700);
    dir.make_dirs(Path::new("a/b/c"), 0o700).unwrap();
    assert!(dir.make_dir(Path::new("a"), 0o700).is_err());
    dir.rename_new(Path::new("a/b/c"), Path::new("c")).unwrap();
    fs::write(root.path().join("there"), "").unwrap();
    let taken = dir.rename_new(Path::new("c"), Path::new("there")).unwrap_err();
    assert_eq!(taken.kind(), std::io::ErrorKind::AlreadyExists);
    assert!(matches!(&taken, Error::Io { path, .. } if path == Path::new("there")));
    assert!(dir.remove_dir(Path::new("a")).is_err());
    dir.remove_dir(Path::new("a/b")).unwrap();
    dir.remove_dir(Path::new("a")).unwrap();
    dir.remove_dir(Path::new("a")).unwrap();
    dir.remove_file(Path::new("there")).unwrap();
    dir.remove_file(Path::new("there")).unwrap();
    assert_eq!(names(&dir), ["c"]);
    assert!(dir.make_dirs(Path::new("c/x"), 0o700).is_ok());
    fs::write(root.path().join("c/file"), "").unwrap();
    assert!(dir.make_dirs(Path::new("c/file/x"), 0o700).is_err());
}
