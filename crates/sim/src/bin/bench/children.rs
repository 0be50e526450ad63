//! Processes that are started for a measurement, this same program in other modes.
//!
//! Owns their end: none outlives the value that stands for it.

use outrigger_sim::limits;
use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::error::{Error, ErrorContext, Outcome};

/// The hidden mode of the provider.
pub(crate) const PROVIDER_MODE: &str = "provider";
/// The hidden mode of a harness whose memory is measured.
pub(crate) const MEMORY_MODE: &str = "memory";

/// A running provider. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Provider {
    /// Where it listens on loopback.
    pub(crate) port: u16,
    _child: Child,
}

impl Provider {
    /// Starts one and waits until it serves.
    pub(crate) async fn start() -> Outcome<Self> {
        let mut child = command()?
            .arg(PROVIDER_MODE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .doing("starting the provider")?;
        let stdout = child.stdout.take().expect("its output is a pipe");
        let mut line = String::new();
        let mut reads = BufReader::new(stdout);
        let ms_max = limits::BENCH_PROVIDER_START_MS_MAX;
        let said = tokio::time::timeout(Duration::from_millis(ms_max), reads.read_line(&mut line));
        said.await.map_err(|_| Error::TooLong { ms_max })?.doing("starting the provider")?;
        let port = line.trim().parse().doing("reading the provider's port")?;
        Ok(Self { port, _child: child })
    }
}

/// Runs this program in another mode to its end, and gives what it prints.
pub(crate) async fn output(args: &[OsString]) -> Outcome<String> {
    let doing = "running a harness in a process of its own";
    let output = command()?.args(args).stdin(Stdio::null()).stderr(Stdio::piped()).output();
    let output = output.await.doing(doing)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Astray(format!("{doing}: {}: {}", output.status, said.trim())));
    }
    String::from_utf8(output.stdout).doing(doing)
}

fn command() -> Outcome<Command> {
    let program = std::env::current_exe().doing("finding this program")?;
    let mut command = Command::new(program);
    command.kill_on_drop(true);
    Ok(command)
}
