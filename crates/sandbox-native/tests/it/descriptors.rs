//! What is open in a sandbox: every further descriptor is a way out.

use std::collections::BTreeMap;

use crate::support::*;
use expect_test::expect;

#[tokio::test]
async fn a_command_has_its_standard_streams_alone() {
    let sandbox = single().await;
    // The fourth is the directory that `ls` itself reads.
    let executed = run(&*sandbox, argv(&["ls", "/proc/self/fd"])).await;
    assert_eq!(String::from_utf8_lossy(&executed.stdout), "0\n1\n2\n3\n");
    // Inherited by children too, and nothing else is.
    assert_eq!(
        says(&*sandbox, "ls /proc/self/fd; ls /proc/$$/fd; true").await,
        "0\n1\n2\n3\n0\n1\n2\n"
    );
    let input = run(&*sandbox, argv(&["readlink", "/proc/self/fd/0"])).await;
    assert_eq!(input.stdout, b"/dev/null\n");
    // Neither is what another command has open while both run.
    let (first, second) = tokio::join!(
        says(&*sandbox, "exec 7< /etc/passwd; touch open; until [ -e seen ]; do sleep 0.01; done"),
        says(&*sandbox, "until [ -e open ]; do sleep 0.01; done; ls /proc/self/fd; touch seen")
    );
    assert_eq!((first.as_str(), second.as_str()), ("", "0\n1\n2\n3\n"));
}

#[tokio::test]
async fn the_guest_has_what_it_serves_with_alone() {
    let sandbox = single().await;
    // A command is over, so that what one leaves behind would show.
    assert_eq!(says(&*sandbox, "true").await, "");
    let guest = guest_of(sandbox.world.state.path()).as_raw_nonzero();
    let mut held = BTreeMap::new();
    for fd in std::fs::read_dir(format!("/proc/{guest}/fd")).unwrap().flatten() {
        let target = std::fs::read_link(fd.path()).unwrap().to_string_lossy().into_owned();
        *held.entry(kind(&target)).or_insert(0) += 1;
    }
    let held: String = held.iter().map(|(kind, count)| format!("{count} {kind}\n")).collect();
    // Streams 0 to 2 and its own null; the control socket and the one connection; the
    // directory for whole outputs and the group of its commands, each a mount of its own;
    // beneath it, and nowhere else, the groups of all commands and of the next one.
    expect![[r#"
        4 /dev/null
        1 count of kills for memory
        2 directory without a way up
        2 eventfd
        2 group for the next command
        1 group of all commands
        1 signalfd
        2 socket
    "#]]
    .assert_eq(&held);
}

fn kind(target: &str) -> String {
    match target {
        "/" => "directory without a way up".to_owned(),
        "/run" => "group of all commands".to_owned(),
        target if target.starts_with("/run/x") => "group for the next command".to_owned(),
        target if target.ends_with("/memory.oom_control") || target.ends_with("/memory.events") => {
            "count of kills for memory".to_owned()
        }
        target if target.starts_with("socket:") => "socket".to_owned(),
        target => target.trim_start_matches("anon_inode:").trim_matches(['[', ']']).to_owned(),
    }
}
