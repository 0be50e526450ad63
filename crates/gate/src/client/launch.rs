//! How a gate's process is started: with hardly anything of ours.
//!
//! Owns what it has of the environment, and that a master key which a command prints goes from
//! there to the gate and is never in this process. Who may start nothing has another process do
//! it.

use std::ffi::OsString;
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::error::Error;

/// The variable with the master key, 32 bytes in base64. Without it, and without a command that
/// prints one, the gate makes one and keeps it in its directory.
pub const MASTER_KEY: &str = "OUTRIGGER_MASTER_KEY";

/// What that variable says where the key comes on standard input.
pub(crate) const FROM_STDIN: &str = "-";

/// What the gate takes from the environment: where the roots are that it trusts (openssl(7)),
/// and its master key.
const FROM_ENVIRONMENT: [&str; 3] = ["SSL_CERT_FILE", "SSL_CERT_DIR", MASTER_KEY];

/// Who starts a gate.
pub trait ServerLauncher: Debug + Send + Sync {
    /// Starts the gate of a directory, which says on `out` what comes of it. May block.
    ///
    /// # Errors
    /// If the program can't be started.
    fn launch(&self, dir: &Path, out: OwnedFd) -> Result<(), Error>;
}

/// How the gate is started: a program that calls [`crate::serve`] with its last argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLaunch {
    /// The program.
    pub program: PathBuf,
    /// What makes it a gate, for example a hidden subcommand. The directory is added.
    pub args: Vec<OsString>,
    /// A program and its arguments that print the master key, in base64, each time that a gate
    /// starts. It has our environment. Empty: the key is in the environment or in the gate's
    /// directory.
    pub master_key_command: Vec<String>,
}

impl ServerLauncher for ServerLaunch {
    fn launch(&self, dir: &Path, out: OwnedFd) -> Result<(), Error> {
        make_dir(dir).map_err(Error::io("make the gate's directory"))?;
        let kept = FROM_ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut gate = Command::new(&self.program);
        gate.args(&self.args)
            .arg(dir)
            .env_clear()
            .envs(kept)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::from(out))
            .stderr(Stdio::null())
            // So that what a terminal sends to its foreground does not end it.
            .process_group(0);
        self.give_master_key(&mut gate)?;
        reap(gate.spawn().map_err(Error::io("start the gate's program"))?);
        Ok(())
    }
}

impl ServerLaunch {
    /// Has a gate that is about to start read the key from the output of the command, if there
    /// is one, and if no key is in the environment, which comes first.
    fn give_master_key(&self, gate: &mut Command) -> Result<(), Error> {
        let Some((program, args)) = self.master_key_command.split_first() else { return Ok(()) };
        if std::env::var_os(MASTER_KEY).is_some() {
            return Ok(());
        }
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let failed =
            |error| Error::Start(format!("{program}, which gives the master key: {error}"));
        let mut child = command.spawn().map_err(failed)?;
        if let Some(key) = child.stdout.take() {
            gate.stdin(key).env(MASTER_KEY, FROM_STDIN);
        }
        reap(child);
        Ok(())
    }
}

fn make_dir(dir: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Waits for the process on a thread of its own, so that it does not stay as a zombie. It
/// may outlive us, and then somebody else does that.
fn reap(mut child: Child) {
    std::thread::spawn(move || child.wait());
}
