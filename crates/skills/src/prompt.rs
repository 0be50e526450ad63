//! What a model is shown of skills before it reads one.

use crate::skill::Skill;

/// The block of names, descriptions and places, as the reference's `to_prompt` writes it. A
/// place is the path of the SKILL.md.
#[must_use]
pub fn prompt(skills: &[(&str, &Skill)]) -> String {
    let mut out = String::from("<available_skills>\n");
    for (location, skill) in skills {
        out += "<skill>\n";
        let parts = [
            ("name", skill.name.as_str()),
            ("description", &skill.description),
            ("location", location),
        ];
        for (tag, text) in parts {
            out += &format!("<{tag}>\n{}\n</{tag}>\n", escape(text));
        }
        out += "</skill>\n";
    }
    out + "</available_skills>"
}

/// As HTML has it, so that no description can close the block.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#x27;",
            c => out.push(c),
        }
    }
    out
}
