//! The crate from outside: git itself is the judge of what belongs to a repository.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod apart;
mod commits;
mod damaged;
mod listed;
mod patches;

use outrigger_repository::{DependencyPolicy, DirectoryArchive, Error, Limits, Rules, pack};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory with a place beside it.
struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, path: &str) -> PathBuf {
        // Without links, as the crate wants it.
        fs::canonicalize(self.0.path()).unwrap().join(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs git without anybody's settings, and gives what it printed.
    fn git(&self, dir: &str, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        git.env("HOME", self.0.path()).env("GIT_CONFIG_NOSYSTEM", "1");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
        git.args(["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]);
        let ran = git.arg("-C").arg(self.path(dir)).args(args).output();
        let ran = ran.expect("this test needs `git`");
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    fn pack(&self, dir: &str) -> Result<DirectoryArchive, Error> {
        let limits = Limits { bytes_max: 1 << 20, files_max: 1_000 };
        pack(
            &self.path(dir),
            &self.path("scratch"),
            &Rules::default(),
            limits,
            DependencyPolicy::Apart(&[]),
        )
    }

    /// The paths that are copied of a directory, and what is left out.
    fn copied(&self, dir: &str) -> (Vec<String>, Vec<String>) {
        let packed = self.pack(dir).unwrap();
        (names(packed.archive), packed.left_out)
    }

    /// The paths that git says are the state of a directory.
    fn known_to_git(&self, dir: &str) -> Vec<String> {
        let all = ["--cached", "--others", "--exclude-standard", "--deduplicate"];
        let args = [&["ls-files", "-z"], &all[..]].concat();
        let told = self.git(dir, &args);
        let is_file = |name: &&str| {
            fs::symlink_metadata(self.path(dir).join(name)).is_ok_and(|found| !found.is_dir())
        };
        let names = told.split('\0').filter(|name| !name.is_empty()).filter(is_file);
        let mut names: Vec<_> = names.map(str::to_owned).collect();
        names.sort_by(|a, b| Path::new(a).cmp(Path::new(b)));
        names
    }
}

fn names(archive: fs::File) -> Vec<String> {
    let mut archive = tar::Archive::new(archive);
    let entries = archive.entries().unwrap();
    entries.map(|it| it.unwrap().path().unwrap().to_str().unwrap().to_owned()).collect()
}
