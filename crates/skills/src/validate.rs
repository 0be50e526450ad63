//! What is wrong with the files of a skill.

use crate::files::{SKILL_FILE, SkillFile, SkillFiles, bad_path};
use crate::limits::{FILE_BYTES_MAX, FILES_MAX, TOTAL_BYTES_MAX};
use crate::problem::{Reason, SkillProblem};
use crate::rules;
use crate::skill::{self, Skill, parse};

/// Taken where the first one is not there.
const SMALL_SKILL_FILE: &str = "skill.md";

/// All that is wrong with a skill; nothing if it is valid. `folder` is the name of the
/// folder that it lies in.
#[must_use]
pub fn validate(files: &SkillFiles, folder: &str) -> Vec<SkillProblem> {
    let mut out = outside(files);
    let Some((path, file)) = skill_file(files) else {
        out.push(SkillProblem::at(".", Reason::NoSkillFile));
        return out;
    };
    let read = match std::str::from_utf8(&file.bytes) {
        Err(_) => Err(SkillProblem::at(path, Reason::NotText)),
        Ok(text) => skill::read(text, path),
    };
    match read {
        Err(problem) => out.push(problem),
        Ok((fields, _)) => {
            let reasons = rules::check(&fields, Some(folder));
            out.extend(reasons.into_iter().map(|reason| SkillProblem::at(path, reason)));
        }
    }
    out
}

/// The skill that files are.
///
/// # Errors
///
/// The first of the problems that [`validate`] finds.
pub fn skill_of(files: &SkillFiles, folder: &str) -> Result<Skill, SkillProblem> {
    if let Some(problem) = validate(files, folder).into_iter().next() {
        return Err(problem);
    }
    let none = || SkillProblem::at(".", Reason::NoSkillFile);
    let (path, file) = skill_file(files).ok_or_else(none)?;
    let text = std::str::from_utf8(&file.bytes);
    parse(text.map_err(|_| SkillProblem::at(path, Reason::NotText))?)
}

fn skill_file(files: &SkillFiles) -> Option<(&'static str, &SkillFile)> {
    [SKILL_FILE, SMALL_SKILL_FILE].into_iter().find_map(|name| Some((name, files.get(name)?)))
}

/// What is wrong with the paths and sizes, whatever they hold.
fn outside(files: &SkillFiles) -> Vec<SkillProblem> {
    let mut out = Vec::new();
    let much = |what, max| Reason::TooMuch { what, max };
    if files.len() > FILES_MAX {
        out.push(SkillProblem::at(".", much("files of a skill", FILES_MAX)));
    }
    let total = files.values().map(|file| file.bytes.len()).fold(0, usize::saturating_add);
    if total > TOTAL_BYTES_MAX {
        out.push(SkillProblem::at(".", much("bytes of a skill", TOTAL_BYTES_MAX)));
    }
    for (path, file) in files {
        if file.bytes.len() > FILE_BYTES_MAX {
            out.push(SkillProblem::at(path, much("bytes of a file", FILE_BYTES_MAX)));
        }
        if let Some(reason) = bad_path(path) {
            out.push(SkillProblem::at(path, reason));
        }
        let below = format!("{path}/");
        if files.range(below.clone()..).next().is_some_and(|(next, _)| next.starts_with(&below)) {
            out.push(SkillProblem::at(path, Reason::FileAndFolder));
        }
    }
    out
}
