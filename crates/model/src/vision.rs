//! Which models see no pictures: a dated data file.
//!
//! Must never guess: a model of which nothing is written down is asked, and its provider says.

use serde::Deserialize;

use crate::prices::is_date;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    blind: Vec<Entry>,
}

/// A model that sees none, and who says so.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Its name, without whose it is, without a date and without a size.
    model: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the file, and its test"))]
    as_of: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the file, and its test"))]
    source: String,
}

fn file() -> File {
    toml::from_str(include_str!("vision.toml")).expect("a test reads the file")
}

/// Whether a model sees pictures, as far as is known: false for those that are known to see
/// none, by whichever provider they are asked.
#[must_use]
pub fn sees_pictures(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let is_named = |entry: &Entry| match name.strip_prefix(&entry.model) {
        Some("") => true,
        // Its size, as Ollama writes it, or its date.
        Some(rest) => rest.starts_with(':') || rest.strip_prefix('-').is_some_and(is_date),
        None => false,
    };
    !file().blind.iter().any(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema of the data file.
    #[test]
    fn the_entries_are_dated_and_sourced() {
        let entries = file().blind;
        for (at, Entry { model, as_of, source }) in entries.iter().enumerate() {
            assert!(!entries[..at].iter().any(|other| other.model == *model), "{model} twice");
            assert!(is_date(as_of) && as_of.contains('-'), "{model}: {as_of}");
            assert!(source.starts_with("https://"), "{model}: {source}");
            assert!(!model.contains(['/', ':']), "{model}");
        }
    }

    #[test]
    fn what_is_not_known_to_be_blind_sees() {
        for (model, sees) in [
            ("deepseek-v4-pro", false),
            ("deepseek/deepseek-v4-pro", false),
            ("deepseek-v4-pro-20260424", false),
            ("deepseek-v4-pro-vision", true),
            ("gpt-oss:20b", false),
            ("openai/gpt-oss-120b", false),
            ("claude-sonnet-5-5", true),
            ("nobody-knows", true),
        ] {
            assert_eq!(sees_pictures(model), sees, "{model}");
        }
    }
}
