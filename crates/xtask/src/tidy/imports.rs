//! Rules of imports: files of a crate import one another in one direction.

use super::project::Project;
use crate::finding::Finding;

/// No file imports from one that, over others perhaps, imports from it.
pub(super) fn circles(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for imports in project.imports.values() {
        for circle in imports.circles() {
            let way: Vec<String> = circle
                .iter()
                .map(|(file, line)| format!("{} (line {line})", short(file)))
                .collect();
            let Some((start, _)) = circle.last() else { continue };
            let line = circle.first().map_or(1, |(_, line)| *line);
            let message = format!(
                "it imports in a circle, from {}: what both need is a file",
                way.join(", ")
            );
            findings.push(Finding::error(start, line, "import-circle", message));
        }
    }
    findings
}

fn short(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(_, below)| below)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::project::check;
    use super::*;

    #[test]
    fn files_import_in_one_direction() {
        check(
            circles,
            [
                (
                    "crates/store/src/lib.rs",
                    "mod a;\nmod b;\npub use a::A;\npub(crate) use b::B;\n",
                ),
                ("crates/store/src/a.rs", "mod deep;\nuse crate::B;\npub struct A(B);\n"),
                ("crates/store/src/a/deep.rs", "fn f(_: super::A) {}\n"),
                (
                    "crates/store/src/b.rs",
                    "pub(crate) struct B;\nfn f() { crate::a::deep::f() }\n\
                     #[cfg(test)]\nmod tests { use crate::A; }\n",
                ),
            ],
            &expect![[r"
                crates/store/src/a.rs:2: import-circle: it imports in a circle, from b.rs (line 2), a/deep.rs (line 2), a.rs (line 1): what both need is a file
            "]],
        );
        check(
            circles,
            [
                ("crates/store/src/lib.rs", "mod a;\npub use a::A;\n"),
                ("crates/store/src/a.rs", "mod deep;\npub struct A;\n"),
                ("crates/store/src/a/deep.rs", "use super::A;\nfn f(_: A) {}\n"),
            ],
            &expect![""],
        );
    }
}
