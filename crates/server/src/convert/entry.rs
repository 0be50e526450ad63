//! Memory and what is proposed for it.

use outrigger_api::{
    EntryInfo, EntryLine, EntryRedaction, EntryVersion, EntryVersionState, EntryVia, ProposalInfo,
    ProposalStanding,
};
use outrigger_engine::path_of;
use outrigger_store::entries::{
    BlameLine, ContentState, EntryAddress, EntryStat, EntryState, Proposal, Standing, Version, Via,
};

/// An entry as it stands.
#[must_use]
pub fn entry(at: &EntryAddress, node: &EntryStat) -> EntryInfo {
    EntryInfo {
        path: path_of(at),
        folder: node.folder,
        revision: node.revision,
        bytes: node.bytes,
        digest: node.digest.as_ref().map(|digest| digest.as_str().to_owned()),
        modified_ms: node.modified_ms,
        executable: node.executable,
        review_by_ms: node.review_by_ms,
        redacted: node.redacted,
    }
}

/// A version of an entry.
#[must_use]
pub fn version(it: &Version) -> EntryVersion {
    let (state, bytes, digest) = match &it.state {
        EntryState::File { bytes, digest, .. } => (EntryVersionState::File, *bytes, Some(digest)),
        EntryState::Folder => (EntryVersionState::Folder, 0, None),
        EntryState::Gone => (EntryVersionState::Removed, 0, None),
    };
    let redacted = match &it.kept {
        ContentState::Redacted(redaction) => Some(EntryRedaction {
            by: redaction.by.to_string(),
            why: redaction.why.clone(),
            at_ms: redaction.at_ms,
        }),
        ContentState::Whole | ContentState::Pruned => None,
    };
    let via = match it.by.via {
        Via::Tool => EntryVia::Tool,
        Via::Sandbox => EntryVia::Sandbox,
        Via::Person => EntryVia::Person,
        Via::Import => EntryVia::Import,
    };
    EntryVersion {
        path: path_of(&it.place),
        revision: it.revision,
        state,
        bytes,
        digest: digest.map(|digest| digest.as_str().to_owned()),
        author: it.author.to_string(),
        via,
        at_ms: it.by.at_ms,
        agent: it.by.agent.clone(),
        session: it.by.session.as_ref().map(ToString::to_string),
        seq: it.by.seq.map(|seq| seq.0),
        labels: it.by.labels.iter().cloned().collect(),
        message: it.by.message.clone(),
        accepted_by: it.accepted_by.as_ref().map(ToString::to_string),
        kept: matches!(it.kept, ContentState::Whole),
        redacted,
    }
}

/// A line of a file, and who wrote it.
#[must_use]
pub fn line(it: BlameLine) -> EntryLine {
    EntryLine {
        line: it.line,
        revision: it.revision,
        author: it.author.to_string(),
        agent: it.agent,
        session: it.session.map(|session| session.to_string()),
        seq: it.seq.map(|seq| seq.0),
        at_ms: it.at_ms,
    }
}

/// A proposal, without what it would change.
#[must_use]
pub fn proposal(it: &Proposal) -> ProposalInfo {
    ProposalInfo {
        number: it.id.0,
        path: path_of(&it.at),
        base: it.base,
        removes: it.file.is_none(),
        author: it.author.to_string(),
        agent: it.by.agent.clone(),
        session: it.by.session.as_ref().map(ToString::to_string),
        at_ms: it.by.at_ms,
        message: it.by.message.clone(),
        standing: match it.standing {
            Standing::Open => ProposalStanding::Open,
            Standing::Accepted => ProposalStanding::Accepted,
            Standing::Rejected => ProposalStanding::Rejected,
            Standing::Withdrawn => ProposalStanding::Withdrawn,
        },
        decided_by: it.decided.as_ref().map(|(who, _)| who.to_string()),
        reason: it.reason.clone(),
        revision: it.revision,
    }
}
