//! The process that drives a session, as the kernel sees it. What it can't do is tried in
//! `confinement/tests.rs`.

use crate::support::{Turn, World, is_alive, parent_of, processes, shell, until};
use std::fs;

/// A line of `/proc/PID/status`, of each of its threads.
fn of_threads(pid: u32, name: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let line = |path: std::path::PathBuf| {
        // A thread may have ended.
        let status = fs::read_to_string(path.join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches(':').trim().to_owned())
    };
    tasks.filter_map(|task| line(task.path())).collect()
}

#[test]
fn who_drives_a_session_is_confined_and_its_supervisor_ends_with_it() {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let script = world.script(&[Turn(&[shell("sleep 1000")])]);
    let dir = dir.to_str().unwrap();
    let mut running = world.start(&["run", "Wait.", "--dir", dir, "--script", &script]);
    world.await_command();
    let harness = running.pid();
    for (name, value) in [("Seccomp", "2"), ("NoNewPrivs", "1")] {
        let all = of_threads(harness, name);
        assert!(all.len() > 1 && all.iter().all(|it| it == value), "{name}: {all:?}");
    }
    let below: Vec<_> =
        processes().into_iter().filter(|pid| parent_of(*pid) == Some(harness)).collect();
    let [supervisor] = below[..] else { panic!("{below:?} are below the harness") };
    assert!(of_threads(supervisor, "Seccomp").iter().all(|it| it == "0"));
    running.kill();
    until("the supervisor ends", || (!is_alive(supervisor)).then_some(()));
    // Another one goes on, with a spawner that is started anew if it has to be.
    world.stop_spawner();
    world.ran(0, &["sessions", "cancel", "@last"]);
}

#[test]
fn a_data_directory_of_an_older_layout_is_told_how_it_is_moved() {
    let world = World::new();
    fs::create_dir(world.data()).unwrap();
    fs::write(world.data().join("journal.db"), "").unwrap();
    let told = world.ran(15, &["sessions", "ls"]).stderr;
    assert!(told.contains("older version") && told.contains("mkdir -m 700 harness"), "{told}");
    let line = told.split('`').nth(1).unwrap();
    let mut sh = world.command("sh");
    assert!(sh.args(["-c", line]).status().unwrap().success(), "{line}");
    assert!(world.harness().join("journal.db").exists());
}
