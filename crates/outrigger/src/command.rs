//! What each command does.

mod approvals;
mod audit;
mod backup;
mod budget;
mod cuts;
mod demo;
mod doctor;
mod drive;
mod finish;
mod gc;
mod memory;
mod policy;
mod remind;
mod remove;
mod run;
mod sandbox;
mod sessions;
mod skills;
mod tools;

use crate::cli::{Cli, Command, Sessions};
use crate::exit::Outcome;
use crate::paths::Paths;

pub(crate) use demo::TURNS;

/// Does what the command line says. The code is the process's, if nothing failed.
pub(crate) async fn execute(cli: Cli) -> Outcome<u8> {
    let paths = Paths::resolve(cli.global.data_dir, cli.global.config)?;
    match cli.command {
        Command::Run(run) => run::execute(&paths, run).await,
        Command::Demo(demo) => demo::execute(&paths, demo).await,
        Command::Doctor(doctor) => doctor::execute(&paths, doctor).await,
        Command::Gc(asked) => gc::execute(&paths, asked).await,
        Command::Backup(asked) => backup::backup(&paths, asked).await,
        Command::Restore(asked) => backup::restore(&paths, asked).await,
        Command::Inbox(asked) => approvals::inbox(&paths, asked).await,
        Command::Approve(asked) => approvals::approve(&paths, asked).await,
        Command::Deny(asked) => approvals::deny(&paths, asked).await,
        Command::Policy(asked) => policy::execute(&paths, asked).await,
        Command::Budget(asked) => budget::execute(&paths, asked).await,
        Command::Tools(asked) => tools::execute(&paths, asked).await,
        Command::Memory(asked) => memory::execute(&paths, asked).await,
        Command::Skills(asked) => skills::execute(&paths, asked).await,
        Command::Audit(asked) => audit::execute(&paths, asked).await,
        Command::Sandbox(asked) => sandbox::execute(&paths, asked).await,
        Command::Sessions(asked) => of_sessions(&paths, asked).await,
    }
}

async fn of_sessions(paths: &Paths, asked: Sessions) -> Outcome<u8> {
    match asked {
        Sessions::Ls { limit, all, output } => {
            let below = if all { sessions::Below::Shown } else { sessions::Below::Hidden };
            sessions::ls(paths, limit, below, output).await
        }
        Sessions::Show { session, output } => sessions::show(paths, &session, output).await,
        Sessions::Logs { session, follow, since, output } => {
            let follow = if follow { sessions::Until::Parked } else { sessions::Until::Now };
            sessions::logs(paths, &session, follow, since, output).await
        }
        Sessions::Say { session, text, apply, output } => {
            let (back, more) = (run::Back::from_flag(apply), sessions::More::Said(text));
            sessions::go_on(paths, &session, back, more, output).await
        }
        Sessions::Resume { session, apply, limits, output } => {
            let (back, more) = (run::Back::from_flag(apply), sessions::More::Limits(limits));
            sessions::go_on(paths, &session, back, more, output).await
        }
        Sessions::Moments { session, output } => cuts::moments(paths, &session, output).await,
        Sessions::Fork { session, at, output } => cuts::fork(paths, &session, at, output).await,
        Sessions::Rewind { session, to, output } => cuts::rewind(paths, &session, to, output).await,
        Sessions::Export { session, file, output } => {
            backup::export(paths, &session, &file, output).await
        }
        Sessions::Import { file, output } => backup::import(paths, &file, output).await,
        Sessions::Rm { sessions, output } => remove::execute(paths, &sessions, output).await,
        Sessions::Cancel { session, output } => sessions::cancel(paths, &session, output).await,
    }
}
