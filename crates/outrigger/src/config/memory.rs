//! `[memory]`: how much memory and skills may take.

use outrigger_store::entries::{Quota, Quotas};
use serde::Deserialize;

use super::range::Whole;
use crate::limits;

type Mib = Whole<1, 16_777_216>;
type Count = Whole<1, 1_000_000_000>;

/// How much memory and skills may take (`docs/how-to/memory.md`). `outrigger memory prune` lets go
/// of old versions.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MemoryFile {
    /// What one session may write in all, in MiB: contents of all versions, a file that was moved
    /// counted at both ends. Nothing that it removes is given back.
    #[cfg_attr(test, schemars(extend("default" = limits::MEMORY_SESSION_MIB_DEFAULT)))]
    session_mib_max: Option<Mib>,
    /// What one session may write in all: files and folders. Nothing that it removes is given back.
    #[cfg_attr(test, schemars(extend("default" = limits::MEMORY_SESSION_ENTRIES_DEFAULT)))]
    session_entries_max: Option<Count>,
    /// What one session may write in all: versions. Nothing that it removes is given back.
    #[cfg_attr(test, schemars(extend("default" = limits::MEMORY_SESSION_VERSIONS_DEFAULT)))]
    session_versions_max: Option<Count>,
    /// What is kept in the memory scopes of one person, or of one group, in MiB: contents of all
    /// versions, a file that was moved counted at both ends.
    #[cfg_attr(test, schemars(extend("default" = limits::MEMORY_PERSON_MIB_DEFAULT)))]
    person_mib_max: Option<Mib>,
    /// What is kept in the memory scopes of one person, or of one group: files and folders.
    #[cfg_attr(test, schemars(extend("default" = limits::MEMORY_PERSON_ENTRIES_DEFAULT)))]
    person_entries_max: Option<Count>,
    /// What is kept in the memory scopes of one person, or of one group: versions whose content is
    /// kept.
    #[cfg_attr(test, schemars(extend("default" = limits::MEMORY_PERSON_VERSIONS_DEFAULT)))]
    person_versions_max: Option<Count>,
    /// What is kept in all memory scopes, and in proposals, in MiB: contents of all versions, a
    /// file that was moved counted at both ends.
    #[cfg_attr(test, schemars(extend("default" = limits::MEMORY_ORGANISATION_MIB_DEFAULT)))]
    organisation_mib_max: Option<Mib>,
    /// What is kept in all memory scopes, and in proposals: files and folders.
    #[cfg_attr(test, schemars(extend("default" = limits::MEMORY_ORGANISATION_ENTRIES_DEFAULT)))]
    organisation_entries_max: Option<Count>,
    /// What is kept in all memory scopes, and in proposals: versions whose content is kept.
    #[cfg_attr(test, schemars(extend("default" = limits::MEMORY_ORGANISATION_VERSIONS_DEFAULT)))]
    organisation_versions_max: Option<Count>,
}

/// What holds where no file says anything.
pub(super) const DEFAULT: Quotas = Quotas {
    session: Quota {
        bytes_max: Some(limits::MEMORY_SESSION_MIB_DEFAULT << 20),
        entries_max: Some(limits::MEMORY_SESSION_ENTRIES_DEFAULT),
        versions_max: Some(limits::MEMORY_SESSION_VERSIONS_DEFAULT),
    },
    owner: Quota {
        bytes_max: Some(limits::MEMORY_PERSON_MIB_DEFAULT << 20),
        entries_max: Some(limits::MEMORY_PERSON_ENTRIES_DEFAULT),
        versions_max: Some(limits::MEMORY_PERSON_VERSIONS_DEFAULT),
    },
    organisation: Quota {
        bytes_max: Some(limits::MEMORY_ORGANISATION_MIB_DEFAULT << 20),
        entries_max: Some(limits::MEMORY_ORGANISATION_ENTRIES_DEFAULT),
        versions_max: Some(limits::MEMORY_ORGANISATION_VERSIONS_DEFAULT),
    },
};

impl MemoryFile {
    /// What a stronger file says.
    pub(super) fn absorb_into(&self, quotas: &mut Quotas) {
        let said = [
            (
                &mut quotas.session,
                self.session_mib_max,
                self.session_entries_max,
                self.session_versions_max,
            ),
            (
                &mut quotas.owner,
                self.person_mib_max,
                self.person_entries_max,
                self.person_versions_max,
            ),
            (
                &mut quotas.organisation,
                self.organisation_mib_max,
                self.organisation_entries_max,
                self.organisation_versions_max,
            ),
        ];
        for (quota, mib, entries, versions) in said {
            quota.bytes_max = mib.map(|mib| mib.get() << 20).or(quota.bytes_max);
            quota.entries_max = entries.map(Whole::get).or(quota.entries_max);
            quota.versions_max = versions.map(Whole::get).or(quota.versions_max);
        }
    }
}
