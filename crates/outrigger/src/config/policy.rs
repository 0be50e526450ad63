//! `[policy]`: which rules hold, and for whom.
//!
//! Rules add up over all configuration files. What could loosen them is said once: the
//! weaker file is the administrator's, and a stronger one can't take it back.

use serde::Deserialize;
use std::path::{Path, PathBuf};

use crate::exit::{Failure, Kind, Outcome};

/// The rules that every step is judged by (`docs/how-to/write-policies.md`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PolicyFile {
    /// Whether the built-in rules hold beside those of the files. A stronger file can't change what
    /// a weaker one says.
    #[cfg_attr(test, schemars(extend("default" = Policy::default().defaults)))]
    pub(crate) defaults: Option<bool>,
    /// Files of rules, in Cedar. Those of all configuration files hold together.
    #[cfg_attr(test, schemars(example = ["rules/hosts.cedar"], extend("default" = [])))]
    pub(crate) files: Option<Vec<PathBuf>>,
    /// Files of rules for the organisation: what they do not permit, nobody can be permitted.
    /// Without one the organisation is judged by the other rules. Only one configuration file may
    /// say it.
    #[cfg_attr(test, schemars(example = ["rules/ceiling.cedar"], extend("default" = [])))]
    pub(crate) ceiling: Option<Vec<PathBuf>>,
    /// A file that says who is in which group; if absent, nobody is in one. Only one configuration
    /// file may say it.
    #[cfg_attr(test, schemars(example = &"people.toml"))]
    pub(crate) people: Option<PathBuf>,
    /// Files of rules, in Cedar, of what people may do on a server, beside the built-in ones.
    #[cfg_attr(test, schemars(example = ["rules/access.cedar"], extend("default" = [])))]
    pub(crate) access: Option<Vec<PathBuf>>,
}

/// Which rules hold, as all files together say.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// Whether the built-in rules hold.
    pub(crate) defaults: bool,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) ceiling: Vec<PathBuf>,
    pub(crate) people: Option<PathBuf>,
    pub(crate) access: Vec<PathBuf>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            defaults: true,
            files: Vec::new(),
            ceiling: Vec::new(),
            people: None,
            access: Vec::new(),
        }
    }
}

impl Policy {
    /// Adds what a stronger file says. Its paths begin where it stands. `settled` is
    /// whether `defaults` holds, once a file with rules has said or implied it.
    pub(super) fn absorb(
        &mut self,
        file: PolicyFile,
        path: &Path,
        settled: &mut Option<bool>,
    ) -> Outcome {
        // What people may do is apart from it.
        let says_nothing = PolicyFile { access: None, ..file.clone() } == PolicyFile::default();
        let PolicyFile { defaults, files, ceiling, people, access } = file;
        let dir = path.parent().unwrap_or(Path::new("."));
        let said = |key: &str| {
            let text = format!(
                "{}: `policy.{key}` is set in an earlier configuration file, and can't be set again",
                path.display()
            );
            Failure::new(Kind::Usage, text).hint(
                "Rules can be added to in `policy.files`, and not taken back: leave it out here.",
            )
        };
        // Saying the same again takes nothing back.
        if defaults.is_some_and(|new| settled.is_some_and(|before| before != new)) {
            return Err(said("defaults"));
        }
        if !says_nothing {
            self.defaults = *settled.get_or_insert(defaults.unwrap_or(true));
        }
        if let Some(ceiling) = ceiling.filter(|ceiling| !ceiling.is_empty()) {
            if !self.ceiling.is_empty() {
                return Err(said("ceiling"));
            }
            self.ceiling = ceiling.iter().map(|file| dir.join(file)).collect();
        }
        if let Some(people) = people {
            if self.people.is_some() {
                return Err(said("people"));
            }
            self.people = Some(dir.join(people));
        }
        self.files.extend(files.unwrap_or_default().iter().map(|file| dir.join(file)));
        self.access.extend(access.unwrap_or_default().iter().map(|file| dir.join(file)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the files together say, the weaker first.
    fn layered(files: &[&str]) -> Result<Policy, String> {
        let (mut policy, mut settled) = (Policy::default(), None);
        for (number, text) in files.iter().enumerate() {
            let path = PathBuf::from(format!("/etc/{number}/config.toml"));
            let file = toml::from_str(text).map_err(|error| error.to_string())?;
            policy.absorb(file, &path, &mut settled).map_err(|failure| failure.message)?;
        }
        Ok(policy)
    }

    #[test]
    fn rules_add_up_from_where_their_files_stand() {
        let policy =
            layered(&["files = [\"a\", \"/b\"]\npeople = \"p\"", "files = [\"c\"]"]).unwrap();
        let paths = ["/etc/0/a", "/b", "/etc/1/c"].map(PathBuf::from);
        assert_eq!(policy.files, paths);
        assert_eq!(policy.people, Some(PathBuf::from("/etc/0/p")));
        assert!(policy.defaults);
    }

    #[test]
    fn a_stronger_file_takes_nothing_back() {
        for (weaker, stronger, taken) in [
            ("", "defaults = false", true),
            ("files = [\"a\"]", "defaults = false", false),
            ("files = [\"a\"]", "defaults = true", true),
            ("defaults = false", "defaults = true", false),
            ("defaults = false", "files = [\"a\"]", true),
            ("people = \"a\"", "people = \"b\"", false),
            ("ceiling = [\"a\"]", "ceiling = [\"b\"]", false),
            ("", "ceiling = [\"b\"]", true),
        ] {
            assert_eq!(layered(&[weaker, stronger]).is_ok(), taken, "{weaker} + {stronger}");
        }
        assert!(!layered(&["defaults = false", "files = [\"a\"]"]).unwrap().defaults);
    }
}
