//! The native backend for an ordinary user.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use crate::images::{gzip, image, layers, layout};
use crate::mounts;
use crate::support::*;
use expect_test::{Expect, expect};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

/// A user of most systems that owns nothing.
const NOBODY: u32 = 65_534;

/// Which ids the user has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ids {
    /// Its own.
    One,
    /// Subordinate ones beside it.
    Subordinate,
}

/// The first of ids that belong to nobody on most hosts.
const FIRST: u32 = 2_130_706_432;

/// An engine of an ordinary user, with a directory of its own.
fn engine(dir: &Path, ids: Ids) -> Command {
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    // Copies, because what cargo built may lie where only its owner can go.
    for name in ["engine", "spawner"] {
        let copy = dir.join(name);
        if !copy.exists() {
            std::fs::copy(example(name), copy).unwrap();
        }
    }
    let home = dir.join("home");
    if !home.exists() {
        std::fs::create_dir(&home).unwrap();
        assert!(rustix::process::geteuid().is_root(), "this needs root, to be somebody else");
        chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let table = match ids {
        Ids::One => String::new(),
        Ids::Subordinate => format!("nobody:{FIRST}:65536\n"),
    };
    let device = dir.join("fuse");
    if !device.exists() {
        // As most hosts have it: for everybody.
        let (kind, mode) = (FileType::CharacterDevice, Mode::from_raw_mode(0o666));
        mknodat(CWD, &device, kind, mode, makedev(10, 229)).unwrap();
        std::fs::set_permissions(&device, std::fs::Permissions::from_mode(0o666)).unwrap();
    }
    let path = dir.join("subordinate");
    std::fs::write(&path, table).unwrap();
    // In mounts of its own the user's ids are as the test wants them.
    let script = "mount --bind \"$1\" /etc/subuid && mount --bind \"$1\" /etc/subgid && \
                  mount --bind \"$2\" /dev/fuse && \
                  shift 2 && exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"";
    let mut engine = Command::new("unshare");
    engine.args(["--mount", "--propagation=private", "sh", "-ec", script, "sh"]);
    engine.arg(path).arg(device);
    engine.arg(dir.join("engine"));
    engine
}

fn suite(ids: Ids, tier: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = engine(dir.path(), ids);
    engine.arg("conformance").arg(dir.path().join("home/state")).arg(dir.path().join("spawner"));
    let done = engine.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    let (before, _) = said.split_once("\nexec/").expect("the table of cases follows");
    let (given, let_off) = before.split_once('\n').expect("the tier comes first");
    assert_eq!(given, tier);
    let_off.to_owned()
}

/// What the sandboxes of ordinary users are let off here, whichever ids they have: they
/// have no cgroups.
const LET_OFF: Expect = expect![[r#"
    it declares no frozen suspension:
      frozen/found_and_listed
      frozen/a_command_thaws_it
      frozen/create_thaws_it
      frozen/repeated_is_fine
      frozen/files_are_at_hand
      frozen/outcomes_are_kept
      frozen/busy_while_a_command_runs
      frozen/unknown_is_absent
      frozen/destroyed_while_frozen
      frozen/again_and_again
      frozen/then_cold
      frozen/processes_stop_and_go_on
      frozen/destroyed_with_its_processes
      snapshot/of_a_frozen_one
      lifetime/idle_and_frozen_goes_cold
      served/frozen_and_thawed
    it declares no resource limits:
      resources/memory_of_one_process
      resources/memory_of_many_processes
      resources/memory_of_a_child_is_the_childs
      resources/peak_memory_is_told
      resources/processes_are_bounded
      resources/fork_bomb_ends_at_its_deadline
      resources/cpu_is_bounded
      resources/others_go_on"#]];

#[test]
fn the_suite_passes_for_an_ordinary_user() {
    LET_OFF.assert_eq(&suite(Ids::One, "RootlessSingle"));
}

#[test]
fn the_suite_passes_for_an_ordinary_user_with_subordinate_ids() {
    LET_OFF.assert_eq(&suite(Ids::Subordinate, "RootlessRange"));
}

fn image_runs(ids: Ids) -> String {
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("image.tar");
    std::fs::write(&archive, layout(&image(&layers(), gzip))).unwrap();
    let done = engine(dir.path(), ids)
        .arg("run")
        .arg(dir.path().join("home/state"))
        .arg(dir.path().join("spawner"))
        .args([
            "one",
            "e1",
            "cat /etc/motd; ls /opt/old /etc; id -u; stat -c %u:%g /opt /etc/motd; \
             sh -c 'echo x > /opt/own && cat /opt/own' 2>/dev/null || echo denied; \
             echo m > /workspace/m && mv /workspace/m /tmp && ln /tmp/m /home/agent && \
             cat /home/agent/m; \
             sh -c 'mkdir /top && echo t > /top/t && mv /top/t /opt && cat /opt/t' \
             2>/dev/null || echo denied; \
             mknod /workspace/w c 0 0 2>/dev/null || echo denied",
        ])
        .arg(archive)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    said + &String::from_utf8_lossy(&done.stderr)
}

#[test]
fn an_image_runs_for_an_ordinary_user() {
    expect![[r#"
        from above
        /etc:
        motd
        resolv.conf

        /opt/old:
        new
        1000
        1000:1000
        1000:1000
        x
        m
        t
        denied
        Exited(0)
    "#]]
    .assert_eq(&image_runs(Ids::One));
}

#[test]
fn an_image_runs_for_an_ordinary_user_with_subordinate_ids() {
    expect![[r#"
        from above
        /etc:
        motd
        resolv.conf

        /opt/old:
        new
        1000
        0:0
        0:0
        denied
        m
        denied
        denied
        Exited(0)
    "#]]
    .assert_eq(&image_runs(Ids::Subordinate));
}

#[test]
fn without_a_device_served_folders_are_empty_and_stay_so() {
    for ids in [Ids::One, Ids::Subordinate] {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("image.tar");
        std::fs::write(&archive, layout(&image(&layers(), gzip))).unwrap();
        let mut tools = engine(dir.path(), ids);
        let mut image = engine(dir.path(), ids);
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(dir.path().join("fuse"), mode).unwrap();
        let line = "ls -A /memory; mkdir /memory/x 2>/dev/null || echo stays empty";
        for (engine, name) in [(&mut tools, "tools"), (&mut image, "image")] {
            engine.arg("run").arg(dir.path().join("home/state")).arg(dir.path().join("spawner"));
            engine.args([name, "e1", line]);
        }
        image.arg(&archive);
        for engine in [&mut tools, &mut image] {
            let done = engine.output().unwrap();
            let said = String::from_utf8_lossy(&done.stdout).into_owned();
            assert_eq!(said, "stays empty\nExited(0)\n", "{done:?}");
        }
    }
}

#[test]
fn who_listens_in_what_is_shown_does_not_answer_an_ordinary_user() {
    let shown = mounts::to_show("/var/lib");
    let _listener = mounts::listen(shown.path(), "socket");
    let words = mounts::calls(shown.path(), &["socket"]);
    let line = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''")));
    let line = line.collect::<Vec<_>>().join(" ");
    for ids in [Ids::One, Ids::Subordinate] {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = engine(dir.path(), ids);
        engine.arg("shown").arg(shown.path()).arg("run");
        engine.arg(dir.path().join("home/state")).arg(dir.path().join("spawner"));
        let done = engine.args(["one", "e1", &line]).output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert_eq!(said, "socket refused\nread\nExited(0)\n", "{done:?}");
    }
}

/// A line in a sandbox of a directory that stays.
fn says(dir: &Path, ids: Ids, exec: &str, line: &str) -> String {
    let mut engine = engine(dir, ids);
    engine.arg("run").arg(dir.join("home/state")).arg(dir.join("spawner"));
    let done = engine.args(["one", exec, line]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    said + &String::from_utf8_lossy(&done.stderr)
}

/// Ends the spawner of a state directory, and with it its guests.
fn end_spawner(dir: &Path) {
    let pid = rustix::process::Pid::from_raw(spawner_of(&dir.join("home"))).unwrap();
    let fd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let mut fds = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut fds, None).unwrap();
}

#[test]
fn a_disk_keeps_the_ids_that_it_was_made_with() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let look = "echo x >> f && wc -l < f; cat /proc/self/uid_map";
    let mut said = says(dir, Ids::One, "e1", look);
    end_spawner(dir);
    // Its owner has subordinate ids now, and what is there is still of one id.
    said += &says(dir, Ids::Subordinate, "e2", look);
    end_spawner(dir);
    std::fs::remove_dir_all(dir.join("home")).unwrap();
    said += &says(dir, Ids::Subordinate, "e3", look);
    end_spawner(dir);
    said += &says(dir, Ids::Subordinate, "e4", look);
    end_spawner(dir);
    // On the host its files are those of the subordinate ids.
    let disk = dir.join("home/state/sandboxes/one/upper");
    let owner = |path: &str| std::fs::metadata(disk.join(path)).unwrap().uid() - FIRST;
    assert_eq!((owner("."), owner("workspace"), owner("workspace/f")), (0, 1000, 1000));
    // Without them, it is nobody's: refused, and not taken for less.
    let refused = says(dir, Ids::One, "e5", look);
    assert!(refused.contains("belongs to subordinate ids, which are gone"), "{refused}");
    assert!(refused.contains("usermod --add-subuids"), "{refused}");
    expect![[r#"
        1
              1000          0          1
        Exited(0)
        2
              1000          0          1
        Exited(0)
        1
                 0          1      65535
        Exited(0)
        2
                 0          1      65535
        Exited(0)
    "#]]
    .assert_eq(&said);
}
