//! Changes of entries, each made by the person; proposed where a memory scope needs reviews.

use outrigger_engine::path_of;
use outrigger_server::entries::version;
use outrigger_store::entries::{
    Attribution, ChangeOutcome, ChangeRequest, EntryAddress, Submission,
};

use super::context::MemoryContext;
use super::print::{print_changed, print_proposed};
use crate::exit::Outcome;
use crate::session::now_ms;

/// Makes a change and says what it made. Where a memory scope needs reviews it is proposed.
pub(super) async fn make(
    memory: &MemoryContext,
    change: ChangeRequest,
    message: Option<String>,
) -> Outcome {
    let at = about(&change);
    let by = Attribution { message, ..Attribution::person(now_ms()) };
    match memory.submit(change, by).await.map_err(|error| memory.failed(&at, error))? {
        Submission::Changed(made) => tell(memory, &made),
        Submission::Proposed(id) => print_proposed(id.0, &path_of(&at), memory.output),
    }
}

/// Says what a change made.
pub(super) fn tell(memory: &MemoryContext, made: &ChangeOutcome) -> Outcome {
    let versions: Vec<_> = made.versions.iter().map(version).collect();
    print_changed(&versions, (made.unseen, made.lingers), memory.output)
}

/// The place that a change is about.
fn about(change: &ChangeRequest) -> EntryAddress {
    match change {
        ChangeRequest::Write { at, .. }
        | ChangeRequest::Edit { at, .. }
        | ChangeRequest::Remove { at, .. }
        | ChangeRequest::MakeFolder { at }
        | ChangeRequest::RemoveFolder { at }
        | ChangeRequest::Revert { at, .. }
        | ChangeRequest::Redact { at, .. }
        | ChangeRequest::Move { from: at, .. } => at.clone(),
        ChangeRequest::Prune { at, .. } => at.clone(),
    }
}
