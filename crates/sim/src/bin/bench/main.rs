//! `bench turn|sandbox|policy|audit|namespace|conversation [--json]`: what harness, sandbox,
//! rules, audit, the one namespace and a conversation cost, measured on the real thing.
//!
//! Owns the figures that the project publishes, and how they are taken: the parts
//! are put together as the product does it, and everything around the harness (the
//! provider, the spawner, the guests) runs in processes of its own. Must never
//! fail for a figure: it is printed beside its target, and the exit code only says
//! whether it could be measured.

#![forbid(unsafe_code)]

mod audit;
mod children;
mod conversation;
mod error;
mod figure;
mod harness;
mod home;
mod journal;
mod marks;
mod memory;
mod namespace;
mod policy;
mod provider;
mod sandbox;
mod served;
mod sizes;
mod spawner;
mod table;
mod turns;

use clap::{Parser, Subcommand};
use outrigger_sim::limits;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use crate::error::{Error, ErrorContext, Outcome};

/// Measurements of the harness.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// What a turn costs: processor time, memory and the journal's speed.
    Turn {
        /// Prints an array of `{name, unit, n, min, p50, p99}` and nothing else.
        #[arg(long)]
        json: bool,
    },
    /// What a sandbox costs, beside bubblewrap, crun and Docker.
    Sandbox {
        /// Prints an array of `{name, unit, n, min, p50, p99}` and nothing else.
        #[arg(long)]
        json: bool,
    },
    /// What a decision costs, by how many rules it looks at.
    Policy {
        /// Prints an array of `{name, unit, n, min, p50, p99}` and nothing else.
        #[arg(long)]
        json: bool,
    },
    /// How long an audit of a million events takes.
    Audit {
        /// Prints an array of `{name, unit, n, min, p50, p99}` and nothing else.
        #[arg(long)]
        json: bool,
    },
    /// What looking at entries, changing and searching them costs where there are many.
    Namespace {
        /// Prints an array of `{name, unit, n, min, p50, p99}` and nothing else.
        #[arg(long)]
        json: bool,
    },
    /// How fast a conversation is on a terminal, with the program that lies beside this one.
    Conversation {
        /// Prints an array of `{name, unit, n, min, p50, p99}` and nothing else.
        #[arg(long)]
        json: bool,
    },
    /// The provider that the measured harness asks.
    #[command(name = children::PROVIDER_MODE, hide = true)]
    Provider,
    /// A harness whose memory is measured.
    #[command(name = children::MEMORY_MODE, hide = true)]
    Memory(memory::Load),
}

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    // Before there is any thread or open file, as in the product.
    if args.next().is_some_and(|mode| mode == harness::SPAWNER_MODE) {
        return outrigger_sandbox_native::spawner::main(args);
    }
    let outcome = match Args::parse().bench {
        Bench::Provider => provider::serve(),
        Bench::Turn { json } => on_runtime(async { print(&turn().await?, json) }),
        Bench::Audit { json } => on_runtime(async {
            let figures = audit::measure(progress).await?;
            say(&if json { figure::to_json(&figures) } else { table::plain(&figures) })
        }),
        Bench::Namespace { json } => on_runtime(async {
            let mut figures = served::measure(progress).await?;
            // The rest takes a while.
            for it in &figures {
                progress(&format!("{} was {} {}", it.name, it.p50, it.unit));
            }
            figures.extend(namespace::measure(progress).await?);
            say(&if json { figure::to_json(&figures) } else { table::plain(&figures) })
        }),
        Bench::Conversation { json } => on_runtime(async {
            let figures = conversation::measure(progress).await?;
            say(&if json { figure::to_json(&figures) } else { table::judged(&figures) })
        }),
        Bench::Sandbox { json } => on_runtime(async {
            let report = as_task(sandbox::measure(progress)).await?;
            let text = if json { figure::to_json(&report.figures) } else { report.shown() };
            say(&text)
        }),
        Bench::Policy { json } => policy::measure().and_then(|figures| {
            say(&if json { figure::to_json(&figures) } else { policy::shown(&figures) })
        }),
        Bench::Memory(load) => {
            on_runtime(async { say(&memory::taken_under(&load).await?.to_json()) })
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(std::io::stderr(), "bench: {}", error::chain(&error)));
            ExitCode::FAILURE
        }
    }
}

/// The product's runtime. What is not over by then, or when somebody presses
/// Ctrl-C, is dropped, and cleans up behind itself.
fn on_runtime(work: impl Future<Output = Outcome<()>>) -> Outcome<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.doing("starting the runtime")?;
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = work => outcome,
            _ = tokio::signal::ctrl_c() => Err(Error::Interrupted),
            () = tokio::time::sleep(Duration::from_millis(limits::BENCH_MS_MAX)) => {
                Err(Error::TooLong { ms_max: limits::BENCH_MS_MAX })
            }
        }
    });
    runtime.shutdown_background();
    outcome
}

/// Does it in a task, as the work of a session is done: outside of one, every answer wakes
/// the main thread, too.
async fn as_task<T: Send + 'static>(
    work: impl Future<Output = Outcome<T>> + Send + 'static,
) -> Outcome<T> {
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(work);
    tasks.join_next().await.expect("it was just begun").doing("measuring")?
}

async fn turn() -> Outcome<table::TurnFigures> {
    let provider = children::Provider::start().await?;
    progress(&format!("{} sessions of {} turns", sizes::SESSIONS, sizes::TURNS));
    let turns = turns::measure(provider.port).await?;
    progress("memory of one session");
    let one = memory::of_one_session(provider.port).await?;
    progress(&format!("memory of {} sessions", sizes::CROWD_SESSIONS));
    let crowd = memory::of_a_crowd(provider.port).await?;
    progress(&format!("{} writers of the journal", sizes::WRITERS));
    let steps_per_s = journal::measure().await?;
    Ok(table::TurnFigures { turns, one, crowd, steps_per_s })
}

fn print(taken: &table::TurnFigures, json: bool) -> Outcome<()> {
    if json { say(&figure::to_json(&taken.figures())) } else { say(&taken.shown()) }
}

fn say(text: &str) -> Outcome<()> {
    writeln!(std::io::stdout(), "{text}").doing("printing")
}

fn progress(what: &str) {
    drop(writeln!(std::io::stderr(), "measuring: {what}"));
}
