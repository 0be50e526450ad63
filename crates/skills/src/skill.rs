//! A skill as its SKILL.md has it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::files::SKILL_FILE;
use crate::frontmatter::{self, Value};
use crate::limits::SKILL_BYTES_MAX;
use crate::problem::{Reason, SkillProblem};
use crate::rules::{self, field, trim};

/// What SKILL.md says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skill {
    /// 1 to 64 letters, digits and hyphens; the folder has the same name.
    pub name: String,
    /// What it does and when to use it, 1 to 1024 characters.
    pub description: String,
    /// Under which it may be used.
    pub license: Option<String>,
    /// What it needs, at most 500 characters.
    pub compatibility: Option<String>,
    /// What its author adds. A value that is no text is here as JSON has it; a `metadata` that
    /// is no mapping, which the reference lets pass, is left out.
    pub metadata: BTreeMap<String, String>,
    /// Tools that it wants to use, with blanks between them. An experiment of the
    /// specification: they may narrow what is permitted, and never widen it.
    pub allowed_tools: Option<String>,
    /// The instructions.
    pub body: String,
}

/// Reads a SKILL.md. Of several problems the first one is told; [`crate::validate`] tells
/// all.
///
/// # Errors
///
/// If it is no valid SKILL.md. The name of its folder is not looked at.
pub fn parse(text: &str) -> Result<Skill, SkillProblem> {
    let (fields, body) = read(text, SKILL_FILE)?;
    match rules::check(&fields, None).into_iter().next() {
        Some(reason) => Err(SkillProblem::at(SKILL_FILE, reason)),
        None => Ok(skill(&fields, body)),
    }
}

type Fields = Vec<(String, Value)>;

/// The fields and the body.
pub(crate) fn read(text: &str, path: &str) -> Result<(Fields, String), SkillProblem> {
    if text.len() > SKILL_BYTES_MAX {
        let reason = Reason::TooMuch { what: "bytes of SKILL.md", max: SKILL_BYTES_MAX };
        return Err(SkillProblem::at(path, reason));
    }
    let text = lines(text);
    let (front, body) =
        frontmatter::split(&text).map_err(|reason| SkillProblem::at(path, reason))?;
    Ok((frontmatter::read(front, path)?, trim(body).to_owned()))
}

/// A text with one kind of line break, as the reference reads it.
fn lines(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Fields that were found to be right.
fn skill(fields: &[(String, Value)], body: String) -> Skill {
    let text = |name| field(fields, name).map(plain);
    let trimmed = |name| trim(&text(name).unwrap_or_default()).to_owned();
    let metadata = match field(fields, "metadata") {
        Some(Value::Map(map)) => {
            map.iter().map(|(key, value)| (key.clone(), plain(value))).collect()
        }
        Some(Value::Text(_) | Value::List(_)) | None => BTreeMap::new(),
    };
    Skill {
        name: trimmed("name"),
        description: trimmed("description"),
        license: text("license"),
        compatibility: text("compatibility"),
        allowed_tools: field(fields, "allowed-tools").map(tools),
        metadata,
        body,
    }
}

/// A list of tools is the same as one text with all of them.
fn tools(value: &Value) -> String {
    match value {
        Value::List(list) => list.iter().map(plain).collect::<Vec<_>>().join(" "),
        Value::Text(_) | Value::Map(_) => plain(value),
    }
}

/// A text as it is, anything else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::List(_) | Value::Map(_) => json(value),
    }
}

fn json(value: &Value) -> String {
    let all = |parts: Vec<String>| parts.join(",");
    match value {
        Value::Text(text) => string(text),
        Value::List(list) => format!("[{}]", all(list.iter().map(json).collect())),
        Value::Map(map) => {
            let pair = |(key, value): &(String, Value)| format!("{}:{}", string(key), json(value));
            format!("{{{}}}", all(map.iter().map(pair).collect()))
        }
    }
}

fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out += &format!("\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out + "\""
}
