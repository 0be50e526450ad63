//! What the repository itself does not count as content: what a build leaves behind
//! in a workspace is no change of anybody's.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::io::{self, Read};
use std::path::Path;

/// The rules of every `.gitignore` that a workspace began with. Rules that an agent
/// wrote later hide nothing.
#[derive(Debug)]
pub(crate) struct Ignored(Vec<Gitignore>);

impl Ignored {
    /// Reads the rules from the archive that a workspace was filled from. A line that
    /// is no rule is passed over, as git does.
    pub(crate) fn read(archive: impl Read) -> io::Result<Self> {
        let mut rules: Vec<Gitignore> = Vec::new();
        for entry in tar::Archive::new(archive).entries()? {
            let mut entry = entry?;
            let path = Path::new("/").join(entry.path()?);
            if path.file_name().is_none_or(|name| name != ".gitignore") {
                continue;
            }
            let mut text = Vec::new();
            entry.read_to_end(&mut text)?;
            let mut builder = GitignoreBuilder::new(path.parent().unwrap_or(Path::new("/")));
            for line in String::from_utf8_lossy(&text).lines() {
                drop(builder.add_line(None, line));
            }
            rules.extend(builder.build());
        }
        // The nearest rules have the last word.
        rules.sort_by_key(|rules| std::cmp::Reverse(rules.path().components().count()));
        Ok(Self(rules))
    }

    /// Whether a new file of that path is left out.
    pub(crate) fn covers(&self, path: &str) -> bool {
        let path = Path::new("/").join(path);
        let near = self.0.iter().filter(|rules| path.starts_with(rules.path()));
        let said = near.map(|rules| rules.matched_path_or_any_parents(&path, false));
        said.filter(|said| !said.is_none()).map(|said| matches!(said, Match::Ignore(_))).next()
            == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::Ignored;
    use outrigger_engine::workspace::Builder;

    #[test]
    fn the_nearest_rule_has_the_last_word() {
        let mut builder = Builder::default();
        builder.file(".gitignore", b"target/\n*.log\n/only-here\n", false);
        builder.file("part/.gitignore", b"!kept.log\n*.tmp\n", false);
        let ignored = Ignored::read(builder.finish().as_slice()).unwrap();
        for (path, covered) in [
            ("target/debug/a", true),
            ("part/target/a", true),
            ("src/target.rs", false),
            ("a.log", true),
            ("part/kept.log", false),
            ("part/other.log", true),
            ("part/deep/x.tmp", true),
            ("x.tmp", false),
            ("only-here", true),
            ("part/only-here", false),
        ] {
            assert_eq!(ignored.covers(path), covered, "{path}");
        }
    }
}
