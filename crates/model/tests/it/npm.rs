//! Programs of others, installed with `npm` into the target directory, without their scripts.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of a package, which is installed if it is not there.
pub(crate) fn installed(package: &str, version: &str, file: &str) -> PathBuf {
    let name = package.rsplit('/').next().unwrap();
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{version}"));
    std::fs::create_dir_all(&home).unwrap();
    // Each test may be a process of its own: one installs, the others wait for it.
    let lock = std::fs::File::create(home.join("lock")).unwrap();
    lock.lock().unwrap();
    if !home.join("whole").exists() {
        let package = format!("{package}@{version}");
        let npm = Command::new("npm")
            .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"])
            .args([home.as_os_str(), package.as_ref()])
            .output()
            .unwrap_or_else(|error| panic!("this test needs `npm`, to install {package}: {error}"));
        let said = String::from_utf8_lossy(&npm.stderr);
        assert!(npm.status.success(), "npm cannot install {package}: {said}");
        std::fs::write(home.join("whole"), "").unwrap();
    }
    home.join("node_modules").join(package).join(file)
}
