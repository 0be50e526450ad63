//! What containers and volumes are called and labelled.
//!
//! Owns the names, which decide what is the same thing, and the labels, which say
//! whose it is and what it is. Knows nothing of the daemon.

use std::collections::HashMap;

use outrigger_sandbox::{SandboxId, SnapshotId};

/// Label: whose it is. What lacks it is never touched.
pub(crate) const OWNER: &str = "outrigger.owner";
/// Label: which kind of thing it belongs to.
pub(crate) const KIND: &str = "outrigger.kind";
/// Label: the name of that thing.
pub(crate) const ID: &str = "outrigger.id";
/// Label: which part of it, see [`Part`].
pub(crate) const PART: &str = "outrigger.part";
/// Label of a volume: which making of the store it belongs to.
pub(crate) const MAKING: &str = "outrigger.making";
/// Label of a store's record: what it says, as JSON.
pub(crate) const RECORD: &str = "outrigger.record";
/// Label of a sandbox's container: which life it is.
pub(crate) const GENERATION: &str = "outrigger.generation";
/// Label of a sandbox's container: what was asked for, as JSON.
pub(crate) const SPEC: &str = "outrigger.spec";
/// Label of a sandbox's container: what its life began as, see [`crate::live`].
pub(crate) const BEGAN: &str = "outrigger.began";
/// Label of a container that makes or reads volumes, and of what it makes: the process
/// that does it.
pub(crate) const PROCESS: &str = "outrigger.process";

/// Label of a volume: when it was made, in milliseconds since 1970.
pub(crate) const MADE_AT: &str = "outrigger.made-at";

/// What a thing is, beside its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The container of a sandbox.
    Container,
    /// The record of a store, an empty volume whose labels are what is written in it.
    Record,
    /// A volume of a store.
    Volume,
    /// A container that is never started, for its view of volumes that are being made.
    Maker,
    /// A container that is never started, for its view of volumes that are there, which
    /// nothing may write to meanwhile.
    Reader,
}

impl Part {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Record => "record",
            Self::Volume => "volume",
            Self::Maker => "maker",
            Self::Reader => "reader",
        }
    }
}

/// Something that is made of volumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Store {
    /// The disk of a sandbox.
    Disk(SandboxId),
    /// A snapshot.
    Snapshot(SnapshotId),
    /// The guest program, by its digest.
    Guest(String),
}

/// The parts of a sandbox's disk: their name, where they are seen, and their mode.
pub(crate) const DISK: [(&str, &str, u32); 5] = [
    ("home", "/home/agent", 0o755),
    ("output", "/var/outrigger/output", 0o755),
    ("tmp", "/tmp", 0o1777),
    ("var-tmp", "/var/tmp", 0o1777),
    ("workspace", "/workspace", 0o755),
];

impl Store {
    /// Its kind, in names and labels.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Disk(_) => "disk",
            Self::Snapshot(_) => "snapshot",
            Self::Guest(_) => "guest",
        }
    }

    /// Its name.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Disk(id) => id.as_str(),
            Self::Snapshot(id) => id.as_str(),
            Self::Guest(digest) => digest,
        }
    }

    /// The names of its volumes' parts, with the directory that each is below the
    /// one that holds them all.
    pub(crate) fn parts(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Disk(_) => DISK.iter().map(|(name, ..)| (*name, format!("/{name}"))).collect(),
            Self::Snapshot(_) | Self::Guest(_) => vec![("all", String::new())],
        }
    }

    /// The name of its record.
    pub(crate) fn record(&self, owner: &str) -> String {
        format!("outrigger.{owner}.{}.{}", self.kind(), self.id())
    }

    /// The name of one of its volumes, of one making.
    pub(crate) fn volume(&self, owner: &str, part: &str, making: &str) -> String {
        format!("outrigger.{owner}.{}-{part}.{making}", self.kind())
    }

    /// The labels of what belongs to it.
    pub(crate) fn labels(&self, owner: &str, part: Part) -> HashMap<String, String> {
        let labels = [(OWNER, owner), (KIND, self.kind()), (ID, self.id()), (PART, part.as_str())];
        labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }
}

/// Which making a volume of a store belongs to, by its name: labels are lost if the
/// daemon has to make a volume again, names are not. `None`: it is none of ours.
pub(crate) fn making<'a>(owner: &str, volume: &'a str) -> Option<&'a str> {
    let (_, making) = volume.strip_prefix(&ours(owner))?.rsplit_once('.')?;
    Some(making)
}

/// What the names of all that is an owner's begin with.
fn ours(owner: &str) -> String {
    format!("outrigger.{owner}.")
}

/// Whether a volume has a name of ours. Its labels may be anybody's word.
pub(crate) fn is_volume(owner: &str, name: &str) -> bool {
    name.starts_with(&ours(owner))
}

/// Whether a container is called as what its labels say that it is. Labels alone are no sign:
/// those of an image become those of whatever container is made of it, and a sandbox can
/// read in its mounts what its owner is called. Names are given by who makes a container.
pub(crate) fn is_container(
    owner: &str,
    names: &[String],
    labels: &HashMap<String, String>,
) -> bool {
    let label = |name: &str| labels.get(name).map(String::as_str);
    let expected = match label(PART) {
        Some(part) if part == Part::Container.as_str() => {
            let id = label(ID).and_then(|id| SandboxId::new(id.to_owned()).ok());
            id.map(|id| container(owner, &id))
        }
        Some(part) if [Part::Maker, Part::Reader].iter().any(|ours| ours.as_str() == part) => {
            label(MAKING).map(|making| maker(owner, making))
        }
        Some(_) | None => None,
    };
    // The daemon puts what a name is within before it.
    expected.is_some_and(|expected| {
        names.iter().any(|name| name.strip_prefix('/').unwrap_or(name) == expected)
    })
}

/// The name of a container that makes or reads volumes, by its making.
pub(crate) fn maker(owner: &str, making: &str) -> String {
    format!("outrigger.{owner}.maker.{making}")
}

/// The name of a sandbox's container.
pub(crate) fn container(owner: &str, id: &SandboxId) -> String {
    format!("outrigger.{owner}.sandbox.{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_without_the_name_that_belongs_to_them_are_no_sign() {
        let id = SandboxId::new("one").unwrap();
        let mut labels = Store::Disk(id.clone()).labels("me", Part::Container);
        labels.insert(MAKING.to_owned(), "12".to_owned());
        let ours = |names: &[&str], labels: &HashMap<String, String>| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            is_container("me", &names, labels)
        };
        let name = "/outrigger.me.sandbox.one";
        assert!(ours(&[name], &labels) && ours(&["/their/x", &name[1..]], &labels));
        for other in ["/theirs", "/x/outrigger.me.sandbox.one", "/outrigger.me.maker.12"] {
            assert!(!ours(&[other], &labels), "{other}");
        }
        labels.insert(PART.to_owned(), Part::Reader.as_str().to_owned());
        assert!(ours(&["/outrigger.me.maker.12"], &labels) && !ours(&[name], &labels));
        labels.insert(PART.to_owned(), Part::Volume.as_str().to_owned());
        assert!(!ours(&["/outrigger.me.maker.12"], &labels));
        assert_eq!(making("me", "outrigger.mermaid.disk-tmp.12"), None);
    }

    #[test]
    fn names_are_file_names_and_differ() {
        let id = "x".repeat(outrigger_sandbox::limits::ID_BYTES_MAX);
        let owner = "o".repeat(crate::limits::OWNER_BYTES_MAX);
        let sandbox = SandboxId::new(id.clone()).unwrap();
        let stores = [
            Store::Disk(sandbox.clone()),
            Store::Snapshot(SnapshotId::new(id.clone()).unwrap()),
            Store::Guest(id),
        ];
        let mut names = vec![container(&owner, &sandbox)];
        for store in stores {
            names.push(store.record(&owner));
            for (part, _) in store.parts() {
                names.push(store.volume(&owner, part, "0123456789abcdef0123456789abcdef"));
            }
        }
        let all = names.len();
        assert!(names.iter().all(|name| name.len() < 255), "{names:?}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
