//! `sim --seeds N [--seed S]`: checks seeds, and prints the line that replays a failing one.

use clap::{Parser, ValueEnum};
use outrigger_sim::{Plans, SeedFailure, SeedReport, Sim, Without, limits};
use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Runs seeded worlds in which whatever can go wrong does.
#[derive(Debug, Parser)]
struct Args {
    /// How many seeds.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first seed; alone, the only one, and put through every plan.
    #[arg(long)]
    seed: Option<u64>,
    /// Kills at every write of each seed, where else some writes are drawn.
    #[arg(long)]
    every: bool,
    /// Takes a safeguard away, to see that it is missed.
    #[arg(long)]
    without: Option<Safeguard>,
}

/// What can be taken away.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Safeguard {
    Fencing,
    Intent,
    Reservation,
    Redecision,
}

impl From<Safeguard> for Without {
    fn from(safeguard: Safeguard) -> Self {
        match safeguard {
            Safeguard::Fencing => Self::Fencing,
            Safeguard::Intent => Self::Intent,
            Safeguard::Reservation => Self::Reservation,
            Safeguard::Redecision => Self::Redecision,
        }
    }
}

#[derive(Default)]
struct Total {
    report: SeedReport,
    failed: Option<(u64, SeedFailure)>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let (first, count) = match args.seed {
        Some(seed) => (seed, 1),
        None => (0, args.seeds),
    };
    let plans = if args.every || args.seed.is_some() { Plans::Every } else { Plans::Drawn };
    let sim = Sim::new(plans);
    let sim = match args.without {
        Some(safeguard) => sim.without(safeguard.into()),
        None => sim,
    };
    let sim = if args.seed.is_some() { sim.telling() } else { sim };
    let next = AtomicU64::new(first);
    let total = Mutex::new(Total::default());
    let begun = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| check_some(&sim, &next, first + count, &total));
        }
    });
    let Total { report, failed } = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seconds = begun.elapsed().as_secs_f64();
    let mut out = std::io::stdout();
    let SeedReport { runs, events, tally } = report;
    if failed.is_none() {
        drop(write!(out, "{tally}"));
    }
    drop(writeln!(out, "{count} seeds, {runs} runs, {events} events in {seconds:.1} s"));
    if let Some((seed, failed)) = failed {
        for line in &failed.story {
            drop(writeln!(out, "{line}"));
        }
        drop(writeln!(out, "seed {seed}, {failed}"));
        let without = args.without.map(|safeguard| safeguard.to_possible_value());
        let without = without
            .flatten()
            .map_or_else(String::new, |value| format!(" --without {}", value.get_name()));
        drop(writeln!(out, "replay: cargo xtask sim --seed {seed}{without}"));
        return ExitCode::FAILURE;
    }
    let never: Vec<String> = tally.never().map(|what| what.to_string()).collect();
    if count >= limits::COVERED_SEEDS && !never.is_empty() {
        drop(writeln!(out, "never happened: {}", never.join(", ")));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn check_some(sim: &Sim, next: &AtomicU64, end: u64, total: &Mutex<Total>) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return;
        }
        let checked = sim.check(seed);
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        match checked {
            Ok(report) => {
                total.report.runs += report.runs;
                total.report.events += report.events;
                total.report.tally.add(&report.tally);
            }
            Err(failed) => {
                // The smallest failing seed is the one to replay.
                if total.failed.as_ref().is_none_or(|(other, _)| seed < *other) {
                    total.failed = Some((seed, failed));
                }
                next.store(end, Ordering::Relaxed);
            }
        }
    }
}
