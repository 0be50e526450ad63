//! Every mount of a sandbox with its options, as the kernel tells them.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::support::*;
use expect_test::expect;

/// Options that take something away. Others, such as `relatime`, are the host's.
const PROTECTING: [&str; 5] = ["ro", "rw", "nosuid", "nodev", "noexec"];

/// Mounts of which each host has some, and what every one of them must be.
const OF_SOME_HOSTS: [(&str, &str); 3] = [
    ("programs", "ro nosuid nodev"),
    ("etc", "ro nosuid nodev"),
    ("hidden part of proc", "ro nosuid noexec tmpfs size=64k"),
];

#[tokio::test]
async fn every_mount_is_as_narrow_as_it_can_be() {
    let extra = tempfile::Builder::new().prefix("outrigger-extra-").tempdir().unwrap();
    let world = world_with(|config| config.read_only = vec![extra.path().to_owned()]).await;
    let sandbox = world.sandbox("one").await;
    let seen = says(&*sandbox, "cat /proc/self/mountinfo").await;
    let mut always = BTreeSet::new();
    let mut kinds = BTreeSet::new();
    for (point, options) in seen.lines().map(|line| read(line, extra.path())) {
        match OF_SOME_HOSTS.iter().find(|(kind, _)| *kind == point) {
            Some((kind, expected)) => {
                assert_eq!(&options, expected, "{kind} in {seen}");
                kinds.insert(*kind);
            }
            None => drop(always.insert(format!("{point}: {options}\n"))),
        }
    }
    for (kind, _) in OF_SOME_HOSTS {
        assert!(kinds.contains(kind), "no {kind} in {seen}");
    }
    expect![[r#"
        /: ro nosuid nodev tmpfs size=4096k
        /dev/mqueue: rw nosuid nodev noexec
        /dev/pts: rw nosuid noexec devpts
        /dev/shm: rw nosuid nodev noexec tmpfs size=1048576k
        /dev: ro nosuid noexec tmpfs size=64k
        /home/agent: rw nosuid nodev
        /proc/bus: ro nosuid nodev noexec proc
        /proc/fs: ro nosuid nodev noexec proc
        /proc/irq: ro nosuid nodev noexec proc
        /proc/sys/kernel/random/boot_id: ro nosuid nodev noexec tmpfs size=64k
        /proc/sys: ro nosuid nodev noexec proc
        /proc: rw nosuid nodev noexec proc
        /tmp: rw nosuid nodev
        /var/outrigger/output: ro nosuid nodev noexec
        /var/tmp: rw nosuid nodev
        /workspace: rw nosuid nodev
        what the configuration adds: ro nosuid nodev
    "#]]
    .assert_eq(&always.into_iter().collect::<String>());
}

/// What a sandbox hears from who listens in a directory of the host that it is shown.
const CALLS: &str = "import os, socket, sys\n\
                     for name in sys.argv[2:]:\n\
                     \ttry: socket.socket(socket.AF_UNIX).connect(sys.argv[1] + '/' + name)\n\
                     \texcept (PermissionError, ConnectionRefusedError): print(name, 'refused')\n\
                     \telse: print(name, 'answers')\n\
                     print(open(sys.argv[1] + '/file').read())\n";

/// A directory to be shown, in a place that sandboxes have no own of.
pub(crate) fn to_show(place: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir_in(place).unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(dir.path().join("file"), "read").unwrap();
    dir
}

/// Listens there for everybody.
pub(crate) fn listen(dir: &Path, name: &str) -> UnixListener {
    let listener = UnixListener::bind(dir.join(name)).unwrap();
    std::fs::set_permissions(dir.join(name), PermissionsExt::from_mode(0o777)).unwrap();
    listener
}

/// The words of a program that calls them.
pub(crate) fn calls(dir: &Path, names: &[&str]) -> Vec<String> {
    let words = ["python3", "-c", CALLS, dir.to_str().unwrap()];
    words.iter().chain(names).map(|word| (*word).to_owned()).collect()
}

#[tokio::test]
async fn who_listens_on_the_host_in_what_is_shown_does_not_answer() {
    let shown = to_show(env!("CARGO_TARGET_TMPDIR"));
    let _before = listen(shown.path(), "before");
    let world = world_with(|config| config.read_only = vec![shown.path().to_owned()]).await;
    let sandbox = world.sandbox("one").await;
    let _after = listen(shown.path(), "after");
    let words = calls(shown.path(), &["before", "after"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let executed = run(&*sandbox, argv(&words)).await;
    let said = String::from_utf8_lossy(&executed.stdout).into_owned();
    assert_eq!(said, "before refused\nafter refused\nread\n", "{executed:?}");
}

/// Where a mount is, or of which kind, and what protects it; see proc(5).
fn read(line: &str, extra: &Path) -> (String, String) {
    let (left, right) = line.split_once(" - ").unwrap();
    let mut left = left.split(' ').skip(4);
    let (point, options) = (left.next().unwrap(), left.next().unwrap());
    let mut right = right.split(' ');
    let (kind, superblock) = (right.next().unwrap(), right.nth(1).unwrap());
    let mut options: Vec<&str> =
        options.split(',').filter(|option| PROTECTING.contains(option)).collect();
    // Of the host's file systems neither type nor size is ours.
    if kind == "tmpfs" || kind == "devpts" || kind == "proc" {
        options.push(kind);
        options.extend(superblock.split(',').filter(|option| option.starts_with("size=")));
    }
    (place(Path::new(point), extra, kind), options.join(" "))
}

fn place(point: &Path, extra: &Path, kind: &str) -> String {
    let tools = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
    let read_only = ["sys", "irq", "bus", "fs"].map(|name| Path::new("/proc").join(name));
    let in_proc = point.parent() == Some(Path::new("/proc"));
    if point == extra {
        return "what the configuration adds".to_owned();
    }
    match kind {
        _ if tools.iter().any(|tools| point.starts_with(tools)) => "programs".to_owned(),
        _ if point.starts_with("/etc") => "etc".to_owned(),
        kind if in_proc && kind != "proc" && !read_only.iter().any(|path| path == point) => {
            "hidden part of proc".to_owned()
        }
        _ => point.display().to_string(),
    }
}
