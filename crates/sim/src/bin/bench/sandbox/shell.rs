//! A shell that stays, in a mount namespace of its own, for programs that a host's
//! mounts are in the way of: starting one from it costs what starting it costs.

use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::error::{Error, ErrorContext, Outcome};

/// A running shell in a mount namespace of its own. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Shell {
    _process: Child,
    words: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Shell {
    /// Starts it; cgroups of version 2 beside those of version 1 are not seen in it.
    pub(super) async fn start() -> Outcome<Self> {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh"]).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = command.spawn().doing("starting a shell")?;
        let words = process.stdin.take().expect("it was asked to be a pipe");
        let answers = process.stdout.take().expect("it was asked to be a pipe");
        let mut shell = Self { _process: process, words, answers: BufReader::new(answers) };
        let mounts = std::fs::read_to_string("/proc/self/mounts").doing("reading the mounts")?;
        let of = |kind: &str| -> Vec<&str> {
            let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            fields.filter(|fields| fields.get(2) == Some(&kind)).map(|fields| fields[1]).collect()
        };
        if !of("cgroup").is_empty() {
            for path in of("cgroup2") {
                shell.run(&format!("umount -l '{path}'")).await?;
            }
        }
        Ok(shell)
    }

    /// Runs a line, which must succeed.
    pub(super) async fn run(&mut self, line: &str) -> Outcome<()> {
        let doing = "running a line in a shell";
        let asked = format!("{line} > /dev/null < /dev/null; echo $?\n");
        self.words.write_all(asked.as_bytes()).await.doing(doing)?;
        let mut code = String::new();
        self.answers.read_line(&mut code).await.doing(doing)?;
        match code.trim() {
            "0" => Ok(()),
            code => Err(Error::Astray(format!("`{line}` ended with `{code}`"))),
        }
    }
}
