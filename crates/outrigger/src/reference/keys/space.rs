//! How much is kept, and for how long.

use super::{Key, Table, value};
use crate::limits;

pub(super) const MEMORY: Table = Table {
    name: "memory",
    header: "memory",
    about: "how much memory and skills may take ([memory](how-to/memory.md)); `outrigger memory prune` lets go of old versions",
    keys: &[
        Key {
            name: "session_mib_max",
            kind: "whole number, 1 to 16777216",
            default: || value(limits::MEMORY_SESSION_MIB_DEFAULT),
            about: "What one session may write in all: in MiB: contents of all versions, a file that was moved counted at both ends. Nothing that it removes is given back.",
            instead: "",
            example: "",
        },
        Key {
            name: "session_entries_max",
            kind: "whole number, 1 to 1000000000",
            default: || value(limits::MEMORY_SESSION_ENTRIES_DEFAULT),
            about: "What one session may write in all: files and folders. Nothing that it removes is given back.",
            instead: "",
            example: "",
        },
        Key {
            name: "session_versions_max",
            kind: "whole number, 1 to 1000000000",
            default: || value(limits::MEMORY_SESSION_VERSIONS_DEFAULT),
            about: "What one session may write in all: versions. Nothing that it removes is given back.",
            instead: "",
            example: "",
        },
        Key {
            name: "person_mib_max",
            kind: "whole number, 1 to 16777216",
            default: || value(limits::MEMORY_PERSON_MIB_DEFAULT),
            about: "What is kept on the shelves of one person, or of one group: in MiB: contents of all versions, a file that was moved counted at both ends.",
            instead: "",
            example: "",
        },
        Key {
            name: "person_entries_max",
            kind: "whole number, 1 to 1000000000",
            default: || value(limits::MEMORY_PERSON_ENTRIES_DEFAULT),
            about: "What is kept on the shelves of one person, or of one group: files and folders.",
            instead: "",
            example: "",
        },
        Key {
            name: "person_versions_max",
            kind: "whole number, 1 to 1000000000",
            default: || value(limits::MEMORY_PERSON_VERSIONS_DEFAULT),
            about: "What is kept on the shelves of one person, or of one group: versions whose content is kept.",
            instead: "",
            example: "",
        },
        Key {
            name: "organisation_mib_max",
            kind: "whole number, 1 to 16777216",
            default: || value(limits::MEMORY_ORGANISATION_MIB_DEFAULT),
            about: "What is kept on all shelves, and in proposals: in MiB: contents of all versions, a file that was moved counted at both ends.",
            instead: "",
            example: "",
        },
        Key {
            name: "organisation_entries_max",
            kind: "whole number, 1 to 1000000000",
            default: || value(limits::MEMORY_ORGANISATION_ENTRIES_DEFAULT),
            about: "What is kept on all shelves, and in proposals: files and folders.",
            instead: "",
            example: "",
        },
        Key {
            name: "organisation_versions_max",
            kind: "whole number, 1 to 1000000000",
            default: || value(limits::MEMORY_ORGANISATION_VERSIONS_DEFAULT),
            about: "What is kept on all shelves, and in proposals: versions whose content is kept.",
            instead: "",
            example: "",
        },
    ],
};

pub(super) const RETENTION: Table = Table {
    name: "retention",
    header: "retention",
    about: "how long `outrigger gc` keeps what is over ([space](how-to/space.md)); what is kept of disks has its own, `sandbox.retention_hours`",
    keys: &[
        Key {
            name: "sessions_days",
            kind: "whole number, 1 to 36500",
            default: || "for ever".to_owned(),
            about: "From the last event of a session that is over until it is removed, with its patch and its disks.",
            instead: "`--older-than`",
            example: "365",
        },
        Key {
            name: "patches_days",
            kind: "whole number, 1 to 36500",
            default: || "as long as the session".to_owned(),
            about: "From the writing of a patch until it goes.",
            instead: "`--older-than`",
            example: "90",
        },
    ],
};
