//! What a harness takes of memory at most, in a new process each time.
//!
//! Owns both sides: the process that is measured, and the one that starts it.

use outrigger_engine::Host;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use crate::children::{self, MEMORY_MODE};
use crate::error::{Error, ErrorContext, Outcome};
use crate::figure::Figure;
use crate::harness::Harness;
use crate::home::Home;
use crate::sizes;
use crate::spawner::field_kib;

/// What the harness has to do meanwhile.
#[derive(Debug, clap::Args)]
pub(crate) struct Load {
    /// A directory of its own. The starter's, so that it goes away in any case.
    home: PathBuf,
    /// Where the provider listens.
    port: u16,
    /// Sessions at once.
    sessions: u64,
    /// Turns of each.
    turns: u64,
}

/// What was taken.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct MemoryFigures {
    /// The harness's largest resident set.
    pub(crate) peak_kib: u64,
    /// Proportional memory of the spawner and all guests at the end, with how many
    /// processes they are. Nothing where the kernel does not tell.
    pub(crate) below_kib: Option<(u64, usize)>,
}

impl MemoryFigures {
    pub(crate) fn to_json(self) -> String {
        serde_json::to_string(&self).expect("numbers always serialise")
    }
}

/// Drives sessions in this process, and says what that took.
pub(crate) async fn taken_under(load: &Load) -> Outcome<MemoryFigures> {
    let harness =
        Harness::open(&load.home, load.port, load.turns, |client| Arc::new(client)).await?;
    // One listener, as a process has that shows what happens; it may miss what it likes.
    let _notices = harness.engine.feed().listen();
    let mut sessions = Vec::new();
    for number in 0..load.sessions {
        sessions.push(harness.begin(number).await?);
    }
    for session in &sessions {
        harness.host.parked(session).await.doing("driving a session")?;
    }
    let peak_kib = field_kib("/proc/self/status", "VmHWM:");
    let peak_kib = peak_kib.ok_or_else(|| Error::Astray("no VmHWM in /proc/self/status".into()))?;
    for session in &sessions {
        harness.answered(session).await?;
    }
    let below_kib = harness.spawner()?.memory_kib();
    harness.close().await?;
    Ok(MemoryFigures { peak_kib, below_kib })
}

async fn of(port: u16, sessions: u64, turns: u64) -> Outcome<MemoryFigures> {
    let home = Home::new()?;
    let load = [u64::from(port), sessions, turns].map(|number| number.to_string().into());
    let mode = [MEMORY_MODE.into(), home.path().into()];
    let args: Vec<OsString> = mode.into_iter().chain(load).collect();
    let text = children::output(&args).await?;
    serde_json::from_str(&text).doing("reading what a harness took")
}

/// One session alone.
pub(crate) async fn of_one_session(port: u16) -> Outcome<Vec<MemoryFigures>> {
    let mut all = Vec::new();
    for _ in 0..sizes::ALONE_TIMES {
        all.push(of(port, 1, sizes::ALONE_TURNS).await?);
    }
    Ok(all)
}

/// Many sessions at once.
pub(crate) async fn of_a_crowd(port: u16) -> Outcome<Vec<MemoryFigures>> {
    Ok(vec![of(port, sizes::CROWD_SESSIONS, sizes::CROWD_TURNS).await?])
}

/// Largest resident sets, as a figure.
pub(crate) fn figure(name: &'static str, taken: &[MemoryFigures]) -> Figure {
    Figure::of(name, "MiB", taken.iter().map(|taken| taken.peak_kib as f64 / 1024.0).collect())
}
