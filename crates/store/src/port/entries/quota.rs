//! How much entries may take, and what is told where that is used up.

use std::fmt;

/// How much may be used; nothing: as much as there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// Contents of all versions that are kept. A file that was moved counts at both ends,
    /// until its history is let go.
    pub bytes_max: Option<u64>,
    /// Files and folders that stand at a path.
    pub entries_max: Option<u64>,
    /// Versions whose contents are kept.
    pub versions_max: Option<u64>,
}

/// How much may be used, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quotas {
    /// What one session may write in all: nothing that it removes is given back, and of
    /// versions every one counts.
    pub session: Quota,
    /// What may be in the memory scopes of one person, or of one group.
    pub owner: Quota,
    /// What may be in all memory scopes of the store, and in proposals.
    pub organisation: Quota,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaMeasure {
    /// Bytes of contents.
    Bytes,
    /// Files and folders.
    Entries,
    /// Versions.
    Versions,
}

impl fmt::Display for QuotaMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Entries => "files and folders",
            Self::Versions => "versions",
        })
    }
}

/// What is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryUsage {
    /// Of contents.
    pub bytes: u64,
    /// Files and folders.
    pub entries: u64,
    /// Versions.
    pub versions: u64,
}

impl MemoryUsage {
    /// What is used beyond a quota, first of all: how much, and how much may be.
    pub(crate) fn beyond(self, before: Self, quota: &Quota) -> Option<(QuotaMeasure, u64, u64)> {
        let measures = [
            (QuotaMeasure::Bytes, before.bytes, self.bytes, quota.bytes_max),
            (QuotaMeasure::Entries, before.entries, self.entries, quota.entries_max),
            (QuotaMeasure::Versions, before.versions, self.versions, quota.versions_max),
        ];
        // What only takes away is never refused.
        measures.into_iter().find_map(|(measure, before, now, max)| {
            let max = max.filter(|max| now > *max && now > before)?;
            Some((measure, before, max))
        })
    }
}

/// That a change was refused because it has no room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaExceeded {
    /// Whose quota: `session:ID`, `person:NAME`, `group:NAME` or `organisation`.
    pub holder: String,
    /// Of what.
    pub measure: QuotaMeasure,
    /// How much is used.
    pub used: u64,
    /// How much may be.
    pub max: u64,
}

impl QuotaExceeded {
    /// What can be done about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match (self.holder.starts_with("session:"), self.measure) {
            (true, _) => "write less, or go on in another session",
            (false, QuotaMeasure::Entries) => "remove files that nobody needs",
            (false, QuotaMeasure::Bytes | QuotaMeasure::Versions) => {
                "`outrigger memory prune PATH --keep N` lets go of old versions"
            }
        }
    }
}

impl fmt::Display for QuotaExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { holder, measure, used, max } = self;
        write!(f, "the quota of {holder} for memory has no room: {used} of {max} {measure} used")?;
        write!(f, "; {}", self.remedy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_nothing_more_has_room() {
        let quota = Quota { bytes_max: Some(10), entries_max: Some(1), versions_max: None };
        let used = |bytes, entries| MemoryUsage { bytes, entries, versions: 9 };
        for (before, now, beyond) in [
            (used(0, 0), used(10, 1), None),
            (used(0, 0), used(11, 1), Some((QuotaMeasure::Bytes, 0, 10))),
            (used(10, 1), used(10, 2), Some((QuotaMeasure::Entries, 1, 1))),
            // The quota was lowered since.
            (used(90, 5), used(80, 5), None),
            (used(90, 5), used(91, 4), Some((QuotaMeasure::Bytes, 90, 10))),
        ] {
            assert_eq!(now.beyond(before, &quota), beyond, "{before:?} {now:?}");
        }
    }
}
