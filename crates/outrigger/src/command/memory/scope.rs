//! `outrigger memory scope`: what holds for a memory scope.

use clap::{Args, value_parser};
use outrigger_engine::path_of;
use outrigger_store::entries::{Attribution, ChangeRequest, EntryAddress, EntryPath, Settings};
use serde_json::json;
use std::num::NonZeroU32;

use super::context::MemoryContext;
use crate::exit::Outcome;
use crate::flags::Output;
use crate::limits;
use crate::session::now_ms;
use crate::show::{self, Tone};

/// What holds for a memory scope; what is not said stays as it is.
#[derive(Debug, Args)]
pub(crate) struct Scope {
    /// Its folder, for example `/memory/organisation`; without one, all are shown.
    pub(crate) path: Option<String>,
    /// Whether changes are made by accepted proposals only.
    #[arg(long, value_name = "BOOL", requires = "path")]
    pub(crate) review: Option<bool>,
    /// The group whose members review; `-`: everybody who sees the memory scope.
    #[arg(long, value_name = "GROUP", requires = "path")]
    pub(crate) reviewers: Option<String>,
    /// Whether reviewers may accept what they wrote themselves.
    #[arg(long, value_name = "BOOL", requires = "path")]
    pub(crate) own: Option<bool>,
    /// Of how many versions of a file the contents are kept; 0: of all.
    #[arg(long, value_name = "N", requires = "path")]
    pub(crate) keep_versions: Option<u32>,
    /// For how many days contents are kept that are not the newest; 0: for ever.
    #[arg(long, value_name = "DAYS", requires = "path", value_parser = value_parser!(u64).range(..=36_500))]
    pub(crate) keep_days: Option<u64>,
    /// Let go now of contents that are not to be kept.
    #[arg(long, requires = "path")]
    pub(crate) prune: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

pub(super) async fn execute(memory: &MemoryContext, asked: Scope) -> Outcome {
    let Some(path) = &asked.path else { return all(memory).await };
    let at = memory.place(path)?;
    let settings = memory.reviews.settings(&memory.scope, &at.memory_scope).await;
    let before = settings.map_err(|error| memory.failed(&at, error))?;
    let after = changed(&asked, before.clone());
    if after != before {
        let set =
            memory.reviews.set(&memory.scope, &at.memory_scope, after.clone(), now_ms()).await;
        set.map_err(|error| memory.failed(&at, error))?;
    }
    if asked.prune {
        prune(memory, &at, None).await?;
    }
    tell(memory, &[(at, after)])
}

fn changed(asked: &Scope, before: Settings) -> Settings {
    let reviewers = match asked.reviewers.as_deref() {
        None => before.reviewers,
        Some("-") => None,
        Some(group) => Some(group.to_owned()),
    };
    let keep_versions = match asked.keep_versions {
        None => before.keep_versions,
        Some(versions) => Some(versions).filter(|versions| *versions > 0),
    };
    let keep_ms = match asked.keep_days {
        None => before.keep_ms,
        Some(days) => Some(days * limits::DAY_MS).filter(|ms| *ms > 0),
    };
    Settings {
        review: asked.review.unwrap_or(before.review),
        own: asked.own.unwrap_or(before.own),
        reviewers,
        keep_versions,
        keep_ms,
    }
}

/// Lets go of contents, some at a time.
pub(super) async fn prune(
    memory: &MemoryContext,
    at: &EntryAddress,
    keep: Option<NonZeroU32>,
) -> Outcome {
    let mut count = 0;
    loop {
        let change = ChangeRequest::Prune { at: at.clone(), keep };
        let pruned =
            memory.entries.change(&memory.scope, change, Attribution::person(now_ms())).await;
        let pruned = pruned.map_err(|error| memory.failed(at, error))?;
        let these = pruned.versions.len() as u64 + pruned.unseen;
        if these == 0 {
            break;
        }
        count += these;
    }
    memory.screen.note(Tone::Good, format!("● let go of {}", show::count(count, "version")));
    Ok(())
}

async fn all(memory: &MemoryContext) -> Outcome {
    let mut found = Vec::new();
    for memory_scope in memory.scope.all_memory_scopes() {
        let at = EntryAddress { memory_scope, path: EntryPath::ROOT };
        let settings = memory.reviews.settings(&memory.scope, &at.memory_scope).await;
        let settings = settings.map_err(|error| memory.failed(&at, error))?;
        found.push((at, settings));
    }
    tell(memory, &found)
}

fn tell(memory: &MemoryContext, found: &[(EntryAddress, Settings)]) -> Outcome {
    if memory.json {
        let memory_scopes: Vec<_> = found
            .iter()
            .map(|(at, settings)| json!({ "path": path_of(at), "settings": settings }))
            .collect();
        return show::line(&json!({ "type": "scopes", "scopes": memory_scopes }));
    }
    for (at, it) in found {
        let mut words = vec![if it.review { "reviewed" } else { "written directly" }.to_owned()];
        if let (true, Some(group)) = (it.review, &it.reviewers) {
            words.push(format!("by group:{group}"));
        }
        if it.review && it.own {
            words.push("reviewers may accept their own".to_owned());
        }
        words.extend(it.keep_versions.map(|versions| format!("keeps {versions} versions")));
        let days = it.keep_ms.map(|ms| format!("keeps {} days", ms / limits::DAY_MS));
        words.extend(days);
        show::row(&show::inert(&format!("{:28}  {}", path_of(at), words.join(", "))))?;
    }
    Ok(())
}
