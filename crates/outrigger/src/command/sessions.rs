//! `outrigger sessions`: look at sessions, go on with them, end them.

mod attach;
mod cancel;
mod follow;
mod fork;
mod ls;
mod patch;
mod prune;
mod remove;
mod resume;
mod share;
mod show;
mod stop;

use clap::Subcommand;
use outrigger_agent::Message;
use std::path::PathBuf;

use super::backup;
use super::detach::Driver;
use crate::exit::Outcome;
use crate::flags::{Apply, Limits, Net, NewModel, Output, Pictures};
use crate::paths::Paths;
use crate::{picture, session};

pub(crate) use attach::{Attach, attach, tell as tell_watched};
pub(super) use cancel::wind_down;
pub(crate) use fork::{CheckpointLine, print as print_checkpoints};
pub(crate) use ls::{Ls, SessionLine, print as print_sessions};
pub(crate) use patch::{Diff, WriteBack, print as print_patch};
pub(crate) use prune::{PruneSessions, prune, tell_dry, tell_pruned};
pub(crate) use remove::{RemoveSessions, Remover, gone, rm, told as tell_removed, unfinished};
pub(super) use resume::{GoOn, More, change, go_on};
pub(crate) use share::{ShareSession, print as print_shares};
pub(crate) use show::{Show, lines, screen as show_screen, summary};
pub(crate) use stop::{
    StopSessions, did_not_run, did_stop, print as print_stopped, still_runs, stop,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List sessions, newest first.
    Ls(ls::Ls),
    /// Show a session: its steps, its answer, its model and directory, what it cost.
    Show(show::Show),
    /// Show a session live, and tell when it ends or waits for a person.
    Attach(Attach),
    /// Share a session with others who use the server, or show with whom it is shared.
    Share(share::ShareSession),
    /// Print the patch of what a session changed.
    Diff(patch::Diff),
    /// Write what a session changed back to its directory, now or once more.
    Apply(patch::WriteBack),
    /// Stop what sessions do now. They can go on later.
    Stop(StopSessions),
    /// Print a session's events.
    Logs {
        /// The session, the beginning of its name, or `@last`.
        session: String,
        /// Go on as they happen, until the session waits or ends.
        #[arg(long, short)]
        follow: bool,
        /// Only events after this one.
        #[arg(long, default_value_t = 0, value_name = "SEQ")]
        since: u64,
        #[command(flatten)]
        output: Output,
    },
    /// Say something in a session that waits, and let it go on with that.
    Say {
        /// The session, the beginning of its name, or `@last`.
        session: String,
        /// What to say.
        text: String,
        #[command(flatten)]
        net: Net,
        #[command(flatten)]
        shown: Pictures,
        #[command(flatten)]
        apply: Apply,
        #[command(flatten)]
        output: Output,
    },
    /// Go on with a session that was killed, stopped or reached a limit.
    Resume {
        /// The session, the beginning of its name, or `@last`.
        session: String,
        #[command(flatten)]
        net: Net,
        #[command(flatten)]
        apply: Apply,
        #[command(flatten)]
        limits: Limits,
        #[command(flatten)]
        model: Box<NewModel>,
        #[command(flatten)]
        output: Output,
    },
    /// List where a session can be forked, or taken back to.
    #[command(alias = "moments")]
    Checkpoints {
        /// The session, the beginning of its name, or `@last`.
        session: String,
        #[command(flatten)]
        output: Output,
    },
    /// Begin another session where this one stood: its conversation, its files, what it
    /// spent and what waits for a person.
    Fork {
        /// The session, the beginning of its name, or `@last`.
        session: String,
        /// The checkpoint, by its number in `checkpoints`; without, the last one.
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
        #[command(flatten)]
        output: Output,
    },
    /// Take a session back to where it stood before; what it spent stays spent. Files
    /// that were written back to the directory stay as they are.
    Rewind {
        /// The session, the beginning of its name, or `@last`.
        session: String,
        /// The checkpoint, by its number in `checkpoints`; without, the one before.
        #[arg(long, value_name = "SEQ")]
        to: Option<u64>,
        #[command(flatten)]
        output: Output,
    },
    /// Write a session and its subagents into one file: events with their chain, and the
    /// contents that they name. The disks of its sandboxes are not in it.
    Export {
        /// The session, the beginning of its name, or `@last`.
        session: String,
        /// Where it is written; a file that is there is left as it is.
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Take in sessions from a file, if all of it verifies and none of them is here. Whoever
    /// made the file can have made them up: the chain says only that they are whole.
    Import {
        /// What `outrigger sessions export` wrote.
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Remove sessions that are over, with their subagents, patches and what is kept of
    /// their disks. The audit log says that they were removed; what they wrote to memory
    /// and what they spent stays.
    Rm(RemoveSessions),
    /// Remove all sessions that were not touched for some time and in which nothing runs or
    /// waits for a person, interrupted ones among them.
    Prune(PruneSessions),
    /// End a session for good: running commands are killed, its sandbox is deleted.
    Cancel {
        /// The session, the beginning of its name, or `@last`.
        session: String,
        #[command(flatten)]
        output: Output,
    },
}

impl Sessions {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Ls(asked) => asked.output,
            Self::Show(asked) => asked.output,
            Self::Attach(asked) => asked.output,
            Self::Share(asked) => asked.output,
            Self::Diff(asked) => asked.output,
            Self::Apply(asked) => asked.output,
            Self::Stop(asked) => asked.output,
            Self::Rm(asked) => asked.output,
            Self::Prune(asked) => asked.output,
            Self::Logs { output, .. }
            | Self::Say { output, .. }
            | Self::Resume { output, .. }
            | Self::Checkpoints { output, .. }
            | Self::Fork { output, .. }
            | Self::Rewind { output, .. }
            | Self::Export { output, .. }
            | Self::Import { output, .. }
            | Self::Cancel { output, .. } => *output,
        }
    }
}

/// Does what the command line says.
pub(crate) async fn execute(paths: &Paths, asked: Sessions) -> Outcome<u8> {
    match asked {
        Sessions::Ls(asked) => ls::execute(paths, asked).await,
        Sessions::Show(asked) => show::execute(paths, asked).await,
        Sessions::Attach(asked) => attach(paths, asked).await,
        Sessions::Share(asked) => share::share(paths, asked).await,
        Sessions::Diff(asked) => patch::diff(paths, asked).await,
        Sessions::Apply(asked) => patch::apply(paths, asked).await,
        Sessions::Stop(asked) => stop(paths, asked).await,
        Sessions::Logs { session, follow, since, output } => {
            let until = if follow { follow::Until::Parked } else { follow::Until::Now };
            follow::logs(paths, &session, until, since, output).await
        }
        Sessions::Say { session, text, net, shown, apply, output } => {
            let pictures = picture::named(&shown.picture)?;
            let pictures = picture::keep(paths, pictures).await?;
            let more = More::Said(vec![Message { pictures, ..session::said(text) }]);
            let how = GoOn { apply, more, network: net.words()?, driver: Driver::Here };
            go_on(paths, &session, how, output).await
        }
        Sessions::Resume { session, net, apply, limits, model, output } => {
            let more = More::Otherwise(limits, model);
            let how = GoOn { apply, more, network: net.words()?, driver: Driver::Here };
            go_on(paths, &session, how, output).await
        }
        Sessions::Checkpoints { session, output } => fork::list(paths, &session, output).await,
        Sessions::Fork { session, at, output } => fork::fork(paths, &session, at, output).await,
        Sessions::Rewind { session, to, output } => fork::rewind(paths, &session, to, output).await,
        Sessions::Export { session, file, output } => {
            backup::export(paths, &session, &file, output).await
        }
        Sessions::Import { file, output } => backup::import(paths, &file, output).await,
        Sessions::Rm(asked) => rm(paths, asked).await,
        Sessions::Prune(asked) => prune(paths, asked).await,
        Sessions::Cancel { session, output } => cancel::cancel(paths, &session, output).await,
    }
}
