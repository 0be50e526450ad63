//! Commands about sessions of a server: the same verbs, over its API.
//!
//! Owns what is asked of the server for each verb. Journals come as they are kept, so that what
//! is shown of a session, and how, is the same code as for one of this machine.

mod agents;
mod approvals;
mod attached;
mod audit;
mod budget;
mod changes;
mod connection;
mod conversation;
mod follow;
mod journal;
mod memory;
mod questions;
mod run;
mod sandbox_copy;
mod sandbox_exec;
mod sandbox_names;
mod sandbox_shell;
mod sandboxes;
mod secrets;
mod session_work;
mod sessions;
mod skills;
mod talk;
mod watch;

use outrigger_client::ServerClient;

use super::egress;
use super::sessions::Sessions;
use crate::cli::Command;
use crate::exit::Outcome;
use crate::paths::Paths;
use connection::Remote;

pub(super) use connection::not_there;
pub(super) use conversation::converse;

/// Does what the command line says of sessions of a server.
pub(super) async fn execute(paths: &Paths, client: ServerClient, command: Command) -> Outcome<u8> {
    let remote = &Remote::new(paths, client);
    match command {
        Command::Run(asked) => Box::pin(run::run(remote, *asked)).await,
        Command::Attach(asked) => sessions::attach(remote, asked).await,
        Command::Stop(asked) => sessions::stop(remote, asked).await,
        Command::Rm(asked) => sessions::rm(remote, asked).await,
        Command::Prune(asked) => sessions::prune(remote, asked).await,
        Command::Inbox(asked) => approvals::inbox(remote, asked).await,
        Command::Approve(asked) => Box::pin(approvals::approve(remote, asked)).await,
        Command::Deny(asked) => Box::pin(approvals::deny(remote, asked)).await,
        Command::Sessions(Sessions::Attach(asked)) => sessions::attach(remote, asked).await,
        Command::Sessions(Sessions::Stop(asked)) => sessions::stop(remote, asked).await,
        Command::Sessions(Sessions::Diff(asked)) => changes::diff(remote, asked).await,
        Command::Sessions(Sessions::Apply(asked)) => changes::apply(remote, asked).await,
        Command::Sessions(asked) => Box::pin(sessions::execute(remote, asked)).await,
        Command::Agents(asked) => agents::execute(remote, asked).await,
        Command::Audit(asked) => audit::execute(remote, asked).await,
        Command::Egress(asked) => egress::of_journals(&remote.journal, asked).await,
        Command::Budget(asked) => budget::execute(remote, asked).await,
        Command::Memory(asked) => memory::execute(remote, asked).await,
        Command::Sandbox(asked) => Box::pin(sandboxes::execute(remote, asked)).await,
        Command::Secrets(asked) => secrets::execute(remote, asked).await,
        Command::Skills(asked) => skills::execute(remote, asked).await,
        _ => Err(not_there("this command")),
    }
}
