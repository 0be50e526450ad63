//! The same backend for a user to whom the host gives no namespaces.
//!
//! What keeps a command from the host is Landlock and the filter alone, and only where
//! somebody accepts that by name.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use crate::rootless::{Ids, end_spawner, engine, suite};
use expect_test::{Expect, expect};

/// What a line says in the sandbox of a directory, and how it ended.
fn says(dir: &Path, exec: &str, line: &str) -> String {
    let mut engine = engine(dir, Ids::NoNamespaces);
    engine.args(["reduced", "run"]).arg(dir.join("home/state")).arg(dir.join("spawner"));
    let done = engine.args(["one", exec, line]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    said + &String::from_utf8_lossy(&done.stderr)
}

/// What it is let off.
const LET_OFF: Expect = expect![[r#"
    it declares no namespaces of its own:
      exec/directory_is_the_workspace
      exec/directory_absolute_and_relative
      exec/user_is_not_root
      output/spilled_where_commands_see_it
      errors/socket_is_refused
      terminal/has_a_session_of_its_own
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
      lifetime/idle_and_frozen_goes_cold
    it declares no snapshots:
      snapshot/taken_is_listed
      snapshot/repeated_gives_the_first
      snapshot/taken_at_once_is_one
      snapshot/sandbox_goes_on
      snapshot/outcomes_are_kept
      snapshot/busy_while_a_command_runs
      snapshot/of_a_frozen_one
      snapshot/of_a_cold_one
      snapshot/unknown_sandbox_is_absent
      snapshot/unknown_snapshot_is_absent
      snapshot/origin_counts_only_without_a_disk
      snapshot/holds_what_was_there_then
      snapshot/holds_all_that_can_be_written
      snapshot/restored_after_its_sandbox_was_destroyed
      snapshot/restored_under_the_same_name
      snapshot/restored_is_listed_with_its_origin
      snapshot/restored_is_the_same_to_the_byte
      snapshot/removed_is_gone
      snapshot/removed_under_those_who_stand_on_it
      snapshot/removed_and_taken_again
      snapshot/forty_in_a_row
      fork/apart_in_both_directions
      fork/is_another_life
      fork/ids_are_its_own
      fork/removals_stay_apart
      fork/links_stay_apart
      fork/appends_and_edits_stay_apart
      fork/many_at_once
      fork/while_its_parent_is_busy
      fork/of_a_fork_of_a_fork
      fork/removed_stays_removed_in_the_next
      fork/resumed_from_cold
      fork/holds_every_kind_of_thing
      fork/renames_stay_apart
      fork/renames_of_directories_stay_apart
      fork/directories_made_anew_are_empty
      fork/modes_stay_apart
      fork/hard_links_stay_apart
      fork/symlinks_stay_apart
      fork/other_kinds_in_the_same_place_stay_apart
      fork/large_files_stay_apart
      fork/closed_files_are_its_own
      lifetime/old_leaves_its_snapshots
      disk/forks_are_bounded_too
    it declares no resource limits:
      resources/memory_of_one_process
      resources/memory_of_many_processes
      resources/memory_of_a_child_is_the_childs
      resources/peak_memory_is_told
      resources/processes_are_bounded
      resources/fork_bomb_ends_at_its_deadline
      resources/cpu_is_bounded
      resources/others_go_on
    it declares no served trees:
      served/read_as_files
      served/nothing_else_is_there
      served/long_folders_are_listed_whole
      served/written_as_files
      served/lengths_are_set
      served/made_moved_and_removed
      served/edited_in_place
      served/replaced_by_a_temporary_file
      served/reached_by_links
      served/mapped_to_memory
      served/open_files_outlive_their_names
      served/programs_start_from_it
      served/a_directory_to_work_in
      served/large_files_are_whole
      served/a_repository_lives_in_it
      served/what_ends_with_its_command_is_outside
      served/another_writer_is_seen_by_the_next_open
      served/another_writer_is_seen_beside_other_readers
      served/another_writer_is_seen_by_the_next_stat
      served/what_one_file_says_of_another_holds
      served/an_overtaken_writer_is_told
      served/a_replacement_of_what_nobody_saw_is_refused
      served/what_is_added_is_never_lost
      served/adding_goes_on_beside_others
      served/locks_by_new_files_are_exact
      served/each_close_is_one_change
      served/what_may_not_be_written_is_refused
      served/without_a_tree_it_fails_at_once
      served/a_kill_ends_what_waits_for_an_answer
      served/a_deadline_ends_what_waits_to_be_written
      served/what_waits_holds_up_nothing_else
      served/destroyed_while_something_waits
      served/frozen_and_thawed
      served/cold_and_resumed
      served/restored_from_a_snapshot
      served/wrong_folders_are_refused"#]];

#[test]
fn the_suite_passes_for_one_without_namespaces() {
    LET_OFF.assert_eq(&suite(Ids::NoNamespaces, "Reduced"));
}

#[test]
fn nobody_gets_it_who_did_not_accept_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = engine(dir.path(), Ids::NoNamespaces);
    engine.arg("run").arg(dir.path().join("home/state")).arg(dir.path().join("spawner"));
    let done = engine.args(["one", "e1", "true"]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success(), "{said}");
    for words in ["user namespaces are refused", "max_user_namespaces", "isolation_min"] {
        assert!(said.contains(words), "{said}");
    }
}

/// Tries all ways out that need no luck, and names those that lead anywhere.
const OUT: &str = r#"
import ctypes, os, signal, socket, sys
home, engine = sys.argv[1], int(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    if libc.syscall(*args) < 0: raise OSError(ctypes.get_errno(), "refused")
def pair():
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"x", home + "/socket")
def link():
    os.link(home + "/secret", "linked")
def by_link():
    os.symlink(home + "/secret", "symlink"); open("symlink").read()
def by_name():
    os.chdir(home); open("secret").read()
tries = {
    "read a file": lambda: open(home + "/secret").read(),
    "read it from there": by_name,
    "read it by a link": by_link,
    "link it": link,
    "list a folder": lambda: os.listdir(home),
    "list the root": lambda: os.listdir("/"),
    "write a file": lambda: open(home + "/secret", "w"),
    "add to a file": lambda: open(home + "/secret", "a"),
    "cut a file": lambda: os.truncate(home + "/secret", 0),
    "make a file": lambda: open(home + "/new", "w"),
    "make a folder": lambda: os.mkdir(home + "/d"),
    "remove a file": lambda: os.unlink(home + "/secret"),
    "move a file here": lambda: os.rename(home + "/secret", "moved"),
    "move a file there": lambda: (open("own", "w"), os.rename("own", home + "/own")),
    "run a program": lambda: os.execv(home + "/program", ["program"]),
    "write the host's tmp": lambda: open("/tmp/outrigger-test-reduced", "w"),
    "write shared memory": lambda: open("/dev/shm/outrigger-test-reduced", "w"),
    "read a terminal": lambda: os.open("/dev/ptmx", os.O_RDWR),
    "read the users' passwords": lambda: open("/etc/shadow").read(),
    "list processes": lambda: os.listdir("/proc"),
    "read a command line": lambda: open(f"/proc/{engine}/cmdline").read(),
    "read an environment": lambda: open(f"/proc/{engine}/environ").read(),
    "read a memory": lambda: open(f"/proc/{engine}/mem").read(1),
    "follow a root": lambda: os.listdir(f"/proc/{engine}/root/"),
    "write a setting": lambda: open("/proc/sys/kernel/core_pattern", "w"),
    "end the engine": lambda: os.kill(engine, signal.SIGTERM),
    "ask for the engine": lambda: os.kill(engine, 0),
    "end it by descriptor": lambda: signal.pidfd_send_signal(os.pidfd_open(engine), signal.SIGTERM),
    "end the guest": lambda: os.kill(os.getppid(), signal.SIGTERM),
    "trace it": lambda: call(101, 16, engine, 0, 0),
    "slow it down": lambda: os.setpriority(os.PRIO_PROCESS, engine, 19),
    "bind it to a core": lambda: os.sched_setaffinity(engine, {0}),
    "limit it": lambda: __import__("resource").prlimit(engine, 7, (0, 0)),
    "watch a folder": lambda: call(254, libc.inotify_init(), home.encode(), 0xfff),
    "talk to the internet": lambda: socket.socket(socket.AF_INET),
    "talk by version 6": lambda: socket.socket(socket.AF_INET6),
    "talk to a daemon": lambda: socket.socket(socket.AF_UNIX).connect(home + "/socket"),
    "send to a daemon": pair,
    "talk to the kernel": lambda: socket.socket(socket.AF_NETLINK),
    "share memory": lambda: call(29, 4711, 4096, 0o1666),
    "share a queue": lambda: call(68, 4711, 0o1666),
    "name a queue": lambda: call(240, b"outrigger-test", 0o102, 0o600, 0),
    "change a mode": lambda: os.chmod(home + "/secret", 0o644),
    "change it from there": lambda: (os.chdir(home), os.chmod("secret", 0o644)),
    "change it by a link": lambda: (os.symlink(home, "here"), os.chmod("here/secret", 0o644)),
    "change it by a descriptor": lambda: os.fchmod(os.open(home + "/secret", os.O_PATH), 0o644),
    "change it by its number": lambda: os.chmod(
        "/proc/self/fd/%d" % os.open(home + "/secret", os.O_PATH), 0o644),
    "change what is shown": lambda: os.fchmod(os.open("/usr", os.O_RDONLY), 0o700),
    "change times": lambda: os.utime(home + "/secret", (1, 1)),
    "change an owner": lambda: os.chown(home + "/secret", -1, os.getgid()),
    "attach something": lambda: os.setxattr(home + "/secret", "user.a", b"b"),
    "make a namespace": lambda: call(272, 0x10000000),
    "make a ring": lambda: call(425, 1, ctypes.create_string_buffer(120)),
}
for name, attempt in tries.items():
    try:
        attempt()
        print("CAN", name)
    except OSError as error:
        pass
os.chdir(os.environ["WORKSPACE"])
print("tried", len(tries))
"#;

#[test]
fn nothing_of_the_user_is_reached_but_the_sandbox() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // Of the same user, in the sandbox and outside.
    assert_eq!(says(dir, "e1", "echo made"), "made\nExited(0)\n");
    let home = dir.join("home");
    for (name, mode) in [("secret", 0o600), ("program", 0o700)] {
        let path = home.join(name);
        std::fs::write(&path, "#!/bin/sh\necho CAN run\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        chown(&path, Some(65_534), Some(65_534)).unwrap();
    }
    let socket = home.join("socket");
    let _daemon = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    chown(&socket, Some(65_534), Some(65_534)).unwrap();
    std::fs::write(home.join("state/sandboxes/one/upper/workspace/out.py"), OUT).unwrap();
    let spawner = crate::support::spawner_of(&home);
    let said = says(dir, "e2", &format!("python3 out.py {} {spawner}", home.display()));
    assert_eq!(said, "tried 53\nExited(0)\n");
    let secret = std::fs::read_to_string(home.join("secret")).unwrap();
    assert_eq!(secret, "#!/bin/sh\necho CAN run\n");
    let found = std::fs::metadata(home.join("secret")).unwrap();
    assert_eq!(found.permissions().mode() & 0o7777, 0o600);
    assert!(found.modified().unwrap().elapsed().unwrap().as_secs() < 3_600);
    end_spawner(dir);
}

/// What programs do with modes and times on their own disk, as each tool does it.
const OWN: &str = r#"
cd "$WORKSPACE" && echo x > f && chmod 640 f && stat -c %a f
chmod 600 "$HOME/../../workspace/f" && stat -c %a f
touch -d @1000 f && stat -c %Y f && ln -s f l && touch -h -d @2000 l && stat -c %Y l f
mkdir d && chmod 500 d && cp -p f g && stat -c '%a %Y' g && cp -a d e && stat -c %a e
tar cf t.tar ./f ./d ./l && mkdir x && tar xf t.tar -C x && stat -c '%a %Y' x/f && stat -c %a x/d
install -m 711 f i && stat -c %a i && mktemp -p . > /dev/null && chmod 755 .
python3 - <<'END'
import os, shutil, ctypes
libc = ctypes.CDLL(None, use_errno=True)
os.chmod("f", 0o604); os.utime("f", (1, 2.5)); print(oct(os.stat("f").st_mode), os.stat("f").st_mtime)
fd = os.open("f", os.O_RDONLY)
os.fchmod(fd, 0o600); os.utime(fd, (3, 4)); print(oct(os.stat("f").st_mode), os.stat("f").st_mtime)
os.chmod("/proc/self/fd/%d" % fd, 0o700); print(oct(os.stat("f").st_mode))
shutil.copy2("f", "h"); shutil.copytree("x", "y", symlinks=True); print(os.stat("h").st_mtime)
print(libc.syscall(235, b"f", (ctypes.c_long * 4)(5, 6, 7, 8)), os.stat("f").st_mtime_ns)
print(libc.syscall(132, b"f", (ctypes.c_long * 2)(9, 10)), os.stat("f").st_mtime)
for call in [(90, None, 0o600), (90, 8, 0o600), (91, 99, 0o600), (235, b"f", 8), (90, b"x" * 5000, 0)]:
    libc.syscall(*call); print(os.strerror(ctypes.get_errno()))
END
"#;

#[test]
fn modes_and_times_are_the_sandboxs_own_on_its_disk() {
    let dir = tempfile::tempdir().unwrap();
    let said = says(dir.path(), "e1", OWN);
    end_spawner(dir.path());
    expect![[r#"
        640
        600
        1000
        2000
        1000
        600 1000
        500
        600 1000
        500
        711
        0o100604 2.5
        0o100600 4.0
        0o100700
        4.0
        0 7000008000
        0 10.0
        Bad address
        Bad address
        Bad file descriptor
        Bad address
        File name too long
        Exited(0)
    "#]]
    .assert_eq(&said);
}

#[test]
fn what_is_left_running_ends_with_the_spawner() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let line = "(setsid sleep 4321 > /dev/null 2>&1 < /dev/null & echo $! > pid) && cat pid";
    let said = says(dir, "e1", line);
    let pid: i32 = said.lines().next().unwrap().parse().expect(&said);
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let fd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    end_spawner(dir);
    let mut fds = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
    let limit = rustix::event::Timespec { tv_sec: 20, tv_nsec: 0 };
    assert_eq!(rustix::event::poll(&mut fds, Some(&limit)).unwrap(), 1, "it runs on");
}
