//! Which projects of others are tried, and what a person types in each of them.
//!
//! Owns the reading of `projects.toml`. Must never name a place of this machine: where a
//! project lies is said by whoever runs it.

use serde::Deserialize;

/// The list, as it stands beside the manifest of this crate.
const LIST: &str = include_str!("../../projects.toml");

/// Why there is nothing to try.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The list is no list.
    #[error("projects.toml can't be read")]
    Toml(#[from] toml::de::Error),
    /// No project is called that.
    #[error("there is no project `{name}`; there are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What could have been.
        known: String,
    },
}

/// A project of others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Project {
    /// What it is called in the table.
    pub(crate) name: String,
    /// What it is written in.
    pub(crate) language: String,
    /// Where git fetches it from.
    pub(crate) git: String,
    /// Which state of it is tried: the name of a commit in full.
    pub(crate) commit: String,
    /// What a person types once, with a network, in its directory.
    pub(crate) once: Vec<String>,
    /// What starts its own tests.
    pub(crate) test: String,
    /// What the tests print when some passed, as `grep -E` takes it. The first number in each
    /// match is how many; a match without one is one.
    pub(crate) passed: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    project: Vec<Project>,
}

impl Project {
    /// The directory that a clone of it lies in: `owner+name`.
    pub(crate) fn folder(&self) -> String {
        let path = self.git.trim_end_matches('/').trim_end_matches(".git");
        let mut parts = path.rsplit('/');
        let name = parts.next().unwrap_or_default();
        parts.next().map_or_else(|| name.to_owned(), |owner| format!("{owner}+{name}"))
    }
}

/// All of them, or the one of this name.
pub(crate) fn load(only: Option<&str>) -> Result<Vec<Project>, Error> {
    let List { mut project } = toml::from_str(LIST)?;
    let Some(name) = only else { return Ok(project) };
    let known: Vec<String> = project.iter().map(|project| project.name.clone()).collect();
    project.retain(|project| project.name == name);
    match project.is_empty() {
        true => Err(Error::Unknown { name: name.to_owned(), known: known.join(", ") }),
        false => Ok(project),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::expect;

    use super::*;

    #[test]
    fn they_are_twelve_of_six_languages_each_of_one_state() {
        let projects = load(None).unwrap();
        let mut languages = BTreeMap::<&str, Vec<&str>>::new();
        for project in &projects {
            languages.entry(&project.language).or_default().push(&project.name);
            assert_eq!(project.commit.len(), 40, "{}", project.name);
            assert!(!project.passed.contains('\''), "{}: it is quoted with '", project.name);
        }
        let counts: Vec<_> = languages.iter().map(|(it, names)| (*it, names.len())).collect();
        expect![[r#"[("C", 1), ("Go", 1), ("Java", 1), ("Node", 3), ("Python", 3), ("Rust", 3)]"#]]
            .assert_eq(&format!("{counts:?}"));
    }

    #[test]
    fn one_is_named_and_a_wrong_name_is_told_with_all() {
        let one = load(Some("zlib")).unwrap();
        assert_eq!(one[0].folder(), "madler+zlib");
        let error = load(Some("nothing")).unwrap_err().to_string();
        assert!(error.starts_with("there is no project `nothing`; there are "), "{error}");
        assert!(error.contains(", zlib"), "{error}");
    }
}
