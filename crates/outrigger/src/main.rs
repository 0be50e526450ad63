//! `outrigger`: runs AI agents with the harness outside the sandbox.
//!
//! Owns the command line, the configuration, keys, and the composition of all
//! parts: the only crate that names implementations and reads the environment.
//! Must never decide or perform what belongs to the crates below it.

#![forbid(unsafe_code)]

mod abandoned;
mod agents;
mod change;
mod cli;
mod command;
mod compose;
mod config;
mod confinement;
mod conversation;
mod exit;
mod expand;
mod flags;
mod hand_over;
mod header_keys;
mod image;
mod json_file;
mod limits;
mod models;
mod network;
mod notify;
mod outside;
mod own_files;
mod paths;
mod picture;
mod project;
mod project_content;
mod project_file;
mod project_servers;
mod question;
#[cfg(test)]
mod reference;
mod repository;
mod rules;
mod sandbox;
mod sealed_keys;
mod servers;
mod session;
mod setup;
mod shell;
mod show;
mod signed_in;
mod skills;
mod supervisor;
mod telemetry;
mod terminal;
mod trust;
mod waiting;
mod workspace;

use clap::Parser;
use rustix::process::DumpableBehavior;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    // Before there is any thread, key or open file: the spawner must be clean.
    let first = args.next();
    if first.as_deref().is_some_and(|mode| mode == compose::SPAWNER_MODE) {
        return outrigger_sandbox_native::spawner::main(args);
    }
    if first.as_deref().is_some_and(|mode| mode == network::GATE_MODE) {
        return network::serve(args);
    }
    if first.is_some_and(|mode| mode == supervisor::SUPERVISOR_MODE) {
        return supervisor::serve::serve(args);
    }
    // Before any key is read: no core of this process is written, by the kernel or by the
    // host's program for cores, and no other process of its user looks into its memory or
    // environment.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let mut cli = cli::Cli::parse();
    let json = cli.command.as_ref().is_some_and(cli::Command::wants_json);
    let (paths, server) = match prepared(&mut cli) {
        Ok(prepared) => prepared,
        Err(failure) => {
            show::failure(&failure, json);
            return failure.code();
        }
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let failure = exit::Failure::from_error(exit::Kind::Storage, &error);
            show::failure(&failure, json);
            return failure.code();
        }
    };
    let outcome = runtime.block_on(command::execute(cli, &paths, server));
    // A blocked read of standard input must not keep us.
    runtime.shutdown_background();
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            show::failure(&failure, json);
            failure.code()
        }
    }
}

/// Leaves no key in this process, whose environment others are started with, and confines it
/// where it drives a session: before there is another thread. Gives the places of the
/// installation, and the server that the command goes to: then no session is driven here.
fn prepared(
    cli: &mut cli::Cli,
) -> exit::Outcome<(paths::Paths, Option<outrigger_client::ServerClient>)> {
    let global = &cli.global;
    let paths = paths::Paths::resolve(global.data_dir.clone(), global.config.clone())?
        .with_database(global.database.as_deref())?;
    if let Some(server) = cli.server(&paths)? {
        return Ok((paths, Some(server)));
    }
    if let Some(asked) = cli.model() {
        hand_over::hand_over(&paths, asked)?;
    }
    cli.listen()?;
    match cli.works_in() {
        Some(place) => Ok((confinement::enter(paths, &place)?, None)),
        None => Ok((paths, None)),
    }
}
