//! What the program has of the machine: a repository, a configuration, and directories of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, ErrorContext, Outcome};
use crate::home::Home;
use crate::sizes;
use crate::spawner::Spawner;

/// Directories that the environment names.
const DIRS: [(&str, &str); 5] = [
    ("HOME", "home"),
    ("XDG_CONFIG_HOME", "config"),
    ("XDG_DATA_HOME", "share"),
    ("XDG_CACHE_HOME", "cache"),
    ("XDG_STATE_HOME", "state"),
];

/// A world in which the program was never started. It goes with this, and its sandboxes too.
#[derive(Debug)]
pub(super) struct World {
    home: Home,
}

impl World {
    /// One whose model is a provider on loopback.
    pub(super) fn new(port: u16) -> Outcome<Self> {
        let doing = "making a repository to converse about";
        let world = Self { home: Home::new()? };
        for (_, name) in DIRS {
            fs::create_dir(world.path(name)).doing(doing)?;
        }
        let source = world.repository().join("src");
        fs::create_dir_all(&source).doing(doing)?;
        for number in 0..sizes::REPOSITORY_FILES {
            let text = format!("pub fn f{number}() -> u64 {{\n    {number}\n}}\n");
            fs::write(source.join(format!("f{number}.rs")), text).doing(doing)?;
        }
        for args in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "all"]] {
            world.git(args)?;
        }
        // So large that nothing is summarised, and no limit ends the session.
        let text = format!(
            "[model]\nprovider = \"anthropic\"\nname = \"fake\"\n\
             base_url = \"http://127.0.0.1:{port}\"\ncontext_tokens = 1000000\n\
             [limits]\ntokens_max = 1000000000\n"
        );
        fs::write(world.path("config.toml"), text).doing("writing a configuration")?;
        Ok(world)
    }

    /// The program alone, as it is typed in the repository.
    pub(super) fn outrigger(&self) -> Outcome<Command> {
        let doing = "finding the program beside this one; `cargo build --release` makes it";
        let this = std::env::current_exe().doing(doing)?;
        let program = fs::canonicalize(this.with_file_name("outrigger")).doing(doing)?;
        let mut command = self.command(program);
        command
            .env("OUTRIGGER_DATA_DIR", self.data())
            .env("OUTRIGGER_CONFIG", self.path("config.toml"))
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8");
        Ok(command)
    }

    /// A command with nothing of this process's environment but the way to programs.
    pub(super) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .envs(DIRS.map(|(variable, name)| (variable, self.path(name))))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(self.repository());
        command
    }

    fn git(&self, args: &[&str]) -> Outcome<()> {
        let doing = "running git";
        let identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"];
        let output = self.command("git").args(identity).args(args).output().doing(doing)?;
        if output.status.success() {
            return Ok(());
        }
        Err(Error::Astray(format!("{doing}: {}", String::from_utf8_lossy(&output.stderr).trim())))
    }

    fn repository(&self) -> PathBuf {
        self.path("repository")
    }

    fn data(&self) -> PathBuf {
        self.path("data")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // None is there if no command was executed.
        if let Ok(spawner) = Spawner::of(&native(&self.data())) {
            drop(spawner.end());
        }
    }
}

/// Where the program keeps its native sandboxes.
fn native(data: &Path) -> PathBuf {
    data.join("native")
}
