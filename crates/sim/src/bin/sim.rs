//! `sim --seeds N [--seed S]`: checks seeds, and prints the line that replays a failing one.

use clap::Parser;
use outrigger_sim::{Report, check_seed};
use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Runs seeded worlds in which the harness is killed at every journal write.
#[derive(Debug, Parser)]
struct Args {
    /// How many seeds.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first seed; alone, the only one.
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let (first, count) = match args.seed {
        Some(seed) => (seed, 1),
        None => (0, args.seeds),
    };
    let next = AtomicU64::new(first);
    let total = Mutex::new((Report::default(), None));
    let begun = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| check_some(&next, first + count, &total));
        }
    });
    let (report, failed) = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seconds = begun.elapsed().as_secs_f64();
    let mut out = std::io::stdout();
    let Report { runs, kills, events } = report;
    drop(writeln!(
        out,
        "{count} seeds, {runs} runs, {kills} kills, {events} events in {seconds:.1} s"
    ));
    let Some((seed, place, violation)) = failed else { return ExitCode::SUCCESS };
    drop(writeln!(out, "seed {seed}, killed at {place}: {violation}"));
    drop(writeln!(out, "replay: cargo xtask sim --seed {seed}"));
    ExitCode::FAILURE
}

type Total = Mutex<(Report, Option<(u64, String, outrigger_sim::Violation)>)>;

fn check_some(next: &AtomicU64, end: u64, total: &Total) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return;
        }
        let checked = check_seed(seed);
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        match checked {
            Ok(report) => {
                total.0.runs += report.runs;
                total.0.kills += report.kills;
                total.0.events += report.events;
            }
            Err((place, violation)) => {
                // The smallest failing seed is the one to replay.
                if total.1.as_ref().is_none_or(|(other, ..)| seed < *other) {
                    total.1 = Some((seed, place, violation));
                }
                next.store(end, Ordering::Relaxed);
            }
        }
    }
}
