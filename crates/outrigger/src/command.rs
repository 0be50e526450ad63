//! What each command does.

pub(crate) mod agents;
mod approvals;
pub(crate) mod ask;
mod ask_host;
mod audit;
mod backup;
mod budget;
mod completions;
mod converse;
mod demo;
mod detach;
mod detached;
mod doctor;
mod drive;
mod egress;
pub(crate) mod finish;
mod gc;
mod init;
mod keys;
mod login;
mod man_pages;
mod memory;
mod models;
mod policy;
mod remind;
mod remote;
mod run;
mod sandbox;
mod secrets;
mod serve;
mod sessions;
mod shortage;
mod skills;
mod store;
mod task;
mod tools;
mod trust;

use clap::CommandFactory as _;
use outrigger_client::ServerClient;
use std::io::Write as _;

use crate::cli::{Cli, Command};
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::terminal::{self, Ability};

pub(crate) use agents::Agents;
pub(crate) use approvals::{Approve, Deny, Inbox};
pub(crate) use audit::Audit;
pub(crate) use backup::{Backup, Restore};
pub(crate) use budget::Budget;
pub(crate) use completions::Completions;
pub(crate) use converse::Converse;
pub(crate) use demo::Demo;
pub(crate) use detached::DetachedRun;
pub(crate) use doctor::Doctor;
pub(crate) use egress::Egress;
pub(crate) use gc::Gc;
pub(crate) use init::Init;
pub(crate) use keys::Keys;
pub(crate) use login::{Context, Login, Logout};
pub(crate) use man_pages::ManPages;
pub(crate) use memory::Memory;
pub(crate) use models::Models;
pub(crate) use policy::Policy;
pub(crate) use run::Run;
pub(crate) use sandbox::Sandboxes;
pub(crate) use secrets::Secrets;
pub(crate) use serve::Serve;
pub(crate) use sessions::{Attach, PruneSessions, RemoveSessions, Sessions, StopSessions};
pub(crate) use skills::Skills;
pub(crate) use store::Store;
pub(crate) use tools::Tools;
pub(crate) use trust::Trust;

/// Says what there is to whoever named nothing and does not sit at a terminal.
fn usage() -> Outcome<u8> {
    let help = Cli::command().render_help();
    let mut stderr = anstream::AutoStream::auto(std::io::stderr());
    // Whoever has gone need not be told.
    drop(write!(stderr, "{}", help.ansi()));
    Ok(Kind::Usage as u8)
}

/// Does what the command line says, at a server if one is meant. The code is the process's, if
/// nothing failed.
pub(crate) async fn execute(cli: Cli, paths: &Paths, server: Option<ServerClient>) -> Outcome<u8> {
    let Some(command) = cli.command else {
        return match terminal::ability() {
            Ability::None if cli.converse.again => {
                Err(Failure::new(Kind::Usage, "a conversation needs a terminal").hint(
                    "`outrigger run --continue \"...\"` says one thing and waits for the answer.",
                ))
            }
            Ability::None => usage(),
            Ability::Full | Ability::Lines => match server {
                Some(server) => remote::converse(paths, server, &cli.converse).await,
                None => converse::execute(paths, &cli.converse).await,
            },
        };
    };
    if cli.converse.again {
        return Err(Failure::new(Kind::Usage, "--continue stands alone or behind `run`"));
    }
    if let Some(server) = server {
        return remote::execute(paths, server, command).await;
    }
    match command {
        Command::Run(run) => Box::pin(run::execute(paths, *run)).await,
        Command::Attach(asked) => sessions::attach(paths, asked).await,
        Command::Stop(asked) => sessions::stop(paths, asked).await,
        Command::Rm(asked) => sessions::rm(paths, asked).await,
        Command::Prune(asked) => sessions::prune(paths, asked).await,
        Command::Detached(asked) => detached::execute(paths, asked).await,
        Command::Demo(demo) => Box::pin(demo::execute(paths, demo)).await,
        Command::Init(asked) => init::execute(paths, asked).await,
        Command::Models(asked) => models::execute(paths, asked).await,
        Command::Doctor(doctor) => doctor::execute(paths, doctor).await,
        Command::Gc(asked) => gc::execute(paths, asked).await,
        Command::Backup(asked) => backup::backup(paths, asked).await,
        Command::Restore(asked) => backup::restore(paths, asked).await,
        Command::Store(asked) => Box::pin(store::execute(paths, asked)).await,
        Command::Inbox(asked) => approvals::inbox(paths, asked).await,
        Command::Approve(asked) => Box::pin(approvals::approve(paths, asked)).await,
        Command::Deny(asked) => Box::pin(approvals::deny(paths, asked)).await,
        Command::Policy(asked) => policy::execute(paths, asked).await,
        Command::Budget(asked) => budget::execute(paths, asked).await,
        Command::Trust(asked) => trust::execute(paths, asked).await,
        Command::Tools(asked) => tools::execute(paths, asked).await,
        Command::Memory(asked) => memory::execute(paths, asked).await,
        Command::Skills(asked) => skills::execute(paths, asked).await,
        Command::Agents(asked) => agents::execute(paths, asked).await,
        Command::Egress(asked) => egress::execute(paths, asked).await,
        Command::Secrets(asked) => Box::pin(secrets::execute(paths, asked)).await,
        Command::Login(asked) => login::login(paths, asked).await,
        Command::Logout(asked) => login::logout(paths, asked).await,
        Command::Context(asked) => login::context(paths, asked),
        Command::Keys(asked) => keys::execute(paths, asked).await,
        Command::Serve(asked) => Box::pin(serve::execute(paths, *asked)).await,
        Command::Audit(asked) => audit::execute(paths, asked).await,
        Command::Sandbox(asked) => sandbox::execute(paths, asked).await,
        Command::Sessions(asked) => Box::pin(sessions::execute(paths, asked)).await,
        Command::Completions(asked) => completions::execute(&asked, Cli::command()),
        Command::ManPages(asked) => man_pages::execute(&asked, Cli::command()),
    }
}
