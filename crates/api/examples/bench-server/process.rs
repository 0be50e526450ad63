//! A server that is measured, with every process that it starts.
//!
//! Owns that all of them end: orphans of theirs become children of this process.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::BufReader;
use tokio::process::{Child, ChildStdout, Command};

use crate::{http, limits};

/// A process that runs.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

/// What all processes below this one took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Taken {
    pub(crate) cpu_ms: f64,
    /// The largest resident sets so far, together.
    pub(crate) peak_mib: f64,
    /// The resident sets now, together.
    pub(crate) rss_mib: f64,
    pub(crate) processes: usize,
}

/// A command with nothing of this process's environment but the way to programs.
pub(crate) fn command(program: &Path, dir: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", home)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
}

impl Process {
    /// Starts it, and reads the first line that it says.
    pub(crate) async fn start(mut command: Command) -> io::Result<(Self, String)> {
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
        let mut process = Self { child, output: BufReader::new(output) };
        let most = Duration::from_millis(limits::START_MS_MAX);
        let line = tokio::time::timeout(most, http::line(&mut process.output)).await?;
        let line = line.map_err(|error| io::Error::other(format!("it does not start: {error}")))?;
        Ok((process, line))
    }

    /// The next line that it says.
    pub(crate) async fn line(&mut self) -> io::Result<String> {
        http::line(&mut self.output).await
    }

    /// Kills it alone, as a crash does.
    pub(crate) async fn kill(mut self) -> io::Result<()> {
        self.child.kill().await
    }

    /// What it alone has resident, and had at most, in MiB.
    pub(crate) fn own(&self) -> (f64, f64) {
        let status = self.child.id().map(|pid| format!("/proc/{pid}/status"));
        let status = status.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        (field_mib(&status, "VmRSS:"), field_mib(&status, "VmHWM:"))
    }
}

/// What a status of `/proc` says of memory.
fn field_mib(status: &str, name: &str) -> f64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}

/// All processes below this one, each with the processor time that it and those that it waited
/// for took.
fn below() -> Vec<(i32, f64)> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        // One that ended meanwhile.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        // From the third field on; proc_pid_stat(5).
        let fields: Vec<&str> = rest.split(' ').collect();
        let number = |index: usize| fields.get(index).and_then(|it| it.parse::<f64>().ok());
        let parent = fields.get(1).and_then(|it| it.parse::<i32>().ok());
        let ticks: f64 = (11..15).filter_map(number).sum();
        all.extend(parent.map(|parent| (pid, parent, ticks)));
    }
    let mut known = HashSet::from([i32::try_from(std::process::id()).unwrap_or_default()]);
    let mut found = Vec::new();
    loop {
        let (new, rest): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, parent, _)| known.contains(parent));
        if new.is_empty() {
            return found;
        }
        known.extend(new.iter().map(|(pid, _, _)| *pid));
        // The kernel counts in hundredths of a second for programs.
        found.extend(new.into_iter().map(|(pid, _, ticks)| (pid, ticks * 10.0)));
        all = rest;
    }
}

/// What all of them took so far.
pub(crate) fn taken() -> Taken {
    let mut taken = Taken::default();
    for (pid, cpu_ms) in below() {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        taken.cpu_ms += cpu_ms;
        taken.peak_mib += field_mib(&status, "VmHWM:");
        taken.rss_mib += field_mib(&status, "VmRSS:");
        taken.processes += 1;
    }
    taken
}

/// Ends all of them.
pub(crate) fn end_all() {
    // Who is killed may have been about to start another one.
    for _ in 0..3 {
        for (pid, _) in below() {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
                let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
            }
        }
    }
}
