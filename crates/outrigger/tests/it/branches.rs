//! Commits that an agent made, as a branch of the person's repository.

use crate::support::{Ran, Turn, World, shell};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A repository with one commit, whose settings and hooks would leave a file.
fn repository(world: &World) -> PathBuf {
    let dir = world.dir("project", &[("main.js", b"1\n"), (".gitignore", b".venv\n")]);
    world.git(&dir, &["init", "-q"]);
    world.git(&dir, &["add", "."]);
    world.git(&dir, &["commit", "-qm", "first"]);
    let canary = format!("#!/bin/sh\ntouch {}\n", world.path("canary").display());
    for hook in ["reference-transaction", "post-index-change", "fsmonitor", "post-checkout"] {
        let path = dir.join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &canary).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {0}\n\thooksPath = .git/hooks\n\
         \tsshCommand = {0}\n\tpager = {0}\n[filter \"x\"]\n\tclean = {0}\n\tsmudge = {0}\n\
         [remote \"origin\"]\n\turl = ext::{0}\n\tpromisor = true\n",
        dir.join(".git/hooks/fsmonitor").display()
    );
    fs::write(dir.join(".git/config"), config).unwrap();
    dir
}

/// The repository as it may be looked at again.
fn disarmed(world: &World, dir: &Path) {
    assert!(!world.path("canary").exists(), "something of the repository ran");
    fs::remove_dir_all(dir.join(".git/hooks")).unwrap();
    fs::write(dir.join(".git/config"), "[core]\n\trepositoryformatversion = 0\n").unwrap();
}

fn run(world: &World, dir: &Path, commands: &[&str], more: &[&str]) -> Ran {
    let calls: Vec<_> = commands.iter().map(|command| [shell(command)]).collect();
    let turns: Vec<_> = calls.iter().map(|calls| Turn(calls)).collect();
    let script = world.script(&turns);
    let dir = dir.display().to_string();
    let args = ["run", "Do it.", "--dir", &dir, "--script", &script, "--name", "it"];
    world.run(&[&args[..], more].concat())
}

#[test]
fn commits_become_a_branch_and_nothing_of_the_repository_runs() {
    let world = World::new();
    let dir = repository(&world);
    let index = fs::read(dir.join(".git/index")).unwrap();
    let commit = "git config user.name 'A U Thor' && git config user.email a@example.org && \
        echo 2 > main.js && git commit -qam second && echo n > new.js && git add new.js && \
        git commit -qm third -m 'With a body.' && echo loose > loose.js";
    let told = run(&world, &dir, &[commit], &["--branch"]).expect(0).stderr;
    assert!(told.contains("● 2 commits on the new branch outrigger/it"), "{told}");
    let rest = "! 1 file is not committed as it stands, and in the patch alone: loose.js";
    assert!(told.contains(rest), "{told}");
    disarmed(&world, &dir);
    assert_eq!(fs::read(dir.join(".git/index")).unwrap(), index);
    assert_eq!(fs::read_to_string(dir.join("main.js")).unwrap(), "1\n");
    assert!(!dir.join("new.js").exists());
    let log = ["log", "--format=%an <%ae>|%s|%b", "main..outrigger/it"];
    let expected =
        "A U Thor <a@example.org>|third|With a body.\n\nA U Thor <a@example.org>|second|\n";
    assert_eq!(world.git(&dir, &log), expected);
    assert_eq!(
        world.git(&dir, &["merge-base", "main", "outrigger/it"]),
        world.git(&dir, &["rev-parse", "main"])
    );
    world.git(&dir, &["fsck", "--strict", "--full"]);
    // The same once more, as a program is told.
    let object = world.ran(0, &["sessions", "apply", "it", "--branch", "--json"]).json();
    let branch =
        json!({ "name": "outrigger/it", "commits": 2, "hazards": [], "uncommitted": ["loose.js"] });
    assert_eq!((&object["branch"], &object["applied"]), (&branch, &json!(false)));
    assert_eq!(world.git(&dir, &["branch", "--list", "outrigger/*"]).lines().count(), 1);
    world.ran(2, &["sessions", "apply", "it", "--branch", "--all"]);
}

#[test]
fn without_a_commit_there_is_no_branch() {
    let world = World::new();
    let dir = repository(&world);
    let told = run(&world, &dir, &["echo 2 > main.js"], &["--branch"]).expect(0).stderr;
    let none = "no branch was made: the sandbox has no commit that your history has not";
    assert!(told.contains(none) && told.contains("apply it with: git -C"), "{told}");
    let plain = world.dir("plain", &[("a", b"a")]).display().to_string();
    let script = world.script(&[Turn(&[shell("git init -q && git add . && git commit -qm x")])]);
    let told = world.ran(0, &["run", "x", "--dir", &plain, "--script", &script, "--branch"]).stderr;
    assert!(told.contains("no branch was made: the directory is not the top of"), "{told}");
    disarmed(&world, &dir);
    assert_eq!(world.git(&dir, &["branch", "--format=%(refname:short)"]), "main\n");
}

#[test]
fn a_session_remembers_that_it_makes_a_branch() {
    let world = World::new();
    let dir = repository(&world);
    let commands = ["git commit -q --allow-empty -m empty", "true"];
    run(&world, &dir, &commands, &["--branch", "--max-steps", "1"]).expect(11);
    let object = world.ran(0, &["sessions", "resume", "it", "--max-steps", "9", "--json"]).json();
    assert_eq!(object["branch"]["commits"], json!(1));
    let object = world.ran(0, &["sessions", "apply", "it", "--json"]).json();
    assert_eq!((&object["branch"], &object["applied"]), (&json!(null), &json!(true)));
    disarmed(&world, &dir);
    assert_eq!(world.git(&dir, &["log", "--format=%s", "-1", "outrigger/it"]), "empty\n");
}

#[test]
fn what_is_hostile_makes_no_branch() {
    for (command, why) in [
        (
            "git commit -q --allow-empty -m x && \
             tree=$(printf '100644 blob %s\\tHEAD\\n040000 tree %s\\tobjects\\n040000 tree %s\\trefs\\n' \
             $(git rev-parse HEAD:main.js) $(git rev-parse HEAD^{tree}) $(git rev-parse HEAD^{tree}) | git mktree) && \
             git update-ref HEAD $(git commit-tree -p HEAD -m x $tree)",
            "would be a repository by its shape",
        ),
        ("git checkout -q --orphan x && git commit -qm x", "begins a history of its own"),
        (
            "ln -s .git/config link && git add link && git commit -qm x",
            "link: it links to `.git/config`, into what git keeps",
        ),
        (
            "printf '#!/bin/sh\\nexec yes\\n' > .venv/bin/git && chmod +x .venv/bin/git",
            "the commits of the sandbox have more than 63 MiB",
        ),
        (
            "printf '#!/bin/sh\\necho hello\\n' > .venv/bin/git && chmod +x .venv/bin/git",
            "git in the sandbox answered something else than it was asked",
        ),
    ] {
        let world = World::new();
        let dir = repository(&world);
        let files: &[(&str, &[u8])] =
            &[("pyproject.toml", b""), (".venv/pyvenv.cfg", b"x"), (".venv/bin/x", b"x")];
        world.dir("project", files);
        let before = tree(&dir);
        let ran = run(&world, &dir, &[command], &["--branch", "--json"]).expect(12);
        let object = ran.json();
        let message = object["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(why), "{message}");
        assert_eq!(object["branch"], json!(null));
        assert_eq!(tree(&dir), before);
        disarmed(&world, &dir);
    }
}

/// Every path of the repository.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path.clone());
            }
            all.push(path);
        }
    }
    all.sort();
    all
}
