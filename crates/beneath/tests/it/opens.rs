//! Reading: what stands there, and what leads elsewhere.

use outrigger_beneath::{Dir, Draft, Error};
use rustix::fs::{FileType, Mode, mkfifoat};
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::names;

/// A directory with a file, and with links of every kind to a secret beside it.
fn planted() -> (tempfile::TempDir, Dir) {
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    fs::create_dir_all(at("dir/sub/deep")).unwrap();
    fs::create_dir(at("secret")).unwrap();
    fs::write(at("secret/key"), "key").unwrap();
    fs::write(at("dir/sub/deep/file"), "file").unwrap();
    symlink("../secret", at("dir/out")).unwrap();
    symlink(at("secret"), at("dir/absolute")).unwrap();
    symlink("sub", at("dir/within")).unwrap();
    symlink("../secret/key", at("dir/leaf")).unwrap();
    symlink("/proc/self/root", at("dir/magic")).unwrap();
    let dir = Dir::open(&at("dir")).unwrap();
    (root, dir)
}

#[test]
fn a_file_is_read_and_a_directory_listed() {
    let (_root, dir) = planted();
    let mut text = String::new();
    dir.file(Path::new("sub/deep/file")).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "file");
    assert_eq!(names(&dir.dir(Path::new("sub")).unwrap()), ["deep"]);
    assert_eq!(names(&dir.dir(Path::new(".")).unwrap()).len(), 6);
    let stat = dir.stat(Path::new("sub/deep/file")).unwrap().unwrap();
    assert_eq!((stat.kind, stat.bytes), (FileType::RegularFile, 4));
    assert_eq!(dir.stat(Path::new("sub/none")).unwrap(), None);
    assert_eq!(dir.stat(Path::new("sub/deep/file/below")).unwrap(), None);
    assert_eq!(dir.read_link(Path::new("leaf")).unwrap(), Path::new("../secret/key"));
    assert_eq!(dir.stat(Path::new("leaf")).unwrap().unwrap().kind, FileType::Symlink);
}

#[test]
fn no_link_is_followed_wherever_it_leads() {
    let (root, dir) = planted();
    let through = ["out/key", "absolute/key", "within/deep/file", "magic/etc/passwd"];
    for path in through.map(Path::new) {
        assert!(matches!(dir.file(path), Err(Error::Link(_))), "{path:?}");
        assert!(matches!(dir.stat(path), Err(Error::Link(_))), "{path:?}");
        assert!(matches!(dir.dir(path.parent().unwrap()), Err(Error::Link(_))), "{path:?}");
        assert!(Draft::begin(&dir, path, false).is_err(), "{path:?}");
        assert!(dir.link(Path::new("x"), path).is_err(), "{path:?}");
        assert!(dir.remove_file(path).is_err(), "{path:?}");
        assert!(dir.make_dirs(&path.parent().unwrap().join("new"), 0o777).is_err(), "{path:?}");
        assert!(dir.rename_new(Path::new("leaf"), path).is_err(), "{path:?}");
    }
    let kind = FileType::Symlink;
    assert!(matches!(dir.file(Path::new("leaf")), Err(Error::NoFile { kind: k, .. }) if k == kind));
    let secret: Vec<_> = fs::read_dir(root.path().join("secret")).unwrap().collect();
    assert_eq!(secret.len(), 1);
}

#[test]
fn paths_that_go_elsewhere_are_told_as_that() {
    let (_root, dir) = planted();
    for path in ["", "..", "../secret/key", "sub/../../secret/key", "/etc/passwd", "sub/.."] {
        let path = Path::new(path);
        assert!(matches!(dir.file(path), Err(Error::Outside(_))), "{path:?}");
        assert!(matches!(dir.dir(path), Err(Error::Outside(_))), "{path:?}");
    }
    assert!(dir.file(Path::new("sub\0/x")).is_err());
}

#[test]
fn what_is_no_regular_file_is_named_and_not_opened() {
    let (root, dir) = planted();
    mkfifoat(&dir, "fifo", Mode::from_raw_mode(0o644)).unwrap();
    let _socket = UnixListener::bind(root.path().join("dir/socket")).unwrap();
    for (path, said) in [
        ("fifo", "`fifo` is a FIFO"),
        ("socket", "`socket` is a socket"),
        ("sub", "`sub` is a directory"),
        ("leaf", "`leaf` is a link"),
    ] {
        // One that opened the FIFO would wait here for ever.
        assert_eq!(dir.file(Path::new(path)).unwrap_err().to_string(), said);
    }
    let null = Dir::open(Path::new("/dev")).unwrap().file(Path::new("null"));
    assert_eq!(null.unwrap_err().to_string(), "`null` is a device");
}

#[test]
fn a_handle_stays_where_it_was_when_its_path_becomes_a_link() {
    let (root, dir) = planted();
    let sub = dir.dir(Path::new("sub")).unwrap();
    fs::rename(root.path().join("dir/sub"), root.path().join("dir/moved")).unwrap();
    symlink("../secret", root.path().join("dir/sub")).unwrap();
    assert_eq!(names(&sub), ["deep"]);
    assert!(matches!(dir.file(Path::new("sub/key")), Err(Error::Link(_))));
}

#[test]
fn what_a_person_named_may_be_a_link() {
    let (root, _dir) = planted();
    let named = Dir::open(&root.path().join("dir/within")).unwrap();
    assert_eq!(names(&named), ["deep"]);
    let (dir, name) = Dir::around(&root.path().join("dir/out/key")).unwrap().unwrap();
    assert_eq!(name, Path::new("key"));
    assert!(dir.file(&name).is_ok());
    for path in ["/", ".", "..", "a/.."] {
        assert!(Dir::around(Path::new(path)).unwrap().is_none(), "{path}");
    }
}
