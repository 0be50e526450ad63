//! Repositories that are damaged, or were made to do harm.

use outrigger_repository::{Error, IndexProblem};
use std::fs;
use std::os::unix::fs::symlink;

use crate::World;

fn repository(world: &World) {
    for path in ["a", "b/c", "b/d"] {
        world.write(&format!("repo/{path}"), "x\n");
    }
    world.git("repo", &["init", "-q"]);
    world.git("repo", &["add", "."]);
}

fn problem(world: &World) -> IndexProblem {
    match world.pack("repo").unwrap_err() {
        Error::Index { path, source } => {
            assert_eq!(path, world.path("repo/.git/index"));
            source
        }
        other => panic!("{other}"),
    }
}

#[test]
fn an_index_that_was_cut_or_changed_anywhere_is_refused_or_read() {
    let world = World::new();
    repository(&world);
    let index = fs::read(world.path("repo/.git/index")).unwrap();
    let path = world.path("repo/.git/index");
    for length in 0..index.len() {
        fs::write(&path, &index[..length]).unwrap();
        assert!(
            matches!(problem(&world), IndexProblem::NoIndex | IndexProblem::Damaged),
            "{length}"
        );
    }
    for at in 0..index.len() {
        for flip in [1, 0x40, 0xff] {
            let mut changed = index.clone();
            changed[at] ^= flip;
            fs::write(&path, &changed).unwrap();
            // Whatever it says: nothing but what is there comes of it.
            if let Ok(packed) = world.pack("repo") {
                assert_eq!(crate::names(packed.archive), ["a", "b/c", "b/d"], "{at} {flip}");
            }
        }
    }
}

#[test]
fn an_index_with_paths_that_lead_elsewhere_is_refused() {
    let world = World::new();
    repository(&world);
    let path = world.path("repo/.git/index");
    let index = fs::read(&path).unwrap();
    let at = index.windows(3).position(|window| window == b"b/c").unwrap();
    for name in [b"../", b"/bc", b"b//", b"./c", b"b/.", b"..c", b"\0/c"] {
        let mut changed = index.clone();
        changed[at..at + 3].copy_from_slice(name);
        fs::write(&path, &changed).unwrap();
        match name {
            b"..c" => assert!(world.pack("repo").is_ok()),
            b"\0/c" => assert_eq!(problem(&world), IndexProblem::Damaged),
            _ => assert!(matches!(problem(&world), IndexProblem::Path(_)), "{name:?}"),
        }
    }
    // And one into git's own data, which has a name of another length.
    for name in [".git", ".GIT", "x/.git", ".git/hooks/pre-commit"] {
        fs::remove_file(&path).unwrap();
        world.git("repo", &["add", "."]);
        let placeholder = "y".repeat(name.len());
        let blob = world.git("repo", &["hash-object", "-w", "a"]);
        let entry = format!("100644,{},{placeholder}", blob.trim());
        world.git("repo", &["update-index", "--add", "--cacheinfo", &entry]);
        let index = fs::read(&path).unwrap();
        let wanted = placeholder.as_bytes();
        let at = index.windows(wanted.len()).position(|window| window == wanted).unwrap();
        let mut changed = index;
        changed[at..at + name.len()].copy_from_slice(name.as_bytes());
        fs::write(&path, &changed).unwrap();
        assert_eq!(problem(&world), IndexProblem::Path(name.to_owned()));
    }
}

#[test]
fn what_an_index_can_be_besides_is_told() {
    let world = World::new();
    repository(&world);
    world.git("repo", &["update-index", "--split-index"]);
    assert_eq!(problem(&world), IndexProblem::Split);
    let path = world.path("repo/.git/index");
    for (bytes, expected) in [
        (&b""[..], IndexProblem::NoIndex),
        (b"DIRC\0\0\0\x09\0\0\0\0", IndexProblem::Version(9)),
        (b"DIRC\0\0\0\x02\xff\xff\xff\xff", IndexProblem::Damaged),
    ] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(problem(&world), expected);
    }
    let mut own = b"DIRC\0\0\0\x02\0\0\0\0what\0\0\0\x01x".to_vec();
    own.extend([0; 20]);
    fs::write(&path, own).unwrap();
    assert_eq!(problem(&world), IndexProblem::Extension("what".to_owned()));
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    assert!(matches!(world.pack("repo"), Err(Error::TooLong { .. })));
}

#[test]
fn no_file_of_git_is_read_through_a_link_or_waited_for() {
    let world = World::new();
    repository(&world);
    world.write("secret", "a\n");
    for path in [".git/index", ".git/info/exclude", ".git/commondir"] {
        let at = world.path("repo").join(path);
        let kept = fs::read(&at).ok();
        drop(fs::remove_file(&at));
        symlink(world.path("secret"), &at).unwrap();
        let told = world.pack("repo").unwrap_err().to_string();
        assert!(told.contains(path) && told.contains("link"), "{told}");
        fs::remove_file(&at).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o644);
        rustix::fs::mknodat(rustix::fs::CWD, &at, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let told = world.pack("repo").unwrap_err().to_string();
        assert!(told.contains("FIFO"), "{told}");
        fs::remove_file(&at).unwrap();
        kept.into_iter().for_each(|kept| fs::write(&at, kept).unwrap());
    }
}

#[test]
fn a_file_called_git_that_names_nothing_is_told() {
    for text in ["", "gitdir: ", "gitdir: nowhere", "nothing\0\n", "gitdir: /proc/self/mem"] {
        let world = World::new();
        world.write("repo/file", "x\n");
        world.write("repo/.git", text);
        match world.pack("repo") {
            Err(Error::GitDir { path, .. }) => assert_eq!(path, world.path("repo/.git")),
            // The folder itself, which is no repository.
            Ok(packed) => assert_eq!((text, packed.files), ("gitdir: ", 1)),
            Err(other) => panic!("{text}: {other}"),
        }
    }
}

#[test]
fn rules_that_are_too_long_or_no_file_are_told() {
    let world = World::new();
    world.write("repo/file", "x\n");
    fs::create_dir(world.path("repo/.gitignore")).unwrap();
    let told = "x: it is a directory, whose rules are not read".replace('x', ".gitignore");
    assert_eq!(world.copied("repo"), (vec!["file".to_owned()], vec![told]));
    fs::remove_dir(world.path("repo/.gitignore")).unwrap();
    fs::File::create(world.path("repo/.gitignore")).unwrap().set_len(1 << 40).unwrap();
    assert!(matches!(world.pack("repo"), Err(Error::TooLong { .. })));
}

#[test]
fn a_tree_of_nothing_but_folders_comes_to_an_end() {
    let world = World::new();
    for number in 0..1_100 {
        fs::create_dir_all(world.path(&format!("repo/{number}"))).unwrap();
    }
    let told = world.pack("repo").unwrap_err().to_string();
    assert_eq!(told, "it is too large to copy: more than 1000 folders");
}
