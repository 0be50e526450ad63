//! Everything at once, and what a neighbour and the engine feel.
//!
//! Owns the measurement: windows of rest and windows of attack follow each other, so
//! that whatever else this machine does falls on both, and the slowest hundredth of
//! all of the one is compared with that of all of the other.

use std::fs::File;
use std::io::{Seek, Write};
use std::time::{Duration, Instant};

use outrigger_sandbox::{FileOp, FileReply};

use crate::limits;
use crate::observation::{Observation, ProbeResult, noted, seen};
use crate::stage::{EVIL, OnStage, Room};

/// What is measured, in the order in which it is.
const MEASURED: [&str; 4] = [
    "a command of a neighbour",
    "a file of a neighbour",
    "a timer of the engine",
    "a journal's write",
];
/// How long the timer sleeps.
const TIMER: Duration = Duration::from_millis(2);

/// Latencies of each of [`MEASURED`].
type Latencies = [Vec<Duration>; MEASURED.len()];

/// Whoever else wants to be served.
struct Others<'a> {
    neighbour: &'a Room,
    journal: File,
}

impl Others<'_> {
    /// One of each.
    async fn visit(&mut self, took: &mut Latencies) -> Result<(), String> {
        let begun = Instant::now();
        let said = self.neighbour.evil(&["bomb", "nothing"], |_| {}).await?;
        took[0].push(begun.elapsed());
        if said.end != "ended" {
            return Err(format!("the neighbour's command: {}", said.end));
        }
        let begun = Instant::now();
        let read = FileOp::Read { path: EVIL.to_owned(), offset: 0, bytes_max: 4_096 };
        let (word, reply) = self.neighbour.files(read).await;
        took[1].push(begun.elapsed());
        if !matches!(reply, Some(FileReply::Bytes { .. })) {
            return Err(format!("the neighbour's file: {word}"));
        }
        let begun = Instant::now();
        tokio::time::sleep(TIMER).await;
        took[2].push(begun.elapsed());
        let begun = Instant::now();
        let written = self
            .journal
            .rewind()
            .and_then(|()| self.journal.write_all(&[0x5a; 4_096]))
            .and_then(|()| self.journal.sync_data());
        took[3].push(begun.elapsed());
        written.map_err(|error| format!("the journal: {error}"))
    }

    /// As often as it goes until the time is over.
    async fn visits(&mut self, time: Duration, took: &mut Latencies) -> Result<(), String> {
        let begun = Instant::now();
        while begun.elapsed() < time {
            self.visit(took).await?;
        }
        Ok(())
    }
}

/// One bomb again and again until the time is over.
async fn again(room: &Room, words: &[&str], time: Duration) {
    let begun = Instant::now();
    while let Some(left) = time.checked_sub(begun.elapsed()) {
        let words: Vec<&str> = [EVIL].iter().chain(words).copied().collect();
        let mut request = room.request(&words);
        request.deadline_ms = u64::try_from(left.as_millis()).unwrap_or(1).max(1);
        // Refused while the fork bomb has all processes, or its disk is full: once more.
        if room.sandbox.execute(request, &()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A fork bomb, a memory bomb, a full disk and a flood in one sandbox at once, each asked
/// for by a task of its own, as sessions are.
async fn attack(room: &Room, time: Duration) {
    let disk = (limits::DISK_BYTES_MAX / 2).to_string();
    let bombs: [&[&str]; 4] = [
        &["bomb", "fork"],
        &["bomb", "memory"],
        &["disk", "churn", &disk],
        &["bomb", "flood", "1000000"],
    ];
    let mut tasks = tokio::task::JoinSet::new();
    for words in bombs {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let room = room.clone();
        tasks.spawn(async move {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            again(&room, &words, time).await;
        });
    }
    tasks.join_all().await;
}

/// How long the slowest of so many hundredths at least took.
fn percentile(all: &mut [Duration], percent: usize) -> Duration {
    all.sort_unstable();
    let last = all.len().saturating_sub(1);
    all.get((all.len() * percent / 100).min(last)).copied().unwrap_or_default()
}

fn compared(
    stage: &OnStage,
    name: &str,
    mut idle: Vec<Duration>,
    mut busy: Vec<Duration>,
) -> Observation {
    let (idle50, idle99) = (percentile(&mut idle, 50), percentile(&mut idle, 99));
    let (busy50, busy99) = (percentile(&mut busy, 50), percentile(&mut busy, 99));
    let percent = busy99.as_micros() * 100 / idle99.as_micros().max(1);
    // The fast run is too short for a hundredth of it to mean anything.
    let saw = match busy99.as_millis() < limits::NEIGHBOUR_P99_MS_MAX {
        _ if stage.scaled(true, false) => "served",
        true => "p99 within 50 ms",
        false => "p99 above 50 ms",
    };
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    let note = format!(
        "p50/p99: idle {:.2}/{:.2} ms of {}, under attack {:.2}/{:.2} ms of {}; p99 {:.2} times",
        ms(idle50),
        ms(idle99),
        idle.len(),
        ms(busy50),
        ms(busy99),
        busy.len(),
        percent as f64 / 100.0,
    );
    noted(name, saw, note)
}

/// All bombs at once in one sandbox; another one and this process meanwhile.
pub(crate) async fn pressure(stage: OnStage) -> ProbeResult {
    let rounds = stage.scaled(2, 30);
    let window = Duration::from_millis(stage.scaled(300, 1_000));
    let neighbour = stage.room("neighbour", |_| {}).await?;
    let mut room = stage.room("pressure", |_| {}).await?;
    let journal = tempfile::tempfile().map_err(|error| format!("no journal: {error}"))?;
    let mut others = Others { neighbour: &neighbour, journal };
    let (mut idle, mut busy) = (Latencies::default(), Latencies::default());
    for _ in 0..rounds {
        others.visits(window, &mut idle).await?;
        let led = Duration::from_millis(100);
        // What is measured is what happens while the bombs go off, and not after them.
        let measured = async {
            tokio::time::sleep(led).await;
            others.visits(window, &mut busy).await
        };
        let ((), measured) = tokio::join!(attack(&room, window + led * 2), measured);
        measured?;
        let again = stage.backend().create(&room.id, &room.spec).await;
        room.sandbox = again.map_err(|error| format!("the attacker: {error}"))?;
    }
    let mut all: Vec<Observation> = MEASURED
        .into_iter()
        .zip(idle.into_iter().zip(busy))
        .map(|(name, (idle, busy))| compared(&stage, name, idle, busy))
        .collect();
    all.push(seen("the attacker", room.alive().await));
    room.end().await?;
    neighbour.end().await?;
    Ok(all)
}
