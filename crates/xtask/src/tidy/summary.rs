//! The numbers that we watch, whether or not a rule is broken.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::objects::{self, Object};
use super::project::Project;
use crate::limits::{FILE_LINES_SOFT_MAX, WATCHED_FILE_LINES_MAX};

/// Sizes of the project and of each crate.
#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    production_lines: usize,
    test_lines: usize,
    /// Production lines in files above the watched size, in percent of all.
    share_in_large_files_percent: f64,
    files_over_soft_limit: usize,
    crates: BTreeMap<String, Size>,
    /// Circles of imports.
    circles: usize,
    /// Those with the most methods.
    largest_objects: Vec<Object>,
}

/// Size of one crate.
#[derive(Debug, Default, Serialize)]
struct Size {
    files: usize,
    production_lines: usize,
    test_lines: usize,
    largest_file_lines: usize,
}

impl Summary {
    /// Counts every file.
    pub(super) fn of(project: &Project) -> Self {
        let mut summary = Self {
            circles: project.imports.values().map(|imports| imports.circles().len()).sum(),
            largest_objects: objects::largest(project),
            ..Self::default()
        };
        let mut in_large = 0;
        for source in &project.sources.files {
            let lines = source.production_lines();
            let tests = source.text.lines().count() - lines;
            summary.production_lines += lines;
            summary.test_lines += tests;
            if lines > WATCHED_FILE_LINES_MAX {
                in_large += lines;
            }
            if lines > FILE_LINES_SOFT_MAX {
                summary.files_over_soft_limit += 1;
            }
            let size = summary.crates.entry(source.krate.clone()).or_default();
            size.files += 1;
            size.production_lines += lines;
            size.test_lines += tests;
            size.largest_file_lines = size.largest_file_lines.max(lines);
        }
        let tenths = (in_large * 1_000).checked_div(summary.production_lines).unwrap_or(0);
        summary.share_in_large_files_percent =
            f64::from(u32::try_from(tenths).unwrap_or(u32::MAX)) / 10.0;
        summary
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<16} {:>6} {:>11} {:>7} {:>8}",
            "crate", "files", "production", "tests", "largest"
        )?;
        for (name, size) in &self.crates {
            writeln!(
                f,
                "{name:<16} {:>6} {:>11} {:>7} {:>8}",
                size.files, size.production_lines, size.test_lines, size.largest_file_lines
            )?;
        }
        writeln!(
            f,
            "{:<16} {:>6} {:>11} {:>7}",
            "all",
            self.crates.values().map(|size| size.files).sum::<usize>(),
            self.production_lines,
            self.test_lines
        )?;
        writeln!(
            f,
            "production code in files over {WATCHED_FILE_LINES_MAX} lines: {} %; files over {FILE_LINES_SOFT_MAX}: {}",
            self.share_in_large_files_percent, self.files_over_soft_limit
        )?;
        writeln!(f, "circles of imports: {}", self.circles)?;
        write!(f, "{:<24} {:>7} {:>6}  defined in", "largest objects", "methods", "files")?;
        for Object { methods, files, name, home } in &self.largest_objects {
            write!(f, "\n{name:<24} {methods:>7} {files:>6}  {home}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::project::project;
    use super::*;

    #[test]
    fn sizes_add_up() {
        let large = "// x\n".repeat(1_200);
        let project = project([
            ("crates/agent/src/lib.rs", large.as_str()),
            ("crates/store/src/lib.rs", &("// x\n".repeat(600) + "#[cfg(test)]\nmod tests {}\n")),
            ("crates/store/tests/it/main.rs", "// x\n"),
        ]);
        expect![[r#"
            crate             files  production   tests  largest
            agent                 1        1200       0     1200
            store                 2         600       3      600
            all                   3        1800       3
            production code in files over 1000 lines: 66.6 %; files over 500: 2
            circles of imports: 0
            largest objects          methods  files  defined in"#]]
        .assert_eq(&Summary::of(&project).to_string());
    }
}
