//! Programs of others, installed with `pip` into the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;

/// An environment of Python with a package in it, which is installed if it is not there.
/// `with` are packages that it needs, with their versions.
pub(crate) fn installed(package: &str, version: &str, with: &[&str]) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{package}-{version}"));
    std::fs::create_dir_all(&home).expect("the target directory takes folders");
    // Each test may be a process of its own: one installs, the others wait for it.
    let lock = std::fs::File::create(home.join("lock")).expect("it takes files");
    lock.lock().expect("it takes locks");
    if !home.join("whole").exists() {
        let named = format!("{package}=={version}");
        let run = |command: &mut Command| {
            let done = command.output().unwrap_or_else(|error| {
                panic!("this test needs `python3` with `venv`, to install {named}: {error}")
            });
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "pip cannot install {named}: {said}");
        };
        run(Command::new("python3").args(["-m", "venv"]).arg(&home));
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(home.join("bin/python")).args(pip).arg(&named).args(with));
        std::fs::write(home.join("whole"), "").expect("it takes files");
    }
    home
}
