//! The same backend for an ordinary user.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::images::{gzip, image, layers, layout};
use crate::support::*;
use expect_test::expect;

/// A user of most systems that owns nothing.
const NOBODY: u32 = 65_534;

/// An engine of an ordinary user, with a directory of its own.
fn engine(dir: &Path) -> Command {
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut engine = Command::new(dir.join("engine"));
    // Copies, because what cargo built may lie where only its owner can go.
    for name in ["engine", "spawner"] {
        std::fs::copy(example(name), dir.join(name)).unwrap();
    }
    let home = dir.join("home");
    std::fs::create_dir(&home).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
        engine.uid(NOBODY).gid(NOBODY);
    }
    engine
}

#[test]
fn the_suite_passes_for_an_ordinary_user() {
    let dir = tempfile::tempdir().unwrap();
    let done = engine(dir.path())
        .arg("conformance")
        .arg(dir.path().join("home/state"))
        .arg(dir.path().join("spawner"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.starts_with("RootlessSingle"), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}");
}

#[test]
fn an_image_runs_for_an_ordinary_user() {
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("image.tar");
    std::fs::write(&archive, layout(&image(&layers(), gzip))).unwrap();
    let done = engine(dir.path())
        .arg("run")
        .arg(dir.path().join("home/state"))
        .arg(dir.path().join("spawner"))
        .args([
            "one",
            "e1",
            "cat /etc/motd; ls /opt/old /etc; id -u; echo x > /opt/own && cat /opt/own",
        ])
        .arg(archive)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    expect![[r#"
        from above
        /etc:
        motd

        /opt/old:
        new
        1000
        x
        Exited(0)
    "#]]
    .assert_eq(&(said + &String::from_utf8_lossy(&done.stderr)));
}
