//! `attack [--backend B] [--json] [--only N]`: makes the attacks and says what came of them.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use outrigger_attack::{DockerWorld, GATE, NativeWorld, Scale, Target, TargetReport, run};

/// Attacks sandboxes in every numbered way and compares with what must come of it.
///
/// Exits with 1 if something unexpected came of one, with 2 if they could not be made.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask attack",
    after_help = "`--qemu` stands alone: everything native in a virtual machine with a kernel of Debian's."
)]
struct Args {
    /// Whose sandboxes are attacked.
    #[arg(long, value_enum, default_value_t = Which::Native)]
    backend: Which,
    /// One JSON object per backend instead of a table.
    #[arg(long)]
    json: bool,
    /// The attack with this number alone.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=85))]
    only: Option<u8>,
    /// Rare races are given less time.
    #[arg(long)]
    fast: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// Namespaces of this host.
    Native,
    /// Containers of the engine that answers.
    Docker,
    /// One after the other.
    All,
}

impl Which {
    fn has(self, one: Self) -> bool {
        self == one || self == Self::All
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    // Before any thread exists, as a spawner must.
    match words.next() {
        Some(word) if word == NativeWorld::SPAWNER => {
            return outrigger_sandbox_native::spawner::main(words);
        }
        Some(word) if word == GATE => return gate(words),
        Some(_) | None => {}
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return explained(&error),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime
        .map_err(|error| error.to_string())
        .and_then(|runtime| runtime.block_on(attack(&args)))
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

/// Becomes the gate of a directory, which trusts the roots in a file and no others: it reads
/// them where its environment says, so that is set by starting once more.
fn gate(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(first), second) = (words.next(), words.next()) else { return ExitCode::from(2) };
    let failed = match second {
        None => outrigger_gate::serve(Path::new(&first)).err().map(|error| error.to_string()),
        Some(dir) => {
            let again = std::env::current_exe().map(|program| {
                let mut command = Command::new(program);
                command.arg(GATE).arg(dir).env("SSL_CERT_FILE", first).env_remove("SSL_CERT_DIR");
                command.exec()
            });
            Some(again.unwrap_or_else(|error| error).to_string())
        }
    };
    if failed.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What was asked for, or what is wrong with it and all that can be.
fn explained(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    let what = text.split("\n\n").next().unwrap_or(&text);
    // There is nowhere left to report a closed stderr.
    let _ = writeln!(std::io::stderr(), "{}\n\n{}", what.trim_end(), Args::command().render_help());
    ExitCode::from(2)
}

/// Whether everything came as expected.
async fn attack(args: &Args) -> Result<bool, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut fine = true;
    for which in [Which::Native, Which::Docker] {
        if !args.backend.has(which) {
            continue;
        }
        let report = match which {
            Which::Docker => docker(args, program.clone()).await?,
            Which::Native | Which::All => native(args, program.clone()).await?,
        };
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

async fn native(args: &Args, program: PathBuf) -> Result<TargetReport, String> {
    let world = NativeWorld::open(program).await.map_err(|error| error.to_string())?;
    let report = against(args, world.target()).await;
    world.close().await.map_err(|error| error.to_string())?;
    Ok(report)
}

async fn docker(args: &Args, program: PathBuf) -> Result<TargetReport, String> {
    let world = DockerWorld::open(program).await.map_err(|error| error.to_string())?;
    let report = against(args, world.target()).await;
    world.close().await.map_err(|error| error.to_string())?;
    Ok(report)
}

async fn against(args: &Args, target: Target) -> TargetReport {
    let scale = if args.fast { Scale::Fast } else { Scale::Whole };
    let (only, json) = (args.only, args.json);
    let progress = move |row: &outrigger_attack::table::Row| {
        if !json {
            // Progress is for whoever watches; nobody may.
            let _ = writeln!(std::io::stderr(), "{:>3} {}", row.number, row.name);
        }
    };
    run(target, scale, only, &progress).await
}
