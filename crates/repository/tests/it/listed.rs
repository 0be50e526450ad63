//! What belongs to a directory, in every kind of repository.

use std::fs;
use std::os::unix::fs::symlink;

use crate::World;

/// Files in every state, and long names that have much in common.
fn fill(world: &World, dir: &str) {
    let at = |path: &str| format!("{dir}/{path}");
    let long = "n".repeat(200);
    for path in [".gitignore", "a", "a.b", "a-b", "deep/er/file", "kept.log", "deleted"] {
        world.write(&at(path), "x\n");
    }
    for number in 0..9 {
        world.write(&at(&format!("common/{long}/{number}/{long}")), "x\n");
    }
    world.write(&at(".gitignore"), "*.log\nbuild/\n!/build\n");
    world.write(&at("deep/.gitignore"), "!kept.log\n/er/out\n");
    symlink("a", world.path(&at("link"))).unwrap();
}

/// What comes after the first commit.
fn change(world: &World, dir: &str) {
    let at = |path: &str| format!("{dir}/{path}");
    for path in ["new", "other.log", "deep/kept.log", "deep/er/out", "build/x", "deep/build/x"] {
        world.write(&at(path), "x\n");
    }
    fs::remove_file(world.path(&at("deleted"))).unwrap();
}

fn agree(world: &World, dir: &str) {
    let (copied, left_out) = world.copied(dir);
    assert_eq!(copied, world.known_to_git(dir));
    assert_eq!(left_out, [""; 0]);
    assert!(copied.len() > 1, "{copied:?}");
}

#[test]
fn every_version_of_the_index_is_read_as_git_reads_it() {
    let world = World::new();
    for format in ["sha1", "sha256"] {
        for version in ["2", "3", "4"] {
            let dir = format!("{format}-{version}");
            fill(&world, &dir);
            world.git(&dir, &["init", "-q", "--object-format", format]);
            world.git(&dir, &["add", "-f", "."]);
            world.git(&dir, &["update-index", "--index-version", version]);
            if version != "2" {
                // Which needs more flags than an entry of version 2 has.
                world.write(&format!("{dir}/meant"), "x\n");
                world.git(&dir, &["add", "--intent-to-add", "meant"]);
            }
            change(&world, &dir);
            agree(&world, &dir);
            let index = fs::read(world.path(&dir).join(".git/index")).unwrap();
            assert_eq!(index[7], version.as_bytes()[0] - b'0', "{dir}");
        }
    }
}

#[test]
fn an_index_in_the_middle_of_a_merge_is_read() {
    let world = World::new();
    fill(&world, "repo");
    world.git("repo", &["init", "-q"]);
    world.git("repo", &["add", "."]);
    world.git("repo", &["commit", "-qm", "one"]);
    for (branch, text) in [("left", "left\n"), ("right", "right\n")] {
        world.git("repo", &["checkout", "-qb", branch, "main"]);
        world.write("repo/a", text);
        world.git("repo", &["commit", "-qam", branch]);
    }
    let merged = std::process::Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "merge", "-q", "left"])
        .current_dir(world.path("repo"))
        .output();
    assert!(!merged.unwrap().status.success(), "there is a conflict");
    agree(&world, "repo");
}

#[test]
fn a_sparse_index_is_read() {
    let world = World::new();
    fill(&world, "repo");
    world.git("repo", &["init", "-q"]);
    world.git("repo", &["add", "."]);
    world.git("repo", &["commit", "-qm", "all"]);
    world.git("repo", &["sparse-checkout", "set", "--cone", "--sparse-index", "deep"]);
    let index = fs::read(world.path("repo/.git/index")).unwrap();
    assert!(index.windows(4).any(|window| window == b"sdir"));
    assert!(!world.path("repo/common").exists());
    agree(&world, "repo");
}

#[test]
fn worktrees_and_folders_of_git_elsewhere_are_found() {
    let world = World::new();
    fill(&world, "repo");
    world.git("repo", &["init", "-q", "--separate-git-dir", "../kept"]);
    world.git("repo", &["add", "."]);
    world.git("repo", &["commit", "-qm", "all"]);
    fs::write(world.path("kept/info/exclude"), "other.log\nsecret\n").unwrap();
    world.git("repo", &["worktree", "add", "-q", "../tree"]);
    for dir in ["repo", "tree"] {
        assert!(world.path(dir).join(".git").is_file());
        change(&world, dir);
        world.write(&format!("{dir}/secret"), "x\n");
        agree(&world, dir);
        assert!(!world.copied(dir).0.contains(&"secret".to_owned()), "{dir}");
        agree(&world, &format!("{dir}/deep"));
    }
    // And one that a link leads to.
    fs::remove_file(world.path("repo/.git")).unwrap();
    symlink("../kept", world.path("repo/.git")).unwrap();
    agree(&world, "repo");
}

#[test]
fn submodules_and_other_repositories_are_named_and_not_looked_at() {
    let world = World::new();
    world.write("other/file", "x\n");
    world.git("other", &["init", "-q"]);
    world.git("other", &["add", "."]);
    world.git("other", &["commit", "-qm", "all"]);
    world.write("repo/a", "x\n");
    world.git("repo", &["init", "-q"]);
    world.git("repo", &["submodule", "add", "-q", "../other", "sub"]);
    world.git("repo", &["add", "."]);
    world.git("repo", &["commit", "-qm", "all"]);
    world.git(".", &["clone", "-q", "other", "repo/nested/inner"]);
    let (copied, left_out) = world.copied("repo");
    assert_eq!(copied, [".gitmodules", "a"]);
    let why = "a submodule or nested repository is not copied";
    assert_eq!(left_out, [format!("nested/inner: {why}"), format!("sub: {why}")]);
    // Itself it is a repository like others.
    assert_eq!(world.copied("repo/sub").0, ["file"]);
    // One that is not checked out is an empty folder.
    world.git(".", &["clone", "-q", "repo", "clone"]);
    assert_eq!(world.copied("clone"), (copied, vec![format!("sub: {why}")]));
}

#[test]
fn a_folder_beneath_a_repository_that_knows_nothing_of_it_is_its_own() {
    let world = World::new();
    world.write("home/.gitignore", "*\n");
    world.write("home/.profile", "x\n");
    world.write("home/work/project/file", "x\n");
    world.write("home/work/project/.gitignore", "*.log\n");
    world.write("home/work/project/a.log", "x\n");
    world.write("home/work/project/nested/inner", "x\n");
    world.git("home", &["init", "-q"]);
    world.git("home", &["add", "-f", ".profile"]);
    world.git("home/work/project/nested", &["init", "-q"]);
    let (copied, left_out) = world.copied("home/work/project");
    assert_eq!(copied, [".gitignore", "file", "nested/inner"]);
    assert_eq!(left_out, [""; 0]);
}

#[test]
fn a_repository_to_which_nothing_was_added_has_everything() {
    let world = World::new();
    fill(&world, "repo");
    world.git("repo", &["init", "-q"]);
    agree(&world, "repo");
}

#[test]
fn what_is_called_git_and_is_no_repository_is_none() {
    let world = World::new();
    world.write("plain/.git/config", "[core]\n");
    world.write("plain/file", "x\n");
    world.write("plain/a/.GIT/config", "x\n");
    assert_eq!(world.copied("plain").0, ["file"]);
    world.git(".", &["init", "-q", "--bare", "bare"]);
    assert!(world.copied("bare").0.contains(&"HEAD".to_owned()), "it is a folder with files");
}
