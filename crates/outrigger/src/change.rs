//! What an effect that waits would make of a file, as a person looks at it before they answer.

use outrigger_agent::FileBaseline;
use outrigger_engine::Engine;

use crate::exit::Outcome;
use crate::limits;
use crate::waiting::PendingApproval;

/// What an effect would make of a file.
#[derive(Debug)]
pub(crate) struct ProposedChange {
    pub(crate) diff: String,
    /// The file that it was made from.
    pub(crate) seen: FileBaseline,
}

impl ProposedChange {
    /// Nothing for an effect that changes no file, or would fail. Reaches the sandbox.
    pub(crate) async fn of(engine: &Engine, waiting: &PendingApproval) -> Outcome<Option<Self>> {
        if !waiting.changes_file() {
            return Ok(None);
        }
        let preview = engine.preview(&waiting.session, &waiting.state, waiting.effect).await?;
        Ok(preview.map(|preview| {
            let seen = preview.seen();
            let (path, before) = (preview.path, preview.before.as_deref());
            let diff = outrigger_repository::one_file(&path, before, &preview.after);
            Self { diff: String::from_utf8_lossy(&diff).into_owned(), seen }
        }))
    }

    /// By which a person says that this is what they looked at.
    pub(crate) fn name(&self) -> String {
        match &self.seen {
            FileBaseline::Absent => "absent".to_owned(),
            FileBaseline::File(digest) => {
                digest.as_str().chars().take(limits::SEEN_CHARS).collect()
            }
        }
    }
}
