//! `outrigger detached`: the process that drives a session which `run -d` left to it.

use clap::Args;
use std::path::PathBuf;

use super::detach::Driver;
use super::sessions::{GoOn, More, go_on};
use crate::exit::Outcome;
use crate::flags::{Apply, Limits, Output};
use crate::paths::Paths;

/// Drives a session without a terminal.
#[derive(Debug, Args)]
pub(crate) struct DetachedRun {
    /// The session.
    pub(crate) session: String,
    /// The directory that it works in.
    pub(crate) dir: PathBuf,
}

pub(crate) async fn execute(paths: &Paths, asked: DetachedRun) -> Outcome<u8> {
    // Away from the terminal, whose end would be told to all of its processes. It is no
    // leader of a group, as whoever started it did not make it one.
    let _ = rustix::process::setsid();
    let more = More::Otherwise(Limits::default(), Box::default());
    let how = GoOn { apply: Apply::default(), more, network: None, driver: Driver::Here };
    let output = Output { json: None, quiet: false };
    go_on(paths, &asked.session, how, output).await
}
