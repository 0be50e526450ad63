//! Skills in memory scopes: found, read whole, and offered to sessions by name and description.
//!
//! Owns which skills a session is told of when it is opened: those that can be read as the
//! format demands, that are what is pinned where something is, and that the person wrote,
//! took in, or that somebody accepted. What others wrote and nobody reviewed is never put
//! into a prompt, nor what a session wrote after untrusted content; both can be read, and
//! label the session then. What is put there labels it from its start.

use outrigger_agent::{Digest, HiddenCharPolicy, visible};
use outrigger_api::{SkillInfo, SkillStanding};
use outrigger_engine::path_of;
use outrigger_policy::{MemoryKind, MemoryScope, Scope, UNTRUSTED};
use outrigger_skills::{Skill, SkillFile, SkillFiles, SkillProblem};
use outrigger_store::entries::{
    Entries, EntryAddress, EntryPath, EntryState, Error, Version, list_all,
};
use std::collections::{BTreeMap, BTreeSet};

use crate::config::Skills;
use crate::exit::{Failure, Kind};
use crate::limits;

/// A folder that is, or should be, a skill.
#[derive(Debug)]
pub(crate) struct SkillFolder {
    /// Its folder, as sessions see it.
    pub(crate) path: String,
    pub(crate) files: SkillFiles,
    /// The newest version of each file.
    pub(crate) versions: BTreeMap<String, Version>,
    /// What it says, or why it is none.
    pub(crate) skill: Result<Skill, SkillProblem>,
    pub(crate) digest: [u8; 32],
}

impl SkillFolder {
    /// Whether sessions of a person are told of it.
    fn standing(&self, scope: &Scope, config: &Skills) -> SkillStanding {
        if self.skill.is_err() {
            return SkillStanding::Invalid;
        }
        if config.pins.get(&self.path).is_some_and(|pin| pin.0 != self.digest) {
            return SkillStanding::NotPinned;
        }
        let vouched = |it: &Version| {
            let own = it.author == scope.person() && !it.by.labels.contains(UNTRUSTED);
            own || it.accepted_by.is_some()
        };
        let pinned = config.pins.contains_key(&self.path);
        if pinned || self.versions.values().all(vouched) {
            SkillStanding::Offered
        } else {
            SkillStanding::NotReviewed
        }
    }

    /// What its description brings into a session. Who pinned it has read it.
    fn labels(&self, config: &Skills) -> BTreeSet<String> {
        let described = self.versions.get(outrigger_skills::SKILL_FILE);
        let described = described.filter(|_| !config.pins.contains_key(&self.path));
        described.map(|it| it.by.labels.clone()).unwrap_or_default()
    }

    /// As it is told to a person.
    pub(crate) fn info(&self, scope: &Scope, config: &Skills) -> SkillInfo {
        let skill = self.skill.as_ref().ok();
        SkillInfo {
            path: self.path.clone(),
            name: skill.map(|skill| skill.name.clone()),
            description: skill.map(|skill| skill.description.clone()),
            digest: Digest::from_sha256(self.digest).to_string(),
            standing: self.standing(scope, config),
            problem: self.skill.as_ref().err().map(said),
            files: self.files.len() as u64,
        }
    }
}

/// What is wrong with a skill, and where.
pub(crate) fn said(problem: &SkillProblem) -> String {
    let line = problem.line.map(|line| format!(", line {line}")).unwrap_or_default();
    format!("{}{line}: {}", problem.path, problem.reason)
}

/// The error of a store that does not give its skills.
pub(crate) fn failed(error: &Error) -> Failure {
    Failure::new(Kind::Storage, format!("skills: {error}"))
}

/// Every folder at the top of the memory scopes of skills that somebody sees.
pub(crate) async fn find(entries: &dyn Entries, scope: &Scope) -> Result<Vec<SkillFolder>, Error> {
    let mut found = Vec::new();
    for memory_scope in scope.memory_scopes(MemoryKind::Skills) {
        let root = EntryAddress { memory_scope: memory_scope.clone(), path: EntryPath::ROOT };
        for (path, node) in list_all(entries, scope, &root, false).await? {
            if node.folder && found.len() < limits::SKILLS_MAX {
                found.push(read(entries, scope, &memory_scope, path).await?);
            }
        }
    }
    Ok(found)
}

/// A folder as a skill.
async fn read(
    entries: &dyn Entries,
    scope: &Scope,
    memory_scope: &MemoryScope,
    folder: EntryPath,
) -> Result<SkillFolder, Error> {
    let place = EntryAddress { memory_scope: memory_scope.clone(), path: folder };
    let (mut files, mut versions) = (SkillFiles::new(), BTreeMap::new());
    for (path, node) in list_all(entries, scope, &place, true).await? {
        let too_many = files.len() > outrigger_skills::limits::FILES_MAX;
        if node.folder || node.redacted || too_many {
            continue;
        }
        let at = EntryAddress { memory_scope: memory_scope.clone(), path };
        let read = match entries.read(scope, &at, None).await {
            // It was there a moment ago.
            Err(Error::Absent | Error::Redacted(_) | Error::Folder) => continue,
            read => read?,
        };
        let within = at.path.as_str().get(place.path.as_str().len() + 1..).unwrap_or_default();
        let executable = matches!(read.version.state, EntryState::File { executable: true, .. });
        files.insert(within.to_owned(), SkillFile { bytes: read.bytes, executable });
        versions.insert(within.to_owned(), read.version);
    }
    let skill = outrigger_skills::skill_of(&files, place.path.name());
    let digest = outrigger_skills::digest(&files);
    Ok(SkillFolder { path: path_of(&place), files, versions, skill, digest })
}

/// What a session is told of skills.
#[derive(Debug, Default)]
pub(crate) struct SkillsPrompt {
    /// Nothing where it is told of none.
    pub(crate) text: String,
    /// What that labels it.
    pub(crate) labels: BTreeSet<String>,
    /// The names that it is told.
    pub(crate) names: BTreeSet<String>,
}

/// What a session is told of the skills that there are; of these names alone, if any are given.
pub(crate) async fn prompt(
    entries: &dyn Entries,
    scope: &Scope,
    config: &Skills,
    named: Option<&BTreeSet<String>>,
) -> Result<SkillsPrompt, Error> {
    let found = find(entries, scope).await?;
    let (mut offered, mut told) = (Vec::new(), SkillsPrompt::default());
    let mut bytes = 0;
    for it in &found {
        let (Ok(skill), SkillStanding::Offered) = (&it.skill, it.standing(scope, config)) else {
            continue;
        };
        if named.is_some_and(|named| !named.contains(&skill.name)) {
            continue;
        }
        bytes += skill.name.len() + skill.description.len() + it.path.len();
        if bytes > limits::SKILLS_PROMPT_BYTES_MAX {
            break;
        }
        told.labels.extend(it.labels(config));
        told.names.insert(skill.name.clone());
        // Its words become ours: nothing in them that a person who reads them does not see.
        let clean = |text: &str| visible(text, HiddenCharPolicy::Removed);
        let (name, description) = (clean(&skill.name), clean(&skill.description));
        let skill = Skill { name, description, ..skill.clone() };
        offered.push((clean(&format!("{}/SKILL.md", it.path)), skill));
    }
    if !offered.is_empty() {
        let offered: Vec<_> = offered.iter().map(|(path, skill)| (path.as_str(), skill)).collect();
        told.text = outrigger_skills::prompt(&offered);
    }
    Ok(told)
}
