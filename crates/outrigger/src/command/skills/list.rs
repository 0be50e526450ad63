//! Which skills there are: shown, and one of them found by what a person calls it.

use outrigger_api::{SkillInfo, SkillStanding};
use serde_json::json;

use super::folder::name_of;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::show::{self, Screen, Tone};

pub(crate) fn print_skills(found: &[SkillInfo], output: Output) -> Outcome {
    if output.json.is_some() {
        return show::line(&json!({ "type": "skills", "skills": found }));
    }
    for it in found {
        show::row(&show::inert(&format!("{}  {}", it.path, standing(it))))?;
        let about = it.description.as_ref().or(it.problem.as_ref());
        show::row(&format!("    {}", show::inert(about.map_or("", String::as_str))))?;
        show::row(&format!("    {}", show::inert(&it.digest)))?;
    }
    if found.is_empty() {
        Screen::new(output).note(Tone::Detail, "there are no skills yet");
    }
    Ok(())
}

fn standing(it: &SkillInfo) -> &'static str {
    match it.standing {
        SkillStanding::Offered => "offered",
        SkillStanding::NotPinned => "not pinned",
        SkillStanding::NotReviewed => "not reviewed",
        SkillStanding::Invalid => "invalid",
    }
}

/// The skill that somebody names by its folder, or by its name if only one has it.
pub(crate) fn named<'a>(found: &'a [SkillInfo], wanted: &str) -> Outcome<&'a SkillInfo> {
    let matches: Vec<_> =
        found.iter().filter(|it| it.path == wanted || name_of(it) == wanted).collect();
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
    match &it.problem {
        Some(problem) => Err(Failure::new(Kind::Usage, format!("{}: {problem}", it.path))),
        None => Ok(it),
    }
}
