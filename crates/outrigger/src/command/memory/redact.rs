//! `outrigger memory redact`: destroys, and asks about what is no copy and still has a part.

use clap::ValueEnum;
use outrigger_api::DerivedVersions;
use outrigger_engine::path_of;
use outrigger_store::entries::{
    Attribution, ChangeRequest, DerivativePolicy, Derivatives, EntryAddress, Error, Reach, Which,
};

use super::change::{make, tell};
use super::context::MemoryContext;
use crate::exit::Outcome;
use crate::limits;
use crate::session::now_ms;
use crate::show::{Tone, inert};

/// What becomes of versions that still have a part of what is redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DerivedFlag {
    /// They stay.
    Leave,
    /// They are redacted as well.
    Destroy,
}

impl From<DerivedFlag> for DerivedVersions {
    fn from(flag: DerivedFlag) -> Self {
        match flag {
            DerivedFlag::Leave => Self::Leave,
            DerivedFlag::Destroy => Self::Destroy,
        }
    }
}

pub(super) async fn redact(
    memory: &MemoryContext,
    at: EntryAddress,
    which: Which,
    (asked, why): (Option<DerivedFlag>, String),
) -> Outcome {
    let change = |derived| {
        let (at, why) = (at.clone(), why.clone());
        ChangeRequest::Redact { at, which, reach: Reach::Copies, derived, why }
    };
    let derived = match asked {
        Some(DerivedFlag::Leave) => DerivativePolicy::Leave,
        Some(DerivedFlag::Destroy) => DerivativePolicy::Destroy,
        None => {
            let asked = change(DerivativePolicy::Ask);
            match memory.entries.change(&memory.scope, asked, Attribution::person(now_ms())).await {
                Ok(changed) => return tell(memory, &changed),
                Err(Error::Related(related)) => decide(memory, &at, &related).await?,
                Err(error) => return Err(memory.failed(&at, error)),
            }
        }
    };
    make(memory, change(derived), None).await
}

/// Shows what still has a part of it, and asks what becomes of it.
async fn decide(
    memory: &MemoryContext,
    at: &EntryAddress,
    related: &Derivatives,
) -> Outcome<DerivativePolicy> {
    let versions = related.versions.iter();
    let versions = versions.map(|(place, revision)| format!("{} r{revision}", path_of(place)));
    let proposals = related.proposals.iter().map(|number| format!("proposal {number}"));
    let mut lines: Vec<String> = versions.chain(proposals).collect();
    let more = lines.len().saturating_sub(limits::RELATED_SHOWN_MAX);
    lines.truncate(limits::RELATED_SHOWN_MAX);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    let still = memory.failed(at, Error::Related(Box::new(related.clone())));
    if !memory.screen.can_ask() {
        let failure = still.hint("Nothing was destroyed. These have a part of it: they are edited copies, or only alike.");
        let failure = lines.into_iter().fold(failure, |failure, line| failure.hint(inert(&line)));
        return Err(failure
            .hint("`--derived destroy` destroys them as well; `--derived leave` leaves them."));
    }
    memory.screen.note(Tone::Warning, format!("! {}", inert(&still.message)));
    for line in lines {
        memory.screen.note(Tone::Plain, format!("  {}", inert(&line)));
    }
    let destroy = memory.screen.ask("Destroy these as well? If not, they are left.").await?;
    Ok(if destroy { DerivativePolicy::Destroy } else { DerivativePolicy::Leave })
}
