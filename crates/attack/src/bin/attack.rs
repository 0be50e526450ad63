//! `attack [--backend B] [--json] [--only N]`: makes the attacks and says what came of them.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, ValueEnum};
use outrigger_attack::{NativeWorld, Report, Scale, run};
use outrigger_sandbox::Backend;

/// Attacks sandboxes in every numbered way and compares with what must come of it.
///
/// Exits with 1 if something unexpected came of one, with 2 if they could not be made.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask attack")]
struct Args {
    /// Whose sandboxes are attacked.
    #[arg(long, value_enum, default_value_t = Which::Native)]
    backend: Which,
    /// One JSON object per backend instead of a table.
    #[arg(long)]
    json: bool,
    /// The attack with this number alone.
    #[arg(long)]
    only: Option<u8>,
    /// Rare races are given less time.
    #[arg(long)]
    fast: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    Native,
    All,
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    // Before any thread exists, as a spawner must.
    if words.next().is_some_and(|word| word == NativeWorld::SPAWNER) {
        return outrigger_sandbox_native::spawner::main(words);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime
        .map_err(|error| error.to_string())
        .and_then(|runtime| runtime.block_on(attack(&Args::parse())))
    {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // There is nowhere left to report a closed stderr.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether everything came as expected.
async fn attack(args: &Args) -> Result<bool, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    // Every backend that is named; `all` names each that is built in.
    let reports = [native(args, program).await?];
    let mut fine = true;
    for report in reports {
        fine &= report.unexpected().next().is_none() && !report.attempts.is_empty();
        let text = if args.json {
            serde_json::to_string(&report).map_err(|error| error.to_string())? + "\n"
        } else {
            report.to_string()
        };
        std::io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    }
    Ok(fine)
}

async fn native(args: &Args, program: PathBuf) -> Result<Report, String> {
    let world = NativeWorld::open(program).await.map_err(|error| error.to_string())?;
    let report = against(args, world.backend()).await;
    world.close().await.map_err(|error| error.to_string())?;
    Ok(report)
}

async fn against(args: &Args, backend: Arc<dyn Backend>) -> Report {
    let scale = if args.fast { Scale::Fast } else { Scale::Whole };
    let (only, json) = (args.only, args.json);
    let progress = move |row: &outrigger_attack::table::Row| {
        if !json {
            // Progress is for whoever watches; nobody may.
            let _ = writeln!(std::io::stderr(), "{:>3} {}", row.number, row.name);
        }
    };
    run(backend, scale, only, &progress).await
}
