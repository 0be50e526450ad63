//! The same backend for an ordinary user.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::support::*;

/// A user of most systems that owns nothing.
const NOBODY: u32 = 65_534;

#[test]
fn the_suite_passes_for_an_ordinary_user() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut engine = Command::new(dir.path().join("engine"));
    // Copies, because what cargo built may lie where only its owner can go.
    for name in ["engine", "spawner"] {
        std::fs::copy(example(name), dir.path().join(name)).unwrap();
    }
    let home = dir.path().join("home");
    std::fs::create_dir(&home).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
        engine.uid(NOBODY).gid(NOBODY);
    }
    let done = engine
        .arg("conformance")
        .arg(home.join("state"))
        .arg(dir.path().join("spawner"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.starts_with("RootlessSingle"), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}");
}
