//! The rules of the fields, as the reference's validator has them.

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

use crate::frontmatter::Value;
use crate::limits::{COMPATIBILITY_CHARS_MAX, DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX};
use crate::problem::Reason;

const FIELDS: [&str; 6] =
    ["name", "description", "license", "allowed-tools", "metadata", "compatibility"];

/// What is wrong with the fields; the name is held against that of the folder, if given.
pub(crate) fn check(fields: &[(String, Value)], folder: Option<&str>) -> Vec<Reason> {
    let mut out = Vec::new();
    for (name, _) in fields {
        if !FIELDS.contains(&name.as_str()) {
            out.push(Reason::UnknownField(name.clone()));
        }
    }
    match field(fields, "name") {
        None => out.push(Reason::Missing("name")),
        Some(value) => match filled(value) {
            None => out.push(Reason::Empty("name")),
            Some(text) => name(trim(text), folder, &mut out),
        },
    }
    match field(fields, "description") {
        None => out.push(Reason::Missing("description")),
        Some(value) => match filled(value).map(|text| text.chars().count()) {
            None => out.push(Reason::Empty("description")),
            Some(chars) if chars > DESCRIPTION_CHARS_MAX => {
                out.push(Reason::LongDescription(chars))
            }
            Some(_) => {}
        },
    }
    match field(fields, "compatibility") {
        Some(Value::Text(text)) if text.chars().count() > COMPATIBILITY_CHARS_MAX => {
            out.push(Reason::LongCompatibility(text.chars().count()));
        }
        Some(Value::List(_) | Value::Map(_)) => out.push(Reason::NoText("compatibility")),
        Some(Value::Text(_)) | None => {}
    }
    out
}

pub(crate) fn field<'a>(fields: &'a [(String, Value)], name: &str) -> Option<&'a Value> {
    fields.iter().find(|(other, _)| other == name).map(|(_, value)| value)
}

fn filled(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) if !trim(text).is_empty() => Some(text),
        Value::Text(_) | Value::List(_) | Value::Map(_) => None,
    }
}

/// Without the blanks around it; four separators of ASCII are blanks to the reference.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

/// Names are compared in one normal form, so that letters of any script may be in them.
fn name(name: &str, folder: Option<&str>, out: &mut Vec<Reason>) {
    let name: String = name.nfkc().collect();
    let chars = name.chars().count();
    if chars > NAME_CHARS_MAX {
        out.push(Reason::LongName(chars));
    }
    if name != name.to_lowercase() {
        out.push(Reason::Capitals(name.clone()));
    }
    if name.starts_with('-') || name.ends_with('-') {
        out.push(Reason::OuterHyphen);
    }
    if name.contains("--") {
        out.push(Reason::DoubleHyphen);
    }
    let fine = if name.is_ascii() {
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    } else {
        // By their category: the standard library's letters include marks.
        let letters = Regex::new(r"^[\p{L}\p{N}-]*$").expect("the pattern is well formed");
        letters.is_match(&name)
    };
    if !fine {
        out.push(Reason::Characters(name.clone()));
    }
    if let Some(folder) = folder
        && folder.nfkc().collect::<String>() != name
    {
        out.push(Reason::OtherFolder { folder: folder.to_owned(), name });
    }
}
