//! Rules of layout: module docs, one test binary, no forgotten file, a licence.

use super::project::Project;
use crate::finding::Finding;

/// Every module opens with what it owns and what it must never do.
pub(super) fn module_docs(project: &Project) -> Vec<Finding> {
    // One word, as a stub leaves it, says neither.
    let opens = |text: &str| {
        let first = text.lines().find(|line| !line.trim().is_empty());
        let doc = first.and_then(|line| line.strip_prefix("//!"));
        doc.is_some_and(|doc| doc.split_whitespace().count() > 1)
    };
    project
        .sources
        .files
        .iter()
        .filter(|source| !opens(&source.text))
        .map(|source| {
            let message =
                "begins without a `//!` sentence: say what it owns and what it must never do";
            Finding::error(&source.path, 1, "module-doc", message)
        })
        .collect()
}

/// The workspace of the fuzz targets, whose files its own manifest names.
const FUZZ: &str = "fuzz/";

/// A file that no module declares is never compiled, so its tests never run.
pub(super) fn orphans(project: &Project) -> Vec<Finding> {
    project
        .sources
        .orphans
        .iter()
        .filter(|path| !path.starts_with(FUZZ))
        .map(|path| {
            Finding::error(path, 1, "orphan", "no `mod` declares this file, so nobody compiles it")
        })
        .collect()
}

/// One integration test binary per crate links once, and forgets no file.
pub(super) fn one_test_binary(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &project.workspace.members {
        let runner = format!("{}/tests/it/main.rs", member.dir);
        for target in member.targets.iter().filter(|t| t.test && t.path != runner) {
            let message = format!("a second test binary: make it a module of {runner}");
            findings.push(Finding::error(&target.path, 1, "one-test-binary", message));
        }
    }
    findings
}

/// The licence stands beside the code.
pub(super) fn licence(project: &Project) -> Vec<Finding> {
    if project.tree.text("LICENSE").is_some_and(|text| !text.trim().is_empty()) {
        return Vec::new();
    }
    vec![Finding::error("LICENSE", 1, "licence", "is missing or empty")]
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::project::check;
    use super::*;

    #[test]
    fn a_module_opens_with_its_doc() {
        check(
            module_docs,
            [
                ("crates/store/src/lib.rs", "\n//! Owns rows.\nmod bare;\n"),
                ("crates/store/src/bare.rs", "/// Not the module's.\nfn f() {}\n"),
                ("crates/store/tests/it/main.rs", "//! Stub.\n"),
            ],
            &expect![[r"
                crates/store/src/bare.rs:1: module-doc: begins without a `//!` sentence: say what it owns and what it must never do
                crates/store/tests/it/main.rs:1: module-doc: begins without a `//!` sentence: say what it owns and what it must never do
            "]],
        );
    }

    #[test]
    fn forgotten_files_are_named() {
        check(
            orphans,
            [
                ("crates/store/src/lib.rs", "mod known;\n"),
                ("crates/store/src/known.rs", ""),
                ("crates/store/tests/it/main.rs", ""),
                ("crates/store/tests/it/lost.rs", ""),
                ("fuzz/fuzz_targets/wire.rs", ""),
            ],
            &expect![[r"
                crates/store/tests/it/lost.rs:1: orphan: no `mod` declares this file, so nobody compiles it
            "]],
        );
    }

    #[test]
    fn a_second_test_binary_is_refused() {
        check(
            one_test_binary,
            [
                ("crates/store/src/lib.rs", ""),
                ("crates/store/tests/it/main.rs", ""),
                ("crates/store/tests/more.rs", ""),
            ],
            &expect![[r"
                crates/store/tests/more.rs:1: one-test-binary: a second test binary: make it a module of crates/store/tests/it/main.rs
            "]],
        );
    }

    #[test]
    fn the_licence_is_there() {
        check(licence, [("LICENSE", "Apache License\n")], &expect![""]);
        check(
            licence,
            [],
            &expect![[r"
            LICENSE:1: licence: is missing or empty
        "]],
        );
    }
}
