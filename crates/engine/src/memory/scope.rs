//! From a path to a memory scope and back: `/memory/user/…`, `/memory/group/NAME/…` and
//! `/memory/organisation/…`, and the same below `/skills` and, for people alone, `/agents`.

use outrigger_policy::{MemoryKind, MemoryScope, Owner, Scope};
use outrigger_store::entries::{EntryAddress, EntryPath};
use outrigger_tools::namespace::canonical;

/// What a canonical path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResolvedPath {
    /// `/memory` or `/skills`.
    Mount(MemoryKind),
    /// The folder of the groups' memory scopes.
    Groups(MemoryKind),
    /// A place in a memory scope.
    At(EntryAddress),
    /// Nothing, or nothing that is there for this scope.
    Nowhere,
}

const USER: &str = "user";
const GROUP: &str = "group";
const ORGANISATION: &str = "organisation";

/// What a path names in a session of somebody. A memory scope that they do not see is nowhere.
pub(super) fn resolve(path: &str, scope: &Scope) -> ResolvedPath {
    resolve_among(&MemoryKind::MOUNTED, path, scope)
}

fn resolve_among(kinds: &[MemoryKind], path: &str, scope: &Scope) -> ResolvedPath {
    use ResolvedPath::{At, Groups, Mount, Nowhere};
    let mut parts = path.trim_start_matches('/').splitn(2, '/');
    let mount = parts.next().unwrap_or_default();
    let kind = kinds.iter().copied().find(|kind| kind.as_str() == mount);
    let Some(kind) = kind else { return Nowhere };
    let Some(rest) = parts.next() else { return Mount(kind) };
    let (owner, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let person = scope.person().to_string();
    let person = person.split_once(':').map_or("", |(_, name)| name).to_owned();
    let (owner, rest) = match owner {
        USER => (Owner::Person(person), rest),
        ORGANISATION => (Owner::Organisation(scope.organisation().to_owned()), rest),
        GROUP if rest.is_empty() => return Groups(kind),
        GROUP => {
            let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
            (Owner::Group(name.to_owned()), rest)
        }
        _ => return Nowhere,
    };
    let memory_scope = MemoryScope { kind, owner };
    match EntryPath::parse(rest) {
        Ok(path) if scope.sees(&memory_scope) => At(EntryAddress { memory_scope, path }),
        Ok(_) | Err(_) => Nowhere,
    }
}

/// Whether a canonical path is in the memory scope of a group, whether there is one or not.
pub(super) fn is_of_group(path: &str) -> bool {
    let mut parts = path.trim_start_matches('/').splitn(3, '/');
    let kind = parts.next();
    let known = MemoryKind::MOUNTED.into_iter().any(|known| kind == Some(known.as_str()));
    known && parts.next() == Some(GROUP) && parts.next().is_some()
}

/// Where a path leads that a person names, if there is such a memory scope for them.
#[must_use]
pub fn place_of(path: &str, scope: &Scope) -> Option<EntryAddress> {
    match resolve_among(&MemoryKind::ALL, &canonical(path).ok()?, scope) {
        ResolvedPath::At(place) => Some(place),
        ResolvedPath::Mount(_) | ResolvedPath::Groups(_) | ResolvedPath::Nowhere => None,
    }
}

/// The path of a place, as sessions see it, for example `/memory/user/notes.md`.
#[must_use]
pub fn path_of(place: &EntryAddress) -> String {
    let kind = place.memory_scope.kind.as_str();
    let root = match &place.memory_scope.owner {
        Owner::Person(_) => format!("/{kind}/{USER}"),
        Owner::Group(name) => format!("/{kind}/{GROUP}/{name}"),
        Owner::Organisation(_) => format!("/{kind}/{ORGANISATION}"),
    };
    if place.path.is_root() { root } else { format!("{root}/{}", place.path) }
}

/// The folders of a mount.
pub(super) fn owners(scope: &Scope) -> Vec<&'static str> {
    let groups = groups(scope).next().map(|_| GROUP);
    groups.into_iter().chain([ORGANISATION, USER]).collect()
}

/// The groups whose name can be one of a folder.
pub(super) fn groups(scope: &Scope) -> impl Iterator<Item = &String> {
    scope.groups().iter().filter(|name| !name.contains('/') && *name != "." && *name != "..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_policy::Directory;

    fn ada() -> Scope {
        let text = r#"{"organisation": "acme", "groups": {"ops": ["person:ada"], "law": []}}"#;
        let directory: Directory = serde_json::from_str(text).expect("a directory");
        let ada = "person:ada".parse().expect("a principal");
        directory.authenticate(&ada).expect("a person")
    }

    #[test]
    fn paths_and_places_are_the_same() {
        for path in [
            "/memory/user",
            "/memory/user/a.md",
            "/memory/user/folder/a.md",
            "/memory/group/ops",
            "/memory/group/ops/a.md",
            "/memory/organisation/a.md",
            "/skills/user/pdf/SKILL.md",
            "/agents/organisation/reviewer.toml",
        ] {
            let place = place_of(path, &ada()).expect(path);
            assert_eq!(path_of(&place), path);
        }
    }

    #[test]
    fn what_is_not_there_is_nowhere() {
        for path in [
            "/memory/group/law",
            "/memory/group/law/a",
            "/memory/ada",
            "/memory/person",
            "/work",
            "/agents/user/a.toml",
        ] {
            assert_eq!(resolve(path, &ada()), ResolvedPath::Nowhere, "{path}");
        }
        assert_eq!(resolve("/memory", &ada()), ResolvedPath::Mount(MemoryKind::Memory));
        assert_eq!(resolve("/skills/group", &ada()), ResolvedPath::Groups(MemoryKind::Skills));
        assert_eq!(owners(&ada()), ["group", "organisation", "user"]);
    }
}
