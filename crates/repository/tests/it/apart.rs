//! What comes along without being copied: what a project depends on, and its history.

use super::{World, names};
use outrigger_repository::{DependencyFolders, OBJECTS, SandboxRepository, WorkTree};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

#[test]
fn folders_of_dependencies_are_named_and_not_copied() {
    let world = World::new();
    for path in [
        "a/package.json",
        "a/node_modules/left-pad/index.js",
        "a/packages/one/package.json",
        "a/packages/one/node_modules/x/y",
        "a/pyproject.toml",
        "a/.venv/pyvenv.cfg",
        "a/env/production.toml",
        "a/target/arrow.txt",
        "a/lib/node_modules/no-manifest",
    ] {
        world.write(path, "x");
    }
    let packed = world.pack("a").unwrap();
    let named: Vec<_> =
        packed.dependencies.iter().flatten().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(named, [".venv", "node_modules", "packages/one/node_modules"]);
    assert_eq!(
        names(packed.archive),
        [
            "env/production.toml",
            "lib/node_modules/no-manifest",
            "package.json",
            "packages/one/package.json",
            "pyproject.toml",
            "target/arrow.txt"
        ]
    );
    // What is tracked is content, wherever it is, and so is what names the versions of those.
    world.git("a", &["init", "-q"]);
    world.write("a/.gitignore", "node_modules\n.venv\n*.lock\n*.log\n");
    world.write("a/packages/one/yarn.lock", "x");
    world.write("a/packages/one/yarn.log", "x");
    world.git("a", &["add", "-f", "node_modules/left-pad/index.js"]);
    let packed = world.pack("a").unwrap();
    let named: Vec<_> =
        packed.dependencies.iter().flatten().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(named, [".venv", "packages/one/node_modules"]);
    let names = names(packed.archive);
    assert!(names.contains(&"node_modules/left-pad/index.js".to_owned()));
    assert!(names.contains(&"packages/one/yarn.lock".to_owned()));
    assert!(!names.contains(&"packages/one/yarn.log".to_owned()));
}

#[test]
fn a_folder_is_known_by_what_the_file_system_says_of_it() {
    let world = World::new();
    world.write("a/node_modules/b/run", "1");
    world.write("a/node_modules/c", "2");
    symlink("/anywhere", world.path("a/node_modules/link")).unwrap();
    let measure =
        || DependencyFolders::measure(&world.path("a"), &["node_modules".into()]).unwrap();
    let first = measure();
    assert_eq!((first.files, first.bytes), (3, 1 + 1 + "/anywhere".len() as u64));
    assert_eq!(measure(), first);
    world.write("a/node_modules/b/run", "3");
    let changed = measure();
    assert_ne!(changed.version, first.version);
    let archive = changed.archive(&world.path("a"), Path::new("w"), 7, &world.path("s")).unwrap();
    let mut archive = tar::Archive::new(archive);
    let mut shown = String::new();
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        let (kind, owner) = (header.entry_type(), header.uid().unwrap());
        let link = entry.link_name().unwrap().map_or(String::new(), |to| to.display().to_string());
        shown += &format!("{} {kind:?} {owner} {link}\n", entry.path().unwrap().display());
    }
    expect_test::expect![[r#"
        w/ Directory 7 
        w/node_modules Directory 7 
        w/node_modules/b Directory 7 
        w/node_modules/b/run Regular 7 
        w/node_modules/c Regular 7 
        w/node_modules/link Symlink 7 /anywhere
    "#]]
    .assert_eq(&shown);
}

/// Unpacks what a sandbox gets of a repository, and asks git of it, with the objects at hand.
fn git_inside(world: &World, repository: &SandboxRepository, args: &[&str]) -> String {
    let place = world.path("inside");
    drop(fs::remove_dir_all(&place));
    fs::create_dir_all(&place).unwrap();
    let archive = repository.archive(Path::new("w"), 0).unwrap();
    tar::Archive::new(archive.as_slice()).unpack(&place).unwrap();
    let alternates = place.join("w/.git/objects/info/alternates");
    assert_eq!(fs::read_to_string(&alternates).unwrap(), format!("{OBJECTS}\n"));
    fs::write(alternates, format!("{}\n", repository.objects.display())).unwrap();
    let mut cp = Command::new("cp");
    cp.arg("-r").arg(world.path("a/src")).arg(place.join("w"));
    assert!(cp.status().unwrap().success());
    world.git("inside/w", args)
}

#[test]
fn a_sandbox_gets_the_history_and_nothing_that_runs() {
    let world = World::new();
    world.write("a/src/main", "one");
    world.git("a", &["init", "-q"]);
    world.git("a", &["add", "."]);
    world.git("a", &["commit", "-qm", "first"]);
    world.git("a", &["tag", "v1"]);
    world.git("a", &["pack-refs", "--all"]);
    world.git("a", &["checkout", "-qb", "feature/x"]);
    world.write("a/src/main", "two");
    world.git("a", &["commit", "-qam", "second"]);
    world.git("a", &["remote", "add", "origin", "https://me:secret@example.org/x"]);
    world.git("a", &["config", "core.fsmonitor", "/bin/evil"]);
    world.write("a/.git/hooks/post-commit", "evil");
    let repository = SandboxRepository::read(&world.path("a")).unwrap().unwrap().unwrap();
    let inside = |args: &[&str]| git_inside(&world, &repository, args);
    assert_eq!(inside(&["log", "--format=%s"]), "second\nfirst\n");
    assert_eq!(inside(&["status", "--porcelain", "--branch"]), "## feature/x\n");
    assert_eq!(inside(&["describe", "--tags"]).split('-').next(), Some("v1"));
    assert_eq!(
        inside(&["branch", "--format=%(refname)"]),
        "refs/heads/feature/x\nrefs/heads/main\n"
    );
    assert_eq!(inside(&["remote"]), "");
    inside(&["fsck", "--strict"]);
    inside(&["commit", "-q", "--allow-empty", "-m", "third"]);
    let archive = repository.archive(Path::new("w"), 0).unwrap();
    let text = String::from_utf8_lossy(&archive);
    assert!(!text.contains("secret") && !text.contains("evil"), "{text}");
    // A worktree has a place of its own in it.
    world.git("a", &["worktree", "add", "-q", "../b", "main"]);
    let repository = SandboxRepository::read(&world.path("b")).unwrap().unwrap().unwrap();
    assert_eq!(git_inside(&world, &repository, &["log", "--format=%s"]), "first\n");
}

#[test]
fn another_repository_that_a_directory_names_does_not_go_along() {
    let world = World::new();
    world.write("private/secret", "x");
    world.git("private", &["init", "-q"]);
    world.git("private", &["add", "."]);
    world.git("private", &["commit", "-qm", "private"]);
    world.write("project/a", "x");
    world.write("project/.git", format!("gitdir: {}\n", world.path("private/.git").display()));
    let why = SandboxRepository::read(&world.path("project")).unwrap().unwrap().unwrap_err();
    assert!(why.contains("does not know the directory"), "{why}");
    // Nor do its objects alone.
    world.write("linked/.git/HEAD", "ref: refs/heads/main\n");
    symlink(world.path("private/.git/objects"), world.path("linked/.git/objects")).unwrap();
    let why = SandboxRepository::read(&world.path("linked")).unwrap().unwrap().unwrap_err();
    assert!(why.contains("no folder of its own"), "{why}");
    // A submodule is one that the repository above knows.
    fs::create_dir_all(world.path("private/.git/modules")).unwrap();
    world.write("private/sub/a", "x");
    world.git("private", &["init", "-q", "--separate-git-dir", ".git/modules/sub", "sub"]);
    world.git("private/sub", &["add", "."]);
    world.git("private/sub", &["commit", "-qm", "in it"]);
    SandboxRepository::read(&world.path("private/sub")).unwrap().unwrap().unwrap();
}

#[test]
fn a_repository_that_can_not_go_along_says_why() {
    let world = World::new();
    world.write("a/src/main", "one");
    assert!(SandboxRepository::read(&world.path("a")).unwrap().is_none());
    world.git("a", &["init", "-q"]);
    world.git("a", &["add", "."]);
    world.git("a", &["commit", "-qm", "first"]);
    world.git(".", &["clone", "-q", "--shared", "a", "b"]);
    let why = SandboxRepository::read(&world.path("b")).unwrap().unwrap().unwrap_err();
    assert!(why.contains("borrows objects"), "{why}");
    world.git(
        ".",
        &["clone", "-q", "--depth", "1", &format!("file://{}", world.path("a").display()), "c"],
    );
    let shallow = SandboxRepository::read(&world.path("c")).unwrap().unwrap().unwrap();
    assert_eq!(shallow.notes.len(), 1, "{:?}", shallow.notes);
    // A part of a repository is no repository.
    assert!(SandboxRepository::read(&world.path("a/src")).unwrap().is_none());
}

#[test]
fn a_directory_is_a_part_of_the_repository_that_tracks_something_in_it() {
    let world = World::new();
    world.write("home/project/sub/deep/a", "x");
    world.write("home/project/ignored/b", "x");
    world.git("home/project", &["init", "-q"]);
    world.git("home/project", &["add", "sub"]);
    let of = |path: &str, home: &str| WorkTree::of(&world.path(path), &world.path(home)).unwrap();
    let alone = |path: &str| WorkTree::alone(&world.path(path));
    let part = of("home/project/sub/deep", "home");
    assert_eq!(
        (part.top.clone(), part.prefix.to_str()),
        (world.path("home/project"), Some("sub/deep"))
    );
    assert_eq!(part.dir(), world.path("home/project/sub/deep"));
    assert_eq!(of("home/project", "home"), alone("home/project"));
    assert_eq!(of("home/project/ignored", "home"), alone("home/project/ignored"));
    // Nobody means all of a home directory that is a repository.
    assert_eq!(of("home/project/sub", "home/project"), alone("home/project/sub"));
    assert_eq!(of("home/project/sub", "home/project/sub"), alone("home/project/sub"));
    assert_eq!(of("home", "home"), alone("home"));
}
