//! Skills in the store of this machine.

use outrigger_api::EntryInfo;
use outrigger_engine::place_of;
use outrigger_server::entries::entry;
use outrigger_skills::SkillFile;
use outrigger_store::entries::{
    Attribution, ChangeRequest, EntryAddress, EntryFile, EntryPath, EntryPrecondition, Error,
    Submission, Via, list_all,
};

use super::SkillHome;
use crate::command::memory::MemoryContext;
use crate::exit::{Failure, Kind, Outcome};
use crate::session::now_ms;

impl SkillHome for MemoryContext {
    async fn list(&self, path: &str, recursive: bool) -> Outcome<Option<Vec<EntryInfo>>> {
        let Some(root) = place_of(path, &self.scope) else { return Ok(None) };
        match list_all(&*self.entries, &self.scope, &root, recursive).await {
            Ok(found) => {
                let at = |path| EntryAddress { path, ..root.clone() };
                Ok(Some(found.into_iter().map(|(path, node)| entry(&at(path), &node)).collect()))
            }
            Err(Error::Absent) => Ok(None),
            Err(error) => Err(self.failed(&root, error)),
        }
    }

    fn takes(&self, path: &str, _: &SkillFile) -> Outcome {
        let normal = EntryPath::normalise(path).map(drop);
        normal.map_err(|fault| Failure::new(Kind::Usage, format!("{path}: {fault}")))
    }

    async fn write(&self, path: &str, revision: u64, file: &SkillFile) -> Outcome<Option<u64>> {
        let expected = match revision {
            0 => EntryPrecondition::Absent,
            revision => EntryPrecondition::Revision(revision),
        };
        let content = EntryFile::of(file.bytes.clone());
        let file = EntryFile { executable: file.executable, ..content };
        make(self, path, |at| ChangeRequest::Write { at, expected, file }).await
    }

    async fn remove(&self, path: &str, revision: u64) -> Outcome<Option<u64>> {
        make(self, path, |at| ChangeRequest::Remove { at, revision }).await
    }
}

async fn make(
    memory: &MemoryContext,
    path: &str,
    change: impl FnOnce(EntryAddress) -> ChangeRequest,
) -> Outcome<Option<u64>> {
    let at = memory.place(path)?;
    let by = Attribution { via: Via::Import, ..Attribution::person(now_ms()) };
    match memory.submit(change(at.clone()), by).await {
        Ok(Submission::Changed(_)) => Ok(None),
        Ok(Submission::Proposed(id)) => Ok(Some(id.0)),
        Err(error) => Err(memory.failed(&at, error)),
    }
}
