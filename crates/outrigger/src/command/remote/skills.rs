//! `outrigger skills` at a server: the files of a skill are read and written as those of memory are.

use outrigger_agent::Digest;
use outrigger_api::{
    ChangedEntry, EntryContent, EntryInfo, EntryList, ProblemCode, SkillInfo, SkillList, WriteEntry,
};
use outrigger_client::{Error, SeenRevision, with_query};
use outrigger_skills::{SkillFile, SkillFiles, limits};

use super::connection::Remote;
use super::memory::{at_content, no_text};
use crate::command::skills::{SkillHome, Skills, folder, import, named, print_skills};
use crate::exit::{Failure, Kind, Outcome};

pub(super) async fn execute(remote: &Remote, asked: Skills) -> Outcome<u8> {
    if let Skills::Validate { folder: path, output } = asked {
        return folder::validate(&path, output);
    }
    let SkillList { data, trusted_keys } = remote.client.get("/v1/skills").await?;
    match asked {
        Skills::Ls { output } => print_skills(&data, output)?,
        Skills::Import(asked) => {
            let keys =
                trusted_keys.iter().map(|key| public_key(key)).collect::<Outcome<Vec<_>>>()?;
            import(remote, &keys, asked).await?;
        }
        Skills::Export { skill, into, output } => {
            let it = named(&data, &skill)?;
            folder::write(it, &files(remote, it).await?, into, output)?;
        }
        Skills::Validate { .. } => {}
    }
    Ok(0)
}

fn public_key(text: &str) -> Outcome<[u8; 32]> {
    let key = Digest::parse(text).map(|key| key.to_sha256());
    key.ok_or_else(|| {
        Failure::new(Kind::ServerFailed, format!("the server trusts no key `{text}`"))
    })
}

/// The files of a skill as its digest has them.
async fn files(remote: &Remote, it: &SkillInfo) -> Outcome<SkillFiles> {
    let found = remote.list(&it.path, true).await?.unwrap_or_default();
    let (mut files, mut bytes) = (SkillFiles::new(), 0);
    for entry in found.iter().filter(|entry| !entry.folder && !entry.redacted) {
        let Some(within) = entry.path.strip_prefix(&it.path).and_then(|it| it.strip_prefix('/'))
        else {
            continue;
        };
        let read: EntryContent = remote.client.get(&at_content(&entry.path)).await?;
        let text = read.text.ok_or_else(|| no_text(&entry.path))?;
        bytes += text.len();
        if files.len() == limits::FILES_MAX || bytes > limits::TOTAL_BYTES_MAX {
            return Err(Failure::new(Kind::ServerFailed, format!("{}: it is no skill", it.path))
                .hint("The server gives more than a skill can have."));
        }
        let file = SkillFile { bytes: text.into_bytes(), executable: entry.executable };
        files.insert(within.to_owned(), file);
    }
    if Digest::from_sha256(outrigger_skills::digest(&files)).as_str() == it.digest {
        return Ok(files);
    }
    Err(Failure::new(Kind::Conflict, format!("{} changed while it was read", it.path))
        .hint("Say it again."))
}

impl SkillHome for Remote {
    async fn list(&self, path: &str, recursive: bool) -> Outcome<Option<Vec<EntryInfo>>> {
        let recursive = if recursive { "true" } else { "false" };
        let address = with_query("/v1/memory", &[("path", path), ("recursive", recursive)]);
        match self.client.get::<EntryList>(&address).await {
            Ok(found) => Ok(Some(found.data)),
            Err(Error::Problem(problem)) if problem.code == ProblemCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn takes(&self, path: &str, file: &SkillFile) -> Outcome {
        std::str::from_utf8(&file.bytes).map(drop).map_err(|_| no_text(path))
    }

    async fn write(&self, path: &str, revision: u64, file: &SkillFile) -> Outcome<Option<u64>> {
        let text = String::from_utf8(file.bytes.clone()).map_err(|_| no_text(path))?;
        let seen = if revision == 0 { SeenRevision::Nothing } else { SeenRevision::At(revision) };
        let said = WriteEntry { text, message: None, executable: Some(file.executable) };
        let made: ChangedEntry = self.client.put_over(&at_content(path), seen, &said).await?;
        Ok(made.proposal)
    }

    async fn remove(&self, path: &str, revision: u64) -> Outcome<Option<u64>> {
        let seen = SeenRevision::At(revision);
        let made: ChangedEntry = self.client.delete_seen(&at_content(path), seen).await?;
        Ok(made.proposal)
    }
}
