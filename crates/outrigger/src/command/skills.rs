//! `outrigger skills`: what agents can learn to do, taken in and given out as folders.

use clap::Subcommand;
use outrigger_agent::Digest;
use outrigger_engine::path_of;
use outrigger_policy::{MemoryKind, MemoryScope, Owner};
use outrigger_skills::{SIGNATURE_FILE, SkillFiles, SkillProblem, disk};
use outrigger_store::entries::{
    Attribution, ChangeRequest, EntryAddress, EntryFile, EntryPath, EntryPrecondition, EntryState,
    Error, Submission, Version, Via,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::memory::MemoryContext;
use crate::config::{self, Config};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::session::now_ms;
use crate::show::{self, Tone};
use crate::skills::{self, SkillFolder};

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Skills {
    /// List the skills that are yours to see, with their digests, and whether sessions are
    /// told of them.
    Ls {
        #[command(flatten)]
        output: Output,
    },
    /// Take in a folder with a SKILL.md, in the Agent Skills format.
    Import {
        /// The folder. Its name is the skill's.
        folder: PathBuf,
        /// Into which memory scope: `user`, `organisation`, or the name of a group.
        #[arg(long, value_name = "SCOPE", default_value = "user")]
        to: String,
        /// Take the place of the skill of that name.
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Write a skill as a folder, which any program that knows the format can use.
    Export {
        /// Its folder, as sessions see it, or its name, if only one has it.
        skill: String,
        /// The folder to make, or one that is there, in which it is made.
        #[arg(default_value = ".")]
        into: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Say whether a folder is a skill as the format demands, and why not.
    Validate {
        /// The folder.
        folder: PathBuf,
        #[command(flatten)]
        output: Output,
    },
}

impl Skills {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Ls { output }
            | Self::Import { output, .. }
            | Self::Export { output, .. }
            | Self::Validate { output, .. } => *output,
        }
    }
}

pub(crate) async fn execute(paths: &Paths, asked: Skills) -> Outcome<u8> {
    if let Skills::Validate { folder, output } = asked {
        return validate(&folder, output);
    }
    let config = Config::of_files(paths.configs())?.skills;
    let memory = MemoryContext::open(paths, asked.output()).await?;
    match asked {
        Skills::Ls { .. } => ls(&memory, &config).await?,
        Skills::Import { folder, to, replace, .. } => {
            import(&memory, &config, &folder, &to, replace).await?;
        }
        Skills::Export { skill, into, .. } => export(&memory, &skill, into).await?,
        Skills::Validate { .. } => {}
    }
    Ok(0)
}

/// A folder of the host with the name that a skill in it must have.
fn folder(path: &Path) -> Outcome<(String, SkillFiles)> {
    let unreadable = |error: std::io::Error| {
        Failure::new(Kind::NotFound, format!("{}: {error}", path.display()))
    };
    let whole = std::fs::canonicalize(path).map_err(unreadable)?;
    let name = whole.file_name().map(|name| name.to_string_lossy().into_owned());
    let files = disk::read(&whole).map_err(|error| disk_failure(path, &error))?;
    Ok((name.unwrap_or_default(), files))
}

fn disk_failure(path: &Path, error: &disk::Error) -> Failure {
    let kind = match error {
        disk::Error::Problem(_) => Kind::Usage,
        disk::Error::Exists(_) => Kind::Conflict,
        disk::Error::Io { .. } => Kind::Storage,
    };
    let mut failure = Failure::from_error(kind, error);
    failure.message = format!("{}: {}", path.display(), failure.message);
    failure
}

fn validate(path: &Path, output: Output) -> Outcome<u8> {
    let (name, files) = folder(path)?;
    let problems = outrigger_skills::validate(&files, &name);
    if output.json.is_some() {
        let problems: Vec<_> = problems.iter().map(of_problem).collect();
        let digest = Digest::from_sha256(outrigger_skills::digest(&files));
        let valid = problems.is_empty();
        show::line(
            &json!({ "type": "validated", "name": name, "valid": valid, "digest": digest, "problems": problems }),
        )?;
        return Ok(if valid { 0 } else { Kind::Usage as u8 });
    }
    if problems.is_empty() {
        show::row(&format!("{} is a skill", show::inert(&path.display().to_string())))?;
        return Ok(0);
    }
    Err(invalid(path, &problems))
}

fn invalid(path: &Path, problems: &[SkillProblem]) -> Failure {
    let text = format!("{} is no skill", path.display());
    let told = problems.iter().map(|problem| show::inert(&said(problem)));
    let failure = Failure::new(Kind::Usage, text);
    told.fold(failure, |failure, told| failure.hint(told))
}

fn said(problem: &SkillProblem) -> String {
    let line = problem.line.map(|line| format!(", line {line}")).unwrap_or_default();
    format!("{}{line}: {}", problem.path, problem.reason)
}

fn of_problem(problem: &SkillProblem) -> Value {
    json!({ "path": problem.path, "line": problem.line, "reason": problem.reason.to_string() })
}

async fn all(memory: &MemoryContext) -> Outcome<Vec<SkillFolder>> {
    let found = skills::find(&*memory.entries, &memory.scope).await;
    found.map_err(|error| Failure::new(Kind::Storage, error.to_string()))
}

async fn ls(memory: &MemoryContext, config: &config::Skills) -> Outcome {
    let found = all(memory).await?;
    if memory.json {
        let skills: Vec<_> = found
            .iter()
            .map(|it| {
                let standing = it.standing(&memory.scope, config).as_str();
                let (name, description, problem) = match &it.skill {
                    Ok(skill) => (Some(&skill.name), Some(&skill.description), None),
                    Err(problem) => (None, None, Some(said(problem))),
                };
                json!({
                    "path": it.path, "name": name, "description": description,
                    "digest": it.digest(), "standing": standing, "problem": problem,
                    "files": it.files.len(),
                })
            })
            .collect();
        return show::line(&json!({ "type": "skills", "skills": skills }));
    }
    for it in &found {
        let standing = it.standing(&memory.scope, config).as_str();
        show::row(&show::inert(&format!("{}  {standing}", it.path)))?;
        match &it.skill {
            Ok(skill) => show::row(&format!("    {}", show::inert(&skill.description)))?,
            Err(problem) => show::row(&format!("    {}", show::inert(&said(problem))))?,
        }
        show::row(&format!("    {}", it.digest()))?;
    }
    if found.is_empty() {
        memory.screen.note(Tone::Detail, "there are no skills yet");
    }
    Ok(())
}

/// The memory scope that somebody names.
fn memory_scope(memory: &MemoryContext, to: &str) -> Outcome<MemoryScope> {
    let person = memory.scope.person();
    let owner = memory.scope.memory_scopes(MemoryKind::Skills).into_iter().find(|memory_scope| {
        match &memory_scope.owner {
            Owner::Person(name) => to == "user" && person.to_string().ends_with(name.as_str()),
            Owner::Organisation(_) => to == "organisation",
            Owner::Group(name) => to == name || to.strip_prefix("group/") == Some(name),
        }
    });
    owner.ok_or_else(|| {
        Failure::new(Kind::NotFound, format!("there is no memory scope `{to}` for you"))
            .hint("`user`, `organisation`, or the name of a group that you are in.")
    })
}

async fn import(
    memory: &MemoryContext,
    config: &config::Skills,
    path: &Path,
    to: &str,
    replace: bool,
) -> Outcome {
    let (name, files) = folder(path)?;
    let problems = outrigger_skills::validate(&files, &name);
    if !problems.is_empty() {
        return Err(invalid(path, &problems));
    }
    trusted(config, path, &files)?;
    let memory_scope = memory_scope(memory, to)?;
    let folder =
        EntryPath::normalise(&name).map_err(|fault| bad_path(&name, &fault.to_string()))?;
    let root = EntryAddress { memory_scope: memory_scope.clone(), path: folder.clone() };
    let before = match memory.entries.stat(&memory.scope, &root).await {
        Ok(_) if !replace => {
            let text = format!("{} is there already", path_of(&root));
            return Err(Failure::new(Kind::Conflict, text)
                .hint("`--replace` lets the new one take its place; the old versions stay."));
        }
        Ok(_) => {
            let before = skills::read(&*memory.entries, &memory.scope, &memory_scope, folder).await;
            before.map_err(|error| memory.failed(&root, error))?.versions
        }
        Err(Error::Absent) => BTreeMap::new(),
        Err(error) => return Err(memory.failed(&root, error)),
    };
    let proposed = put(memory, &root, &files, &before).await?;
    let digest = Digest::from_sha256(outrigger_skills::digest(&files));
    if memory.json {
        return show::line(&json!({
            "type": "imported", "path": path_of(&root), "digest": digest, "proposals": proposed,
        }));
    }
    let text = match proposed.as_slice() {
        [] => format!(
            "● {} has {}; {digest}",
            path_of(&root),
            show::count(files.len() as u64, "file")
        ),
        some => format!(
            "● {} proposed: `outrigger memory proposals ls` lists what waits",
            show::count(some.len() as u64, "file")
        ),
    };
    memory.screen.note(Tone::Good, text);
    Ok(())
}

fn bad_path(path: &str, fault: &str) -> Failure {
    Failure::new(Kind::Usage, format!("{path}: {fault}"))
}

/// Where keys are trusted, one of them must have signed.
fn trusted(config: &config::Skills, path: &Path, files: &SkillFiles) -> Outcome {
    if config.trusted_keys.is_empty() {
        return Ok(());
    }
    let refused = |why: String| {
        let text = format!("{}: {why}", path.display());
        Failure::new(Kind::Denied, text).hint(format!(
            "skills.trusted_keys names whose skills are taken in; {SIGNATURE_FILE} has the signature."
        ))
    };
    let Some(signature) = files.get(SIGNATURE_FILE) else {
        return Err(refused("it is not signed".to_owned()));
    };
    let keys: Vec<_> = config.trusted_keys.iter().map(|key| key.0).collect();
    let verified = outrigger_skills::verify(files, &signature.bytes, &keys);
    verified.map(drop).map_err(|error| refused(error.to_string()))
}

/// Writes what is new, removes what is gone; SKILL.md last, so that what is half there is
/// not yet a skill.
async fn put(
    memory: &MemoryContext,
    root: &EntryAddress,
    files: &SkillFiles,
    before: &BTreeMap<String, Version>,
) -> Outcome<Vec<u64>> {
    let by = Attribution { via: Via::Import, ..Attribution::person(now_ms()) };
    let place = |path: &str| {
        let whole = format!("{}/{path}", root.path);
        let path =
            EntryPath::normalise(&whole).map_err(|fault| bad_path(path, &fault.to_string()))?;
        Ok::<_, Failure>(EntryAddress { memory_scope: root.memory_scope.clone(), path })
    };
    let mut proposed = Vec::new();
    let gone = before.iter().filter(|(path, _)| !files.contains_key(*path));
    let gone = gone.map(|(path, version)| (path, version.revision, None));
    let last = |path: &str| path.eq_ignore_ascii_case("SKILL.md");
    let (heads, rest): (Vec<_>, Vec<_>) = files.iter().partition(|(path, _)| last(path));
    let written = rest.into_iter().chain(heads).map(|(path, file)| {
        let revision = before.get(path).map_or(0, |version| version.revision);
        (path, revision, Some(file))
    });
    let same = |path: &str, file: &outrigger_skills::SkillFile| {
        let digest = Digest::of(&file.bytes);
        before.get(path).is_some_and(|version| match &version.state {
            EntryState::File { digest: before, executable, .. } => {
                *before == digest && *executable == file.executable
            }
            EntryState::Folder | EntryState::Gone => false,
        })
    };
    for (path, revision, file) in gone.chain(written).collect::<Vec<_>>() {
        if file.is_some_and(|file| same(path, file)) {
            continue;
        }
        let at = place(path)?;
        let file = file.map(|file| EntryFile {
            executable: file.executable,
            ..EntryFile::of(file.bytes.clone())
        });
        let expected = if revision == 0 {
            EntryPrecondition::Absent
        } else {
            EntryPrecondition::Revision(revision)
        };
        let change = match file {
            Some(file) => ChangeRequest::Write { at: at.clone(), expected, file },
            None => ChangeRequest::Remove { at: at.clone(), revision },
        };
        match memory.submit(change, by.clone()).await {
            Ok(Submission::Changed(_)) => {}
            Ok(Submission::Proposed(id)) => proposed.push(id.0),
            Err(error) => return Err(memory.failed(&at, error)),
        }
    }
    Ok(proposed)
}

async fn export(memory: &MemoryContext, wanted: &str, into: PathBuf) -> Outcome {
    let found = all(memory).await?;
    let matches: Vec<_> =
        found.iter().filter(|it| it.path == wanted || it.place.path.name() == wanted).collect();
    let it = match matches.as_slice() {
        [it] => it,
        [] => {
            return Err(Failure::new(Kind::NotFound, format!("there is no skill `{wanted}`"))
                .hint("`outrigger skills ls` lists them."));
        }
        several => {
            let paths: Vec<_> = several.iter().map(|it| it.path.as_str()).collect();
            return Err(Failure::new(Kind::Usage, format!("several skills are called `{wanted}`"))
                .hint(format!("Name one of {}.", paths.join(", "))));
        }
    };
    if let Err(problem) = &it.skill {
        return Err(Failure::new(Kind::Usage, format!("{}: {}", it.path, said(problem))));
    }
    let folder = if into.is_dir() { into.join(it.place.path.name()) } else { into };
    disk::write(&it.files, &folder).map_err(|error| disk_failure(&folder, &error))?;
    if memory.json {
        let folder = folder.display().to_string();
        return show::line(
            &json!({ "type": "exported", "path": it.path, "folder": folder, "digest": it.digest() }),
        );
    }
    memory.screen.note(Tone::Good, format!("● {} is in {}", it.path, folder.display()));
    Ok(())
}
