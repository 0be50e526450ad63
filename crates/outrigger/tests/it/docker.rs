//! Sandboxes in Docker, as the real binary has them.

use crate::daemon::{self, Daemon};
use crate::docker_secrets::image;
use crate::support::{Turn, World, shell};
use std::fs;

/// What carries the label of an installation.
fn owned(daemon: &Daemon, owner: &str) -> Vec<String> {
    let filter = format!("label=outrigger.owner={owner}");
    let listed = daemon.docker(&["volume", "ls", "-q", "--filter", &filter]);
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn what_a_crash_left_in_docker_goes_with_the_end_of_any_session() {
    let daemon = daemon::shared();
    let world = World::new();
    let config = format!(
        "[[sandbox]]\nname = \"work\"\n[[sandbox]]\nname = \"apart\"\nbackend = \"docker\"\n\
         [docker]\nsocket = {:?}\nimage = \"never-used:1\"\n",
        daemon.socket.display().to_string()
    );
    world.dir("config", &[("outrigger/config.toml", config.as_bytes())]);
    // It is there, and nothing of it is ever run.
    fs::write(world.path("empty.tar"), [0; 10_240]).unwrap();
    daemon.docker(&["import", world.path("empty.tar").to_str().unwrap(), "never-used:1"]);
    world.ran(0, &["doctor"]);
    let owner = fs::read_to_string(world.harness().join("installation")).unwrap();
    let (ours, theirs) = (owner.trim().to_owned(), format!("{}x", &owner.trim()[1..]));
    for owner in [&ours, &theirs] {
        let label = format!("--label=outrigger.owner={owner}");
        let name = format!("outrigger.{owner}.disk-workspace.0123456789abcdef");
        daemon.docker(&["volume", "create", &label, &name]);
    }
    assert_eq!((owned(&daemon, &ours).len(), owned(&daemon, &theirs).len()), (1, 1));
    let script = world.script(&[Turn(&[shell("true")])]);
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let ran = world.ran(0, &["run", "Go.", "--dir", dir.to_str().unwrap(), "--script", &script]);
    assert_eq!(owned(&daemon, &ours), [""; 0], "{}{}", ran.stdout, ran.stderr);
    for volume in owned(&daemon, &theirs) {
        daemon.docker(&["volume", "rm", &volume]);
    }
}

#[test]
fn the_history_goes_along_into_a_container_and_commits_come_back() {
    let daemon = daemon::shared();
    let world = World::new();
    let (socket, image) = (daemon.socket.display().to_string(), image(&world, &daemon));
    world.configure(&format!(
        "[sandbox]\nbackend = \"docker\"\n[docker]\nsocket = {socket:?}\nimage = {image:?}\n"
    ));
    let dir = world.dir("repo", &[("file", b"one\n")]);
    world.git(&dir, &["init", "--quiet"]);
    world.git(&dir, &["add", "."]);
    world.git(&dir, &["commit", "--quiet", "-m", "First"]);
    let command = "git log --format=%s > log && git status --short >> log && echo two >> file \
        && git commit --quiet -am Second";
    let script = world.script(&[Turn(&[shell(command)])]);
    let dir = dir.to_str().unwrap();
    let asked = ["run", "Go.", "--dir", dir, "--script", &script, "--branch"];
    let told = world.ran(0, &asked).stderr;
    assert!(told.contains("1 commit on the new branch"), "{told}");
    let patch = world.ran(0, &["sessions", "diff"]).stdout;
    assert!(patch.contains("\n+First\n+?? log\n"), "{patch}");
    let branch = world.git(dir.as_ref(), &["log", "--format=%s", "--branches=outrigger"]);
    assert_eq!(branch, "Second\nFirst\n");
}
