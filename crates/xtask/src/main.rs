//! Checks and measurements of the project.
//!
//! Owns the command line `cargo xtask`. Links no crate of the project, so that
//! the checks build in seconds and run while the rest is broken; `sim`, `bench` and
//! `attack` are programs of other crates, started as children.

mod browser;
mod child;
mod ci;
mod crate_map;
mod dist;
mod docker;
mod finding;
mod fuzz;
mod imports;
mod layers;
mod limits;
mod mutants;
mod postgres;
mod projects;
mod qemu;
mod schemathesis;
mod service;
mod setup;
mod source;
mod subjects;
mod suite;
mod tally;
mod tidy;
mod tokens;
mod tree;
mod workspace;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use child::Child;
use workspace::Workspace;

/// Checks and measurements of the project.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// The rules of CONTRIBUTING.md that clippy can't hold.
    Tidy {
        /// One JSON object instead of lines.
        #[arg(long)]
        json: bool,
    },
    /// Dependencies between the crates point down only.
    Layers,
    /// Subjects of new commits are `area: what changed`.
    Subjects,
    /// The table of crates in ARCHITECTURE.md.
    CrateMap {
        /// Put it into the page; without, it is printed.
        #[arg(long)]
        write: bool,
    },
    /// Seeded runs of the whole system: `sim [--seeds 10000] [--seed 17] [--every]
    /// [--without fencing|intent|reservation|redecision]`; or, to see that it misses each
    /// safeguard whose line is taken away, `sim --mutants`.
    #[command(disable_help_flag = true)]
    Sim {
        /// Against copies of the sources, each without one safeguard.
        #[arg(long)]
        mutants: bool,
        /// Passed on as they are.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Runs a command with a Docker engine, its own where none answers: `docker cargo nextest
    /// run`. With `--runtime runsc` always with its own.
    #[command(disable_help_flag = true)]
    Docker {
        /// A runtime that Docker's engine is to have, and that tests of its backend use:
        /// a program's name.
        #[arg(long)]
        runtime: Option<String>,
        /// The command.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
    /// Runs a command with a server of PostgreSQL of its own: `postgres cargo nextest run`.
    #[command(disable_help_flag = true)]
    Postgres {
        /// The command.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
    /// Measurements: `bench turn|sandbox|policy|audit|namespace|conversation|gate|server
    /// [--json]`.
    #[command(disable_help_flag = true)]
    Bench {
        /// Passed on as they are.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Parsers of hostile bytes, fed with what a fuzzer makes up.
    Fuzz {
        /// How long each target runs.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Only this one.
        target: Option<String>,
    },
    /// The numbered attacks on sandboxes: `attack [--backend native|docker|all]
    /// [--json] [--only N] [--fast]` or `attack --qemu`.
    #[command(disable_help_flag = true)]
    Attack {
        /// In a virtual machine with a kernel of Debian's.
        #[arg(long)]
        qemu: bool,
        /// Passed on as they are.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Kills the real program again and again, and looks whether anything was done twice
    /// or lost: `kill --times 1000`, `kill gate --times 100`,
    /// `postgres cargo xtask kill engine-on-postgres`.
    Kill {
        /// How often.
        #[arg(long, default_value_t = 1_000)]
        times: u32,
        /// What is killed.
        #[arg(value_enum, default_value_t)]
        killed: child::Killed,
    },
    /// The tests of twelve projects of others, unmodified, on the host and in the default
    /// sandbox in turn.
    Projects(projects::Projects),
    /// The page of `outrigger serve` in Chromium, against the real server: `browser [--only NAME]`.
    Browser(browser::Browser),
    /// The contract of `outrigger serve` against the real server: requests made up from it, and
    /// every operation without a right to it: `schemathesis [--seeds 5] [--first SEED]`.
    Schemathesis(schemathesis::Schemathesis),
    /// Installs what the tests need and this machine lacks (Debian, Ubuntu, Fedora).
    Setup,
    /// Everything that CI runs, in its order.
    Ci,
    /// What is published, in `target/published`: the program, static, with completions, pages for
    /// man and licence in an archive, a Debian package, a list of what is in it (SBOM), sums.
    Dist,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
    #[error(transparent)]
    Tree(#[from] tree::Error),
    #[error(transparent)]
    Child(#[from] child::Error),
    #[error(transparent)]
    Ci(#[from] ci::Error),
    #[error(transparent)]
    Dist(#[from] dist::Error),
    #[error(transparent)]
    Setup(#[from] setup::Error),
    #[error(transparent)]
    Fuzz(#[from] fuzz::Error),
    #[error(transparent)]
    Mutants(#[from] mutants::Error),
    #[error(transparent)]
    Qemu(#[from] qemu::Error),
    #[error(transparent)]
    Service(#[from] service::Error),
    #[error(transparent)]
    Projects(#[from] projects::Error),
    #[error(transparent)]
    Suite(#[from] suite::Error),
    #[error(transparent)]
    CrateMap(#[from] crate_map::Error),
    #[error("cannot read or write {}", crate_map::PAGE)]
    Page(#[source] std::io::Error),
    #[error("`{flag}` stands alone, and does not go with `{rest}`: there, everything is tried")]
    Alone { flag: &'static str, rest: String },
    #[error("cannot write the output")]
    Write(#[from] std::io::Error),
    #[error("cannot write the report as JSON")]
    Json(#[from] serde_json::Error),
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let mut err = std::io::stderr().lock();
            let mut cause: Option<&dyn std::error::Error> = Some(&error);
            let mut mark = "error: ";
            while let Some(next) = cause {
                // There is nowhere left to report a closed stderr.
                let _ = writeln!(err, "{mark}{next}");
                mark = "  caused by: ";
                cause = next.source();
            }
            ExitCode::from(2)
        }
    }
}

/// The exit code: 0 fine, 1 findings, 2 could not check, or a child's own.
fn run(task: Task) -> Result<u8, Error> {
    let mut out = std::io::stdout().lock();
    match task {
        Task::Tidy { json } => {
            let report = tidy::run(Workspace::load()?)?;
            if json {
                serde_json::to_writer_pretty(&mut out, &report)?;
                writeln!(out)?;
            } else {
                report.print(&mut out)?;
            }
            Ok(u8::from(!report.is_clean()))
        }
        Task::Layers => layers(&mut out),
        Task::Subjects => Ok(subjects::run(&mut out)?),
        Task::CrateMap { write } => crate_map(write, &mut out),
        Task::Sim { mutants, args } => {
            drop(out);
            sim(mutants, args)
        }
        Task::Kill { times, killed } => Ok(child::code(Child::kills(times, killed).run()?)),
        Task::Bench { args } => {
            drop(out);
            bench(args)
        }
        Task::Attack { qemu, args } => {
            drop(out);
            attack(qemu, args)
        }
        Task::Docker { runtime, command } => {
            drop(out);
            let command = Child::new(command);
            Ok(docker::run_with(runtime.as_deref(), &command, &mut std::io::stderr())?)
        }
        Task::Postgres { command } => {
            drop(out);
            Ok(postgres::run(&Child::new(command), &mut std::io::stderr())?)
        }
        // Children print between our own lines, so the lock must not be held.
        Task::Fuzz { seconds, target } => {
            drop(out);
            let root = Workspace::load()?.root;
            Ok(fuzz::run(&root, target.as_deref(), seconds, &mut std::io::stdout())?)
        }
        Task::Projects(asked) => {
            drop(out);
            Ok(projects::run(&asked, &Workspace::load()?, &mut std::io::stdout())?)
        }
        Task::Browser(asked) => {
            drop(out);
            Ok(browser::run(&asked, &Workspace::load()?, &mut std::io::stdout())?)
        }
        Task::Schemathesis(asked) => {
            drop(out);
            Ok(schemathesis::run(&asked, &Workspace::load()?, &mut std::io::stdout())?)
        }
        Task::Setup => {
            drop(out);
            Ok(setup::run(&mut std::io::stdout())?)
        }
        Task::Ci => {
            drop(out);
            Ok(ci::run(&mut std::io::stdout())?)
        }
        Task::Dist => {
            drop(out);
            Ok(dist::run(&Workspace::load()?, &mut std::io::stdout())?)
        }
    }
}

fn crate_map(write: bool, out: &mut impl Write) -> Result<u8, Error> {
    let workspace = Workspace::load()?;
    let table = crate_map::render(&workspace);
    if write {
        let path = workspace.root.join(crate_map::PAGE);
        let page = std::fs::read_to_string(&path).map_err(Error::Page)?;
        std::fs::write(&path, crate_map::replace(&page, &table)?).map_err(Error::Page)?;
    } else {
        write!(out, "{table}")?;
    }
    Ok(0)
}

fn bench(args: Vec<String>) -> Result<u8, Error> {
    match args.first().map(String::as_str) {
        // It measures Docker too.
        Some("sandbox") => Ok(docker::run(&Child::sim_bin("bench", args), &mut std::io::stderr())?),
        // It measures the program that lies beside it.
        Some("conversation") => match Child::program().run()? {
            built if built.success() => Ok(child::code(Child::sim_bin("bench", args).run()?)),
            failed => Ok(child::code(failed)),
        },
        // Likewise, but that it asks it over HTTP.
        Some("server") => match Child::program().run()? {
            built if built.success() => {
                Ok(child::code(Child::server_bench(args.into_iter().skip(1)).run()?))
            }
            failed => Ok(child::code(failed)),
        },
        // It is the gate itself, and knows nothing above it.
        Some("gate") => Ok(child::code(Child::gate_bench(args.into_iter().skip(1)).run()?)),
        _ => Ok(child::code(Child::sim_bin("bench", args).run()?)),
    }
}

fn layers(out: &mut impl Write) -> Result<u8, Error> {
    let findings = layers::check(&Workspace::load()?);
    for finding in &findings {
        writeln!(out, "{finding}")?;
    }
    writeln!(out, "layers: {} errors", findings.len())?;
    Ok(u8::from(!findings.is_empty()))
}

fn sim(mutants: bool, args: Vec<String>) -> Result<u8, Error> {
    match mutants {
        true if !args.is_empty() => Err(Error::Alone { flag: "--mutants", rest: args.join(" ") }),
        true => Ok(mutants::run(&Workspace::load()?, &mut std::io::stdout())?),
        false => Ok(child::code(Child::sim_bin("sim", args).run()?)),
    }
}

fn attack(qemu: bool, args: Vec<String>) -> Result<u8, Error> {
    match qemu {
        true if !args.is_empty() => Err(Error::Alone { flag: "--qemu", rest: args.join(" ") }),
        true => Ok(qemu::run(&Workspace::load()?.target)?),
        false if child::wants_docker(&args) => {
            Ok(docker::run(&Child::attack(args), &mut std::io::stderr())?)
        }
        false => Ok(child::code(Child::attack(args).run()?)),
    }
}
