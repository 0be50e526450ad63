//! Bad input: each a clear error with what to do, the documented exit code, and
//! nothing written to the user's directory.

use crate::support::{OUTRIGGER, Ran, Turn, World, fed, shell};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// An id without rights: `nobody`'s on most systems, but any would do.
const NOBODY: u32 = 65_534;

/// The binary without root's power to read everything. Everything in this world is
/// that user's, but what a test takes away again.
pub(crate) fn powerless(world: &World, args: &[&str]) -> Command {
    if !rustix::process::geteuid().is_root() {
        return world.outrigger(args);
    }
    let program = world.path("outrigger");
    // The path to the original may not be open to everybody.
    if !program.exists() && fs::hard_link(OUTRIGGER, &program).is_err() {
        fs::copy(OUTRIGGER, &program).unwrap();
    }
    fs::create_dir_all(world.data()).unwrap();
    fs::set_permissions(world.path(""), Permissions::from_mode(0o755)).unwrap();
    for name in ["home", "config", "cache", "state", "data", "repo"] {
        drop(chown(world.path(name), Some(NOBODY), Some(NOBODY)));
    }
    let mut command = world.command(program.to_str().unwrap());
    command.arg("--data-dir").arg(world.data()).args(args).uid(NOBODY).gid(NOBODY);
    command
}

/// It fails with this code, and says all of that.
#[track_caller]
fn says(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, Some(code), "{}\n{}", ran.stdout, ran.stderr);
    for part in parts {
        assert!(ran.stderr.contains(part), "`{part}` is missing in: {}", ran.stderr);
    }
    assert!(ran.stderr.contains("hint: "), "no hint in: {}", ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
}

fn run(world: &World, dir: &Path, task: &str) -> Ran {
    let script = world.script(&[]);
    world.run(&["run", "--script", &script, "--dir", dir.to_str().unwrap(), task])
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn an_unreadable_directory_or_file_is_named() {
    let world = World::new();
    let dir = world.dir("repo", &[("open", b"x"), ("shut/inner", b"x"), ("secret", b"x")]);
    let script = world.script(&[]);
    let shut =
        |path: &str| fs::set_permissions(dir.join(path), Permissions::from_mode(0o000)).unwrap();
    let open =
        |path: &str| fs::set_permissions(dir.join(path), Permissions::from_mode(0o755)).unwrap();
    let args = ["run", "--script", &script, "--dir", dir.to_str().unwrap(), "a task"];
    for path in ["", "shut", "secret"] {
        shut(path);
        let ran = Ran::of(powerless(&world, &args).output().unwrap());
        open(path);
        let full = dir.join(path).display().to_string();
        says(&ran, 2, &[full.trim_end_matches('/'), "Permission denied"]);
    }
    assert_eq!(names(&dir), ["open", "secret", "shut"]);
}

#[test]
fn a_directory_that_is_none_is_named() {
    let world = World::new();
    let missing = world.path("nowhere");
    says(&run(&world, &missing, "a task"), 4, &["nowhere", "No such file", "--dir"]);
    let file = world.dir("repo", &[("file", b"x")]).join("file");
    says(&run(&world, &file, "a task"), 2, &["repo/file", "Not a directory", "--dir"]);
}

#[test]
fn a_repository_of_a_gigabyte_is_refused_at_once() {
    let world = World::new();
    let dir = world.dir("repo", &[("small", b"x")]);
    for part in ["a", "b", "c", "d"] {
        File::create(dir.join(part)).unwrap().set_len(256 << 20).unwrap();
    }
    let script = world.script(&[]);
    for git in [false, true] {
        if git {
            world.git(&dir, &["init", "-q"]);
        }
        // It could not copy one of them: what is too large is refused before that.
        let mut sh = world.command("sh");
        sh.args(["-c", "ulimit -f 65536; exec \"$0\" \"$@\"", OUTRIGGER, "--data-dir"]);
        sh.arg(world.data()).args(["run", "--script", &script, "a task", "--dir"]).arg(&dir);
        let ran = Ran::of(sh.output().unwrap());
        says(&ran, 2, &["repo", "more than 512 MiB", ".gitignore", "workspace.mib_max"]);
    }
    fs::write(dir.join(".gitignore"), "[a-d]\n").unwrap();
    assert_eq!(run(&world, &dir, "a task").code, Some(0));
}

#[test]
fn more_files_than_the_limit_are_refused() {
    let world = World::new();
    let dir = world.dir("repo", &[("a", b""), ("b", b""), ("c/d", b"")]);
    let config = world.path("own.toml");
    fs::write(&config, "[workspace]\nfiles_max = 2\n").unwrap();
    let (config, script) = (config.to_str().unwrap(), world.script(&[]));
    let dir = dir.to_str().unwrap();
    let ran = world.run(&["--config", config, "run", "--script", &script, "--dir", dir, "a task"]);
    says(&ran, 2, &["repo", "more than 2 files", "workspace.files_max"]);
}

#[test]
fn what_is_no_file_is_left_out_and_named() {
    for git in [false, true] {
        let world = World::new();
        let dir = world.dir("repo", &[("plain", b"x")]);
        mknodat(CWD, dir.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
        let _socket = UnixListener::bind(dir.join("socket")).unwrap();
        let canary = world.path("canary");
        fs::write(&canary, "canary of the host").unwrap();
        symlink(&canary, dir.join("link")).unwrap();
        fs::write(dir.join(std::ffi::OsStr::from_bytes(b"caf\xe9")), "x").unwrap();
        if git {
            world.git(&dir, &["init", "-q"]);
        }
        let script = world.script(&[Turn(&[shell("ls; cat link")])]);
        let ran = world.run(&["run", "--script", &script, "--dir", dir.to_str().unwrap(), "look"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("no UTF-8"), "{}", ran.stderr);
        if !git {
            // Git lists neither of them in the first place.
            for part in ["! not copied: pipe", "! not copied: socket"] {
                assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
            }
        }
        assert!(!ran.stderr.contains("canary of"), "a link led out: {}", ran.stderr);
    }
}

#[test]
fn a_guide_that_is_a_pipe_does_not_hang() {
    let world = World::new();
    let dir = world.dir("repo", &[("plain", b"x")]);
    mknodat(CWD, dir.join("AGENTS.md"), FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    assert_eq!(run(&world, &dir, "a task").code, Some(0));
}

#[test]
fn a_task_of_a_megabyte_is_done_and_a_larger_one_than_a_message_is_refused() {
    let world = World::new();
    let dir = world.dir("repo", &[("plain", b"x")]);
    let script = world.script(&[]);
    let args = ["run", "--script", &script, "--dir", dir.to_str().unwrap(), "-"];
    let task = "Repair it. ".repeat(1 << 20).into_bytes();
    let ran = fed(world.outrigger(&args), &task[..1 << 20]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said = world.events(&world.session())[1]["said"]["text"].as_str().unwrap().len();
    assert_eq!(said, 1 << 20);
    let ran = fed(world.outrigger(&args), &task[..5 << 20]);
    says(&ran, 2, &["standard input has more than 4 MiB", "file"]);
    assert_eq!(world.sessions().len(), 1);
}

#[test]
fn an_empty_task_is_refused() {
    let world = World::new();
    let dir = world.dir("repo", &[("plain", b"x")]);
    for task in ["", " \n\t"] {
        says(&run(&world, &dir, task), 2, &["the task is empty"]);
    }
    let script = world.script(&[]);
    let args = ["run", "--script", &script, "--dir", dir.to_str().unwrap(), "-"];
    says(&fed(world.outrigger(&args), b""), 2, &["the task is empty"]);
    assert_eq!(world.run(&["run"]).code, Some(2));
    assert!(
        !world.harness().join("journal.db").exists(),
        "something was kept of a task that never was"
    );
}

#[test]
fn too_much_context_is_refused() {
    let world = World::new();
    let dir = world.dir("repo", &[("plain", b"x")]);
    let script = world.script(&[]);
    let args = ["run", "--script", &script, "--dir", dir.to_str().unwrap(), "a task"];
    let ran = fed(world.outrigger(&args), &vec![b'x'; 5 << 20]);
    says(&ran, 2, &["standard input has more than 4 MiB"]);
    let ran = fed(world.outrigger(&args), b"\xff\xfe some context");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// Runs the binary by a shell, with redirections that `Command` can't make.
fn redirected(world: &World, script: &str, redirection: &str) -> Ran {
    let dir = world.dir("repo", &[("plain", b"x")]);
    let mut sh = world.command("sh");
    sh.arg("-c").arg(format!("\"$@\" {redirection}")).arg("sh").arg(OUTRIGGER);
    sh.arg("--data-dir").arg(world.data()).args(["run", "--script", script, "--dir"]);
    Ran::of(sh.arg(dir).arg("a task").output().unwrap())
}

#[test]
fn closed_streams_are_no_harm() {
    for redirection in ["<&-", ">&-", "<&- >&-", "2>&-", "<&- >&- 2>&-", "| true"] {
        let world = World::new();
        let script = world.script(&[]);
        let ran = redirected(&world, &script, redirection);
        assert!(!ran.stderr.contains("panicked"), "{redirection}: {}", ran.stderr);
        assert_eq!(ran.code, Some(0), "{redirection}: {}", ran.stderr);
        // `| true` ends with its own code; the session tells that ours went well.
        crate::support::until("the session is answered", || {
            (world.sessions().first()?["status"] == "answered").then_some(())
        });
    }
}

#[test]
fn an_answer_that_can_not_be_written_is_told() {
    let world = World::new();
    let ran = redirected(&world, &world.script(&[]), ">/dev/full");
    let show = format!("outrigger sessions show {}", world.session());
    says(&ran, 15, &["standard output", "No space left on device", &show]);
}

#[test]
fn a_reader_that_leaves_early_causes_no_panic() {
    let world = World::new();
    world.ran(0, &["demo"]);
    for args in [&["sessions", "logs", &world.session()][..], &["--help"], &["doctor", "--json"]] {
        let mut command = world.outrigger(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert!(!ran.stderr.contains("panicked"), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn arguments_that_are_no_utf8_are_refused_and_paths_are_not() {
    let world = World::new();
    let odd = std::ffi::OsStr::from_bytes(b"caf\xe9");
    let mut command = world.outrigger(&["run"]);
    let ran = Ran::of(command.arg(odd).output().unwrap());
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("UTF-8"), "{}", ran.stderr);
    let dir = world.path("").join(odd);
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("plain"), "x").unwrap();
    let script = world.script(&[]);
    let mut command = world.outrigger(&["run", "--script", &script, "a task", "--dir"]);
    let ran = Ran::of(command.arg(&dir).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn a_bad_script_is_named_with_its_line() {
    let world = World::new();
    let dir = world.dir("repo", &[("plain", b"x"), ("bad.toml", b"[[turn]]\ntext = 3\n")]);
    let bad = dir.join("bad.toml");
    for (script, parts) in [
        (bad.to_str().unwrap(), ["bad.toml", "line 2"]),
        ("nowhere.toml", ["nowhere.toml", "No such file"]),
    ] {
        let ran = world.run(&["run", "--script", script, "--dir", dir.to_str().unwrap(), "a task"]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        for part in parts {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
    }
}
