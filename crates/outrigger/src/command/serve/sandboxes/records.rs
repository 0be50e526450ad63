//! Whose sandboxes and snapshots are: a small file for each, there whole or not at all.
//!
//! It outlives this process, as what it is about does; both may be lost with the power of the
//! machine, and then nobody is shown what has no record.

use outrigger_sandbox::CreateSpec;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::marker::PhantomData;
use std::path::PathBuf;

use crate::exit::{Failure, Kind, Outcome};
use crate::session::now_ms;

/// A sandbox of a person.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SandboxRecord {
    pub(super) person: String,
    pub(super) label: String,
    pub(super) created_ms: u64,
    pub(super) spec: CreateSpec,
    /// What it may reach, in the words of `--net`.
    #[serde(default)]
    pub(super) network: Vec<String>,
}

impl SandboxRecord {
    pub(super) fn new(person: &str, label: String, spec: CreateSpec, network: Vec<String>) -> Self {
        Self { person: person.to_owned(), label, created_ms: now_ms(), spec, network }
    }

    /// Whether its age is over, so that the backend removed it or is about to.
    pub(super) fn is_too_old(&self, now_ms: u64) -> bool {
        self.spec.lifetime.age_ms_max.is_some_and(|age| self.created_ms + age < now_ms)
    }
}

/// A snapshot of a person.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SnapshotRecord {
    pub(super) person: String,
    pub(super) label: String,
    pub(super) sandbox: String,
}

/// Records of one kind, by name.
#[derive(Debug)]
pub(super) struct Records<T> {
    dir: PathBuf,
    kind: PhantomData<T>,
}

const ENDING: &str = "json";

impl<T: Serialize + DeserializeOwned> Records<T> {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, kind: PhantomData }
    }

    /// A file beside the record, which goes with it.
    pub(super) fn beside(&self, name: &str, ending: &str) -> PathBuf {
        self.dir.join(format!("{name}.{ending}"))
    }

    /// `name` is a plain one: that of a sandbox or a snapshot.
    pub(super) fn get(&self, name: &str) -> Option<T> {
        serde_json::from_slice(&fs::read(self.beside(name, ENDING)).ok()?).ok()
    }

    pub(super) fn put(&self, name: &str, record: &T) -> Outcome {
        let path = self.beside(name, ENDING);
        let temporary = self.beside(name, "json-new");
        let write = || {
            fs::create_dir_all(&self.dir)?;
            fs::write(&temporary, serde_json::to_vec(record)?)?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|error: std::io::Error| {
            Failure::new(Kind::Storage, format!("{}: {error}", path.display()))
        })
    }

    /// What can't be deleted names something that is not there, which nobody is shown.
    pub(super) fn remove(&self, name: &str) {
        for ending in [ENDING, "execs", "flows"] {
            drop(fs::remove_file(self.beside(name, ending)));
        }
    }

    /// All of them that can be read.
    pub(super) fn all(&self) -> Vec<(String, T)> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some(name.strip_suffix(".json")?.to_owned())
        });
        names.filter_map(|name| self.get(&name).map(|record| (name, record))).collect()
    }
}
