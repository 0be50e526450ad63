//! Contents of versions side by side.

use outrigger_policy::Scope;

use super::{Contents, Entries, EntryAddress, Error, Proposal};

/// Two versions of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The older one, 0 for nothing.
    pub from: u64,
    /// What it says.
    pub older: Vec<u8>,
    /// The newer one.
    pub newer: Contents,
}

/// Reads two versions of a file: the newest against the one before, where nothing else is said.
///
/// # Errors
/// As [`Entries::read`].
pub async fn compare(
    entries: &dyn Entries,
    scope: &Scope,
    at: &EntryAddress,
    from: Option<u64>,
    to: Option<u64>,
) -> Result<Comparison, Error> {
    let newer = entries.read(scope, at, to).await?;
    let from = from.unwrap_or_else(|| newer.version.revision.saturating_sub(1));
    let older = match from {
        0 => Vec::new(),
        _ => entries.read(scope, at, Some(from)).await?.bytes,
    };
    Ok(Comparison { from, older, newer })
}

/// What a proposal was made from. Where that is gone all of it is new.
///
/// # Errors
/// As [`Entries::read`].
pub async fn base_of(
    entries: &dyn Entries,
    scope: &Scope,
    proposal: &Proposal,
) -> Result<Vec<u8>, Error> {
    if proposal.base == 0 {
        return Ok(Vec::new());
    }
    match entries.read(scope, &proposal.at, Some(proposal.base)).await {
        Ok(read) => Ok(read.bytes),
        Err(Error::Absent | Error::Redacted(_) | Error::Pruned) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
