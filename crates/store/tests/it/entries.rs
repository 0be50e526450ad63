//! Entries on a real database: against a naive model, in random worlds, raced for, killed
//! in the middle, and destroyed for good.

mod crash;
mod known;
mod model;
mod quotas;
mod race;
mod redaction;
mod space;
mod worlds;

use std::path::Path;

use outrigger_policy::{Directory, MemoryKind, MemoryScope, Owner, Principal, Scope};
use outrigger_store::Database;
use outrigger_store::entries::{
    Attribution, ChangeRequest, Entries, EntryAddress, EntryFile, EntryPath, EntryPrecondition,
};

use crate::support::{address, count, execute};

/// A person of an organisation in which everybody is in the group `all`.
pub(crate) fn member(name: &str) -> Scope {
    let person = Principal::Person(name.to_owned());
    let groups = [("all".to_owned(), [person.clone()].into())];
    let directory = Directory { organisation: "acme".to_owned(), groups: groups.into() };
    directory.authenticate(&person).unwrap()
}

fn memory_scope(owner: Owner) -> MemoryScope {
    MemoryScope { kind: MemoryKind::Memory, owner }
}

pub(crate) fn at(path: &str) -> EntryAddress {
    EntryAddress {
        memory_scope: memory_scope(Owner::Group("all".to_owned())),
        path: EntryPath::parse(path).unwrap(),
    }
}

pub(crate) async fn put(store: &Database, who: &Scope, at: &EntryAddress, text: &str) -> u64 {
    let revision = store.stat(who, at).await.map_or(0, |node| node.revision);
    let expected = if revision == 0 {
        EntryPrecondition::Absent
    } else {
        EntryPrecondition::Revision(revision)
    };
    let change = ChangeRequest::Write { at: at.clone(), expected, file: EntryFile::of(text) };
    let changed = store.change(who, change, Attribution::person(1)).await.unwrap();
    changed.version().unwrap().revision
}

/// Looks behind the port: words that are found are those of the newest versions, newest
/// versions are those that stand at their paths, and no content is nobody's.
async fn fits_together(directory: &Path) {
    if address(directory).is_sqlite() {
        execute(directory, "INSERT INTO search (search, rank) VALUES ('integrity-check', 1)").await;
    }
    for (what, query) in [
        (
            "paths whose newest version is another",
            "SELECT COUNT(*) FROM entries e LEFT JOIN versions v ON v.scope = e.scope \
             AND v.path = e.path AND v.revision = e.revision WHERE v.version IS NULL \
             OR v.state <> e.state OR v.content IS DISTINCT FROM e.content OR v.digest IS DISTINCT FROM e.digest \
             OR EXISTS (SELECT 1 FROM versions n WHERE n.scope = e.scope AND n.path = e.path \
             AND n.revision > e.revision)",
        ),
        (
            "contents that nothing has",
            "SELECT COUNT(*) FROM contents c WHERE NOT EXISTS \
             (SELECT 1 FROM versions v WHERE v.content = c.content) AND NOT EXISTS \
             (SELECT 1 FROM proposals p WHERE p.content = c.content)",
        ),
        (
            "versions whose content is missing",
            "SELECT COUNT(*) FROM versions v WHERE v.content IS NOT NULL AND NOT EXISTS \
             (SELECT 1 FROM contents c WHERE c.content = v.content)",
        ),
        (
            "owners of whom something else is counted",
            "SELECT COUNT(*) FROM usage u JOIN (SELECT holder, SUM(bytes) AS bytes, \
             SUM(entries) AS entries, SUM(versions) AS versions FROM (\
             SELECT substr(scope, instr(scope, '/') + 1) AS holder, bytes, 0 AS entries, \
             1 AS versions FROM versions WHERE content IS NOT NULL \
             UNION ALL SELECT substr(scope, instr(scope, '/') + 1), bytes, 0, 1 \
             FROM proposals WHERE content IS NOT NULL \
             UNION ALL SELECT substr(scope, instr(scope, '/') + 1), 0, 1, 0 \
             FROM entries WHERE state < 2) AS parts GROUP BY holder) r ON r.holder = u.holder \
             WHERE u.bytes <> r.bytes OR u.entries <> r.entries OR u.versions <> r.versions",
        ),
        (
            "contents that all do not have",
            "SELECT COUNT(*) FROM usage WHERE holder = 'all' AND (bytes, entries, versions) <> \
             (SELECT (SELECT COALESCE(SUM(bytes), 0) FROM versions WHERE content IS NOT NULL) + \
             (SELECT COALESCE(SUM(bytes), 0) FROM proposals WHERE content IS NOT NULL), \
             (SELECT COUNT(*) FROM entries WHERE state < 2), \
             (SELECT COUNT(*) FROM versions WHERE content IS NOT NULL) + \
             (SELECT COUNT(*) FROM proposals WHERE content IS NOT NULL))",
        ),
        (
            "entries in folders that are none",
            "SELECT COUNT(*) FROM entries e WHERE e.state < 2 AND e.folder <> '' AND NOT EXISTS \
             (SELECT 1 FROM entries f WHERE f.scope = e.scope AND f.path = e.folder \
             AND f.state = 1)",
        ),
    ] {
        assert_eq!(count(directory, query).await, 0, "{what}");
    }
}
