//! `[memory]`: how much memory and skills may take.

use outrigger_store::entries::{Quota, Quotas};
use serde::Deserialize;

use super::range::Whole;
use crate::limits;

type Mib = Whole<1, 16_777_216>;
type Count = Whole<1, 1_000_000_000>;

/// The keys of the table.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MemoryFile {
    session_mib_max: Option<Mib>,
    session_entries_max: Option<Count>,
    session_versions_max: Option<Count>,
    person_mib_max: Option<Mib>,
    person_entries_max: Option<Count>,
    person_versions_max: Option<Count>,
    organisation_mib_max: Option<Mib>,
    organisation_entries_max: Option<Count>,
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
