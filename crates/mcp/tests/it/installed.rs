//! A server that is not ours, `@modelcontextprotocol/server-everything`: installed with
//! `npm` into the target directory, without its scripts.

use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "@modelcontextprotocol/server-everything@2026.8.31";

/// The program, installed if it is not there.
pub(crate) fn program() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("everything-2026.8.31");
    let program = home.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    std::fs::create_dir_all(&home).unwrap();
    // Each test may be a process of its own: one installs, the others wait for it.
    let lock = std::fs::File::create(home.join("lock")).unwrap();
    lock.lock().unwrap();
    if !home.join("whole").exists() {
        let npm = Command::new("npm")
            .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"])
            .args([home.as_os_str(), PACKAGE.as_ref()])
            .output()
            .expect("this test needs `npm`, to install @modelcontextprotocol/server-everything");
        let said = String::from_utf8_lossy(&npm.stderr);
        assert!(npm.status.success(), "npm cannot install {PACKAGE}: {said}");
        std::fs::write(home.join("whole"), "").unwrap();
    }
    program
}
