//! Folders of this machine: read and judged before anything is taken in, written when it is given out.

use outrigger_agent::Digest;
use outrigger_api::SkillInfo;
use outrigger_skills::{SIGNATURE_FILE, SkillFiles, SkillProblem, disk};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::show::{self, Screen, Tone};
use crate::skills::said;

/// A folder of the host with the name that a skill in it must have.
pub(super) fn read(path: &Path) -> Outcome<(String, SkillFiles)> {
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

pub(crate) fn validate(path: &Path, output: Output) -> Outcome<u8> {
    let (name, files) = read(path)?;
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

fn of_problem(problem: &SkillProblem) -> Value {
    json!({ "path": problem.path, "line": problem.line, "reason": problem.reason.to_string() })
}

fn invalid(path: &Path, problems: &[SkillProblem]) -> Failure {
    let text = format!("{} is no skill", path.display());
    let told = problems.iter().map(|problem| show::inert(&said(problem)));
    let failure = Failure::new(Kind::Usage, text);
    told.fold(failure, |failure, told| failure.hint(told))
}

/// A folder that can be taken in, and its name. Where keys are trusted, one of them must have signed.
pub(super) fn valid(path: &Path, keys: &[[u8; 32]]) -> Outcome<(String, SkillFiles)> {
    let (name, files) = read(path)?;
    let problems = outrigger_skills::validate(&files, &name);
    if !problems.is_empty() {
        return Err(invalid(path, &problems));
    }
    if keys.is_empty() {
        return Ok((name, files));
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
    let verified = outrigger_skills::verify(&files, &signature.bytes, keys);
    verified.map_err(|error| refused(error.to_string()))?;
    Ok((name, files))
}

/// Writes a skill as a folder, in one that is there.
pub(crate) fn write(it: &SkillInfo, files: &SkillFiles, into: PathBuf, output: Output) -> Outcome {
    let folder = if into.is_dir() { into.join(name_of(it)) } else { into };
    disk::write(files, &folder).map_err(|error| disk_failure(&folder, &error))?;
    if output.json.is_some() {
        let folder = folder.display().to_string();
        return show::line(
            &json!({ "type": "exported", "path": it.path, "folder": folder, "digest": it.digest }),
        );
    }
    let text = format!("● {} is in {}", it.path, folder.display());
    Screen::new(output).note(Tone::Good, text);
    Ok(())
}

/// The name of its folder.
pub(super) fn name_of(it: &SkillInfo) -> &str {
    it.path.rsplit('/').next().unwrap_or_default()
}
