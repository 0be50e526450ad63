//! `outrigger memory proposals`: changes that wait for somebody to accept them.

use clap::Subcommand;
use outrigger_api::{ProposalComment, ProposalDetails};
use outrigger_engine::path_of;
use outrigger_server::entries::proposal;
use outrigger_store::entries::{
    Decision, EntryAddress, EntryPath, Error, Proposal, ProposalFilter, ProposalId, base_of,
};

use super::context::MemoryContext;
use super::print::{print_decided, print_proposal, print_proposals};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::session::now_ms;

/// The verbs of proposals.
#[derive(Debug, Subcommand)]
pub(crate) enum Proposals {
    /// List them.
    Ls {
        /// Also those that were decided.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Show one, with what it would change and what was said of it.
    Show {
        /// Its number.
        number: u64,
        #[command(flatten)]
        output: Output,
    },
    /// Let it become what stands there.
    Accept {
        /// Its number.
        number: u64,
        #[command(flatten)]
        output: Output,
    },
    /// Refuse it.
    Reject {
        /// Its number.
        number: u64,
        /// Why, for its author.
        #[arg(long, short = 'm', value_name = "TEXT", default_value = "")]
        reason: String,
        #[command(flatten)]
        output: Output,
    },
    /// Take back what you proposed.
    Withdraw {
        /// Its number.
        number: u64,
        #[command(flatten)]
        output: Output,
    },
    /// Say something of it.
    Comment {
        /// Its number.
        number: u64,
        /// What.
        text: String,
        #[command(flatten)]
        output: Output,
    },
}

impl Proposals {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Ls { output, .. }
            | Self::Show { output, .. }
            | Self::Accept { output, .. }
            | Self::Reject { output, .. }
            | Self::Withdraw { output, .. }
            | Self::Comment { output, .. } => *output,
        }
    }
}

pub(super) async fn execute(memory: &MemoryContext, asked: Proposals) -> Outcome {
    match asked {
        Proposals::Ls { all, .. } => {
            ls(memory, if all { ProposalFilter::All } else { ProposalFilter::Open }).await
        }
        Proposals::Show { number, .. } => show(memory, number).await,
        Proposals::Accept { number, .. } => {
            decide(memory, number, Decision::Accept, "accepted").await
        }
        Proposals::Reject { number, reason, .. } => {
            decide(memory, number, Decision::Reject { reason }, "rejected").await
        }
        Proposals::Withdraw { number, .. } => {
            decide(memory, number, Decision::Withdraw, "withdrawn").await
        }
        Proposals::Comment { number, text, .. } => {
            let id = ProposalId(number);
            let said = memory.reviews.comment(&memory.scope, id, text, now_ms()).await;
            said.map_err(|error| failed(number, error))?;
            print_decided(number, "commented", memory.output)
        }
    }
}

fn failed(number: u64, error: Error) -> Failure {
    let kind = match &error {
        Error::Absent | Error::Redacted(_) => Kind::NotFound,
        Error::Conflict(_) | Error::Decided { .. } => Kind::Conflict,
        Error::NotReviewer | Error::NotAuthor => Kind::Denied,
        Error::Store(source) => return Failure::from(source),
        _ => Kind::Usage,
    };
    Failure::new(kind, format!("proposal {number}: {error}"))
        .hint("`outrigger memory proposals ls` lists what waits.")
}

async fn decide(memory: &MemoryContext, number: u64, decision: Decision, what: &str) -> Outcome {
    let decided =
        memory.reviews.decide(&memory.scope, ProposalId(number), decision, now_ms()).await;
    decided.map_err(|error| failed(number, error))?;
    print_decided(number, what, memory.output)
}

async fn ls(memory: &MemoryContext, asked: ProposalFilter) -> Outcome {
    let mut found: Vec<Proposal> = Vec::new();
    for memory_scope in memory.scope.all_memory_scopes() {
        let root = EntryAddress { memory_scope: memory_scope.clone(), path: EntryPath::ROOT };
        let page = memory.reviews.proposals(&memory.scope, &memory_scope, asked, None).await;
        found.extend(page.map_err(|error| memory.failed(&root, error))?);
    }
    found.sort_by_key(|proposal| proposal.id);
    print_proposals(&found.iter().map(proposal).collect::<Vec<_>>(), memory.output)
}

async fn show(memory: &MemoryContext, number: u64) -> Outcome {
    let found = memory.reviews.proposal(&memory.scope, ProposalId(number)).await;
    let (it, file, comments) = found.map_err(|error| failed(number, error))?;
    let base = base_of(&*memory.entries, &memory.scope, &it).await;
    let base = base.map_err(|error| memory.failed(&it.at, error))?;
    let after = file.unwrap_or_default();
    let path = path_of(&it.at);
    let names = [format!("{path} r{}", it.base), format!("proposal {number}")];
    let diff = outrigger_repository::diff(&base, &after, [&names[0], &names[1]]);
    let diff = diff.unwrap_or_else(|| "the file is no text\n".to_owned());
    let comments = comments
        .into_iter()
        .map(|it| ProposalComment { author: it.author.to_string(), at_ms: it.at_ms, text: it.text })
        .collect();
    print_proposal(&ProposalDetails { proposal: proposal(&it), diff, comments }, memory.output)
}
